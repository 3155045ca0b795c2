"""What two clauses have in common: mentions, predicates, what stands after which preposition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brainiac.integration.clauses import Clause
from brainiac.language.entities import Mention, means_same

TIMES = frozenset({"date", "duration", "quantity"})

GENERIC = frozenset("food activ hobbi new good great lot job time day user home name birthday year birth resid".split())

EMPTY_VERBS = frozenset("like live work start stop quit have be leav left mov join own".split())

SLOT = re.compile(r"\b(in|to|at|for|as|with|by|from|on|of|near)\s", re.IGNORECASE)

_SLOT_NAMES = {"residence": {"to": "in", "near": "in", "at": "in"}, "work": {"for": "at"}}


def same(first: Mention, second: Mention) -> bool:
    if first.is_number or second.is_number:
        return first.is_number and second.is_number and not first.values.isdisjoint(second.values)
    return means_same(first.values, second.values)


def within(part: Sequence[Mention], whole: Sequence[Mention]) -> bool:
    return all(any(same(one, other) for other in whole) for one in part)


def share(first: Sequence[Mention], second: Sequence[Mention]) -> bool:
    return any(
        same(one, other)
        for one in first
        if one.kind not in TIMES and one.values.isdisjoint(GENERIC)
        for other in second
        if other.kind not in TIMES
    )


def names_of(mentions: Sequence[Mention]) -> frozenset[str]:
    return frozenset(v for mention in mentions if mention.kind in ("name", "place") for v in mention.values)


def things_of(clause: Clause) -> list[Mention]:
    """Return what a clause is about, its subject, times and figures left out; its verb counts where it tells."""
    kept = ("preference", "negation", *TIMES)
    inside = [m for m in clause.mentions if m.kind not in kept and m.values.isdisjoint(clause.subject)]
    return [mention for mention in inside if mention.values.isdisjoint(EMPTY_VERBS)]


def _leanings(clause: Clause) -> set[str]:
    """Return what kinds of preference a clause tells; a denied liking counts as both, to be set against either."""
    leanings = {value for mention in clause.mentions if mention.kind == "preference" for value in mention.values}
    return leanings | {"like"} if clause.is_denied and "dislike" in leanings else leanings


def is_verb_of(mention: Mention, clause: Clause) -> bool:
    return bool(clause.verb) and clause.verb in mention.values


def verb_mentions(clause: Clause) -> list[Mention]:
    return [mention for mention in clause.mentions if is_verb_of(mention, clause)]


def are_alike(new: Clause, old: Clause) -> bool:
    """Tell whether two predicates say the same kind of thing."""
    if new.manner == "preference" or old.manner == "preference":
        return not _leanings(new).isdisjoint(_leanings(old))
    if new.verb == old.verb or (new.aspect and new.aspect == old.aspect):
        return new.verb == old.verb or "event" not in (new.manner, old.manner)
    return any(same(verb, m) for verb in verb_mentions(new) for m in old.mentions) or any(
        same(verb, m) for verb in verb_mentions(old) for m in new.mentions
    )


def unshared(clause: Clause, other: Clause) -> list[Mention]:
    """Return what only this clause says, verbs and denials left out."""
    own = [m for m in clause.mentions if m.kind != "negation" and not is_verb_of(m, clause)]
    return [m for m in own if not any(same(m, theirs) for theirs in other.mentions)]


def slots_of(clause: Clause) -> dict[str, list[Mention]]:
    """Return what stands after each preposition, times left out; places are one slot whatever the preposition."""
    found: dict[str, list[Mention]] = {}
    marks = list(SLOT.finditer(clause.text))
    ends = [mark.start() for mark in marks[1:]] + [len(clause.text)]
    for mark, end in zip(marks, ends, strict=False):
        inside = [m for m in clause.mentions if mark.end() <= m.start < end and m.kind not in TIMES]
        if inside:
            name = mark.group(1).lower()
            found.setdefault(_SLOT_NAMES.get(clause.aspect, {}).get(name, name), []).extend(inside)
    return found
