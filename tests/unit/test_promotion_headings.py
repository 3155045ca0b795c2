"""A long page gets headings from the call that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.formats.page import Memory
from brainiac.history.undo import undo
from brainiac.llm.schemas import Page, Purpose, Result, Section, SynthesizeRequest
from tests.support.promotions import ScriptedEngine, later, make_brain, page_with, problems, promote, tell

WORK, HOME = "Her work", "Where she lives"


def headed(request: SynthesizeRequest) -> Page:
    """Work before home, the newest first; beside it headings that no page may have."""
    rows = [*request.candidates, *request.standing]
    ids = {word: [row.id for row in rows if word in row.content] for word in ("job", "home", "job 3.")}
    given = {
        "History": ids["home"][:2],
        "Alone": ids["home"][:1],
        "Since 1999": ids["home"][:3],
        "": ids["home"],
        f" ## {WORK}\n<!-- private -->": [*ids["job"], "s99", *ids["job"]],
        HOME: [*ids["home"], *ids["job 3."]],
        HOME.upper(): ids["job"],
    }
    sections = [Section(heading=heading, statements=names) for heading, names in given.items()]
    return Page(kind="concrete", title="Ruth", summary="A sister.", sections=sections if request.wants_headings else [],
                order=[row.id for row in rows])  # fmt: skip


def grown(brain: Brain, first: int, last: int) -> Memory:
    """Tell of jobs and homes of Ruth in turn, promote, and return her page."""
    for number in range(first, last + 1):
        tell(brain, f"My sister Ruth had {'job' if number % 2 else 'home'} {number}.")
    promote(brain)
    return page_with(brain, f" {last}.")


def by_hand(brain: Brain, page: Memory, change: Callable[[str], str]) -> None:
    """Change a page as a person does, and let time pass."""
    file = brain.tree.absolute(page.path)
    file.write_text(change(file.read_text()))
    brain.observed.note_change(page.path)
    later(brain)


def body(brain: Brain, page: Memory) -> str:
    """The page's present text below its front matter, without the blank lines."""
    text = (brain.read_text(page.path) or "").partition("\n# ")[2]
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def line_of(page: Memory, words: str) -> str:
    """The line of a statement, byte for byte."""
    return next(page.text[one.start : one.end] for one in page.statements if one.text.endswith(words))


def test_a_long_page_gets_headings(tmp_path: Path) -> None:
    """F-MEM-10: in the one call; our statements move as they are, a person's lines stay above; undo takes it back."""
    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine({Purpose.SYNTHESIZE: headed})))
    page = grown(brain, 1, 19)
    assert [False] == [request.wants_headings for request in engine.of(Purpose.SYNTHESIZE)]
    assert "## " not in page.text
    mine = "A line of mine.\n\n- Ruth loves her home and her job ^mine\n  - really\n"
    by_hand(brain, page, lambda text: text.replace("# Ruth\n", f"# Ruth\n\n{mine}", 1))
    before = brain.read_text(page.path)
    tell(brain, "My sister Ruth had job 21.")
    outcome = promote(brain)
    assert [False, True] == [request.wants_headings for request in engine.of(Purpose.SYNTHESIZE)]
    after = page_with(brain, "21.")
    jobs = [line_of(after, "job 21."), *(line_of(page, f"job {number}.") for number in range(1, 20, 2))]
    homes = [line_of(page, f"home {number}.") for number in range(2, 19, 2)]
    expected = ["Ruth\n", mine.replace("\n\n", "\n"), f"## {WORK} !-- private --\n", *jobs, f"## {HOME}\n", *homes]
    assert "".join(expected) == body(brain, after)
    assert not after.is_private
    assert [] == list(problems(brain))
    assert outcome.event is not None
    undo(brain, outcome.event)
    assert before == brain.read_text(page.path)


def test_a_page_with_headings_keeps_them(tmp_path: Path) -> None:
    """F-MEM-10, F-MEM-5: no further call for one statement more, which goes below the last; another order moves none
    out of its heading."""
    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine({Purpose.SYNTHESIZE: headed})))
    grown(brain, 1, 21)
    assert [True] == [request.wants_headings for request in engine.of(Purpose.SYNTHESIZE)]
    page = grown(brain, 22, 22)
    assert 1 == len(engine.of(Purpose.SYNTHESIZE))
    assert page.current_statements[-1].text.endswith("home 22.")

    def reversed_order(request: SynthesizeRequest) -> Page:
        names = [row.id for row in [*request.candidates, *request.standing]]
        return Page(kind="concrete", title="Ruth", summary="A sister.", order=names[::-1])

    engine.answers[Purpose.SYNTHESIZE] = reversed_order
    later(brain)
    again = grown(brain, 23, 40)
    assert [True, False] == [request.wants_headings for request in engine.of(Purpose.SYNTHESIZE)]
    of_work = [one.text for one in page.statements if one.section.startswith(WORK)]
    assert of_work[::-1] == [one.text for one in again.statements if one.section.startswith(WORK)]
    assert 40 == len(again.current_statements)


def test_where_a_model_gives_no_headings_it_is_asked_again_after_twenty_more(tmp_path: Path) -> None:
    """Each call costs: not with every statement."""
    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine()))
    engine.answers[Purpose.SYNTHESIZE] = Page(kind="concrete", title="Ruth", summary="Her jobs and homes.")
    for first, last, calls in ((1, 20, 1), (21, 21, 2), (22, 29, 2), (30, 40, 2), (41, 41, 3)):
        later(brain)
        grown(brain, first, last)
        assert calls == len(engine.of(Purpose.SYNTHESIZE))


@pytest.mark.parametrize("heading", ["## My view", "My view\n-------"])
@pytest.mark.parametrize("is_while_asked", [False, True])
def test_a_page_with_a_heading_of_the_persons_own_gets_none(tmp_path: Path, heading: str, is_while_asked: bool) -> None:
    """F-MEM-10: it is theirs to arrange, though they wrote it while the model was asked."""
    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine({Purpose.SYNTHESIZE: headed})))
    page = grown(brain, 1, 20)
    asked_before = len(engine.of(Purpose.SYNTHESIZE))

    def divided(text: str) -> str:
        line = line_of(page, "home 4.")
        return text.replace(line, f"\n{heading}\n\n{line}", 1)

    def while_asked(request: SynthesizeRequest) -> Result:
        by_hand(brain, page, divided)
        return headed(request)

    if is_while_asked:  # the run leaves the page, and the next one finds it as the person left it
        engine.answers[Purpose.SYNTHESIZE] = while_asked
        tell(brain, "My sister Ruth had job 21.")
        assert promote(brain).event is None
        later(brain)
    else:
        by_hand(brain, page, divided)
    before = body(brain, page)
    after = grown(brain, 21, 21)
    assert int(is_while_asked) == len(engine.of(Purpose.SYNTHESIZE)) - asked_before
    assert before + line_of(after, "job 21.") == body(brain, after)
