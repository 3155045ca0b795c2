"""The journal: append-only, numbered without gaps, readable after anything that happens to its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.events import Event, RecordedChange, new_id
from brainiac.storage.journal import from_line, to_line
from tests.support.kernel import Kernel, make_root, open_kernel

_collectors: list[list[str]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.listdir":
        for collector in _collectors:
            collector.append(str(arguments[0]))


sys.addaudithook(_hear)  # hears every folder that Python lists, in all threads; it cannot be taken out again


@contextmanager
def listed() -> Iterator[list[str]]:
    """Collect the folders that are listed meanwhile."""
    found: list[str] = []
    _collectors.append(found)
    yield found
    _collectors.remove(found)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return open_kernel(make_root(tmp_path / "brain"))


def event(kind: str = "noted", at: str = "2025-09-16T15:30:00Z", **fields: Any) -> Event:
    return Event(0, new_id(), at, kind, "t", **fields)


changes = st.builds(
    RecordedChange,
    op=st.sampled_from(["create", "update", "remove", "move", "append", "observe"]),
    path=st.text(),
    before=st.none() | st.text("0123456789abcdef", min_size=64, max_size=64),
    after=st.none() | st.text("0123456789abcdef", min_size=64, max_size=64),
    source=st.none() | st.text(),
)
data = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()))


@given(
    st.builds(Event, seq=st.integers(0), at=st.text(), data=data, changes=st.lists(changes).map(tuple), cause=st.none())
)
def test_a_line_reads_back_as_the_event(event: Event) -> None:
    """Any event is one line, and the line is that event."""
    line = to_line(event)
    assert (1, True) == (line.count(b"\n"), line.endswith(b"\n"))
    assert event == from_line(line)


def test_a_line_has_the_documented_keys(kernel: Kernel) -> None:
    """seq, id, at, kind, by, cause, data, changes, in this order, in a file of the event's day."""
    kernel.journal.record(event())
    path = kernel.journal.folder / "2025-09-16.jsonl"
    keys = ["seq", "id", "at", "kind", "by", "cause", "data", "changes"]
    assert keys == list(json.loads(path.read_bytes()))
    assert kernel.journal.device == kernel.journal.folder.name


def test_seq_has_no_gap_across_files_processes_and_a_clock_set_back(kernel: Kernel) -> None:
    """Days make files, a day in the past does not; two journals of one device go on with each other's numbers."""
    other = open_kernel(kernel.tree.root)
    for day in ("16", "17", "15", "18"):
        kernel.journal.record(event(at=f"2025-09-{day}T00:00:00Z"))
        other.journal.record(event(at=f"2025-09-{day}T00:00:01Z"))
    assert list(range(1, 9)) == [each.seq for each in kernel.journal.events()]
    assert list(range(8, 5, -1)) == [each.seq for each in other.journal.events(since_seq=5, reverse=True)]
    assert ["2025-09-16", "2025-09-17", "2025-09-18"] == sorted(p.stem for p in kernel.journal.folder.iterdir())


