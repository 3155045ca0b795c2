"""`promote --past`: what was kept without a model is read by one, and stands as if it had been there from the start."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from brainiac_plugins.promotion.past import CatchUp
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import ModelError, UserError
from brainiac.formats.page import parse_exchanges
from brainiac.health.doctor import examine
from brainiac.health.overview import overview
from brainiac.history.forget import find_words, forget
from brainiac.history.undo import undo
from brainiac.imports.intake import import_path
from brainiac.llm.schemas import ConsolidateRequest, Purpose
from brainiac.storage.causes import commits_of, last_caused
from brainiac.storage.said import FiledExchanges
from tests.support.exports import chatgpt, write_json
from tests.support.promotions import (
    ScriptedEngine,
    make_brain,
    open_brain,
    page_with,
    pages,
    set_model,
    statements,
    tell,
)
from tests.unit.test_month import MONTH, Recording, live

NIGHTLY = "promotion: {idle_seconds: 21600, min_events: 1}\n"  # windows as the month's own nights


def given_a_model(brain: Brain, engine: ScriptedEngine) -> Brain:
    """Set a model, and open the brain as the next process does."""
    clock = brain.clock
    assert isinstance(clock, ManualClock)
    brain.close()
    set_model(brain.root)
    clock.advance(3600)
    return open_brain(brain.root, engine, clock)


def keyless(root: Path, *said: str, days: float = 1) -> Brain:
    """Make a brain without a model in which some texts were said and promoted."""
    brain = make_brain(root, keyless=True, config=NIGHTLY)
    for text in said:
        tell(brain, text, minutes=days * 1440)
    promote(brain)
    return brain


def later(brain: Brain) -> None:
    """Take in what a person saved, and let it rest."""
    assert isinstance(brain.clock, ManualClock)
    brain.observed.adopt()
    brain.clock.advance(120)


def files_of(brain: Brain) -> dict[str, bytes]:
    """Every file of memory by its path."""
    return {str(path): path.read_bytes() for path in sorted((brain.root / "memory").rglob("*.md"))}


@pytest.mark.slow
def test_a_keyless_month_stands_as_if_the_model_had_been_there(tmp_path: Path) -> None:
    """A month is lived twice: statements, History, pages and exchanges are the same; one undo gives back every byte."""
    first, engine = make_brain(tmp_path / "a", engine=(with_model := Recording())), Recording()
    list(live(first, with_model))
    brain = make_brain(tmp_path / "b", keyless=True, config=NIGHTLY)
    list(live(brain, engine))
    brain = given_a_model(brain, engine)
    assert len(MONTH["messages"]) == len(FiledExchanges(brain).without_model)
    before = files_of(brain)

    started, outcome = CatchUp(brain).run()
    assert ("", {}, [], []) == (outcome.problem, outcome.left, outcome.refused, engine.waiting)
    assert Counter(statements(first)) == Counter(statements(brain))
    assert Counter(statements(first, history=True)) == Counter(statements(brain, history=True))
    assert pages(first).keys() == pages(brain).keys()
    said = [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert sorted(message["text"] for message in MONTH["messages"]) == sorted(said)
    assert [] == FiledExchanges(brain).without_model
    assert ["system/config.yaml"] == [problem.path for problem in examine(brain)]  # where the model was set

    assert last_caused(brain) == commits_of(brain, started)
    for commit in commits_of(brain, started):
        undo(brain, commit)
    assert before == files_of(brain)


def test_what_was_marked_is_not_said_twice(tmp_path: Path) -> None:
    """Words kept without a model give way where the model's operations carry them, and stay where they do not."""
    kept, left = "/remember My spare key is under the third flowerpot.", "/remember The blue box is not to be opened!"
    brain = keyless(tmp_path / "b", kept, left)
    assert ["My spare key is under the third flowerpot.", "The blue box is not to be opened!"] == statements(brain)
    engine = ScriptedEngine()
    brain = given_a_model(brain, engine)
    _, outcome = CatchUp(brain).run()
    assert {"written"} == {ending.end for ending in outcome.candidates.values()}
    asked: list[ConsolidateRequest] = engine.of(Purpose.CONSOLIDATE)
    assert [] == [known.content for request in asked[:1] for known in request.existing]
    assert sorted(["My spare key is under the third flowerpot.", "The blue box is not to be opened!"]) == sorted(
        statements(brain)
    )
    hits = brain.recall.search("spare key flowerpot", limit=5, now=brain.now())
    assert [] == [hit.former for hit in hits if hit.former]
    assert "Notes" not in [page.title for page in pages(brain).values() if not page.statements]


def test_a_person_keeps_what_they_edited_since(tmp_path: Path) -> None:
    """Undo takes out what the catch-up wrote on a page, and leaves the lines that a person wrote there since."""
    brain = keyless(tmp_path / "b", "My sister Ruth lives in Bristol.", "Ruth has a bicycle.")
    brain = given_a_model(brain, ScriptedEngine())
    (brain.root / "memory/long_term/concrete/people").mkdir(parents=True, exist_ok=True)
    page = brain.root / "memory/long_term/concrete/people/ruth.md"
    page.write_text("# Ruth\n\nShe is left-handed.\n", "utf-8")
    later(brain)
    started, _ = CatchUp(brain).run()
    assert "Ruth has a bicycle." in page.read_text("utf-8")
    page.write_text(page.read_text("utf-8").replace("left-handed.", "left-handed.\n\nHer birthday is in May."), "utf-8")
    later(brain)
    for commit in commits_of(brain, started):
        undo(brain, commit)
    text = page.read_text("utf-8")
    assert ("left-handed." in text, "birthday is in May" in text, "bicycle" in text) == (True, True, False)


