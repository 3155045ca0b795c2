"""What the doctor says of journals that are not as they were written: order, continuity, and the texts they name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.clock import ManualClock
from brainiac.events import create, update
from brainiac.testing import command, make_brain, run_once
from tests.support.commands import do

DAYS = ("2026-03-01", "2026-03-02")
Lines = list[bytes]


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    """A brain with a journal of two days, six events on the first and four on the second."""
    clock = ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    brain = make_brain(tmp_path / "brain", clock=clock)
    brain.observed.adopt()
    for number in range(10 - brain.journal.last()[0]):
        if brain.journal.last()[0] == 6:
            clock.advance(timedelta(days=1).total_seconds())
        brain.commit("page-made", by="tester", changes=[create(f"memory/long_term/p{number}.md", f"# Page {number}\n")])
    assert (10, [6, 4]) == (brain.journal.last()[0], [len(lines_of(day(brain, each))) for each in DAYS])
    yield brain
    brain.close()


def day(brain: Brain, name: str) -> Path:
    return brain.journal.folder / f"{name}.jsonl"


def lines_of(path: Path) -> Lines:
    return path.read_bytes().splitlines(keepends=True)


def told(brain: Brain) -> list[tuple[str, str]]:
    """What is said of the journals, the device's folder left out."""
    return [(problem["path"].rpartition("/")[2], problem["what"]) for problem in problems(brain)]


def problems(brain: Brain) -> list[dict[str, str]]:
    """What is wrong with the journals themselves; that notes differ from what they tell then is another matter."""
    found = command(brain, "doctor", "--json").json["problems"]
    return [problem for problem in found if problem["path"].endswith(".jsonl")]


def test_a_journal_as_it_was_written_has_no_problem(brain: Brain) -> None:
    """Two days, one device."""
    assert [] == told(brain)


def doubled(lines: Lines) -> Lines:
    return [*lines[:3], lines[1], *lines[3:]]


def swapped(lines: Lines) -> Lines:
    return [*lines[:2], lines[3], lines[2], *lines[4:]]


def cut_out(lines: Lines) -> Lines:
    return [*lines[:2], *lines[4:]]


def cut_short(lines: Lines) -> Lines:
    return [*lines[:2], lines[2][:40] + b"\n", *lines[3:]]


def renumbered(lines: Lines) -> Lines:
    again = re.sub(rb'"id":"[^"]+"', b'"id":"01a20384-0000-7000-8000-000000000000"', lines[1])
    return [*lines[:3], again, *lines[3:]]


def copied(lines: Lines) -> Lines:
    return [*lines, re.sub(rb'"seq":\d+', b'"seq":7', lines[1], count=1)]


def odd(lines: Lines) -> Lines:
    return [*lines[:2], re.sub(rb'"after":"\w+"', b'"after":[1]', lines[2]), *lines[3:]]


def in_conflict(lines: Lines) -> Lines:
    return [*lines[:2], b"<<<<<<< HEAD\n", lines[2], b"=======\n", b">>>>>>> other\n", *lines[3:]]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (doubled, ["line 4: event 2 stands twice, first in line 2 of 2026-03-01.jsonl"]),
        (swapped, ["line 4: event 3 stands after event 4"]),
        (cut_out, ["line 3: events 3 to 4 are missing before it"]),
        (renumbered, ["line 4: number 2 is given twice, first in line 2 of 2026-03-01.jsonl, to different events"]),
        (cut_short, ["line 3: a line is no event (Unterminated string"]),
        (odd, ["line 3: a line is no event (its number, id, time or hashes are none)"]),
        (in_conflict, ["line 3: a line is no event (a conflict marker of git); 2 more lines are none"]),
    ],
)
def test_damage_is_named_with_file_and_line(
    brain: Brain, damage: Callable[[Lines], Lines], expected: list[str]
) -> None:
    """Each kind once a file, with what to do; `--fix` leaves the journal as it is."""
    path = day(brain, DAYS[0])
    path.write_bytes(b"".join(damage(lines_of(path))))
    before = path.read_bytes()
    found = problems(brain)
    assert [path.name] == [problem["path"].rpartition("/")[2] for problem in found]
    assert [True] == [problem["what"].startswith(each) for problem, each in zip(found, expected, strict=True)], found
    assert all(problem["todo"] for problem in found)
    command(brain, "doctor", "--fix")
    assert before == path.read_bytes()


