"""What starts us by itself on this machine: assistants that speak MCP, and the service manager at each login.

Our server is added to an assistant's own settings file. The service is a systemd user unit or a launchd agent: `Unit`
has its file and the manager's commands; nothing is written or started before `install` or `run_command` is called.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from brainiac.brain import Brain
from brainiac.errors import ConflictError, ModelError, UserError
from brainiac.llm.catalog import endpoint_of

NAME = "brainiac"
START_SECONDS = 60.0  # the first start on a busy machine takes ten
COMMAND_SECONDS = 60.0
KEPT_VARIABLES = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A program that speaks MCP.

    Attributes:
        name: As the command names it.
        file: Its own settings file, for all of this user's projects.
        key: The key of the file under which it has its servers.
        next_step: What the person has to do then, as the end of a sentence.
    """

    name: str
    file: Path
    key: str
    next_step: str


def hosts() -> dict[str, Host]:
    """Return the programs that are known, by name, with their files on this system."""
    home = Path.home()
    roaming = Path(os.environ.get("APPDATA") or home / "AppData/Roaming")
    folder = {"darwin": home / "Library/Application Support", "win32": roaming}.get(
        sys.platform, Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    )
    programs = (
        Host("claude-desktop", folder / "Claude/claude_desktop_config.json", "mcpServers", "quit Claude and start it"),
        Host("claude-code", home / ".claude.json", "mcpServers", "start a new session; `/mcp` shows it"),
        Host("cursor", home / ".cursor/mcp.json", "mcpServers", "switch it on in Cursor's settings under MCP"),
        Host("vscode", folder / "Code/User/mcp.json", "servers", "run “MCP: List Servers” and start it"),
        Host("codex", home / ".codex/config.toml", "mcp_servers", "start a new session; `/mcp` shows it"),
    )
    return {host.name: host for host in programs}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of another program's settings file, not yet made.

    Attributes:
        file: The file.
        before: Its present text; None for no file.
        after: Its text after the change.
    """

    file: Path
    before: str | None
    after: str

    @property
    def lines(self) -> list[str]:
        """The change, for a person."""
        name = str(self.file)
        before, after = (self.before or "").splitlines(), self.after.splitlines()
        return list(difflib.unified_diff(before, after, name, name, n=2, lineterm=""))

    def make(self) -> None:
        """Write the file.

        Raises:
            ConflictError: Somebody saved it meanwhile.
        """
        file = self.file.resolve()  # a link stays one
        if read_text(file) != self.before:
            raise ConflictError([str(file)])
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f"{file.name}.{os.getpid()}.new")
        aside.unlink(missing_ok=True)
        # others may not read it for a moment either: the settings of an assistant may hold keys
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as copy:
            copy.write(self.after)
        if self.before is not None:
            aside.chmod(file.stat().st_mode & 0o777)
        os.replace(aside, file)


def server_entry(root: Path) -> dict[str, Any]:
    """Return how a host starts our server: by absolute paths, since it has another folder and PATH than the person."""
    variables, arguments = _kept_variables(), ["-m", "brainiac", "--brain", str(root), "mcp"]
    return {"command": sys.executable, "args": arguments} | ({"env": variables} if variables else {})


def check_start(entry: dict[str, Any]) -> None:
    """Start our server as a host does, with nothing of this shell but what hosts hand on, and ask it for its tools.

    Raises:
        UserError: It does not start, or does not answer in time; the message has what it printed last.
    """
    # it takes a second, and no other command needs it
    from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client

    async def ask_for_tools() -> None:
        server = StdioServerParameters(**entry, cwd=Path.home())
        async with stdio_client(server, printed) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            await session.list_tools()

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        try:
            asyncio.run(asyncio.wait_for(ask_for_tools(), START_SECONDS))
        except (OSError, MCPError, ExceptionGroup) as error:
            printed.seek(0)
            lines = printed.read().split("\n")
            late = f"no answer within {START_SECONDS:.0f} seconds" if isinstance(error, TimeoutError) else ""
            reason = next((line.strip() for line in reversed(lines) if line.strip()), "") or late or str(error)
            command = shlex.join((entry["command"], *entry["args"]))
            what = "the server does not start as an assistant would start it"
            raise UserError(f"{what} ({reason}); nothing was written. It is: {command}") from error


def plan(host: Host, root: Path) -> Edit:
    """Return the change that adds our server to a host's file; everything else in it stays.

    Raises:
        UserError: The file is no JSON or TOML; the message says what to add by hand.
    """
    entry, before = server_entry(root), read_text(host.file)
    after = _in_toml(host, before or "", entry) if host.file.suffix == ".toml" else _in_json(host, before or "", entry)
    return Edit(host.file, before, after)


def read_text(file: Path) -> str | None:
    """Return the text of a settings file; None where there is none.

    Raises:
        UserError: It is no UTF-8.
    """
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: is no UTF-8 text; nothing was changed") from error


def _in_json(host: Host, text: str, entry: dict[str, Any]) -> str:
    """Return a JSON file's text with our server in it."""
    entry = {"type": "stdio", **entry} if host.name in ("vscode", "claude-code") else entry
    try:
        values = json.loads(text) if text.strip() else {}
        servers = values.setdefault(host.key, {})
        servers[NAME] = entry
    except (ValueError, AttributeError, TypeError) as error:
        by_hand = json.dumps({host.key: {NAME: entry}})
        what = f"{host.file}: is no plain JSON (comments?); nothing was changed"
        raise UserError(f"{what}. Add by hand: {by_hand}") from error
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _in_toml(host: Host, text: str, entry: dict[str, Any]) -> str:
    """Return a TOML file's text with our server as a table at its end; no line of it is changed."""
    # texts and lists of JSON are texts and lists of TOML
    table = [f"[{host.key}.{NAME}]", f"command = {json.dumps(entry['command'])}", f"args = {json.dumps(entry['args'])}"]
    if "env" in entry:
        variables = (f"{key} = {json.dumps(value)}" for key, value in entry["env"].items())
        table += ["", f"[{host.key}.{NAME}.env]", *variables]
    addition = "\n".join(table) + "\n"
    try:
        former = tomllib.loads(text).get(host.key, {}).get(NAME)
    except (tomllib.TOMLDecodeError, AttributeError) as error:
        raise UserError(f"{host.file}: cannot be read; nothing was changed. Add by hand: {addition}") from error
    if former == entry:
        return text
    if former is not None:
        raise UserError(f"{host.file}: has another [{host.key}.{NAME}]; put this in its place: {addition}")
    return text + ("\n" if text and not text.endswith("\n") else "") + ("\n" if text else "") + addition


