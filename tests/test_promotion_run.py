"""Promotion end to end by the offline engine: pages, history, episodes, index pages, short-term memory."""

from __future__ import annotations

from pathlib import Path

from promotions import LTM, make_brain, page_with, pages, statements, tell

from brainiac.clock import ManualClock
from brainiac.doctor import examine
from brainiac.notes.index_page import parse_index
from brainiac.notes.memory import parse_exchanges
from brainiac.promotion.run import promote

KEYS = ("uuid", "created_at", "updated_at", "tags", "emotion", "reinforcement_count", "sources", "subject")


def test_what_was_said_becomes_pages_in_one_commit(tmp_path: Path) -> None:
    """A promotion is one event: pages with complete front matter, index pages on the way, short-term memory reset.

    Seeds: S6, S7, S8, S12, R9.
    """
    brain = make_brain(tmp_path / "b")
    first = tell(brain, "My sister Ruth is a GP in Bristol. Hello!")
    tell(brain, "Remind me to call the landlord about the tap.")
    outcome = promote(brain)

    assert outcome.event is not None
    page = page_with(brain, "Ruth is a GP in Bristol")
    assert "Ruth" == page.title
    assert [] == [key for key in KEYS if key not in page.meta]
    assert [first] == page.meta["sources"]
    index = parse_index("", brain.read_text(f"{LTM}concrete/people/_index.md") or "")
    assert ["Ruth"] == [entry.title for entry in index.manifest]
    assert "People" == index.title
    memory = brain.short_term().memory
    assert ((), ()) == (memory.events, memory.facts)
    assert ["call the landlord about the tap"] == [item.text for item in memory.tasks]
    assert 1 == len(list(brain.journal.events(kinds={"memory-promoted"})))
    assert [] == [problem.what for problem in examine(brain)]


def test_exchanges_stand_word_for_word_on_the_page_of_their_day(tmp_path: Path) -> None:
    """Small talk and questions too; they give no statement, and a second run adds nothing.

    Seeds: S6, S12.
    """
    brain = make_brain(tmp_path / "b")
    said = ["hi there!", "What's a neap tide?\n\n> with a quote", "thanks"]
    for text in said:
        tell(brain, text)
    promote(brain)
    day = pages(brain)["events/2026/03/02/2026-03-02.md"]
    assert said == [event.user for event in parse_exchanges(day.text)]
    assert [] == statements(brain)
    again = promote(brain)
    assert again.event is None


def test_told_ten_times_over_ten_promotions_is_one_statement_with_ten_sources(tmp_path: Path) -> None:
    """A statement that is stated again is reinforced instead of doubled."""
    brain = make_brain(tmp_path / "b")
    for _ in range(10):
        tell(brain, "I'm allergic to hazelnuts.")
        promote(brain)
        assert isinstance(brain.clock, ManualClock)
        brain.clock.advance(86_400)
    page = page_with(brain, "hazelnuts")
    assert ["User is allergic to hazelnuts"] == [one.text for one in page.statements]
    assert 10 == len(page.meta["sources"])
    assert 9 == page.reinforcement_count
    records = [one for event in brain.journal.events(kinds={"memory-promoted"}) for one in event.data["statements"]]
    assert ["NEW"] + ["REINFORCE"] * 9 == [one["operation"] for one in records]
    assert 10 == len({source for one in records for source in one["sources"]})


def test_what_no_longer_holds_goes_to_history_with_dates_and_successor(tmp_path: Path) -> None:
    """The old statement keeps its block id, when it was said and until when it held."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "I like coffee.")
    promote(brain)
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(5 * 86_400)
    tell(brain, "I don't like coffee any more.")
    promote(brain)
    page = page_with(brain, "like coffee")
    now = next(one for one in page.statements if not one.is_history)
    past = next(one for one in page.statements if one.is_history)
    assert "User likes coffee" == past.text
    assert ("2026-03-02", "2026-03-07", now.block_id) == (past.since, past.until, past.replaced_by)


def test_a_request_to_forget_retires_and_states_nothing(tmp_path: Path) -> None:
    """Forgetting leaves the statement in History and adds none."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "The code of the bike shed is 4471.")
    tell(brain, "I live in Portland.")
    promote(brain)
    tell(brain, "Please forget the code of the bike shed.")
    promote(brain)
    assert ["User lives in Portland"] == statements(brain)
    assert any("4471" in text for text in statements(brain, history=True))


def test_a_how_to_is_a_page_with_its_steps_and_changes_as_one(tmp_path: Path) -> None:
    """Told otherwise, the steps stand in their new order; those that went are dated. Seeds: S6."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "How I deploy Tidepool:\n1. run the tests\n2. bump the version\n3. fly deploy")
    promote(brain)
    assert ("run the tests", "bump the version", "fly deploy") == next(
        page.steps for path, page in pages(brain).items() if path.startswith("skills/")
    )
    tell(
        brain,
        "How I deploy Tidepool now:\n1. run the tests\n2. bump the version\n3. git push hetzner\n4. look",
    )
    promote(brain)
    skills = [page for path, page in pages(brain).items() if path.startswith("skills/")]
    assert [("run the tests", "bump the version", "git push hetzner", "look")] == [p.steps for p in skills]
    assert ["fly deploy"] == [one.text for one in skills[0].statements if one.is_history]


def test_relative_dates_become_absolute(tmp_path: Path) -> None:
    """A statement says which day "yesterday" was."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "I adopted a cat named Pixel yesterday.")
    promote(brain)
    assert any("1 March 2026" in text for text in statements(brain))


def test_what_is_private_stands_on_private_pages_only(tmp_path: Path) -> None:
    """Statements and exchanges of a private prompt go to pages that no remote model is shown."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    tell(brain, "Ruth lost her job at the clinic.", private=True)
    promote(brain)
    for page in pages(brain).values():
        assert ("lost her job" in page.text) == (page.meta.get("private") is True), page.path
    assert 2 == sum(page.meta.get("private") is True for page in pages(brain).values())


def test_the_event_tells_why_each_statement_stands(tmp_path: Path) -> None:
    """Page, block id, text, operation, sources, model and cause are in the journal: the chain to the sentence typed."""
    brain = make_brain(tmp_path / "b")
    exchange = tell(brain, "I live in Portland.")
    event = promote(brain).event
    assert event is not None
    page = page_with(brain, "Portland")
    (record,) = event.data["statements"]
    expected = {"operation": "NEW", "page": page.uuid, "path": page.path, "block": page.statements[0].block_id}
    assert expected == {key: record[key] for key in expected}
    assert ([exchange], "offline") == (record["sources"], record["found_by"])
    started = brain.journal.find(event.cause or "")
    assert started is not None
    assert "promotion-started" == started.kind
