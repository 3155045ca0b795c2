"""From a query to hits: candidates of the store, their signals, the ranking, and the words as they stand on disk."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from brainiac.recall.encode import ASKS, ECHO, FACTS, EncodedPage, signed
from brainiac.recall.hit import Hit, HitKind
from brainiac.recall.query import Query, parse_query, speaker_words
from brainiac.recall.rank import rank
from brainiac.recall.signals import (
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
from brainiac.recall.text import Analyzer, plain_words, term_hash
from brainiac.recall.units import Page, Unit, UnitKind
from brainiac.tree import Tree

if TYPE_CHECKING:
    from brainiac.recall.vectors import Vectors

_PASSAGES = 128
_PASSAGES_FILTERED = 3000
_MAX_UNITS = 6000
_SPREAD_FROM = 5


@dataclass(frozen=True)
class Ranked:
    """The units of a query's candidates with their scores.

    Attributes:
        query: What was asked.
        units: Candidates.
        scores: One a unit.
        signals: By name, one number a unit.
    """

    query: Query
    units: Units
    scores: Vector
    signals: Signals

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
        for _ in range(3):  # again when a file turns out to be other than it was when ranked
            ranked = self.rank(text, now=now, include_archive=include_archive, context=context, is_private=is_private)
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
        query = parse_query(text, self._analyzer, now)
        limit = _PASSAGES_FILTERED if query.is_filtered else _PASSAGES
        found = self._store.candidates(
            [*query.terms, *query.marks()],
            limit,
            required=[f"#{tag}" for tag in query.tags],
            words=sorted(query.words) if query.terms else (),
        )
        vectors = (
            None if not query.terms or (self._vectors and self._vectors.is_remote and is_private) else self._vectors
        )
        asked = without_speakers(query, found.pages) if vectors else ""
        pages = [*found.pages, *self._by_meaning(vectors, asked, found.pages)]
        pages = sorted(_within(pages, query, include_archive, self._tree), key=lambda encoded: encoded.page.path)
        if not pages:
            return None
        units = Units(pages)
        words = Lexical(units, query, found.frequencies, found.n_passages)
        signals = lexical_signals(words)
        signals |= dialogue_signals(words, signals) | content_signals(words, signals)
        signals |= self._priors(words, signals, context)
        if vectors and (meaning := vectors.signals(asked, units)):
            signals |= meaning
            signals["about_meaning"] = signals["about"] * signals["meaning"]
        scores, around = rank(units, signals)
        return Ranked(query, units, scores, signals | around)

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
            "echo": _echoes(units) * float("ai" not in speaker_words(words.query)),
        }

    # --- hits ---------------------------------------------------------------------------------------------------

    def _hits(self, ranked: Ranked, limit: int, kinds: Collection[HitKind] | None) -> tuple[list[Hit], list[str]]:
        """Return hits with their words, and the paths of files that changed since they were ranked."""
        hits: list[Hit] = []
        seen: set[tuple[str, str]] = set()
        moved: list[str] = []
        texts: dict[str, Page | None] = {}
        for number in self._in_order(ranked, kinds):
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
            key = (path, unit.anchor or ("" if unit.kind is UnitKind.PARAGRAPH else unit.text))
            is_met = ranked.signals["own"][number] > 0 or not _is_heading(unit)
            if key not in seen and is_met and _stands(unit, ranked.query):
                seen.add(key)
                hits.append(_hit(page, unit, ranked, number))
                if len(hits) == limit:
                    break
        return hits, moved

    def _as_ranked(self, encoded: EncodedPage) -> Page | None:
        page = self._store.page_as_of(encoded.page.path, encoded.stamp)
        return page if page and len(page.units) == encoded.n_units else None

    @staticmethod
    def _in_order(ranked: Ranked, kinds: Collection[HitKind] | None) -> Iterator[int]:
        units, query = ranked.units, ranked.query
        keep = np.ones(units.n, bool)
        if kinds is not None:
            keep &= np.isin(units.kind, [kind for kind in UnitKind if kind.hit_kind in kinds])
        if query.after is not None:
            keep &= units.facts[:, 3] >= query.after
        if query.before is not None:
            keep &= units.facts[:, 3] < query.before
        for number in np.argsort(-ranked.scores, kind="stable"):
            if keep[number] and (_speaks_for(ranked, int(number)) or not query.terms):
                yield int(number)

    def embedder_status(self) -> dict[str, Any]:
        """Return which embedder serves, or why none does."""
        return {"name": "none"} if self._vectors is None else self._vectors.status()


def without_speakers(query: Query, pages: Sequence[EncodedPage]) -> str:
    """Return a query without the names of those who speak: they rarely name themselves, and `about` tells who does."""
    speakers = set(np.frombuffer(b"".join([page.facts for page in pages]), np.int32).reshape(-1, FACTS)[:, 2].tolist())
    names = {word for word in query.words if signed(term_hash(word)) in speakers}
    return " ".join(word for word in query.text.split() if not plain_words(word) & names) or query.text


def _speaks_for(ranked: Ranked, number: int) -> bool:
    """Tell whether anything of the query is in or around a unit; what merely scores on its looks is no hit."""
    names = ("window_covered", "page_covered", "meaning", "day", "about")
    return any(ranked.signals[name][number] > 0 for name in names if name in ranked.signals)


def _within(pages: Sequence[EncodedPage], query: Query, include_archive: bool, tree: Tree) -> Iterator[EncodedPage]:
    """Yield the pages that the fields of a query allow, up to a number of units that can be ranked in time."""
    long_term, is_narrowed, total = tree.relative(tree.long_term), query.is_filtered, 0
    for encoded in pages:
        if not encoded.facts or (encoded.page.is_archived and not include_archive):
            continue
        if is_narrowed and not _is_allowed(encoded, query, long_term):
            continue
        total += encoded.n_units
        if total > _MAX_UNITS:
            return
        yield encoded


def _is_allowed(encoded: EncodedPage, query: Query, long_term: str) -> bool:
    page = encoded.page
    if query.paths and not any(path.casefold() in page.path.casefold() for path in query.paths):
        return False
    if query.types and not any(_is_type(kind, encoded, long_term) for kind in query.types):
        return False
    return set(query.tags) <= {tag.casefold() for tag in page.tags}


def _is_type(kind: str, encoded: EncodedPage, long_term: str) -> bool:
    path = encoded.page.path
    if kind in ("index", "index-page"):
        return path.endswith("/_index.md")
    if kind in ("archive", "archived"):
        return encoded.page.is_archived
    if kind in ("stm", "short-term"):
        return path.endswith("/short_term.md")
    kind = {"event": "events", "skill": "skills"}.get(kind, kind)
    return path.casefold().startswith(f"{long_term}/{kind}/".casefold())


def _echoes(units: Units) -> Vector:
    """Return 1 for each answer that tells what it read in memory, and for the question it answers."""
    answers = units.flag(ECHO)
    return answers + units.shift(answers, 1) * units.flag(ASKS)


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
        signals=ranked.signals_of(number),
    )


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
