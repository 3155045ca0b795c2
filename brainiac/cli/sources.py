"""`brainiac sources`: the folders of a person's own notes that are searched, and which of them this machine allows."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, opened_brain, print_json, print_table
from brainiac.errors import UserError
from brainiac.storage.sources import Source, find_sources, set_allowed
from brainiac.terminal import say
from brainiac.tree import Tree

NameArgument = Annotated[str, typer.Argument(metavar="FOLDER", help="As `sources` in system/config.yaml has it.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(help="Folders of your own notes that are searched and cited, never written.")
    group.callback(invoke_without_command=True)(_default)
    group.command("list")(show)
    group.command()(allow)
    group.command()(refuse)
    app.add_typer(group, name="sources")


def _default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show()


def show(as_json: JsonOption = False) -> None:
    """List the folders that `sources` names, with their notes, and why one is not read."""
    with opened_brain(is_reading=True) as brain:
        rows = [(source, _count(brain, source)) for source in _sources(brain)]
    if as_json:
        print_json(
            [{"name": s.name, "folder": str(s.folder), "notes": notes, "problem": s.problem} for s, notes in rows]
        )
    elif not rows:
        say("None. Name folders of your own notes under `sources:` in system/config.yaml; docs/obsidian.md has more.")
    else:
        states = [f"{s.problem}; {s.todo}" if s.problem else "read" for s, _ in rows]
        print_table(
            ("folder", "notes", ""), [(s.name, str(n), state) for (s, n), state in zip(rows, states, strict=True)]
        )


def allow(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Let a source outside of the brain be read on this machine; other machines ask for themselves."""
    with opened_brain(is_shared=True) as brain:
        source = _named(brain, name)
        if source.problem and not source.is_refused:
            raise UserError(f"{name} {source.problem}; {source.todo}")
        if not source.problem:
            say(f"{source.folder} is read already.")
            return
        say(f"Notes in {source.folder} will be searched and cited, and shown to the model that the settings name.")
        say("Nothing there is ever written. A note with `private: true` in its properties stays on this machine.")
        if not yes:
            if not sys.stdin.isatty():
                raise UserError(f"{name} is not allowed: nobody is there to ask; add --yes")
            typer.confirm("Allow it?", abort=True)
        set_allowed(brain.places.state, source.folder, is_allowed=True)
        say(f"{_count(brain, replace(source, problem=''))} notes of {source.folder} are searched from now on.")


def refuse(name: NameArgument) -> None:
    """Have a source outside of the brain not be read on this machine any more."""
    with opened_brain(is_shared=True) as brain:
        source = _named(brain, name)
        if source.folder.is_relative_to(brain.root):
            raise UserError(f"{name} lies in the brain; take it out of `sources` in system/config.yaml")
        set_allowed(brain.places.state, source.folder, is_allowed=False)
    say(f"{source.folder} is not read on this machine any more.")


def _sources(brain: Brain) -> list[Source]:
    return find_sources(brain.root, brain.settings.sources, brain.places.state)


def _named(brain: Brain, name: str) -> Source:
    """Return the source of a name, as the settings have it or as the path that it means."""
    real = os.path.realpath(os.path.expanduser(name))
    for source in _sources(brain):
        if name == source.name or real == str(source.folder):
            return source
    raise UserError(f"`sources` in system/config.yaml does not name {name}; add it there first")


def _count(brain: Brain, source: Source) -> int:
    """Return how many notes of a source are read; 0 for one that is not."""
    if source.problem:
        return 0
    tree = Tree(brain.root, brain.settings.layout(), [source.folder])
    return sum(1 for _ in tree.source_notes())
