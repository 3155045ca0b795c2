"""`brainiac promote`: have memory consolidated now instead of when it is quiet, or what was said without a model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import agree, command, note_edits
from brainiac.cli.styling import bar
from brainiac.errors import LockedError, UserError
from brainiac.history.devices import require_active
from brainiac.history.rebuild import is_made_from, make_raw, settle
from brainiac.storage.causes import moment_named
from brainiac.terminal import say

from .past import CatchUp, Past, require_model
from .run import Outcome
from .run import promote as run


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(promote)
    app.command()(rebuild)


@command()
def promote(brain: Brain, *, past: bool = False, since: str = "", model: str = "", yes: bool = False) -> Iterator[Any]:
    """Move what was said from short-term into long-term memory now.

    Args:
        past: Have a model read the exchanges that were kept without one until now.
        since (--from WHEN): With --past: only those since {TIMES}.
        model: With --past: the model that reads them; else that of the settings.
        yes (--yes, -y): With --past: do not ask.
    """
    if not past and (since or model):
        raise typer.BadParameter("--from and --model go with --past")
    require_active(brain)
    if past:
        yield from _catch_up(brain, since, model, yes=yes, made={}, last="")
        return
    note_edits(brain)
    with bar("Deciding what to remember"), _alone():
        outcome = run(brain)
    yield _as_json(outcome)
    if outcome.event is None:
        say("Nothing was promoted." if outcome.left or outcome.problem else "Short-term memory is empty.")
    else:
        say(f"{_count(outcome.exchanges)} filed; statements: {_done(outcome)} (event {outcome.event.id})")
    _say_details(outcome)


@contextmanager
def _alone() -> Iterator[None]:
    """Say it in a sentence where another process promotes at this moment.

    Raises:
        UserError: One does.
    """
    try:
        yield
    except LockedError as error:
        raise UserError("a promotion is running already; `brainiac log --follow` shows when it is done") from error


# --- what no model has read: in place by `promote --past`, into a new brain by `rebuild` -----------------------------


@command(is_reading=True)
def rebuild(brain: Brain, *, into: Path, since: str = "", model: str = "", yes: bool = False) -> Iterator[Any]:
    """Make memory again, into a new brain, from all that was ever said; this brain is only read.

    Args:
        into (--into DIR): The new brain's folder; made when missing.
        since (--from WHEN): Only what was said since {TIMES}.
        model: The model that reads what was said; else that of the settings.
        yes (--yes, -y): Do not ask.
    """
    since = brain.day_of(moment_named(brain, since)[0]) if since else ""  # the new brain has events of its own
    is_made_from(brain, into)  # raises where it cannot be
    require_model(brain, model)
    raw = make_raw(brain, into)
    with closing(Brain(into, clock=brain.clock)) as new:
        settle(new)
        if raw:
            left = f"; {_count(raw.left, 'page')} of what models had made {_were(raw.left)} left out" * bool(raw.left)
            say(f"Took over {_count(raw.pages, 'page')}, with what was said and what you wrote yourself{left}.")
            for path in raw.unreadable:
                say(f"{path} cannot be read and is there as it was")
        last = f"`brainiac diff {shlex.quote(str(brain.root))} {shlex.quote(str(into))}` compares the two."
        yield from _catch_up(new, since, model, yes=yes, made={"raw": asdict(raw) if raw else None}, last=last)


def _catch_up(brain: Brain, since: str, model: str, *, yes: bool, made: dict[str, Any], last: str) -> Iterator[Any]:
    """Say what having a model read the rest would do and cost, ask, have it read, and tell what it did.

    Args:
        brain: The brain.
        since: As a person names a time; "" for all.
        model: Its name; "" for that of the settings.
        yes: Whether nothing is asked.
        made: What was done before, for the JSON.
        last: What is said where it has come to its end; "" for how to see it and take it back.
    """
    note_edits(brain)
    day = brain.day_of(moment_named(brain, since)[0]) if since else ""
    with bar("Looking at what was said"):
        reading = CatchUp(brain, day, model)
    plan, undo, outcome = reading.plan, "", Outcome()
    for line in _plan_lines(plan):
        say(line)
    if plan.exchanges:
        agree("Go on?", is_agreed=yes)
    if plan.exchanges or plan.gone or plan.withheld:  # what cannot be read is noted, so that nobody is told of it again
        with bar("Reading what was said") as progress, _alone():
            started, outcome = reading.run(progress)
            undo = started.id
    yield {**made, "plan": asdict(plan), "undo": undo} | _as_json(outcome)
    if outcome.problem:
        say(f"It ended early: {outcome.problem}")
        say("What was read is kept; the same command goes on where it was.")
    if outcome.event is not None:
        say(f"{_count(outcome.exchanges)} read; statements: {_done(outcome)}.")
    way_back = f"`brainiac digest` shows each; `brainiac undo {undo}` takes all of it back."
    _say_details(outcome, last * (not outcome.problem) if last else way_back * (outcome.event is not None))


def _plan_lines(plan: Past) -> Iterator[str]:
    """Yield what a catch-up would read, what it would cost, and what it leaves."""
    if plan.exchanges:
        days = plan.first_day if plan.first_day == plan.last_day else f"{plan.first_day} to {plan.last_day}"
        yield f"{_count(plan.exchanges)} of {days} {_were(plan.exchanges)} kept without a model."
        calls = "one call" if plan.calls == 1 else f"{plan.calls:,} calls"
        cost = "less than $0.01" if 0 < plan.cost_usd < 0.01 else f"${plan.cost_usd:.2f}"
        yield (
            f"{plan.model} would read them in {calls}: about {plan.input_tokens:,} tokens in and "
            f"{plan.output_tokens:,} out, {cost}; ${plan.left_usd:.2f} of today's budget is left."
        )
        if plan.cost_usd > plan.left_usd:
            yield "What goes beyond it waits: the same command goes on where it was, tomorrow or with a higher budget."
    else:
        yield "A model has read all of it: nothing waits" + (f" from {plan.since} on." if plan.since else ".")
    if plan.withheld:
        yield f"{_count(len(plan.withheld))} more: private, so not for {plan.model}, which is not on this machine."


def _count(number: int, name: str = "exchange") -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _done(outcome: Outcome) -> str:
    """Return how many statements were written, changed, ended and said again."""
    return ", ".join(f"{count} {name.lower()}" for name, count in sorted(outcome.statements.items())) or "none"


# --- what is shown of a run --------------------------------------------------------------------------------------


def _say_details(outcome: Outcome, last: str = "") -> None:
    """Say how the candidates ended, and which words of the person's stay in short-term memory or leave; then `last`.

    Raises:
        Exit: The run ended early.
    """
    ends = Counter(ending.end for ending in outcome.candidates.values())
    if ends:
        say("candidates: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    for event, reason in outcome.left.items():
        say(f"left    {event}: {reason}")
    # a call that failed leaves exchanges and their candidates for one reason, which is shown above
    shown_reasons = set(outcome.left.values())
    rows = [
        (ending.end, outcome.words[name], ending.reason)
        for name, ending in outcome.candidates.items()
        if ending.reason not in shown_reasons
    ]
    rows += [("refused", refusal.statement, refusal.reason) for refusal in outcome.refused]
    for end, statement, reason in dict.fromkeys(rows):
        if reason:
            say(f"{end:7} {statement[:80]!r}: {reason}")
    for text in outcome.kept:
        say(f"kept    {text[:80]!r}: it is yours and stays in short-term memory")
    for text in outcome.filed:
        say(f"filed   {text[:80]!r}: it left short-term memory for the page of the day")
    if last:
        say(last)
    if outcome.problem:
        raise typer.Exit(1)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    """Return a run's outcome for `--json`."""
    plain = {name: getattr(outcome, name) for name in ("exchanges", "statements", "left", "kept", "filed", "problem")}
    return plain | {
        "event": outcome.event.id if outcome.event else None,
        "refused": [refusal.to_json() for refusal in outcome.refused],
        "candidates": {name: ending.to_json() for name, ending in outcome.candidates.items()},
    }
