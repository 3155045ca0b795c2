"""`brainiac log`: what happened, from the journal; and events in a person's words, which `run` prints too."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from brainiac import events
from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, local_time, opened_brain, print_json, print_table
from brainiac.clock import parse_iso
from brainiac.events import Event, PathKind, StatementRecord
from brainiac.terminal import say

_VERBS = {
    "NEW": "learned",
    "UPDATE": "changed",
    "DELETE": "ended",
    "REINFORCE": "heard again",
    "REWORD": "reworded",
}


def sentence(event: Event) -> str:
    """Return a sentence about an event; "" for events of the program's own upkeep.

    For an event of a plugin's own kind that is the kind.
    """
    match event.what:
        case events.PromptAnswered(prompt=path, model=model):
            return f"{path} → answered ({model})"
        case events.PromptRefused(prompt=path, reason=reason):
            return f"{path} → not answered: {reason}"
        case events.AnswerDiscarded(prompt=path):
            return f"{path} → changed while it was answered, so that answer was thrown away"
        case events.NoteCaptured(prompt=path):
            return f"{path} → taken in"
        case events.ResponseArrived(response=path):
            return f"{path} → noted, by hand"
        case events.PromptMoved(prompt=path, moved_from=former):
            return f"{former} → moved to {path}, its answer with it"
        case events.MemoryPromoted() as promoted:
            return f"{_count(len(promoted.exchanges), 'exchange')} → {_changes(promoted.statements) or 'filed by day'}"
        case events.CatchUpStarted(exchanges=exchanges, model=model):
            return f"{_count(exchanges, 'exchange')} of before → handed to {model}, all in one `undo`"
        case events.ExchangesFiled(exchanges=exchanges):
            return f"{_count(len(exchanges), 'exchange')} → filed by day: short-term memory was full"
        case events.ImportStarted(source=source):
            return f"{source} → imported, all in one `undo`"
        case events.ExchangesImported(service=service, episodes=episodes):
            count = sum(map(len, episodes.values()))
            n_files = sum(not change.path.endswith("/_index.md") for change in event.changes)
            return (
                f"{service} → {_count(count, 'exchange') + ' on ' if count else ''}{_count(n_files, 'file')} imported"
            )
        case events.InboxTidied(exchanges=exchanges):
            return f"{_count(len(exchanges), 'answered prompt')} → left the inbox (inbox.keep_days)"
        case events.MemoryOrganized(done=done) if done:
            return f"memory → organized ({_count(len(done), 'change')})"
        case events.ForgettingProposed() | events.CopyFound() | events.ChangeSuggested():
            return "memory/review.md → asks you something"
        case events.ProposalApplied():
            return "memory/review.md → done as you ticked it"
        case events.StatementCorrected():
            return f"{_paths(event)} → put right by you"
        case events.ProposalDeclined():
            return "memory/review.md → left as you said"
        case events.EventUndone(kind_=kind):
            return f"{_UNDONE.get(kind, kind)} → taken back: {_paths(event)}"
        case events.ExchangeForgotten(exchanges=exchanges):
            return f"{_count(len(exchanges), 'exchange')} → forgotten, with what rested on it alone"
        case events.MemoryForgotten(path=path):
            return f"{path} → forgotten"
        case events.TextsPurged():
            return "forgotten texts → destroyed for good"
        case events.ExchangeMadePrivate(prompt=path):
            return f"{path} → made private, with what came of it"
        case events.StatementsAdopted(statements=statements):
            return f"{_count(len(statements), 'statement')} → released by you"
        case events.NoteMerged():
            return f"{_paths(event)} → your save was merged with what was written meanwhile"
        case events.CopyMerged(of=path):
            return f"{path} → what another device wrote was merged into it{_both_stand(event)}"
        case events.CopySetAside(of=path):
            return f"{path} → a copy from another device had nothing new, so it is gone"
        case events.MarkersMerged(path=path):
            return f"{path} → both versions that git had left in it were merged{_both_stand(event)}"
        case events.NoteEdited(client=client) if client:
            return f"{_paths(event)} → put there by {client}"
        case events.NoteMoved() | events.NoteDeleted() | events.NotesDeleted() | events.NoteEdited():
            is_new = event.kind == events.NoteEdited.kind and all(change.op == "create" for change in event.changes)
            return f"{_paths(event)} → {'put there' if is_new else _BY_HAND[event.kind]} by hand"
        case events.NotesEdited():
            return f"{_paths(event)} → found changed at a start"
        case events.DeletionsHeld(count=count):
            return f"{_count(count, 'note')} vanished at once → nothing is forgotten until you confirm it"
        case events.DeviceTookOver(device=device):
            return f"{device} → runs the processes now"
        case events.PluginTrusted(plugin=plugin):
            return f"{plugin} → trusted on this machine"
        case events.PluginDistrusted(plugin=plugin):
            return f"{plugin} → trusted no more"
        case events.PluginFailed(hook=hook, error=error):
            return f"{event.by} → failed in {hook}: {error}"
        case events.PluginEvent() if event.changes:
            return f"{_paths(event)} → {event.kind}"
    return ""


def news(brain: Brain, event: Event) -> str:
    """Return the sentence about an event that a person wants to know of; "" for others, as for a saved prompt."""
    inbox = (PathKind.PROMPT, PathKind.CAPTURE, PathKind.RESPONSE, PathKind.ERROR)
    if event.kind == events.NoteEdited.kind and all(brain.tree.kind_of(c.path) in inbox for c in event.changes):
        return ""
    return sentence(event)


_UNDONE = {
    events.PromptAnswered.kind: "an answer",
    events.ExchangeReflected.kind: "what was noted of an exchange",
    events.MemoryPromoted.kind: "a promotion",
    events.ExchangesImported.kind: "an import",
    events.MemoryOrganized.kind: "an organization",
    events.ExchangeForgotten.kind: "a forgetting",
    events.MemoryForgotten.kind: "a forgetting",
    events.ProposalApplied.kind: "what you ticked in the review",
    events.EventUndone.kind: "an undo",
}
_BY_HAND = {
    events.NoteMoved.kind: "moved",
    events.NoteDeleted.kind: "deleted",
    events.NotesDeleted.kind: "deleted",
    events.NoteEdited.kind: "edited",
}


def moment(at: datetime, now: datetime) -> str:
    """Return a moment as a person says it: `12:01`, `yesterday 12:01`, `Mon 12:01`, `2025-09-16 12:01`."""
    days = (now.date() - at.date()).days
    day = {0: "", 1: "yesterday "}.get(days, f"{at:%a} " if 1 < days < 7 else f"{at:%Y-%m-%d} ")
    return f"{day}{at:%H:%M}"


def _changes(statements: tuple[StatementRecord, ...]) -> str:
    """Return how many statements were learned, changed, ended and heard again."""
    counts: dict[str, int] = {}
    for statement in statements:
        name = _VERBS.get(statement.operation, statement.operation.lower())
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _both_stand(event: Event) -> str:
    return "; where both had changed the same, both texts stand" if event.data.get("differs") else ""


def _paths(event: Event) -> str:
    """Return the first three files that an event changed, and how many more."""
    paths = [f"{change.source} to {change.path}" if change.source else change.path for change in event.changes]
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


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
