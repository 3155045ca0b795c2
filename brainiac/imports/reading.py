"""Finds what can be imported in a file, an archive or a folder, each file recognized by what it holds, and reads it.

Files are streamed, so that an export of any size needs little memory; of an archive nothing is written anywhere but
an archive within it, for the time of reading.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.imports import chatgpt, claude, gemini, notes, transcripts
from brainiac.imports.records import Conversation, Item, Note, page_path, text_of
from brainiac.tree import is_temporary, slugify

HEAD_BYTES = 65_536  # of a file, by which its format is known
LOOKED_AT = 20  # records of an array, one of which must be of a known format
MAX_RATIO = 300  # of a packed file; real exports shrink to a tenth
MAX_ENTRIES = 500_000
MAX_RECORD_BYTES = 50_000_000  # of one record of a JSON file, which is read into memory as a whole
MAX_DEPTH = 200  # of a JSON file; its parser's memory grows with the square of it, and real exports have 20
_NOTES = (".md", ".markdown")
_COPILOT = "Conversation,Time,Author,Message"  # the head of its table
# what a broken archive, file or drive makes of reading; a file that is encrypted, or packed in an unknown way
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
_MARK = b"\xef\xbb\xbf"  # the byte-order mark of UTF-8
_SUSPICIOUS_BYTES = 50_000_000  # below this size any ratio is harmless


@dataclass(frozen=True, slots=True)
class Export:
    """A file with something to import.

    Attributes:
        name: For a person; of a packed file with the archive's name before it.
        service: The service that it comes from: `chatgpt`, `claude`, …
        size: In bytes, unpacked.
        read: Yields the conversations and notes in it; it takes a function that it calls with the bytes of each read.
    """

    name: str
    service: str
    size: int
    read: Callable[[Callable[[int], None]], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the disk or of an archive, of any format.

    Attributes:
        name: For a person; of a packed file with the archive's name before it.
        size: In bytes, unpacked.
        open: Opens it.
        path: Relative to the folder or archive that the person named.
        zone: The person's time zone, for its days.
        file_at: ISO 8601 moment of the file, for texts without a date.
    """

    name: str
    size: int
    open: Callable[[], BinaryIO]
    path: str
    zone: tzinfo
    file_at: str


_Reader = Callable[[BinaryIO, _File], Iterator[Item]]


@contextmanager
def opened_exports(path: Path, zone: tzinfo) -> Iterator[tuple[list[Export], list[str]]]:
    """Find what a file, an archive or a folder has to import.

    Args:
        path: As a person named it.
        zone: The person's time zone.

    Yields:
        The files of a known format, and the names of all others.

    Raises:
        UserError: There is no such file, or it is an archive that must not be unpacked.
    """
    with tempfile.TemporaryDirectory(prefix="brainiac-import-") as scratch:
        exports: list[Export] = []
        others: list[_File] = []
        for file in _files(path, zone, Path(scratch)):
            try:
                service_and_reader = _reader_of(file)
            except _UNREADABLE as error:
                raise UserError(f"{file.name} cannot be read ({_what(error)}); nothing was imported") from error
            if service_and_reader:
                service, reader = service_and_reader
                exports.append(Export(file.name, service, file.size, _read_with(reader, file)))
            else:
                others.append(file)
        # Markdown beside conversations explains the export, and is no note of the person's
        has_conversations = any(export.service != "documents" for export in exports)
        note_files = [] if has_conversations else [file for file in others if file.name.lower().endswith(_NOTES)]
        if note_files:
            size = sum(file.size for file in note_files)
            exports += [Export(path.name, "notes", size, partial(_read_notes, note_files, slugify(path.stem)))]
        yield exports, [file.name for file in others if file not in note_files]


