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
from brainiac.imports import notes
from brainiac.imports.chats import READERS, assistant_of, read_transcript, transcript_lines
from brainiac.imports.records import Conversation, Item, Note, mapping, page_path
from brainiac.tree import is_temporary, slugify

HEAD_BYTES = 65_536  # of a file, by which its format is known
LOOKED_AT = 20  # records of a file, one of which must be of a known format
MAX_RATIO = 300  # of a packed file; real exports shrink to a tenth
MAX_ENTRIES = 500_000
MAX_RECORD_BYTES = 50_000_000  # of one record of a JSON file, which is read into memory as a whole
MAX_DEPTH = 200  # of a JSON file; its parser's memory grows with the square of it, and real exports have 20
# what a broken archive, file or drive makes of reading; a file that is encrypted, or packed in an unknown way
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
_MARK = b"\xef\xbb\xbf"  # the byte-order mark of UTF-8
_SUSPICIOUS_BYTES = 50_000_000  # below this size any ratio is harmless


@dataclass(frozen=True, slots=True)
class Export:
    """A file, or a folder of notes, with something to import.

    Attributes:
        service: The service that it comes from: `chatgpt`, `claude`, …
        size: In bytes, unpacked.
        read: Yields the conversations and notes in it; it takes a function that it calls with the bytes read so far.
    """

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
        file_at: ISO 8601 moment of the file, for texts without a date.
    """

    name: str
    size: int
    open: Callable[[], BinaryIO]
    path: str
    file_at: str


_Reader = Callable[[BinaryIO, _File], Iterable[Item]]


@contextmanager
def opened_exports(path: Path, zone: tzinfo) -> Iterator[tuple[list[Export], list[str]]]:
    """Find what a file, an archive or a folder has to import.

    Args:
        path: As a person named it.
        zone: The person's time zone, for its days.

    Yields:
        The files of a known format, and the names of all others.

    Raises:
        UserError: There is no such file, or it is an archive that must not be unpacked.
    """
    with tempfile.TemporaryDirectory(prefix="brainiac-import-") as scratch:
        exports: list[Export] = []
        others: list[_File] = []
        for file in _files(path, Path(scratch)):
            try:
                service_and_reader = _reader_of(file, zone)
            except _UNREADABLE as error:
                others.append(replace(file, name=f"{file.name} (cannot be read: {_what(error)})"))
                continue
            if service_and_reader:
                service, reader = service_and_reader
                exports.append(Export(service, file.size, partial(_read, reader, file)))
            else:
                others.append(file)
        # Markdown beside conversations explains the export, and is no note of the person's
        has_conversations = any(export.service != "documents" for export in exports)
        note_files = [file for file in others if file.path.lower().endswith((".md", ".markdown"))]
        if note_files and not has_conversations:
            size = sum(file.size for file in note_files)
            exports.append(Export("notes", size, partial(_read_notes, note_files, slugify(path.stem))))
            others = [file for file in others if file not in note_files]
        yield exports, [file.name for file in others]


def _read(reader: _Reader, file: _File, told: Callable[[int], None]) -> Iterator[Item]:
    """Yield what a reader finds in a file; for `Export.read`."""
    try:
        with file.open() as opened:
            for item in reader(opened, file):
                yield item
                told(opened.tell())
    except _UNREADABLE as error:
        yield Conversation("", file.name, problem=f"cannot be read to its end ({_what(error)})")


def _read_notes(files: list[_File], folder: str, told: Callable[[int], None]) -> Iterator[Item]:
    """Yield the notes in files; for `Export.read`. The path of each is `folder/`, then its path below what was named.

    Args:
        files: Markdown files.
        folder: Name of the folder in memory that gets them.
        told: Called with the bytes read so far.
    """
    n_read = 0
    # those first whose names stay as they are: of two notes with one page's name, links between notes lead to it
    for file in sorted(files, key=lambda file: file.path != page_path(file.path)):
        try:
            with file.open() as opened:
                note = notes.note(opened, file.path, file.file_at)
        except _UNREADABLE as error:
            note = Note(file.path, file.path, problem=f"cannot be read ({_what(error)})")
        told(n_read := n_read + file.size)
        yield note if note.problem else replace(note, path=f"{folder}/{note.path}")


def _what(error: Exception) -> str:
    """Return what an error says on one line."""
    return " ".join(str(error).split())[:120] or type(error).__name__


# --- files, archives and folders -------------------------------------------------------------------------------------


def _files(path: Path, scratch: Path) -> Iterator[_File]:
    """Yield the file at a path, or the files in the archive or folder there; `scratch` is for archives in archives.

    Raises:
        UserError: There is no file, or it is an archive that must not be unpacked.
    """
    found = [(path, path.name)] if path.is_file() else []
    if path.is_dir():
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not is_temporary(name))
            files = (Path(folder, name) for name in sorted(names) if not is_temporary(name))
            files = (file for file in files if file.is_file() and not file.is_symlink())
            found += [(file, file.relative_to(path).as_posix()) for file in files]
    elif not found:
        raise UserError(f"{path} is no file and no folder; name what the service sent you, unpacked or not")
    for file, relative in found:
        status = file.stat()
        file_at = iso(datetime.fromtimestamp(status.st_mtime, UTC))
        if zipfile.is_zipfile(file):
            yield from _packed(file, file.name, file_at, scratch)
        else:
            yield _File(relative, status.st_size, cast(Any, partial(file.open, "rb")), relative, file_at)


def _packed(path: Path, name: str, file_at: str, scratch: Path, *, is_inner: bool = False) -> Iterator[_File]:
    """Yield the files in an archive, and those of archives in it, one level deep.

    Args:
        path: The archive.
        name: For a person.
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
            opener = cast(Any, partial(archive.open, entry))
            yield _File(entry_name, entry.file_size, opener, entry.filename, file_at)
        elif not is_inner:
            inner = scratch / f"{len(os.listdir(scratch))}.zip"
            try:
                with archive.open(entry) as source, open(inner, "xb") as target:
                    shutil.copyfileobj(source, target)
            except _UNREADABLE as error:
                raise UserError(f"{entry_name} cannot be unpacked ({_what(error)}); download it again") from error
            yield from _packed(inner, entry_name, file_at, scratch, is_inner=True)


