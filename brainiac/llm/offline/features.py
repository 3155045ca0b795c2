"""What speaks for a statement as the answer to a question, as a few named figures."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainiac.language.relatedness import is_misspelt, likenesses, rarity
from brainiac.language.sentences import needs_after
from brainiac.llm.offline.agreement import agrees, is_about_another, mentions_user, owner_before
from brainiac.llm.offline.evidence import Evidence
from brainiac.llm.offline.holding import CERTAIN, CHECKED, holds
from brainiac.llm.offline.questions import Question, Term

BESIDE = 0.8  # what a word counts that stands in the sentence beside
SAME = 0.68  # likeness from which a word is the one that was asked for
_ALSO_VERBS = frozenset("make type size name rate cost call work plan model sort brand form number".split())
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
        near: For each term the stems that stand for it, misspelt ones included.
    """

    question: Question
    weights: tuple[float, ...]
    near: tuple[Mapping[str, float], ...]


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
    near = [_near(term.stem, counts) for term in question.terms]
    weights = [
        term.weight * (0.4 + 0.3 * rarity(term.stem) + 0.3 * _rarity_here(term.stem, counts, len(evidence)))
        for term in question.terms
    ]
    return Asked(question, tuple(weights), tuple(near))


def _near(stem: str, counts: Mapping[str, int]) -> Mapping[str, float]:
    near = likenesses(stem)
    if stem in counts:
        return near
    is_word = rarity(stem) < 1.0
    misspelt = {
        other: 0.8
        for other in counts
        if not (is_word and rarity(other) < 1.0) and other not in near and is_misspelt(stem, other)
    }
    return {**near, **misspelt} if misspelt else near


def _rarity_here(stem: str, counts: Mapping[str, int], total: int) -> float:
    return math.log((total + 1) / (counts[stem] + 0.5)) / math.log((total + 1) / 0.5)


def is_touched(asked: Asked, evidence: Evidence, links: Sequence[frozenset[str]]) -> bool:
    """Tell whether a statement has a word to do with a question; each has if only the one who asks is meant."""
    if not asked.question.terms or (evidence.said.kind == "change" and evidence.said.old):
        return True  # a change bears on what it leaves behind, whatever its words
    around = (evidence.sentence.stems, *_around(evidence, links))
    return any(not stems.isdisjoint(near) for near in asked.near for stems in around)


def figures_of(asked: Asked, evidence: Evidence, links: Sequence[frozenset[str]] = ()) -> Figures:
    """Return the figures of one statement.

    Args:
        asked: The question.
        evidence: One sentence that memory holds.
        links: Stems that belong to it by what it refers to, e.g. those of the task it finishes.
    """
    question, terms = asked.question, asked.question.terms
    inside = [_quality(term, near, question, evidence) for term, near in zip(terms, asked.near, strict=True)]
    found = [
        max(
            here,
            *(
                BESIDE * max((near[s] for s in around & near.keys()), default=0.0)
                for around in _around(evidence, links)
            ),
        )
        for here, near in zip(inside, asked.near, strict=True)
    ]
    names = _names(terms, found)
    things = [i for i, term in enumerate(terms) if term.phrase < 0 and term.weight >= 1]
    total = sum(asked.weights) or 1.0
    focus = [found[i] for i in things if terms[i].is_focus]
    matched = sum(weight * quality for weight, quality in zip(asked.weights, found, strict=True))
    is_checked = question.expected in CHECKED
    strength = holds(question, evidence) if is_checked else 0.0
    share = _share(asked.weights, found, things)
    values = {
        "always": 1.0,
        "coverage": matched / total,
        "complete": float(matched >= 0.95 * total),
        "inside": sum(w * q for w, q in zip(asked.weights, inside, strict=True)) / total,
        "things": share,
        "no things": float(not things),
        "misses things": float(bool(things) and share < 0.35),
        "misses focus": float(bool(focus) and focus[0] < 0.4),
        "has focus": float(bool(focus)),
        "lacks name": float(any(quality < SAME for quality in names.values())),
        "has name": float(bool(names)),
        "matter": math.log1p(matched),
        "density": sum(q >= SAME for q in inside) / max(3, len(evidence.sentence.stems)),
        "holds": strength,
        "holds and covers": strength * share,
        "lacks kind": float(is_checked and strength == 0.0),
        "surely lacks kind": float(strength == 0.0 and question.expected in CERTAIN),
        "unchecked": float(not is_checked),
        "own": float(_is_own(asked, evidence)),
        "another's": float(is_about_another(question, evidence) and not _is_linked(asked, links)),
        "past": float(question.is_present and (evidence.is_past or _is_former(evidence))),
        "task": float(evidence.said.kind == "task"),
        "steps": float(evidence.said.kind == "how-to" and question.expected == "steps"),
        "decision": float(evidence.said.kind == "decision" and question.listing == "decisions"),
        "of oneself": float(not things and not names and strength > 0 and _is_of_oneself(question, evidence)),
    }
    return Figures(values, frozenset(i for i, quality in enumerate(found) if quality >= SAME))


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


def _around(evidence: Evidence, links: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    return [evidence.sentence.nearby, *links]


def _names(terms: Sequence[Term], found: Sequence[float]) -> dict[int, float]:
    """Return how well each name is met: by its best part."""
    names: dict[int, float] = {}
    for term, quality in zip(terms, found, strict=True):
        if term.phrase >= 0:
            names[term.phrase] = max(quality, names.get(term.phrase, 0.0))
    return names


def _share(weights: Sequence[float], found: Sequence[float], which: Sequence[int]) -> float:
    total = sum(weights[i] for i in which)
    return sum(weights[i] * found[i] for i in which) / total if total else 0.0


def _quality(term: Term, near: Mapping[str, float], question: Question, evidence: Evidence) -> float:
    """Return how near the sentence comes to a term, said of the one it is asked of."""
    sentence = evidence.sentence
    best = 0.0
    if sentence.stems.isdisjoint(near):
        return best
    for position, token in enumerate(sentence.tokens):
        alike = near.get(token.stem, 0.0) if token.is_content else 0.0
        if term.is_focus and token.word.endswith("ing") and token.stem in _ALSO_VERBS:
            continue  # asked for a make, "making" is none
        if alike > best and _is_meant(term.stem, evidence, position) and agrees(term, question, evidence, position):
            best = alike
    return best


def _is_meant(asked: str, evidence: Evidence, position: int) -> bool:
    """Tell whether a word of several meanings has the one that makes it a synonym."""
    tokens = evidence.sentence.tokens
    followers = needs_after(tokens[position].stem)
    if not followers or tokens[position].stem == asked:
        return True
    return any(token.word.lower() in followers for token in tokens[position + 1 : position + 2])


def _is_former(evidence: Evidence) -> bool:
    return bool(_FORMERLY.search(evidence.said.plain)) and evidence.said.kind not in ("change", "decision")
