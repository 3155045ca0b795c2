"""What a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

HitKind = Literal["memory", "statement", "exchange", "index-page", "note"]
FoundBy = Literal["words", "meaning", "context", "day", "title", "fields"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found.

    Attributes:
        kind: `memory` (a paragraph of a page), `statement` (one list item of it), `exchange` (what one side said in a
            raw exchange of `events/` or of short-term memory; of a long message one block), `index-page`.
        path: Relative path of the file it stands in.
        title: The page's title, for a person.
        text: What matched, whole and as it stands.
        score: A log-likelihood by learned weights, higher is better; of two searches only roughly comparable.
        uuid: The page's identity; "" where the file has none (short-term memory).
        anchor: Block id of a statement (without `^`), id of an exchange, or "".
        at: ISO 8601 moment it was said or last changed; "" if unknown.
        speaker: `user` or `ai` for an exchange's turn, else "".
        position: Its place among the units of its page.
        found_by: What led to it: its words, their meaning alone, the talk around it, the day, its page's title; or no
            words were asked for.
        is_near: Clearly near what was asked: most of its words stand there, or it means much the same.
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
    position: int = 0
    found_by: FoundBy = "words"
    is_near: bool = False
    is_archived: bool = False
    signals: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is told from other hits by."""
        return self.path, self.anchor, self.speaker, self.position
