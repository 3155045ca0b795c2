"""Whether an answer of this machine's own tells of what must not leave it (docs/format.md, F-RSP-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainiac.gate import Gate
from brainiac.language.sentences import content_stems
from brainiac.notes.discretion import is_private_event, shareable, unmarked

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.llm.schemas import Answer, AnswerRequest

__all__ = ["rests_on_private", "shareable"]


def rests_on_private(brain: Brain, request: AnswerRequest, answer: Answer) -> bool:
    """Return whether an answer that was made on this machine tells of what is private, and so is private itself.

    A model may put all it was shown in other words. The offline engine quotes: of what it says, some word stands in
    private memory alone, or it cites a private page.
    """
    from brainiac.llm.gateway import OFFLINE

    engine = brain.models.engine_for(request)
    if engine.is_remote:
        return False  # it was shown nothing private
    open_hits = Gate(brain, is_remote=True).hits(request.hits)
    hidden = {number for number, hit in enumerate(request.hits) if hit not in open_hits}
    private, public = _said(brain, request, answer)
    if engine.name != OFFLINE:
        return bool(hidden or private) or _is_focused(brain, request)
    if not (hidden or private):
        return False
    known = {term for text in (*public, *(hit.text for hit in open_hits)) for term in content_stems(text)}
    told = set(content_stems(answer.text)) - known
    return not hidden.isdisjoint(answer.cited) or any(told & set(content_stems(text)) for text in private)


def _is_focused(brain: Brain, request: AnswerRequest) -> bool:
    """Return whether a prompt has a private note in focus, which only a model on this machine was shown."""
    from brainiac.context.focus import focus_blocks

    shown = (focus_blocks(brain, request.prompt, 1_000_000, len, Gate(brain, is_remote=side)) for side in (True, False))
    elsewhere, here = shown
    return elsewhere != here


def _said(brain: Brain, request: AnswerRequest, answer: Answer) -> tuple[list[str], list[str]]:
    """Return what a person said in private and what is open, of all an answer may rest on besides its hits."""
    memory, turns = request.short_term, request.conversation
    said = [(event.user, is_private_event(event) or memory.is_private) for event in memory.events]
    said += [
        (item.text, item.is_private or memory.is_private) for item in (*memory.goals, *memory.facts, *memory.tasks)
    ]
    said += [(turn.prompt.text, turn.is_private) for turn in turns]
    said += [(turn.response.text, False) for turn in turns if turn.response and not turn.is_private]
    said += [(event.ai, False) for event in memory.events if not is_private_event(event)]
    if (rest := unmarked(memory.summary)) != memory.summary:
        said += [(memory.summary, True), (rest or "", False)]
    for path in {*answer.read, *answer.cited_paths} - {brain.tree.relative(brain.tree.short_term)}:
        page = brain.read_text(path) or ""
        if (rest := shareable(page)) != page:
            said += [(page, True), (rest or "", False)]
    said.append((request.prompt.text, False))
    return [text for text, is_private in said if is_private], [text for text, is_private in said if not is_private]
