"""`brainiac service`: the files for two service managers, and what these are told."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.errors import UserError
from brainiac.server.clients import Unit, unit_of
from tests.support.commands import Shell
from tests.support.models import make_brain

STRANGE = 'my $HOME "notes" 100% ü'
# stands for the real one: it notes what it is told, and says what the test wrote down
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
"""


@dataclass(frozen=True)
class Machine:
    """A machine with a service manager, and a brain on it."""

    shell: Shell
    unit: Unit
    bin: Path

    @property
    def asked(self) -> list[str]:
        """What the manager was told, once each time."""
        file = self.bin / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    """A brain in a folder with a difficult name."""
    brain = make_brain(tmp_path / STRANGE)
    yield brain
    brain.close()


@pytest.fixture
def linux(brain: Brain, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Machine:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setattr(sys, "platform", "linux")
    return Machine(Shell(capsys, str(brain.root)), unit_of(brain), programs)


def test_systemd_accepts_the_unit(brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd's own check has nothing to say, whatever the folder is called."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = unit_of(brain, "linux")
    (file := tmp_path / unit.file.name).write_text(unit.text)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    done = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", file], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    assert str(brain.root).replace("%", "%%").replace('"', '\\"') in unit.text


def test_launchd_reads_the_agent(brain: Brain) -> None:
    """A property list with the very command, started at login and after a crash, not after an end in order."""
    unit = unit_of(brain, "darwin")
    values = plistlib.loads(unit.text.encode())
    assert [sys.executable, "-m", "brainiac", "--brain", str(brain.root), "run"] == values["ProgramArguments"][:6]
    name = unit.file.stem
    assert (name, True, {"SuccessfulExit": False}) == (values["Label"], values["RunAtLoad"], values["KeepAlive"])
    assert os.environ["XDG_STATE_HOME"] == values["EnvironmentVariables"]["XDG_STATE_HOME"]
    assert name.startswith("brainiac-my-home-notes-100-")
    if shutil.which("plutil"):
        subprocess.run(["plutil", "-lint", "-"], input=unit.text.encode(), check=True)


def test_a_system_without_either_is_told_what_to_start(brain: Brain) -> None:
    """Windows' tasks are made no more: what is to be started at login is named, and what an old task is called."""
    with pytest.raises(UserError, match="made for systemd and launchd alone, not for win32") as refused:
        unit_of(brain, "win32")
    assert shlex.join(["--brain", str(brain.root), "run"]) in str(refused.value)
    assert f"is called {unit_of(brain, 'darwin').file.stem}" in str(refused.value)


def test_nothing_is_started_without_being_told(linux: Machine) -> None:
    """It shows the file, and does nothing where nobody can be asked; it is enabled, and started by `--now` alone."""
    refused = linux.shell("service", "install")
    assert (2, True) == (refused.code, "ExecStart" in refused.out)
    assert ([], False) == (linux.asked, linux.unit.file.exists())
    done = linux.shell("service", "install", "--yes")
    assert linux.unit.text == linux.unit.file.read_text()
    enabling = ["--user daemon-reload", f"--user enable {linux.unit.file.name}"]
    assert enabling == linux.asked
    assert f"systemctl --user status {linux.unit.file.name}" in done.out
    again = linux.shell("service", "install", "--now")
    assert "ExecStart" not in again.out
    assert [*enabling, f"--user restart {linux.unit.file.name}"] == linux.asked
    assert 0 == linux.shell("service", "uninstall", "--yes").code
    assert [f"--user disable --now {linux.unit.file.name}", "--user daemon-reload"] == linux.asked
    assert not linux.unit.file.exists()


def test_a_manager_that_refuses_is_told(linux: Machine) -> None:
    """Its words, the command, and that the file stands."""
    (linux.bin / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n")
    done = linux.shell("service", "install", "--yes")
    assert 1 == done.code
    assert all(words in done.err for words in ("Failed to connect to bus", "daemon-reload", "is written"))
    assert linux.unit.file.exists()


def test_keys_of_the_shell_are_asked_for(linux: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that only the shell has is named with the file that the service reads; `run` takes it from there."""
    config = Path(linux.shell.brain) / "system/config.yaml"
    config.write_text(config.read_text() + "\nllm: {model: openai/m}\n")
    assert "OPENAI_API_KEY" not in linux.shell("service", "install", "--yes").out
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "OPENAI_API_KEY" in linux.shell("service", "install", "--yes").out
    environment = Path(linux.unit.text.partition('"--env-file" "')[2].partition('"')[0])
    environment.parent.mkdir(parents=True, exist_ok=True)
    environment.write_text("OPENAI_API_KEY=a$b\n")
    assert "OPENAI_API_KEY" not in linux.shell("service", "install", "--yes").out
    monkeypatch.delenv("OPENAI_API_KEY")
    linux.shell("run", "--once", "--env-file", str(environment))
    assert "a$b" == os.environ.pop("OPENAI_API_KEY")
