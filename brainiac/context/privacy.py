"""What must not leave this machine (`private: true`), cut out of whatever a remote model would be shown.

A prompt, a memory or a page says so in its front matter; an exchange, a list item or a paragraph by the mark
`<!-- private -->`. Search and files know nothing of it: it is decided here, at the border.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from brainiac.errors import FormatError
from brainiac.notes.dialogue import PRIVATE, find_events
from brainiac.notes.frontmatter import is_private, split
from brainiac.notes.statements import find_statements

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.recall.hit import Hit

_MARKED_HEADING = re.compile(rf"^#{{1,6}} .*{PRIVATE.pattern}", re.MULTILINE | re.IGNORECASE)
_GAP = re.compile(r"(\n[ \t\r]*\n)")


def is_private_note(text: str) -> bool:
    """Tell whether a note's front matter keeps all of it on this machine; one that cannot be read and names it does."""
    try:
        return is_private(split(text)[0])
    except FormatError:
        return "private" in text.casefold()


def shareable(text: str) -> str | None:
    """Return what of a note a remote model may see: without marked exchanges, list items and paragraphs, each whole.

    Returns:
        The text; None where nothing may be shown: a note that is private, or with a mark in a heading.
    """
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
    return [hit for hit in hits if _is_shareable(hit, texts[hit.path])]


def _is_shareable(hit: Hit, page: str) -> bool:
    rest = shareable(page)
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
