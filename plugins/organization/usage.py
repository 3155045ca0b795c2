"""How memories were used and who placed them, from the journals and the access log, and the patterns in it.

Patterns are shown to a model, or decided by rule (S13, S14).
"""

from __future__ import annotations

import json
import posixpath
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import is_within, iso, parse_iso
from brainiac.events import Change, update
from brainiac.formats.access_log import identity_of, parse_access_log
from brainiac.formats.index_page import IndexDocument
from brainiac.formats.page import Memory
from brainiac.search.documents import IMPORTED
from brainiac.storage.pages import INDEX, PageSet
from brainiac.storage.projection import ORIGIN

WINDOW_DAYS = 30  # citations count together for so long
REST_SECONDS = 60  # what a person edited within this is left out of a run
MAX_TOGETHER = 20  # an answer that cites more says nothing of any two of them
FREQUENT_TIMES = 20  # a page that was cited so often within the window is used much
TOGETHER_TIMES = 5  # two pages that so many answers cited both are used together
SHOWN_AT_MOST = 20
DIGEST_TAG = "digest"  # the tag of pages that summarize unused days

Pair = tuple[str, str]
Row = dict[str, Any]
Patterns = dict[str, list[Row]]  # by name, as `OrganizeRequest` shows them to a model


# --- what the journals say -----------------------------------------------------------------------------------


@dataclass(slots=True)
class UsageHistory:
    """What persons and earlier runs did to memory, as far back as the journals reach.

    Attributes:
        edited: When a person last wrote a page, by path.
        placed: The paths of pages that a person made or moved there.
        touched: When a person last wrote or moved a file, by path.
        moved: The new path of each moved page, by its former path.
        order: The rank of each page by the moment it was made, by path; a moved page keeps its rank.
        used: The day on which a page was last read or cited, ISO date, by uuid.
        cited: How often a page was cited within the window, by uuid; from 0 again after it was moved up.
        together: How many answers cited two pages both, by their uuids; from 0 again after they were linked.
        unlinked: Pairs of pages whose link a person has undone.
        asked: The hash of the last question to the model.
    """

    edited: dict[str, str] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)
    touched: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    cited: Counter[str] = field(default_factory=Counter)
    together: Counter[Pair] = field(default_factory=Counter)
    unlinked: set[Pair] = field(default_factory=set)
    asked: str = ""

    def is_resting(self, path: str, now: datetime) -> bool:
        """Return whether no person wrote a file within the last minute."""
        at = self.edited.get(path)
        return at is None or not is_within(REST_SECONDS, at, now)


def read_history(brain: Brain) -> UsageHistory:
    """Return the history that the journals of all devices have."""
    history, projection = UsageHistory(), brain.projection
    projection.follow()
    # the changes of files: `order`, `moved`, `edited`, `placed` and `touched`
    rows = projection.query(
        # what a sync brought is by hand where it was so on the other device
        f"SELECT path, source, after, op, is_new, is_by_hand AND coalesce({ORIGIN.format('is_by_hand')}, 1), at"
        " FROM changes"
        " WHERE source IS NOT NULL OR after IS NULL OR is_new OR is_by_hand ORDER BY event, position"
    )
    for number, (path, source, after, op, is_new, is_by_hand, at) in enumerate(rows, 1):
        if source is not None:  # its rank, `number` if it has none yet, and its last edit hold for the new path
            history.order.setdefault(path, history.order.pop(source, number))
            if source in history.edited:
                history.edited[path] = history.edited.pop(source)
            history.placed.discard(source)
            history.moved[source] = path
            history.moved.pop(path, None)  # a page is at this path again
        elif after is None:
            history.order.pop(path, None)
        else:
            history.order.setdefault(path, number)
            if is_new and not is_by_hand:
                # a process made a new page at a path where a person once had one: it is not the person's
                history.edited.pop(path, None)
                history.placed.discard(path)
        if is_by_hand:
            history.touched[path] = at
            if source is None:
                history.edited[path] = at
            if op in ("create", "move"):
                history.placed.add(path)
    # What earlier runs counted and did. `cited` and `together` are counted within the window, the others over all runs.
    # A run that linked or moved pages sets their counts to 0: only later citations may lead to the same again.
    since = iso(brain.clock.now() - timedelta(days=WINDOW_DAYS))
    history.used = dict(projection.query("SELECT page, max(day) FROM uses WHERE other = '' GROUP BY page"))
    undone = {event for (event,) in projection.query("SELECT event FROM undone")}
    for run, at, asked, done in projection.query("SELECT event, at, asked, done FROM runs ORDER BY event"):
        history.asked = asked
        recent = projection.query("SELECT page, other, times FROM uses WHERE event = ?", run) if at >= since else ()
        for page, other, times in recent:  # of a page, or of a pair of pages
            if other:
                history.together[page, other] += times
            else:
                history.cited[page] += times
        for action, pages in json.loads(done):
            if action == "link":
                pairs = set(combinations(sorted(pages), 2))
                if run in undone:  # a person took the link back: the pair is not proposed again
                    history.unlinked |= pairs
                for pair in pairs:
                    history.together.pop(pair, None)
            elif action == "move":
                for page in pages:
                    history.cited.pop(page, None)
    return history


# --- what the access log says ------------------------------------------------------------------------------


@dataclass(slots=True)
class Usage:
    """The counts of the present access log, by uuid.

    Attributes:
        log: The complete lines that were counted, as bytes.
        used: The last day a page was read or cited, ISO date.
        cited: How often a page was cited.
        together: How many answers cited two pages both.
        lines: The number of entries.
    """

    log: bytes = b""
    used: dict[str, str] = field(default_factory=dict)
    cited: Counter[str] = field(default_factory=Counter)
    together: Counter[Pair] = field(default_factory=Counter)
    lines: int = 0


