"""What is indexed: encoded pages by path, and which of them are worth ranking (docs/decisions/search-engine.md).

Ranking knows nothing of the engines behind `Index`.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import string
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from brainiac.clock import iso
from brainiac.search.documents import IMPORTED, Link, Page
from brainiac.search.features import EncodedPage
from brainiac.search.text import EDGE, SIZE_BITS, Word, folded, grams_of, word_id
from brainiac.tree import Stamp


class Matching(NamedTuple):
    """What an index answers.

    Attributes:
        pages: Worth ranking, most promising first.
        frequencies: In how many passages each asked term stands.
        n_passages: How many passages there are.
    """

    pages: Sequence[EncodedPage] = ()
    frequencies: Mapping[str, int] = MappingProxyType({})
    n_passages: int = 0


Ids: TypeAlias = NDArray[np.int64]
T = TypeVar("T")

VERSION = 15
FILE = "pages.db"
_VARIANTS, _VARIANT_WEIGHT = 8, 0.7  # of what is only like a word that is asked for: how many, and their weight
_ENOUGH_TERMS = 4  # so many choose the candidates, however common they are
_ALWAYS_RARE = 1000  # passages: a term in so few chooses candidates in any case
_MOST_POSTINGS = 20_000  # passages that are looked at, by the rarest terms first
_MOST_REMEMBERED = 20_000  # trigrams

# What is raised where the index is damaged, of another version, or made for another language: it must be built anew.
DAMAGED = (sqlite3.Error, OSError)

# Terms are given with blanks between them: all other signs belong to them.
_SIGNS = "".join(sign for sign in string.punctuation).replace("'", "''").replace('"', '""')
# of a stamp, when its file changed last, in nanoseconds
_CHANGED = "cast(substr(stamp, instr(stamp, ':') + 1) as integer)"
_TABLES = f"""
begin immediate;
create table if not exists meta (key text primary key, value text);
create table if not exists pages (
    id integer primary key, path text not null, stamp text, at text, first_day integer, last_day integer,
    head text, words blob, heading blob, features blob, content blob
);
create index if not exists pages_by_path on pages (path, stamp);  -- the stamps are read from it alone
drop index if exists pages_by_time;  -- of a former version
create index if not exists pages_by_change on pages ({_CHANGED}, path);
-- no number is given twice: what is in memory of a passage that is gone stands for no other
create table if not exists passages (
    id integer primary key autoincrement, page integer not null, place integer not null, terms text not null
);
create index if not exists passages_by_page on passages (page, place);  -- they are read from it alone
create virtual table if not exists terms using fts5 (
    text, content = '', detail = none, columnsize = 0, tokenize = "ascii tokenchars '{_SIGNS}'"
);
create virtual table if not exists counts using fts5vocab (terms, row);
create table if not exists words (id integer primary key, word text, stem text, pages integer);
create index if not exists words_by_stem on words (stem);
create virtual table if not exists grams using fts5 (
    word, content = '', detail = none, columnsize = 0, tokenize = "trigram case_sensitive 1"
);
commit;
"""
_COLUMNS = "path, stamp, at, first_day, last_day, head, words, heading, features, content"
# any number of values in one parameter, see `_given`
_GIVEN = "(select value from json_each(?))"


class Index:
    """Encoded pages in one SQLite file of this machine, with the passages and the words of these pages.

    One thread at a time uses it; several processes may. Any method may raise what is `DAMAGED`: the index is then
    thrown away and built anew.

    Args:
        folder: Made when missing; None for an index in memory.
        key: What its pages were made with, see `Analyzer.key`; they serve no other.

    Raises:
        sqlite3.DatabaseError: It was made by another version or for another language.
    """

    def __init__(self, folder: Path | None, key: str) -> None:
        self._folder, key = folder, f"{VERSION}:{key}"
        self._having: dict[str, Ids] = {}  # words by trigram
        self._linked, self._n_linked = dict[str, Page](), 0  # pages by path, and the last passage that they count with
        self._version, self._has_written, self._n_passages = -1, False, 0
        self._page = self._place = np.empty(0, np.int64)  # of each passage, by its number
        if folder:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds words of private pages
        self._db = sqlite3.connect(
            folder / FILE if folder else ":memory:", check_same_thread=False, isolation_level=None
        )
        try:
            # a power cut may lose the last commits but damages nothing: their files are seen as changed and read again
            self._db.executescript(
                "pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -16000;"
            )
            if not self._db.execute("select 1 from sqlite_master where name = 'pages_by_change'").fetchone():
                # in one transaction: a table without its indexes would pass for a whole one
                self._db.executescript(_TABLES)
                self._db.execute("insert or ignore into meta values ('key', ?)", (key,))
            made_as = self._db.execute("select value from meta where key = 'key'").fetchone()
            if made_as != (key,):
                raise sqlite3.DatabaseError(f"{folder}: made as {made_as[0] if made_as else 'unknown'}, not as {key}")
        except BaseException:
            self._db.close()
            raise

    @property
    def state(self) -> tuple[object, ...]:
        """What is another value once this or another process has written into the index."""
        (written_elsewhere,) = self._db.execute("pragma data_version").fetchone()
        return self._db, written_elsewhere, self._db.total_changes

    # --- writing -------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All changes within are one transaction; another process waits for its end."""
        try:
            with self._db:
                self._db.execute("begin immediate")
                yield
        except BaseException:
            self._having.clear()
            raise
        finally:
            self._has_written = True

    def replace(self, pages: Mapping[str, EncodedPage | None], met: Mapping[int, Word]) -> None:
        """Put pages in place of what stands under their paths.

        Args:
            pages: By path; None for none.
            met: The words of the pages, by their hashes.
        """
        stored = self._db.execute(
            f"select id, words, heading from pages where path in {_GIVEN}", _given(pages)
        ).fetchall()
        numbers = _given(number for number, *_ in stored)
        words = Counter(chain.from_iterable(_distinct(page.words, page.heading) for page in pages.values() if page))
        words.subtract(chain.from_iterable(_distinct(*arrays) for _, *arrays in stored))
        self._db.execute(
            f"insert into terms (terms, rowid, text) select 'delete', id, terms from passages where page in {_GIVEN}",
            numbers,
        )
        self._db.execute(f"delete from passages where page in {_GIVEN}", numbers)
        self._db.execute(f"delete from pages where id in {_GIVEN}", numbers)
        values = ", ".join("?" * len(_COLUMNS.split(", ")))
        number = self._db.execute("select coalesce(max(seq), 0) from sqlite_sequence").fetchone()[0]
        passages = []
        for encoded in filter(None, pages.values()):
            page = self._db.execute(f"insert into pages ({_COLUMNS}) values ({values})", _row(encoded)).lastrowid
            for passage in encoded.passages:
                number += 1
                # it orders passages with the same terms: shorter first, then by a hash of the content
                place = min(passage.count(" "), 1 << 16) << 33 | zlib.crc32(passage.encode()) << 1
                place |= IMPORTED in encoded.page.path  # the last bit: from another program
                passages.append((number, page, place, " ".join(dict.fromkeys(passage.split()))))
        self._db.executemany("insert into passages values (?, ?, ?, ?)", passages)
        self._db.executemany("insert into terms (rowid, text) values (?, ?)", [(row[0], row[3]) for row in passages])
        self._count({word: by for word, by in words.items() if by}, met)

    def _count(self, changes: Mapping[int, int], met: Mapping[int, Word]) -> None:
        """Add and forget words.

        Args:
            changes: On how many more pages a word stands, by its hash.
            met: The words, by their hashes.
        """
        in_range = f"words.id between value << {SIZE_BITS} and (value + 1 << {SIZE_BITS}) - 1"
        stored = self._db.execute(
            f"select words.id, word, pages from json_each(?) cross join words on {in_range}", _given(changes)
        ).fetchall()
        known = {number >> SIZE_BITS for number, *_ in stored}
        counted = [(count + changes[number >> SIZE_BITS], number) for number, _, count in stored]
        new = [
            (word_id(met[key].word), *met[key], by) for key, by in changes.items() if key not in known and key in met
        ]
        gone = [(number, word) for number, word, count in stored if count + changes[number >> SIZE_BITS] <= 0]
        self._db.executemany("insert or ignore into words values (?, ?, ?, ?)", new)
        self._db.executemany("update words set pages = ? where id = ?", counted)
        self._db.execute("delete from words where id in " + _GIVEN, _given(number for number, _ in gone))
        forget, add = "(grams, rowid, word) values ('delete', ?, ?)", "(rowid, word) values (?, ?)"
        for change, words in ((forget, gone), (add, [(number, word) for number, word, *_ in new])):
            with_edges = [(number, f"{EDGE}{folded(word)}{EDGE}") for number, word in words]
            self._db.executemany(f"insert into grams {change}", with_edges)
            for gram in chain.from_iterable(grams_of(word) for _, word in words):
                self._having.pop(gram, None)

    def optimize(self) -> None:
        """Bring together what was written in many parts."""
        for table in ("terms", "grams"):
            self._db.execute(f"insert into {table} ({table}) values ('optimize')")
        self._db.execute("pragma wal_checkpoint(truncate)")

    # --- passages ------------------------------------------------------------------------------------------

    def query(
        self,
        terms: Sequence[str],
        limit: int,
        *,
        required: Sequence[str] = (),
        variants: Mapping[str, tuple[str, float]] = MappingProxyType({}),
        allows: Callable[[Page, tuple[int, int]], bool] | None = None,
    ) -> Matching:
        """Return the pages worth ranking; without terms, the newest that are allowed.

        A passage is scored by the sum of the idf of the terms in it. Not by BM25: how often and how densely terms stand
        is for the ranking to weigh.

        Args:
            terms: Stems, and marks such as `#tag`, `@2023-05`, `=title`: any of them must stand in a passage.
            limit: Look at most at so many passages.
            required: Terms and marks that must stand in the passage, all of them.
            variants: What a page may have instead of a term: by its stem the term, and how like that it is, 0 to 1.
            allows: Whether a page is looked at, given the first and last day of its units; None for all.
        """
        with self._db:
            self._db.execute("begin")  # all that is read belongs together
            self._refresh()
            allowed = self._allowed(allows) if allows else None
            if not terms and not required:
                among = None if allowed is None else set(allowed.tolist())
                # the order of the listing in `search`: the newest day first
                rows = self._db.execute("select id from pages order by last_day desc, at desc, path")
                newest = islice((page for (page,) in rows if among is None or page in among), limit)
                return Matching(self._load(list(newest)), n_passages=self._n_passages)
            in_how_many = "select term, doc from json_each(?) cross join counts where term = value"
            counts = Counter(dict(self._db.execute(in_how_many, _given(dict.fromkeys(terms))).fetchall()))
            # all that fit are looked at where most do not
            most = _MOST_POSTINGS if allowed is None and not required else self._n_passages
            numbers, scores = self._scored(self._weights(counts, terms, variants), most)
            if required:
                wanted = reduce(np.intersect1d, self._with(required))
                scores = np.concatenate((scores, np.zeros(len(wanted))))
                numbers, first = np.unique(np.concatenate((numbers, wanted)), return_index=True)
                is_wanted = np.isin(numbers, wanted)
                numbers, scores = numbers[is_wanted], scores[first][is_wanted]
            if allowed is not None:
                is_wanted = np.isin(self._page[numbers], allowed)
                numbers, scores = numbers[is_wanted], scores[is_wanted]
            best = self._best(numbers, scores, limit)
            # years of an import would leave no place for what was said here: that has places of its own
            is_own = self._place[numbers] & 1 == 0
            if not is_own.all():
                best = np.concatenate((best, self._best(numbers[is_own], scores[is_own], limit)))
            pages = self._load(list(dict.fromkeys(self._page[best].tolist())))
            return Matching(pages, {term: counts[term] for term in terms}, self._n_passages)

    def _refresh(self) -> None:
        """Learn of the passages that were written since the last query."""
        version = self._db.execute("pragma data_version").fetchone()[0]
        if version != self._version:  # another process wrote
            self._having.clear()
        elif not self._has_written:
            return
        self._version, self._has_written = version, False
        rows = self._db.execute("select id, page, place from passages where id >= ?", (len(self._page),)).fetchall()
        if rows:
            numbers, page, place = np.array(rows, np.int64).T
            self._page, self._place = (
                np.concatenate((kept, np.zeros(numbers.max() + 1 - len(kept), np.int64)))
                for kept in (self._page, self._place)
            )
            self._page[numbers], self._place[numbers] = page, place
        self._n_passages = self._db.execute("select count(*) from passages").fetchone()[0]

    def _with(self, tokens: Iterable[str], table: str = "terms") -> Iterator[Ids]:
        """Yield for each of some tokens the numbers of the rows that have it, passages or with `grams` words, in order.

        They come as a text, which takes a third of the time that rows take.
        """
        query = f"select (select group_concat(rowid) from {table} where {table} match value) from json_each(?)"
        quoted = _given('"' + token.replace('"', '""') + '"' for token in tokens)
        for (text,) in self._db.execute(query, quoted):
            yield np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)

    def _weights(
        self, counts: Mapping[str, int], asked: Sequence[str], variants: Mapping[str, tuple[str, float]]
    ) -> dict[str, float]:
        """Return the weight of each term that chooses candidates, the rarest first, then of words like these."""
        # the rarest, and all that are not common
        rarest = sorted(counts[term] for term in asked if counts[term])[:_ENOUGH_TERMS]
        most, total = max(_ALWAYS_RARE, self._n_passages // 50, *rarest), self._n_passages
        terms = sorted((counts[term], term) for term in asked if counts[term] <= most)
        idf = {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for count, term in terms}
        weights, n_variants = dict(idf), Counter[str]()
        for stem, (term, likeness) in variants.items():
            if term in idf and stem not in idf and n_variants[term] < _VARIANTS:
                n_variants[term] += 1
                weights[stem] = _VARIANT_WEIGHT * likeness * idf[term]
        return weights

    def _scored(self, weights: Mapping[str, float], most: int) -> tuple[Ids, NDArray[np.float64]]:
        """Return the passages that have any of some terms, in order, and the sum of the weights of those they have.

        Args:
            weights: Of the terms, in an order that an index built anew has too: so are the sums, to the last bit.
            most: Once there are so many passages, those that have later terms alone are left out.
        """
        lists, worth, n_found = [np.empty(0, np.int64)], [np.empty(0)], 0
        for weight, found in zip(weights.values(), self._with(weights), strict=True):
            lists.append(found)
            worth.append(np.full(len(found), weight))
            n_found += len(found)
            if n_found > most:
                break
        # all weigh more than nothing
        scores = np.bincount(np.concatenate(lists), np.concatenate(worth), len(self._page))
        numbers: Ids = np.flatnonzero(scores)
        return numbers, np.asarray(scores[numbers], np.float64)

    def _best(self, numbers: Ids, scores: NDArray[np.float64], limit: int) -> Ids:
        """Return the passages with the highest scores, the highest first, at most so many."""
        if len(numbers) > limit:
            is_high = scores >= np.partition(scores, -limit - 1)[-limit - 1]
            numbers, scores = numbers[is_high], scores[is_high]
        place = self._place[numbers]
        order = np.lexsort((place, -scores))
        # those level with the first one beyond the limit are left out too: any choice among them would change with
        # the order in which they were written
        if len(order) > limit:
            last = order[limit]
            is_level = (scores[order] == scores[last]) & (place[order] == place[last])
            order = order[:limit] if is_level.all() else order[: int(is_level.argmax())][:limit]
        return numbers[order]

    def _allowed(self, allows: Callable[[Page, tuple[int, int]], bool]) -> NDArray[np.int64]:
        """Return the numbers of the pages that are allowed, given also the first and last day of their units."""
        rows = self._db.execute("select id, path, head, first_day, last_day from pages")
        allowed = (number for number, path, head, *days in rows if allows(_page(path, head), (days[0], days[1])))
        return np.fromiter(allowed, np.int64)

    # --- pages ---------------------------------------------------------------------------------------------

    def _load(self, ids: Sequence[int]) -> list[EncodedPage]:
        """Return the pages with these numbers, in this order; a number without a page is left out."""
        rows = self._db.execute(f"select id, {_COLUMNS} from pages where id in {_GIVEN}", _given(ids))
        loaded = {
            number: EncodedPage(_page(path, head), _parsed(Stamp.parse, stamp), *arrays)
            for number, path, stamp, _at, _first_day, _last_day, head, *arrays in rows
        }
        return [loaded[number] for number in ids if number in loaded]

    def pages(self, paths: Iterable[str]) -> list[EncodedPage]:
        """Return pages by path."""
        found = self._db.execute(f"select id from pages where path in {_GIVEN}", _given(paths))
        return self._load([number for (number,) in found])

    def stamps(self) -> Mapping[str, Stamp]:
        """Return the stamp of every page as it was when indexed."""
        return {path: _parsed(Stamp.parse, stamp) for path, stamp in self._db.execute("select path, stamp from pages")}

    def contents(self) -> Iterable[tuple[str, bytes]]:
        """Return the path of every page with the content hashes of its units."""
        return self._db.execute("select path, content from pages").fetchall()

    def linked(self) -> Collection[Page]:
        """Return every page with its links, without its units; read is only what was written since the last call."""
        # each page has a passage, and each version of it another one
        last, written = self._n_linked, "id in (select page from passages where id > ?)"
        self._n_linked = self._db.execute("select coalesce(max(seq), 0) from sqlite_sequence").fetchone()[0]
        for path, head in self._db.execute(f"select path, head from pages where {written}", (last,)):
            self._linked.pop(path, None)
            self._linked[path] = _page(path, head)
        if self._db.execute("select count(*) from pages").fetchone()[0] < len(self._linked):
            there = {path for (path,) in self._db.execute("select path from pages")}
            self._linked = {path: page for path, page in self._linked.items() if path in there}
        return self._linked.values()

    def latest(self) -> Iterator[Page]:
        """Yield the pages without their units, those whose files changed last first, each with that moment."""
        order = f"{_CHANGED} desc, path desc"
        for path, head, changed_ns in self._db.execute(f"select path, head, {_CHANGED} from pages order by {order}"):
            yield replace(_page(path, head), at=iso(datetime.fromtimestamp(changed_ns / 1e9, UTC)))

    # --- words ---------------------------------------------------------------------------------------------

    def having(self, grams: Sequence[str]) -> list[Ids]:
        """Return for each of some trigrams the ids of the words that have it, in order; they are remembered."""
        if len(self._having) > _MOST_REMEMBERED:
            self._having.clear()
        unknown = [gram for gram in grams if gram not in self._having]
        self._having.update(zip(unknown, self._with(unknown, "grams"), strict=True))
        return [self._having[gram] for gram in grams]

    def with_stems(self, stems: Iterable[str]) -> Mapping[int, str]:
        """Return the stem of each word that has one of these, by its id."""
        return dict(self._db.execute(f"select id, stem from words where stem in {_GIVEN} order by id", _given(stems)))

    def stems_of(self, ids: Iterable[int]) -> Mapping[int, str]:
        """Return the stems of words by their ids."""
        return dict(self._db.execute(f"select id, stem from words where id in {_GIVEN}", _given(ids)))

    # --- the file ------------------------------------------------------------------------------------------

    @property
    def is_lost(self) -> bool:
        """Whether somebody removed the file while we run."""
        return self._folder is not None and not self._folder.exists()

    def status(self) -> dict[str, Any]:
        """Return `engine`, `pages` and `bytes`."""
        files = self._folder.glob("*") if self._folder else ()
        pages = self._db.execute("select count(*) from pages").fetchone()[0]
        return {"engine": "sqlite", "pages": pages, "bytes": sum(file.stat().st_size for file in files)}

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _distinct(words: bytes, heading: bytes) -> set[int]:
    """Return the hashes of the words of a page."""
    return set(memoryview(words + heading).cast("I"))


def destroy(folder: Path) -> None:
    """Remove an index from disk."""
    shutil.rmtree(folder, ignore_errors=True)


def _given(values: Iterable[str | int]) -> tuple[str]:
    """Return values as the one SQL parameter that `_GIVEN` unfolds: SQLite limits how many parameters a query has."""
    return (json.dumps(list(values)),)


def _parsed(parse: Callable[[str], T], stored: str) -> T:
    """Return what stands in a row; what cannot be read is damage, unlike a mistake in what is asked of the index.

    Raises:
        sqlite3.DatabaseError: It cannot be read.
    """
    try:
        return parse(stored)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"damaged: {stored[:80]!r}") from error


def _row(encoded: EncodedPage) -> tuple[object, ...]:
    """Return a page as a row of the table `pages`, in the order of `_COLUMNS`."""
    page = encoded.page
    head = json.dumps((page.title, page.uuid, page.at, page.tags, page.links, page.is_archived, page.aliases))
    return (
        page.path, str(encoded.stamp), page.at, *encoded.days, head,
        encoded.words, encoded.heading, encoded.features, encoded.content,
    )  # fmt: skip


def _page(path: str, head: str) -> Page:
    """Return a page without its units, as `_row` stored what else is said of it."""
    title, uuid, at, tags, links, is_archived, aliases = _parsed(json.loads, head)
    return Page(
        path, title, (), uuid, at, tuple(tags), tuple(Link(*link) for link in links), is_archived, tuple(aliases)
    )
