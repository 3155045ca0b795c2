"""How a new statement relates to one that stands in memory, and how near it is (seeds I2, I6).

The kind of relation is found first, from the clauses of both; the three parts of the score follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from brainiac.integration.clauses import Clause, is_kind_of, single_valued, split_clauses
from brainiac.language.entities import Mention, find_mentions, means_same, pale_verbs
from brainiac.llm.schemas import Relevance

HIGH, MODERATE = 0.7, 0.4


class Link(Enum):
    """What a clause of the candidate is to a clause of an existing statement, nearest first."""

    SAME = "says nothing that is not known"
    NEGATES = "says that it is not so, or no longer"
    REPLACES = "gives another value where there can be but one"
    REFINES = "says it all again, and more"
    DESCRIBES = "tells more of what the other introduces"
    COMPLETES = "tells another side of the same fact"
    QUALIFIES = "limits or details the same liking or habit"
    INSTANCE = "names an instance of the kind that the other names"
    APART = "shares a person or a part of life only"
    UNRELATED = "is about something else"


_ORDER = {link: place for place, link in enumerate(Link)}
# type, topic and semantic similarity of each link; `_relevance` has what depends on the clauses
_PARTS = {
    Link.SAME: (0.3, 0.3, 0.3),
    Link.NEGATES: (0.3, 0.3, 0.3),
    Link.REPLACES: (0.3, 0.3, 0.3),
    Link.REFINES: (0.3, 0.3, 0.2),
    Link.DESCRIBES: (0.3, 0.3, 0.1),
    Link.COMPLETES: (0.2, 0.3, 0.1),
    Link.QUALIFIES: (0.2, 0.2, 0.1),
    Link.INSTANCE: (0.2, 0.2, 0.1),
    Link.APART: (0.1, 0.1, 0.0),
    Link.UNRELATED: (0.0, 0.0, 0.0),
}


@dataclass(frozen=True, slots=True)
class Relation:
    """The nearest relation between two statements.

    Attributes:
        link: Its kind.
        new: The clause of the candidate it was found in.
        old: The clause of the existing statement.
        relevance: The score.
    """

    link: Link
    new: Clause
    old: Clause
    relevance: Relevance


_TIMES = frozenset({"date", "duration", "quantity"})
_SLOT = re.compile(r"\b(in|to|at|for|as|with|by|from|on|of|near)\s", re.IGNORECASE)
_SLOT_NAMES = {"to": "in", "near": "in", "at": "in"}
_POSSIBLE_EVENTS = frozenset({"go", "do", "play", "try", "practis", "practic"})
_ENDED_PAST = re.compile(r"\b(?:lived|worked|studied|as a child|grew up|used to)\b", re.IGNORECASE)
_GENERIC = frozenset("food activ hobbi new good great lot job time day user home name birthday year birth".split())


def score(candidate: str, existing: str) -> Relevance:
    """Score how near a new statement is to one that stands in memory.

    Returns:
        Type, topic and semantic similarity, 0 to 0.3 each.
    """
    return relate(candidate, existing).relevance


def relate(candidate: str, existing: str) -> Relation:
    """Find the nearest relation between the clauses of two statements."""
    return min(relations(candidate, existing), key=lambda relation: _ORDER[relation.link])


@lru_cache(maxsize=8192)
def relations(candidate: str, existing: str) -> tuple[Relation, ...]:
    """Relate every clause of a candidate with every clause of an existing statement."""
    old_clauses = split_clauses(existing)
    found = []
    for new in split_clauses(candidate):
        for old in old_clauses:
            link = _link(new, old)
            found.append(Relation(link, new, old, _relevance(link, new, old, is_whole=len(old_clauses) == 1)))
    return tuple(found)


def is_known(candidate: str, existing: str) -> bool:
    """Tell whether an existing statement says all that the candidate says."""
    known = {relation.new for relation in relations(candidate, existing) if relation.link is Link.SAME}
    return known.issuperset(split_clauses(candidate))


def shared_count(candidate: str, existing: str) -> int:
    """Return how many mentions of a candidate an existing statement holds too, to tell equally near ones apart."""
    theirs = find_mentions(existing)
    return sum(any(_same(mention, other) for other in theirs) for mention in find_mentions(candidate))


def contradictions(old: str, new: str) -> list[str]:
    """Return the words of `old` that `new` contradicts, which may therefore go to History."""
    stretches = {stretch for relation in relations(new, old) for stretch in _contested(relation)}
    return [old[begin:end] for begin, end in sorted(stretches)]


def _relevance(link: Link, new: Clause, old: Clause, *, is_whole: bool) -> Relevance:
    type_, topic, semantic = _PARTS[link]
    if link is Link.REPLACES:
        semantic = 0.3 if is_whole else 0.1
    elif link is Link.REFINES and old.manner == "preference":
        topic, semantic = 0.2, 0.1
    elif link is Link.REFINES and old.manner != "state":
        type_, topic, semantic = 0.2, 0.1, 0.1
    elif link is Link.INSTANCE and new.manner == "event":
        topic = 0.1
    elif link is Link.APART:
        topic = 0.2 if new.aspect and new.aspect == old.aspect else 0.1 if new.aspect and old.aspect else 0.0
        semantic = 0.1 if "residence" in (new.aspect, old.aspect) and new.manner == "change" else 0.0
    return Relevance(type=type_, topic=topic, semantic=semantic)


def _link(new: Clause, old: Clause) -> Link:
    if "reminder" in (new.manner, old.manner):
        return _link_reminders(new, old)
    if _is_same_in_other_words(new, old):
        return Link.SAME
    if not _share_subject(new, old):
        if _describes(new, old) or _describes(old, new):
            return Link.DESCRIBES
        if new.aspect == old.aspect == "residence" and re.search(r"\bwith (?:them|User)\b", new.text):
            return Link.COMPLETES
        return Link.APART if _is_personal(new) and _is_personal(old) else Link.UNRELATED
    return next((link for link, holds in _RULES if holds(new, old)), Link.APART)


def _is_personal(clause: Clause) -> bool:
    return clause.text.lower().startswith("user") or "user" in clause.subject


def _is_same_in_other_words(new: Clause, old: Clause) -> bool:
    """Tell whether two clauses of being or having hold the same (`has a cat called Max`, `User's cat is named Max`)."""
    is_plain = {new.verb, old.verb} <= {"be", "have"} and new.is_denied == old.is_denied
    return is_plain and "user" in (new.text + old.text).lower() and _within(new.mentions, old.mentions)


def _link_reminders(new: Clause, old: Clause) -> Link:
    if new.manner != old.manner:
        return Link.UNRELATED
    return Link.SAME if _within(new.mentions, old.mentions) and _within(old.mentions, new.mentions) else Link.UNRELATED


def _share_subject(new: Clause, old: Clause) -> bool:
    nouns = new.subject | old.subject
    if _is_personal(new) and _is_personal(old) and all(noun in _GENERIC or noun[0] == "=" for noun in nouns):
        return True  # "User's home is in Porto", "User lives in Porto"
    return any(means_same(frozenset({one}), frozenset({other})) for one in new.subject for other in old.subject)


def _describes(new: Clause, old: Clause) -> bool:
    """Tell whether a clause is about something, or somebody, that the other introduces."""
    is_introduced = old.verb in ("have", "be", "own", "adopt", "get", "keep", "rais") or new.aspect == old.aspect != ""
    if "user" in new.subject or not is_introduced or new.manner in ("preference", "event"):
        return False
    subject = [mention for mention in new.mentions if mention.values & new.subject]
    names, known = _names(subject), _names(old.objects)
    if names and known:
        return not names.isdisjoint(known)
    return _share(subject, old.objects)


def _names(mentions: Sequence[Mention]) -> frozenset[str]:
    return frozenset(v for mention in mentions if mention.kind in ("name", "place") for v in mention.values)


def _same(first: Mention, second: Mention) -> bool:
    if first.is_number or second.is_number:
        return first.is_number and second.is_number and not first.values.isdisjoint(second.values)
    return means_same(first.values, second.values)


def _within(part: Sequence[Mention], whole: Sequence[Mention]) -> bool:
    return all(any(_same(one, other) for other in whole) for one in part)


def _share(first: Sequence[Mention], second: Sequence[Mention]) -> bool:
    return any(
        _same(one, other)
        for one in first
        if one.kind not in _TIMES and one.values.isdisjoint(_GENERIC)
        for other in second
        if other.kind not in _TIMES
    )


def _things(clause: Clause) -> list[Mention]:
    """Return what a clause is about, its subject, times and figures left out; its verb counts when it means something."""
    kept = ("preference", "negation", *_TIMES)
    inside = [m for m in clause.mentions if m.kind not in kept and m.values.isdisjoint(clause.subject)]
    return [mention for mention in inside if mention.values.isdisjoint(_EMPTY_VERBS)]


_EMPTY_VERBS = frozenset("like live work start stop quit have be leav left mov join own".split())


def _alike(new: Clause, old: Clause) -> bool:
    """Tell whether two predicates say the same kind of thing."""
    if new.manner == "preference" or old.manner == "preference":
        shared = {v for m in new.mentions if m.kind == "preference" for v in m.values}
        return not shared.isdisjoint(v for m in old.mentions if m.kind == "preference" for v in m.values)
    if new.verb == old.verb or (new.aspect and new.aspect == old.aspect):
        return new.verb == old.verb or "event" not in (new.manner, old.manner)
    return any(_same(verb, m) for verb in _verb_mentions(new) for m in old.mentions) or any(
        _same(verb, m) for verb in _verb_mentions(old) for m in new.mentions
    )


def _is_verb_of(mention: Mention, clause: Clause) -> bool:
    return bool(clause.verb) and clause.verb in mention.values


def _is_same(new: Clause, old: Clause) -> bool:
    is_alike = new.is_denied == old.is_denied and _alike(new, old)
    told = [m for m in new.mentions if not (_is_verb_of(m, new) or m.values & _STANDING_FOR_VERBS)]
    return is_alike and not new.rejected and _within(told, old.mentions) and bool(told)


_STANDING_FOR_VERBS = frozenset({"own", "resid", "employ", "job", "home"})  # "User's home is in Porto"


def _negates(new: Clause, old: Clause) -> bool:
    if new.is_denied == old.is_denied:
        return False
    denied, said = _things(new), _things(old)
    if not denied or not _within(denied, said):
        return False
    return not any(m.kind in _TIMES for m in new.objects) or _is_cessation(new)


def coordinated(new: Clause, old: Clause) -> re.Match[str] | None:
    """Find, in the text of the old clause, what is denied as one of several (`tennis and` of `tennis and golf`)."""
    denied = [m for m in old.objects if m.kind not in _TIMES and any(_same(m, one) for one in _things(new))]
    if not denied:
        return None
    begin, end = denied[0].start, denied[-1].end
    found = re.compile(r"(?P<all>.{%d})(?:,| and| or)\s(?=\w)" % (end - begin)).match(old.text, begin)
    others = [m for m in old.objects if m.start > end and m.kind not in _TIMES]
    if found and others and others[0].start - found.end() <= 5:
        return found
    return re.compile(r"(?:,| and| or)\s(?:\w{1,5}\s)?(?P<all>.{%d})" % (end - begin)).search(old.text)


def _is_cessation(clause: Clause) -> bool:
    return any("cease" in mention.values for mention in clause.mentions) or bool(re.search(r"\bsince\b", clause.text))


def _replaces(new: Clause, old: Clause) -> bool:
    if re.search(r"\balso\b", new.text) or old.is_denied:
        return False
    if _leaves(new, old) or _corrects(new, old):
        return True
    return not new.is_denied and (_has_another_slot(new, old) or bool(_outdated(new, old)))


def _corrects(new: Clause, old: Clause) -> bool:
    """Tell whether a clause rejects in so many words what the other says (`5 March, not 3 March`)."""
    return bool(new.rejected and _rejected(new, old))


def _rejected(new: Clause, old: Clause) -> list[Mention]:
    content = [m for m in new.rejected if m.kind != "negation" and not any(_same(m, told) for told in new.mentions)]
    return [m for m in old.mentions if any(_same(m, other) for other in content)]


_DEPARTURE = re.compile(
    r"\b(?:left|leaving|quit|gave notice|handed in|sold|replaced|switched|resigned|retired|laid off|fired|let go|made redundant)\b", re.IGNORECASE
)
_ORIGIN = re.compile(r"\b(?:moved|switched|changed|transferred|went) from (.+?) to\b", re.IGNORECASE)
_ARRIVAL = re.compile(
    r"\bnew (?:job|position|role)\b|\b(?:start(?:ed|s)|works?|working|hired) (?:at|for|by) |\bjoin(?:ed|s) (?=[A-Z])"
    r"(?!.*\b(?:club|gym|team|choir|band|group)\b)|\b(?:promoted|freelance|self-employed|became)\b",
    re.IGNORECASE,
)


def _leaves(new: Clause, old: Clause) -> bool:
    """Tell whether something held is left, or something else taken up in its stead (`left Google for Microsoft`)."""
    if old.manner == "event" or not (new.manner == "change" or _DEPARTURE.search(new.text)):
        return False
    origin = _ORIGIN.search(new.text)
    if origin and old.aspect != "residence":
        return _share([m for m in new.objects if origin.start(1) <= m.start < origin.end(1)], old.objects)
    if _DEPARTURE.search(new.text):
        return _share(new.objects, old.objects) or (old.aspect == "work" and "retired" in new.text)
    is_work = old.aspect == "work" and new.aspect in ("work", "")
    return is_work and old.manner == "state" and bool(_ARRIVAL.search(new.text))


def _has_another_slot(new: Clause, old: Clause) -> bool:
    is_single = new.aspect in single_valued() and new.aspect == old.aspect
    if not is_single or "event" in (new.manner, old.manner) or (new.manner != "change" and _ENDED_PAST.search(new.text)):
        return False
    new_slots, old_slots = _slots(new), _slots(old)
    common = [slot for slot in new_slots if slot in old_slots and slot in ("in", "for", "as")]
    return any(not _share(new_slots[slot], old_slots[slot]) for slot in common)


def _slots(clause: Clause) -> dict[str, list[Mention]]:
    """Return what stands after each preposition, times left out; places are one slot whatever the preposition."""
    found: dict[str, list[Mention]] = {}
    marks = list(_SLOT.finditer(clause.text))
    ends = [mark.start() for mark in marks[1:]] + [len(clause.text)]
    for mark, end in zip(marks, ends, strict=False):
        inside = [m for m in clause.mentions if mark.end() <= m.start < end and m.kind not in _TIMES]
        if inside:
            name = mark.group(1).lower()
            found.setdefault(_SLOT_NAMES.get(name, name), []).extend(inside)
    return found


def _outdated(new: Clause, old: Clause) -> list[Mention]:
    """Return the values of the old clause that the new one gives otherwise: a price, a day, a favourite."""
    if "event" in (new.manner, old.manner):
        return []
    fresh, stale = _unshared(new, old), _unshared(old, new)
    if _is_favourite(new) and _is_favourite(old) and not re.match(r"is (?:in|on|at|near)\b", new.predicate):
        return stale if fresh and _share_subject_noun(new, old) else []
    if _names(fresh) and _names(stale):
        return []  # another meeting with somebody else
    has_topic = _share(_things(new), _things(old)) or "user" not in new.subject or new.verb == old.verb == "be"
    if not has_topic or not (_alike(new, old) or new.manner == "change"):
        return []
    kinds = {_value_kind(mention, new) for mention in fresh} - {""}
    return [mention for mention in stale if _value_kind(mention, old) in kinds]


def _value_kind(mention: Mention, clause: Clause) -> str:
    """Name what a figure or day is a value of; "" for anything else."""
    if mention.kind not in _TIMES:
        return ""
    if not mention.is_number:
        value = min(mention.values)
        return "weekday" if value.endswith("day") and value not in ("birthday", "day") else "month" if value in _MONTHS else ""
    if mention.kind == "date" and ":" not in mention.text:
        return "year"
    place = next(index for index, one in enumerate(clause.mentions) if one.start == mention.start)
    following = clause.mentions[place + 1 : place + 2]
    before = clause.mentions[max(place - 1, 0) : place]
    if ":" in mention.text or (following and following[0].values & {"am", "pm"}):
        return "clock"
    if any(one.values & _MONTHS for one in (*before, *following)):
        return "day of month"
    is_bound = following and following[0].clause == mention.clause and not following[0].is_number
    return "number of " + min(following[0].values) if is_bound else "number"


_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)


def _unshared(clause: Clause, other: Clause) -> list[Mention]:
    """Return what only this clause says, verbs and denials left out."""
    own = [m for m in clause.mentions if m.kind != "negation" and not _is_verb_of(m, clause)]
    return [m for m in own if not any(_same(m, theirs) for theirs in other.mentions)]


def _is_favourite(clause: Clause) -> bool:
    return any("favourite" in mention.values for mention in clause.mentions)


def _share_subject_noun(new: Clause, old: Clause) -> bool:
    nouns = [frozenset(clause.subject - {"favourite", "user"}) for clause in (new, old)]
    return any(means_same(frozenset({one}), frozenset({other})) for one in nouns[0] for other in nouns[1])


def _refines(new: Clause, old: Clause) -> bool:
    kept = [m for m in old.mentions if not (_is_verb_of(m, old) and not m.values.isdisjoint(pale_verbs()))]
    is_alike = new.is_denied == old.is_denied and _alike(new, old) and _within(kept, new.mentions)
    return is_alike and not _is_compound(new, old)


def _is_compound(new: Clause, old: Clause) -> bool:
    """Tell whether what is shared only makes up a word with what follows (`coffee` and `coffee cake`)."""
    last = next((m for m in reversed(new.mentions) if any(_same(m, other) for other in old.objects)), None)
    if last is None or last.position + 1 >= len(new.mentions):
        return False
    following = new.mentions[last.position + 1]
    return following.kind == "other" and following.start - last.end == 1 and old.manner == "preference"


def _describes_same(new: Clause, old: Clause) -> bool:
    is_copula = new.verb == old.verb == "be" and "user" not in new.subject
    return is_copula and new.manner != "preference" != old.manner and new.is_denied == old.is_denied


def _completes(new: Clause, old: Clause) -> bool:
    """Tell whether two lasting facts of one aspect fill different slots."""
    if not new.aspect or new.aspect != old.aspect or {"event", "plan", "preference"} & {new.manner, old.manner}:
        return False
    if new.aspect in single_valued():
        return new.manner == "state" or bool(_things(new) and _share(_things(new), _things(old)))
    return "user" not in new.subject or _share(_things(new), _things(old))


def _qualifies(new: Clause, old: Clause) -> bool:
    habits = {"preference", "activity", "change"}
    is_habit = new.manner in habits or (new.manner == "event" and new.verb in _POSSIBLE_EVENTS)
    if not is_habit or old.manner not in habits | {"state"}:
        return False
    head = _head(old)
    if head is None or not any(_same(head, m) for m in (*_things(new), *_verb_mentions(new))):
        return False
    return _alike(new, old) or "preference" in (new.manner, old.manner) or new.aspect == old.aspect != ""


def _verb_mentions(clause: Clause) -> list[Mention]:
    return [mention for mention in clause.mentions if _is_verb_of(mention, clause)]


def _head(clause: Clause) -> Mention | None:
    """Return the noun that a clause's verb is about: the last word before a preposition."""
    things = [m for m in clause.objects if m.kind not in _TIMES and m.kind != "preference"]
    head: Mention | None = None
    for mention in things:
        if head is not None and mention.start - head.end != 1:
            break
        head = mention
    return head if head and head.values.isdisjoint(_GENERIC) else None


