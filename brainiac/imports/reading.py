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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.imports import chatgpt, claude, copilot, gemini, notes, transcripts
from brainiac.imports.records import Conversation, Item, text_of
from brainiac.tree import is_temporary, slugify

HEAD_BYTES = 65_536  # of a file, by which its format is known
LOOKED_AT = 20  # records of an array, one of which must be of a known format
MAX_RATIO = 300  # of a packed file; real exports shrink to a tenth
MAX_ENTRIES = 500_000
MAX_OBJECT_BYTES = 100_000_000  # of a JSON file that is no list and has to be read as a whole
_NOTES = (".md", ".markdown")
_SUSPICIOUS_BYTES = 50_000_000  # below this size any ratio is harmless


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader has to know besides the file.

    Attributes:
        zone: The person's time zone, for moments that name none.
        written: ISO 8601 moment of the file, for what has no date at all.
    """

    zone: tzinfo = UTC
    written: str = ""


@dataclass(frozen=True, slots=True)
class Export:
    """A file with something to import.

    Attributes:
        name: As a person sees it; of a packed file with the archive's name before it.
        service: What it comes from: `chatgpt`, `claude`, …
        size: In bytes, unpacked.
        read: Yields what the file holds; called with a function that is told each number of bytes read.
    """

    name: str
    service: str
    size: int
    read: Callable[[Callable[[int], None]], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class _File:
    """A file or a packed file, before its format is known."""

    name: str
    size: int
    open: Callable[[], BinaryIO]
    context: Context
    inner_path: str = ""  # relative to the folder or archive that was named


_Reader = Callable[[BinaryIO, _File], Iterator[Item]]


@contextmanager
def opened_exports(path: Path, zone: tzinfo = UTC) -> Iterator[tuple[list[Export], list[str]]]:
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
            reader = _reader_of(file)
            if reader is None:
                others.append(file)
            else:
                exports.append(Export(file.name, reader[0], file.size, _read_with(reader[1], file)))
        # beside conversations Markdown is what a program explains itself with, and no note of the person's
        is_export = any(export.service != "documents" for export in exports)
        texts = [] if is_export else [file for file in others if file.name.lower().endswith(_NOTES)]
        if texts:
            size = sum(file.size for file in texts)
            exports += [Export(path.name, "notes", size, partial(_read_notes, texts, slugify(path.stem)))]
        yield exports, [file.name for file in others if file not in texts]


def _read_notes(files: list[_File], folder: str, count: Callable[[int], None]) -> Iterator[Item]:
    """Yield the notes of a folder; each keeps its place in it."""
    for file in files:
        with file.open() as opened:
            note = notes.note(opened, file.inner_path, file.context.written)
        count(file.size)
        yield note if note.problem else replace(note, path=f"{folder}/{note.path}")


def _read_with(reader: _Reader, file: _File) -> Callable[[Callable[[int], None]], Iterator[Item]]:
    """Return the function that reads a file with a reader, counting bytes."""

    def read(count: Callable[[int], None]) -> Iterator[Item]:
        with file.open() as raw, _Counted(raw, count) as counted:
            yield from reader(cast(BinaryIO, io.BufferedReader(counted, HEAD_BYTES)), file)

    return read


class _Counted(io.RawIOBase):
    """A file of which each read is reported.

    Args:
        file: What is read.
        count: Called with the number of bytes of each read.
    """

    def __init__(self, file: BinaryIO, count: Callable[[int], None]) -> None:
        self._file, self._count = file, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        self._count(len(content))
        return len(content)


# --- files, archives and folders -------------------------------------------------------------------------------------


def _files(path: Path, zone: tzinfo, scratch: Path) -> Iterator[_File]:
    """Yield the files at a path: itself, or what an archive or a folder holds."""
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


def _files_at(path: Path, inner_path: str, zone: tzinfo, scratch: Path) -> Iterator[_File]:
    """Yield a file of the disk, or the files in it where it is an archive."""
    status = path.stat()
    context = Context(zone, iso(datetime.fromtimestamp(status.st_mtime, UTC)))
    if zipfile.is_zipfile(path):
        yield from _packed(path, path.name, context, scratch, depth=0)
    else:
        yield _File(inner_path, status.st_size, lambda: path.open("rb"), context, inner_path)


def _packed(path: Path, name: str, context: Context, scratch: Path, depth: int) -> Iterator[_File]:
    """Yield the files in an archive, and those of archives in it, one level deep.

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
        if entry.file_size > max(_SUSPICIOUS_BYTES, MAX_RATIO * entry.compress_size):
            raise UserError(f"{name}: {entry.filename} would unpack to {entry.file_size} bytes; it is not read")
        if entry.flag_bits & 1:
            raise UserError(f"{name} is encrypted; unpack it with its password and name the folder")
        if is_temporary(entry.filename.rpartition("/")[2]):
            continue
        shown = f"{name}/{entry.filename}"
        if entry.filename.lower().endswith(".zip"):
            if depth == 0:
                inner = scratch / f"{len(os.listdir(scratch))}.zip"
                with archive.open(entry) as source, open(inner, "xb") as target:
                    shutil.copyfileobj(source, target)
                yield from _packed(inner, shown, context, scratch, depth + 1)
            continue
        yield _File(shown, entry.file_size, _opener(archive, entry), context, entry.filename)


def _opener(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], BinaryIO]:
    return lambda: cast(BinaryIO, archive.open(entry))


