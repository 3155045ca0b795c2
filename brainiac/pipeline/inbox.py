"""Processes a finished file of the inbox: a prompt is answered, a note captured, a response recorded, or refused."""

from __future__ import annotations

import posixpath
import random
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from brainiac import errors, events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.formats import prompt as prompts
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.history.copies import is_marked
from brainiac.imports.dropped import is_taken_in, take_in
from brainiac.library import read_prompt
from brainiac.text.tokens import as_sentence
from brainiac.tree import FILE_ENDINGS, is_printable, is_too_long

FREE_MODEL = "offline"
BY = "kernel"
MAX_RETRY_SECONDS = 300.0
MAX_STORAGE_SECONDS = 15.0  # short, since a person who has made room on the disk expects an answer soon
CONFLICT_SECONDS = 0.05
RESTED_SECONDS = 2.0  # before a file that is being copied is looked at again
WITHDRAW_SECONDS = 5.0  # after this a running promotion may have ended
OFF_RECORD_REASON = "off the record: why is not kept"


@dataclass(frozen=True, slots=True)
class Backlog:
    """The files of the inbox that are still to be processed, by relative path.

    Attributes:
        unanswered: Prompts to answer, notes to capture, and files that cannot be parsed.
        changed: Answered prompts that were moved and whose responses were not, or that became private or off the record
            after they were answered.
        problems: What is wrong with those of the unanswered that cannot be processed as they are, by path.
    """

    unanswered: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def find_backlog(brain: Brain, paths: Iterable[str]) -> Backlog:
    """Return which files are still to be processed; only those that changed since their answer are read."""
    backlog = Backlog()
    for path in paths:
        # by hashes known already: a start with ten thousand answered prompts reads none of them
        if brain.tree.kind_of(path) not in events.TO_ANSWER or brain.answered.is_settled(
            path, brain.observed.hash_of(path)
        ):
            continue
        try:
            with errors.storage_trouble():
                prompt = read_prompt(brain, path)
                if prompt is None:
                    continue
                is_moved = brain.answered.moved_from(prompt) is not None
                if not is_moved and not brain.answered.is_answered(prompt):
                    backlog.unanswered.append(path)
                # marked while no daemon ran: what was remembered of it is withdrawn now
                elif is_moved or prompt.private or not prompt.remember:
                    backlog.changed.append(path)
        except (errors.UserError, errors.StorageError) as error:  # of this path alone: all others are processed
            backlog.unanswered.append(path)
            backlog.problems[path] = problem_of(error)
    return backlog


def problem_of(error: errors.UserError | errors.StorageError) -> str:
    """Return what is wrong with a file, and what to do, as one line."""
    return error.problem if isinstance(error, errors.FormatError | errors.StorageError) else str(error)


def untaken_files(brain: Brain, paths: Iterable[str]) -> list[str]:
    """Return which of the paths are PDFs, photos and recordings of the inbox without a page."""
    kind_of = brain.tree.kind_of
    return [path for path in paths if kind_of(path) is events.PathKind.FILE and not is_taken_in(brain, path)]


def is_free(brain: Brain) -> bool:
    """Return whether answering costs nothing: the offline engine serves both purposes of an answer."""
    llm = brain.settings.llm
    return all(llm.models.get(purpose, llm.model) == FREE_MODEL for purpose in ("queries", "answer"))


# --- processing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pending:
    """A prompt that waits to be answered, for `status`.

    Attributes:
        prompt: Its path, relative.
        reason: Why it waits, in words for a person.
        attempts: How often it was tried.
        retry_at: ISO 8601 UTC of the next attempt; None when something must change first.
        is_held: It belongs to a backlog that is answered only when a person says so.
        is_for_device: It waits until this device runs the processes.
    """

    prompt: str
    reason: str
    attempts: int = 0
    retry_at: str | None = None
    is_held: bool = False
    is_for_device: bool = False


