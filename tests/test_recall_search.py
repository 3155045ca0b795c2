"""Search over real folders: what is found, by what words, and that nothing written is missed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brainiac.notes.dialogue import StmEvent, render_exchange
from brainiac.recall import Recall
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree

NOW = datetime(2025, 9, 16, 12, tzinfo=UTC)
CONCRETE = "memory/long_term/concrete"


class Folder:
    """A brain's folder and a search over it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.opened: list[Recall] = []
        self.write("system/core_identity.md", "# Core Identity\n")
        (root / "memory" / "long_term").mkdir(parents=True)

    def write(self, path: str, text: str) -> str:
        """Write a file, whoever is looking."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        return path

    def memory(self, name: str, *statements: str, meta: str = "") -> str:
        """Write a memory page."""
        lines = "".join(f"- {text} ^s{number}\n" for number, text in enumerate(statements))
        return self.write(f"{CONCRETE}/{name}.md", f"---\nuuid: {name}\n{meta}---\n# {name.title()}\n\n{lines}")

    def recall(self, language: str = "english") -> Recall:
        """Open a search without embedder."""
        places = LocalPlaces.of(self.root, "test")
        settings = Settings(recall=RecallSettings(embedder="none", language=language))
        self.opened.append(Recall(Tree(self.root), places, settings))
        return self.opened[-1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Give a folder whose searches are closed at the end."""
    made = Folder(tmp_path / "brain")
    yield made
    for recall in made.opened:
        recall.close()


def texts(recall: Recall, query: str, **options: object) -> list[str]:
    """Return the texts found."""
    return [hit.text for hit in recall.search(query, now=NOW, **options)]  # type: ignore[arg-type]


def test_statements_are_found_by_their_block_id(folder: Folder) -> None:
    """A hit names the statement, its page and its identity. Seeds: P4."""
    folder.memory("portland", "User lives in Portland.", "User works at Harbor.")
    folder.memory("pets", "User has a dog.")
    hit = folder.recall().search("Where does the user live?", now=NOW)[0]
    assert ("statement", "User lives in Portland.", "s0", "portland", "Portland") == (
        hit.kind,
        hit.text,
        hit.anchor,
        hit.uuid,
        hit.title,
    )


def test_words_in_other_forms(folder: Folder) -> None:
    """Stems, irregular forms and shared beginnings are met."""
    folder.memory("life", "User went hiking.", "User sees a counselor.", "User bought two bicycles.")
    recall = folder.recall()
    found = [texts(recall, query, limit=1)[0] for query in ("go hike", "counseling", "buy a bicycle")]
    assert ["User went hiking.", "User sees a counselor.", "User bought two bicycles."] == found


def test_words_of_like_meaning(folder: Folder) -> None:
    """What a question calls by its kind is found by its name, without any model. Seeds: P4."""
    folder.memory("pastimes", "User plays chess on Mondays.", "User plays the violin.", "User plays football.")
    found = folder.recall().search("Which instruments does User play?")
    assert "User plays the violin." == found[0].text
    assert found[0].signals["alike_around"] > found[1].signals["alike_around"]


def test_history_and_manifest_are_never_found(folder: Folder) -> None:
    """What no longer holds, and lists that repeat their pages, are out of recall."""
    folder.write(f"{CONCRETE}/home.md", "# Home\n\n- Lives in Seattle. ^a\n\n## History\n- Lived in Dallas. ^b\n")
    folder.write(f"{CONCRETE}/_index.md", "# Concrete\n\nFacts.\n\n## Manifest\n- [Dallas](dallas.md)\n")
    recall = folder.recall()
    assert ([], ["Lives in Seattle."]) == (texts(recall, "Dallas"), texts(recall, "Seattle"))


def test_archive_only_on_request(folder: Folder) -> None:
    """Archived memories come when they are asked for."""
    folder.write("memory/archive/concrete/boat.md", "# Boat\n\n- User had a boat. ^a\n")
    recall = folder.recall()
    assert ([], ["User had a boat."]) == (texts(recall, "boat"), texts(recall, "boat", include_archive=True))


