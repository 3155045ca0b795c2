"""Copies that sync services make of a file that changed on two devices: known by their names, or by what they hold.

A name such as `bob 2.md` may well be meant. It counts as a copy where a file without that ending stands beside it and
both have the same uuid, or, without one, nearly the same lines.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from brainiac.events import PathKind, content_hash
from brainiac.storage.files import read_bytes
from brainiac.tree import Tree

_SURE = re.compile(
    r"(.+?)(?:\.sync-conflict-\d{8}-\d{6}(?:-\w+)?| \([^()]*conflicted copy[^()]*\)|_conflict-(?:\w+-)?\d{8}-\d{4,6})"
    r"(\.[a-z]+)",
    re.IGNORECASE,
)
_PERHAPS = re.compile(r"(.+?)(?: \d+| \([^()]*\)|\.conflict\d*)", re.IGNORECASE)
_IDENTITY = re.compile(rb"^(?:uuid|brain_id|prompt_id):[ \t]*(\S+)", re.MULTILINE)
_HEAD_BYTES = 4096
_SAME_SHARE = 0.8  # of the lines of both
_MAX_BYTES = 2_000_000


class _Stamp(NamedTuple):
    """By which a changed file is noticed."""

    modified_ns: int
    size: int


def original_of(path: str) -> str | None:
    """Return the path of the file of which a path is a sync-conflict copy, by its name; None for any other name."""
    folder, _, name = path.rpartition("/")
    match = _SURE.fullmatch(name)
    return posixpath.join(folder, f"{match[1]}{match[2]}") if match else None


def has_copy(tree: Tree, path: str, digest: str) -> bool:
    """Return whether a conflict copy of a file stands beside it that has a certain content.

    Args:
        tree: The brain's folder.
        path: The file, relative.
        digest: The content hash.
    """
    file = tree.absolute(path)
    with suppress(OSError):
        for beside in file.parent.iterdir():
            is_copy = original_of(beside.name) == file.name or file.name in possible_originals(beside.name)
            if is_copy and (content := read_bytes(beside)) is not None and content_hash(content) == digest:
                return True
    return False


def twin_of(tree: Tree, path: str) -> str | None:
    """Return the file that a file is a copy of by what both hold, where its name alone does not say; None for no copy.

    Args:
        tree: The brain's folder.
        path: Relative, posix.
    """
    if not _may_be_copy(tree, path):
        return None
    folder, _, name = path.rpartition("/")
    for original in possible_originals(name):
        beside = posixpath.join(folder, original)
        if _is_copy(tree, path, beside):
            return beside
    return None


def possible_originals(name: str, names: Collection[str] | None = None) -> Iterator[str]:
    """Yield the names of files that one of this name may be a copy of: `a.md` for `a 2.md`, `a (Ann).md`, `a-Ann.md`.

    Args:
        name: A file's name.
        names: All names of its folder; None: whether such a file exists is not looked at.
    """
    stem, dot, ending = name.rpartition(".")
    if not dot or ending not in ("md", "yaml"):
        return
    stems = [match[1]] if (match := _PERHAPS.fullmatch(stem)) else []
    stems += [stem[:at] for at, sign in enumerate(stem) if sign == "-" and at]
    yield from (f"{each}.{ending}" for each in stems if names is None or f"{each}.{ending}" in names)


def _may_be_copy(tree: Tree, path: str) -> bool:
    """Return whether copies of this kind of file are looked for; not of prompts, since one may be asked twice."""
    kind = tree.kind_of(path)
    is_other_in_memory = kind is PathKind.OTHER and path.startswith(f"{tree.layout.memory}/")
    return is_other_in_memory or kind in (PathKind.MEMORY, PathKind.ARCHIVED, PathKind.RESPONSE, PathKind.SYSTEM)


def _is_copy(tree: Tree, path: str, original: str) -> bool:
    """Return whether a file is a copy of another by their contents, as they stand now."""
    stamp, original_stamp = _stamp(tree, path), _stamp(tree, original)
    if stamp is None or original_stamp is None or max(stamp.size, original_stamp.size) > _MAX_BYTES:
        return False
    return _are_copies(str(tree.root), path, original, stamp, original_stamp)


def _stamp(tree: Tree, path: str) -> _Stamp | None:
    """Return the stamp of a file; None where there is none."""
    try:
        status = os.stat(f"{tree.root}/{path}", follow_symlinks=False)
    except OSError:
        return None
    return _Stamp(status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _are_copies(root: str, path: str, original: str, *stamps: _Stamp) -> bool:
    """Compare two files; cached for as long as their stamps stay, since every look at the tree asks."""
    try:
        text, other = read_bytes(Path(root, path)), read_bytes(Path(root, original))
    except OSError:
        return False
    if text is None or other is None:
        return False
    ids = [match[1] for each in (text, other) if (match := _IDENTITY.search(each[:_HEAD_BYTES]))]
    if len(ids) == 2:
        return ids[0] == ids[1]
    return not ids and _are_alike(text, other)


def _are_alike(text: bytes, other: bytes) -> bool:
    """Return whether two texts share at least four fifths of their lines."""
    lines, others = (Counter(line for line in each.split(b"\n") if line.strip()) for each in (text, other))
    total = lines.total() + others.total()
    return total > 0 and 2 * (lines & others).total() >= _SAME_SHARE * total
