"""Which prompts have been answered, by which file: queries on the projection and the files of the inbox.

Shared by the bus (what to answer), the Core Loop (where an answer goes) and `status`.
"""

from __future__ import annotations

import json
import os
import posixpath
from dataclasses import dataclass, replace
from operator import itemgetter

from brainiac.clock import parse_iso
from brainiac.errors import FormatError
from brainiac.events import Change, Event, EventUndone, ExchangeEvent, PromptMoved, content_hash, remove
from brainiac.formats.prompt import Prompt, error_path, parse_prompt, parse_response, prompt_path_of, response_path
from brainiac.storage.heartbeat import ended_devices
from brainiac.storage.journal import from_line
from brainiac.storage.store import Store

MOVE_SECONDS = 10.0  # a text that vanished here and appears there within this time has moved


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an answered prompt.

    Attributes:
        prompt: Its path.
        prompt_hash: Content hash of the prompt file as it was answered; None when unknown.
        response: The response's path; None for a captured note.
        response_hash: Content hash of the response as it was left then; None when unknown.
        is_ours: Whether a process wrote the response.
        exchange: Id of the exchange, which is the id of the event that made it known.
    """

    prompt: str
    prompt_id: str
    prompt_sha256: str
    prompt_hash: str | None
    response: str | None
    response_hash: str | None
    is_ours: bool
    exchange: str
    at: str


@dataclass(frozen=True, slots=True)
class Target:
    """Where an answer goes, and what stands there now."""

    path: str
    before: bytes | None


@dataclass(frozen=True, slots=True)
class _Change:
    """A recorded move, removal or undo that concerns a path; the fields are columns of `changes` in the projection."""

    event: str
    position: int
    at: str
    kind: str
    op: str
    path: str
    source: str | None
    after: str | None
    about: str | None
    response: str | None


@dataclass(frozen=True, slots=True)
class _PathHistory:
    """The answers to the prompt at a path, as of some moment.

    Attributes:
        answers: To the prompt that is there, oldest first: to each revision, also those at paths it had before.
        removed: To the prompt that was there last, where its file was removed.
        removed_at: When it was removed, ISO 8601; "" where it was not.
    """

    answers: tuple[Answer, ...] = ()
    removed: tuple[Answer, ...] = ()
    removed_at: str = ""


_Moment = tuple[str, int]  # event and position in it: ids ascend in time, across devices too
_NOW: _Moment = ("~", 0)
_ANSWER = "prompt, prompt_id, sha256, prompt_hash, response, response_hash, is_ours, event, at"


class Answered:
    """Queries on the projection; thread-safe.

    Args:
        store: Whose journals are asked, all devices' of them.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._projection = store, store.projection
        # other devices whose daemons served this very folder and ended: their open exchanges are finished here
        self._devices = [store.journal.device, *ended_devices(store)]
        self.refresh()

    def refresh(self) -> None:
        """Bring the projection up to date with what other processes and other devices recorded."""
        self._projection.follow()

    @property
    def last_exchange_at(self) -> str | None:
        """When something was last said, ISO 8601."""
        rows = self._projection.query("SELECT at FROM exchanges ORDER BY event DESC LIMIT 1")
        return rows[0][0] if rows else None

    def of(self, path: str) -> Answer | None:
        """Return the last answer to the prompt at a path, also where its text was changed since; None for none."""
        answers = self._history(path).answers
        return answers[-1] if answers else None

    def path_of(self, exchange: str) -> str | None:
        """Return the last path of an exchange's prompt, moves included; None for an unknown exchange."""
        rows = self._projection.query(
            "SELECT prompt, prompt_id, event FROM exchanges WHERE prompt_id ="
            " (SELECT prompt_id FROM exchanges WHERE event = ? AND is_kept) ORDER BY event DESC LIMIT 1",
            exchange,
        )
        return self._present_path(*rows[0]) if rows else None

    def exchanges_at(self, path: str) -> list[str]:
        """Return the exchanges of the prompt at a path, revisions too, that were not made private since."""
        answer = self.of(path)
        rows = self._projection.query(
            "SELECT event FROM exchanges WHERE prompt_id = ? AND is_kept"
            " AND event NOT IN (SELECT exchange FROM withdrawals) ORDER BY event",
            answer.prompt_id if answer else "",
        )
        return [exchange for (exchange,) in rows]

    def is_answered(self, prompt: Prompt) -> bool:
        """Return whether a prompt's text was answered: by a journal, or by a response file beside it."""
        answers = self._history(prompt.path).answers
        return any(answer.prompt_sha256 == prompt.sha256 for answer in answers) or self._is_standing(prompt)

    def has_answered_beside(self, path: str) -> bool:
        """Return whether any other prompt in the same folder (which may be the inbox itself) was answered."""
        folder = posixpath.dirname(path)
        # `0` is the character after `/`: this range of an index has exactly the paths below the folder
        rows = self._projection.query(
            "SELECT DISTINCT prompt FROM exchanges WHERE prompt > ?1 || '/' AND prompt < ?1 || '0'"
            " UNION SELECT path FROM changes WHERE source IS NOT NULL AND path > ?1 || '/' AND path < ?1 || '0'",
            folder,
        )
        beside = (other for (other,) in rows if posixpath.dirname(other) == folder and other != path)
        return any(self._history(other).answers for other in beside)

    def is_settled(self, path: str, file_hash: str | None) -> bool:
        """Return whether a prompt file has the content hash with which it was last answered, and its response by it."""
        answer = self.of(path)
        is_unchanged = answer is not None and file_hash is not None and answer.prompt_hash == file_hash
        return is_unchanged and not _is_elsewhere(answer, path)

    def knows_response(self, prompt_path: str, response_hash: str) -> bool:
        """Return whether this response to this prompt was seen before."""
        history = self._history(prompt_path)
        return any(answer.response_hash == response_hash for answer in (*history.removed, *history.answers))

    def moved_from(self, prompt: Prompt) -> Answer | None:
        """Return the answer of a prompt that was moved to its present path and whose response was not.

        Its text was answered at a path where no file is now; or the journal has the move already, without the
        response. None for a prompt that was not moved.
        """
        if (standing := self.of(prompt.path)) is not None:
            return standing if _is_elsewhere(standing, prompt.path) else None
        rows = self._projection.query("SELECT prompt, prompt_id, event FROM exchanges WHERE sha256 = ?", prompt.sha256)
        paths = {self._present_path(*row) for row in rows} | {path for path, _, _ in rows}
        candidates: list[Answer] = []
        for history in map(self._history, paths):
            removed = history.removed if self._is_recent(history.removed_at) else ()
            candidates += [a for a in (history.answers or removed)[-1:] if a.prompt_sha256 == prompt.sha256]
        # a file is looked for at each path where this very text was answered
        absent = [answer for answer in candidates if not os.path.isfile(self._store.tree.absolute(answer.prompt))]
        return max(absent, key=lambda answer: answer.exchange, default=None)

    def previous_version(self, exchange: str) -> str | None:
        """Return the exchange that this one revises; None where it is the first."""
        # ids sort by time: of the same prompt's exchanges the greatest id below this one is the version before
        rows = self._projection.query(
            "SELECT max(event) FROM exchanges WHERE event < ?1"
            " AND prompt_id = (SELECT prompt_id FROM exchanges WHERE event = ?1)",
            exchange,
        )
        return rows[0][0] if rows else None

    def is_undelivered(self, exchange: str) -> bool:
        """Return whether an exchange of this device has no outcome yet: no process handled it after the answer."""
        return bool(self._undelivered_lines("event = ?", exchange))

    def has_outcome(self, exchange: str) -> bool:
        """Return whether a journal has an outcome of an exchange."""
        return bool(self._projection.query("SELECT 1 FROM outcomes WHERE exchange = ? LIMIT 1", exchange))

    def undelivered(self, own_until: str = "~") -> list[Event]:
        """Return the events of exchanges that have no outcome yet and are this device's to note.

        Where the settings name this device, the others note nothing: it notes theirs as soon as their files are here.

        Args:
            own_until: Those of this machine only if answered until then, ISO 8601: another process may be noting it.
        """
        where = "(exchanges.at <= ? OR exchanges.device NOT IN (SELECT value FROM json_each(?)))"
        lines = self._undelivered_lines(where, own_until, json.dumps(self._devices))
        return [from_line(line.encode()) for line in lines]

    def _noted_devices(self) -> list[str]:
        """Return the devices whose exchanges this one notes."""
        if self._store.settings.active_device != self._store.journal.device:
            return self._devices
        return [device for (device,) in self._projection.query("SELECT DISTINCT device FROM exchanges")]

    def _is_here(self, line: str) -> bool:
        """Return whether the files of an exchange are here: another device's journal may arrive before them."""
        exchange = from_line(line.encode()).what
        if not isinstance(exchange, ExchangeEvent):
            return False
        paths = [path for path in (exchange.prompt, exchange.response) if path]
        return all(self._store.tree.absolute(path).is_file() for path in paths)

    def _undelivered_lines(self, where: str, *values: str) -> list[str]:
        """Return the journal lines of exchanges without outcome for which a SQL condition holds."""
        sql = f"""SELECT exchanges.device, line FROM lines JOIN exchanges USING (event)
                  WHERE exchanges.device IN (SELECT value FROM json_each(?)) AND {where} ORDER BY event"""
        lines = self._projection.query(sql, json.dumps(self._noted_devices()), *values)
        return [line for device, line in lines if device in self._devices or self._is_here(line)]

    def response_target(self, prompt: Prompt) -> Target:
        """Return the path for a prompt's answer and the file that is there now.

        The answer to a revision replaces our last answer if that is unchanged. A response that a person wrote or
        edited is kept, and the answer gets the next number.
        """
        answer, number = self.of(prompt.path), 1
        while True:
            path = response_path(prompt.path, number)
            before = self._store.read(path)
            is_last = answer is not None and answer.is_ours and answer.response == path
            if before is None or (is_last and answer and answer.response_hash == content_hash(before)):
                return Target(path, before)
            number += 1

    def error_removal(self, prompt: Prompt) -> list[Change]:
        """Return the change that removes a prompt's error file; an empty list when there is no such file."""
        path = error_path(prompt.path)
        before = self._store.read(path)
        return [] if before is None else [remove(path, before)]

    def fingerprint(self, path: str, raw: bytes) -> str | None:
        """Return the normalized hash of a prompt file's bytes; None when it is no prompt any more."""
        try:
            return parse_prompt(path, raw, at="", inbox=self._store.tree.layout.inbox).sha256
        except FormatError:
            return None

    def _is_standing(self, prompt: Prompt) -> bool:
        """Return whether a response file beside a prompt answers its text, by the hash it names.

        A response that a person wrote names no hash; it counts for a prompt that no journal knows.
        """
        is_known, number = self.of(prompt.path) is not None, 1
        while (raw := self._store.read(path := response_path(prompt.path, number))) is not None:
            try:
                response = parse_response(path, raw)
            except FormatError:
                return not is_known  # broken, but it may be a person's answer: it is not overwritten
            is_by_hand = not response.prompt_sha256 and not is_known and bool(response.text.strip())
            if is_by_hand or response.prompt_sha256 == prompt.sha256:
                return True
            number += 1
        return False

    def _history(self, path: str, until: _Moment = _NOW) -> _PathHistory:
        """Return the answers at a path as they were before some moment, by replaying what happened there."""
        history = _PathHistory()
        for step in self._history_steps(path, until):
            if isinstance(step, Answer):
                history = replace(history, answers=(*history.answers, step))
            elif step.path == path and step.source is not None:  # a prompt moved here
                history = self._with_arrival(history, step)
            elif step.source is not None:  # the prompt moved away
                history = _PathHistory()
            elif step.op == "remove" and history.answers:
                history = _PathHistory((), history.answers, step.at)
            elif step.op != "remove" and not history.answers:  # its removal was undone: the answers before it count
                former = self._history(path, (str(step.about), 0)).answers[-1:]
                history = _PathHistory(former) if former and former[0].prompt_hash == step.after else history
        return history

    def _with_arrival(self, history: _PathHistory, move: _Change) -> _PathHistory:
        """Return a path's history after a prompt moved there, with the answers it had at its former path."""
        former = history if move.source == move.path else self._history(str(move.source), (move.event, move.position))
        answers = former.answers
        if move.kind == PromptMoved.kind:  # the inbox recognized it by its text after the old path was removed
            answers = answers or former.removed
        if not answers:
            return history
        last = replace(answers[-1], prompt=move.path)
        if move.kind == PromptMoved.kind:
            last = replace(last, response=move.response, response_hash=move.after or last.response_hash)
        stayed = () if former is history else history.answers
        return _PathHistory((*stayed, *answers[:-1], last))

    def _history_steps(self, path: str, until: _Moment) -> list[Answer | _Change]:
        """Return the answers and file changes at a path before some moment, oldest first."""
        sql = f"SELECT {_ANSWER} FROM exchanges WHERE prompt = ? AND event <= ?"
        answers = [Answer(*row) for row in self._projection.query(sql, path, until[0])]
        steps: list[tuple[_Moment, Answer | _Change]] = [((answer.exchange, -1), answer) for answer in answers]
        steps += [((change.event, change.position), change) for change in self._changes(path)]
        return [step for moment, step in sorted(steps, key=itemgetter(0)) if moment < until]

    def _changes(self, path: str) -> list[_Change]:
        """Return the moves from and to a path, its removals and undos, oldest first."""
        rows = self._projection.query(
            "SELECT event, position, at, kind, op, path, source, after, about, response FROM changes"
            " WHERE (path = ?1 OR source = ?1) AND (source IS NOT NULL OR op = 'remove' OR kind = ?2)"
            " ORDER BY event, position",
            path,
            EventUndone.kind,
        )
        return [_Change(*row) for row in rows]

    def _present_path(self, path: str, prompt_id: str, since: str) -> str:
        """Return the present path of a prompt that was at a path when the event `since` answered it."""
        is_removed = False
        for change in self._changes(path):
            if change.event <= since:
                continue
            is_this = change.about == prompt_id if change.kind == PromptMoved.kind else not is_removed
            if change.source == path != change.path and is_this:
                return self._present_path(change.path, prompt_id, change.event)
            is_removed = change.op == "remove" or (is_removed and change.op != "create")
        return path

    def _is_recent(self, at: str) -> bool:
        """Return whether a moment is less than `MOVE_SECONDS` ago; False for ""."""
        return bool(at) and (self._store.clock.now() - parse_iso(at)).total_seconds() <= MOVE_SECONDS


def _is_elsewhere(answer: Answer | None, path: str) -> bool:
    """Return whether the response to the prompt at a path is not beside it (it is where the prompt was before)."""
    return answer is not None and answer.response is not None and path not in prompt_path_of(answer.response)