def _is_instance(new: Clause, old: Clause) -> bool:
    if old.manner not in ("preference", "activity", "state") or new.is_denied != old.is_denied:
        return False
    is_habit = new.manner in ("preference", "activity") or new.verb in _POSSIBLE_EVENTS or old.manner == "preference"
    if not is_habit and not (new.verb == old.verb or new.verb in ("buy", "have", "adopt", "get", "keep")):
        return False
    kinds = [m for m in old.objects if m.kind == "other"]
    return any(is_kind_of(one, kind) for one in (*_things(new), *_verb_mentions(new)) for kind in kinds)


_RULES = (
    (Link.SAME, _is_same),
    (Link.REPLACES, _leaves),
    (Link.NEGATES, _negates),
    (Link.REFINES, _refines),
    (Link.REPLACES, _replaces),
    (Link.DESCRIBES, _describes_same),
    (Link.COMPLETES, _completes),
    (Link.QUALIFIES, _qualifies),
    (Link.INSTANCE, _is_instance),
)


def _contested(relation: Relation) -> list[tuple[int, int]]:
    """Return the stretches of the existing statement that the candidate contradicts, as offsets."""
    new, old = relation.new, relation.old
    if relation.link is Link.NEGATES:
        part = coordinated(new, old)
        if part:
            return [(old.start + part.start("all"), old.start + part.end("all"))]
        return [(old.start + old.text.index(old.predicate), old.start + len(old.text))]
    if relation.link is not Link.REPLACES:
        return []
    if _corrects(new, old):
        return [_with_unit(m, old) for m in _rejected(new, old)]
    if _leaves(new, old) or _has_another_slot(new, old):
        values = [m for m in old.objects if not any(_same(m, other) for other in new.mentions)]
        begin = old.text.index(old.predicate)
        end = max((m.end for m in values if m.kind not in _TIMES), default=len(old.text))
        return [(old.start + begin, old.start + end)]
    return [_with_unit(m, old) for m in _outdated(new, old)]


def _with_unit(mention: Mention, clause: Clause) -> tuple[int, int]:
    """Return the offsets of a value in its statement; `years old` goes with the number before it."""
    unit = re.compile(r"\s+(?:years?|months?|weeks?)(?:\s+old)?\b").match(clause.text, mention.end)
    return clause.start + mention.start, clause.start + (unit.end() if unit and mention.is_number else mention.end)
