"""`brainiac doctor`: what is wrong with a brain's files, and what grows old in them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json, print_list
from brainiac.health.doctor import examine, mend
from brainiac.health.overview import Problem, notices
from brainiac.terminal import say


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(doctor)


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

    with opened_brain(is_reading=not (fix or confirm_deletions)) as brain:
        if confirm_deletions:
            brain.observed.confirm_deletions()
        problems = list(examine(brain))
        mended: list[Problem] = []
        if fix and problems:
            mended = mend(brain, problems)
            problems = list(examine(brain))
        stale = [item for items in brain.plugins.call("find_stale", brain=brain) for item in items]
        shown = [str(notice) for notice in notices(brain)]
    if as_json:
        plain = {"problems": [_plain(p) for p in problems], "mended": [_plain(p) for p in mended]}
        print_json(plain | {"notices": shown, "rot": [asdict(item) for item in stale]})
    else:
        for problem in mended:
            say(f"mended  {problem.path}: {problem.what}")
        for problem in problems:
            say(f"{problem.path}: {problem.what}; {problem.todo}")
        say(f"{len(problems)} problems." if problems else "Nothing is wrong.")
        print_list("Notices", shown)
        for kind in dict.fromkeys(item.kind for item in stale):
            lines = [f"{item.path}: {item.what}; {item.todo}" for item in stale if item.kind == kind]
            print_list(f"Grows old ({kind}, {len(lines)})", lines)
    if problems:
        raise typer.Exit(1)


def _plain(problem: Problem) -> dict[str, Any]:
    return {"path": problem.path, "what": problem.what, "todo": problem.todo, "is_fixable": problem.fix is not None}
