"""`brainiac status`, `doctor` and `costs`: how a brain stands; `plugins`: which may run on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli import session
from brainiac.errors import UserError
from brainiac.events import PluginTrusted
from brainiac.health.overview import Problem, host_of, notices, overview, unknown_plugins
from brainiac.server.address import read_address
from brainiac.terminal import say
from brainiac.text.tokens import as_sentence

_COUNTED = {  # what is counted, in the singular and the plural
    "memories": ("memory", "memories"),
    "archived": ("archived page", "archived pages"),
    "prompts": ("prompt", "prompts"),
    "responses": ("answer", "answers"),
    "captures": ("captured note", "captured notes"),
    "exchanges_in_stm": ("exchange in short-term memory", "exchanges in short-term memory"),
    "source_notes": ("note in your own folders (`sources`)", "notes in your own folders (`sources`)"),
}


@session.command(is_reading=True)
def status(brain: Brain) -> Iterator[Any]:
    """Show how the brain stands: daemon, counts, what waits and why, faults, plugins, today's spend."""
    state = overview(brain)
    address = read_address(brain.places.state) if state.daemon["is_running"] else None
    window = address.window if address else ""
    yield asdict(state) | {"window": window}
    say(f"Brain     {state.brain} (device {state.device})")
    if state.active_device not in (None, state.device):
        say(f"Waits     {state.active_device} runs the processes; `brainiac takeover` makes it this device")
    say(f"Daemon    {_daemon(state.daemon)}")
    if window:
        say(f"Window    {window} (`brainiac open` logs a browser in)")
    say(f"Model     {state.model}; spent today ${state.spent_today_usd:.4f} of ${state.budget_usd:.2f}")
    held = [f"{number} {_COUNTED[name][number != 1]}" for name, number in state.counts.items() if number]
    say("Holds     " + (", ".join(held) or "nothing yet; `brainiac ask 'I moved to Portland in June.'` begins"))
    states = {plugin.name: plugin.state for plugin in state.plugins if plugin.state != "shadowed"}
    say("Plugins   " + ", ".join(name if state == "ready" else f"{name} ({state})" for name, state in states.items()))
    session.print_list("Problems", state.problems)
    session.print_list("Notices", state.notices)
    session.print_list("Waiting", session.by_reason({prompt["prompt"]: prompt["reason"] for prompt in state.pending}))
    session.print_list("Not read", state.unread)
    untrusted = [plugin for plugin in state.plugins if plugin.state == "untrusted"]
    session.print_list("Untrusted", [f"{plugin.name}: {plugin.detail}" for plugin in untrusted])
    lines = [f"{session.local_time(f['at'])} {f['plugin']} in {f.get('hook')}: {f.get('error')}" for f in state.faults]
    session.print_list("Faults in the last day", lines)


def _daemon(daemon: dict[str, Any]) -> str:
    """Return the line about the daemon: whether and how it runs, and its problem."""
    if not daemon["is_running"]:
        return str(daemon.get("elsewhere", "not running; start it with `brainiac run`"))
    since = f" since {session.local_time(daemon['since'])}" if daemon["since"] else ""
    how = daemon["watch"].get("mode", "")
    problem = f"; {daemon['problem']}" if daemon["problem"] else ""
    return f"running{since} (process {daemon['pid']}{f', {how}' if how else ''}){problem}"


@session.command()
def doctor(*, fix: bool = False, confirm_deletions: bool = False) -> Iterator[Any]:
    """Look the brain's files over: structure, front matter, uuids, links, journal. Exits 1 when problems remain.

    Args:
        fix: Mend what can be mended without losing anything.
        confirm_deletions: Many notes that vanished at once were meant to be deleted.
    """
    from brainiac.health.doctor import examine, mend  # with it come the requests to models, too slow for `status`

    with session.opened_brain(is_reading=not (fix or confirm_deletions)) as brain:
        if confirm_deletions:
            brain.observed.confirm_deletions()
        problems = list(examine(brain))
        mended: list[Problem] = []
        if fix and problems:
            mended = mend(brain, problems)
            problems = list(examine(brain))
        notice_lines = [str(notice) for notice in notices(brain)]
    found = {
        name: [{"path": p.path, "what": p.what, "todo": p.todo, "is_fixable": p.fix is not None} for p in of_kind]
        for name, of_kind in (("problems", problems), ("mended", mended))
    }
    yield found | {"notices": notice_lines}
    for problem in mended:
        say(f"mended  {problem.path}: {problem.what}")
    for problem in problems:
        say(str(problem))
    say(f"{len(problems)} problem{'s' * (len(problems) > 1)}." if problems else "Nothing is wrong.")
    session.print_list("Notices", notice_lines)
    if problems:
        raise typer.Exit(1)


