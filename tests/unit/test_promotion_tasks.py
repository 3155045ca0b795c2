"""Consolidation opens, ticks and drops tasks by what the person said; never one twice, and no private one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from brainiac_plugins.promotion.past import CatchUp

from brainiac.brain import Brain
from brainiac.errors import ModelError
from brainiac.imports.intake import import_path
from brainiac.llm.schemas import (
    ConsolidateRequest,
    Consolidation,
    Evidence,
    PageRef,
    Purpose,
    Reflection,
    Verdicts,
    VerifyRequest,
)
from tests.support.commands import Shell
from tests.support.exports import chatgpt, write_json
from tests.support.promotions import (
    ScriptedEngine,
    later,
    make_brain,
    open_brain,
    operations,
    promote,
    set_model,
    statements,
    tell,
)


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine({Purpose.CONSOLIDATE: operations()})


@pytest.fixture
def brain(tmp_path: Path, engine: ScriptedEngine) -> Brain:
    return make_brain(tmp_path / "b", engine=engine)


def tasks(brain: Brain) -> dict[str, bool]:
    """The tasks of short-term memory, each with whether it is done."""
    return {task.text: task.is_done for task in brain.short_term().memory.tasks}


def consolidate(brain: Brain, engine: ScriptedEngine, said: str, *made: dict[str, str], **options: bool) -> None:
    """Say something, and have the model make this of it."""
    later(brain)
    engine.answers[Purpose.CONSOLIDATE] = operations(*made)
    tell(brain, said, **options)  # type: ignore[arg-type]
    with suppress(ModelError):
        promote(brain)


def test_a_task_is_opened_ticked_and_dropped(brain: Brain, engine: ScriptedEngine) -> None:
    """It stands in the list like one of Reflection's; what is dropped goes; nothing of it is a statement."""
    oil, bins = "Order heating oil by 2026-03-20", "Put the bins out every Thursday"
    opened = [{"action": "open", "text": oil}, {"action": "open", "text": bins}]
    consolidate(brain, engine, "I must order heating oil by the 20th, and the bins go out every Thursday.", *opened)
    assert ({oil: False, bins: False}, []) == (tasks(brain), statements(brain))
    consolidate(brain, engine, "The oil is ordered.", {"action": "tick", "text": oil})
    assert {oil: True, bins: False} == tasks(brain)
    consolidate(brain, engine, "No more bins for me, the landlord does it.", {"action": "drop", "text": bins})
    assert bins not in tasks(brain)


def test_no_task_is_opened_twice(brain: Brain, engine: ScriptedEngine) -> None:
    """Neither one that Reflection noted of the same exchange, in other words or done, nor one of an earlier run."""
    task = "Call the dentist about the crown on Monday"
    engine.answers[Purpose.REFLECT] = Reflection(tasks=[task])
    consolidate(brain, engine, "Remind me to call the dentist about the crown on Monday.", {
        "action": "open", "text": "Call the dentist on Monday about the crown"
    })  # fmt: skip
    engine.answers[Purpose.REFLECT] = Reflection()
    assert {task: False} == tasks(brain)
    consolidate(brain, engine, "Do not forget the dentist.", {"action": "open", "text": task.upper()})
    assert {task: False} == tasks(brain)


def test_a_task_that_is_only_like_another_is_opened(brain: Brain, engine: ScriptedEngine) -> None:
    """The same on another day is another task."""
    days = ["Call the dentist about the crown on Monday", "Call the dentist about the crown on Tuesday"]
    for task in days:
        consolidate(brain, engine, f"Remind me: {task}.", {"action": "open", "text": task})
    assert dict.fromkeys(days, False) == tasks(brain)


def test_only_the_person_s_words_end_a_task_and_only_one_that_is_open(brain: Brain, engine: ScriptedEngine) -> None:
    """The AI's claim that it is done ticks nothing; a task that is not listed is asked about again, then refused."""
    task = "Renew the passport"
    consolidate(brain, engine, "I have to renew the passport.", {"action": "open", "text": task})

    def by_ai(request: ConsolidateRequest) -> Consolidation:
        said = request.said[-1]
        quote = [Evidence(exchange=said.id, quote="Your passport is renewed.")]
        return operations({"action": "tick", "text": task, "evidence": quote})(request)

    later(brain)
    engine.answers[Purpose.CONSOLIDATE] = by_ai
    tell(brain, "Hello again.", answer="Your passport is renewed.")
    promote(brain)
    assert {task: False} == tasks(brain)
    consolidate(brain, engine, "The visa is done.", {"action": "tick", "text": "Get the visa"})
    assert {task: False} == tasks(brain)
    assert any("no open task" in row.problem for row in engine.of(Purpose.CONSOLIDATE)[-1].refused)