# --- formats ---------------------------------------------------------------------------------------------------------


def _reader_of(file: _File) -> tuple[str, _Reader] | None:
    """Return the service that a file comes from and what reads it; None where its format is not known."""
    with file.open() as opened:
        raw = opened.read(HEAD_BYTES)
    head = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    match head.lstrip()[:1]:
        case "[" | "{":
            return _transcript_reader_of(file) or _json_reader_of(file)
        case "<" if gemini.recognizes_page(head):
            return "gemini", lambda opened, file: gemini.conversations_of_page(opened, file.context.zone)
    if copilot.recognizes(head):
        return "copilot", lambda opened, file: copilot.conversations(opened, file.context.zone, file.context.written)
    if raw.startswith(b"%PDF-"):
        return "documents", _read_document
    if notes.is_mailbox(raw):
        return "mail", lambda opened, file: notes.mails(opened)
    return None


def _read_document(opened: BinaryIO, file: _File) -> Iterator[Item]:
    yield notes.document(opened, file.inner_path, file.context.written)


def _transcript_reader_of(file: _File) -> tuple[str, _Reader] | None:
    """Return service and reader of a file of lines, each a JSON object, by its first lines."""
    with file.open() as opened:
        names = (transcripts.service_of(record) for record in islice(transcripts.lines(opened), LOOKED_AT))
        service = next(filter(None, names), "")
    return (service, partial(_read_transcript, service)) if service else None


def _read_transcript(service: str, opened: BinaryIO, file: _File) -> Iterator[Item]:
    yield transcripts.conversation(service, transcripts.lines(opened), file.inner_path, file.context.written)


def _json_reader_of(file: _File) -> tuple[str, _Reader] | None:
    """Return service and reader of a JSON file, by its first records."""
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
    """Yield the conversations of Gemini's records, and where its file is broken."""
    problems: list[Item] = []

    def whole() -> Iterator[Any]:
        for record in _records(opened, file):
            if isinstance(record, _Broken):
                problems.append(Conversation("", file.name, problem=record.problem))
            else:
                yield record

    yield from gemini.conversations(whole(), file.context.zone)
    yield from problems


def _json_reader(read: Callable[[dict[str, Any], str], Iterator[Item]]) -> _Reader:
    """Return the reader of a JSON file whose records are read one by one; a bad one does not keep the others out."""

    def items(opened: BinaryIO, file: _File) -> Iterator[Item]:
        for number, record in enumerate(_records(opened, file), 1):
            if isinstance(record, _Broken):
                yield Conversation("", file.name, problem=record.problem)
            elif not isinstance(record, dict):
                yield Conversation("", f"record {number} of {file.name}", problem="is no conversation")
            else:
                try:
                    yield from read(record, file.context.written)
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                    title = text_of(record.get("title")) or text_of(record.get("name")) or f"record {number}"
                    problem = f"has a form that is not known ({type(error).__name__}: {error})"
                    yield Conversation("", title, problem=problem)

    return items


@dataclass(frozen=True, slots=True)
class _Broken:
    """Where a file stops being JSON."""

    problem: str


def _records(opened: BinaryIO, file: _File) -> Iterator[Any]:
    """Yield the records of a JSON file: of a list, of the list under `conversations`, or the one object that it is."""
    import ijson  # a command that imports nothing needs none of it

    reader = _without_mark(opened)
    count = 0
    try:
        prefix = _prefix(file)
        if prefix == "" and file.size > MAX_OBJECT_BYTES:
            yield _Broken("is one object of more than 100 MB, and no list of conversations")
            return
        for record in ijson.items(reader, prefix, use_float=True):
            count += 1
            yield record
    except (ijson.JSONError, UnicodeDecodeError, zipfile.BadZipFile, EOFError, OSError) as error:
        problem = f"cannot be read beyond record {count} ({' '.join(str(error).split())[:120]})"
        yield _Broken(f"{problem}; what came before is taken, so download it again for the rest")


def _prefix(file: _File) -> str:
    """Return the place of a JSON file's records, as ijson names it; "" for the whole."""
    import ijson  # for one kind of export

    with file.open() as opened:
        events = ijson.parse(_without_mark(opened), use_float=True)
        if next(events)[1] == "start_array":
            return "item"
        return next(("conversations.item" for prefix, event, _ in events if (prefix, event) == _LIST), "")


_LIST = ("conversations", "start_array")


def _without_mark(opened: BinaryIO) -> Any:
    """Return a file that is read after its byte-order mark, which the parser does not know."""
    first = opened.read(3)
    rest = b"" if first == b"\xef\xbb\xbf" else first
    return _Chained(rest, opened)


class _Chained:
    """Some bytes, and then a file."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if not self._first or size == 0:
            return self._rest.read(size)
        first, self._first = self._first, b""
        return first


def _chatgpt(record: dict[str, Any], written: str) -> Iterator[Item]:
    yield chatgpt.conversation(record, written)


def _claude(record: dict[str, Any], written: str) -> Iterator[Item]:
    yield claude.conversation(record, written)


_JSON_FORMATS: tuple[tuple[str, Callable[[dict[str, Any]], bool], Callable[..., Iterator[Item]]], ...] = (
    ("chatgpt", chatgpt.recognizes, _chatgpt),
    ("claude", claude.recognizes, _claude),
    ("claude", claude.recognizes_notes, claude.notes),
)
