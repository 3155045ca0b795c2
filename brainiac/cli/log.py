"""What happened and what memory held: `brainiac log`, `diff`, `show` and `digest`."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from brainiac import events
from brainiac.brain import Brain
from brainiac.cli import session
from brainiac.cli.session import command, local_time, opened_brain, print_table
from brainiac.clock import iso, parse_iso
from brainiac.errors import UserError
from brainiac.events import Event, PathKind
from brainiac.history import past
from brainiac.history.digest import digest_since
from brainiac.history.sentences import counted, news, paths_of
from brainiac.storage.causes import moment_named
from brainiac.storage.store import Store
from brainiac.terminal import say
from brainiac.terminal import show as print_text
from brainiac.tree import find_root

LOOK_EVERY_SECONDS = 0.5
COLUMNS = ("time", "id", "event", "by", "what", "because of")


def moment(at: datetime, now: datetime) -> str:
    """Return a moment as a person says it: `12:01`, `yesterday 12:01`, `Mon 12:01`, `2025-09-16 12:01`."""
    days = (now.date() - at.date()).days
    day = {0: "", 1: "yesterday "}.get(days, f"{at:%a} " if 1 < days < 7 else f"{at:%Y-%m-%d} ")
    return f"{day}{at:%H:%M}"


# --- `log` -----------------------------------------------------------------------------------------------------------


@command(is_reading=True)
def log(
    brain: Brain,
    *,
    number: Annotated[int | None, typer.Option("-n", "--number", min=0)] = None,
    kind: list[str] | None = None,
    by: str = "",
    follow: bool = False,
    every: bool = False,
    since: str = "",
    memory: bool = False,
    as_json: session.JsonOption = False,
) -> None:
    """Show what happened on this device, newest last: a line for each thing that somebody caused.

    Args:
        number: How many events; 20 where nothing else is named.
        kind: Only this kind, e.g. note-edited; may be repeated.
        by: Only what this plugin, `person`, `kernel` or `cli` did.
        follow (--follow, -f): Go on showing what happens; Ctrl-C ends.
        every (--all): Each step with its id, kind, files and cause.
        since: All since {TIMES}, or an event's id.
        memory (--memory): Only what changed long-term memory.
    """
    kinds = events.kinds_of(*kind) if kind else None
    in_words = not (every or as_json or kinds)

    def is_selected(event: Event) -> bool:
        is_named = by in ("", event.by) and (not kinds or event.kind in kinds)
        places = (PathKind.MEMORY, PathKind.ARCHIVED)
        changes_memory = any(brain.tree.kind_of(each.path) in places for each in event.changes)
        return is_named and (not memory or changes_memory or isinstance(event.what, events.TextsPurged))

    newest_first: Iterable[Event] = brain.journal.events(kinds=kinds, reverse=True)
    if since:
        start, _ = moment_named(brain, since)
        newest_first = itertools.takewhile(lambda event: event.at >= start, newest_first)
    newest_first = filter(is_selected, newest_first)
    if in_words and not follow:
        newest_first = filter(partial(news, brain), newest_first)
    seen = brain.journal.last()[0]
    selected = list(itertools.islice(newest_first, 20 if number is None and not since else number))[::-1]
    rows = partial(_news_row, brain) if in_words else _row
    while follow:
        for event in filter(is_selected, selected):
            if as_json:
                say(json.dumps(asdict(event), ensure_ascii=False))
            elif not in_words or news(brain, event):
                say("  ".join(rows(event)))
        seen = selected[-1].seq if selected else seen
        time.sleep(LOOK_EVERY_SECONDS)
        selected = list(brain.journal.events(since_seq=seen))
    if as_json:
        session.print_json([asdict(event) for event in selected])
    elif selected:
        print_table(("when", "id", "what") if in_words else COLUMNS, map(rows, selected))
    else:
        say(f"No event to show{' of kind ' + ', '.join(kind) if kind else ''}.", to_stderr=True)


def _news_row(brain: Brain, event: Event) -> tuple[str, ...]:
    """Return the columns of an event in a person's words."""
    at = parse_iso(event.at).astimezone(brain.zone)
    return moment(at, brain.now()), short_id(event.id), news(brain, event)


def _row(event: Event) -> tuple[str, ...]:
    """Return the columns of an event with its id, kind, files and cause (`--all`)."""
    # some events name in their data what they are about
    cause = event.cause or event.data.get("exchange") or event.data.get("undone") or ""
    return local_time(event.at), short_id(event.id), event.kind, event.by, _summary(event), short_id(str(cause))


def short_id(event_id: str) -> str:
    """Return the last eight characters of an id, in which ids of the same moment differ; commands accept them."""
    return event_id[-8:]


def _summary(event: Event) -> str:
    """Return the files that an event changed, or else its data, on one line."""
    values = {key: value for key, value in event.data.items() if value not in (None, "", [], {})}
    texts = {key: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for key, v in values.items()}
    shown = ", ".join(f"{key}: {_shortened(' '.join(text.split()), 80)}" for key, text in texts.items())
    return paths_of(event, "→") or shown


DAYS = 7
_WIDEST = 200  # characters of an exchange or another line that are shown of it; --json has all


# --- what memory held at another time, and what changed since --------------------------------------------------------


