"""What was decided and may not be done yet: one line a commit, in the state folder; adding one is the commit point.

Lines stay until a checkpoint has brought their texts and journal lines to the disk, so that a commit itself waits
for one fsync here and for those of the files it places. Only the last line can be unfinished; where another cannot be
read, the file is set aside and the others hold.
See docs/decisions/write-ahead.md.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from brainiac.events import Event, content_hash
from brainiac.storage.files import Disk, free_name, make_folders, make_way, read_bytes
from brainiac.storage.journal import from_line, to_line


@dataclass(frozen=True, slots=True)
class Step:
    """One file to be put in place.

    Attributes:
        op: What is to be done; a move is a create and a remove.
        path: Relative.
        before: Hash of what must stand there.
        after: Hash of what is to stand there.
        temporary: Relative path of the new text until it is placed, then of what it displaced.
        inode: Of the file that stood there, to tell it from our text when a crash fell between.
        size: Where a log ended that is appended to.
        versions: What may have stood in an editor then, as `Seen.versions` has it; a save that is displaced grew from
            one of them and from none that came later.
    """

    op: Literal["append", "create", "update", "remove"]
    path: str
    before: str | None = None
    after: str | None = None
    temporary: str = ""
    inode: int = 0
    size: int = 0
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """One commit.

    Attributes:
        event: As it will be recorded, unless files are left.
        since_seq: The journal's last `seq` before it; its line comes after.
        steps: In order.
        texts: Content by hash, of what is not among the blobs yet.
        is_done: Its files are in place; what may still be missing is a blob or the journal line.
    """

    event: Event
    since_seq: int
    steps: tuple[Step, ...] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict)
    is_done: bool = False

    def without_texts(self) -> Intent:
        """Return it as it stays when all is on the disk and only displaced files are waited for."""
        return replace(self, texts={}, is_done=True)


class WriteAhead:
    """The write-ahead file.

    Args:
        path: In the state folder.
        disk: What writes.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path, self._disk = path, disk
        self._known = (0, 0)
        self._intents: list[Intent] = []
        self._merged: dict[str, str] = {}

    def read(self) -> tuple[list[Intent], bool]:
        """Return the commits and whether another process changed the file since we last looked."""
        stamp = self._stamp()
        if stamp == self._known:
            return self._intents, False
        make_way(self.path)
        content = read_bytes(self.path) or b""
        *lines, torn = content.split(b"\n")
        self._intents, self._merged = [], {}
        damaged = [line for line in lines if not self._takes(line)]
        if damaged or not torn.startswith(b"{"[: len(torn)]):
            self._set_aside([line for line in lines if line not in damaged])
        elif torn:
            self._disk.truncate(self.path, len(content) - len(torn))  # never became a commit
        self._known = self._stamp()
        return self._intents, True

    def _takes(self, line: bytes) -> bool:
        """Take in a line; False where it cannot be read."""
        try:
            self._take(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
        return True

    def _set_aside(self, lines: list[bytes]) -> None:
        """Go on with the lines that can be read, and keep the damaged file under another name."""
        damaged = free_name(self.path)
        self._disk.write(damaged, read_bytes(self.path) or b"")
        self._disk.fsync(damaged)
        self._replace(b"".join(line + b"\n" for line in lines))

    def _replace(self, content: bytes) -> None:
        draft = self.path.with_suffix(".new")
        self._disk.unlink(draft)
        self._disk.write(draft, content)
        self._disk.fsync(draft)
        self._disk.replace(draft, self.path)
        self._disk.fsync(self.path.parent)

    def add(self, intent: Intent) -> None:
        """Make a commit binding: from here on it will be finished, now or after a crash."""
        is_new = not self.path.exists()
        folders = make_folders(self._disk, self.path.parent) + [self.path.parent] * is_new
        self._disk.append(self.path, _to_line(intent))
        for each in (self.path, *folders):
            self._disk.fsync(each)
        self._intents.append(intent)
        self._known = self._stamp()

    def base_of(self, step: Step) -> str | None:
        """Return the hash of what a displaced file held when it was last dealt with."""
        return self._merged.get(step.temporary, step.before)

    def note_done(self, intent: Intent) -> None:
        """Note that a commit's files are in place and its journal line written."""
        self._append({"done": intent.event.id})

    def note_merged(self, step: Step, digest: str) -> None:
        """Remember that a displaced file's save was dealt with up to here."""
        self._append({"merged": step.temporary, "hash": digest})

    def keep_only(self, intents: Iterable[Intent]) -> None:
        """Drop all but these; everything must be on the disk."""
        self._intents = [intent.without_texts() for intent in intents]
        waiting = {step.temporary for intent in self._intents for step in intent.steps}
        self._merged = {name: digest for name, digest in self._merged.items() if name in waiting}
        lines = [_to_line(intent) for intent in self._intents]
        lines += [json.dumps({"merged": n, "hash": d}).encode() + b"\n" for n, d in self._merged.items()]
        if lines:
            self._replace(b"".join(lines))
        elif self.path.exists():
            self._disk.truncate(self.path, 0)
            self._disk.fsync(self.path)
        self._known = self._stamp()

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._known[1]

    def _append(self, note: dict[str, Any]) -> None:
        self._disk.append(self.path, json.dumps(note, separators=(",", ":")).encode() + b"\n")
        self._take(note)
        self._known = self._stamp()

    def _take(self, record: dict[str, Any]) -> None:
        if "merged" in record:
            self._merged[record["merged"]] = record["hash"]
        elif "done" in record:
            self._intents = [
                replace(intent, is_done=True) if intent.event.id == record["done"] else intent
                for intent in self._intents
            ]
        else:
            self._intents.append(_from_record(record))

    def _stamp(self) -> tuple[int, int]:
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            return 0, 0
        return stat.st_ino, stat.st_size


def _to_line(intent: Intent) -> bytes:
    record = {
        "event": to_line(intent.event).decode(),
        "since_seq": intent.since_seq,
        "steps": [asdict(step) for step in intent.steps],
        "texts": {digest: base64.b64encode(text).decode() for digest, text in intent.texts.items()},
        "is_done": intent.is_done,
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _from_record(record: dict[str, Any]) -> Intent:
    return Intent(
        from_line(record["event"].encode()),
        record["since_seq"],
        tuple(Step(**{**step, "versions": tuple(step.get("versions", ()))}) for step in record["steps"]),
        {digest: _text_of(digest, text) for digest, text in record["texts"].items()},
        record["is_done"],
    )


def _text_of(digest: str, encoded: str) -> bytes:
    text = base64.b64decode(encoded)
    if content_hash(text) != digest:
        raise ValueError(f"a text is not what its hash {digest[:12]}… says")
    return text
