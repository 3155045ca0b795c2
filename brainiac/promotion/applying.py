"""A decision carried out on the pages in work; what it did becomes one record of the run's event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brainiac.clock import iso
from brainiac.events import new_id
from brainiac.notes.memory import Statement, new_memory
from brainiac.promotion.deciding import Decision
from brainiac.promotion.past import Past, text_hash
from brainiac.promotion.placement import Place

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.promotion.draft import Draft, Working

HIGH, LOW = 0.75, 0.4


@dataclass(frozen=True, slots=True)
class Step:
    """A decision with the page it is carried out on; can be carried out again on pages read anew.

    Attributes:
        decision: What is to be done.
        place: Where.
    """

    decision: Decision
    place: Place


def importance_word(value: float) -> str:
    """Return how importance is kept: low below 0.4, high from 0.75 on (seeds I1)."""
    return "high" if value >= HIGH else "low" if value < LOW else "medium"


class Applier:
    """Carries steps out on one draft.

    Args:
        brain: The brain.
        draft: The pages in work.
        past: Takes in what becomes ours.
    """

    def __init__(self, brain: Brain, draft: Draft, past: Past) -> None:
        self._brain, self._draft, self._past = brain, draft, past
        self._now = iso(brain.clock.now())

    def apply(self, step: Step) -> list[dict[str, Any]] | None:
        """Carry a step out and return its records; None when its page or statement is not there any more."""
        decision, path = step.decision, step.place.path
        working = self._draft.page(path) or self._begin(step)
        if decision.target and not any(
            one.block_id == decision.target.statement.block_id and one.text == decision.target.statement.text
            for one in self._draft.current(path)
        ):
            return None
        self._note_sources(working, decision)
        page = working.document.memory.uuid or path
        record = self._record(decision, path, page)
        if step.place.steps:
            return [record | self._set_steps(working, page, step)]
        match decision.verb:
            case "NEW":
                return [record | self._state(working, page, decision)]
            case "UPDATE":
                return [record | self._update(working, page, decision)]
            case "DELETE":
                return [record | done for done in self._retire(working, page, decision)]
        working.reinforced += 1
        statement = self._target(decision)
        again = {"block": statement.block_id, "hash": text_hash(statement.text)}
        return [record | again | self._kept(page, statement)]

    def _begin(self, step: Step) -> Working:
        place, candidate = step.place, step.decision.found.candidate
        uuid = new_id()
        text = new_memory(place.title, uuid=uuid, now=self._now, **place.meta)
        is_private = step.decision.found.is_private
        self._draft.catalogue.add(place.path, uuid, place.title, str(place.meta.get("subject") or ""), is_private)
        working = self._draft.add(place.path, text)
        working.emotion = candidate.emotion
        return working

    def _note_sources(self, working: Working, decision: Decision) -> None:
        candidate = decision.found.candidate
        working.sources.update(dict.fromkeys(event.id for event in decision.found.events))
        working.tags.update(dict.fromkeys(candidate.tags))
        working.emotion = working.emotion or candidate.emotion
        working.importance = max(working.importance, importance_word(decision.importance), key=_RANK.__getitem__)

    def _record(self, decision: Decision, path: str, page: str) -> dict[str, Any]:
        found = decision.found
        return {
            "candidate": found.id,
            "operation": decision.verb,
            "path": path,
            "page": page,
            "since": self._brain.shown_day(found.at),
            "sources": [event.id for event in found.events],
            "importance": importance_word(decision.importance),
            "relevance": decision.relevance,
            "reasoning": decision.reasoning,
            "model": decision.model,
            "found_by": found.model,
        }

    def _target(self, decision: Decision) -> Statement:
        assert decision.target is not None
        return decision.target.statement

    def _kept(self, page: str, statement: Statement) -> dict[str, str]:
        """A statement that only was stated again keeps its date."""
        since = self._past.since_of(page, statement)
        return {"since": since} if since else {}

    def _ours(self, page: str, block: str, text: str, since: str) -> dict[str, str]:
        self._past.since[page, block, text_hash(text)] = since
        return {"block": block, "hash": text_hash(text)}

    def _state(self, working: Working, page: str, decision: Decision) -> dict[str, Any]:
        content, document = decision.content, working.document
        for one in document.memory.statements:
            if not one.is_history and text_hash(one.text).casefold() == text_hash(content).casefold():
                working.reinforced += 1
                again = {"operation": "REINFORCE", "block": one.block_id, "hash": text_hash(one.text)}
                return again | self._kept(page, one)
        block = document.block_id_for(content)
        working.document = document.add_statement(content, block)
        return self._ours(page, block, content, self._brain.shown_day(decision.found.at))

    def _update(self, working: Working, page: str, decision: Decision) -> dict[str, Any]:
        old, since = self._target(decision), self._brain.shown_day(decision.found.at)
        working.document = working.document.replace_statement(old.block_id, decision.content)
        replaced = {"block": old.block_id, "hash": text_hash(old.text)}
        if decision.is_past_kept:
            replaced["history"] = self._keep_past(working, page, old, old.block_id, since)
        return self._ours(page, old.block_id, decision.content, since) | {"replaced": replaced}

    def _keep_past(self, working: Working, page: str, old: Statement, replaced_by: str, on: str) -> str:
        """Put a wording that no longer holds under History beside what holds now; return its block id."""
        document = working.document
        block = document.block_id_for(old.text)
        document = document.add_statement(old.text, block)
        working.document = document.retire(block, on, replaced_by, self._past.since_of(page, old))
        return block

    def _retire(self, working: Working, page: str, decision: Decision) -> Iterator[dict[str, Any]]:
        """State what holds now, and retire the target: all of it, or all but what holds on."""
        old, since, record = self._target(decision), self._brain.shown_day(decision.found.at), {}
        block = ""
        if decision.content:
            block = working.document.block_id_for(decision.content)
            working.document = working.document.add_statement(decision.content, block)
            record = self._ours(page, block, decision.content, since)
        replaced = {"block": old.block_id, "hash": text_hash(old.text)}
        if decision.proposal:
            yield {**record, "proposed": replaced}
        elif decision.rest:
            yield {**record, "operation": "NEW"}
            said = self._past.since_of(page, old)
            working.document = working.document.replace_statement(old.block_id, decision.rest)
            replaced["history"] = self._keep_past(working, page, old, block, since)
            yield {"operation": "UPDATE", "replaced": replaced, **self._ours(page, old.block_id, decision.rest, said)}
        else:
            working.document = working.document.retire(old.block_id, since, block, self._past.since_of(page, old))
            yield {**record, "replaced": {**replaced, "history": old.block_id}}

    def _set_steps(self, working: Working, page: str, step: Step) -> dict[str, Any]:
        """Write a how-to's steps in order; steps that are told otherwise now go to History."""
        wanted, on = step.place.steps, self._brain.shown_day(step.decision.found.at)
        standing = [one for one in working.document.memory.statements if one.section == "Steps" and not one.is_history]
        if [_plain(one.text) for one in standing] == [_plain(one) for one in wanted]:
            working.reinforced += 1
            return {"operation": "REINFORCE", "block": "", "hash": "", "steps": []}
        if standing:
            self._replace_steps(working, page, standing, wanted, on)
        else:
            for text in wanted:
                working.document = working.document.add_step(text)
        steps = [
            self._ours(page, one.block_id, one.text, on)
            for one in working.document.memory.statements
            if one.section == "Steps" and not one.is_history
        ]
        verb = {"operation": "UPDATE"} if standing else {}
        return {"block": "", "hash": "", "steps": steps, **verb}

    def _replace_steps(
        self, working: Working, page: str, standing: Sequence[Statement], wanted: Sequence[str], on: str
    ) -> None:
        texts = {_plain(one) for one in wanted}
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


_RANK = {"": -1, "low": 0, "medium": 1, "high": 2}


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")
