"""Signals: numbers by name that say how well a unit fits a query, computed for the candidates of that query alone.

Each signal is a vector over all units of the candidate pages; `WEIGHTS` are theirs. Lexical ones are BM25
(Robertson and Zaragoza, 2009) divided by the best candidate's, since scores fuse better by value over maximum than by
rank. Words match by their stems and, in any language, by the character trigrams that they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.search import features as f
from brainiac.search.documents import NO_DAY, Page, UnitKind
from brainiac.search.features import EncodedPage, speaker_key
from brainiac.search.query import Query, speaker_words
from brainiac.search.text import NUMBER, TIME, Analyzer, mark_of, plain_words, term_hash
from brainiac.search.vocabulary import LikeWords, Numbers, Places

Vector: TypeAlias = NDArray[np.float64]
Signals: TypeAlias = dict[str, Vector]

# A longer pause than this ends a conversation with a model, or of people in a transcript, who answer later.
_CHAT_PAUSE, _TRANSCRIPT_PAUSE = 15, 240  # minutes
COMMON_SHARE = 1 / 3  # what stands in a greater share of all passages tells nothing by itself
_FEW_PASSAGES, _FEW_DOCUMENTS = 8, 64
# Where there are vectors: a question in other words than the answer's is met by chance alone, and the best of what has
# little of the question must not count in full. Measured on facts (docs/decisions/ranker.md): .2 to .6 serve as well.
_GOOD_SHARE = 0.3


class PageArrays:
    """The units of pages side by side, as the index keeps them.

    Args:
        pages: In the order in which their units are ranked.

    Attributes:
        rows: The features of all units; `content` their hashes; `words` the hashes of their words.
        page: The place of each unit's page; `start`: the first unit of each page.
        ends: Where the words of each unit end in `words`.
        is_turn: Whether each unit is a turn of an exchange.
    """

    def __init__(self, pages: Sequence[EncodedPage]) -> None:
        self.pages = pages
        self.rows = np.frombuffer(b"".join([page.features for page in pages]), f.FEATURES)
        self.content = np.frombuffer(b"".join([page.content for page in pages]), np.uint64)
        self.words = np.frombuffer(b"".join([page.words for page in pages]), np.uint32)
        counts = np.array([page.n_units for page in pages], np.int64)
        self.page, self.start = np.repeat(np.arange(len(pages)), counts), np.cumsum(counts) - counts
        self.ends = np.cumsum(self.rows["size"], dtype=np.int64)
        self.is_turn = f.kind_of(self.rows["flags"]) == UnitKind.TURN

    def occurrences(self, like: LikeWords) -> tuple[Places, Numbers]:
        """Return the unit, in order, and the number of every word that shares a stem or a trigram with the query."""
        places, numbers = like.matches_in(self.words)
        return np.searchsorted(self.ends, places, "right"), numbers


# What is ranked by weights of its own: words of a transcript, single things that a person told, and prose.
TALK, FACTS, NOTES = 0, 1, 2


class Groups:
    """Units in groups, those of a group one after another.

    Args:
        begins: For each unit but the first whether a group begins with it.
        n: How many units there are.

    Attributes:
        of: The number of each unit's group, from 0 on.
        start: The first unit of each group.
    """

    def __init__(self, begins: NDArray[np.bool_], n: int) -> None:
        self.of: Numbers = np.concatenate(([0], np.cumsum(begins)))[:n]
        self.start = _starts(self.of)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of values over each group."""
        return np.add.reduceat(values, self.start, axis=-1)


def _starts(groups: NDArray[Any]) -> Places:
    """Return the first of each group of equal values."""
    return np.flatnonzero(np.diff(groups, prepend=-1))


