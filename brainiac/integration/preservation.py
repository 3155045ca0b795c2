"""The deterministic check of a merge: nothing of either side lost, nothing said that stood in neither (seeds I4, I8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from brainiac.language.entities import FacetKind, Mention, find_mentions, means_same

Side = Literal["old", "new", "invented"]


@dataclass(frozen=True, slots=True)
class Loss:
    """A detail that a merge lost or invented.

    Attributes:
        kind: What kind of detail.
        side: The statement it was lost from, or `invented`.
        words: As written there; for an invention as written in the merge.
    """

    kind: FacetKind
    side: Side
    words: str


@dataclass(frozen=True, slots=True)
class _Bound:
    """A number, negation or preference with the words it belongs to."""

    mention: Mention
    scope: tuple[Mention, ...]
    is_cessation: bool = False


_STRICT = frozenset({"name", "place", "date", "duration", "quantity", "relation"})
_POLAR = frozenset({"like", "dislike"})


def check(old: str, new: str, merged: str, contradicted: Iterable[str] = ()) -> list[Loss]:
    """Compare a merged statement with the two it was made from.

    Args:
        old: The statement that stood in memory.
        new: What was learnt.
        merged: The statement that is to stand instead of `old`.
        contradicted: Words of `old` that `new` contradicts; they may be missing, since they go to History.

    Returns:
        What was lost or invented, in the order of the texts; empty for a faithful merge.
    """
    told = find_mentions(merged)
    waived = _waived(old, contradicted)
    sides: list[tuple[Side, list[Mention]]] = [
        ("old", [mention for mention in find_mentions(old) if not waived & set(range(mention.start, mention.end))]),
        ("new", list(find_mentions(new))),
    ]
    losses = [loss for side, mentions in sides for loss in _lost(side, mentions, told)]
    losses += _lost_numbers(sides, told)
    sources = find_mentions(old) + find_mentions(new)
    return losses + _invented(sources, told)


def _waived(old: str, contradicted: Iterable[str]) -> set[int]:
    """Return the offsets of `old` that are contradicted."""
    offsets: set[int] = set()
    for words in contradicted:
        start = old.find(words)
        if words and start >= 0:
            offsets.update(range(start, start + len(words)))
    return offsets


def _lost(side: Side, mentions: Sequence[Mention], told: Sequence[Mention]) -> list[Loss]:
    losses = []
    for mention in mentions:
        if mention.is_number:
            continue  # numbers are counted together with what they count
        if mention.kind == "negation":
            is_kept = _keeps_negation(_scope(mention, mentions), told)
        elif mention.kind == "preference":
            is_kept = _keeps_preference(_scope(mention, mentions), mentions, told)
        else:
            is_kept = any(_same(mention, other) for other in told)
        if not is_kept:
            losses.append(Loss(mention.kind, side, mention.text))
    return losses


@lru_cache(maxsize=65536)
def _same(first: Mention, second: Mention) -> bool:
    if first.is_number or second.is_number:
        return False
    if first.kind in _STRICT and second.kind in _STRICT:
        return not first.values.isdisjoint(second.values)
    return means_same(first.values, second.values)


def _scope(mention: Mention, mentions: Sequence[Mention], reach: int = 4) -> _Bound:
    """Bind a mention to the words that follow it in its clause, or for want of any, to those before."""
    others = [other for other in mentions if other.clause == mention.clause and other.kind != "negation"]
    after = [other for other in others if other.position > mention.position][:reach]
    before = [other for other in others if other.position < mention.position][-2:]
    return _Bound(mention, tuple(after or before), "cease" in mention.values)


def _shares(first: Sequence[Mention], second: Sequence[Mention]) -> bool:
    if not first or not second:
        return True
    return any(
        _same(one, other) or (one.is_number and other.is_number and one.values & other.values)
        for one in first
        for other in second
    )


def _keeps_negation(bound: _Bound, told: Sequence[Mention]) -> bool:
    for other in told:
        is_denial = other.kind == "negation" or "dislike" in other.values
        if is_denial and _shares(bound.scope, (*_scope(other, told).scope, other)):
            return True
    return False


def _keeps_preference(bound: _Bound, mentions: Sequence[Mention], told: Sequence[Mention]) -> bool:
    if _is_denied(bound.mention, mentions):
        return True  # "doesn't like" is kept or lost with its negation
    alike = [other for other in told if bound.mention.values & other.values and not _is_denied(other, told)]
    return any(_shares(bound.scope, _scope(other, told).scope) for other in alike)


def _is_denied(mention: Mention, mentions: Sequence[Mention]) -> bool:
    if mention.values.isdisjoint(_POLAR):
        return False
    return any(
        other.kind == "negation" and other.clause == mention.clause and other.position == mention.position - 1
        for other in mentions
    )


def _lost_numbers(sides: Sequence[tuple[Side, list[Mention]]], told: Sequence[Mention]) -> list[Loss]:
    """Match every number with one of the merge, those first that count the same thing."""
    wanted: list[tuple[Side, Mention, Mention | None]] = []
    for side, mentions in sides:
        for mention in mentions:
            if mention.is_number:
                head = _head(mention, mentions)
                if not any(_agree(mention, head, seen, seen_head) for _, seen, seen_head in wanted):
                    wanted.append((side, mention, head))
    free = [(mention, _head(mention, told)) for mention in told if mention.is_number]
    left: list[tuple[Side, Mention, Mention | None]] = []
    for side, mention, head in wanted:
        match = next((pair for pair in free if _agree(mention, head, *pair)), None)
        if match:
            free.remove(match)
        else:
            left.append((side, mention, head))
    losses = []
    for side, mention, _head_of in left:
        loose = next((pair for pair in free if pair[0].values & mention.values), None)
        if loose:
            free.remove(loose)
        else:
            losses.append(Loss(mention.kind, side, mention.text))
    return losses


def _head(number: Mention, mentions: Sequence[Mention]) -> Mention | None:
    """Return what a number counts: the sign before it or the word after it."""
    for other in mentions:
        if other.clause == number.clause and other.position in (number.position + 1, number.position + 2):
            return other
    return None


def _agree(first: Mention, first_head: Mention | None, second: Mention, second_head: Mention | None) -> bool:
    if first.values.isdisjoint(second.values):
        return False
    if first_head is None or second_head is None:
        return first_head is second_head
    return _same(first_head, second_head)


def _invented(sources: Sequence[Mention], told: Sequence[Mention]) -> list[Loss]:
    losses = []
    for mention in told:
        if mention.is_number:
            is_known = any(other.is_number and mention.values & other.values for other in sources)
        elif mention.kind == "negation":
            is_known = _negation_is_known(mention, told, sources)
        else:
            is_known = any(_same(mention, other) for other in sources)
        if not is_known:
            losses.append(Loss(mention.kind, "invented", mention.text))
    return losses


def _negation_is_known(mention: Mention, told: Sequence[Mention], sources: Sequence[Mention]) -> bool:
    if "cease" in mention.values:
        return True  # phrasing a change as such invents nothing: what was contradicted is no longer so
    return any(other.kind == "negation" or "dislike" in other.values for other in sources)
