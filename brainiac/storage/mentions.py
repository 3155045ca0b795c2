"""Which pages a page names by their titles: the `mentions` in its front matter, as links that Obsidian follows.

They are derived from the text and from the titles of all pages, and made anew whenever the page is written.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from brainiac.formats.markdown import without_link_targets
from brainiac.formats.page import Memory

MENTIONS = "mentions"
MAX_MENTIONS = 12
_WORD = re.compile(r"\w+")
_FOLDERS = ("concrete", "skills")  # the titles of event pages are days, which most texts name


class Mentions:
    """The titles of pages, each with the link to its page.

    Args:
        pages: All pages that may be named, by path; a private one is named by private pages only.
        root: The folder of long-term memory, relative.
    """

    def __init__(self, pages: Iterable[Memory], root: str) -> None:
        named = [page for page in pages if page.path.startswith(tuple(f"{root}/{folder}/" for folder in _FOLDERS))]
        files = Counter(posixpath.basename(page.path).casefold() for page in named)
        # by first word, so that a text is compared with few titles
        self._pages: dict[str, list[tuple[tuple[str, ...], Memory, str]]] = defaultdict(list)
        for page in named:
            words = tuple(_WORD.findall(page.title))
            if words and len(page.title) > 1 and "|" not in page.title and "]" not in page.title:
                name = page.path.removesuffix(".md")
                is_unique = files[posixpath.basename(page.path).casefold()] == 1
                link = f"[[{posixpath.basename(name) if is_unique else name}|{page.title}]]"
                self._pages[words[0]].append((words, page, link))

    def of(self, page: Memory) -> list[str]:
        """Return the wiki links to the pages whose titles stand in a page's text, in the order of the text."""
        words = _WORD.findall(without_link_targets(page.body))
        links: dict[str, None] = {}
        for position, word in enumerate(words):
            for title, target, link in self._pages.get(word, ()):
                is_here = tuple(words[position : position + len(title)]) == title
                if is_here and target.path != page.path and (page.is_private or not target.is_private):
                    links[link] = None
        return list(links)[:MAX_MENTIONS]


def still_named(page: Memory) -> list[str]:
    """Return those of a page's `mentions` whose title still stands in its text."""
    mentions = page.meta.get(MENTIONS)
    body = without_link_targets(page.body)
    listed = [str(link) for link in mentions] if isinstance(mentions, list) else []
    return [link for link in listed if link.rpartition("|")[2].removesuffix("]]") in body]
