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
from brainiac.events import Change, Event, EventUndone, PromptMoved, content_hash, remove
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
    """What became of a file at a path: it moved there or away, went, or came back."""

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
class _Place:
    """What is known of a path as of some moment.

    Attributes:
        answers: To what stands there, oldest first: of its revisions, and of those it had where it stood before.
        gone: Those to what stood there last, where that went.
        gone_at: When it went, ISO 8601.
    """

    answers: tuple[Answer, ...] = ()
    gone: tuple[Answer, ...] = ()
    gone_at: str = ""


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
        # whose daemon served this very folder and ended: what it left undone is this device's to do
        self._devices = json.dumps([store.journal.device, *ended_devices(store)])
        self.refresh()

    def refresh(self) -> None:
        """Take in what other processes of this device recorded (they hand out their exchanges themselves), and what
        other devices did."""
        self._projection.follow()

    @property
    def last_exchange_at(self) -> str | None:
        """When something was last said, ISO 8601."""
        rows = self._projection.query("SELECT at FROM exchanges ORDER BY event DESC LIMIT 1")
        return rows[0][0] if rows else None

    def of(self, path: str) -> Answer | None:
        """Return what is known of the prompt at a path, whatever its text is by now."""
        answers = self._place(path).answers
        return answers[-1] if answers else None

    def place_of(self, exchange: str) -> str | None:
        """Return where the prompt of an exchange stood last, moves followed; None for one that is not known."""
        rows = self._projection.query(
            "SELECT prompt, prompt_id, event FROM exchanges WHERE prompt_id ="
            " (SELECT prompt_id FROM exchanges WHERE event = ? AND is_kept) ORDER BY event DESC LIMIT 1",
            exchange,
        )
        return self._moved_on(*rows[0]) if rows else None

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
        """Return whether this text at this place was answered: a journal says so, or a response stands beside it."""
        answers = self._place(prompt.path).answers
        return any(answer.prompt_sha256 == prompt.sha256 for answer in answers) or self._is_standing(prompt)

    def has_answered_beside(self, path: str) -> bool:
        """Return whether any prompt of the same folder was answered: the top level of the inbox is one of them."""
        folder = posixpath.dirname(path)
        rows = self._projection.query(
            "SELECT DISTINCT prompt FROM exchanges WHERE prompt > ?1 || '/' AND prompt < ?1 || '0'"
            " UNION SELECT path FROM changes WHERE source IS NOT NULL AND path > ?1 || '/' AND path < ?1 || '0'",
            folder,
        )
        beside = (other for (other,) in rows if posixpath.dirname(other) == folder and other != path)
        return any(self._place(other).answers for other in beside)

    def is_unchanged(self, path: str, file_hash: str | None) -> bool:
        """Return whether a prompt file is as it was answered, by a content hash alone, without reading."""
        answers = self._place(path).answers
        return bool(answers) and file_hash is not None and answers[-1].prompt_hash == file_hash

    def knows_response(self, prompt_path: str, response_hash: str) -> bool:
        """Return whether this response to this prompt was seen before."""
        place = self._place(prompt_path)
        return any(answer.response_hash == response_hash for answer in (*place.gone, *place.answers))

    def moved_from(self, prompt: Prompt) -> Answer | None:
        """Return the answer of a prompt that moved here: its text was answered where it is gone now.

        Or it is known here already, by the journal of a move, and its response was not moved along yet.
        """
        if (standing := self.of(prompt.path)) is not None:
            return standing if self.is_response_elsewhere(prompt.path) else None
        rows = self._projection.query("SELECT prompt, prompt_id, event FROM exchanges WHERE sha256 = ?", prompt.sha256)
        paths = {self._moved_on(*row) for row in rows} | {path for path, _, _ in rows}
        candidates = [
            answer
            for place in map(self._place, paths)
            for answer in (place.answers or (place.gone if self._is_fresh(place.gone_at) else ()))[-1:]
            if answer.prompt_sha256 == prompt.sha256
        ]
        # as many files are looked at as were ever answered with these very words
        absent = [answer for answer in candidates if not os.path.isfile(self._store.tree.absolute(answer.prompt))]
        return max(absent, key=lambda answer: answer.exchange, default=None)

    def is_response_elsewhere(self, path: str) -> bool:
        """Return whether the response of the prompt at a path lies where the prompt does not."""
        answer = self.of(path)
        return answer is not None and answer.response is not None and path not in prompt_path_of(answer.response)

    def superseded_by(self, exchange: str) -> str | None:
        """Return the exchange that one revises."""
        rows = self._projection.query(
            "SELECT max(event) FROM exchanges WHERE event < ?1"
            " AND prompt_id = (SELECT prompt_id FROM exchanges WHERE event = ?1)",
            exchange,
        )
        return rows[0][0] if rows else None

    def is_undelivered(self, exchange: str) -> bool:
        """Return whether nothing followed from an exchange of this device yet."""
        return bool(self._open("event = ?", exchange))

    def has_outcome(self, exchange: str) -> bool:
        """Return whether it stands in a journal what followed from an exchange."""
        return bool(self._projection.query("SELECT 1 FROM outcomes WHERE exchange = ? LIMIT 1", exchange))

    def undelivered(self) -> list[Event]:
        """Return this device's exchanges that nothing followed from yet."""
        return [from_line(line.encode()) for line in self._open("1 = 1")]

    def _open(self, where: str, *values: str) -> list[str]:
        """Return the journal lines of exchanges of ours that nothing followed from."""
        sql = f"""SELECT line FROM lines JOIN exchanges USING (event)
                  WHERE exchanges.device IN (SELECT value FROM json_each(?)) AND {where} ORDER BY event"""
        return [line for (line,) in self._projection.query(sql, self._devices, *values)]

    def response_target(self, prompt: Prompt) -> Target:
        """Return where a prompt's answer goes and what stands there now.

        Our own last answer, untouched, is replaced by that of a revision; what a person wrote or edited is kept,
        and the answer takes the next number.
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
        """Return the change that removes the error file of a prompt; none when there is no such file."""
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
        """Return whether a response file beside a prompt answers its text; one saved by hand names no text."""
        is_known, number = self.of(prompt.path) is not None, 1
        while (raw := self._store.read(path := response_path(prompt.path, number))) is not None:
            try:
                response = parse_response(path, raw)
            except FormatError:
                return not is_known  # somebody's, if broken: not to be written over
            is_by_hand = not response.prompt_sha256 and not is_known and bool(response.text.strip())
            if is_by_hand or response.prompt_sha256 == prompt.sha256:
                return True
            number += 1
        return False

    def _place(self, path: str, until: _Moment = _NOW) -> _Place:
        """Return what is known of a path before some moment."""
        place = _Place()
        for step in self._steps(path, until):
            if isinstance(step, Answer):
                place = replace(place, answers=(*place.answers, step))
            elif step.path == path and step.source is not None:
                place = self._with_arrival(place, step)
            elif step.source is not None:
                place = _Place()
            elif step.op == "remove":
                place = _Place((), place.answers or place.gone, step.at if place.answers else place.gone_at)
            elif not place.answers:  # its going was undone: it was dealt with before
                former = self._place(path, (str(step.about), 0)).answers[-1:]
                place = _Place(former) if former and former[0].prompt_hash == step.after else place
        return place

    def _with_arrival(self, place: _Place, move: _Change) -> _Place:
        """Return what is known of a path that something moved to, with what was known of that where it was."""
        former = place if move.source == move.path else self._place(str(move.source), (move.event, move.position))
        answers = former.answers
        if move.kind == PromptMoved.kind:  # the inbox tells it from the text, and it may have gone before
            answers = answers or former.gone
        if not answers:
            return place
        last = replace(answers[-1], prompt=move.path)
        if move.kind == PromptMoved.kind:
            last = replace(last, response=move.response, response_hash=move.after or last.response_hash)
        stayed = () if former is place else place.answers
        return _Place((*stayed, *answers[:-1], last))

    def _steps(self, path: str, until: _Moment) -> list[Answer | _Change]:
        """Return what happened at a path, oldest first."""
        sql = f"SELECT {_ANSWER} FROM exchanges WHERE prompt = ? AND event <= ?"
        answers = [Answer(*row) for row in self._projection.query(sql, path, until[0])]
        steps: list[tuple[_Moment, Answer | _Change]] = [((answer.exchange, -1), answer) for answer in answers]
        steps += [((change.event, change.position), change) for change in self._changes(path)]
        return [step for moment, step in sorted(steps, key=itemgetter(0)) if moment < until]

    def _changes(self, path: str) -> list[_Change]:
        rows = self._projection.query(
            "SELECT event, position, at, kind, op, path, source, after, about, response FROM changes"
            " WHERE (path = ?1 OR source = ?1) AND (source IS NOT NULL OR op = 'remove' OR kind = ?2)"
            " ORDER BY event, position",
            path,
            EventUndone.kind,
        )
        return [_Change(*row) for row in rows]

    def _moved_on(self, path: str, prompt_id: str, since: str) -> str:
        """Return where a prompt is that was answered at a path by some event."""
        is_gone = False
        for change in self._changes(path):
            if change.event <= since:
                continue
            is_this = change.about == prompt_id if change.kind == PromptMoved.kind else not is_gone
            if change.source == path != change.path and is_this:
                return self._moved_on(change.path, prompt_id, change.event)
            is_gone = change.op == "remove" or (is_gone and change.op != "create")
        return path

    def _is_fresh(self, at: str) -> bool:
        return bool(at) and (self._store.clock.now() - parse_iso(at)).total_seconds() <= MOVE_SECONDS
