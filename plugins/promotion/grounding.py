"""Whether what a model made of the event log was said there: nothing invented gets into memory (seeds I8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from brainiac.llm.schemas import Candidate
from brainiac.text.calendar_days import MONTHS

from .entities import Mention, find_mentions, means_same
from .stems import content_stems, overlap

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
class Heard:
    """What texts name, read once for all candidates.

    Attributes:
        text: All of them, casefolded.
        values: Of every mention.
        words: Normal forms of each word that another of its family may stand for; none of titles.
        numbers: Values of every number.
        is_denied: Something is denied there.
        stems: Of all words.
    """

    text: str
    values: frozenset[str]
    words: frozenset[frozenset[str]]
    numbers: frozenset[str]
    is_denied: bool
    stems: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str], *, is_title: bool = False) -> Heard:
        """Read texts: what was said, or the titles of pages, which may be given for "she"."""
        texts = list(texts)
        told = [mention for text in texts for mention in find_mentions(text)]
        words = [one for one in told if not one.is_number]
        whole = " ".join(texts)
        return cls(
            whole.casefold(),
            frozenset(value for one in words for value in one.values),
            frozenset() if is_title else frozenset(one.values for one in words),
            frozenset(value for one in told if one.is_number for value in one.values),
            any(one.kind == "negation" or "dislike" in one.values for one in told) and not is_title,
            frozenset(content_stems(whole)),
        )

    def has(self, mention: Mention) -> bool:
        """Tell whether a mention stands there, in these or equal words."""
        if mention.kind == "negation":
            return self.is_denied
        if mention.text.casefold() in self.text:
            return True
        if mention.is_number:
            return not self.numbers.isdisjoint(mention.values)
        return not self.values.isdisjoint(mention.values) or any(means_same(mention.values, one) for one in self.words)


def invented(candidate: Candidate, said: Heard, titles: Callable[[], Heard]) -> str:
    """Return what a candidate states that nobody said; "" when it is all grounded.

    Args:
        candidate: What a model proposes to remember.
        said: The events it may rest on.
        titles: Gives those of pages; asked for only when somebody is named whom the events do not name.
    """
    for mention in find_mentions(_DATE.sub(" ", candidate.statement)):
        if mention.kind not in _FIRM or not mention.values.isdisjoint(_SPOKEN_OF):
            continue
        is_asked = mention.kind == "negation" and candidate.is_forget
        if not (is_asked or said.has(mention) or titles().has(mention)):
            return mention.text
    stems = [one for one in content_stems(candidate.statement) if one not in _SPOKEN_OF]
    if stems and overlap(stems, said.stems) < _LEAST_SHARE:
        heard = said.stems | titles().stems.intersection(stems)
        if overlap(stems, heard) < _LEAST_SHARE:
            return candidate.statement
    return _invented_step(candidate.steps, said.stems)


def _invented_step(steps: Sequence[str], heard: Collection[str]) -> str:
    return next((step for step in steps if overlap(content_stems(step), heard) < 0.6), "")
