"""Which page a link means: by uuid, path, file name or title, as people and models write them (seeds R1, R6)."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from brainiac.context.privacy import is_private_note, shareable
from brainiac.errors import ConfinementError
from brainiac.recall.documents import SEARCHED, page_of
from brainiac.recall.index import LinkedPage

if TYPE_CHECKING:
    from brainiac.brain import Brain

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
    """The pages of a brain, looked up by what a link says.

    Args:
        pages: All that there are.
    """

    def __init__(self, pages: Iterable[LinkedPage]) -> None:
        self.by_path = {page.path: page for page in pages}
        self._by_uuid = {page.uuid: page for page in self.by_path.values() if page.uuid}

    @classmethod
    def of(cls, brain: Brain, *, is_remote: bool = False) -> Pages:
        """Return the pages of long-term memory; for a remote reader without the private ones."""
        return cls(_walked(brain, is_remote=is_remote))

    def find(self, link: str, folder: str = "") -> list[LinkedPage]:
        """Return what a link means: one page, several where it is ambiguous, none where nothing fits.

        Args:
            link: A wikilink, a Markdown link, or a bare uuid, path, file name or title.
            folder: Where the link stands; a path may be relative to it.
        """
        target, title = _parts(link)
        if found := _UUID.search(title) or _UUID.fullmatch(target):
            page = self._by_uuid.get(found.group().lower())
            if page or not target or found.group() == target:
                return [page] if page else []
        named = target.partition("#")[0].strip().strip("/")
        for path in (named, posixpath.normpath(posixpath.join(folder, named))):
            for candidate in (path, path + ".md"):
                if candidate in self.by_path:
                    return [self.by_path[candidate]]
        return self._by_name(named)

    def _by_name(self, name: str) -> list[LinkedPage]:
        wanted = name.casefold().removesuffix(".md")
        if not wanted:
            return []
        tail = [page for path, page in self.by_path.items() if f"/{path.casefold()}".endswith(f"/{wanted}.md")]
        found = tail or [page for page in self.by_path.values() if page.title.casefold() == wanted]
        return sorted(found, key=lambda page: page.path)

    def linked_from(self, page: LinkedPage) -> list[LinkedPage]:
        """Return the pages that a page links to, those that no longer exist left out."""
        targets = [self._by_uuid.get(link.uuid) or self.by_path.get(link.path) for link in page.links]
        return list({found.path: found for found in targets if found and found.path != page.path}.values())

    def linking_to(self, page: LinkedPage) -> list[LinkedPage]:
        """Return the pages that link to a page."""
        return [other for other in self.by_path.values() if page in self.linked_from(other)]

    def most_linked(self, limit: int) -> list[tuple[LinkedPage, int]]:
        """Return the pages with the most links to and from others, ties by the latest change; no index pages (R5)."""
        edges: Counter[str] = Counter()
        for page in self.by_path.values():
            for other in self.linked_from(page):
                edges[page.path] += 1
                edges[other.path] += 1
        ranked = [self.by_path[path] for path in edges if posixpath.basename(path) != "_index.md"]
        ranked.sort(key=lambda page: page.path)
        ranked.sort(key=lambda page: page.at, reverse=True)
        ranked.sort(key=lambda page: edges[page.path], reverse=True)
        return [(page, edges[page.path]) for page in ranked[:limit]]


def _walked(brain: Brain, *, is_remote: bool) -> Iterable[LinkedPage]:
    for entry in brain.tree.walk(brain.tree.long_term):
        path = brain.tree.relative(entry.path)
        kind = brain.tree.kind_of(path)
        if kind in SEARCHED:
            text = brain.read_text(path) or ""
            if is_remote and is_private_note(text):
                continue
            page = page_of(path, text, kind)
            yield LinkedPage(path, page.uuid, page.title, page.at, page.links)


def _parts(link: str) -> tuple[str, str]:
    """Return what a link leads to and the title it carries."""
    link = link.strip()
    if found := _WIKILINK.fullmatch(link):
        return found.group(1).partition("|")[0].strip(), ""
    if found := _MARKDOWN_LINK.fullmatch(link):
        return unquote(found.group(1)).strip(), found.group(2) or ""
    return link.removeprefix("uuid:"), ""


def readable(
    brain: Brain, path: str, tops: Sequence[str] = ("memory", "inbox"), *, is_remote: bool = False
) -> str | None:
    """Return the text of a note that a link or a model names, or None where it may not be shown or is not there.

    Args:
        brain: Whose.
        path: As named.
        tops: Folders of the layout that it must lie in.
        is_remote: What is private stays out.
    """
    for top in tops:
        try:
            absolute = brain.tree.confine(path, inside=getattr(brain.tree, top))
        except ConfinementError:
            continue
        if absolute.suffix in (".md", ".txt"):
            text = brain.read_text(absolute)
            return shareable(text) if text is not None and is_remote else text
    return None
