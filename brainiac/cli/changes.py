"""`brainiac digest` and `correct`: what became of memory, and putting a statement of it right."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import date, timedelta
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.history import correct as putting_right
from brainiac.history.correct import Offered, offered
from brainiac.history.digest import digest_since
from brainiac.terminal import say

DAYS = 7


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(digest)
    app.command()(correct)


def digest(
    since: Annotated[
        str, typer.Option(help="A day (2026-03-01), or how many days back; the last seven without it.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Tell what memory learned, changed, ended, moved, refused and asked, each with the command that takes it back."""
    with opened_brain(is_reading=True) as brain:
        told = digest_since(brain, _moment(brain, since))
        if as_json:
            print_json({"lines": [asdict(line) | {"undo": line.undo} for line in told.lines], "private": told.withheld})
            return
        day = ""
        for line in told.lines:
            if (on := brain.day_of(line.at)) != day:
                day = on
                say(day)
            say(f"  {line.sentence()}" + (f"  {line.path}" if line.path else ""))
            if line.undo:
                say(f"      {line.undo}")
    if told.withheld:
        say(f"{told.withheld} private changes are not listed.")
    if not told.lines:
        say("Nothing became of memory since then.")


def _moment(brain: Brain, since: str) -> str:
    """Return the ISO 8601 moment at which a day begins.

    Raises:
        BadParameter: It is no day.
    """
    if (since.isdigit() and len(since) < 5) or not since:
        return iso(brain.clock.now() - timedelta(days=int(since or DAYS)))
    try:
        return iso(brain.midnight((date.fromisoformat(since) - brain.now().date()).days))
    except ValueError:
        raise typer.BadParameter(f"{since!r} is no day; give one as 2026-03-01, or a number of days") from None


def correct(
    words: Annotated[str, typer.Argument(help="What stands there and is wrong: its words, or PATH#^id.")],
    to: Annotated[str, typer.Option("--to", help="What is so; asked for on a terminal.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Put a statement right: the new wording stands in its place, the former one under History."""
    with opened_brain() as brain:
        offers = offered(brain, words)
        if not offers:
            raise UserError(f"no statement in memory has these words: {words!r}; `brainiac search` shows what was said")
        chosen = _chosen(offers, words)
        text = to or _asked(f"What is so instead of “{chosen.statement.text}”?")
        event = putting_right.correct(brain, chosen, text)
    if as_json:
        before = chosen.statement.text
        print_json({"event": event.id, "path": chosen.memory.path, "before": before, "after": text})
        return
    say(f"“{chosen.statement.text}” → “{text}” ({chosen.memory.path})")
    say(f"The former wording stands under History. `brainiac undo {event.id}` takes it back.")


def _chosen(offers: list[Offered], words: str) -> Offered:
    """Return the statement that is meant; a person at a terminal chooses among several.

    Raises:
        UserError: Several may be meant, and nobody can be asked.
    """
    if len(offers) == 1:
        return offers[0]
    lines = [f"{number}. {offer.statement.text}  ({offer.name})" for number, offer in enumerate(offers, 1)]
    if not sys.stdin.isatty():
        raise UserError(f"{len(offers)} statements may be meant by {words!r}; name one by its id:", *lines)
    for line in lines:
        say(line)
    number = _asked("Which one?")
    if not number.isdigit() or not 0 < int(number) <= len(offers):
        raise UserError("that is none of them; nothing was changed")
    return offers[int(number) - 1]


def _asked(question: str) -> str:
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; say what is so with --to")
    return str(typer.prompt(question))
