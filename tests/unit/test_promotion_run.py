"""Promotion end to end, with a model and without: pages, history, episodes, index pages, short-term memory."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from brainiac_plugins.organization.upkeep import settle_reviews
from brainiac_plugins.promotion.run import promote

from brainiac.formats.index_page import parse_index
from brainiac.formats.page import parse_exchanges
from brainiac.health.doctor import examine
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Page, PageRef, Purpose, Relevance, SynthesizeRequest
from tests.support.promotions import (
    LTM,
    ScriptedEngine,
    later,
    make_brain,
    operations,
    page_with,
    pages,
    statements,
    tell,
)

KEYS = ("uuid", "created_at", "updated_at", "tags", "emotion", "reinforcement_count", "sources")


def test_what_was_said_becomes_pages_in_one_commit(tmp_path: Path) -> None:
    """A promotion is one event: pages with complete front matter, index pages on the way, short-term memory reset.

    Seeds: S6, S7, S8, S12, R9.
    """
    brain = make_brain(tmp_path / "b")
    first = tell(brain, "My sister Ruth is a GP in Bristol.")
    tell(brain, "/todo call the landlord about the tap")
    outcome = promote(brain)

    assert outcome.event is not None
    page = page_with(brain, "Ruth is a GP in Bristol")
    assert "Ruth" == page.title
    assert set(KEYS) == set(page.meta)
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


@pytest.mark.slow
def test_told_ten_times_over_ten_promotions_is_one_statement_with_ten_sources(tmp_path: Path) -> None:
    """A statement that is stated again is reinforced instead of doubled."""
    brain = make_brain(tmp_path / "b")
    for _ in range(10):
        tell(brain, "I'm allergic to hazelnuts.")
        promote(brain)
        later(brain, 86_400)
    page = page_with(brain, "hazelnuts")
    assert ["I'm allergic to hazelnuts."] == [one.text for one in page.statements]
    assert 10 == len(page.meta["sources"])
    assert 9 == page.reinforcement_count
    records = [one for event in brain.journal.events(kinds={"memory-promoted"}) for one in event.data["statements"]]
    assert ["NEW"] + ["REINFORCE"] * 9 == [one["operation"] for one in records]
    assert 10 == len({source for one in records for source in one["sources"]})


def test_what_no_longer_holds_goes_to_history_with_dates_and_successor(tmp_path: Path) -> None:
    """The old statement keeps its block id, when it was said and until when it held. Seeds: I3."""
    engine = ScriptedEngine()
    engine.on("any more", "end", "like coffee")
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I like coffee.")
    promote(brain)
    later(brain, 5 * 86_400)
    tell(brain, "I don't like coffee any more.")
    promote(brain)
    page = page_with(brain, "like coffee")
    now = next(one for one in page.statements if not one.is_history)
    past = next(one for one in page.statements if one.is_history)
    assert "I like coffee." == past.text
    assert "I don't like coffee any more." == now.text
    assert ("2026-03-02", "2026-03-07", now.block_id) == (past.since, past.until, past.replaced_by)


def test_a_request_to_forget_that_a_model_understood_is_put_before_the_person(tmp_path: Path) -> None:
    """It states and retires nothing by itself; ticked in review.md, the statement goes to History. Seeds: I6."""
    engine = ScriptedEngine()
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "The code of the bike shed is 4471.")
    tell(brain, "I live in Portland.")
    promote(brain)
    told = sorted(statements(brain))
    engine.on("forget the code", "forget", "4471", text="")
    tell(brain, "Please forget the code of the bike shed.")
    promote(brain)
    assert (told, []) == (sorted(statements(brain)), statements(brain, history=True))
    review = brain.tree.review
    assert 1 == review.read_text().count("- [ ] Forget “The code of the bike shed is 4471.”")
    review.write_text(review.read_text().replace("- [ ] Forget", "- [x] Forget"))
    brain.observed.note_change(brain.tree.relative(review))
    settle_reviews(brain)
    assert ["I live in Portland."] == statements(brain)
    assert ["The code of the bike shed is 4471."] == statements(brain, history=True)


def test_a_how_to_is_a_page_with_its_steps_and_changes_as_one(tmp_path: Path) -> None:
    """Told otherwise, the steps stand in their new order; those that went are dated. Seeds: S6."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "How I deploy Tidepool:\n1. run the tests\n2. bump the version\n3. fly deploy")
    promote(brain)
    assert ("run the tests", "bump the version", "fly deploy") == next(
        page.steps for path, page in pages(brain).items() if path.startswith("skills/")
    )
    tell(brain, "How I deploy Tidepool now:\n1. run the tests\n2. bump the version\n3. git push hetzner\n4. look")
    promote(brain)
    skills = [page for path, page in pages(brain).items() if path.startswith("skills/")]
    assert [("run the tests", "bump the version", "git push hetzner", "look")] == [p.steps for p in skills]
    assert ["fly deploy"] == [one.text for one in skills[0].statements if one.is_history]


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
    assert ([exchange], "scripted") == (record["sources"], record["found_by"])
    started = brain.journal.find(event.cause or "")
    assert started is not None
    assert "promotion-started" == started.kind