def test_an_event_that_was_copied_under_another_number_is_named(brain: Brain) -> None:
    """The id tells."""
    path = day(brain, DAYS[0])
    path.write_bytes(b"".join(copied(lines_of(path))))
    assert [(path.name, "line 7: event 2 stands twice, first in line 2 of 2026-03-01.jsonl")] == told(brain)


def test_a_file_that_is_gone_and_one_that_was_cut_are_named(brain: Brain) -> None:
    """A whole day in the middle, and an older file whose last line lost its newline and is therefore not read."""
    first, second = (day(brain, each) for each in DAYS)
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    assert [("2026-03-01.jsonl", "line 6: its end is cut off, so it is not read")] == told(brain)
    third = second.with_name("2026-03-03.jsonl")
    third.write_bytes(second.read_bytes())
    second.unlink()
    first.write_bytes(b"".join(lines_of(first)[:2]))
    assert [("2026-03-03.jsonl", "line 1: events 3 to 6 are missing before it")] == told(brain)


def test_what_is_no_damage_is_not_named(brain: Brain) -> None:
    """A torn last line, older days put away, another device with numbers of its own, and a clock that was set back."""
    first, second = (day(brain, each) for each in DAYS)
    foreign = brain.tree.journal / "other-123456"
    shutil.copytree(brain.journal.folder, foreign)
    with second.open("ab") as file:
        file.write(b'{"seq":11,"id":"01')
    assert [] == told(brain)
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(-86_400 * 400)
    brain.record("something-done", by="tester")
    assert [] == told(brain)
    (foreign / first.name).unlink()
    assert [] == told(brain)


def test_other_devices_are_looked_at_too(brain: Brain) -> None:
    """Their journals came by sync: what is missing may still come."""
    foreign = brain.tree.journal / "other-123456"
    shutil.copytree(brain.journal.folder, foreign)
    path = foreign / f"{DAYS[0]}.jsonl"
    path.write_bytes(b"".join(cut_out(lines_of(path))))
    (problem,) = problems(brain)
    assert "logs/journal/other-123456/2026-03-01.jsonl" == problem["path"]
    assert "until its journal is here whole" in problem["todo"]


def test_texts_that_are_not_there_are_named_once_a_file(brain: Brain) -> None:
    """By the first line that names one, and how many; what the tree holds is not in danger."""
    before, after = "# Page 0\n", "# Page 0, changed\n"
    event = brain.commit("page-made", by="tester", changes=[update("memory/long_term/p0.md", before, after)])
    for change in event.changes:
        for digest in (change.before, change.after):
            (brain.journal.blobs.folder / str(digest)[:2] / str(digest)[2:]).unlink()
    found = told(brain)
    assert ["2026-03-01.jsonl", "2026-03-02.jsonl"] == [name for name, _ in found]
    assert re.fullmatch(r"line \d: the text [0-9a-f]{12}… that it names is not kept", found[0][1])
    assert re.fullmatch(r"line 5: the text [0-9a-f]{12}… that it names is not kept; 1 more are not", found[1][1])


def test_a_purge_is_no_damage(tmp_path: Path) -> None:
    """Texts that were destroyed on purpose are not missed, here or in what another device says of them."""
    brain = make_brain(tmp_path / "brain")
    (brain.tree.inbox / "a.md").write_text("My neighbour Rosalind hides emeralds.\n")
    (brain.tree.inbox / "b.md").write_text("---\nremember: false\n---\nI like jazz.\n")
    run_once(brain)
    shutil.copytree(brain.journal.folder, brain.tree.journal / "other-123456")
    assert [] == told(brain)
    (event,) = (each for each in brain.journal.events(kinds={"prompt-answered"}) if each.data["prompt"] == "inbox/a.md")
    assert do(brain, "forget", event.id, "--purge", "--yes", "--json").json["texts"]
    assert [] == told(brain)
    brain.close()
