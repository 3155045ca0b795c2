"""The command line as a whole: where `--brain` may stand, exit codes, and how errors are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.testing import make_brain
from tests.commands import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    make_brain(tmp_path / "brain").close()
    return Shell(capsys)


@pytest.mark.parametrize("where", ["first", "last", "joined", "environment", "folder"])
def test_the_brain_that_is_meant(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """`--brain` stands before or after the command; else BRAINIAC_HOME counts, else the current folder."""
    root = str(tmp_path / "brain")
    words = {
        "first": ["--brain", root, "status", "--json"],
        "last": ["status", "--json", "--brain", root],
        "joined": ["status", f"--brain={root}", "--json"],
    }.get(where, ["status", "--json"])
    if where == "environment":
        monkeypatch.setenv("BRAINIAC_HOME", root)
    if where == "folder":
        monkeypatch.chdir(tmp_path / "brain/memory")
    assert root == shell(*words).json["brain"]


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--help"], 0), (["status", "--help"], 0), (["nonsense"], 2), (["init"], 2), (["status", "x"], 2)],
)
def test_exit_codes(shell: Shell, words: list[str], code: int) -> None:
    """0 done, 2 wrong use."""
    assert code == shell(*words).code


def test_problems_are_told_without_a_traceback(shell: Shell, tmp_path: Path) -> None:
    """Wrong settings are a line each on standard error, and exit code 1."""
    (tmp_path / "brain/system/config.yaml").write_text("modle: x\ninbox: {settle_ms: soon}\n")
    done = shell("promote", "--brain", str(tmp_path / "brain"))
    assert (1, "") == (done.code, done.out)
    assert 2 == done.err.count("error:")
    assert "Traceback" not in done.err


def test_output_into_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`brainiac log | head -1` ends quietly."""
    make_brain(tmp_path / "brain").close()
    command = f'"{sys.executable}" -m brainiac --brain brain plugins list | true'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
