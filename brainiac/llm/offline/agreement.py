"""Of whom a word is said: `her husband` is not mine, `Elena lives` is not where I live."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from brainiac.language.times import find_times
from brainiac.llm.offline.evidence import Evidence, Token
from brainiac.llm.offline.questions import Question, Term

_NOW = datetime(2000, 1, 1)  # only whether a word tells a time matters
_OTHERS = frozenset("he she it they his her their its him them".split())
_USERS = frozenset("i we user my our me us i'm i've we're we've i'd i'll".split())
_SKIPPED = frozenset(
    "also always just never really usually only still often actually already currently now recently and to have has "
    "had am is are was were be been get gets got getting gotten do does did don't doesn't didn't will would can could "
    "should must may might not 've 're rather all both".split()
)
_OF_USER = re.compile(r"\b(?:User|they|their|them|we|our|us)\b", re.IGNORECASE)


def is_about_another(question: Question, evidence: Evidence) -> bool:
    """Tell whether a question about the one who asks meets a sentence that does not speak of them."""
    is_own = question.subject == "user" or any(term.owner == "user" for term in question.terms)
    return is_own and not any(term.phrase >= 0 for term in question.terms) and not mentions_user(evidence)


def mentions_user(evidence: Evidence) -> bool:
    """Tell whether a sentence speaks of the one who typed it."""
    return bool(_OF_USER.search(evidence.said.text))


def agrees(term: Term, question: Question, evidence: Evidence, position: int) -> bool:
    """Tell whether a word is said of the one it is asked of.

    Args:
        term: Of the question, with its owner.
        question: With the subject of its verb.
        evidence: The sentence.
        position: Of the word among its tokens.
    """
    tokens = evidence.sentence.tokens
    if term.owner == "user":
        return owner_before(tokens, position) != "other" or not evidence.is_typed
    if term.is_verb and question.subject:
        subject = _subject_before(tokens, position)
        return subject in ("user", "") if question.subject == "user" else subject != "user"
    return True


def owner_before(tokens: Sequence[Token], position: int) -> str:
    """Return whose the thing at a position is: `user`, `other`, or "" where that is not said."""
    for token in reversed(tokens[max(0, position - 3) : position]):
        lower = token.word.lower()
        if lower in ("my", "our"):
            return "user"
        if lower in ("her", "his", "their", "its") or lower.endswith("'s"):
            return "other"
        if lower in ("a", "an", "the"):
            return ""
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