# --- the service ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """A service of this machine's service manager.

    Attributes:
        manager: `systemd` or `launchd`.
        file: What describes the service to the manager.
        text: What the file must hold.
        enable: Commands by which the manager reads the files, and starts the service at each login.
        start: The command that starts it now.
        remove: The command that stops and disables it, before the file is removed.
        look: The command that prints its state, for a person.
        log: The file or command that shows what the daemon printed.
    """

    manager: str
    file: Path
    text: str
    enable: tuple[Command, ...]
    start: Command
    remove: Command
    look: Command
    log: str

    def edit(self) -> Edit:
        """Return the change of the file that `install` makes."""
        return Edit(self.file, read_text(self.file), self.text)


def unit_of(brain: Brain, platform: str = sys.platform) -> Unit:
    """Return the service of a brain for this system's manager.

    Raises:
        UserError: This system has none that is known here, or no manager's file can hold the brain's path.
    """
    root, environment = str(brain.root), environment_file(brain)
    if not root.isprintable():
        raise UserError(f"{root!r}: a service cannot name a folder with control characters; rename it")
    slug = re.sub(r"[^A-Za-z0-9]+", "-", brain.root.name).strip("-").lower()[:24] or "brain"
    # with absolute paths, since a manager has neither the person's folder nor their PATH
    command = (sys.executable, "-m", "brainiac", "--brain", root, "run", "--env-file", str(environment))
    # each brain on this machine has another: the state folder's name ends with a hash of the brain's real path
    name = f"brainiac-{slug}-{brain.places.state.name[-8:]}"
    if platform == "darwin":
        return _launchd(name, command, brain.places.state / "service.log")
    if platform.startswith("linux"):
        return _systemd(name, command, brain.root)
    raise UserError(
        f"a service is made for systemd and launchd alone, not for {platform}; have your system start at each login: "
        f"{shlex.join(command)} (a task of Windows that an earlier version made is called {name})"
    )


def _kept_variables() -> dict[str, str]:
    """Return the variables that what starts us must hand on, as they are here."""
    return {name: os.environ[name] for name in KEPT_VARIABLES if os.environ.get(name)}


def environment_file(brain: Brain) -> Path:
    """Return the file with the variables for a service, which gets none of the person's shell."""
    return brain.places.config.with_name("environment")


