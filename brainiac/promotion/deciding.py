"""What becomes of one candidate: a model's or the rule's operation, validated, both sides preserved (seeds I1-I8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from brainiac.clock import parse_iso
from brainiac.integration.preservation import Loss, check, contradictions
from brainiac.integration.relevance import Link, is_known, relate
from brainiac.integration.succession import remainder, succeeds
from brainiac.language.statements import statements_of
from brainiac.llm.schemas import IntegrateRequest, Operation, Operations
from brainiac.promotion.finding import Found, Refusal
from brainiac.promotion.past import text_hash
from brainiac.promotion.related import Known, is_named, related

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.promotion.draft import Draft
    from brainiac.promotion.lookup import Lookup
    from brainiac.promotion.past import Past

Verb = Literal["NEW", "UPDATE", "DELETE", "REINFORCE", "SKIP"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with one candidate.

    Attributes:
        found: The candidate.
        verb: DELETE states `content` on the target's page, unless it is empty; SKIP does nothing.
        content: The statement that is to stand.
        rest: What of the target holds on when the other part of it is retired; "" when nothing does.
        target: The statement it is about; None for NEW.
        is_past_kept: The target's wording says what no longer holds: it goes to History.
        model: Who decided.
        proposal: What is put before a person, since the target is theirs; "" otherwise.
    """

    found: Found
    verb: Verb
    content: str = ""
    rest: str = ""
    target: Known | None = None
    is_past_kept: bool = False
    importance: float = 0.5
    relevance: float = 0.0
    reasoning: str = ""
    model: str = ""
    proposal: str = ""

    @property
    def retires(self) -> bool:
        """A statement of ours leaves the page's body."""
        return self.verb == "DELETE" and not self.proposal