# --- formats ---------------------------------------------------------------------------------------------------------


def _reader_of(file: _File, zone: tzinfo) -> tuple[str, _Reader] | None:
    """Return the service that a file comes from and its reader; None where its format is not known."""
    with file.open() as opened:
        head = opened.read(HEAD_BYTES)
    if head.startswith(b"%PDF-"):
        return "documents", lambda opened, file: [notes.document(opened, file.path, file.file_at)]
    if notes.is_mailbox(head):
        return "mail", lambda opened, file: notes.mails(opened)
    if not head.removeprefix(_MARK).lstrip().startswith((b"[", b"{")):
        return None
    with file.open() as opened:
        names = map(assistant_of, islice(transcript_lines(opened), LOOKED_AT))
        if service := next(filter(None, names), ""):
            return service, lambda opened, file: [
                read_transcript(service, transcript_lines(opened), file.path, file.file_at)
            ]
    with file.open() as opened:
        for record in islice(_records(opened, file, []), LOOKED_AT):
            for service, (recognizes, read) in READERS.items():
                if recognizes(mapping(record)):
                    return service, partial(_read_json, partial(read, zone))
    return None


def _read_json(read: Callable[[Iterator[Any], str], Iterator[Item]], opened: BinaryIO, file: _File) -> Iterator[Item]:
    """Yield what `read` makes of the records of a JSON file, and a problem where the file is broken."""
    problems: list[str] = []
    yield from read(_records(opened, file, problems), file.file_at)
    yield from (Conversation("", file.name, problem=problem) for problem in problems)


def _records(opened: BinaryIO, file: _File, problems: list[str]) -> Iterator[Any]:
    """Yield the records of a JSON file: of a list, of the list under `conversations`, or the one object that it is.

    Where the file stops being JSON, what is wrong is added to the problems.
    """
    import ijson  # a command that imports nothing needs none of it

    n_records = 0
    try:
        with file.open() as looked_at:
            events = ijson.parse(_Bounded(looked_at, 1), use_float=True)
            _, first, _ = next(events)
            is_list = first == "start_array"
            is_named = not is_list and any(each[:2] == ("conversations", "start_array") for each in events)
            # the place of its records, as ijson names it; of an object without that list it is the file itself
            prefix = "item" if is_list else "conversations.item" if is_named else ""
        for record in ijson.items(_Bounded(opened, prefix.count(".") + bool(prefix)), prefix, use_float=True):
            n_records += 1
            yield record
    except (ijson.JSONError, ValueError, *_UNREADABLE) as error:
        problem = f"cannot be read beyond record {n_records} ({_what(error)})"
        problems.append(f"{problem}; what came before is taken, so download it again for the rest")


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