def test_exchanges_are_found_turn_by_turn(folder: Folder) -> None:
    """Raw exchanges of episodic pages and of short-term memory are hits with their id, moment and side. Seeds: S10."""
    said = StmEvent("e1", "2025-09-01T10:00:00Z", "Which paint dries fastest?", "Acrylic paint dries within the hour.")
    folder.write("memory/long_term/events/2025/09/01/paint.md", f"# Paint\n\n{render_exchange(said)}")
    hit = folder.recall().search("acrylic", now=NOW)[0]
    assert ("exchange", "e1", "ai", "2025-09-01T10:00:00Z") == (hit.kind, hit.anchor, hit.speaker, hit.at)


def test_the_person_named_is_who_speaks(folder: Folder) -> None:
    """In a transcript, words by whom the question names come before the same words by another."""
    lines = [f"{who}: {said}" for said in ("I went sailing near Oslo.", "Good night.") for who in ("Ann", "Bob")]
    events = "\n".join(
        render_exchange(StmEvent(f"e{n}", f"2025-09-01T10:0{n}:00Z", line)) for n, line in enumerate(lines)
    )
    folder.write("memory/long_term/events/2025/09/01/talk.md", f"# Talk\n\n{events}")
    recall = folder.recall()
    assert ["e0", "e1"] == [recall.search(f"Where did {who} sail?", now=NOW)[0].anchor for who in ("Ann", "Bob")]


def test_of_two_who_are_named_the_first_speaks(folder: Folder) -> None:
    """Of two with the same words, found is who told the other, in whatever order the names would sort."""
    for who in ("Ann", "Bob"):
        said = StmEvent(who, "2025-09-01T10:00:00Z", f"{who}: Sailing near Oslo is fun.")
        more = StmEvent(f"{who}2", "2025-09-01T10:01:00Z", f"{who}: Good night.")
        log = f"{render_exchange(said)}\n{render_exchange(more)}"
        folder.write(f"memory/long_term/events/2025/09/01/{who}.md", f"# Talk\n\n{log}")
    recall = folder.recall()
    asked = ("What did Ann tell Bob about sailing?", "What did Bob tell Ann about sailing?")
    assert ["Ann", "Bob"] == [recall.search(text, now=NOW)[0].anchor for text in asked]


def test_last_tuesday_is_met_by_date(folder: Folder) -> None:
    """A day told relative to an exchange's date is found by its own date."""
    for day in (3, 17):
        said = StmEvent(f"e{day}", f"2025-06-{day:02d}T10:00:00Z", "Yesterday I saw the doctor.")
        folder.write(f"memory/long_term/events/2025/06/{day:02d}/x.md", f"# Day\n\n{render_exchange(said)}")
    assert "e17" == folder.recall().search("What happened on 16 June 2025?", now=NOW)[0].anchor


def test_a_write_is_seen_by_the_next_search(folder: Folder) -> None:
    """New, changed, moved and removed files count at once."""
    path = folder.memory("tea", "User drinks oolong.")
    recall = folder.recall()
    assert ["User drinks oolong."] == texts(recall, "oolong")
    folder.memory("tea", "User drinks sencha.")
    recall.note_change(path)
    assert ([], ["User drinks sencha."]) == (texts(recall, "oolong"), texts(recall, "sencha"))
    (folder.root / path).rename(folder.root / CONCRETE / "leaf.md")
    recall.note_change(path)
    recall.note_change(f"{CONCRETE}/leaf.md")
    assert [f"{CONCRETE}/leaf.md"] == [hit.path for hit in recall.search("sencha")]
    (folder.root / CONCRETE / "leaf.md").unlink()
    recall.note_change(f"{CONCRETE}/leaf.md")
    assert [] == texts(recall, "sencha")


def test_a_hit_edited_unnoticed_is_read_again(folder: Folder) -> None:
    """A found file whose change nobody told of is found by its present words or not at all."""
    folder.memory("tea", "User drinks oolong.")
    recall = folder.recall()
    texts(recall, "oolong")
    folder.memory("tea", "User drinks only water now.")
    assert ([], ["User drinks only water now."]) == (texts(recall, "oolong"), texts(recall, "water"))


def test_a_folder_moved_by_hand(folder: Folder) -> None:
    """A change told of a folder is a change of all files below it."""
    folder.memory("tea/green", "User drinks sencha.")
    recall = folder.recall()
    texts(recall, "sencha")
    (folder.root / CONCRETE / "tea").rename(folder.root / CONCRETE / "drinks")
    recall.note_change(f"{CONCRETE}/tea")
    recall.note_change(f"{CONCRETE}/drinks")
    assert [f"{CONCRETE}/drinks/green.md"] == [hit.path for hit in recall.search("sencha")]


