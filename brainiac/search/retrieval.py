"""From a query to hits: candidates of the brain, their signals, the ranking, and the words as they stand on disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from brainiac.search.documents import FoundBy, Hit, HitKind, Page, Unit, UnitKind
from brainiac.search.embed import Vectors
from brainiac.search.features import FEATURES, NO_DAY, EncodedPage, signed
from brainiac.search.index import Asked, Candidates, Variant
from brainiac.search.pages import Pages
from brainiac.search.query import Query, parse_query
from brainiac.search.rank import LeftOut, Ranked, rank
from brainiac.search.signals import (
    FACTS,
    Matches,
    Occurrences,
    PageArrays,
    Signals,
    Units,
    all_signals,
    idf_of,
)
from brainiac.search.text import Analyzer, holds, plain_words
from brainiac.search.vocabulary import LikeWords, term_hash
from brainiac.text.tokens import ends_as_question
from brainiac.tree import Tree

_PASSAGES = 128
_PASSAGES_READ = 1000  # where the text of a hit decides whether it is one
_PAGES_LISTED = 300
_MOST_VARIED = 24  # so many of a query's first words stand for words like them too
_MOST_TOKENS = 48  # of a longer query the rarest words
_MAX_UNITS = 6000
_LONG_TALK, _LONG_PROSE, _BESIDE = 200, 24, 2  # of a talk or page with more units the best, and so many beside each
# What answers a question asked in other words comes often no nearer than this share of what a single word that has
# nothing to do with a brain reaches in 4 of 100 cases (docs/decisions/ranker.md).
_SHARE_FOR_QUESTION, _QUESTION_WORDS = 0.65, 3
_SHARE_OF_NEAREST, _LEAST_AMONG_HITS = 0.8, 0.1
# A later telling of the same: as near in meaning at least, sounding at least so new, and answering at most so much less
# (docs/decisions/ranker.md).
_SAME_SUBJECT, _SOUNDS_NEW, _ANSWERS_LESS, _COMPARED = 0.3, -0.2, 2.0, 10
_BEYOND_WORDS = 1e3  # more than any words are worth
# What is near: learned on questions put to brains that hold the answer, and to others (docs/decisions/ranker.md).
_NEAR_COVERED, _NEAR_COSINE, _NEAR_BY_WORDS = 2.4, 13.5, 0.2
WAYS: tuple[FoundBy, ...] = ("words", "title", "meaning", "context", "day", "fields")


@dataclass(frozen=True)
class Options:
    """What a query is asked with; see `Recall.search` for what each means."""

    limit: int = 8
    kinds: Collection[HitKind] | None = None
    is_private: bool = False
    include_repeats: bool = False
    asking: str = ""
    is_counted: bool = False


class _Chosen(NamedTuple):
    """The units that are ranked.

    Attributes:
        units: They.
        left_out: What of the candidates is not ranked, and of them what was not looked at.
        occurrences: Where the words asked for, and those like them, stand in the candidate pages.
    """

    units: Units
    left_out: LeftOut
    occurrences: Occurrences


class _Candidates(NamedTuple):
    """Where hits of a query may stand.

    Attributes:
        like: The words of the brain that share a stem or a trigram with the query.
        matching: What the index answered: pages with words of the query, and how often each word occurs.
        pages: Those, and pages with a unit near in meaning; without those that the query's fields exclude.
        vectors: The meaning of units; None where no embedder serves this query.
        text: What of the query was embedded.
        near: Content keys of the units near in meaning.
    """

    like: LikeWords
    matching: Candidates
    pages: list[EncodedPage]
    vectors: Vectors | None
    text: str
    near: NDArray[np.uint64]


class Retrieval:
    """Answer queries from the pages of a brain.

    Args:
        tree: The brain's places.
        pages: Where candidates come from.
        analyzer: The brain's language.
        vectors: Meaning of units, when an embedder is there.
    """

    def __init__(self, tree: Tree, pages: Pages, analyzer: Analyzer, vectors: Vectors | None = None) -> None:
        self._tree, self._pages, self._vectors = tree, pages, vectors
        self.analyzer = analyzer

    def search(self, text: str, now: datetime, options: Options) -> list[Hit]:
        """Return the best hits of a text, best first; their files are read again, so that none shows other words."""
        query = self._parsed(text, now)
        hits = self._hits(query, options)
        if query.listing and options.kinds is None:  # what was said on its days comes first
            listed = [replace(hit, found_by="fields") for hit in self._hits(query.listing, options)]
            places = {(hit.path, hit.anchor, hit.position) for hit in listed}
            others = (hit for hit in hits if (hit.path, hit.anchor, hit.position) not in places)
            hits = [*listed, *others][: options.limit]
        return hits

    def rank(self, text: str, now: datetime) -> Ranked | None:
        """Score the candidates of a query; None when there are none."""
        query = self._parsed(text, now)
        options = Options(is_counted=True)
        return self._rank(query, options, self._candidates(query, options))

    def embedder_status(self) -> dict[str, Any]:
        """Return which embedder serves, or why none does."""
        return {"name": "none"} if self._vectors is None else self._vectors.status()

    def wishes(self, text: str) -> set[str]:
        """Return what a message asks of memory or gives away; nothing without an embedder."""
        return set() if self._vectors is None else self._vectors.wishes(text)

    def _parsed(self, text: str, now: datetime) -> Query:
        """Return the query that a text is, as `parse_query` reads it."""
        return parse_query(text, self.analyzer, now, self._tree.relative(self._tree.long_term))

    # --- candidates and their scores ----------------------------------------------------------------------------

    def _candidates(self, query: Query, options: Options) -> _Candidates:
        """Return the pages that share words with a query or are near to it in meaning."""
        for _ in range(2):  # again where the index turns out to be damaged
            self._pages.catch_up(options.asking)
            index = self._pages.index
            like = self._like(query)
            candidates = self._pages.candidates(replace(self._request(query, like), is_counted=options.is_counted))
            if self._pages.index is index:
                break
        # a listing by fields has no meaning, and a private question leaves for no provider
        vectors = self._vectors if query.terms else None
        if vectors and vectors.is_remote and options.is_private:
            vectors = None
        text = without_speakers(query, candidates.pages) if vectors else ""
        near = vectors.nearest(text) if vectors else {}
        by_words = {page.page.path for page in candidates.pages}
        pages = [*candidates.pages, *self._pages.named([path for path in near if path not in by_words])]
        pages = [page for page in pages if page.features and page.page.path != options.asking]
        pages = [page for page in pages if not query.narrowing or query.narrowing.allows(page)]
        keys = np.array([key for keys in near.values() for key in keys], np.uint64)
        if len(query.tokens) > _MOST_TOKENS:  # again: the candidates tell which words of a long query are rare
            like = self._like(query, candidates)
        return _Candidates(like, candidates, pages, vectors, text, keys)

    def _rank(self, query: Query, options: Options, candidates: _Candidates) -> Ranked | None:
        """Score the candidates of a query; None when there are none."""
        pages, matching, vectors = candidates.pages, candidates.matching, candidates.vectors
        if not pages:
            return None
        chosen = self._chosen(candidates, query)
        units = chosen.units
        if not units.n:
            return None
        like = candidates.like
        matches = Matches(units, query, matching.frequencies, matching.n_passages, like, chosen.occurrences)
        meaning = vectors.signals(candidates.text, units) if vectors else {}
        chance = vectors.chance_cosine() if vectors else 0.0
        signals = all_signals(matches, meaning, self.analyzer)
        found_by = _found_by(matches, signals, chance)
        ranked = Ranked(query, units, rank(units, signals), signals, found_by, chosen.left_out, chance)
        return _told_apart(ranked, vectors, candidates.text) if meaning and vectors else ranked

    def _like(self, query: Query, candidates: Candidates | None = None) -> LikeWords:
        """Return the words of the brain that share a stem or a trigram with a query.

        Args:
            query: What is asked.
            candidates: Of a long query the words count that are rarest among them; without them the first ones.
        """
        tokens, terms = query.tokens, query.terms
        is_cut = len(tokens) > _MOST_TOKENS
        if is_cut and candidates is None:
            tokens = tokens[:_MOST_VARIED]
            first_stems = {token.stem for token in tokens}
            terms = tuple(term for term in terms if term in first_stems)
        elif is_cut and candidates is not None:
            frequencies = candidates.frequencies
            terms = tuple(sorted(terms, key=lambda term: frequencies.get(term, 0))[:_MOST_TOKENS])
            tokens = tuple(token for token in tokens if token.stem in terms)
        words = [(token.word, token.stem) for token in tokens]
        return LikeWords(self._pages, words, terms, is_cut=is_cut)

    def _request(self, query: Query, like: LikeWords) -> Asked:
        """Return the request to the index: the query's terms, the words like them, and how many passages to look at."""
        varied = dict.fromkeys(token.stem for token in query.tokens[:_MOST_VARIED] if token.stem in query.terms)
        variants: dict[str, Variant] = {}
        for stem, term, likeness in like.variants(varied):
            variants.setdefault(stem, Variant(term, likeness))  # of words with one stem the most alike comes first
        limit = _PASSAGES_READ if query.reads_text else _PASSAGES
        if not query.terms and not query.required:
            limit = _PAGES_LISTED
        return Asked(
            terms=[*query.terms, *query.marks],
            limit=limit,
            required=query.required,
            variants=variants,
            narrowing=query.narrowing or None,
        )

    def _chosen(self, candidates: _Candidates, query: Query) -> _Chosen:
        """Return the units that are ranked: those wanted, of long pages the best, and no more than there is time for.

        Args:
            candidates: Of the query.
            query: What is asked; without terms all units are wanted.
        """
        pages, like = candidates.pages, candidates.like
        # in one order whatever the engine's: of equal hits the same one comes first after a rebuild
        in_order = sorted(range(len(pages)), key=lambda number: pages[number].page.path)
        arrays = PageArrays([pages[number] for number in in_order])
        occurrences = arrays.occurrences(like)
        is_chosen = np.ones(len(arrays.rows), bool)
        if query.terms:
            is_chosen = _best(arrays, lambda: _worth(arrays, occurrences, candidates))
        # the candidates came with the most promising first: their numbers say how promising they are
        is_ranked = _within_time(arrays, is_chosen, np.array(in_order))
        matching = candidates.matching
        left_out = LeftOut(
            words=len(query.terms) - len(like.terms) if query.terms else 0,
            passages=matching.n_left_out,
            unread=matching.n_unread,
            of_long_pages=int((~is_chosen).sum()),
            too_many=int(is_chosen.sum() - is_ranked.sum()),
        )
        return _Chosen(Units(arrays, is_ranked), left_out, occurrences)

    # --- hits ---------------------------------------------------------------------------------------------------

    def _hits(self, query: Query, options: Options) -> list[Hit]:
        """Return the hits, ranked again where a file changed meanwhile."""
        candidates = self._candidates(query, options)
        hits: list[Hit] = []
        for _ in range(3):  # again when a file turns out to be other than it was when ranked
            ranked = self._rank(query, options, candidates)
            if ranked is None:
                return []
            hits, changed = self._read_hits(ranked, options)
            if not changed:
                break
            for path in changed:
                self._pages.note_change(path)
            candidates = self._candidates(query, options)
        return hits

    def _read_hits(self, ranked: Ranked, options: Options) -> tuple[list[Hit], list[str]]:
        """Return hits with their words, and the paths of files that changed since they were ranked."""
        hits: list[Hit] = []
        repeated: list[Hit] = []  # the same words of a person once more: behind all other hits
        confirmed: list[Hit] = []  # those of a question without its mark: only what is near stands before them
        user_texts: set[str] = set()
        pages: dict[str, Page | None] = {}
        for number in _in_order(ranked, options.kinds):
            encoded = ranked.units.pages[ranked.units.page[number]]
            path = encoded.page.path
            if path not in pages:
                pages[path] = self._as_ranked(encoded)
            page = pages[path]
            unit = page.units[ranked.units.position[number]] if page else None
            if page is None or unit is None or not _is_shown(unit, ranked, number):
                continue
            hit = _hit(page, unit, ranked, number)
            if unit.side == "user" and not options.include_repeats:
                if unit.text in user_texts or self._says_no_more(unit, ranked.query):
                    tells = unit.text not in user_texts and ranked.query.is_question and not ends_as_question(unit.text)
                    (confirmed if tells else repeated).append(hit)
                    user_texts.add(unit.text)
                    continue
                user_texts.add(unit.text)
            hits += [hit, *_replies(page, hit)]
            if len(hits) >= options.limit:
                break
        # their score falls with their place, so that hits stay in the order of their scores
        place = next((number for number, hit in enumerate(hits) if not hit.is_near), len(hits))
        highest = hits[place - 1].score if place else math.inf
        hits[place:place] = [replace(hit, score=min(hit.score, highest)) for hit in confirmed]
        least = hits[-1].score if hits else math.inf
        hits += [replace(hit, score=min(hit.score, least)) for hit in repeated[: options.limit - len(hits)]]
        return hits, [path for path, page in pages.items() if page is None]

    def _says_no_more(self, unit: Unit, query: Query) -> bool:
        """Return whether a unit has the words of the query in their order and no others."""
        words = dict.fromkeys(token.word for token in self.analyzer.tokens(unit.text))
        return not query.phrases and list(words) == [token.word for token in query.tokens]

    def _as_ranked(self, encoded: EncodedPage) -> Page | None:
        """Return a page with its texts as they were ranked; None where its file changed since."""
        page = self._pages.page_as_of(encoded.page.path, encoded.stamp)
        return page if page and len(page.units) == encoded.n_units else None


