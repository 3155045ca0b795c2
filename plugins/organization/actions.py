"""What each action does to the draft."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.formats.index_page import IndexDocument

from .catalog import Catalog
from .digest import compress
from .draft import Draft
from .judging import Action


def carry_out(brain: Brain, catalog: Catalog, draft: Draft, actions: Sequence[Action]) -> list[dict[str, Any]]:
    """Carry actions out on a draft, changes of place first, and return the statements that were written.

    Args:
        brain: The brain.
        catalog: The pages as they stand.
        draft: Takes the changes.
        actions: Found to be in order.
    """
    now, statements = iso(brain.clock.now()), []
    for action in actions:
        if action.kind in ("move", "split"):
            for path in action.paths:
                draft.move(path, action.target)
        elif action.kind in ("archive", "compress"):
            for path in action.paths:
                draft.move(path, catalog.archive + posixpath.dirname(path).removeprefix(catalog.root))
    for action in actions:
        if action.kind == "compress":
            pages = [catalog.pages[path] for path in action.paths]
            statements += compress(draft, action.target, pages, now, brain.day_of)
    draft.complete_folders()
    for action in actions:
        if action.kind == "link":
            for one, other in combinations(action.paths, 2):
                _relate(catalog, draft, one, other, now)
                _relate(catalog, draft, other, one, now)
    return statements


def _relate(catalog: Catalog, draft: Draft, page: str, other: str, now: str) -> None:
    """Link a page from the index page of another one's folder, as both will stand."""
    folder = posixpath.dirname(draft.place(page))
    index, target = f"{folder}/_index.md", catalog.pages[other]
    if draft.text(index) is None:
        return  # the folder was left without one that can be read; the doctor names it

    def relate(text: str) -> str:
        way = posixpath.relpath(draft.place(other), folder)
        reason = f"used together with {catalog.pages[page].title}"
        after = IndexDocument(text, index).with_related(target.title, way, target.uuid, reason)
        return text if str(after) == text else str(after.set_meta(updated_at=now))

    draft.edit(index, relate)
