"""From statistics of use to proposals by rule: link what is cited together, lift what is used, rest what is not."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from brainiac.llm.schemas import OrganizeRequest, Proposal, Proposals

MIN_DEPTH_TO_LIFT = 5  # memory/long_term/concrete/topic/page.md stays where it is
MAX_PATHS = 400  # of one proposal
_MONTH = re.compile(r"(?:.*/)?events/(?:\d{4}/\d\d(?=/))?")

Rows = Iterable[Mapping[str, Any]]


def organize(request: OrganizeRequest) -> Proposals:
    """Return proposals for what the statistics show, each kind by one rule."""
    patterns = request.patterns
    proposals = [
        *_links(patterns.get("co_accessed", ())),
        *_moves(patterns.get("frequent", ())),
        *_rests(patterns.get("unused", ())),
        *_splits(patterns.get("overgrown", ())),
    ]
    return Proposals(proposals=proposals[:100])


def _links(rows: Rows) -> Iterator[Proposal]:
    for row in rows:
        yield Proposal(action="link", paths=row["paths"], reason=f"cited together {row['cited']} times")


def _moves(rows: Rows) -> Iterator[Proposal]:
    """Lift a page that is cited often by one level, out of a deep folder."""
    for row in rows:
        path, folder = row["path"], posixpath.dirname(row["path"])
        if len(path.split("/")) > MIN_DEPTH_TO_LIFT and "/events/" not in f"/{path}":
            target = posixpath.dirname(folder)
            yield Proposal(action="move", paths=[path], target=target, reason=f"cited {row['cited']} times")


def _rests(rows: Rows) -> Iterator[Proposal]:
    """Compress unused days month by month; archive every other page that is not used."""
    months: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        found = _MONTH.match(row["path"])
        months[found[0] if found else ""].append(row["path"])
    for month, paths in sorted(months.items()):
        for start in range(0, len(paths), MAX_PATHS):
            some = sorted(paths)[start : start + MAX_PATHS]
            action = "compress" if month and len(some) > 1 else "archive"
            yield Proposal(action=action, paths=some, reason="not used for long")


def _splits(rows: Rows) -> Iterator[Proposal]:
    for row in rows:
        yield Proposal(action="split", paths=[row["folder"]], reason=f"{row['entries']} entries")
