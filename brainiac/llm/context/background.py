"""Background: the most connected memories by title, where the setting asks for them (seeds R5, R8)."""

from __future__ import annotations

from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.context.fence import reference
from brainiac.llm.context.pages import Pages
from brainiac.llm.gate import Gate

HUBS = 10


def background_block(library: Library, gate: Gate) -> Block | None:
    """Return the ten pages with most links, their identity, title and number of links; None when switched off."""
    if not library.settings.context.background:
        return None
    hubs = Pages.of(library, gate).most_linked(HUBS)
    lines = [f"- {reference(hub.title, hub.path, hub.uuid)}: {hub.edges} links" for hub in hubs]
    return Block("background", lines, Stability.BACKGROUND, "## Background", share=0.1, cut_order=20)
