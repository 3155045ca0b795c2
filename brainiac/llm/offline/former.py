"""What was before: the old side of a change, or the newest statement of the same that does not name what came after."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brainiac.language.sentences import content_stems
from brainiac.llm.offline.matching import Match
from brainiac.llm.offline.questions import Question


def answer_former(question: Question, matches: Sequence[Match]) -> list[Match]:
    """Return the answers to "… before X", best first.

    Args:
        question: With the stems of X in `before`; empty for "previous".
        matches: Of all evidence with the question less its "before X".
    """
    topical = [one for one in matches if one.is_answer]
    told = [
        one
        for one in matches
        if _tells_order(one, question.before) and (one.coverage >= 0.5 or (question.before and not one.lacks_name))
    ]
    if told:
        return sorted(told, key=lambda one: (-one.coverage, -one.evidence.at.timestamp()))
    others = [one for one in topical if not (question.before & one.evidence.sentence.stems)]
    if not question.before:
        newest = max((one.evidence.at for one in topical if not one.evidence.is_past), default=None)
        others = [one for one in topical if one.evidence.is_past or one.evidence.at != newest]
    known_since = [
        one.evidence.at for one in matches if question.before and question.before <= one.evidence.sentence.stems
    ]
    if (
        question.before
        and not known_since
        and not any(one.evidence.sentence.stems & question.before for one in matches)
    ):
        return []
    return sorted(others, key=lambda one: (-round(one.score, 1), -one.evidence.at.timestamp()))


def _tells_order(one: Match, before: frozenset[str]) -> bool:
    """Tell whether a statement itself says what came before X: `before X …`, `from … to X`."""
    said = one.evidence.said
    if not before:
        return (
            one.evidence.is_past
            or bool(said.old)
            or bool(re.search(r"\b(?:used to|previously|formerly|before)\b", said.original, re.I))
        )
    if said.old and before & set(content_stems(said.new, "english")):
        return True
    found = re.search(r"\b(?:before|prior to|until)\b(?P<what>[^,.]*)", said.original, re.I)
    return bool(found and before & set(content_stems(found["what"], "english")))
