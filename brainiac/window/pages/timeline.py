"""Timeline: the journal by day, a month of it as a picture; each run opens to its changes and what undoing would do."""

from __future__ import annotations

import calendar
import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import UserError
from brainiac.events import Event, RecordedChange, kinds_of, present_form
from brainiac.history.exchanges import Exchanges
from brainiac.history.sentences import news
from brainiac.history.undo import plan, plan_all
from brainiac.storage.causes import came_from, commits_of, undone_events
from brainiac.storage.journal import Line, from_line
from brainiac.storage.links import shortened
from brainiac.window.frame import Page, Visit
from brainiac.window.pages.today import prompt_of
from brainiac.window.words import who

MAX_ROWS, MAX_CHANGES, MAX_COMMITS = 60, 40, 100  # that are shown at once; and commits whose undoing is tried out
FILTERS = ("kind", "page", "conversation", "device", "by")
BY_HAND = kinds_of(events.FoundEvent)
MARKED = BY_HAND | kinds_of(events.NoteSaved.kind) | kinds_of(events.StatementCorrected.kind)  # as a person's change
SHADES = 4  # of the picture; the darkest is the day of its month on which most happened
LONG = 10_000  # bytes of a line
ID_WITHIN = 100  # bytes of a line, in which its id stands
_Told = tuple[Event, str, str, bool]  # an event without its changes, its sentence, who did it, whether by hand


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the picture: its place, how much happened, how many files a person changed, how dark it is."""

    day: date
    column: int
    row: int
    count: int
    n_by_hand: int
    shade: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An event in the list.

    Attributes:
        event: It.
        device: Whose; "" for this one's.
        at: When, as a person says it.
        text: A sentence; its kind for a step of upkeep.
        who: Who did it, as a person says it.
        is_by_hand: Whether a person changed files, in an editor.
        is_undone: Whether it is taken back.
    """

    event: Event
    device: str
    at: str
    text: str
    who: str
    is_by_hand: bool
    is_undone: bool