class Units:
    """The units that are ranked, side by side; every array has one value a unit.

    Args:
        arrays: The units of the candidate pages.
        is_chosen: Which of them are ranked.

    Attributes:
        number: For each unit of the candidate pages its number here; -1 where it is not ranked.
        content: Content hashes, the keys of the units' vectors.
        features: See `features.FEATURES`.
        pages: The pages that have a unit here; `page`: the place of each unit's page.
        position: The place of each unit on its page.
        sort: By which weights it is ranked: `TALK`, `FACTS` or `NOTES`.
        scope: The conversations, or outside of exchanges the pages.
        whole: What units are parts of: what somebody said at once, the section of a page, or a statement by itself.
    """

    def __init__(self, arrays: PageArrays, is_chosen: NDArray[np.bool_]) -> None:
        chosen = np.flatnonzero(is_chosen)
        self.number = np.where(is_chosen, np.cumsum(is_chosen) - 1, -1)
        self.content, self.features = arrays.content[chosen], arrays.rows[chosen]
        self.n = len(self.features)
        page = arrays.page[chosen]
        is_first = np.diff(page, prepend=-1) != 0
        self.page = np.cumsum(is_first) - 1
        self.pages = [arrays.pages[number] for number in page[is_first].tolist()]
        self.position = chosen - arrays.start[page]
        flags = self.features["flags"]
        self.speaker = self.features["speaker"]
        self.length = np.maximum(self.features["size"], 1).astype(np.float64)
        self.gram_length = (flags >> f.LENGTH_SHIFT & f.MAX_LENGTH).astype(np.float32)
        self.kind = f.kind_of(flags)
        self.is_turn = (self.kind == UnitKind.TURN).astype(np.float64)
        self.capitals = (flags >> f.CAPITALS_SHIFT & 15) / f.MAX_CAPITALS
        # in a transcript each speaker is named: only there do names say who said something
        self.is_labelled = self.is_turn * ~np.isin(self.speaker, [f.USER, f.AI])
        is_fact = np.isin(self.kind, (UnitKind.TURN, UnitKind.STATEMENT))
        self.sort = np.where(self.is_labelled > 0, TALK, np.where(is_fact, FACTS, NOTES))
        # A conversation begins with a turn after a pause, and with each turn of which only the day is known. What is
        # around is the exchange of a message, or the page; in a transcript it is the turns beside, see `around`.
        minute, is_turn = self.features["minute"].astype(np.int64), self.is_turn > 0
        longest_pause = np.where(self.is_labelled[1:] > 0, _TRANSCRIPT_PAUSE, _CHAT_PAUSE)
        is_apart = (np.abs(np.diff(minute)) > longest_pause) | (minute[1:] == NO_DAY)
        begins = (np.diff(self.page) > 0) | (is_turn[1:] != is_turn[:-1]) | (is_turn[1:] & is_apart)
        self.scope = Groups(begins, self.n)
        # the items of a list stand in no order: the neighbours of a statement say nothing of it
        is_item = self.kind == UnitKind.STATEMENT
        begins = begins | (np.diff(self.position) != 1) | is_item[1:] | is_item[:-1]
        self._talk = Groups(begins, self.n).of
        # of a transcript only the day may be known: who says something in a row says it at once
        begins = begins | ((np.diff(self.features["minute"]) != 0) & (self.is_labelled[1:] == 0))
        is_said_by_other = np.diff(self.speaker) != 0
        self.whole = Groups(begins | is_said_by_other | (self.flag(f.HEADED)[1:] > 0), self.n)
        # a person speaks after what was answered
        self._exchange = Groups(begins | (np.diff(self.flag(f.FROM_AI)) < 0), self.n)

    def flag(self, mask: int) -> Vector:
        """Return for each unit 1 where it has the flag of a mask (a constant of `features.py`), else 0."""
        return ((self.features["flags"] & mask) > 0).astype(np.float64)

    def shift(self, values: NDArray[Any], by: int) -> NDArray[Any]:
        """Return for each unit the value of its neighbour, 0 where it has none.

        Args:
            values: One value a unit, in the last axis.
            by: 1 or 2 for a later neighbour in the same conversation, -1 or -2 for an earlier one.
        """
        size = min(abs(by), self.n)
        earlier, later = slice(None, self.n - size), slice(size, None)
        to, source = (earlier, later) if by > 0 else (later, earlier)
        is_beside = (self._talk[later] == self._talk[earlier]).astype(np.float32)
        shifted = np.zeros(values.shape, np.result_type(values, np.float32))
        np.multiply(values[..., source], is_beside, out=shifted[..., to])
        return shifted

    def around(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return for each unit the sum over what is around it.

        In a transcript that are two turns before and two after it; else the exchange, or the page.
        """
        window = values + sum(self.shift(values, by) for by in (-2, -1, 1, 2))
        of_exchange = self._exchange.sums(values)[..., self._exchange.of]
        return np.where(self.is_labelled > 0, window, of_exchange)


# --- arithmetic of scores ---------------------------------------------------------------------------------------


def bm25(
    frequency: NDArray[Any],
    length: NDArray[Any],
    idf: Vector,
    k1: float = 0.9,
    b: float = 0.4,
    *,
    least: float = 0.0,
    typical: NDArray[np.bool_] | None = None,
) -> Vector:
    """Return BM25 divided by its maximum for a matrix of term frequencies, one row a term.

    Args:
        frequency: How often each term stands in each unit.
        length: Of the units.
        idf: Of the terms.
        k1: How much repeating a term adds.
        b: How much a unit's length takes away.
        least: The least share of the weight of all terms that the maximum counts as.
        typical: The units whose length is the usual one, if there are any; None for all.
    """
    usual = length[typical] if typical is not None and typical.any() else length
    saturation = k1 * (1 - b) + length * (k1 * b / max(usual.mean(), 1.0))
    summed = weighed(frequency / (frequency + saturation), idf.astype(frequency.dtype))
    best = max(summed.max(initial=0.0), least * float(idf.sum()))
    return summed / best if best > 0 else summed


def weighed(values: NDArray[Any], weights: Vector) -> Vector:
    """Return the weighted sum of a matrix's rows."""
    # not `weights @ values`: its last bits depend on where a column stands, and equal units must stay equal
    summed: Vector = (values * weights[:, None]).sum(0)
    return summed


def share(values: NDArray[Any], weights: Vector) -> Vector:
    """Return the weighted mean of a matrix's rows: how much of what is asked for each column has."""
    return weighed(values, weights) / max(float(weights.sum()), 1e-9)


def idf_of(documents: Vector, total: float) -> Vector:
    """Return the weight of terms that stand in so many of all documents."""
    return np.log(1 + (total - documents + 0.5) / (documents + 0.5))


# --- how the words of a query stand in the units ----------------------------------------------------------------


class Matches:
    """How a query's words stand in the units.

    Args:
        units: Candidates.
        query: What is asked.
        frequencies: Passages that hold each term.
        n_passages: How many there are.
        like: The words of the brain that share a stem or a trigram with the query.
        occurrences: Where they stand in the pages of the units.

    Attributes:
        named: Those of the speakers whom the query means: by name, `user` by "I", `ai` by "you".
        is_named: 1 for their turns.
        is_first_named: 1 for the turns of the first of them whose name stands in the query, where several do.
        is_called: 1 for the turns of those whom the query means by name, where a transcript names them.
        mentions: How often their names stand in each unit.
        met: How much of any term that tells something each unit has: 1 for the word itself, less for one like it.
        exact: How often each term stands in each unit; `near`: how often words like it do, each as far as it is like.
        best_near: How like each term the most similar word of each unit is.
        idf: Of the terms; `near_idf`: with what is like them.
        grams: How often each trigram of the query stands in each unit.
        grams_in_title: 1 where the title, a name or a tag of a page has a trigram of the query.
        may_be_named: Whether the query may hold a name of a page.
    """

    def __init__(
        self,
        units: Units,
        query: Query,
        frequencies: Mapping[str, int],
        n_passages: int,
        like: LikeWords,
        occurrences: tuple[Places, Numbers],
    ) -> None:
        self.units, self.query, self._like = units, query, like
        self._match_speakers()
        # whole or without its end, which a stemmer may have cut; fewer than three letters begin too many names
        is_name = np.array([len(term) > 2 and any(w.startswith(term) for w in self.named) for term in like.terms])
        # names rank by who speaks, not as words, unless nothing else is asked
        self._is_term = is_name if is_name.all() else ~is_name
        owner = units.number[occurrences[0]]
        is_ranked = owner >= 0
        owner, numbers = owner[is_ranked], occurrences[1][is_ranked]
        exact, near, best_near = self._matched_words(owner, numbers)
        self.exact, self.near, self.best_near = (rows[self._is_term] for rows in (exact, near, best_near))
        self.mentions: Vector = exact[is_name].sum(0)
        self.grams = like.gram_counts(numbers, owner, units.n)
        self._match_titles()
        documents = [frequencies.get(term, 0) for term in np.array(like.terms)[self._is_term].tolist()]
        self._weigh_terms(np.array(documents, np.float64), max(n_passages, 1))

    def _match_speakers(self) -> None:
        """Find which speakers of the candidates the query names, and the turns that are theirs."""
        units = self.units
        speakers = set(units.speaker[units.is_turn > 0].tolist())
        self.named = {w for w in speaker_words(self.query) if term_hash(speaker_key(w)) in speakers}
        self.is_named = self._spoken_by(self.named)
        self.is_called = self._spoken_by(self.named & self.query.words) * units.is_labelled
        pieces = self.query.text.split()
        in_order = dict.fromkeys(word for piece in pieces for word in sorted(plain_words(piece) & self.named))
        self.is_first_named = self._spoken_by(list(in_order)[:1] if len(in_order) > 1 else ())

    def _spoken_by(self, names: Iterable[str]) -> Vector:
        """Return 1 for each turn whose speaker has one of the names, else 0."""
        hashes = [term_hash(name) for name in names]
        spoken: Vector = np.isin(self.units.speaker, hashes) * self.units.is_turn
        return spoken

    def _matched_words(self, owner: Places, numbers: Numbers) -> tuple[Vector, Vector, Vector]:
        """Return `exact`, `near` and `best_near` for all terms, names of speakers among them: a row for each.

        Args:
            owner: The units in which words stand, in order.
            numbers: Those words.
        """
        like, shape = self._like, (len(self._like.terms), self.units.n)
        rows = like.of_alike(numbers)
        is_alike = rows >= 0
        owner, rows = owner[is_alike], rows[is_alike]
        exact, near, best_near = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        if len(rows):
            first = _starts(owner)  # the words of a unit lie one after another
            exact[:, owner[first]] = np.add.reduceat(like.exact[rows], first).T
            near[:, owner[first]] = np.add.reduceat(like.near[rows], first).T
            best_near[:, owner[first]] = np.maximum.reduceat(like.near[rows], first).T
        return exact, near, best_near

    def _match_titles(self) -> None:
        """Find which terms and trigrams of the query the title, the names and the tags of each page hold."""
        pages, like = self.units.pages, self._like
        hashes = np.frombuffer(b"".join([page.heading for page in pages]), np.uint32)
        ends = np.cumsum([len(page.heading) // hashes.itemsize for page in pages])
        places, numbers = like.matches_in(hashes)
        page = np.searchsorted(ends, places, "right")
        self.grams_in_title = np.minimum(like.gram_counts(numbers, page, len(pages)), 1)
        rows = like.of_alike(numbers)
        page, rows = page[rows >= 0], rows[rows >= 0]
        in_title = np.zeros((len(like.terms), len(pages)))
        word, term = np.nonzero(like.exact[rows])
        in_title[term, page[word]] = 1
        # of a long query not all words are looked up
        self.may_be_named = in_title.any(0) | like.is_cut

    def _weigh_terms(self, documents: Vector, total: int) -> None:
        """Set the weight of each term by how rare it is, and `met`: the best match with a term that is rare enough.

        Args:
            documents: In how many passages each term stands.
            total: How many passages there are.
        """
        in_exact, in_near = (self.exact > 0).sum(1), (self.near > 0).sum(1)
        # of a rare word all places are candidates, and units are counted as well as passages
        documents = np.where(documents <= _FEW_DOCUMENTS, np.minimum(documents, in_exact), documents)
        self.idf = idf_of(documents, total)
        # in how many passages words like a term stand nobody counted: by the same ratio as among the candidates
        near_documents = documents * (in_near + 1) / (in_exact + 1) + (documents == 0) * in_near
        self.near_idf = idf_of(np.minimum(near_documents, total), total)
        is_rare = documents <= max(_FEW_PASSAGES, total * COMMON_SHARE)
        # where no term is rare, all of them count
        self.met: Vector = self.best_near[is_rare if is_rare.any() else ~is_rare].max(0, initial=0)


# --- the signals ------------------------------------------------------------------------------------------------


def all_signals(matches: Matches, meaning: Signals, analyzer: Analyzer) -> Signals:
    """Return every signal of the candidates of one query.

    Args:
        matches: How the query's words stand in the units.
        meaning: What vectors say; empty without an embedder.
        analyzer: The brain's language.
    """
    signals = lexical_signals(matches, least=_GOOD_SHARE if meaning else 0.0)
    return signals | content_signals(matches) | page_signals(matches, analyzer) | meaning


def lexical_signals(matches: Matches, least: float) -> Signals:
    """Return how well the query's words match each unit, the whole that it is a part of, what is around, and its page.

    Args:
        matches: How the query's words stand in the units.
        least: See `bm25`.
    """
    units, n_terms = matches.units, len(matches.exact)
    score = partial(bm25, k1=1.2, b=0.75, least=least)
    # what assistants say is so long that by its length no message of a person's would be longer than another
    by_person = units.flag(f.FROM_AI) == 0
    wholes_of_person = by_person[units.whole.start]
    # the last row of each matrix is the length
    rows = np.concatenate((matches.exact, units.length[None]))
    whole, around = units.whole.sums(rows), units.around(rows)
    # inflected forms, compounds and typos of a word share most of its trigrams
    grams = np.concatenate((matches.grams, units.gram_length[None]))
    pages = units.scope.sums(grams)
    idf = idf_of((matches.grams > 0).sum(1).astype(np.float64), float(units.n))
    page_idf = idf_of((pages[:-1] > 0).sum(1).astype(np.float64), pages.shape[1])
    whole_covered = share(units.whole.sums(matches.near) > 0, matches.near_idf)
    return {
        "covered": share(matches.best_near, matches.near_idf),
        "trigram": score(grams[:-1], grams[-1], idf, typical=by_person),
        "whole": score(whole[:n_terms], whole[-1], matches.idf, typical=wholes_of_person)[units.whole.of],
        "whole_covered": whole_covered[units.whole.of],
        "around": bm25(around[:n_terms], around[-1], matches.idf, least=least),
        "page": score(pages[:-1], pages[-1], page_idf)[units.scope.of],
        "title": share(matches.grams_in_title, idf)[units.page],
        "met": matches.met,  # without a weight: it says whether words led to the unit
        "full": (matches.exact > 0).all(0).astype(np.float64),  # likewise
    }


def content_signals(matches: Matches) -> Signals:
    """Return who speaks, who is spoken of, what asks and what answers, and whether a unit has what is asked for."""
    units = matches.units
    question, asks = units.flag(f.QUESTION) * units.is_turn, units.flag(f.ASKS) * units.is_turn
    # a turn is about who speaks; any other unit is about whom it names, and about the person, who keeps these pages
    about_on_page = np.maximum(matches.mentions > 0, float("user" in matches.named))
    is_one_named = float(len(matches.named) == 1)
    has = {
        "when": units.flag(TIME),
        "where": units.flag(f.PLACE),
        "count": units.flag(NUMBER),
        "who": units.capitals,
    }
    fits = [values for name, values in has.items() if name in matches.query.asks]
    return {
        "about": is_one_named * np.where(units.is_turn > 0, matches.is_named, about_on_page),
        # of two the first is who did or said it: "What did Ann tell Tom?"
        "first_named": matches.is_first_named,
        "asks": asks,
        # a turn right after a question answers it as well as that has the query's words
        "answers": units.shift(question * share(matches.best_near, matches.near_idf), -1) * units.is_turn,
        "fits": np.max(fits, axis=0) if fits else np.zeros(units.n),
        "day": _day_match(units, matches.query.days),
        "is_talk": (units.sort == TALK).astype(np.float64),
        "is_notes": (units.sort == NOTES).astype(np.float64),
    }


def _day_match(units: Units, days: tuple[int, int] | None) -> Vector:
    """Return for each unit 2 where it was said on the days asked about, 1 a little later or where it names one of them.

    On other days less for each day away.
    """
    if days is None:
        return np.zeros(units.n)
    first, last = days
    features = units.features
    day = np.where(features["day"] == NO_DAY, -1e9, features["day"])
    away = np.maximum(np.maximum(first - day, day - last - 2), 0)  # most things are told a day or two later
    is_written = (features["first_day"] != NO_DAY) & (features["first_day"] <= last) & (features["last_day"] >= first)
    # a week away counts a third: who asks about a day is often off by some
    match: Vector = np.maximum(np.exp(-away / 7), is_written) + ((first <= day) & (day <= last))
    return match


def page_signals(matches: Matches, analyzer: Analyzer) -> Signals:
    """Return what stands before all likelihood: whether the query names the page, and where the words come from."""
    units = matches.units
    pages = [encoded.page for encoded in units.pages]
    titled, headed = _named(pages, matches, analyzer)
    is_archived = np.array([page.is_archived for page in pages])
    return {
        "titled": (titled * ~is_archived)[units.page],
        "headed": headed[units.page] * (1 - units.is_turn),  # the title of a day's page says nothing of its words
        "from_ai": units.flag(f.FROM_AI) * float("ai" not in speaker_words(matches.query)),
        "archived": is_archived.astype(np.float64)[units.page],
    }


def _named(pages: Sequence[Page], matches: Matches, analyzer: Analyzer) -> tuple[Vector, Vector]:
    """Return two vectors over the pages: 1 where the query is a page's name, and 1 where it contains a whole name."""
    query, titled, headed = matches.query, np.zeros(len(pages)), np.zeros(len(pages))
    asked = {token.word for token in query.tokens}
    for number in np.flatnonzero(matches.may_be_named).tolist():
        for name in pages[number].names:
            words, mark = _words_and_mark(name, analyzer)
            is_query = query.name != "" and mark == query.name
            titled[number] = max(titled[number], is_query)
            headed[number] = max(headed[number], bool(words) and words <= asked)
    return titled, headed


@lru_cache(maxsize=16_384)
def _words_and_mark(name: str, analyzer: Analyzer) -> tuple[frozenset[str], str]:
    """Return the words of a page's name, none where they tell nothing, and its mark in the index (`=new_garden`)."""
    tokens = analyzer.tokens(name)
    tells = any(not token.is_stop and len(token.word) > 2 and not token.word.isdecimal() for token in tokens)
    words = frozenset(token.word for token in tokens) if tells else frozenset()
    return words, mark_of(tokens)


# --- the ranking: one weighted sum, and the one table of weights ---------------------------------------------------

# Each learned signal with its weights by words alone in talk, facts and notes (`Units.sort`), and then
# where there are vectors. Learned by `benchmarks/learning.py` (sources and figures: docs/decisions/ranker.md).
WEIGHTS: dict[str, tuple[float, ...]] = {
    "covered": (0.62, 5.12, 3.79, 0.18, 1.24, 2.82),
    "trigram": (3.11, 4.70, 5.98, 2.68, 1.82, 4.41),
    "whole": (-0.15, 2.29, 3.18, -0.69, 1.60, 2.71),
    "whole_covered": (0.42, -4.90, 0.28, 0.41, -2.39, 0.30),
    "around": (3.16, 1.70, 0.73, 2.80, 2.22, 0.45),
    "page": (2.24, 0.00, -1.97, 1.82, 0.00, -1.54),
    "title": (1.63, 0.00, 8.51, 1.58, 0.00, 4.81),
    "about": (2.14, 2.14, 2.14, 2.20, 2.20, 2.20),
    "first_named": (2.05, 0.00, 0.00, 2.13, 0.00, 0.00),
    "asks": (-0.72, -3.00, 0.00, -0.65, -3.00, 0.00),
    "answers": (1.96, 0.00, 0.00, 1.55, 0.00, 0.00),
    "fits": (1.31, -0.15, 0.00, 0.94, -0.70, 0.00),
    "day": (3.73, 3.73, 3.73, 3.78, 3.78, 3.78),
    "meaning": (0.00, 0.00, 0.00, 3.38, 6.14, 8.77),
    "meaning_page": (0.00, 0.00, 0.00, 3.11, 2.34, 0.96),
    # of all units of a sort: what makes the scores of talk and notes comparable with those of facts
    "is_talk": (-2.95, 0.00, 0.00, -3.64, 0.00, 0.00),
    "is_notes": (0.00, 0.00, -2.89, 0.00, 0.00, -3.33),
}
# No likelihoods, but what stands before what: first what is asked for by its name, last what is archived, unless it
# alone has all words; an assistant's words behind a person's.
ORDER: dict[str, float] = {"titled": 1000.0, "headed": 0.0, "from_ai": -5.0, "archived": -2000.0}
_FULL = 1000.0
N_SORTS = 3
BY_WORDS, WITH_MEANING = 0, N_SORTS  # where the columns of the learned table begin


def rank(units: Units, signals: Mapping[str, Vector]) -> Vector:
    """Return a score for each unit, higher is better: the weighted sum of its signals, and what orders all scores.

    Args:
        units: Candidates.
        signals: By name; without `meaning` the weights by words apply.
    """
    scores = _learned(units, signals, BY_WORDS)
    if "meaning" in signals:  # then at least one unit has a vector
        by_words, has_vector = scores, signals["embedded"] > 0
        scores = _learned(units, signals, WITH_MEANING)
        # a unit without a vector is scored by its words, and gains as much by meaning as the others do on average
        mean_gain = (scores - by_words)[has_vector].mean()
        scores = np.where(has_vector, scores, by_words + mean_gain)
    scores = scores + weighed(np.array([signals[name] for name in ORDER]), np.array(list(ORDER.values())))
    is_archived, is_full = signals["archived"] > 0, signals["full"] > 0
    if (is_archived & is_full).any():
        scores += np.where(is_full, _FULL - is_archived * (ORDER["archived"] - ORDER["from_ai"]), 0.0)
    return scores


def _learned(units: Units, signals: Mapping[str, Vector], column: int) -> Vector:
    """Return the learned score of each unit, by the weights of its sort.

    Args:
        units: Candidates.
        signals: By name.
        column: Of the table, `BY_WORDS` or `WITH_MEANING`.
    """
    names = [name for name in WEIGHTS if name in signals]
    values = np.array([signals[name] for name in names])
    weights = np.array([WEIGHTS[name] for name in names])[:, column + units.sort]
    # not a product of matrices: its last bits depend on where a column stands, and equal units must stay equal
    learned: Vector = (values * weights).sum(0)
    return learned


def contributions(signals: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    """Return value, weight and their product for each signal of one hit that counted.

    Args:
        signals: Of the hit, those that are not 0: they tell which column of the table its weights stand in.
    """
    sort = TALK if "is_talk" in signals else NOTES if "is_notes" in signals else FACTS
    column = sort + (WITH_MEANING if "embedded" in signals else BY_WORDS)
    weights = {name: row[column] for name, row in WEIGHTS.items()} | ORDER
    return {name: (value, weights[name], value * weights[name]) for name, value in signals.items() if name in weights}
