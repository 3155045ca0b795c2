"""Pages: all that memory has, folder by folder, as a table of contents."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brainiac.events import PathKind
from brainiac.window.frame import Page, Visit

MAX_SHOWN, MAX_LATEST = 100, 20


def contents(visit: Visit) -> Mapping[str, Any]:
    """Return the folders and pages of a folder of memory, a screenful at a time, and the pages changed last."""
    tree, recall, after = visit.brain.tree, visit.brain.recall, visit.given.get("after", "")
    top, kinds = tree.relative(tree.memory), (PathKind.MEMORY, PathKind.ARCHIVED)
    place = tree.confine(visit.given.get("in", "").strip("/") or tree.relative(tree.long_term), inside=tree.memory)
    folder = tree.relative(place)
    here = next(tree.survey(place))
    below = {posixpath.basename(name): list(tree.survey(Path(name))) for name in here.subfolders}
    folders = {name: sum(each.counts[kind] for each in found for kind in kinds) for name, found in below.items()}
    paths = sorted(path for path, kind in here.kinds.items() if kind in kinds and path > after)
    shown = paths[:MAX_SHOWN]
    heads = recall.heads(shown)
    values: dict[str, Any] = {"folder": folder, "above": posixpath.dirname(folder) if folder != top else ""}
    values["folders"] = sorted((name, number) for name, number in folders.items() if number and not after)
    values["more"] = (len(paths) - len(shown), shown[-1]) if paths[MAX_SHOWN:] else ()
    most = MAX_LATEST if "in" not in visit.given else 0
    values["latest"] = recall.latest(lambda page: tree.kind_of(page.path) is PathKind.MEMORY, most)
    return values | {"pages": [heads[path] for path in shown if path in heads]}


PAGES = (Page("/pages", "Pages", contents, is_live=True),)
