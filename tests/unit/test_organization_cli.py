"""`brainiac organize`: what it did, told to a person and to a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.clock import SYSTEM
from tests.support.commands import Shell
from tests.support.organized import SMALL, construct, make_scene


def test_organize_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each action on a line; a second run has nothing to tell."""
    scene = make_scene(tmp_path / "brain", clock=SYSTEM, config=SMALL)
    construct(scene, crowd=26, unused=4)
    scene.brain.close()
    shell = Shell(capsys, str(tmp_path / "brain"))
    told = shell("organize")
    assert 0 == told.code, told.err
    assert ["link", "move", "move", "move", "archive"] == [line.split()[0] for line in told.out.splitlines()[:5]]
    assert "130 lines of the access log counted." == told.out.splitlines()[-1]
    assert "Memory is well as it is.\n" == shell("organize").out
    assert [] == shell("organize", "--json").json["done"]


@pytest.mark.parametrize("command", ["organize", "promote"])
def test_a_device_that_waits_changes_no_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """While another device runs the processes, neither command does anything: it says which, and how to change it."""
    scene = make_scene(tmp_path / "brain", clock=SYSTEM, config=SMALL + "active_device: laptop-123\n")
    construct(scene, crowd=26, unused=4)
    before = scene.tree()
    scene.brain.close()
    told = Shell(capsys, str(tmp_path / "brain"))(command)
    assert 1 == told.code
    assert "laptop-123 runs the processes of this brain; `brainiac takeover` makes it this device" in told.err
    assert before == scene.tree()
