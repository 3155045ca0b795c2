"""Search over a brain: what changed is taken into the index first, so that it is never stale or silently empty."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from brainiac.clock import SYSTEM, Clock
from brainiac.formats.markdown import StmEvent
from brainiac.search import embed, offers
from brainiac.search.documents import Hit, HitKind, LinkGraph, Page, Unit, UnitKind
from brainiac.search.pages import DaysOn, Pages, TakenIn
from brainiac.search.query import Query, allowed_units, allows_page, parse_query, searches
from brainiac.search.retrieval import WAYS, Candidates, Ranked, looked_up, ranked_units, without_speakers
from brainiac.search.text import Analyzer, holds
from brainiac.search.vocabulary import absent_words
from brainiac.settings import MachineSettings, Settings, load
from brainiac.storage.withheld import Withheld
from brainiac.text.tokens import ends_as_question
from brainiac.tree import LocalPlaces, Tree

# What is near: learned on questions put to brains that hold the answer, and to others (docs/decisions/ranker.md).
_NEAR_COVERED, _NEAR_COSINE, _NEAR_BY_WORDS = 2.4, 13.5, 0.2

_LINKS_SECONDS, _LINKS_SHARE = 5.0, 20  # that, and so many times what making it took, links stand while much is read
_MOST_AHEAD = 16  # prompts; one that rests seldom finds another beside it


class Recall:
    """Search over one brain; safe to use from several threads.

    Args:
        tree: The brain's places.
        places: Machine-local folders; the index lives in `places.cache`.
        settings: The brain's settings (`recall.*`).
        clock: The time source.
        remote: Makes the embedder of a provider; None where there are no providers.
        withheld: Returns what is hidden, which no search returns; None for nothing.
        said_in: Returns what memory will have of a prompt that waits, by its path; None where it will have nothing.
        taken_in: Returns those of some prompts, by path, that wait no longer.
        days_on: Returns what tells the days on which statements were said, as the journals are now.

    Attributes:
        is_hurried: Returns whether so much waits for an answer that texts get no vectors now.
    """

    def __init__(
        self,
        tree: Tree,
        places: LocalPlaces,
        settings: Settings,
        clock: Clock = SYSTEM,
        remote: embed.RemoteEmbedders | None = None,
        withheld: Callable[[], Withheld] | None = None,
        said_in: Callable[[str], StmEvent | None] = lambda path: None,
        taken_in: TakenIn = lambda paths: (),
        days_on: Callable[[], DaysOn] = lambda: lambda pages: {},
    ) -> None:
        self.tree = tree
        self._places, self._settings, self._clock = places, settings, clock
        self._remote, self._withheld = remote, withheld
        self._said_in, self._taken_in, self._days_on = said_in, taken_in, days_on
        self.is_hurried: Callable[[], bool] = lambda: False
        self._mutex = threading.Lock()
        self._embedder_problem = ""
        self._opened: Pages | None = None
        self._links: tuple[object, LinkGraph] | None = None  # with the state of the index in which it was made
        self._links_until = 0.0  # monotonic: it is not made anew before that while many files are read
        # what was ranked ahead, by prompt: for which query, and in which state of the index
        self._ahead: dict[str, tuple[Query, object, Ranked | None]] = {}

    @property
    def _pages(self) -> Pages:
        """The index, opened on first use."""
        with self._mutex:
            if self._opened is None:
                analyzer = Analyzer(self._settings.recall.language, ZoneInfo(self._settings.time_zone))
                vectors = None
                try:
                    machine = load(self._places.config, MachineSettings)
                    if embedder := embed.make_embedder(self._settings.recall.embedder, machine, self._remote):
                        vectors = embed.Vectors(self._places.cache / "vectors", embedder)
                except embed.EmbedderError as error:
                    self._embedder_problem = str(error)
                folder = self._places.cache / "index"
                self._opened = Pages(
                    self.tree,
                    folder,
                    analyzer,
                    vectors,
                    self._said_in,
                    self._taken_in,
                    lambda: self.is_hurried(),
                    self._days_on,
                )
            return self._opened

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
            query: Words as a person types them, narrowed as `parse_query` has it.
            limit: At most so many hits; fewer where some of them are hidden.
            kinds: Only hits of these kinds; None for all.
            now: What "last week" refers to; the clock's now without it.
            is_private: The query must not leave this machine: no embedder elsewhere is asked.
            include_repeats: Also turns that have no other words than the query, which are left out as a rule.
            asking: Path of the prompt whose words the query has: its own file is no hit.
        """

        def hits_of(query: Query) -> list[Hit]:
            """Return the best hits, best first; their files are read again, so that none shows other words."""
            hits: list[Hit] = []
            for _ in range(3):  # again when a file turns out to be other than it was when ranked
                ranked = self._ranked(query, is_private=is_private, asking=asking)
                if ranked is None:
                    return []
                hits, changed = self._read_hits(ranked, limit, kinds, include_repeats=include_repeats)
                if not changed:
                    break
                for path in changed:
                    self._pages.note_change(path)
            return hits

        parsed = self._parsed(query, now)
        hits = hits_of(parsed)
        if parsed.listing and kinds is None:  # what was said on its days comes first
            listed = [replace(hit, found_by="fields") for hit in hits_of(parsed.listing)]
            places = {(hit.path, hit.anchor, hit.position) for hit in listed}
            others = (hit for hit in hits if (hit.path, hit.anchor, hit.position) not in places)
            hits = [*listed, *others][:limit]
        withheld = self._withheld() if self._withheld else None
        return [hit for hit in hits if not (withheld and withheld.hides(hit.path, hit.text, hit.anchor))]

    def search_ahead(self, said: str, *, asking: str, is_private: bool) -> None:
        """Rank for a prompt that may still be written; a search for the same words takes it while nothing has changed.

        Nothing of it leaves this machine: with an embedder elsewhere nothing is done.

        Args:
            said: What it says without its commands.
            asking: Its path.
            is_private: Whether it is private.
        """
        if not said.strip() or (self._pages.vectors and self._pages.vectors.is_remote):
            return
        query = self._parsed(searches(said, [])[0], None)
        ranked = self._ranked(query, is_private=is_private, asking=asking)
        self.wishes(said)
        if len(self._ahead) >= _MOST_AHEAD:
            self._ahead.clear()
        self._ahead[asking] = query, self._pages.state, ranked

    def rank(self, query: str, *, now: datetime | None = None) -> Ranked | None:
        """Return every candidate of a query with its signals, for learning and for tests; None without any."""
        return self._ranked(self._parsed(query, now))

    def _parsed(self, text: str, now: datetime | None) -> Query:
        """Return the query that a text is, as `parse_query` reads it."""
        long_term = self.tree.relative(self.tree.long_term)
        return parse_query(text, self._pages.analyzer, now or self._clock.now(), long_term)

    def _ranked(self, query: Query, *, is_private: bool = False, asking: str = "") -> Ranked | None:
        """Score the pages that share words with a query or are near to it in meaning; None without any."""
        pages = self._pages
        for _ in range(2):  # again where the index turns out to be damaged
            pages.catch_up(asking)
            asked, state, ranked = self._ahead.pop(asking, (None, None, None))
            if asked == query and state is not None and state == pages.state:
                return ranked
            if found := pages.ask(lambda index: looked_up(index, query)):
                break
        else:
            return None
        like, matching = found
        # a listing by fields has no meaning, and a private question leaves for no provider
        vectors = pages.vectors if query.terms else None
        if vectors and vectors.is_remote and is_private:
            vectors = None
        text = without_speakers(query, matching.pages) if vectors else ""
        near = vectors.nearest(text) if vectors else {}
        others = near.keys() - {page.page.path for page in matching.pages}
        named = pages.ask(lambda index: index.pages([path for path in near if path in others])) or []
        candidates = [
            page
            for page in (*matching.pages, *named)
            if page.features
            and page.page.path != asking
            and (not query.narrowing or allows_page(query.narrowing, page.page, page.days))
        ]
        keys = [key for keys in near.values() for key in keys]
        return ranked_units(query, Candidates(like, matching, candidates, vectors, text, keys), pages.analyzer)

    def _read_hits(
        self, ranked: Ranked, limit: int, kinds: Collection[HitKind] | None, *, include_repeats: bool
    ) -> tuple[list[Hit], list[str]]:
        """Return hits with their words, and the paths of files that changed since they were ranked."""
        query, hits = ranked.query, list[Hit]()
        repeated: list[Hit] = []  # the same words of a person once more: behind all other hits
        confirmed: list[Hit] = []  # those of a question without its mark: only what is near stands before them
        user_texts: set[str] = set()
        pages: dict[str, Page | None] = {}
        order = _in_order(ranked, kinds)
        first = list(islice(order, 2 * limit))  # as a rule no others are looked at
        days_on = self._pages.days_on(ranked.units.pages[ranked.units.page[number]].page.uuid for number in first)
        for number in chain(first, order):
            encoded = ranked.units.pages[ranked.units.page[number]]
            path = encoded.page.path
            if path not in pages:
                pages[path] = self._pages.page_as_of(encoded, days_on)
            page = pages[path]
            unit = page.units[ranked.units.position[number]] if page else None
            if page is None or unit is None or not _is_shown(unit, ranked, number):
                continue
            hit = _hit(page, unit, ranked, number)
            if unit.side == "user" and not include_repeats:
                is_known = unit.text in user_texts
                user_texts.add(unit.text)
                # the words of the query in their order and no others
                words = dict.fromkeys(token.word for token in self._pages.analyzer.tokens(unit.text))
                is_repeat = not query.phrases and list(words) == [token.word for token in query.tokens]
                if is_known or is_repeat:
                    tells = not is_known and query.is_question and not ends_as_question(unit.text)
                    (confirmed if tells else repeated).append(hit)
                    continue
            hits += [hit, *_replies(page, hit)]
            if len(hits) >= limit:
                break
        # their score falls with their place, so that hits stay in the order of their scores
        place = next((number for number, hit in enumerate(hits) if not hit.is_near), len(hits))
        highest = hits[place - 1].score if place else math.inf
        hits[place:place] = [replace(hit, score=min(hit.score, highest)) for hit in confirmed]
        least = hits[-1].score if hits else math.inf
        hits += [replace(hit, score=min(hit.score, least)) for hit in repeated[: limit - len(hits)]]
        return hits, [path for path, page in pages.items() if page is None]

    def absent(self, text: str, *, asking: str = "") -> list[str]:
        """Return words of a text that stand nowhere in memory, as they are written, the most telling first.

        Not in another form either, nor in the archive; an earlier question does not count.

        Args:
            text: A prompt.
            asking: Its path.
        """
        pages = self._pages
        # what was written a moment ago brings words of its own, and forms of those asked for
        pages.catch_up(asking)
        return pages.ask(lambda index: absent_words(text, index, pages.analyzer, asking)) or []

    def nearness(self, text: str, others: Sequence[str]) -> list[float]:
        """Return how near each of some texts is to another one in meaning, as a cosine from -1 to 1.

        The embedder on this machine says it; all are 0 where there is none, or the settings want another.
        """
        with suppress(embed.EmbedderError):
            # without providers: the texts stay here
            if others and (embedder := embed.make_embedder(self._settings.recall.embedder)):
                # all texts lie close together until what sentences have in common is taken out
                common = embedder.embed(embed.ORDINARY_SENTENCES).mean(0)
                one, *rest = embed.unit_norm(embedder.embed([text, *others]) - common)
                return [float(vector @ one) for vector in rest]
        return [0.0] * len(others)

    def wishes(self, text: str) -> set[str]:
        """Return what a message asks of memory or gives away (see `wishes.py`); nothing without the local embedder."""
        return self._pages.vectors.wishes(text) if self._pages.vectors else set()

    def worth(self, text: str, look: Callable[[str], Sequence[Hit]], **about: Any) -> list[Hit]:
        """Return what memory has on a prompt that helps somebody who did not ask, as it is to be told.

        Args:
            text: The prompt.
            look: Searches for some words; returns of the hits what may be said, best first.
            about: What was said and told already, as `offers.worth` has it.
        """
        vectors, analyzer = self._pages.vectors, self._pages.analyzer

        def near(hits: Sequence[Hit]) -> list[float]:
            return vectors.alike([hit.content for hit in hits])[0].tolist() if vectors else [0.0] * len(hits)

        return offers.worth(text, look, vectors.chance_cosine() if vectors else 0.0, near, analyzer, **about)

    def note_change(self, path: str) -> None:
        """Take note that a file was written, moved or removed; the next search sees it.

        Args:
            path: Relative, posix; one that search does not look into is passed over.
        """
        self._pages.note_change(path)

    def rescan(self) -> None:
        """Compare every file with the index, for changes of which `note_change` was not told; costs one stat a file."""
        self._pages.rescan()

    def status(self) -> dict[str, Any]:
        """Return engine, freshness, counts and the embedder as plain values."""
        pages = self._pages
        embedder = pages.vectors.status() if pages.vectors else {"name": "none"}
        return {**pages.status(), "embedder": {"problem": self._embedder_problem} | embedder}

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew, in this thread; searches go on meanwhile.

        Args:
            progress: Called with files done and files in all.

        Returns:
            How many files are in it.
        """
        return self._pages.rebuild(progress)

    @property
    def n_unread(self) -> int | None:
        """How many files wait to be read, but for the few that the next search reads; None before it is opened."""
        return self._opened.n_unread if self._opened else None

    @property
    def links(self) -> LinkGraph:
        """Who links to whom, as of now; the same graph until a page changes.

        While search reads many files, as at a first start, it has those that were read a moment ago: nobody waits.
        """
        made = self._links
        if made and self.n_unread and time.monotonic() < self._links_until:
            return made[1]
        state, started = self._pages.linked_state(), time.monotonic()
        if made is None or state is None or made[0] != state:
            made = self._links = state, LinkGraph(self._pages.linked(), self.tree)
            now = time.monotonic()
            self._links_until = now + _LINKS_SHARE * (now - started) + _LINKS_SECONDS
        return made[1]

    def heads(self, paths: Iterable[str]) -> Mapping[str, Page]:
        """Return pages by their paths, without their units, as of now; where there is no such page, none."""
        return {found.page.path: found.page for found in self._pages.ask_now(lambda index: index.pages(paths)) or ()}

    def latest(self, is_meant: Callable[[Page], bool], most: int) -> Sequence[Page]:
        """Return the pages whose files changed last, without units, the newest first, each with that moment as `at`."""
        return self._pages.ask_now(lambda index: list(islice(filter(is_meant, index.latest()), most))) or ()

    def flush(self, vector_seconds: float = 0.0) -> None:
        """Take the files that changed into the index, and for so many seconds make the vectors that are missing."""
        self._pages.read_all()
        if vector_seconds:
            self._pages.embed(seconds=vector_seconds)

    def close(self) -> None:
        """Close the index."""
        with self._mutex:
            opened, self._opened = self._opened, None
        if opened:
            opened.close()


def _in_order(ranked: Ranked, kinds: Collection[HitKind] | None) -> Iterator[int]:
    """Yield the units that are hits, best first; of equal ones the newer first."""
    units, day = ranked.units, ranked.units.features["day"]
    is_hit = (ranked.found_by >= 0) & allowed_units(ranked.query.narrowing, day)
    if kinds is not None:
        is_hit &= np.isin(units.kind, [kind for kind in UnitKind if kind.hit_kind in kinds])
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
        signals={name: float(values[number]) for name, values in ranked.signals.items() if values[number]},
        origin=unit.author.origin,
        by=unit.author.by,
        content=int(ranked.units.content[number]),
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
