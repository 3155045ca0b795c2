"""`brainiac status` and `brainiac doctor`: how a brain stands, and what is wrong with its files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from brainiac.cli.session import JsonOption, local_time, opened_brain, print_json
from brainiac.health.doctor import Problem
from brainiac.terminal import say

SHOWN_AT_MOST = 10


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(status)
    app.command()(doctor)


def status(as_json: JsonOption = False) -> None:
    """Show how the brain stands: daemon, counts, what waits and why, faults, plugins, today's spend."""
    from brainiac.health.overview import overview

    with opened_brain(is_reading=True) as brain:
        found = overview(brain)
    if as_json:
        print_json(found)
        return
    say(f"Brain     {found['brain']} (device {found['device']})")
    if found["active_device"] not in (None, found["device"]):
        say(f"Waits     {found['active_device']} runs the processes; `brainiac takeover` makes it this device")
    say(f"Daemon    {_daemon(found['daemon'])}")
    say(f"Model     {found['model']}; spent today ${found['spent_today_usd']:.4f} of ${found['budget_usd']:.2f}")
    say("Holds     " + ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in found["counts"].items()))
    states = {plugin["name"]: plugin["state"] for plugin in found["plugins"] if plugin["state"] != "shadowed"}
    say("Plugins   " + ", ".join(f"{name}{_unless_ready(state)}" for name, state in states.items()))
    _list("Problems", found["problems"])
    _list("Notices", found["notices"])
    _list("Waiting", [f"{each['prompt']}: {each['reason']}" for each in found["pending"]])
    _list("Not read", found["daemon"].get("passed_over", []))
    untrusted = [plugin for plugin in found["plugins"] if plugin["state"] == "untrusted"]
    _list("Untrusted", [f"{plugin['name']}: {plugin['detail']}" for plugin in untrusted])
    _list("Faults in the last day", [_fault(each) for each in found["faults"]])


def _unless_ready(state: str) -> str:
    return "" if state == "ready" else f" ({state})"


def _daemon(daemon: dict[str, Any]) -> str:
    if not daemon["is_running"]:
        return str(daemon.get("elsewhere", "not running; start it with `brainiac run`"))
    since = f" since {local_time(daemon['since'])}" if daemon["since"] else ""
    how = daemon["watch"].get("mode", "")
    problem = f"; {daemon['problem']}" if daemon["problem"] else ""
    return f"running{since} (process {daemon['pid']}{f', {how}' if how else ''}){problem}"


def _fault(fault: dict[str, Any]) -> str:
    return f"{local_time(fault['at'])} {fault['plugin']} in {fault.get('hook')}: {fault.get('error')}"


def _list(title: str, lines: list[str]) -> None:
    if not lines:
        return
    say(f"{title}:")
    for line in lines[:SHOWN_AT_MOST]:
        say(f"  {line}")
    if len(lines) > SHOWN_AT_MOST:
        say(f"  and {len(lines) - SHOWN_AT_MOST} more (--json shows all)")


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

    from brainiac.health.doctor import examine, mend
    from brainiac.health.readiness import notices

    with opened_brain(is_reading=not (fix or confirm_deletions)) as brain:
        if confirm_deletions:
            brain.observed.confirm_deletions()
        found = list(examine(brain))
        mended: list[Problem] = []
        if fix and found:
            mended = mend(brain, found)
            found = list(examine(brain))
        rot = [item for items in brain.plugins.call("find_stale", brain=brain) for item in items]
        noted = [str(notice) for notice in notices(brain)]
    if as_json:
        plain = {"problems": [_plain(p) for p in found], "mended": [_plain(p) for p in mended]}
        print_json(plain | {"notices": noted, "rot": [asdict(each) for each in rot]})
    else:
        for problem in mended:
            say(f"mended  {problem.path}: {problem.what}")
        for problem in found:
            say(f"{problem.path}: {problem.what}; {problem.todo}")
        say(f"{len(found)} problems." if found else "Nothing is wrong.")
        _list("Notices", noted)
        for kind in dict.fromkeys(each.kind for each in rot):
            lines = [f"{each.path}: {each.what}; {each.todo}" for each in rot if each.kind == kind]
            _list(f"Grows old ({kind}, {len(lines)})", lines)
    if found:
        raise typer.Exit(1)


def _plain(problem: Problem) -> dict[str, Any]:
    return {"path": problem.path, "what": problem.what, "todo": problem.todo, "is_fixable": problem.fix is not None}
