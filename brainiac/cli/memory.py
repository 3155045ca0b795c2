"""`brainiac promote`: have memory consolidated now instead of when it is quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from brainiac.cli.session import JsonOption, console, opened_brain, print_json

if TYPE_CHECKING:
    from brainiac.promotion.run import Outcome


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(promote)


def promote(as_json: JsonOption = False) -> None:
    """Move what was said from short-term into long-term memory now."""
    from rich.progress import Progress

    from brainiac.history.devices import require_active
    from brainiac.promotion.run import promote as run

    with opened_brain() as brain, Progress(console=console(stderr=True), transient=True) as bar:
        require_active(brain)
        task = bar.add_task("Deciding what to remember", total=None)
        outcome = run(brain, progress=lambda done, total: bar.update(task, completed=done, total=max(total, 1)))
    if as_json:
        print_json(_plain(outcome))
    elif outcome.event is None:
        typer.echo("Nothing was promoted." if outcome.left or outcome.problem else "Short-term memory is empty.")
    else:
        done = ", ".join(f"{count} {name.lower()}" for name, count in sorted(outcome.statements.items()))
        typer.echo(f"{outcome.exchanges} exchanges filed; statements: {done or 'none'} (event {outcome.event.id})")
    if not as_json:
        for event, reason in outcome.left.items():
            typer.echo(f"left    {event}: {reason}")
        for refusal in outcome.refused:
            typer.echo(f"refused {refusal.statement[:80]!r}: {refusal.reason}")
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
