"""Who links to whom: the uuid in a link's title is the truth, its path is what editors follow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from brainiac.events import PathKind
from brainiac.tree import Tree


class Link(NamedTuple):
    """A link found on a page: the identity it names, if any, and the path it leads to, relative to the root.

    A wiki link has no path but a name, which stands in `path` as `wiki_name` gives it.
    """

    uuid: str
    path: str

    @property
    def target(self) -> str:
        """What it is looked up by: the uuid is the truth."""
        return self.uuid or self.path


def wiki_name(name: str) -> str:
    """Return the form in which a wiki link's name is compared: `[[folder/name]]`, without capitals and `.md`."""
    return f"[[{name.strip().strip('/').casefold().removesuffix('.md')}]]"


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """A page as the link graph sees it."""

    path: str
    uuid: str
    title: str
    at: str
    links: tuple[Link, ...]


class LinkGraph:
    """The links of a brain at one moment.

    Args:
        pages: Every page with its links.
        tree: The brain's places.

    Attributes:
        pages: Every page by its path.
    """

    def __init__(self, pages: Iterable[LinkedPage], tree: Tree) -> None:
        self._tree = tree
        self.pages = {page.path: page for page in pages}
        self._path_of = {page.uuid: page.path for page in self.pages.values() if page.uuid}

    def path_of(self, uuid: str) -> str:
        """Return the path of the page with a uuid; "" when there is none."""
        return self._path_of.get(uuid, "")

    def resolve(self, link: Link) -> str:
        """Return the path a link means; "" when there is no such page or file."""
        if link.path.startswith("[["):
            return self._path_by_name.get(link.path, "")
        # a page that was moved keeps its uuid; the path in the link may be its old one
        if link.uuid in self._path_of:
            return self._path_of[link.uuid]
        if link.path in self.pages or (not link.uuid and self._tree.holds(link.path)):
            return link.path
        return ""

    @cached_property
    def _path_by_name(self) -> Mapping[str, str]:
        """Path by the name of a wiki link; of several pages the one with the shortest path, as Obsidian has it."""
        paths: dict[str, str] = {}
        titles: dict[str, str] = {}
        for page in sorted(self.pages.values(), key=lambda page: (page.path.count("/"), page.path)):
            parts = page.path.split("/")
            for start in range(len(parts)):  # its file's name, with any of the folders above it
                paths.setdefault(wiki_name("/".join(parts[start:])), page.path)
            titles.setdefault(wiki_name(page.title), page.path)
        return titles | paths  # a file's name comes before another's title

    def forward(self, name: str) -> list[str]:
        """Return the paths that a page, named by path or uuid, links to."""
        page = self.pages.get(self._path_of.get(name, name))
        return list(dict.fromkeys(filter(None, map(self.resolve, page.links)))) if page else []

    def back(self, name: str) -> list[str]:
        """Return the paths of the pages that link to a page, named by path or uuid."""
        return sorted(self._back.get(self._path_of.get(name, name), ()))

    @cached_property
    def _back(self) -> dict[str, set[str]]:
        """The paths of the pages that link to each path."""
        back: dict[str, set[str]] = defaultdict(set)
        for source, target in self._edges():
            back[target].add(source)
        return back

    def _edges(self) -> Iterator[tuple[str, str]]:
        """Yield each link between two pages as source and target; links that lead nowhere are left out."""
        for page in self.pages.values():
            for link in page.links:
                target = self.resolve(link)
                if target and target != page.path:
                    yield page.path, target

    def orphans(self) -> list[str]:
        """Return memories that no page links to and that link to none; index pages aside."""
        return [path for path in self._memories() if not self.forward(path) and not self._back.get(path)]

    def hubs(self) -> list[tuple[LinkedPage, int]]:
        """Return memories with the number of their connections, most first, ties by the latest change."""
        memories = set(self._memories())
        edges: Counter[str] = Counter()
        # a pair of pages is one connection, whichever way and however often they link
        for pair in {tuple(sorted(pair)) for pair in self._edges()}:
            if memories.issuperset(pair):
                edges.update(pair)
        ranked = sorted(edges, key=lambda path: (edges[path], self.pages[path].at, path), reverse=True)
        return [(self.pages[path], edges[path]) for path in ranked]

    def _memories(self) -> Iterator[str]:
        return (path for path in self.pages if self._tree.kind_of(path) is PathKind.MEMORY)
