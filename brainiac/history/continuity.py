"""Checks that journals are whole: every `seq` once and in order, every text that an event names kept as a blob.

A journal can be damaged by hand, by a merge of git, by an interrupted sync, or by a restored backup. Nothing is
repaired here: which of two lines is the true one cannot be known, and history is not rewritten.
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
    """A kind of damage in one journal file.

    Attributes:
        file: The file.
        what: The first damaged line, and what is wrong with it.
        todo: What a person can do.
    """

    file: Path
    what: str
    todo: str


@dataclass(frozen=True, slots=True)
class _BadLine:
    """A damaged line.

    Attributes:
        plural: What further lines of the same damage are said to do, after their number: "are out of order".
    """

    file: Path
    number: int
    plural: str
    what: str
    todo: str


def faults(brain: Brain) -> Iterator[Fault]:
    """Yield the damage in the journals of all devices, each kind once for each file."""
    kept = set(brain.journal.blobs.digests())
    lines: list[_BadLine] = []
    missing: list[tuple[str, _BadLine]] = []
    purged_at = ""
    for folder in sorted(path for path in brain.tree.journal.glob("*/") if path.name != "blobs"):
        is_own = folder.name == brain.journal.device
        journal = _Journal(_RESTORE if is_own else f"{_RESTORE}; it is not whole until its journal is here whole")
        for file, number, event in journal.read(folder):
            if isinstance(event.what, TextsPurged | PurgeHonoured):
                purged_at = max(purged_at, event.at)
            for digest in _named_hashes(event):
                if digest not in kept:
                    what = f"the text {digest[:12]}… that it names is not kept"
                    missing.append((event.at, _BadLine(file, number, plural="are not", what=what, todo=_RESTORE_TEXTS)))
        lines += journal.lines
    # a purge destroys more texts on each device than its tombstone names: older missing texts are no damage
    lines += [line for at, line in missing if at > purged_at]
    kinds: dict[tuple[Path, str], list[_BadLine]] = {}
    for line in lines:
        kinds.setdefault((line.file, line.plural), []).append(line)
    for (file, plural), lines_alike in sorted(kinds.items(), key=lambda item: item[0][0]):
        rest = f"; {len(lines_alike) - 1} more {plural}" if len(lines_alike) > 1 else ""
        first = lines_alike[0]
        yield Fault(file, f"line {first.number}: {first.what}{rest}", first.todo)


@dataclass(slots=True)
class _Journal:
    """One device's journal while it is read line by line.

    Attributes:
        restore: What a person can do about missing lines.
        lines: The damaged lines.
        places: File and line number by `seq`.
        ids: `seq`, file and line number by event id.
        highest: The highest `seq` so far.
    """

    restore: str
    lines: list[_BadLine] = field(default_factory=list)
    places: dict[int, tuple[Path, int]] = field(default_factory=dict)
    ids: dict[str, tuple[int, Path, int]] = field(default_factory=dict)
    highest: int = 0

    def read(self, folder: Path) -> Iterator[tuple[Path, int, Event]]:
        """Yield each event once, with its file and line."""
        files = sorted(folder.glob("[0-9]*.jsonl"))
        for file in files:
            with open(file, "rb") as lines:
                for number, raw in enumerate(lines, 1):
                    # a torn last line is normal after a crash: the next event removes it
                    is_torn = file == files[-1] and not raw.endswith(b"\n")
                    event = None if is_torn else self._parse_line(file, number, raw)
                    if event is not None and self._add_position(file, number, event.seq, event.id):
                        yield file, number, event
        self._find_missing()

    def _add_bad_line(self, file: Path, number: int, what: str, todo: str, *, plural: str) -> None:
        """Add a damaged line to `lines`."""
        self.lines.append(_BadLine(file, number, plural, what, todo))

    def _parse_line(self, file: Path, number: int, raw: bytes) -> Event | None:
        """Return the event of a line; None for a damaged line, which is added to `lines`."""
        try:
            if raw.endswith(b"\n"):
                return _checked_event(raw[:-1])
            todo = "end it with a newline; if it is no whole line, remove it"
            self._add_bad_line(file, number, "its end is cut off, so it is not read", todo, plural="are")
        except ValueError as error:
            is_marker = raw.startswith(_MARKERS)
            why = "a conflict marker of git" if is_marker else str(error)
            todo = "remove the marker lines and keep all others" if is_marker else self.restore
            self._add_bad_line(file, number, f"a line is no event ({why})", todo, plural="lines are none")
        if numbered := _NUMBER.match(raw):  # a damaged event is not reported as missing too
            self.places.setdefault(int(numbered[1]), (file, number))
        return None

    def _add_position(self, file: Path, line: int, number: int, event_id: str) -> bool:
        """Remember where an event is, and check its order; return False for an event that was read before."""
        if event_id in self.ids:
            former, other, at = self.ids[event_id]
            what = f"event {former} stands twice, first in line {at} of {other.name}"
            self._add_bad_line(file, line, what, "remove the line", plural="do")
            return False
        if number in self.places:
            other, at = self.places[number]
            what = f"number {number} is given twice, first in line {at} of {other.name}, to different events"
            todo = "nothing is lost, both are kept and read; restart `brainiac run`, and let one daemon at a time write"
            self._add_bad_line(file, line, what, todo, plural="numbers are")
        elif number < self.highest:
            what = f"event {number} stands after event {self.highest}"
            todo = "put the lines in the order of their numbers (`seq`)"
            self._add_bad_line(file, line, what, todo, plural="are out of order")
        self.ids[event_id] = (number, file, line)
        self.highest = max(self.highest, number)
        self.places.setdefault(number, (file, line))
        return True

    def _find_missing(self) -> None:
        """Add the gaps in the numbers to `lines`; numbers before the first one were archived and are no gap."""
        former = 0
        for number in sorted(self.places):
            if former and number > former + 1:
                first, last = former + 1, number - 1
                missing = f"event {first} is" if first == last else f"events {first} to {last} are"
                what = f"{missing} missing before it"
                self._add_bad_line(*self.places[number], what, self.restore, plural="lines miss some")
            former = number


def _checked_event(raw: bytes) -> Event:
    """Return the event of a line.

    Raises:
        ValueError: The line is no event, or has values of wrong types, which could not be compared.
    """
    event = from_line(raw)
    texts = (event.id, event.at, event.kind, *_named_hashes(event))
    if not isinstance(event.seq, int) or not all(isinstance(text, str) for text in texts):
        raise ValueError("its number, id, time or hashes are none")
    return event


def _named_hashes(event: Event) -> list[str]:
    """Return the hashes of the texts before and after an event's changes."""
    hashes = (digest for change in event.changes if change.op != "append" for digest in (change.before, change.after))
    return [digest for digest in hashes if digest]
