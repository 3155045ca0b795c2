"""Whether a new statement tells what came of an old one: a sign of change, the same matter, another value (I5).

`relevance` compares clauses that are alike; people tell most changes in other words (`moved to Tuesday`, `we dropped
ads for a yearly price`), so that here the matter and the kind of value decide. Of a statement that says several things,
only the part that holds no longer goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from brainiac.integration.clauses import is_verb, split_clauses
from brainiac.integration.relevance import Link, contradictions, relate
from brainiac.language.calendar_days import MONTHS
from brainiac.language.entities import find_mentions
from brainiac.language.sentences import content_stems
from brainiac.language.supposition import is_supposed

_I = re.IGNORECASE
_CHANGE = re.compile(
    r"\b(?:now|no longer|any ?more|instead of|rather than|actually|mov(?:e|es|ed|ing)|switch\w*|chang\w*|dropp\w*"
    r"|replac\w*|push\w*|postpon\w*|brought forward|re-?schedul\w*|swap\w*|(?:gone|went|going) (?:right |clean )?off"
    r"|overtak\w*|upgrad\w*|bump\w*|(?:went|gone) up (?:to|by|from) [£$€]?\d[\d,.]*"
    r"|new (?:dates?|price|time|day|number)"
    r"|misread|got .{1,40} wrong"
    r"|correct(?:ion|ed)|from (?:today|tomorrow|next|now on|(?:january|february|march|april|may|june|july|august"
    r"|september"
    r"|october|november|december)\b)|delayed|earlier than|later than)\b",
    _I,
)
_WHAT = (
    r"\s+(?:using\s+|at\s+|for\s+|on\s+|the\s+|my\s+|our\s+)*(?P<what>.{2,40}?)"
    r"(?=[,.;:!]|\s(?:to|for|because|since|and|but|so|as|in|this|last|now)\b|$)"
)
_ENDED = re.compile(  # what is named after these is over
    r"\b(?:(?:switch\w*|mov(?:e|es|ed|ing)|chang\w*) from|dropp(?:ed|ing)|left|leaving|quit|stopped|sold|gave up"
    r"|replac(?:ed|es|ing)|got rid of|cancell?ed|overtak(?:en|es)|overtook|finished|pull(?:ed|ing)? out of"
    r"|(?:gone|went) (?:right |clean )?off|(?:don't|doesn't) (?:drink|eat|use))" + _WHAT,
    _I,
)
_NOT = re.compile(r"\b(?:from(?=[^,;.]{2,40}\sto\b)|instead of|rather than|not|no longer|can't do)" + _WHAT, _I)
_MONTH = r"(?:" + "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS) + ")"
_VALUES = {
    "money": re.compile(r"(?:[£$€]\s?\d[\d,.]*\d|[£$€]\d)k?\b|\b\d[\d,.]* ?(?:euros?|pounds?|dollars?)\b", _I),
    "clock": re.compile(r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?(?:am|pm)\b", _I),
    "weekday": re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b", _I),
    "day": re.compile(
        rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?! ?\d{{3}})"
        rf"|\bend of (?:the month|{_MONTH})\b",
        _I,
    ),
}
_MONTH_END = "end of a month"
_RATE = re.compile(r"^\s(?:an?|per|each|every)\s(\w+)")
_NOTED = re.compile(r"\s*\([^)]*\d{4}\)")  # the date that was worked out for "yesterday"
_ON_A_DAY = re.compile(r"\b\w+\s\(\d[^)]*\d{4}\)")  # told of one day only, it changes no habit
_NO_MATTER = frozenset(content_stems(
    "user day week month year time today now new old have get go come do make take be monday tuesday wednesday thursday"
    " friday saturday sunday january february march april may june july august september october november december am"
        " pm tomorrow yesterday tonight"
        " previously actually still every each first next last morning evening afternoon night until end"
))  # fmt: skip
_STANDS = re.compile(  # what has a subject of its own
    r"(?!which\b|who\b)(?:(?:User|they|he|she|it|we|there)\b|[A-Z]"
    r"|(?:[\w'-]+ ){1,3}?(?:is|are|was|were|has|have|can|will)\b)"
)
_AT = re.compile(r"\b(?:at|in|of|with|for|on)\s$")
_PARTS = re.compile(r";\s+|,\s+(?:(?:and|but)\s+)?|\s+(?:and|but)\s+(?=(?:they|he|she|it|we|User|the)\b)")


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a statement that tells one thing."""

    text: str
    start: int


