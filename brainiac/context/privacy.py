"""What must not leave this machine (`private: true`), cut out of whatever a remote model would be shown.

A prompt, a memory or a page says so in its front matter; an exchange, a list item or a paragraph by the mark
`<!-- private -->`. Search and files know nothing of it: it is decided here, at the border.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from brainiac.errors import ConfinementError
from brainiac.kernel.exchange import read_bytes
from brainiac.language.sentences import content_stems
from brainiac.notes.dialogue import find_events
from brainiac.notes.discretion import is_private_event, is_private_note, shareable
from brainiac.notes.links import Link, find_links
from brainiac.redaction import redact

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.llm.schemas import Answer, AnswerRequest
    from brainiac.notes.prompt import Exchange
    from brainiac.recall.hit import Hit


def is_hidden(brain: Brain, path: str) -> bool:
    """Tell whether a remote model may not even know of a place, since its name tells already what it holds.

    Args:
        brain: Whose.
        path: Relative: a private note, a folder whose notes are all private, or such a folder's index page.
    """
    folder, name = posixpath.split(path)
    top = brain.tree.absolute(folder if name == "_index.md" else path)
    if not top.is_dir():
        return top.is_file() and _is_private_file(top)
    has_notes = False
    for entry in brain.tree.walk(top):
        if entry.name.endswith(".md") and entry.name != "_index.md":
            if not _is_private_file(Path(entry.path)):
                return False
            has_notes = True
    return has_notes


def _is_private_file(file: Path) -> bool:
    try:
        return is_private_note((read_bytes(file) or b"").decode("utf-8", "surrogateescape"))
    except OSError:
        return True  # nobody can tell


def without_hidden(brain: Brain, path: str, text: str) -> str:
    """Return a note without the lines whose links lead to what is hidden, or to what is gone and may have been.

    On an index page all links count, elsewhere those with an identity, as a process writes them.
    """
    folder, name = posixpath.split(path)

    def is_open(line: str) -> bool:
        links = (link for link in find_links(line) if link.uuid or name == "_index.md")
        return all(_is_open(brain, folder, link) for link in links)

    return "\n".join(line for line in text.split("\n") if is_open(line))


def _is_open(brain: Brain, folder: str, link: Link) -> bool:
    if link.is_external or not link.target.endswith(".md"):
        return True
    target = posixpath.normpath(posixpath.join(folder, link.target))
    try:
        return brain.read(target) is not None and not is_hidden(brain, target)
    except ConfinementError:
        return False


def shareable_hits(brain: Brain, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that a remote model may see."""
    texts = {path: brain.read_text(path) or "" for path in dict.fromkeys(hit.path for hit in hits)}
    indexes = [path for path in texts if posixpath.basename(path) == "_index.md"]
    texts = {path: text for path, text in texts.items() if path not in indexes or not is_hidden(brain, path)}
    rests = {path: shareable(text) for path, text in texts.items()}  # a day's page is long, and has many of the hits
    return [hit for hit in hits if hit.path in texts and _is_shareable(hit, texts[hit.path], rests[hit.path])]


def rests_on_private(brain: Brain, request: AnswerRequest, answer: Answer) -> bool:
    """Tell whether an answer that was made on this machine tells of what is private, and so is private itself.

    A model may put all it was shown in other words. The offline engine quotes: of what it says, some word stands in
    private memory alone, or it cites a private page.
    """
    from brainiac.llm.gateway import OFFLINE

    engine = brain.models.engine_for(request)
    if engine.is_remote:
        return False  # it was shown nothing private
    open_hits = shareable_hits(brain, request.hits)
    hidden = {number for number, hit in enumerate(request.hits) if hit not in open_hits}
    private, public = _said(brain, request, answer)
    if engine.name != OFFLINE or not (hidden or private):
        return bool(hidden or private)
    known = {term for text in (*public, *(hit.text for hit in open_hits)) for term in content_stems(text)}
    told = set(content_stems(answer.text)) - known
    return not hidden.isdisjoint(answer.cited) or any(told & set(content_stems(text)) for text in private)


def _said(brain: Brain, request: AnswerRequest, answer: Answer) -> tuple[list[str], list[str]]:
    """Return what a person said in private and what is open, of all an answer may rest on besides its hits."""
    memory, turns = request.short_term, request.conversation
    said = [(event.user, event.is_private) for event in memory.events]
    said += [(item.text, item.is_private) for item in (*memory.goals, *memory.facts, *memory.tasks)]
    said += [(turn.prompt.text, turn.is_private) for turn in turns]
    said += [(turn.response.text, False) for turn in turns if turn.response and not turn.is_private]
    said += [(event.ai, False) for event in memory.events if not event.is_private]
    for path in {*answer.read, *answer.cited_paths} - {brain.tree.relative(brain.tree.short_term)}:
        page = brain.read_text(path) or ""
        if (rest := shareable(page)) != page:
            said += [(page, True), (rest or "", False)]
    said.append((request.prompt.text, False))
    return [text for text, is_private in said if is_private], [text for text, is_private in said if not is_private]


def without_secrets(brain: Brain, turn: Exchange) -> Exchange:
    """Return an earlier turn as it may leave this machine: the inbox holds it as it was typed, keys and all."""
    response = turn.response and replace(turn.response, text=redact(brain, turn.response.text))
    return replace(turn, prompt=replace(turn.prompt, text=redact(brain, turn.prompt.text)), response=response)


def _is_shareable(hit: Hit, page: str, rest: str | None) -> bool:
    if rest is None:
        return False
    if rest == page:
        return True
    if hit.kind == "exchange":
        return all(placed.event.id != hit.anchor for placed in find_events(page) if is_private_event(placed.event))
    return _folded(hit.text) in _folded(rest)


def _folded(text: str) -> str:
    """Fold white space, and the escapes that a text bears in a file."""
    return " ".join(text.replace("\\", "").split())
