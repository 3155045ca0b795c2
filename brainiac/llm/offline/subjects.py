"""Whom or what a statement is about: a person, a project, an organization, or the one who writes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache

from brainiac.language.calendar_days import DAYS, MONTHS
from brainiac.language.relatedness import rarity
from brainiac.language.sentences import data_lines, irregular_forms, stem, stop_words
from brainiac.language.times import find_times
from brainiac.llm.schemas import SubjectType

USER = "User"
UNUSUAL = 0.7  # rarity from which a capitalized word is taken for a name
OFTEN = 2  # mentions from which a name that nothing else tells of has a page
_ANY_MOMENT = datetime(2000, 1, 1)  # only whether a word tells a time matters
_NAME = re.compile(r"\b(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?(?!User\b)[A-Z][\w-]+(?:(?: &)?\s+(?!I\b|User\b)[A-Z][\w-]+){0,2}")
_RELATION = (
    r"(?:mom|mum|mother|dad|father|sister|brother|son|daughter|wife|husband|partner|girlfriend|boyfriend"
    r"|fianc[eé]e?|friend|cousin|aunt|uncle|niece|nephew"
    r"|grandm\w+|grandf\w+|boss|manager|colleague|coworker|teammate|neighbou?r|landlord|landlady|roommate"
    r"|flatmate|doctor|dentist|physio|therapist|teacher|tutor"
    r"|coach|agent|mentor|client|designer|developer|intern|dog|cat|pet|puppy|kitten|parrot|rabbit|hamster|horse)"
)
_PERSON = (
    rf"\b{_RELATION},? (?:at \w+ )?(?:is |was |named |called |name is )*{{0}}\b",
    rf"\b{{0}},? (?:who|(?:is|was) (?:my|our|her|his|a|the|User's) (?:\w+ )?{_RELATION})\b",
    r"\b(?:dr|mr|mrs|ms|prof)\.? {0}\b",
    r"\b(?:with|met|meet|told|asked|see|saw|visit|visited|introduced (?:me|User) to) {0}\b",
    r"\b{0} (?:and (?:I|User|me)|said|says|told|lives|works|likes|loves|hates|wants|thinks|married|turned"
    r"|called|gave|introduced|is (?:vegetarian|vegan|allergic|pregnant|sick))\b",
    r"\b{0}'s (?:birthday|wife|husband|sister|brother|mother|father|mom|mum|dad|parents|son|daughter|kids"
    r"|girlfriend|boyfriend|partner|plants|clinic|number|phone)\b",
    r"^{0},? [a-z]+ .*\b(?:she|he)(?:'s)?\b",
    r"^{0}(?:'s)? (?:is (?:coming|moving|getting|seeing|staying)|has|rang|came|gave|finished|asked|wants|did|will)\b",
)
_THING = (
    r"(?:project|app|product|release|beta|launch|repo|repository|codebase|sprint|backend|frontend|api|website|site"
    r"|prototype|mvp|standups?|deploy|builds?|queue|database|roadmap|milestone|podcast|thesis|campaign)s?"
)
_PROJECT = (
    rf"\b(?:project |the |for |on )*{{0}}(?:'s)? (?:\w+ )?{_THING}\b",
    r"\bproject\b[^.:]{{0,40}}\b(?:called|named) {0}\b|\bproject {0}\b",
    rf"\b{_THING} (?:called|named|for|of) {{0}}\b",
    r"\b(?:shipped|launched|released|deployed|working on|work on|users? (?:of|for)|decided .*for"
    r"|building) (?:the )?{0}\b",
    r"\b{0} (?:releases|ships|launches|has \d+|is live|users|goes live)\b",
)
_ORGANIZATION = (
    r"\b(?:at|for|joined|left|offer from|hired by|job at|works? at|worked at|working at) {0}\b",
    r"\b{0} (?:Inc|Ltd|GmbH|LLC|Corp|Press|University|Hospital|Health|Freight|Bank)\b|\b{0} (?:pays|lets|hired"
    r"|offered)\b",
)
_PLACE = (r"\b(?:in|to|near|around|via|from|over) {0}\b", r"\b{0} (?:Street|Road|Avenue|Park|Station|Airport)\b")


class Subjects:
    """Who and what is named in a stretch of text, with what each seems to be.

    Args:
        texts: Statements in the third person.
        known: Names that have a page already; they are kept as they are spelled there.
    """

    def __init__(self, texts: Iterable[str], known: Sequence[str] = ()) -> None:
        self._known = {name.casefold(): name for name in known if name and name != USER}
        self._types: dict[str, SubjectType | None] = {}
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        seen: Counter[str] = Counter()
        within: set[str] = set()  # seen where a capital is no sentence's beginning
        for text in texts:
            for name in names_of(text):
                votes[name].update(_votes(name, text))
                seen[name] += 1
                if re.search(rf"[a-z,;:] {re.escape(name)}\b", text):
                    within.add(name)
        for name, counts in votes.items():
            self._types[name] = "person" if name.casefold() in _KIN else _decide(counts)
            if self._types[name] == "person" and _is_common(name):
                self._types[name] = None
            elif not any(counts.values()) and seen[name] >= OFTEN and name in within and _is_unusual(name):
                self._types[name] = "project"  # whatever it is, much is said of it
        self._full = {
            name.split()[0]: name
            for name in sorted(votes, key=len)
            if " " in name and self._types.get(name) == "person"
        }

    def of(self, text: str) -> tuple[str, SubjectType]:
        """Return the subject of a statement and its type: a project first, then the first person named."""
        lower = text.casefold()
        placed = [
            (found.start(), name)
            for folded, name in self._known.items()
            if folded in lower and (found := _mention_of(name, text))
        ]
        if placed:
            name = min(placed)[1]
            return name, self._types.get(name) or "person"
        named = [(self._full.get(name, name), self._types.get(name)) for name in names_of(text)]
        for wanted in ("project", "person"):
            for name, kind in named:
                if kind == wanted:
                    return name, kind
        return USER, "person"


def _is_unusual(name: str) -> bool:
    """Tell whether a name holds a word that is rare in general English."""
    return any(not word.isupper() and rarity(stem(word.lower())) > UNUSUAL for word in name.split())


def _mention_of(name: str, text: str) -> re.Match[str] | None:
    """Find a name that has a page; one that is also a word (`Hope`, `Rain`) is meant only with its capital."""
    is_word = " " not in name and rarity(stem(name.lower())) < 1
    return re.search(rf"\b{re.escape(name)}\b", text, 0 if is_word else re.IGNORECASE)


def names_of(text: str) -> list[str]:
    """Return the names of a text in order: capitalized words that are no sentence starts, days or months."""
    found = []
    for match in _NAME.finditer(text):
        words = match.group().removesuffix("'s").split()
        while words and not _may_be_name(words[0], is_first=match.start() == 0 and words == match.group().split()):
            words = words[1:]
        if words:
            found.append(" ".join(words))
    return list(dict.fromkeys(found))


def _may_be_name(word: str, *, is_first: bool) -> bool:
    lower = word.lower()
    if lower in stop_words() or lower in ("user", "remind", "forget") or find_times(word, _ANY_MOMENT):
        return False
    if lower in MONTHS or lower.removesuffix("s") in DAYS:
        return False
    return not (is_first and (lower.endswith(("ed", "ing", "ly")) or irregular_forms().get(lower, lower) != lower))


def _votes(name: str, text: str) -> Counter[str]:
    marked = text.replace(name, _SLOT)
    return Counter({kind: sum(bool(one.search(marked)) for one in patterns) for kind, patterns in _patterns().items()})


_SLOT = "Xnamex"  # stands for a name, so that each pattern is compiled once


@cache
def _patterns() -> dict[str, list[re.Pattern[str]]]:
    sources = {"person": _PERSON, "project": _PROJECT, "organization": _ORGANIZATION, "place": _PLACE}
    return {kind: [re.compile(one.format(_SLOT)) for one in patterns] for kind, patterns in sources.items()}


_KIN = frozenset("mum mom mummy mommy dad daddy nan nana gran granny grandma grandpa grandad".split())


def _is_common(name: str) -> bool:
    """Tell whether a name ends with a common noun: a firm, a street, a product."""
    *first, last = name.split()
    return bool(first) and (stem(last.lower()) in _common_stems())


@cache
def _common_stems() -> frozenset[str]:
    lines = data_lines("topics.txt")
    return frozenset(stem(word) for line in lines for word in line.split(":", 1)[1].split())


def _decide(counts: Counter[str]) -> SubjectType | None:
    kind, count = max(counts.items(), key=lambda one: (one[1], one[0] == "project", one[0] == "place"))
    if not count or kind == "place":
        return None
    return kind  # type: ignore[return-value]  # the keys are subject types
