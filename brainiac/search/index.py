"""What is indexed: encoded pages by path, and which of them are worth ranking (docs/decisions/search-engine.md).

Ranking knows nothing of the engines behind `Index`.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sqlite3
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from brainiac.errors import BrainiacError
from brainiac.search.documents import IMPORTED, Page
from brainiac.search.features import EncodedPage
from brainiac.search.links import Link, LinkedPage
from brainiac.search.query import Narrowing
from brainiac.tree import Stamp


class UnusableIndexError(BrainiacError):
    """The index is damaged, of another version, or made for another language: it must be built anew."""


class Variant(NamedTuple):
    """A word that may stand for a term of the query.

    Attributes:
        term: The term, one of `Asked.terms`.
        likeness: How like it the word is, 0 to 1.
    """

    term: str
    likeness: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What an index is asked for.

    Attributes:
        terms: Stems, and marks such as `#tag`, `@2023-05`, `=title`: any of them must stand in a passage.
        limit: Look at most at so many passages.
        required: Terms and marks that must stand in the passage, all of them.
        variants: What a page may have instead of a term of the query, by stem.
        narrowing: Which pages are looked at; None for all.
        is_counted: Say how many passages are left out.
    """

    terms: Sequence[str]
    limit: int
    required: Sequence[str] = ()
    variants: Mapping[str, Variant] = field(default_factory=dict)
    narrowing: Narrowing | None = None
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an index answers.

    Attributes:
        pages: Worth ranking, most promising first.
        frequencies: In how many passages each asked term stands.
        n_passages: How many passages there are.
        n_left_out: How many hold an asked term, or one like it, but were not looked at; -1 where nobody counted.
        n_unread: How many files were not looked at, since they are not in the index yet.
    """

    pages: Sequence[EncodedPage]
    frequencies: Mapping[str, int] = field(default_factory=dict)
    n_passages: int = 0
    n_left_out: int = -1
    n_unread: int = 0


VERSION = 12
_HEAP_BYTES = 48_000_000
_VARIANTS, _VARIANT_WEIGHT = 8, 0.7  # of what is only like a word that is asked for: how many, and their weight
_ENOUGH_TERMS = 4  # so many choose the candidates, however common they are
_ALWAYS_RARE = 1000  # passages: a term in so few chooses candidates in any case
_NO_WEIGHT = 0.01  # next to none: of what a passage must hold without being better for it
_EVERY = "*"  # stands in every passage, so that the engine's own count tells whether any of them is deleted
_ELSEWHERE = "†"  # stands in every passage that was imported from other programs
_MOST_TIE = 0.09  # by this share at most a tie raises a score, see `_tie`

# What the engines raise on a damaged index.
DAMAGED = (sqlite3.Error, ValueError, OSError)

_TABLES = """
create table meta (key text primary key, value text);
create table pages (
    id integer primary key, path text not null, stamp text, uuid text, title text, at text,
    tags text, links text, archived integer, aliases text, first_day integer, last_day integer,
    words blob, heading blob, features blob, content blob
);
create table words (word text primary key, stem text) without rowid;
create index pages_by_path on pages (path, stamp);  -- the stamps are read from it alone
create index pages_by_uuid on pages (uuid);
"""
_COLUMNS = (
    "path, stamp, uuid, title, at, tags, links, archived, aliases, first_day, last_day, "
    "words, heading, features, content"
)
# any number of values in one parameter, see `_given`
_GIVEN = "(select value from json_each(?))"


class _State(NamedTuple):
    """The state of the text index; it changes with each commit.

    Attributes:
        n_stored: How many passages it has, deleted ones among them.
        n_passages: How many without those.
        n_segments: In how many parts of the engine they lie.
    """

    n_stored: int
    n_passages: int
    n_segments: int


class Index:
    """Encoded pages in a folder of this machine: tantivy finds passages, SQLite keeps the pages they belong to.

    One thread at a time reads, and one at a time writes; they may do so at once. Any method may raise
    `UnusableIndexError`: the index is then thrown away and built anew.

    Args:
        folder: Made when missing.
        key: What its pages were made with, see `Analyzer.key`; they serve no other.

    Raises:
        UnusableIndexError: What stands there cannot be used; `destroy` it and start anew.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._folder, self._key = folder, f"{VERSION}:{key}"
        self._writer: tantivy.IndexWriter | None = None
        self._count = lru_cache(maxsize=20_000)(self._counted)
        try:
            self._open()
        except DAMAGED as error:
            raise UnusableIndexError(f"{folder}: {error}") from error

    def _open(self) -> None:
        """Open the database and the text index, made anew where they are missing.

        Raises:
            ValueError: They were made by another version or for another language.
        """
        is_new = not (self._folder / "pages.db").exists()
        # text without a table is what a crash while it was made leaves: nothing of it can be used
        if is_new:
            destroy(self._folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds words of private pages
        self._text = self._open_text(is_new=is_new)
        self._db = self._connect()
        # writing has its own connection: queries on the other see nothing of a transaction that is under way
        self._written = self._connect()
        if is_new:
            # in one transaction: a table without its indexes would pass for a whole one
            self._db.executescript("begin;" + _TABLES + "commit;")
            self._db.execute("insert into meta values ('key', ?)", (self._key,))
        made_as = self._db.execute("select value from meta where key = 'key'").fetchone()
        if made_as != (self._key,):
            self._db.close()
            raise ValueError(f"made as {made_as[0] if made_as else 'unknown'}, not as {self._key}")

    def _open_text(self, *, is_new: bool) -> tantivy.Index:
        """Return the engine's index, with a document for each passage: its terms, its page's number, and its `_tie`,
        which orders passages with the same terms.
        """
        folder = self._folder / "text"
        folder.mkdir(mode=0o700, exist_ok=True)
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", tokenizer_name="whitespace", index_option="basic")
        # signed: deletion by an unsigned field's term silently deletes nothing in tantivy-py 0.27
        schema.add_integer_field("page", indexed=True, fast=True)
        schema.add_float_field("tie", fast=True)
        index = tantivy.Index(schema.build(), path=str(folder), reuse=not is_new)
        index.register_tokenizer("whitespace", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        return index

    def _connect(self) -> sqlite3.Connection:
        """Return a connection to the database of pages that several threads may use in turn."""
        database = sqlite3.connect(self._folder / "pages.db", check_same_thread=False, isolation_level=None)
        database.execute("pragma journal_mode = wal")
        # a power cut may lose the last commits but damages nothing: their files are seen as changed and read again
        database.execute("pragma synchronous = normal")
        database.execute("pragma cache_size = -16000")
        return database

    # --- writing -------------------------------------------------------------------------------------------

    def replace(self, pages: Iterable[EncodedPage]) -> None:
        """Add pages, each in place of what stood under its path, whose number it keeps."""
        writer = self._begin()
        by_path = {encoded.page.path: encoded for encoded in pages}
        replaced = self._ids(by_path)
        first = self._written.execute("select coalesce(max(id), 0) + 1 from pages").fetchone()[0]
        self._forget(replaced.values())
        new = (path for path in by_path if path not in replaced)
        numbers = replaced | {path: number for number, path in enumerate(new, first)}
        values = ", ".join("?" * len(("id", *_COLUMNS.split(", "))))
        rows = ((numbers[path], *_row(encoded)) for path, encoded in by_path.items())
        self._written.executemany(f"insert into pages (id, {_COLUMNS}) values ({values})", rows)
        for path, encoded in by_path.items():
            for passage in encoded.passages:
                writer.add_document(_document(passage, numbers[path], is_imported=IMPORTED in path))

    def remove(self, paths: Iterable[str]) -> None:
        """Remove pages by path."""
        self._begin()
        self._forget(self._ids(paths).values())

    def _ids(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the number of each of the paths that are in the index."""
        return dict(self._written.execute(f"select path, id from pages where path in {_GIVEN}", _given(paths)))

    def _forget(self, numbers: Collection[int]) -> None:
        """Take the pages with these numbers out of text and pages."""
        for number in numbers:
            self._begin().delete_documents_by_term("page", number)
        self._written.executemany("delete from pages where id = ?", [(number,) for number in numbers])

    def is_writable(self) -> bool:
        """Return whether this process may write, taking the engine's lock if it is free: one process at a time does."""
        if self._writer is None:
            # another process has the lock: a command beside the daemon reads, and leaves writing to it
            with contextlib.suppress(ValueError):
                self._writer = self._text.writer(_HEAP_BYTES, 1)
        return self._writer is not None

    def _begin(self) -> tantivy.IndexWriter:
        """Return the writer, with a transaction begun in the database.

        Raises:
            UnusableIndexError: Another process writes the index.
        """
        if not self.is_writable() or self._writer is None:
            raise UnusableIndexError(f"{self._folder}: another process writes the index; stop it or wait for it")
        if not self._written.in_transaction:
            self._written.execute("begin immediate")
        return self._writer

    def add_words(self, words: Iterable[tuple[str, str]]) -> None:
        """Keep words with their stems."""
        self._begin()
        self._written.executemany("insert or ignore into words values (?, ?)", words)

    def commit(self) -> None:
        """Make all changes since the last commit durable and visible to queries."""
        if self._writer is None or not self._written.in_transaction:
            return
        # text first, table second: a crash between the two leaves pages that count as not indexed
        self._writer.commit()
        self._written.execute("commit")
        self._text.reload()
        self._count.cache_clear()

    # --- reading -------------------------------------------------------------------------------------------

    def query(self, asked: Asked) -> Candidates:
        """Return the pages worth ranking; without terms, the newest that are allowed."""
        searcher = self._text.searcher()
        allowed = self._allowed(asked.narrowing) if asked.narrowing else None
        if not asked.terms and not asked.required:
            return Candidates(self._load(self._newest(allowed, asked.limit)), n_passages=searcher.num_docs)
        state = self._state(searcher)
        frequencies = {term: self._frequency(searcher, term, state) for term in asked.terms}
        addresses = self._addresses(searcher, self._query(searcher, frequencies, asked, allowed), asked.limit)
        numbers = searcher.fast_field_values("page", addresses)
        ids = [int(number) for number in dict.fromkeys(numbers) if number is not None]
        n_left_out = -1
        if asked.is_counted:
            n_looked_at = len({(address.segment_ord, address.doc) for address in addresses})
            n_left_out = self._holding(searcher, asked, allowed) - n_looked_at
        return Candidates(self._load(ids), frequencies, searcher.num_docs, n_left_out)

    def _newest(self, allowed: set[int] | None, limit: int) -> list[int]:
        """Return the numbers of the newest pages, newest first; only of those in `allowed`, unless that is None."""
        # the order of the listing in `retrieval`: the newest day first
        rows = self._db.execute("select id from pages order by last_day desc, at desc, path")
        return list(islice((number for (number,) in rows if allowed is None or number in allowed), limit))

    def _addresses(self, searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> list[tantivy.DocAddress]:
        """Return where the passages lie that fit a query best, first of all, then of those that were not imported."""
        addresses = self._best(searcher, query, limit)
        if searcher.doc_freq("text", _ELSEWHERE):
            # years of an import would leave no place for what was said here: that has places of its own
            elsewhere = tantivy.Query.term_query(self._text.schema, "text", _ELSEWHERE, "basic")
            clauses = [(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, elsewhere)]
            addresses += self._best(searcher, tantivy.Query.boolean_query(clauses), limit)
        return addresses

    def _holding(self, searcher: tantivy.Searcher, asked: Asked, allowed: set[int] | None) -> int:
        """Return how many passages hold a term that is asked for, however common, or a word like one."""
        schema = self._text.schema
        words = dict.fromkeys((*asked.terms, *asked.required, *asked.variants))
        terms = [tantivy.Query.term_query(schema, "text", word, "basic") for word in words]
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        if allowed is not None:
            pages = tantivy.Query.term_set_query(schema, "page", sorted(allowed))
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, pages)])
        return int(searcher.search(query, 1, count=True).count or 0)  # type: ignore[attr-defined]  # the stubs lack it

    @staticmethod
    def _best(searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> list[tantivy.DocAddress]:
        """Return where the passages lie that fit a query best, at most so many."""
        hits = searcher.search(query, limit + 1, count=False, weight_by_field="tie").hits
        # passages that score like the first one beyond the limit are left out too: any choice among them would change
        # with the order in which the engine stores them
        if len(hits) > limit:
            hits = [hit for hit in hits if hit[0] > hits[limit][0]] or hits[:limit]
        return [address for _, address in hits]

    def _allowed(self, narrowing: Narrowing) -> set[int]:
        """Return the numbers of the pages that pass a query's fields (`tag:`, `path:`, `before:`, …)."""
        rows = self._db.execute("select id, path, tags, first_day, last_day, archived from pages")
        return {
            number
            for number, path, tags, first, last, is_archived in rows
            if narrowing.allows_page(path, tags.split("\n"), first, last, is_archived=bool(is_archived))
        }

    def _frequency(self, searcher: tantivy.Searcher, term: str, state: _State) -> int:
        """Return in how many passages of pages still in the index a term stands.

        Args:
            searcher: Of the text index.
            term: Stem or mark.
            state: Of the text index.
        """
        # the engine's own counts hold deleted passages until it merges; they are right where there are none
        frequency = int(searcher.doc_freq("text", term))
        has_deleted = state.n_stored != state.n_passages
        return self._count(term, state) if frequency and has_deleted else frequency

    @staticmethod
    def _state(searcher: tantivy.Searcher) -> _State:
        """Return the state of the text index, as a searcher sees it."""
        return _State(int(searcher.doc_freq("text", _EVERY)), searcher.num_docs, searcher.num_segments)

    def _counted(self, term: str, _state: _State) -> int:
        """Return in how many passages a term stands, by searching for it.

        `_count` is this function with a cache; `_state` is part of the cache's key and changes with each commit.
        """
        query = tantivy.Query.term_query(self._text.schema, "text", term, "basic")
        return int(self._text.searcher().search(query, 1, count=True).count or 0)  # type: ignore[attr-defined]  # the stubs lack it

    def _query(
        self, searcher: tantivy.Searcher, frequencies: Mapping[str, int], asked: Asked, allowed: set[int] | None
    ) -> tantivy.Query:
        """Return the engine's query: it scores a passage by the sum of the idf of the terms in it.

        Not BM25: the engine's statistics count deleted passages, so that an edited index would choose other
        candidates than one built anew. How often and how densely terms stand is for the ranking to weigh.
        """

        def clause(term: str, weight: float) -> tantivy.Query:
            plain = tantivy.Query.term_query(self._text.schema, "text", term, "basic")
            return tantivy.Query.boost_query(tantivy.Query.const_score_query(plain, 1.0), weight)

        weighed = sorted(self._weighed(searcher, frequencies, asked), reverse=True)
        clauses = [(tantivy.Occur.Should, clause(term, weight)) for weight, term in weighed]
        must = [(tantivy.Occur.Must, clause(term, _NO_WEIGHT)) for term in asked.required]
        if allowed is not None:
            allowed_pages = tantivy.Query.term_set_query(self._text.schema, "page", sorted(allowed))
            must.append((tantivy.Occur.Must, tantivy.Query.const_score_query(allowed_pages, _NO_WEIGHT)))
        if asked.required:
            return tantivy.Query.boolean_query(must + clauses)
        # one of the deciding terms must stand in a passage; the others only add to its score
        n_deciding = len(clauses) if allowed is not None else _deciding(weighed, frequencies, asked.limit)
        any_deciding = tantivy.Query.boolean_query(clauses[:n_deciding])
        return tantivy.Query.boolean_query([*must, (tantivy.Occur.Must, any_deciding), *clauses[n_deciding:]])

    def _weighed(
        self, searcher: tantivy.Searcher, frequencies: Mapping[str, int], asked: Asked
    ) -> Iterator[tuple[float, str]]:
        """Yield weight and term for the terms that choose candidates, then for words like them, which weigh less."""
        total, state = searcher.num_docs, self._state(searcher)
        selective = _selective(frequencies, total)
        idf = {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in selective.items()}
        yield from ((weight, term) for term, weight in idf.items())
        n_variants: Counter[str] = Counter()
        for variant, (term, likeness) in asked.variants.items():
            is_wanted = term in idf and variant not in idf and n_variants[term] < _VARIANTS
            # the vocabulary keeps the words of deleted pages, which must not take the places of others
            if is_wanted and self._frequency(searcher, variant, state):
                n_variants[term] += 1
                yield _VARIANT_WEIGHT * likeness * idf[term], variant

    def _load(self, ids: Sequence[int]) -> list[EncodedPage]:
        """Return the pages with these numbers, in this order; a number without a page is left out."""
        rows = self._db.execute(f"select id, {_COLUMNS} from pages where id in {_GIVEN}", _given(ids))
        loaded = {row[0]: _encoded(row) for row in rows}
        return [loaded[number] for number in ids if number in loaded]

    def pages(self, targets: Iterable[str]) -> list[EncodedPage]:
        """Return pages by path or uuid."""
        names = _given(target for target in targets if target) * 2
        by_name = f"select id from pages where path in {_GIVEN} union select id from pages where uuid in {_GIVEN}"
        return self._load([row[0] for row in self._db.execute(by_name, names)])

    def stamps(self) -> Mapping[str, Stamp]:
        """Return the stamp of every page as it was when indexed, what others committed included."""
        self._text.reload()  # another process may have committed what the table has already
        self._count.cache_clear()
        return {path: Stamp.parse(stamp) for path, stamp in self._db.execute("select path, stamp from pages")}

    def words(self) -> Iterable[tuple[str, str]]:
        """Return every word that is kept, with its stem."""
        return self._db.execute("select word, stem from words").fetchall()

    def contents(self) -> Iterable[tuple[str, bytes]]:
        """Return the path of every page with the content hashes of its units."""
        return self._db.execute("select path, content from pages").fetchall()

    def linked(self) -> Iterable[LinkedPage]:
        """Return every page with its links."""
        rows = self._db.execute("select path, uuid, title, at, links from pages")
        return [LinkedPage(path, uuid, title, at, _links(links)) for path, uuid, title, at, links in rows]

    def status(self) -> dict[str, Any]:
        """Return `engine`, `pages` and `bytes`."""
        size = sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())
        pages = self._db.execute("select count(*) from pages").fetchone()[0]
        return {"engine": "tantivy", "pages": pages, "bytes": size}

    def close(self) -> None:
        """Close the files; what was not committed is dropped."""
        if self._written.in_transaction:
            self._written.execute("rollback")
        if self._writer is not None:
            with contextlib.suppress(ValueError):
                self._writer.rollback()
            # the lock of the engine is released with it: the next process may write
            self._writer = None
        self._written.close()
        self._db.close()


def _selective(frequencies: Mapping[str, int], total: int) -> Mapping[str, int]:
    """Return the terms that choose candidates, with their frequencies: the rarest, and all that are not common.

    Args:
        frequencies: In how many passages each term stands.
        total: How many passages there are.
    """
    rarest = sorted(frequency for frequency in frequencies.values() if frequency)[:_ENOUGH_TERMS]
    limit = max(_ALWAYS_RARE, total // 50, *rarest)
    return {term: frequency for term, frequency in frequencies.items() if frequency <= limit}


def _deciding(weighed: Sequence[tuple[float, str]], frequencies: Mapping[str, int], limit: int) -> int:
    """Return how many of the heaviest terms decide: a passage without any of these is none of the `limit` best.

    More passages than `limit` have one of them, which weighs more than all lighter terms together. The long lists of
    common words need not be read then (MaxScore, Turtle and Flood, 1995).

    Args:
        weighed: Weight and term, the heaviest first.
        frequencies: In how many passages the terms stand.
        limit: How many passages are wanted.
    """
    lighter, n_passages = sum(weight for weight, _ in weighed), 0
    for number, (weight, term) in enumerate(weighed, 1):
        lighter -= weight
        n_passages = max(n_passages, frequencies.get(term, 0))
        if n_passages > limit and weight > lighter * (1 + _MOST_TIE):
            return number
    return len(weighed)


def _document(passage: str, page: int, *, is_imported: bool) -> tantivy.Document:
    """Return the engine's document for a passage of the page with a number."""
    document = tantivy.Document()
    document.add_text("text", f"{passage} {_EVERY} {_ELSEWHERE}" if is_imported else f"{passage} {_EVERY}")
    document.add_integer("page", page)
    document.add_float("tie", _tie(passage))
    return document


def _tie(passage: str) -> float:
    """Return the number that orders passages with the same terms: shorter first, then by a hash of the content.

    The engine multiplies a score by `log2(2 + tie)` in 32-bit floats: too small a tie would be rounded away.
    """
    return 0.1 / (1 + passage.count(" ")) + zlib.crc32(passage.encode()) / 2**32 * 0.02


def _given(values: Iterable[str | int]) -> tuple[str]:
    """Return values as the one SQL parameter that `_GIVEN` unfolds: SQLite limits how many parameters a query has."""
    return (json.dumps(list(values)),)


def destroy(folder: Path) -> None:
    """Remove an index from disk."""
    shutil.rmtree(folder, ignore_errors=True)


def _row(encoded: EncodedPage) -> tuple[object, ...]:
    """Return a page as a row of the table `pages`, in the order of `_COLUMNS`."""
    page = encoded.page
    links = json.dumps([(link.uuid, link.path) for link in page.links]) if page.links else ""
    return (
        page.path, str(encoded.stamp), page.uuid, page.title, page.at, "\n".join(page.tags), links,
        page.is_archived, "\n".join(page.aliases), *encoded.days,
        encoded.words, encoded.heading, encoded.features, encoded.content,
    )  # fmt: skip


def _encoded(row: tuple[Any, ...]) -> EncodedPage:
    """Return the page of a row of the table `pages`, its number first."""
    _, path, stamp, uuid, title, at, tags, links, is_archived, aliases, *others = row
    _first_day, _last_day, words, heading, features, content = others
    page = Page(
        path,
        title,
        units=(),
        uuid=uuid,
        at=at,
        tags=_listed(tags),
        links=_links(links),
        is_archived=bool(is_archived),
        aliases=_listed(aliases),
    )
    return EncodedPage(page, Stamp.parse(stamp), words, heading, features, content)


def _listed(stored: str) -> tuple[str, ...]:
    """Return the lines of a column that holds several values."""
    return tuple(stored.split("\n")) if stored else ()


def _links(stored: str) -> tuple[Link, ...]:
    """Return the links of a column that holds them as JSON."""
    return tuple(Link(uuid, path) for uuid, path in json.loads(stored)) if stored else ()