def _told_apart(ranked: Ranked, vectors: Vectors, text: str) -> Ranked:
    """Return a ranking in which the newest of what a person told about the same thing stands before the older.

    What comes first is compared with what was told later among the next ones: that is the newer telling where it is
    near in meaning, sounds as if it told what holds from now on, rather than a plan, what might be, or what was once,
    and answers about as well. Which of the first seem not to answer at all is said too. `benchmarks/newest.py` and
    `wishes.py` learned both.

    Args:
        ranked: The ranking.
        vectors: Of the brain.
        text: Of the query, as it was embedded.
    """
    units, scores = ranked.units, np.where(ranked.found_by >= 0, ranked.scores, -np.inf)
    best = [number for number in np.argsort(-scores, kind="stable")[:_COMPARED].tolist() if scores[number] > -np.inf]
    compared = [number for number in best if ranked.signals["embedded"][number] > 0]
    answering = vectors.answers(text, [int(units.content[number]) for number in compared]) if compared else None
    if answering is None:
        return ranked
    answers = dict(zip(compared, answering.tolist(), strict=True))
    ranked = replace(ranked, doubted=frozenset(number for number in compared if answers[number] < 0))
    day, first = units.features["day"], best[0]
    may = [number for number in compared if units.sort[number] == FACTS and day[number] != NO_DAY]
    if first not in may:
        return ranked
    least = answers[first] - _ANSWERS_LESS
    later = [number for number in may if day[number] > day[first] and answers[number] >= least]
    if not later:
        return ranked
    near, sounds_new = vectors.newest([int(units.content[number]) for number in (first, *later)])
    is_newer = (near[1:] >= _SAME_SUBJECT) & (sounds_new[1:] > _SOUNDS_NEW)
    newer = [number for number, does in zip(later, is_newer, strict=True) if does]
    if not newer:
        return ranked
    newest = max(newer, key=day.__getitem__)
    raised = ranked.scores.copy()
    raised[newest] = np.nextafter(raised[first], np.inf)
    return replace(ranked, scores=raised, earlier=first)


