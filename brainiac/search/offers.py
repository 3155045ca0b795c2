"""Which found things are worth being offered to somebody who did not ask for them, and which are in the way.

A thing is offered where *one* statement has the name that a prompt names, or enough of what it is about: words are
judged by how rare they are in general (`background.py`), not in this brain, where each looks rare as long as it is
small. That, how near both are in meaning beyond what chance brings, and what the ranker says of the statement make one
sum, learned by `benchmarks/push.py`; rank alone cannot tell, since something always comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from operator import mul
from statistics import median
from typing import NamedTuple

from brainiac.search.background import information
from brainiac.search.documents import Hit
from brainiac.search.text import Analyzer, Token, folded, grams_of

_TELLS, _NAMES = 1.0, 3.0  # a word with so much information tells something; with so much it may stand alone
_LIKE = 0.7  # of the trigrams of the shorter of two words: they are forms of one
_MOST_WORDS = 64  # of a long text
_FIRST = 12  # of the hits: what the brain knows of a prompt at all

# Of each sign, the offset last. Learned by `benchmarks/push.py` on one half of the chats with an assistant and on three
# days of coding; the offset is 1.0 lower than learned, where few lines are in the way (docs/speaking-first.md).
WEIGHTS = (-1.13, 2.09, 1.17, 6.79, 4.38, 0.37, -0.19, -0.01, -0.67, -3.55)
# measured on the same chats and two hours of coding, all of it known by then
_BESIDE = 1.0  # so much less sure another may be beside the surest
# two tell of the same thing where their cosine, and the share of what the older tells that stands in the newer, come to
# this sum, and may where they come to the lesser one: learned on the 180 changes of nine days of coding
_SAME, _MAY_BE_SAME = 0.7, 0.48
_ANEW = 0.6  # of what the older tells: the newer says it anew
_SAID = 0.8  # of what a text tells: it was said already


class Signs(NamedTuple):
    """What speaks for offering a hit.

    Attributes:
        share: Of all that the words of the prompt tell, what those tell that the statement has.
        known: That share over the first hits together: how much of the prompt the brain knows at all.
        words: How many telling words it has.
        beyond: Its cosine beyond what chance would bring.
        apart: Its cosine beyond that of the other hits in the middle.
        covered: The ranker's own measure of the words of the prompt, by how rare they are in the brain.
        about: 1 where the prompt names who speaks.
        score: By the ranker, a log-likelihood.
        length: The logarithm of how many words it has.
    """

    share: float
    known: float
    words: float
    beyond: float
    apart: float
    covered: float
    about: float
    score: float
    length: float


def telling(text: str, analyzer: Analyzer) -> dict[Token, float]:
    """Return the words of a text that tell anything, each once, with how much."""
    tokens = list(dict.fromkeys(token for token in analyzer.tokens(text) if not token.is_stop))[:_MOST_WORDS]
    return {token: value for token in tokens if (value := information(token.word)) > 0}


def holds(token: Token, words: Sequence[Token]) -> bool:
    """Return whether a word, or a form of it, is among some words."""
    return any(token.stem == other.stem or _is_form(token.word, other.word) for other in words)


def _is_form(one: str, other: str) -> bool:
    shorter = min(len(folded(one)), len(folded(other)))
    if shorter < 4:
        return False
    shared = len(grams_of(one) & grams_of(other))
    return shared >= _LIKE * shorter and shared >= 3


class Found(NamedTuple):
    """What a hit has.

    Attributes:
        words: How many words, each counted once.
        asked: Those of the prompt.
    """

    words: int
    asked: set[Token]


def found_in(hits: Sequence[Hit], asked: dict[Token, float], analyzer: Analyzer) -> list[Found]:
    """Return what each hit has of the words of a prompt.

    Args:
        hits: What was found, in any order.
        asked: The words of the prompt, with what each tells (see `telling`).
        analyzer: Reads the hits.
    """
    own = (list(dict.fromkeys(analyzer.tokens(f"{hit.title} {hit.said}"))) for hit in hits)
    return [Found(len(words), {token for token in asked if holds(token, words)}) for words in own]


def signs_of(
    asked: dict[Token, float], hits: Sequence[Hit], found: Sequence[Found], chance: float
) -> list[Signs | None]:
    """Return what speaks for each of some hits; None where it has too little of the prompt to be looked at.

    Args:
        asked: What the words of the prompt tell, by `telling`.
        hits: Best first.
        found: What each has, by `found_in`.
        chance: How near the nearest vector comes by chance; 0 without vectors.
    """
    total = max(sum(asked.values()), 1e-9)
    all_known = set[Token]().union(*(each.asked for each in found[:_FIRST]))
    known = sum(asked[token] for token in all_known) / total
    near = [
        hit.signals["cosine"] - chance if "embedded" in hit.signals and "cosine" in hit.signals else 0.0 for hit in hits
    ]
    middle = median(near) if near else 0.0
    return [
        Signs(
            share=sum(asked[token] for token in has) / total,
            known=known,
            words=sum(asked[token] >= _TELLS for token in has),
            beyond=beyond,
            apart=beyond - middle,
            covered=hit.signals.get("covered", 0.0),
            about=hit.signals.get("about", 0.0),
            score=hit.score,
            length=math.log1p(n_words),
        )
        if is_enough(hit, [asked[token] for token in has])
        else None
        for hit, beyond, (n_words, has) in zip(hits, near, found, strict=True)
    ]


def is_enough(hit: Hit, told: Sequence[float]) -> bool:
    """Return whether a hit has the name that a prompt names, or two telling words of it.

    Args:
        hit: Any.
        told: What each of the prompt's words tells that it has.
    """
    is_named = bool(hit.signals.get("titled") or hit.signals.get("headed")) or max(told, default=0.0) >= _NAMES
    return is_named or sum(value >= _TELLS for value in told) > 1


def worth(
    text: str,
    look: Callable[[str], Sequence[Hit]],
    chance: float,
    near: Callable[[Sequence[Hit]], Sequence[float]],
    analyzer: Analyzer,
    *,
    said: Sequence[str] = (),
    known: Set[str] = frozenset(),
) -> list[Hit]:
    """Return which of a prompt's hits are worth being offered, in the order in which they are to be told.

    Args:
        text: The prompt.
        look: Returns what memory has on some words and may be said, best first.
        chance: How near the nearest vector comes by chance; 0 without vectors.
        near: Returns how near each of some hits is in meaning to the first.
        analyzer: The brain's language.
        said: What was said already.
        known: The names of what was told already.
    """
    asked, hits = telling(text, analyzer), look(text)
    found = found_in(hits, asked, analyzer)
    totals = [
        sum(map(mul, (*each, 1.0), WEIGHTS)) if each else -math.inf for each in signs_of(asked, hits, found, chance)
    ]
    order: list[int] = []
    for number in sorted(range(len(hits)), key=lambda number: -totals[number]):
        # beside the surest only what is about as sure
        least = max(0.0, totals[order[0]] - _BESIDE) if order else 0.0
        before = [hits[each].said for each in order]
        if totals[number] > least and not any(
            share_in(hits[number].said, others, analyzer) >= _SAID for others in (said, before)
        ):
            order.append(number)
    told: dict[str, Hit] = {}
    heard = set[Token]()
    for number in order:
        hit = hits[number]
        new = {token for token in found[number].asked if asked[token] >= _TELLS}
        if told and new <= heard:
            continue
        heard |= new
        # what was told later of the same may be what holds now: it comes before, or alone where it says most of it, and
        # once it was said the older would mislead, as it may where it is not sure that a later one is of the same; in a
        # transcript nobody tells memory what holds
        likeness, newer = (0.0, hit) if hit.name else _newer(hit, look(hit.said), near, text, analyzer)
        if _MAY_BE_SAME <= likeness < _SAME:
            continue
        if likeness >= _SAME:
            is_known = newer.name_in_memory in known or share_in(newer.said, said, analyzer) >= _SAID
            if not is_known:
                told[newer.name_in_memory] = newer
            if is_known or share_in(hit.said, [newer.said], analyzer) >= _ANEW:
                continue
        told.setdefault(hit.name_in_memory, hit)
    return list(told.values())


def _newer(
    hit: Hit,
    others: Sequence[Hit],
    near: Callable[[Sequence[Hit]], Sequence[float]],
    text: str,
    analyzer: Analyzer,
) -> tuple[float, Hit]:
    """Return how surely one of some hits tells the same as another one, and later; and the newest that surely does.

    Args:
        hit: The other one, which is the newest itself where none does.
        others: The hits.
        near: See `worth`.
        text: The prompt, which itself may have been noted by now.
        analyzer: The brain's language.
    """
    later = [
        other
        for other in others
        if other.at > hit.at
        and share_in(other.said, [text], analyzer) < _SAID
        and share_in(other.said, [hit.said], analyzer) < 1  # else it has nothing new, as the statement made of it
    ]
    shares = [share_in(hit.said, [other.said], analyzer) for other in later]
    alike = [cosine + share for cosine, share in zip(near([hit, *later])[1:], shares, strict=True)]
    same = [other for other, likeness in zip(later, alike, strict=True) if likeness >= _SAME]
    return max(alike, default=0.0), max(same, key=lambda other: other.at, default=hit)


def share_in(text: str, others: Sequence[str], analyzer: Analyzer) -> float:
    """Return the share of what a text tells that stands in other texts, in whatever order; 1 where it tells nothing."""
    told = telling(text, analyzer)
    present = list(dict.fromkeys(token for other in others for token in analyzer.tokens(other)))
    total = sum(told.values())
    return sum(value for token, value in told.items() if holds(token, present)) / total if total else 1.0
