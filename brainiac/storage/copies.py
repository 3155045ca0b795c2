"""Copies that sync services make of a file that changed on two devices: known by their names.

A name such as `bob 2.md` may well be meant. It counts as a copy where `bob.md` stands beside it with the same uuid
(`lineage.new_paths`); without one both files stay as they are.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from contextlib import suppress

from brainiac.events import content_hash
from brainiac.storage.files import read_bytes
from brainiac.tree import Tree

_SURE = re.compile(
    r"(.+?)(?:\.sync-conflict-\d{8}-\d{6}(?:-\w+)?| \([^()]*conflicted copy[^()]*\)|_conflict-(?:\w+-)?\d{8}-\d{4,6})"
    r"(\.[a-z]+)",
    re.IGNORECASE,
)
_PERHAPS = re.compile(r"(.+?)(?: \d+| \([^()]*\)|\.conflict\d*)", re.IGNORECASE)


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
            is_copy = original_of(beside.name) == file.name or possible_original(beside.name, {file.name})
            if is_copy and (content := read_bytes(beside)) is not None and content_hash(content) == digest:
                return True
    return False


def possible_original(path: str, paths: Collection[str]) -> str:
    """Return the file that one of this name may be a copy of: `a.md` for `a 2.md`, `a (Ann).md` and `a-Ann.md`.

    Args:
        path: A file's path, or its name.
        paths: The files that may be the original, likewise; "" is returned where none is.
    """
    folder, name = posixpath.split(path)
    stem, dot, ending = name.rpartition(".")
    if not dot or ending not in ("md", "yaml"):
        return ""
    stems = [match[1]] if (match := _PERHAPS.fullmatch(stem)) else []
    stems += [stem[:at] for at, sign in enumerate(stem) if sign == "-" and at]
    originals = (posixpath.join(folder, f"{each}.{ending}") for each in stems)
    return next((original for original in originals if original in paths), "")
