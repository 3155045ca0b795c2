"""Pages: all that memory has, folder by folder, as a table of contents."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping
from typing import Any

from brainiac.events import PathKind
from brainiac.window.frame import Action, Page, Visit

MAX_SHOWN = 300


def contents(visit: Visit) -> Mapping[str, Any]:
    """Return the folders and pages of a folder of memory, and of the whole of it the pages changed last."""
    tree, graph = visit.brain.tree, visit.brain.recall.links
    top = tree.relative(tree.memory)
    folder = visit.given.get("in", "").strip("/") or tree.relative(tree.long_term)
    below = [
        page
        for path, page in graph.pages.items()
        if path.startswith(f"{folder}/") and tree.kind_of(path) in (PathKind.MEMORY, PathKind.ARCHIVED)
    ]
    parts = [page.path.removeprefix(f"{folder}/").split("/") for page in below]
    here = [page for page, part in zip(below, parts, strict=True) if len(part) == 1]
    latest = sorted(below, key=lambda page: (page.at, page.path), reverse=True)[:20] if "in" not in visit.given else []
    folders = sorted(Counter(part[0] for part in parts if len(part) > 1).items())
    values = {"folder": folder, "above": posixpath.dirname(folder) if folder != top else "", "folders": folders}
    pages = sorted(here, key=lambda page: page.title.casefold())[:MAX_SHOWN]
    return values | {"pages": pages, "n_pages": len(here), "latest": latest}


PAGES = (Page("/pages", "Pages", contents, is_live=True),)
ACTIONS: dict[str, Action] = {}