@command()
def diff(
    first: Path | None = None,
    second: Path | None = None,
    *,
    since: str = "",
    until: str = "",
    reworded: bool = False,
) -> Iterator[Any]:
    """Compare the long-term memory of two brains, or of one at two times, statement by statement.

    Args:
        first ([A]): A brain's folder.
        second ([B]): Another; without it this brain against A.
        since: This brain at two times: since {TIMES}, an event's id; without it the last seven days.
        until: Until such a time, of a day its end; now without it.
        reworded: Of two brains print what says the same in other words too, which is counted otherwise.
    """
    if first is not None and (since or until):
        raise typer.BadParameter("give two brains, or --since and --until for one brain at two times")
    with ExitStack() as opened:  # until both are compared: pages are read then
        folders = list(filter(None, (first, second)))
        stores = [opened.enter_context(closing(Store(find_root(each), is_reading=True))) for each in folders]
        brain = opened.enter_context(opened_brain(is_reading=True)) if len(stores) < 2 else stores[0]
        if first is None:
            sides = _two_times(brain, since, until)
        else:
            stores = [brain, stores[-1]]
            if stores[0].root == stores[1].root:
                raise UserError(f"{brain.root} is both; `brainiac diff --since DAY` compares one brain at two times")
            sides = [(str(store.root), past.present_pages(store)) for store in stores]
        (first_name, first_pages), (second_name, second_pages) = sides
        result = past.compare(first_pages, second_pages, past.likenesses_of(brain) if first else ())
    devices = [first_pages.device, second_pages.device]
    yield {"first": first_name, "second": second_name, "devices": devices} | asdict(result)
    say(f"{first_name} → {second_name}")
    for device in filter(None, devices):
        say(f"As {device} saw it: this device's journal begins later.")
    _print_differences(result, is_full=reworded)


@command(is_reading=True)
def show(brain: Brain, named: list[str], *, at: str = "") -> Iterator[Any]:
    """Print a page, or another file of the brain, as it stands or as it stood; the page may be gone or moved since.

    Args:
        named (PAGE): A page's path, title or uuid; or a file's path.
        at: As it stood then, on a day at its end: {TIMES}, or right after an event (its id).
    """
    moment, event = moment_named(brain, at, is_end=True) if at else ("", "")
    page = past.at_moment(brain, " ".join(named), moment, event) if at else past.present(brain, " ".join(named))
    yield asdict(page) | {"at": moment}
    version = page.version
    since = f", unchanged since {local_time(version.at)} (event {version.event})" if version else ""
    seen = f", as {page.device} saw it" if page.device else ""
    # to standard error, so that the page alone can go into a file
    say(f"{page.path}: {local_time(moment) if at else 'now'}{since}{seen}", to_stderr=True)
    print_text(page.text.removesuffix("\n"))


def _two_times(store: Store, since: str, until: str) -> list[tuple[str, past.PagesAt]]:
    """Return a brain's pages at two moments, each with the moment as a person reads it."""
    start, first_event = moment_named(store, since or str(DAYS))
    end, last_event = moment_named(store, until, is_end=True) if until else (iso(store.clock.now()), "")
    if end < start:
        raise typer.BadParameter("--until lies before --since")
    start = max(start, past.first_moment(store))  # a brain that is younger is compared with its beginning
    first = (local_time(start), past.pages_at(store, start, first_event))
    if until:
        return [first, (local_time(end), past.pages_at(store, end, last_event))]
    return [first, ("now", past.present_pages(store))]


def _print_differences(result: past.Comparison, *, is_full: bool) -> None:
    """Print the differences below the page that each is on, and how many there are."""
    path = ""
    for difference in result.differences:
        if difference.what == "reworded" and not is_full:
            continue
        if difference.path != path:
            path = difference.path
            say(f"{path} ({difference.title})")
        # two texts where they differ, else the one
        texts = dict.fromkeys(text for text in (difference.before, difference.text) if text)
        words = " → ".join(f"“{_shortened(text, _WIDEST)}”" for text in texts)
        kind = "" if difference.kind == "statement" else f" ({_noun(difference.kind)})"
        history = ", under History" if difference.is_history else ""
        origin = f", from {difference.former_path}" if difference.former_path else ""
        say(f"  {difference.what}{kind}{history}{origin}" + (f": {words}" if words else ""))
    for problem in result.unreadable:
        say(f"not compared: {problem}")
    counts = [f"{counted(n, _noun(kind))} {what}" for (kind, what), n in sorted(result.counts().items())]
    same = "1 page holds" if result.equal == 1 else f"{result.equal} pages hold"
    say((", ".join(counts) or "Nothing differs") + f"; {same} the same.")
    if not is_full and any(difference.what == "reworded" for difference in result.differences):
        say("What is reworded may differ by a word that counts: --reworded lists it.")


def _noun(kind: str) -> str:
    """Return what a person calls a difference of a kind."""
    return "other line" if kind == "line" else kind


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


@command(is_reading=True)
def digest(brain: Brain, *, since: str = "") -> Iterator[Any]:
    """Tell what memory learned, changed, ended, moved, refused, asked and forgot, each with how to take it back.

    Args:
        since: Since {TIMES}, or an event's id; without it the last seven days.
    """
    changes = digest_since(brain, moment_named(brain, since or str(DAYS))[0])
    yield {"lines": [asdict(line) | {"undo": line.undo} for line in changes.lines], "private": changes.withheld}
    day = ""
    for groups, undo_all in changes.runs():
        if (on := brain.day_of(groups[0][0].at)) != day:
            day = on
            say(day)
        for group in groups:
            is_short = bool(undo_all and group[0].path)
            if is_short:
                say(f"  {group[0].path}")
            for line in group:
                path = f"  {line.path}" if line.path and not is_short else ""
                say(f"{'    ' if is_short else '  '}{line.sentence(is_short=is_short)}{path}")
                if line.undo:
                    say(f"      {line.undo}")
        if undo_all:
            say("  all of this run:")
            say(f"      {undo_all}")
    if changes.withheld:
        say(f"{changes.withheld} private changes are not listed.")
    if not changes.lines:
        say("Nothing became of memory since then.")
