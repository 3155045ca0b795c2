"""The commands `digest` (what changed in memory) and `correct` (replace a wrong statement)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, moment_named, opened_brain, print_json
from brainiac.errors import UserError
from brainiac.history.correct import PossibleTarget, possible_targets
from brainiac.history.correct import correct as correct_statement
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
        changes = digest_since(brain, moment_named(brain, since or str(DAYS)))
        if as_json:
            print_json(
                {"lines": [asdict(line) | {"undo": line.undo} for line in changes.lines], "private": changes.withheld}
            )
            return
        day = ""
        for lines, undo_all in changes.runs():
            if (on := brain.day_of(lines[0].at)) != day:
                day = on
                say(day)
            for line in lines:
                say(f"  {line.sentence()}" + (f"  {line.path}" if line.path else ""))
                if line.undo:
                    say(f"      {line.undo}")
            if undo_all:
                say("  all of this run:")
                say(f"      {undo_all}")
    if changes.withheld:
        say(f"{changes.withheld} private changes are not listed.")
    if not changes.lines:
        say("Nothing became of memory since then.")


def correct(
    words: Annotated[str, typer.Argument(help="What stands there and is wrong: its words, or PATH#^id.")],
    to: Annotated[str, typer.Option("--to", help="What is so; asked for on a terminal.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Put a statement right: the new wording stands in its place, the former one under History."""
    with opened_brain() as brain:
        targets = possible_targets(brain, words)
        if not targets:
            raise UserError(f"no statement in memory has these words: {words!r}; `brainiac search` shows what was said")
        chosen = _chosen(targets, words)
        text = to or _asked(f"What is so instead of “{chosen.statement.text}”?")
        event = correct_statement(brain, chosen, text)
    if as_json:
        before = chosen.statement.text
        print_json({"event": event.id, "path": chosen.memory.path, "before": before, "after": text})
        return
    say(f"“{chosen.statement.text}” → “{text}” ({chosen.memory.path})")
    say(f"The former wording stands under History. `brainiac undo {event.id}` takes it back.")


def _chosen(targets: list[PossibleTarget], words: str) -> PossibleTarget:
    """Return the statement that is meant; a person at a terminal chooses among several.

    Raises:
        UserError: Several may be meant, and nobody can be asked.
    """
    if len(targets) == 1:
        return targets[0]
    lines = [f"{number}. {target.statement.text}  ({target.name})" for number, target in enumerate(targets, 1)]
    if not sys.stdin.isatty():
        raise UserError(f"{len(targets)} statements may be meant by {words!r}; name one by its id:", *lines)
    for line in lines:
        say(line)
    number = _asked("Which one?")
    if not number.isdigit() or not 0 < int(number) <= len(targets):
        raise UserError("that is none of them; nothing was changed")
    return targets[int(number) - 1]


def _asked(question: str) -> str:
    """Return the person's answer to a question on the terminal.

    Raises:
        BadParameter: There is no terminal.
    """
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; say what is so with --to")
    return str(typer.prompt(question))
