"""Every text that the journal names, kept by its hash: whole, or as a splice (a difference from an earlier text).

`short_term.md` is rewritten at every exchange; a thousand versions of it must not be a thousand copies: whole they take
31 MB, each compressed by zlib 12 MB, as splices 2 MB.
Plain files: `ab/cdef…` has a text as it is, `ab/cdef….splice` one line of JSON
(`{"base": hash, "start": offset, "removed": bytes, "depth": n}`) and then the bytes to insert.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brainiac.errors import BlobError, ConfinementError
from brainiac.events import content_hash
from brainiac.storage.files import Disk, make_folders, read_bytes, temporary_beside

MAX_DEPTH = 32
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

    def to_bytes(self) -> bytes:
        header = {"base": self.base, "start": self.start, "removed": self.removed, "depth": self.depth}
        return json.dumps(header, separators=(",", ":")).encode() + b"\n" + self.inserted

    @classmethod
    def from_bytes(cls, raw: bytes) -> _Splice:
        header, _, inserted = raw.partition(b"\n")
        return cls(inserted=inserted, **json.loads(header))

    def apply(self, base: bytes) -> bytes:
        return base[: self.start] + self.inserted + base[self.start + self.removed :]


class BlobStore:
    """Texts by content hash.

    Args:
        folder: Where they lie; made with the first one.
        disk: What writes.
    """

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.folder, self._disk = folder, disk or Disk()

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
        if digest in self and (not is_verified or self._has_intact(digest, content)):
            return digest
        splice = self._splice(content, base) if base and base != digest else None
        if splice is None:
            self._write_file(self._whole_path(digest), content)
        else:
            self._write_file(self._splice_path(digest), splice.to_bytes())
        return digest

    def get(self, digest: str) -> bytes:
        """Return a text.

        Raises:
            BlobError: The text, or one that it is spliced on, is missing or damaged.
        """
        splices: list[_Splice] = []
        base = digest
        # from splice to splice back to a text that is stored whole
        while (content := read_bytes(self._whole_path(base))) is None:
            raw = read_bytes(self._splice_path(base))
            if raw is None or len(splices) > 2 * MAX_DEPTH:
                raise BlobError(f"the text {digest[:12]}… is not in {self.folder}; restore it from a backup or sync")
            splices.append(self._parse(base, raw))
            base = splices[-1].base
        for splice in reversed(splices):
            content = splice.apply(content)
        if content_hash(content) != digest:
            raise BlobError(f"the text {digest[:12]}… in {self.folder} is damaged; restore it from a backup or sync")
        return content

    def digests(self) -> Iterator[str]:
        """Yield the hash of every text that is kept."""
        for path in self.folder.glob("??/*"):
            if not path.name.startswith("."):
                yield path.parent.name + path.name.removesuffix(SPLICE_SUFFIX)

    def delete(self, *digests: str) -> None:
        """Destroy texts for good; other texts that are splices on them are written out whole first."""
        deleted = set(digests)
        # before anything is deleted, so that a crash in the middle leaves every other text readable
        for dependent, base in list(self._splices()):
            if base in deleted and dependent not in deleted:
                path = self._whole_path(dependent)
                self._write_file(path, self.get(dependent))
                self._disk.fsync(path)
                self._disk.unlink(self._splice_path(dependent))
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

    def _has_intact(self, digest: str, content: bytes) -> bool:
        """Return whether a stored text can be read back unchanged."""
        try:
            return self.get(digest) == content
        except BlobError:
            return False

    def _write_file(self, path: Path, content: bytes) -> None:
        """Write a file of the store so that readers see it whole or not at all."""
        if path.parent.is_symlink():  # a checkout may bring a link here: texts are never written outside the brain
            raise ConfinementError(f"{path.parent} is a link; put a folder there: texts are kept within the brain")
        make_folders(self._disk, path.parent)
        temporary = Path(temporary_beside(str(path)))
        # the name is the hash of the content: a torn file under it would pass for the text
        self._disk.write(temporary, content)
        self._disk.replace(temporary, path)

    def _parse(self, digest: str, raw: bytes) -> _Splice:
        """Return the splice in the bytes of a file.

        Raises:
            BlobError: They are no splice.
        """
        try:
            return _Splice.from_bytes(raw)
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
        raw = None if self._whole_path(digest).exists() else read_bytes(self._splice_path(digest))
        return 0 if raw is None else self._parse(digest, raw).depth

    def _splices(self) -> Iterator[tuple[str, str]]:
        """Yield the hash of each text that is stored as a splice, and that of its base."""
        for path in self.folder.glob(f"??/*{SPLICE_SUFFIX}"):
            with open(path, "rb") as file:
                header = file.readline()
            digest = path.parent.name + path.name.removesuffix(SPLICE_SUFFIX)
            yield digest, self._parse(digest, header).base


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
