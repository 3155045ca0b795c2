"""Background: the most connected memories by title, where the setting asks for them (seeds R5, R8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainiac.context.blocks import Block, Stability
from brainiac.context.fence import reference
from brainiac.context.pages import Pages

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.gate import Gate

HUBS = 10


def background_block(brain: Brain, gate: Gate) -> Block | None:
    """Return the ten pages with most links, their identity, title and number of links; None when switched off."""
    if not brain.settings.context.background:
        return None
    hubs = Pages.of(brain, gate).most_linked(HUBS)
    lines = [f"- {reference(hub.title, hub.path, hub.uuid)}: {hub.edges} links" for hub in hubs]
    return Block("background", lines, Stability.BACKGROUND, "## Background", share=0.1, cut_order=20)
