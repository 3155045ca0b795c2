"""The journal: one JSON line for each event, append-only, a folder for each device; `why` and `undo` read it.

Several processes of one device append, always under the brain's commit lock. Events are ordered by `seq`, never by
time.

Every text that an event names is kept by its hash (`BlobStore`): whole, or as a splice (a difference from an earlier
text). `short_term.md` is rewritten at every exchange; a thousand versions of it must not be a thousand copies: whole
they take 31 MB, each compressed by zlib 12 MB, as splices 2 MB. Plain files: `ab/cdef…` has a text as it is,
`ab/cdef….splice` one line of JSON (`{"base": hash, "start": offset, "removed": bytes, "depth": n}`) and then the bytes
to insert.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

from brainiac.clock import SYSTEM
from brainiac.errors import BlobError, ConfinementError
from brainiac.events import (
    FORMER_KINDS,
    Event,
    EventData,
    RecordedChange,
    TreeAdopted,
    content_hash,
    kinds_of,
    present_form,
)
from brainiac.storage import files
from brainiac.storage.database import COMMIT_LOCK
from brainiac.tree import LocalPlaces, Tree

Kinds: TypeAlias = Collection[type[EventData] | str] | None
DEVICE_ID = "device_id"
_DEVICE_ID = re.compile(r"[a-z0-9][a-z0-9-]*-[0-9a-f]{6}\n")
_BLOCK_BYTES = 65_536
_FILE = re.compile(r"[\d-]+\.jsonl")
_MARK_BYTES = 64  # the end of a line has ids and hashes, so that no two are alike
_COARSE_SECONDS = 2  # the coarsest file times: two changes of a folder within this may have the same one
# the beginning of a line as `to_line` writes it
_HEAD = re.compile(rb'\{"seq":\d+,"id":"[^"\\]*","at":"([^"\\]*)","kind":"([^"\\]*)","by":"([^"\\]*)"')
_SEQ = re.compile(rb'\s*\{\s*"seq"\s*:\s*(\d+)')
_AT, _HEAD_BYTES = re.compile(rb'"at"\s*:\s*"([0-9TZ:.+-]+)"'), 200  # before anything that has words


def to_line(event: Event) -> bytes:
    """Render an event as its journal line, newline included."""
    # `seq` first, and no spaces: readers search the bytes of a line before they parse it
    fields = ("seq", "id", "at", "kind", "by", "cause", "data")  # `asdict` would copy everything, deeply
    record = {name: getattr(event, name) for name in fields}
    record["changes"] = [
        {"op": change.op, "path": change.path, "before": change.before, "after": change.after}
        | ({} if change.source is None else {"source": change.source})
        for change in event.changes
    ]
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # a file name that is no UTF-8
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> Event:
    """Read a journal line; what a newer version of the program added to it is passed over.

    Raises:
        ValueError: It is no event.
    """
    try:
        record = json.loads(line)
        changes = tuple(
            RecordedChange(change["op"], change["path"], change["before"], change["after"], change.get("source"))
            for change in record["changes"]
        )
        kind, data = record["kind"], record.get("data", {})
        if not (isinstance(kind, str) and isinstance(data, dict)):
            raise ValueError("its kind is no text, or its data are no object")
        texts = (record["id"], record["at"], *(d for change in changes for d in (change.before, change.after) if d))
        if not isinstance(record["seq"], int) or not all(isinstance(text, str) for text in texts):
            raise ValueError("its number, id, time or hashes are none")
        kind, data = present_form(kind, data)
        return Event(record["seq"], record["id"], record["at"], kind, record["by"], record.get("cause"), data, changes)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(str(error)) from error


def lines_back(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file, last first, reading the file block by block from its end."""
    return islice(_pieces_back(path), 1, None)  # the piece after the last newline is empty or torn


