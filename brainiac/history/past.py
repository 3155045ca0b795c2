"""Looks back: a page as it was at a moment, and what differs between two brains, or one brain at two moments.

Compared are the pages of long-term memory and of the archive. A page of one side is the page of the other that has its
uuid, else its path, else its title. Ids, dates and counts are not compared: two brains made of the same exchanges have
different ones and hold the same.

The tree at an earlier moment is the result of all recorded changes up to it. Changes of pages are in the projection, so
that a long history costs one query. For a moment before this device had the brain, another device's journal is used.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from brainiac.brain import Brain
from brainiac.clock import moment_in
from brainiac.errors import FormatError, UserError
from brainiac.events import PathKind, TextsPurged, TreeAdopted, content_hash
from brainiac.formats.markdown import PlacedEvent, one_line
from brainiac.formats.page import HISTORY, Memory, Statement, parse_memory, read_units, readable_memory
from brainiac.history.why import find_memory, path_named
from brainiac.storage.files import read_bytes
from brainiac.storage.store import Store
from brainiac.text.tokens import trigrams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from brainiac.search.embed import Embedder

    Matrix = NDArray[Any]

# keys of front matter that are ids, dates or counts
_NOT_COMPARED = frozenset({"uuid", "created_at", "updated_at", "reinforcement_count", "sources"})
_UUID = re.compile(r' "uuid:[^"\n]*"')
_COMMENT_ID = re.compile(r"<!-- (?:event|exchange): [^\n]*? -->")
_DIGITS = re.compile(r"(?:(?<!\w)[-−])?\d+")
_BLOCK_ID = re.compile(r"[ \t]\^[A-Za-z0-9-]+[ \t]*$", re.MULTILINE)


# --- a page at a moment ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileAt:
    """A file as it is or was.

    Attributes:
        path: Its path, now or then.
        text: The whole file.
        version: The version that it is; None for the present file.
        device: The other device whose journal tells it; "" for this one.
    """

    path: str
    text: str
    version: Version | None = None
    device: str = ""


def present(brain: Brain, named: str) -> FileAt:
    """Return a page by path, uuid, title or file name, or another file of the brain by its path, as it is now.

    Raises:
        UserError: There is none, or several pages have the name.
    """
    if page := find_memory(brain, named):
        return FileAt(page.path, page.text)
    path = path_named(brain, named)
    text = brain.read_text(path) if path else None
    if text is None:
        raise UserError(f"no page and no file is called {named!r}; with --at a day it may be an earlier one")
    return FileAt(path, text)


def at_moment(brain: Brain, named: str, at: str, event: str = "") -> FileAt:
    """Return a page or file as it was at a moment, however it was named, moved or removed since.

    Args:
        brain: The brain.
        named: The path then or now; of a page also its uuid, title or file name, then or now.
        at: ISO 8601 UTC.
        event: As `Past` takes it.

    Raises:
        UserError: There was none, its text is not kept, or no journal goes back so far.
    """
    past = Past(brain, at, event)
    version = _version(brain, past, named)
    if version is None:
        raise UserError(f"nothing called {named!r} stood there then; `brainiac diff --since DAY` lists what came later")
    text = brain.kept_text(version.digest)
    if text is None:
        purged = past.purged_on(version.digest)
        reason = f"was purged on {purged}" if purged else "is not in the journal's texts (`brainiac doctor`)"
        raise UserError(f"{version.path} stood there then, but its text {reason}")
    return FileAt(version.path, text, version, past.other_device)


def _version(brain: Brain, past: Past, named: str) -> Version | None:
    """Return the version that a person means; None for none.

    The name is tried as a path then, whole or below `memory/long_term/`; as a path or name now, of which the former
    path is looked for; and as a name then.
    """
    path = path_named(brain, named)
    long_term_path = f"{brain.tree.relative(brain.tree.long_term)}/{path}"
    if path and (version := past.version(path) or past.version(long_term_path)):
        return version
    page = find_memory(brain, named)
    present_path = page.path if page else path
    if present_path and (version := past.version(past.former_path(present_path))):
        return version
    return _by_name(brain, past, {page.uuid, page.title} if page else {named})


def _by_name(brain: Brain, past: Past, names: Collection[str]) -> Version | None:
    """Return the page that had one of these uuids, titles or file names at the moment; None for none.

    Raises:
        UserError: Several pages had it.
    """
    folded_names = {name.strip().casefold() for name in names} - {""}
    pages = past.pages()

    def has_name(path: str) -> bool:
        """Return whether a former version of a page had one of the names; not where its text is not kept."""
        page = readable_memory(path, brain.kept_text(pages[path]) or "")
        return page is not None and bool(folded_names & {page.uuid.casefold(), page.title.casefold()})

    matches = [path for path in pages if posixpath.basename(path).removesuffix(".md").casefold() in folded_names]
    # the files' names first: for titles and uuids the texts of all pages may have to be read
    matches = matches or list(filter(has_name, pages))
    if len(matches) > 1:
        raise UserError(f"{len(matches)} pages were called so: {', '.join(sorted(matches))}; name one by its path")
    return past.version(matches[0]) if matches else None


# --- what differs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs between two sides.

    Attributes:
        what: `added`, `removed`, `changed`, `reworded` (of two brains: both hold a statement that says about the same),
            `ended` (it holds in the first, and stands under History in the second), `resumed` (the reverse), `moved`
            (to another page) or `reordered` (of a page: the same in another order).
        kind: `page`, `statement`, `exchange`, `line` (any other line of a page) or `property` (of its front matter).
        path: The page in the second; in the first for what is only there.
        title: The page's title.
        text: Its text in the second; "" where it is only in the first.
        before: Its text in the first; "" where it is only in the second.
        former_path: The page in the first if that is another one; else "".
        is_history: Whether it is under History, so that it no longer holds.
    """

    what: str
    kind: str
    path: str
    title: str
    text: str = ""
    before: str = ""
    former_path: str = ""
    is_history: bool = False


