"""A statement taken apart into clauses: about whom, what it is about, said or denied, lasting or past."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

from brainiac.language.entities import Mention, find_mentions, pale_verbs
from brainiac.language.sentences import irregular_forms, kinds_of, stem
from brainiac.language.supposition import is_supposed

Manner = Literal["state", "preference", "activity", "event", "change", "plan", "reminder"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One predicate of a statement.

    Attributes:
        text: The clause as written; without its subject when it shares that of the clause before.
        start: Offset in the statement.
        subject: Normal forms of those it is about; `user` for the person themselves.
        is_supposed: It says what may, would or will be.
        owner: Whose the subject is (`Jonas's sister`), likewise; empty when nobody is named.
        predicate: What is said of the subject, as written.
        mentions: What carries content in the whole clause.
        objects: What carries content besides subject and verb.
        verb: Stem of the main verb.
        aspect: Part of life (`residence`, `work`, …); "" when none is known.
        manner: How it holds.
        is_denied: It says that something is not so, or no longer.
        rejected: What it names only to say that it is not that (`5 March, not 3 March`); not among the mentions.
    """

    text: str
    start: int
    subject: frozenset[str]
    predicate: str
    mentions: tuple[Mention, ...]
    objects: tuple[Mention, ...]
    verb: str
    aspect: str
    manner: Manner
    is_denied: bool
    is_supposed: bool
    rejected: tuple[Mention, ...] = ()
    owner: frozenset[str] = frozenset()


