"""Whether journals stand as they were written: every number once and in order, every text that they name kept.

A journal is changed by hand, by a merge of git, by a sync that was cut short, or by a backup that was put back. Nothing
here is mended: which of two lines is the true one, nobody can tell, and history is not rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from brainiac.brain import Brain
from brainiac.events import Event, PurgeHonoured, TextsPurged
from brainiac.storage.journal import from_line

_NUMBER = re.compile(rb'\s*\{\s*"seq"\s*:\s*(\d+)')
_MARKERS = (b"<<<<<<< ", b"=======", b">>>>>>> ", b"||||||| ")
_RESTORE = "put the file back from git, a sync or a backup; the notes themselves stand"
_RESTORE_TEXTS = "put logs/journal/blobs back from git, a sync or a backup, or that version cannot be brought back"


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


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is not as it should be.

    Attributes:
        more: How further lines of the same kind are counted in a sentence; it tells the kinds apart.
    """

    file: Path
    number: int
    more: str
    what: str
    todo: str


def faults(brain: Brain) -> Iterator[Fault]:
    """Yield what is wrong with the journals of all devices, each kind once a file."""
    kept = set(brain.journal.blobs.digests())
    lines: list[_Line] = []
    missing: list[tuple[str, _Line]] = []
    purged_at = ""
    for folder in sorted(path for path in brain.tree.journal.glob("*/") if path.name != "blobs"):
        is_own = folder.name == brain.journal.device
        journal = _Journal(_RESTORE if is_own else f"{_RESTORE}; it is not whole until its journal is here whole")
        for file, number, event in journal.read(folder):
            if isinstance(event.what, TextsPurged | PurgeHonoured):
                purged_at = max(purged_at, event.at)
            for digest in _hashes_of(event):
                if digest not in kept:
                    what = f"the text {digest[:12]}… that it names is not kept"
                    missing.append((event.at, _Line(file, number, "are not", what, _RESTORE_TEXTS)))
        lines += journal.lines
    # A purge destroys more texts on each device than its tombstone names: nothing is missed from before the last one.
    lines += [line for at, line in missing if at > purged_at]
    kinds: dict[tuple[Path, str], list[_Line]] = {}
    for line in lines:
        kinds.setdefault((line.file, line.more), []).append(line)
    for (file, more), alike in sorted(kinds.items(), key=lambda item: item[0][0]):
        rest = f"; {len(alike) - 1} more {more}" if len(alike) > 1 else ""
        yield Fault(file, f"line {alike[0].number}: {alike[0].what}{rest}", alike[0].todo)


@dataclass(slots=True)
class _Journal:
    """One device's journal, as it is read line by line.

    Attributes:
        restore: What a person can do about what is gone.
        lines: What is wrong.
        places: File and line by number.
        ids: Number, file and line by id.
    """

    restore: str
    lines: list[_Line] = field(default_factory=list)
    places: dict[int, tuple[Path, int]] = field(default_factory=dict)
    ids: dict[str, tuple[int, Path, int]] = field(default_factory=dict)
    highest: int = 0

    def read(self, folder: Path) -> Iterator[tuple[Path, int, Event]]:
        """Yield each event once, with its file and line."""
        files = sorted(folder.glob("[0-9]*.jsonl"))
        for file in files:
            with open(file, "rb") as lines:
                for number, raw in enumerate(lines, 1):
                    # what a crash tore off at the very end is cut by the next event
                    is_torn = file == files[-1] and not raw.endswith(b"\n")
                    event = None if is_torn else self._event(file, number, raw)
                    if event is not None and self._place(file, number, event.seq, event.id):
                        yield file, number, event
        self._find_missing()

    def _add(self, file: Path, number: int, more: str, what: str, todo: str) -> None:
        self.lines.append(_Line(file, number, more, what, todo))

    def _event(self, file: Path, number: int, raw: bytes) -> Event | None:
        try:
            if raw.endswith(b"\n"):
                return _parsed(raw[:-1])
            todo = "end it with a newline; if it is no whole line, remove it"
            self._add(file, number, "are", "its end is cut off, so it is not read", todo)
        except ValueError as error:
            is_marker = raw.startswith(_MARKERS)
            why = "a conflict marker of git" if is_marker else str(error)
            todo = "remove the marker lines and keep all others" if is_marker else self.restore
            self._add(file, number, "lines are none", f"a line is no event ({why})", todo)
        if numbered := _NUMBER.match(raw):  # it is damaged, and not missing besides
            self.places.setdefault(int(numbered[1]), (file, number))
        return None

    def _place(self, file: Path, line: int, number: int, event_id: str) -> bool:
        """Take in an event and return whether it was not there before."""
        if event_id in self.ids:
            former, other, at = self.ids[event_id]
            what = f"event {former} stands twice, first in line {at} of {other.name}"
            self._add(file, line, "do", what, "remove the line")
            return False
        if number in self.places:
            other, at = self.places[number]
            what = f"number {number} is given twice, first in line {at} of {other.name}, to different events"
            todo = "nothing is lost, both are kept and read; restart `brainiac run`, and let one daemon at a time write"
            self._add(file, line, "numbers are", what, todo)
        elif number < self.highest:
            what = f"event {number} stands after event {self.highest}"
            self._add(file, line, "are out of order", what, "put the lines in the order of their numbers (`seq`)")
        self.ids[event_id] = (number, file, line)
        self.highest = max(self.highest, number)
        self.places.setdefault(number, (file, line))
        return True

    def _find_missing(self) -> None:
        """Find the numbers that no line has; what came before the first is put away and not missed."""
        former = 0
        for number in sorted(self.places):
            if former and number > former + 1:
                gone = f"event {former + 1} is" if number == former + 2 else f"events {former + 1} to {number - 1} are"
                self._add(*self.places[number], "lines miss some", f"{gone} missing before it", self.restore)
            former = number


def _parsed(raw: bytes) -> Event:
    """Read a line, as `from_line` does, and refuse what this module could not compare."""
    event = from_line(raw)
    texts = (event.id, event.at, event.kind, *_hashes_of(event))
    if not isinstance(event.seq, int) or not all(isinstance(text, str) for text in texts):
        raise ValueError("its number, id, time or hashes are none")
    return event


def _hashes_of(event: Event) -> list[str]:
    hashes = (digest for change in event.changes if change.op != "append" for digest in (change.before, change.after))
    return [digest for digest in hashes if digest]