def _pieces_back(path: Path) -> Iterator[bytes]:
    """Yield the pieces of a file between its newlines, last first."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        at, rest = file.seek(0, os.SEEK_END), list[bytes]()  # parts of one line, the last first: it may have megabytes
        while at > 0:
            size = min(_BLOCK_BYTES, at)
            at = file.seek(at - size)
            first, *whole = file.read(size).split(b"\n")
            if whole:
                whole[-1] = b"".join((whole[-1], *reversed(rest)))
                yield from reversed(whole)
                rest.clear()
            rest.append(first)
        yield b"".join(reversed(rest))


def _lines_of(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield path and line for each whole line of a file, in order; lines appended meanwhile are left out."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        bytes_left = os.fstat(file.fileno()).st_size  # the caller may append while it iterates
        for line in file:
            bytes_left -= len(line)
            if bytes_left < 0 or not line.endswith(b"\n"):
                return  # appended meanwhile, or torn
            yield path, line[:-1]


def _searched(line: bytes) -> bytes:
    """Return the part of a line in which its id and its kind stand: the whole line may have megabytes."""
    return (_HEAD.match(line) or (line,))[0]


def device_id(folder: Path, copy: Path | None = None) -> str:
    """Return this device's id: the host's name and a random part. It is made at the first call and stored.

    Args:
        folder: The folder with the file of the id, which all brains of this machine share.
        copy: A second file with the id, in the state folder of one brain; a damaged first file is restored from it.
    """
    path = folder / DEVICE_ID
    name = _id_in(path)
    if name is None:
        is_damaged = os.path.lexists(path)
        former = _id_in(copy) if is_damaged and copy is not None else None
        files.set_aside_non_file(path)
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")[:24] or "device"
        _write_id(path, former or f"{host}-{secrets.token_hex(3)}", is_replacing=is_damaged)
        name = _id_in(path) or ""  # another process may have written its id first: that one counts
    if copy is not None and _id_in(copy) != name:
        files.set_aside_non_file(copy)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_id(copy, name, is_replacing=True)
    return name


def _id_in(path: Path) -> str | None:
    """Return the device id in a file; None where it is missing or damaged (the id becomes a folder name)."""
    text = (files.read_bytes(path) or b"").decode("ascii", "replace")
    return text.strip() if _DEVICE_ID.fullmatch(text) else None


def _write_id(path: Path, name: str, *, is_replacing: bool) -> None:
    """Write an id file; one that is there is replaced, or kept where another process has just written it."""
    draft = path.with_name(f".{DEVICE_ID}-{secrets.token_hex(4)}")
    draft.write_text(f"{name}\n")
    if is_replacing:
        os.replace(draft, path)
        return
    with suppress(FileExistsError):
        os.link(draft, path)  # unlike a rename it fails where there is a file
    draft.unlink()


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of this device's journal as last read; inode and size of the file change when another process writes.

    Attributes:
        path: The newest file; None for a journal without events.
        seq: Of the last event.
        last_id: Of the last event.
    """

    path: Path | None
    inode: int
    size: int
    seq: int
    last_id: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a journal of which only the beginning was read.

    Attributes:
        at: When, ISO 8601.
        device: Whose; "" for this one's.
        kind: The event's kind, as it stands there: it may be a former name.
        by: Who did it.
        raw: The whole line.
    """

    at: str
    device: str
    kind: str
    by: str
    raw: bytes


class Journal:
    """The journal of a brain; this device's part is written, all parts are read.

    Args:
        tree: The brain's folder.
        places: Its machine-local places.
        disk: What writes.

    Attributes:
        device: This machine's id.
        blobs: The texts that events name by hash.
        lock: The brain's commit lock, under which everything is appended.
        warnings: Lines that could not be read, one sentence each.
    """

    def __init__(self, tree: Tree, places: LocalPlaces, disk: files.Disk | None = None) -> None:
        self._disk = disk or files.Disk()
        self.device = device_id(places.device, places.state / DEVICE_ID)
        self.folder = tree.journal / self.device
        self.blobs = BlobStore(tree.journal / "blobs", self._disk)
        self.lock = places.state / COMMIT_LOCK
        self.warnings: list[str] = []
        self._journals = tree.journal
        for folder in (self.folder, self.blobs.folder):
            tree.confine(folder)  # git carries links too: nothing of ours is written through one that leads outside
        self._tail: _Tail | None = None
        # the newest file, and the folder's stamp when that was looked up, None to look again; one value for all threads
        self._newest_as_of: tuple[Path | None, tuple[int, int, int] | None] = None, None

    def record(self, event: Event) -> Event:
        """Append an event and return it with its `seq`; until `sync`, it must be pending too."""
        with files.locked(self.lock):
            tail = self._current_tail()
            numbered = replace(event, seq=tail.seq + 1)
            path = self.folder / f"{numbered.at[:10]}.jsonl"
            if tail.path is not None:
                path = max(path, tail.path)  # a clock set back must not put a later `seq` into an earlier file
                if path != tail.path:
                    self._disk.fsync(tail.path)  # `sync` knows only the newest
            files.make_folders(self._disk, path.parent)
            # not fsynced: a line that a power cut takes is written again from the pending commits
            self._disk.append(path, to_line(numbered))
            stat = os.stat(path)
            self._tail = _Tail(path, stat.st_ino, stat.st_size, numbered.seq, numbered.id)
            return numbered

    def last(self) -> tuple[int, str]:
        """Return `seq` and id of this device's last event; (0, "") when there is none.

        It waits for no commit that has written nothing yet, as while a start reads a large tree.
        """
        if (tail := self._known_tail()) is None:
            with files.locked(self.lock):
                tail = self._current_tail()
        return tail.seq, tail.last_id

    def sync(self) -> None:
        """Bring all that was appended to the disk."""
        if newest := self._newest():
            # a new file survives a power cut only if the folders that name it were synced too
            for path in (newest, self.folder, self._journals):
                self._disk.fsync(path)

    def events(
        self, since_seq: int = 0, kinds: Kinds = None, reverse: bool = False, since: str = ""
    ) -> Iterator[Event]:
        """Stream this device's events.

        Args:
            since_seq: Only those after it.
            kinds: Only these; those of plugins by their names.
            reverse: Newest first.
            since: Only those from this moment on, ISO 8601.
        """
        if reverse or since_seq or since:
            newest_first = self._lines_after(since_seq, since)
            lines = newest_first if reverse else reversed(list(newest_first))
        else:
            lines = chain.from_iterable(map(_lines_of, self._files()))
        return self._parse(lines, kinds)

    def events_after(self, seq: int, event_id: str) -> Iterable[Event] | None:
        """Return the events after the one with this `seq` and id, all for 0; None where that one is not there.

        Then git took the journal back, and whoever followed it begins anew.
        """
        if not seq:
            return self.events()
        events = list(self.events(since_seq=seq - 1))
        return events[1:] if events and (events[0].seq, events[0].id) == (seq, event_id) else None

    def foreign_events(self, kinds: Kinds = None) -> Iterator[tuple[str, Event]]:
        """Yield (device, event) of the other devices."""
        for path in map(Path, self.foreign_sizes()):
            for event in self._parse(_lines_of(path), kinds):
                yield path.parent.name, event

    def all_events(self, kinds: Kinds = None) -> Iterator[tuple[str, Event]]:
        """Stream (device, event) of all devices: the others' first, then this one's with "" as its device."""
        yield from self.foreign_events(kinds)
        yield from (("", event) for event in self.events(kinds=kinds))

    def foreign_sizes(self) -> dict[str, int]:
        """Return the size of each journal file of the other devices; a changed size means new events.

        One that cannot be read is left out, as if it had not arrived yet; `status` names it.
        """
        sizes: dict[str, int] = {}
        with suppress(FileNotFoundError):  # called often, for a file a day and device: plain `scandir` is fast
            for folder in os.scandir(self._journals):
                if folder.name in (self.device, "blobs") or not folder.is_dir(follow_symlinks=False):
                    continue  # a link may lead anywhere
                with suppress(PermissionError):
                    for entry in os.scandir(folder.path):
                        is_journal = entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)
                        if is_journal and os.access(entry.path, os.R_OK):
                            sizes[entry.path] = entry.stat().st_size
        return dict(sorted(sizes.items()))

    def foreign_part(self, path: str, start: int, mark: str) -> tuple[list[Event], int, str] | None:
        """Return the events that were added to another device's journal file since it was last read.

        Args:
            path: Of the file.
            start: How many bytes of it were read before; 0 at first.
            mark: The last `_MARK_BYTES` of these, or all where they are fewer.

        Returns:
            The events after `start`, with the `start` and `mark` for the next call. None where the file is gone, or was
            not only appended to, as the bytes before `start` are not those of `mark`.
        """
        mark_size = min(start, _MARK_BYTES)
        try:
            with open(path, "rb") as file:
                file.seek(start - mark_size)
                before, after = file.read(mark_size), file.read()
        except FileNotFoundError:
            return None
        # git or a sync service may put back an older file, or one that was purged: then all of it is read again;
        # latin-1 makes a text of any bytes
        if before.decode("latin-1") != mark:
            return None
        whole = after[: after.rfind(b"\n") + 1]  # a torn last line is read when a sync tool has brought the rest
        events = list(self._parse(((Path(path), line) for line in whole.splitlines()), None))
        return events, start + len(whole), (before + whole)[-_MARK_BYTES:].decode("latin-1")

    def find(self, event_id: str, since_seq: int = 0) -> Event | None:
        """Return this device's event with an id; None where there is none.

        Args:
            event_id: The id.
            since_seq: Only events after this `seq` are searched.
        """
        mark = f'"id":"{event_id}"'.encode()
        lines = ((path, line) for path, line in self._lines_after(since_seq) if mark in _searched(line))
        return next((event for event in self._parse(lines, None) if event.id == event_id), None)

    def event_of_day(self, event_id: str, at: str, device: str) -> Event | None:
        """Return the event that a device recorded with an id at a moment; None where its journal here lacks it."""
        mark = f'"id":"{event_id}"'.encode()
        # where a clock was set back it is in a later file
        days = (path for path in self._files(device) if path.stem >= at[:10])
        lines = ((path, line) for path in days for line in lines_back(path) if mark in _searched(line))
        return next((event for event in self._parse(lines, None) if event.id == event_id), None)

    def last_until(self, at: str, device: str = "") -> Event | None:
        """Return the last event of a device that is not later than an ISO 8601 moment; None where there is none.

        Args:
            at: The moment.
            device: Another device; "" for this one.
        """
        files_until = (path for path in reversed(self._files(device)) if path.name[:10] <= at[:10])
        events = self._parse(((path, line) for path in files_until for line in lines_back(path)), None)
        return next((event for event in events if event.at <= at), None)

    def lines_between(self, first: str, last: str, device: str = "") -> Iterator[Line]:
        """Yield the lines of a device's events from one moment until before another, those of the last file first.

        Read are the files of these days, and the next one, which has what was recorded while the clock was ahead.

        Args:
            first: ISO 8601.
            last: Likewise.
            device: Another device; "" for this one.
        """
        paths = self._files(device)
        start = bisect_left(paths, first[:10], key=lambda path: path.stem)
        end = bisect_right(paths, last[:10], key=lambda path: path.stem)
        for path in reversed(paths[start : end + 1]):
            for raw in lines_back(path):
                head = _HEAD.match(raw)
                if head is None:  # it is written otherwise, or is none
                    for event in self._parse([(path, raw)], None):
                        if first <= event.at < last:
                            yield Line(event.at, device, event.kind, event.by, raw)
                    continue
                at, kind, by = (part.decode("utf-8", "replace") for part in head.groups())
                if first <= at < last:
                    yield Line(at, device, kind, by, raw)

    def has_written(self, digest: str) -> bool:
        """Return whether a file had this content after some event of this device."""
        # searched for in the bytes: a person's save waits for this, and parsing a year of events takes seconds
        mark = f'"after":"{digest}"'.encode()
        return any(mark in line for _, line in self._lines_after(0))

    def events_naming(self, path: str, device: str = "") -> Iterator[Event]:
        """Yield the events of a device in which a file's path appears, newest first.

        Args:
            path: Relative.
            device: Another device; "" for this one.
        """
        # searched for in the bytes, in both ways JSON may write it: parsing years of events takes minutes
        marks = [json.dumps(path, ensure_ascii=is_ascii).encode("utf-8", "replace") for is_ascii in (False, True)]
        for file in reversed(self._files(device)):
            lines = ((file, line) for line in lines_back(file) if any(mark in line for mark in marks))
            yield from self._parse(lines, None)

    def fold(self) -> dict[str, str]:
        """Return the content hash of every tracked file as this device last saw it, by path."""
        hashes: dict[str, str] = {}
        for event in self.events():
            # an adoption lists the whole tree as it was found
            if event.kind == TreeAdopted.kind:
                hashes.clear()
            for change in event.changes:
                if change.op != "append":
                    for path in (change.source, change.path):
                        hashes.pop(path or "", None)
                    if change.after is not None:
                        hashes[change.path] = change.after
        return hashes

    def rewrite(self, cleaned: Callable[[Event], Event]) -> int:
        """Remove purged words from the data and paths of events in this device's journal; `seq`, id and hashes stay.

        Args:
            cleaned: Returns an event without purged words; where it equals the event, the line stays byte for byte.

        Returns:
            How many lines were changed.
        """
        count = 0
        with files.locked(self.lock):
            for path in self._files():
                self._cut_torn_line(path)
                lines = (files.read_bytes(path) or b"").splitlines(keepends=True)
                after = [_cleaned_line(line, cleaned) for line in lines]
                changed = sum(old != new for old, new in zip(lines, after, strict=True))
                if changed:
                    # where a crash leaves this file, the next start removes it
                    draft = Path(files.temporary_beside(str(path)))
                    self._disk.write(draft, b"".join(after))
                    files.copy_attributes(path, draft)
                    self._disk.fsync(draft)
                    self._disk.replace(draft, path)
                    self._disk.fsync(self.folder)
                count += changed
        return count

    def _files(self, device: str = "") -> list[Path]:
        """Return the journal files of a device, oldest first (a file is named by its day); "" means this device."""
        folder = self._journals / device if device else self.folder
        return [folder / name for name in sorted(self._names(folder))]

    def _names(self, folder: Path) -> list[str]:
        """Return the names of a device's journal files, conflict copies left out: nothing must be appended to these."""
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return []
        return [name for name in names if _FILE.fullmatch(name)]

    def _newest(self) -> Path | None:
        """Return this device's last file; the folder is listed again only when its time has changed."""
        try:
            stat = os.stat(self.folder)
        except FileNotFoundError:
            return None
        stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
        newest, as_of = self._newest_as_of
        if as_of != stamp:
            name = max(self._names(self.folder), default=None)
            # two changes within one tick of the file system's clock leave one time on the folder
            is_settled = SYSTEM.now().timestamp() - max(stat.st_mtime, stat.st_ctime) > _COARSE_SECONDS
            newest = self.folder / name if name else None
            self._newest_as_of = newest, stamp if is_settled else None
        return newest

    def _lines_after(self, since_seq: int, since: str = "") -> Iterator[tuple[Path, bytes]]:
        """Yield this device's lines after a `seq` and from a moment on, newest first, each with its file."""
        for path in reversed(self._files()):
            for line in lines_back(path):
                match = _SEQ.match(line)
                at = _AT.search(line, 0, _HEAD_BYTES) if since else None
                if (match and int(match[1]) <= since_seq) or (at and at[1].decode() < since):
                    return  # all lines before it are older still
                yield path, line

    def _parse(self, lines: Iterable[tuple[Path, bytes]], kinds: Kinds) -> Iterator[Event]:
        """Yield the events in lines; of a line that cannot be read a sentence is added to `warnings`.

        Args:
            lines: Each with the path of its file.
            kinds: Only events of these kinds; None for all.
        """
        names = None if kinds is None else kinds_of(*kinds)
        former = {kind for kind, (present, _) in FORMER_KINDS.items() if present.kind in (names or ())}
        marks = [f'"kind":"{kind}"'.encode() for kind in former.union(names or ())]
        for path, line in lines:
            if marks and not any(mark in _searched(line) for mark in marks):
                continue  # parsing it would cost fifty times as much
            try:
                event = from_line(line)
            except ValueError as error:
                warning = f"{path}: a line is no event ({error}); it was passed over"
                if warning not in self.warnings:
                    self.warnings.append(warning)
                continue
            if names is None or event.kind in names:
                yield event

    def _known_tail(self) -> _Tail | None:
        """Return the end of the journal; None where its file is not as it was left."""
        path, tail = self._newest(), self._tail
        if path is None:
            return _Tail(None, 0, 0, 0, "")
        try:
            stat = os.stat(path)
        except FileNotFoundError:  # git or sync took it away
            return None
        return tail if tail and (tail.path, tail.inode, tail.size) == (path, stat.st_ino, stat.st_size) else None

    def _current_tail(self) -> _Tail:
        """Return the end of the journal, read again where another process, git or sync has written to its file."""
        if (tail := self._known_tail()) is None:
            if (path := self._newest()) is None:  # taken away in this moment
                return _Tail(None, 0, 0, 0, "")
            self._cut_torn_line(path)
            last = next(self.events(reverse=True), None)
            stat = os.stat(path)
            tail = _Tail(path, stat.st_ino, stat.st_size, last.seq if last else 0, last.id if last else "")
            self._tail = tail
        return tail

    def _cut_torn_line(self, path: Path) -> None:
        """Remove an unfinished line from a file's end, which a crash left."""
        if torn := next(_pieces_back(path), b""):  # what follows the last newline
            self._disk.truncate(path, path.stat().st_size - len(torn))