_AUXILIARY = frozenset(
    "is are was were be been has have had does do did will would can could may might must should cannot"
    " isn't aren't wasn't"
    " weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't can't couldn't shouldn't mustn't".split()
)
_ADVERBS = frozenset(
    "also now still only really always never often usually currently recently just previously no longer not already"
    " sometimes mostly mainly rarely once then actually absolutely generally temporarily apparently".split()
)
_JOIN = re.compile(r"(?:;\s+|,?\s+(?:and|but)\s+|,\s+)(?=(?P<rest>\S))", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_TIME_OPENERS = frozenset("every on in at since each during last next this after before until for".split())
_MOVES = frozenset(
    "move relocat leav left quit switch chang join start replac transfer resign retir postpon push sell"
    " sold becom".split()
)
_CHANGE = re.compile(
    r"\b(?:moved|relocated|left|quit|switched|changed|replaced|transferred|resigned|retired|sold|became"
    r"|postponed|pushed"
    r"|brought forward|rescheduled|instead|now|laid off|fired|lost (?:their|the|his|her) job|handed in"
    r"|gave notice|new (?:job|position"
    r"|role)|any ?more|no longer|used to|stopped|gave up|started|promoted|joined"
    r"|broke up|divorced|turned|up to|down to)\b",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\s(?:the|an?|my|their|his|her|its|our|User's)\s(?!house|home|flat)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s\s")
_PREPOSITION = re.compile(r"\s(?:in|at|on|with|for|from|by|to|about|of)\s", re.IGNORECASE)
_REJECTION = re.compile(r"(?:,\s|\sand\s)not\s|,?\s(?:instead of|rather than)\s", re.IGNORECASE)
_PREFERENCES = frozenset(
    {"like", "dislike", "prefer", "favourite", "avoid", "vegetarian", "vegan", "pescatarian", "fear"}
)


@cache
def _aspects() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _lines("aspects.txt"):
        aspect, cues = line.split(":")
        for cue in cues.split():
            found.setdefault(stem(cue), aspect.rstrip("*"))
    return found


@cache
def single_valued() -> frozenset[str]:
    """Return the aspects of which a person has one value at a time."""
    return frozenset(
        line.split(":")[0].rstrip("*") for line in _lines("aspects.txt") if line.split(":")[0].endswith("*")
    )


def aspects_of(stems: Iterable[str]) -> set[str]:
    """Return the parts of life of which a person has one value at a time that any of the stems belongs to."""
    return {aspect for one in stems if (aspect := _aspects().get(one, "")) in single_valued()}


@cache
def _categories() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _lines("categories.txt"):
        names, instances = line.split(":")
        for instance in instances.split():
            found.setdefault(stem(instance), set()).update(stem(name) for name in names.split())
    return {word: frozenset(names) for word, names in found.items()}


def _lines(name: str) -> list[str]:
    text = resources.files("brainiac.integration").joinpath(name).read_text("utf-8")
    return [line for line in (raw.split("#")[0].strip() for raw in text.splitlines()) if line]


def is_kind_of(instance: Mention, kind: Mention) -> bool:
    """Tell whether one word names an instance of what the other names (`cumquats`, `fruits`)."""
    instances, kinds = stem(instance.text.casefold()), stem(kind.text.casefold())
    return kinds in _categories().get(instances, frozenset()) | kinds_of(instances)


@lru_cache(maxsize=4096)
def split_clauses(statement: str) -> tuple[Clause, ...]:
    """Split a statement where a new verb begins; a clause without subject shares that of the first.

    Args:
        statement: In the third person, about `User` or somebody named.
    """
    clauses: list[Clause] = []
    starts = [0] + [
        match.start("rest") for match in _JOIN.finditer(statement) if _begins_clause(statement[match.start("rest") :])
    ]
    subject: frozenset[str] = frozenset()
    for start, end in zip(starts, [*starts[1:], len(statement)], strict=True):
        text = re.sub(r"(?:[,;\s]|\b(?:and|but))+$", "", statement[start:end]).rstrip(".")
        clause = _read(text, start, subject)
        subject = clause.subject
        clauses.append(clause)
    return tuple(clauses)


def _begins_clause(rest: str) -> bool:
    """Tell whether a text begins with a verb, or with a pronoun or `User` and a verb."""
    words = [word.lower().replace("’", "'") for word in _WORD.findall(rest[:60])]
    while words and words[0] in _ADVERBS:
        words = words[1:]
    if not words:
        return False
    if words[0] in ("they", "he", "she", "it", "user") and len(words) > 1:
        return True
    return is_verb(words[0])


def is_verb(word: str) -> bool:
    """Tell whether a word, in lower case, is a finite verb as far as we know."""
    if word in _AUXILIARY:
        return True
    base = stem(word)
    known = base in pale_verbs() or base in _MOVES or base in _verbs()
    is_finite = word.endswith(("s", "ed")) or irregular_forms().get(word, word) != word
    return known and is_finite


@cache
def _verbs() -> frozenset[str]:
    """Return further verbs that often open a clause."""
    listed = "like love enjoy hate dislike prefer adore want wish hope avoid fear recommend collect sing paint".split()
    listed += "dance jog swim meditate volunteer teach manage own have rent sell smoke sleep grow brew".split()
    listed += "rehearse need call marry finish join".split()
    return frozenset(stem(word) for word in listed)


def _read(text: str, start: int, inherited: frozenset[str]) -> Clause:
    split = _verb_offset(text, has_subject=not (inherited and _begins_clause(text)))
    told = find_mentions(text)
    rejection = _REJECTION.search(text, split)
    mentions = tuple(m for m in told if rejection is None or m.start < rejection.start())
    before = tuple(m for m in mentions if m.end <= split)
    possessive = max((match.end() for match in _POSSESSIVE.finditer(text[:split])), default=0)
    subject = _subject(text[:split], tuple(m for m in before if m.end > possessive)) or inherited
    owned_by = _subject(text[:possessive], tuple(m for m in before if m.end <= possessive))
    predicate = text[split:].strip()
    main = _main_verb(predicate)
    values = {value for mention in mentions for value in mention.values}
    objects = tuple(m for m in mentions if m.start >= split and m.kind != "negation" and stem(m.text.lower()) != main)
    aspect = _aspect_of(predicate) or _aspect_of(text)
    return Clause(
        text=text,
        start=start,
        subject=subject,
        predicate=predicate,
        mentions=mentions,
        objects=objects,
        verb=main,
        aspect=aspect,
        manner=_manner(text, values, main, aspect),
        is_denied=_is_denied(mentions, objects, text),
        is_supposed=is_supposed(text),
        rejected=told[len(mentions) :],
        owner=owned_by
        | (frozenset({"user"}) if re.search(r"\buser['’]s\s", text[:possessive], re.IGNORECASE) else frozenset()),
    )


def _is_denied(mentions: tuple[Mention, ...], objects: tuple[Mention, ...], text: str) -> bool:
    """Tell whether the verb itself is denied, rather than a detail (`as long as it isn't too hot`)."""
    things = [mention.start for mention in objects if mention.kind != "preference"]
    early = [m for m in mentions if m.start < min(things, default=len(text)) or "cease" in m.values]
    has_negation = any(mention.kind == "negation" for mention in early)
    has_dislike = any("dislike" in mention.values for mention in early)
    return has_negation != has_dislike


def _verb_offset(text: str, *, has_subject: bool) -> int:
    """Return where the predicate begins."""
    words = list(_WORD.finditer(text))
    if not has_subject or not words:
        return 0
    first = words[0].group().lower()
    if first in _TIME_OPENERS:  # "Every Friday User plays squash"
        named = next((i for i, word in enumerate(words[:6]) if word.group().lower() == "user"), None)
        if named is not None and named + 1 < len(words):
            return words[named + 1].start()
    if first in ("user", "they", "he", "she", "it") and len(words) > 1 and words[1].group().lower() != "and":
        return words[1].start()
    for word in words[1:]:
        lowered = word.group().lower().replace("’", "'")
        if is_verb(lowered) or lowered.endswith("ed"):
            return word.start()
    return words[1].start() if len(words) > 1 else len(text)


def _subject(text: str, mentions: tuple[Mention, ...]) -> frozenset[str]:
    values = frozenset(value for mention in mentions for value in mention.values if mention.kind != "negation")
    if re.search(r"\buser(?!['’]s)\b", text, re.IGNORECASE):
        return values | {"user"}
    return values


def _main_verb(predicate: str) -> str:
    words = [word.group().lower().replace("’", "'") for word in _WORD.finditer(predicate)]
    content = [word for word in words if word not in _AUXILIARY and word not in _ADVERBS and word not in ("to", "used")]
    if predicate.startswith(("comes from", "come from")):
        return "be"
    if content and content[0] in ("called", "named", "married", "engaged", "divorced"):
        return "be"
    if (
        words
        and words[0] in ("is", "are", "was", "were", "isn't")
        and not (content and content[0].endswith(("ing", "ed")))
    ):
        return "be"
    if (
        words
        and words[0] in ("has", "have", "had")
        and not (content and content[0].endswith(("ed", "en", "ing", "wn")))
    ):
        return "have"
    return _VERB_CLASSES.get(stem(content[0]), stem(content[0])) if content else ""


_VERB_CLASSES = {"own": "have", "possess": "have", "resid": "live", "dwell": "live", "employ": "work"}


def _aspect_of(text: str) -> str:
    """Name the part of life by the first word that tells; living and working only before a preposition."""
    preposition = _PREPOSITION.search(text)
    for word in re.finditer(r"[^\W\d_]+", text.lower()):
        if word.group().startswith("mov") and _OBJECT.match(text, word.end()):
            continue  # a number, or money, was moved
        aspect = _aspects().get(stem(word.group()), "")
        if aspect and (aspect not in single_valued() or preposition is None or word.start() < preposition.start()):
            return aspect
    return ""


def _manner(text: str, values: set[str], main: str, aspect: str) -> Manner:
    if re.match(r"\W*(?:remind|reminder|todo|to-do)\b", text, re.IGNORECASE):
        return "reminder"
    if _CHANGE.search(text):
        return "change"
    if values & _PREFERENCES:
        return "preference"
    if is_supposed(text):
        return "plan"
    if _is_past(text):
        return "event"
    return "state" if main in ("be", "have", "live", "work") or aspect in single_valued() else "activity"


def _is_past(text: str) -> bool:
    for word in _WORD.findall(text)[:7]:
        lowered = word.lower()
        base = irregular_forms().get(lowered, lowered)
        if lowered in _AUXILIARY:
            return lowered in ("was", "were", "had", "did", "didn't")
        if lowered.endswith("ed") or (base != lowered and not lowered.endswith(("s", "ing"))):
            return True
        if is_verb(lowered):
            return False
    return False
