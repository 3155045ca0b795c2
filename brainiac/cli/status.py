"""`brainiac status`, `doctor` and `costs`: how a brain stands; `plugins`: which may run on this machine."""

from __future__ import annotations

from dataclasses import asdict, astuple
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import (
    JsonOption,
    agree,
    by_reason,
    local_time,
    opened_brain,
    print_json,
    print_list,
    print_problems,
    print_table,
)
from brainiac.errors import UserError
from brainiac.events import PluginDistrusted, PluginTrusted
from brainiac.health.overview import Problem, notices, overview, unknown_plugins
from brainiac.host.plugins import PluginHost
from brainiac.host.trust import bundled_path
from brainiac.storage.serving import is_running
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


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(status)
    app.command()(doctor)
    app.command("costs")(costs)
    group = typer.Typer(help="Which plugins there are, and which of the brain's own may run here.")
    group.callback(invoke_without_command=True)(_list_without_subcommand)
    group.command("list")(list_plugins)
    group.command()(trust)
    group.command()(distrust)
    group.command()(reload)
    app.add_typer(group, name="plugins")


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
    held = [f"{number} {_COUNTED[name][number != 1]}" for name, number in state.counts.items() if number]
    say("Holds     " + (", ".join(held) or "nothing yet; `brainiac ask 'I moved to Portland in June.'` begins"))
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
        say(f"{len(problems)} problem{'s' * (len(problems) > 1)}." if problems else "Nothing is wrong.")
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
    # the columns are the fields of a row, the last with four decimals
    print_table(columns, [(*astuple(row)[:-1], f"{row.cost_usd:.4f}") for row in rows])
    say(f"{days} days: ${total:.4f}. Today: ${answers + background:.4f} of ${budget:.2f}.")


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of a file plugins/NAME.py in the brain.")]


# --- plugins ---------------------------------------------------------------------------------------------------------


def _list_without_subcommand(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_plugins()


def list_plugins(as_json: JsonOption = False) -> None:
    """List the plugins and the state of each; none of them is run."""
    with opened_brain(is_reading=True) as brain:
        plugins, unknown = host_of(brain).survey(), list(unknown_plugins(brain))
    if as_json:
        print_json([asdict(plugin) for plugin in plugins])
    else:
        rows = [(plugin.name, plugin.source, plugin.state, plugin.detail) for plugin in plugins]
        print_table(("plugin", "from", "state", ""), rows)
    print_problems([str(problem) for problem in unknown])


def trust(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Let a plugin of the brain run on this machine, as its files stand now; any change to them asks again."""
    with opened_brain(is_shared=True) as brain:
        host = host_of(brain)
        fingerprint = host.trust.fingerprint(name)
        say("These files will run with all your rights, exactly as they stand:")
        for file, digest in sorted(fingerprint.items()):
            say(f"  {brain.tree.relative(brain.tree.plugins / file)}  sha256 {digest}")
        if problem := host.problem_of(name):
            say(as_sentence(f"It would not be loaded: {problem}"))
        refusal = f"{name} is not trusted, read its files first"
        agree("Have you read them, and trust them?", is_agreed=yes, refusal=refusal)
        host.trust.trust(name, fingerprint)
        brain.record(PluginTrusted(plugin=name, files=fingerprint), by="person")
    say(f"{name} is trusted here; a running `brainiac run` takes it in by itself.")


def distrust(name: NameArgument) -> None:
    """Keep a plugin of the brain from running on this machine; a running `brainiac run` ends it by itself."""
    with opened_brain(is_shared=True) as brain:
        if not host_of(brain).trust.distrust(name):
            raise UserError(f"{name} was not trusted here; `brainiac plugins list` shows what is")
        brain.record(PluginDistrusted(plugin=name), by="person")
    say(f"{name} does not run here any more.")


def reload() -> None:
    """Have a running `brainiac run` look the plugins over now; it needs no restart."""
    with opened_brain(is_shared=True) as brain:
        host_of(brain).trust.renew()  # the daemon watches the record of trust
        is_served = is_running(brain)
    say("The daemon takes in what changed." if is_served else "No daemon is running; each command loads plugins anew.")
    list_plugins()


def host_of(brain: Brain) -> PluginHost:
    """Return the host of a brain's plugins with none of them loaded."""
    return PluginHost(brain, bundled_path("plugins"))
