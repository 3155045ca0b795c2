"""`brainiac sources`: folders of a person's own notes that are searched; `brainiac import`: other programs' data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, agree, opened_brain, print_json, print_list, print_table
from brainiac.errors import UserError
from brainiac.formats.authors import SERVICES
from brainiac.imports.intake import Outcome, Report, import_path
from brainiac.storage.sources import Source, find_sources, set_allowed
from brainiac.terminal import one_line, say
from brainiac.terminal import show as print_text
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
    app.command("import")(import_)


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
        source = _source_named(brain, name)
        if source.problem and not source.is_refused:
            raise UserError(f"{name} {source.problem}; {source.todo}")
        if not source.problem:
            say(f"{source.folder} is read already.")
            return
        say(f"Notes in {source.folder} will be searched and cited, and shown to the model that the settings name.")
        say("Nothing there is ever written. A note with `private: true` in its properties stays on this machine.")
        agree("Allow it?", is_agreed=yes, refusal=f"{name} is not allowed")
        set_allowed(brain.places.state, source.folder, is_allowed=True)
        say(f"{_count(brain, replace(source, problem=''))} notes of {source.folder} are searched from now on.")


def refuse(name: NameArgument) -> None:
    """Have a source outside of the brain not be read on this machine any more."""
    with opened_brain(is_shared=True) as brain:
        source = _source_named(brain, name)
        if source.folder.is_relative_to(brain.root):
            raise UserError(f"{name} lies in the brain; take it out of `sources` in system/config.yaml")
        set_allowed(brain.places.state, source.folder, is_allowed=False)
    say(f"{source.folder} is not read on this machine any more.")


def _sources(brain: Brain) -> list[Source]:
    return find_sources(brain.root, brain.settings.sources, brain.places.state)


def _source_named(brain: Brain, name: str) -> Source:
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
    return len(tree.source_notes())


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="What the service sent you, unpacked or not.")],
    is_dry: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would come in; write nothing.")] = False,
    is_private: Annotated[
        bool, typer.Option("--private", help="Never show any of it to a model that is not on this machine.")
    ] = False,
    with_mail: Annotated[bool, typer.Option("--mail", help="Take mailboxes too; they are others' words.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring in your past from other programs; a second import adds only what is new."""
    from brainiac.cli.styling import bar  # rich is heavy

    with opened_brain() as brain, bar("Reading" if is_dry else "Importing") as progress:
        report = import_path(brain, path, is_dry=is_dry, is_private=is_private, with_mail=with_mail, progress=progress)
    if as_json:
        _print_json(report)
        return
    for service, outcomes in report.outcomes.items():
        _print_service(service, outcomes, is_dry=is_dry)
    print_list("Not read, since nothing in them has a known format", [one_line(name) for name in report.others])
    if report.event:
        say("It is found by search from now on, faster once a daemon, or `brainiac reindex`, has indexed it.")
        say("No model was asked; `brainiac promote --past` hands it to one, and says first what that costs.")
        say(f"`brainiac undo {report.event}` takes all of this import back.")


def _print_service(service: str, outcomes: list[Outcome], *, is_dry: bool) -> None:
    """Print what became of the conversations and notes of a service."""
    by_state = {
        state: [outcome for outcome in outcomes if outcome.state == state] for state in ("taken", "known", "skipped")
    }
    verb = "would come in" if is_dry else "came in"
    is_talk = service not in ("notes", "mail", "documents")
    exchanges = f" with {sum(outcome.taken for outcome in outcomes)} new exchanges" if is_talk else ""
    say(
        f"{SERVICES[service]}: {len(outcomes)} {'conversations' if is_talk else 'texts'} read; "
        f"{len(by_state['taken'])} {verb}{exchanges}, {len(by_state['known'])} were known, "
        f"{len(by_state['skipped'])} were skipped."
    )
    for heading, state in (("Not whole", "taken"), ("Skipped", "skipped")):
        lines = [f"{one_line(item.title or item.id)}: {item.reason}" for item in by_state[state] if item.reason]
        print_list(heading, lines)


def _print_json(report: Report) -> None:
    """Print the result of an import as JSON, piece by piece: as one text it would take more memory than the import."""
    head = {"import": report.event, "not_read": report.others}
    print_text(json.dumps(head, ensure_ascii=False).removesuffix("}") + ', "items": [')
    n_rows = sum(map(len, report.outcomes.values()))
    for number, (service, outcome) in enumerate(_rows(report), 1):
        row = {"service": service, "state": outcome.state, **asdict(outcome)}
        print_text(json.dumps(row, ensure_ascii=False) + ("," if number < n_rows else ""))
    print_text("]}")


def _rows(report: Report) -> Iterator[tuple[str, Outcome]]:
    """Yield each outcome with its service."""
    for service, outcomes in report.outcomes.items():
        yield from ((service, outcome) for outcome in outcomes)