@dataclass(slots=True)
class Decider:
    """Decides candidates one by one, each in view of those before.

    Args:
        brain: The brain.
        past: What the journals tell.
        lookup: The statements of all pages.
        cause: Id of the run's first event.
        abandon: Asked whether somebody came back.
    """

    brain: Brain
    past: Past
    lookup: Lookup
    cause: str
    abandon: Callable[[], bool] | None = None
    refused: list[Refusal] = field(default_factory=list)

    def decide(self, draft: Draft, found: Found) -> Decision:
        """Decide one candidate; whatever fails the checks ends with both statements kept.

        Raises:
            ModelError: The model cannot serve now.
        """
        known = related(self.lookup, draft, self.past, found)
        if not known:
            return self._unless_corrected(self._new(found, _operation_new(found), "rule"))
        request = IntegrateRequest(
            now=self.brain.now(),
            is_private=found.is_private or any(one.is_private for one in known),
            cause=self.cause,
            abandon=self.abandon,
            message=found.message,
            candidate=found.candidate,
            existing=[one.existing for one in known],
        )
        model = self.brain.models.engine_for(request).name
        decision = self._attempt(request, known, found, model)
        return self._unless_corrected(decision)

    def _attempt(self, request: IntegrateRequest, known: Sequence[Known], found: Found, model: str) -> Decision:
        for attempt in (1, 2):
            operation = self._ask(request, found, model)
            if operation is None:
                return Decision(found, "SKIP", reasoning="nothing is to be done", model=model)
            decision, complaint = self._checked(operation, known, found, model)
            if decision is not None:
                return decision
            self._refuse(found, complaint, model)
            if attempt == 1:
                request = replace(request, complaint=complaint)
        return self._new(found, _operation_new(found), model)

    def _ask(self, request: IntegrateRequest, found: Found, model: str) -> Operation | None:
        result = self.brain.models.run(request)
        assert isinstance(result, Operations)
        if len(result.operations) > 1:
            self._refuse(found, f"{len(result.operations)} operations for one candidate; the first counts", model)
        return result.operations[0] if result.operations else None

    def _checked(
        self, operation: Operation, known: Sequence[Known], found: Found, model: str
    ) -> tuple[Decision | None, str]:
        """Return the decision an operation comes to, or what is wrong with it."""
        if operation.operation == "NEW":
            return self._new(found, operation, model), ""
        target = next((one for one in known if one.id == operation.id), None)
        if target is None:
            return None, f"there is no statement {operation.id[:80]!r}; name one of the list, or use NEW"
        match operation.operation:
            case "REINFORCE":
                return self._reinforced(operation, target, found, model)
            case "UPDATE":
                return self._updated(operation, target, found, model)
        return self._deleted(operation, target, found, model)

    def _new(self, found: Found, operation: Operation, model: str) -> Decision:
        statement, content = found.candidate.statement, operation.content.strip()
        if not content or check("", statement, content):  # NEW adds nothing and leaves nothing out
            content = statement
        return _decision(found, "NEW", operation, model, content=content)

    def _reinforced(self, operation: Operation, target: Known, found: Found, model: str) -> tuple[Decision | None, str]:
        old, new = target.statement.text, found.candidate.statement
        if lost := check(old, new, old):
            return None, "REINFORCE would lose " + _named(lost) + ", which the statement does not say yet"
        return _decision(found, "REINFORCE", operation, model, content=old, target=target), ""

    def _updated(self, operation: Operation, target: Known, found: Found, model: str) -> tuple[Decision | None, str]:
        old, new, content = target.statement.text, found.candidate.statement, operation.content.strip()
        gone = contradictions(old, new)
        if not content:
            return None, "UPDATE without content"
        if lost := check(old, new, content, gone):
            return None, "the merge would lose or invent " + _named(lost)
        if text_hash(content) == text_hash(old):
            return _decision(found, "REINFORCE", operation, model, content=old, target=target), ""
        decision = _decision(found, "UPDATE", operation, model, content=content, target=target)
        return self._by_owner(replace(decision, is_past_kept=bool(gone))), ""

    def _deleted(self, operation: Operation, target: Known, found: Found, model: str) -> tuple[Decision | None, str]:
        old, new, content = target.statement.text, found.candidate.statement, operation.content.strip()
        if found.candidate.is_forget:
            if not is_named(found, target):
                return None, f"the person did not ask to forget {old!r}"
            decision = _decision(found, "DELETE", operation, model, target=target)
            return self._by_owner(decision) if _is_asked(found) else _forgetting_proposed(decision), ""
        is_other = relate(new, old).link in (Link.APART, Link.UNRELATED)
        if is_other and not succeeds(new, old) and not contradictions(old, new):
            return None, f"it does not contradict {old!r}; use NEW"
        if not content or check(old, new, content, [old]):
            content = new  # what holds now must be known, in the person's own words
        rest = remainder(new, old)
        decision = _decision(found, "DELETE", operation, model, content=content, rest=rest, target=target)
        return self._by_owner(replace(decision, is_past_kept=True)), ""

    def _by_owner(self, decision: Decision) -> Decision:
        """Leave a person's statement as it stands: what is new is added beside it, the change is proposed."""
        target = decision.target
        if target is None or target.is_ours:
            return decision
        old, new = target.statement.text, decision.found.candidate.statement
        if decision.found.candidate.is_forget:
            return _forgetting_proposed(decision)
        if not contradictions(old, new) and decision.verb == "UPDATE":
            return replace(decision, verb="NEW", content=new)
        # stated beside the person's own, whose retirement is put before them
        proposal = f"Replace “{old}” by “{decision.content}” on {target.title}"
        return replace(decision, verb="DELETE", proposal=proposal)

    def _unless_corrected(self, decision: Decision) -> Decision:
        """Drop what a person put right after it was said: corrections stick."""
        found, target = decision.found, decision.target
        if decision.verb in ("REINFORCE", "SKIP") or found.candidate.is_forget:
            return decision
        statement = found.candidate.statement
        by_hand = self.past.by_hand.get((target.page, text_hash(target.statement.text)), "") if target else ""
        is_corrected = by_hand > found.at or any(
            one.at > found.at and (is_known(statement, one.before) or is_known(one.before, statement))
            for one in self.past.corrections
        )
        if not is_corrected:
            return decision
        self._refuse(found, "a person put it right by hand after it was said", decision.model)
        return replace(decision, verb="SKIP", proposal="")

    def _refuse(self, found: Found, reason: str, model: str) -> None:
        self.refused.append(Refusal(found.candidate.statement, reason, "", model))


def _operation_new(found: Found) -> Operation:
    return Operation(operation="NEW", content=found.candidate.statement, importance=found.candidate.importance)


def _decision(found: Found, verb: Verb, operation: Operation, model: str, **more: object) -> Decision:
    decision = Decision(
        found,
        verb,
        importance=operation.importance,
        relevance=operation.relevance.score,
        reasoning=operation.reasoning,
        model=model,
    )
    return replace(decision, **more)  # type: ignore[arg-type]  # the callers name fields


def _is_asked(found: Found) -> bool:
    """Tell whether the person asked in so many words to forget something; a model alone may only propose it."""
    told = (said for event in found.events for said in statements_of(event.user, parse_iso(event.at)))
    return any(said.kind == "forget" for said in told)


def _forgetting_proposed(decision: Decision) -> Decision:
    assert decision.target is not None
    text, title = decision.target.statement.text, decision.target.title
    return replace(decision, proposal=f"Forget “{text}” on {title}")


def _named(losses: Sequence[Loss]) -> str:
    return ", ".join(f"{loss.words!r} ({loss.side})" for loss in losses[:8])
