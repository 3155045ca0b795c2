"""`brainiac service`: have this machine start the daemon at each login."""

from __future__ import annotations

from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, opened_brain, print_json
from brainiac.terminal import say

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(help="Have this machine start the daemon at each login.", rich_markup_mode=None)
    group.command()(install)
    group.command()(uninstall)
    group.command()(status)
    app.add_typer(group, name="service", no_args_is_help=True)


def install(
    now: Annotated[bool, typer.Option("--now", help="Start it now too.")] = False,
    yes: YesOption = False,
) -> None:
    """Have the daemon start at each login, and again after a crash: shows the file first, and asks.

    It is a systemd user unit, a launchd agent or a task of Windows. Without --now nothing is started before you log
    in again. It is started without the variables of your shell: keys of model providers belong into the file that
    this command names.
    """
    from brainiac.server import service  # it knows models and the pipeline

    with opened_brain(is_reading=True) as brain:
        unit = service.unit_of(service.start_of(brain))
        missing, environment = service.missing_variables(brain), service.environment_file(brain)
    edit = unit.edit()
    for line in edit.lines:
        say(line)
    if edit.lines and not yes and not typer.confirm("Write this?"):
        raise typer.Exit(1)
    service.install(unit, edit)
    say(f"{unit.manager} starts the daemon at each login ({unit.file}).")
    if missing:
        say(f"It does not see your shell's {', '.join(missing)}: write KEY=value lines into {environment}.")
    if now:
        service.run_command(unit.start, f"{unit.file} is installed, but")
        say("It was started. `brainiac service status` tells how it stands.")


def uninstall(yes: YesOption = False) -> None:
    """Stop the service and remove it; the brain stays as it is."""
    from brainiac.server import service  # it knows models and the pipeline

    with opened_brain(is_reading=True) as brain:
        unit = service.unit_of(service.start_of(brain))
    if not yes and not typer.confirm(f"Stop it and remove {unit.file}?"):
        raise typer.Exit(1)
    service.uninstall(unit)
    say(f"{unit.manager} no longer starts the daemon.")


def status(as_json: JsonOption = False) -> None:
    """Show whether the service is installed, and whether it is what runs the daemon."""
    from brainiac.server import service  # it knows models and the pipeline

    with opened_brain(is_reading=True) as brain:
        state = service.state_of(brain, service.unit_of(service.start_of(brain)))
    if as_json:
        print_json(state.to_json())
        return
    say(f"Service   {state.message}")
    say(f"File      {state.file if state.is_installed else 'none'}")
    say(f"Manager   {state.manager}: {state.reported}")