@dataclass(slots=True)
class Comparison:
    """The result of comparing two sides.

    Attributes:
        differences: By page, in the order of paths.
        unreadable: A sentence for each page that could not be compared.
        equal: How many pages hold the same.
        renumbered: Of these, the pages whose files differ all the same, in ids, dates or counts.
    """

    differences: list[Difference] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    equal: int = 0
    renumbered: list[str] = field(default_factory=list)

    def counts(self) -> Counter[tuple[str, str]]:
        """Return how many differences there are by kind and what."""
        return Counter((difference.kind, difference.what) for difference in self.differences)


def compare(first: PagesAt, second: PagesAt, likenesses: Sequence[Likeness] = ()) -> Comparison:
    """Compare the pages of two brains, or of one brain at two moments.

    Args:
        first: The one side.
        second: The other.
        likenesses: For two brains: statements in other words are paired by the first, what is left by the next.
    """
    result = Comparison()
    same = {path for path, digest in first.hashes.items() if second.hashes.get(path) == digest}
    result.equal = len(same)
    sides = [_read_pages(side, side.hashes.keys() - same, result.unreadable) for side in (first, second)]
    # a page that cannot be read on one side says nothing about what the other side holds
    unread = (first.hashes.keys() - same - sides[0].keys()) | (second.hashes.keys() - same - sides[1].keys())
    pairs = [(page.path, pair) for pair in _pairs(*sides) if (page := pair[1] or pair[0])]
    for path, pair in sorted(pairs, key=lambda named: named[0]):
        if path not in unread:
            differences = list(differences_of(*pair))
            result.differences += differences
            if not differences:  # the files differ in what is not compared
                result.equal += 1
                result.renumbered.append(path)
    result.differences = _with_moves(result.differences)
    for likeness in likenesses:
        result.differences = pair_reworded(result.differences, likeness)
    return result


def _read_pages(side: PagesAt, paths: Iterable[str], unreadable: list[str]) -> dict[str, Memory]:
    """Return the pages at some paths; a sentence about each that cannot be read is added to `unreadable`."""
    pages: dict[str, Memory] = {}
    for path in sorted(paths):
        text = side.text_of(path)
        try:
            if text is None:
                raise FormatError(path, "its text is not kept (purged, or missing)")
            pages[path] = parse_memory(path, text)
        except FormatError as error:
            unreadable.append(str(error))
    return pages


# --- which page is which -------------------------------------------------------------------------------------------


