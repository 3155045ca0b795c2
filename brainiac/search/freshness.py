"""Which files the index has not taken in yet: kept by stat, so that a check at start reads no file."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping
from typing import TypeAlias

from brainiac.search.documents import SEARCHED
from brainiac.tree import Tree, is_temporary

Stamp: TypeAlias = tuple[int, int]
_PLAIN = re.compile(r"(?!4913$)[A-Za-z0-9_-]+(?:\.md)?$")


def stamp_of(tree: Tree, path: str) -> Stamp | None:
    """Return a file's modification time in ns and its size; None when no regular file is there."""
    try:
        found = os.lstat(f"{tree.root}/{path}")
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def searched_files(tree: Tree) -> dict[str, Stamp]:
    """Return every file that is searched, with its stamp."""
    found: dict[str, Stamp] = {}
    short_term = tree.relative(tree.short_term)
    if stamp := stamp_of(tree, short_term):
        found[short_term] = stamp
    for top in (tree.long_term, tree.archive):
        stack = [(str(top), tree.relative(top))]
        while stack:
            folder, relative = stack.pop()
            with contextlib.suppress(OSError):  # gone since it was listed
                stack += _look_into(folder, relative, found)
    return found


def _look_into(folder: str, relative: str, found: dict[str, Stamp]) -> list[tuple[str, str]]:
    """Add a folder's files and return its folders: what `Tree.walk` would, plain names looked at no closer."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if not _PLAIN.match(name) and is_temporary(name):
                continue
            if entry.is_file(follow_symlinks=False):
                if name.endswith(".md"):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # gone since the folder was listed
                    found[f"{relative}/{name}"] = status.st_mtime_ns, status.st_size
            elif entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, f"{relative}/{name}"))
    return folders


def difference(tree: Tree, known: Mapping[str, Stamp]) -> tuple[list[str], list[str]]:
    """Return the paths to be read, new or changed, and those that are gone."""
    found = searched_files(tree)
    if found == known:  # as a rule, and told in a tenth of the time
        return [], []
    changed = [path for path, stamp in found.items() if known.get(path) != stamp]
    return changed, [path for path in known if path not in found]


def is_searched(tree: Tree, path: str) -> bool:
    """Tell whether a path is one that search looks into."""
    return tree.kind_of(path) in SEARCHED
