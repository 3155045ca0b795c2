"""From a query to hits: candidates of the store, their signals, the ranking, and the words as they stand on disk."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brainiac.recall.encode import FACTS, FROM_AI, NO_DAY, ONLY_ASKS, EncodedPage, name_mark, signed
from brainiac.recall.hit import FoundBy, Hit, HitKind
from brainiac.recall.index import Asked, Candidates
from brainiac.recall.query import Query, parse_query, speaker_words
from brainiac.recall.rank import rank
from brainiac.recall.signals import (
    COMMON_SHARE,
    Lexical,
    Signals,
    Units,
    Vector,
    content_signals,
    dialogue_signals,
    lexical_signals,
    relative,
)
from brainiac.recall.store import Store
from brainiac.recall.text import Analyzer, ends_as_question, plain_words, term_hash
from brainiac.recall.units import Page, Unit, UnitKind
from brainiac.recall.vocabulary import Table
from brainiac.tree import Tree

if TYPE_CHECKING:
    from brainiac.recall.vectors import Vectors

_PASSAGES = 128
_PASSAGES_READ = 1000  # where the text of a hit decides whether it is one
_PAGES_LISTED = 300
_VARIANTS = 8  # of each word: so many that are like it
_MAX_UNITS = 6000
_LEAST_COSINE = 0.3  # what is further away in meaning has nothing to do with it
WAYS: tuple[FoundBy, ...] = ("title", "words", "meaning", "context", "day", "fields")
_SPREAD_FROM = 5


@dataclass(frozen=True)
class Ranked:
    """The units of a query's candidates with their scores.

    Attributes:
        query: What was asked.
        units: Candidates.
        scores: One a unit.
        signals: By name, one number a unit.
        found_by: What led to each unit, by its place in `WAYS`; -1 where nothing did.
    """

    query: Query
    units: Units
    scores: Vector
    signals: Signals
    found_by: NDArray[np.int8]

    def signals_of(self, number: int) -> dict[str, float]:
        """Return what speaks for one unit; signals that are 0 are left out."""
        return {
            name: value for name, value in zip(self.signals, self._matrix[:, number].tolist(), strict=True) if value
        }

    @cached_property
    def _matrix(self) -> Vector:
        return np.array(list(self.signals.values()))


class Retrieval:
    """Answer queries from a store.

    Args:
        tree: The brain's places.
        store: Where candidates come from.
        analyzer: The brain's language.
        vectors: Meaning of units, when an embedder is there.
    """

    def __init__(self, tree: Tree, store: Store, analyzer: Analyzer, vectors: Vectors | None = None) -> None:
        self._tree, self._store, self._analyzer, self._vectors = tree, store, analyzer, vectors

    def search(
        self,
        text: str,
        *,
        limit: int,
        kinds: Collection[HitKind] | None,
        include_archive: bool,
        now: datetime,
        context: Sequence[str],
        is_private: bool = False,
    ) -> list[Hit]:
        """Return the best hits, see `Recall.search`."""
        query = parse_query(text, self._analyzer, now, self._tree.relative(self._tree.long_term))
        rank = partial(self._rank, include_archive=include_archive, context=context, is_private=is_private)
        hits = self._search(query, rank, limit, kinds)
        if not hits and (rare := self._rare_words(query)):
            # words that seldom tell anything are all that is left: here they may
            hits = self._search(replace(query, terms=rare), rank, limit, kinds)
        return hits

    def _search(
        self, query: Query, rank: Callable[[Query], Ranked | None], limit: int, kinds: Collection[HitKind] | None
    ) -> list[Hit]:
        hits: list[Hit] = []
        for _ in range(3):  # again when a file turns out to be other than it was when ranked
            ranked = rank(query)
            if ranked is None:
                return []
            hits, moved = self._hits(ranked, limit, kinds)
            if not moved:
                break
            for path in moved:
                self._store.note_change(path)
        return hits

    def rank(
        self,
        text: str,
        *,
        now: datetime,
        include_archive: bool = False,
        context: Sequence[str] = (),
        is_private: bool = False,
    ) -> Ranked | None:
        """Score the candidates of a query; None when there are none."""
        query = parse_query(text, self._analyzer, now, self._tree.relative(self._tree.long_term))
        return self._rank(query, include_archive=include_archive, context=context, is_private=is_private)

    def _rank(self, query: Query, *, include_archive: bool, context: Sequence[str], is_private: bool) -> Ranked | None:
        found = self._asked(query)
        is_remote = self._vectors is not None and self._vectors.is_remote
        vectors = None if not query.terms or (is_remote and is_private) else self._vectors
        asked = without_speakers(query, found.pages) if vectors else ""
        pages = [*found.pages, *self._by_meaning(vectors, asked, found.pages)]
        pages = sorted(_within(pages, query, include_archive=include_archive), key=lambda encoded: encoded.page.path)
        if not pages:
            return None
        units = Units(pages)
        words = Lexical(units, query, found.frequencies, found.n_passages, self._table(units))
        signals = lexical_signals(words)
        signals |= dialogue_signals(words, signals) | content_signals(words, signals)
        signals |= self._priors(words, signals, context)
        if vectors and (meaning := vectors.signals(asked, units)):
            signals |= meaning
            signals["about_meaning"] = signals["about"] * signals["meaning"]
        scores, around = rank(units, signals)
        signals |= around
        return Ranked(query, units, scores, signals, _found_by(units, words, signals))

    def _asked(self, query: Query) -> Candidates:
        vocabulary = self._analyzer.vocabulary
        variants: dict[str, tuple[str, float]] = {}
        for token in query.tokens:
            if token.stem in query.terms:
                for stem, likeness in vocabulary.alike(token.word, _VARIANTS):
                    variants.setdefault(stem, (token.stem, likeness))
        is_listing = not query.terms and not query.required
        asked = Asked(
            terms=[*query.terms, *query.marks()],
            limit=_PAGES_LISTED if is_listing else _PASSAGES_READ if query.reads_text else _PASSAGES,
            required=query.required,
            variants=variants,
            narrowing=query.narrowing or None,
        )
        return self._store.candidates(asked, words=sorted(query.words) if query.terms else ())

    def _rare_words(self, query: Query) -> tuple[str, ...]:
        """Return those of a query's words that stand in few passages of this brain, whatever the language has them for."""
        stems = [stem for stem in dict.fromkeys(token.stem for token in query.tokens) if stem not in query.terms]
        if not stems:
            return ()
        found = self._store.candidates(Asked(terms=stems, limit=1))
        most = found.n_passages * COMMON_SHARE
        return tuple(stem for stem in stems if 0 < found.frequencies.get(stem, 0) <= most)

    def _table(self, units: Units) -> Table:
        """Return the words of the brain, those of the units among them."""
        vocabulary = self._analyzer.vocabulary
        if (vocabulary.table.numbers(units.words) < 0).any():
            self._store.read_words_again()
        return vocabulary.table

    # --- signals that need more than the words ------------------------------------------------------------------

    def _by_meaning(self, vectors: Vectors | None, asked: str, known: Sequence[EncodedPage]) -> list[EncodedPage]:
        if vectors is None:
            return []
        paths = {page.page.path for page in known}
        return [page for page in self._store.pages(vectors.nearest(asked)) if page.page.path not in paths]

    def _priors(self, words: Lexical, signals: Mapping[str, Vector], context: Sequence[str]) -> Signals:
        """Return place, connection and use: what makes a memory matter before anything is asked."""
        units = words.units
        pages = [encoded.page for encoded in units.pages]
        fit = signals["own"] + signals["page"]
        best = np.maximum.reduceat(fit, units.start)
        inbound = self._store.inbound([name for page in pages for name in (page.uuid, page.path) if name])
        degrees = [len(page.links) + inbound.get(page.uuid, 0) + inbound.get(page.path, 0) for page in pages]
        return {
            "folder": relative(_folder_fit(pages, best, units))[units.page],
            "linked": _linked(pages, best, context)[units.page],
            "connected": np.log1p(np.array(degrees, np.float64))[units.page],
            "used": np.log1p(np.array([page.uses for page in pages], np.float64))[units.page],
            "statement": (units.kind == UnitKind.STATEMENT).astype(np.float64),
            "met": words.met,
            "titled": _titled(pages, words.query, self._analyzer)[units.page],
            "from_ai": units.flag(FROM_AI) * float("ai" not in speaker_words(words.query)),
            "only_asks": units.flag(ONLY_ASKS),
            "archived": np.array([page.is_archived for page in pages], np.float64)[units.page],
        }

    # --- hits ---------------------------------------------------------------------------------------------------

    def _hits(self, ranked: Ranked, limit: int, kinds: Collection[HitKind] | None) -> tuple[list[Hit], list[str]]:
        """Return hits with their words, and the paths of files that changed since they were ranked."""
        hits: list[Hit] = []
        moved: list[str] = []
        texts: dict[str, Page | None] = {}
        for number in _in_order(ranked, kinds):
            encoded = ranked.units.pages[ranked.units.page[number]]
            path = encoded.page.path
            if path not in texts:
                texts[path] = self._as_ranked(encoded)
                if texts[path] is None:
                    moved.append(path)
            page = texts[path]
            if page is None:
                continue
            unit = page.units[ranked.units.position[number]]
            if self._is_shown(unit, ranked, number):
                hits.append(_hit(page, unit, ranked, number))
                if len(hits) == limit:
                    break
        return hits, moved

    def _as_ranked(self, encoded: EncodedPage) -> Page | None:
        page = self._store.page_as_of(encoded.page.path, encoded.stamp)
        return page if page and len(page.units) == encoded.n_units else None

    def _is_shown(self, unit: Unit, ranked: Ranked, number: int) -> bool:
        query = ranked.query
        if _is_heading(unit) and not ranked.signals["own"][number]:
            return False
        return _stands(unit, query) and (bool(query.phrases) or not self._repeats(unit.text, query))

    def _repeats(self, text: str, query: Query) -> bool:
        """Return whether a text only repeats the query's words, and so tells nothing to who asks.

        A question may ask whether something is so: what was told in the same words, in another order, says that it is.
        """
        asked, said = [token.word for token in query.tokens], [token.word for token in self._analyzer.tokens(text)]
        if not asked or not set(said) <= set(asked):
            return False
        return list(dict.fromkeys(said)) == asked if query.is_question and not ends_as_question(text) else True

    def embedder_status(self) -> dict[str, Any]:
        """Return which embedder serves, or why none does."""
        return {"name": "none"} if self._vectors is None else self._vectors.status()


