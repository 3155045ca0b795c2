"""`brainiac token`, `open` and `mcp`: how programs, browsers and assistants reach this brain."""

from __future__ import annotations

from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.errors import UserError
from brainiac.logs import configure
from brainiac.server.address import UnreachableError, call, read_address, token_of
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(token)
    app.command("open")(open_browser)
    group = typer.Typer(help="Serve this brain to assistants (Claude, Cursor, Codex, …).", rich_markup_mode=None)
    group.callback(invoke_without_command=True)(mcp)
    group.command()(install)
    app.add_typer(group, name="mcp")


def token(as_json: JsonOption = False) -> None:
    """Print the token that lets a program in at the port of a running daemon; keep it as you keep a password."""
    with opened_brain(is_reading=True) as brain:
        state = brain.places.state
        secret, address = token_of(state), read_address(state)
    if as_json:
        print_json({"token": secret, "url": address.url if address else ""})
        return
    say(secret)


def open_browser(
    is_printed: Annotated[bool, typer.Option("--print", help="Print the link and open nothing.")] = False,
) -> None:
    """Let a browser in at the port of a running daemon, by a link that counts once and for a minute.

    The browser then reads what REST serves, such as `/api/status`, without a token.
    """
    with opened_brain(is_reading=True) as brain:
        state = brain.places.state
    address = read_address(state)
    try:
        link = call(state, "/api/login", {}, client="cli:open")["url"] if address and address.url else ""
    except UnreachableError:
        link = ""
    if not link:
        raise UserError("no daemon of this brain serves a port; start it with `brainiac run --serve`")
    if not is_printed:
        import webbrowser  # only here

        is_printed = not webbrowser.open(link)
    say(link if is_printed else "Opened. The link counted once; `brainiac open` makes another.")


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

    programs = hosts()
    if host not in programs:
        raise UserError(f"{host!r} is no program known here; there are {', '.join(programs)}")
    with opened_brain(is_reading=True) as brain:
        edit = plan(programs[host], brain.root)
    if not edit.lines:
        say(f"{edit.file} has it already.")
        return
    for line in edit.lines:
        say(line)
    if not yes and not typer.confirm("Write this?"):
        raise typer.Exit(1)
    edit.make()
    say(f"Done. Now {programs[host].then}.")
