"""Signals: numbers by name that say how well a unit fits a query, computed for the candidates of that query alone.

Each signal is a vector over all units of the candidate pages; `rank.py` has their weights. Lexical ones are BM25
(Robertson and Zaragoza, 2009) divided by the best candidate's, since scores fuse better by value over maximum than by
rank. Words match by their stems and, in any language, by the character trigrams that they share.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.search import features as f
from brainiac.search.documents import IMPORTED, Page, UnitKind
from brainiac.search.features import EncodedPage, mark_of, names_of, signed, speaker_key
from brainiac.search.links import wiki_names
from brainiac.search.query import Query, speaker_words
from brainiac.search.text import FIRST_PERSON, NUMBER, TIME, Analyzer, plain_words
from brainiac.search.vocabulary import LikeWords, Numbers, Places, term_hash

Vector: TypeAlias = NDArray[np.float64]
Signals: TypeAlias = dict[str, Vector]

# A longer pause than this ends a conversation; people who write to each other answer later than a model does.
TALK_MINUTES, DIALOGUE_MINUTES = 15, 240
COMMON_SHARE = 1 / 3  # what stands in a greater share of all passages tells nothing by itself
_FEW_PASSAGES, _FEW_DOCUMENTS = 8, 64
# Where there are vectors: a question in other words than the answer's is met by chance alone, and the best of what has
# little of the question must not count in full. Measured on facts (docs/decisions/ranker.md): .2 to .6 serve as well.
_GOOD_SHARE = 0.3
_SPREAD_FROM = 5  # pages whose links lead to others that fit


class PageArrays:
    """The units of pages side by side, as the index keeps them.

    Args:
        pages: In the order in which their units are ranked.

    Attributes:
        rows: The features of all units; `content` their hashes; `words` the hashes of their words.
        page: The place of each unit's page; `start`: the first unit of each page.
        ends: Where the words of each unit end.
    """

    def __init__(self, pages: Sequence[EncodedPage]) -> None:
        self.pages = pages
        self.rows = np.frombuffer(b"".join([page.features for page in pages]), f.FEATURES)
        self.content = np.frombuffer(b"".join([page.content for page in pages]), np.uint64)
        self.words = np.frombuffer(b"".join([page.words for page in pages]), np.uint32)
        counts = np.array([page.n_units for page in pages], np.int64)
        self.page, self.start = np.repeat(np.arange(len(pages)), counts), np.cumsum(counts) - counts
        self.ends = np.cumsum(self.rows["size"], dtype=np.int64)
        self.is_turn = self.rows["flags"] >> f.KIND_SHIFT & 7 == UnitKind.TURN

    def met(self, like: LikeWords) -> Occurrences:
        """Return every word of the units that has anything of a query."""
        places, numbers = like.met_in(self.words)
        return Occurrences(np.searchsorted(self.ends, places, "right"), numbers)


class Occurrences(NamedTuple):
    """Words that stand in units of `PageArrays`, in order.

    Attributes:
        unit: The unit of each.
        numbers: Which word of the brain each is.
    """

    unit: Places
    numbers: Numbers


# What is ranked by weights of its own: words of a transcript, single things that a person told, and prose.
TALK, FACTS, NOTES = 0, 1, 2


def _is_fact(kind: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(kind, (UnitKind.TURN, UnitKind.STATEMENT))


class Units:
    """The units of the candidates, side by side; matrices have a column a unit.

    Args:
        arrays: Of the candidate pages.
        is_chosen: Which of their units are ranked; None for all.
        is_wanted: Which of them could be: the next one of these is a neighbour; None for those that are chosen.
    """

    def __init__(
        self,
        arrays: PageArrays,
        is_chosen: NDArray[np.bool_] | None = None,
        is_wanted: NDArray[np.bool_] | None = None,
    ) -> None:
        is_chosen = np.ones(len(arrays.rows), bool) if is_chosen is None else is_chosen
        is_wanted = is_chosen if is_wanted is None else is_wanted
        chosen = np.flatnonzero(is_chosen)
        self.number = np.where(is_chosen, np.cumsum(is_chosen) - 1, -1)  # of each unit of the pages, -1 if not chosen
        self.content = arrays.content[chosen]  # hashes, the keys of the units' vectors
        self.features = arrays.rows[chosen]
        page = arrays.page[chosen]
        is_first = np.diff(page, prepend=-1) != 0
        self.start, self.page = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        self.pages = [arrays.pages[number] for number in page[is_first].tolist()]
        first = arrays.start[page]
        before = np.concatenate(([0], np.cumsum(is_wanted)))
        self.position, self.place = chosen - first, before[chosen] - before[first]
        sizes, flags = self.features["size"], self.features["flags"]
        self.n = len(self.features)
        self.speaker = self.features["speaker"]
        self.length = np.maximum(sizes, 1).astype(np.float64)
        self.gram_length = (flags >> f.LENGTH_SHIFT & f.MAX_LENGTH).astype(np.float32)
        self.kind = flags >> f.KIND_SHIFT & 7
        self.is_turn = (self.kind == UnitKind.TURN).astype(np.float64)
        self.capitals = (flags >> f.CAPITALS_SHIFT & 15) / f.MAX_CAPITALS
        self.tells = flags & f.ONLY_ASKS == 0
        # in a transcript each speaker is named: only there do names say who said something
        self.is_labelled = self.is_turn * ~np.isin(self.speaker, [f.USER, f.AI])
        self.sort = np.where(self.is_labelled > 0, TALK, np.where(_is_fact(self.kind), FACTS, NOTES))
        is_apart = self._is_apart()
        talk = np.concatenate(([0], np.cumsum(is_apart | (np.diff(self.place) != 1))))[: self.n]
        # the items of a list stand in no order: the neighbours of a statement say nothing of it
        talk = np.where(self.kind == UnitKind.STATEMENT, -1 - np.arange(self.n), talk)
        self._neighbours = _neighbours(talk)
        # people write several messages in a row: what a turn answers is then further away than the turn before it
        is_same = (self.is_labelled[1:] > 0) & (np.diff(talk) == 0) & (np.diff(self.speaker) == 0)
        self._run = np.concatenate(([0], np.cumsum(~is_same)))[: self.n]
        self._run_start = np.flatnonzero(np.diff(self._run, prepend=-1))
        self._run_neighbours = _neighbours(talk[self._run_start])
        self.scope = np.concatenate(([0], np.cumsum(is_apart)))[: self.n]
        self._scope_start = np.flatnonzero(np.diff(self.scope, prepend=-1))
        section = np.cumsum((flags & f.HEADED > 0) | (np.diff(self.scope, prepend=-1) != 0)) - 1
        self.section, self._section_start = section, np.flatnonzero(np.diff(section, prepend=-1))

    def _is_apart(self) -> NDArray[np.bool_]:
        """Return for each unit but the first whether another conversation or page begins with it.

        What one person told an hour apart seldom belongs together.
        """
        minute, turn = self.features["minute"].astype(np.int64), self.is_turn > 0
        most = np.where(self.is_labelled[1:] > 0, DIALOGUE_MINUTES, TALK_MINUTES)
        is_later = (minute[1:] == f.NO_DAY) | (np.abs(np.diff(minute)) > most)
        is_apart: NDArray[np.bool_] = (np.diff(self.page) > 0) | (turn[1:] != turn[:-1]) | (turn[1:] & is_later)
        return is_apart

    @cached_property
    def owner(self) -> Places:
        """The unit of each word, in order."""
        return np.repeat(np.arange(self.n), self.features["size"])

    def flag(self, mask: int) -> Vector:
        """Return for each unit 1 where it has the flag of a mask (a constant of `features.py`), else 0."""
        has_flag: Vector = ((self.features["flags"] & mask) > 0).astype(np.float64)
        return has_flag

    def shift(self, values: NDArray[Any], by: int) -> NDArray[Any]:
        """Return for each unit the value of its neighbour, 0 where it has none.

        Args:
            values: One value a unit; a matrix has them in its rows.
            by: 1 or 2 for a later neighbour in the same conversation, -1 or -2 for an earlier one.
        """
        return _shifted(values, by, self._neighbours)

    def beside(self, values: Vector, by: int) -> Vector:
        """Return for each unit the highest value of the turns before or after it that one speaker said in a row.

        Args:
            values: One value a unit.
            by: 1 for what was said next, -1 for what was said before, by another speaker, 2 and -2 one further away.
        """
        highest = np.maximum.reduceat(values, self._run_start)
        return _shifted(highest, by, self._run_neighbours)[self._run]

    def by_scope(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums over the units of each conversation or page."""
        sums: NDArray[Any] = np.add.reduceat(values, self._scope_start, axis=-1)
        return sums

    def by_section(self, values: Vector) -> Vector:
        """Return sums over each section of a page, from one heading to the next, and over each talk."""
        sums: Vector = np.add.reduceat(values, self._section_start, axis=-1)
        return sums

    def best_of_scope(self, values: Vector) -> Vector:
        """Return for each unit the highest value in its conversation or page."""
        best: Vector = np.maximum.reduceat(values, self._scope_start)[self.scope]
        return best

    def mean_of_scope(self, values: Vector) -> Vector:
        """Return for each unit the mean over its conversation or page."""
        sizes = np.diff(self._scope_start, append=self.n)
        mean: Vector = (self.by_scope(values) / sizes)[self.scope]
        return mean

    def place_in_scope(self, values: Vector) -> Vector:
        """Return the rank of each unit within its conversation or page by value, 0 for the highest."""
        place = np.empty(self.n)
        place[np.lexsort((-values, self.scope))] = np.arange(self.n) - self._scope_start[self.scope]
        return place