def timeline(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page; of the journal only the month that is shown is read."""
    brain, given = visit.brain, visit.given
    chosen = {name: given[name].strip() for name in FILTERS if given.get(name, "").strip()}
    day = _day(given.get("day", ""))
    last = brain.journal.last_until("~")
    latest = parse_iso(last.at).astimezone(brain.zone).date() if last else visit.now.date()
    day = _day(given.get("on", "")) or day
    month = (day or _day(given.get("month", "") + "-01") or latest).replace(day=1)
    day = day or (None if chosen or given.get("month") else latest)
    is_all = bool(given.get("all")) or "kind" in chosen  # a kind that is asked for is no upkeep
    following = (month + timedelta(days=32)).replace(day=1)
    days = (day, day + timedelta(days=1)) if day else (month, following)
    first, end = (_midnight(brain, each) for each in days)
    # where the page before this one ended: the moment, and how many of its rows were shown
    until, _, shown = (given.get("until") or end).partition(" ")
    to_skip = n_before = int(shown) if shown.isdecimal() else 0
    entries, counts, by_hand, n_upkeep = list[Entry](), Counter[date](), Counter[date](), 0
    others = {("device", device) for device in _devices(brain)} | {*chosen.items()}  # also in a month without entries
    matches, changed_top = _matcher(brain, chosen), _mark(brain.tree.relative(brain.tree.long_term) + "/")
    undone, more = undone_events(brain), ""
    for line in _lines(brain, _midnight(brain, month), _midnight(brain, following), chosen.get("device", "")):
        kind = present_form(line.kind, {})[0]
        others |= {("kind", kind), ("by", who(line.by))}
        if not matches(line):
            continue
        on = parse_iso(line.at).astimezone(brain.zone).date()
        counts[on] += 1
        by_hand[on] += kind in MARKED and changed_top in line.raw
        if more or not first <= line.at < end or line.at > until:
            continue
        entry = _entry(brain, line, undone, is_all=is_all, is_day=day is not None)
        n_upkeep += entry is None
        if entry:
            if line.at == until and to_skip:
                to_skip -= 1
            elif len(entries) < MAX_ROWS:
                entries.append(entry)
            else:
                n_same = sum(each.event.at == entries[-1].event.at for each in entries)
                n_same += n_before if entries[0].event.at == entries[-1].event.at == until else 0
                more = _link(given, until=f"{entries[-1].event.at} {n_same}")
    weeks = calendar.Calendar().monthdatescalendar(month.year, month.month)
    placed = [(each, column, row) for row, week in enumerate(weeks) for column, each in enumerate(week)]
    most = max(counts.values(), default=0)
    picture = [
        Day(each, column, row, counts[each], by_hand[each], -(-SHADES * counts[each] // (most or 1)))
        for each, column, row in placed
        if each.month == month.month
    ]
    choices = {name: sorted({value for key, value in others if key == name}) for name in ("kind", "by", "device")}
    values = {"day": day, "latest": latest, "month": month, "is_all": is_all, "n_upkeep": n_upkeep, "chosen": chosen}
    values |= {"months": [month - timedelta(days=1), following if following <= visit.now.date() else None]}
    values |= {"picture": picture, "n_weeks": len(weeks), "entries": entries, "more": more, "choices": choices}
    return values | {"link": lambda **changes: _link(given, until="", **changes)}


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _midnight(brain: Brain, day: date) -> str:
    return iso(datetime.combine(day, time.min, brain.zone))


def _link(given: Mapping[str, str], **changes: object) -> str:
    values = {name: given.get(name, "") for name in (*FILTERS, "all", "day", "month")} | changes
    return "/timeline?" + urlencode({name: value for name, value in values.items() if value})


def _devices(brain: Brain) -> list[str]:
    return [brain.journal.device, *sorted({Path(path).parent.name for path in brain.journal.foreign_sizes()})]


def _lines(brain: Brain, first: str, end: str, device: str) -> Iterator[Line]:
    """Yield the lines of this device and the others, or of one, newest first."""
    names = [device] if device else _devices(brain)
    own = brain.journal.device
    read = (brain.journal.lines_between(first, end, "" if name == own else name) for name in names)
    yield from heapq.merge(*read, key=lambda line: line.at, reverse=True)


def _mark(path: str) -> bytes:
    """Return how the beginning of a path stands in a line."""
    return f'"{json.dumps(path, ensure_ascii=False)[1:-1]}'.encode("utf-8", "replace")


def _matcher(brain: Brain, chosen: Mapping[str, str]) -> Callable[[Line], bool]:
    """Return what says whether a line is one that was asked for; only where files count is it parsed."""
    kinds = kinds_of(chosen["kind"]) if "kind" in chosen else frozenset()
    page = chosen.get("page", "").casefold().replace(" ", "-")
    folder = f"{brain.tree.relative(brain.tree.inbox)}/{chosen.get('conversation', '').strip('/')}/"

    def matches(line: Line) -> bool:
        if kinds and present_form(line.kind, {})[0] not in kinds:
            return False
        if (by := chosen.get("by")) and who(line.by) != by:
            return False
        if "conversation" in chosen and _mark(folder) not in line.raw:
            return False
        if not page and "conversation" not in chosen:
            return True
        event = _parsed(line)
        paths = [path for change in event.changes for path in (change.path, change.source) if path] if event else []
        paths += [str(event.data.get(name) or "") for name in ("prompt", "response", "path")] if event else []
        is_there = "conversation" not in chosen or any(path.startswith(folder) for path in paths)
        return is_there and (not page or any(page in path.casefold().replace(" ", "-") for path in paths))

    return matches


def _parsed(line: Line) -> Event | None:
    try:
        return from_line(line.raw)
    except ValueError:
        return None


def _entry(brain: Brain, line: Line, undone: Mapping[str, str], *, is_all: bool, is_day: bool) -> Entry | None:
    """Return an event for the list; None for a step of upkeep, unless all are asked for."""
    # of a line about thousands of files, as of a brain's first day, is kept what it comes to
    kept, key = brain.state_of("timeline", dict[bytes, _Told]), line.raw[:ID_WITHIN]
    if (told := kept.get(key)) is None:
        if (event := _parsed(line)) is None:
            return None
        text, is_long = news(brain, event), len(line.raw) > LONG
        told = (replace(event, changes=()), text, *(_whose(brain, event) if text or is_all or is_long else ("", False)))
        if is_long:
            kept[key] = told
    event, text, by, is_by_hand = told
    if not (text or is_all):
        return None
    moment = parse_iso(event.at).astimezone(brain.zone)
    at = f"{moment:%H:%M}" if is_day else f"{moment.day} {moment:%B %H:%M}"
    if said := prompt_of(brain, event):  # by its words, not its file
        text = shortened(" ".join(said.text.split()), 160)
        by = f"said by {said.author.named}" if said.author.named else "you said"
    return Entry(event, line.device, at, text or event.kind, by, is_by_hand, event.id in undone)


def _whose(brain: Brain, event: Event) -> tuple[str, bool]:
    """Return who did something, and whether it was done to files by hand; what a sync brought is another device's."""
    if event.kind not in BY_HAND:
        return who(event.by), False
    if device := came_from(brain, event):
        return f"came from {device}", False
    return str(event.data.get("client") or "") or "you, by hand", True


# --- one run ---------------------------------------------------------------------------------------------------------


def run(visit: Visit) -> Mapping[str, Any]:
    """Return an event with its changes, and what undoing it would do."""
    brain, given = visit.brain, visit.given
    event, device = _found(brain, visit.need("event"), given.get("at", ""), given.get("device", ""))
    values = {"obstacles": [], "stays": [], "later": [], "would": [], "n_commits": 0, "problem": "", "brings_back": ""}
    try:
        if device:
            raise UserError(f"it was done on {device}; undo it there")
        commits = commits_of(brain, event)
        steps = [plan(brain, event)] if len(commits) == 1 else plan_all(brain, commits[:MAX_COMMITS])
        would = [change for step in steps for change in step.changes]
        values |= {
            "obstacles": [str(each) for step in steps for each in step.obstacles],
            "stays": [line for step in steps for line in step.stays][:MAX_CHANGES],
            "would": would[:MAX_CHANGES],
            "later": [each for each in steps[-1].later if news(brain, each)][:MAX_CHANGES],
            "n_commits": len(commits),
        }
    except UserError as error:
        brings_back = "" if device else undone_events(brain).get(event.id, "")
        values |= {"problem": "It is taken back." if brings_back else str(error), "brings_back": brings_back}
    changes = [change for change in event.changes if change.op != "observe"]
    return values | {
        "exchange": Exchanges(brain).standing(event.id) if isinstance(event.what, events.ExchangeEvent) else None,
        "inbox": brain.tree.layout.inbox,
        "event": event,
        "moment": parse_iso(event.at).astimezone(brain.zone),
        "device": device,
        "text": news(brain, event) or event.kind,
        "who": _whose(brain, event)[0],
        "changes": [_change(brain, change) for change in changes[:MAX_CHANGES]],
        "n_changes": len(changes),
        "news": lambda each: news(brain, each),
    }


def _found(brain: Brain, name: str, at: str, device: str) -> tuple[Event, str]:
    """Return an event by its id, quickly where its moment is known too, and the other device whose it is.

    What a sync brought is named with the device that it came from, and is this one's event.

    Raises:
        UserError: There is none.
    """
    for whose in dict.fromkeys((device if device != brain.journal.device else "", "")) if at else ():  # of one second
        near = map(_parsed, brain.journal.lines_between(at, at + "~", whose))
        if found := next((event for event in near if event and event.id == name), None):
            return found, whose
    if device or not (found := brain.journal.find(name)):
        raise UserError("no event is called so; the timeline lists them")
    return found, device


def _change(brain: Brain, change: RecordedChange) -> dict[str, Any]:
    """Return what an event did to a file, with the texts before and after as far as they are kept."""
    values = {"op": change.op, "path": change.path, "source": change.source or "", "before": "", "after": ""}
    values["name"] = change.path if change.path in brain.pages([change.path]).pages else ""
    if change.op in ("append", "observe"):
        return values | {"is_kept": False}
    before, after = (brain.kept_text(digest) for digest in (change.before, change.after))
    is_kept = (change.before is None) == (before is None) and (change.after is None) == (after is None)
    return values | {"before": before or "", "after": after or "", "is_kept": is_kept}


PAGES = (Page("/timeline", "Timeline", timeline, is_live=True), Page("/run", "What happened", run, is_listed=False))