def test_a_line_of_the_person_s_own_is_ticked_and_not_taken_out(brain: Brain, engine: ScriptedEngine) -> None:
    """Whatever is dropped."""
    file = brain.tree.short_term
    file.write_text(file.read_text().replace("## Tasks\n", "## Tasks\n- [ ] Water the lemon tree\n", 1))
    brain.observed.note_change(brain.tree.relative(file))
    consolidate(brain, engine, "The lemon tree died.", {"action": "drop", "text": "Water the lemon tree"})
    assert {"Water the lemon tree": True} == tasks(brain)


def test_what_is_private_stays_out_of_the_list(brain: Brain, engine: ScriptedEngine) -> None:
    """The lists are open to models elsewhere."""
    consolidate(brain, engine, "I must see the lawyer.", {"action": "open", "text": "See the lawyer"}, private=True)
    assert {} == tasks(brain)


def test_the_digest_tells_it_and_undo_takes_it_back(
    brain: Brain, engine: ScriptedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one run with all else that it did; `why` names the exchange."""
    task = "Order heating oil"
    consolidate(brain, engine, "I must order heating oil.", {"action": "open", "text": task})
    shell = Shell(capsys, str(brain.root))
    assert f"task opened: “{task}”" in shell("digest", "--since", "2026-03-01").out
    assert "I must order heating oil." in shell("why", task).out
    event = next(event.id for event in brain.journal.events(reverse=True) if event.kind == "memory-promoted")
    assert shell("undo", event).code == 0
    assert {} == tasks(brain)


def test_a_task_waits_for_a_second_reader_that_cannot_serve_now(brain: Brain, engine: ScriptedEngine) -> None:
    """A run that commits nothing opens nothing, and the next one does."""

    def fail(request: VerifyRequest) -> Verdicts:
        raise ModelError("the budget is spent", retryable=True)

    engine.answers[Purpose.VERIFY] = fail
    made: list[Any] = [{"action": "open", "text": "Order oil"}, {"text": "Oil is dear.", "page": PageRef(title="Oil")}]
    consolidate(brain, engine, "Oil is dear. I must order oil.", *made)
    assert {} == tasks(brain)
    del engine.answers[Purpose.VERIFY]
    later(brain)
    promote(brain)
    assert ({"Order oil": False}, ["Oil is dear."]) == (tasks(brain), statements(brain))
    assert 1 == len(engine.of(Purpose.CONSOLIDATE))


def test_the_past_opens_and_ends_no_task(tmp_path: Path) -> None:
    """What a catch-up reads was said long ago: its model is told, and is asked again for a statement."""
    brain = make_brain(tmp_path / "b", keyless=True)
    bins = "Put the bins out"
    file = brain.tree.short_term
    file.write_text(file.read_text().replace("## Tasks\n", f"## Tasks\n- [ ] {bins}\n", 1))
    brain.observed.note_change(brain.tree.relative(file))
    turns = [("I must order oil. The bins are out.", "Noted.")]
    import_path(brain, write_json(tmp_path / "c.json", [chatgpt("c1", turns)]))
    brain.close()
    set_model(brain.root)
    told = {"text": "User had to order oil.", "page": PageRef(title="Oil")}
    first = operations({"action": "open", "text": "Order oil"}, {"action": "tick", "text": bins})
    engine = ScriptedEngine()
    engine.answers[Purpose.CONSOLIDATE] = lambda request: (operations(told) if request.refused else first)(request)
    brain = open_brain(brain.root, engine)
    later(brain)
    CatchUp(brain).run()
    assert {bins: False} == tasks(brain)
    assert [told["text"]] == [text.partition(" (import")[0] for text in statements(brain)]
    asked = engine.of(Purpose.CONSOLIDATE)
    assert ["long ago" in row.problem for row in asked[1].refused] == [True, True]
    assert "- `open`: " not in brain.models.working_memory(asked[0]).text
