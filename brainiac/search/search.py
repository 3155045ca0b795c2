"""Search over a brain, and what is said beside its hits: words that stand nowhere, and what holds instead of old words.

What the index has not taken in yet is scanned, so that a search is never stale or silently empty.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from brainiac.clock import SYSTEM, Clock
from brainiac.errors import FormatError
from brainiac.events import StatementRecord
from brainiac.formats.markdown import PRIVATE, one_line
from brainiac.formats.page import Memory, parse_memory
from brainiac.search.documents import Former, Hit, HitKind
from brainiac.search.features import EncodedPage
from brainiac.search.index import Asked
from brainiac.search.links import LinkGraph
from brainiac.search.pages import Pages
from brainiac.search.signals import PageArrays, Units
from brainiac.search.text import Analyzer, is_unspaced, words_of
from brainiac.search.vocabulary import term_hash
from brainiac.settings import MachineSettings, Settings, load
from brainiac.storage.causes import undone_events
from brainiac.storage.statements import text_hash
from brainiac.storage.store import Store
from brainiac.tree import LocalPlaces, Tree

# numpy and tantivy are heavy: every command imports this module, and few of them search
if TYPE_CHECKING:
    from brainiac.search.embed import RemoteEmbedders, Vectors
    from brainiac.search.index import Index
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
        open_index: Another engine than the embedded one.
        remote: Makes the embedder of a provider; None where there are no providers.
        muted: Gives the exchanges that are not to be quoted.
        may_be_embedded: Whether the text of a unit (tree, path, text) may go to an embedder elsewhere.
    """

    def __init__(
        self,
        tree: Tree,
        places: LocalPlaces,
        settings: Settings,
        clock: Clock = SYSTEM,
        open_index: Callable[[], Index] | None = None,
        remote: RemoteEmbedders | None = None,
        muted: Callable[[], Container[str]] = frozenset,
        may_be_embedded: Callable[[Tree, str, str], bool] = lambda tree, path, text: True,
    ) -> None:
        self.tree = tree
        self._places, self._settings, self._clock = places, settings, clock
        self._open_index, self._remote, self._muted = open_index, remote, muted
        self._may_be_embedded = may_be_embedded
        self._mutex = threading.Lock()
        self._embedder_problem = ""
        self._parts: tuple[Pages, Retrieval] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the index was opened, and so what other processes write is not seen without a look."""
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
    ) -> list[Hit]:
        """Find what fits a query best, best first; of equal ones the newer first, and without any words the newest.

        What lies in `memory/archive/` ranks behind all else, and is marked.

        Words of the query stand in each hit, or `Hit.found_by` says what led to it instead.

        Args:
            query: Words as a person types them; `tag:` `type:` `after:` `before:` `path:` "words" -word narrow it.
            limit: At most so many hits.
            kinds: Only hits of these kinds; None for all.
            now: What "last week" refers to; the clock's now without it.
            is_private: The query must not leave this machine: no embedder elsewhere is asked.
            include_repeats: Also what was said in nothing but the query's own words.
        """
        from brainiac.search.retrieval import Options  # with it comes numpy

        muted = self._muted()
        options = Options(limit, kinds, is_private, include_repeats)
        hits = self._retrieval.search(query, now or self._clock.now(), options)
        return [hit for hit in hits if hit.anchor not in muted]

    def rank(self, query: str, *, now: datetime | None = None) -> Ranked | None:
        """Return every candidate of a query with its signals, for learning and for tests; None without any."""
        return self._retrieval.rank(query, now or self._clock.now())

    def absent(self, text: str) -> list[str]:
        """Return words of a text that stand nowhere in memory, as they are written, the most telling first.

        Not in another form either, nor in what was put to rest; a question asked before is no place to stand in.
        """
        from brainiac.search.search import absent_words  # for a search that explains itself

        return absent_words(text, self._retrieval.analyzer, self._pages)

    def rare_words(self, text: str) -> list[str]:
        """Return the words of a text that tell something, casefolded: those in few of all texts of this brain."""
        from brainiac.search.search import rare_words  # for a search that explains itself

        return rare_words(text, self._retrieval.analyzer, self._pages)

    def note_change(self, path: str) -> None:
        """Take note that a file was written, moved or removed; the next search sees it.

        Args:
            path: Relative, posix; one that search does not look into is passed over.
        """
        self._pages.note_change(path)

    def rescan(self) -> None:
        """Look the tree over for changes nobody told of; costs one stat a file."""
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
        """Read the files that changed and write them into the index."""
        self._pages.read_all()
        self._pages.flush()

    def close(self) -> None:
        """Write pending changes into the index, and close its files."""
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
                pages = Pages(self.tree, self._places.cache / "index", analyzer, self._open_index, vectors)
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
        may_be_sent = partial(self._may_be_embedded, self.tree)
        return Vectors(self._places.cache / "vectors", embedder, may_be_sent) if embedder else None


# --- which words of a prompt stand nowhere in memory: certain without a model that understands the prompt ------------
# A word stands in memory when a text holds it or a form of it; an earlier question with it does not count.

MOST_NAMED = 3
_LEAST_SIGNS = 3  # of a word worth naming
_MOST_ASKED = 64
_LOOKED_AT = 64  # passages: a word that stands in more of them stands somewhere
_SAME_WORD = 0.7  # of the longer word's character trigrams: words so much alike are taken for forms of one
_WITHIN = 0.7  # of the asked word's: a compound that holds it holds it
_FEW, _RARE_SHARE = 3, 0.05  # passages in which a word is rare
_POSSESSIVE = re.compile(r"['’]s?$")
# stretches of one script, where no blanks part the words: what stands between them mostly joins them
_SCRIPT_RUN = re.compile(
    "[\u30a0-\u30ff]{2,}|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u0e00-\u109f\u1780-\u17ff]+"
)
_LONGEST_TERM = 4  # signs of such a script: a longer stretch is no single word


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a prompt.

    Attributes:
        written: As it is written.
        stems: Of its tokens: one, or the pairs of a script without spaces.
        is_name: It is written as a name is.
        is_run: It is a stretch of such a script.
    """

    written: str
    stems: tuple[str, ...]
    is_name: bool = False
    is_run: bool = False


