"""Pages by query, always as the files are now: those of the index, and files that it does not have yet.

Whatever was written is found by the next query. Changed files are read before it is answered; while there are too many
of them (a first start, a damaged index) they are scanned for its words. What was read is written into the index a
little later, in a thread of its own, at once when it is much.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from brainiac.clock import iso
from brainiac.errors import ConfinementError
from brainiac.events import TO_ANSWER, PathKind
from brainiac.formats.markdown import StmEvent
from brainiac.formats.prompt import response_path
from brainiac.search.documents import SEARCHED, Page, page_of, waiting_page
from brainiac.search.embed import Vectors
from brainiac.search.features import EncodedPage, encode
from brainiac.search.index import (
    DAMAGED,
    Asked,
    Candidates,
    Index,
    UnusableIndexError,
    destroy,
)
from brainiac.search.links import LinkedPage
from brainiac.search.text import Analyzer
from brainiac.tree import NOTE_ENDINGS, Stamp, Tree, stamp_of

READ_AT_ONCE = 64  # more unread files than this are scanned, and read in the background
_MOST_HELD = 256  # pages that were read: more than this are written into the index at once
_SCANNED_PAGES, _SCANNED_BYTES = 128, 500_000  # after an import thousands of long pages wait
_MOST_WAITING = 32  # prompts that wait, the newest: a backlog of thousands is not read for each query
_LATEST = 32  # units of a page that are looked at for that
_EMBEDDED_AT_ONCE = 16  # texts, of what was said a moment ago: a query waits half a second for them, not longer
_SCAN_SECONDS = 1.0  # nobody waits longer for files that are not in the index yet
_REMEMBERED_PAGES = 256
_SETTLE_SECONDS = 2.0
_BATCH = 200
_WRITTEN_PAGES = 4000  # while building, so many are written at once

T = TypeVar("T")


# --- files by their stat, so that a check at start reads none ---------------------------------------------------


def searched_files(tree: Tree) -> dict[str, Stamp]:
    """Return every file that is searched, with its stamp."""
    stamps = tree.scan(tree.short_term, tree.long_term, tree.archive) | tree.source_notes()
    return {path: stamp for path, stamp in stamps.items() if tree.kind_of(path) in SEARCHED}


def unanswered_prompts(tree: Tree) -> list[str]:
    """Return the prompts of the inbox without a response beside them, the newest last."""
    found = tree.scan(tree.inbox)
    prompts = (path for path in found if tree.kind_of(path) is PathKind.PROMPT and response_path(path) not in found)
    return sorted(prompts, key=lambda path: found[path].mtime_ns)


# --- files not in the index yet ---------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A file as it was read: its page with units, and its stamp."""

    page: Page
    stamp: Stamp


