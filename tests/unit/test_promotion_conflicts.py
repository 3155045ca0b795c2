"""A person beside a promotion: what they write, correct or delete wins, and what arrives meanwhile stays."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import ModelError
from brainiac.formats.page import parse_exchanges
from brainiac.health.doctor import examine
from brainiac.llm.schemas import Purpose, Request, Result
from brainiac.storage.commit import Committer
from brainiac.storage.database import FILE
from brainiac.testing import CountingDisk, Crash
from brainiac.tree import LocalPlaces
from tests.support.promotions import (
    LTM,
    ScriptedEngine,
    later,
    make_brain,
    open_brain,
    page_with,
    pages,
    statements,
    tell,
)


def edit(brain: Brain, path: str, change: Callable[[str], str], *, is_noticed: bool = True) -> None:
    """Change a file as a person does, with any editor."""
    file = brain.tree.absolute(path)
    file.write_text(change(file.read_text()))
    now = brain.clock.now().timestamp()
    os.utime(file, (now, now))  # the clock of these tests is not the system's
    if is_noticed:
        brain.observed.note_change(path)


def during(purpose: Purpose, act: Callable[[], object]) -> ScriptedEngine:
    """An engine that lets something happen once, while it is asked."""
    pending, engine = [act], ScriptedEngine()

    def answer(request: Request) -> Result:
        while pending:
            pending.pop()()
        return engine.verbatim(request)

    engine.answers[purpose] = answer
    return engine


def test_what_is_said_meanwhile_stays_for_the_next_run(tmp_path: Path) -> None:
    """An event that arrives between snapshot and finish is neither lost nor archived unread."""
    engine = during(Purpose.CONSOLIDATE, lambda: tell(brain, "My brother Tom lives in Oslo."))
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "My sister Ruth is a GP in Bristol.")
    promote(brain)
    assert ["My brother Tom lives in Oslo."] == [event.user for event in brain.short_term().memory.events]
    promote(brain)
    assert any("Tom lives in Oslo" in text for text in statements(brain))


def test_a_persons_edit_of_short_term_memory_wins(tmp_path: Path) -> None:
    """A summary, an event and a task that a person edits during the run stand as they wrote them."""
    stm = "memory/short_term.md"

    def act() -> None:
        edit(brain, stm, lambda text: text.replace("## Summary\n", "## Summary\nMine.\n"))
        edit(brain, stm, lambda text: text.replace("lives in Bristol", "lives in Bath"))
        edit(brain, stm, lambda text: text.replace("- [ ] call Ruth", "- [ ] write to Ruth"))

    brain = make_brain(tmp_path / "b", engine=during(Purpose.CONSOLIDATE, act))
    tell(brain, "My sister Ruth lives in Bristol.")
    tell(brain, "/todo call Ruth")
    promote(brain)
    memory = brain.short_term().memory
    assert "Mine." == memory.summary
    assert ["My sister Ruth lives in Bath."] == [event.user for event in memory.events]
    assert "write to Ruth" in [item.text for item in memory.tasks]


@pytest.mark.slow
def test_a_page_edited_meanwhile_keeps_only_its_candidate_for_the_next_run(tmp_path: Path) -> None:
    """The edit stands, the other candidate is filed, and the next run takes up what was left without asking again."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "My sister Ruth lives in Bristol.")
    tell(brain, "My brother Tom lives in Oslo.")
    promote(brain)
    later(brain)
    path = page_with(brain, "Ruth").path
    tell(brain, "Ruth has a bicycle.")
    tell(brain, "Tom plays the cello.")
    save = during(
        Purpose.CONSOLIDATE, lambda: edit(brain, path, lambda text: text + "\nA note of mine.\n", is_noticed=False)
    )
    engine.answers |= save.answers
    outcome = promote(brain)
    assert ["Ruth has a bicycle."] == [event.user for event in brain.short_term().memory.events]
    assert 1 == len(outcome.left)
    assert any("cello" in text for text in statements(brain))
    assert "A note of mine." in (brain.read_text(path) or "")

    asked = len(engine.of(Purpose.CONSOLIDATE))
    assert promote(brain).event is None, "the save is noticed, and rests"
    later(brain)
    promote(brain)
    assert asked == len(engine.of(Purpose.CONSOLIDATE)), "nothing is read twice"
    assert any("bicycle" in text for text in statements(brain))
    assert 1 == sum("bicycle" in text for text in statements(brain))
    said = [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert 4 == len(said) == len(set(said))


def test_a_page_edited_a_moment_ago_is_left_out(tmp_path: Path) -> None:
    """Within a minute of a person's edit its candidates wait."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My sister Ruth lives in Bristol.")
    promote(brain)
    later(brain)
    path = page_with(brain, "Ruth").path
    tell(brain, "Ruth has a bicycle.")
    edit(brain, path, lambda text: text + "\nA note of mine.\n")
    assert promote(brain).event is None
    later(brain, 61)
    assert promote(brain).event is not None


def test_what_a_person_wrote_is_added_to_and_never_rewritten(tmp_path: Path) -> None:
    """A contradiction of their statement is put beside it and proposed in review.md."""
    engine = ScriptedEngine()
    engine.on("any more", "end", "likes coffee")
    brain = make_brain(tmp_path / "b", engine=engine)
    theirs = "- User likes coffee. ^mine1\n"
    note = brain.tree.long_term / "concrete" / "drinks.md"
    note.write_text(f"# Drinks\n\n{theirs}")
    brain.observed.adopt()
    later(brain)
    tell(brain, "I don't like coffee any more.")
    outcome = promote(brain)
    text = note.read_text()
    assert theirs in text
    review = brain.read_text("memory/review.md") or ""
    (proposal,) = outcome.event.data["proposals"] if outcome.event else [None]
    assert proposal is not None
    assert f"<!-- proposal: {proposal['id']} -->" in review
    assert review.count("- [ ] ") == 1
    assert "mine1" == proposal["block"]
    assert "I don't like coffee any more." in statements(brain)


@pytest.mark.parametrize("change", [lambda text: "", lambda text: "User lives in Bath"])
def test_corrections_stick(tmp_path: Path, change: Callable[[str], str]) -> None:
    """What a person edited or deleted is not restated from what was said before they did."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "I live in Portland.")
    promote(brain)
    path = page_with(brain, "Portland").path
    tell(brain, "I live in Portland.")
    later(brain, 60)
    line = next(one for one in (brain.read_text(path) or "").splitlines() if "Portland" in one)
    mine = change(line)
    edit(brain, path, lambda text: text.replace(line, f"- {mine}" if mine else ""))
    later(brain)
    outcome = promote(brain)
    assert not any("Portland" in text for text in statements(brain))
    assert any("by hand" in refusal.reason for refusal in outcome.refused)


def test_a_line_a_person_wrote_into_the_lists_is_remembered(tmp_path: Path) -> None:
    """A fact typed into short-term memory by hand leaves it only as a memory."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "hello there")
    edit(
        brain,
        "memory/short_term.md",
        lambda text: text.replace("Decisions\n", "Decisions\n- The boiler is a Vaillant\n"),
    )
    later(brain)
    promote(brain)
    assert () == brain.short_term().memory.facts
    assert any("Vaillant" in text for text in statements(brain))


def test_a_person_who_comes_back_ends_the_run_with_what_is_decided(tmp_path: Path) -> None:
    """The rest stays in the log and is read by the next run, and nothing is read again. Seeds: R10."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    for name in ("Ruth", "Tom", "Nadia", "Owen"):  # private exchanges are asked about apart
        tell(brain, f"My friend {name} lives in Oslo.", private=name in ("Nadia", "Owen"))
    outcome = promote(brain, abandon=lambda: bool(engine.of(Purpose.VERIFY)))
    assert "somebody came back" == outcome.problem
    assert 2 == outcome.exchanges
    assert 2 == len(brain.short_term().memory.events)
    promote(brain)
    assert () == brain.short_term().memory.events
    assert 2 == len(engine.of(Purpose.CONSOLIDATE))
    assert 4 == len(statements(brain))


def spoil(places: LocalPlaces) -> None:
    """Damage a table that is derived, in the file where the paid answers lie."""
    with closing(sqlite3.connect(places.state / FILE)) as database:
        ((page,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'seen'").fetchall()
        ((size,),) = database.execute("PRAGMA page_size").fetchall()
    with (places.state / FILE).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("happens", [lambda places: None, spoil])
def test_no_answer_is_paid_twice(tmp_path: Path, happens: Callable[[LocalPlaces], None]) -> None:
    """What was asked before a run was cut short is known to the next one: also where the derived tables were damaged
    meanwhile."""

    def last_before_it(request: Request) -> Result:
        disk.stop_at = len(disk.done) + 1
        return engine.verbatim(request)

    engine, disk = ScriptedEngine({Purpose.VERIFY: last_before_it}), CountingDisk()
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I work as a GP in Bristol.")
    brain.__dict__["committer"] = Committer(brain.tree, brain.places, brain.journal, brain.clock, disk)
    with pytest.raises(Crash):
        promote(brain)
    brain.close()
    happens(brain.places)
    brain = open_brain(tmp_path / "b", engine, brain.clock if isinstance(brain.clock, ManualClock) else None)
    promote(brain)
    assert 1 == len(engine.of(Purpose.VERIFY))
    assert any("Bristol" in text for text in statements(brain))
    assert {} == brain.database.kept("answers")


def test_a_model_that_fails_changes_nothing_and_is_asked_no_question_twice(tmp_path: Path) -> None:
    """When nothing can be decided all stays; when nobody reads it again, what was decided is kept."""
    failing: list[Purpose] = [Purpose.CONSOLIDATE]

    def answer(request: Request) -> Result:
        if request.purpose in failing:
            raise ModelError("down", retryable=True)
        return engine.verbatim(request)

    engine = ScriptedEngine(dict.fromkeys(Purpose, answer))
    brain = make_brain(tmp_path / "b", engine=engine)
    failing.clear()
    tell(brain, "I work as a GP in Bristol.")
    failing.append(Purpose.CONSOLIDATE)
    with pytest.raises(ModelError):
        promote(brain)
    assert 1 == len(brain.short_term().memory.events)
    failing[:] = [Purpose.VERIFY]
    assert "down" == promote(brain).problem
    assert 1 == len(brain.short_term().memory.events)
    failing.clear()
    brain.close()
    brain = open_brain(tmp_path / "b", engine, brain.clock if isinstance(brain.clock, ManualClock) else None)
    promote(brain)
    assert 2 == len(engine.of(Purpose.CONSOLIDATE))
    assert any("Bristol" in text for text in statements(brain))
    assert (brain.root / LTM).is_dir()


def test_a_broken_index_page_is_left_to_the_person(tmp_path: Path) -> None:
    """What a person wrote into an `_index.md` that cannot be read stays byte for byte; the page beside it is written,
    and `doctor` names the index page."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My friend Ruth lives in Oslo.")
    promote(brain)
    path = "memory/long_term/concrete/people/_index.md"
    broken = "---\ntitle: [never closed\n---\n# People\n\nMy own notes on people.\n"
    brain.tree.absolute(path).write_text(broken)
    brain.observed.adopt()
    for each in brain.observed.open_paths:  # saved a moment ago: it is looked at again
        brain.observed.note_change(each)
    later(brain)
    tell(brain, "My friend Tom lives in Bergen.")
    assert promote(brain).event is not None
    assert "Tom lives in Bergen" in " ".join(statements(brain))
    assert broken == brain.read_text(path)
    assert [path] == [problem.path for problem in examine(brain)]
