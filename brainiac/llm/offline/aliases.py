"""Which name stands for whom or what: after "my cat is called Luna", what is said of Luna is said of the cat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from brainiac.language.sentences import stem, stop_words
from brainiac.llm.offline.evidence import Evidence

_NAME = r"(?P<name>[A-Z][\w-]+)"
_NAMINGS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:[Mm]y|[Oo]ur|[Aa]n?|[Tt]he|[Hh]is|[Hh]er) (?:[\w-]+ )?(?P<thing>[a-z]+),?(?: (?:is|was|who is))? "
        rf"(?:named|called) {_NAME}",
        rf"\b(?:[Mm]y|[Oo]ur) (?:[\w-]+ )?(?P<thing>[a-z]+)'s name is {_NAME}",
        rf"\b(?:[Mm]y|[Oo]ur) (?:[a-z-]+ )?(?P<thing>[a-z]+),? {_NAME}",
        rf"\b(?:[Mm]y|[Oo]ur) (?:[a-z-]+ )?(?P<thing>[a-z]+) is {_NAME}",
        rf"\b{_NAME},? (?:is )?(?:my|our) (?:[a-z-]+ )?(?P<thing>[a-z]+)\b",
    )
)


def names_of_things(evidence: Sequence[Evidence]) -> dict[str, frozenset[str]]:
    """Return for the stem of each name the stems of what bears it."""
    found: dict[str, frozenset[str]] = {}
    for one in evidence:
        for name, thing in _namings(one.said.plain):
            found[name] = found.get(name, frozenset()) | {thing}
    return found


@lru_cache(maxsize=4096)
def _namings(text: str) -> tuple[tuple[str, str], ...]:
    found = [match for pattern in _NAMINGS for match in pattern.finditer(text)]
    return tuple((stem(one["name"].lower()), stem(one["thing"])) for one in found if one["thing"] not in stop_words())