def _read_notes(files: list[_File], folder: str, count: Callable[[int], None]) -> Iterator[Item]:
    """Yield the notes in files; the path of each is `folder/`, then its path relative to what the person named.

    Args:
        files: Markdown files.
        folder: Name of the folder in memory that gets them.
        count: Called with the bytes of each file.
    """
    # those first whose names stay as they are: of two notes with one page's name, links between notes lead to it
    for file in sorted(files, key=lambda file: file.path != page_path(file.path)):
        try:
            with file.open() as opened:
                note = notes.note(opened, file.path, file.file_at)
        except _UNREADABLE as error:
            note = Note(file.path, file.path, problem=f"cannot be read ({_what(error)})")
        count(file.size)
        yield note if note.problem else replace(note, path=f"{folder}/{note.path}")


def _read_with(reader: _Reader, file: _File) -> Callable[[Callable[[int], None]], Iterator[Item]]:
    """Return the function for `Export.read`: it reads a file with a reader and counts the bytes."""

    def read(count: Callable[[int], None]) -> Iterator[Item]:
        try:
            with file.open() as raw, _Counted(raw, count) as counted:
                yield from reader(cast(BinaryIO, io.BufferedReader(counted, HEAD_BYTES)), file)
        except _UNREADABLE as error:
            yield Conversation("", file.name, problem=f"cannot be read to its end ({_what(error)})")

    return read


def _what(error: Exception) -> str:
    """Return what an error says on one line."""
    return " ".join(str(error).split())[:120] or type(error).__name__


class _Counted(io.RawIOBase):
    """A file of which each read is reported.

    Args:
        file: What is read.
        count: Called with the bytes of each read.
    """

    def __init__(self, file: BinaryIO, count: Callable[[int], None]) -> None:
        self._file, self._count = file, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer and report the number of bytes."""
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        self._count(len(content))
        return len(content)


# --- files, archives and folders -------------------------------------------------------------------------------------


def _files(path: Path, zone: tzinfo, scratch: Path) -> Iterator[_File]:
    """Yield the file at a path, or the files in the archive or folder there; `scratch` is for archives in archives.

    Raises:
        UserError: There is no file, or it is an archive that must not be unpacked.
    """
    if path.is_dir():
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not is_temporary(name))
            for name in sorted(name for name in names if not is_temporary(name)):
                file = Path(folder, name)
                if file.is_file() and not file.is_symlink():
                    yield from _files_at(file, file.relative_to(path).as_posix(), zone, scratch)
    elif path.is_file():
        yield from _files_at(path, path.name, zone, scratch)
    else:
        raise UserError(f"{path} is no file and no folder; name what the service sent you, unpacked or not")


def _files_at(path: Path, relative: str, zone: tzinfo, scratch: Path) -> Iterator[_File]:
    """Yield a file of the disk, or the files in it where it is an archive.

    Args:
        path: The file.
        relative: Its path relative to the folder that the person named; its name where they named the file.
        zone: The person's time zone.
        scratch: A folder for archives in archives.
    """
    status = path.stat()
    file_at = iso(datetime.fromtimestamp(status.st_mtime, UTC))
    if zipfile.is_zipfile(path):
        yield from _packed(path, path.name, zone, file_at, scratch)
    else:
        size = status.st_size
        yield _File(name=relative, size=size, open=lambda: path.open("rb"), path=relative, zone=zone, file_at=file_at)


def _packed(
    path: Path, name: str, zone: tzinfo, file_at: str, scratch: Path, *, is_inner: bool = False
) -> Iterator[_File]:
    """Yield the files in an archive, and those of archives in it, one level deep.

    Args:
        path: The archive.
        name: For a person.
        zone: The person's time zone.
        file_at: ISO 8601 moment of the archive.
        scratch: A folder for archives in it.
        is_inner: Whether it was in an archive itself.

    Raises:
        UserError: It has more files, or unpacks to more, than any export does.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{name} cannot be unpacked ({error}); download it again") from error
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MAX_ENTRIES:
        raise UserError(f"{name} has {len(entries)} files, more than any export; unpack it and name what is meant")
    for entry in entries:
        # a few kilobytes that unpack to gigabytes would fill the disk or memory
        if entry.file_size > max(_SUSPICIOUS_BYTES, MAX_RATIO * entry.compress_size):
            raise UserError(f"{name}: {entry.filename} would unpack to {entry.file_size} bytes; it is not read")
        if entry.flag_bits & 1:
            raise UserError(f"{name} is encrypted; unpack it with its password and name the folder")
        if is_temporary(entry.filename.rpartition("/")[2]):
            continue
        entry_name = f"{name}/{entry.filename}"
        if not entry.filename.lower().endswith(".zip"):
            opener = partial(archive.open, entry)
            yield _File(entry_name, entry.file_size, cast(Any, opener), entry.filename, zone, file_at)
        elif not is_inner:
            inner = scratch / f"{len(os.listdir(scratch))}.zip"
            try:
                with archive.open(entry) as source, open(inner, "xb") as target:
                    shutil.copyfileobj(source, target)
            except _UNREADABLE as error:
                raise UserError(f"{entry_name} cannot be unpacked ({_what(error)}); download it again") from error
            yield from _packed(inner, entry_name, zone, file_at, scratch, is_inner=True)