def test_what_a_model_decides_is_journaled_with_relevance_evidence_and_reasons(tmp_path: Path) -> None:
    """One call a run; where nothing is known all is new. New, update, delete and reinforce are each recorded with the
    band and the three parts of their relevance, the words they rest on, whose these are, and why it was decided.

    Seeds: I1, I2, I7, S12.
    """
    actions = iter(["replace", "same", "new", "end"])

    def consolidate(request: ConsolidateRequest) -> Consolidation:
        (said,) = request.said
        action = next(actions) if request.existing else "new"
        return operations({
            "action": action,
            "text": said.event.user,
            "ids": [request.existing[0].id] if action != "new" else [],
            "page": PageRef(title="Likes"),
            "relevance": Relevance(type=0.3, topic=0.2, semantic=0.1) if request.existing else Relevance(),
            "reasoning": f"why {action}",
        })(request)  # fmt: skip

    engine = ScriptedEngine({Purpose.CONSOLIDATE: consolidate})
    brain = make_brain(tmp_path / "b", engine=engine)
    records = []
    said = ["I like tea.", "I like tea and jazz.", "I like jazz.", "I play chess.", "I like neither tea nor jazz."]
    for text in said:
        tell(brain, text)
        outcome = promote(brain)
        assert outcome.event is not None
        records += outcome.event.data["statements"]
        later(brain)
    assert ["NEW", "UPDATE", "REINFORCE", "NEW", "DELETE"] == [record["operation"] for record in records]
    assert [0.0, 0.6, 0.6, 0.6, 0.6] == [record.get("relevance", 0.0) for record in records]
    assert ["NO", *["MODERATE"] * 4] == [record["band"] for record in records]
    assert {"type": 0.3, "topic": 0.2, "semantic": 0.1} == records[1]["relevance_parts"]
    assert ["why new", "why replace", "why same", "why new", "why end"] == [record["reasoning"] for record in records]
    assert [
        [{"exchange": record["sources"][0], "quote": text}] for record, text in zip(records, said, strict=True)
    ] == [record["evidence"] for record in records]
    assert {"person"} == {record["origin"] for record in records}
    assert 5 == len(engine.of(Purpose.CONSOLIDATE))


def test_without_a_model_what_was_marked_is_kept_word_for_word(tmp_path: Path) -> None:
    """Words behind `/remember`, with the day they were said and a link to its page; nothing else becomes a statement,
    and the same words said again are the same statement.

    Seeds: S12.
    """
    brain = make_brain(tmp_path / "b", keyless=True)
    told = "Sommerhaus: Schlüssel  liegt unter dem Stein, #haus"
    first = tell(brain, f"/remember {told}\n\nUnd wie wird das Wetter?")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    outcome = promote(brain)
    assert outcome.event is not None
    page = page_with(brain, "Sommerhaus")
    (statement,) = page.statements
    assert (" ".join(told.split()), "2026-03-02") == (statement.text, statement.said_on)
    day = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), statement.said_at))
    assert f"{LTM}events/2026/03/02/2026-03-02.md" == day
    assert ([first], ["haus"]) == (page.meta["sources"], list(page.tags))
    (record,) = outcome.event.data["statements"]
    assert ("NEW", "command", "offline", [first]) == tuple(
        record[key] for key in ("operation", "marked_by", "model", "sources")
    )
    assert [] == [problem.what for problem in examine(brain)]
    later(brain, 86_400)
    second = tell(brain, f"/remember {told}")
    assert {"REINFORCE": 1} == promote(brain).statements
    page = page_with(brain, "Sommerhaus")
    assert ([first, second], 1) == (page.meta["sources"], len(page.statements))


