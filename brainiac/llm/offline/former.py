"""What was before: the old side of a change, or the newest statement of the same that does not name what came after."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brainiac.language.sentences import content_stems
from brainiac.llm.offline.matching import Match, leaves_behind
from brainiac.llm.offline.questions import Question

ENOUGH_TOLD = -3.0  # score from which a statement that itself says what came before is an answer
_FORMERLY = re.compile(r"\b(?:used to|previously|formerly|before)\b", re.IGNORECASE)
_THEN = re.compile(
    r"\b(?:before|prior to|until|(?:changed|switched|moved|went|migrated|changing|switching|moving|over) to|replaced by"
    r"|succeeded by|instead of|took over from|takes over from|replaces|left .* (?:for|to join))\b(?P<what>[^,.;]*)",
    re.IGNORECASE,
)


def answer_former(question: Question, matches: Sequence[Match]) -> list[Match]:
    """Return the answers to "… before X", best first.

    Args:
        question: With the stems of X in `before`; empty for "previous".
        matches: Of all evidence with the question less its "before X".
    """
    if not question.before:
        changes = [(one, left) for left in matches if left.is_answer for one in matches if leaves_behind(one, left)]
        if changes:
            change, left = max(changes, key=lambda pair: (pair[0].evidence.at, pair[1].score))
            return [left, change]
    least = ENOUGH_TOLD if question.before else 0.0
    told = [one for one in matches if one.score >= least and _tells_order(one, question.before)]
    if told:
        return sorted(told, key=lambda one: (-one.score, -one.evidence.at.timestamp()))
    topical = [one for one in matches if one.is_answer]
    if question.before:
        if not any(question.before & one.evidence.sentence.stems for one in matches):
            return []
        topical = [one for one in topical if not question.before & one.evidence.sentence.stems]
    else:
        newest = max((one.evidence.at for one in topical if not one.evidence.is_past), default=None)
        topical = [one for one in topical if one.evidence.is_past or one.evidence.at != newest]
    return sorted(topical, key=lambda one: (-round(one.score), -one.evidence.at.timestamp()))


def _tells_order(one: Match, before: frozenset[str]) -> bool:
    """Tell whether a statement itself says what came before X: `before X …`, `from … to X`, `changed to X`."""
    said = one.evidence.said
    if not before:
        return one.evidence.is_past or bool(said.old) or bool(_FORMERLY.search(said.original))
    if before & set(content_stems(said.new)) and said.old:
        return True
    after = " ".join(found["what"] for found in _THEN.finditer(said.plain))
    return bool(before & set(content_stems(after)))