def absent_words(text: str, analyzer: Analyzer, pages: Pages) -> list[str]:
    """Return words of a text that stand nowhere in memory, the archive included: names first, then longer words.

    Args:
        text: A prompt.
        analyzer: The person's language: its stop words are not returned.
        pages: Where memory is searched.

    Returns:
        At most `MOST_NAMED` words as they are written in the text.
    """
    # of two forms of one word the last is named, and a long paste is not looked through to its end
    words = list({word.stems: word for word in _words(text, analyzer)}.values())[:_MOST_ASKED]
    # what was written a moment ago brings words of its own, which the forms below must know
    pages.catch_up()
    forms = {stem: _forms(word, stem, analyzer) for word in words for stem in word.stems}
    terms = list(dict.fromkeys(form for similar in forms.values() for form in similar))
    if not terms:
        return []
    candidates = pages.candidates(Asked(terms=terms, limit=_LOOKED_AT * MOST_NAMED))
    counts = candidates.frequencies
    frequencies = {stem: max((counts.get(form, 0) for form in forms[stem]), default=0) for stem in forms}
    places = _Places(candidates.pages, analyzer)

    def stands(stem: str) -> bool:
        return frequencies[stem] > _LOOKED_AT or places.tell(forms[stem])

    absent = [part for word in words for part in _absent_parts(word, stands)]
    order = sorted(absent, key=lambda word: (not word.is_name, -len(word.written)))[:MOST_NAMED]
    return list(dict.fromkeys(word.written for word in order))


def rare_words(text: str, analyzer: Analyzer, pages: Pages) -> list[str]:
    """Return the words of a text that stand in few passages of memory, stop words left out.

    Words of thanks, said each day, are in many passages whatever the language, and so are not returned.
    """
    tokens = [t for t in dict.fromkeys(analyzer.tokens(text)) if not t.is_stop and len(t.word) >= _LEAST_SIGNS - 1]
    candidates = pages.candidates(Asked(terms=list(dict.fromkeys(token.stem for token in tokens)), limit=1))
    most = max(_FEW, candidates.n_passages * _RARE_SHARE)
    return [token.word for token in tokens if candidates.frequencies.get(token.stem, 0) <= most]


