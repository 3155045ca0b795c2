"""From a query to ranked units: what the index has of it, the signals of the candidates, and the ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brainiac.search.documents import NO_DAY, FoundBy
from brainiac.search.embed import Vectors
from brainiac.search.features import FEATURES, EncodedPage
from brainiac.search.index import Index, Matching
from brainiac.search.query import FIELDS, Query, allows_page
from brainiac.search.signals import FACTS, Matches, PageArrays, Signals, Units, Vector, all_signals, idf_of, rank
from brainiac.search.text import Analyzer, Token, plain_words, term_hash
from brainiac.search.vocabulary import LikeWords, Numbers, Places

_PASSAGES = 128
_PASSAGES_READ = 1000  # where the text or the day of a hit decides whether it is one
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
WAYS: tuple[FoundBy, ...] = ("words", "title", "meaning", "context", "day", "fields")


@dataclass(frozen=True)
class Ranked:
    """The units of a query's candidates with their scores.

    Attributes:
        query: What was asked.
        units: Candidates.
        scores: One a unit, higher is better.
        signals: By name, one number a unit.
        found_by: What led to each unit, by its place in `WAYS`; -1 where nothing did.
        chance_cosine: See `Vectors.chance_cosine`.
        earlier: The unit that a newer telling of the same stands before; -1 for none.
        doubted: Units among the first that are about what is asked, and seem not to answer it.
    """

    query: Query
    units: Units
    scores: Vector
    signals: Signals
    found_by: NDArray[np.int8]
    chance_cosine: float = 0.0
    earlier: int = -1
    doubted: frozenset[int] = frozenset()


class Candidates(NamedTuple):
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
    matching: Matching
    pages: list[EncodedPage]
    vectors: Vectors | None
    text: str
    near: Sequence[int]


def looked_up(index: Index, query: Query) -> tuple[LikeWords, Matching]:
    """Return the words of the brain that share a stem or a trigram with a query's, and the pages that hold any."""
    tokens, terms = query.tokens, query.terms
    varied = dict.fromkeys(token.stem for token in tokens[:_MOST_VARIED] if token.stem in terms)
    is_cut = len(tokens) > _MOST_TOKENS

    def like_words(tokens: Iterable[Token], terms: Sequence[str]) -> LikeWords:
        return LikeWords(index, [(token.word, token.stem) for token in tokens], terms, is_cut=is_cut)

    like = like_words(tokens[:_MOST_VARIED], list(varied)) if is_cut else like_words(tokens, terms)
    variants: dict[str, tuple[str, float]] = {}
    for stem, term, likeness in like.variants(varied):
        variants.setdefault(stem, (term, likeness))  # of words with one stem the most alike comes first
    is_by_unit = query.phrases or query.without_words or any(FIELDS[name].allows_units for name in query.narrowing)
    limit = _PASSAGES_READ if is_by_unit else _PASSAGES
    found = index.query(
        [*terms, *query.marks],
        limit if terms or query.required else _PAGES_LISTED,
        required=query.required,
        variants=variants,
        allows=partial(allows_page, query.narrowing) if query.narrowing else None,
    )
    if is_cut:  # the candidates tell which words of a long query are rare
        terms = tuple(sorted(terms, key=lambda term: found.frequencies.get(term, 0))[:_MOST_TOKENS])
        like = like_words([token for token in tokens if token.stem in terms], terms)
    return like, found


