"""Whether a new statement tells what came of an old one: a sign of change, the same matter, another value (I5).

`relevance` compares clauses that are alike; people tell most changes in other words (`moved to Tuesday`, `we dropped
ads for a yearly price`), so that here the matter and the kind of value decide.
"""

from __future__ import annotations

import re
from functools import lru_cache

from brainiac.integration.clauses import split_clauses
from brainiac.language.calendar_days import MONTHS
from brainiac.language.entities import find_mentions
from brainiac.language.sentences import content_stems

_I = re.IGNORECASE
_CHANGE = re.compile(
    r"\b(?:now|no longer|any ?more|instead of|rather than|actually|mov(?:e|es|ed|ing)|switch\w*|chang\w*|dropp\w*"
    r"|replac\w*|push\w*|postpon\w*|brought forward|re-?schedul\w*|swap\w*|(?:gone|went|going) (?:right |clean )?off"
    r"|overtak\w*|upgrad\w*|bump\w*|(?:went|gone) up|new (?:dates?|price|time|day|number)"
    r"|misread|got .{1,40} wrong"
    r"|correct(?:ion|ed)|from (?:today|tomorrow|next|now on|(?:january|february|march|april|may|june|july|august"
    r"|september"
    r"|october|november|december)\b)|delayed|earlier than|later than)\b",
    _I,
)
_LEFT = re.compile(
    r"\b(?:from|dropp(?:ed|ing)|instead of|rather than|not|no longer|left|leaving|quit|stopped|sold|replac(?:ed|es|ing)"
    r"|gave up|got rid of|cancell?ed|can't do)\s+"
    r"(?:using\s+|at\s+|for\s+|on\s+|the\s+|my\s+|our\s+)*(?P<what>[^,.;:]{2,40})",
    _I,
)
_MONTH = r"(?:" + "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS) + ")"
_VALUES = {
    "money": re.compile(r"[£$€]\s?\d[\d,.]*\d|[£$€]\d|\b\d[\d,.]* ?(?:euros?|pounds?|dollars?)\b", _I),
    "clock": re.compile(r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?(?:am|pm)\b", _I),
    "weekday": re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b", _I),
    "day": re.compile(
        rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?! ?\d{{3}})", _I
    ),
}
_NO_MATTER = frozenset(content_stems(
    "user day week month year time today now new old have get go come do make take be monday tuesday wednesday thursday"
    " friday saturday sunday january february march april may june july august september october november december am"
        " pm previously actually still every each first next last morning evening afternoon night until end"
))  # fmt: skip


def succeeds(new: str, old: str) -> bool:
    """Tell whether a new statement says what came of an old one, so that the old one holds no longer."""
    fresh, stale = _matter(new), _matter(old)
    shared = fresh & stale
    if not shared or re.search(r"\balso\b|\btoo\b", new, _I) or _is_of_another(new, old):
        return False
    if any(_is_left(found["what"], stale, shared) for found in _LEFT.finditer(new)):
        return True
    return bool(_CHANGE.search(new)) and _has_another_value(new, old) and len(shared) >= min(2, len(stale))


_ONLY_ONE = frozenset("mother father mum dad grandmother grandfather wife husband partner".split())


def _is_of_another(new: str, old: str) -> bool:
    """Tell whether the two are about different people: what one has sold, another may still have."""
    subject, fresh = split_clauses(old)[0].subject, split_clauses(new)[0]
    named = {
        value for one in find_mentions(old) if one.kind == "name" and one.values <= subject for value in one.values
    }
    told = {value for one in find_mentions(new) for value in one.values}
    if named - {"user"}:
        return (named | (subject & _ONLY_ONE)).isdisjoint(told)
    people = {value for one in fresh.mentions if one.kind == "name" for value in one.values}
    return "user" in subject and "user" not in fresh.subject and not people.isdisjoint(fresh.subject)


def _is_left(what: str, stale: frozenset[str], shared: frozenset[str]) -> bool:
    """Tell whether what is left behind is what the old statement is about."""
    left = frozenset(content_stems(re.split(r"\s(?:to|for|because|since|and|but|so)\s", what, maxsplit=1)[0]))
    left -= _NO_MATTER
    return bool(left) and left <= stale and (len(shared) >= 2 or len(stale) <= 3)


@lru_cache(maxsize=8192)
def _matter(text: str) -> frozenset[str]:
    """Return the stems of what a statement is about: its words without times and figures."""
    text = re.sub(r"\([^)]*\d{4}\)", "", text)
    for pattern in _VALUES.values():
        text = pattern.sub(" ", text)
    return frozenset(one for one in content_stems(text) if not one[0].isdigit()) - _NO_MATTER


def _has_another_value(new: str, old: str) -> bool:
    """Tell whether both give a value of the same kind, and not the same."""
    for pattern in _VALUES.values():
        fresh, stale = _found(pattern, new), _found(pattern, old)
        if fresh and stale and not fresh <= stale and not stale <= fresh - stale:
            return True
    return False


def _found(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    return frozenset(re.sub(r"s$|[\s,]", "", one.casefold()) for one in pattern.findall(text))
