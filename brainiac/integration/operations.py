"""What is done with a new statement: NEW, UPDATE, DELETE or REINFORCE, by rule (seeds I1-I8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brainiac.integration.clauses import split_clauses
from brainiac.integration.merging import merge
from brainiac.integration.preservation import check, contradictions
from brainiac.integration.relevance import HIGH, MODERATE, Link, Relation, is_known, relate, shared_count
from brainiac.integration.replacement import coordinated
from brainiac.integration.succession import closeness, succeeds
from brainiac.language.entities import means_same
from brainiac.language.sentences import content_stems, stem
from brainiac.llm.schemas import Existing, IntegrateRequest, Operation, Operations, Relevance

MAX_STATEMENT_CHARACTERS = 400
_FORGET = re.compile(
    r"^(?:(?:please|can you|could you|user (?:wants?|asks?|asked|would like) (?:\w+ )?to)\s+)*"
    r"(?:user (?:doesn't|does not) want \w+ (?:\w+ )?to (?:remember|know|keep|store)|(?:don't"
    r"|do not) remember|delete|forget|erase"
    r"|drop|remove|cancel|scrap|discard)\b(?!\s+to\b)",
    re.IGNORECASE,
)
_COMMAND_WORDS = (
    "delete forget erase drop remove cancel scrap discard remind reminder remember note memory fact want ask please"
    " tell say information know store keep assistant everything anything thing don't"
).split()


def decide(request: IntegrateRequest) -> Operations:
    """Decide how a candidate relates to what stands in memory.

    Args:
        request: The candidate, the message it came from and the statements that may be related.

    Returns:
        At most one operation; none when there is nothing to do. The same request gets the same answer.
    """
    statement = request.candidate.statement.strip()
    if request.candidate.is_forget or _FORGET.match(statement):
        return Operations(operations=_forget(statement, request))
    ranked = _ranked(statement, request.existing)
    nothing_known = Operation(operation="NEW", content=statement, reasoning="nothing is known yet")
    chosen = _new(statement, *ranked[0]) if ranked else nothing_known
    if ranked and (ranked[0][1].relevance.score >= MODERATE or is_known(ranked[0][0].content, statement)):
        chosen = _joined(statement, *ranked[0]) or chosen
    if ranked:
        chosen = _succession(statement, chosen, ranked) or _unstrung(statement, chosen, *ranked[0])
    return Operations(operations=[chosen.model_copy(update={"importance": request.candidate.importance})])


def _ranked(statement: str, existing: Sequence[Existing]) -> list[tuple[Existing, Relation]]:
    """Return the existing statements with their relation to the candidate, nearest first."""
    order = list(Link)
    related = [(one, relate(statement, one.content)) for one in existing]
    return sorted(
        related,
        key=lambda pair: (
            not is_known(statement, pair[0].content),
            -pair[1].relevance.score,
            order.index(pair[1].link),
            -shared_count(statement, pair[0].content),
        ),
    )


def _succession(statement: str, chosen: Operation, ranked: Sequence[tuple[Existing, Relation]]) -> Operation | None:
    """Return what retires the statement, or the part of one, that the candidate tells the successor of."""
    is_told = ranked[0][1].link in (Link.REPLACES, Link.NEGATES) and not _is_strung(statement, chosen, ranked[0][0])
    if chosen.operation in ("REINFORCE", "DELETE") or (chosen.id and is_told):
        return None
    ended = [pair for pair in ranked if succeeds(statement, pair[0].content)]
    if not ended:
        return None
    return _operation("DELETE", statement, *max(ended, key=lambda pair: closeness(statement, pair[0].content)))


def _is_strung(statement: str, chosen: Operation, existing: Existing) -> bool:
    """Tell whether a merge only puts one after the other."""
    return chosen.content == f"{existing.content.rstrip('. ')}; {statement.rstrip('. ')}"


def _unstrung(statement: str, chosen: Operation, existing: Existing, relation: Relation) -> Operation:
    """Keep statements apart that no rule of telling joins: two lines read better than one with a semicolon."""
    is_change = relation.link in (Link.REPLACES, Link.NEGATES)
    is_strung = _is_strung(statement, chosen, existing) and not is_change
    return _new(statement, existing, relation) if is_strung else chosen


def _joined(statement: str, existing: Existing, relation: Relation) -> Operation | None:
    """Return what joins the candidate with the nearest statement; None where they had better stay apart."""
    if is_known(statement, existing.content):
        return _operation("REINFORCE", existing.content, existing, relation)
    if _is_complete_contradiction(statement, existing, relation):
        return _operation("DELETE", statement, existing, relation)
    says_all = is_known(existing.content, statement)
    content = statement if says_all else merge(existing.content, statement, relation)
    if len(content) > MAX_STATEMENT_CHARACTERS:
        return None
    return _operation("UPDATE", content, existing, relation)


def _is_complete_contradiction(statement: str, existing: Existing, relation: Relation) -> bool:
    """Tell whether nothing of the existing statement holds any longer (and no change is told that it is part of)."""
    told = split_clauses(statement)
    if len(split_clauses(existing.content)) > 1 or (len(told) > 1 and not all(clause.is_denied for clause in told)):
        return False
    if relation.link is Link.NEGATES:
        return coordinated(relation.new, relation.old) is None
    if relation.link is not Link.REPLACES or relation.new.manner == "change":
        return False
    return not check(existing.content, statement, statement, contradictions(existing.content, statement))


def _new(statement: str, existing: Existing, relation: Relation) -> Operation:
    return _operation("NEW", statement, existing, relation).model_copy(update={"id": ""})


def _operation(name: str, content: str, existing: Existing, relation: Relation) -> Operation:
    found = {"operation": name, "content": content, "id": existing.id, "relevance": relation.relevance}
    return Operation.model_validate(found | {"reasoning": _reasoning(relation)})


def _reasoning(relation: Relation) -> str:
    relevance = relation.relevance
    parts = f"{relevance.type} type + {relevance.topic} topic + {relevance.semantic} semantic"
    return f"{band(relevance)} relevance ({relevance.score} = {parts}): it {relation.link.value}"


def band(relevance: Relevance) -> str:
    """Return the name of a score's band: HIGH, MODERATE, LOW or NO."""
    score = relevance.score
    return "HIGH" if score >= HIGH else "MODERATE" if score >= MODERATE else "LOW" if score > 0 else "NO"


def _forget(statement: str, request: IntegrateRequest) -> list[Operation]:
    """Retire the statement that is meant by a request to forget; none when no one is meant for sure."""
    wanted = _meant(statement) or _meant(request.message)
    found = [(_share_of(wanted, content_stems(one.content)), one) for one in request.existing]
    best = max(found, key=lambda pair: pair[0], default=None)
    if best is None or best[0] < 0.6:
        return []
    full = Relevance(type=0.3, topic=0.3, semantic=0.3)
    importance = request.candidate.importance
    reasoning = "the person asked to forget it"
    return [Operation(operation="DELETE", id=best[1].id, relevance=full, importance=importance, reasoning=reasoning)]


def _meant(text: str) -> list[str]:
    commands = {stem(word) for word in _COMMAND_WORDS}
    return [one for one in content_stems(text) if one not in commands]


def _share_of(wanted: Sequence[str], stems: Sequence[str]) -> float:
    values = [frozenset({one}) for one in stems]
    found = [one for one in wanted if any(means_same(frozenset({one}), other) for other in values)]
    return len(found) / len(wanted) if wanted else 0.0
