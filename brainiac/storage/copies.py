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

Stamp = tuple[int, int]


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
    """Return the file of which a path is a copy although its name could be meant; None for a file of its own.

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
    """Yield the names that a file would have of which one of this name is a copy.

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
    """Return whether copies of this kind of file are looked for: a prompt may be asked twice, all else is kept once."""
    kind = tree.kind_of(path)
    is_beside = kind is PathKind.OTHER and path.startswith(f"{tree.layout.memory}/")
    return is_beside or kind in (PathKind.MEMORY, PathKind.ARCHIVED, PathKind.RESPONSE, PathKind.SYSTEM)


def _is_copy(tree: Tree, path: str, original: str) -> bool:
    """Return whether a file is a copy of another by their contents, as they stand now."""
    stamps = [_stamp(tree, each) for each in (path, original)]
    return None not in stamps and _are_copies(str(tree.root), path, original, *stamps)


def _stamp(tree: Tree, path: str) -> Stamp | None:
    try:
        status = os.stat(f"{tree.root}/{path}", follow_symlinks=False)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4096)
def _are_copies(root: str, path: str, original: str, *stamps: Stamp | None) -> bool:
    """Compare two files; cached for as long as their stamps stay, since every look at the tree asks."""
    if any(stamp and stamp[1] > _MAX_BYTES for stamp in stamps):
        return False
    texts = []
    for each in (path, original):
        content = None
        with suppress(OSError):
            content = read_bytes(Path(root, each))
        if content is None:
            return False
        texts.append(content)
    identities = [match[1] if (match := _IDENTITY.search(text[:_HEAD_BYTES])) else None for text in texts]
    if identities[0] and identities[1]:
        return identities[0] == identities[1]
    return not any(identities) and _are_alike(*texts)


def _are_alike(text: bytes, other: bytes) -> bool:
    """Return whether two texts share at least four fifths of their lines."""
    lines, others = (Counter(line for line in each.split(b"\n") if line.strip()) for each in (text, other))
    total = lines.total() + others.total()
    return total > 0 and 2 * (lines & others).total() >= _SAME_SHARE * total
