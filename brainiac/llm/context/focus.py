"""Focused notes: what "this" means, named by links in a prompt's front matter or text (seeds R6)."""

from __future__ import annotations

import posixpath

from brainiac.errors import FormatError
from brainiac.formats.frontmatter import split
from brainiac.formats.prompt import Prompt
from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.context.budget import Count, shortened
from brainiac.llm.context.fence import one_line, preview, quoted, reference
from brainiac.llm.context.pages import Pages, links_in, parts_of
from brainiac.llm.gate import Gate

SHARE = 0.25
MAX_NOTES = 10


def focus_blocks(library: Library, prompt: Prompt, limit_tokens: int, count: Count, gate: Gate) -> list[Block]:
    """Return the focused notes: a preview of each, the first one whole as far as there is room.

    Args:
        library: Whose notes.
        prompt: Its `focus` comes first, then the links in its text.
        limit_tokens: The whole budget.
        count: Tokens of a text.
        gate: What may be shown of them.
    """
    links = list(dict.fromkeys([*prompt.focus, *links_in(prompt.text)]))[:MAX_NOTES]
    if not links:
        return []
    pages = Pages.of(library, gate)
    lines: list[str] = []
    whole = ""
    for link in links:
        line, text = _note(gate, pages, link, posixpath.dirname(prompt.path))
        lines.append(("Primary: " if not lines else "") + line)
        whole = whole or (text if len(lines) == 1 else "")
    heading = "## Focused Notes"
    blocks = [Block("focused notes", lines, Stability.FOCUS, heading, share=SHARE, cut_order=35)]
    if whole:
        text = quoted(shortened(whole, int(limit_tokens * SHARE), count))
        blocks.append(Block("focused note", [text], Stability.FOCUS, "### The primary one, whole", cut_order=30))
    return blocks


def missing(library: Library, prompt: Prompt) -> list[str]:
    """Return the links in a prompt's `focus` that lead to no note, as written; a private note is there."""
    pages, folder, gate = Pages.of(library), posixpath.dirname(prompt.path), Gate(library, is_remote=False)
    return [link for link in prompt.focus if not pages.find(link, folder) and _other(gate, link, folder)[1] is None]


def _other(gate: Gate, link: str, folder: str) -> tuple[str, str | None]:
    """Return path and text of a note elsewhere that a link leads to, from where it stands or from the root."""
    target = parts_of(link)[0]
    for path in (posixpath.normpath(posixpath.join(folder, target)), target):
        for candidate in (path, f"{path}.md"):
            if (text := gate.note(candidate)) is not None:
                return candidate, text
    return target, None


def _note(gate: Gate, pages: Pages, link: str, folder: str) -> tuple[str, str]:
    """Return a line on one link, and the note's text where exactly one is meant."""
    found = pages.find(link, folder)
    if len(found) > 1:
        which = ", ".join(reference(page.title, page.path, page.uuid) for page in found[:5])
        return f"`{one_line(link)}` is ambiguous; it may mean {which}. Ask which one is meant.", ""
    if found:
        path, text = found[0].path, gate.note(found[0].path)
    else:
        path, text = _other(gate, link, folder)
    if text is None:
        return f"`{one_line(link)}`: no such note.", ""
    title, uuid = (found[0].title, found[0].uuid) if found else (posixpath.basename(path), "")
    body = _body(text)
    links = [reference(page.title, page.path, page.uuid) for page in pages.linked_from(found[0])[:5]] if found else []
    status = "indexed" if found else "not indexed"
    linked = f"; links to {', '.join(links)}" if links else ""
    return f"{reference(title, path, uuid)} ({status}{linked})\n{quoted(preview(body))}", body


def _body(text: str) -> str:
    try:
        return text[split(text)[1] :].strip()
    except FormatError:
        return text
