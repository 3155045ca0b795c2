"""Whether an answer of this machine's own tells of what must not leave it (docs/format.md, F-RSP-4)."""

from __future__ import annotations

from brainiac.formats.dialogue import PRIVATE
from brainiac.formats.discretion import is_private_event, shareable
from brainiac.library import Library
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import OFFLINE, Answer, AnswerRequest, Engine

__all__ = ["rests_on_private", "shareable"]


def rests_on_private(library: Library, engine: Engine, request: AnswerRequest, answer: Answer) -> bool:
    """Return whether an answer that was made on this machine tells of what is private, and so is private itself.

    A model may put all it was shown in other words; the keyless engine tells what it quotes.
    """
    if engine.is_remote:
        return False  # it was shown nothing private
    open_hits = Gate(library, is_remote=True).hits(request.hits)
    hidden = {number for number, hit in enumerate(request.hits) if hit not in open_hits}
    if engine.name == OFFLINE:
        return not hidden.isdisjoint(answer.cited)
    return bool(hidden) or _has_private(library, request, answer) or _is_focused(library, request)


def _is_focused(library: Library, request: AnswerRequest) -> bool:
    """Return whether a prompt has a private note in focus, which only a model on this machine was shown."""
    from brainiac.llm.context.long_term import focus_blocks

    shown = (
        focus_blocks(library, request.prompt, 1_000_000, len, Gate(library, is_remote=side)) for side in (True, False)
    )
    elsewhere, here = shown
    return elsewhere != here


def _has_private(library: Library, request: AnswerRequest, answer: Answer) -> bool:
    """Return whether an answer may rest on something private besides its hits."""
    memory = request.short_term
    pages = {*answer.read, *answer.cited_paths} - {library.tree.relative(library.tree.short_term)}
    return (
        memory.is_private
        or PRIVATE.search(memory.summary) is not None
        or any(is_private_event(event) for event in memory.events)
        or any(item.is_private for item in (*memory.goals, *memory.facts, *memory.tasks))
        or any(turn.is_private for turn in request.conversation)
        or any(shareable(page) != page for path in pages if (page := library.read_text(path)))
    )
