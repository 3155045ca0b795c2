"""From a query to hits: candidates of the brain, their signals, the ranking, and the words as they stand on disk."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainiac.search.encode import (
    ASKS,
    FACTS,
    FROM_AI,
    KIND_SHIFT,
    NO_DAY,
    ONLY_ASKS,
    USER,
    EncodedPage,
    name_mark,
    names_of,
    signed,
)
from brainiac.search.hit import FoundBy, Hit, HitKind
from brainiac.search.index import Asked, Candidates
from brainiac.search.query import Query, parse_query, speaker_words
from brainiac.search.rank import rank
from brainiac.search.signals import (
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
from brainiac.search.store import Store
from brainiac.search.text import Analyzer, holds, plain_words, term_hash
from brainiac.search.units import Page, Unit, UnitKind
from brainiac.search.vectors import Vectors
from brainiac.search.vocabulary import Table
from brainiac.tree import Tree

_PASSAGES = 128
_PASSAGES_READ = 1000  # where the text of a hit decides whether it is one
_PAGES_LISTED = 300
_VARIANTS, _MOST_VARIED = 8, 24  # of each of so many words: so many that are like it
_MAX_UNITS, _LONG_PAGE = 6000, 200
# Measured (docs/decisions/ranker.md): 2 of 100 words that have nothing to do with a brain come so near in meaning.
_LEAST_COSINE = 0.3
# Of what comes so near to something told, three in four say more of the same.
_NEAR_SHARE, _NEAR_COSINE = 0.3, 0.45
WAYS: tuple[FoundBy, ...] = ("words", "title", "meaning", "context", "day", "fields")
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
        self._tree, self._store, self._vectors = tree, store, vectors
        self.analyzer = analyzer

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
        include_repeats: bool = False,
    ) -> list[Hit]:
        """Return the best hits, see `Recall.search`."""
        query = parse_query(text, self.analyzer, now, self._tree.relative(self._tree.long_term))
        rank = partial(
            self._rank,
            include_archive=include_archive,
            context=context,
            is_private=is_private,
            include_repeats=include_repeats,
        )
        search = partial(self._search, rank=rank, limit=limit, kinds=kinds, include_repeats=include_repeats)
        hits = search(query)
        if not hits and (rare := self._rare_words(query)):
            # words that seldom tell anything are all that is left: here they may
            hits = search(replace(query, terms=rare))
        return hits

    def _search(
        self,
        query: Query,
        rank: Callable[..., Ranked | None],
        limit: int,
        kinds: Collection[HitKind] | None,
        include_repeats: bool,
    ) -> list[Hit]:
        hits = self._found(query, rank, limit, kinds, include_repeats)
        if len(hits) < limit and query.terms:  # what was only asked tells nothing: it comes when nothing else does
            hits += self._found(query, partial(rank, of_questions=True), limit - len(hits), kinds, include_repeats)
        return hits

    def _found(
        self,
        query: Query,
        rank: Callable[..., Ranked | None],
        limit: int,
        kinds: Collection[HitKind] | None,
        include_repeats: bool,
    ) -> list[Hit]:
        hits: list[Hit] = []
        for _ in range(3):  # again when a file turns out to be other than it was when ranked
            ranked = rank(query)
            if ranked is None:
                return []
            hits, moved = self._hits(ranked, limit, kinds, include_repeats)
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
        include_archive: bool = True,
        context: Sequence[str] = (),
        is_private: bool = False,
    ) -> Ranked | None:
        """Score the candidates of a query; None when there are none."""
        query = parse_query(text, self.analyzer, now, self._tree.relative(self._tree.long_term))
        return self._rank(query, include_archive=include_archive, context=context, is_private=is_private)

    def _rank(
        self,
        query: Query,
        *,
        include_archive: bool,
        context: Sequence[str],
        is_private: bool,
        include_repeats: bool = False,
        of_questions: bool = False,
    ) -> Ranked | None:
        """Score what was told, or what a person only asked: neither is a measure of the other."""
        found = self._asked(query)
        is_remote = self._vectors is not None and self._vectors.is_remote
        vectors = None if not query.terms or (is_remote and is_private) else self._vectors
        text = without_speakers(query, found.pages) if vectors else ""
        near = vectors.nearest(text) if vectors else {}
        pages = [*found.pages, *self._by_meaning(near, found.pages)]
        pages = [page for page in pages if page.facts and _is_allowed(page, query, include_archive=include_archive)]
        if query.terms:
            is_wanted = _Part(query, of_questions=of_questions, include_repeats=include_repeats)
            pages = [part for page in pages if (part := page.only(is_wanted(page))).facts]
        table = self._table(pages)
        pages = list(self._around_matches(pages, query, near, table))
        if not pages:
            return None
        units = Units(sorted(pages, key=lambda encoded: encoded.page.path))
        words = Lexical(units, query, found.frequencies, found.n_passages, table)
        signals = lexical_signals(words)
        signals |= dialogue_signals(words, signals) | content_signals(words, signals)
        signals |= self._priors(words, signals, context)
        if vectors and (meaning := vectors.signals(text, units)):
            signals |= meaning
            signals["about_meaning"] = signals["about"] * signals["meaning"]
        scores, around = rank(units, signals)
        signals |= around
        return Ranked(query, units, scores, signals, _found_by(units, words, signals))

    def _asked(self, query: Query) -> Candidates:
        self._store.catch_up()
        is_listing = not query.terms and not query.required
        asked = Asked(
            terms=[*query.terms, *query.marks()],
            limit=_PAGES_LISTED if is_listing else _PASSAGES_READ if query.reads_text else _PASSAGES,
            required=query.required,
            variants=self._variants(query),
            narrowing=query.narrowing or None,
        )
        return self._store.candidates(asked, words=sorted(query.words) if query.terms else ())

    def _variants(self, query: Query) -> dict[str, tuple[str, float]]:
        """Return the terms that are like one of a query's: which one, and how like it they are."""
        variants: dict[str, tuple[str, float]] = {}
        for token in query.tokens[:_MOST_VARIED]:
            if token.stem in query.terms:
                for stem, likeness in self.analyzer.vocabulary.alike(token.word, _VARIANTS):
                    variants.setdefault(stem, (token.stem, likeness))
        return variants

    def _rare_words(self, query: Query) -> tuple[str, ...]:
        """Return those of a query's other words that stand in few passages, whatever the language takes them for."""
        stems = [stem for stem in dict.fromkeys(token.stem for token in query.tokens) if stem not in query.terms]
        if not stems:
            return ()
        found = self._store.candidates(Asked(terms=stems, limit=1))
        most = found.n_passages * COMMON_SHARE
        return tuple(stem for stem in stems if 0 < found.frequencies.get(stem, 0) <= most)

    def _table(self, pages: Sequence[EncodedPage]) -> Table:
        """Return the words of the brain, those of the pages among them."""
        vocabulary = self.analyzer.vocabulary
        hashes = np.frombuffer(b"".join([page.words for page in pages]), np.uint32)
        if (vocabulary.table.numbers(hashes) < 0).any():
            self._store.read_words_again()
        return vocabulary.table

    def _around_matches(
        self, pages: Sequence[EncodedPage], query: Query, near: Mapping[str, Sequence[int]], table: Table
    ) -> Iterator[EncodedPage]:
        """Yield pages, of long ones what stands around their matches, up to a number of units ranked in time.

        A long page whole would drown the others, and push out what was promised less.
        """
        wanted = np.array([term_hash(term) for term in (*query.terms, *self._variants(query))], np.uint32)
        left = _MAX_UNITS
        for encoded in pages:
            page = encoded
            if encoded.n_units > _LONG_PAGE and query.terms:
                places = _matches(encoded, wanted, near.get(encoded.page.path, ()), table)
                page = encoded.cut(places[:left])
            if page.facts and page.n_units <= left:
                left -= page.n_units
                yield page

    # --- signals that need more than the words ------------------------------------------------------------------

    def _by_meaning(self, near: Mapping[str, Sequence[int]], known: Sequence[EncodedPage]) -> list[EncodedPage]:
        """Return the pages that only meaning leads to."""
        paths = near.keys() - {page.page.path for page in known}
        return self._store.pages([path for path in near if path in paths]) if paths else []

    def _priors(self, words: Lexical, signals: Mapping[str, Vector], context: Sequence[str]) -> Signals:
        """Return place, connection and use: what makes a memory matter before anything is asked."""
        units = words.units
        pages = [encoded.page for encoded in units.pages]
        fit = signals["own"] + signals["page"]
        best = np.maximum.reduceat(fit, units.start)
        titled, headed = _named(pages, words.query, self.analyzer)
        inbound = self._store.inbound([name for page in pages for name in (page.uuid, page.path) if name])
        degrees = [len(page.links) + inbound.get(page.uuid, 0) + inbound.get(page.path, 0) for page in pages]
        return {
            "folder": relative(_folder_fit(pages, best, units))[units.page],
            "linked": _linked(pages, best, context)[units.page],
            "connected": np.log1p(np.array(degrees, np.float64))[units.page],
            "used": np.log1p(np.array([page.uses for page in pages], np.float64))[units.page],
            "statement": (units.kind == UnitKind.STATEMENT).astype(np.float64),
            "met": words.met,
            "titled": titled[units.page],
            "headed": headed[units.page] * (1 - units.is_turn),  # the title of a day's page says nothing of its words
            "from_ai": units.flag(FROM_AI) * float("ai" not in speaker_words(words.query)),
            "only_asks": units.flag(ONLY_ASKS),
            "archived": np.array([page.is_archived for page in pages], np.float64)[units.page],
        }

    # --- hits ---------------------------------------------------------------------------------------------------

    def _hits(
        self, ranked: Ranked, limit: int, kinds: Collection[HitKind] | None, include_repeats: bool
    ) -> tuple[list[Hit], list[str]]:
        """Return hits with their words, and the paths of files that changed since they were ranked."""
        hits: list[Hit] = []
        moved: list[str] = []
        texts: dict[str, Page | None] = {}
        said: set[str] = set()
        again: list[Hit] = []  # what was said before in the same words comes behind all else
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
            if not self._is_shown(unit, ranked, number):
                continue
            if unit.text in said:
                again.append(_hit(page, unit, ranked, number))
                continue
            if unit.side == "user" and not include_repeats:
                said.add(unit.text)
            hits.append(_hit(page, unit, ranked, number))
            if len(hits) == limit:
                break
        hits += [replace(hit, score=min(hit.score, hits[-1].score)) for hit in again[: limit - len(hits)]]
        return hits, moved

    def _as_ranked(self, encoded: EncodedPage) -> Page | None:
        page = self._store.page_as_of(encoded.page.path, encoded.stamp)
        return page if page and (encoded.kept is not None or len(page.units) == encoded.n_units) else None

    def _is_shown(self, unit: Unit, ranked: Ranked, number: int) -> bool:
        query = ranked.query
        if _is_heading(unit) and not ranked.signals["met"][number]:
            return False
        return _stands(unit, query)

    def embedder_status(self) -> dict[str, Any]:
        """Return which embedder serves, or why none does."""
        return {"name": "none"} if self._vectors is None else self._vectors.status()


