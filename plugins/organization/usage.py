"""How memories were used, counted from the access log and from earlier runs, and what of it stands out (S13, S14)."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

from brainiac.brain import Brain
from brainiac.events import Change, update
from brainiac.formats.access_log import identity_of, parse_access_log
from brainiac.formats.index_page import IndexDocument
from brainiac.formats.memory import Memory
from brainiac.storage.pages import INDEX, PageSet

from .past import Pair, Past

MAX_TOGETHER = 20  # an answer that cites more says nothing of any two of them
FREQUENT_TIMES = 20  # cited so often within the window: used much
TOGETHER_TIMES = 5  # cited so often by one answer: used together
SHOWN_AT_MOST = 20
DIGEST_TAG = "digest"  # on pages that are what is left of unused days

Row = dict[str, Any]
Patterns = dict[str, list[Row]]  # by name, as `OrganizeRequest` shows them to a model


@dataclass(slots=True)
class Usage:
    """What the access log holds, by uuid.

    Attributes:
        log: The whole lines that were read, as bytes; what is added later is not among them.
        used: The last day a page was read or cited, ISO date.
        cited: How often a page was cited.
        together: How often two pages were cited by one answer.
        lines: How many entries there were.
    """

    log: bytes = b""
    used: dict[str, str] = field(default_factory=dict)
    cited: Counter[str] = field(default_factory=Counter)
    together: Counter[Pair] = field(default_factory=Counter)
    lines: int = 0


def read_usage(brain: Brain, pages: PageSet, past: Past) -> Usage:
    """Count the present log; a line names a memory by what follows `memory/`, also where it has moved since."""
    raw = brain.read(brain.tree.access_log) or b""
    usage = Usage(log=raw[: raw.rfind(b"\n") + 1])
    memory = brain.tree.layout.memory
    answers: dict[str, set[str]] = defaultdict(set)
    for entry in parse_access_log(usage.log.decode("utf-8", "surrogateescape")).entries:
        usage.lines += 1
        path = f"{memory}/{identity_of(entry.path, memory=memory)}"
        page = pages.pages.get(path) or pages.pages.get(past.path_now(path))
        if page is None or not page.uuid:
            continue
        usage.used[page.uuid] = max(_day(entry.at), usage.used.get(page.uuid, ""))
        if entry.action == "CITE":
            usage.cited[page.uuid] += 1
            answers[entry.at].add(page.uuid)
    for cited in answers.values():
        if len(cited) <= MAX_TOGETHER:
            usage.together.update(combinations(sorted(cited), 2))
    return usage


def _day(at: str) -> str:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return at[:10]
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)).date().isoformat()


def cleared(brain: Brain, usage: Usage) -> list[Change]:
    """Return the change that takes the counted lines out of the log, and only those; none when there are none.

    Lines that were added meanwhile stay, and so do those that are no entries; where the log was cut by somebody else,
    it is left as it is.
    """
    log = brain.tree.relative(brain.tree.access_log)
    standing = brain.read(log)
    if not usage.lines or standing is None or not standing.startswith(usage.log):
        return []
    garbage = set(parse_access_log(usage.log.decode("utf-8", "surrogateescape")).garbage)
    others = [line for number, line in enumerate(usage.log.split(b"\n"), 1) if number in garbage]
    return [update(log, standing, b"".join(line + b"\n" for line in others) + standing[len(usage.log) :])]


def find_patterns(brain: Brain, pages: PageSet, past: Past, usage: Usage) -> Patterns:
    """Return what stands out, only the kinds of which there is any; former runs' counts are added to the log's."""
    settings = brain.settings.organization
    patterns = {
        "frequent": list(_frequent(pages, past.cited + usage.cited))[:SHOWN_AT_MOST],
        "co_accessed": list(_co_accessed(pages, past, past.together + usage.together))[:SHOWN_AT_MOST],
        "unused": [
            {"path": page.path, "last_used": day} for page, day in unused_pages(brain, pages, past, usage) if page.uuid
        ],
        "overgrown": [
            {"folder": folder, "entries": len(children)}
            for folder, children in sorted(pages.children.items())
            if len(children) > settings.max_entries
        ],
    }
    return {name: rows for name, rows in patterns.items() if rows}


def _frequent(pages: PageSet, cited: Counter[str]) -> Iterator[Row]:
    for uuid, times in sorted(cited.items(), key=lambda item: (-item[1], item[0])):
        path = pages.place_of.get(uuid, "")
        if times >= FREQUENT_TIMES and path in pages.memories:
            yield {"path": path, "cited": times}


def _co_accessed(pages: PageSet, past: Past, together: Counter[Pair]) -> Iterator[Row]:
    for pair, times in sorted(together.items(), key=lambda item: (-item[1], item[0])):
        one, other = (pages.place_of.get(uuid, "") for uuid in pair)
        is_shown = times >= TOGETHER_TIMES and pair not in past.unlinked
        if is_shown and {one, other} <= pages.memories.keys() and not _are_related(pages, one, other):
            yield {"paths": [one, other], "cited": times}


def _are_related(pages: PageSet, one: str, other: str) -> bool:
    """Return whether the index pages of both pages' folders link to the other page already."""
    for source, target in ((one, other), (other, one)):
        index = pages.pages.get(f"{posixpath.dirname(source)}/{INDEX}")
        related = IndexDocument(index.text, index.path).page.related if index else ()
        if pages.pages[target].uuid not in {link.uuid for link in related}:
            return False
    return True


def unused_pages(brain: Brain, pages: PageSet, past: Past, usage: Usage) -> list[tuple[Memory, str]]:
    """Return the memories that were neither used nor changed for `organization.unused_days`, longest first.

    A digest is what is left of unused days and stays. With each page comes the last day on which it was made, changed,
    read or cited.
    """
    before = (brain.clock.now() - timedelta(days=brain.settings.organization.unused_days)).date().isoformat()
    unused = []
    for page in pages.memories.values():
        days = (page.created_at, page.updated_at, past.touched.get(page.path, ""))
        last = max(day[:10] for day in (*days, past.used.get(page.uuid, ""), usage.used.get(page.uuid, "")))
        if last and last < before and DIGEST_TAG not in page.tags:
            unused.append((page, last))
    return sorted(unused, key=lambda row: (row[1], row[0].path))
