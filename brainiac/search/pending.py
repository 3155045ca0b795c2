"""Files that the index has not taken in yet: read into an overlay that is ranked with the rest, or scanned.

Changed files are read before a query is answered; while there are too many of them (a first start, a damaged index)
they are scanned for the query's words.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from brainiac.search.documents import page_of
from brainiac.search.encode import EncodedPage, encode
from brainiac.search.freshness import Stamp, difference, is_searched, stamp_of
from brainiac.search.index import Asked
from brainiac.search.text import Analyzer
from brainiac.search.units import Page
from brainiac.tree import Tree

READ_AT_ONCE = 64  # more unread files than this are scanned, and read in the background
_OVERLAY_PAGES = 256  # more than this are written into the index at once
_SCANNED_PAGES = 300
_REMEMBERED_PAGES = 256


class Pending:
    """What is not in the index; the store that owns it holds its lock around each call but `note` and `encoded`.

    Args:
        tree: The brain's places.
        analyzer: The brain's language.
        on_read: Called with the path of each file that is read.

    Attributes:
        overlay: Pages that stand in place of the index's, by path; None: the file is gone.
        unread: Paths still to be read, in order.
        needs_rescan: A folder changed: its files are found by comparing all.
    """

    def __init__(self, tree: Tree, analyzer: Analyzer, on_read: Callable[[str], None]) -> None:
        self._tree, self._analyzer, self._on_read = tree, analyzer, on_read
        self._short_term = tree.relative(tree.short_term)
        self._short_term_seen: Stamp | None = None
        self._pages: OrderedDict[str, tuple[Page, Stamp]] = OrderedDict()  # as last read: hits need their texts
        self._noted: deque[str] = deque()
        self.overlay: dict[str, EncodedPage | None] = {}
        self.unread: dict[str, None] = {}
        self.needs_rescan = False

    # --- what changed --------------------------------------------------------------------------------------

    def note(self, path: str) -> None:
        """Take note that a file, or a folder of files, is not what it was; waits for nothing."""
        self._noted.append(path)

    def take_notes(self) -> None:
        """Sort what was noted."""
        while self._noted:
            path = self._noted.popleft()
            if is_searched(self._tree, path):
                read = self.overlay.get(path)
                if read is None or read.stamp != stamp_of(self._tree, path):  # else it is told of once more
                    self.unread[path] = None
            elif not path.endswith(".md") and self._tree.absolute(path).is_relative_to(self._tree.memory):
                self.needs_rescan = True

    def compare(self, indexed: Mapping[str, Stamp]) -> None:
        """Find what changed by every file's stat, given those that the index has."""
        known = dict(indexed)
        for path, encoded in self.overlay.items():
            if encoded:
                known[path] = encoded.stamp
            else:
                known.pop(path, None)
        changed, gone = difference(self._tree, known)
        self.unread |= dict.fromkeys(changed) | dict.fromkeys(gone)
        self._short_term_seen = known.get(self._short_term)
        self.needs_rescan = False

    def start_anew(self, paths: Iterable[str]) -> None:
        """Hold nothing as read."""
        self.overlay.clear()
        self.unread = dict.fromkeys(paths)

    def catch_up(self) -> bool:
        """Read what changed, if it is little enough to be read before answering; return whether anything was."""
        self.take_notes()
        if stamp_of(self._tree, self._short_term) != self._short_term_seen:
            self.unread[self._short_term] = None
        if self._short_term in self.unread:  # what was said a moment ago stands there: it never waits
            self.take_in({self._short_term: self.encoded(self._short_term)})
        if not self.unread or len(self.unread) > READ_AT_ONCE:
            return False
        self.take_in({path: self.encoded(path) for path in self.unread})
        return True

    def take_in(self, pages: Mapping[str, EncodedPage | None]) -> None:
        """Put files that were read into the overlay; one that was written meanwhile is left to whoever reads it."""
        for path, page in pages.items():
            if page is None or page.stamp == stamp_of(self._tree, path):
                self.overlay[path] = page
                self.unread.pop(path, None)
        if self._short_term in pages:
            read = pages[self._short_term]
            self._short_term_seen = read.stamp if read else None

    def settle(self, written: Mapping[str, EncodedPage | None]) -> None:
        """Drop from the overlay what the index has now, but not what changed meanwhile."""
        for path, page in written.items():
            if path in self.overlay and self.overlay[path] is page:
                del self.overlay[path]

    @property
    def is_much(self) -> bool:
        """Whether it should be written without waiting for more."""
        return len(self._noted) + len(self.unread) > READ_AT_ONCE or len(self.overlay) > _OVERLAY_PAGES

    # --- queries -------------------------------------------------------------------------------------------

    def holding(self, asked: Asked, words: Sequence[str]) -> list[EncodedPage]:
        """Return the pages that an index would, of those it has not, most promising first.

        Args:
            asked: As an index is asked.
            words: The query's words as written, for scanning.
        """
        pages = [page for page in self.overlay.values() if page]
        if self.unread:
            pages += self._scan([*words, *asked.terms])
        sought, required = {*asked.terms, *asked.variants}, set(asked.required)
        kept = []
        for page in pages:
            if asked.narrowing is not None and not asked.narrowing.allows(page):
                continue
            held = [passage for text in page.passages if required <= (passage := set(text.split()))]
            met = max((len(sought & passage) for passage in held), default=0)
            if met or (held and not asked.terms):
                kept.append((-met, -page.stamp[0], page.page.path, page))
        return [page for *_, page in sorted(kept, key=lambda found: found[:3])]

    def named(self, targets: Sequence[str]) -> list[EncodedPage]:
        """Return the pages of the overlay with one of these paths or uuids."""
        wanted = set(targets)
        return [page for page in self.overlay.values() if page and {page.page.path, page.page.uuid} & wanted]

    def _scan(self, words: Sequence[str]) -> list[EncodedPage]:
        """Return the unread files that hold the most of the words."""
        stems = {word.casefold()[: max(3, len(word) - 2)] for word in words if word and word[0] not in "#@"}
        patterns = [re.compile(re.escape(stem).encode(), re.IGNORECASE) for stem in stems]
        scored = []
        for path in list(self.unread):
            content = self._content(path) or b""
            met = sum(1 for pattern in patterns if pattern.search(content))
            stamp = stamp_of(self._tree, path)
            if stamp and (met or not patterns):
                scored.append((-met, -stamp[0], path))
        best = sorted(scored)[:_SCANNED_PAGES]  # the newest of those that hold as much
        return [page for *_, path in best if (page := self.encoded(path))]

    # --- files ---------------------------------------------------------------------------------------------

    def encoded(self, path: str) -> EncodedPage | None:
        """Read a file as the index takes it; None when it is not there."""
        read = self.read_page(path)
        if not read:
            return None
        self._on_read(path)
        return encode(read[0], self._analyzer, read[1])

    def read_page(self, path: str) -> tuple[Page, Stamp] | None:
        """Return a file as a page with its units, and its stamp; None when it is not there."""
        stamp = stamp_of(self._tree, path)
        content = self._content(path, stamp[1]) if stamp else None
        if stamp is None or content is None:
            return None
        text = content.decode("utf-8", "replace")
        read = page_of(path, text, self._tree.kind_of(path), self._analyzer.zone), stamp
        self._pages[path] = read
        if len(self._pages) > _REMEMBERED_PAGES:
            self._pages.popitem(last=False)
        return read

    def _content(self, path: str, size: int = 8192) -> bytes | None:
        """Return what is in a file, in one call where it has the size."""
        try:
            with open(f"{self._tree.root}/{path}", "rb", buffering=0) as file:
                content = file.read(size + 1)
                return content if len(content) == size else content + file.readall()
        except OSError:
            return None

    def page_as_of(self, path: str, stamp: Stamp) -> Page | None:
        """Return a file as a page with its units, if it has this stamp."""
        kept = self._pages.get(path)
        if kept and kept[1] == stamp == stamp_of(self._tree, path):
            return kept[0]
        read = self.read_page(path)
        return read[0] if read and read[1] == stamp else None


def count(pages: Sequence[EncodedPage], term: str) -> int:
    """Return how many passages of the pages hold a term."""
    return sum(f" {term} " in f" {passage} " for page in pages for passage in page.passages)
