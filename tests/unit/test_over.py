"""What was true until a day ends on that day, by itself and with or without a model; a person's line never does."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, PageRef, Purpose
from brainiac.storage.today import find_due
from tests.support.commands import do, quiet
from tests.support.models import set_sections
from tests.support.promotions import ScriptedEngine, later, make_brain, operations, page_with, statements, tell

PAGE = PageRef(title="Bakery", folder="shops", summary="A bakery")
CODE, LASTING = "The code RYE10 takes ten percent off until 2026-03-14.", "The bakery is in Linden Street."


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    told = f"{CODE} {LASTING}"
    engine = ScriptedEngine(
        {
            Purpose.CONSOLIDATE: operations(
                {"text": CODE, "page": PAGE, "valid_until": "2026-03-14"}, {"text": LASTING, "page": PAGE}
            )
        }
    )
    brain = make_brain(tmp_path / "b", engine=engine)
    brain.__dict__["engine"] = engine
    tell(brain, told)
    do(brain, "promote")
    return brain


def on(brain: Brain, day: str, hour: str = "12:00") -> None:
    """Let it be a moment, with nothing else to do."""
    moment = datetime.fromisoformat(f"{day}T{hour}:00Z")
    later(brain, (moment - brain.clock.now()).total_seconds())
    quiet(brain)


def test_it_holds_through_its_last_day_and_not_after(brain: Brain) -> None:
    """On the page it stands under History with its days; what has no last day stays."""
    on(brain, "2026-03-14", "22:00")
    assert {CODE, LASTING} == set(statements(brain))
    on(brain, "2026-03-15", "06:00")
    assert ([LASTING], [CODE]) == (statements(brain), statements(brain, history=True))
    assert "– 2026-03-14)" in page_with(brain, LASTING).text
    before = page_with(brain, LASTING).text
    on(brain, "2026-03-16")
    assert before == page_with(brain, LASTING).text


def test_what_ends_soon_is_due_wherever_its_page_lies(brain: Brain) -> None:
    """Its page was moved twice since it was told."""
    on(brain, "2026-03-10")
    for folder in ("old", "older"):
        page = brain.root / page_with(brain, CODE).path
        moved = page.parent.with_name(folder) / page.name
        moved.parent.mkdir()
        page.rename(moved)
        brain.observed.adopt()
        due = [(due.text, due.day, brain.root / due.path) for due in find_due(brain) if due.what == "last day"]
        assert [(CODE, "2026-03-14", moved)] == due


def test_the_day_is_the_person_s(tmp_path: Path, brain: Brain) -> None:
    """West of Greenwich the last day is not over when the next one begins there."""
    set_sections(brain.root, "time_zone: America/Los_Angeles")
    on(brain, "2026-03-15", "06:00")
    assert CODE in statements(brain)
    on(brain, "2026-03-15", "08:00")
    assert CODE not in statements(brain)


def test_it_is_told_once_and_explained_and_taken_back_for_good(brain: Brain) -> None:
    """In the digest, by `why` and in the log; what was brought back stays."""
    on(brain, "2026-03-15")
    assert do(brain, "digest", "--since", "2026-03-15").out.count(f"- “{CODE}” (since 2026-03-14)") == 1
    assert "its last day, 2026-03-14, has passed" in do(brain, "why", CODE).out
    assert "over by its last day" in do(brain, "log").out
    (event,) = brain.journal.events(kinds={"statements-ended"})
    do(brain, "undo", event.id)
    on(brain, "2026-03-17")
    assert CODE in statements(brain)


def test_a_line_that_the_person_reworded_stays(brain: Brain) -> None:
    """Its words are theirs now, whatever day a model once gave them."""
    page = page_with(brain, LASTING)
    theirs = CODE.replace("ten percent", "10 %")
    (brain.root / page.path).write_text(page.text.replace(CODE, theirs))
    brain.observed.note_change(page.path)
    on(brain, "2026-03-20")
    assert theirs in statements(brain)


def test_what_was_said_to_last_longer_stays(brain: Brain) -> None:
    """The last day that was given counts."""
    longer = CODE.replace("2026-03-14", "2026-04-01")

    def prolonged(request: ConsolidateRequest) -> Consolidation:
        (known,) = (row.id for row in request.existing if row.content == CODE)
        fields = {"action": "replace", "ids": [known], "text": longer, "page": PageRef(path=request.existing[0].path)}
        return operations({**fields, "valid_until": "2026-04-01"})(request)

    brain.__dict__["engine"].answers[Purpose.CONSOLIDATE] = prolonged
    tell(brain, longer)
    do(brain, "promote")
    on(brain, "2026-03-20")
    assert longer in statements(brain)
    on(brain, "2026-04-02")
    assert longer not in statements(brain)


def test_of_a_month_all_of_it_passes(tmp_path: Path) -> None:
    """A model may name a month; and without a model from then on it ends all the same."""
    text = "The pool is closed in 2026-03."
    engine = ScriptedEngine({Purpose.CONSOLIDATE: operations({"text": text, "page": PAGE, "valid_until": "2026-03"})})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, text)
    do(brain, "promote")
    set_sections(brain.root, "llm: {model: offline}")
    on(brain, "2026-03-31")
    assert [text] == statements(brain)
    on(brain, "2026-04-01")
    assert [] == statements(brain)


def test_a_plan_whose_day_has_passed_is_shown_as_over(tmp_path: Path) -> None:
    """The model is asked by a mark; until it says so the plan stands, and one for a later day has no mark."""
    plan, later_plan = "User flies to Porto on 2026-03-06.", "User moves on 2026-05-01."
    made = [{"text": plan, "page": PAGE, "valid_from": "2026-03-06"}]
    made += [{"text": later_plan, "page": PAGE, "valid_from": "2026-05-01"}]
    engine = ScriptedEngine({Purpose.CONSOLIDATE: operations(*made)})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, f"{plan} {later_plan}")
    do(brain, "promote")
    on(brain, "2026-03-08")
    engine.answers[Purpose.CONSOLIDATE] = Consolidation()
    tell(brain, "Porto was lovely, and the moving van is ordered.")
    do(brain, "promote")
    request = engine.of(Purpose.CONSOLIDATE)[-1]
    assert {plan: True, later_plan: False} == {row.content: row.is_over for row in request.existing}
    shown = brain.models.working_memory(request).text
    assert f"{plan} (2026-03-02, over?)" in shown.replace("> ", ""), shown
    assert {plan, later_plan} == set(statements(brain))


@pytest.mark.parametrize("until", ["12/31/2027", "1 May 2027", "0", "2019"])
def test_what_is_no_day_to_come_ends_nothing(tmp_path: Path, until: str) -> None:
    """In another form than asked for; and what was said after its last day tells of what was."""
    text = "The code RYE10 is good."
    engine = ScriptedEngine({Purpose.CONSOLIDATE: operations({"text": text, "page": PAGE, "valid_until": until})})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, text)
    do(brain, "promote")
    on(brain, "2026-03-15")
    assert [text] == statements(brain)


def test_the_day_on_which_a_thing_ended_does_not_end_the_news_of_it(tmp_path: Path) -> None:
    """Of an `end` it is that of what stood before."""
    engine = ScriptedEngine()
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I have a red bike.")
    do(brain, "promote")
    engine.on("sold", "end", "red bike", valid_until="2026-03-02")
    tell(brain, "I sold the red bike.")
    do(brain, "promote")
    on(brain, "2026-03-15")
    assert ["I sold the red bike."] == statements(brain)
