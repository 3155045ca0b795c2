"""Whether journals stand as they were written: every number once and in order, every text that they name kept.

A journal is changed by hand, by a merge of git, by a sync that was cut short, or by a backup that was put back. Nothing
here is mended: which of two lines is the true one, nobody can tell, and history is not rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from brainiac.brain import Brain
from brainiac.events import Event, PurgeHonoured, TextsPurged
from brainiac.storage.journal import from_line

_NUMBER = re.compile(rb'\s*\{\s*"seq"\s*:\s*(\d+)')
_MARKERS = (b"<<<<<<< ", b"=======", b">>>>>>> ", b"||||||| ")
_RESTORE = "put the file back from git, a sync or a backup; the notes themselves stand"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something about a journal that is not as it was written.

    Attributes:
        file: The file.
        what: In which line, and what.
        todo: What a person can do.
    """

    file: Path
    what: str
    todo: str


@dataclass(slots=True)
class _File:
    """What is wrong in one file, by kind: the first sentence, what to do, how many more, and how they are counted."""

    path: Path
    faults: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def add(self, kind: str, line: int, what: str, todo: str) -> None:
        first, todo, more = self.faults.get(kind, (f"line {line}: {what}", todo, -1))
        self.faults[kind] = (first, todo, more + 1)

    def told(self) -> Iterator[Fault]:
        for more_are, (first, todo, more) in self.faults.items():
            yield Fault(self.path, first + (f"; {more} more {more_are}" if more else ""), todo)


@dataclass(slots=True)
class _Reading:
    """One device's journal, as it is read line by line."""

    restore: str
    where: dict[int, tuple[Path, int]] = field(default_factory=dict)  # file and line by number
    ids: dict[str, tuple[int, Path, int]] = field(default_factory=dict)  # number, file and line by id
    highest: int = 0

    def take(self, file: _File, line: int, raw: bytes) -> Event | None:
        """Take in a line and return its event, if it is one that was not there before."""
        if not raw.endswith(b"\n"):
            todo = "end it with a newline; if it is no whole line, remove it"
            file.add("are", line, "its end is cut off, so it is not read", todo)
            self._count(file, line, raw)
            return None
        try:
            event = _event(raw[:-1])
        except ValueError as error:
            self._garbage(file, line, raw, str(error))
            return None
        return event if self._place(file, line, event.seq, event.id) else None

    def _garbage(self, file: _File, line: int, raw: bytes, why: str) -> None:
        is_marker = raw.startswith(_MARKERS)
        why = "a conflict marker of git" if is_marker else why
        todo = "remove the marker lines and keep all others" if is_marker else self.restore
        file.add("lines are none", line, f"a line is no event ({why})", todo)
        self._count(file, line, raw)

    def _count(self, file: _File, line: int, raw: bytes) -> None:
        """Take in the number of a line that cannot be read: it is damaged, and not missing besides."""
        if numbered := _NUMBER.match(raw):
            self.where.setdefault(int(numbered[1]), (file.path, line))

    def _place(self, file: _File, line: int, number: int, event_id: str) -> bool:
        if event_id in self.ids:
            known, path, at = self.ids[event_id]
            file.add("do", line, f"event {known} stands twice, first in {_place_of(path, at)}", "remove the line")
            return False
        if number in self.where:
            path, at = self.where[number]
            what = f"number {number} is given twice, first in {_place_of(path, at)}, to different events"
            todo = "nothing is lost, both are kept and read; restart `brainiac run`, and let one daemon at a time write"
            file.add("numbers are", line, what, todo)
        elif number < self.highest:
            what = f"event {number} stands after event {self.highest}"
            file.add("are out of order", line, what, "put the lines in the order of their numbers (`seq`)")
        self.ids[event_id] = (number, file.path, line)
        self.where.setdefault(number, (file.path, line))
        self.highest = max(self.highest, number)
        return True

    def missing(self, files: dict[Path, _File]) -> None:
        """Tell of the numbers that no line has; what came before the first is put away and not missed."""
        former = 0
        for number in sorted(self.where):
            if former and number > former + 1:
                path, line = self.where[number]
                gone = f"event {former + 1} is" if number == former + 2 else f"events {former + 1} to {number - 1} are"
                files[path].add("lines miss some", line, f"{gone} missing before it", self.restore)
            former = number


def faults(brain: Brain) -> Iterator[Fault]:
    """Yield what is wrong with the journals of all devices, each kind once a file."""
    texts = _Texts(set(brain.journal.blobs.digests()))
    all_files: list[_File] = []
    for folder in sorted(path for path in brain.tree.journal.glob("*/") if path.name != "blobs"):
        is_own = folder.name == brain.journal.device
        reading = _Reading(_RESTORE if is_own else f"{_RESTORE}; it is not whole until its journal is here whole")
        files = {path: _File(path) for path in sorted(folder.glob("[0-9]*.jsonl"))}
        for path, file in files.items():
            for line, raw in _lines(path, is_last=path == max(files)):
                event = reading.take(file, line, raw)
                if event is not None:
                    texts.look(file, line, event)
        reading.missing(files)
        all_files += files.values()
    texts.missing()
    for file in all_files:
        yield from file.told()


def _lines(path: Path, *, is_last: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines by number, but not what a crash tore off at the very end, which the next event cuts."""
    with open(path, "rb") as lines:
        for number, raw in enumerate(lines, 1):
            if raw.endswith(b"\n") or not is_last:
                yield number, raw


def _event(raw: bytes) -> Event:
    """Read a line, as `from_line` does, and refuse what this module could not compare."""
    event = from_line(raw)
    texts = (event.id, event.at, event.kind, *_named(event))
    if not isinstance(event.seq, int) or not all(isinstance(text, str) for text in texts):
        raise ValueError("its number, id, time or hashes are none")
    return event


def _place_of(path: Path, line: int) -> str:
    return f"line {line} of {path.name}"


@dataclass(slots=True)
class _Texts:
    """The texts that journals name and that are not kept, those apart that were destroyed on purpose.

    A purge finds more texts on each device than its tombstone names, so nothing is missed from before the last one.
    """

    kept: set[str]
    gone: list[tuple[_File, int, str, str]] = field(default_factory=list)  # file, line, moment and hash
    purged_at: str = ""

    def look(self, file: _File, line: int, event: Event) -> None:
        if event.kind in (TextsPurged.kind, PurgeHonoured.kind):
            self.purged_at = max(self.purged_at, event.at)
        self.gone += [(file, line, event.at, digest) for digest in _named(event) if digest not in self.kept]

    def missing(self) -> None:
        todo = "put logs/journal/blobs back from git, a sync or a backup, or that version cannot be brought back"
        for file, line, at, digest in self.gone:
            if at > self.purged_at:
                file.add("are not", line, f"the text {digest[:12]}… that it names is not kept", todo)


def _named(event: Event) -> Iterable[str]:
    hashes = (each for change in event.changes if change.op != "append" for each in (change.before, change.after))
    return [each for each in hashes if each]
