"""The deterministic check of a merge: nothing of either side lost, nothing invented (seeds I4, I8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from .entities import FacetKind, Mention, find_mentions, means_same, pale_verbs

Side = Literal["old", "new", "invented"]


__all__ = ["Loss", "check"]


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


@dataclass(frozen=True, slots=True)
class _Source:
    """One of the two statements; what stands at `waived` offsets may be missing."""

    side: Side
    mentions: tuple[Mention, ...]
    waived: frozenset[int] = frozenset()

    def required(self) -> list[Mention]:
        return [mention for mention in self.mentions if mention.start not in self.waived]


_STRICT = frozenset({"name", "place", "date", "duration", "quantity", "relation"})
_LEADING = frozenset(
    "pound dollar euro january february march april may june july august september october november december".split()
)
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
    sources = [_Source("old", find_mentions(old), _waived(old, contradicted)), _Source("new", find_mentions(new))]
    losses = [loss for source in sources for loss in _lost(source, told)]
    losses += _lost_numbers(sources, told)
    losses += [loss for source, text in zip(sources, (old, new), strict=True) for loss in _turned(source, text, merged)]
    return losses + _invented(sources[0].mentions + sources[1].mentions, told)


def _waived(old: str, contradicted: Iterable[str]) -> frozenset[int]:
    """Return the offsets of `old` that are contradicted."""
    offsets: set[int] = set()
    for words in contradicted:
        start = old.find(words)
        if words and start >= 0:
            offsets.update(range(start, start + len(words)))
    return frozenset(offsets)


def _lost(source: _Source, told: Sequence[Mention]) -> list[Loss]:
    losses, mentions = [], source.mentions
    for mention in source.required():
        if mention.is_number:
            continue  # numbers are counted together with what they count
        if mention.kind == "negation":
            is_kept = _keeps_negation(_scope(mention, mentions), told)
        elif mention.kind == "preference":
            is_kept = _keeps_preference(_scope(mention, mentions), mentions, told)
        else:
            is_kept = any(_same(mention, other) for other in told) or _is_pale(mention)
        if not is_kept:
            losses.append(Loss(mention.kind, source.side, mention.text))
    return losses


@lru_cache(maxsize=4096)
def _same(first: Mention, second: Mention) -> bool:
    if first.is_number or second.is_number:
        return False
    if first.kind in _STRICT and second.kind in _STRICT:
        return not first.values.isdisjoint(second.values)
    return means_same(first.values, second.values)


def _is_pale(mention: Mention) -> bool:
    return mention.kind == "other" and not mention.values.isdisjoint(pale_verbs())


def _scope(mention: Mention, mentions: Sequence[Mention], reach: int = 4) -> _Bound:
    """Bind a mention to the words that follow it in its clause, or for want of any, to those before."""
    others = [other for other in mentions if other.clause == mention.clause and other.kind != "negation"]
    after = [other for other in others if other.position > mention.position][:reach]
    if mention.kind == "preference":
        after = list(takewhile(lambda other: other.kind != "preference", after))
    before = [other for other in others if other.position < mention.position][-2:]
    return _Bound(mention, tuple(after or before))


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


def _rest_of_sentence(mention: Mention, told: Sequence[Mention]) -> tuple[Mention, ...]:
    """Return what follows until the sentence turns to another preference."""
    return tuple(takewhile(lambda other: other.kind != "preference", told[mention.position + 1 :]))


def _keeps_preference(bound: _Bound, mentions: Sequence[Mention], told: Sequence[Mention]) -> bool:
    if _is_denied(bound.mention, mentions):
        return True  # "doesn't like" is kept or lost with its negation
    alike = [other for other in told if bound.mention.values & other.values and not _is_denied(other, told)]
    return any(_shares(bound.scope, (*_scope(other, told).scope, *_rest_of_sentence(other, told))) for other in alike)


def _is_denied(mention: Mention, mentions: Sequence[Mention]) -> bool:
    if mention.values.isdisjoint(_POLAR):
        return False
    return any(
        other.kind == "negation" and other.clause == mention.clause and other.position == mention.position - 1
        for other in mentions
    )


_RANKED = re.compile(
    r"\bprefer(?:s|red|ring)?\s(?P<first>[^.;,]+?)\s(?:to|over|rather than|instead of)\s(?P<second>[^.;,]+)"
    r"|\brather\s(?P<one>[^.;,]+?)\sthan\s(?P<other>[^.;,]+)",
    re.IGNORECASE,
)


def _turned(source: _Source, text: str, merged: str) -> list[Loss]:
    """Find a preference of one thing to another that the merge tells the other way round."""
    if "prefer" not in text and "rather" not in text:
        return []
    told = [_ranked(match) for match in _RANKED.finditer(merged)]
    losses: list[Loss] = []
    for match in _RANKED.finditer(text):
        first, second = _ranked(match)
        if match.group() in merged or not first or not second:
            continue
        if any(_shares(first, lower) and _shares(second, higher) for higher, lower in told if higher and lower):
            losses.append(Loss("preference", source.side, match.group()))
    return losses


def _ranked(match: re.Match[str]) -> tuple[tuple[Mention, ...], tuple[Mention, ...]]:
    higher, lower = (part for part in match.groups() if part is not None)
    return find_mentions(higher), find_mentions(lower)[:2]


def _lost_numbers(sources: Sequence[_Source], told: Sequence[Mention]) -> list[Loss]:
    """Match every number with one of the merge, those first that count the same thing."""
    wanted: list[tuple[Side, Mention, Mention | None]] = []
    for source in sources:
        for mention in source.required():
            if mention.is_number:
                head = _head(mention, source.mentions)
                if not any(_agree(mention, head, seen, seen_head) for _, seen, seen_head in wanted):
                    wanted.append((source.side, mention, head))
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
    """Return what a number counts: the sign or month before it, or the word after it."""
    if number.kind == "date":
        return None  # a year or a time of day counts nothing
    before = mentions[number.position - 1] if number.position else None
    if before is not None and not before.values.isdisjoint(_LEADING) and before.end + 1 >= number.start:
        return before
    following = mentions[number.position + 1 : number.position + 2]
    return following[0] if following and following[0].clause == number.clause else None


def _agree(first: Mention, first_head: Mention | None, second: Mention, second_head: Mention | None) -> bool:
    if first.values.isdisjoint(second.values):
        return False
    if first_head is None or second_head is None:
        return True
    return _same(first_head, second_head)


def _invented(sources: Sequence[Mention], told: Sequence[Mention]) -> list[Loss]:
    losses = []
    for mention in told:
        if mention.is_number:
            is_known = any(other.is_number and mention.values & other.values for other in sources)
        elif mention.kind == "negation":
            is_known = _negation_is_known(mention, told, sources)
        else:
            is_known = any(_same(mention, other) for other in sources) or _is_pale(mention)
        if not is_known:
            losses.append(Loss(mention.kind, "invented", mention.text))
    return losses


def _negation_is_known(mention: Mention, told: Sequence[Mention], sources: Sequence[Mention]) -> bool:
    if "cease" in mention.values:
        return True  # phrasing a change as such invents nothing: what was contradicted is no longer so
    return any(other.kind == "negation" or "dislike" in other.values for other in sources)