def _worth(arrays: PageArrays, occurrences: Occurrences, candidates: _Candidates) -> NDArray[np.float64]:
    """Return what the words asked for are worth that each unit holds, each counted once: the rarer, the more.

    Words like them are worth half as much as they are like them; a unit near in meaning is worth more than any words.
    """
    like, matching = candidates.like, candidates.matching
    counts = np.array([matching.frequencies.get(term, 0) for term in like.terms], np.float64)
    # a row for each word that is like a term, a column for each term
    values = np.maximum(like.exact, like.near / 2) * idf_of(counts, max(matching.n_passages, 1))
    rows = like.of_alike(occurrences.numbers)
    unit, rows = occurrences.unit[rows >= 0], rows[rows >= 0]
    worth = np.where(np.isin(arrays.content, candidates.near), _BEYOND_WORDS, 0.0)
    first = np.flatnonzero(np.diff(unit, prepend=-1))  # the occurrences in a unit lie one after another
    if len(first):
        worth[unit[first]] += np.maximum.reduceat(values[rows], first).sum(1)
    return worth


def without_speakers(query: Query, pages: Sequence[EncodedPage]) -> str:
    """Return a query without the names of those who speak, for embedding: people rarely name themselves.

    The signal `about` says who speaks.
    """
    speakers = set(np.frombuffer(b"".join([page.features for page in pages]), FEATURES)["speaker"].tolist())
    names = {word for word in query.words if signed(term_hash(word)) in speakers}
    return " ".join(word for word in query.text.split() if not plain_words(word) & names) or query.text


