"""Locks hold between threads and between processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from brainiac.errors import LockedError
from brainiac.storage.files import locked

_TRY = """
import sys; from pathlib import Path; from brainiac.errors import LockedError; from brainiac.storage.files import locked
try:
    with locked(Path(sys.argv[1]), 0): print("got it")
except LockedError: print("busy")
"""


def from_another_process(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", _TRY, str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


def from_another_thread(path: Path) -> str:
    results: list[str] = []

    def attempt() -> None:
        try:
            with locked(path, 0):
                results.append("got it")
        except LockedError:
            results.append("busy")

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return results[0]


def test_a_lock_is_exclusive_across_processes_and_threads(tmp_path: Path) -> None:
    """While a thread holds it neither another process nor another thread gets it; afterwards both do."""
    path = tmp_path / "state" / "x.lock"
    with locked(path):
        assert ("busy", "busy") == (from_another_process(path), from_another_thread(path))
    assert ("got it", "got it") == (from_another_process(path), from_another_thread(path))


def test_a_lock_taken_twice_by_a_thread_is_held_until_the_outer_end(tmp_path: Path) -> None:
    """Leaving the inner block, or opening it by another spelling of its path, does not release it."""
    path = tmp_path / "x.lock"
    (tmp_path / "link").symlink_to(tmp_path)
    with locked(path):
        with locked(tmp_path / "link" / "x.lock", 0):
            pass
        assert "busy" == from_another_process(path)


def test_a_wait_has_an_end(tmp_path: Path) -> None:
    """Another process's lock is waited for as long as was asked, then LockedError names the file."""
    path = tmp_path / "x.lock"
    script = _TRY.replace('print("got it")', 'print("holding", flush=True); sys.stdin.read()')
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=-1, stdout=-1, text=True)
    assert holder.stdout is not None
    assert "holding" == holder.stdout.readline().strip()
    with pytest.raises(LockedError, match=r"x\.lock"), locked(path, 0.05):
        pass
    holder.kill()
    holder.wait()
    with locked(path, 5):
        assert "busy" == from_another_process(path)
