"""`brainiac promote`: have memory consolidated now instead of when it is quiet, or what was said without a model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, agree, moment_named, note_edits, opened_brain, print_json
from brainiac.errors import LockedError, UserError
from brainiac.history.devices import require_active
from brainiac.history.rebuild import check_folder, is_rebuilt_from, make_raw, settle
from brainiac.terminal import say
from brainiac.text.dates import TIMES

from .past import Past, catch_up, plan_past, require_model
from .run import Outcome
from .run import promote as run

T = TypeVar("T")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(promote)
    app.command()(rebuild)


def promote(
    past: Annotated[
        bool, typer.Option("--past", help="Have a model read the exchanges that were kept without one until now.")
    ] = False,
    since: Annotated[str, typer.Option("--from", metavar="WHEN", help=f"With --past: only those since {TIMES}.")] = "",
    model: Annotated[str, typer.Option(help="With --past: the model that reads them; else that of the settings.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --past: do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Move what was said from short-term into long-term memory now."""
    if past:
        _catch_up(since, model, is_agreed=yes, as_json=as_json)
        return
    if since or model:
        raise typer.BadParameter("--from and --model go with --past")
    from brainiac.cli.styling import bar  # rich is heavy

    with opened_brain() as brain, bar("Deciding what to remember") as progress:
        require_active(brain)
        note_edits(brain)
        outcome = _unless_running(lambda: run(brain, progress=progress))
    if as_json:
        print_json(_as_json(outcome))
    elif outcome.event is None:
        say("Nothing was promoted." if outcome.left or outcome.problem else "Short-term memory is empty.")
    else:
        say(f"{_count(outcome.exchanges)} filed; statements: {_done(outcome)} (event {outcome.event.id})")
    if not as_json:
        for line in _details(outcome):
            say(line)
    if outcome.problem:
        raise typer.Exit(1)


def _unless_running(action: Callable[[], T]) -> T:
    """Run an action that takes the lock of promotions, and return its result.

    Raises:
        UserError: Another process promotes at this moment.
    """
    try:
        return action()
    except LockedError as error:
        raise UserError("a promotion is running already; `brainiac log --follow` shows when it is done") from error


# --- `promote --past` --------------------------------------------------------------------------------------------


def _catch_up(since: str, model: str, *, is_agreed: bool, as_json: bool) -> None:
    """Say what a catch-up would do and cost, ask, and do it."""
    with opened_brain() as brain:
        require_active(brain)
        note_edits(brain)
        day = brain.day_of(moment_named(brain, since)[0]) if since else ""
        plan, undo, outcome = _read_past(brain, day, model, is_agreed=is_agreed, as_json=as_json)
    if as_json:
        print_json({"plan": asdict(plan), "undo": undo} | _as_json(outcome))
    elif outcome.event is not None:
        say(f"`brainiac digest` shows each; `brainiac undo {undo}` takes all of it back.")
    if outcome.problem:
        raise typer.Exit(1)


def _read_past(brain: Brain, since: str, model: str, *, is_agreed: bool, as_json: bool) -> tuple[Past, str, Outcome]:
    """Plan a catch-up, ask, and do it; return the plan, the id by which all of it is undone, and what was done."""
    from brainiac.cli.styling import bar  # rich is heavy

    with bar("Looking at what was said"):
        plan = plan_past(brain, since, model)
    if not as_json:
        for line in _plan_lines(plan):
            say(line)
    if not plan.exchanges:
        return plan, "", Outcome(None)
    agree("Go on?", is_agreed=is_agreed)
    with bar("Reading what was said") as progress:
        started, outcome = _unless_running(lambda: catch_up(brain, plan, progress=progress))
    if not as_json:
        for line in _read_lines(outcome):
            say(line)
    return plan, started.id, outcome


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


def _read_lines(outcome: Outcome) -> Iterator[str]:
    """Yield what a catch-up did, and what it left."""
    if outcome.problem:
        yield f"It ended early: {outcome.problem}"
        yield "What was read is kept; the same command goes on where it was."
    if outcome.event is not None:
        yield f"{_count(outcome.exchanges)} read; statements: {_done(outcome)}."
    yield from _details(outcome)


def _count(number: int, name: str = "exchange") -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _done(outcome: Outcome) -> str:
    """Return how many statements were written, changed, ended and said again."""
    return ", ".join(f"{count} {name.lower()}" for name, count in sorted(outcome.statements.items())) or "none"


# --- `rebuild` ---------------------------------------------------------------------------------------------------


def rebuild(
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="The new brain's folder; made when missing.")],
    model: Annotated[str, typer.Option(help="The model that reads what was said; else that of the settings.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make memory again, into a new brain, from all that was ever said; this brain is only read."""
    with opened_brain(is_reading=True) as brain:
        # a rebuild that was interrupted goes on with the brain that it made
        is_begun = is_rebuilt_from(into, brain)
        if not is_begun:
            check_folder(into, brain)
        require_model(brain, model)
        raw = None if is_begun else make_raw(brain, into)
    with closing(Brain(into, clock=brain.clock)) as new:
        settle(new)
        if raw and not as_json:
            left = (
                f"; {_count(raw.left, 'page')} of what models had made {_were(raw.left)} left out" if raw.left else ""
            )
            say(f"Took over {_count(raw.pages, 'page')}, with what was said and what you wrote yourself{left}.")
            for path in raw.unreadable:
                say(f"{path} cannot be read and is there as it was")
        plan, _, outcome = _read_past(new, since="", model=model, is_agreed=yes, as_json=as_json)
    if as_json:
        print_json({"raw": asdict(raw) if raw else None, "plan": asdict(plan)} | _as_json(outcome))
    elif not outcome.problem:
        say(f"`brainiac diff {shlex.quote(str(brain.root))} {shlex.quote(str(into))}` compares the two.")
    if outcome.problem:
        raise typer.Exit(1)


# --- what is shown of a run --------------------------------------------------------------------------------------


def _details(outcome: Outcome) -> Iterator[str]:
    """Yield lines on how the candidates ended, and on the person's words that stay in short-term memory or leave."""
    ends = Counter(ending.end for ending in outcome.candidates.values())
    if ends:
        yield "candidates: " + ", ".join(f"{count} {end}" for end, count in ends.most_common())
    for event, reason in outcome.left.items():
        yield f"left    {event}: {reason}"
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
