"""`brainiac promote`: have memory consolidated now instead of when it is quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.terminal import say

if TYPE_CHECKING:
    from brainiac.promotion.run import Outcome


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(promote)


def promote(as_json: JsonOption = False) -> None:
    """Move what was said from short-term into long-term memory now."""
    from brainiac.cli.styling import bar
    from brainiac.history.devices import require_active
    from brainiac.promotion.run import promote as run

    with opened_brain() as brain, bar("Deciding what to remember") as progress:
        require_active(brain)
        outcome = run(brain, progress=progress)
    if as_json:
        print_json(_plain(outcome))
    elif outcome.event is None:
        say("Nothing was promoted." if outcome.left or outcome.problem else "Short-term memory is empty.")
    else:
        done = ", ".join(f"{count} {name.lower()}" for name, count in sorted(outcome.statements.items()))
        say(f"{outcome.exchanges} exchanges filed; statements: {done or 'none'} (event {outcome.event.id})")
    if not as_json:
        for event, reason in outcome.left.items():
            say(f"left    {event}: {reason}")
        for refusal in outcome.refused:
            say(f"refused {refusal.statement[:80]!r}: {refusal.reason}")
    if outcome.problem:
        raise typer.Exit(1)


def _plain(outcome: Outcome) -> dict[str, Any]:
    return {
        "event": outcome.event.id if outcome.event else None,
        "exchanges": outcome.exchanges,
        "statements": outcome.statements,
        "left": outcome.left,
        "refused": [refusal.as_json() for refusal in outcome.refused],
        "problem": outcome.problem,
    }
