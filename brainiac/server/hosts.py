"""The programs that speak MCP, and how our server is added to their settings files."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainiac.errors import ConflictError, UserError

NAME = "brainiac"
START_SECONDS = 60.0  # the first start on a busy machine takes ten
KEPT_VARIABLES = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


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
        return list(
            difflib.unified_diff(
                (self.before or "").splitlines(), self.after.splitlines(), name, name, n=2, lineterm=""
            )
        )

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
    variables = {name: os.environ[name] for name in KEPT_VARIABLES if os.environ.get(name)}
    arguments = ["-m", "brainiac", "--brain", str(root), "mcp"]
    return {"command": sys.executable, "args": arguments} | ({"env": variables} if variables else {})


def check_start(entry: dict[str, Any]) -> None:
    """Start our server as a host does, with nothing of this shell but what hosts hand on, and ask it for its tools.

    Raises:
        UserError: It does not start, or does not answer in time; the message has what it printed last.
    """
    import asyncio  # with mcp it takes a second, and no other command needs it

    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.shared.exceptions import MCPError

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
        raise UserError(
            f"{host.file}: is no plain JSON (comments?); nothing was changed. Add by hand: {by_hand}"
        ) from error
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _in_toml(host: Host, text: str, entry: dict[str, Any]) -> str:
    """Return a TOML file's text with our server as a table at its end; no line of it is changed."""
    # texts and lists of JSON are texts and lists of TOML
    table = [f"[{host.key}.{NAME}]", f"command = {json.dumps(entry['command'])}", f"args = {json.dumps(entry['args'])}"]
    if "env" in entry:
        table += [
            "",
            f"[{host.key}.{NAME}.env]",
            *(f"{key} = {json.dumps(value)}" for key, value in entry["env"].items()),
        ]
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
