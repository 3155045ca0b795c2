"""`brainiac service`: this machine's own service manager starts a brain's daemon at each login.

The service is a systemd user unit or a launchd agent. `Unit` has its file and the
manager's commands; nothing is written or started before `install` or `run_command` is called.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ModelError, UserError
from brainiac.llm.catalog import endpoint_of
from brainiac.server.hosts import KEPT_VARIABLES, Edit, read_text
from brainiac.storage.runstate import read_run_state
from brainiac.storage.serving import is_served_here

COMMAND_SECONDS = 60.0
_PID = re.compile(r"\b(?:MainPID=|pid = )([1-9][0-9]*)")

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """What a service manager is to start.

    Attributes:
        name: The name of the service; each brain on this machine has another.
        root: The brain.
        command: With absolute paths, since a service manager has neither the person's folder nor their PATH.
        variables: The environment variables of the process.
        log: The file for what the process prints, where the manager keeps no log.
    """

    name: str
    root: Path
    command: Command
    variables: Mapping[str, str]
    log: Path


@dataclass(frozen=True, slots=True)
class Unit:
    """A service of this machine's service manager.

    Attributes:
        manager: `systemd` or `launchd`.
        file: What describes the service to the manager.
        text: What the file must hold.
        enable: Commands by which the manager reads the file and starts the service at each login.
        start: The command that starts it now.
        remove: Commands that stop and disable it, before the file is removed.
        forget: Commands after the file is removed.
        query: The command that prints its state.
        log: The file or command that shows what the daemon printed.
    """

    manager: str
    file: Path
    text: str
    enable: tuple[Command, ...]
    start: Command
    remove: tuple[Command, ...]
    forget: tuple[Command, ...]
    query: Command
    log: str

    def edit(self) -> Edit:
        """Return the change of the file that `install` makes."""
        return Edit(self.file, read_text(self.file), self.text)


# --- the two managers -----------------------------------------------------------------------------------------------


def start_of(brain: Brain) -> Start:
    """Return what a service manager is to start for a brain.

    Raises:
        UserError: Its path has a character that no service manager's file can hold.
    """
    root, environment = str(brain.root), environment_file(brain)
    if not root.isprintable():
        raise UserError(f"{root!r}: a service cannot name a folder with control characters; rename it")
    slug = re.sub(r"[^A-Za-z0-9]+", "-", brain.root.name).strip("-").lower()[:24] or "brain"
    command = (sys.executable, "-m", "brainiac", "--brain", root, "run", "--env-file", str(environment))
    variables = {name: os.environ[name] for name in KEPT_VARIABLES if os.environ.get(name)}
    # the state folder's name ends with a hash of the brain's real path
    name = f"brainiac-{slug}-{brain.places.state.name[-8:]}"
    return Start(name, brain.root, command, variables, brain.places.state / "service.log")


def environment_file(brain: Brain) -> Path:
    """Return the file with the variables for a service, which gets none of the person's shell."""
    return brain.places.config.with_name("environment")


def unit_of(start: Start, platform: str = sys.platform) -> Unit:
    """Return the service for this system's manager.

    Raises:
        UserError: This system has none that is known here.
    """
    if platform == "darwin":
        return _launchd(start)
    if platform.startswith("linux"):
        return _systemd(start)
    raise UserError(
        f"a service is made for systemd and launchd alone, not for {platform}; have your system start at each login: "
        f"{shlex.join(start.command)} (a task of Windows that an earlier version made is called {start.name})"
    )


