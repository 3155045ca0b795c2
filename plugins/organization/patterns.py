"""From counts to what a model, or the offline rule, is shown: used much, used together, unused, overgrown."""

from __future__ import annotations

import posixpath
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from brainiac.formats.index_page import IndexDocument
from brainiac.formats.memory import Memory
from brainiac.settings import OrganizationSettings

from .catalog import Catalog
from .digest import TAG
from .past import Pair, Past
from .usage import Usage

FREQUENT_TIMES = 20  # cited so often within the window: used much
TOGETHER_TIMES = 5  # cited so often by one answer: used together
SHOWN_AT_MOST = 20

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Patterns:
    """What the counts show, as plain rows; the shape is told by `OrganizeRequest`."""

    frequent: list[Row]
    co_accessed: list[Row]
    unused: list[Row]
    overgrown: list[Row]

    def as_request(self) -> dict[str, list[Row]]:
        """Return what there is of it by name; {} when there is nothing to do."""
        rows = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: found for name, found in rows.items() if found}


def find_patterns(
    catalog: Catalog, past: Past, usage: Usage, settings: OrganizationSettings, now: datetime
) -> Patterns:
    """Return what stands out.

    Args:
        catalog: The pages.
        past: Former runs' counts are added to those of the log.
        usage: The log's counts.
        settings: The limits.
        now: The end of what "unused for so many days" means.
    """
    cited, together = past.cited + usage.cited, past.together + usage.together
    return Patterns(
        frequent=_frequent(catalog, cited),
        co_accessed=_co_accessed(
            catalog, Counter({pair: n for pair, n in together.items() if pair not in past.unlinked})
        ),
        unused=_unused(catalog, past, usage, now - timedelta(days=settings.unused_days)),
        overgrown=[
            {"folder": folder, "entries": len(entries)}
            for folder, entries in sorted(catalog.entries.items())
            if len(entries) > settings.max_entries
        ],
    )


def _frequent(catalog: Catalog, cited: Counter[str]) -> list[Row]:
    rows: list[Row] = []
    for uuid, times in sorted(cited.items(), key=lambda item: (-item[1], item[0])):
        path = catalog.place_of.get(uuid, "")
        if times >= FREQUENT_TIMES and path in catalog.pages:
            rows.append({"path": path, "cited": times})
    return rows[:SHOWN_AT_MOST]


def _co_accessed(catalog: Catalog, together: Counter[Pair]) -> list[Row]:
    rows: list[Row] = []
    for pair, times in sorted(together.items(), key=lambda item: (-item[1], item[0])):
        one, other = (catalog.place_of.get(uuid, "") for uuid in pair)
        if times >= TOGETHER_TIMES and {one, other} <= catalog.pages.keys() and not are_related(catalog, one, other):
            rows.append({"paths": [one, other], "cited": times})
    return rows[:SHOWN_AT_MOST]


def are_related(catalog: Catalog, one: str, other: str) -> bool:
    """Tell whether the index pages of both pages' folders link to the other page already."""
    return all(
        catalog.uuids[target] in related_uuids(catalog, posixpath.dirname(source))
        for source, target in ((one, other), (other, one))
    )


def related_uuids(catalog: Catalog, folder: str) -> set[str]:
    """Return the uuids under Related Memories of a folder."""
    path = f"{folder}/_index.md"
    text = catalog.texts.get(path)
    return {link.uuid for link in IndexDocument(text, path).page.related} if text is not None else set()


def _unused(catalog: Catalog, past: Past, usage: Usage, before: datetime) -> list[Row]:
    """Name the memories that were neither used nor changed since; a digest is what is left of such and stays."""
    rows: list[Row] = []
    for path, page in catalog.pages.items():
        last = last_used(page, past, usage)
        if page.uuid and last and last < before.date().isoformat() and TAG not in page.tags:
            rows.append({"path": path, "last_used": last})
    return sorted(rows, key=lambda row: (row["last_used"], row["path"]))


def last_used(page: Memory, past: Past, usage: Usage) -> str:
    """Return the last day on which a memory was made, changed, read or cited; "" when nothing tells."""
    days = (page.created_at, page.updated_at, past.touched.get(page.path, ""))
    used = (past.used.get(page.uuid, ""), usage.used.get(page.uuid, ""))
    return max(day[:10] for day in (*days, *used))
