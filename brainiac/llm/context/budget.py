"""Fitting blocks into a model's window: shares first, then the cut order of design 7, by whole parts (seeds C3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from brainiac.errors import WindowError
from brainiac.llm.catalog import facts
from brainiac.llm.context.blocks import Block, Cut
from brainiac.settings import Settings
from brainiac.text.tokens import pieces as pieces_of

DEFAULT_BUDGET_TOKENS = 32_000
TOOL_TOKENS = 8_000
Count = Callable[[str], int]


def budget_tokens(settings: Settings, model: str) -> int:
    """Return how many tokens of input a request may have: the setting, within what the model's window leaves.

    A quarter of the window at most is kept for the answer.
    """
    wanted = settings.context.budget_tokens
    if facts(model).price is None and (wanted or model == "offline"):
        return wanted or DEFAULT_BUDGET_TOKENS  # a model no list knows: whoever set this knows its window
    window = facts(model).window_tokens
    room = window - min(settings.llm.max_output_tokens, window // 4)
    return min(wanted or DEFAULT_BUDGET_TOKENS, room)


def tool_tokens(budget: int) -> int:
    """Return how much of a budget is kept for what tools give out."""
    return min(TOOL_TOKENS, budget // 4)


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
    fitted = [
        _within(block, int(block.share * limit_tokens), count, "its share of the budget", cuts)
        if block.share < 1
        else block
        for block in blocks
    ]
    for block in sorted((b for b in fitted if b.cut_order is not None), key=lambda b: b.cut_order or 0):
        over = sum(tokens_of(b, count) for b in fitted) - limit_tokens
        if over <= 0:
            break
        room = max(0, tokens_of(block, count) - over)
        fitted[fitted.index(block)] = _within(block, room, count, "the budget of all blocks", cuts)
    fitted = [block for block in fitted if block.parts]
    _check(fitted, limit_tokens, count)
    return fitted, cuts


def tokens_of(block: Block, count: Count) -> int:
    """Return a block's tokens, joints included."""
    return sum(count(piece) + 1 for piece in block.pieces())


def _within(block: Block, room: int, count: Count, reason: str, cuts: list[Cut]) -> Block:
    before = tokens_of(block, count)
    if block.cut_order is None or before <= room:
        return block
    sizes = [count(part) + 1 for part in block.parts]
    room -= before - sum(sizes)
    kept = _newest(sizes, room) if block.drops == "first-quarters" else _leading(sizes, room)
    smaller = block.with_parts(block.parts[kept])
    left_out = len(block.parts) - len(smaller.parts)
    if left_out:
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
    total, begun, front = sum(sizes), 0, -1
    for index, size in enumerate(sizes):
        if begun // quarter != front:
            front = begun // quarter
            if total - begun <= room:
                return slice(index, None)
        begun += size
    return slice(len(sizes), None)


def _check(blocks: Sequence[Block], limit_tokens: int, count: Count) -> None:
    sizes = {block.name: tokens_of(block, count) for block in blocks}
    if sum(sizes.values()) <= limit_tokens:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    raise WindowError(
        f"The request needs about {sum(sizes.values()):,} tokens, of which `{largest}` takes {sizes[largest]:,}; "
        f"the model takes {limit_tokens:,}.",
        advice=f"Shorten what is in `{largest}`, choose a model with a larger window, or raise context.budget_tokens.",
    )


def shortened(text: str, limit_tokens: int, count: Count) -> str:
    """Return as many whole lines, then whole sentences, of a text as fit; an ellipsis says that more stands there."""
    if count(text) <= limit_tokens:
        return text
    kept: list[str] = []
    room = limit_tokens - 2
    for line in text.splitlines():
        pieces = [line] if count(line) < room else pieces_of(line)
        for piece in pieces:
            room -= count(piece) + 1
            if room < 0:
                return "\n".join([*kept, "…"])
            kept.append(piece)
    return "\n".join(kept)