def test_a_torn_tail_is_cut_and_a_bad_line_is_passed_over(kernel: Kernel) -> None:
    """What a crash left after the last newline goes; a broken line in the middle is named and costs nothing else."""
    kernel.journal.record(event("one"))
    path = kernel.journal.folder / "2025-09-16.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"seq": "broken\n{"seq":2,"id":"torn')
    again = open_kernel(kernel.tree.root).journal
    again.record(event("two"))
    assert [(1, "one"), (2, "two")] == [(each.seq, each.kind) for each in again.events()]
    assert 1 == len(again.warnings)
    assert b"torn" not in path.read_bytes()


def test_a_journal_file_that_git_replaced_is_reopened(kernel: Kernel) -> None:
    """A line goes into the file that stands, with the number that follows there; never into an unlinked one."""
    kernel.journal.record(event("one"))
    path = kernel.journal.folder / "2025-09-16.jsonl"
    old = path.read_bytes()
    kernel.journal.record(event("two"))
    draft = path.with_suffix(".x")
    draft.write_bytes(old)
    os.replace(draft, path)
    kernel.journal.record(event("three"))
    assert [(1, "one"), (2, "three")] == [(each.seq, each.kind) for each in kernel.journal.events()]


def test_an_event_lists_no_folder_that_did_not_change(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many days there are, their files are listed when one came, by whomever, and not for each event."""
    monkeypatch.setattr("brainiac.storage.journal._COARSE_SECONDS", 0.05)
    journal, folder = kernel.journal, str(kernel.journal.folder)
    journal.record(event())
    time.sleep(0.1)
    with listed() as folders:
        for _ in range(5):
            assert journal.last()[0] == journal.record(event()).seq - 1
    assert 1 == folders.count(folder)
    other = to_line(replace(event(at="2025-09-17T00:00:00Z"), seq=7))
    (kernel.journal.folder / "2025-09-17.jsonl").write_bytes(other)
    assert 8 == journal.record(event()).seq


def test_a_rewritten_file_keeps_its_mode(kernel: Kernel) -> None:
    """What a purge leaves of the journal is for nobody else's eyes either."""
    kernel.journal.record(event())
    path = kernel.journal.folder / "2025-09-16.jsonl"
    before = path.stat()
    assert 1 == kernel.journal.rewrite(lambda each: replace(each, data={"x": 1}))
    after = path.stat()
    assert (0o600, True) == (after.st_mode & 0o777, before.st_mode == after.st_mode)


def test_foreign_journals_are_read_and_not_folded(kernel: Kernel) -> None:
    """Another device's events are provenance; they never say what the tree holds here."""
    theirs = event("theirs", changes=(RecordedChange("create", "inbox/x.md", None, "0" * 64),))
    folder = kernel.tree.journal / "laptop-1"
    folder.mkdir()
    (folder / "2025-09-16.jsonl").write_bytes(to_line(theirs))
    kernel.journal.record(event("ours"))
    assert [("laptop-1", theirs)] == list(kernel.journal.foreign_events())
    assert {} == kernel.journal.fold()
    assert kernel.journal.find(theirs.id) is None


@pytest.mark.slow
def test_processes_append_at_once_without_a_gap(kernel: Kernel) -> None:
    """Four processes record a dozen events each; the numbers are 1 to 48."""
    script = (
        "import sys; from pathlib import Path; from tests.support.kernel import *\n"
        "from tests.unit.test_journal import event\n"
        f"kernel = open_kernel(Path({str(kernel.tree.root)!r}))\n"
        "for n in range(12): kernel.journal.record(event())"
    )
    command = [sys.executable, "-c", script]
    started = [subprocess.Popen(command, cwd=Path(__file__).parent.parent.parent) for _ in range(4)]
    assert [0] * 4 == [each.wait() for each in started]
    assert list(range(1, 49)) == [each.seq for each in kernel.journal.events()]
    assert 1 == len([path for path in kernel.tree.journal.iterdir() if path.is_dir()])


def test_an_event_is_read_from_the_file_of_its_day(kernel: Kernel) -> None:
    """By device and day, or a later one, between lines that are no events; what is not there is None."""
    folder = kernel.journal.folder.parent / "laptop-000000"
    folder.mkdir(parents=True)
    events = [
        Event(seq, new_id(), "2025-09-16T15:30:00Z", "x", "t", data={"text": "word " * (seq * 7 % 50)})
        for seq in range(1, 60)
    ]
    for number, day in enumerate(("2025-09-16", "2025-09-17", "2025-09-18")):
        lines = [to_line(event) for event in events[number * 20 : number * 20 + 20]]
        (folder / f"{day}.jsonl").write_bytes(b"".join([lines[0], b"odd\n", *lines[1:]]) + b'{"seq":99')
    assert events == [kernel.journal.event_of_day(event.id, event.at, "laptop-000000") for event in events]
    assert kernel.journal.event_of_day(events[0].id, "2025-09-17T00:00:00Z", "laptop-000000") is None
    assert kernel.journal.event_of_day(new_id(), events[0].at, "laptop-000000") is None
    assert kernel.journal.event_of_day(events[0].id, events[0].at, "nobody") is None