def _neighbours(talk: NDArray[Any]) -> dict[int, NDArray[np.float32]]:
    """Return 1 for each unit but the last, or last two, whose next, or second next, is of the same conversation."""
    return {by: (talk[by:] == talk[:-by]).astype(np.float32) for by in (1, 2)}


def _shifted(values: NDArray[Any], by: int, neighbours: Mapping[int, NDArray[np.float32]]) -> NDArray[Any]:
    """Return the values moved by one or two places, 0 where that leads into another conversation."""
    moved = np.zeros(values.shape, np.result_type(values, np.float32))
    n = values.shape[-1]
    size = min(abs(by), n)
    early, late = values[..., : n - size], values[..., size:]
    if by > 0:
        np.multiply(late, neighbours[by], out=moved[..., : n - size])
    else:
        np.multiply(early, neighbours[-by], out=moved[..., size:])
    return moved


# --- arithmetic of scores ---------------------------------------------------------------------------------------


def relative(scores: Vector, among: NDArray[np.bool_] | None = None, least: float = 0.0) -> Vector:
    """Return scores divided by their maximum, 1 at most; zeros stay zeros.

    Args:
        scores: All at least 0.
        among: The units of which the maximum is taken; all by default. Earlier questions are left out, since one that
            repeats the query would make every answer to it look weak.
        least: The least that the scores are divided by.
    """
    best = max((scores if among is None else scores[among]).max(initial=0.0), least)
    return np.minimum(scores / best, 1.0) if best > 0 else np.minimum(scores, 1.0)