# --- formats ---------------------------------------------------------------------------------------------------------


def _reader_of(file: _File) -> tuple[str, _Reader] | None:
    """Return the service that a file comes from and its reader; None where its format is not known."""
    with file.open() as opened:
        raw = opened.read(HEAD_BYTES)
    head = raw.removeprefix(_MARK).decode("utf-8", "replace")
    match head.lstrip()[:1]:
        case "[" | "{":
            return _transcript_reader_of(file) or _json_reader_of(file)
        case "<" if gemini.recognizes_page(head):
            return "gemini", _refused("is a web page; order My Activity from Google again, as JSON, and import that")
    if head.startswith(_COPILOT):
        return "copilot", _refused("is Copilot's table, which is not read; save as Markdown what you want to bring in")
    if raw.startswith(b"%PDF-"):
        return "documents", _read_document
    if notes.is_mailbox(raw):
        return "mail", lambda opened, file: notes.mails(opened)
    return None


def _refused(problem: str) -> _Reader:
    """Return a reader that reads nothing and says why."""
    return lambda opened, file: iter([Conversation("", file.name, problem=problem)])


def _read_document(opened: BinaryIO, file: _File) -> Iterator[Item]:
    yield notes.document(opened, file.path, file.file_at)


def _transcript_reader_of(file: _File) -> tuple[str, _Reader] | None:
    """Return service and reader of a transcript, a JSON object a line, by its first lines; None for another file."""
    with file.open() as opened:
        names = (transcripts.service_of(record) for record in islice(transcripts.lines(opened), LOOKED_AT))
        service = next(filter(None, names), "")
    return (service, partial(_read_transcript, service)) if service else None


def _read_transcript(service: str, opened: BinaryIO, file: _File) -> Iterator[Item]:
    yield transcripts.conversation(service, transcripts.lines(opened), file.path, file.file_at)


def _json_reader_of(file: _File) -> tuple[str, _Reader] | None:
    """Return service and reader of a JSON file, by its first records; None where none is of a known format."""
    with file.open() as opened:
        for record in islice(_records(opened, file), LOOKED_AT):
            if isinstance(record, dict):
                for service, recognizes, read in _JSON_FORMATS:
                    if recognizes(record):
                        return service, _json_reader(read)
                if gemini.recognizes(record):
                    return "gemini", _read_gemini
    return None


def _read_gemini(opened: BinaryIO, file: _File) -> Iterator[Item]:
    """Yield the conversations of Gemini's records, and a problem where the file is broken."""
    problems: list[Item] = []

    def without_problems() -> Iterator[Any]:
        for record in _records(opened, file):
            if isinstance(record, Conversation):
                problems.append(record)
            else:
                yield record

    yield from gemini.conversations(without_problems(), file.zone)
    yield from problems


