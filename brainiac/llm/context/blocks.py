"""Working memory as blocks: each says how seldom it changes, who owns it, and what may be cut of it (design 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal


class Stability(IntEnum):
    """Where a block stands: what changes least comes first, so that a provider's prefix cache hits (seeds C4)."""

    IDENTITY = 0
    ROLE = 10
    TOOLS = 20
    WORKFLOWS = 30
    BACKGROUND = 40
    SHORT_TERM = 50
    EVENT_LOG = 55
    CONVERSATION = 60
    LONG_TERM = 70
    FOCUS = 80
    PROMPT = 90


@dataclass(frozen=True, slots=True)
class Block:
    """A part of working memory.

    Attributes:
        name: Unique within one working memory.
        parts: Whole statements, events or notes; cutting drops whole parts, never half of one.
        stability: Its place.
        heading: The line above it, `## Short-Term Memory`; "" for none.
        owner: `kernel`, or the plugin that added it.
        share: The most it may take of the budget, 0 to 1.
        cut_order: Lower is cut first when all blocks together pass the budget; None is never cut.
        drops: Which parts go first: the last ones (least relevant), or the first ones by quarters of the share
            (oldest; by quarters, since each cut at the front costs the whole prefix cache).
    """

    name: str
    parts: Sequence[str]
    stability: Stability
    heading: str = ""
    owner: str = "kernel"
    share: float = 1.0
    cut_order: int | None = None
    drops: Literal["last", "first-quarters"] = "last"

    def with_parts(self, parts: Sequence[str]) -> Block:
        """Return it with other parts."""
        return replace(self, parts=tuple(parts))

    def pieces(self) -> list[str]:
        """Return heading and parts as the texts they are joined from."""
        return [*([self.heading] if self.heading else []), *self.parts]

    @property
    def text(self) -> str:
        """The block as the model reads it."""
        return "\n\n".join(self.pieces())


@dataclass(frozen=True, slots=True)
class Cut:
    """What was left out.

    Attributes:
        reason: For a person.
    """

    block: str
    parts: int
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """Everything one model call sees.

    Attributes:
        messages: As the chat protocol takes them; content is a list of parts where cache marks are wanted.
        tokens: Of everything, about, rather more than fewer.
        budget_tokens: What it had to fit into.
        block_tokens: By block name, in order.
        cached: Names of the blocks that the next request of this purpose begins with again.
    """

    blocks: tuple[Block, ...]
    text: str
    messages: list[dict[str, Any]]
    tokens: int
    budget_tokens: int
    cuts: tuple[Cut, ...] = ()
    block_tokens: dict[str, int] = field(default_factory=dict)
    cached: tuple[str, ...] = ()
