"""`brainiac promote`: have memory consolidated now instead of when it is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.errors import LockedError, UserError
from brainiac.history.devices import require_active
from brainiac.terminal import say

from .run import Outcome
from .run import promote as run


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(promote)


def promote(as_json: JsonOption = False) -> None:
    """Move what was said from short-term into long-term memory now."""
    from brainiac.cli.styling import bar  # rich is heavy

    with opened_brain() as brain, bar("Deciding what to remember") as progress:
        require_active(brain)
        try:
            outcome = run(brain, progress=progress)
        except LockedError as error:
            raise UserError("a promotion is running already; `brainiac log --follow` shows when it is done") from error
    if as_json:
        print_json(_as_json(outcome))
    elif outcome.event is None:
        say("Nothing was promoted." if outcome.left or outcome.problem else "Short-term memory is empty.")
    else:
        done = ", ".join(f"{count} {name.lower()}" for name, count in sorted(outcome.statements.items()))
        filed = f"{outcome.exchanges} exchange{'' if outcome.exchanges == 1 else 's'} filed"
        say(f"{filed}; statements: {done or 'none'} (event {outcome.event.id})")
    if not as_json:
        for line in _details(outcome):
            say(line)
    if outcome.problem:
        raise typer.Exit(1)


def _details(outcome: Outcome) -> Iterator[str]:
    """Yield lines on how the candidates ended, and on the person's words that stay in short-term memory or leave."""
    ends = Counter(ending.end for ending in outcome.candidates.values())
    if ends:
        yield "candidates: " + ", ".join(f"{count} {end}" for end, count in ends.most_common())
    for event, reason in outcome.left.items():
        yield f"left    {event}: {reason}"
    shown_reasons = set(outcome.left.values())
    rows = [
        (ending.end, outcome.words[name], ending.reason)
        for name, ending in outcome.candidates.items()
        if ending.reason not in shown_reasons
    ]
    rows += [("refused", refusal.statement, refusal.reason) for refusal in outcome.refused]
    for end, statement, reason in dict.fromkeys(row for row in rows if row[2]):
        yield f"{end:7} {statement[:80]!r}: {reason}"
    for text in outcome.kept:
        yield f"kept    {text[:80]!r}: it is yours and stays in short-term memory"
    for text in outcome.filed:
        yield f"filed   {text[:80]!r}: it left short-term memory for the page of the day"


def _as_json(outcome: Outcome) -> dict[str, Any]:
    """Return a run's outcome for `--json`."""
    return {
        "event": outcome.event.id if outcome.event else None,
        "exchanges": outcome.exchanges,
        "statements": outcome.statements,
        "left": outcome.left,
        "refused": [refusal.to_json() for refusal in outcome.refused],
        "candidates": {name: ending.to_json() for name, ending in outcome.candidates.items()},
        "kept": list(outcome.kept),
        "filed": list(outcome.filed),
        "problem": outcome.problem,
    }
