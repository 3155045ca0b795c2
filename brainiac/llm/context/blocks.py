"""Working memory as blocks, fitted into a model's window; and the quoting of what is data in them.

Each block has a place by how seldom it changes, an owner, and a rule for cutting it. Blocks are first cut to their
shares, then in the order of requirement C3 (docs/requirements.md) until all fit, always by whole parts.

Texts of memory, files and tools are data: every line of them begins with `> `, so that no content can pose as a
heading, a role, a link or an instruction. The same content gives the same bytes in every request, as a provider's
prefix cache needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import accumulate
from typing import Any, Literal
from urllib.parse import quote as percent_encode

from brainiac.errors import WindowError
from brainiac.llm.catalog import facts
from brainiac.settings import Settings
from brainiac.text.tokens import pieces as pieces_of

DEFAULT_BUDGET_TOKENS = 32_000
TOOL_TOKENS = 8_000
PREVIEW_WORDS = 25
Count = Callable[[str], int]  # tokens of a text


class Stability(IntEnum):
    """The place of a block: blocks that change least come first, so that a provider's prefix cache hits."""

    # with gaps for the blocks of plugins
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
        heading: The line above it, such as `## Short-Term Memory`; "" for none.
        owner: `kernel`, or the plugin that added it.
        share: The largest share of the budget that it may take, 0 to 1.
        cut_order: The block with the lowest number is cut first when all together exceed the budget; None is never cut.
        drops: Which parts are cut first: `last` (the least relevant), or `first-quarters`: the oldest, a quarter of the
            room at a time, since each cut at the front invalidates the whole prefix cache.
        hits: The keys of the hits of a search that it shows.
    """

    name: str
    parts: Sequence[str]
    stability: Stability
    heading: str = ""
    owner: str = "kernel"
    share: float = 1.0
    cut_order: int | None = None
    drops: Literal["last", "first-quarters"] = "last"
    hits: frozenset[tuple[str, str, str, int]] = frozenset()

    def pieces(self) -> list[str]:
        """Return heading and parts as the texts they are joined from."""
        return [*([self.heading] if self.heading else []), *self.parts]

    @property
    def text(self) -> str:
        """The block as the model reads it."""
        return "\n\n".join(self.pieces())


@dataclass(frozen=True, slots=True)
class Cut:
    """The parts of one block that were left out.

    Attributes:
        block: The block's name.
        parts: How many parts.
        tokens: How many tokens they have.
        reason: Why, to be shown to a person.
    """

    block: str
    parts: int
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """Everything one model call sees.

    Attributes:
        blocks: Its blocks in order.
        messages: The messages of the chat protocol; content is a list of parts for models that take cache marks.
        budget_tokens: The budget that it was cut to.
        cuts: What was left out.
        block_tokens: An estimate of the tokens of each block, by its name.
    """

    blocks: tuple[Block, ...]
    messages: list[dict[str, Any]]
    budget_tokens: int
    cuts: tuple[Cut, ...] = ()
    block_tokens: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All blocks, as the model reads them."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def tokens(self) -> int:
        """The tokens of all blocks."""
        return sum(self.block_tokens.values())

    @property
    def cached(self) -> tuple[str, ...]:
        """The names of the blocks that the next request of this purpose will begin with too."""
        return tuple(block.name for block in self.blocks if block.stability <= Stability.EVENT_LOG)


def budget_tokens(settings: Settings, model: str) -> int:
    """Return how many tokens of input a request may have: the setting, at most the model's window without the answer.

    The answer gets a quarter of the window at most.
    """
    setting, model_facts = settings.context.budget_tokens, facts(model)
    # the window of a model in no list, which has no price, is a guess: what the person set counts as it is
    is_listed = model_facts.price is not None
    if not is_listed and (setting or model == "offline"):
        return setting or DEFAULT_BUDGET_TOKENS
    window = model_facts.window_tokens
    return min(setting or DEFAULT_BUDGET_TOKENS, window - min(settings.llm.max_output_tokens, window // 4))


def tool_tokens(budget: int) -> int:
    """Return how many tokens of a budget are reserved for the results of tools."""
    return min(TOOL_TOKENS, budget // 4)


def tokens_of(block: Block, count: Count) -> int:
    """Return a block's tokens, the line ends between its parts included."""
    return sum(count(piece) + 1 for piece in block.pieces())