class Unindexed:
    """The files whose present state is not in the index yet.

    The owner holds a lock around each call but `note`, `encoded` and `read_page`.

    Args:
        tree: The brain's places.
        analyzer: The brain's language.
        on_read: Called with the path of each file that is read.
        said_in: Returns what memory will have of a prompt that waits, by its path; None for one that does not wait.

    Attributes:
        pages: Pages that were read and replace the index's, by path; None: the file is deleted.
        unread: Paths still to be read, in order.
        n_passed_over: How many of them the last query left out.
        needs_rescan: A folder changed: its files are found by comparing all.
    """

    def __init__(
        self,
        tree: Tree,
        analyzer: Analyzer,
        on_read: Callable[[str], None],
        said_in: Callable[[str], StmEvent | None] = lambda path: None,
    ) -> None:
        self._tree, self._analyzer, self._on_read, self._said_in = tree, analyzer, on_read, said_in
        self._short_term = tree.relative(tree.short_term)
        self._short_term_stamp: Stamp | None = None  # as it was read: it is compared before each query
        self._last_read: OrderedDict[str, _Read] = OrderedDict()  # hits need their texts
        self._noted: deque[str] = deque()  # paths of `note`, not yet looked at
        self._taken_in: deque[str] = deque()  # paths of `note_taken_in`, likewise
        self._waiting: dict[str, EncodedPage | None] = {}  # prompts by path; None: it has to be looked at
        self.pages: dict[str, EncodedPage | None] = {}
        self.unread: dict[str, None] = {}  # a set that has an order
        self.needs_rescan = False
        self.n_passed_over = 0

    def note(self, path: str) -> None:
        """Note that a file, or a folder of files, has changed; never waits for a lock."""
        self._noted.append(path)

    def note_taken_in(self, path: str) -> None:
        """Note that memory has what a prompt says; never waits for a lock."""
        self._taken_in.append(path)

    def collect_noted(self) -> None:
        """Put noted files that differ from what was read into `unread`; for a noted folder ask for a rescan."""
        while self._taken_in:
            self._waiting.pop(self._taken_in.popleft(), None)
        while self._noted:
            path = self._noted.popleft()
            kind = self._tree.kind_of(path)
            if kind in TO_ANSWER:
                page = self._waiting.pop(path, None)
                is_read = page is not None and page.stamp == self.stamp_of(path)
                self._waiting[path] = page if is_read else None
            elif kind in SEARCHED:
                page = self.pages.get(path)
                # one save brings several notices: after the first one the file is as it was read
                if page is None or page.stamp != self.stamp_of(path):
                    self.unread[path] = None
            elif not path.endswith(NOTE_ENDINGS) and self._is_below_pages(path):
                self.needs_rescan = True  # it may be a folder with pages

    def stamp_of(self, path: str) -> Stamp | None:
        """Return the stamp of the file at a path; None where there is none."""
        return stamp_of(f"{self._tree.root}/{path}")  # a path of its own costs ten times as much

    def _is_below_pages(self, path: str) -> bool:
        """Return whether a path lies in one of the folders in which pages are searched."""
        absolute = Path(os.path.normpath(self._tree.absolute(path)))
        return any(absolute.is_relative_to(top) for top in (self._tree.memory, *self._tree.sources))

    def compare(self, indexed: Mapping[str, Stamp]) -> None:
        """Put every file that differs from its state in the index into `unread`.

        Args:
            indexed: Stamp of each page of the index.
        """
        seen = {path: stamp for path, stamp in indexed.items() if path not in self.pages}
        seen |= {path: page.stamp for path, page in self.pages.items() if page}
        stamps = searched_files(self._tree)
        if stamps != seen:  # as a rule they are equal, which takes a tenth of the time
            changed = [path for path, stamp in stamps.items() if seen.get(path) != stamp]
            self.unread |= dict.fromkeys([*changed, *(path for path in seen if path not in stamps)])
        self._short_term_stamp = seen.get(self._short_term)
        self._waiting = dict.fromkeys([*self._waiting, *unanswered_prompts(self._tree)])
        self.needs_rescan = False

    def start_anew(self, paths: Iterable[str]) -> None:
        """Forget the pages that were read, and take these paths as unread."""
        self.pages.clear()
        self.unread = dict.fromkeys(paths)

    def catch_up(self) -> bool:
        """Read what changed, if it is little enough to be read before answering; short-term memory in any case.

        Returns:
            Whether files besides short-term memory were read.
        """
        self.collect_noted()
        self._look_at_waiting()
        if self.stamp_of(self._short_term) != self._short_term_stamp:
            self.unread[self._short_term] = None
        if self._short_term in self.unread:  # what was said a moment ago stands there: it never waits
            self.record_read({self._short_term: self.encoded(self._short_term)})
        if not self.unread or len(self.unread) > READ_AT_ONCE:
            return False
        self.record_read({path: self.encoded(path) for path in self.unread})
        return True

    def _look_at_waiting(self) -> None:
        """Read the prompts that arrived or changed, and drop those that memory has taken in."""
        for path in list(self._waiting)[:-_MOST_WAITING]:
            del self._waiting[path]
        for path, page in list(self._waiting.items()):
            if page is None or page.stamp != self.stamp_of(path):
                if encoded := self.encoded(path):
                    self._waiting[path] = encoded
                else:
                    del self._waiting[path]

    @property
    def fresh(self) -> list[EncodedPage]:
        """The pages that were read and are not in the index: those of files that changed, and the prompts that wait."""
        return [page for page in (*self.pages.values(), *self._waiting.values()) if page]

    @property
    def said_last(self) -> list[str]:
        """Where what was said a moment ago stands, the newest of the prompts that wait first."""
        return [self._short_term, *reversed(self._waiting)]

    def record_read(self, pages: Mapping[str, EncodedPage | None]) -> None:
        """Record pages that were read, but not one whose file changed meanwhile: it stays unread."""
        for path, page in pages.items():
            # what is not unread any more was read by another thread too, and may stand in the index already
            if path in self.unread and (page is None or page.stamp == self.stamp_of(path)):
                self.pages[path] = page
                del self.unread[path]
                if path == self._short_term:
                    self._short_term_stamp = page.stamp if page else None

    def drop(self, written: Mapping[str, EncodedPage | None]) -> None:
        """Drop pages that the index has now, except those that were read again meanwhile."""
        for path, page in written.items():
            if path in self.pages and self.pages[path] is page:
                del self.pages[path]

    @property
    def is_write_due(self) -> bool:
        """Whether the pages should be written into the index without waiting for more."""
        return len(self._noted) + len(self.unread) > READ_AT_ONCE or len(self.pages) > _MOST_HELD

    def holding(self, asked: Asked, words: Sequence[str]) -> list[EncodedPage]:
        """Return the pages not in the index that match a request, most promising first; set `n_passed_over`.

        Args:
            asked: The request to the index.
            words: The query's words as written, for scanning unread files.
        """
        pages = self.fresh
        self.n_passed_over = 0
        if self.unread:
            pages += self._scan([*words, *asked.terms])
        wanted, required = {*asked.terms, *asked.variants}, set(asked.required)
        matching = []
        for page in pages:
            if asked.narrowing is not None and not asked.narrowing.allows(page):
                continue
            passages = [set(text.split()) for text in page.passages]
            passages = [terms for terms in passages if required <= terms]
            n_matches = max((len(wanted & terms) for terms in passages), default=0)
            if n_matches or (passages and not asked.terms):
                matching.append((-n_matches, -page.stamp.mtime_ns, page.page.path, page))
        return [page for *_, page in sorted(matching, key=lambda entry: entry[:3])]

    def _scan(self, words: Sequence[str]) -> list[EncodedPage]:
        """Return the unread files that hold the most of the words, the newest of those that hold as many.

        Files for which there is no time, and those that hold fewer of the words, are counted in `n_passed_over`.
        """
        # no analysis of thousands of files while somebody waits: a word without its last signs is as good as a stem;
        # `#` and `@` begin the marks of tags and days, which no file has
        stems = {word.casefold()[: max(3, len(word) - 2)] for word in words if word and word[0] not in "#@"}
        patterns = [re.compile(re.escape(stem).encode(), re.IGNORECASE) for stem in stems]
        scored = self._scored(patterns)
        best, n_bytes = list[str](), 0
        for *_, path, size in sorted(scored)[:_SCANNED_PAGES]:
            if best and n_bytes + size > _SCANNED_BYTES:
                break
            best.append(path)
            n_bytes += size
        self.n_passed_over += len(scored) - len(best)
        return [page for path in best if (page := self.encoded(path))]

    def _scored(self, patterns: Sequence[re.Pattern[bytes]]) -> list[tuple[int, int, str, int]]:
        """Return the unread files in which a pattern matches: a sort key of two numbers, the path, the size in bytes.

        Those for which there is no time are counted in `n_passed_over`. Without patterns all files are returned.
        """
        scored, until = [], time.monotonic() + _SCAN_SECONDS
        paths = list(self.unread)
        for number, path in enumerate(paths):
            if time.monotonic() > until:
                self.n_passed_over += len(paths) - number
                break
            content = self._content(path) or b""
            n_matches = sum(1 for pattern in patterns if pattern.search(content))
            stamp = self.stamp_of(path)
            if stamp and (n_matches or not patterns):
                scored.append((-n_matches, -stamp.mtime_ns, path, len(content)))
        return scored

    def encoded(self, path: str) -> EncodedPage | None:
        """Return a file read and encoded for the index; None when it is not there."""
        read = self.read_page(path)
        if not read:
            return None
        self._on_read(path)
        return encode(read.page, self._analyzer, read.stamp)

    def read_page(self, path: str) -> _Read | None:
        """Return a file as a page with its units, and its stamp; None when it is not there."""
        stamp = self.stamp_of(path)
        page = self._page_at(path, stamp) if stamp else None
        if stamp is None or page is None:
            return None
        read = self._last_read[path] = _Read(page, stamp)
        if len(self._last_read) > _REMEMBERED_PAGES:
            self._last_read.popitem(last=False)
        return read

    def _page_at(self, path: str, stamp: Stamp) -> Page | None:
        kind = self._tree.kind_of(path)
        if kind in TO_ANSWER:
            said = self._said_in(path)
            return waiting_page(path, said) if said else None
        content = self._content(path)
        if content is None:
            return None
        written = iso(datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC))
        return page_of(path, content.decode("utf-8", "replace"), kind, self._analyzer.zone, written)

    def _content(self, path: str) -> bytes | None:
        """Return a file's bytes; None when it cannot be read."""
        try:
            # a note of a source outside of the brain must lie in a folder that may be read; other paths were listed
            file_path = self._tree.readable(path) if path.startswith("../") else f"{self._tree.root}/{path}"
            with open(file_path, "rb", buffering=0) as file:
                return file.readall()
        except (OSError, ConfinementError):
            return None

    def page_as_of(self, path: str, stamp: Stamp) -> Page | None:
        """Return a file as a page with its units; None where it was changed since it had this stamp."""
        read = self._last_read.get(path)
        is_current = read is not None and read.stamp == self.stamp_of(path)
        if not is_current:
            read = self.read_page(path)
        return read.page if read and read.stamp == stamp else None


