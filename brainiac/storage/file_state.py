"""The state of each tracked file as last seen, folded from the journal into a table so that a start is fast.

Derived: the table may be lost at any moment. It remembers the `seq` and id of the last event it applied; when the
journal does not continue from there (a git checkout took it back), it is folded anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brainiac.events import Event, NoteMerged, RecordedChange, TreeAdopted
from brainiac.storage.database import StateDatabase
from brainiac.storage.journal import Journal
from brainiac.tree import Stamp, Tree

_UNKEPT = "hash-only"  # owner, in the database, of the hashes of files whose texts are not kept
PERSONS = "-"  # begins the hash, in a trail, of a version that a person made
_TRAIL_LENGTH = 64  # an editor that is left open for days holds a version that many exchanges follow
_SCHEMA = """
CREATE TABLE IF NOT EXISTS seen(
    path TEXT PRIMARY KEY, hash TEXT NOT NULL, trail TEXT NOT NULL, is_ours INTEGER NOT NULL,
    is_told INTEGER NOT NULL, is_held INTEGER NOT NULL DEFAULT 0, stamp TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_hash ON seen(hash);
CREATE TABLE IF NOT EXISTS position(only INTEGER PRIMARY KEY CHECK (only = 0), seq INTEGER, id TEXT);
"""


@dataclass(frozen=True, slots=True)
class FileState:
    """One tracked file as it was last seen.

    Attributes:
        path: Relative.
        hash: Of its content.
        trail: Hashes of earlier versions, oldest first, from the first that a process changed: an editor may still
            show one of them. The hash of a version that a person made begins with `-`.
        is_ours: Whether a process wrote this version.
        is_reported: Whether the bus got a `FileChange` for a person's last edit.
        is_held: The file vanished together with many others, and its deletion waits to be confirmed.
        stamp: The file's `Stamp` when it was hashed; "" when it must be hashed again.
    """

    path: str
    hash: str
    trail: tuple[str, ...] = ()
    is_ours: bool = False
    is_reported: bool = True
    is_held: bool = False
    stamp: str = ""

    @property
    def versions(self) -> tuple[str, ...]:
        """The trail with the present version at its end, whose hash begins with `-` where a person made it."""
        return (*self.trail, self.hash if self.is_ours else f"{PERSONS}{self.hash}")


class FileStates:
    """The table of notes as last seen; every writer holds the commit lock.

    Args:
        database: Has the table.
        tree: Tells which paths are tracked.
        journal: What it follows.
    """

    def __init__(self, database: StateDatabase, tree: Tree, journal: Journal) -> None:
        self._database, self._tree, self._journal = database, tree, journal
        database.add(_SCHEMA, self._follow)

    def forget_absent(self) -> None:
        """Drop the hashes of files whose texts are not kept and that are gone."""
        for path in self.all_hash_only():
            if not os.path.lexists(self._tree.absolute(path)):
                self.set_hash_only(path, None)

    def check(self) -> None:
        """Check the table, so that a damaged file is made anew; takes ten milliseconds for ten thousand notes."""

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute("PRAGMA quick_check(seen)").fetchone() != ("ok",):
                raise ValueError("the table is damaged")

        self._database.run(work)

    def catch_up(self) -> None:
        """Apply the journal's new events; the caller holds the commit lock, which is taken before this table's."""
        self._database.run(self._follow)

    def get(self, path: str) -> FileState | None:
        """Return a file's state; None where the file is not tracked or was never seen."""
        return next(iter(self._states("WHERE path = ?", path)), None)

    def with_hash(self, digest: str) -> list[FileState]:
        """Return the files with a content, in the order of their paths."""
        return self._states("WHERE hash = ? ORDER BY path", digest)

    def all(self) -> dict[str, FileState]:
        """Return every file's state by path."""
        return {state.path: state for state in self._states("")}

    def below(self, folder: str) -> dict[str, FileState]:
        """Return the states of the files in a folder and its subfolders, by path."""
        # "0" is the character that follows "/"
        return {state.path: state for state in self._states("WHERE path > ? AND path < ?", f"{folder}/", f"{folder}0")}

    def held_deletions(self) -> list[FileState]:
        """Return the files whose deletions wait to be confirmed, in the order of their paths."""
        return self._states("WHERE is_held ORDER BY path")

    def set_stamps(self, stamps: Mapping[str, Stamp]) -> None:
        """Store the stamps of files whose content is the recorded one, by path."""
        rows: list[tuple[object, ...]] = [(str(stamp), path) for path, stamp in stamps.items()]
        self._execute_many("UPDATE seen SET stamp = ? WHERE path = ?", rows)

    def set_reported(self, path: str, is_reported: bool) -> None:
        """Store whether the bus got a `FileChange` for a person's last edit of a file."""
        self._execute_many("UPDATE seen SET is_told = ? WHERE path = ?", [(is_reported, path)])

    def set_held(self, paths: Iterable[str], is_held: bool) -> None:
        """Store whether the deletions of files wait to be confirmed."""
        self._execute_many("UPDATE seen SET is_held = ? WHERE path = ?", [(is_held, path) for path in paths])

    def hash_only(self, path: str) -> str | None:
        """Return the hash, or of a large file the `Stamp.written`, of a file whose text is not kept; else None."""
        return self.all_hash_only().get(path)

    def all_hash_only(self) -> dict[str, str]:
        """Return the hash, or of a large file the `Stamp.written`, of each file whose text is not kept, by path."""
        return self._database.kept(_UNKEPT)

    def set_hash_only(self, path: str, digest: str | None) -> None:
        """Store the hash or `Stamp.written` of a file whose text is not kept; None removes it."""
        if digest is None:
            self._database.drop(_UNKEPT, path)
        else:
            self._database.keep(_UNKEPT, path, digest)

    def _follow(self, connection: sqlite3.Connection) -> None:
        """Apply the journal's events after the last applied one; begin anew where that one is not there any more."""
        last = self._journal.last()
        position = connection.execute("SELECT seq, id FROM position").fetchone() or (0, "")
        if last == position:
            return
        events = self._journal.events_after(*position)
        if events is None:
            connection.execute("DELETE FROM seen")
            events = self._journal.events()
        for event in events:
            if event.kind == TreeAdopted.kind:  # it lists the whole tree, so that other files are gone
                paths = json.dumps([change.path for change in event.changes])
                connection.execute("DELETE FROM seen WHERE path NOT IN (SELECT value FROM json_each(?))", (paths,))
            for change in event.changes:
                if change.op != "append":
                    self._apply_change(connection, change, event)
        connection.execute("INSERT OR REPLACE INTO position VALUES (0, ?, ?)", last)

    def _states(self, clause: str, *values: str) -> list[FileState]:
        return self._database.run(lambda connection: _rows(connection, clause, *values))

    def _execute_many(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        """Execute a statement for each row in one transaction."""
        self._database.run(lambda connection: connection.executemany(statement, rows))

    def _apply_change(self, connection: sqlite3.Connection, change: RecordedChange, event: Event) -> None:
        """Replace the row of a changed file."""
        # flags and stamp belong to the version before, so the row is replaced as a whole
        source = change.source or change.path
        former = next(iter(_rows(connection, "WHERE path = ?", source)), None)
        connection.executemany("DELETE FROM seen WHERE path = ?", [(source,), (change.path,)])
        if change.after is None or not self._tree.is_tracked(change.path):
            return
        if former is not None and former.hash == change.after:
            trail, is_ours, is_reported = former.trail, former.is_ours, former.is_reported
        else:
            is_by_person = event.by == "person" or change.op == "observe"
            # an edit of which the bus does not know yet stays so until another is recorded, which the bus gets: all but
            # a displaced save, which is merged without the bus having seen it
            is_displaced_save = isinstance(event.what, NoteMerged) and bool(event.what.displaced_by)
            is_reported = former is None or former.is_reported or (is_by_person and not is_displaced_save)
            trail = _trail(former, change, is_by_person=is_by_person)[-_TRAIL_LENGTH:]
            is_ours = not is_by_person
        row = (change.path, change.after, json.dumps(trail), is_ours, is_reported)
        connection.execute("INSERT INTO seen(path, hash, trail, is_ours, is_told) VALUES (?, ?, ?, ?, ?)", row)


def _rows(connection: sqlite3.Connection, clause: str, *values: str) -> list[FileState]:
    """Return the states that a clause of SQL (`WHERE …`, `ORDER BY …`) selects; all for ""."""
    query = f"SELECT path, hash, trail, is_ours, is_told, is_held, stamp FROM seen {clause}"
    return [
        FileState(path, digest, tuple(json.loads(trail)), bool(is_ours), bool(is_told), bool(is_held), stamp)
        for path, digest, trail, is_ours, is_told, is_held, stamp in connection.execute(query, values)
    ]


def _trail(former: FileState | None, change: RecordedChange, *, is_by_person: bool) -> tuple[str, ...]:
    """Return the trail of a file after a change: `A -C` after our A, a person's B and C, and our D.

    Args:
        former: The file before; None for a new one.
        change: The change.
        is_by_person: Whether a person made it.
    """
    if former is None:
        return () if is_by_person or change.before is None else (change.before,)
    # of consecutive saves by a person only the last counts: a process never wrote on top of an earlier one
    is_next_save = is_by_person and not former.is_ours and change.before in (None, former.hash)
    trail = former.trail if is_next_save else former.versions
    if change.before is not None and change.before not in map(version_hash, former.versions):
        trail = (*trail, f"{PERSONS}{change.before}")  # it was not seen before: a person made it
    return trail


def version_hash(version: str) -> str:
    """Return the content hash of one of `FileState.versions`."""
    return version.removeprefix(PERSONS)
