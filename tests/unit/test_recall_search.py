"""Search over real folders: what is found, by what words, and that nothing written is missed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac.formats.markdown import StmEvent
from brainiac.search.query import FIELDS
from tests.support.notes_texts import exchange_text, stm_text
from tests.support.program import run_program
from tests.support.recalled import CONCRETE, Folder, texts


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Give a folder whose searches are closed at the end."""
    made = Folder(tmp_path / "brain")
    yield made
    made.close()


def test_statements_are_found_by_their_block_id(folder: Folder) -> None:
    """A hit names the statement, its page and its identity. Seeds: P4."""
    folder.memory("portland", "User lives in Portland.", "User works at Harbor.")
    folder.memory("pets", "User has a dog.")
    hit = folder.recall().search("Where does the user live?")[0]
    assert ("statement", "User lives in Portland.", "s0", "portland", "Portland") == (
        hit.kind,
        hit.text,
        hit.anchor,
        hit.uuid,
        hit.title,
    )


def test_words_in_other_forms(folder: Folder) -> None:
    """Stems, shared beginnings and slips of the pen are met."""
    folder.memory("life", "User went hiking.", "User sees a counselor.", "User bought two bicycles.")
    recall = folder.recall()
    found = [texts(recall, query, limit=1)[0] for query in ("hike", "counseling", "a bicyle")]
    assert ["User went hiking.", "User sees a counselor.", "User bought two bicycles."] == found


@pytest.mark.parametrize("language", ["none", "german", "english"])
def test_a_word_is_found_in_a_compound(folder: Folder, language: str) -> None:
    """Runs of signs lead from a word to a longer one and back, without any knowledge of the language."""
    folder.memory("haus", "Der Zahnarzttermin ist am Montag.", "Der Schlüssel hängt im Keller.", "Es regnet.")
    recall = folder.recall(language)
    found = [texts(recall, query, limit=1) for query in ("Termin", "Gartenhausschlüssel", "zahnartztermin")]
    assert [["Der Zahnarzttermin ist am Montag."], ["Der Schlüssel hängt im Keller."], found[0]] == found


def test_history_and_manifest_are_never_found(folder: Folder) -> None:
    """What no longer holds, and lists that repeat their pages, are out of recall."""
    folder.write(f"{CONCRETE}/home.md", "# Home\n\n- Lives in Seattle. ^a\n\n## History\n- Lived in Dallas. ^b\n")
    folder.write(f"{CONCRETE}/_index.md", "# Concrete\n\nFacts.\n\n## Manifest\n- [Dallas](dallas.md)\n")
    recall = folder.recall()
    assert ([], ["Lives in Seattle."]) == (texts(recall, "Dallas"), texts(recall, "Seattle"))


def test_what_is_archived_ranks_behind_and_is_marked(folder: Folder) -> None:
    """Archived memories are found like any other, behind what is not."""
    folder.write("memory/archive/concrete/boat.md", "# Boat\n\n- User had a boat. ^a\n")
    folder.memory("plans", "User wants a boat one day.", "User sold the caravan.")
    recall = folder.recall()
    hits = recall.search("boat")
    assert [("User wants a boat one day.", False), ("User had a boat.", True)] == [
        (h.text, h.is_archived) for h in hits
    ]
    assert ["User had a boat."] == texts(recall, "boat type:archive")


def test_exchanges_are_found_turn_by_turn(folder: Folder) -> None:
    """Raw exchanges of episodic pages and of short-term memory are hits with their id, moment and side. Seeds: S10."""
    said = StmEvent("e1", "2025-09-01T10:00:00Z", "Which paint dries fastest?", "Acrylic paint dries within the hour.")
    folder.write("memory/long_term/events/2025/09/01/paint.md", f"# Paint\n\n{exchange_text(said)}")
    hit = folder.recall().search("acrylic")[0]
    assert ("exchange", "e1", "ai", "2025-09-01T10:00:00Z") == (hit.kind, hit.anchor, hit.speaker, hit.at)


