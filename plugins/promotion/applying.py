"""An operation carried out on the pages in work; what it did becomes one record of the run's event."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.formats.discretion import is_private
from brainiac.formats.memory import Statement
from brainiac.formats.short_term import StmEvent
from brainiac.formats.statements import with_day
from brainiac.llm.schemas import Operation
from brainiac.storage.relinking import placed
from brainiac.storage.statements import StatementLog, text_hash

from .draft import Draft, Working
from .placement import Place, free_day_place
from .related import Known

HIGH, LOW = 0.75, 0.4
_VERBS = {"new": "NEW", "replace": "UPDATE", "end": "DELETE", "forget": "DELETE", "same": "REINFORCE"}
_RANK = {"": -1, "low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True, slots=True)
class Step:
    """An operation with where it came from and the page it is carried out on.

    It can be carried out again on pages read anew.

    Attributes:
        id: Of the candidate that it decides.
        operation: What is to be done.
        events: What it rests on, oldest first.
        place: The page.
        target: The statement it is about; None for a new one.
        proposal: What is put before a person, since the target is theirs; "" otherwise.
        model: Who decided.
        found_by: Who proposed the candidate.
    """

    id: str
    operation: Operation
    events: tuple[StmEvent, ...]
    place: Place
    target: Known | None = None
    proposal: str = ""
    model: str = ""
    found_by: str = ""

    @property
    def words(self) -> str:
        """What it states, for a person."""
        return self.operation.text or (self.target.text if self.target else "")

    @property
    def at(self) -> str:
        """When it was last said, ISO 8601."""
        return max(event.at for event in self.events)

    @property
    def is_private(self) -> bool:
        """It rests on what must not leave this machine."""
        return any(event.is_private for event in self.events)

    @property
    def retires(self) -> bool:
        """A statement of ours leaves the page's body, and nothing like it takes its place."""
        return self.operation.action in ("end", "forget") and not self.proposal


def importance_word(value: float | None) -> str:
    """Return how importance is kept: low below 0.4, high from 0.75 on (seeds I1); "" where nobody judged it."""
    if value is None:
        return ""
    return "high" if value >= HIGH else "low" if value < LOW else "medium"


