"""`brainiac mcp install`: a host's own file gets our server, and keeps everything else."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from brainiac.server.clients import hosts
from tests.support.commands import Shell
from tests.support.models import make_brain

NAMES = ("claude-desktop", "claude-code", "cursor", "vscode", "codex")
STANDS = {"theme": "dark", "{key}": {"other": {"command": "x", "args": ["ü"]}}, "last": 1}


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    make_brain(tmp_path).close()
    return Shell(capsys, str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_host_without_a_file_gets_one(shell: Shell, name: str) -> None:
    """It names this interpreter and this brain by absolute paths; a second time there is nothing to do."""
    host = hosts()[name]
    assert 0 == shell("mcp", "install", name, "--yes").code
    text = host.file.read_text()
    values = tomllib.loads(text) if name == "codex" else json.loads(text)
    entry = values[host.key]["brainiac"]
    assert (sys.executable, ["-m", "brainiac", "--brain", shell.brain, "mcp"]) == (entry["command"], entry["args"])
    assert ("stdio" if name in ("vscode", "claude-code") else None) == entry.get("type")
    again = shell("mcp", "install", name)
    assert (0, text) == (again.code, host.file.read_text())
    assert "already" in again.out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[:-1])
def test_other_servers_and_settings_stay(shell: Shell, name: str) -> None:
    """In their order, through a link and with the file's permissions; what is shown are only lines that are added."""
    host = hosts()[name]
    real = host.file.parent.parent / "real.json"
    host.file.parent.mkdir(parents=True, exist_ok=True)
    real.parent.mkdir(parents=True, exist_ok=True)
    stands = json.loads(json.dumps(STANDS).replace("{key}", host.key))
    real.write_text(json.dumps(stands, indent=2, ensure_ascii=False) + "\n")
    real.chmod(0o600)
    host.file.symlink_to(real)
    done = shell("mcp", "install", name, "--yes")
    values = json.loads(real.read_text())
    assert host.file.is_symlink()
    assert 0o600 == real.stat().st_mode & 0o777
    del values[host.key]["brainiac"]
    assert list(stands.items()) == list(values.items())
    assert "+" in {line[:1] for line in done.out.splitlines()}


@pytest.mark.slow
def test_codex_keeps_every_line(shell: Shell) -> None:
    """Comments too; a server of ours that is set otherwise is left to the person."""
    file = hosts()["codex"].file
    file.parent.mkdir(parents=True)
    file.write_text('# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x" # keep')
    assert 0 == shell("mcp", "install", "codex", "--yes").code
    text = file.read_text()
    assert text.startswith('# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x" # keep\n')
    assert {"other", "brainiac"} == set(tomllib.loads(text)["mcp_servers"])
    file.write_text('[mcp_servers.brainiac]\ncommand = "elsewhere"\n')
    refused = shell("mcp", "install", "codex", "--yes")
    assert (1, True) == (refused.code, "in its place" in refused.err)
    assert "elsewhere" in file.read_text()


@pytest.mark.parametrize("text", ['{"mcpServers": {} // mine\n}', "[]", '{"mcpServers": []}', "\udcff"])
def test_a_file_that_is_not_understood_is_left_alone(shell: Shell, text: str) -> None:
    """It is told what to add by hand, or what is wrong."""
    file = hosts()["cursor"].file
    file.parent.mkdir(parents=True)
    file.write_bytes(before := text.encode("utf-8", "surrogateescape"))
    refused = shell("mcp", "install", "cursor", "--yes")
    assert (1, before) == (refused.code, file.read_bytes())
    assert "nothing was changed" in refused.err.replace("\n", " ")


def test_nothing_is_written_unasked(shell: Shell) -> None:
    """Without a yes the change is only shown; an unknown program is told which there are."""
    done = shell("mcp", "install", "claude-desktop")
    assert 2 == done.code
    assert '"mcpServers"' in done.out
    assert not hosts()["claude-desktop"].file.exists()
    unknown = shell("mcp", "install", "emacs")
    assert (1, True) == (unknown.code, "claude-code" in unknown.err)


PROGRAMS = {
    "that is gone": None,
    "that fails": "#!/bin/sh\necho 'ImportError: no module called brainiac' >&2\nexit 1\n",
    "that says nothing": "#!/bin/sh\nexec sleep 600\n",
    "that speaks otherwise": "#!/bin/sh\necho Hello\nexec sleep 600\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("that is gone", "No such file"),
        ("that fails", "no module called brainiac"),
        ("that says nothing", "no answer within 1 seconds"),
        ("that speaks otherwise", "no answer within 1 seconds"),
    ],
)
def test_what_does_not_start_is_not_written(
    shell: Shell, program: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that would fail in the assistant is told with its reason, and the assistant's file stays as it is."""
    file = tmp_path / "python"
    if content := PROGRAMS[program]:
        file.write_text(content)
        file.chmod(0o755)
        monkeypatch.setattr("brainiac.server.clients.START_SECONDS", 1.0)
    monkeypatch.setattr(sys, "executable", str(file))
    refused = shell("mcp", "install", "cursor", "--yes")
    message = " ".join(refused.err.split())
    assert (1, False) == (refused.code, hosts()["cursor"].file.exists())
    assert "does not start as an assistant would start it" in message
    assert told in message
    assert "Done" not in refused.out