def test_the_person_named_is_who_speaks(folder: Folder) -> None:
    """In a transcript, words by whom the question names come before the same words by another."""
    lines = [f"{who}: {said}" for said in ("I went sailing near Oslo.", "Good night.") for who in ("Ann", "Bob")]
    events = "\n".join(
        exchange_text(StmEvent(f"e{n}", f"2025-09-01T10:0{n}:00Z", line)) for n, line in enumerate(lines)
    )
    folder.write("memory/long_term/events/2025/09/01/talk.md", f"# Talk\n\n{events}")
    recall = folder.recall()
    assert ["e0", "e1"] == [recall.search(f"Where did {who} sail?")[0].anchor for who in ("Ann", "Bob")]


def test_of_two_who_are_named_the_first_speaks(folder: Folder) -> None:
    """Of two with the same words, found is who told the other, in whatever order the names would sort."""
    for who in ("Ann", "Bob"):
        said = StmEvent(who, "2025-09-01T10:00:00Z", f"{who}: Sailing near Oslo is fun.")
        more = StmEvent(f"{who}2", "2025-09-01T10:01:00Z", f"{who}: Good night.")
        log = f"{exchange_text(said)}\n{exchange_text(more)}"
        folder.write(f"memory/long_term/events/2025/09/01/{who}.md", f"# Talk\n\n{log}")
    recall = folder.recall()
    asked = ("What did Ann tell Bob about sailing?", "What did Bob tell Ann about sailing?")
    assert ["Ann", "Bob"] == [recall.search(text)[0].anchor for text in asked]


def test_last_tuesday_is_met_by_date(folder: Folder) -> None:
    """A day told relative to an exchange's date is found by its own date."""
    for day in (3, 17):
        said = StmEvent(f"e{day}", f"2025-06-{day:02d}T10:00:00Z", "Yesterday I saw the doctor.")
        folder.write(f"memory/long_term/events/2025/06/{day:02d}/x.md", f"# Day\n\n{exchange_text(said)}")
    assert "e17" == folder.recall().search("What happened on 16 June 2025?")[0].anchor


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
    said = exchange_text(StmEvent("e1", "2025-09-16T10:00:00Z", "My train leaves from platform nine."))
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
    cache = folder.opened[0].places.cache
    if when == "before":
        recall.close()
        (cache / "index" / "pages.db").write_bytes(b"damaged" * 1000)
        recall = folder.recall()
    else:
        shutil.rmtree(cache)
    assert "User drinks tea number 42." == texts(recall, "number 42")[0]


@pytest.mark.slow
def test_two_processes_search_at_once(folder: Folder) -> None:
    """A second process finds what is new although the first one holds the index."""
    folder.memory("tea", "User drinks oolong.")
    first = folder.recall()
    first.reindex()
    folder.memory("milk", "User drinks oat milk.")
    for word, text in (("oat", "User drinks oat milk."), ("oolong", "User drinks oolong.")):
        done = run_program("--brain", str(folder.root), "search", word)
        assert text in done.stdout


def test_field_syntax(folder: Folder) -> None:
    """tag:, type:, path:, after:, before:, quotes and -word narrow a search."""
    folder.memory("tea", "User drinks green tea.", meta="tags: [drinks]\nupdated_at: 2025-03-01T00:00:00Z\n")
    folder.memory("pot", "User has a green tea pot.", meta="tags: [kitchen]\nupdated_at: 2025-06-01T00:00:00Z\n")
    folder.write("memory/long_term/skills/brew.md", "# Brew\n\n- Green tea steeps for two minutes. ^a\n")
    recall = folder.recall()
    queries = ("tag:drinks", "tea type:skill", "tea path:pot", "tea after:2025-05", "tea before:2025-05 tag:drinks")
    expected = [["tea"], ["brew"], ["pot"], ["pot"], ["tea"], ["pot"], ["tea", "brew"]]
    found = [[Path(hit.path).stem for hit in recall.search(query)] for query in queries]
    found += [[Path(hit.path).stem for hit in recall.search('"tea pot"')]]
    found += [sorted((Path(hit.path).stem for hit in recall.search("tea -pot")), reverse=True)]
    assert expected == found


