"""How a new statement relates to one that stands in memory, and how near it is (seeds I2, I6).

The kind of relation is found first, from the clauses of both; the three parts of the score follow from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from brainiac.integration.clauses import Clause, is_kind_of, single_valued, split_clauses
from brainiac.integration.comparison import (
    EMPTY_VERBS,
    GENERIC,
    SLOT,
    TIMES,
    are_alike,
    is_verb_of,
    names_of,
    same,
    share,
    slots_of,
    things_of,
    verb_mentions,
    within,
)
from brainiac.integration.replacement import (
    coordinated,
    corrects,
    has_another_slot,
    leaves,
    negates,
    outdated,
    rejected_of,
    replaces,
    with_unit,
)
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


_POSSIBLE_EVENTS = frozenset({"go", "do", "play", "try", "practis", "practic"})


def score(candidate: str, existing: str) -> Relevance:
    """Score how near a new statement is to one that stands in memory.

    Returns:
        Type, topic and semantic similarity, 0 to 0.3 each.
    """
    return relate(candidate, existing).relevance


def relate(candidate: str, existing: str) -> Relation:
    """Find the nearest relation between the clauses of two statements."""
    found = relations(candidate, existing)
    if not is_known(candidate, existing):  # a clause that is known says nothing of the others
        found = tuple(one for one in found if one.link is not Link.SAME) or found
    return min(found, key=lambda relation: _ORDER[relation.link])


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
    return sum(any(same(mention, other) for other in theirs) for mention in find_mentions(candidate))


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
    return Relevance(type=type_, topic=topic, semantic=semantic)


def _link(new: Clause, old: Clause) -> Link:
    if "reminder" in (new.manner, old.manner):
        return _link_reminders(new, old)
    if new.is_supposed <= old.is_supposed and _is_same_in_other_words(new, old):
        return Link.SAME
    if not _share_subject(new, old):
        if _describes(new, old) or (_introduces(new) and _describes(old, new)):
            return Link.DESCRIBES
        if new.aspect == old.aspect == "residence" and re.search(r"\bwith (?:them|User)\b", new.text):
            return Link.COMPLETES
        return Link.APART if _is_personal(new) and _is_personal(old) else Link.UNRELATED
    if new.is_supposed and not old.is_supposed:
        return Link.APART  # what may be neither ends what is nor is part of it
    rules = _ENDING_A_PLAN if old.is_supposed and not new.is_supposed else _RULES
    return next((link for link, holds in rules if holds(new, old)), Link.APART)


def _is_personal(clause: Clause) -> bool:
    return clause.text.lower().startswith("user") or "user" in clause.subject


def _is_same_in_other_words(new: Clause, old: Clause) -> bool:
    """Tell whether two clauses of being or having hold the same (`has a cat called Max`, `User's cat is named Max`)."""
    is_plain = {new.verb, old.verb} <= {"be", "have"} and _hold_alike(new, old)
    is_personal = "user" in new.text.lower() and "user" in old.text.lower()
    return is_plain and is_personal and not new.rejected and within(new.mentions, old.mentions)


def _link_reminders(new: Clause, old: Clause) -> Link:
    if new.manner != old.manner:
        return Link.UNRELATED
    return Link.SAME if within(new.mentions, old.mentions) and within(old.mentions, new.mentions) else Link.UNRELATED


def _share_subject(new: Clause, old: Clause) -> bool:
    nouns = new.subject | old.subject
    if _is_personal(new) and _is_personal(old) and all(noun in GENERIC or noun[0] == "=" for noun in nouns):
        return True  # "User's home is in Porto", "User lives in Porto"
    if new.owner and old.owner and not means_same(new.owner, old.owner):
        return False
    return any(means_same(frozenset({one}), frozenset({other})) for one in new.subject for other in old.subject)


def _describes(new: Clause, old: Clause) -> bool:
    """Tell whether a clause is about something, or somebody, that the other introduces."""
    if "user" in new.subject or new.manner == "event" or not (_introduces(old) or new.aspect == old.aspect != ""):
        return False
    subject = [mention for mention in new.mentions if mention.values & new.subject]
    names, known = names_of(subject), names_of(old.objects)
    if names and known:
        return not names.isdisjoint(known)
    return share(subject, old.objects)


_INTRODUCING = frozenset({"have", "be", "adopt", "get", "keep", "rais", "play"})


def _introduces(clause: Clause) -> bool:
    """Tell whether a clause only says that somebody or something is there (`has a dog named Max`)."""
    things = [m for m in clause.mentions if not is_verb_of(m, clause)]
    plain = [m for m in things if m.kind in ("other", "relation")]
    return (
        clause.verb in _INTRODUCING and len(plain) <= 2 and all(m.kind in ("other", "relation", "name") for m in things)
    )


def _hold_alike(new: Clause, old: Clause) -> bool:
    """Tell whether both hold in the same way: what was done, or changed, is no news of what is."""
    if (new.manner == "event") != (old.manner == "event"):
        return False
    return new.is_denied == old.is_denied and (new.manner != "change" or new.verb == old.verb)


def _is_same(new: Clause, old: Clause) -> bool:
    is_alike = _hold_alike(new, old) and are_alike(new, old)
    told = [m for m in new.mentions if not (is_verb_of(m, new) or m.values & _STANDING_FOR_VERBS)]
    if new.verb == old.verb:
        told = [m for m in told if m.values.isdisjoint(pale_verbs())]
    if new.is_denied:
        told = [m for m in told if m.kind != "negation" and m.values.isdisjoint(("like", "dislike"))]
    return is_alike and not new.rejected and within(told, old.mentions) and bool(told)


_STANDING_FOR_VERBS = frozenset({"own", "resid", "employ", "job", "home"})  # "User's home is in Porto"


def _refines(new: Clause, old: Clause) -> bool:
    kept = [m for m in old.mentions if not (is_verb_of(m, old) and not m.values.isdisjoint(pale_verbs()))]
    is_past_of_present = new.manner == "event" != old.manner
    is_denied_alike = new.is_denied == old.is_denied and not is_past_of_present
    is_alike = is_denied_alike and are_alike(new, old) and within(kept, new.mentions)
    return is_alike and not _is_compound(new, old)


def _is_compound(new: Clause, old: Clause) -> bool:
    """Tell whether what is shared only makes up a word with what follows (`coffee` and `coffee cake`)."""
    last = next((m for m in reversed(new.mentions) if any(same(m, other) for other in old.objects)), None)
    if last is None or last.position + 1 >= len(new.mentions):
        return False
    following = new.mentions[last.position + 1]
    return following.kind == "other" and following.start - last.end == 1 and old.manner == "preference"


def _describes_same(new: Clause, old: Clause) -> bool:
    is_one_aspect = new.aspect == old.aspect or "" in (new.aspect, old.aspect)
    is_copula = new.verb == old.verb == "be" and "user" not in new.subject and is_one_aspect
    return is_copula and new.manner != "preference" != old.manner and new.is_denied == old.is_denied


def _completes(new: Clause, old: Clause) -> bool:
    """Tell whether two lasting facts of one aspect fill different slots."""
    if not new.aspect or new.aspect != old.aspect or {"event", "plan", "preference"} & {new.manner, old.manner}:
        return False
    if new.aspect in single_valued() and new.manner == "state":
        return True
    if new.verb == old.verb and _adds_slot(new, old):
        return True
    verbs = {new.verb, old.verb}
    things = [[m for m in things_of(clause) if m.values.isdisjoint(verbs)] for clause in (new, old)]
    return share(*things)


def _adds_slot(new: Clause, old: Clause) -> bool:
    """Tell whether a clause tells, of the same doing, only where or with whom (`studies law`, `studies at Leiden`)."""
    after_verb = new.predicate.split(" ", 1)[-1]
    fresh, known = slots_of(new), slots_of(old)
    return bool(SLOT.match(after_verb)) and bool(fresh) and fresh.keys().isdisjoint(known)


def _qualifies(new: Clause, old: Clause) -> bool:
    habits = {"preference", "activity", "change"}
    is_liked = old.manner == "preference" or new.verb in _POSSIBLE_EVENTS
    is_habit = new.manner in habits or (new.manner == "event" and is_liked)
    if not is_habit or old.manner not in habits | {"state"}:
        return False
    head = _head(old)
    if new.verb == old.verb and new.verb not in EMPTY_VERBS and (head is None or head.text.endswith("ly")):
        return True
    if head is None or not any(same(head, m) for m in (*things_of(new), *verb_mentions(new))):
        return False
    return are_alike(new, old) or "preference" in (new.manner, old.manner) or new.aspect == old.aspect != ""


def _head(clause: Clause) -> Mention | None:
    """Return the noun that a clause's verb is about: the last word before a preposition."""
    things = [m for m in clause.objects if m.kind not in TIMES and m.kind != "preference"]
    head: Mention | None = None
    for mention in things:
        if head is not None and mention.start - head.end != 1:
            break
        head = mention
    return head if head and head.values.isdisjoint(GENERIC) else None


