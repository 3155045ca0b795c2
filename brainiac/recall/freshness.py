"""Which files the index has not taken in yet: kept by stat, so that a check at start reads no file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from brainiac.recall.documents import SEARCHED
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


def searched_files(tree: Tree) -> Iterator[tuple[str, Stamp]]:
    """Yield every file that is searched, with its stamp."""
    start = len(str(tree.root)) + 1
    short_term = tree.relative(tree.short_term)
    if stamp := stamp_of(tree, short_term):
        yield short_term, stamp
    for top in (tree.long_term, tree.archive):
        for entry in _markdown(str(top)):
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since the folder was listed
            yield entry.path[start:].replace(os.sep, "/"), (found.st_mtime_ns, found.st_size)


def _markdown(top: str) -> Iterator[os.DirEntry[str]]:
    """Yield what `Tree.walk` would of Markdown files, in half the time: plain names need no closer look."""
    stack = [top]
    while stack:
        try:
            entries = os.scandir(stack.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if not _PLAIN.match(name) and is_temporary(name):
                    continue
                if entry.is_file(follow_symlinks=False):
                    if name.endswith(".md"):
                        yield entry
                elif entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)


def difference(tree: Tree, known: Mapping[str, Stamp]) -> tuple[list[str], list[str]]:
    """Return the paths to be read, new or changed, and those that are gone."""
    unseen = set(known)
    changed = []
    for path, stamp in searched_files(tree):
        unseen.discard(path)
        if known.get(path) != stamp:
            changed.append(path)
    return changed, list(unseen)


def is_searched(tree: Tree, path: str) -> bool:
    """Tell whether a path is one that search looks into."""
    return tree.kind_of(path) in SEARCHED