def _systemd(start: Start) -> Unit:
    """Return a systemd user unit, which is started again after a crash, at most four times in five minutes."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd/user"
    variables = [f"Environment={_systemd_quoted(f'{key}={value}')}" for key, value in start.variables.items()]
    description = f"Brainiac, the memory in {start.root.as_posix().replace('%', '%%')}"
    # the colon keeps a `$` in a path from being read as a variable
    command = f":{' '.join(map(_systemd_quoted, start.command))}"
    sections = {
        "Unit": [f"Description={description}", "StartLimitIntervalSec=300", "StartLimitBurst=4"],
        "Service": [
            *("Type=exec", f"ExecStart={command}", *variables, "Restart=on-failure", "RestartSec=10"),
            *("TimeoutStopSec=30", "NoNewPrivileges=true"),
        ],
        "Install": ["WantedBy=default.target"],
    }
    text = "\n".join(line for name, lines in sections.items() for line in (f"[{name}]", *lines, ""))
    control = ("systemctl", "--user")
    service = f"{start.name}.service"
    return Unit(
        "systemd",
        folder / service,
        text,
        enable=((*control, "daemon-reload"), (*control, "enable", service)),
        start=(*control, "restart", service),
        remove=((*control, "disable", "--now", service),),
        forget=((*control, "daemon-reload"),),
        query=(*control, "show", service, "--property=ActiveState,UnitFileState,MainPID"),
        log=f"journalctl --user --unit {service}",
    )


def _systemd_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def _launchd(start: Start) -> Unit:
    """Return a launchd agent; launchd reads its folder at each login by itself."""
    values: dict[str, Any] = {
        "Label": start.name,
        "ProgramArguments": list(start.command),
        "EnvironmentVariables": dict(start.variables),
        "RunAtLoad": True,
        # started again after a crash, not after a person stopped it
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ProcessType": "Background",
        "StandardOutPath": str(start.log),
        "StandardErrorPath": str(start.log),
    }
    file = Path.home() / "Library/LaunchAgents" / f"{start.name}.plist"
    domain = f"gui/{os.getuid()}" if hasattr(os, "getuid") else "gui"
    return Unit(
        "launchd",
        file,
        plistlib.dumps(values, sort_keys=False).decode(),
        enable=(),
        start=("launchctl", "bootstrap", domain, str(file)),
        remove=(("launchctl", "bootout", f"{domain}/{start.name}"),),
        forget=(),
        query=("launchctl", "print", f"{domain}/{start.name}"),
        log=str(start.log),
    )


# --- install, uninstall, status -------------------------------------------------------------------------------------


def install(unit: Unit, edit: Edit) -> None:
    """Write the service's file and have the manager start it from the next login on.

    Raises:
        ConflictError: Somebody saved the file meanwhile.
        UserError: The manager is missing or refused; the file is written.
    """
    edit.make()
    for command in unit.enable:
        run_command(command, context=f"{unit.file} is written, but")


def uninstall(unit: Unit) -> None:
    """Stop the service, have the manager forget it, and remove its file."""
    for command in unit.remove:
        _output(command)  # its failure is ignored: the service may have been stopped or removed before
    unit.file.unlink(missing_ok=True)
    for command in unit.forget:
        _output(command)


def run_command(command: Command, context: str) -> None:
    """Run a command of the service manager.

    Args:
        command: The command.
        context: The beginning of the message where it fails.

    Raises:
        UserError: It is missing or failed.
    """
    has_succeeded, output = _output(command)
    if not has_succeeded:
        raise UserError(f"{context} `{shlex.join(command)}` failed: {output}")


def _output(command: Command) -> tuple[bool, str]:
    """Run a command and return whether it succeeded, and what it printed."""
    if shutil.which(command[0]) is None:
        return False, f"there is no {command[0]} on this system"
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    has_succeeded = process.returncode == 0
    return has_succeeded, " ".join((process.stdout if has_succeeded else process.stderr).split())


def state_of(brain: Brain, unit: Unit) -> dict[str, Any]:
    """Return whether the service and the daemon of a brain agree, and what to do, as plain values.

    They are the `manager`; its `file`, `is_installed` if that exists, `is_current` if it has the text that `install`
    would write now; what the manager `reported`, or the beginning of that, or its error; `pid`, the process that it
    started (0 for none), and `daemon`, the one that serves the brain (0 for none); `agrees` if there is nothing to do,
    and a `message`.
    """
    text = read_text(unit.file)
    _, reported = _output(unit.query)
    match = _PID.search(reported)
    pid = int(match[1]) if match else 0
    daemon = read_run_state(brain.database).pid if is_served_here(brain) else 0
    agrees, message = _judged(unit, text, pid, daemon)
    if unit.manager == "launchd":  # it prints pages
        reported = " ".join(reported.split()[:12])
    file = {"manager": unit.manager, "file": str(unit.file), "is_installed": text is not None}
    processes = {"is_current": text == unit.text, "reported": reported, "pid": pid, "daemon": daemon}
    return file | processes | {"agrees": agrees, "message": message}


def _judged(unit: Unit, text: str | None, pid: int, daemon: int) -> tuple[bool, str]:
    """Return whether service and daemon agree, and their state in words.

    Args:
        unit: The service.
        text: The text of its file; None for no file.
        pid: The process that the manager started; 0 for none.
        daemon: The process of the daemon; 0 for none.
    """
    running = f"a daemon runs (process {daemon})" if daemon else "no daemon runs"
    start = f"`{shlex.join(unit.start)}`"
    if text is None and pid:
        return False, f"the file is gone, and {unit.manager} still runs it; `brainiac service uninstall` ends that"
    if text is None:
        return True, f"no service is installed; {running}"
    if text != unit.text:
        return False, f"{running}; the file is not what this version writes; `brainiac service install` shows why"
    if pid and pid == daemon:
        return True, f"the service runs the daemon (process {pid})"
    if daemon:
        return False, f"{running}, which the service did not start; end that one, then {start}"
    if pid:
        return False, f"the service runs (process {pid}), but serves nothing yet; its log: {unit.log}"
    return False, f"the service is installed and does not run; {start} starts it now; its log: {unit.log}"


def missing_variables(brain: Brain) -> list[str]:
    """Return the variables with keys of the settings' models that are set here and not in the service's file."""
    from dotenv import dotenv_values  # only here and in `run --env-file`

    settings, of_service = brain.settings.llm, dotenv_values(environment_file(brain), interpolate=False)
    variables: dict[str, None] = {}
    for model in (settings.model, *settings.models.values()):
        with suppress(ModelError):  # no model, or its key is not set here either
            variables[endpoint_of(model, brain.machine).key_variable] = None
    return [name for name in variables if name in os.environ and not of_service.get(name)]
