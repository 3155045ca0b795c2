"""A commit is interrupted at every disk operation: it is whole or not at all, and nothing is in no file."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from brainiac.events import append, create, move, observe, remove, update
from brainiac.tree import LocalPlaces
from tests.support.kernel import (
    EMPTY_STM,
    STM,
    CountingDisk,
    Crash,
    Kernel,
    PowerDisk,
    everything,
    failing_kernel,
    make_root,
    open_kernel,
)

NOTES = "memory/long_term/concrete/"
BEFORE = {
    "inbox/q.md": b"What is due?\n",
    "logs/access.log": b"old line\n",
    NOTES + "kept.md": b"kept, first\n",
    NOTES + "gone.md": b"to be removed\n",
    NOTES + "here.md": b"to be moved\n",
}
AFTER = {
    "inbox/q.md": b"What is due?\n",
    "inbox/q.response.md": b"The report.\n",
    "logs/access.log": b"old line\nnew line\n",
    NOTES + "kept.md": b"kept, second\n",
    NOTES + "deep/there.md": b"moved\n",
    NOTES + "large.md": b"0123456789abcdef" * 5000,
}
WRITTEN = [NOTES + "kept.md", NOTES + "gone.md", NOTES + "here.md", "inbox/q.response.md", NOTES + "deep/there.md", STM]


def prepare(root: Path) -> bytes:
    """Make the brain that each round begins with; from the second time on, put its files back."""
    state, kept = LocalPlaces.of(root.parent, "test").device, root.parent / "kept"
    if kept.exists():
        for name, folder in (("root", root), ("state", state)):
            shutil.rmtree(folder)
            shutil.copytree(kept / name, folder)
        return EMPTY_STM.encode()
    kernel = open_kernel(make_root(root))
    for path, text in BEFORE.items():
        kernel.write(path, text)
    kernel.committer.recover()
    kernel.observed.adopt()
    kernel.committer.close()
    shutil.copytree(root, kept / "root")
    shutil.copytree(state, kept / "state")
    return EMPTY_STM.encode()


def commit(kernel: Kernel) -> None:
    stm = kernel.read(STM) or b""
    kernel.committer.commit(
        "prompt-answered",
        by="test",
        changes=[
            update(STM, stm, stm + b"### event\n"),
            observe("inbox/q.md", BEFORE["inbox/q.md"]),
            append("logs/access.log", "new line\n"),
            create("inbox/q.response.md", AFTER["inbox/q.response.md"]),
            create(NOTES + "large.md", AFTER[NOTES + "large.md"]),
            update(NOTES + "kept.md", BEFORE[NOTES + "kept.md"], AFTER[NOTES + "kept.md"]),
            remove(NOTES + "gone.md", BEFORE[NOTES + "gone.md"]),
            move(NOTES + "here.md", NOTES + "deep/there.md", BEFORE[NOTES + "here.md"], b"moved\n"),
        ],
    )


def whole(kernel: Kernel, stm: bytes) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, bytes]]:
    paths = BEFORE.keys() | AFTER.keys() | {STM}
    standing = {path: text for path in paths if (text := kernel.read(path)) is not None}
    return standing, {**BEFORE, STM: stm}, {**AFTER, STM: stm + b"### event\n"}


def count_operations(tmp_path: Path) -> int:
    root = tmp_path / "brain"
    prepare(root)
    disk = CountingDisk()
    kernel = failing_kernel(root, disk)
    commit(kernel)
    kernel.committer.database.close()
    return len(disk.done)


@pytest.mark.parametrize("how", ["before", "torn", "after"])
def test_a_crash_at_any_operation_leaves_all_or_nothing(tmp_path: Path, how: str) -> None:
    """After recovery the tree is as before the commit or as after it, and the fold says the same."""
    total = count_operations(tmp_path)
    seen = set()
    for number in range(1, total + 1):
        root = tmp_path / "brain"
        stm = prepare(root)
        broken = failing_kernel(root, CountingDisk(number, how))
        with pytest.raises(Crash):
            commit(broken)
        texts = everything(broken)
        for text in (*BEFORE.values(), stm):
            assert any(text in found for found in texts), (number, text)
        broken.committer.database.close()

        kernel = open_kernel(root)
        kernel.committer.recover()
        standing, before, after = whole(kernel, stm)
        assert standing in (before, after), number
        seen.add(standing == after)
        if standing == after:
            for text in (*BEFORE.values(), *AFTER.values()):
                assert any(text in found for found in everything(kernel)), (number, text)
        assert [] == kernel.observed.adopt()
        assert kernel.tracked() == kernel.folded()
        assert 1 == sum(e.kind == "prompt-answered" for e in kernel.journal.events()) + (standing == before)
        kernel.committer.database.close()
    assert {True, False} == seen


@pytest.mark.parametrize("how", ["before", "torn", "after"])
def test_a_power_failure_at_any_operation_leaves_all_or_nothing(tmp_path: Path, how: str) -> None:
    """What was not fsynced is cut off; the commit is still whole or not at all, its texts and journal line with it."""
    total = count_operations(tmp_path)
    for number in range(1, total + 1):
        root = tmp_path / "brain"
        stm = prepare(root)
        disk = PowerDisk(number, how)
        broken = failing_kernel(root, disk)
        with pytest.raises(Crash):
            commit(broken)
        broken.committer.database.close()
        disk.fail()

        kernel = open_kernel(root)
        kernel.committer.recover()
        standing, before, after = whole(kernel, stm)
        assert standing in (before, after), number
        assert [] == kernel.observed.adopt()
        assert kernel.tracked() == kernel.folded()
        kernel.committer.database.close()


def spoil_seen(database: Path) -> None:
    """Damage a table that is derived, in the file where the commit waits to be carried out."""
    with closing(sqlite3.connect(database)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'seen'").fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def kill_while_it_is_made_anew(database: Path) -> None:
    """Leave the new file beside the damaged one and its log, as a kill does before it is put in place."""
    shutil.copy(database, f"{database}.new")
    log = Path(f"{database}-wal")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM kept")
        connection.commit()
        log_of_it = log.read_bytes()
    log.write_bytes(log_of_it)
    database.write_bytes(os.urandom(database.stat().st_size))


def cut_record(database: Path) -> None:
    """Damage the record of the commit itself, in a way that SQLite does not notice."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE kept SET value = substr(value, 1, 3000)")


