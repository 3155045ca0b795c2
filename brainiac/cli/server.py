"""`brainiac token` and `brainiac open`: what programs and browsers need that are to reach this brain."""

from __future__ import annotations

from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.errors import UserError
from brainiac.server.address import UnreachableError, call, read_address, token_of
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(token)
    app.command("open")(open_browser)


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
