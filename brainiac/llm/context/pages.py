"""Which page a link means: by uuid, path, file name or title, as people and models write them (seeds R1, R6)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from itertools import islice
from urllib.parse import unquote

from brainiac.library import Library
from brainiac.llm.gate import Gate
from brainiac.search.links import Hub, LinkedPage, LinkGraph

_WIKILINK = re.compile(r"!?\[\[([^\[\]\n]{1,300})\]\]")
_MARKDOWN_LINK = re.compile(r'(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^)<>\n"]{1,500}?)>?(?:\s+"([^"\n]*)")?\)')
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def links_in(text: str) -> list[str]:
    """Return the links of a prompt to notes, as written, each once; addresses on the web are left out."""
    found = [match for pattern in (_WIKILINK, _MARKDOWN_LINK) for match in pattern.finditer(text)]
    found.sort(key=lambda match: match.start())
    texts = [match.group() for match in found if not re.match(r"[a-z][a-z0-9+.-]*:", match.group(1), re.IGNORECASE)]
    return list(dict.fromkeys(texts))


class Pages:
    """The pages of long-term memory, looked up by what a link says.

    Args:
        graph: All pages with their links.
        is_shown: Whether the page at a path may be shown.
    """

    def __init__(self, graph: LinkGraph, is_shown: Callable[[str], bool]) -> None:
        self._graph, self._is_shown = graph, is_shown

    @classmethod
    def of(cls, library: Library, gate: Gate | None = None) -> Pages:
        """Return the pages of a brain that a reader may know of; all, where nobody is shown them."""
        top = library.tree.relative(library.tree.long_term) + "/"

        def is_shown(path: str) -> bool:
            return path.startswith(top) and (gate is None or gate.knows(path))

        return cls(library.recall.links, is_shown)

    def find(self, link: str, folder: str = "") -> list[LinkedPage]:
        """Return what a link means: one page, several where it is ambiguous, none where nothing fits.

        Args:
            link: A wikilink, a Markdown link, or a bare uuid, path, file name or title.
            folder: Where the link stands; a path may be relative to it.
        """
        target, title = parts_of(link)
        if found := _UUID.search(title) or _UUID.fullmatch(target):
            path = self._graph.path_of(found.group().lower())
            if path or not target or found.group() == target:
                return self._shown([path])
        named = target.partition("#")[0].strip().strip("/")
        for path in (named, posixpath.normpath(posixpath.join(folder, named))):
            for candidate in (path, path + ".md"):
                if page := self._shown([candidate]):
                    return page
        return self._by_name(named)

    def _by_name(self, name: str) -> list[LinkedPage]:
        wanted = name.casefold().removesuffix(".md")
        if not wanted:
            return []
        pages = self._graph.pages
        tail = self._shown(path for path in pages if f"/{path.casefold()}".endswith(f"/{wanted}.md"))
        found = tail or self._shown(path for path, page in pages.items() if page.title.casefold() == wanted)
        return sorted(found, key=lambda page: page.path)

    def linked_from(self, page: LinkedPage) -> list[LinkedPage]:
        """Return the pages that a page links to, those that no longer exist left out."""
        return self._shown(path for path in self._graph.forward(page.path) if path != page.path)

    def linking_to(self, page: LinkedPage) -> list[LinkedPage]:
        """Return the pages that link to a page."""
        return self._shown(self._graph.back(page.path))

    def most_linked(self, limit: int) -> list[Hub]:
        """Return the pages with the most connections, ties by the latest change; no index pages (R5)."""
        hubs = self._graph.hubs(len(self._graph.pages))
        return list(islice((hub for hub in hubs if self._is_shown(hub.path)), limit))

    def _shown(self, paths: Iterable[str]) -> list[LinkedPage]:
        return [self._graph.pages[path] for path in paths if path in self._graph.pages and self._is_shown(path)]


def parts_of(link: str) -> tuple[str, str]:
    """Return what a link leads to and the title it carries."""
    link = link.strip()
    if found := _WIKILINK.fullmatch(link):
        return found.group(1).partition("|")[0].strip(), ""
    if found := _MARKDOWN_LINK.fullmatch(link):
        return unquote(found.group(1)).strip(), found.group(2) or ""
    return link.removeprefix("uuid:"), ""
