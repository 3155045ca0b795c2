"""What of an old clause a new one ends: denied, left, corrected, or given another value (seeds I3, I5)."""

from __future__ import annotations

import re

from brainiac.integration.clauses import Clause, single_valued
from brainiac.integration.comparison import (
    TIMES,
    are_alike,
    names_of,
    same,
    share,
    slots_of,
    things_of,
    unshared,
    within,
)
from brainiac.language.entities import Mention, means_same

_DEPARTURE = re.compile(
    r"\b(?:left|leaving|quit|lost (?:their|the|his|her) job|gave notice|handed in|sold|replaced|switched"
    r"|resigned|(?<!\ba )(?<!, )retired|laid off|fired"
    r"|let go|made redundant)\b",
    re.IGNORECASE,
)

_ORIGIN = re.compile(r"\b(?:moved|switched|changed|transferred|went) from (.+?) to\b", re.IGNORECASE)

_ARRIVAL = re.compile(
    r"\bnew (?:job|position|role)\b|\b(?:start(?:ed|s)|works?|working|hired) (?:at|for|by) |\bjoin(?:ed|s) (?=[A-Z])"
    r"(?!.*\b(?:club|gym|team|choir|band|group)\b)|\b(?:promoted|freelance|self-employed|became)\b",
    re.IGNORECASE,
)

_ENDED_PAST = re.compile(r"\b(?:lived|worked|studied|as a child|grew up|used to)\b", re.IGNORECASE)

_MONTHS = frozenset("january february march april may june july august september october november december".split())


def negates(new: Clause, old: Clause) -> bool:
    if new.is_denied == old.is_denied:
        return False
    denied, said = things_of(new), things_of(old)
    if not denied or not within(denied, said):
        return False
    return not any(m.kind in TIMES for m in new.objects) or _is_cessation(new)


def coordinated(new: Clause, old: Clause) -> re.Match[str] | None:
    """Find, in the text of the old clause, what is denied as one of several (`tennis and` of `tennis and golf`)."""
    denied = [m for m in old.objects if m.kind not in TIMES and any(same(m, one) for one in things_of(new))]
    if not denied:
        return None
    begin, end = denied[0].start, denied[-1].end
    found = re.compile(rf"(?P<all>.{{{end - begin}}})(?:,| and| or)\s(?=\w)").match(old.text, begin)
    others = [m for m in old.objects if m.start > end and m.kind not in TIMES]
    if found and others and others[0].start - found.end() <= 5:
        return found
    before = re.compile(rf"(?:,| and| or)\s(?:\w{{1,5}}\s)?(?P<all>{re.escape(old.text[begin:end])})")
    return before.search(old.text)


def _is_cessation(clause: Clause) -> bool:
    return any("cease" in mention.values for mention in clause.mentions) or bool(re.search(r"\bsince\b", clause.text))


def replaces(new: Clause, old: Clause) -> bool:
    if re.search(r"\balso\b", new.text) or old.is_denied:
        return False
    if leaves(new, old) or corrects(new, old):
        return True
    return not new.is_denied and (has_another_slot(new, old) or bool(outdated(new, old)))


def corrects(new: Clause, old: Clause) -> bool:
    """Tell whether a clause rejects in so many words what the other says (`5 March, not 3 March`)."""
    return bool(new.rejected and rejected_of(new, old))


def rejected_of(new: Clause, old: Clause) -> list[Mention]:
    content = [m for m in new.rejected if m.kind != "negation" and not any(same(m, told) for told in new.mentions)]
    return [m for m in old.mentions if any(same(m, other) for other in content)]


def leaves(new: Clause, old: Clause) -> bool:
    """Tell whether something held is left, or something else taken up in its stead (`left Google for Microsoft`)."""
    if old.manner == "event" or not (new.manner == "change" or _DEPARTURE.search(new.text)):
        return False
    origin = _ORIGIN.search(new.text)
    if origin and old.aspect != "residence":
        return share([m for m in new.objects if origin.start(1) <= m.start < origin.end(1)], old.objects)
    if _DEPARTURE.search(new.predicate[:30]):
        return share(new.objects, old.objects) or (
            old.aspect == "work" and re.search(r"(?<!\ba )(?<!, )\bretired\b", new.text) is not None
        )
    is_work = old.aspect == "work" and new.aspect in ("work", "")
    return is_work and old.manner == "state" and bool(_ARRIVAL.search(new.text))


def has_another_slot(new: Clause, old: Clause) -> bool:
    is_single = new.aspect in single_valued() and new.aspect == old.aspect
    if (
        not is_single
        or "event" in (new.manner, old.manner)
        or (new.manner != "change" and _ENDED_PAST.search(new.text))
    ):
        return False
    new_slots, old_slots = slots_of(new), slots_of(old)
    common = [slot for slot in new_slots if slot in old_slots and slot in ("in", "at", "as")]
    return any(
        not share(new_slots[slot], old_slots[slot])
        and (
            slot == "as"
            or (names_of(new_slots[slot]) and names_of(old_slots[slot]))
            or (new.verb == old.verb and new.aspect != "residence")
        )
        for slot in common
    )


def outdated(new: Clause, old: Clause) -> list[Mention]:
    """Return the values of the old clause that the new one gives otherwise: a price, a day, a favourite."""
    if "event" in (new.manner, old.manner):
        return []
    fresh, stale = unshared(new, old), unshared(old, new)
    if _is_favourite(new) and _is_favourite(old) and not re.match(r"is (?:in|on|at|near)\b", new.predicate):
        return stale if fresh and _share_subject_noun(new, old) else []
    if names_of(fresh) and names_of(stale):
        return []  # another meeting with somebody else
    is_same_noun = not frozenset(new.subject & old.subject).isdisjoint(_nouns(new))
    has_topic = is_same_noun or new.verb == old.verb == "be" or share(things_of(new), things_of(old))
    if not has_topic or not (are_alike(new, old) or (new.manner == "change" and is_same_noun)):
        return []
    kinds = {_value_kind(mention, new) for mention in fresh} - {""}
    return [mention for mention in stale if _value_kind(mention, old) in kinds]


def _nouns(clause: Clause) -> frozenset[str]:
    """Return the subject of a clause as far as it is no proper name."""
    proper = names_of(clause.mentions)
    return frozenset(value for value in clause.subject if value not in proper and value != "user")


def _value_kind(mention: Mention, clause: Clause) -> str:
    """Name what a figure or day is a value of; "" for anything else."""
    if mention.kind not in TIMES:
        return ""
    if not mention.is_number:
        value = min(mention.values)
        return (
            "weekday"
            if value.endswith("day") and value not in ("birthday", "day")
            else "month"
            if value in _MONTHS
            else ""
        )
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


def _is_favourite(clause: Clause) -> bool:
    return any("favourite" in mention.values for mention in clause.mentions)


def _share_subject_noun(new: Clause, old: Clause) -> bool:
    nouns = [frozenset(clause.subject - {"favourite", "user"}) for clause in (new, old)]
    return any(means_same(frozenset({one}), frozenset({other})) for one in nouns[0] for other in nouns[1])


def with_unit(mention: Mention, clause: Clause) -> tuple[int, int]:
    """Return the offsets of a value in its statement; `years old` goes with the number before it."""
    unit = re.compile(r"\s+(?:years?|months?|weeks?)(?:\s+old)?\b").match(clause.text, mention.end)
    return clause.start + mention.start, clause.start + (unit.end() if unit and mention.is_number else mention.end)