def without_speakers(query: Query, pages: Sequence[EncodedPage]) -> str:
    """Return a query without the names of those who speak: they rarely name themselves, and `about` tells who does."""
    speakers = set(np.frombuffer(b"".join([page.facts for page in pages]), np.int32).reshape(-1, FACTS)[:, 2].tolist())
    names = {word for word in query.words if signed(term_hash(word)) in speakers}
    return " ".join(word for word in query.text.split() if not plain_words(word) & names) or query.text


def _found_by(units: Units, words: Lexical, signals: Signals) -> NDArray[np.int8]:
    """Return what led to each unit: the first of `WAYS` that did. What merely scores on its looks is no hit."""
    none = np.zeros(units.n, bool)
    ways = {
        "title": signals["titled"] >= 1,
        "words": signals["met"] > 0,
        "meaning": signals["cosine"] >= _LEAST_COSINE if "cosine" in signals else none,
        "context": (units.is_turn > 0) & (signals["window_covered"] > 0),
        "day": signals["day"] >= 1,
        "fields": ~none if not words.query.terms else none,
    }
    found = np.full(units.n, -1, np.int8)
    for number, way in reversed(list(enumerate(WAYS))):
        found[ways[way]] = number
    return found


def _in_order(ranked: Ranked, kinds: Collection[HitKind] | None) -> Iterator[int]:
    """Yield the units that are hits, best first; of equal ones the newer first."""
    units, narrowing = ranked.units, ranked.query.narrowing
    said = units.facts[:, 3]
    keep = ranked.found_by >= 0
    if kinds is not None:
        keep &= np.isin(units.kind, [kind for kind in UnitKind if kind.hit_kind in kinds])
    if narrowing.after is not None:
        keep &= said >= narrowing.after
    if narrowing.before is not None:
        keep &= (said < narrowing.before) & (said != NO_DAY)
    for number in np.lexsort((-said.astype(np.int64), -ranked.scores)).tolist():
        if keep[number]:
            yield number


