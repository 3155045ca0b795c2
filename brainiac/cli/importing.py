"""`brainiac import`: what other programs hold of a person's past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_list
from brainiac.imports.intake import SERVICES, Outcome, Report, import_path
from brainiac.terminal import one_line, say, show


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("import")(import_)


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
    of_state = {state: [each for each in outcomes if each.state == state] for state in ("taken", "known", "skipped")}
    verb = "would come in" if is_dry else "came in"
    is_talk = service not in ("notes", "mail", "documents")
    exchanges = f" with {sum(each.taken for each in outcomes)} new exchanges" if is_talk else ""
    say(
        f"{SERVICES[service]}: {len(outcomes)} {'conversations' if is_talk else 'texts'} read; "
        f"{len(of_state['taken'])} {verb}{exchanges}, {len(of_state['known'])} were known, "
        f"{len(of_state['skipped'])} were skipped."
    )
    for heading, state in (("Not whole", "taken"), ("Skipped", "skipped")):
        lines = [f"{one_line(each.title or each.id)}: {each.reason}" for each in of_state[state] if each.reason]
        print_list(heading, lines)


def _print_json(report: Report) -> None:
    """Print what an import came to, a line a conversation: as one text it would take more memory than the import."""
    head = {"import": report.event, "not_read": report.others}
    show(json.dumps(head, ensure_ascii=False).removesuffix("}") + ', "items": [')
    n_rows = sum(map(len, report.outcomes.values()))
    for number, (service, outcome) in enumerate(_rows(report), 1):
        row = {"service": service, "state": outcome.state, **asdict(outcome)}
        show(json.dumps(row, ensure_ascii=False) + ("," if number < n_rows else ""))
    show("]}")


def _rows(report: Report) -> Iterator[tuple[str, Outcome]]:
    """Yield each outcome with its service."""
    for service, outcomes in report.outcomes.items():
        yield from ((service, outcome) for outcome in outcomes)