def _cleaned_line(line: bytes, cleaned: Callable[[Event], Event]) -> bytes:
    """Return a journal line with its event cleaned; a line that is no event, or needs no change, as it is."""
    try:
        event = from_line(line)
    except ValueError:
        return line
    after = cleaned(event)
    if after == event:
        return line
    # the line's own record, and its changes, may have what a newer version of the program added
    record = json.loads(line)
    clean = json.loads(to_line(after))
    clean["changes"] = [old | new for old, new in zip(record["changes"], clean["changes"], strict=True)]
    return json.dumps(record | clean, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


# --- texts by their hashes ------------------------------------------------------------------------------------------

MAX_DEPTH = 16  # splices that one text may need: each is a file to read, at each new version too
MAX_SYNCED_SINGLY = 64  # the commit lock is held meanwhile: a thousand single fsyncs would take seconds
SPLICE_SUFFIX = ".splice"
_WORTHWHILE_SHARE = 0.5  # a splice must be at most this share of the whole text
_HEADER_BYTES = 120  # of a splice's file, about


@dataclass(frozen=True, slots=True)
class _Splice:
    """A text as a difference: the text `base` with `removed` bytes from `start` on replaced by `inserted`.

    Attributes:
        base: Hash of the earlier text.
        start: Offset in it.
        removed: How many bytes of it are replaced.
        depth: How many splices must be applied to read the text, this one included.
        inserted: The bytes in their place.
    """

    base: str
    start: int
    removed: int
    depth: int
    inserted: bytes


class BlobStore:
    """Texts by content hash.

    Args:
        folder: Where they lie; made with the first one.
        disk: What writes.
    """

    def __init__(self, folder: Path, disk: files.Disk | None = None) -> None:
        self.folder, self._disk = folder, disk or files.Disk()

    def __contains__(self, digest: str) -> bool:
        """Return whether a text is there, whole or as a splice; it may be damaged."""
        path = self._whole_path(digest)
        return os.path.exists(path) or os.path.exists(f"{path}{SPLICE_SUFFIX}")

    def put(self, content: bytes, *, base: str | None = None, is_verified: bool = False) -> str:
        """Store a text; it is safe on the disk only after `sync`.

        Args:
            content: Any bytes.
            base: Hash of an earlier version of this text, to store only the difference where that saves space.
            is_verified: Read back a text that is there already and write it again where it is damaged; for use after a
                power failure.

        Returns:
            Its hash.
        """
        digest = content_hash(content)
        if self._whole_path(digest).exists() and not is_verified:
            return digest
        with suppress(BlobError):  # a purge elsewhere may have destroyed what it is a splice on
            if digest in self and self.get(digest) == content:
                return digest
        splice = self._splice(content, base) if base and base != digest else None
        if splice is None:
            self._write_file(self._whole_path(digest), content)
        else:
            header = {"base": splice.base, "start": splice.start, "removed": splice.removed, "depth": splice.depth}
            line = json.dumps(header, separators=(",", ":")).encode() + b"\n"
            self._write_file(self._splice_path(digest), line + splice.inserted)
        return digest

    def get(self, digest: str) -> bytes:
        """Return a text.

        Raises:
            BlobError: The text, or one that it is spliced on, is missing or damaged.
        """
        splices: list[_Splice] = []
        base = digest
        # from splice to splice back to a text that is stored whole
        while (content := files.read_bytes(self._whole_path(base))) is None:
            raw = files.read_bytes(self._splice_path(base))
            if raw is None or len(splices) > 2 * MAX_DEPTH:
                raise BlobError(f"the text {digest[:12]}… is not in {self.folder}; restore it from a backup or sync")
            splices.append(self._parse(base, raw))
            base = splices[-1].base
        for splice in reversed(splices):
            content = content[: splice.start] + splice.inserted + content[splice.start + splice.removed :]
        if content_hash(content) != digest:
            raise BlobError(f"the text {digest[:12]}… in {self.folder} is damaged; restore it from a backup or sync")
        return content

    def digests(self) -> Iterator[str]:
        """Yield the hash of every text that is kept."""
        for path in self.folder.glob("??/*"):
            if not path.name.startswith("."):
                yield path.parent.name + path.name.removesuffix(SPLICE_SUFFIX)

    def delete(self, *digests: str) -> None:
        """Destroy texts for good; other texts that are splices on them are written out whole first.

        One that cannot be read, as another device destroyed what it is a splice on, goes with them.
        """
        deleted, unread = set(digests), {""}
        # before anything is deleted, so that a crash in the middle leaves every other text readable
        while unread:
            unread = set()
            for splice in list(self.folder.glob(f"??/*{SPLICE_SUFFIX}")):
                dependent = splice.parent.name + splice.name.removesuffix(SPLICE_SUFFIX)
                with open(splice, "rb") as file:
                    base = self._parse(dependent, file.readline()).base
                if base not in deleted or dependent in deleted:
                    continue
                path = self._whole_path(dependent)
                try:
                    self._write_file(path, self.get(dependent))
                except BlobError:
                    unread.add(dependent)
                    continue
                self._disk.fsync(path)
                self._disk.unlink(splice)
            deleted |= unread
        # a crash may have left both files
        for digest in sorted(deleted):
            self._disk.unlink(self._whole_path(digest))
            self._disk.unlink(self._splice_path(digest))

    def sync(self, digests: set[str]) -> None:
        """Fsync the files of these texts and their folders; for many texts sync the whole filesystem instead."""
        if len(digests) > MAX_SYNCED_SINGLY and self.folder.is_dir():
            self._disk.sync_filesystem(self.folder)
            return
        paths = [path for digest in digests for path in (self._whole_path(digest), self._splice_path(digest))]
        folders = set()
        for path in paths:
            if path.exists():
                self._disk.fsync(path)
                folders.add(path.parent)
        for folder in sorted(folders):
            self._disk.fsync(folder)
        if folders:
            self._disk.fsync(self.folder)

    def _whole_path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest[2:]

    def _splice_path(self, digest: str) -> Path:
        return self.folder / digest[:2] / (digest[2:] + SPLICE_SUFFIX)

    def _write_file(self, path: Path, content: bytes) -> None:
        """Write a file of the store so that readers see it whole or not at all."""
        if path.parent.is_symlink():  # a checkout may bring a link here: texts are never written outside the brain
            raise ConfinementError(f"{path.parent} is a link; put a folder there: texts are kept within the brain")
        files.make_folders(self._disk, path.parent)
        temporary = Path(files.temporary_beside(str(path)))
        # the name is the hash of the content: a torn file under it would pass for the text
        self._disk.write(temporary, content)
        self._disk.replace(temporary, path)

    def _parse(self, digest: str, raw: bytes) -> _Splice:
        """Return the splice in the bytes of a file.

        Raises:
            BlobError: They are no splice.
        """
        header, _, inserted = raw.partition(b"\n")
        try:
            return _Splice(inserted=inserted, **json.loads(header))
        except (ValueError, TypeError) as error:
            raise BlobError(f"{self._splice_path(digest)}: not a splice ({error}); restore it from a backup") from error

    def _splice(self, content: bytes, base: str) -> _Splice | None:
        """Return a text as a difference from an earlier one, given by its hash.

        None where the difference would save little space, or need too many splices to read.
        """
        try:
            former = self.get(base)
            depth = self._depth(base) + 1
        except BlobError:
            return None
        # one stretch is enough: two versions of short-term memory differ mostly where an exchange was added
        start = _common_prefix(former, content)
        end = _common_prefix(former[start:][::-1], content[start:][::-1])  # the length of the common end
        inserted = content[start : len(content) - end]
        if depth > MAX_DEPTH or len(inserted) + _HEADER_BYTES > len(content) * _WORTHWHILE_SHARE:
            return None
        return _Splice(base, start, len(former) - end - start, depth, inserted)

    def _depth(self, digest: str) -> int:
        """Return how many splices must be applied to read a text; 0 for one that is stored whole."""
        raw = None if self._whole_path(digest).exists() else files.read_bytes(self._splice_path(digest))
        return 0 if raw is None else self._parse(digest, raw).depth


def _common_prefix(first: bytes, second: bytes) -> int:
    """Return the length of the common beginning; found by halving, since comparing slices is far faster than bytes."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
