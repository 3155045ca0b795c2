"""What happens in a brain, as values: events of the journal, the changes they make, and what is seen in the tree."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import uuid_utils


def new_id(after: str = "") -> str:
    """Return a new UUIDv7 as text: unique across devices and ascending in time.

    Args:
        after: The last id given, which the new one follows although the clock was put back.
    """
    fresh = str(uuid_utils.uuid7())
    if fresh > after:
        return fresh
    next_millisecond, random_bits = (uuid.UUID(after).int >> 80) + 1, uuid.UUID(fresh).int & (1 << 80) - 1
    return str(uuid.UUID(int=next_millisecond << 80 | random_bits))


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's bytes as lower-case hex; the identity of a text everywhere."""
    return hashlib.sha256(content).hexdigest()


Op = Literal["create", "update", "remove", "move", "append", "observe"]


@dataclass(frozen=True, slots=True)
class Change:
    """One file's part in a commit. Make them with the functions below.

    Attributes:
        op: `create` (must not exist), `update` (must hold `before`), `remove` (must hold `before`),
            `move` (from `source`, which must hold `before`, to `path`), `append` (log lines; never merged
            nor folded), `observe` (only record what stands there, e.g. the prompt that was answered).
        path: Relative, posix.
        before: The bytes the decision was made on; None where nothing stood.
        after: The bytes to stand there; None when removed.
        source: Where a move comes from.
    """

    op: Op
    path: str
    before: bytes | None = None
    after: bytes | None = None
    source: str | None = None


def create(path: str, text: str | bytes) -> Change:
    """Make a new file."""
    return Change("create", path, None, _bytes(text))


def update(path: str, before: str | bytes, after: str | bytes) -> Change:
    """Replace a file's text that was read as `before`."""
    return Change("update", path, _bytes(before), _bytes(after))


def remove(path: str, before: str | bytes) -> Change:
    """Remove a file that was read as `before`; its text stays in the journal's blobs."""
    return Change("remove", path, _bytes(before), None)


def move(source: str, path: str, before: str | bytes, after: str | bytes | None = None) -> Change:
    """Move a file, changing its text on the way when `after` is given."""
    return Change("move", path, _bytes(before), _bytes(before if after is None else after), source)


def append(path: str, text: str | bytes) -> Change:
    """Add whole lines to a log."""
    return Change("append", path, None, _bytes(text))


def observe(path: str, content: bytes) -> Change:
    """Record a file as it was read, without writing it."""
    return Change("observe", path, None, content)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change as the journal keeps it: hashes in place of texts."""

    op: Op
    path: str
    before: str | None
    after: str | None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One journal line.

    Attributes:
        seq: Order on its device, from 1 without gaps; 0 before it is recorded.
        id: UUIDv7.
        at: ISO 8601 UTC.
        kind: Past tense with hyphens, `prompt-answered`.
        by: Who did it: a plugin's name, `person`, `kernel`, `cli`.
        cause: The id of the event that led here, or None.
        data: Plain JSON values.
        changes: What it did to the tree.
    """

    seq: int
    id: str
    at: str
    kind: str
    by: str
    cause: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[RecordedChange, ...] = ()


class PathKind(StrEnum):
    """What a path in the tree is for; decided by `Tree.kind_of` from the path alone."""

    PROMPT = "prompt"
    CAPTURE = "capture"  # inbox/notes/: remembered, not answered
    RESPONSE = "response"
    ERROR = "error"
    SHORT_TERM = "short-term"
    MEMORY = "memory"
    INDEX_PAGE = "index-page"
    ARCHIVED = "archived"
    REVIEW = "review"
    CONFIG = "config"
    SYSTEM = "system"
    PLUGIN = "plugin"
    ACCESS_LOG = "access-log"
    JOURNAL = "journal"
    IGNORED = "ignored"  # hidden, temporary, sync-conflict and our own temporary names
    OTHER = "other"


Action = Literal["created", "modified", "deleted", "moved"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """Something seen in the tree, whoever did it.

    Attributes:
        action: What happened as far as can be told; consumers must cope with a wrong guess.
        path: Relative, posix; for a move the new place.
        kind: What the path is for.
        old_path: Where a moved file was.
        is_ours: The content is byte for byte what our last commit left there.
    """

    action: Action
    path: str
    kind: PathKind
    old_path: str | None = None
    is_ours: bool = False
