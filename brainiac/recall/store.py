"""The index and what it has not taken in yet, as one: whatever was written is found by the next query.

Changed files are read into an overlay that is ranked with the rest and written into the index a little later.
While there are too many to read at once (a first start, a damaged index) they are scanned for the query's words.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from brainiac.recall.documents import page_of
from brainiac.recall.encode import EncodedPage, encode
from brainiac.recall.engine import EmbeddedIndex, destroy
from brainiac.recall.freshness import difference, is_searched, searched_files, stamp_of
from brainiac.recall.index import Candidates, Index, LinkedPage, UnusableIndexError
from brainiac.recall.text import Analyzer, prefix_hash, term_hash
from brainiac.recall.units import Page
from brainiac.tree import Tree

if TYPE_CHECKING:
    from brainiac.recall.vectors import Vectors

_READ_AT_ONCE = 64  # more unread files than this are scanned, and read in the background
_OVERLAY_PAGES = 256  # more than this are written into the index at once
_SETTLE_SECONDS = 2.0
_BATCH = 200
_WRITTEN_PAGES = 4000  # while building, so many are written at once
_SCANNED_PAGES = 300

T = TypeVar("T")


class Store:
    """Pages by query, always as the files stand now.

    Args:
        tree: The brain's places.
        folder: Where the embedded index lives.
        analyzer: The brain's language.
        open_index: Another engine.
        vectors: Meaning of units, when an embedder is there.
    """

    def __init__(
        self,
        tree: Tree,
        folder: Path,
        analyzer: Analyzer,
        open_index: Callable[[], Index] | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        self._tree, self._folder, self._analyzer = tree, folder, analyzer
        self._open_index = open_index or (lambda: EmbeddedIndex(folder, analyzer.language))
        self._is_embedded = open_index is None
        self._is_rebuilding = False
        self._short_term = tree.relative(tree.short_term)
        self._mutex = threading.RLock()
        self._overlay: dict[str, EncodedPage | None] = {}  # None: gone
        self._unread: dict[str, None] = {}
        self._noted: deque[str] = deque()
        self._writing = threading.Lock()  # held while the index is written to, which queries need not wait for
        self._needs_rescan = False
        self._stopping = threading.Event()
        self._worker: threading.Thread | None = None
        self._wake = threading.Event()
        self._starting = threading.Lock()
        self._problem = ""
        self._index: Index | None = None
        self._vectors = vectors
        self._unembedded: dict[str, None] = {}
        self._open()

    # --- what changed --------------------------------------------------------------------------------------

    def note_change(self, path: str) -> None:
        """Take note that a file, or a folder of files, is not what it was; waits for nothing."""
        self._noted.append(path)
        self._wake_worker()

    def _take_note(self) -> None:
        while self._noted:
            path = self._noted.popleft()
            if is_searched(self._tree, path):
                self._unread[path] = None
            elif not path.endswith(".md") and self._tree.absolute(path).is_relative_to(self._tree.memory):
                self._needs_rescan = True  # a folder: its files are looked over by the next query

    def rescan(self) -> None:
        """Compare every file's stat with what the index has."""
        with self._mutex:
            known = dict(self._index.stamps()) if self._index else {}
            for path, encoded in self._overlay.items():
                known.pop(path, None)
                if encoded is not None:
                    known[path] = encoded.stamp
            changed, gone = difference(self._tree, known)
            self._unread |= dict.fromkeys(changed) | dict.fromkeys(gone)
            self._needs_rescan = False
            if self._unread:
                self._wake_worker()

    def _open(self) -> None:
        try:
            self._index = self._open_index()
        except UnusableIndexError:
            self._start_anew()
            return
        if self._vectors and self._index:
            self._unembedded = dict.fromkeys(self._vectors.adopt(self._index.contents()))
        self.rescan()

    def _start_anew(self) -> None:
        """Throw the index away; all files are scanned until a new one has them."""
        if self._index:
            self._index.close()
            self._index = None
        if self._is_embedded:
            destroy(self._folder)
        try:
            self._index = self._open_index()
            self._problem = ""
        except UnusableIndexError as error:  # a read-only or full disk: scanning goes on
            self._problem = str(error)
        self._overlay.clear()
        self._unread = {path: None for path, _ in searched_files(self._tree)}
        self._wake_worker()

    # --- queries -------------------------------------------------------------------------------------------

    def candidates(
        self, terms: Sequence[str], limit: int, *, required: Sequence[str] = (), words: Sequence[str] = ()
    ) -> Candidates:
        """Return the pages worth ranking, those not yet in the index among them.

        Args:
            terms: Stems and marks.
            limit: Look at so many passages of the index.
            required: Terms that must stand in the passage.
            words: The query's words as written, for scanning.
        """
        with self._mutex:
            self._catch_up()
            found = self._ask(lambda index: index.query(terms, limit, required=required)) or Candidates(())
            hidden = self._overlay.keys() | self._unread.keys()
            pages = [page for page in found.pages if page.page.path not in hidden]
            fresh = [page for page in self._overlay.values() if page]
            if self._unread:
                fresh += self._scan([*words, *terms])
        fresh = _holding(fresh, terms, required)
        frequencies = {term: found.frequencies.get(term, 0) + _count(fresh, term) for term in terms}
        total = found.n_passages + len(self._overlay) + len(self._unread)
        return Candidates([*fresh, *pages], frequencies, total)

    def pages(self, targets: Sequence[str]) -> list[EncodedPage]:
        """Return pages by path or uuid, as the files stand now."""
        with self._mutex:
            found = self._ask(lambda index: index.pages(targets)) or []
            wanted = set(targets)
            fresh = [p for p in self._overlay.values() if p and (p.page.path in wanted or p.page.uuid in wanted)]
            return [page for page in found if page.page.path not in self._overlay] + fresh

    def inbound(self, targets: Sequence[str]) -> Mapping[str, int]:
        """Return how many links lead to each target; links of the last seconds may be missing."""
        with self._mutex:
            return self._ask(lambda index: index.inbound(targets)) or {}

    def linked(self) -> list[LinkedPage]:
        """Return every page with its links, as the files stand now."""
        self.read_all()
        with self._mutex:
            stored = self._ask(lambda index: list(index.linked())) or []
            pages = [page for page in stored if page.path not in self._overlay]
            for encoded in filter(None, self._overlay.values()):
                page = encoded.page
                pages.append(LinkedPage(page.path, page.uuid, page.title, page.at, page.links))
            return pages

    def read_page(self, path: str) -> tuple[Page, tuple[int, int]] | None:
        """Return a file as a page with its units, and its stamp; None when it is not there."""
        stamp = stamp_of(self._tree, path)
        try:
            text = self._tree.absolute(path).read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        return (page_of(path, text, self._tree.kind_of(path)), stamp) if stamp else None

    def _ask(self, question: Callable[[Index], T]) -> T | None:
        if self._is_embedded and self._index and not self._folder.exists():
            self._start_anew()
        if self._index is None:
            return None
        try:
            return question(self._index)
        except UnusableIndexError:
            self._start_anew()
            return None

    def _catch_up(self) -> None:
        """Read what changed, if it is little enough to be read before answering."""
        self._take_note()
        if self._needs_rescan:
            self.rescan()
        stamp = stamp_of(self._tree, self._short_term)
        known = self._overlay.get(self._short_term)
        if stamp != (known.stamp if known else self._short_term_stamp):
            self._unread[self._short_term] = None
        if len(self._unread) <= _READ_AT_ONCE:
            for path in list(self._unread):
                self._read(path)

    @property
    def _short_term_stamp(self) -> tuple[int, int] | None:
        stored = self._ask(lambda index: index.pages([self._short_term]))
        return stored[0].stamp if stored else None

    def _read(self, path: str) -> None:
        self._overlay[path] = self._encoded(path)
        self._unread.pop(path, None)
        self._wake_worker()

    def _encoded(self, path: str) -> EncodedPage | None:
        read = self.read_page(path)
        if not read:
            return None
        if self._vectors:
            self._unembedded[path] = None
        return encode(read[0], self._analyzer, read[1])

    def _scan(self, words: Sequence[str]) -> list[EncodedPage]:
        """Return the unread files that hold the most of the words."""
        stems = {word.casefold()[: max(3, len(word) - 2)] for word in words if word and word[0] not in "#@"}
        patterns = [re.compile(re.escape(stem).encode(), re.IGNORECASE) for stem in stems]
        scored = []
        for path in list(self._unread):
            try:
                content = self._tree.absolute(path).read_bytes()
            except OSError:
                continue
            met = sum(1 for pattern in patterns if pattern.search(content))
            if met or not patterns:
                scored.append((-met, path))
        best = sorted(scored)[:_SCANNED_PAGES]
        return [page for _, path in best if (page := self._encoded(path))]

    # --- writing into the index ----------------------------------------------------------------------------

    def read_all(self) -> None:
        """Read every file that is not yet read; may take long after a first start."""
        with self._mutex:
            self._catch_up()
        while self._take_in():
            pass

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew; return how many files are in it."""
        self._is_rebuilding = True  # the worker leaves the files to this thread
        with self._writing, self._mutex:
            self._start_anew()
            total = len(self._unread)
        while self._take_in() and not self._stopping.is_set():
            if progress:
                progress(total - len(self._unread), total)
        self.flush()
        self._is_rebuilding = False
        self._embed(progress)
        return total

    def _take_in(self) -> bool:
        """Read a batch of unread files; return whether there were any. Queries go on meanwhile."""
        with self._mutex:
            self._take_note()
            batch = list(self._unread)[:_BATCH]
        pages = {path: self._encoded(path) for path in batch}
        with self._mutex:
            self._overlay.update(pages)
            for path in batch:
                self._unread.pop(path, None)
            is_much = len(self._overlay) >= _WRITTEN_PAGES
        if is_much:
            self.flush()
        return bool(batch)

    def _embed(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the vectors that are missing; nobody waits for them but who asked to reindex."""
        done = 0
        while self._vectors and self._unembedded and not self._stopping.is_set():
            path = next(iter(self._unembedded))
            self._unembedded.pop(path, None)
            if read := self.read_page(path):
                self._vectors.take_in(read[0])
            done += 1
            if progress:
                progress(done, done + len(self._unembedded))

    def flush(self) -> None:
        """Write the overlay into the index; until it is there, queries rank it as they did."""
        with self._writing:
            with self._mutex:
                index, overlay = self._index, dict(self._overlay)
            if index is None or not overlay:
                return
            try:
                is_written = self._write(index, overlay)
            except UnusableIndexError:
                with self._mutex:
                    self._start_anew()
                return
            with self._mutex:
                for path, page in overlay.items():
                    if is_written and path in self._overlay and self._overlay[path] is page:
                        del self._overlay[path]

    @staticmethod
    def _write(index: Index, overlay: Mapping[str, EncodedPage | None]) -> bool:
        if not index.is_writable():
            return False
        index.remove([path for path, page in overlay.items() if page is None])
        index.replace(page for page in overlay.values() if page)
        index.commit()
        return True

    def _wake_worker(self) -> None:
        with self._starting:
            if self._worker is None and not self._stopping.is_set():
                self._worker = threading.Thread(target=self._work, name="recall-index", daemon=True)
                self._worker.start()
        self._wake.set()

    def _work(self) -> None:
        """Take in what changed: at once when it is much, else when no more comes for a while."""
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            while not (self._stopping.is_set() or self._is_much) and self._wake.wait(_SETTLE_SECONDS):
                self._wake.clear()
            while not (self._is_rebuilding or self._stopping.is_set()) and self._take_in():
                pass
            if not self._stopping.is_set():
                self.flush()
                self._embed()

    @property
    def _is_much(self) -> bool:
        return len(self._noted) + len(self._unread) > _READ_AT_ONCE or len(self._overlay) > _OVERLAY_PAGES

    # --- the rest ------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return engine, counts and how fresh the index is; searches are fresh in any case."""
        with self._mutex:
            engine = self._ask(lambda index: index.status()) or {"engine": "scan", "pages": 0, "bytes": 0}
            state = "rebuilding" if len(self._unread) > _READ_AT_ONCE else "fresh"
            return {
                **engine,
                "freshness": state,
                "not_yet_embedded": len(self._unembedded),
                "not_yet_indexed": len(self._unread) + len(self._overlay),
                "problem": self._problem,
            }

    def close(self) -> None:
        """Write what was read and let go of files."""
        self._stopping.set()
        self._wake.set()
        if self._worker:
            self._worker.join()
        self.flush()
        with self._mutex:
            if self._index:
                self._index.close()
                self._index = None


def _holding(pages: Sequence[EncodedPage], terms: Sequence[str], required: Sequence[str]) -> list[EncodedPage]:
    """Return the pages that hold any of the terms, by their beginnings too, and all of the required ones."""
    sought = [_packed(prefix_hash(term)) for term in terms]
    has_marks = any(term[0] in "#@" for term in terms)
    kept = []
    for page in pages:
        passages = " ".join(page.passages).split() if required or has_marks else []
        is_met = not terms or any(hash_ in page.prefixes or hash_ in page.heading for hash_ in sought)
        if (is_met or not set(terms).isdisjoint(passages)) and set(required) <= set(passages):
            kept.append(page)
    return kept


def _count(pages: Sequence[EncodedPage], term: str) -> int:
    sought = _packed(term_hash(term))
    return sum(sought in page.terms for page in pages)


def _packed(hash_: int) -> bytes:
    """Return a hash as it stands among a page's; one met across two others is as rare as it is harmless."""
    return hash_.to_bytes(4, sys.byteorder)
