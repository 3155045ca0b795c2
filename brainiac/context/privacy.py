"""Whether an answer of this machine's own tells of what must not leave it (docs/format.md, F-RSP-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainiac.gate import Gate
from brainiac.notes.dialogue import PRIVATE
from brainiac.notes.discretion import is_private_event, shareable

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.llm.schemas import Answer, AnswerRequest

__all__ = ["rests_on_private", "shareable"]


def rests_on_private(brain: Brain, request: AnswerRequest, answer: Answer) -> bool:
    """Return whether an answer that was made on this machine tells of what is private, and so is private itself.

    A model may put all it was shown in other words; the keyless engine tells what it quotes.
    """
    from brainiac.llm.gateway import OFFLINE

    engine = brain.models.engine_for(request)
    if engine.is_remote:
        return False  # it was shown nothing private
    open_hits = Gate(brain, is_remote=True).hits(request.hits)
    hidden = {number for number, hit in enumerate(request.hits) if hit not in open_hits}
    if engine.name == OFFLINE:
        return not hidden.isdisjoint(answer.cited)
    return bool(hidden) or _has_private(brain, request, answer) or _is_focused(brain, request)


def _is_focused(brain: Brain, request: AnswerRequest) -> bool:
    """Return whether a prompt has a private note in focus, which only a model on this machine was shown."""
    from brainiac.context.focus import focus_blocks

    shown = (focus_blocks(brain, request.prompt, 1_000_000, len, Gate(brain, is_remote=side)) for side in (True, False))
    elsewhere, here = shown
    return elsewhere != here


def _has_private(brain: Brain, request: AnswerRequest, answer: Answer) -> bool:
    """Return whether an answer may rest on something private besides its hits."""
    memory = request.short_term
    pages = {*answer.read, *answer.cited_paths} - {brain.tree.relative(brain.tree.short_term)}
    return (
        memory.is_private
        or PRIVATE.search(memory.summary) is not None
        or any(is_private_event(event) for event in memory.events)
        or any(item.is_private for item in (*memory.goals, *memory.facts, *memory.tasks))
        or any(turn.is_private for turn in request.conversation)
        or any(shareable(page) != page for path in pages if (page := brain.read_text(path)))
    )
