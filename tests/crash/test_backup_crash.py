"""A backup and a restore interrupted at each disk operation: no half one is ever taken for whole, and both go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.history.backup import back_up, backups_in, damages, find_backup, restore
from brainiac.storage.files import Disk
from brainiac.testing import make_brain, run_once
from tests.support.kernel import CountingDisk, Crash

STEP = 11  # every so manieth operation, beginning at another one for each way to be interrupted


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    brain = make_brain(tmp_path / "brain")
    (brain.root / "inbox/one.md").write_text("I live in Portland.\n")
    run_once(brain)
    brain.committer.checkpoint()
    return brain


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file but our own temporary ones."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".brainiac-", ".~")))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def crash(work: object, disk: CountingDisk) -> bool:
    """Call something until the disk's crash; return whether it came so far."""
    try:
        work(disk)  # type: ignore[operator]
    except Crash:
        return True
    return False


@pytest.mark.parametrize("how", ["before", "torn", "after"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_backup_interrupted_anywhere(brain: Brain, tmp_path: Path, how: str, is_first: bool) -> None:
    """What has a name is whole; the one before is untouched; the next run makes a whole one of the present tree."""
    number = {"before": 1, "torn": 2, "after": 3}[how]
    while True:
        folder = tmp_path / f"backups-{number}"
        if not is_first:
            back_up(brain, folder)
        (brain.root / "inbox/changed.txt.pdf").write_text(f"{number}")
        if not crash(lambda disk, to=folder: back_up(brain, to, disk=disk), CountingDisk(number, how)):
            break
        backups = backups_in(folder) if folder.exists() else []
        assert len(backups) >= (not is_first)
        assert [] == [problem for backup in backups for problem in damages(backup)]
        made = back_up(brain, folder).backup
        assert made == find_backup(folder)
        assert [] == damages(made)
        assert files_of(brain.root) == files_of(made.folder / "brain")
        number += STEP
    assert number > 20


@pytest.mark.parametrize("how", ["before", "torn", "after"])
def test_a_restore_interrupted_anywhere(brain: Brain, tmp_path: Path, how: str) -> None:
    """The folder is the whole brain, or there is none; called again, it begins anew."""
    backup = back_up(brain, tmp_path / "backups").backup
    number = {"before": 1, "torn": 2, "after": 3}[how]
    while True:
        into = tmp_path / f"restored-{number}"
        if not crash(lambda disk, to=into: restore(backup, to, disk=disk), CountingDisk(number, how)):
            break
        if not into.exists():
            restore(backup, into, disk=Disk())
        assert files_of(brain.root) == files_of(into)
        number += STEP
    assert number > 20
