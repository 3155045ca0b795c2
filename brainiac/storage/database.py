"""`state.db` in the state folder: what this machine alone keeps of a brain, in one SQLite file.

Nearly all of its tables are derived from the journals: where the file is damaged, of another version or gone, they are
made anew. Only the table `kept` stands nowhere else, commits that may be unfinished among it. Its rows are saved out
of a damaged file; where that cannot be read wholly, it is set aside.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from brainiac.events import content_hash
from brainiac.storage.files import Disk, free_name, locked, read_bytes, set_aside_non_file
from brainiac.tree import LocalPlaces

T = TypeVar("T")
FILE, COMMIT_LOCK = "state.db", "commit.lock"  # of the state folder
COMMITS, REPORT = "commits", "daemon"  # owners of what is kept: records of commits, what the daemon tells of itself
PAID = "answers"  # likewise: of models, not carried out and committed yet; a purge empties it
_KEPT = "CREATE TABLE IF NOT EXISTS kept(owner TEXT, key TEXT, value TEXT, PRIMARY KEY(owner, key)) WITHOUT ROWID;"
_CORRUPT, _NO_DATABASE, _CUT_SHORT = 11, 26, 522  # sqlite3.h
_ERROR = 1  # a table or a column is missing


class StateDatabase:
    """The file; thread-safe, and used by several processes at once. It is opened when it is first needed.

    Args:
        places: The brain's machine-local places.
    """

    def __init__(self, places: LocalPlaces) -> None:
        self._places, self.path = places, places.state / FILE
        self._mutex = threading.RLock()
        self._parts: list[tuple[str, Callable[[sqlite3.Connection], None]]] = []
        self._connection: sqlite3.Connection | None = None
        self._inode = self._opened = 0  # of the file that is open, and how often one was opened

    def add(self, schema: str, refill: Callable[[sqlite3.Connection], None]) -> None:
        """Add derived tables.

        Args:
            schema: SQL that creates those that are missing.
            refill: Fills them from the journals; called whenever this process finds the file made anew, while the
                commit lock is held.
        """
        with self._mutex:
            self._parts.append((schema, refill))
        self.run(lambda connection: connection.executescript(schema))

    def run(self, work: Callable[[sqlite3.Connection], T], *, is_synced: bool = False) -> T:
        """Return what `work` returns, in one transaction; where the file is damaged, make it anew and try again.

        Args:
            work: Gets the connection.
            is_synced: Whether it is on the disk when this returns; else a power failure may take it.
        """
        try:
            return self._run(work, is_synced)
        except (sqlite3.Error, ValueError, TypeError) as error:
            if not _is_damage(error):
                raise
        with self._alone():
            if self._is_in_place():  # else another process has made it anew
                self._make_anew()
        return self._run(work, is_synced)

    def close(self) -> None:
        """Close the file; whoever needs it once more opens it again."""
        with self._mutex:
            if self._connection:
                self._connection.close()
                self._connection = None

    def compact(self) -> None:
        """Write the file anew, so that nothing of former rows is in it or in its write-ahead log."""
        self.run(lambda connection: connection.execute("VACUUM"))
        self.empty_log()

    def empty_log(self) -> None:
        """Empty the file's write-ahead log, in which former rows stand."""
        self.run(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    def stamp(self) -> tuple[int, int]:
        """Return what is another one once another process has written, or the file was opened anew."""
        return self.run(lambda one: (self._opened, one.execute("PRAGMA data_version").fetchone()[0]))

    # --- what is kept ---------------------------------------------------------------------------------------

    def kept(self, owner: str) -> dict[str, str]:
        """Return what an owner keeps, by key and in the order of the keys."""
        sql = "SELECT key, value FROM kept WHERE owner = ? ORDER BY key"
        return dict(self.run(lambda one: one.execute(sql, (owner,)).fetchall()))

    def keep(self, owner: str, key: str, value: str, *, is_synced: bool = False) -> None:
        """Keep a text for an owner; it replaces a former one of the same key. See `run`."""
        row = (owner, key, value)
        self.run(lambda one: one.execute("REPLACE INTO kept VALUES (?, ?, ?)", row), is_synced=is_synced)

    def keep_only(self, owner: str, texts: Mapping[str, str]) -> None:
        """Keep these texts, by key, in place of all that an owner keeps; it is on the disk when this returns."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM kept WHERE owner = ?", (owner,))
            _insert(connection, ((owner, *text) for text in texts.items()))

        self.run(work, is_synced=True)

    def drop(self, owner: str, key: str) -> None:
        """Drop what an owner keeps by this key."""
        self.run(lambda one: one.execute("DELETE FROM kept WHERE owner = ? AND key = ?", (owner, key)))

    # --- the file -------------------------------------------------------------------------------------------

    def _run(self, work: Callable[[sqlite3.Connection], T], is_synced: bool) -> T:
        """Return what `work` returns; open the file before, and again where another one lies in its place."""
        with self._mutex:
            if self._connection and self._is_in_place():
                return _transact(self._connection, work, is_synced)
        with self._alone():
            if not (self._connection and self._is_in_place()):
                self._open()
        return self._run(work, is_synced)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the commit lock, then the mutex, in the order in which a commit takes them."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.path.parent / COMMIT_LOCK), self._mutex:
            yield

    def _is_in_place(self) -> bool:
        """Return whether the file at its path is the open one: another process may have made it anew."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def _open(self) -> None:
        """Open the file; a damaged one is made anew."""
        was_open = bool(self._opened)
        self.close()
        try:
            self._put_in_place()
            connection = self._connect()
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise
            self._make_anew()
        else:
            self._take_over(connection)
            if was_open:
                self._refill(connection)

    def _make_anew(self) -> None:
        """Replace the file by one with what is kept, as far as it can be read, and with the derived tables.

        The new one is whole on the disk before the old one goes: wherever this is cut short, no row is lost.
        """
        rows, are_all = _saved(self.path)
        self.close()
        draft = Path(f"{self.path}.draft")
        _remove(draft)
        with closing(sqlite3.connect(draft)) as connection, connection:
            connection.execute(_KEPT)
            _insert(connection, rows)
        os.replace(draft, f"{self.path}.new")
        Disk().fsync(self.path.parent)
        if not are_all:
            os.replace(self.path, free_name(self.path))
        self._put_in_place()
        self._refill(self._connect())

    def _put_in_place(self) -> None:
        """Put the file that was made anew in the place of the damaged one; a kill may have come before that."""
        if (new := Path(f"{self.path}.new")).exists():
            _remove(self.path)  # with its log, which SQLite would take for the new file's
            os.replace(new, self.path)
            Disk().fsync(self.path.parent)

    def _connect(self) -> sqlite3.Connection:
        """Open the file with all tables of the parts."""
        for part in _files_of(self.path):
            set_aside_non_file(part)
        # an emptied file, whose lock another process may have, would be waited for
        if self.path.exists() and not self.path.stat().st_size:
            _remove(self.path)
        # another process may be reading all journals anew
        connection = sqlite3.connect(self.path, check_same_thread=False, timeout=120)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: past the drive's own cache
            connection.execute("PRAGMA secure_delete = ON")  # what was purged stays in no free page
            connection.executescript(_KEPT + "".join(schema for schema, _ in self._parts))
        except sqlite3.Error:
            connection.close()
            raise
        self._connection, self._inode = connection, os.stat(self.path).st_ino
        self._opened += 1
        return connection

    def _refill(self, connection: sqlite3.Connection) -> None:
        """Fill the derived tables from the journals."""
        for _, refill in self._parts:
            with connection:
                refill(connection)

    def _take_over(self, connection: sqlite3.Connection) -> None:
        """Take in what a former version had in files of its own and is not made anew, and remove those files."""
        report, commits = self._places.state / "daemon.json", self._places.state / "write_ahead.jsonl"
        # the last line is empty, or a kill came before it was whole; a record is as it was
        lines = (read_bytes(commits) or b"").decode("utf-8", "replace").split("\n")[:-1]
        rows = [(COMMITS, f"{number:06}-{content_hash(line.encode())}", line) for number, line in enumerate(lines)]
        if report.is_file():
            rows.append((REPORT, "", report.read_text("utf-8", "replace")))
        _transact(connection, lambda connection: _insert(connection, rows), is_synced=True)
        with suppress(OSError):
            for name in ("observed.sqlite", report.name, commits.name, "claims.json", "claims.lock"):
                _remove(self._places.state / name)
            for name in ("projection.sqlite", "promotion-answers.jsonl"):
                _remove(self._places.cache / name)


def _transact(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], is_synced: bool) -> T:
    """Return what `work` returns, in one transaction; without syncing a power failure takes it, but damages nothing."""
    if is_synced:
        connection.execute("PRAGMA synchronous = FULL")
    try:
        with connection:
            return work(connection)
    finally:
        if is_synced:
            connection.execute("PRAGMA synchronous = NORMAL")