def read_usage(brain: Brain, pages: PageSet, history: UsageHistory) -> Usage:
    """Count the entries of the present access log; a page that has moved since is found by its former path."""
    raw = brain.read(brain.tree.access_log) or b""
    # a program may have written half a line so far: the last line counts once it has its end
    usage = Usage(log=raw[: raw.rfind(b"\n") + 1])
    memory = brain.tree.layout.memory
    answers: dict[str, set[str]] = defaultdict(set)
    for entry in parse_access_log(usage.log.decode("utf-8", "surrogateescape")).entries:
        usage.lines += 1
        path = f"{memory}/{identity_of(entry.path, memory=memory)}"
        if path not in pages.pages:  # where it is after all moves
            seen = {path}
            while (path := history.moved.get(path, path)) not in seen:
                seen.add(path)
        page = pages.pages.get(path)
        if page is None or not page.uuid:
            continue
        try:  # the UTC day of a moment that a person may have written in any form
            day = iso(parse_iso(entry.at))[:10]
        except (ValueError, OverflowError):
            day = entry.at[:10]
        usage.used[page.uuid] = max(day, usage.used.get(page.uuid, ""))
        if entry.action == "CITE":
            usage.cited[page.uuid] += 1
            # the entries of one answer have the same moment; nothing else in the log connects them
            answers[entry.at].add(page.uuid)
    for cited in answers.values():
        if len(cited) <= MAX_TOGETHER:
            usage.together.update(combinations(sorted(cited), 2))
    return usage


def log_removal(brain: Brain, usage: Usage) -> list[Change]:
    """Return the change that removes the counted entries from the access log; none where there are none.

    Lines that were added meanwhile stay, and so do lines that are no entries. Where somebody else shortened the log
    meanwhile, nothing is removed.
    """
    log = brain.tree.relative(brain.tree.access_log)
    present = brain.read(log)
    if not usage.lines or present is None or not present.startswith(usage.log):
        return []
    unreadable = set(parse_access_log(usage.log.decode("utf-8", "surrogateescape")).unreadable)
    others = [line for number, line in enumerate(usage.log.split(b"\n"), 1) if number in unreadable]
    return [update(log, present, b"".join(line + b"\n" for line in others) + present[len(usage.log) :])]


# --- patterns ----------------------------------------------------------------------------------------------


def find_patterns(brain: Brain, pages: PageSet, history: UsageHistory, usage: Usage) -> Patterns:
    """Return the pages and folders that are used much, together or not at all, or are too full, by kind of pattern."""
    settings = brain.settings.organization
    cited, together = history.cited + usage.cited, history.together + usage.together
    patterns: Patterns = {"frequent": [], "co_accessed": []}
    # what is cited much, the most cited first
    for uuid, times in sorted(cited.items(), key=lambda item: (-item[1], item[0])):
        path = pages.path_by_uuid.get(uuid, "")
        if times >= FREQUENT_TIMES and path in pages.memories:
            patterns["frequent"].append({"path": path, "cited": times})
    # what is used together and not linked; no pair whose link a person has undone
    for pair, times in sorted(together.items(), key=lambda item: (-item[1], item[0])):
        first, second = (pages.path_by_uuid.get(uuid, "") for uuid in pair)
        is_shown = times >= TOGETHER_TIMES and pair not in history.unlinked
        if not is_shown or not {first, second} <= pages.memories.keys():
            continue
        unrelated = []  # whose folder's index page does not link to the other page yet
        for source, target in ((first, second), (second, first)):
            index = pages.pages.get(f"{posixpath.dirname(source)}/{INDEX}")
            related = IndexDocument(index.text, index.path).page.related if index else ()
            unrelated += [source] if pages.pages[target].uuid not in {link.uuid for link in related} else []
        if unrelated:
            patterns["co_accessed"].append({"paths": [first, second], "cited": times})
    patterns = {name: rows[:SHOWN_AT_MOST] for name, rows in patterns.items()}
    unused = unused_pages(brain, pages, history, usage)
    patterns["unused"] = [{"path": page.path, "last_used": day} for page, day in unused if page.uuid]
    folders = ((folder, len(children)) for folder, children in sorted(pages.children.items()))
    patterns["overgrown"] = [
        {"folder": name, "entries": count} for name, count in folders if count > settings.max_entries
    ]
    return {name: rows for name, rows in patterns.items() if rows}


def unused_pages(brain: Brain, pages: PageSet, history: UsageHistory, usage: Usage) -> list[tuple[Memory, str]]:
    """Return the pages that were neither used nor changed for `organization.unused_days`, each with its last day.

    The last day is that on which it was made, changed, read or cited; the oldest comes first. Digests are left out,
    since they stand for unused days already, and so is what was imported: it was old when it came.
    """
    before = (brain.clock.now() - timedelta(days=brain.settings.organization.unused_days)).date().isoformat()
    unused = []
    for page in pages.memories.values():
        days = (page.created_at, page.updated_at, history.touched.get(page.path, ""))
        last = max(day[:10] for day in (*days, history.used.get(page.uuid, ""), usage.used.get(page.uuid, "")))
        if last and last < before and DIGEST_TAG not in page.tags and IMPORTED not in page.path:
            unused.append((page, last))
    return sorted(unused, key=lambda row: (row[1], row[0].path))
