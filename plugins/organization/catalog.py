"""All pages of long-term memory and of the archive, each read once for one run."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.events import PathKind
from brainiac.formats.memory import Memory, parse_memory
from brainiac.storage.files import read_bytes

_KINDS = frozenset({PathKind.MEMORY, PathKind.INDEX_PAGE, PathKind.ARCHIVED})


class Catalog:
    """What stands in long-term memory.

    Args:
        brain: The brain.

    Attributes:
        root: `memory/long_term`, relative.
        archive: `memory/archive`, relative.
        texts: Every readable page by path: memories, index pages, the archive.
        pages: The memories among them.
        place_of: Path by uuid; a uuid that two pages bear is left out, since it names neither.
    """

    def __init__(self, brain: Brain) -> None:
        self._tree = brain.tree
        self.root = brain.tree.relative(brain.tree.long_term)
        self.archive = brain.tree.relative(brain.tree.archive)
        self.texts: dict[str, str] = {}
        self.pages: dict[str, Memory] = {}
        self.uuids: dict[str, str] = {}
        for entry in sorted(brain.tree.walk(brain.tree.long_term, brain.tree.archive), key=lambda entry: entry.path):
            self._read(brain, brain.tree.relative(entry.path))
        bearers = Counter(self.uuids.values())
        self.place_of = {uuid: path for path, uuid in self.uuids.items() if bearers[uuid] == 1}

    def _read(self, brain: Brain, path: str) -> None:
        kind = brain.tree.kind_of(path)
        if kind not in _KINDS:
            return
        try:
            content = read_bytes(brain.tree.absolute(path))  # the walk leaves out links: nothing leads outside
            if content is None:
                return
            text = content.decode("utf-8", "surrogateescape")
            memory = parse_memory(path, text)
        except (FormatError, OSError):
            return  # nobody can tell what it is: it is left where it stands
        self.texts[path] = text
        if memory.uuid:
            self.uuids[path] = memory.uuid
        if kind is PathKind.MEMORY:
            self.pages[path] = memory

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Names that are taken in each folder of long-term memory, files and subfolders, whatever they are."""
        found: dict[str, set[str]] = defaultdict(set)
        for entry in self._tree.walk(self._tree.long_term, self._tree.archive):
            path = self._tree.relative(entry.path)
            while path not in (self.root, self.archive):
                folder, name = posixpath.split(path)
                found[folder].add(name.casefold())
                path = folder
        return found

    @cached_property
    def entries(self) -> dict[str, set[str]]:
        """Memories and subfolders of each folder, as its manifest lists them, by path."""
        found: dict[str, set[str]] = {self.root: set()}
        for path in self.texts:
            if not path.startswith(self.root + "/"):
                continue
            if posixpath.basename(path) == "_index.md":
                path = posixpath.dirname(path)
            for parent, child in _up(path, self.root):
                found.setdefault(parent, set()).add(child)
        return found


def _up(path: str, root: str) -> Iterator[tuple[str, str]]:
    while path != root:
        parent = posixpath.dirname(path)
        yield parent, path
        path = parent