def _absent_parts(word: _Word, stands: Callable[[str], bool]) -> Iterator[_Word]:
    """Yield a word that stands nowhere; of a stretch without spaces, the parts that no known pair of signs covers.

    Args:
        word: Of the prompt.
        stands: Returns whether a stem stands in memory.
    """
    if not word.is_run:
        if not stands(word.stems[0]):
            yield word
        return
    pairs = [stands(stem) for stem in word.stems]
    if "\u30a0" <= word.written[0] <= "\u30ff":  # katakana writes single words
        if not all(pairs):
            yield word
        return
    covered = np.zeros(len(word.written), bool)
    for at in np.flatnonzero(pairs):
        covered[at : at + 2] = True
    for stretch in re.finditer("0+", "".join("01"[int(is_covered)] for is_covered in covered)):
        if 1 < len(stretch[0]) <= _LONGEST_TERM or stretch[0] == "0" * len(word.written):
            yield replace(word, written=word.written[stretch.start() : stretch.end()])


def _words(text: str, analyzer: Analyzer) -> Iterator[_Word]:
    """Yield the words of a text that are worth naming: no stop words, none of fewer than `_LEAST_SIGNS` signs."""
    for written, is_first in words_of(text):
        if is_unspaced(written):
            for run in _SCRIPT_RUN.findall(written):
                yield _Word(run, tuple(analyzer.terms(run)), is_run=True)
            continue
        token = analyzer.token(written)
        if token and not token.is_stop and len(token.word) >= _LEAST_SIGNS:
            yield _Word(_POSSESSIVE.sub("", written), (token.stem,), is_name=written[0].isupper() and not is_first)


def _forms(word: _Word, stem: str, analyzer: Analyzer) -> list[str]:
    """Return a stem and those of similar words of the brain: inflections, compounds, misspellings."""
    vocabulary = analyzer.vocabulary
    if word.is_run:
        return vocabulary.holding(stem) if len(stem) == 1 else [stem]
    token = analyzer.token(word.written)
    similar = vocabulary.similar(token.word if token else stem, 8, min_of_longer=_SAME_WORD, min_of_asked=_WITHIN)
    return [stem, *(other for other, _ in similar)]


class _Places:
    """The units in which words of a prompt stand.

    Args:
        pages: Those that hold any of the words.
        analyzer: Whose vocabulary knows the words.
    """

    def __init__(self, pages: Sequence[EncodedPage], analyzer: Analyzer) -> None:
        pages = [page for page in pages if page.features]
        self._units = Units(PageArrays(pages)) if pages else None
        table = analyzer.vocabulary.table
        self._headings = table.stems[table.numbers(_joined([page.heading for page in pages]))]
        self._stems = table.stems[table.numbers(_joined([page.words for page in pages]))]

    def tell(self, forms: Sequence[str]) -> bool:
        """Return whether a statement holds one of the stems, or two different questions do.

        A word of several questions (`which`, in whatever language) is one that questions are made of.
        """
        wanted = np.array([term_hash(form) for form in forms], np.uint32)
        if np.isin(wanted, self._headings).any():
            return True
        if self._units is None:
            return False
        holds = np.bincount(self._units.owner, np.isin(self._stems, wanted), self._units.n) > 0
        return bool((holds & self._units.tells).any()) or len(np.unique(self._units.content[holds])) > 1


