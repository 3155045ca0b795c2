"""What is done with a new statement: NEW, UPDATE, DELETE or REINFORCE, by rule (seeds I1-I8)."""

from __future__ import annotations

from brainiac.language.sentences import content_stems, overlap
from brainiac.llm.schemas import Existing, IntegrateRequest, Operation, Operations


def decide(request: IntegrateRequest) -> Operations:
    """Decide how a candidate relates to what stands in memory.

    Args:
        request: The candidate, the message it came from and the statements that may be related.

    Returns:
        At most one operation; none when there is nothing to do. The same request gets the same answer.
    """
    candidate = request.candidate
    wanted = content_stems(candidate.statement)
    ranked = sorted(request.existing, key=lambda existing: (-_likeness(wanted, existing), existing.id))
    best = ranked[0] if ranked and _likeness(wanted, ranked[0]) >= 0.9 else None
    if candidate.is_forget:
        return Operations(operations=[Operation(operation="DELETE", id=best.id)] if best else [])
    operation = "REINFORCE" if best else "NEW"
    content = best.content if best else candidate.statement
    chosen = Operation.model_validate(
        {"operation": operation, "content": content, "id": best.id if best else "", "importance": candidate.importance}
    )
    return Operations(operations=[chosen])


def _likeness(wanted: list[str], existing: Existing) -> float:
    return overlap(wanted, content_stems(existing.content))