class _Part:
    """Which units of a page are ranked together.

    Args:
        query: What is asked.
        of_questions: Those that a person only asked, else all others: an earlier question has all the words of the
            next, and tells nothing.
        include_repeats: Also what was said in nothing but the query's own words, which tells nothing to who asks. A
            question may ask whether something is so: what was told in the same words, in another order, says that it
            is. Words in quotation marks are looked for as they stand.
    """

    def __init__(self, query: Query, *, of_questions: bool, include_repeats: bool) -> None:
        self._of_questions, self._is_question = of_questions, query.is_question
        self._words = [] if include_repeats or query.phrases else [term_hash(token.word) for token in query.tokens]

    def __call__(self, encoded: EncodedPage) -> NDArray[np.bool_]:
        """Return whether each unit of a page is one of them."""
        facts = np.frombuffer(encoded.facts, np.int32).reshape(-1, FACTS)
        only_asks = facts[:, 1] & ONLY_ASKS > 0
        is_wanted: NDArray[np.bool_] = (only_asks & (facts[:, 2] == USER)) == self._of_questions
        if self._words:
            words = np.frombuffer(encoded.words, np.uint32)
            ends = np.cumsum(facts[:, 0])
            new = np.concatenate(([0], np.cumsum(~np.isin(words, self._words))))
            is_repeated = (new[ends] == new[ends - facts[:, 0]]) & (facts[:, 1] >> KIND_SHIFT & 7 == UnitKind.TURN)
            for number in np.flatnonzero(is_repeated & (facts[:, 1] & ASKS == 0)) if self._is_question else ():
                said = words[ends[number] - facts[number, 0] : ends[number]].tolist()
                is_repeated[number] = list(dict.fromkeys(said)) == self._words
            is_wanted &= ~is_repeated
        return is_wanted


