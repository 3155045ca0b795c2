"""How memories were used, counted from the access log and from what earlier runs counted (seeds S13, S14)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from brainiac.brain import Brain
from brainiac.events import Change, update
from brainiac.formats.access_log import AccessEntry, identity_of, parse_access_log

from .catalog import Catalog
from .past import Pair, Past

CITE = "CITE"
MAX_TOGETHER = 20  # an answer that cites more says nothing of any two of them


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

    def as_json(self) -> dict[str, Any]:
        """Return what the journal keeps of it, so that the lines can go."""
        return {
            "lines": self.lines,
            "used": {uuid: [day, self.cited[uuid]] for uuid, day in sorted(self.used.items())},
            "together": [[*pair, times] for pair, times in sorted(self.together.items())],
        }


def read_usage(brain: Brain, catalog: Catalog, past: Past) -> Usage:
    """Count the present log; a line names a memory by what follows `memory/`, also where it has moved since."""
    raw = brain.read(brain.tree.access_log) or b""
    usage = Usage(log=raw[: raw.rfind(b"\n") + 1])
    answers: dict[str, set[str]] = defaultdict(set)
    for entry in parse_access_log(usage.log.decode("utf-8", "surrogateescape")).entries:
        usage.lines += 1
        uuid = _uuid_of(brain, catalog, past, entry)
        if not uuid:
            continue
        usage.used[uuid] = max(_day(entry.at), usage.used.get(uuid, ""))
        if entry.action == CITE:
            usage.cited[uuid] += 1
            answers[entry.at].add(uuid)
    for cited in answers.values():
        if len(cited) <= MAX_TOGETHER:
            usage.together.update(combinations(sorted(cited), 2))
    return usage


def _uuid_of(brain: Brain, catalog: Catalog, past: Past, entry: AccessEntry) -> str:
    memory = brain.tree.layout.memory
    identity = identity_of(entry.path, memory=memory)
    path = f"{memory}/{identity}"
    if path not in catalog.uuids:
        path = past.path_now(path)
    return catalog.uuids.get(path, "")


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
