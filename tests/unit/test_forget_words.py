"""Forgetting by words, and what is asked when a page is deleted by hand (design 3 and 6)."""

from __future__ import annotations

import pytest
from brainiac_plugins.organization.upkeep import Upkeep
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.cli.log import sentence
from brainiac.history.forget import ask_about_deleted, find_words, forget
from brainiac.history.undo import undo
from brainiac.pipeline.daemon import run_once
from brainiac.storage.withheld import Withheld
from tests.support.commands import Shell
from tests.support.said import standing, tell

pytestmark = pytest.mark.slow

PAGE = """---
uuid: 01990000-0000-7000-8000-000000000001
created_at: 2026-01-01T00:00:00Z
updated_at: 2026-01-01T00:00:00Z
sources: [{source}]
---
# Harbour

- The blue locker is at the pier. ^aaaa
- The ferry leaves at nine. ^bbbb

A paragraph on the blue locker,
in two lines.

A paragraph on gulls.
"""


def put(brain: Brain, source: str = "none") -> str:
    """Put a page there by hand."""
    path = "memory/long_term/concrete/harbour.md"
    (brain.root / path).parent.mkdir(parents=True, exist_ok=True)
    (brain.root / path).write_text(PAGE.format(source=source))
    brain.observed.adopt()
    return path


def test_all_that_holds_the_words_goes_and_nothing_else(brain: Brain) -> None:
    """Exchanges, tasks, statements and paragraphs that hold every word go; what holds some of them stays."""
    tell(brain, "one", "My blue locker has the code 4711.")
    tell(brain, "two", "/todo paint the blue locker")
    tell(brain, "three", "A blue bicycle.")
    page = put(brain)
    target = find_words(brain, "blue LOCKER")
    assert (2, 2, 1, 0) == tuple(map(len, (target.exchanges, target.blocks, target.items, target.pages)))
    assert forget(brain, target)
    assert [] == standing(brain, "locker")
    rest = brain.read_text(page) or ""
    assert "The ferry leaves at nine. ^bbbb" in rest
    assert "A paragraph on gulls." in rest
    assert standing(brain, "blue bicycle")
    assert not find_words(brain, "blue locker")


def test_a_line_without_words_of_a_person_is_shown_by_its_answer(brain: Brain) -> None:
    """As a ticked task that was filed; what went is told by what it was."""
    event = '### 2026-01-01T00:00:00Z\n<!-- exchange: line-1 -->\n**User:** ""\n**AI:** "- [x] Paint the locker"\n'
    page = brain.root / put(brain)
    page.write_text(f"{page.read_text()}\n{event}")
    target = find_words(brain, "paint locker")
    assert ["“- [x] Paint the locker”"] == [line.split(": ")[-1] for line in target.shown]
    event_forgotten = forget(brain, find_words(brain, "gulls"))
    assert event_forgotten
    assert sentence(event_forgotten).startswith("1 statement → forgotten")


def test_words_of_a_script_without_spaces_are_found(brain: Brain) -> None:
    """Where words are not parted by spaces a run of signs is a word."""
    tell(brain, "one", "駅前のロッカーの番号は四七一一です。")
    assert 1 == len(find_words(brain, "ロッカー").exchanges)
    assert not find_words(brain, "自転車")


