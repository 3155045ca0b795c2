"""`brainiac takeover`: which of the devices that share a brain runs its processes."""

from __future__ import annotations

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.history.devices import takeover as take_over
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(takeover)


def takeover(as_json: JsonOption = False) -> None:
    """Make this device the one that answers and runs the processes; the others capture, search and wait.

    A line in system/config.yaml says so; it counts on other devices once it is synced, not before.
    """

    with opened_brain(is_shared=True) as brain:  # a line that a person could write
        event, device = take_over(brain), brain.journal.device
    if as_json:
        print_json({"device": device, "event": event.id if event else None})
    elif event is None:
        say(f"{device} runs the processes already.")
    else:
        former = event.data["from"]
        say(f"{device} runs the processes now{f' instead of {former}' if former else ''}.")
        say("Other devices follow once system/config.yaml is synced; until then both may work.")