def test_pages_about_the_same_become_one(tmp_path: Path) -> None:
    """ "My mother" turns out to be Vera: what was kept about her moves to Vera's page, with the days and exchanges it
    rests on; the former page keeps its History, and both names lead to one page."""
    engine = ScriptedEngine()
    brain = make_brain(tmp_path / "b", engine=engine)
    told = tell(brain, "My mother Mama grows roses.")
    tell(brain, "My friend Vera lives in Oslo.")
    promote(brain)
    merging = {"page": PageRef(path=page_with(brain, "Oslo").path, merge=[page_with(brain, "roses").path])}
    engine.on("same person", "new", "Oslo", "Vera is User's mother", **merging)
    later(brain, 5 * 86_400)
    tell(brain, "Vera and Mama are the same person.")
    outcome = promote(brain)
    assert outcome.event is not None
    vera = page_with(brain, "Oslo")
    current = [one.text for one in vera.statements if not one.is_history]
    assert {"My friend Vera lives in Oslo.", "Vera is User's mother", "My mother Mama grows roses."} == set(current)
    assert ["Mama"] == vera.meta["aliases"]
    moved = next(row for row in outcome.event.data["statements"] if told in row["sources"])
    assert ("NEW", vera.uuid, "2026-03-02") == (moved["operation"], moved["page"], moved["since"])
    assert ["My mother Mama grows roses."] == statements(brain, history=True)
    assert [] == [problem.what for problem in examine(brain)]


def test_a_page_begun_in_a_run_is_found_beside_a_how_to_of_its_name(tmp_path: Path) -> None:
    """A further statement about it, which a later call of the run has read, begins no second page."""
    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine()))
    for text in ("Bread:\n1. Mix.\n2. Bake.", "My dog Bread barks.", "Well, " * 7000, "My dog Bread is old."):
        tell(brain, text)
    promote(brain)
    assert len(engine.of(Purpose.CONSOLIDATE)) == 3
    (bread,) = (page for page in pages(brain).values() if page.title == "Bread" and not page.steps)
    assert ["My dog Bread barks.", "My dog Bread is old."] == [one.text for one in bread.statements]


def test_a_page_that_grew_is_named_and_ordered_anew(tmp_path: Path) -> None:
    """Six new statements on a page: it gets its title, summary, tags and order; the former title stays as an alias,
    and every line of it is what it was."""
    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine()))
    tell(brain, "My sister Ruth is a GP.")
    promote(brain)
    first = page_with(brain, "GP")

    def name(request: SynthesizeRequest) -> Page:
        ids = [*(each.id for each in request.candidates), *(each.id for each in request.standing)]
        return Page(kind="concrete", title="Ruth Ames", summary="A doctor.", tags=["family"], emotion="love", order=ids)

    engine.answers[Purpose.SYNTHESIZE] = name
    said = [f"Ruth {does}." for does in ("lives in Bath", "has a boat", "plays chess", "paints", "knits", "sails")]
    for text in said:
        tell(brain, f"My sister {text}")
    promote(brain)
    page = page_with(brain, "boat")
    assert (first.path, first.uuid, "Ruth Ames") == (page.path, page.uuid, page.title)
    assert ("A doctor.", ("family",), "love", ["Ruth"]) == (
        page.meta["summary"], page.tags, page.emotion, page.meta["aliases"]
    )  # fmt: skip
    assert [*(f"My sister {text}" for text in said), "My sister Ruth is a GP."] == [one.text for one in page.statements]
    index = parse_index("", brain.read_text(f"{LTM}concrete/people/_index.md") or "")
    assert [("Ruth Ames", "A doctor.")] == [(entry.title, entry.summary) for entry in index.manifest]
    tell(brain, "Ruth sold it.")
    promote(brain)
    assert page.path == page_with(brain, "sold").path