def _within(pages: Sequence[EncodedPage], query: Query, *, include_archive: bool) -> Iterator[EncodedPage]:
    """Yield the pages that the fields of a query allow, up to a number of units that can be ranked in time."""
    total = 0
    for encoded in pages:
        if not encoded.facts or (encoded.page.is_archived and not include_archive):
            continue
        if query.narrowing and not query.narrowing.allows(encoded):
            continue
        total += encoded.n_units
        if total > _MAX_UNITS:
            return
        yield encoded


def _is_heading(unit: Unit) -> bool:
    """Tell whether a unit is headings without a text: found by its own words alone."""
    return unit.kind is UnitKind.PARAGRAPH and all(line.startswith("#") for line in unit.text.splitlines())


def _stands(unit: Unit, query: Query) -> bool:
    if not query.reads_text:
        return True
    text = " ".join(unit.text.casefold().split())
    return all(phrase.casefold() in text for phrase in query.phrases) and not any(
        word.casefold() in text for word in query.without_words
    )


def _hit(page: Page, unit: Unit, ranked: Ranked, number: int) -> Hit:
    return Hit(
        kind=unit.kind.hit_kind,
        path=page.path,
        title=page.title,
        text=unit.text,
        score=float(ranked.scores[number]),
        uuid=page.uuid,
        anchor=unit.anchor,
        at=unit.at or page.at,
        speaker=unit.side,
        position=int(ranked.units.position[number]),
        found_by=WAYS[ranked.found_by[number]],
        is_archived=page.is_archived,
        signals=ranked.signals_of(number),
    )