# For each field a query that finds the tea alone, and one that finds the pot alone.
NARROWED = {
    "tag": ("tag:drinks", "tag:#Kitchen"),
    "type": ("tea type:skills", "tea type:concrete"),
    "after": ("tea before:2025-05", "tea after:2025-05"),
    "before": ("tea before:2025-05", "tea after:2025-05 before:2025-07"),
    "path": ("tea path:BREW", "tea path:pot"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_narrows(name: str, folder: Folder) -> None:
    """Whatever the table of fields has finds what fits, and nothing else; a value that is none is ignored."""
    folder.memory("pot", "User has a green tea pot.", meta="tags: [kitchen]\nupdated_at: 2025-06-01T00:00:00Z\n")
    meta = "tags: [Drinks]\nupdated_at: 2025-03-01T00:00:00Z"
    folder.write("memory/long_term/skills/brew.md", f"---\n{meta}\n---\n# Brew\n\n- Green tea steeps. ^a\n")
    recall = folder.recall()
    assert [["Green tea steeps."], ["User has a green tea pot."]] == [texts(recall, asked) for asked in NARROWED[name]]


def test_what_has_no_day_is_neither_before_nor_after_one(folder: Folder) -> None:
    """A page without a date is found by its words, and by no field that asks for days."""
    folder.write(f"{CONCRETE}/undated.md", "# Undated\n\nThe heron nests by the mill.\n")
    recall = folder.recall()
    assert ["The heron nests by the mill."] == texts(recall, "heron") == texts(recall, f"heron after:{10**20}d")
    assert [] == texts(recall, "heron before:2999-01-01") + texts(recall, "before:2999-01-01")
    assert [] == texts(recall, "heron after:1001-01-01")


def test_unspaced_scripts(folder: Folder) -> None:
    """Words of a script without spaces are found inside a sentence."""
    folder.memory("kyoto", "来年の春に京都へ旅行します。", "明日は雨です。")
    assert "来年の春に京都へ旅行します。" == texts(folder.recall(), "京都旅行")[0]


def test_another_language(folder: Folder) -> None:
    """Stemming follows the brain's language."""
    folder.memory("haus", "Der Nutzer besitzt zwei Häuser.")
    assert ["Der Nutzer besitzt zwei Häuser."] == texts(folder.recall("german"), "Haus", limit=1)


def test_a_folders_name_lifts_its_pages(folder: Folder) -> None:
    """Of two equal pages the one whose folder's name fits comes first."""
    for name in ("boats", "cars"):
        folder.write(f"{CONCRETE}/{name}/paint.md", "# Paint\n\n- It was painted blue. ^a\n")
    hits = folder.recall().search("painted boats", kinds=["statement"])
    assert f"{CONCRETE}/boats/paint.md" == hits[0].path


def test_signals_are_told(folder: Folder) -> None:
    """A hit says what its score is made of, and status what answered."""
    folder.memory("tea", "User drinks oolong.")
    recall = folder.recall()
    assert recall.search("oolong")[0].signals["whole"] == 1.0
    status = recall.status()
    assert ("sqlite", "fresh", "none") == (status["engine"], status["freshness"], status["embedder"]["name"])


def test_kinds_and_limit(folder: Folder) -> None:
    """Hits are only of the kinds asked for and no more than asked for."""
    folder.memory("tea", *(f"User drinks tea {number}." for number in range(9)))
    folder.write(f"{CONCRETE}/_index.md", "# Concrete\n\nAll on tea.\n")
    recall = folder.recall()
    assert (3, {"statement"}) == (
        len(recall.search("tea", limit=3)),
        {hit.kind for hit in recall.search("tea", kinds=["statement"])},
    )


def test_import_is_light() -> None:
    """Importing what a hit is pulls in neither numpy nor the engine."""
    code = "import sys, brainiac.search.documents; print([m for m in ('numpy', 'Stemmer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()


def log_of(*said: tuple[str, str], day: int = 1) -> str:
    """Return the page of a day: what a person said, and the answer, an hour apart."""
    events = [StmEvent(f"e{n}", f"2025-09-{day:02d}T{n:02d}:00:00Z", user, ai) for n, (user, ai) in enumerate(said)]
    return "# Day\n\n" + "\n".join(map(exchange_text, events))


DAY = "memory/long_term/events/2025/09/01/2025-09-01.md"


def test_both_sides_of_an_exchange_are_hits(folder: Folder) -> None:
    """F-FND-1: what a person said and what was answered are found apart, the person's words first."""
    folder.write(DAY, log_of(("I paint with acrylic.", "Acrylic paint dries within the hour.")))
    hits = folder.recall().search("acrylic paint")
    assert [("user", "I paint with acrylic."), ("ai", "Acrylic paint dries within the hour.")] == [
        (hit.speaker, hit.text) for hit in hits
    ]
    assert 2 == len({hit.key for hit in hits})


def test_an_answer_is_found_where_nobody_else_says_it(folder: Folder) -> None:
    """What a model answered ranks behind, it is not hidden."""
    folder.write(DAY, log_of(("Which one lasts longest?", "Cadmium red is the most lightfast."), ("Red it is.", "")))
    assert "ai" == folder.recall().search("cadmium lightfast")[0].speaker


def test_a_long_message_is_found_by_its_blocks(folder: Folder) -> None:
    """F-FND-2: of a message over 1,000 characters each paragraph, fence, table and list is found, as written."""
    fence = "```python\nmast = 7\n\n# no heading\nboom = 3\n```"
    table = "| sail | area |\n|------|------|\n| jib  | 12   |"
    listed = "- rig the jib\n- check the halyard\n\n  and its shackle\n- cast off"
    filler = "\n\n".join(f"Paragraph {n} of a letter on something else, {'and so on ' * 12}." for n in range(8))
    folder.write(DAY, log_of(("\n\n".join((filler, fence, table, listed)), "")))
    recall = folder.recall()
    assert [fence, table, listed] == [texts(recall, word, limit=1)[0] for word in ("boom", "area", "shackle")]


def test_links_and_commands_are_no_text(folder: Folder) -> None:
    """F-FND-3: neither the links that a keyless answer is recorded as nor commands; what was to be remembered is."""
    links = '[Kiln](../../concrete/kiln.md "uuid:k"), [Glaze](../../concrete/glaze.md)'
    said = [
        ("/find kiln", links),
        ("/todo order a kiln", ""),
        ("/remember The kiln fires at 1220.\n\nIt is blue.", links),
    ]
    folder.write(DAY, log_of(*said))
    recall = folder.recall()
    assert ["The kiln fires at 1220."] == texts(recall, "kiln")
    assert [] == texts(recall, "glaze")
    assert ["It is blue."] == texts(recall, "blue")


@pytest.mark.parametrize("mark", ["?", "？", "؟", "."])
def test_what_ends_as_a_question_is_found_like_all_else(folder: Folder, mark: str) -> None:
    """To an assistant people tell in questions: what fits best stands first, whatever its last sign is."""
    asked = f"Can you help me plan the ferry to the island on Sunday at nine{mark}"
    folder.write(DAY, log_of((asked, ""), ("The ferry is blue.", ""), ("I booked a table.", "")))
    assert asked == texts(folder.recall(), "the time of the ferry to the island on Sunday")[0]


def test_a_question_asked_before_is_no_answer(folder: Folder) -> None:
    """What only repeats the query's words stands behind all that tells, however often it was said."""
    said = [("Where do I keep the passport?", ""), ("where do i keep the passport", "")] * 3
    folder.write(DAY, log_of(*said, ("The passport lies in the blue tin.", "")))
    recall = folder.recall()
    found = texts(recall, "Where do I keep the passport?")
    assert ("The passport lies in the blue tin.", 7) == (found[0], len(found))
    assert 7 == len(texts(recall, "Where do I keep the passport?", include_repeats=True))


@pytest.mark.parametrize(("answer", "first"), [("[Day](day.md)", "I take"), ("It is the blue one at nine.", "Which")])
def test_what_memory_alone_answered_stands_behind_what_was_told(folder: Folder, answer: str, first: str) -> None:
    """A question tells little, but to an assistant that answers in its own words people tell in questions."""
    asked = "Which is the early ferry to Naxos?"
    folder.write(DAY, log_of(("I take the early morning ferry to Naxos again.", ""), (asked, answer)))
    assert texts(folder.recall(), "the early ferry to Naxos")[0].startswith(first)


def test_asked_thrice_the_answer_still_leads(folder: Folder) -> None:
    """However often it was asked, what was told stands before the questions."""
    told = ["My locker is 58 and the code is 9-33-15.", "The gym opens at six.", "Mum's code word is heron.", "Rain."]
    asked = ["what is the code of my gym locker", "When does the gym open?", "Which code word has Mum?"]
    answers = [told[0], told[1], told[2]]
    folder.write(DAY, log_of(*((text, "") for text in told)))
    recall = folder.recall()
    for time in range(3):
        found = [recall.search(question, limit=2) for question in asked]
        assert answers == [hits[0].text for hits in found]
        folder.write(DAY, log_of(*((text, "") for text in told + asked * (time + 1))))
        recall.rescan()


def test_what_was_said_twice_takes_one_place(folder: Folder) -> None:
    """The same words by the same person come once, and again only behind all else."""
    folder.write(DAY, log_of(("The kiln is hot.", ""), ("The kiln is hot.", ""), ("The blue kiln was sold.", "")))
    found = texts(folder.recall(), "hot kiln")
    assert ["The kiln is hot.", "The blue kiln was sold.", "The kiln is hot."] == found


def test_a_question_may_ask_whether_something_is_so(folder: Folder) -> None:
    """What was told in the very words of a question answers it."""
    folder.write(DAY, log_of(("My dentist is Dr Wu.", ""), ("Lunch was good.", "")))
    assert ["My dentist is Dr Wu."] == texts(folder.recall(), "Is Dr Wu my dentist?")


def test_words_of_the_query_stand_in_a_hit(folder: Folder) -> None:
    """Nothing is found on its looks: not by who speaks, nor because a message beside it holds the word."""
    folder.write(DAY, "# Day\n\n" + "\n".join(
        exchange_text(StmEvent(f"e{n}", f"2025-09-01T10:0{n}:00Z", text))
        for n, text in enumerate(["My locker has the code 4711.", "I had soup today.", "I saw Ann in Paris."])
    ))  # fmt: skip
    recall = folder.recall()
    assert ["My locker has the code 4711."] == texts(recall, "What is the code of my locker?")
    assert [] == texts(recall, "When did I last see a dentist?")


def test_words_that_stand_everywhere_lead_nowhere(folder: Folder) -> None:
    """A word in a great part of memory is no reason to show something for another that is not there."""
    folder.write(DAY, log_of(*((f"The boat needs item {n}.", "") for n in range(30))))
    for number in range(30):
        folder.memory(f"m{number}", f"The boat was at berth {number}.")
    recall = folder.recall()
    assert [] == texts(recall, "the boat's passport")
    assert texts(recall, "boat")


def test_a_word_left_out_of_queries_is_found_where_it_tells_something(folder: Folder) -> None:
    """Who asks with nothing but words that seldom tell anything finds those that are rare in this brain."""
    folder.memory(
        "bands", "The Who played in Leeds.", "Blur played in Bath.", *(f"Band {n} in {n}." for n in range(20))
    )
    assert "The Who played in Leeds." == texts(folder.recall(), "the who")[0]


def test_a_title_that_is_asked_for_comes_first(folder: Folder) -> None:
    """F-FND-5: a page asked for by its title or an alias stands before pages that hold the words more often."""
    folder.memory(
        "green-tea", "Steeps two minutes.", "Best from Uji.", meta="title: Green Tea\naliases: [Sencha, Ryokucha]\n"
    )
    folder.memory("shop", *(f"Green tea number {n} is green tea from the tea shop." for n in range(9)))
    folder.memory("list", "Sencha is sold out.", "Ryokucha is sencha.")
    recall = folder.recall()
    for query in ("green tea", "Green Tea?", "sencha", "ryokucha"):
        hits = recall.search(query)
        assert ["green-tea", "green-tea"] == [hit.uuid for hit in hits[:2]], query


def test_of_equal_hits_the_newer_comes_first(folder: Folder) -> None:
    """The same words said again are shown by their day, the last one first."""
    for day in (3, 9, 6):
        folder.write(f"memory/long_term/events/2025/09/{day:02d}/x.md", log_of(("The oven runs hot.", ""), day=day))
    found = folder.recall().search("oven")
    assert ["2025-09-09", "2025-09-06", "2025-09-03"] == [hit.at[:10] for hit in found]


def test_fields_alone_list_the_newest_first(folder: Folder) -> None:
    """`path:x` without a word lists what stands there, `after:` what was said since."""
    for day in (2, 3, 4):
        folder.write(f"memory/long_term/events/2025/09/{day:02d}/x.md", log_of((f"Day {day}.", ""), day=day))
    folder.memory("tea", "User drinks oolong.", meta="updated_at: 2025-08-01T00:00:00Z\n")
    recall = folder.recall()
    assert ["Day 4.", "Day 3.", "Day 2."] == texts(recall, "path:events")
    assert ["Day 4.", "Day 3."] == texts(recall, "after:2025-09-03")
    assert ["User drinks oolong."] == texts(recall, "before:2025-09-01")
    assert ["User drinks oolong."] == texts(recall, "path:tea -soup")


def test_filters_hold_for_each_unit(folder: Folder) -> None:
    """Days are those of each exchange and statement, not of the page they stand on."""
    said = {f"2025-06-0{day}T10:00:00Z": f"The roof leaks, bucket {day}." for day in (1, 2, 3)}
    events = [StmEvent(at, at, text) for at, text in said.items()]
    folder.write("memory/long_term/events/2025/06.md", "# June\n\n" + "\n".join(map(exchange_text, events)))
    link = '../../events/2025/06/02/2025-06-02.md "uuid:x"'
    folder.memory("roof", f"The roof is slate. ([2025-06-02]({link}))", meta="updated_at: 2025-09-01T00:00:00Z\n")
    recall = folder.recall()
    assert ["The roof leaks, bucket 1."] == texts(recall, "roof before:2025-06-02")
    on_the_second = texts(recall, "roof after:2025-06-02 before:2025-06-03")
    assert {"The roof leaks, bucket 2.", "The roof is slate."} == set(on_the_second)
    statement = recall.search("slate")[0]
    assert ("The roof is slate.", "2025-06-02") == (statement.text, statement.at[:10])


def test_days_are_those_of_the_person(folder: Folder) -> None:
    """F-FND-4: said at 00:42 in Auckland is said on that day there, and so was a statement of that day."""
    said = StmEvent("e1", "2025-09-15T12:42:00Z", "The kiln is hot.")
    folder.write(DAY, f"# Day\n\n{exchange_text(said)}")
    folder.memory("kiln", "The kiln is new. ([2025-09-16](../x.md))")
    recall = folder.recall(time_zone="Pacific/Auckland")
    assert 2 == len(texts(recall, "kiln after:2025-09-16 before:2025-09-17"))
    assert [] == texts(recall, "kiln before:2025-09-16")
    assert 0 == len(texts(recall, "kiln after:2025-09-17"))


def test_filters_reach_all_of_a_large_brain(folder: Folder) -> None:
    """A narrow field finds its page among many with the same words, and words in quotes their very order."""
    for number in range(400):
        folder.memory(f"tea{number:03d}", f"User drinks tea pot number {number}.", meta=f"tags: [t{number}]\n")
    folder.memory("zz-last", "The pot holds tea.", meta="tags: [odd]\n")
    recall = folder.recall()
    recall.reindex()
    queries = ("tea path:zz-last", "tea tag:odd", 'pot "holds tea"', "tea -number", "tea tag:t399", "path:tea007")
    names = [[Path(hit.path).stem for hit in recall.search(query)] for query in queries]
    assert [["zz-last"]] * 4 + [["tea399"], ["tea007"]] == names


def test_a_day_is_found_among_many_pages_that_tell_of_days_around_it(folder: Folder) -> None:
    """Of four hundred pages with statements of before and after, the one is found that has a statement of that day."""
    for number in range(400):
        days = ("2025-02-03", "2025-05-05", *["2025-03-04"] * (number == 250))
        said = (f"User drinks tea number {number}. ([{day}](../x.md))" for day in days)
        folder.memory(f"tea{number:03d}", *said, meta="updated_at: 2025-06-01T00:00:00Z\n")
    recall = folder.recall()
    recall.reindex()
    assert ["User drinks tea number 250."] == texts(recall, "tea after:2025-03-01 before:2025-04-01")


def test_words_in_quotes_and_words_left_out_are_whole_words(folder: Folder) -> None:
    """`-pot` leaves a potato in, `"art"` finds no part, in scripts without spaces a sign is enough."""
    folder.memory("kitchen", "A potato and tea.", "A pot of tea.", "Modern art.", "A tea party.", "来年京都へ行く。")
    recall = folder.recall()
    assert {"A potato and tea.", "A tea party."} == set(texts(recall, "tea -pot"))
    assert ["Modern art."] == texts(recall, '"art"')
    assert ["来年京都へ行く。"] == texts(recall, '"京都"')


@pytest.mark.slow
def test_the_page_that_is_long_drowns_no_other(folder: Folder) -> None:
    """Of a page with thousands of paragraphs only those around a match are ranked, and all others are found beside."""
    body = "\n\n".join(f"Paragraph {n} on the harbour and its boats." for n in range(7000))
    folder.write(f"{CONCRETE}/a-long.md", f"# Long\n\n{body}\n\nThe crane is yellow.\n")
    folder.memory("z-short", "The harbour master is called Bo.")
    recall = folder.recall()
    assert "The crane is yellow." == texts(recall, "crane", limit=1)[0]
    assert "The harbour master is called Bo." == texts(recall, "harbour master", limit=1)[0]


@pytest.mark.parametrize("state", ["indexed", "overlay", "unread"])
def test_what_was_just_said_is_found(folder: Folder, state: str) -> None:
    """After a paste of 5,000 words into a brain of 200 exchanges the next sentence is found at once, whatever is
    still to be read."""
    words = [f"word{n % 977}" for n in range(5000)]
    for day in range(1, 21):
        said = [(f"Exchange {day} {n} on the garden and the boiler of neighbour {n}.", "[x](y.md)") for n in range(10)]
        folder.write(f"memory/long_term/events/2025/08/{day:02d}/x.md", log_of(*said, day=day))
    recall = folder.recall()
    recall.reindex()
    if state != "indexed":
        for number in range(100 if state == "unread" else 10):
            filler = " ".join(words[:50])
            recall.note_change(folder.memory(f"new{number}", f"Neighbour {number} has a boiler. {filler}"))
    paste = "\n\n".join(" ".join(words[at : at + 60]) for at in range(0, 5000, 60))
    pasted = StmEvent("p", "2025-09-16T11:00:00Z", paste, "[x](y.md)")
    told = "Our boiler is a Vaillant, Marek services it."
    folder.write("memory/short_term.md", stm_text(pasted, StmEvent("e", "2025-09-16T11:01:00Z", told)))
    assert told == texts(recall, "Who services our boiler?")[0]
    if state == "indexed":
        recall.flush()
        assert told == texts(recall, "Vaillant")[0]


def test_a_heading_alone_is_found_by_its_own_words_only(folder: Folder) -> None:
    """`## Conversation` above a log is no answer to what was said in it; a page of headings is found by them."""
    log = exchange_text(StmEvent("e1", "2025-09-11T08:00:00Z", "The ferry to Lisbon leaves at nine.", "Noted."))
    folder.write("memory/long_term/events/2025/09.md", f"# Log\n\n## Conversation\n\n{log}")
    folder.write(f"{CONCRETE}/plans.md", "# Plans\n\n## Repair the greenhouse\n")
    recall = folder.recall()
    assert not any(hit.text.startswith("#") for hit in recall.search("When does the ferry to Lisbon leave?"))
    assert f"{CONCRETE}/plans.md" == recall.search("greenhouse")[0].path


def test_a_word_that_heads_a_note_is_no_speaker(folder: Folder) -> None:
    """`Allergies: …` among other words is found by all of them; a transcript in one exchange has its speakers."""
    said = [
        StmEvent("e1", "2025-09-11T08:00:00Z", "Allergies: walnuts and cashews.", "Noted."),
        StmEvent("e2", "2025-09-11T08:01:00Z", "I sail on Sundays.", "Noted."),
        StmEvent("e3", "2025-09-11T08:02:00Z", "Ann: Who feeds the cat?\nBob: I do, each morning.", "Noted."),
    ]
    folder.write("memory/long_term/events/2025/09.md", "# Log\n\n" + "\n".join(map(exchange_text, said)))
    recall = folder.recall()
    assert "Allergies: walnuts and cashews." == recall.search("allergies")[0].text
    assert "I do, each morning." == recall.search("What does Bob feed?")[0].text


def test_long_pages_neither_drown_others_nor_vanish(folder: Folder) -> None:
    """Of a long page the paragraph that matches is found, and so is a short page beside it."""
    filler = "\n\n".join(f"Remark {number} on the weather of the week." for number in range(400))
    folder.write(f"{CONCRETE}/diary.md", f"# Diary\n\n{filler}\n\nThe kiln fires at 1220 degrees.\n\n{filler}\n")
    folder.memory("studio", "The kiln stands in the studio.")
    recall = folder.recall()
    assert "The kiln fires at 1220 degrees." == texts(recall, "How hot does the kiln fire?")[0]
    assert "The kiln stands in the studio." in texts(recall, "Where is the kiln?")


def test_a_page_is_found_by_its_title_and_its_section(folder: Folder) -> None:
    """Words of the title, and of the heading further up in the section, count for a paragraph that lacks them."""
    folder.write(
        f"{CONCRETE}/stove.md", "# Wood stove\n\nGeneral remarks.\n\n## Cleaning\n\nOnce a year.\n\nBy Mr Fabel.\n"
    )
    folder.write(
        f"{CONCRETE}/boat.md", "# Boat\n\nGeneral remarks on boats.\n\n## Cleaning\n\nEvery spring, by ourselves.\n"
    )
    recall = folder.recall()
    for asked in ("cleaning the wood stove", "stove cleaning"):
        assert f"{CONCRETE}/stove.md" == recall.search(asked)[0].path
