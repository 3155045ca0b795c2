"""Which pages a page names by their titles: the `mentions` in its front matter, as links that Obsidian follows.

They are derived from the text and from the titles of all pages, and made anew whenever the page is written. What a
person put under this key in another form stays.
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
_OURS = re.compile(r"\[\[[^|\]]+\|[^\]]+\]\]")  # a link with the title that stands in the text
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
        self._pages: dict[tuple[str, ...], list[tuple[Memory, str]]] = defaultdict(list)  # by the words of the title
        self._lengths: dict[str, set[int]] = defaultdict(set)  # of the titles that begin with a word, in words
        for page in named:
            words = tuple(_WORD.findall(page.title))
            if words and len(page.title) > 1 and "|" not in page.title and "]" not in page.title:
                name = page.path.removesuffix(".md")
                is_unique = files[posixpath.basename(page.path).casefold()] == 1
                link = f"[[{posixpath.basename(name) if is_unique else name}|{page.title}]]"
                self._pages[words].append((page, link))
                self._lengths[words[0]].add(len(words))

    def of(self, page: Memory) -> list[str]:
        """Return the wiki links to the pages whose titles stand in a page's text, in the order of the text."""
        words = _WORD.findall(without_link_targets(page.body))
        links: dict[str, None] = {}
        for position, word in enumerate(words):
            for length in sorted(self._lengths.get(word, ())):
                for target, link in self._pages.get(tuple(words[position : position + length]), ()):
                    is_open = not target.is_off_record and (page.is_private or not target.is_private)
                    if target.path != page.path and is_open:
                        links[link] = None
        return list(links)[:MAX_MENTIONS]

    def renewed(self, page: Memory) -> list[str] | None:
        """Return what is to stand under `mentions` of a page; None where that stands there, or is the person's."""
        present = page.meta.get(MENTIONS, [])
        if not isinstance(present, list):
            return None
        links = [*(item for item in map(str, present) if not _OURS.fullmatch(item)), *self.of(page)]
        return links if links != present else None


def still_named(page: Memory) -> list[str]:
    """Return a page's `mentions`, a list, without the links of ours whose title stands no more in its text."""
    body = without_link_targets(page.body)
    listed = map(str, page.meta[MENTIONS])
    return [link for link in listed if not _OURS.fullmatch(link) or link.rpartition("|")[2].removesuffix("]]") in body]
