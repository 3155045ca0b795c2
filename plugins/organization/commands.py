"""`brainiac organize`: long-term memory put in order now, by how it was used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import command, note_edits
from brainiac.errors import LockedError, UserError
from brainiac.history.devices import require_active
from brainiac.terminal import say

from .run import organize as run
from .upkeep import Upkeep


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(organize)


@command()
def organize(brain: Brain) -> Iterator[Any]:
    """Link, move up, split, compress and archive memories by how they were used; heal links; derive manifests."""
    from brainiac.cli.styling import spinner  # rich is heavy

    with spinner("looking at the tree") as progress:
        require_active(brain)
        note_edits(brain)
        Upkeep(brain).tend()
        try:
            outcome = run(brain, progress=progress)
        except LockedError as error:
            raise UserError(
                "memory is being organized already; `brainiac log --follow` shows when it is done"
            ) from error
    yield asdict(outcome) | {"refused": [(refused.proposal, refused.reason) for refused in outcome.refused]}
    for action in outcome.done:
        where = f" to {action.target}" if action.target else ""
        names = f"{len(action.paths)} pages" if len(action.paths) > 3 else ", ".join(action.paths)
        say(f"{action.kind}  {names}{where}" + (f" ({action.reason})" if action.reason else ""))
    for proposal in outcome.asked:
        say(f"asked  {proposal}; tick it in memory/review.md")
    for refused in outcome.refused:
        say(f"refused  {refused.proposal}: {refused.reason}")
    if not (outcome.done or outcome.asked or outcome.lines):
        say("Memory is well as it is.")
    else:
        say(f"{outcome.lines} lines of the access log counted.")