def _joined(arrays: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return several arrays of word hashes as one."""
    return np.frombuffer(b"".join(arrays), np.uint32)


# --- hits whose words no longer hold ---------------------------------------------------------------------------------
# A raw exchange stays as it was typed. Where a statement that rested on it was replaced, ended or corrected since, the
# hit says so: otherwise a reader would take the old words for true.


def with_former(store: Store, hits: Sequence[Hit], *, hides_private: bool) -> list[Hit]:
    """Return hits; those in raw exchanges have in `former` the words that no longer hold.

    Args:
        store: Whose pages and journals are asked.
        hits: The hits.
        hides_private: Whether a private statement that holds instead is left out.
    """
    exchanges = {hit.anchor for hit in hits if hit.kind == "exchange" and hit.anchor}
    if not exchanges:
        return list(hits)
    rows = _rows(store, exchanges)
    if not rows:
        return [replace(hit, former=()) if hit.former else hit for hit in hits]
    pages = _Pages(store, hides_private=hides_private)
    current = {row.hash for _, row in rows if pages.holds(row)}
    return [replace(hit, former=tuple(_former(hit, rows, current, pages))) for hit in hits]


def _rows(store: Store, exchanges: Iterable[str]) -> list[tuple[str, StatementRecord]]:
    """Return the records of statements that rest on exchanges, each with its exchange, oldest first."""
    undone = undone_events(store)  # this follows the journals
    rows = store.projection.query(
        "SELECT wanted.value, event, data FROM statements, json_each(?) wanted"
        " WHERE step = 0 AND instr(data, wanted.value) ORDER BY event",
        json.dumps(sorted(exchanges)),
    )
    records = [(name, StatementRecord.from_json(json.loads(data))) for name, event, data in rows if event not in undone]
    return [(name, row) for name, row in records if row.block and name in row.sources]


def _former(
    hit: Hit, rows: Sequence[tuple[str, StatementRecord]], current: set[str], pages: _Pages
) -> Iterable[Former]:
    """Yield the words of a hit that no longer hold, each once.

    Args:
        hit: The hit.
        rows: The records that rest on any of the exchanges, each with its exchange.
        current: Hashes of the statements that still hold.
        pages: Where statements that hold instead are looked up.
    """
    # what the keyless engine kept is not outdated because a model has put it into other words since
    seen = {row.replaced.hash for _, row in rows if row.operation == "REWORD" and row.replaced} | {""}
    said = _folded(hit.text)
    for exchange, row in rows:
        if exchange != hit.anchor or row.hash in current or row.hash in seen:
            continue
        quotes = [one_line(quoted.quote) for quoted in row.evidence if quoted.exchange == exchange]
        words = next((quote for quote in quotes if _folded(quote) in said), "")
        # without evidence the statement is the person's own words, which the hit may hold besides others
        if words or not quotes:
            seen.add(row.hash)
            yield Former(words, pages.successor(row))


class _Pages:
    """The pages of statements, each read once for a search."""

    def __init__(self, store: Store, *, hides_private: bool) -> None:
        self._store, self._hides_private = store, hides_private
        self._read: dict[str, Memory | None] = {}

    def holds(self, row: StatementRecord) -> bool:
        """Return whether a statement holds as it was stated."""
        page = self._page(row)
        return page is not None and any(
            not statement.is_history and text_hash(statement.text) == row.hash for statement in page.statements
        )

    def successor(self, row: StatementRecord) -> str:
        """Return the statement that holds in place of another; "" where none does, or it must not be shown."""
        page = self._page(row)
        if page is None:
            return ""
        past = [
            statement for statement in page.statements if statement.is_history and text_hash(statement.text) == row.hash
        ]
        blocks = [row.block, *(statement.replaced_by for statement in past)]
        now = next((new for new in page.statements if not new.is_history and new.block_id in blocks), None)
        if now is None or (self._hides_private and (page.is_private or PRIVATE.search(now.text))):
            return ""
        return one_line(now.text)

    def _page(self, row: StatementRecord) -> Memory | None:
        """Return the page of a statement, found by its uuid where it was moved; None where it is gone."""
        if row.page not in self._read:
            memory = self._parsed(row.path)
            if memory is None or (memory.uuid or memory.path) != row.page:
                memory = self._parsed(self._store.pages().path_by_uuid.get(row.page, ""))  # it was moved
            self._read[row.page] = memory
        return self._read[row.page]

    def _parsed(self, path: str) -> Memory | None:
        """Return the page at a path; None where there is none or it cannot be parsed."""
        try:
            text = self._store.read_page(path) if path else None
            return None if text is None else parse_memory(path, text)
        except FormatError:
            return None


def _folded(text: str) -> str:
    """Return a text without case and extra white space, for comparing."""
    return " ".join(text.split()).casefold()