@session.command(is_reading=True)
def costs(brain: Brain, *, days: Annotated[int, typer.Option(min=1)] = 30) -> Iterator[Any]:
    """Show what models have cost, by day, process and model, and what is left of today's budget.

    Args:
        days: How many days back.
    """
    from brainiac.llm.catalog import Ledger, cost_rows  # with it come the requests to models, too slow for `status`

    rows = cost_rows(brain, brain.midnight(1 - days).date().isoformat())
    answers, background = Ledger(brain).spent_today()
    budget = brain.settings.llm.daily_budget_usd
    total = round(sum(row.cost_usd for row in rows), 8)
    today = {"answers_usd": answers, "background_usd": background, "budget_usd": budget}
    yield {"rows": [asdict(row) for row in rows], "total_usd": total, "today": today}
    columns = ("day", "process", "purpose", "model", "calls", "tokens in", "of them cached", "tokens out", "USD")
    # the columns are the fields of a row, the last with four decimals
    session.print_table(columns, [(*astuple(row)[:-1], f"{row.cost_usd:.4f}") for row in rows])
    say(f"{days} days: ${total:.4f}. Today: ${answers + background:.4f} of ${budget:.2f}.")


# --- plugins ---------------------------------------------------------------------------------------------------------


@session.command(is_reading=True)
def plugins_list(brain: Brain) -> Iterator[Any]:
    """List the plugins and the state of each; none of them is run."""
    plugins, unknown = host_of(brain).survey(), list(unknown_plugins(brain))
    session.print_problems([str(problem) for problem in unknown])
    yield [asdict(plugin) for plugin in plugins]
    rows = [(plugin.name, plugin.source, plugin.state, plugin.detail) for plugin in plugins]
    session.print_table(("plugin", "from", "state", ""), rows)


@session.command(is_shared=True)
def plugins_trust(brain: Brain, name: str, *, yes: session.YesOption = False) -> None:
    """Let a plugin of the brain run on this machine, as its files stand now; any change to them asks again.

    Args:
        name: Of a file plugins/NAME.py in the brain.
    """
    host = host_of(brain)
    fingerprint = host.trust.fingerprint(name)
    say("These files will run with all your rights, exactly as they stand:")
    for file, digest in sorted(fingerprint.items()):
        say(f"  {brain.tree.relative(brain.tree.plugins / file)}  sha256 {digest}")
    if problem := host.problem_of(name):
        say(as_sentence(f"It would not be loaded: {problem}"))
    refusal = f"{name} is not trusted, read its files first"
    session.agree("Have you read them, and trust them?", is_agreed=yes, refusal=refusal)
    host.trust.trust(name, fingerprint)
    brain.record(PluginTrusted(plugin=name, files=fingerprint), by="person")
    say(f"{name} is trusted here; a running `brainiac run` takes it in by itself.")


@session.command(is_shared=True)
def plugins_distrust(brain: Brain, name: str) -> None:
    """Keep a plugin of the brain from running on this machine; a running `brainiac run` ends it by itself.

    Args:
        name: Of a file plugins/NAME.py in the brain.
    """
    if not host_of(brain).trust.distrust(name):
        raise UserError(f"{name} was not trusted here; `brainiac plugins list` shows what is")
    brain.record(PluginTrusted(plugin=name, is_trusted=False), by="person")
    say(f"{name} does not run here any more.")