def test_status_says_what_waits(tmp_path: Path) -> None:
    """Nothing is said without a model; with one, how many wait; forgotten and private exchanges do not."""
    brain = keyless(tmp_path / "b", "I like tea.", "I have a cello.", "I like chess.")
    tell(brain, "My code word is plum.", private=True)
    promote(brain)
    assert [] == overview(brain).notices
    forget(brain, find_words(brain, "cello"))
    brain = given_a_model(brain, ScriptedEngine(is_remote=True))
    assert ["3 exchanges were kept without a model"] == [line.partition(";")[0] for line in overview(brain).notices]
    reading = CatchUp(brain)
    plan = reading.plan
    assert (2, 1) == (plan.exchanges, len(plan.withheld))
    reading.run()
    assert [] == overview(brain).notices
    assert not any("plum" in repr(request) for request in brain.models._engines["scripted"].asked)  # type: ignore[attr-defined]


def test_a_later_day_and_a_correction_hold(tmp_path: Path) -> None:
    """Only what was said since a day is read; what a person took out of memory by hand is not restated."""
    brain = keyless(tmp_path / "b", "I like tea.", "I like chess.", "/remember I have a cello.")
    page = page_with(brain, "cello")
    file = brain.root / page.path
    text = "".join(line for line in file.read_text("utf-8").splitlines(True) if "cello" not in line)
    file.write_text(text + "\nNo instrument.\n", "utf-8")
    brain.clock.advance(60)  # type: ignore[attr-defined]
    now = brain.clock.now().timestamp()
    os.utime(file, (now, now))  # the time of the edit, by the clock of these tests
    later(brain)
    brain = given_a_model(brain, ScriptedEngine())
    reading = CatchUp(brain, since="2026-03-04")
    plan = reading.plan
    assert (2, "2026-03-04") == (plan.exchanges, plan.first_day)
    _, outcome = reading.run()
    assert ["I like chess."] == statements(brain)
    assert ["a person put it right by hand after it was said"] == [row.reason for row in outcome.refused]
    assert 1 == CatchUp(brain).plan.exchanges


@pytest.mark.slow
def test_it_goes_on_where_a_failing_model_left_it(tmp_path: Path) -> None:
    """A model that fails midway: what it read is kept, the rest waits, and both runs are one to undo."""

    class Tired(ScriptedEngine):
        def run(self, request):  # type: ignore[no-untyped-def]
            if request.purpose is Purpose.CONSOLIDATE and len(self.of(Purpose.CONSOLIDATE)) == 2:
                self.asked.append(request)
                raise ModelError("out of budget", retryable=True)
            return super().run(request)

    brain = keyless(tmp_path / "b", *(f"I like tea number {number}." for number in range(6)))
    brain = given_a_model(brain, engine := Tired())
    before = files_of(brain)
    first, outcome = CatchUp(brain).run()
    assert ("out of budget", 2, 4) == (outcome.problem, outcome.exchanges, len(FiledExchanges(brain).without_model))
    second, outcome = CatchUp(brain).run()
    assert (first, "", 4, []) == (second, outcome.problem, outcome.exchanges, FiledExchanges(brain).without_model)
    assert 7 == len(engine.of(Purpose.CONSOLIDATE))
    commits = commits_of(brain, first)
    assert 6 == len(commits)
    for commit in commits:
        undo(brain, commit)
    assert before == files_of(brain)


def test_without_a_model_there_is_nothing_to_catch_up_with(tmp_path: Path) -> None:
    """It says so, and names the option."""
    with pytest.raises(UserError, match="--model"):
        CatchUp(keyless(tmp_path / "b", "I like tea."))


def test_an_imported_past_is_read_when_asked_for_and_says_so(tmp_path: Path) -> None:
    """Imported exchanges wait for nobody; a catch-up reads them in their order, and its statements name their page."""
    brain = make_brain(tmp_path / "b", keyless=True, config=NIGHTLY)
    turns = [("My sister Ruth lives in Bristol.", "Nice."), ("Ruth has a bicycle.", "Good.")]
    import_path(brain, write_json(tmp_path / "c.json", [chatgpt("c1", turns)]))
    assert [] == FiledExchanges(brain).waiting
    brain = given_a_model(brain, engine := ScriptedEngine())
    assert promote(brain).event is None
    CatchUp(brain).run()
    (asked,) = engine.of(Purpose.CONSOLIDATE)
    assert [user for user, _ in turns] == [said.event.user for said in asked.said]
    source = "(import: [lisbon.md](../../events/imported/chatgpt/2024/05/lisbon.md))"
    assert sorted(f"{user} {source}" for user, _ in turns) == sorted(statements(brain))
    assert [] == FiledExchanges(brain).without_model