def _is_instance(new: Clause, old: Clause) -> bool:
    if old.manner not in ("preference", "activity", "state") or new.is_denied != old.is_denied:
        return False
    is_habit = new.manner in ("preference", "activity") or new.verb in _POSSIBLE_EVENTS or old.manner == "preference"
    if not is_habit and not (new.verb == old.verb or new.verb in ("buy", "have", "adopt", "get", "keep")):
        return False
    kinds = [m for m in old.objects if m.kind == "other"]
    return any(is_kind_of(one, kind) for one in (*things_of(new), *verb_mentions(new)) for kind in kinds)


_RULES = (
    (Link.SAME, _is_same),
    (Link.REPLACES, leaves),
    (Link.NEGATES, negates),
    (Link.REFINES, _refines),
    (Link.REPLACES, replaces),
    (Link.DESCRIBES, _describes_same),
    (Link.COMPLETES, _completes),
    (Link.QUALIFIES, _qualifies),
    (Link.INSTANCE, _is_instance),
)
_ENDING_A_PLAN = ((Link.REPLACES, leaves), (Link.NEGATES, negates), (Link.REPLACES, corrects))  # the two never merge


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
    if corrects(new, old):
        return [with_unit(m, old) for m in rejected_of(new, old)]
    if leaves(new, old) or has_another_slot(new, old):
        values = [m for m in old.objects if not any(same(m, other) for other in new.mentions)]
        begin = old.text.index(old.predicate)
        end = max((m.end for m in values if m.kind not in TIMES), default=len(old.text))
        return [(old.start + begin, old.start + end)]
    return [with_unit(m, old) for m in outdated(new, old)]
