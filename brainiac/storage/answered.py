"""Which prompts have been answered, by which file: an index over the journals, kept up with every event.

Shared by the bus (what to answer), the Core Loop (where an answer goes) and `status`. It holds nothing that the
journals and the inbox do not.
"""

from __future__ import annotations

import os
import posixpath
import threading
from dataclasses import dataclass, replace

from brainiac.errors import FormatError
from brainiac.events import (
    Change,
    Event,
    EventUndone,
    ExchangeEvent,
    ExchangeMadePrivate,
    OutcomeEvent,
    PromptAnswered,
    PromptMoved,
    RecordedChange,
    content_hash,
    kinds_of,
    remove,
)
from brainiac.formats.prompt import Prompt, error_path, parse_prompt, parse_response, prompt_path_of, response_path
from brainiac.storage.heartbeat import left_by
from brainiac.storage.store import Store

EXCHANGES = kinds_of(ExchangeEvent)

OUTCOMES = kinds_of(OutcomeEvent)

MOVE_SECONDS = 10.0  # a text that vanished here and appears there within this time has moved


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an answered prompt.

    Attributes:
        prompt: Its path.
        prompt_hash: Content hash of the prompt file as it was answered; None when unknown.
        response: The response's path; None for a captured note.
        response_hash: Content hash of the response as we left it; None when a person wrote it.
        exchange: Id of the exchange, which is the id of the event that made it known.
        supersedes: Id of the exchange that this one revises.
    """

    prompt: str
    prompt_id: str
    prompt_sha256: str
    prompt_hash: str | None
    response: str | None
    response_hash: str | None
    exchange: str
    at: str
    supersedes: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where an answer goes, and what stands there now."""

    path: str
    before: bytes | None


