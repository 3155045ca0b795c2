"""`brainiac log`: what happened, from the journal."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, local_time, opened_brain, print_json, print_table
from brainiac.cli.wording import moment, news, sentence
from brainiac.clock import parse_iso
from brainiac.events import Event, PathKind
from brainiac.terminal import say

LOOK_EVERY_SECONDS = 0.5
COLUMNS = ("time", "id", "event", "by", "what", "because of")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(log)


def log(
    number: Annotated[int, typer.Option("-n", "--number", min=0, help="How many events.")] = 20,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind, e.g. note-edited; may be repeated.")] = None,
    by: Annotated[str, typer.Option(help="Only what this plugin, `person`, `kernel` or `cli` did.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on showing what happens; Ctrl-C ends.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Each step with its id, kind, files and cause.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Only what changed long-term memory.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what happened on this device, newest last: a line for each thing that somebody caused."""
    kinds = frozenset(kind) if kind else None
    with opened_brain(is_reading=True) as brain:
        newest = (event for event in brain.journal.events(kinds=kinds, reverse=True) if by in ("", event.by))
        if memory:
            newest = (event for event in newest if _changes_memory(brain, event))
        if not (every or as_json or follow or kinds):
            newest = (event for event in newest if news(brain, event))
            print_table(("when", "id", "what"), (_news_row(brain, event) for event in _oldest_first(newest, number)))
            return
        shown = _oldest_first(newest, number)
        if not follow:
            print_json([asdict(event) for event in shown]) if as_json else print_table(COLUMNS, map(_row, shown))
            return
        seq = brain.journal.last()[0]
        in_words = not (every or as_json or kinds)
        _print_each(brain, shown, as_json=as_json, in_words=in_words)
        while True:
            time.sleep(LOOK_EVERY_SECONDS)
            new = list(brain.journal.events(since_seq=seq))
            seq = new[-1].seq if new else seq
            new = [e for e in new if by in ("", e.by) and (kinds is None or e.kind in kinds)]
            new = [e for e in new if not memory or _changes_memory(brain, e)]
            _print_each(brain, new, as_json=as_json, in_words=in_words)


def _oldest_first(events: Iterable[Event], number: int) -> list[Event]:
    """Return the first events of an iterable that has the newest first, in the order they happened."""
    return list(itertools.islice(events, number))[::-1]


def _news_row(brain: Brain, event: Event) -> tuple[str, ...]:
    """Return the columns of an event in a person's words."""
    at = parse_iso(event.at).astimezone(brain.zone)
    return moment(at, brain.now()), short_id(event.id), sentence(event)


def _changes_memory(brain: Brain, event: Event) -> bool:
    """Return whether an event changed a page of long-term memory or of the archive."""
    places = (PathKind.MEMORY, PathKind.ARCHIVED)
    return any(brain.tree.kind_of(change.path) in places for change in event.changes)


def _print_each(brain: Brain, events: list[Event], *, as_json: bool, in_words: bool) -> None:
    """Print one line an event, at once, for whoever reads along; in words what a person wants to know of."""
    for event in events:
        if as_json:
            say(json.dumps(asdict(event), ensure_ascii=False))
        elif not in_words:
            say("  ".join(_row(event)))
        elif news(brain, event):
            say("  ".join(_news_row(brain, event)))


def _row(event: Event) -> tuple[str, ...]:
    """Return the columns of an event with its id, kind, files and cause (`--all`)."""
    cause = event.cause or event.data.get("exchange") or event.data.get("undone") or ""
    return local_time(event.at), short_id(event.id), event.kind, event.by, _summary(event), short_id(str(cause))


def short_id(event_id: str) -> str:
    """Return the last eight characters of an id, in which ids of the same moment differ; commands accept them."""
    return event_id[-8:]


def _summary(event: Event) -> str:
    """Return the files that an event changed, or else its data, on one line."""
    paths = [f"{change.source} → {change.path}" if change.source else change.path for change in event.changes]
    if paths:
        return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return ", ".join(f"{key}: {_plain(value)}" for key, value in event.data.items() if value not in (None, "", [], {}))


def _plain(value: Any) -> str:
    """Return a value on one line of at most 80 characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:79] + "…"