# --- both as one ------------------------------------------------------------------------------------------------


class Pages:
    """Pages by query, always as the files stand now; safe to use from several threads.

    Args:
        tree: The brain's places.
        folder: Where the index lives.
        analyzer: The brain's language.
        vectors: Meaning of units, when an embedder is there.
        said_in: See `Unindexed`.
    """

    def __init__(
        self,
        tree: Tree,
        folder: Path,
        analyzer: Analyzer,
        vectors: Vectors | None = None,
        said_in: Callable[[str], StmEvent | None] = lambda path: None,
    ) -> None:
        self._tree, self._folder, self._vectors = tree, folder, vectors
        self._vocabulary, self._analyzer_key = analyzer.vocabulary, analyzer.key
        self._mutex = threading.RLock()
        self._unindexed = Unindexed(tree, analyzer, self._was_read, said_in)
        self._writing = threading.Lock()  # held while the index is written to, which queries need not wait for
        self._embedding = threading.Lock()  # the worker and who asked to reindex must not ask for the same twice
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._is_rebuilding = False
        self._problem = ""  # why there is no index; "" for none
        self._has_words = False  # the words of the index were loaded into the vocabulary
        self._has_written = False  # this process wrote the index: no other one does
        self._index: Index | None = None
        self._unembedded: dict[str, None] = {}  # paths of pages whose vectors may be missing, in order
        self._open()
        self._worker = threading.Thread(target=self._work, name="recall-index", daemon=True)
        self._worker.start()

    def _open(self) -> None:
        """Open the index, note which pages lack vectors, and compare every file with it; build an unusable one anew."""
        try:
            self._index = Index(self._folder, self._analyzer_key)
        except UnusableIndexError:
            self._start_anew()
            return
        if vectors := self._vectors:
            incomplete = self._ask(lambda index: vectors.assign(index.contents())) or ()
            self._unembedded = dict.fromkeys(incomplete)
        self.rescan()

    def _start_anew(self) -> None:
        """Throw the index away and open an empty one; until it is filled, unread files are scanned."""
        if self._index:
            self._index.close()
            self._index = None
        destroy(self._folder)
        try:
            self._index = Index(self._folder, self._analyzer_key)
            self._problem = ""
        except UnusableIndexError as error:  # a read-only or full disk: scanning goes on
            self._problem = str(error)
        self._vocabulary.mark_unsaved()
        self._unindexed.start_anew(dict.fromkeys(searched_files(self._tree)))
        self._wake.set()

    def _ask(self, question: Callable[[Index], T]) -> T | None:
        """Return what a question to the index returns; None without an index, or with one that had to be made anew."""
        # whoever clears the cache folder while we run gets a new index, not answers out of deleted files
        if self._index and not self._folder.exists():
            self._start_anew()
        if self._index is None:
            return None
        try:
            return question(self._index)
        except (UnusableIndexError, *DAMAGED):
            self._start_anew()
            return None

    # --- what changed --------------------------------------------------------------------------------------

    def note_change(self, path: str) -> None:
        """Note that a file, or a folder of files, has changed; never waits for a lock."""
        self._unindexed.note(path)
        self._wake.set()

    def note_taken_in(self, path: str) -> None:
        """Note that memory has what a prompt says; never waits for a lock."""
        self._unindexed.note_taken_in(path)

    def rescan(self) -> None:
        """Compare every file's stat with what the index has."""
        with self._mutex:
            self._unindexed.compare(self._ask(lambda index: index.stamps()) or {})
            self._has_words = False  # another process may have written pages with words of their own
            if self._unindexed.unread:
                self._wake.set()

    def _was_read(self, path: str) -> None:
        """Note that a file's vectors may be missing: it was read because it is new or changed."""
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
            indexed = self._ask(lambda index: index.query(asked)) or Candidates(())
            # the index has an older state of these
            hidden = self._unindexed.pages.keys() | self._unindexed.unread.keys()
            pages = [page for page in indexed.pages if page.page.path not in hidden]
            fresh = self._unindexed.holding(asked, words)
        # the older states count as well until they are replaced: they are few, and a count need not be exact
        texts = [f" {passage} " for page in fresh for passage in page.passages]  # blanks around: whole terms match
        frequencies = {
            term: indexed.frequencies.get(term, 0) + sum(f" {term} " in text for text in texts) for term in asked.terms
        }
        return replace(
            indexed,
            pages=[*fresh, *pages],
            frequencies=frequencies,
            n_passages=indexed.n_passages + len(texts),
            n_unread=self._unindexed.n_passed_over,
        )

    def catch_up(self, asking: str = "") -> None:
        """Read the changed files, if they are few, and load the index's words, unless that was done.

        Args:
            asking: Path of the prompt that is answered; "" for none.
        """
        with self._mutex:
            if self._unindexed.needs_rescan:
                self.rescan()
            if self._unindexed.catch_up():
                self._wake.set()  # the indexing thread writes what was read
            if not self._has_words:
                self._has_words = True
                self._vocabulary.load(self._ask(lambda index: index.words()) or ())
            said_last = [path for path in self._unindexed.said_last if path in self._unembedded and path != asking]
        if said_last:
            self._embed_at_once(said_last)

    def _embed_at_once(self, paths: Sequence[str]) -> None:
        """Make the vectors of what was said a moment ago; of many texts, and elsewhere, in the background."""
        vectors, pages, n_missing = self._vectors, list[Page](), 0
        for path in paths if vectors and not vectors.is_remote else ():
            stamp = self._unindexed.stamp_of(path)
            if page := self._unindexed.page_as_of(path, stamp) if stamp else None:
                # of a long short-term memory the end: the rest has its vectors, or gets them in the background
                pages.append(replace(page, units=page.units[-_LATEST:]))
                n_missing += vectors.n_missing(pages[-1]) if vectors else 0
            if n_missing > _EMBEDDED_AT_ONCE:
                return
        for page in pages:
            if vectors and vectors.embed_page(page) and len(page.units) < _LATEST:
                self._unembedded.pop(page.path, None)

    def named(self, targets: Sequence[str]) -> list[EncodedPage]:
        """Return pages by path or uuid, as the files stand now."""
        wanted = set(targets)
        with self._mutex:
            indexed = self._ask(lambda index: index.pages(targets)) or []
            replaced, fresh = self._unindexed.pages, self._unindexed.fresh
            return [page for page in indexed if page.page.path not in replaced] + [
                page for page in fresh if {page.page.path, page.page.uuid} & wanted
            ]

    def linked(self) -> list[LinkedPage]:
        """Return every page with its links, as the files stand now."""
        self.read_all()
        with self._mutex:
            indexed = self._ask(lambda index: list(index.linked())) or []
            fresh = self._unindexed.pages
            pages = [encoded.page for encoded in fresh.values() if encoded]
            return [page for page in indexed if page.path not in fresh] + [
                LinkedPage(page.path, page.uuid, page.title, page.at, page.links) for page in pages
            ]

    def page_as_of(self, path: str, stamp: Stamp) -> Page | None:
        """Return a file as a page with its units; None where it was changed since it had this stamp."""
        return self._unindexed.page_as_of(path, stamp)

    # --- writing into the index ----------------------------------------------------------------------------

    def read_all(self) -> None:
        """Read every file that is not yet read; may take long after a first start."""
        self.catch_up()
        while self._read_batch():
            pass

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew; return how many files are in it."""
        self._is_rebuilding = True  # the worker leaves the files to this thread
        with self._writing, self._mutex:
            self._start_anew()
            total = len(self._unindexed.unread)
        while self._read_batch() and not self._stopping.is_set():
            if progress:
                progress(total - len(self._unindexed.unread), total)
        self.flush()
        self._is_rebuilding = False
        self._embed(progress)
        return total

    def _read_batch(self) -> bool:
        """Read a batch of unread files; write all that were read once they are many. Return whether any was unread."""
        with self._mutex:
            self._unindexed.collect_noted()
            batch = list(self._unindexed.unread)[:_BATCH]
        # read without the lock, so that queries go on; `record_read` leaves out what changed meanwhile
        pages = {path: self._unindexed.encoded(path) for path in batch}
        with self._mutex:
            self._unindexed.record_read(pages)
            is_full = len(self._unindexed.pages) >= _WRITTEN_PAGES
        if is_full:
            self.flush()
        return bool(batch)

    def _embed(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the vectors that are missing, until one cannot be made or the brain closes."""
        done = 0
        with self._embedding:
            while self._vectors and self._unembedded and not self._stopping.is_set():
                path = next(iter(self._unembedded))
                self._unembedded.pop(path, None)
                read = self._unindexed.read_page(path)
                if read and not self._vectors.embed_page(read.page):
                    self._unembedded[path] = None  # tried again with the next change
                    return
                done += 1
                if progress:
                    progress(done, done + len(self._unembedded))

    def flush(self) -> None:
        """Write the pages that were read into the index; until then queries rank them from memory."""
        with self._writing:
            with self._mutex:
                index, pages = self._index, dict(self._unindexed.pages)
            if index is None or not pages:
                return
            try:
                # another process writes: what we read stays in memory and is ranked from there
                if not index.is_writable():
                    return
                index.remove([path for path, page in pages.items() if page is None])
                index.replace(page for page in pages.values() if page)
                hashes = b"".join(page.words + page.heading for page in pages.values() if page)
                index.add_words(self._vocabulary.unsaved(set(memoryview(hashes).cast("I"))))
                index.commit()
            except (UnusableIndexError, *DAMAGED):
                with self._mutex:
                    self._start_anew()
                return
            with self._mutex:
                self._unindexed.drop(pages)
                if not self._has_written:
                    self._has_words = False  # until now another process may have written, with words of its own
                self._has_written = True

    def _work(self) -> None:
        """Read changed files and write them into the index, in a thread of its own, until the brain closes."""
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            self._read_until_quiet()
            while self._may_read and self._read_batch():
                pass
            if not self._stopping.is_set():
                self.flush()
                self._embed()

    @property
    def _may_read(self) -> bool:
        """Whether the indexing thread goes on reading: the brain is not closed, and `rebuild` does not read."""
        return not (self._stopping.is_set() or self._is_rebuilding)

    def _read_until_quiet(self) -> None:
        """Read changed files until so many were read that they are written at once, or no more came for two seconds."""
        while self._may_read and not self._unindexed.is_write_due:
            self._read_batch()
            if not self._wake.wait(_SETTLE_SECONDS):
                return
            self._wake.clear()

    def status(self) -> dict[str, Any]:
        """Return engine, counts and how fresh the index is; searches are fresh in any case."""
        with self._mutex:
            engine = self._ask(lambda index: index.status()) or {"engine": "scan", "pages": 0, "bytes": 0}
            unread, pages = len(self._unindexed.unread), len(self._unindexed.pages)
            return {
                **engine,
                "freshness": "rebuilding" if unread > READ_AT_ONCE else "fresh",
                # the page that is being embedded is not in the list any more
                "not_yet_embedded": len(self._unembedded) + bool(self._vectors and self._embedding.locked()),
                "not_yet_indexed": unread + pages,
                "problem": self._problem,
            }

    def close(self) -> None:
        """Write the pages that were read into the index, and close its files."""
        self._stopping.set()
        self._wake.set()
        self._worker.join()
        self.flush()
        with self._mutex:
            if self._index:
                self._index.close()
                self._index = None
