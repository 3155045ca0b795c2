"""Short-term memory."""

from __future__ import annotations

from dataclasses import dataclass

from brainiac.notes.dialogue import StmEvent

__all__ = ["Item", "ShortTermMemory", "StmEvent"]


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list in Structured Data."""

    text: str
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class ShortTermMemory:
    """`memory/short_term.md`; events newest first, as in the file."""

    summary: str = ""
    goals: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    events: tuple[StmEvent, ...] = ()