def without_speakers(query: Query, pages: Sequence[EncodedPage]) -> str:
    """Return a query without the names of those who speak: they rarely name themselves, and `about` tells who does."""
    speakers = set(np.frombuffer(b"".join([page.facts for page in pages]), np.int32).reshape(-1, FACTS)[:, 2].tolist())
    names = {word for word in query.words if signed(term_hash(word)) in speakers}
    return " ".join(word for word in query.text.split() if not plain_words(word) & names) or query.text


def _found_by(units: Units, words: Lexical, signals: Signals) -> NDArray[np.int8]:
    """Return what led to each unit: the first of `WAYS` that did. What merely scores on its looks is no hit."""
    none = np.zeros(units.n, bool)
    ways = {
        "words": (signals["met"] > 0) | (words.is_called > 0),
        "title": (signals["titled"] > 0) | (signals["headed"] > 0),
        "meaning": signals["cosine"] >= _LEAST_COSINE if "cosine" in signals else none,
        "context": (words.is_labelled > 0) & (signals["window_covered"] > 0),
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
    newest = -said.astype(np.int64)
    order = np.lexsort((newest, -ranked.scores) if ranked.query.terms else (units.position, units.page, newest))
    for number in order.tolist():
        if keep[number]:
            yield number


def _is_allowed(encoded: EncodedPage, query: Query, *, include_archive: bool) -> bool:
    is_kept = include_archive or not encoded.page.is_archived
    return is_kept and (not query.narrowing or query.narrowing.allows(encoded))


def _matches(encoded: EncodedPage, wanted: NDArray[np.uint32], keys: Sequence[int], table: Table) -> NDArray[np.int64]:
    """Return the places of the units of a long page that hold the most wanted stems, or are near in meaning.

    Two units on either side come with each.
    """
    sizes = np.frombuffer(encoded.facts, np.int32).reshape(-1, FACTS)[:, 0]
    numbers = table.numbers(np.frombuffer(encoded.words, np.uint32))
    holds = np.isin(table.stems[numbers], wanted) & (numbers >= 0) if len(table) else np.zeros(len(numbers), bool)
    met = np.bincount(np.repeat(np.arange(len(sizes)), sizes), holds, len(sizes))
    met[np.isin(np.frombuffer(encoded.content, np.uint64), np.array(keys, np.uint64))] += len(wanted)
    best = np.argsort(-met, kind="stable")[:_LONG_PAGE]
    is_best = np.zeros(len(sizes))
    is_best[best[met[best] > 0]] = 1
    return np.flatnonzero(np.convolve(is_best, np.ones(5), "same") > 0)


def _is_heading(unit: Unit) -> bool:
    """Tell whether a unit is headings without a text: found by its own words alone."""
    return unit.kind is UnitKind.PARAGRAPH and all(line.startswith("#") for line in unit.text.splitlines())


def _stands(unit: Unit, query: Query) -> bool:
    return all(holds(unit.text, phrase) for phrase in query.phrases) and not any(
        holds(unit.text, word) for word in query.without_words
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
        is_near=_is_near(ranked, number),
        is_archived=page.is_archived,
        signals=ranked.signals_of(number),
    )


def _is_near(ranked: Ranked, number: int) -> bool:
    """Return whether a unit is clearly near what was asked or told."""
    signals, none = ranked.signals, np.zeros(ranked.units.n)
    is_named = signals["titled"][number] > 0 or not ranked.query.terms
    return bool(
        is_named
        or signals["near_covered"][number] >= _NEAR_SHARE
        or signals.get("cosine", none)[number] >= _NEAR_COSINE
    )


def _named(pages: Sequence[Page], query: Query, analyzer: Analyzer) -> tuple[Vector, Vector]:
    """Return 1 for each page that the query asks for by its name alone, and for each whose whole name is in it."""
    asked, titled, headed = {token.word for token in query.tokens}, np.zeros(len(pages)), np.zeros(len(pages))
    for number, page in enumerate(pages):
        for name in names_of(page):
            tokens = analyzer.tokens(name)
            words = {token.word for token in tokens}
            titled[number] = max(titled[number], name_mark(name, analyzer) == query.name != "")
            tells = any(not token.is_stop and len(token.word) > 2 and not token.word.isdecimal() for token in tokens)
            headed[number] = max(headed[number], tells and words <= asked)
    return titled, headed


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