def _titled(pages: Sequence[Page], query: Query, analyzer: Analyzer) -> Vector:
    """Return 1 for each page that the query asks for by its name alone."""
    marks = [[name_mark(name, analyzer) for name in (page.title, *page.aliases)] for page in pages]
    return np.array([bool(query.name) and query.name in names for names in marks], np.float64)


def _folder_fit(pages: Sequence[Page], best: Vector, units: Units) -> Vector:
    """Return for each page how well the summary of its folder, or of one above it, fits."""
    numbers = np.nonzero(units.kind[units.start] == UnitKind.SUMMARY)[0].tolist()
    summaries = {posixpath.dirname(pages[number].path): best[number] for number in numbers}
    fit = np.zeros(len(pages))
    if summaries:
        for number, page in enumerate(pages):
            folder = posixpath.dirname(page.path)
            while folder:
                fit[number] = max(fit[number], summaries.get(folder, 0.0))
                folder = posixpath.dirname(folder)
    return fit


def _linked(pages: Sequence[Page], best: Vector, context: Sequence[str]) -> Vector:
    """Return how well the pages fit that a page is linked with: those in focus and the best of the query."""
    spread = np.zeros(len(pages))
    if not any(page.links for page in pages):
        return spread
    numbers = {name: number for number, page in enumerate(pages) for name in (page.path, page.uuid) if name}
    top = [int(number) for number in np.argsort(-best)[:_SPREAD_FROM]]
    sources = {number: float(best[number] / max(best.max(), 1e-9)) for number in top}
    sources |= {numbers[path]: 1.0 for path in context if path in numbers}
    for number, page in enumerate(pages):
        for link in page.links:
            other = numbers.get(link.target, numbers.get(link.path))
            if other is None or other == number:
                continue
            if number in sources:
                spread[other] = max(spread[other], sources[number])
            if other in sources:
                spread[number] = max(spread[number], sources[other])
    return spread
