"""Forgetting by words, and what is asked when a page is deleted by hand (design 3 and 6)."""

from __future__ import annotations

import pytest

from brainiac import Brain
from brainiac.testing import command, run_once
from tests.support.commands import do, quiet
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


def held(brain: Brain, words: str) -> list[str]:
    """Return what `forget` shows of what holds words, and would take out after a yes."""
    shown = command(brain, "forget", words).out.partition("These hold the words:\n")[2].partition("\nTo be")[0]
    return [line for line in shown.splitlines() if line.strip()]


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
    do(brain, "forget", "blue LOCKER", "--yes")
    assert [] == standing(brain, "locker")
    rest = brain.read_text(page) or ""
    assert "The ferry leaves at nine. ^bbbb" in rest
    assert "A paragraph on gulls." in rest
    assert standing(brain, "blue bicycle")
    assert held(brain, "blue locker") == []


def test_a_line_without_words_of_a_person_is_shown_by_its_answer(brain: Brain) -> None:
    """As a ticked task that was filed; what went is told by what it was."""
    event = '### 2026-01-01T00:00:00Z\n<!-- exchange: line-1 -->\n**User:** ""\n**AI:** "- [x] Paint the locker"\n'
    page = brain.root / put(brain)
    page.write_text(f"{page.read_text()}\n{event}")
    assert ["“- [x] Paint the locker”"] == [line.split(": ")[-1] for line in held(brain, "paint locker")]
    do(brain, "forget", "gulls", "--yes")
    assert "1 statement → forgotten" in do(brain, "log").out


def test_words_of_a_script_without_spaces_are_found(brain: Brain) -> None:
    """Where words are not parted by spaces a run of signs is a word."""
    tell(brain, "one", "駅前のロッカーの番号は四七一一です。")
    assert held(brain, "ロッカー")
    assert [] == held(brain, "自転車")


def test_the_command_shows_and_asks(brain: Brain) -> None:
    """`brainiac forget WORDS` lists what holds them; without a terminal it takes `--yes`, and undo brings it back."""
    tell(brain, "one", "My blue locker has the code 4711.")
    refused = command(brain, "forget", "blue locker")
    assert refused.code == 2
    assert "blue locker has the code 4711" in refused.out
    assert standing(brain, "4711")
    do(brain, "forget", "blue locker", "--yes")
    assert [] == standing(brain, "4711")
    assert command(brain, "forget", "violet").code == 1
    do(brain, "undo", "--last")
    assert standing(brain, "4711")


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
    quiet(brain)
    assert [] == standing(brain, "locker")
    assert not ask.exists()
    assert not answer.exists()


def test_what_a_deleted_page_was_made_from_is_asked_about_and_not_quoted_until_then(brain: Brain) -> None:
    """A page deleted by hand: its exchanges are hidden until the person says; declined, they are quoted again."""
    exchange = tell(brain, "one", "My blue locker has the code 4711.")
    page = put(brain, exchange)
    (brain.root / page).unlink()
    (change,) = [seen for seen in (brain.observed.note_change(page),) if seen]
    for _ in range(2):  # whoever notes the deletion again, as the next start does, asks nothing more
        brain.plugins.call("file_changed", brain=brain, change=change)
    assert 1 == len(list(brain.journal.events(kinds={"proposal-made"})))
    brain.recall.rescan()
    assert all(hit.anchor != exchange for hit in brain.recall.search("blue locker code"))
    review = brain.read_text(brain.tree.review) or ""
    brain.tree.review.write_text(review.replace("- [ ]", "- [-]"))
    brain.observed.adopt()
    quiet(brain)
    assert any(hit.anchor == exchange for hit in brain.recall.search("blue locker code"))


@pytest.mark.parametrize("words", ["", "   ", "...", "-"])
def test_nothing_holds_no_words(brain: Brain, words: str) -> None:
    """A script whose variable is not set forgets nothing; a sign alone is looked for as it stands."""
    tell(brain, "one", "My blue locker - the one at the pier...")
    tell(brain, "two", "A party 🎉 on Monday.")
    assert command(brain, "forget", words, "--yes").code != 0
    assert standing(brain, "blue locker")
    assert [True] == ["party" in line for line in held(brain, "🎉")]


@pytest.mark.parametrize("words", ["model", "offline", "memory", "noted", "uuid", "01990000", "bbbb"])
def test_what_we_write_beside_a_persons_words_holds_none(brain: Brain, words: str) -> None:
    """Front matter, links, block ids and the engine's fixed lines are nobody's words."""
    tell(brain, "one", "My blue locker has the code 4711.")
    tell(brain, "two", "Where is the blue locker?")
    put(brain)
    assert [] == held(brain, words)


def test_what_was_said_stays_where_only_its_answer_quoted_the_words(brain: Brain) -> None:
    """The answer goes: it would go on quoting them; the exchange never held them."""
    tell(brain, "one", "The garage Sundance fixes my Volvo brakes.")
    tell(brain, "two", "My Volvo brakes failed on 5 May. What fixes Volvo brakes?")
    assert "Sundance" in (brain.root / "inbox/two.response.md").read_text()
    do(brain, "forget", "Sundance", "--yes")
    assert [] == standing(brain, "Sundance")
    assert standing(brain, "failed on 5 May")
    assert (brain.root / "inbox/two.md").is_file()


@pytest.mark.parametrize("command", ["/tasks", "/done locker"])
def test_the_answer_to_a_command_goes_too(brain: Brain, command: str) -> None:
    """It has words of memory that its prompt has not."""
    tell(brain, "one", "/todo have Zimbalist paint the locker")
    tell(brain, "two", command)
    do(brain, "forget", "Zimbalist", "--yes")
    assert [] == standing(brain, "Zimbalist")
    assert not (brain.root / "inbox/two.response.md").exists()


def test_whole_words_are_whole_with_accents(brain: Brain) -> None:
    """`Öl` is no part of `Köln`."""
    tell(brain, "one", "Mein Büro ist in Köln.")
    assert [] == held(brain, "Öl")
    assert held(brain, "köln")


def test_a_page_of_that_name_is_not_all(brain: Brain) -> None:
    """`brainiac forget harbour` takes the page and what was said of the harbour, like `/forget harbour`."""
    tell(brain, "one", "The harbour is closed on Sunday.")
    put(brain)
    do(brain, "forget", "harbour", "--yes")
    assert [] == standing(brain, "harbour is closed")
    assert not (brain.root / "memory/long_term/concrete/harbour.md").exists()


def test_a_forgotten_note_that_is_brought_back_is_no_new_one(brain: Brain) -> None:
    """It stands once again, where it stood, and is not taken in a second time."""
    (brain.root / "inbox/notes").mkdir(parents=True, exist_ok=True)
    (brain.root / "inbox/notes/gate.md").write_text("The gate code is 5512.\nAsk Lena.\n")
    run_once(brain)
    do(brain, "promote")
    before = sorted(standing(brain, "5512"))
    do(brain, "forget", "gate code", "--yes")
    do(brain, "undo", "--last")
    run_once(brain)
    do(brain, "promote")
    assert before == sorted(standing(brain, "5512"))