def test_short_term_memory_needs_no_notice(folder: Folder) -> None:
    """`short_term.md` is looked at by every search."""
    recall = folder.recall()
    texts(recall, "anything")
    said = render_exchange(StmEvent("e1", "2025-09-16T10:00:00Z", "My train leaves from platform nine."))
    folder.write("memory/short_term.md", f"# Short-Term Memory Scratchpad\n\n## Event Log\n{said}")
    assert "My train leaves from platform nine." == texts(recall, "platform")[0]


def test_changes_while_closed(folder: Folder) -> None:
    """What changed while nobody looked is seen at the next start, by stat."""
    folder.memory("tea", "User drinks oolong.")
    first = folder.recall()
    first.reindex()
    first.close()
    folder.memory("tea", "User drinks sencha, not black tea.")
    folder.memory("milk", "User drinks oat milk.")
    second = folder.recall()
    found = (texts(second, "oolong"), texts(second, "sencha"), texts(second, "oat"))
    assert ([], ["User drinks sencha, not black tea."], ["User drinks oat milk."]) == found


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_lost_index_is_never_an_empty_answer(folder: Folder, when: str) -> None:
    """With the index deleted or overwritten, searches scan and find the same."""
    for number in range(100):
        folder.memory(f"tea{number}", f"User drinks tea number {number}.")
    recall = folder.recall()
    recall.reindex()
    cache = LocalPlaces.of(folder.root, "test").cache
    if when == "before":
        recall.close()
        (cache / "index" / "pages.db").write_bytes(b"damaged" * 1000)
        recall = folder.recall()
    else:
        shutil.rmtree(cache)
    assert "User drinks tea number 42." == texts(recall, "number 42")[0]