def succeeds(new: str, old: str) -> bool:
    """Tell whether a new statement says what came of an old one, so that this, or a part of it, holds no longer."""
    return any(_ended(new, old))


def retires(new: str, old: str) -> bool:
    """Tell whether a new statement leaves an old one, or a part of it, behind: denied, corrected, left or replaced."""
    return succeeds(new, old) or relate(new, old).link in (Link.REPLACES, Link.NEGATES)


def closeness(new: str, old: str) -> float:
    """Return which share of the matter of an old statement a new one takes up, 0 to 1."""
    return len(_matter(new) & _matter(old)) / max(1, len(_matter(old)))


def remainder(new: str, old: str) -> str:
    """Return what of an old statement still holds beside the new one; "" when that ends all of it."""
    parts, gone = _parts(old), _ended(new, old)
    for words in contradictions(old, new):
        begin = old.find(words)
        touched = [begin < part.start + len(part.text) and part.start < begin + len(words) for part in parts]
        gone = [one or other for one, other in zip(gone, touched, strict=True)]
    return _told_without(old, parts, gone) if any(gone) else ""


def _told_without(old: str, parts: Sequence[_Part], gone: Sequence[bool]) -> str:
    """Return a statement without some of its parts, and without those that lean on them."""
    head, colon, _ = parts[0].text.partition(": ")
    kept: list[_Part] = []
    is_cut = False
    for part, is_gone in zip(parts, gone, strict=True):
        if not is_gone and (not is_cut or colon or _STANDS.match(part.text)):
            kept.append(part)
        is_cut = is_gone or (is_cut and not _STANDS.match(part.text))
    if not kept:
        return ""
    rest = old[kept[0].start : kept[0].start + len(kept[0].text)]
    rest += "".join(f"; {part.text}" for part in kept[1:])
    if gone[0]:
        rest = f"{head if colon else _subject_of(old)}: {rest}".removeprefix(": ")
    return rest[:1].upper() + rest[1:] if content_stems(rest) else ""


def _subject_of(statement: str) -> str:
    first = split_clauses(statement)[0]
    named = first.text[: first.text.find(first.predicate)].strip() if first.predicate else ""
    return named if len(named) <= 40 else ""


def _parts(statement: str) -> list[_Part]:
    """Split a statement into what tells one thing each; what comes before the first verb tells nothing alone."""
    parts: list[_Part] = []
    start = 0
    for mark in (*_PARTS.finditer(statement), None):
        end = mark.start() if mark else len(statement)
        text = statement[start:end]
        if mark is None or parts or ": " in text or any(is_verb(word) for word in re.findall(r"[\w'’]+", text.lower())):
            parts.append(_Part(text, start))
            start = mark.end() if mark else end
    return parts


@lru_cache(maxsize=8192)
def _ended(new: str, old: str) -> list[bool]:
    """Tell of each part of an old statement whether the new one says what came of it."""
    parts, told = _parts(old), _NOTED.sub("", _asserted(new, old))
    if _matter(told).isdisjoint(_matter(old)) or re.search(r"\balso\b|\btoo\b", new, _I) or _is_of_another(new, old):
        return [False] * len(parts)
    ended = [_is_left(told, part.text, old) or _is_revalued(told, part.text, old) for part in parts]
    meant = [
        is_ended and not _matter(part.text).isdisjoint(_matter(told))
        for is_ended, part in zip(ended, parts, strict=True)
    ]
    return meant if any(meant) else ended


def _asserted(new: str, old: str) -> str:
    """Return what of a new statement may end an old one: what is only supposed ends nothing but what was."""
    clauses = split_clauses(new)
    if is_supposed(old) or not any(clause.is_supposed for clause in clauses):
        return new
    return "; ".join(clause.text for clause in clauses if not clause.is_supposed)


_CHOOSING = frozenset("pick choos decid accept plan book sign order".split())  # what they tell lasts
_ONLY_ONE = frozenset("mother father mum dad grandmother grandfather wife husband partner".split())


