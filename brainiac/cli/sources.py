"""`brainiac sources`: folders of a person's own notes that are searched; `brainiac import`: other programs' data."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, YesOption, agree, command, opened_brain, print_list, print_table
from brainiac.errors import UserError
from brainiac.formats.authors import SERVICES
from brainiac.imports.intake import Outcome, Report, import_path
from brainiac.storage.sources import Source, find_sources, set_allowed
from brainiac.terminal import one_line, say
from brainiac.terminal import show as print_text
from brainiac.tree import Tree

NameArgument = Annotated[str, typer.Argument(metavar="FOLDER", help="As `sources` in system/config.yaml has it.")]


@command(is_reading=True)
def sources_list(brain: Brain) -> Iterator[Any]:
    """List the folders that `sources` names, with their notes, and why one is not read."""
    rows = [(source, _count(brain, source)) for source in _sources(brain)]
    yield [{"name": s.name, "folder": str(s.folder), "notes": notes, "problem": s.problem} for s, notes in rows]
    if not rows:
        say("None. Name folders of your own notes under `sources:` in system/config.yaml; docs/obsidian.md has more.")
        return
    print_table(
        ("folder", "notes", ""),
        [(s.name, str(notes), f"{s.problem}; {s.todo}" if s.problem else "read") for s, notes in rows],
    )


@command(is_shared=True)
def sources_allow(brain: Brain, name: NameArgument, yes: YesOption = False) -> None:
    """Let a source outside of the brain be read on this machine; other machines ask for themselves."""
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


@command(is_shared=True)
def sources_refuse(brain: Brain, name: NameArgument) -> None:
    """Have a source outside of the brain not be read on this machine any more."""
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
    tree = Tree(brain.root, brain.settings.layout(), [source.folder])
    return 0 if source.problem else len(tree.source_notes())


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
    counts = Counter(outcome.state for outcome in outcomes)
    verb = "would come in" if is_dry else "came in"
    is_talk = service not in ("notes", "mail", "documents")
    exchanges = f" with {sum(outcome.taken for outcome in outcomes)} new exchanges" if is_talk else ""
    say(
        f"{SERVICES[service]}: {len(outcomes)} {'conversations' if is_talk else 'texts'} read; {counts['taken']} "
        f"{verb}{exchanges}, {counts['known']} were known, {counts['skipped']} were skipped."
    )
    for heading, state in (("Not whole", "taken"), ("Skipped", "skipped")):
        of_state = [item for item in outcomes if item.state == state and item.reason]
        print_list(heading, [f"{one_line(item.title or item.id)}: {item.reason}" for item in of_state])


def _print_json(report: Report) -> None:
    """Print the result of an import as JSON, piece by piece: as one text it would take more memory than the import."""
    head = {"import": report.event, "not_read": report.others}
    print_text(json.dumps(head, ensure_ascii=False).removesuffix("}") + ', "items": [')
    comma = ""
    for service, outcomes in report.outcomes.items():
        for outcome in outcomes:
            row = {"service": service, "state": outcome.state, **asdict(outcome)}
            print_text(comma + json.dumps(row, ensure_ascii=False))
            comma = ","
    print_text("]}")
