"""What speaks for a statement as the answer to a question, as a few named figures.

Each word of a question looks for the word nearest in meaning in the note that holds the statement; words that are
rare, in English and in this memory, count for more. What is met, what is left unmet, whether a name is missing,
whether the statement holds the kind of thing that is asked for, and whether it speaks of the right person are the
figures; `weights.WEIGHTS` makes of them the log-odds that it is the answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainiac.language.relatedness import likenesses, rarity
from brainiac.language.sentences import needs_after
from brainiac.llm.offline.agreement import agrees, is_about_another, mentions_user, owner_before
from brainiac.llm.offline.evidence import Evidence
from brainiac.llm.offline.holding import CERTAIN, CHECKED, holds
from brainiac.llm.offline.questions import Question, Term

LINKED = 0.8  # what a word counts that stands in what the statement refers to
CLOSE = 0.4  # likeness from which a word makes a statement worth a look
SAME = 0.7  # likeness from which a word is the one that was asked for
_FORMERLY = re.compile(
    r"\b(?:used to(?! be called)|formerly|previously|back then)\b"
    r"|^before\b.*\b(?:lived|worked|was|were|had|did|drove|used|taught|studied|owned)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question beside the memory that it is asked of.

    Attributes:
        weights: Of the question's terms, by how rare each is in this memory and in English.
        near: For each term the stems of this memory that may stand for it.
        close: All stems near enough to one of the terms for a statement to be looked at.
    """

    question: Question
    weights: tuple[float, ...]
    near: tuple[Mapping[str, float], ...]
    close: frozenset[str]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one statement.

    Attributes:
        values: By name, as in `weights.WEIGHTS`.
        found: Numbers of the question's terms that it holds.
    """

    values: Mapping[str, float]
    found: frozenset[int]


def asked_of(question: Question, evidence: Sequence[Evidence]) -> Asked:
    """Weigh the words of a question by what memory holds."""
    counts = Counter(stem for one in evidence for stem in one.sentence.stems)
    stems = [term.stem for term in question.terms]
    nearby = {stem for one in evidence for stem in one.sentence.nearby}
    weights = [rarity(stem) * (0.6 + 0.4 * _rarity_here(stem, counts, len(evidence))) for stem in stems]
    near = tuple(likenesses(stems, list(counts.keys() | nearby)))
    close = frozenset(stem for found in near for stem, likeness in found.items() if likeness >= CLOSE)
    return Asked(question, tuple(weights), near, close)


def _rarity_here(stem: str, counts: Mapping[str, int], total: int) -> float:
    return math.log((total + 1) / (counts[stem] + 0.5)) / math.log((total + 1) / 0.5)


def is_touched(asked: Asked, evidence: Evidence, links: Sequence[frozenset[str]]) -> bool:
    """Tell whether a statement has a word to do with a question; each has if only the one who asks is meant."""
    if not asked.question.terms or (evidence.said.kind == "change" and evidence.said.old):
        return True  # a change bears on what it leaves behind, whatever its words
    around = (evidence.sentence.stems, evidence.sentence.nearby, *links)
    return any(not stems.isdisjoint(asked.close) for stems in around)


def figures_of(asked: Asked, evidence: Evidence, links: Sequence[frozenset[str]] = ()) -> Figures:
    """Return the figures of one statement.

    Args:
        asked: The question.
        evidence: One sentence that memory holds.
        links: Stems that belong to it by what it refers to, e.g. those of the task it finishes.
    """
    question, sentence = asked.question, evidence.sentence
    inside = [_inside(term, near, question, evidence) for term, near in zip(question.terms, asked.near, strict=True)]
    found = [
        max(here, _nearest(near, sentence.nearby), *(LINKED * _nearest(near, stems) for stems in links), 0.0)
        for here, near in zip(inside, asked.near, strict=True)
    ]
    names = _names(question.terms, found)
    total = sum(asked.weights) or 1.0
    met = sum(weight * quality for weight, quality in zip(asked.weights, found, strict=True))
    is_checked = question.expected in CHECKED
    strength = holds(question, evidence) if is_checked else 0.0
    values = {
        "coverage": met / total,
        "exactly": sum(w for w, quality in zip(asked.weights, found, strict=True) if quality > 0.85) / total,
        "least": min(found, default=0.0),
        "matter": math.log1p(2 * met),
        "unmet": sum(asked.weights) - met,
        "density": sum(quality > 0.8 for quality in inside) / max(3, len(sentence.stems)),
        "lacks name": float(any(quality < SAME for quality in names.values())),
        "has name": float(bool(names)),
        "holds": strength,
        "lacks kind": float(is_checked and strength == 0.0),
        "surely lacks kind": float(strength == 0.0 and question.expected in CERTAIN),
        "asks value": float(question.expected in ("date", "duration", "number", "money")),
        "asks statement": float(question.expected == "statement"),
        "asks yes or no": float(question.expected == "yes-no"),
        "asks why or how": float(question.expected in ("reason", "steps")),
        "own": float(_is_own(asked, evidence)),
        "another's": float(is_about_another(question, evidence) and not _is_linked(asked, links)),
        "past": float(question.is_present and (evidence.is_past or _is_former(evidence))),
        "another time": float(not falls_into(evidence, question)),
        "task": float(evidence.said.kind == "task"),
        "of oneself": float(strength > 0 and not question.terms and _is_of_oneself(question, evidence)),
        "always": 1.0,
    }
    return Figures(values, frozenset(i for i, quality in enumerate(found) if quality >= SAME))


def _inside(term: Term, near: Mapping[str, float], question: Question, evidence: Evidence) -> float:
    """Return how near the sentence comes to a term, said of the one it is asked of."""
    if term.owner != "user" and not (term.is_verb and question.subject):
        return _nearest(near, evidence.sentence.stems)
    tokens = evidence.sentence.tokens
    alike = ((near.get(token.stem, 0.0), position) for position, token in enumerate(tokens) if token.is_content)
    meant = ((one, position) for one, position in alike if one and _is_meant(term.stem, evidence, position))
    return max((one for one, position in meant if agrees(term, question, evidence, position)), default=0.0)


def _is_meant(asked: str, evidence: Evidence, position: int) -> bool:
    """Tell whether a word of several meanings has the one that makes it a synonym: `move to` is `live`."""
    tokens = evidence.sentence.tokens
    followers = needs_after(tokens[position].stem) if tokens[position].stem != asked else frozenset()
    return not followers or any(token.word.lower() in followers for token in tokens[position + 1 : position + 2])


def falls_into(evidence: Evidence, question: Question, *, is_saying: bool = False) -> bool:
    """Tell whether what was said happened, or that it was said, in the days that the question is limited to."""
    if question.span is None:
        return True
    days = [] if is_saying else [(span.earliest, span.latest) for span in evidence.days()]
    if not days:
        days = [(evidence.at.date(), evidence.at.date())] if evidence.is_dated else []
    return any(first <= question.span.latest and last >= question.span.earliest for first, last in days)


def _nearest(near: Mapping[str, float], stems: frozenset[str]) -> float:
    return max(map(near.__getitem__, near.keys() & stems), default=0.0)


def _is_of_oneself(question: Question, evidence: Evidence) -> bool:
    """Tell whether a question about oneself that needs no other word ("what do I do for a living?") is met."""
    return question.subject == "user" and question.expected in ("profession", "name", "age") and mentions_user(evidence)


def _is_linked(asked: Asked, links: Sequence[frozenset[str]]) -> bool:
    """Tell whether what is asked of as one's own is what the statement refers to: Luna is the cat."""
    wanted = {term.stem for term in asked.question.terms if term.owner == "user"}
    return any(not wanted.isdisjoint(stems) for stems in links)


def _is_own(asked: Asked, evidence: Evidence) -> bool:
    """Tell whether something that is asked of as one's own is said to be one's own: `my studio`."""
    tokens = evidence.sentence.tokens
    wanted = [near for term, near in zip(asked.question.terms, asked.near, strict=True) if term.owner == "user"]
    return any(
        near.get(token.stem, 0.0) >= SAME and owner_before(tokens, position) == "user"
        for near in wanted
        for position, token in enumerate(tokens)
    )


def _names(terms: Sequence[Term], found: Sequence[float]) -> dict[int, float]:
    """Return how well each name is met: by its best part."""
    names: dict[int, float] = {}
    for term, quality in zip(terms, found, strict=True):
        if term.phrase >= 0:
            names[term.phrase] = max(quality, names.get(term.phrase, 0.0))
    return names


def _is_former(evidence: Evidence) -> bool:
    return bool(_FORMERLY.search(evidence.said.plain)) and evidence.said.kind not in ("change", "decision")
