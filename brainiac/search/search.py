"""Search over a brain: what changed is taken into the index first, so that it is never stale or silently empty."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from brainiac.clock import SYSTEM, Clock
from brainiac.formats.markdown import StmEvent
from brainiac.search.documents import Hit, HitKind
from brainiac.search.links import LinkGraph
from brainiac.settings import MachineSettings, Settings, load
from brainiac.storage.withheld import Withheld
from brainiac.tree import LocalPlaces, Tree

# numpy is heavy: every command imports this module, and few of them search
if TYPE_CHECKING:
    from brainiac.search.embed import RemoteEmbedders, Vectors
    from brainiac.search.pages import Pages
    from brainiac.search.rank import Ranked
    from brainiac.search.retrieval import Retrieval


class Recall:
    """Search over one brain; safe to use from several threads.

    Args:
        tree: The brain's places.
        places: Machine-local folders; the index lives in `places.cache`.
        settings: The brain's settings (`recall.*`).
        clock: The time source.
        remote: Makes the embedder of a provider; None where there are no providers.
        withheld: Returns what is hidden, which no search returns; None for nothing.
        said_in: Returns what memory will have of a prompt that waits, by its path; None for one that does not wait.
    """

    def __init__(
        self,
        tree: Tree,
        places: LocalPlaces,
        settings: Settings,
        clock: Clock = SYSTEM,
        remote: RemoteEmbedders | None = None,
        withheld: Callable[[], Withheld] | None = None,
        said_in: Callable[[str], StmEvent | None] = lambda path: None,
    ) -> None:
        self.tree = tree
        self._places, self._settings, self._clock = places, settings, clock
        self._remote, self._withheld = remote, withheld
        self._said_in = said_in
        self._mutex = threading.Lock()
        self._embedder_problem = ""
        self._parts: tuple[Pages, Retrieval] | None = None  # opened on first use

    @property
    def is_open(self) -> bool:
        """Whether the index was opened: then what other processes write is seen only by `rescan`."""
        return self._parts is not None

    def search(
        self,
        query: str,
        *,
        limit: int = 8,
        kinds: Collection[HitKind] | None = None,
        now: datetime | None = None,
        is_private: bool = False,
        include_repeats: bool = False,
        asking: str = "",
    ) -> list[Hit]:
        """Find what fits a query best, best first; of equal ones the newer first, and without any words the newest.

        What lies in `memory/archive/` ranks behind all else, and is marked.

        Words of the query stand in each hit, or `Hit.found_by` says what led to it instead.

        Args:
            query: Words as a person types them; `tag:` `type:` `after:` `before:` `path:` "words" -word narrow it.
            limit: At most so many hits; fewer where some of them are hidden.
            kinds: Only hits of these kinds; None for all.
            now: What "last week" refers to; the clock's now without it.
            is_private: The query must not leave this machine: no embedder elsewhere is asked.
            include_repeats: Also turns that have no other words than the query, which are left out as a rule.
            asking: Path of the prompt whose words the query has: its own file is no hit.
        """
        from brainiac.search.retrieval import Options  # with it comes numpy

        options = Options(limit, kinds, is_private, include_repeats, asking)
        hits = self._retrieval.search(query, now or self._clock.now(), options)
        withheld = self._withheld() if self._withheld else None
        return [hit for hit in hits if not (withheld and withheld.hides(hit.path, hit.text, hit.anchor))]

    def rank(self, query: str, *, now: datetime | None = None) -> Ranked | None:
        """Return every candidate of a query with its signals, for learning and for tests; None without any."""
        return self._retrieval.rank(query, now or self._clock.now())

    def absent(self, text: str, *, asking: str = "") -> list[str]:
        """Return words of a text that stand nowhere in memory, as they are written, the most telling first.

        Not in another form either, nor in the archive; an earlier question does not count.

        Args:
            text: A prompt.
            asking: Its path.
        """
        from brainiac.search.absence import absent_words  # for a search that explains itself

        return absent_words(text, self._retrieval.analyzer, self._pages, asking)

    def nearness(self, text: str, others: Sequence[str]) -> list[float]:
        """Return how near each of some texts is to another one in meaning, as a cosine from -1 to 1.

        The embedder on this machine says it; all are 0 where there is none, or the settings want another.
        """
        from brainiac.search.embed import ORDINARY_SENTENCES, EmbedderError, make_embedder, unit_norm  # numpy

        with suppress(EmbedderError):
            # without providers: the texts stay here
            if others and (embedder := make_embedder(self._settings.recall.embedder)):
                # all texts lie close together until what sentences have in common is taken out
                common = embedder.embed(ORDINARY_SENTENCES).mean(0)
                one, *rest = unit_norm(embedder.embed([text, *others]) - common)
                return [float(vector @ one) for vector in rest]
        return [0.0] * len(others)

    def wishes(self, text: str) -> set[str]:
        """Return what a message asks of memory or gives away (see `wishes.py`); nothing without the local embedder."""
        return self._retrieval.wishes(text)

    def note_change(self, path: str) -> None:
        """Take note that a file was written, moved or removed; the next search sees it.

        Args:
            path: Relative, posix; one that search does not look into is passed over.
        """
        self._pages.note_change(path)

    def note_taken_in(self, path: str) -> None:
        """Take note that memory has what the prompt at a path says: it waits no longer."""
        self._pages.note_taken_in(path)

    def rescan(self) -> None:
        """Compare every file with the index, for changes of which `note_change` was not told; costs one stat a file."""
        self._pages.rescan()

    def status(self) -> dict[str, Any]:
        """Return engine, freshness, counts and the embedder as plain values."""
        pages, retrieval = self._opened()
        return {**pages.status(), "embedder": {"problem": self._embedder_problem} | retrieval.embedder_status()}

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew, in this thread; searches go on meanwhile.

        Args:
            progress: Called with files done and files in all.

        Returns:
            How many files are in it.
        """
        return self._pages.rebuild(progress)

    @property
    def links(self) -> LinkGraph:
        """Who links to whom, as of now."""
        return LinkGraph(self._pages.linked(), self.tree)

    def flush(self) -> None:
        """Take the files that changed into the index."""
        self._pages.read_all()

    def close(self) -> None:
        """Close the index."""
        with self._mutex:
            parts, self._parts = self._parts, None
        if parts:
            parts[0].close()

    @property
    def _pages(self) -> Pages:
        return self._opened()[0]

    @property
    def _retrieval(self) -> Retrieval:
        return self._opened()[1]

    def _opened(self) -> tuple[Pages, Retrieval]:
        """Return the index, opened on first use, since opening costs time that many commands need not spend."""
        from brainiac.search.pages import Pages  # with it comes numpy
        from brainiac.search.retrieval import Retrieval
        from brainiac.search.text import Analyzer

        with self._mutex:
            if self._parts is None:
                analyzer = Analyzer(self._settings.recall.language, ZoneInfo(self._settings.time_zone))
                vectors = self._open_vectors()
                pages = Pages(self.tree, self._places.cache / "index", analyzer, vectors, self._said_in)
                self._parts = pages, Retrieval(self.tree, pages, analyzer, vectors)
            return self._parts

    def _open_vectors(self) -> Vectors | None:
        """Return the vectors of the brain; None where its settings want none or the embedder cannot be had.

        Why it cannot be had is noted in `_embedder_problem`.
        """
        from brainiac.search.embed import EmbedderError, Vectors, make_embedder  # with it comes numpy

        machine = load(self._places.config, MachineSettings)
        try:
            embedder = make_embedder(self._settings.recall.embedder, machine, self._remote)
        except EmbedderError as error:
            self._embedder_problem = str(error)
            return None
        return Vectors(self._places.cache / "vectors", embedder) if embedder else None