def test_the_command_shows_and_asks(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """`brainiac forget WORDS` lists what holds them; without a terminal it takes `--yes`, and undo brings it back."""
    tell(brain, "one", "My blue locker has the code 4711.")
    shell = Shell(capsys, str(brain.root))
    refused = shell("forget", "blue locker")
    assert refused.code == 2
    assert "blue locker has the code 4711" in refused.out
    assert standing(brain, "4711")
    assert shell("forget", "blue locker", "--yes").code == 0
    assert [] == standing(brain, "4711")
    assert shell("forget", "violet").code == 1


def test_a_prompt_that_asks_puts_the_plan_into_review(brain: Brain) -> None:
    """`/forget` answers with its plan; journal and review hold no word of it; ticked, plan and prompt go too."""
    tell(brain, "one", "My blue locker has the code 4711.")
    ask = brain.root / "inbox/f.md"
    ask.write_text("/forget blue locker\n")
    run_once(brain)
    answer = brain.root / "inbox/f.response.md"
    assert "My blue locker has the code 4711." in answer.read_text()
    (brain.root / "inbox/f.response-4.md").write_bytes(answer.read_bytes())  # the fourth: three were edited
    review = brain.read_text(brain.tree.review) or ""
    assert "1 exchange" in review
    assert "locker" not in review
    events = [event for event in brain.journal.events() if event.kind == "proposal-made"]
    assert "locker" not in str(events)
    assert "/forget" not in (brain.read_text(brain.tree.short_term) or "")
    brain.tree.review.write_text(review.replace("- [ ]", "- [x]"))
    brain.observed.adopt()
    Upkeep(brain).tend()
    assert [] == standing(brain, "locker")
    assert not ask.exists()
    assert not answer.exists()


def test_a_deleted_page_without_a_uuid_is_asked_about_once(brain: Brain) -> None:
    """Whoever notes the deletion again, as the next start does, asks nothing more."""
    exchange = tell(brain, "one", "My blue locker has the code 4711.")
    for _ in range(2):
        ask_about_deleted(
            brain, "memory/long_term/concrete/locker.md", f"---\nsources: [{exchange}]\n---\n\n# Locker\n"
        )
    assert 1 == sum(event.kind == "proposal-made" for event in brain.journal.events())


def test_what_a_deleted_page_was_made_from_is_asked_about_and_not_quoted_until_then(brain: Brain) -> None:
    """A page deleted by hand: its exchanges are hidden until the person says; declined, they are quoted again."""
    exchange = tell(brain, "one", "My blue locker has the code 4711.")
    page = put(brain, exchange)
    (brain.root / page).unlink()
    (change,) = [seen for seen in (brain.observed.note_change(page),) if seen]
    upkeep = Upkeep(brain)
    upkeep.note_change(change)
    assert {exchange} == Withheld(brain).exchanges
    brain.recall.rescan()
    assert all(hit.anchor != exchange for hit in brain.recall.search("blue locker code"))
    review = brain.read_text(brain.tree.review) or ""
    brain.tree.review.write_text(review.replace("- [ ]", "- [-]"))
    brain.observed.adopt()
    upkeep.tend()
    assert frozenset() == Withheld(brain).exchanges
    assert any(hit.anchor == exchange for hit in brain.recall.search("blue locker code"))


@pytest.mark.parametrize("words", ["", "   ", "...", "-"])
def test_nothing_holds_no_words(brain: Brain, words: str) -> None:
    """A script whose variable is not set forgets nothing; a sign alone is looked for as it stands."""
    tell(brain, "one", "My blue locker - the one at the pier...")
    tell(brain, "two", "A party 🎉 on Monday.")
    assert not find_words(brain, words)
    assert 1 == len(find_words(brain, "🎉").exchanges)


@pytest.mark.parametrize("words", ["model", "offline", "memory", "noted", "uuid", "01990000", "bbbb"])
def test_what_we_write_beside_a_persons_words_holds_none(brain: Brain, words: str) -> None:
    """Front matter, links, block ids and the engine's fixed lines are nobody's words."""
    tell(brain, "one", "My blue locker has the code 4711.")
    tell(brain, "two", "Where is the blue locker?")
    put(brain)
    assert not find_words(brain, words)


def test_what_was_said_stays_where_only_its_answer_quoted_the_words(brain: Brain) -> None:
    """The answer goes: it would go on quoting them; the exchange never held them."""
    tell(brain, "one", "The garage Sundance fixes my Volvo brakes.")
    tell(brain, "two", "My Volvo brakes failed on 5 May. What fixes Volvo brakes?")
    assert "Sundance" in (brain.root / "inbox/two.response.md").read_text()
    assert forget(brain, find_words(brain, "Sundance"))
    assert [] == standing(brain, "Sundance")
    assert standing(brain, "failed on 5 May")
    assert (brain.root / "inbox/two.md").is_file()


@pytest.mark.parametrize("command", ["/tasks", "/done locker"])
def test_the_answer_to_a_command_goes_too(brain: Brain, command: str) -> None:
    """It has words of memory that its prompt has not."""
    tell(brain, "one", "/todo have Zimbalist paint the locker")
    tell(brain, "two", command)
    assert ("inbox/two.response.md",) == find_words(brain, "Zimbalist").answers
    assert forget(brain, find_words(brain, "Zimbalist"))
    assert [] == standing(brain, "Zimbalist")


def test_whole_words_are_whole_with_accents(brain: Brain) -> None:
    """`Öl` is no part of `Köln`."""
    tell(brain, "one", "Mein Büro ist in Köln.")
    assert not find_words(brain, "Öl")
    assert find_words(brain, "köln")


def test_a_page_of_that_name_is_not_all(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """`brainiac forget harbour` takes the page and what was said of the harbour, like `/forget harbour`."""
    tell(brain, "one", "The harbour is closed on Sunday.")
    put(brain)
    assert 0 == Shell(capsys, str(brain.root))("forget", "harbour", "--yes").code
    assert [] == standing(brain, "harbour is closed")
    assert not (brain.root / "memory/long_term/concrete/harbour.md").exists()


def test_a_forgotten_note_that_is_brought_back_is_no_new_one(brain: Brain) -> None:
    """It stands once again, where it stood, and is not taken in a second time."""
    (brain.root / "inbox/notes").mkdir(parents=True, exist_ok=True)
    (brain.root / "inbox/notes/gate.md").write_text("The gate code is 5512.\nAsk Lena.\n")
    run_once(brain)
    promote(brain)
    before = sorted(standing(brain, "5512"))
    event = forget(brain, find_words(brain, "gate code"))
    assert event
    undo(brain, event)
    run_once(brain)
    promote(brain)
    assert before == sorted(standing(brain, "5512"))
