"""The index and what it has not taken in yet, as one: whatever was written is found by the next query.

What is pending is written into the index a little later, in a thread of its own, at once when it is much.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from brainiac.search.encode import EncodedPage
from brainiac.search.engine import EmbeddedIndex, destroy
from brainiac.search.freshness import searched_files
from brainiac.search.index import Asked, Candidates, Index, LinkedPage, UnusableIndexError, as_index
from brainiac.search.pending import READ_AT_ONCE, Pending, count
from brainiac.search.text import Analyzer
from brainiac.search.units import Page
from brainiac.search.vectors import Vectors
from brainiac.search.vocabulary import Vocabulary
from brainiac.tree import Tree

_SETTLE_SECONDS = 2.0
_BATCH = 200
_WRITTEN_PAGES = 4000  # while building, so many are written at once

T = TypeVar("T")


class Store:
    """Pages by query, always as the files stand now.

    Args:
        tree: The brain's places.
        folder: Where the embedded index lives.
        analyzer: The brain's language.
        open_index: Another engine; None for the embedded one.
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
        self._tree, self._folder, self._vectors = tree, folder, vectors
        self._vocabulary, self._analyzer_key = analyzer.vocabulary, analyzer.key
        self._open_registered = open_index
        self._is_embedded = open_index is None
        self._is_rebuilding = False
        self._mutex = threading.RLock()
        self._pending = Pending(tree, analyzer, self._was_read)
        self._writing = threading.Lock()  # held while the index is written to, which queries need not wait for
        self._embedding = threading.Lock()
        self._stopping = threading.Event()
        self._worker: threading.Thread | None = None
        self._wake, self._starting = threading.Event(), threading.Lock()
        self._problem, self._words_read_at = "", 0.0
        self._index: Index | None = None
        self._unembedded: dict[str, None] = {}
        self._open()

    def _opened(self) -> Index:
        if self._open_registered:
            return as_index(self._open_registered())
        return EmbeddedIndex(self._folder, self._analyzer_key)

    # --- what changed --------------------------------------------------------------------------------------

    def note_change(self, path: str) -> None:
        """Take note that a file, or a folder of files, is not what it was; waits for nothing."""
        self._pending.note(path)
        self._wake_worker()

    def rescan(self) -> None:
        """Compare every file's stat with what the index has."""
        with self._mutex:
            self._pending.compare(self._ask(lambda index: index.stamps()) or {})
            self._words_read_at = 0.0  # another process may have written pages with words of their own
            if self._pending.unread:
                self._wake_worker()

    def _open(self) -> None:
        try:
            self._index = self._opened()
        except UnusableIndexError:
            self._start_anew()
            return
        if vectors := self._vectors:
            self._unembedded = dict.fromkeys(self._ask(lambda index: vectors.adopt(index.contents())) or ())
        self.rescan()

    def _start_anew(self) -> None:
        """Throw the index away; all files are scanned until a new one has them."""
        if self._index:
            self._index.close()
            self._index = None
        if self._is_embedded:
            destroy(self._folder)
        gone: dict[str, None] = {}
        try:
            self._index = self._opened()
            gone = dict.fromkeys(self._index.stamps())  # another engine's pages stand until they are replaced
            self._problem = ""
        except UnusableIndexError as error:  # a read-only or full disk: scanning goes on
            self._problem = str(error)
        self._vocabulary.lose()
        self._pending.start_anew(gone | dict.fromkeys(searched_files(self._tree)))
        self._wake_worker()

    def _was_read(self, path: str) -> None:
        if self._vectors:
            self._unembedded[path] = None

    # --- queries -------------------------------------------------------------------------------------------

    def candidates(self, asked: Asked, words: Sequence[str] = ()) -> Candidates:
        """Return the pages worth ranking, those not yet in the index first.

        Args:
            asked: What is asked of the index.
            words: The query's words as written, for scanning.
        """
        with self._mutex:
            self.catch_up()
            found = self._ask(lambda index: index.query(asked)) or Candidates(())
            pending = self._pending
            hidden = pending.overlay.keys() | pending.unread.keys()
            pages = [page for page in found.pages if page.page.path not in hidden]
            fresh = pending.holding(asked, words)
            total = found.n_passages + sum(len(page.passages) for page in fresh)
        frequencies = {term: found.frequencies.get(term, 0) + count(fresh, term) for term in asked.terms}
        return Candidates([*fresh, *pages], frequencies, total)

    def catch_up(self) -> None:
        """Read what changed, if it is little, and know its words: what is like them is asked for beside them."""
        with self._mutex:
            self._catch_up()
            if not self._words_read_at:
                self._read_words()

    def read_words_again(self) -> bool:
        """Read the words that the index keeps once more, since another process may write it; return whether it was.

        Not at once again: what is still unknown then stays unknown.
        """
        with self._mutex:
            if time.monotonic() < self._words_read_at + _SETTLE_SECONDS:
                return False
            self._read_words()
            return True

    def _read_words(self) -> None:
        self._words_read_at = time.monotonic()
        self._vocabulary.load(self._ask(lambda index: index.words()) or ())

    def pages(self, targets: Sequence[str]) -> list[EncodedPage]:
        """Return pages by path or uuid, as the files stand now."""
        with self._mutex:
            found = self._ask(lambda index: index.pages(targets)) or []
            stored = [page for page in found if page.page.path not in self._pending.overlay]
            return stored + self._pending.named(targets)

    def inbound(self, targets: Sequence[str]) -> Mapping[str, int]:
        """Return how many links lead to each target; links of the last seconds may be missing."""
        with self._mutex:
            return self._ask(lambda index: index.inbound(targets)) or {}

    def linked(self) -> list[LinkedPage]:
        """Return every page with its links, as the files stand now."""
        self.read_all()
        with self._mutex:
            stored = self._ask(lambda index: list(index.linked())) or []
            overlay = self._pending.overlay
            fresh = [encoded.page for encoded in overlay.values() if encoded]
            return [page for page in stored if page.path not in overlay] + [
                LinkedPage(page.path, page.uuid, page.title, page.at, page.links) for page in fresh
            ]

    def page_as_of(self, path: str, stamp: tuple[int, int]) -> Page | None:
        """Return a file as a page with its units; None when it is not what it was when it had this stamp."""
        return self._pending.page_as_of(path, stamp)

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
        if self._pending.needs_rescan:
            self.rescan()
        if self._pending.catch_up():
            self._wake_worker()

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
            total = len(self._pending.unread)
        while self._take_in() and not self._stopping.is_set():
            if progress:
                progress(total - len(self._pending.unread), total)
        self.flush()
        self._is_rebuilding = False
        self._embed(progress)
        return total

    def _take_in(self) -> bool:
        """Read a batch of unread files; return whether there were any. Queries go on meanwhile."""
        with self._mutex:
            self._pending.take_notes()
            batch = list(self._pending.unread)[:_BATCH]
        pages = {path: self._pending.encoded(path) for path in batch}
        with self._mutex:
            self._pending.take_in(pages)
            is_much = len(self._pending.overlay) >= _WRITTEN_PAGES
        if is_much:
            self.flush()
        return bool(batch)

    def _embed(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the vectors that are missing; nobody waits for them but who asked to reindex."""
        with self._embedding:  # the worker and who asked to reindex must not ask for the same twice
            self._embed_all(progress)

    def _embed_all(self, progress: Callable[[int, int], None] | None) -> None:
        done = 0
        while self._vectors and self._unembedded and not self._stopping.is_set():
            path = next(iter(self._unembedded))
            self._unembedded.pop(path, None)
            read = self._pending.read_page(path)
            if read and not self._vectors.take_in(read[0]):
                self._unembedded[path] = None  # tried again with the next change
                return
            done += 1
            if progress:
                progress(done, done + len(self._unembedded))
        if self._vectors and not self._stopping.is_set():
            self._vectors.grow()

    def flush(self) -> None:
        """Write the overlay into the index; until it is there, queries rank it as they did."""
        with self._writing:
            with self._mutex:
                index, overlay = self._index, dict(self._pending.overlay)
            if index is None or not overlay:
                return
            try:
                is_written = self._write(index, self._vocabulary, overlay)
            except UnusableIndexError:
                with self._mutex:
                    self._start_anew()
                return
            if is_written:
                with self._mutex:
                    self._pending.settle(overlay)

    @staticmethod
    def _write(index: Index, vocabulary: Vocabulary, overlay: Mapping[str, EncodedPage | None]) -> bool:
        if not index.is_writable():
            return False
        index.remove([path for path, page in overlay.items() if page is None])
        index.replace(page for page in overlay.values() if page)
        index.add_words(vocabulary.unsaved())
        index.commit()
        return True

    def _wake_worker(self) -> None:
        with self._starting:
            if self._worker is None and not self._stopping.is_set():
                self._worker = threading.Thread(target=self._work, name="recall-index", daemon=True)
                self._worker.start()
        self._wake.set()

    def _work(self) -> None:
        """Read what changed, so that no query must; write it: at once when it is much, else when no more comes."""
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            while not (self._stopping.is_set() or self._pending.is_much or self._is_rebuilding):
                self._take_in()
                if not self._wake.wait(_SETTLE_SECONDS):
                    break
                self._wake.clear()
            while not (self._is_rebuilding or self._stopping.is_set()) and self._take_in():
                pass
            if not self._stopping.is_set():
                self.flush()
                self._embed()

    # --- the rest ------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return engine, counts and how fresh the index is; searches are fresh in any case."""
        with self._mutex:
            engine = self._ask(lambda index: index.status()) or {"engine": "scan", "pages": 0, "bytes": 0}
            state = "rebuilding" if len(self._pending.unread) > READ_AT_ONCE else "fresh"
            return {
                **engine,
                "freshness": state,
                "not_yet_embedded": len(self._unembedded),
                "not_yet_indexed": len(self._pending.unread) + len(self._pending.overlay),
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