class Applier:
    """Carries steps out on one draft.

    Args:
        brain: The brain.
        draft: The pages in work.
        past: Takes in what becomes ours.
    """

    def __init__(self, brain: Brain, draft: Draft, past: StatementLog) -> None:
        self._brain, self._draft, self._past = brain, draft, past

    def apply(self, step: Step) -> list[dict[str, Any]]:
        """Carry a step out and return its records.

        Raises:
            FormatError: It does not fit what stands there any more.
        """
        if step.operation.page.is_whole and step.operation.action == "new":
            return [self._record(step) | self._begin_whole(step)]
        working = self._draft.page(step.place.path) or self._begin(step)
        step = self._with_links(step)
        self._check(working, step)
        self._note_sources(working, step)
        page = working.document.memory.uuid or step.place.path
        record = self._record(step) | {"page": page}
        if step.place.steps:
            return [record | self._set_steps(working, page, step)]
        match step.operation.action:
            case "new":
                return [record | self._state(working, page, step)]
            case "replace":
                return [record | self._replace(working, page, step)]
            case "end" | "forget":
                return [record | self._end(working, page, step)]
        return [record | self._say_again(working, page, step)]

    def _with_links(self, step: Step) -> Step:
        """Return a step whose links lead from its page."""

        def moved(text: str) -> str:
            return placed(self._brain, text, step.place.path)

        operation = step.operation.model_copy(update={"text": moved(step.operation.text)})
        return replace(step, operation=operation, place=replace(step.place, steps=tuple(map(moved, step.place.steps))))

    def _check(self, working: Working, step: Step) -> None:
        """Refuse what is about a statement that is gone, and what is private on a page that is not."""
        path, target = step.place.path, step.target
        if target and not any(
            statement.block_id == target.statement.block_id and statement.text == target.statement.text
            for statement in self._draft.current(path)
        ):
            raise FormatError(path, "the statement it is about was changed meanwhile")
        if step.operation.text and step.is_private and not is_private(working.document.memory.meta):
            raise FormatError(path, "what is private cannot stand there: the page is not private any more")

    def _begin(self, step: Step) -> Working:
        place = step.place
        text = self._draft.catalogue.begin(place.path, place.title, place.meta, is_private=step.is_private)
        working = self._draft.add(place.path, text)
        working.emotion = step.operation.emotion
        return working

    def _begin_whole(self, step: Step) -> dict[str, Any]:
        """Begin a page whose body is the person's note, byte for byte."""
        place, catalogue = step.place, self._draft.catalogue
        if self._draft.page(place.path) is not None:
            raise FormatError(place.path, "another page was made there meanwhile")
        text, uuid = catalogue.begin_whole(
            place.path,
            step.operation.text,
            {"title": place.title, **place.meta},
            tags=step.operation.tags,
            is_private=step.is_private,
        )
        working = self._draft.add(place.path, text)
        working.sources.update(dict.fromkeys(event.id for event in step.events))
        return {"page": uuid, "block": "", "hash": text_hash(step.operation.text), "is_whole": True}

    def _note_sources(self, working: Working, step: Step) -> None:
        working.sources.update(dict.fromkeys(event.id for event in step.events))
        if step.is_private and not is_private(working.document.memory.meta):
            return  # a request to forget: the page is not to tell what it was about
        working.tags.update(dict.fromkeys(step.operation.tags))
        working.emotion = working.emotion or step.operation.emotion
        word = importance_word(step.operation.importance)
        working.importance = max(working.importance, word, key=_RANK.__getitem__)

    def _record(self, step: Step) -> dict[str, Any]:
        operation = step.operation
        record = {
            "candidate": step.id,
            "operation": _VERBS[operation.action],
            "path": step.place.path,
            "since": self._brain.day_of(step.at),
            "sources": [event.id for event in step.events],
            "importance": importance_word(operation.importance),
            "relevance": operation.relevance.score,
            "reasoning": operation.reasoning,
            "model": step.model,
            "found_by": step.found_by,
        }
        return record | ({"marked_by": operation.marked_by} if operation.marked_by else {})

    def _ours(self, page: str, block: str, text: str, since: str) -> dict[str, str]:
        self._past.since[page, block, text_hash(text)] = since
        return {"block": block, "hash": text_hash(text), "since": since}

    def _again(self, working: Working, page: str, statement: Statement) -> dict[str, str]:
        """Count a statement that was said again; it keeps its date."""
        working.reinforced += 1
        since = self._past.since_of(page, statement)
        known = {"block": statement.block_id, "hash": text_hash(statement.text)}
        return known | ({"since": since} if since else {})

    def _say_again(self, working: Working, page: str, step: Step) -> dict[str, str]:
        assert step.target is not None
        return self._again(working, page, step.target.statement)

    def _state(self, working: Working, page: str, step: Step) -> dict[str, Any]:
        text, document = step.operation.text, working.document
        for statement in document.memory.statements:
            if not statement.is_history and text_hash(statement.text).casefold() == text_hash(text).casefold():
                return {"operation": "REINFORCE", **self._again(working, page, statement)}
        line = self._dated(step) if step.operation.marked_by else text
        block = document.block_id_for(line)
        working.document = document.add_statement(line, block)
        return self._ours(page, block, text, self._brain.day_of(step.at))

    def _dated(self, step: Step) -> str:
        """Return a person's own words with their day behind them, which links to the page of that day."""
        at = step.events[0].at
        day_page = free_day_place(self._brain, self._draft.catalogue, at, is_private=step.is_private).path
        known = self._draft.catalogue.by_path.get(day_page)
        link = posixpath.relpath(day_page, posixpath.dirname(step.place.path))
        return with_day(step.operation.text, self._brain.day_of(at), link, known.uuid if known else "")

    def _replace(self, working: Working, page: str, step: Step) -> dict[str, Any]:
        """Put new words in place of a statement; its old wording goes to History, whatever it says."""
        assert step.target is not None
        old, since = step.target.statement, self._brain.day_of(step.at)
        working.document = working.document.replace_statement(old.block_id, step.operation.text)
        history = self._keep_past(working, page, old, old.block_id, since)
        replaced = {"block": old.block_id, "hash": text_hash(old.text), "history": history}
        return self._ours(page, old.block_id, step.operation.text, since) | {"replaced": replaced}

    def _keep_past(self, working: Working, page: str, old: Statement, replaced_by: str, on: str) -> str:
        """Put a former wording under History beside what holds now; return its block id."""
        document = working.document
        block = document.block_id_for(old.text)
        document = document.add_statement(old.text, block)
        working.document = document.retire(block, on, replaced_by, self._past.since_of(page, old))
        return block

    def _end(self, working: Working, page: str, step: Step) -> dict[str, Any]:
        """Retire a statement, and state what holds now if anything does; a person's own is put before them."""
        assert step.target is not None
        old, since, record = step.target.statement, self._brain.day_of(step.at), {}
        block = ""
        if step.operation.text:
            block = working.document.block_id_for(step.operation.text)
            working.document = working.document.add_statement(step.operation.text, block)
            record = self._ours(page, block, step.operation.text, since)
        replaced = {"block": old.block_id, "hash": text_hash(old.text)}
        if step.proposal:
            return {**record, "proposed": replaced}
        working.document = working.document.retire(old.block_id, since, block, self._past.since_of(page, old))
        return {**record, "replaced": {**replaced, "history": old.block_id}}

    def _set_steps(self, working: Working, page: str, step: Step) -> dict[str, Any]:
        """Write a how-to's steps in order; steps that are told otherwise now go to History."""
        wanted, on = step.place.steps, self._brain.day_of(step.at)
        standing = _steps_of(working)
        if [_plain(old.text) for old in standing] == [_plain(text) for text in wanted]:
            working.reinforced += 1
            return {"operation": "REINFORCE", "block": "", "hash": "", "steps": []}
        if standing:
            self._replace_steps(working, page, standing, wanted, on)
        else:
            for text in wanted:
                working.document = working.document.add_step(text)
        steps = [self._ours(page, new.block_id, new.text, on) for new in _steps_of(working)]
        verb = {"operation": "UPDATE"} if standing else {}
        return {"block": "", "hash": "", "steps": steps, **verb}

    def _replace_steps(
        self, working: Working, page: str, standing: Sequence[Statement], wanted: Sequence[str], on: str
    ) -> None:
        texts = {_plain(text) for text in wanted}
        for old, new in zip(standing, wanted, strict=False):
            if _plain(old.text) != _plain(new):
                working.document = working.document.replace_statement(old.block_id, new)
                if _plain(old.text) not in texts:
                    self._keep_past(working, page, old, old.block_id, on)
        for text in wanted[len(standing) :]:
            working.document = working.document.add_step(text)
        for old in standing[len(wanted) :]:
            since = self._past.since_of(page, old)
            working.document = working.document.retire(old.block_id, on, since=since)


def _steps_of(working: Working) -> list[Statement]:
    """Return the steps of a how-to's page that hold, in order."""
    statements = working.document.memory.statements
    return [statement for statement in statements if statement.section == "Steps" and not statement.is_history]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")
