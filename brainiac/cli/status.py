"""`brainiac status`, `doctor` and `costs`: how a brain stands, what is wrong with its files, what models cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from brainiac.cli.session import JsonOption, by_reason, local_time, opened_brain, print_json, print_list, print_table
from brainiac.health.overview import Problem, notices, overview
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(status)
    app.command()(doctor)
    app.command("costs")(costs)


def status(as_json: JsonOption = False) -> None:
    """Show how the brain stands: daemon, counts, what waits and why, faults, plugins, today's spend."""
    with opened_brain(is_reading=True) as brain:
        state = overview(brain)
    if as_json:
        print_json(asdict(state))
        return
    say(f"Brain     {state.brain} (device {state.device})")
    if state.active_device not in (None, state.device):
        say(f"Waits     {state.active_device} runs the processes; `brainiac takeover` makes it this device")
    say(f"Daemon    {_daemon(state.daemon)}")
    say(f"Model     {state.model}; spent today ${state.spent_today_usd:.4f} of ${state.budget_usd:.2f}")
    say("Holds     " + ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in state.counts.items()))
    states = {plugin.name: plugin.state for plugin in state.plugins if plugin.state != "shadowed"}
    say("Plugins   " + ", ".join(f"{name}{_unless_ready(state)}" for name, state in states.items()))
    print_list("Problems", state.problems)
    print_list("Notices", state.notices)
    print_list("Waiting", by_reason({prompt["prompt"]: prompt["reason"] for prompt in state.pending}))
    print_list("Not read", state.unread)
    untrusted = [plugin for plugin in state.plugins if plugin.state == "untrusted"]
    print_list("Untrusted", [f"{plugin.name}: {plugin.detail}" for plugin in untrusted])
    print_list("Faults in the last day", [_fault(fault) for fault in state.faults])


def _unless_ready(state: str) -> str:
    return "" if state == "ready" else f" ({state})"


def _daemon(daemon: dict[str, Any]) -> str:
    """Return the line about the daemon: whether and how it runs, and its problem."""
    if not daemon["is_running"]:
        return str(daemon.get("elsewhere", "not running; start it with `brainiac run`"))
    since = f" since {local_time(daemon['since'])}" if daemon["since"] else ""
    how = daemon["watch"].get("mode", "")
    problem = f"; {daemon['problem']}" if daemon["problem"] else ""
    return f"running{since} (process {daemon['pid']}{f', {how}' if how else ''}){problem}"


def _fault(fault: dict[str, Any]) -> str:
    """Return the line about a fault of a plugin."""
    return f"{local_time(fault['at'])} {fault['plugin']} in {fault.get('hook')}: {fault.get('error')}"


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended without losing anything.")] = False,
    confirm_deletions: Annotated[
        bool, typer.Option("--confirm-deletions", help="Many notes that vanished at once were meant to be deleted.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look the brain's files over: structure, front matter, uuids, links, journal. Exits 1 when problems remain.

    What grows old is named too: statements whose successor is gone, pages nobody links to or cites, overgrown folders.
    """
    from brainiac.health.doctor import examine, mend  # with it come the requests to models, too slow for `status`

    with opened_brain(is_reading=not (fix or confirm_deletions)) as brain:
        if confirm_deletions:
            brain.observed.confirm_deletions()
        problems = list(examine(brain))
        mended: list[Problem] = []
        if fix and problems:
            mended = mend(brain, problems)
            problems = list(examine(brain))
        stale = [item for items in brain.plugins.call("find_stale", brain=brain) for item in items]
        notice_lines = [str(notice) for notice in notices(brain)]
    if as_json:
        plain = {"problems": [_plain(p) for p in problems], "mended": [_plain(p) for p in mended]}
        print_json(plain | {"notices": notice_lines, "rot": [asdict(item) for item in stale]})
    else:
        for problem in mended:
            say(f"mended  {problem.path}: {problem.what}")
        for problem in problems:
            say(f"{problem.path}: {problem.what}; {problem.todo}")
        say(f"{len(problems)} problems." if problems else "Nothing is wrong.")
        print_list("Notices", notice_lines)
        for kind in dict.fromkeys(item.kind for item in stale):
            lines = [f"{item.path}: {item.what}; {item.todo}" for item in stale if item.kind == kind]
            print_list(f"Grows old ({kind}, {len(lines)})", lines)
    if problems:
        raise typer.Exit(1)


def _plain(problem: Problem) -> dict[str, Any]:
    """Return a problem for `--json`."""
    return {"path": problem.path, "what": problem.what, "todo": problem.todo, "is_fixable": problem.fix is not None}


def costs(
    days: Annotated[int, typer.Option(help="How many days back.", min=1)] = 30,
    as_json: JsonOption = False,
) -> None:
    """Show what models have cost, by day, process and model, and what is left of today's budget."""
    from brainiac.llm.costs import Ledger, cost_rows  # with it come the requests to models, too slow for `status`

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
