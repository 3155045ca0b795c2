"""Which statements answer a question, best first; of those that tell of the same thing the newest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainiac.integration.succession import retires
from brainiac.language.sentences import content_stems
from brainiac.language.supposition import is_contrary, is_supposed
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


def best(matches: Sequence[Match], question: Question) -> list[Match]:
    """Return the answers among them, best first, a newer statement of the same thing before what it replaces.

    Args:
        matches: Of all evidence.
        question: Where it asks for what holds now, a change counts as an answer ("I left A for B" after "I work at
            A"), and what is comes before what may be.
    """
    asks_fact = question.is_present and not is_supposed(question.text)
    found = (one for one in matches if one.is_answer and not (asks_fact and is_contrary(one.evidence.said.plain)))
    answers = sorted(found, key=lambda one: -one.score)
    if not answers:
        return []
    first = _asserted(answers) if asks_fact else answers[0]
    newest = max((one for one in matches if _may_replace(one, first)), key=lambda one: one.evidence.at)
    changes = [one for one in matches if question.is_present and leaves_behind(one, newest)]
    first = max(changes, key=lambda one: one.evidence.at, default=newest)
    rest = [newest] if first is not newest else []
    return [first, *rest, *(one for one in answers if one is not newest and one is not first)]


def _asserted(answers: Sequence[Match]) -> Match:
    """Return the best answer, or what is for certain where that is only supposed and meets the question no better."""
    lead = answers[0]
    if not is_supposed(lead.evidence.said.plain):
        return lead
    certain = (one for one in answers if not is_supposed(one.evidence.said.plain) and _meets_as_well(one, lead))
    return next(certain, lead)


def _meets_as_well(one: Match, other: Match) -> bool:
    holds = one.figures.values["holds"] >= other.figures.values["holds"]
    return holds and one.figures.found >= other.figures.found and not one.figures.values["past"]


def succeeds(later: Evidence, former: Evidence) -> bool:
    """Tell whether a later statement stands in the place of an earlier one: what promotion retires it for."""
    return later.at > former.at and retires(later.said.text, former.said.text)


def was_before(former: Match, later: Match) -> bool:
    """Tell whether a statement is what held before another: of the same matter, and ended by it."""
    if is_supposed(former.evidence.said.plain) or former.evidence.at == later.evidence.at:
        return False
    return succeeds(later.evidence, former.evidence) or leaves_behind(later, former)


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
    if not _meets_as_well(later, first):
        return False
    if succeeds(later.evidence, first.evidence):
        return True
    is_weaker = is_supposed(later.evidence.said.plain) and not is_supposed(first.evidence.said.plain)
    if is_weaker or not later.is_answer:
        return False
    is_update = bool(_UPDATE.search(later.evidence.said.plain))
    words, others = later.evidence.sentence.stems, first.evidence.sentence.stems
    shared = len(words & others) / len(words | others)
    if is_update and shared >= SAME_MATTER / 3:
        return later.score >= first.score - NEAR_UPDATE
    return shared >= SAME_MATTER and later.score >= first.score - NEAR