def _json_reader(read: Callable[[dict[str, Any], str], Iterable[Item]]) -> _Reader:
    """Return the reader of a JSON file whose records are read one by one; a bad record does not keep the others out."""

    def items(opened: BinaryIO, file: _File) -> Iterator[Item]:
        for number, record in enumerate(_records(opened, file), 1):
            if isinstance(record, Conversation):
                yield record  # the problem with which `_records` ends
            elif not isinstance(record, dict):
                yield Conversation("", f"record {number} of {file.name}", problem="is no conversation")
            else:
                try:
                    yield from read(record, file.file_at)
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                    title = text_of(record.get("title")) or text_of(record.get("name")) or f"record {number}"
                    problem = f"has a form that is not known ({type(error).__name__}: {error})"
                    yield Conversation("", title, problem=problem)

    return items


def _records(opened: BinaryIO, file: _File) -> Iterator[Any]:
    """Yield the records of a JSON file: of a list, of the list under `conversations`, or the one object that it is.

    Where the file stops being JSON, a conversation without exchanges that has the problem comes last.
    """
    import ijson  # a command that imports nothing needs none of it

    n_records = 0
    try:
        prefix = _prefix(file)
        for record in ijson.items(_Bounded(opened, prefix.count(".") + bool(prefix)), prefix, use_float=True):
            n_records += 1
            yield record
    except (ijson.JSONError, ValueError, *_UNREADABLE) as error:
        problem = f"cannot be read beyond record {n_records} ({_what(error)})"
        problem += "; what came before is taken, so download it again for the rest"
        yield Conversation("", file.name, problem=problem)


def _prefix(file: _File) -> str:
    """Return the place of a JSON file's records, as ijson names it.

    Returns:
        `item` for a file that is a list, `conversations.item` for an object with a list of that name, else "": the
        whole file is one record.
    """
    import ijson  # for one kind of export

    with file.open() as opened:
        events = ijson.parse(_Bounded(opened, 1), use_float=True)
        _, first_event, _ = next(events)
        if first_event == "start_array":
            return "item"
        has_list = any(prefix == "conversations" and event == "start_array" for prefix, event, _ in events)
        return "conversations.item" if has_list else ""


class _Bounded:
    """A JSON file for the parser, without its byte-order mark, that ends with an error before it asks for much memory.

    Args:
        opened: The file.
        level: How many brackets are open between two records: 0 for a file that is one record.
    """

    def __init__(self, opened: BinaryIO, level: int) -> None:
        self._opened, self._level = opened, level
        self._depth, self._record_bytes, self._is_in_text, self._held = 0, 0, False, b""
        # files of the disk and of archives, and `io.BufferedReader`, can all look ahead
        if cast(io.BufferedReader, opened).peek(3).startswith(_MARK):
            opened.read(len(_MARK))

    def read(self, size: int = -1) -> bytes:
        """Read some bytes.

        Raises:
            ValueError: It is nested too deep, or a record is too large.
        """
        content = self._opened.read(size)
        self._record_bytes += len(content)
        # without escaped signs the quotes are those of texts; one that is cut off waits for the rest
        plain = (self._held + content).replace(b"\\\\", b"")
        self._held = b"\\" if plain.endswith(b"\\") else b""
        parts = plain.replace(b'\\"', b"").translate(None, _NO_STRUCTURE).split(b'"')
        for bracket in b"".join(parts[self._is_in_text :: 2]):
            self._depth += 1 if bracket in b"[{" else -1
            if self._depth <= self._level:
                self._record_bytes = len(content)
            if self._depth > MAX_DEPTH:
                raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
        self._is_in_text ^= len(parts) % 2 == 0
        if self._record_bytes > MAX_RECORD_BYTES:
            raise ValueError(f"one record has more than {MAX_RECORD_BYTES:,} bytes")
        return content


_NO_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))


# service, whether a record is of the format, and what reads a record
_JSON_FORMATS: tuple[tuple[str, Callable[[dict[str, Any]], bool], Callable[..., Iterable[Item]]], ...] = (
    ("chatgpt", chatgpt.recognizes, lambda record, file_at: [chatgpt.conversation(record, file_at)]),
    ("claude", claude.recognizes, lambda record, file_at: [claude.conversation(record, file_at)]),
    ("claude", claude.recognizes_notes, claude.notes),
)
