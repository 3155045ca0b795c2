"""`brainiac costs`: what models have cost, by day, process and model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json, print_table
from brainiac.llm.costs import Ledger, cost_rows
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("costs")(costs)


def costs(
    days: Annotated[int, typer.Option(help="How many days back.", min=1)] = 30,
    as_json: JsonOption = False,
) -> None:
    """Show what models have cost, by day, process and model, and what is left of today's budget."""
    with opened_brain(is_reading=True) as brain:
        since = brain.midnight(1 - days).date().isoformat()
        rows = cost_rows(brain, since)
        answers, background = Ledger(brain).spent_today()
        budget = brain.settings.llm.daily_budget_usd
    total = round(sum(row.cost_usd for row in rows), 8)
    if as_json:
        today = {"answers_usd": answers, "background_usd": background, "budget_usd": budget}
        print_json({"rows": [asdict(row) for row in rows], "total_usd": total, "today": today})
        return
    columns = ("day", "process", "purpose", "model", "calls", "tokens in", "of them cached", "tokens out", "USD")
    print_table(columns, [(*list(asdict(row).values())[:-1], f"{row.cost_usd:.4f}") for row in rows])
    say(f"{days} days: ${total:.4f}. Today: ${answers + background:.4f} of ${budget:.2f}.")
