"""What a model's present calls make of one candidate: an operation, checked, both sides preserved (seeds I1-I8).

Issue by issue this gives way to one consolidating call; until then `Decider` turns a model's decision on a candidate
into the operation that Promotion carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from brainiac.brain import Brain
from brainiac.formats.links import shown
from brainiac.llm.schemas import Decision, Decisions, Evidence, IntegrateRequest, Operation
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.tokens import coverage

from .draft import Draft
from .fates import Refusal
from .finding import Found
from .lookup import Lookup
from .preservation import Loss, check
from .related import Known, related

SAME_WORDS = 0.8  # of the runs of signs of what a person corrected


@dataclass(frozen=True, slots=True)
class Decided:
    """An operation with the statement it is about.

    Attributes:
        operation: What is to be done; None where nothing is.
        target: The statement.
        proposal: What is put before a person, since the target is theirs.
        model: Who decided.
        reason: Why nothing is done.
    """

    operation: Operation | None
    target: Known | None = None
    proposal: str = ""
    model: str = ""
    reason: str = ""


@dataclass(slots=True)
class Decider:
    """Decides candidates one by one, each in view of those before.

    Args:
        brain: The brain.
        past: What the journals tell.
        lookup: The statements of all pages.
        cause: Id of the run's first event.
        abandon: Asked whether somebody came back.
        refused: Takes in what was not done, and why.
    """

    brain: Brain
    past: StatementLog
    lookup: Lookup
    cause: str
    abandon: Callable[[], bool] | None = None
    refused: list[Refusal] = field(default_factory=list)

    def decide(self, draft: Draft, found: Found) -> Decided:
        """Decide one candidate; whatever fails the checks ends with both statements kept.

        Raises:
            ModelError: The model cannot serve now.
        """
        known = related(self.lookup, draft, self.past, found)
        if not known:
            return self._unless_corrected(found, self._new(found, Decision(operation="NEW"), "rule"))
        request = IntegrateRequest(
            now=self.brain.now(),
            is_private=found.is_private or any(statement.is_private for statement in known),
            cause=self.cause,
            abandon=self.abandon,
            message=found.message,
            candidate=found.candidate,
            existing=[statement.existing for statement in known],
        )
        model = self.brain.models.engine_for(request).name
        return self._unless_corrected(found, self._attempt(request, known, found, model))

    def _attempt(self, request: IntegrateRequest, known: Sequence[Known], found: Found, model: str) -> Decided:
        for is_last in (False, True):
            decision = self._ask(request, found, model)
            if decision is None:
                return Decided(None, model=model, reason="nothing was to be done with it")
            decided, complaint = self._checked(decision, known, found, model, is_last=is_last)
            if decided is not None:
                return decided
            self._refuse(found, complaint, model)
            request = replace(request, complaint=complaint)
        return self._new(found, Decision(operation="NEW"), model)

    def _ask(self, request: IntegrateRequest, found: Found, model: str) -> Decision | None:
        result = self.brain.models.run(request)
        assert isinstance(result, Decisions)
        if len(result.operations) > 1:
            self._refuse(found, f"{len(result.operations)} operations for one candidate; the first counts", model)
        return result.operations[0] if result.operations else None

    def _checked(
        self, decision: Decision, known: Sequence[Known], found: Found, model: str, *, is_last: bool
    ) -> tuple[Decided | None, str]:
        """Return what a decision comes to, or what is wrong with it."""
        if decision.operation == "NEW":
            return self._new(found, decision, model), ""
        target = next((statement for statement in known if statement.id == decision.id), None)
        if target is None:
            return None, f"there is no statement {decision.id[:80]!r}; name one of the list, or use NEW"
        match decision.operation:
            case "REINFORCE":
                return self._same(found, decision, target, model)
            case "UPDATE":
                return self._replaced(found, decision, target, model, is_last=is_last)
        return self._ended(found, decision, target, model), ""

    def _new(self, found: Found, decision: Decision, model: str) -> Decided:
        statement, content = found.candidate.statement, decision.content.strip()
        if found.candidate.is_forget:
            return Decided(None, model=model, reason="it asks to forget what does not stand in memory")
        if not content or check("", statement, content):  # NEW adds nothing and leaves nothing out
            content = statement
        return Decided(_operation(found, "new", decision, content), model=model)

    def _same(self, found: Found, decision: Decision, target: Known, model: str) -> tuple[Decided | None, str]:
        if lost := check(target.text, found.candidate.statement, target.text):
            return None, "REINFORCE would lose " + _named(lost) + ", which the statement does not say yet"
        return Decided(_operation(found, "same", decision, target.text, target), target, model=model), ""

    def _replaced(
        self, found: Found, decision: Decision, target: Known, model: str, *, is_last: bool
    ) -> tuple[Decided | None, str]:
        """Take words in place of a statement; what of it they lack is asked about once: it stands in History."""
        content = decision.content.strip()
        if not content:
            return None, "UPDATE without content"
        losses = check(target.text, found.candidate.statement, content)
        hard = [loss for loss in losses if loss.side != "old"]
        if hard or (losses and not is_last):
            return None, "the merge would lose or invent " + _named(hard or losses)
        if text_hash(content) == text_hash(target.text):
            return Decided(_operation(found, "same", decision, content, target), target, model=model), ""
        if not target.is_ours:  # stated beside the person's own, which stays as it is
            return self._new(found, decision.model_copy(update={"content": ""}), model), ""
        return Decided(_operation(found, "replace", decision, content, target), target, model=model), ""

    def _ended(self, found: Found, decision: Decision, target: Known, model: str) -> Decided:
        """Retire a statement; what a model takes for a wish to forget is put before the person."""
        if found.candidate.is_forget:
            operation = _operation(found, "forget", decision, "", target)
            return Decided(operation, target, f"Forget “{target.text}” on {target.title}", model)
        new, content = found.candidate.statement, decision.content.strip()
        if not content or any(loss.side != "old" for loss in check(target.text, new, content)):
            content = new
        proposal = "" if target.is_ours else f"Replace “{target.text}” by “{content}” on {target.title}"
        return Decided(_operation(found, "end", decision, content, target), target, proposal, model)

    def _unless_corrected(self, found: Found, decided: Decided) -> Decided:
        """Drop what a person put right after it was said: corrections stick."""
        target = decided.target
        if decided.operation is None or decided.operation.action in ("same", "forget"):
            return decided
        by_hand = self.past.by_hand.get((target.page, text_hash(target.statement.text)), "") if target else ""
        if by_hand <= found.at and not is_corrected(self.past, found.candidate.statement, found.at):
            return decided
        reason = "a person put it right by hand after it was said"
        self._refuse(found, reason, decided.model)
        return Decided(None, model=decided.model, reason=reason)

    def _refuse(self, found: Found, reason: str, model: str) -> None:
        self.refused.append(Refusal(found.candidate.statement, reason, "", model))


def is_corrected(past: StatementLog, statement: str, said_at: str) -> bool:
    """Return whether a person changed or took out what says the same, after it was said."""
    statement = shown(statement)
    before = [shown(correction.before) for correction in past.corrections if correction.at > said_at]
    return any(coverage(statement, text) >= SAME_WORDS or coverage(text, statement) >= SAME_WORDS for text in before)


def _operation(found: Found, action: str, decision: Decision, text: str, target: Known | None = None) -> Operation:
    candidate = found.candidate
    return Operation.model_validate(
        {
            "action": action,
            "ids": [target.id] if target else [],
            "text": text,
            "evidence": [Evidence(exchange=event.id, quote=event.user) for event in found.events],
            "subject": candidate.subject,
            "subject_type": candidate.subject_type,
            "category": candidate.category,
            "importance": decision.importance if decision.reasoning or decision.id else candidate.importance,
            "emotion": candidate.emotion,
            "tags": candidate.tags,
            "canonical_key": candidate.canonical_key,
            "steps": candidate.steps,
            "relevance": decision.relevance,
            "reasoning": decision.reasoning,
        }
    )


def _named(losses: Sequence[Loss]) -> str:
    return ", ".join(f"{loss.words!r} ({loss.side})" for loss in losses[:8])
