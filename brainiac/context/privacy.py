"""What must not leave this machine (`private: true`), cut out of whatever a remote model would be shown.

A prompt, a memory or a page says so in its front matter; an exchange and a list item of short-term memory by the
mark `<!-- private -->`. Search and files know nothing of it: it is decided here, at the border.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from brainiac.errors import FormatError
from brainiac.notes.dialogue import PRIVATE_MARK, find_events
from brainiac.notes.frontmatter import split

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.recall.hit import Hit


def is_private_note(text: str) -> bool:
    """Tell whether a note's front matter keeps all of it on this machine; one that cannot be read and names it does."""
    try:
        return split(text)[0].get("private") is True
    except FormatError:
        return "private:" in text


def shareable(text: str) -> str | None:
    """Return what of a note a remote model may see: without marked exchanges and list items; None: nothing."""
    if is_private_note(text):
        return None
    if PRIVATE_MARK not in text:
        return text
    for placed in reversed(list(find_events(text))):
        if placed.event.is_private:
            text = text[: placed.start] + text[placed.end :]
    return "".join(line for line in text.splitlines(keepends=True) if not line.rstrip().endswith(PRIVATE_MARK))


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
