"""`brainiac status`: the state of a brain."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from brainiac.cli.session import JsonOption, by_reason, local_time, opened_brain, print_json, print_list
from brainiac.health.overview import overview
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(as_json: JsonOption = False) -> None:
    """Show how the brain stands: daemon, counts, what waits and why, faults, plugins, today's spend."""
    with opened_brain(is_reading=True) as brain:
        shown = overview(brain)
    if as_json:
        print_json(asdict(shown))
        return
    say(f"Brain     {shown.brain} (device {shown.device})")
    if shown.active_device not in (None, shown.device):
        say(f"Waits     {shown.active_device} runs the processes; `brainiac takeover` makes it this device")
    say(f"Daemon    {_daemon(shown.daemon)}")
    say(f"Model     {shown.model}; spent today ${shown.spent_today_usd:.4f} of ${shown.budget_usd:.2f}")
    say("Holds     " + ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in shown.counts.items()))
    states = {plugin.name: plugin.state for plugin in shown.plugins if plugin.state != "shadowed"}
    say("Plugins   " + ", ".join(f"{name}{_unless_ready(state)}" for name, state in states.items()))
    print_list("Problems", shown.problems)
    print_list("Notices", shown.notices)
    print_list("Waiting", by_reason({prompt["prompt"]: prompt["reason"] for prompt in shown.pending}))
    print_list("Not read", shown.unread)
    untrusted = [plugin for plugin in shown.plugins if plugin.state == "untrusted"]
    print_list("Untrusted", [f"{plugin.name}: {plugin.detail}" for plugin in untrusted])
    print_list("Faults in the last day", [_fault(fault) for fault in shown.faults])


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
    return f"{local_time(fault['at'])} {fault['plugin']} in {fault.get('hook')}: {fault.get('error')}"
