"""The assembler: from a request's values to all its model sees, in the order of design 7 (seeds S2, S3, C1-C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from brainiac.library import Library
from brainiac.llm.catalog import count as count_tokens
from brainiac.llm.context.background import background_block
from brainiac.llm.context.blocks import Block, Cut, Stability, WorkingMemory
from brainiac.llm.context.budget import budget_tokens, fit, tokens_of, tool_tokens
from brainiac.llm.context.fence import one_line, spoken
from brainiac.llm.context.long_term import Places
from brainiac.llm.context.roles import instructions, schema_of
from brainiac.llm.context.sections import SECTIONS, Reader
from brainiac.llm.context.short_term import ListsSoFar, has_lost_changes
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import ConsolidateRequest, Purpose, Request

HEADINGS = ("## Core Identity", "## Short-Term Memory", "## Relevant Long-Term Memory", "## User Prompt")
WITH_WORKFLOWS = frozenset({Purpose.QUERIES, Purpose.ANSWER})
PLUGIN_SHARE = 0.1


class Assembler:
    """Assembles working memory for one brain; keeps what makes the next request begin like the last one.

    Thread-safe. Settings and files are read for every request (seeds R11).
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lists, self._places = ListsSoFar(), Places()

    def assemble(
        self, request: Request, *, model: str, tools: Sequence[str] = (), gate: Gate | None = None
    ) -> WorkingMemory:
        """Return what a model sees for a request.

        Args:
            request: The values to show; the gate admits them.
            model: A litellm name; its window, tokenizer and cache marks are heeded.
            tools: Descriptions of the tools it is offered, one line each.
            gate: What the model may be shown; None for one that is not on this machine.

        Raises:
            ModelError: Identity and prompt alone do not fit the model's window, a template is broken, or the request
                is private and the gate leads elsewhere.
        """
        gate = gate or Gate(self._library, is_remote=True)
        request = gate.admit(request)
        count = partial(count_tokens, model=model)
        limit = budget_tokens(self._library.settings, model)
        limit -= tool_tokens(limit) if tools else 0
        name = f"{request.purpose}:{model}:{'remote' if gate.is_remote else 'local'}"
        reader = Reader(self._library, name, self._lists, self._places, limit, count, gate)
        around = [*self._head(request, tools, gate), *self._plugins(request)]
        fitted, cuts = self._fitted(around, reader, request)
        sizes = {block.name: tokens_of(block, count) for block in fitted}
        return WorkingMemory(
            blocks=tuple(fitted),
            text="\n\n".join(block.text for block in fitted),
            messages=_messages(fitted, has_marks=is_anthropic(model)),
            tokens=sum(sizes.values()),
            budget_tokens=limit,
            cuts=tuple(cuts),
            block_tokens=sizes,
            cached=tuple(block.name for block in fitted if block.stability <= Stability.EVENT_LOG),
        )

    def _fitted(self, around: list[Block], reader: Reader, request: Request) -> tuple[list[Block], list[Cut]]:
        """Put the purpose's sections between the others and cut to the budget."""
        for _ in range(2):
            blocks = [*around, *SECTIONS[request.purpose](reader, request)]
            blocks = sorted((block for block in blocks if block.parts), key=lambda block: block.stability)
            fitted, cuts = fit(blocks, reader.limit_tokens, reader.count)
            if not has_lost_changes(blocks, fitted):
                break
            self._lists.forget(reader.name)
        return fitted, cuts

    def _head(self, request: Request, tools: Sequence[str], gate: Gate) -> list[Block]:
        """Identity, how memory works, the role, tools, workflows, background: what stays the same from turn to turn."""
        library = self._library
        background = background_block(library, gate) if request.purpose in WITH_WORKFLOWS else None
        common = {
            "tools": bool(tools),
            "rounds": library.settings.context.tool_rounds,
            "background": background is not None,
        }
        base = instructions(library, gate, "base", **common)
        complaint = bool(isinstance(request, ConsolidateRequest) and request.refused)
        role = instructions(
            library, gate, request.purpose.value, schema=schema_of(request.result), complaint=complaint, **common
        )
        identity = gate.own(library.tree.core_identity) or ""
        blocks = [
            Block("core identity", [_identity(identity)], Stability.IDENTITY, HEADINGS[0]),
            Block("role", [spoken(base), spoken(role)], Stability.ROLE, "## Instructions"),
            Block("tools", ["\n".join(f"- {line}" for line in tools)] if tools else [], Stability.TOOLS, "## Tools"),
        ]
        return [*blocks, *([background] if background else [])]

    def _plugins(self, request: Request) -> list[Block]:
        """What plugins add: below a heading that none of ours can be mistaken for, and capped."""
        added = []
        for blocks in self._library.call_hook("context_blocks", brain=self._library, request=request):
            for block in blocks:
                heading = "## " + one_line(block.heading.lstrip("# ") or block.name)
                heading = f"{heading} (plugin)" if heading in HEADINGS else heading
                stability = min(max(block.stability, Stability.ROLE), Stability.FOCUS)
                parts = tuple(spoken(part) for part in block.parts)
                order = 15 if block.cut_order is None else block.cut_order
                share = min(block.share, PLUGIN_SHARE)
                owner = block.owner if block.owner != "kernel" else "plugin"
                added.append(
                    replace(
                        block,
                        heading=heading,
                        stability=stability,
                        parts=parts,
                        cut_order=order,
                        share=share,
                        owner=owner,
                    )
                )
        return added


def is_anthropic(model: str) -> bool:
    """Tell whether a model takes explicit cache marks (seeds R7)."""
    return model.startswith("anthropic/") or "claude" in model


def _identity(text: str) -> str:
    """Return the constitution; a first line that only repeats our heading goes."""
    lines = text.strip().splitlines()
    if lines and lines[0].lstrip("# ").strip().casefold() == "core identity":
        lines = lines[1:]
    return spoken("\n".join(lines).strip()) or "(empty)"


def _messages(blocks: Sequence[Block], *, has_marks: bool) -> list[dict[str, Any]]:
    """Return system and user message, their contents in parts where cache marks are wanted."""
    system = [block for block in blocks if block.stability < Stability.SHORT_TERM]
    user = [block for block in blocks if block.stability >= Stability.SHORT_TERM]
    groups = (("system", system), ("user", user))
    if has_marks:
        return [{"role": role, "content": _marked(group)} for role, group in groups]
    return [{"role": role, "content": "\n\n".join(block.text for block in group)} for role, group in groups]


def _marked(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return each piece as a part of its own, with a cache mark after the last that will begin the next request too.

    Anthropic looks for a cached prefix at the ends of the last twenty parts before a mark: an event that is a part
    of its own is found again after more have followed it.
    """
    parts: list[dict[str, Any]] = []
    stable = 0
    for block in blocks:
        parts += [{"type": "text", "text": piece + "\n\n"} for piece in block.pieces()]
        if block.stability <= Stability.EVENT_LOG:
            stable = len(parts)
    if stable:
        parts[stable - 1]["cache_control"] = {"type": "ephemeral"}
    return parts