def _pairs(first: Mapping[str, Memory], second: Mapping[str, Memory]) -> Iterator[tuple[Memory | None, Memory | None]]:
    """Yield each page of the first with that of the second that is the same page, then those of one side alone."""
    left, right = dict(first), dict(second)
    names: Sequence[Callable[[Memory], str]] = (
        lambda page: page.uuid,
        lambda page: page.path,
        lambda page: page.title.casefold(),
        # one that the other side has among its aliases
        lambda page: titles.get(page.title.casefold(), page.title.casefold()),
    )
    titles = {
        alias.casefold(): page.title.casefold()
        for page in (*first.values(), *second.values())
        for alias in page.aliases
    }
    for name in names:
        before, after = ({name(page): page for page in side.values()} for side in (left, right))
        counts = Counter(map(name, left.values())), Counter(map(name, right.values()))
        # a name that several pages have identifies none of them
        for key in [key for key in before if key and counts[0][key] == counts[1][key] == 1]:
            yield left.pop(before[key].path), right.pop(after[key].path)
    yield from ((page, None) for page in left.values())
    yield from ((None, page) for page in right.values())


# --- what a page holds ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Item:
    """One thing that a page holds: see `Difference` for `kind`. Two are equal whose kind and words are the same.

    Attributes:
        text: Without ids and dates.
        is_history: Of a statement, whether it no longer holds.
        id: Block id of a statement, id of an exchange, key of a property; "" for none.
        replaced_by: Of a statement under History, the block id of what stands in its place.
    """

    kind: str
    text: str
    is_history: bool = False
    id: str = field(default="", compare=False)
    replaced_by: str = field(default="", compare=False)


def _items(page: Memory) -> Iterator[_Item]:
    """Yield all that a page holds, so that nothing a person reads on it is left out of a comparison."""
    for key, value in page.meta.items():
        if key not in _NOT_COMPARED and value not in (None, "", []):
            yield _Item("property", f"{key}: {value}", id=str(key))
    exchanges, statements, lines = list[_Item](), list[_Item](), list[str]()
    for unit in read_units(page.text, page.offset):
        text = page.text[unit.start : unit.end]
        match unit.part:
            case PlacedEvent(event):
                heading, _, words = text.partition("\n")
                exchanges.append(_Item("exchange", _without_ids(words), id=event.id or heading))
                continue
            case Statement() as item:
                words = _without_ids(item.text)
                statements.append(_Item("statement", words, item.is_history, item.block_id, item.replaced_by))
                text = text[item.own[1] - item.start :].partition("\n")[2]  # what a person nested below it
        lines.append(text)
    yield from (*exchanges, *statements)
    for line in "\n".join(lines).splitlines():
        if line.strip() and line.strip().casefold() != f"## {HISTORY}".casefold():
            yield _Item("line", _without_ids(line.strip()))


def _without_ids(text: str) -> str:
    """Return a text on one line without the ids of pages, exchanges and statements."""
    return one_line(_BLOCK_ID.sub("", _UUID.sub("", _COMMENT_ID.sub("", text))))


# --- what differs on a page ----------------------------------------------------------------------------------------


def differences_of(first: Memory | None, second: Memory | None) -> Iterator[Difference]:
    """Yield what differs between a page of the first and the same page of the second, in the order of the page.

    The page itself comes first. Where only one side has it, the other is None; its title and properties are no
    differences then.
    """
    page = second or first
    assert page is not None
    difference = partial(Difference, path=page.path, title=page.title)
    before, after = (list(_items(side)) if side else [] for side in (first, second))
    if first is None or second is None:
        yield difference("added" if first is None else "removed", "page")
        title = _Item("line", f"# {page.title}")
        before, after = (
            [each for each in items if each.kind != "property" and each != title] for items in (before, after)
        )
    elif first.path != second.path:
        yield difference("moved", "page", former_path=first.path)
    # the order of properties says nothing
    orders = [[item for item in items if item.kind != "property"] for items in (before, after)]
    # what both hold in the same words is no difference, each as often as both have it
    before, after = (
        list((Counter(each) - Counter(other)).elements()) for each, other in ((before, after), (after, before))
    )
    if orders[0] != orders[1] and not before and not after:
        yield difference("reordered", "page")
    for old in [item for item in before if item.kind == "statement"]:  # that hold on one side alone
        new = replace(old, is_history=not old.is_history)
        if new not in after:
            continue
        before.remove(old)
        new = after.pop(after.index(new))
        # one that another statement replaced counts as changed to that
        current = (item for item in after if new.replaced_by and item.id == new.replaced_by and not item.is_history)
        successor = next(current, None) if new.is_history else None
        if successor:
            after.remove(successor)
            yield difference("changed", "statement", text=successor.text, before=old.text)
        else:
            what = "ended" if new.is_history else "resumed"
            yield difference(what, "statement", text=new.text, before=old.text)
    named = {(item.kind, item.is_history, item.id): item for item in after if item.id}
    for old in list(before):
        renewed = named.pop((old.kind, old.is_history, old.id), None)
        if renewed is not None:
            before.remove(old)
            after.remove(renewed)
            yield difference("changed", old.kind, text=renewed.text, before=old.text, is_history=old.is_history)
    for item in before:
        yield difference("removed", item.kind, before=item.text, is_history=item.is_history)
    for item in after:
        yield difference("added", item.kind, text=item.text, is_history=item.is_history)


