"""Working memory as blocks, fitted into a model's window (design 7, seeds C3).

Each block says how seldom it changes, who owns it, and what may be cut of it. Shares are cut first, then the blocks in
the cut order of design 7, always by whole parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

from brainiac.errors import WindowError
from brainiac.llm.catalog import facts
from brainiac.settings import Settings
from brainiac.text.tokens import pieces as pieces_of

DEFAULT_BUDGET_TOKENS = 32_000
TOOL_TOKENS = 8_000
Count = Callable[[str], int]  # tokens of a text


class Stability(IntEnum):
    """Where a block stands: what changes least comes first, so that a provider's prefix cache hits (seeds C4)."""

    # with gaps, where a plugin may put its blocks
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
        budget_tokens: What it had to fit into.
        block_tokens: By block name, in order; about, rather more than fewer.
    """

    blocks: tuple[Block, ...]
    messages: list[dict[str, Any]]
    budget_tokens: int
    cuts: tuple[Cut, ...] = ()
    block_tokens: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All blocks, as they are read."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def tokens(self) -> int:
        """Of everything."""
        return sum(self.block_tokens.values())

    @property
    def cached(self) -> tuple[str, ...]:
        """Names of the blocks that the next request of this purpose begins with again."""
        return tuple(block.name for block in self.blocks if block.stability <= Stability.EVENT_LOG)


def budget_tokens(settings: Settings, model: str) -> int:
    """Return how many tokens of input a request may have: the setting, within what the model's window leaves.

    A quarter of the window at most is kept for the answer.
    """
    wanted, listed = settings.context.budget_tokens, facts(model)
    if listed.price is None and (wanted or model == "offline"):
        return wanted or DEFAULT_BUDGET_TOKENS  # a model no list knows: whoever set this knows its window
    room = listed.window_tokens - min(settings.llm.max_output_tokens, listed.window_tokens // 4)
    return min(wanted or DEFAULT_BUDGET_TOKENS, room)


def tool_tokens(budget: int) -> int:
    """Return how much of a budget is kept for what tools give out."""
    return min(TOOL_TOKENS, budget // 4)


def tokens_of(block: Block, count: Count) -> int:
    """Return a block's tokens, joints included."""
    return sum(count(piece) + 1 for piece in block.pieces())


def fit(blocks: Sequence[Block], limit_tokens: int, count: Count) -> tuple[list[Block], list[Cut]]:
    """Return the blocks that fit and what was left out.

    Args:
        blocks: In their order.
        limit_tokens: For all together.
        count: Tokens of a text.

    Raises:
        WindowError: What is never cut does not fit by itself.
    """
    cuts: list[Cut] = []
    fitted = []
    # a share holds even where there is room for more: a long log must leave some to what was found
    for block in blocks:
        if block.share < 1:
            block = _within(block, int(block.share * limit_tokens), count, "its share of the budget", cuts)
        fitted.append(block)
    for block in sorted((b for b in fitted if b.cut_order is not None), key=lambda b: b.cut_order or 0):
        over = sum(tokens_of(b, count) for b in fitted) - limit_tokens
        if over <= 0:
            break
        room = max(0, tokens_of(block, count) - over)
        fitted[fitted.index(block)] = _within(block, room, count, "the budget of all blocks", cuts)
    fitted = [block for block in fitted if block.parts]
    sizes = {block.name: tokens_of(block, count) for block in fitted}
    needed = sum(sizes.values())
    if needed > limit_tokens:
        largest = max(sizes, key=lambda name: sizes[name])
        raise WindowError(
            f"The request needs about {needed:,} tokens, of which `{largest}` takes {sizes[largest]:,}; "
            f"the model takes {limit_tokens:,}.",
            advice=f"Shorten what is in `{largest}`, choose a model with a larger window, or raise "
            "context.budget_tokens.",
        )
    return fitted, cuts


def _within(block: Block, room: int, count: Count, reason: str, cuts: list[Cut]) -> Block:
    before = tokens_of(block, count)
    if block.cut_order is None or before <= room:
        return block
    sizes = [count(part) + 1 for part in block.parts]
    # the heading stands as long as any part does
    room -= before - sum(sizes)
    kept = _newest(sizes, room) if block.drops == "first-quarters" else _leading(sizes, room)
    smaller = replace(block, parts=tuple(block.parts[kept]))
    if left_out := len(block.parts) - len(smaller.parts):
        cuts.append(Cut(block.name, left_out, before - tokens_of(smaller, count), f"over {reason}"))
    return smaller


def _leading(sizes: Sequence[int], room: int) -> slice:
    total = 0
    for index, size in enumerate(sizes):
        total += size
        if total > room:
            return slice(0, index)
    return slice(None)


def _newest(sizes: Sequence[int], room: int) -> slice:
    """Drop whole quarters from the front.

    Quarters are counted from the oldest part, which stays the same until short-term memory is pruned. So the
    front stays where it is until the log has grown by another quarter, and requests in between share their prefix.
    """
    quarter = max(1, room // 4)
    left, begun, front = sum(sizes), 0, -1
    for index, size in enumerate(sizes):
        if begun // quarter != front:
            front = begun // quarter
            if left <= room:
                return slice(index, None)
        begun, left = begun + size, left - size
    return slice(len(sizes), None)


def shortened(text: str, limit_tokens: int, count: Count) -> str:
    """Return as many whole lines, then whole sentences, of a text as fit; an ellipsis says that more stands there."""
    if count(text) <= limit_tokens:
        return text
    kept: list[str] = []
    # the ellipsis takes its part
    room = limit_tokens - 2
    for line in text.splitlines():
        for piece in [line] if count(line) < room else pieces_of(line):
            room -= count(piece) + 1
            if room < 0:
                return "\n".join([*kept, "…"])
            kept.append(piece)
    return "\n".join(kept)
