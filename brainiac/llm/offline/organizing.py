"""From statistics of use to proposals by rule: link what is read together, lift what is read, rest what is not."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from brainiac.llm.schemas import OrganizeRequest, Proposal, Proposals

MIN_DEPTH_TO_LIFT = 5  # memory/long_term/concrete/topic/page.md stays where it is
_EVENTS = "/events/"


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


def _paths(entry: Any) -> list[str]:
    """Return the paths of an entry, whether it is a path, a list that starts with paths, or a mapping."""
    if isinstance(entry, str):
        return [entry]
    if isinstance(entry, dict):
        found = entry.get("paths") or [entry[key] for key in ("path", "folder") if key in entry]
        return [str(path) for path in found]
    return [part for part in entry if isinstance(part, str)]


def _links(entries: Iterable[Any]) -> list[Proposal]:
    return [
        Proposal(action="link", paths=paths[:2], reason="read together")
        for paths in map(_paths, entries)
        if len(paths) >= 2
    ]


def _moves(entries: Iterable[Any]) -> list[Proposal]:
    """Lift a page that is read often by one level, out of a deep folder."""
    proposals = []
    for path in (paths[0] for paths in map(_paths, entries) if paths):
        folder, name = posixpath.split(path)
        if len(path.split("/")) > MIN_DEPTH_TO_LIFT and _EVENTS not in f"/{path}":
            target = posixpath.join(posixpath.dirname(folder), name)
            proposals.append(Proposal(action="move", paths=[path], target=target, reason="read often"))
    return proposals


def _rests(entries: Iterable[Any]) -> list[Proposal]:
    """Compress unused days of one folder into a digest; archive every other page that is not read."""
    days: dict[str, list[str]] = defaultdict(list)
    proposals = []
    for path in (paths[0] for paths in map(_paths, entries) if paths):
        if _EVENTS in f"/{path}":
            days[posixpath.dirname(path)].append(path)
        else:
            proposals.append(Proposal(action="archive", paths=[path], reason="not read for long"))
    for folder, paths in sorted(days.items()):
        action = "compress" if len(paths) > 1 else "archive"
        target = f"{folder}/digest.md" if len(paths) > 1 else ""
        proposals.append(
            Proposal(action=action, paths=sorted(paths)[:400], target=target, reason="days not read for long")
        )
    return proposals


def _splits(entries: Iterable[Any]) -> list[Proposal]:
    return [
        Proposal(action="split", paths=paths[:1], reason="more entries than a folder should have")
        for paths in map(_paths, entries)
        if paths
    ]
