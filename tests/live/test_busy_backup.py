"""Backups of a brain that a daemon writes to all the while, some of them killed: each whole one is of one moment."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from pathlib import Path

from brainiac.brain import Brain
from brainiac.events import PathKind, content_hash
from brainiac.health.doctor import faults
from brainiac.history.backup import Backup, backups_in, damages
from tests.support.living import Living, living, living_brain
from tests.support.program import Program, run_program


def killed(*words: str, after: float) -> None:
    """Run a command and end it as a power failure does, after so many seconds or when it is done."""
    with open(os.devnull, "wb") as nowhere:
        program = Program(*words, out=nowhere)
    try:
        program.wait(after)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def keep_talking(brain: Living, stop: threading.Event) -> None:
    number = 0
    while not stop.wait(0.05):
        number += 1
        brain.drop(f"talk-{number % 5}/{number:04d}.md", f"I saw {number} geese in Portland. {'Honk. ' * 40}\n")


def test_backups_beside_a_busy_daemon(tmp_path: Path) -> None:
    """Each file that the journals name stands in the backup with the very bytes that they name, and so it is restored,
    although both are killed on the way."""
    random_, folder = random.Random(18), tmp_path / "backups"
    with living(living_brain(tmp_path / "brain")) as brain:
        stop = threading.Event()
        talk = threading.Thread(target=keep_talking, args=(brain, stop))
        talk.start()
        try:
            brain.wait_for_answer("talk-3/0003.md", 60)
            for _ in range(2):
                line = ("--brain", str(brain.root), "backup", str(folder))
                killed(*line, after=random_.uniform(0.2, 2.1))
                done = run_program(*line)
                assert done.returncode == 0, done.stderr
        finally:
            stop.set()
            talk.join()
        assert brain.is_alive
    backups = backups_in(folder)
    assert 2 <= len(backups) <= 4
    assert backups[-1].files > backups[0].files
    assert [] == [problem for backup in backups for problem in damages(backup)]
    for number, backup in enumerate(backups):
        into = tmp_path / f"restored-{number}"
        line = ("restore", str(backup.folder), "--into", str(into))
        killed(*line, after=random_.uniform(0.1, 1.1))
        run_program(*line)
        check(into, backup)


def check(root: Path, backup: Backup) -> None:
    """Journal and files of a restored brain are of one moment, and every text that the journal names is there."""
    brain = Brain(root)
    assert [] == list(faults(brain))
    standing = {
        brain.tree.relative(entry.path): content_hash(Path(entry.path).read_bytes())
        for entry in brain.tree.walk(brain.tree.inbox, brain.tree.memory, brain.tree.system)
        if brain.tree.is_tracked(brain.tree.relative(entry.path))
    }
    fold = brain.journal.fold()
    assert fold.items() <= standing.items()
    # what is not in the journal yet is what a person has just dropped
    assert {PathKind.PROMPT} >= {brain.tree.kind_of(path) for path in standing.keys() - fold.keys()}
    assert len(backup.digests()) == sum(path.is_file() for path in root.rglob("*") if ".brainiac-" not in path.name)
    brain.close()