class Answered:
    """The index; thread-safe.

    Args:
        store: Whose journals are read, all devices' of them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mutex = threading.RLock()
        self._by_path: dict[str, Answer] = {}
        self._by_sha: dict[str, set[str]] = {}  # normalized prompt hash: paths that were answered with it
        self._taken_out: dict[str, Answer] = {}  # by a process, as when it is forgotten
        self._answered: dict[str, set[str]] = {}  # path: normalized hashes of its text, former revisions too
        self._responses: dict[str, set[str]] = {}  # prompt path: content hashes of responses that were told of
        self._gone: dict[str, tuple[Answer, float]] = {}  # prompts deleted a moment ago, by path
        # exchanges that nothing followed from yet, by id: this device's, and those of whom it serves this folder for
        self._undelivered: dict[str, Event] = {}
        self._superseded: dict[str, str] = {}  # of these, the exchange that they revise
        self._followed: set[str] = set()  # exchanges that an outcome stands for
        self._prompts: dict[str, str] = {}  # exchange, revisions too: id of its prompt
        self._places: dict[str, str] = {}  # id of a prompt: where it stands
        self._withdrawn: set[str] = set()  # exchanges that were made private later
        self._seq = 0  # every own event up to this one was taken in,
        self._ahead: set[int] = set()  # and these beyond it: threads tell of their events out of order
        self.last_exchange_at: str | None = None
        left = left_by(store)
        for device, event in store.journal.foreign_events():
            self._take(event, is_own=device in left)
        self.refresh()
        self._gone.clear()
        store.on_event(self.note)

    def note(self, event: Event) -> None:
        """Take in an event that was just recorded."""
        with self._mutex:
            self._take_own(event)

    def refresh(self) -> None:
        """Take in what other processes of this device recorded; they hand out their exchanges themselves."""
        with self._mutex:
            last = self._seq
            for event in self._store.journal.events(since_seq=last):
                self._take_own(event)
                last = event.seq
            # all up to here was read: what is missing is lost, and must not be looked for each time
            self._seq, self._ahead = max(self._seq, last), {seq for seq in self._ahead if seq > last}

    def of(self, path: str) -> Answer | None:
        """Return what is known of the prompt at a path, whatever its text is by now."""
        with self._mutex:
            return self._by_path.get(path)

    def place_of(self, exchange: str) -> str | None:
        """Return where the prompt of an exchange stood last, moves followed; None for one that is not known."""
        with self._mutex:
            return self._places.get(self._prompts.get(exchange, ""))

    def exchanges_at(self, path: str) -> list[str]:
        """Return the exchanges of the prompt at a path, revisions too, that were not made private since."""
        with self._mutex:
            answer = self._by_path.get(path)
            found = [each for each, prompt in self._prompts.items() if answer and prompt == answer.prompt_id]
            return [each for each in found if each not in self._withdrawn]

    def is_answered(self, prompt: Prompt) -> bool:
        """Tell whether this text at this place was answered: a journal says so, or a response stands beside it."""
        with self._mutex:
            if prompt.sha256 in self._answered.get(prompt.path, ()):
                return True
        return self._is_standing(prompt)

    def has_answered_beside(self, path: str) -> bool:
        """Return whether any prompt of the same folder was answered: the top level of the inbox is one of them."""
        folder = posixpath.dirname(path)
        with self._mutex:
            return any(posixpath.dirname(other) == folder for other in self._by_path if other != path)

    def is_unchanged(self, path: str, file_hash: str | None) -> bool:
        """Tell from a content hash alone, without reading, that a prompt file is as it was answered."""
        with self._mutex:
            answer = self._by_path.get(path)
        return answer is not None and file_hash is not None and answer.prompt_hash == file_hash

    def knows_response(self, prompt_path: str, response_hash: str) -> bool:
        """Tell whether this response to this prompt has been told of."""
        with self._mutex:
            return response_hash in self._responses.get(prompt_path, ())

    def moved_from(self, prompt: Prompt) -> Answer | None:
        """Return the answer of a prompt that moved here: its text was answered where it is gone now.

        Or it is known here already, by the journal of a move, and its response was not moved along yet.
        """
        now = self._store.clock.monotonic()
        with self._mutex:
            known = self._by_path.get(prompt.path)
            if known is not None:
                return known if self.is_parted(prompt.path) else None
            paths = list(self._by_sha.get(prompt.sha256, ()))
            fresh = [a for a, since in self._gone.values() if now - since <= MOVE_SECONDS]
            candidates = [self._by_path[path] for path in paths if path in self._by_path]
        candidates += [answer for answer in fresh if answer.prompt_sha256 == prompt.sha256]
        # as many files are looked at as were ever answered with these very words
        absent = [a for a in candidates if not os.path.isfile(self._store.tree.absolute(a.prompt))]
        return max(absent, key=lambda a: a.exchange, default=None)

    def is_parted(self, path: str) -> bool:
        """Tell whether the response of the prompt at a path lies where the prompt does not."""
        with self._mutex:
            answer = self._by_path.get(path)
        return answer is not None and answer.response is not None and path not in prompt_path_of(answer.response)

    def superseded_by(self, exchange: str) -> str | None:
        """Return the exchange that one not yet delivered revises."""
        with self._mutex:
            return self._superseded.get(exchange)

    def forget(self, path: str) -> None:
        """Take in that a prompt was deleted: its name may serve again, and the same question asked anew is new."""
        with self._mutex:
            self._forget(path)

    def is_undelivered(self, exchange: str) -> bool:
        """Tell whether nothing followed from an exchange of this device yet."""
        with self._mutex:
            return exchange in self._undelivered

    def has_outcome(self, exchange: str) -> bool:
        """Return whether it stands in a journal what followed from an exchange."""
        with self._mutex:
            return exchange in self._followed

    def undelivered(self) -> list[Event]:
        """Return this device's exchanges that nothing followed from yet."""
        with self._mutex:
            return list(self._undelivered.values())

    def response_target(self, prompt: Prompt) -> Target:
        """Return where a prompt's answer goes and what stands there now.

        Our own last answer, untouched, is replaced by that of a revision; what a person wrote or edited is kept,
        and the answer takes the next number.
        """
        answer, number = self.of(prompt.path), 1
        while True:
            path = response_path(prompt.path, number)
            before = self._store.read(path)
            is_last = answer is not None and answer.response == path
            if before is None or (is_last and answer and answer.response_hash == content_hash(before)):
                return Target(path, before)
            number += 1

    def error_of(self, prompt: Prompt) -> list[Change]:
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
        """Tell whether a response file beside a prompt answers its text; one saved by hand names no text."""
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

    def _take_own(self, event: Event) -> None:
        if event.seq <= self._seq or event.seq in self._ahead:
            return
        self._ahead.add(event.seq)
        while self._seq + 1 in self._ahead:
            self._seq += 1
            self._ahead.discard(self._seq)
        self._take(event, is_own=True)

    def _take(self, event: Event, *, is_own: bool) -> None:
        if event.kind in EXCHANGES:
            self._take_exchange(event, is_own=is_own)
        elif event.kind == ExchangeMadePrivate.kind:
            self._withdrawn.update(map(str, event.data.get("exchanges", ())))
            self._take_changes(event)
        elif event.kind == PromptMoved.kind:
            self._rename(str(event.data["moved_from"]), str(event.data["prompt"]), event)
        else:
            self._take_changes(event)
        if event.kind in OUTCOMES:
            self._followed.add(str(event.data.get("exchange")))
            self._undelivered.pop(str(event.data.get("exchange")), None)
            self._superseded.pop(str(event.data.get("exchange")), None)

    def _take_exchange(self, event: Event, *, is_own: bool) -> None:
        data = event.data
        path, former = str(data["prompt"]), self._by_path.get(str(data["prompt"]))
        written = {change.path: change.after for change in event.changes}
        response, is_ours = data.get("response"), event.kind == PromptAnswered.kind
        answer = Answer(
            prompt=path,
            prompt_id=str(data["prompt_id"]),
            prompt_sha256=str(data["prompt_sha256"]),
            prompt_hash=written.get(path) or data.get("prompt_hash"),
            response=response,
            response_hash=(written.get(str(response)) or data.get("response_hash")) if is_ours else None,
            exchange=event.id,
            at=event.at,
            supersedes=former.exchange if former and former.prompt_id == data["prompt_id"] else None,
        )
        if path in written:  # off the record nothing is kept of it that could be taken back
            self._prompts[event.id] = answer.prompt_id
        if former is None or former.exchange < event.id:  # ids ascend in time, across devices too
            self._put(answer)
        self._answered.setdefault(path, set()).add(answer.prompt_sha256)
        if seen := answer.response_hash or data.get("response_hash"):
            self._responses.setdefault(path, set()).add(str(seen))
        if self.last_exchange_at is None or self.last_exchange_at < event.at:
            self.last_exchange_at = event.at
        if is_own and event.id not in self._followed:
            self._undelivered[event.id] = event
            if answer.supersedes:
                self._superseded[event.id] = answer.supersedes

    def _take_changes(self, event: Event) -> None:
        for change in event.changes:
            if change.op == "remove":
                if event.by != "person" and change.path in self._by_path:
                    self._taken_out[change.path] = self._by_path[change.path]
                self._forget(change.path, event.id)
            elif event.kind == EventUndone.kind and change.op == "create":
                self._bring_back(change)
            elif change.op == "move" and change.source:
                self._rename(change.source, change.path, event)

    def _bring_back(self, change: RecordedChange) -> None:
        """Know a prompt again whose forgetting was undone: it was dealt with before."""
        answer = self._taken_out.pop(change.path, None)
        if answer is not None and answer.prompt_hash == change.after and change.path not in self._by_path:
            self._put(answer)
            self._answered.setdefault(change.path, set()).add(answer.prompt_sha256)

    def _put(self, answer: Answer) -> None:
        self._by_path[answer.prompt] = answer
        self._places[answer.prompt_id] = answer.prompt
        self._by_sha.setdefault(answer.prompt_sha256, set()).add(answer.prompt)

    def _forget(self, path: str, by: str | None = None) -> None:
        answer = self._by_path.get(path)
        if answer is None or (by is not None and by < answer.exchange):
            return  # an event that is heard of late must not undo what came after it
        del self._by_path[path]
        self._by_sha.get(answer.prompt_sha256, set()).discard(path)
        self._answered.pop(path, None)
        now = self._store.clock.monotonic()
        self._gone = {p: gone for p, gone in self._gone.items() if now - gone[1] <= MOVE_SECONDS}
        self._gone[path] = answer, now

    def _rename(self, source: str, path: str, event: Event) -> None:
        answer = self._by_path.get(source) or self._gone.get(source, (None,))[0]
        if answer is None or event.id < answer.exchange:
            return
        self._by_path.pop(source, None)
        self._gone.pop(source, None)
        self._by_sha.get(answer.prompt_sha256, set()).discard(source)
        response = event.data.get("response", answer.response)
        left = next((change.after for change in event.changes if change.path == response), answer.response_hash)
        self._put(replace(answer, prompt=path, response=response, response_hash=left))
        texts, told = self._answered.pop(source, set()), self._responses.pop(source, set())
        self._answered.setdefault(path, set()).update(texts, {answer.prompt_sha256})
        self._responses.setdefault(path, set()).update(told, {left} if left else ())
