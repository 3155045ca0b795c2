"""Turns of an assistant's sessions that are to come into memory, on this machine alone.

A turn that waits is whole on the disk before its hook is answered. Once it is in memory only names and hashes of it
stay, by which it is known again: of a retry, of a second host's file, of a transcript. A transcript never goes on
before the point up to which it was read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta

from brainiac.clock import iso, parse_iso
from brainiac.events import new_id
from brainiac.storage.database import StateDatabase
from brainiac.storage.files import locked

# owners of what the database keeps: turns with words, turns without, how far a transcript was read, since when a
# folder's are taken
_WAITING, _TAKEN, _POINTS, _SINCE = "turns waiting", "turns", "transcripts", "turns since"
HOSTS = ("claude-code", "codex", "cursor")
REST = timedelta(hours=1)  # a turn of which nothing came for so long is over
_KEPT = timedelta(days=180)


def digest(*parts: str) -> str:
    """Return by what texts are known again."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a person typed in a session and what they were answered.

    Attributes:
        session: The host's id of it.
        key: The host's id of the prompt.
        at: ISO 8601.
        host: One of `HOSTS`.
        project: The folder that it was typed in.
        words: A hash of them.
        user: The person's; "" once it is in memory, and of what asks only for a look into the transcript.
        ai: The assistant's.
        transcript: The host's own file of the session; "" for none.
        is_over: Whether nothing more is to come of it.
        is_private: It must not leave this machine.
        is_done: Whether it is in memory, or never will be.
        exchange: Its id in memory, by the key and moment of `name` and `at`; "" while that is open.
        name: The key of the exchange within its conversation.
        told_as: The id by which the transcript tells it; "" while it was not seen there.
        reason: Why it is not kept; "" where it is.
        heard: When a hook told more of it last, ISO 8601; "" where none did.
        seen: Ascends with the order in which they were heard of, or in which their transcript has them.
    """

    session: str
    key: str
    at: str
    host: str
    project: str = ""
    words: str = ""
    user: str = ""
    ai: str = ""
    transcript: str = ""
    is_over: bool = False
    is_private: bool = False
    is_done: bool = False
    exchange: str = ""
    name: str = ""
    told_as: str = ""
    reason: str = ""
    heard: str = ""
    seen: str = field(default_factory=new_id)


class Turns:
    """All that is kept of them; several processes may use it at once.

    Args:
        database: This machine's own, of the brain to which they come.
    """

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def lock(self) -> AbstractContextManager[None]:
        """Return the lock that is held by whoever changes what it has read."""
        return locked(self._database.path.with_name("turns.lock"))

    def over(self, now: datetime) -> list[Turn]:
        """Return the turns that wait and are over: by their hook, a later one of their session, or at rest for long."""
        turns, ended = _read(self._database.kept(_WAITING).values()), iso(now - REST)
        last = {turn.session: turn.key for turn in turns if turn.user}
        return [
            turn
            for turn in turns
            if turn.is_over or not turn.user or turn.key != last[turn.session] or _heard_at(turn) < ended
        ]

    def all(self) -> list[Turn]:
        """Return all turns, oldest first."""
        return _read([*self._database.kept(_WAITING).values(), *self._database.kept(_TAKEN).values()])

    def of_session(self, session: str) -> list[Turn]:
        """Return the turns of a session, oldest first."""
        name = digest(session)
        sql = "SELECT value FROM kept WHERE owner IN (?, ?) AND key >= ? AND key < ?"
        bounds = (_WAITING, _TAKEN, f"{name}/", f"{name}0")  # `0` comes right after `/`
        return _read([value for (value,) in self._database.run(lambda one: one.execute(sql, bounds).fetchall())])

    def is_told(self, *names: str) -> bool:
        """Return whether a turn of any session has one of these names."""
        return any({turn.key, turn.name} & {*names} - {""} for turn in self.all())

    def keep(self, turns: Sequence[Turn], transcript: str = "", point: Sequence[object] = ()) -> None:
        """Keep turns in place of what was kept of each, and how far a transcript was read; all of it or nothing.

        It is on the disk when this returns.
        """

        def work(connection: sqlite3.Connection) -> None:
            for turn in turns:
                key = f"{digest(turn.session)}/{digest(turn.key)}"
                connection.execute("DELETE FROM kept WHERE owner IN (?, ?) AND key = ?", (_WAITING, _TAKEN, key))
                if turn.user or turn.transcript or turn.is_done:
                    row = (_TAKEN if turn.is_done else _WAITING, key, json.dumps(asdict(turn)))
                    connection.execute("INSERT INTO kept VALUES (?, ?, ?)", row)
            if transcript:
                connection.execute("REPLACE INTO kept VALUES (?, ?, ?)", (_POINTS, transcript, json.dumps(point)))

        self._database.run(work, is_synced=True)

    def point(self, transcript: str) -> list[object]:
        """Return how far a transcript was read; none where it never was."""
        return list(json.loads(self._database.kept(_POINTS).get(transcript, "[]")))

    def since(self, host: str, folder: str, now: datetime) -> str:
        """Return since when what is typed into a host in a folder is taken; from now on where that is not known."""

        key, known = f"{host}\n{folder}", self._database.kept(_SINCE)
        if key not in known:
            self._database.keep(_SINCE, key, iso(now))
        return known.get(key, iso(now))

    def began(self, host: str) -> float:
        """Return since when anything that is typed into a host is taken, in seconds since 1970; infinity for never."""
        known = self._database.kept(_SINCE).items()
        return min((parse_iso(at).timestamp() for key, at in known if key.startswith(f"{host}\n")), default=math.inf)

    def end(self, host: str = "", folder: str = "") -> None:
        """Take nothing more of what is said to a host, or in a folder, until `since` is asked again."""
        for key in self._database.kept(_SINCE):
            if key.partition("\n")[0] == host or key.partition("\n")[2] == folder:
                self._database.drop(_SINCE, key)

    def tidy(self, now: datetime) -> None:
        """Drop what no host tells again."""
        sql = "DELETE FROM kept WHERE owner = ? AND json_extract(value, '$.at') < ?"
        self._database.run(lambda one: one.execute(sql, (_TAKEN, iso(now - _KEPT))))


def _heard_at(turn: Turn) -> str:
    """Return when a hook or its transcript told anything of a turn last: an assistant may work for hours."""
    moments = [turn.at, turn.heard]
    with suppress(OSError):
        moments.append(iso(datetime.fromtimestamp(os.stat(turn.transcript).st_mtime, UTC)))
    return max(moments)


def _read(texts: Iterable[str]) -> list[Turn]:
    """Return kept turns; of what another version wrote, as far as it is known."""
    known = {each.name for each in fields(Turn)}
    rows = map(json.loads, texts)
    turns = [Turn(**{name: value for name, value in row.items() if name in known}) for row in rows]
    return sorted(turns, key=lambda turn: (turn.at, turn.seen))