def _insert(connection: sqlite3.Connection, rows: Iterable[tuple[str, str, str]]) -> None:
    """Insert what is kept, but nothing in place of what is there."""
    connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", rows)


def _saved(path: Path) -> tuple[list[tuple[str, str, str]], bool]:
    """Return the rows of what is kept that can be read in a damaged file, and whether those are all."""
    rows, are_all = set(), True
    with closing(sqlite3.connect(path, timeout=120)) as damaged:
        for order in ("ASC", "DESC"):  # row by row, from both ends up to what cannot be read
            try:
                for row in damaged.execute(f"SELECT * FROM kept ORDER BY owner {order}, key {order}"):
                    rows.add(row)
            except sqlite3.Error as error:
                if not _is_damage(error):
                    raise
                are_all = False
    return list(rows), are_all


def _is_damage(error: Exception) -> bool:
    """Return whether an error means that a SQLite file is damaged; a full disk or a locked file does not."""
    if not isinstance(error, sqlite3.Error):  # a column has a value of another type than was written
        return not isinstance(error, UnicodeEncodeError)  # a value to be written, such as a path, is no UTF-8
    if isinstance(error, sqlite3.OperationalError) and "decode" in str(error):  # a text is no UTF-8
        return True
    code = getattr(error, "sqlite_errorcode", None)
    # the last one counts whole: any other trouble with reading is the disk's
    return code is not None and (code & 0xFF in (_CORRUPT, _NO_DATABASE, _ERROR) or code == _CUT_SHORT)