def _best(arrays: PageArrays, worth_of: Callable[[], NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Return which units are ranked: of a long page those worth most and two beside each, or it would drown the others.

    Args:
        arrays: Of the candidates.
        worth_of: Returns what each unit is worth; called only where a page is long.
    """
    page = arrays.page
    counts = np.bincount(page, minlength=len(arrays.pages))
    is_talk = 2 * np.bincount(page, arrays.is_turn, len(counts)) > counts
    most = np.where(is_talk, _LONG_TALK, _LONG_PROSE)
    is_short = counts <= most
    if is_short.all():
        return np.ones(len(page), bool)
    worth = worth_of()
    rank = _ranks_on_page(page, worth)
    # the first stays where none is worth anything: a page may be a candidate by its title alone
    is_best = (rank < most[page]) & ((worth > 0) | (rank == 0))
    return _with_neighbours(page, is_short[page] | is_best)


def _ranks_on_page(page: NDArray[np.int64], worth: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rank of each unit among those of its page, 0 for the one that is worth most.

    Args:
        page: Of each unit; those of a page lie one after another.
        worth: Of each unit.
    """
    order = np.lexsort((-worth, page))
    first_of_page = np.searchsorted(page, page)
    ranks = np.empty(len(page), np.int64)
    ranks[order] = np.arange(len(page)) - first_of_page
    return ranks


def _with_neighbours(page: NDArray[np.int64], is_chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which units are chosen, or are among the `_BESIDE` before or after a chosen one on its page."""
    is_near = is_chosen.copy()
    for by in range(1, _BESIDE + 1):
        is_same_page = page[by:] == page[:-by]
        is_near[by:] |= is_chosen[:-by] & is_same_page
        is_near[:-by] |= is_chosen[by:] & is_same_page
    return is_near


def _within_time(arrays: PageArrays, is_chosen: NDArray[np.bool_], promise: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which units can be ranked in time.

    Args:
        arrays: The units.
        is_chosen: Which of them are to be ranked.
        promise: The place of each page among the candidates, the most promising being the first.
    """
    chosen = np.flatnonzero(is_chosen)
    if len(chosen) <= _MAX_UNITS:
        return is_chosen
    best = chosen[np.argsort(promise[arrays.page[chosen]], kind="stable")[:_MAX_UNITS]]
    is_ranked = np.zeros(len(is_chosen), bool)
    is_ranked[best] = True
    return is_ranked


def _found_by(matches: Matches, signals: Signals, chance_cosine: float) -> NDArray[np.int8]:
    """Return for each unit the number of the first of `WAYS` that led to it; -1 where none did, which is no hit.

    Args:
        matches: Which words of the query each unit has.
        signals: Of the units.
        chance_cosine: See `Vectors.chance_cosine`.
    """
    none = np.zeros(matches.units.n, bool)
    # in the order of `WAYS`: a word of the query or its speaker, the page's name, nearness in meaning, a transcript in
    # which the words stand close by, the day, or fields alone
    ways = {
        "words": (signals["met"] > 0) | (matches.is_called > 0),
        "title": (signals["titled"] > 0) | (signals["headed"] > 0),
        "meaning": none,
        "context": (matches.units.is_labelled > 0) & (signals["around"] > 0),
        "day": signals["day"] >= 1,
        "fields": none if matches.query.terms else ~none,
    }
    if "cosine" in signals:
        # beside what was only asked before, the same question at worst, nothing else would be near
        tells = signals["asks"] == 0
        has_hits = any((way & tells).any() for name, way in ways.items() if name != "day")
        best = float(signals["cosine"][tells].max(initial=0))
        is_question = len(matches.query.tokens) >= _QUESTION_WORDS
        least = _least_cosine(best, chance_cosine, is_question=is_question, has_hits=has_hits)
        # where nothing else is to be shown for a question, what comes nearest is
        ways["meaning"] = signals["cosine"] >= (least if has_hits or not is_question else min(least, best or least))
    found_by = np.full(matches.units.n, -1, np.int8)
    # the last first, so that the first of `WAYS` is what stays
    for number, way in reversed(list(enumerate(WAYS))):
        found_by[ways[way]] = number
    return found_by


def _least_cosine(best: float, chance_cosine: float, *, is_question: bool, has_hits: bool) -> float:
    """Return the cosine from which on a unit is a hit by its meaning alone.

    It must be high enough to be no chance. Once there are hits, by words or by such a cosine to a question, what comes
    about as near as the nearest unit is one too.

    Args:
        best: The cosine of the nearest unit.
        chance_cosine: See `Vectors.chance_cosine`.
        is_question: Whether the query has several words.
        has_hits: Whether there are hits by words.
    """
    least = chance_cosine * (_SHARE_FOR_QUESTION if is_question else 1)
    if has_hits or (is_question and best >= least):
        return min(max(_SHARE_OF_NEAREST * best, _LEAST_AMONG_HITS), least)
    return least


def _in_order(ranked: Ranked, kinds: Collection[HitKind] | None) -> Iterator[int]:
    """Yield the units that are hits, best first; of equal ones the newer first."""
    units, narrowing = ranked.units, ranked.query.narrowing
    day = units.features["day"]
    is_hit = ranked.found_by >= 0
    if kinds is not None:
        is_hit &= np.isin(units.kind, [kind for kind in UnitKind if kind.hit_kind in kinds])
    if narrowing.after is not None:
        is_hit &= day >= narrowing.after
    if narrowing.before is not None:
        is_hit &= (day < narrowing.before) & (day != NO_DAY)
    newest = -day.astype(np.int64)
    # of `lexsort` the last key counts first; without words the newest come first, those of a page as they stand there
    keys = (newest, -ranked.scores) if ranked.query.terms else (units.position, units.page, newest)
    for number in np.lexsort(keys).tolist():
        if is_hit[number]:
            yield number


def _is_shown(unit: Unit, ranked: Ranked, number: int) -> bool:
    """Return whether a ranked unit is a hit by its text: with all quoted phrases and without the words ruled out.

    Headings without a text below them need a word of the query.
    """
    is_heading = unit.kind is UnitKind.PARAGRAPH and all(line.startswith("#") for line in unit.text.splitlines())
    if is_heading and not ranked.signals["met"][number]:
        return False
    query = ranked.query
    return all(holds(unit.text, phrase) for phrase in query.phrases) and not any(
        holds(unit.text, word) for word in query.without_words
    )


def _hit(page: Page, unit: Unit, ranked: Ranked, number: int) -> Hit:
    """Return the hit for a ranked unit."""
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
        name=unit.speaker if unit.speaker != unit.side else "",
        position=int(ranked.units.position[number]),
        found_by=WAYS[ranked.found_by[number]],
        is_near=_is_near(ranked, number),
        is_doubted=number in ranked.doubted,
        is_earlier=number == ranked.earlier,
        is_archived=page.is_archived,
        signals=ranked.signals_of(number),
        origin=unit.author.origin,
        by=unit.author.by,
    )


def _replies(page: Page, hit: Hit) -> list[Hit]:
    """Return what was answered to a question of the person's: that is what they look for, in whatever words it is."""
    if hit.speaker != "user" or not ends_as_question(hit.text):
        return []
    return [
        replace(hit, text=unit.text, speaker=unit.side, name="", position=place, **unit.author._asdict())
        for place, unit in enumerate(page.units)
        if unit.kind is UnitKind.TURN and unit.anchor == hit.anchor and unit.side == "ai"
    ]


def _is_near(ranked: Ranked, number: int) -> bool:
    """Return whether a unit is near the query: its page is named, or words and meaning come nearer than chance would.

    Every unit is near a query without words.
    """
    signals = ranked.signals
    if not ranked.query.terms or signals["titled"][number] > 0:
        return True
    covered = float(signals["covered"][number])
    if "cosine" not in signals or not signals["embedded"][number]:
        return covered >= _NEAR_BY_WORDS
    beyond_chance = float(signals["cosine"][number]) - ranked.chance_cosine
    return _NEAR_COVERED * covered + _NEAR_COSINE * beyond_chance >= 1
