"""`brainiac mcp`: this brain as a server of the Model Context Protocol, for the programs that people talk to."""

from __future__ import annotations

from typing import Annotated

import typer

from brainiac.cli.session import opened_brain
from brainiac.errors import UserError
from brainiac.logs import configure
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(help="Serve this brain to assistants (Claude, Cursor, Codex, …).", rich_markup_mode=None)
    group.callback(invoke_without_command=True)(mcp)
    group.command()(install)
    app.add_typer(group, name="mcp")


def mcp(context: typer.Context) -> None:
    """Serve this brain over standard input and output, as assistants start it; `install` tells them how.

    It uses the running daemon, or opens the brain by itself where none runs.
    """
    if context.invoked_subcommand:
        return
    configure(is_quiet=True)
    with opened_brain(is_reading=True) as brain:
        root, state = brain.root, brain.places.state
    try:
        from brainiac.server.mcp import serve_stdio  # of the [server] extra
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing; `pip install 'brainiac[server]'` brings it") from error
    serve_stdio(root, state)


def install(
    host: Annotated[str, typer.Argument(help="claude-desktop, claude-code, cursor, vscode or codex.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Add this brain to an assistant's own settings: shows the change, asks, and keeps what stands there."""
    from brainiac.server.hosts import hosts, plan  # `mcp install` only

    known = hosts()
    if host not in known:
        raise UserError(f"{host!r} is no program known here; there are {', '.join(known)}")
    with opened_brain(is_reading=True) as brain:
        edit = plan(known[host], brain.root)
    if not edit.lines:
        say(f"{edit.file} has it already.")
        return
    for line in edit.lines:
        say(line)
    if not yes and not typer.confirm("Write this?"):
        raise typer.Exit(1)
    edit.make()
    say(f"Done. Now {known[host].then}.")
