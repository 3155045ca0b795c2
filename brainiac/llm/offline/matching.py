"""How well a statement answers a question: what of the question it covers, and whether it holds what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from brainiac.language.sentences import needs_after, related
from brainiac.language.times import find_times
from brainiac.llm.offline.evidence import Evidence, Token
from brainiac.llm.offline.holding import holds
from brainiac.llm.offline.questions import Question, Term

ENOUGH = 0.5  # of a question's weight that a statement must cover to count as an answer
ENOUGH_OF_KIND = 0.48  # the same, where the kind of thing asked for (a date, a sum) speaks for the statement as well
_TELLING = frozenset(
    {"date", "duration", "number", "money", "age", "person", "place", "reason", "weekday", "color", "profession"}
)
NEAR_TIE = 0.05  # within this the later statement is preferred: what was said last holds

_I = re.IGNORECASE
_NOW = datetime(2000, 1, 1)  # only whether a word tells a time matters
_OTHERS = frozenset("he she it they his her their its him them".split())
_USERS = frozenset("i we user my our me us i'm i've we're we've i'd i'll".split())
_SKIPPED = frozenset(
    "also always just never really usually only still often actually already currently now recently and to "
    "have has had am is are was "
    "were be been get gets got getting gotten do does did don't doesn't didn't will would can could should "
    "must may might not 've 're rather all both".split()
)
_FORMERLY = re.compile(
    r"\b(?:before|previously|formerly|used to|no longer|any ?more|stopped|gave up|until|lived|worked|was|were"
    r"|back then|ex-)\b",
    _I,
)


@dataclass(frozen=True, slots=True)
class Match:
    """A statement beside a question.

    Attributes:
        coverage: Share of the question's weight that the statement covers, 0 to 1.
        score: What statements are compared by.
        is_answer: Enough is covered, and it holds what was asked for.
        lacks_name: A name, or a thing that is possessed, which the question is about is missing.
    """

    evidence: Evidence
    coverage: float
    score: float
    is_answer: bool
    lacks_name: bool = False


def match(question: Question, evidence: Evidence, links: Sequence[frozenset[str]] = ()) -> Match:
    """Compare a statement with a question.

    Args:
        question: Taken apart.
        evidence: One sentence that memory holds.
        links: Stems that belong to it by what it refers to, e.g. those of the task it finishes.
    """
    qualities = [_quality(term, question, evidence, links) for term in question.terms]
    coverage = _share(zip(question.terms, qualities, strict=True))
    if not question.terms and question.subject == "user" and question.expected in _SELF_EVIDENT:
        coverage = 1.0 if _mentions_user(evidence) else 0.0
    elif _is_about_another(question, evidence):
        coverage *= 0.8
    rest = [(term, quality) for term, quality in zip(question.terms, qualities, strict=True) if term.phrase < 0]
    found_names = {term.phrase for term, quality in zip(question.terms, qualities, strict=True) if quality >= 0.68}
    is_missing = any(
        term.is_required and quality < 0.68 and (term.phrase < 0 or term.phrase not in found_names)
        for term, quality in zip(question.terms, qualities, strict=True)
    )
    least = ENOUGH_OF_KIND if question.expected in _TELLING else ENOUGH
    is_enough = coverage >= least and (sum(term.weight for term, _ in rest) < 1 or _share(rest) >= least - 0.15)
    strength = holds(question, evidence) if is_enough and not is_missing else 0.0
    score = coverage * (strength or 0.4) * _fitness(question, evidence)
    return Match(evidence, coverage, score, strength > 0, is_missing)


_OF_USER = re.compile(r"\b(?:User|they|their|them|we|our|us)\b", _I)
_SELF_EVIDENT = frozenset({"profession", "name", "age"})  # questions about oneself that need no other word


def _mentions_user(evidence: Evidence) -> bool:
    return bool(_OF_USER.search(evidence.said.text))


def _is_about_another(question: Question, evidence: Evidence) -> bool:
    """Tell whether a question about the one who asks meets a sentence that does not speak of them."""
    is_own = question.subject == "user" or any(term.owner == "user" for term in question.terms)
    return is_own and not any(term.phrase >= 0 for term in question.terms) and not _mentions_user(evidence)


def _share(found: Iterable[tuple[Term, float]]) -> float:
    pairs = list(found)
    total = sum(term.weight for term, _ in pairs)
    return sum(term.weight * quality for term, quality in pairs) / total if total else 0.0


def _fitness(question: Question, evidence: Evidence) -> float:
    """Lower what is past when the present is asked for, and tasks when they are not."""
    fitness = 1.0
    if question.is_present and (
        evidence.is_past or (_FORMERLY.search(evidence.said.plain) and not _is_change(evidence))
    ):
        fitness *= 0.8
    if evidence.said.kind == "task":
        fitness *= 0.85
    if evidence.said.kind == "how-to" and question.expected == "steps":
        fitness *= 1.15
    return fitness


def _is_change(evidence: Evidence) -> bool:
    return evidence.said.kind in ("change", "decision")


def _quality(term: Term, question: Question, evidence: Evidence, links: Sequence[frozenset[str]]) -> float:
    """Return how well a term is covered: in the sentence itself, beside it, or by what it refers to."""
    sentence = evidence.sentence
    near = related(term.stem)
    best = 0.0
    if not sentence.stems.isdisjoint(near):
        for position, token in enumerate(sentence.tokens):
            alike = near.get(token.stem, 0.0) if token.is_content else 0.0
            if (
                alike > best
                and _is_meant(term.stem, sentence.tokens, position)
                and _agrees(term, question, evidence, position)
            ):
                best = alike
    if best < 0.8 and not sentence.nearby.isdisjoint(near):
        best = max(best, 0.85 * max(near[one] for one in sentence.nearby & near.keys()))
    for stems in links if best < 0.5 else ():
        best = max([best, *(0.8 * near[one] for one in stems & near.keys())])
    return best


def _is_meant(asked: str, tokens: Sequence[Token], position: int) -> bool:
    """Tell whether a word of several meanings has the one that makes it a synonym."""
    followers = needs_after(tokens[position].stem)
    if not followers or tokens[position].stem == asked:
        return True
    return any(token.word.lower() in followers for token in tokens[position + 1 : position + 2])


def _agrees(term: Term, question: Question, evidence: Evidence, position: int) -> bool:
    """Tell whether the word is said of the one it is asked of: `her husband` is not mine, `Elena lives` not I live."""
    tokens = evidence.sentence.tokens
    if term.owner == "user":
        return _owner_before(tokens, position) != "other" or not evidence.is_typed
    if term.is_verb and question.subject:
        subject = _subject_before(tokens, position)
        if question.subject == "user":
            return subject in ("user", "")
        return subject != "user"
    return True


def _owner_before(tokens: Sequence[Token], position: int) -> str:
    for token in reversed(tokens[max(0, position - 3) : position]):
        lower = token.word.lower()
        if lower in ("my", "our"):
            return "user"
        if lower in ("her", "his", "their", "its") or lower.endswith("'s"):
            return "other"
    return ""


def _subject_before(tokens: Sequence[Token], position: int) -> str:
    """Return `user`, `other`, or "" where no subject stands right before the word."""
    for token in reversed(tokens[max(0, position - 5) : position]):
        lower = token.word.lower()
        if lower in _USERS:
            return "user"
        if lower in _SKIPPED or lower.endswith("ly"):
            continue
        is_before_it = token is tokens[position - 1]
        if lower in _OTHERS or (
            token.is_content and (token.word[0].isupper() or (is_before_it and not find_times(lower, _NOW)))
        ):
            return "other"
        return ""
    return ""


def best(matches: Iterable[Match]) -> list[Match]:
    """Return the answers among them, best first; of those that fit about equally the latest comes first."""
    answers = sorted((one for one in matches if one.is_answer), key=lambda one: -one.score)
    if not answers:
        return []
    top = [one for one in answers if one.score >= answers[0].score - NEAR_TIE]
    top.sort(
        key=lambda one: (
            one.evidence.is_past,
            one.evidence.said.kind == "task",
            -one.evidence.at.timestamp(),
            -one.score,
        )
    )
    return top + answers[len(top) :]