def _systemd(name: str, command: Command, root: Path) -> Unit:
    """Return a systemd user unit, which is started again after a crash, at most four times in five minutes."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd/user"
    variables = [f"Environment={_systemd_quoted(f'{key}={value}')}" for key, value in _kept_variables().items()]
    description = f"Brainiac, the memory in {root.as_posix().replace('%', '%%')}"
    # the colon keeps a `$` in a path from being read as a variable
    line = f":{' '.join(map(_systemd_quoted, command))}"
    sections = {
        "Unit": [f"Description={description}", "StartLimitIntervalSec=300", "StartLimitBurst=4"],
        "Service": [
            *("Type=exec", f"ExecStart={line}", *variables, "Restart=on-failure", "RestartSec=10"),
            *("TimeoutStopSec=30", "NoNewPrivileges=true"),
        ],
        "Install": ["WantedBy=default.target"],
    }
    text = "\n".join(line for head, lines in sections.items() for line in (f"[{head}]", *lines, ""))
    control = ("systemctl", "--user")
    service = f"{name}.service"
    return Unit(
        "systemd",
        folder / service,
        text,
        enable=((*control, "daemon-reload"), (*control, "enable", service)),
        start=(*control, "restart", service),
        remove=(*control, "disable", "--now", service),
        look=(*control, "status", service),
        log=f"journalctl --user --unit {service}",
    )


def _systemd_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def _launchd(name: str, command: Command, log: Path) -> Unit:
    """Return a launchd agent; launchd reads its folder at each login by itself."""
    values = {
        "Label": name,
        "ProgramArguments": list(command),
        "EnvironmentVariables": _kept_variables(),
        "RunAtLoad": True,
        # started again after a crash, not after a person stopped it
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ProcessType": "Background",
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    file = Path.home() / "Library/LaunchAgents" / f"{name}.plist"
    domain = f"gui/{os.getuid()}" if hasattr(os, "getuid") else "gui"
    return Unit(
        "launchd",
        file,
        plistlib.dumps(values, sort_keys=False).decode(),
        enable=(),
        start=("launchctl", "bootstrap", domain, str(file)),
        remove=("launchctl", "bootout", f"{domain}/{name}"),
        look=("launchctl", "print", f"{domain}/{name}"),
        log=str(log),
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
    _error_of(unit.remove)  # it may have been stopped or removed before
    unit.file.unlink(missing_ok=True)
    for command in unit.enable[:1]:  # the manager reads its files again
        _error_of(command)


def run_command(command: Command, context: str) -> None:
    """Run a command of the service manager.

    Args:
        command: The command.
        context: The beginning of the message where it fails.

    Raises:
        UserError: It is missing or failed.
    """
    if error := _error_of(command):
        raise UserError(f"{context} `{shlex.join(command)}` failed: {error}")


def _error_of(command: Command) -> str:
    """Run a command and return why it failed; "" where it did not."""
    if shutil.which(command[0]) is None:
        return f"there is no {command[0]} on this system"
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return " ".join(process.stderr.split()) or "it says nothing" if process.returncode else ""


def missing_variables(brain: Brain) -> list[str]:
    """Return the variables with keys of the settings' models that are set here and not in the service's file."""
    settings, of_service = brain.settings.llm, dotenv_values(environment_file(brain), interpolate=False)
    variables: dict[str, None] = {}
    for model in (settings.model, *settings.models.values()):
        with suppress(ModelError):  # no model, or its key is not set here either
            variables[endpoint_of(model, brain.machine).key_variable] = None
    return [name for name in variables if name in os.environ and not of_service.get(name)]