def test_two_processes_search_at_once(folder: Folder) -> None:
    """A second process finds what is new although the first one holds the index."""
    folder.memory("tea", "User drinks oolong.")
    first = folder.recall()
    first.reindex()
    folder.memory("milk", "User drinks oat milk.")
    code = (
        "import sys; from pathlib import Path; from brainiac.recall import Recall; from brainiac.tree import *;"
        "from brainiac.settings import *; root = Path(sys.argv[1]);"
        "r = Recall(Tree(root), LocalPlaces.of(root, 'test'), Settings(recall=RecallSettings(embedder='none')));"
        "print([h.text for q in ('oat', 'oolong') for h in r.search(q, limit=1)]); r.close()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder.root)], capture_output=True, text=True, check=True)
    assert "['User drinks oat milk.', 'User drinks oolong.']" == done.stdout.strip()


def test_field_syntax(folder: Folder) -> None:
    """tag:, type:, path:, after:, before:, quotes and -word narrow a search."""
    folder.memory("tea", "User drinks green tea.", meta="tags: [drinks]\nupdated_at: 2025-03-01T00:00:00Z\n")
    folder.memory("pot", "User has a green tea pot.", meta="tags: [kitchen]\nupdated_at: 2025-06-01T00:00:00Z\n")
    folder.write("memory/long_term/skills/brew.md", "# Brew\n\n- Green tea steeps for two minutes. ^a\n")
    recall = folder.recall()
    queries = ("tag:drinks", "tea type:skill", "tea path:pot", "tea after:2025-05", "tea before:2025-05 tag:drinks")
    expected = [["tea"], ["brew"], ["pot"], ["pot"], ["tea"], ["pot"], ["tea", "brew"]]
    found = [[Path(hit.path).stem for hit in recall.search(query, now=NOW)] for query in queries]
    found += [[Path(hit.path).stem for hit in recall.search('"tea pot"', now=NOW)]]
    found += [sorted((Path(hit.path).stem for hit in recall.search("tea -pot", now=NOW)), reverse=True)]
    assert expected == found


def test_unspaced_scripts(folder: Folder) -> None:
    """Words of a script without spaces are found inside a sentence."""
    folder.memory("kyoto", "来年の春に京都へ旅行します。", "明日は雨です。")
    assert "来年の春に京都へ旅行します。" == texts(folder.recall(), "京都旅行")[0]


def test_another_language(folder: Folder) -> None:
    """Stemming follows the brain's language."""
    folder.memory("haus", "Der Nutzer besitzt zwei Häuser.")
    assert ["Der Nutzer besitzt zwei Häuser."] == texts(folder.recall("german"), "Haus", limit=1)


def test_a_summary_lifts_its_folder(folder: Folder) -> None:
    """Of two equal pages the one whose folder's summary fits comes first."""
    for name in ("boats", "cars"):
        folder.write(f"{CONCRETE}/{name}/_index.md", f"# {name}\n\nEverything on {name} of the family.\n")
        folder.write(f"{CONCRETE}/{name}/paint.md", "# Paint\n\n- It was painted blue. ^a\n")
    hits = folder.recall().search("painted boats", kinds=("statement",), now=NOW)
    assert f"{CONCRETE}/boats/paint.md" == hits[0].path


def test_signals_are_told(folder: Folder) -> None:
    """A hit says what its score is made of, and status what answered."""
    folder.memory("tea", "User drinks oolong.")
    recall = folder.recall()
    assert recall.search("oolong")[0].signals["own"] == 1.0
    status = recall.status()
    assert ("tantivy", "fresh", "none") == (status["engine"], status["freshness"], status["embedder"]["name"])


def test_kinds_and_limit(folder: Folder) -> None:
    """Hits are only of the kinds asked for and no more than asked for."""
    folder.memory("tea", *(f"User drinks tea {number}." for number in range(9)))
    folder.write(f"{CONCRETE}/_index.md", "# Concrete\n\nAll on tea.\n")
    recall = folder.recall()
    assert (3, {"statement"}) == (
        len(recall.search("tea", limit=3)),
        {hit.kind for hit in recall.search("tea", kinds=("statement",))},
    )


def test_import_is_light() -> None:
    """Importing the package pulls in neither numpy nor the engine."""
    code = (
        "import sys, brainiac.recall; print([m for m in ('numpy', 'tantivy', 'pydantic', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()


def test_an_answer_that_repeats_memory_stands_behind_what_it_repeats(folder: Folder) -> None:
    """Six answers that quote a statement are found below it, unless what the AI said is asked for."""
    page = folder.memory("home", "User lives in Lisbon since May.")
    echo = 'You live in Lisbon since May.\n\nFrom memory: [Home](../concrete/home.md "uuid:home")'
    said = [StmEvent(f"e{n}", f"2025-09-1{n}T08:00:00Z", "Where do I live?", echo) for n in range(6)]
    folder.write("memory/long_term/events/2025/09.md", "# Log\n\n" + "\n".join(map(render_exchange, said)))
    recall = folder.recall()
    assert page == recall.search("Lisbon", now=NOW)[0].path
    assert page == recall.search("Where do I live?", now=NOW)[0].path
    assert "exchange" == recall.search("What did you say about Lisbon?", now=NOW)[0].kind


def test_a_heading_alone_is_found_by_its_own_words_only(folder: Folder) -> None:
    """`## Conversation` above a log is no answer to what was said in it; a page of headings is found by them."""
    log = render_exchange(StmEvent("e1", "2025-09-11T08:00:00Z", "The ferry to Lisbon leaves at nine.", "Noted."))
    folder.write("memory/long_term/events/2025/09.md", f"# Log\n\n## Conversation\n\n{log}")
    folder.write(f"{CONCRETE}/plans.md", "# Plans\n\n## Repair the greenhouse\n")
    recall = folder.recall()
    assert not any(hit.text.startswith("#") for hit in recall.search("When does the ferry to Lisbon leave?", now=NOW))
    assert f"{CONCRETE}/plans.md" == recall.search("greenhouse", now=NOW)[0].path


def test_a_word_that_heads_a_note_is_no_speaker(folder: Folder) -> None:
    """`Allergies: …` among other words is found by all of them; a transcript in one exchange has its speakers."""
    said = [
        StmEvent("e1", "2025-09-11T08:00:00Z", "Allergies: walnuts and cashews.", "Noted."),
        StmEvent("e2", "2025-09-11T08:01:00Z", "I sail on Sundays.", "Noted."),
        StmEvent("e3", "2025-09-11T08:02:00Z", "Ann: Who feeds the cat?\nBob: I do, each morning.", "Noted."),
    ]
    folder.write("memory/long_term/events/2025/09.md", "# Log\n\n" + "\n".join(map(render_exchange, said)))
    recall = folder.recall()
    assert "Allergies: walnuts and cashews." == recall.search("allergies", now=NOW)[0].text
    assert "I do, each morning." == recall.search("What does Bob feed?", now=NOW)[0].text
