"""A brain's pages at one moment, now or earlier, by this device's journal.

The tree at an earlier moment is the result of all recorded changes up to it. Changes of pages are in the projection, so
that a long history costs one query. For a moment before this device had the brain, another device's journal is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from brainiac.clock import moment_in
from brainiac.errors import UserError
from brainiac.events import PathKind, TextsPurged, TreeAdopted, content_hash
from brainiac.storage.files import read_bytes
from brainiac.storage.projection import Row
from brainiac.storage.store import Store

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
    for entry in store.tree.walk(store.tree.long_term, store.tree.archive):
        path = store.tree.relative(entry.path)
        if store.tree.kind_of(path) in _PAGES:
            content = read_bytes(store.tree.absolute(path))
            if content is not None:
                hashes[path] = content_hash(content)
    return PagesAt(hashes, store.read_text)


def first_moment(store: Store) -> str:
    """Return the ISO 8601 moment of the first recorded change of a page on any device; "" where there is none."""
    store.projection.follow()
    return store.projection.query("SELECT min(at) FROM changes")[0][0] or ""


def pages_at(store: Store, at: str) -> PagesAt:
    """Return the pages as they were after the last change that is not later than a moment.

    Args:
        store: The store.
        at: ISO 8601 UTC, as in the journal.

    Raises:
        UserError: No journal reaches back so far.
    """
    past = Past(store, at)
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

    Raises:
        UserError: No journal reaches back so far.
    """

    def __init__(self, store: Store, at: str) -> None:
        self._store, self._at = store, at
        store.projection.follow()
        self._device = self._device_then()

    @property
    def other_device(self) -> str:
        """The device whose journal is used; "" for this one."""
        return "" if self._device == self._store.journal.device else self._device

    def pages(self) -> dict[str, str]:
        """Return the content hash of each memory and archived page by path."""
        kind_of = self._store.tree.kind_of
        return {path: version.digest for path, version in self._versions.items() if kind_of(path) in _PAGES}

    def version(self, path: str) -> Version | None:
        """Return the file that was at a path; None where there was none, or the journal did not keep its text."""
        if self._store.tree.kind_of(path) in (*_PAGES, PathKind.INDEX_PAGE, PathKind.REVIEW):
            return self._versions.get(path)
        # the projection has no changes of other files
        for event in self._store.journal.events_naming(path, self.other_device):
            if event.at <= self._at:
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
            "SELECT source, event FROM changes WHERE path = ? AND device = ? AND at > ? AND event < ?"
            " AND source IS NOT NULL ORDER BY event DESC LIMIT 1"
        )
        before = "~"  # sorts behind every id
        while rows := self._store.projection.query(sql, path, self._device, self._at, before):
            path, before = rows[0]
        return path

    def is_purged(self, digest: str) -> bool:
        """Return whether a text was destroyed by a purge."""
        purges = (event.what for _, event in self._store.projection.purges())
        return any(isinstance(what, TextsPurged) and digest in what.hashes for what in purges)

    @cached_property
    def _versions(self) -> dict[str, Version]:
        """The page versions at the moment, by path."""
        versions: dict[str, Version] = {}
        adoption = ""
        for event, at, kind, path, source, after in self._rows():
            if kind == TreeAdopted.kind and event != adoption:
                adoption = event
                versions.clear()  # an adoption lists the whole tree as it was found
            versions.pop(source, None)
            versions.pop(path, None)
            if after is not None:
                versions[path] = Version(path, after, at, event)
        return versions

    def _rows(self) -> list[Row]:
        """Return the changes of pages up to the last event that is not later than the moment, oldest first."""
        # by the order of events: a clock that was set back gave later events an earlier time
        return self._store.projection.query(
            "SELECT event, at, kind, path, source, after FROM changes WHERE device = ?1"
            " AND event <= (SELECT max(event) FROM changes WHERE device = ?1 AND at <= ?2) ORDER BY event, position",
            self._device,
            self._at,
        )

    def _device_then(self) -> str:
        """Return this device if its journal had begun by then, else the one with the last event before the moment."""
        own = self._store.journal.device
        sql = "SELECT device, max(event) FROM changes WHERE at <= ? GROUP BY device"
        last: dict[str, str] = dict(self._store.projection.query(sql, self._at))
        if own in last:
            return own
        if last:
            return max(last, key=lambda device: last[device])
        start = first_moment(self._store)
        when = f"; the oldest begins at {moment_in(self._store.zone, start)}" if start else ""
        raise UserError(f"no journal in {self._store.tree.relative(self._store.tree.journal)}/ goes back so far{when}")
