"""Pages by query, always as the files are now.

Whatever was written is found by the next query: files that changed are taken into the index before it is answered, for
a second at most; what there was no time for is counted. A thread of its own takes in the rest, and makes vectors.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from brainiac.clock import iso
from brainiac.errors import ConfinementError
from brainiac.events import TO_ANSWER, PathKind
from brainiac.formats.markdown import StmEvent, unescape
from brainiac.formats.prompt import response_path
from brainiac.search.documents import SEARCHED, Page, UnitKind, noon, page_of, waiting_page
from brainiac.search.embed import Vectors
from brainiac.search.features import FEATURES, NO_STAMP, EncodedPage, day_of, encode, kind_of
from brainiac.search.index import DAMAGED, Index, destroy
from brainiac.search.text import Analyzer
from brainiac.storage.statements import text_hash
from brainiac.tree import NOTE_ENDINGS, Stamp, Tree, stamp_of

_MANY = 64  # files: so many are taken in without waiting for more changes
_MOST_WAITING = 32  # prompts that wait, the newest: a backlog of thousands is not read for each query
_LATEST = 32  # units of a page that are looked at for that
_EMBEDDED_AT_ONCE = 16  # texts, of what was said a moment ago: a query waits half a second for them, not longer
_QUERY_SECONDS = 1.0  # nobody waits longer for files that are not in the index yet
_BATCH = 500  # files that are written together: so long a query waits for others' work
_REMEMBERED_PAGES = 256
_SETTLE_SECONDS = 2.0
_FAILING_SECONDS = 60.0  # an index that fails twice in this time is kept in memory

T = TypeVar("T")
# Returns when statements on some pages were said, see `StatementLog.days_on`.
DaysOn: TypeAlias = Callable[[Sequence[str]], Mapping[tuple[str, str, str], str]]
# Returns those of some prompts, by path, that wait no longer, see `Answered.taken_in`.
TakenIn: TypeAlias = Callable[[Sequence[str]], Collection[str]]


class Pages:
    """Pages by query, always as the files stand now; safe to use from several threads.

    Args:
        tree: The brain's places.
        folder: Where the index lives.
        analyzer: The brain's language.
        vectors: Meaning of units, when an embedder is there.
        said_in: Returns what memory will have of a prompt that waits, by its path; None where it will have nothing.
        taken_in: Returns those of some prompts, by path, that wait no longer.
        days_on: Returns what tells the days on which statements were said, as the journals are now.

    Attributes:
        index: The index; another one once it had to be made anew.
    """

    def __init__(
        self,
        tree: Tree,
        folder: Path,
        analyzer: Analyzer,
        vectors: Vectors | None = None,
        said_in: Callable[[str], StmEvent | None] = lambda path: None,
        taken_in: TakenIn = lambda paths: (),
        is_hurried: Callable[[], bool] = lambda: False,
        days_on: Callable[[], DaysOn] = lambda: lambda pages: {},
    ) -> None:
        self._is_hurried, self._days_on = is_hurried, days_on
        self._tree, self._folder, self.analyzer, self.vectors = tree, folder, analyzer, vectors
        self._said_in, self._taken_in, self._short_term = said_in, taken_in, tree.relative(tree.short_term)
        self._mutex = threading.RLock()  # around the index and what is noted of files
        # the worker and who asked to reindex must neither read the same files nor ask for the same vectors
        self._reading = threading.Lock()
        self._embedding = threading.Lock()
        self._embedding_at_once = threading.Lock()  # nor two queries
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._problem, self._failed_at = "", -_FAILING_SECONDS  # why the index is in memory; "" where it is not
        self._noted: deque[str] = deque()  # paths of `note_change`, not yet looked at
        self._unread: dict[str, None] = {}  # paths of files that the index has not as they are, in order
        # short-term memory and the prompts that wait, with their stamps in the index: compared before each query
        self._watched: dict[str, Stamp | None] = {self._short_term: None}
        self._needs_rescan = False  # a folder changed: its files are found by comparing all
        self._last_read: OrderedDict[str, tuple[Page, Stamp]] = OrderedDict()  # hits need their texts
        self._unembedded: dict[str, None] = {}  # paths of pages whose vectors may be missing, in order
        try:
            self.index = Index(self._folder, self.analyzer.key)
        except DAMAGED:
            self._start_anew()
        else:
            if vectors:
                self._unembedded = dict.fromkeys(self.ask(lambda index: vectors.assign(index.contents())) or ())
            self.rescan()
        self._worker = threading.Thread(target=self._work, name="recall-index", daemon=True)
        self._worker.start()

    def _start_anew(self, error: Exception | None = None) -> None:
        """Throw the index away and open an empty one, in memory where the disk takes none, as when it is full.

        Args:
            error: Why; None where nothing is wrong with the disk.
        """
        if hasattr(self, "index"):
            self.index.close()
        destroy(self._folder)
        try:
            if error and time.monotonic() < self._failed_at + _FAILING_SECONDS:
                raise error
            self.index, self._problem = Index(self._folder, self.analyzer.key), ""
        except DAMAGED as unusable:
            self.index, self._problem = Index(None, self.analyzer.key), f"{self._folder}: {unusable}"
        self._failed_at = time.monotonic() if error else self._failed_at
        self.rescan()

    def ask(self, question: Callable[[Index], T]) -> T | None:
        """Return what a question to the index returns; None where another process writes it, or it was made anew.

        What the question itself gets wrong is raised: the index is not at fault.
        """
        with self._mutex:
            # whoever clears the cache folder while we run gets a new index, not answers out of deleted files
            if self.index.is_lost:
                self._start_anew()
                return None
            try:
                return question(self.index)
            except DAMAGED as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    self._start_anew(error)
                return None

    # --- what changed --------------------------------------------------------------------------------------

    def note_change(self, path: str) -> None:
        """Note that a file, or a folder of files, has changed; never waits for a lock."""
        self._noted.append(path)
        self._wake.set()

    def rescan(self) -> None:
        """Compare every file's stat with what the index has."""
        tree = self._tree
        with self._mutex:
            indexed = self.ask(lambda index: index.stamps()) or {}
            found = tree.scan(tree.short_term, tree.long_term, tree.archive) | tree.source_notes()
            stamps = {path: stamp for path, stamp in found.items() if tree.kind_of(path) in SEARCHED}
            inbox = tree.scan(tree.inbox)
            prompts = (
                path for path in inbox if tree.kind_of(path) is PathKind.PROMPT and response_path(path) not in inbox
            )
            waiting = sorted(prompts, key=lambda path: inbox[path].mtime_ns)[-_MOST_WAITING:]  # the newest last
            self._watched = {self._short_term: indexed.get(self._short_term)} | dict.fromkeys(waiting, NO_STAMP)
            if stamps != indexed:  # as a rule they are equal, which takes a tenth of the time
                changed = [path for path, stamp in stamps.items() if indexed.get(path) != stamp]
                changed.sort(key=lambda path: -stamps[path].mtime_ns)
                gone = [path for path in indexed if path not in stamps and path not in self._watched]
                self._unread = dict.fromkeys([*gone, *changed, *self._unread])
                self._wake.set()
            self._needs_rescan = False

    def _look(self) -> None:
        """Put what was noted, and what changed of the files that are watched, in front of all that is unread."""
        if self._needs_rescan:
            self.rescan()
        first = []
        while self._noted:
            path = self._noted.popleft()
            kind = self._tree.kind_of(path)
            if kind in TO_ANSWER:
                self._watched.setdefault(path, NO_STAMP)
            elif kind in SEARCHED:
                first.append(path)
            elif not path.endswith(NOTE_ENDINGS):
                absolute = Path(os.path.normpath(self._tree.absolute(path)))
                # it may be a folder with pages
                tops = (self._tree.memory, *self._tree.sources)
                self._needs_rescan |= any(absolute.is_relative_to(top) for top in tops)
        if self._needs_rescan:
            self.rescan()
        waiting = list(self._watched)[1:]
        for path in {*waiting[:-_MOST_WAITING], *(self._taken_in(waiting) if waiting else ())}:
            self._watched.pop(path, None)  # a journal may have a path that no file here has
            first.append(path)
        first += [path for path, stamp in self._watched.items() if stamp != self._stamp_of(path)]
        if first:
            self._unread = dict.fromkeys([*reversed(first), *self._unread])

    def _stamp_of(self, path: str) -> Stamp | None:
        """Return the stamp of the file at a path; None where there is none."""
        return stamp_of(f"{self._tree.root}/{path}")  # a path of its own costs ten times as much

    # --- into the index ------------------------------------------------------------------------------------

    def _read(self, paths: Iterable[str], until: float = math.inf) -> dict[str, EncodedPage | None]:
        """Return files read and encoded, the first one and those for which there is time until `time.monotonic()`.

        None for one that is not there.
        """
        pages: dict[str, EncodedPage | None] = {}
        days_on: DaysOn | None = None
        for path in paths:
            page, stamp = self._page_at(path)
            days_on = days_on or self.days_on()  # once for all: it follows the journals
            dated = page and _with_days(page, days_on, self.analyzer.zone)
            pages[path] = encode(dated, self.analyzer, stamp) if dated and stamp else None
            if time.monotonic() > until:
                break
        return pages

    def _take_in(self, pages: Mapping[str, EncodedPage | None]) -> bool:
        """Write files that were read into the index; return whether there may be more."""

        def write(index: Index) -> dict[str, EncodedPage | None]:
            with index.writing():
                # what was saved since is read again; another process that read it before has written it before us
                now = {path: page for path, page in pages.items() if not page or page.stamp == self._stamp_of(path)}
                index.replace(now, self.analyzer.met)
                return now

        pages = {path: page for path, page in pages.items() if path in self._unread}  # others may have been quicker
        written = self.ask(write) if pages else None
        for path, page in (written or {}).items():
            self._unread.pop(path, None)
            if path in self._watched:
                self._watched[path] = page.stamp if page else None
                if not page and path != self._short_term:
                    del self._watched[path]
            if page and self.vectors:
                self._unembedded[path] = None
        return bool(self._unread and (written or not pages))

    def _page_at(self, path: str) -> tuple[Page | None, Stamp | None]:
        """Return a file as a page with its units, None where there is none or it cannot be read; and its stamp."""
        stamp = self._stamp_of(path)
        if stamp is None:
            return None, None
        kind = self._tree.kind_of(path)
        if kind in TO_ANSWER and path not in self._watched:
            return None, stamp
        if (read := self._last_read.get(path)) and read[1] == stamp:
            return read
        if kind in TO_ANSWER:
            said = self._said_in(path)
            return self._remembered(waiting_page(path, said), stamp) if said else (None, stamp)
        try:
            # a note of a source outside of the brain must lie in a folder that may be read; other paths were listed
            file_path = self._tree.readable(path) if path.startswith("../") else f"{self._tree.root}/{path}"
            with open(file_path, "rb", buffering=0) as file:
                text = file.readall().decode("utf-8", "replace")
        except (OSError, ConfinementError):
            return None, stamp
        written = iso(datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC))
        return self._remembered(page_of(path, text, kind, self.analyzer.zone, written), stamp)

    def _remembered(self, page: Page, stamp: Stamp) -> tuple[Page, Stamp]:
        """Return a page that was read, with the stamp of its file, and remember both."""
        self._last_read[page.path] = page, stamp
        if len(self._last_read) > _REMEMBERED_PAGES:
            self._last_read.popitem(last=False)
        return page, stamp

    def days_on(self, pages: Iterable[str] = ()) -> DaysOn:
        """Return what tells the days on which statements were said, as the journals are now.

        Args:
            pages: The uuids of those that will be asked for: one query has the days of all of them.
        """
        days_on, asked = self._days_on(), set(filter(None, pages))
        days = days_on(list(asked)) if asked else {}
        return lambda pages: days if asked.issuperset(pages) else days_on(pages)

    def page_as_of(self, encoded: EncodedPage, days_on: DaysOn) -> Page | None:
        """Return a page with its units; None where its file, or what a journal says of its days, is another by now."""
        page, stamp = self._page_at(encoded.page.path)
        if page is None or stamp != encoded.stamp:
            return None
        page, zone = _with_days(page, days_on, self.analyzer.zone), self.analyzer.zone
        days = [day_of(unit.at or page.at, zone) for unit in page.units if unit.kind is UnitKind.STATEMENT]
        rows = np.frombuffer(encoded.features, FEATURES)
        known = rows["day"][kind_of(rows["flags"]) == UnitKind.STATEMENT].tolist()
        return page if len(page.units) == len(rows) and days == known else None

    def read_all(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Take every file that changed into the index, which may take long after a first start; return how many."""
        done, is_more = 0, True
        while is_more and not self._stopping.is_set():
            with self._reading:
                with self._mutex:
                    self._look()
                    paths = list(islice(self._unread, _BATCH))
                pages = self._read(paths)  # without the other lock, so that queries go on
                with self._mutex:
                    before = len(self._unread)
                    is_more = self._take_in(pages)
                    done += before - len(self._unread)
                    total = done + len(self._unread)
            if progress:
                progress(done, total)
        return done

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew; return how many files are in it."""
        with self._mutex:
            self._start_anew()
            total = len(self._unread)
        self.read_all(progress)
        with self._mutex:
            self.ask(lambda index: index.optimize())
        self.embed(progress)
        return total

    def _work(self) -> None:
        """Take changed files into the index and make their vectors, in a thread of its own, until the brain closes."""
        while not self._stopping.is_set():
            self._wake.wait()
            if len(self._unread) + len(self._noted) <= _MANY:
                self._stopping.wait(_SETTLE_SECONDS)
            self._wake.clear()
            self.read_all()
            if not self._stopping.is_set():
                self.embed()

    def embed(self, progress: Callable[[int, int], None] | None = None, seconds: float = math.inf) -> None:
        """Make the vectors that are missing, for so many seconds, until one cannot be made or the brain closes."""
        done, until = 0, time.monotonic() + seconds
        with self._embedding:
            while self.vectors and self._unembedded and not self._stopping.is_set() and time.monotonic() < until:
                if not progress and self._is_hurried():
                    self._stopping.wait(_SETTLE_SECONDS)
                    continue
                path = next(iter(self._unembedded))
                self._unembedded.pop(path, None)
                page, _ = self._page_at(path)
                if page and not self.vectors.embed_page(page):
                    self._unembedded[path] = None  # tried again with the next change
                    return
                done += 1
                if progress:
                    progress(done, done + len(self._unembedded))

    # --- queries -------------------------------------------------------------------------------------------

    @property
    def n_unread(self) -> int:
        """How many files the index lacks, or has as they were; 0 for so few that the next query takes them in."""
        n_unread = len(self._unread)
        return n_unread if n_unread > _MANY else 0

    @property
    def state(self) -> object:
        """What is another value once the index or the vectors have changed; None where it cannot be told."""
        return self.ask(lambda index: (index.state, self.vectors and self.vectors.n_vectors))

    def catch_up(self, asking: str = "") -> None:
        """Take the files that changed into the index, as many as there is time for.

        Args:
            asking: Path of the prompt that is answered; "" for none.
        """
        with self._mutex:
            until = time.monotonic() + _QUERY_SECONDS
            for _ in range(2):  # again where it turns out to be damaged
                index = self.index
                self._look()
                while self._take_in(self._read(list(self._unread)[:_BATCH], until)) and time.monotonic() < until:
                    pass
                if self.index is index:
                    break
            # where what was said a moment ago stands, the newest first
            said_last = [self._short_term, *reversed(list(self._watched)[1:])]
            said_last = [path for path in said_last if path in self._unembedded and path != asking]
        if said_last and not self._is_hurried():
            with self._embedding_at_once:
                self._embed_at_once(said_last)

    def _embed_at_once(self, paths: Sequence[str]) -> None:
        """Make the vectors of what was said a moment ago; of many texts, and elsewhere, in the background."""
        vectors, pages, n_missing = self.vectors, list[Page](), 0
        if vectors is None or vectors.is_remote:
            return
        for path in paths:
            page, _ = self._page_at(path)
            if page:
                # of a long short-term memory the end: the rest has its vectors, or gets them in the background
                pages.append(replace(page, units=page.units[-_LATEST:]))
                n_missing += vectors.n_missing(pages[-1])
            if n_missing > _EMBEDDED_AT_ONCE:
                return
        for page in pages:
            if vectors.embed_page(page) and len(page.units) < _LATEST:
                self._unembedded.pop(page.path, None)

    def linked(self) -> list[Page]:
        """Return every page with its links, as the index has them."""
        pages = self.ask(lambda index: list(index.linked())) or ()
        return [page for page in pages if page.path == self._short_term or page.path not in self._watched]

    def ask_now(self, question: Callable[[Index], T]) -> T | None:
        """Return what a question to the index returns, once that has what changed; see `ask`.

        While many files are read, as at a first start, nobody waits for them.
        """
        if not self.n_unread:
            self.catch_up()
        return self.ask(question)

    def linked_state(self) -> object:
        """Return what is another value once `linked` would return other pages; None where that is not known.

        Files that changed are taken in first, as many as a query waits for.
        """
        self.catch_up()
        state = self.ask(lambda index: index.state)
        return None if state is None else (state, frozenset(self._watched))

    def status(self) -> dict[str, Any]:
        """Return engine, counts and how fresh the index is; searches are fresh in any case."""
        with self._mutex:
            engine, unread = self.ask(lambda index: index.status()) or {}, len(self._unread)
            return {
                **engine,
                "freshness": "rebuilding" if self.n_unread else "fresh",
                # the page that is being embedded is not in the list any more
                "not_yet_embedded": len(self._unembedded) + bool(self.vectors and self._embedding.locked()),
                "not_yet_indexed": unread,
                "problem": self._problem,
            }

    def close(self) -> None:
        """Close the index."""
        self._stopping.set()
        self._wake.set()
        self._worker.join()
        with self._mutex:
            self.index.close()


def _with_days(page: Page, days_on: DaysOn, zone: tzinfo) -> Page:
    """Return a page, its statements with the day on which a journal has each said; other units keep theirs."""
    has_statements = any(unit.kind is UnitKind.STATEMENT for unit in page.units)
    days = days_on([page.uuid]) if page.uuid and has_statements else {}
    if not days:
        return page
    # no other unit has a block id for an anchor
    said = [days.get((page.uuid, unit.anchor, text_hash(unescape(unit.text))), "") for unit in page.units]
    units = zip(page.units, said, strict=True)
    return replace(
        page, units=tuple(replace(unit, at=noon(day, zone) or unit.at) if day else unit for unit, day in units)
    )
