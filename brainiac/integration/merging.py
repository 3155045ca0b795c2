"""Two statements told as one, from the whole of the old and with nothing of either lost (seeds I4, I5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile

from brainiac.integration.clauses import Clause, is_verb
from brainiac.integration.preservation import check, contradictions
from brainiac.integration.relevance import Link, Relation, relate
from brainiac.integration.replacement import coordinated
from brainiac.language.entities import find_mentions
from brainiac.language.sentences import content_stems, irregular_forms

_WHEN = (
    r"\s(?:last|this|yesterday|today|(?:a|one|two|three|\d+)\s(?:day|week|month|year)s?\sago|on\s(?:Mon|Tues|Wednes|Thurs|Fri"
    r"|Satur|Sun)day|(?:in|on|since)\s(?:\d|January|February|March|April|May|June|July|August|September|October"
    r"|November|December))\b"
)
_LEFT = re.compile(
    rf"^(?P<verb>left|quit)\s(?P<what>.+?)(?P<when>{_WHEN}.*?)?\sfor\s(?P<goal>.+?)(?P<then>{_WHEN}.*)?$"
)


def merge(old: str, new: str, relation: Relation | None = None) -> str:
    """Tell two statements as one.

    Args:
        old: The statement that stands in memory.
        new: What was learnt.
        relation: How `new` relates to `old`, when it is known already.

    Returns:
        A statement that passes `preservation.check`; where no better telling does, both joined by a semicolon.
    """
    relation = relation or relate(new, old)
    gone = contradictions(old, new)
    bare_old, bare_new = old.rstrip(". "), new.rstrip(". ")
    for tell in (*_TELLINGS.get(relation.link, ()), _and):
        telling = tell(bare_old, bare_new, relation)
        if telling and not check(old, new, telling, gone):
            return telling
    return f"{bare_old}; {bare_new}"


def _after_clause(old: str, clause: Clause, addition: str) -> str:
    end = clause.start + len(clause.text)
    return old[:end] + addition + old[end:]


_READABLE = 120  # characters; longer ones are told apart


def _and(old: str, new: str, relation: Relation) -> str:
    """Go on with another predicate of the same subject."""
    begin = new.find(relation.new.predicate)
    is_same = set(content_stems(new[:begin])) <= set(content_stems(old[: old.find(relation.old.predicate)]))
    is_same = is_same and bool(relation.new.subject) and relation.new.subject == relation.old.subject
    if relation.new.start or not is_same or len(old) + len(new) > _READABLE:
        return f"{old}; {new}"
    predicate = new[begin:]
    return _after_clause(old, relation.old, f" and {predicate}")


_PREPOSITION = re.compile(
    r"(?:in|at|on|with|for|as|near|by|from|since|every|twice|once|during|after|before|to)\b", re.IGNORECASE
)


def _same(old: str, new: str, relation: Relation) -> str:
    return old


def _refined(old: str, new: str, relation: Relation) -> str:
    clause = relation.old
    if clause.text == old:
        return new
    predicate = new[new.index(relation.new.predicate) :] if clause.start else new
    return old[: clause.start] + predicate + old[clause.start + len(clause.text) :]


def _changed(old: str, new: str, relation: Relation) -> str:
    """Phrase a change over time as such: what was, and what came of it."""
    verb, _, rest = relation.old.predicate.partition(" ")
    if relation.new.start or relation.new.subject != relation.old.subject:
        return ""
    came = _without_repetition(relation.old, new[new.index(relation.new.predicate) :])
    past = past_of(verb)
    before = f"{past} previously" if past in ("was", "were") else f"previously {past}"
    return _with_predicate(old, relation.old, f"{before} {rest} but {came}")


def _with_predicate(old: str, clause: Clause, predicate: str) -> str:
    begin = clause.start + clause.text.index(clause.predicate)
    return old[:begin] + predicate + old[clause.start + len(clause.text) :]


def _denied(old: str, new: str, relation: Relation) -> str:
    """Take what no longer holds out of a list of several, and say that it does not."""
    part = coordinated(relation.new, relation.old)
    if part is None:
        return ""
    clause = relation.old
    rest = clause.text[: part.start()] + clause.text[part.end() :]
    predicate = new[new.index(relation.new.predicate) :]
    return f"{old[: clause.start]}{rest.strip()} but {predicate}{old[clause.start + len(clause.text) :]}"


_HOME = re.compile(
    r"(?:lives|resides|is living|has lived|is based) in (?P<place>[^,;]+?)(?P<rest>\s(?:with|since|for)\s.*)?$"
)
_MOVE = re.compile(r"(?P<verb>(?:has |recently |just )*(?:moved|relocated)) (?P<goal>(?:\w+ )?to\s.+)")


def _moved(old: str, new: str, relation: Relation) -> str:
    clause, predicate = relation.old, new[new.index(relation.new.predicate) :]
    home, move = _HOME.match(clause.predicate), _MOVE.match(predicate)
    if not home or not move:
        return ""
    lived = f", having lived there {home['rest'].strip()}" if home["rest"] else ""
    return _with_predicate(old, clause, f"{move['verb']} from {home['place']} {move['goal']}{lived}")


def _exchanged(old: str, new: str, relation: Relation) -> str:
    """Put a new day, price or figure in the place of the old one, and name that."""
    clause, added = relation.old, relation.new
    stale, fresh = _value_span(clause, added), _value_span(added, clause)
    if stale is None or fresh is None:
        return ""
    before, value = clause.text[stale[0] : stale[1]], added.text[fresh[0] : fresh[1]]
    told = clause.text[: stale[0]] + f"{value} (previously {before})" + clause.text[stale[1] :]
    return old[: clause.start] + told + old[clause.start + len(clause.text) :]


def _value_span(clause: Clause, other: Clause) -> tuple[int, int] | None:
    """Return where the one stretch of times and figures stands that the other clause does not hold."""
    known = {value for mention in other.mentions for value in mention.values}
    timed = [m for m in clause.mentions if m.kind in ("date", "duration", "quantity")]
    own = [m for m in timed if m.values.isdisjoint(known)]
    if not own:
        return None
    run = [m for m in timed if own[0].position - 1 <= m.position <= own[-1].position + 1]
    lead = re.search(r"(?:(?:every|on|at|in|by|for|until|from|about|around|only)\s)+$", clause.text[: run[0].start])
    return (lead.start() if lead else run[0].start), run[-1].end


def _without_repetition(old: Clause, predicate: str) -> str:
    """Drop what was left from `left Google last month for Microsoft` once it has been named."""
    left = _LEFT.match(predicate)
    if not left or left["what"] not in old.predicate or (left["when"] and left["then"]):
        return predicate
    goal = f"now works at {left['goal']}" if old.aspect == "work" else f"went to {left['goal']}"
    return f"{left['verb']}{left['when'] or left['then'] or ''} and {goal}"


def _completed(old: str, new: str, relation: Relation) -> str:
    """Add another side of the same fact: `lives in LA` and `lives with Bella`."""
    clause, added = relation.old, relation.new
    if housemate := re.fullmatch(r"User's (.+) lives with (?:them|User)", new):
        return _after_clause(old, clause, f" with their {housemate[1]}")
    begun, going_on = clause.predicate.split(), added.predicate.split()
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(begun, going_on, strict=False))))
    tail = " ".join(going_on[shared:])
    if not shared or added.start or not _PREPOSITION.match(tail):
        return ""
    return _after_clause(old, clause, " " + tail)


def _described(old: str, new: str, relation: Relation) -> str:
    """Tell more of what the end of the other introduces: `has a rabbit named Flop`, `User's rabbit eats only hay`."""
    added, clause = relation.new, relation.old
    ends = clause.mentions[-2:] if clause.mentions and clause.mentions[-1].kind == "name" else clause.mentions[-1:]
    predicate = re.sub(r"^User's [\w ]+, ", "", new[new.index(added.predicate) :])
    verb = re.split(r"[ ,]", predicate.lower(), maxsplit=1)[0]
    is_told = is_verb(verb) or verb.endswith("ed")
    if not ends or added.start or "User" in predicate or not is_told or ends[-1].end < len(clause.text):
        return ""
    if all(one.values.isdisjoint(added.subject) for one in ends):
        return ""
    is_alive = clause.aspect in ("pet", "family") or ends[-1].kind == "name"
    comma = "," if clause.text[: ends[-1].start].rstrip().endswith(",") else ""
    return _after_clause(old, clause, f"{comma} {'who' if is_alive else 'which'} {predicate}")


def _instanced(old: str, new: str, relation: Relation) -> str:
    added, clause = relation.new, relation.old
    likes = [m for m in added.mentions if m.kind == "preference" and "like" in m.values]
    if added.manner != "preference" or clause.manner != "preference" or len(likes) != 1 or added.start:
        return ""
    thing = new[likes[0].end :].strip()
    return _after_clause(old, clause, f", particularly {thing}") if find_mentions(thing) else ""


_TELLINGS: dict[Link, tuple[Callable[[str, str, Relation], str], ...]] = {
    Link.SAME: (_same,),
    Link.REFINES: (_refined,),
    Link.REPLACES: (_moved, _exchanged, _changed),
    Link.NEGATES: (_denied, _changed),
    Link.COMPLETES: (_completed,),
    Link.QUALIFIES: (_completed,),
    Link.DESCRIBES: (_described,),
    Link.INSTANCE: (_instanced,),
}


def past_of(verb: str) -> str:
    """Return the past form of a third-person verb: `works` → `worked`, `has` → `had`."""
    fixed = {
        "is": "was",
        "are": "were",
        "has": "had",
        "does": "did",
        "can": "could",
        "doesn't": "didn't",
        "isn't": "wasn't",
    }
    if verb in fixed or not verb.endswith("s"):
        return fixed.get(verb, verb)
    base = re.sub(r"(?<=[^aeiou])ies$", "y", verb)
    base = re.sub(r"(?:(?<=ss)|(?<=x)|(?<=zz)|(?<=ch)|(?<=sh)|(?<=o))es$|(?<!s)s$", "", base) if base == verb else base
    irregular = next((form for form, its_base in irregular_forms().items() if its_base == base), None)
    if irregular:
        return irregular
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    return base + (base[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", base) else "") + "ed"