class Inbox:
    """Processes prompts, notes and responses; those of one conversation in one thread at a time.

    Args:
        brain: The brain.
        ask_later: Called with (path, seconds) to process a prompt once more after that time.
    """

    def __init__(self, brain: Brain, ask_later: Callable[[str, float], None]) -> None:
        self._brain, self._ask_later = brain, ask_later
        self._mutex = threading.Lock()
        self._pending: dict[str, Pending] = {}  # by path
        # by path, of prompts not yet answered: a retry must be the same prompt, or its cost would be booked on an id
        # that no answer names
        self._ids: dict[str, str] = {}

    @property
    def pending(self) -> list[Pending]:
        """The prompts that wait and why."""
        with self._mutex:
            return list(self._pending.values())

    def hold(self, pending: Pending) -> None:
        """Let a prompt wait until its file, its error file or the settings change, or it is tried again."""
        with self._mutex:
            self._pending[pending.prompt] = pending
        self._brain.log.info("prompt_waits", prompt=pending.prompt, reason=pending.reason, retry_at=pending.retry_at)

    def take(self, path: str) -> None:
        """Process the prompt, note, response or other file at a path; where the disk fails, try again later.

        Whatever else is wrong with this path is its reason to wait, which `status` shows.
        """
        try:
            with errors.storage_trouble():
                self._process(path)
        except errors.StorageError as error:
            self._retry_later(path, error.problem, max_seconds=MAX_STORAGE_SECONDS)
        except errors.UserError as error:
            self.hold(Pending(path, problem_of(error)))

    def _process(self, path: str) -> None:
        """Answer a prompt, capture a note, or take in a file; write an error file where it cannot be parsed.

        One that has git's conflict markers, or that another device answers, waits.
        """
        try:
            kind = self._brain.tree.kind_of(path)
            if kind is events.PathKind.RESPONSE:
                self._take_response(path)
                self._clear(path)
            elif kind not in events.TO_ANSWER:
                self._take_file(path)
            elif is_marked(self._brain, path):
                self.hold(Pending(path, "holds conflict markers of git; both versions are merged first"))
            elif prompt := read_prompt(self._brain, path):
                self._process_prompt(prompt)
            else:
                self._clear(path)
        except errors.FormatError as error:
            self._refuse(path, "This file could not be read as a prompt.", error.problem, "Mend it and save it again.")
        except errors.ConflictError:
            self._ask_later(path, CONFLICT_SECONDS)

    def _process_prompt(self, prompt: prompts.Prompt) -> None:
        """Answer a prompt or capture a note if that was not done yet, and make memory private where the prompt is now.

        Raises:
            ConflictError: A file changed meanwhile.
        """
        self._move_response_along(prompt)
        is_answered = self._brain.answered.is_answered(prompt)
        # before it is answered: what is private now must leave memory even if the answer fails
        if prompt.private or not prompt.remember:
            self._withdraw_private(prompt)
        if is_answered:
            self._clear(prompt.path)
        elif not self._brain.answers_here(prompt):
            reason = f"{prompt.device} answers it" if prompt.device else self._brain.waits_for
            self.hold(Pending(prompt.path, reason, is_for_device=True))
        elif prompt.is_capture or not prompt.answer:
            if prompt.remember:  # off the record not even that is recorded
                self._record_exchange(events.NoteCaptured, prompt)
            self._clear(prompt.path)
        else:
            self._ask(prompt)
        # what it says is about the file that has its name, with another ending
        stem = posixpath.splitext(prompt.path)[0]
        for path in (stem, *(f"{stem}{ending}" for ending in FILE_ENDINGS)):
            # asked in this order, or the kinds of two dozen names that are not there would be kept for each prompt
            if self._brain.tree.absolute(path).is_file() and self._brain.tree.kind_of(path) is events.PathKind.FILE:
                self._take_file(path)

    def _take_response(self, path: str) -> None:
        """Record a response that a person or another program wrote beside its prompt, unless that was done before.

        If the prompt was moved, its former response is moved along; if the response is private, what memory has of
        the exchange is made private too.
        """
        try:
            # `q.txt.response.md` may answer `q.txt` or `q.txt.md`: it answers the one that exists
            found = (read_prompt(self._brain, prompt_path) for prompt_path in prompts.prompt_path_of(path))
            prompt = next((prompt for prompt in found if prompt is not None), None)
            raw = self._brain.read(path)
            if prompt is None or raw is None:
                return
            response = prompts.parse_response(path, raw)
        except errors.FormatError as error:
            self._brain.log.warning("response_unreadable", path=path, problem=str(error))
            return
        self._move_response_along(prompt)
        if response.private:
            self._withdraw_private(prompt)
        if not self._brain.is_active or not response.text.strip():
            return
        answered, response_hash = self._brain.answered, events.content_hash(raw)
        answered.refresh()  # another process of this machine may have answered
        answer = answered.of(prompt.path)
        is_of_other_prompt = response.prompt_id and (answer is None or answer.prompt_id != response.prompt_id)
        is_of_other_text = response.prompt_sha256 and response.prompt_sha256 != prompt.sha256
        if not (is_of_other_prompt or is_of_other_text or answered.knows_response(prompt.path, response_hash)):
            self._record_exchange(events.ResponseArrived, prompt, response=path, response_hash=response_hash)

    def _withdraw_private(self, prompt: prompts.Prompt) -> None:
        """Make private what memory has of a prompt that became private, or take it out if it is off the record now.

        While promotion may be reading it that has to wait, and is tried again.
        """
        from brainiac.history.private import withdraw_private  # most prompts never need it

        if self._brain.is_active and not withdraw_private(self._brain, prompt):
            self._ask_later(prompt.path, WITHDRAW_SECONDS)

    def _move_response_along(self, prompt: prompts.Prompt) -> None:
        """If an answered prompt was moved, move its response beside it, and record where the prompt is now."""
        former = self._brain.answered.moved_from(prompt)
        if former is None:
            return
        target, changes = prompts.response_path(prompt.path), list[events.Change]()
        raw = self._brain.read(former.response) if former.response else None
        # else it is a captured note, or the person moved the response too, or deleted it
        if former.response and raw is not None and self._brain.read(target) is None:
            text = raw.decode("utf-8", "surrogateescape")
            with suppress(errors.FormatError):  # a person has broken its front matter: it moves as it is
                text = edit_meta(text, in_reply_to=posixpath.basename(prompt.path))
            changes = [events.move(former.response, target, raw, text)]
        event = events.PromptMoved(
            prompt=prompt.path,
            prompt_id=former.prompt_id,
            prompt_sha256=former.prompt_sha256,
            response=target if former.response else None,
            moved_from=former.prompt,
        )
        self._brain.commit(event, by=BY, changes=changes)

    def _record_exchange(self, kind: type[events.ExchangeEvent], prompt: prompts.Prompt, **response: str) -> None:
        """Record a note, or a response that no plugin wrote; the event leads to the hook `response_arrived`."""
        raw, values = self._brain.read(prompt.path), dict[str, Any](response=None) | response
        if raw is None:
            return
        changes = [events.observe(prompt.path, raw)] if prompt.remember else []
        values |= {"prompt_id": self._id_of(prompt.path), "prompt_sha256": prompt.sha256}
        exchange = kind(prompt=prompt.path, origin=prompt.origin, author=prompt.by, **values)
        self._brain.commit(exchange, by=BY, changes=changes)

    def _ask(self, prompt: prompts.Prompt) -> None:
        """Call the hook `prompt_arrived`, whose plugin answers; let the prompt wait where none did.

        Where the provider is down or limits us it is tried again later; any other model error leaves an error file.
        Nothing else answers in the model's stead: `status` says why the prompt waits.
        """
        prompt = replace(prompt, id=self._id_of(prompt.path))
        try:
            self._brain.plugins.call("prompt_arrived", brain=self._brain, prompt=prompt)
        except errors.ModelError as error:
            if error.retryable:
                reason, seconds = error.problem if prompt.remember else OFF_RECORD_REASON, error.retry_after_seconds
                self._retry_later(prompt.path, reason, min_seconds=seconds or 0.0, max_seconds=MAX_RETRY_SECONDS)
            else:
                todo = error.advice or "Change `llm` in system/config.yaml, or save the prompt again."
                self._refuse(prompt.path, "This prompt was not answered.", error.problem, todo)
            return
        if self._brain.answered.is_answered(prompt):
            self._clear(prompt.path)
            return
        raw = self._brain.read(prompt.path)
        # else its next save is processed
        if raw is not None and self._brain.answered.fingerprint(prompt.path, raw) == prompt.sha256:
            self.hold(Pending(prompt.path, "no plugin answered it; see `brainiac plugins` and `brainiac log`"))

    def _id_of(self, path: str) -> str:
        """Return the id of the prompt at a path: that of its earlier answers, else a new one, kept for retries."""
        answer = self._brain.answered.of(path)
        if answer is not None:
            return answer.prompt_id
        with self._mutex:
            return self._ids.setdefault(path, events.new_id())

    def _retry_later(self, path: str, reason: str, *, min_seconds: float = 0.0, max_seconds: float) -> None:
        """Let a prompt wait and process it again later; the wait doubles with each attempt up to `max_seconds`.

        A provider's `min_seconds` are waited in any case.
        """
        with self._mutex:
            former = self._pending.get(path)
        attempts = (former.attempts if former else 0) + 1
        # jitter, so that a hundred waiting prompts do not all come back in the same second
        seconds = min(max_seconds, 2.0 ** min(attempts - 1, 10)) * random.uniform(1.0, 1.25)
        seconds = max(seconds, min_seconds)
        retry_at = iso(self._brain.clock.now() + timedelta(seconds=seconds))
        self.hold(Pending(path, reason, attempts, retry_at))
        self._ask_later(path, seconds)

    def _refuse(self, path: str, what: str, why: str, todo: str) -> None:
        """Let a prompt wait, and write an error file beside it; the prompt stays as it is."""
        is_kept = True
        with suppress(OSError):  # of a prompt that cannot be read no reason can quote anything
            is_kept = not prompts.is_off_record(self._brain.read(path))
        reason = why if is_kept else OFF_RECORD_REASON  # `why` may quote the prompt
        self.hold(Pending(path, reason))
        self._write_error(path, what, why, todo, reason=reason, is_kept=is_kept)

    def _take_file(self, path: str) -> None:
        """Take in a PDF, a photo or a recording; write an error file beside what cannot be, or is of another type."""
        if not self._brain.is_active or not is_printable(path):
            return  # beside such a name no file can be written; `status` names it
        if not self._brain.tree.absolute(path).is_file():
            self._clear(path)
            return
        if self._brain.tree.kind_of(path) is not events.PathKind.FILE:
            ending = posixpath.splitext(path)[1] or posixpath.basename(path)
            why = f"`{ending}` is no text: .md, .markdown and .txt are read; PDFs, photos and recordings are taken in."
            todo = (
                "Save it as a PDF, or its text as one of these. `brainiac import FILE` takes mail and exports of chat "
                "programs. This file stays as it is, and may be deleted with the other."
            )
            self._write_error(path, "This file is not read.", why, todo, reason="files of this type are not read")
            return
        try:
            outcome = take_in(self._brain, path)
        except errors.FormatError as error:  # it is still being copied, or what is written about it cannot be read yet
            self._brain.log.info("file_waits", path=path, reason=error.problem)
            self._ask_later(path, RESTED_SECONDS)
            return
        if outcome.path:
            self._clear(path)
            return
        todo = "Save it anew, or put its text into a note here. It stays as it is; `brainiac import FILE` tries it too."
        why = as_sentence(f"It {outcome.reason}")
        self._write_error(path, "This file was not taken in.", why, todo, reason=outcome.reason)

    def _write_error(self, path: str, what: str, why: str, todo: str, *, reason: str, is_kept: bool = True) -> None:
        """Write or update a prompt's error file, unless it says the same already."""
        target = prompts.error_path(path)
        if is_too_long(target):
            return  # `status` shows the reason
        text = prompts.render_error(path, what, why, todo, iso(self._brain.clock.now()), remember=is_kept)
        before = self._brain.read_text(target)
        with suppress(errors.FormatError):  # of the front matter only the time differs
            if before is not None and before[split(before)[1] :] == text[split(text)[1] :]:
                return
        try:
            change = events.write(target, before, text)
            self._brain.commit(events.PromptRefused(prompt=path, reason=reason), by=BY, changes=[change])
        except errors.BrainiacError as error:
            self._brain.log.warning("error_file_not_written", path=target, problem=str(error))

    def _clear(self, path: str) -> None:
        """Remove a prompt from those that wait, and its error file."""
        with self._mutex:
            self._pending.pop(path, None)
            self._ids.pop(path, None)
        error_file = prompts.error_path(path)
        before = None if is_too_long(error_file) else self._brain.read(error_file)
        if before is not None:
            self._brain.commit(events.TreeTidied(what="error"), by=BY, changes=[events.remove(error_file, before)])
