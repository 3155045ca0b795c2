"""`brainiac token`: what programs need that are to reach this brain."""

from __future__ import annotations

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.server.address import read_address, token_of
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(token)


def token(as_json: JsonOption = False) -> None:
    """Print the token that lets a program in at the port of a running daemon; keep it as you keep a password."""
    with opened_brain(is_reading=True) as brain:
        state = brain.places.state
        secret, address = token_of(state), read_address(state)
    if as_json:
        print_json({"token": secret, "url": address.url if address else ""})
        return
    say(secret)