def _is_of_another(new: str, old: str) -> bool:
    """Tell whether the two are about different people: what one has sold, another may still have."""
    subject, fresh = split_clauses(old)[0].subject, split_clauses(new)[0]
    known = [one for one in find_mentions(old) if one.kind == "name"]
    named = {
        value
        for one in known
        if one.values <= subject and not _AT.search(old, 0, one.start) and old[one.end : one.end + 1] != ":"
        for value in one.values
    }
    named |= {stem for value in named for stem in content_stems(value)}
    told = {value for one in find_mentions(new) for value in one.values} | set(content_stems(new))
    if named - {"user"}:
        return (named | (subject & _ONLY_ONE)).isdisjoint(told)
    people = {value for one in fresh.mentions if one.kind == "name" for value in one.values & fresh.subject}
    people -= {value for one in find_mentions(old) for value in one.values}
    return "user" in subject and "user" not in fresh.subject and bool(people)


def _is_left(new: str, part: str, old: str) -> bool:
    """Tell whether what is left behind, or denied, is what a part of an old statement is about."""
    stale = _matter(part)
    clause = split_clauses(part)[0]
    if clause.manner == "event" and clause.verb not in _CHOOSING:
        return False  # it did happen
    is_short = len(_matter(re.split(r"[,;]", part, maxsplit=1)[0].rpartition(": ")[2])) <= 3
    for pattern in (_ENDED, _NOT):
        for found in pattern.finditer(new):
            left = _matter(_meant(found["what"], new[: found.start()]))
            is_named = pattern is _ENDED and left <= _names(old)
            is_enough = is_named or len(_matter(new) & _matter(old)) >= 2 or is_short
            if left and left <= stale and is_enough:
                return True
    return False


def _meant(what: str, before: str) -> str:
    """Return what is left, a pronoun replaced by the name that stands nearest before it."""
    named = [one.text for one in find_mentions(before) if one.kind == "name" and one.text != "User"]
    return named[-1] if named and re.fullmatch(r"(?:it|them|him|her)", what, _I) else what


def _is_revalued(new: str, part: str, old: str) -> bool:
    """Tell whether a change gives another value of a kind that a part of an old statement gives, of the same matter."""
    shared, names = _matter(new) & _matter(old), _names(new) | _names(old)
    is_change = bool(_CHANGE.search(new))
    for pattern in _VALUES.values():
        fresh, known = _found(pattern, new), _found(pattern, part)
        rejected = {value for found in _NOT.finditer(new) for value in _found(pattern, found["what"])}
        if not rejected.isdisjoint(known) and shared:
            return True
        if not known or rejected - {_MONTH_END} or not is_change or not fresh.keys() - known.keys() - {_MONTH_END}:
            continue
        is_named = not fresh.keys().isdisjoint(known)
        is_same_rate = not {*fresh.values()}.isdisjoint({*known.values()} - {""})
        signs = len(shared - names) + is_named + is_same_rate
        is_all = _matter(part) - names <= shared or _thing_of(part) <= shared
        if signs and (signs + len(shared & names) >= 2 or is_all):
            return True
    return False


def _thing_of(part: str) -> frozenset[str]:
    """Return the stems of the thing that a part is about (`the choir`); of a person much else may be said."""
    subject = _subject_of(part) if re.match(r"(?:the|an?|User's|our|my|their)\s", part, _I) else ""
    return _matter(subject) or frozenset({part})


@lru_cache(maxsize=8192)
def _matter(text: str) -> frozenset[str]:
    """Return the stems of what a statement is about: its words without times and figures."""
    text = _NOTED.sub("", text)
    for pattern in _VALUES.values():
        text = pattern.sub(" ", text)
    return frozenset(one for one in content_stems(text) if not one[0].isdigit()) - _NO_MATTER


@lru_cache(maxsize=8192)
def _names(text: str) -> frozenset[str]:
    """Return the stems of the names in a text; of what begins it nobody can tell whether it is one."""
    named = [one.text for one in find_mentions(text) if one.kind in ("name", "place") and one.start]
    return frozenset(stem for name in named for stem in content_stems(name))


def _found(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    """Return the values of a kind in a text, each with what it is for (`£10 a month`: "month")."""
    text = _NOTED.sub("", _ON_A_DAY.sub("", text))
    found = {}
    for match in pattern.finditer(text):
        rate = _RATE.match(text[match.end() :])
        value = match[0].casefold()
        value = _MONTH_END if value.startswith("end of") else re.sub(r"s$|[\s,]", "", value)
        found[value] = rate[1].casefold() if rate else ""
    return found