def bm25(
    frequency: NDArray[Any],
    length: NDArray[Any],
    idf: Vector,
    among: NDArray[np.bool_],
    k1: float = 0.9,
    b: float = 0.4,
    *,
    least: float = 0.0,
) -> Vector:
    """Return BM25 over its maximum for a matrix of term frequencies, one row a term; see `relative`.

    Args:
        frequency: How often each term stands in each unit.
        length: Of the units.
        idf: Of the terms.
        among: Whose maximum it is.
        k1: How much repeating a term adds.
        b: How much a unit's length takes away.
        least: The least share of the weight of all terms that the maximum counts as.
    """
    saturation = k1 * (1 - b) + length * (k1 * b / max(length.mean(), 1.0))
    summed = weighed(frequency / (frequency + saturation), idf.astype(frequency.dtype))
    return relative(summed, among, least * float(idf.sum()))


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
    weight: Vector = np.log(1 + (total - documents + 0.5) / (documents + 0.5))
    return weight


# --- how the words of a query stand in the units ----------------------------------------------------------------


class Matches:
    """How a query's words stand in the units.

    Args:
        units: Candidates.
        query: What is asked.
        frequencies: Passages that hold each term.
        n_passages: How many there are.
        like: The words of the brain that have anything of the query's.
        occurrences: Where they stand in the pages of the units.

    Attributes:
        named: Who of those that speak is named in the query; `is_named`: 1 for their turns.
        is_first_named: 1 for the turns of the first of several.
        is_called: 1 for a turn whose speaker a transcript names, and so does the query.
        mentions: How often those who are named are spoken of.
        met: How much of any term that tells something each unit has: 1 for the word itself, less for one like it.
        exact: How often each term stands in each unit; `near`: how often what is like it does, as far as it is.
        best_near: How like each term the most similar word of each unit is.
        idf: Of the terms; `near_idf`: with what is like them.
        grams: How often each trigram of the query stands in each unit.
        in_title: 1 where the title, a name or a tag of a page has a term; `grams_in_title`: where they have a trigram.
        may_be_named: Whether the query may hold a name of a page.
    """

    def __init__(
        self,
        units: Units,
        query: Query,
        frequencies: Mapping[str, int],
        n_passages: int,
        like: LikeWords,
        occurrences: Occurrences,
    ) -> None:
        self.units, self.query, self._like = units, query, like
        self._match_speakers()
        is_name = np.array([_is_name(term, self.named) for term in like.terms])
        # names rank by who speaks, not as words, unless nothing else is asked
        self._is_term = ~is_name if not is_name.all() else is_name
        owner = units.number[occurrences.unit]
        is_there = owner >= 0
        owner, numbers = owner[is_there], occurrences.numbers[is_there]
        exact = self._match_words(owner, numbers)
        self.mentions: Vector = exact[is_name].sum(0)
        self.grams = like.gram_counts(numbers, owner, units.n)
        self._match_titles()
        documents = [frequencies.get(term, 0) for term in np.array(like.terms)[self._is_term].tolist()]
        self._weigh_terms(np.array(documents, np.float64), max(n_passages, 1))

    def _match_speakers(self) -> None:
        """Find which speakers of the candidates the query names, and the turns that are theirs."""
        units = self.units
        speakers = set(units.speaker[units.is_turn > 0].tolist())
        self.named = {w for w in speaker_words(self.query) if signed(term_hash(speaker_key(w))) in speakers}
        self.is_named = self._spoken_by(self.named)
        self.is_called = self._spoken_by(self.named & self.query.words) * units.is_labelled
        pieces = self.query.text.split()
        in_order = dict.fromkeys(word for piece in pieces for word in sorted(plain_words(piece) & self.named))
        self.is_first_named = self._spoken_by(list(in_order)[:1] if len(in_order) > 1 else ())

    def _spoken_by(self, names: Iterable[str]) -> Vector:
        """Return 1 for each turn whose speaker has one of the names, else 0."""
        hashes = [signed(term_hash(name)) for name in names]
        spoken: Vector = np.isin(self.units.speaker, hashes) * self.units.is_turn
        return spoken

    def _match_words(self, owner: Places, numbers: Numbers) -> Vector:
        """Count the terms, and what is like them, in each unit; return how often each word asked for stands in each.

        Args:
            owner: The units in which words stand, in order.
            numbers: Those words.
        """
        like, size = self._like, len(self._like.terms)
        rows = like.of_alike(numbers)
        is_alike = rows >= 0
        owner, rows = owner[is_alike], rows[is_alike]
        both, best = np.zeros((2 * size, self.units.n)), np.zeros((size, self.units.n))
        if len(rows):
            first = np.flatnonzero(np.diff(owner, prepend=-1))
            near = like.near[rows]
            both[:, owner[first]] = np.add.reduceat(np.hstack((like.exact[rows], near)), first).T
            best[:, owner[first]] = np.maximum.reduceat(near, first).T
        exact = both[:size]
        self.exact, self.near, self.best_near = exact[self._is_term], both[size:][self._is_term], best[self._is_term]
        return exact

    def _match_titles(self) -> None:
        """Find which terms and trigrams of the query the title, the names and the tags of each page hold."""
        pages, like = self.units.pages, self._like
        size = np.array([len(page.heading) // 4 for page in pages], np.int64)
        places, numbers = like.met_in(np.frombuffer(b"".join([page.heading for page in pages]), np.uint32))
        page = np.searchsorted(np.cumsum(size), places, "right")
        self.grams_in_title = np.minimum(like.gram_counts(numbers, page, len(pages)), 1)
        rows = like.of_alike(numbers)
        in_title = np.zeros((len(like.terms), len(pages)))
        word, term = np.nonzero(like.exact[rows[rows >= 0]])
        in_title[term, page[rows >= 0][word]] = 1
        self.in_title = in_title[self._is_term]
        # of a long query not all words are looked up
        self.may_be_named = in_title.any(0) | like.is_cut

    def _weigh_terms(self, documents: Vector, total: int) -> None:
        """Set the weight of each term by how rare it is, and `met`: the best match with a term that is rare enough.

        Args:
            documents: In how many passages each term stands.
            total: How many passages there are.
        """
        tells = self.units.tells
        in_exact, in_near = (self.exact[:, tells] > 0).sum(1), (self.near[:, tells] > 0).sum(1)
        # of a rare word all places are candidates: those where it was only asked for do not make it less telling
        documents = np.where(documents <= _FEW_DOCUMENTS, np.minimum(documents, in_exact), documents)
        self.idf = idf_of(documents, total)
        wider = documents * (in_near + 1) / (in_exact + 1) + (documents == 0) * in_near
        self.near_idf = idf_of(np.minimum(wider, total), total)
        is_telling = documents <= max(_FEW_PASSAGES, total * COMMON_SHARE)
        self.met: Vector = self.best_near[is_telling if is_telling.any() else ~is_telling].max(0, initial=0)


def _is_name(term: str, names: set[str]) -> bool:
    """Return whether a term is a speaker's name, or its stem: a stemmer may have cut the name's end."""
    return any(name.startswith(term) or term == name for name in names if len(term) > 2)


# --- the signals ------------------------------------------------------------------------------------------------


def all_signals(matches: Matches, meaning: Signals, inbound: Mapping[str, int], analyzer: Analyzer) -> Signals:
    """Return every signal of the candidates of one query.

    Args:
        matches: How the query's words stand in the units.
        meaning: What vectors say; empty without an embedder.
        inbound: How many links lead to each uuid and path.
        analyzer: The brain's language.
    """
    lexical = lexical_signals(matches, _GOOD_SHARE if meaning else 0.0)
    signals = lexical | dialogue_signals(matches, lexical) | content_signals(matches, lexical)
    signals |= page_signals(matches, lexical, inbound, analyzer) | meaning
    if meaning:
        signals["about_meaning"] = signals["about"] * signals["meaning"]
        signals["meaning_trigram"] = signals["meaning"] * signals["trigram"]  # words and meaning often say it twice
        signals["meaning_throughout"] = matches.units.mean_of_scope(signals["meaning"] ** 2)
    return signals


def lexical_signals(matches: Matches, least: float) -> Signals:
    """Return how well the query's words match each unit, alone, with its neighbours, and with its whole page.

    Args:
        matches: How the query's words stand in the units.
        least: See `bm25`.
    """
    score = partial(bm25, least=least)
    units, idf, near_idf, size = matches.units, matches.idf, matches.near_idf, len(matches.idf)
    # `here` has a row for each term's exact matches, one for each term's near ones, and the unit's length
    exact, near, length = slice(size), slice(size, -1), -1
    here = np.concatenate((matches.exact, matches.near, units.length[None]))
    two = here + units.shift(here, -1)
    three = two + units.shift(here, 1)
    further = units.shift(here, -2) + units.shift(here, 2)
    five, page, section = three + further, units.by_scope(here), units.by_section(here)
    talk = here + 0.5 * further  # the turns two places away are as a rule the same speaker's
    page_idf = idf_of((page[exact] > 0).sum(1).astype(np.float64), page.shape[1])
    tells, page_tells = units.tells, units.by_scope(units.tells.astype(np.float64)) > 0
    own = score(here[exact], here[length], idf, tells, b=0.3)
    return {
        "own": own,
        "covered": share(matches.exact > 0, idf),
        "near_covered": share(matches.best_near, near_idf),
        "window_5": score(five[exact], five[length], idf, tells),
        "with_previous": score(two[exact], two[length], idf, tells),
        "same_speaker": score(talk[near], talk[length], near_idf, tells),
        "page": score(page[exact], page[length], page_idf, page_tells, k1=1.2, b=0.75)[units.scope],
        "section": score(section[exact], section[length], idf, np.ones(section.shape[1], bool))[units.section],
        "page_covered": share(page[near] > 0, near_idf)[units.scope],
        "window_covered": share(three[near] > 0, near_idf),
        "before_previous": units.beside(own, -2),
        **_trigram_signals(matches, page_tells, score),
    }


def _trigram_signals(matches: Matches, page_tells: NDArray[np.bool_], score: Callable[..., Vector]) -> Signals:
    """Return BM25 over character trigrams: inflected forms, compounds and typos of a word share most of them."""
    units, own = matches.units, np.concatenate((matches.grams, matches.units.gram_length[None]))
    three, pages = own + units.shift(own, -1) + units.shift(own, 1), units.by_scope(own)
    idf = idf_of((own[:-1, units.tells] > 0).sum(1).astype(np.float64), float(units.tells.sum()))
    page_idf = idf_of((pages[:-1] > 0).sum(1).astype(np.float64), pages.shape[1])
    return {
        "title_covered": share(matches.in_title, matches.idf)[units.page],
        "title_trigram": share(matches.grams_in_title, idf)[units.page],
        "trigram": score(own[:-1], own[-1], idf, units.tells, k1=1.2, b=0.75),
        "trigram_three": score(three[:-1], three[-1], idf, units.tells, k1=1.2, b=0.75),
        "trigram_page": score(pages[:-1], pages[-1], page_idf, page_tells, k1=1.2, b=0.75)[units.scope],
    }


def dialogue_signals(matches: Matches, lexical: Mapping[str, Vector]) -> Signals:
    """Return the signals of conversation: who speaks, who is spoken of, what asks and what answers."""
    units, own = matches.units, lexical["own"]
    question, asks = units.flag(f.QUESTION) * units.is_turn, units.flag(f.ASKS) * units.is_turn
    is_one_named = float(len(matches.named) == 1)
    mentioned = is_one_named * (matches.mentions > 0)
    # a page about somebody is what their own words are in an exchange, and what stands on pages the person wrote
    is_persons = is_one_named * float("user" in matches.named)
    about = np.where(units.is_turn > 0, matches.is_named * is_one_named, np.maximum(mentioned, is_persons))
    answers = units.shift(question, -1) * units.is_turn
    return {
        "about": about,
        "about_own": about * own,
        "about_first_person": about * units.flag(FIRST_PERSON),
        "about_tells": about * (1 - asks),
        # of two the first is who did or said it: "What did Ann tell Tom?"
        "first_named": matches.is_first_named,
        "asks": asks,
        "answers": answers,
        "answers_match": answers * units.shift(own, -1),
        "opening": (units.place == 0) * units.is_turn,
        "is_talk": (units.sort == TALK).astype(np.float64),
        "is_notes": (units.sort == NOTES).astype(np.float64),
    }


def content_signals(matches: Matches, lexical: Mapping[str, Vector]) -> Signals:
    """Return whether a unit has a time, place, number or name where the query asks for one."""
    units = matches.units
    asked = {name: float(name in matches.query.asks) for name in ("when", "where", "count", "who")}
    time = units.flag(TIME)
    return {
        "names": units.capitals,
        "when_time": asked["when"] * time,
        "when_time_own": asked["when"] * time * lexical["own"],
        "where_place": asked["where"] * units.flag(f.PLACE),
        "count_number": asked["count"] * units.flag(NUMBER),
        "who_names": asked["who"] * units.capitals,
        "day": _day_match(units, matches.query.days),
    }


def _day_match(units: Units, days: tuple[int, int] | None) -> Vector:
    """Return 1 where the day asked about was spoken of or is the day of the words, less with each day away."""
    if days is None:
        return np.zeros(units.n)
    first, last = days
    features = units.features
    day = np.where(features["day"] == f.NO_DAY, -1e9, features["day"])
    away = np.maximum(np.maximum(first - day, day - last - 2), 0)  # most things are told a day or two later
    is_written = (features["first_day"] != f.NO_DAY) & (features["first_day"] <= last) & (features["last_day"] >= first)
    # a week away counts a third: who asks about a day is often off by some
    match: Vector = np.maximum(np.exp(-away / 7), is_written.astype(np.float64))
    return match


def page_signals(
    matches: Matches, lexical: Mapping[str, Vector], inbound: Mapping[str, int], analyzer: Analyzer
) -> Signals:
    """Return the signals of a unit's page: folder, links, use, title, origin; most hold before anything is asked."""
    units = matches.units
    pages = [encoded.page for encoded in units.pages]
    best = np.maximum.reduceat(lexical["own"] + lexical["page"], units.start)
    titled, headed = _named(pages, matches, analyzer)
    degrees = [len(page.links) for page in pages]
    if inbound:
        degrees = [len(page.links) + sum(inbound.get(name, 0) for name in link_targets(page)) for page in pages]
    return {
        "folder": relative(_folder_fit(pages, best, units))[units.page],
        "linked": _linked(pages, best)[units.page],
        "connected": np.log1p(np.array(degrees, np.float64))[units.page],
        "used": np.log1p(np.array([page.uses for page in pages], np.float64))[units.page],
        "statement": (units.kind == UnitKind.STATEMENT).astype(np.float64),
        "met": matches.met,
        "titled": titled[units.page],
        "headed": headed[units.page] * (1 - units.is_turn),  # the title of a day's page says nothing of its words
        "from_ai": units.flag(f.FROM_AI) * float("ai" not in speaker_words(matches.query)),
        "only_asks": units.flag(f.ONLY_ASKS),
        "archived": np.array([page.is_archived for page in pages], np.float64)[units.page],
        "imported": np.array([IMPORTED in page.path for page in pages], np.float64)[units.page],
    }


def link_targets(page: Page) -> list[str]:
    """Return all that a link to a page may lead to: its uuid, its path, and the names by which wiki links call it."""
    return [name for name in (page.uuid, page.path, *_wiki_names(page.path, page.title)) if name]


@lru_cache(maxsize=16_384)
def _wiki_names(path: str, title: str) -> tuple[str, ...]:
    """Return the names by which wiki links call a page, in order; remembered, for they are asked of each candidate."""
    return tuple(sorted(wiki_names(path, title)))


def _named(pages: Sequence[Page], matches: Matches, analyzer: Analyzer) -> tuple[Vector, Vector]:
    """Return two vectors over the pages: 1 where the query is a page's name, and 1 where it contains a whole name."""
    query, titled, headed = matches.query, np.zeros(len(pages)), np.zeros(len(pages))
    asked = {token.word for token in query.tokens}
    for number in np.flatnonzero(matches.may_be_named).tolist():
        for name in names_of(pages[number]):
            words, mark = _words_and_mark(name, analyzer)
            titled[number] = max(titled[number], mark == query.name != "")
            headed[number] = max(headed[number], bool(words) and words <= asked)
    return titled, headed


@lru_cache(maxsize=16_384)
def _words_and_mark(name: str, analyzer: Analyzer) -> tuple[frozenset[str], str]:
    """Return the words of a page's name, none where they tell nothing, and the mark that the page bears."""
    tokens = analyzer.tokens(name)
    tells = any(not token.is_stop and len(token.word) > 2 and not token.word.isdecimal() for token in tokens)
    return frozenset(token.word for token in tokens if tells), mark_of(tokens)


def _folder_fit(pages: Sequence[Page], best: Vector, units: Units) -> Vector:
    """Return for each page how well the summary of its folder, or of one above it, fits."""
    numbers = np.nonzero(units.kind[units.start] == UnitKind.SUMMARY)[0].tolist()
    summaries = {posixpath.dirname(pages[number].path): best[number] for number in numbers}
    if not summaries:
        return np.zeros(len(pages))
    folders = [posixpath.dirname(page.path) for page in pages]
    fit = {
        folder: max((summaries.get(other, 0.0) for other in _folder_and_above(folder)), default=0.0)
        for folder in set(folders)
    }
    return np.array([fit[folder] for folder in folders], np.float64)


def _folder_and_above(folder: str) -> Iterator[str]:
    """Yield a folder and all that it lies in, innermost first."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)


def _linked(pages: Sequence[Page], best: Vector) -> Vector:
    """Return for each page the score, 0 to 1, of the best page that it links to or that links to it."""
    spread = np.zeros(len(pages))
    if not any(page.links for page in pages):
        return spread
    numbers = {name: number for number, page in enumerate(pages) for name in link_targets(page)}
    # only the best pages lead to others: from all of them every page with many links would rise
    sources = {int(number): float(best[number] / max(best.max(), 1e-9)) for number in np.argsort(-best)[:_SPREAD_FROM]}
    for number, page in enumerate(pages):
        for link in page.links:
            other = numbers.get(link.target, numbers.get(link.path))
            if other is None or other == number:
                continue
            spread[other] = max(spread[other], sources.get(number, 0.0))
            spread[number] = max(spread[number], sources.get(other, 0.0))
    return spread