def _with_moves(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences with each text that one page lost and another got as moved, not as removed and added."""
    removed: dict[tuple[str, str, bool], list[Difference]] = defaultdict(list)
    for difference in differences:
        if difference.what == "removed" and difference.kind in ("statement", "exchange"):
            removed[difference.kind, difference.before, difference.is_history].append(difference)
    result: list[Difference] = []
    moved_away: set[int] = set()  # by `id`: two removals may be equal
    for difference in differences:
        same_text = removed.get((difference.kind, difference.text, difference.is_history))
        if difference.what == "added" and same_text:
            removal = same_text.pop()
            moved_away.add(id(removal))
            result.append(replace(difference, what="moved", before=difference.text, former_path=removal.path))
        else:
            result.append(difference)
    return [difference for difference in result if id(difference) not in moved_away]


# --- what says the same in other words -------------------------------------------------------------------------------

Likeness = Callable[[Sequence[str], Sequence[str]], "Matrix"]  # of each text of the first to each of the second, 0 to 1
_BUCKETS = 2048
_ALIKE = 0.45  # by the trigrams
_SAME_PAGE = 0.1  # what is on one page in both brains is rather the same
_NEAREST = 20  # of a statement's that are tried: thousands in one form would all be alike
_MAX_EMBEDDED = 300  # texts: about ten seconds
_CHANCE = 0.85  # the cosine of two statements that have nothing to do with each other
_AT_ONCE = 1000  # rows of a table of likenesses


def pair_reworded(differences: Sequence[Difference], likeness: Likeness) -> list[Difference]:
    """Return the differences with statements that say about the same as one, where one side lost and the other got it.

    Each is paired once, the most alike first: as `reworded`, or `changed` where numbers or their order differ.
    """
    sides: list[list[Difference]] = [
        [each for each in differences if each.kind == "statement" and each.what == what]
        for what in ("removed", "added")
    ]
    removed, added = sides
    taken: dict[int, Difference] = {}  # by `id` of what is there
    gone: set[int] = set()
    candidates: list[tuple[float, int, int]] = []
    for start in range(0, len(removed) if added else 0, _AT_ONCE):
        olds = removed[start : start + _AT_ONCE]
        table = likeness([each.before for each in olds], [each.text for each in added])
        first_near = max(0, len(added) - _NEAREST)
        nearest = table.argpartition(first_near, axis=1)[:, first_near:]
        candidates += [
            (float(table[row, column]) + _SAME_PAGE * (olds[row].path == added[column].path), start + row, int(column))
            for row, columns in enumerate(nearest)
            for column in columns
            if table[row, column] > _ALIKE - _SAME_PAGE
        ]
    for score, row, column in sorted(candidates, key=lambda each: (-each[0], *each[1:])):
        old, new = removed[row], added[column]
        if score < _ALIKE or id(old) in gone or id(new) in taken or old.is_history != new.is_history:
            continue
        gone.add(id(old))
        has_other_number = _DIGITS.findall(old.before) != _DIGITS.findall(new.text)
        what = "changed" if has_other_number else "reworded"
        former = old.path if old.path != new.path else ""
        taken[id(new)] = replace(new, what=what, before=old.before, former_path=former)
    return [taken.get(id(each), each) for each in differences if id(each) not in gone]


def _trigram_likeness(first: Sequence[str], second: Sequence[str]) -> Matrix:
    """Return how much of their trigrams texts have in common; one that many texts have counts little."""
    import numpy as np  # takes a while

    def vectors(texts: Sequence[str]) -> Matrix:
        table = np.zeros((len(texts), _BUCKETS), np.float32)
        for row, text in enumerate(texts):
            table[row, [crc32(gram.encode("utf-8", "replace")) % _BUCKETS for gram in trigrams(text)]] = 1
        return table

    tables = vectors(first), vectors(second)
    n_texts = sum(table.sum(axis=0) for table in tables)
    weights = np.log((1 + len(first) + len(second)) / (1 + n_texts)) + 0.1
    left, right = (
        weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
        for weighted in (table * weights for table in tables)
    )
    return np.asarray(left @ right.T)


def likenesses_of(store: Store) -> list[Likeness]:
    """Return what pairs the statements of two brains: trigrams, then meaning where there is a local embedder."""
    found: list[Likeness] = [_trigram_likeness]
    if store.settings.recall.embedder in ("auto", "local"):
        from brainiac.search.embed import EmbedderError, make_embedder  # brings numpy

        with suppress(EmbedderError):
            embedder = make_embedder("local")
            assert embedder is not None
            found.append(partial(_meaning_likeness, embedder))
    return found


def _meaning_likeness(embedder: Embedder, first: Sequence[str], second: Sequence[str]) -> Matrix:
    """Return how near texts are in meaning; 0 for all where there are too many to be embedded in seconds."""
    import numpy as np  # takes a while

    if not 0 < len(first) + len(second) <= _MAX_EMBEDDED:
        return np.zeros((len(first), len(second)))
    return np.asarray((embedder.embed(first) @ embedder.embed(second).T - _CHANCE) / (1 - _CHANCE))


# --- a brain's pages at one moment, now or earlier, by this device's journal -----------------------------------------

_PAGES = (PathKind.MEMORY, PathKind.ARCHIVED)


@dataclass(frozen=True, slots=True)
class PagesAt:
    """The memories and archived pages of a brain at one moment; index pages are left out.

    Attributes:
        hashes: Content hash by path.
        text_of: Returns the text of a path; None where it was not kept, or is purged.
        device: The device whose journal was used; "" for this one.
    """

    hashes: Mapping[str, str]
    text_of: Callable[[str], str | None]
    device: str = ""


def present_pages(store: Store) -> PagesAt:
    """Return the pages as their files are now."""
    hashes: dict[str, str] = {}
    for path in store.tree.scan(store.tree.long_term, store.tree.archive):
        if store.tree.kind_of(path) in _PAGES:
            content = read_bytes(store.tree.absolute(path))
            if content is not None:
                hashes[path] = content_hash(content)
    return PagesAt(hashes, store.read_text)


def first_moment(store: Store) -> str:
    """Return the ISO 8601 moment of the first recorded change of a page on any device; "" where there is none."""
    store.projection.follow()
    return store.projection.query("SELECT min(at) FROM changes")[0][0] or ""


def pages_at(store: Store, at: str, event: str = "") -> PagesAt:
    """Return the pages as they were after the last change that is not later than a moment.

    Args:
        store: The store.
        at: ISO 8601 UTC, as in the journal.
        event: As `Past` takes it.

    Raises:
        UserError: No journal reaches back so far.
    """
    past = Past(store, at, event)
    hashes = past.pages()
    return PagesAt(hashes, lambda path: store.kept_text(hashes.get(path)), past.other_device)


@dataclass(frozen=True, slots=True)
class Version:
    """A file as it was at a moment.

    Attributes:
        path: Its path then.
        digest: Its content hash.
        at: When it was last changed before that moment, ISO 8601.
        event: Id of the event of that change.
    """

    path: str
    digest: str
    at: str
    event: str


class Past:
    """The files of a brain at a moment, by a device's journal.

    Args:
        store: The store.
        at: ISO 8601 UTC.
        event: The last event of this device that counts, since others may have its second; "" for all until `at`.

    Raises:
        UserError: No journal reaches back so far.
    """

    def __init__(self, store: Store, at: str, event: str = "") -> None:
        self._store, self._at, self._event = store, at, event
        store.projection.follow()
        own = store.journal.device
        sql = "SELECT device, max(event) FROM changes WHERE at <= ? GROUP BY device"
        last: dict[str, str] = dict(store.projection.query(sql, at))
        if not last:
            start = first_moment(store)
            when = f"; the oldest begins at {moment_in(store.zone, start)}" if start else ""
            raise UserError(f"no journal in {store.tree.relative(store.tree.journal)}/ goes back so far{when}")
        # this device if its journal had begun by then, else the one with the last event before the moment
        self._device = own if own in last else max(last, key=lambda device: last[device])

    @property
    def other_device(self) -> str:
        """The device whose journal is used; "" for this one."""
        return "" if self._device == self._store.journal.device else self._device

    def pages(self) -> dict[str, str]:
        """Return the content hash of each memory and archived page by path."""
        kind_of = self._store.tree.kind_of
        return {path: version.digest for path, version in self._versions.items() if kind_of(path) in _PAGES}

    def files(self) -> dict[str, Version]:
        """Return what stood in memory by path: pages, archived ones, index pages, the review, short-term memory."""
        path = self._store.tree.relative(self._store.tree.short_term)
        short_term = self.version(path)
        return self._versions | ({path: short_term} if short_term else {})

    def version(self, path: str) -> Version | None:
        """Return the file that was at a path; None where there was none, or the journal did not keep its text."""
        if self._store.tree.kind_of(path) in (*_PAGES, PathKind.INDEX_PAGE, PathKind.REVIEW):
            return self._versions.get(path)
        # the projection has no changes of other files
        for event in self._store.journal.events_naming(path, self.other_device):
            if event.at <= self._at and event.id <= (self._event or "~"):
                for change in event.changes:
                    if change.path == path and change.op != "append":
                        return Version(path, change.after, event.at, event.id) if change.after else None
                    if change.source == path:
                        return None
        return None

    def former_path(self, path: str) -> str:
        """Return the path that a file had at the moment, by following its moves since then back.

        Args:
            path: The file's present path.
        """
        sql = (
            "SELECT source, event FROM changes WHERE path = ?1 AND device = ?2 AND event < ?4 AND source IS NOT NULL"
            " AND CASE ?5 WHEN '' THEN at > ?3 ELSE event > ?5 END ORDER BY event DESC LIMIT 1"
        )
        before = "~"  # sorts behind every id
        while rows := self._store.projection.query(sql, path, self._device, self._at, before, self._event):
            path, before = rows[0]
        return path

    def present_path(self, path: str) -> str:
        """Return the path that a file of then has now, by following its moves since; also of one that is gone."""
        sql = (
            "SELECT path, event FROM changes WHERE source = ?1 AND device = ?2 AND event > ?4"
            " AND CASE ?5 WHEN '' THEN at > ?3 ELSE event > ?5 END ORDER BY event LIMIT 1"
        )
        after = ""
        while rows := self._store.projection.query(sql, path, self._device, self._at, after, self._event):
            path, after = rows[0]
        return path

    def purged_on(self, digest: str) -> str:
        """Return the day on which a text was destroyed by a purge; "" for none."""
        purges = (event for _, event in self._store.projection.purges())
        days = (event.at for event in purges if isinstance(event.what, TextsPurged) and digest in event.what.hashes)
        return self._store.day_of(next(days, ""))

    @cached_property
    def _versions(self) -> dict[str, Version]:
        """The page versions at the moment, by path."""
        versions: dict[str, Version] = {}
        adoption = ""
        # by the order of events: a clock that was set back gave later events an earlier time
        rows = self._store.projection.query(
            "SELECT event, at, kind, path, source, after FROM changes WHERE device = ?1"
            " AND event <= coalesce(nullif(?3, ''), (SELECT max(event) FROM changes WHERE device = ?1 AND at <= ?2))"
            " ORDER BY event, position",
            self._device,
            self._at,
            self._event,
        )
        for event, at, kind, path, source, after in rows:
            if kind == TreeAdopted.kind and event != adoption:
                adoption = event
                versions.clear()  # an adoption lists the whole tree as it was found
            versions.pop(source, None)
            versions.pop(path, None)
            if after is not None:
                versions[path] = Version(path, after, at, event)
        return versions
