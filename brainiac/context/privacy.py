"""What must not leave this machine (`private: true`), cut out of whatever a remote model would be shown.

A prompt, a memory or a page says so in its front matter; an exchange, a list item or a paragraph by the mark
`<!-- private -->`. Search and files know nothing of it: it is decided here, at the border.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from brainiac.errors import ConfinementError, FormatError
from brainiac.kernel.exchange import read_bytes
from brainiac.notes.dialogue import PRIVATE, find_events
from brainiac.notes.frontmatter import is_private, split
from brainiac.notes.links import Link, find_links
from brainiac.notes.statements import find_statements
from brainiac.redaction import redact

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.llm.schemas import Answer, AnswerRequest
    from brainiac.notes.prompt import Exchange
    from brainiac.recall.hit import Hit

_MARKED_HEADING = re.compile(rf"^#{{1,6}} .*{PRIVATE.pattern}", re.MULTILINE | re.IGNORECASE)
_GAP = re.compile(r"(\n[ \t\r]*\n)")


def is_private_note(text: str) -> bool:
    """Tell whether a note's front matter keeps all of it on this machine; one that cannot be read and names it does."""
    if not _may_be_private(text):
        return False
    try:
        return is_private(split(text)[0])
    except FormatError:
        return True


def _may_be_private(text: str) -> bool:
    """Tell whether the word stands anywhere, perhaps spelled by escapes: most notes need no closer look."""
    folded = text.casefold()
    return any(sign in folded for sign in ("private", "\\x", "\\u"))


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


def shareable(text: str) -> str | None:
    """Return what of a note a remote model may see: without marked exchanges, list items and paragraphs, each whole.

    Returns:
        The text; None where nothing may be shown: a note that is private, or with a mark in a heading.
    """
    if not _may_be_private(text):
        return text
    if is_private_note(text):
        return None
    if not PRIVATE.search(text):
        return text
    text = _without(text, [(each.start, each.end) for each in find_events(text) if each.event.is_private])
    if _MARKED_HEADING.search(text):
        return None
    items = [(each.start, each.end) for each in find_statements(text) if PRIVATE.search(text, each.start, each.end)]
    parts = _GAP.split(_without(text, items))
    return "".join(part for part in parts if not PRIVATE.search(part))


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(places):
        text = text[:start] + text[end:]
    return text


def shareable_hits(brain: Brain, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that a remote model may see."""
    texts = {path: brain.read_text(path) or "" for path in dict.fromkeys(hit.path for hit in hits)}
    indexes = [path for path in texts if posixpath.basename(path) == "_index.md"]
    texts = {path: text for path, text in texts.items() if path not in indexes or not is_hidden(brain, path)}
    rests = {path: shareable(text) for path, text in texts.items()}  # a day's page is long, and has many of the hits
    return [hit for hit in hits if hit.path in texts and _is_shareable(hit, texts[hit.path], rests[hit.path])]


def rests_on_private(brain: Brain, request: AnswerRequest, answer: Answer) -> bool:
    """Tell whether an answer that was made on this machine tells of what is private, and so is private itself.

    A model may put all it was shown in other words; the keyless engine tells what it quotes.
    """
    from brainiac.llm.gateway import OFFLINE

    engine = brain.models.engine_for(request)
    if engine.is_remote:
        return False  # it was shown nothing private
    open_hits = shareable_hits(brain, request.hits)
    hidden = {number for number, hit in enumerate(request.hits) if hit not in open_hits}
    if engine.name == OFFLINE:
        return not hidden.isdisjoint(answer.cited)
    return bool(hidden) or _has_private(brain, request, answer)


def _has_private(brain: Brain, request: AnswerRequest, answer: Answer) -> bool:
    """Return whether an answer may rest on something private besides its hits."""
    memory = request.short_term
    pages = {*answer.read, *answer.cited_paths} - {brain.tree.relative(brain.tree.short_term)}
    return (
        any(event.is_private for event in memory.events)
        or any(item.is_private for item in (*memory.goals, *memory.facts, *memory.tasks))
        or any(turn.is_private for turn in request.conversation)
        or any(shareable(page) != page for path in pages if (page := brain.read_text(path)))
    )


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
        return all(placed.event.id != hit.anchor for placed in find_events(page) if placed.event.is_private)
    return _folded(hit.text) in _folded(rest)


def _folded(text: str) -> str:
    """Fold white space, and the escapes that a text bears in a file."""
    return " ".join(text.replace("\\", "").split())