def fit(blocks: Sequence[Block], limit_tokens: int, count: Count) -> tuple[list[Block], list[Cut]]:
    """Return the blocks cut to a budget, and the cuts.

    Args:
        blocks: The blocks in their order.
        limit_tokens: The budget of all together.
        count: Returns the tokens of a text.

    Raises:
        WindowError: The blocks that are never cut do not fit by themselves.
    """
    cuts: list[Cut] = []
    fitted = []
    # a share holds even where there is room for more, so that a long log leaves room for the pages that were found
    for block in blocks:
        if block.share < 1:
            block = _within(block, int(block.share * limit_tokens), count, "its share of the budget", cuts)
        fitted.append(block)
    # then one block after another is cut, as far as needed, until all together fit
    for block in sorted((b for b in fitted if b.cut_order is not None), key=lambda b: b.cut_order or 0):
        excess = sum(tokens_of(b, count) for b in fitted) - limit_tokens
        if excess <= 0:
            break
        room = max(0, tokens_of(block, count) - excess)
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
    """Return a block cut to `room` tokens, and add the cut to `cuts`; a block that must not be cut stays whole."""
    before = tokens_of(block, count)
    if block.cut_order is None or before <= room:
        return block
    sizes = [count(part) + 1 for part in block.parts]  # with a line break
    room -= before - sum(sizes)  # the tokens of the heading, which stays
    first = slice(sum(total <= room for total in accumulate(sizes)))
    smaller = replace(block, parts=tuple(block.parts[_newest(sizes, room) if block.drops != "last" else first]))
    if n_dropped := len(block.parts) - len(smaller.parts):
        cuts.append(Cut(block.name, n_dropped, before - tokens_of(smaller, count), f"over {reason}"))
    return smaller


def _newest(sizes: Sequence[int], room: int) -> slice:
    """Return the slice of the newest parts that fit into the room, cut from the front by quarters of the room.

    For a room of 100 tokens and parts of 10, the first part that is shown is number 0, 3, 5, 8, 10, …: the first one in
    its quarter of 25 tokens, counted from the oldest part, which stays the same until short-term memory is pruned. So
    the cut moves only when the log has grown by another quarter, and the requests in between begin with the same text.
    """
    quarter_tokens = max(1, room // 4)
    skipped, total = 0, sum(sizes)
    quarter = -1  # that of the part before
    for index, size in enumerate(sizes):
        begins_quarter = skipped // quarter_tokens != quarter
        if begins_quarter and total - skipped <= room:
            return slice(index, None)
        quarter = skipped // quarter_tokens
        skipped += size
    return slice(len(sizes), None)


def shortened(text: str, limit_tokens: int, count: Count) -> str:
    """Return the first whole lines of a text that fit, of a long line its first sentences, and an ellipsis if cut."""
    if count(text) <= limit_tokens:
        return text
    lines: list[str] = []
    room = limit_tokens - 2  # two for the ellipsis
    for line in text.splitlines():
        pieces = [line] if count(line) < room else pieces_of(line)
        for piece in pieces:
            room -= count(piece) + 1
            if room < 0:
                return "\n".join([*lines, "…"])
            lines.append(piece)
    return "\n".join(lines)  # it fits by lines, which have fewer tokens than the whole


# --- data, quoted --------------------------------------------------------------------------------------------------

QUOTE = "> "
# chat templates recognize these tokens anywhere: a local server would read them as a change of speaker
_CONTROL_TOKENS = re.compile(
    r"<[|\uff5c][^<>\n]{1,60}?[|\uff5c]>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS))\]|"
    r"<</?SYS>>|</?s>|<(?:start|end)_of_turn>|</?(?:tool_call|tool_response|function_calls|think)>",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(\s{0,3})#{1,2}(?=\s|$)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


def clean(text: str) -> str:
    """Return text without control characters, invisible direction and tag characters, and undecodable bytes.

    Line breaks of any kind become newlines; the tokens by which chat templates mark speakers are broken up.
    """
    lines = text.encode("utf-8", "replace").decode("utf-8").splitlines()
    visible = _INVISIBLE.sub("", _CONTROL.sub(" ", "\n".join(lines)))
    return _CONTROL_TOKENS.sub(lambda match: " ".join(match.group()), visible)


def quoted(text: str) -> str:
    """Return text as data: cleaned, every line behind the quote mark."""
    return "\n".join((QUOTE + line).rstrip() for line in clean(text).strip("\n").split("\n"))


def spoken(text: str) -> str:
    """Return a text that the person says to the model (identity, prompt, steps): cleaned, with no heading like ours.

    Our headings have the first two levels; the person's of these levels become headings of the third.
    """
    return "\n".join(_HEADING.sub(r"\1###", line) for line in clean(text).strip("\n").split("\n"))


def safe_line(text: str, max_chars: int = 120) -> str:
    """Return a title, tag or name as one harmless line: no breaks, no brackets or quotes that could end a link."""
    flat = " ".join(clean(text).split())
    flat = flat if len(flat) <= max_chars else flat[: max_chars - 1].rstrip() + "…"
    return re.sub(r'([\[\]"`\\])', r"\\\1", flat)


def reference(title: str, path: str, uuid: str = "") -> str:
    """Return the Markdown link to a memory, with its uuid in the link's title."""
    target = percent_encode(path.encode("utf-8", "surrogateescape"), safe="/-_.~+,@")
    identity = re.sub(r"[^0-9A-Za-z-]", "", uuid)
    return f"[{safe_line(title or path)}]({target}" + (f' "uuid:{identity}")' if identity else ")")


def preview(text: str) -> str:
    """Return the first words of a text on one line."""
    words = clean(text).split()
    return " ".join(words[:PREVIEW_WORDS]) + (" …" if len(words) > PREVIEW_WORDS else "")
