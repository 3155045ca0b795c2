"""Whether what a model made of the event log was said there: nothing invented gets into memory (seeds I8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brainiac.language.calendar_days import MONTHS
from brainiac.language.entities import find_mentions, means_same
from brainiac.language.sentences import content_stems, overlap
from brainiac.llm.schemas import Candidate

_FIRM = frozenset({"name", "place", "relation", "quantity", "negation"})  # days and ages may be worked out
_MONTHS = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS)
_DATE = re.compile(  # a day may be worked out from "yesterday"
    rf"\b\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})\b(?: \d{{4}})?|\b(?:{_MONTHS})(?: \d{{1,2}}\b)?,?(?: \d{{4}})?\b"
    r"|\b(?:19|20)\d\d(?:-\d\d){0,2}\b",
    re.IGNORECASE,
)
_LEAST_SHARE = 0.34  # a paraphrase keeps a third of the words
_SPOKEN_OF = frozenset({"user", "name"})


@dataclass(frozen=True, slots=True)
class Titles:
    """What the titles of pages name, read once: a name may be given for "she".

    Attributes:
        text: All of them, casefolded.
        values: Of their mentions.
        stems: Of their words.
    """

    text: str
    values: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, titles: Iterable[str]) -> Titles:
        """Read titles."""
        titles = list(titles)
        values = frozenset(value for title in titles for one in find_mentions(title) for value in one.values)
        text = " ".join(titles)
        return cls(text.casefold(), values, frozenset(content_stems(text)))


def invented(candidate: Candidate, said: Iterable[str], known: Titles) -> str:
    """Return what a candidate states that nobody said; "" when it is all grounded.

    Args:
        candidate: What a model proposes to remember.
        said: The texts of the events it may rest on.
        known: The titles of pages.
    """
    texts = list(said)
    heard = [mention for text in texts for mention in find_mentions(text)]
    words = " ".join(texts).casefold()
    for mention in find_mentions(_DATE.sub(" ", candidate.statement)):
        if mention.kind not in _FIRM or not mention.values.isdisjoint(_SPOKEN_OF):
            continue
        named = mention.text.casefold()
        if mention.kind == "negation":
            is_heard = candidate.is_forget or any(one.kind == "negation" or "dislike" in one.values for one in heard)
        elif mention.is_number:
            is_heard = named in words or any(one.is_number and one.values & mention.values for one in heard)
        else:
            is_heard = named in words or any(means_same(mention.values, one.values) for one in heard)
        is_titled = mention.kind != "negation" and (named in known.text or not known.values.isdisjoint(mention.values))
        if not is_heard and not is_titled:
            return mention.text
    stems = [one for one in content_stems(candidate.statement) if one not in _SPOKEN_OF]
    heard_stems = content_stems(words)
    if stems and overlap(stems, (*heard_stems, *known.stems.intersection(stems))) < _LEAST_SHARE:
        return candidate.statement
    return _invented_step(candidate.steps, heard_stems)


def _invented_step(steps: Sequence[str], heard: Sequence[str]) -> str:
    return next((step for step in steps if overlap(content_stems(step), heard) < 0.6), "")
