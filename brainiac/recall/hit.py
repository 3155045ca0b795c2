"""What a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

HitKind = Literal["memory", "statement", "exchange", "index-page", "note"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found.

    Attributes:
        kind: `memory` (a whole page), `statement` (one list item of it), `exchange` (one raw exchange of
            `events/` or of short-term memory), `index-page`.
        path: Relative path of the file it stands in.
        title: The page's title, for a person.
        text: What matched: the statement, the exchange's words, or the page's beginning.
        score: A log-likelihood by learned weights, higher is better; of two searches only roughly comparable.
        uuid: The page's identity; "" where the file has none (short-term memory).
        anchor: Block id of a statement (without `^`), id of an exchange, or "".
        at: ISO 8601 moment it was said or last changed; "" if unknown.
        speaker: `user` or `ai` for an exchange's turn, else "".
        is_near: Clearly near what was asked: most of what it asks stands there, or means the same.
        is_archived: It was put to rest.
        signals: What the score was made of, by name.
    """

    kind: HitKind
    path: str
    title: str
    text: str
    score: float
    uuid: str = ""
    anchor: str = ""
    at: str = ""
    speaker: str = ""
    is_near: bool = False
    is_archived: bool = False
    signals: Mapping[str, float] = field(default_factory=dict)