def _files_of(path: Path) -> list[Path]:
    """Return the paths of a SQLite database's files: the file itself, its write-ahead log and that log's index."""
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm")]


def _remove(path: Path) -> None:
    """Delete a SQLite file, which must be closed."""
    for part in _files_of(path):
        part.unlink(missing_ok=True)


# --- the daemon's report, for `status` and for the daemon's next start ----------------------------------------------

LOCK = "daemon.lock"


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a daemon.

    Attributes:
        pid: Its process; 0 once it stopped.
        since: ISO 8601 UTC when it started.
        watch: `WatchHealth` as plain JSON values.
        pending: `Pending` prompts as plain JSON values.
        settings: The last valid ones, as plain JSON values; commands that read use them while the file is broken.
        problem: Why the daemon does no work at present; "" when it works.
    """

    pid: int = 0
    since: str = ""
    watch: dict[str, Any] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def read_run_state(database: StateDatabase) -> RunState:
    """Return what a brain's daemon wrote last; an empty state where there is nothing, or it cannot be read."""
    try:
        values = json.loads(database.kept(REPORT)[""])
        return RunState(**{name: value for name, value in values.items() if name in RunState.__dataclass_fields__})
    except (OSError, sqlite3.Error, LookupError, ValueError, TypeError, AttributeError):
        return RunState()


def write_run_state(database: StateDatabase, run: RunState) -> None:
    """Replace the daemon's report."""
    database.keep(REPORT, "", json.dumps(asdict(run)))
