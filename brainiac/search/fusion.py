"""Several searches for one prompt: what is searched for, and how what each finds becomes one list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from brainiac.search.hit import Hit

# A score is a log-likelihood by learned weights: what only a model's query finds is taken to be e² times less likely.
# Measured against sums, ranks and filling up: docs/decisions/model-queries.md.
DOUBT = 2.0
PROMPT_CHARACTERS = 4_000  # an embedder reads no more, and what is asked stands at an end
_SYNTAX = re.compile(r'(?<!\S)-?((?:tag|type|after|before|path):)(?=\S)|(?<!\S)-(?=[\w"])|"', re.IGNORECASE)


def searches(prompt: str, queries: Iterable[str]) -> list[str]:
    """Return what to search for: the prompt, then each query that brings a word of its own.

    Both are prose: quotation marks, `-5` or `path:` in them narrow nothing.
    """
    asked = _SYNTAX.sub(r"\1 ", ends_of(prompt))
    known = _words(asked)
    further = (_SYNTAX.sub(r"\1 ", query) for query in queries if not _words(query) <= known)
    return [asked, *dict.fromkeys(further)]


def ends_of(text: str, limit: int = PROMPT_CHARACTERS) -> str:
    """Return a text; of one longer than `limit` characters its beginning and its end, cut between words."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 4], text[-(limit // 4) :]
    return f"{head.rsplit(None, 1)[0]}\n\n{tail.split(None, 1)[-1]}"


def merged(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return each place once, best first.

    Args:
        found: What each search found; the prompt's own first.
    """
    best: dict[tuple[str, str, str, int], tuple[float, Hit]] = {}
    for number, hits in enumerate(found):
        for hit in hits:
            worth = hit.score - (DOUBT if number else 0.0)
            if hit.key not in best or worth > best[hit.key][0]:
                best[hit.key] = worth, hit
    return [hit for _, hit in sorted(best.values(), key=lambda pair: -pair[0])]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