def ranked_units(query: Query, candidates: Candidates, analyzer: Analyzer) -> Ranked | None:
    """Score the candidates of a query, of long pages the best units, and no more than there is time for; None for none.

    Args:
        query: What is asked; without terms all units are wanted.
        candidates: Where hits may stand.
        analyzer: The brain's language.
    """
    like, matching, pages, vectors, text, _ = candidates
    if not pages:
        return None
    # in one order whatever the engine's: of equal hits the same one comes first after a rebuild
    in_order = sorted(range(len(pages)), key=lambda number: pages[number].page.path)
    arrays = PageArrays([pages[number] for number in in_order])
    unit, numbers = arrays.occurrences(like)
    is_chosen = np.ones(len(arrays.rows), bool)
    if query.terms:
        is_chosen = _best(arrays, lambda: _worth(arrays, unit, numbers, candidates))
    chosen = np.flatnonzero(is_chosen)
    if len(chosen) > _MAX_UNITS:
        # the candidates came with the most promising first: their numbers say how promising they are
        promise = np.array(in_order)[arrays.page[chosen]]
        is_chosen[:] = False
        is_chosen[chosen[np.argsort(promise, kind="stable")[:_MAX_UNITS]]] = True
    units = Units(arrays, is_chosen)
    if not units.n:
        return None
    matches = Matches(units, query, matching.frequencies, matching.n_passages, like, (unit, numbers))
    meaning = vectors.signals(text, units) if vectors else {}
    chance = vectors.chance_cosine() if vectors else 0.0
    signals = all_signals(matches, meaning, analyzer)
    ranked = Ranked(query, units, rank(units, signals), signals, _found_by(matches, signals, chance), chance)
    return _told_apart(ranked, vectors, text) if meaning and vectors else ranked


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


def _worth(arrays: PageArrays, unit: Places, numbers: Numbers, candidates: Candidates) -> NDArray[np.float64]:
    """Return what the words asked for are worth that each unit holds, each counted once: the rarer, the more.

    Words like them are worth half as much as they are like them; a unit near in meaning is worth more than any words.

    Args:
        arrays: Of the candidates.
        unit: In which unit each word stands that shares something with the query.
        numbers: These words.
        candidates: What the index says of them.
    """
    like, matching = candidates.like, candidates.matching
    counts = np.array([matching.frequencies.get(term, 0) for term in like.terms], np.float64)
    # a row for each word that is like a term, a column for each term
    values = np.maximum(like.exact, like.near / 2) * idf_of(counts, max(matching.n_passages, 1))
    rows = like.of_alike(numbers)
    unit, rows = unit[rows >= 0], rows[rows >= 0]
    near = np.array(candidates.near, np.uint64)
    worth = np.where(np.isin(arrays.content, near), _BEYOND_WORDS, 0.0)
    first = np.flatnonzero(np.diff(unit, prepend=-1))  # the occurrences in a unit lie one after another
    if len(first):
        worth[unit[first]] += np.maximum.reduceat(values[rows], first).sum(1)
    return worth


def without_speakers(query: Query, pages: Sequence[EncodedPage]) -> str:
    """Return a query without the names of those who speak, for embedding: people rarely name themselves.

    The signal `about` says who speaks.
    """
    speakers = set(np.frombuffer(b"".join([page.features for page in pages]), FEATURES)["speaker"].tolist())
    names = {word for word in query.words if term_hash(word) in speakers}
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
    # the rank of each unit among those of its page, 0 for the one that is worth most; those of a page lie together
    order = np.lexsort((-worth, page))
    rank_on_page = np.empty(len(page), np.int64)
    rank_on_page[order] = np.arange(len(page)) - np.searchsorted(page, page)
    # the first stays where none is worth anything: a page may be a candidate by its title alone
    is_best = (rank_on_page < most[page]) & ((worth > 0) | (rank_on_page == 0))
    is_chosen = is_short[page] | is_best
    is_near: NDArray[np.bool_] = is_chosen.copy()
    for by in range(1, _BESIDE + 1):
        is_same_page = page[by:] == page[:-by]
        is_near[by:] |= is_chosen[:-by] & is_same_page
        is_near[:-by] |= is_chosen[by:] & is_same_page
    return is_near


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
        # high enough to be no chance; once there are hits, by words or by such a cosine to a question, what comes about
        # as near as the nearest unit is one too
        least = chance_cosine * (_SHARE_FOR_QUESTION if is_question else 1)
        if has_hits or (is_question and best >= least):
            least = min(max(_SHARE_OF_NEAREST * best, _LEAST_AMONG_HITS), least)
        # where nothing else is to be shown for a question, what comes nearest is
        ways["meaning"] = signals["cosine"] >= (least if has_hits or not is_question else min(least, best or least))
    found_by = np.full(matches.units.n, -1, np.int8)
    # the last first, so that the first of `WAYS` is what stays
    for number, way in reversed(list(enumerate(WAYS))):
        found_by[ways[way]] = number
    return found_by
