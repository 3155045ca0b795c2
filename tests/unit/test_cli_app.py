"""The command line as a whole: where `--brain` may stand, exit codes, and how errors are told."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.errors import StorageError
from brainiac.testing import make_brain
from tests.support.commands import Shell


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
    """Wrong settings are a line each on standard error, and exit code 1; with `--json` one object for scripts."""
    (tmp_path / "brain/system/config.yaml").write_text("modle: x\ninbox: {settle_ms: soon}\n")
    done, as_json = (shell("promote", *option, "--brain", str(tmp_path / "brain")) for option in ([], ["--json"]))
    assert ((1, ""), (1, "")) == ((done.code, done.out), (as_json.code, as_json.out))
    assert 2 == done.err.count("error:")
    assert "Traceback" not in done.err
    told = json.loads(as_json.err)
    assert 2 == len(told["problems"])
    assert told["error"] == "\n".join(told["problems"])


def test_output_into_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`brainiac log | head -1` ends quietly."""
    make_brain(tmp_path / "brain").close()
    command = f'"{sys.executable}" -m brainiac --brain brain plugins list | true'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("number", "told"), [(errno.EROFS, "make it writable"), (errno.ENOSPC, "free some space"), (errno.EIO, "see to it")]
)
def test_what_the_disk_refuses_is_told_with_what_helps(number: int, told: str) -> None:
    """An error of the system becomes what, where and what to do."""
    trouble = StorageError.of(OSError(number, os.strerror(number), "inbox/q.md"))
    assert trouble is not None
    assert f"The disk or the system refuses: {os.strerror(number)} (inbox/q.md); {told}. " in trouble.problem


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize(("words", "place"), [(["ask", "hello"], "inbox"), (["takeover"], "logs/journal")])
def test_a_read_only_disk_is_told_as_such(shell: Shell, tmp_path: Path, words: list[str], place: str) -> None:
    """No bare OSError, no traceback, and no promise of a one-shot command to try again."""
    folder = tmp_path / "brain" / place
    folder.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("no mounts here")
    try:
        done = shell(*words, "--brain", str(tmp_path / "brain"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert (1, True) == (done.code, "The disk or the system refuses: Read-only file system (" in done.err)
    assert "make it writable. A running daemon tries again by itself." in done.err
    assert "OSError" not in done.err