@pytest.mark.parametrize("damage", [spoil_seen, kill_while_it_is_made_anew, cut_record])
def test_a_commit_that_waits_outlives_the_database(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Killed right after the commit point, with the file damaged too: it is carried out, or its texts are set aside."""
    root = tmp_path / "brain"
    prepare(root)
    disk = CountingDisk()
    kernel = failing_kernel(root, disk)
    commit(kernel)
    kernel.committer.database.close()
    stm = prepare(root)
    broken = failing_kernel(root, CountingDisk(disk.done.index("transact") + 1, "after"))
    with pytest.raises(Crash):
        commit(broken)
    broken.committer.database.close()
    database = broken.places.state / "state.db"
    damage(database)
    kernel = open_kernel(root)
    kernel.committer.recover()
    standing, before, after = whole(kernel, stm)
    asides = [path.read_bytes() for path in database.parent.glob("*.damaged*")]
    if damage is cut_record:
        assert standing == before
        assert any(b"prompt-answered" in aside for aside in asides)
    else:
        assert standing == after
        assert [] == asides
    assert [] == kernel.observed.adopt()
    assert kernel.tracked() == kernel.folded()
    assert not Path(f"{database}.new").exists()
    kernel.committer.database.close()


@pytest.mark.parametrize("path", WRITTEN)
def test_a_file_edited_between_crash_and_recovery_is_left_or_merged(tmp_path: Path, path: str) -> None:
    """Wherever the crash fell, the person's text stands, and the rest is whole.

    What was to be made or removed is left and named; what was to be changed holds our change beside the person's.
    """
    total, line = count_operations(tmp_path), b"a person was here\n"
    is_update = path in (STM, NOTES + "kept.md")
    for number in range(1, total + 1, 3):
        root = tmp_path / "brain"
        stm = prepare(root)
        broken = failing_kernel(root, CountingDisk(number, "after"))
        with pytest.raises(Crash):
            commit(broken)
        broken.committer.database.close()
        broken.write(path, stm + line if path == STM else line)

        kernel = open_kernel(root)
        was_recorded = next(kernel.journal.events(kinds={"prompt-answered"}), None) is not None
        kernel.committer.recover()
        kernel.observed.adopt()
        for each in kernel.observed.open_paths:
            kernel.observed.note_change(each)
        event = next(kernel.journal.events(kinds={"prompt-answered"}), None)
        assert line in (kernel.read(path) or b""), number
        is_finished = event is not None and not was_recorded
        assert (is_finished and not is_update) == (event is not None and path in event.data.get("left", ())), number
        assert path != STM or (event is not None) == (b"### event\n" in (kernel.read(STM) or b"")), number
        standing, before, after = whole(kernel, stm)
        moved = {NOTES + "here.md", NOTES + "deep/there.md"} if path.endswith("there.md") else set()
        expected = before if event is None else after
        others = (standing.keys() | expected.keys()) - {path} - moved
        assert {p: expected.get(p) for p in others} == {p: standing.get(p) for p in others}, number
        assert kernel.tracked() == kernel.folded()
        kernel.committer.database.close()


def test_recovery_itself_may_crash_at_any_operation(tmp_path: Path) -> None:
    """A recovery that is interrupted is taken up by the next one."""
    total = count_operations(tmp_path)
    for number in range(1, 40, 3):
        root = tmp_path / "brain"
        stm = prepare(root)
        broken = failing_kernel(root, CountingDisk(total // 2, "torn"))
        with pytest.raises(Crash):
            commit(broken)
        broken.committer.database.close()
        again = failing_kernel(root, CountingDisk(number, "torn"))
        with contextlib.suppress(Crash):
            again.committer.recover()
        again.committer.database.close()
        kernel = open_kernel(root)
        kernel.committer.recover()
        standing, _, after = whole(kernel, stm)
        assert after == standing
        assert [] == kernel.observed.adopt()
        assert kernel.tracked() == kernel.folded()
        kernel.committer.database.close()


def test_a_killed_process_leaves_all_or_nothing(tmp_path: Path) -> None:
    """The same with a real process and SIGKILL, for a sample of the operations."""
    total = count_operations(tmp_path)
    for number in range(2, total + 1, max(1, total // 7)):
        root = tmp_path / "brain"
        stm = prepare(root)
        script = (
            "import sys; from pathlib import Path; from tests.support.kernel import *\n"
            "from tests.crash.test_commit_crash import commit\n"
            f"commit(failing_kernel(Path({str(root)!r}), CountingDisk({number}, 'torn', is_killed=True)))"
        )
        folder = str(Path(__file__).parent.parent.parent)
        ended = subprocess.run([sys.executable, "-c", script], cwd=folder, check=False, capture_output=True)
        assert -9 == ended.returncode, ended.stderr.decode()
        kernel = open_kernel(root)
        kernel.committer.recover()
        standing, before, after = whole(kernel, stm)
        assert standing in (before, after), number
        assert [] == kernel.observed.adopt()
        assert kernel.tracked() == kernel.folded()
        kernel.committer.database.close()
