"""Statements that the keyless engine kept of exchanges which a model consolidates only later.

While a model reads such an exchange it is shown neither these statements nor the pages that hold nothing else: it
decides as if it had been there from the start. A statement whose words its operations carry is then taken out, so that
nothing is said twice; its words still stand on the page of their day. One that they do not carry stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from brainiac.formats.page import Memory, Statement
from brainiac.llm.schemas import OFFLINE, PageRef
from brainiac.storage.statements import StatementLog
from brainiac.text.tokens import coverage

from .apply import Step
from .draft import CurrentStatement, Draft

CARRIED = 0.7  # the share of a statement's character trigrams that a model's words and quotes must have


@dataclass(frozen=True, slots=True)
class StandIns:
    """The keyless statements that rest on nothing but exchanges which no model has consolidated.

    Attributes:
        sources: The exchanges that each rests on, oldest first, by page and block id; block id "" means a whole page.
    """

    sources: Mapping[tuple[str, str], Sequence[str]]

    def is_one(self, page: str, statement: Statement) -> bool:
        """Return whether a statement of a page, given by uuid or path, is one of them."""
        return (page, statement.block_id) in self.sources or (page, "") in self.sources

    def is_alone(self, memory: Memory) -> bool:
        """Return whether a page holds none but these statements, or is a note that was kept whole."""
        page = memory.uuid or memory.path
        current = [statement for statement in memory.statements if not statement.is_history]
        return (page, "") in self.sources or (bool(current) and all(self.is_one(page, each) for each in current))

    def carried(self, draft: Draft, exchanges: Collection[str], steps: Sequence[Step]) -> Iterator[Step]:
        """Yield a step for each of them that a model's steps carry; it takes the statement out.

        Args:
            draft: The page drafts, with these steps carried out.
            exchanges: The exchanges that the model has read by now.
            steps: What came of them.
        """
        kept = {target.id for step in steps for target in step.targets}
        for (page, block), sources in self.sources.items():
            read = set(sources).intersection(exchanges) if block else set[str]()
            resting = [step for step in steps if _rests_on(step, read)]
            statement = draft.statement(f"{page}#{block}") if resting else None
            if statement is None or not statement.is_ours or statement.id in kept:
                continue
            is_alone = not draft.opened(statement.path).document.has_lines_below(block)
            if is_alone and _carries(resting, read, statement.text):
                yield _taking_out(resting[-1], statement)


def stand_ins_of(log: StatementLog, unread: Collection[str]) -> StandIns:
    """Return the keyless statements that rest on none but the unread exchanges."""
    places = log.made_by(OFFLINE)
    return StandIns({place: sources for place, sources in places.items() if set(sources) <= set(unread)})


def _rests_on(step: Step, exchanges: Collection[str]) -> bool:
    """Return whether a step states something of exchanges; one that proposes, or asks to forget, states nothing."""
    is_stating = bool(step.operation.text) and not step.proposal and not step.is_taking_out
    return is_stating and any(event.id in exchanges for event in step.candidate.events)


def _carries(steps: Sequence[Step], exchanges: Collection[str], words: str) -> bool:
    """Return whether the texts of steps, and what they quote of exchanges, have nearly all of some words."""
    texts = [text for step in steps for text in (step.operation.text, *step.operation.steps)]
    quotes = [quoted.quote for step in steps for quoted in step.operation.evidence if quoted.exchange in exchanges]
    return coverage(words, "\n".join([*texts, *quotes])) >= CARRIED


def _taking_out(step: Step, statement: CurrentStatement) -> Step:
    """Return the step that takes a statement out because another step carries its words."""
    bare = {"action": "same", "text": "", "ids": [], "page": PageRef(), "tags": [], "steps": [], "importance": None}
    candidate = replace(step.candidate, operation=step.operation.model_copy(update=bare))
    return Step(candidate, statement.path, (statement,), is_taking_out=True)
