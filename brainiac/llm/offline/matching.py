"""Which statements answer a question, best first; of those that tell of the same thing the newest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainiac.language.sentences import content_stems
from brainiac.llm.offline.evidence import Evidence
from brainiac.llm.offline.features import Asked, Figures, asked_of, figures_of, is_touched
from brainiac.llm.offline.questions import Question
from brainiac.llm.offline.weights import WEIGHTS

ENOUGH = 0.0  # score from which a statement is given as the answer
NEAR = 1.0  # within this a later statement on the same is preferred to the best
NEAR_UPDATE = 2.5  # the same for one that says that something changed
SAME_MATTER = 0.3  # shared words of two statements that tell of the same thing
_UPDATE = re.compile(
    r"\b(?:now|up to|any ?more|no longer|correction|instead|changed|switched|moved|postponed|raised|down to|these days"
    r"|new|back|at last|finally|actually|since|from (?:now|this|tomorrow))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Match:
    """A statement beside a question.

    Attributes:
        figures: What speaks for it.
        score: Log-odds that it is the answer.
    """

    evidence: Evidence
    figures: Figures
    score: float

    @property
    def coverage(self) -> float:
        """Share of the question that the statement covers, 0 to 1."""
        return self.figures.values["coverage"]

    @property
    def is_answer(self) -> bool:
        """Whether it is more likely the answer than not."""
        return self.score >= ENOUGH


def matches_of(
    question: Question, evidence: Sequence[Evidence], links: Mapping[int, Sequence[frozenset[str]]] | None = None
) -> list[Match]:
    """Compare with a question every statement that has at least a word to do with it.

    Args:
        question: Taken apart.
        evidence: All that memory holds, since what is rare there counts for more.
        links: For `id(evidence)`, stems that belong to it by what it refers to, e.g. those of the task it finishes.
    """
    asked = asked_of(question, evidence)
    beside = [(one, (links or {}).get(id(one), ())) for one in evidence]
    return [_match(asked, one, refers) for one, refers in beside if is_touched(asked, one, refers)]


def _match(asked: Asked, evidence: Evidence, links: Sequence[frozenset[str]]) -> Match:
    figures = figures_of(asked, evidence, links)
    return Match(evidence, figures, sum(WEIGHTS[name] * value for name, value in figures.values.items() if value))


def best(matches: Sequence[Match], *, is_present: bool = True) -> list[Match]:
    """Return the answers among them, best first, a newer statement of the same thing before what it replaces.

    Args:
        matches: Of all evidence.
        is_present: What holds now was asked for, so that a change counts as an answer: "I left A for B" after "I work
            at A".
    """
    answers = sorted((one for one in matches if one.is_answer), key=lambda one: -one.score)
    if not answers:
        return []
    newest = max((one for one in answers if _may_replace(one, answers[0])), key=lambda one: one.evidence.at)
    changes = [one for one in matches if is_present and leaves_behind(one, newest)]
    first = max(changes, key=lambda one: one.evidence.at, default=newest)
    rest = [newest] if first is not newest else []
    return [first, *rest, *(one for one in answers if one is not newest and one is not first)]


def leaves_behind(change: Match, former: Match) -> bool:
    """Tell whether a later statement says that the one thing it changes is what an earlier one tells of."""
    old = set(content_stems(change.evidence.said.old))
    return (
        bool(old)
        and change is not former
        and change.evidence.at >= former.evidence.at  # told within one second, both stand in the order of their telling
        and old <= former.evidence.sentence.stems
        and bool(change.evidence.said.new)
        and change.evidence.said.kind == "change"
    )


def _may_replace(later: Match, first: Match) -> bool:
    if later is first:
        return True
    if not first.figures.found <= later.figures.found or later.figures.values["past"]:
        return False
    if later.figures.values["holds"] < first.figures.values["holds"]:
        return False
    is_update = bool(_UPDATE.search(later.evidence.said.plain))
    words, others = later.evidence.sentence.stems, first.evidence.sentence.stems
    shared = len(words & others) / len(words | others)
    if is_update and shared >= SAME_MATTER / 3:
        return later.score >= first.score - NEAR_UPDATE
    return shared >= SAME_MATTER and later.score >= first.score - NEAR
