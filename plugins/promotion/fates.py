"""How candidates end: each written, proposed, left or refused, in the journal and in the run's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from brainiac.formats.short_term import StmEvent

NAME = "promotion"
End = Literal["written", "proposed", "left", "refused"]


class Candidate(Protocol):
    """Something that a run decides."""

    @property
    def id(self) -> str: ...

    @property
    def words(self) -> str:
        """What it states, for a person."""
        ...

    @property
    def events(self) -> tuple[StmEvent, ...]: ...


@dataclass(frozen=True, slots=True)
class Fate:
    """How a candidate ended in a run; each ends in one way.

    Attributes:
        end: `written` on a page; `proposed` in `review.md`, whatever was written beside; `left` for another run, or to
            the list it stands in; `refused` for good.
        reason: Why it was left or refused.
    """

    statement: str
    end: End
    reason: str = ""

    def as_json(self) -> dict[str, str]:
        """Return what the journal keeps."""
        return {"end": self.end, **({"reason": self.reason[:300]} if self.reason else {})}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was not done, and why; journaled."""

    statement: str
    reason: str
    candidate: str = ""
    model: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain values, texts cut to what a person reads."""
        return {
            "candidate": self.candidate,
            "statement": self.statement[:300],
            "reason": self.reason[:300],
            "model": self.model,
        }
