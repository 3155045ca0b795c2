"""`brainiac undo`, `why`, `forget`, `adopt`: what was done, explained and taken back."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json

if TYPE_CHECKING:
    from brainiac.events import Change

_SIGNS = {"create": "+", "update": "~", "remove": "-", "move": ">"}


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(undo)


def undo(
    event: Annotated[str, typer.Argument(help="The event's id, or a part of it; `brainiac log` lists them.")] = "",
    last: Annotated[bool, typer.Option("--last", help="The last commit that is not taken back yet.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what an event did, wholly, unless its files were changed since; that can be taken back too."""
    from brainiac.history import undo as taking_back
    from brainiac.history.record import find_event, last_undoable

    if bool(event) == last:
        raise typer.BadParameter("name an event, or give --last")
    with opened_brain() as brain:
        meant = last_undoable(brain) if last else find_event(brain, event)
        done, undoing = taking_back.undo(brain, meant)
    if as_json:
        later = [{"id": each.id, "kind": each.kind} for each in undoing.later]
        print_json({"event": asdict(done), "stays": undoing.stays, "later": later})
        return
    typer.echo(f"Took back {meant.kind} of {_local(meant.at)} ({meant.id}):")
    _list_changes(undoing.changes)
    for line in undoing.stays:
        typer.echo(f"  = {line}")
    if undoing.later:
        typer.echo("It had led to these, which stand:")
        for each in undoing.later:
            typer.echo(f"  {each.id}  {each.kind}, {_local(each.at)}")
    typer.echo(f"`brainiac undo {done.id}` brings it back.")


def _list_changes(changes: list[Change]) -> None:
    for change in changes:
        where = f"{change.source} → {change.path}" if change.source else change.path
        typer.echo(f"  {_SIGNS.get(change.op, '=')} {where}")


def _local(at: str) -> str:
    from brainiac.cli.history import local_time

    return local_time(at)


def _asked(question: str, *, is_confirmed: bool) -> bool:
    """Ask on a terminal; a script must have said --yes."""
    if is_confirmed:
        return True
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; add --yes")
    return typer.confirm(question)
