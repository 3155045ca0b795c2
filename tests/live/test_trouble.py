"""Trouble from outside while the daemon runs: it lives, or stops with a clear message; nothing is lost; it recovers.

`python -m pytest tests/live/test_trouble.py -s` prints the table of troubles.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.errors import StorageError
from brainiac.events import Event, create, new_id, update
from brainiac.storage.files import Disk
from brainiac.storage.serving import is_running
from tests.support.kernel import OPERATIONS, STM, failing_kernel, make_root, open_kernel
from tests.support.living import (
    CONFIG,
    Living,
    command,
    events_of,
    living,
    living_brain,
    places_of,
    trusted,
    unfolded,
    unprivileged,
)
from tests.support.pipeline import eventually
from tests.support.program import Program

AWHILE_SECONDS = 0.7
LEAKING = """
import os, threading, time
from brainiac import hookimpl

@hookimpl
def prompt_arrived(prompt):
    if "many files" in prompt.text:
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            time.sleep(1.5)
        for each in held:
            os.close(each)
    if "many threads" in prompt.text:
        for _ in range(200):
            threading.Thread(target=time.sleep, args=(10_000,)).start()
"""


@dataclass(frozen=True)
class Trouble:
    """What goes wrong around a running daemon.

    Attributes:
        begin: Causes it and returns what ends it.
        text: The prompt dropped meanwhile.
        hides_inbox: No prompt can be dropped meanwhile; it is dropped right after.
    """

    name: str
    begin: Callable[[Living], Callable[[], object]]
    text: str = "I live in Portland."
    hides_inbox: bool = False


def mode(path: str, value: int) -> Callable[[Living], Callable[[], object]]:
    """Take permissions from a path of the tree, and give them back."""

    def begin(one: Living) -> Callable[[], object]:
        target = one.root / path
        former = target.stat().st_mode & 0o777
        target.chmod(value)
        return lambda: target.chmod(former)

    return begin


def away(path: str) -> Callable[[Living], Callable[[], object]]:
    """Move a path of the tree out of it, and back."""

    def begin(one: Living) -> Callable[[], object]:
        target, elsewhere = one.root / path, one.root.parent / "elsewhere"
        target.rename(elsewhere)

        def end() -> None:
            if target.is_dir():  # a new one was made meanwhile
                target.rename(one.root.parent / f"meanwhile-{target.name}")
            elsewhere.rename(target)

        return end

    return begin


def text(path: str, content: str) -> Callable[[Living], Callable[[], object]]:
    """Replace a file of the tree, and put it back."""

    def begin(one: Living) -> Callable[[], object]:
        target = one.root / path
        former = target.read_bytes()
        target.write_text(content)
        return lambda: target.write_bytes(former)

    return begin


def filled(one: Living) -> Callable[[], object]:
    """Fill the disk that the tree lies on."""
    ballast = one.root / ".ballast"
    one.drop("while-full.md", "I live in Portland.")  # its own text still fits
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 512, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                assert errno.ENOSPC == error.errno
    return ballast.unlink


def remounted(one: Living) -> Callable[[], object]:
    """Make the tree's disk read-only."""
    mount("-o", "remount,ro", str(one.root))
    return lambda: mount("-o", "remount,rw", str(one.root))


def unmounted(one: Living) -> Callable[[], object]:
    """Take the tree's disk away, and bring it back."""
    image = one.root.parent / "disk.img"
    subprocess.run(["umount", "--lazy", one.root], check=True)

    def end() -> None:
        assert [] == list(one.root.iterdir()), "something was written where the disk had been"
        mount("-o", "loop", str(image), str(one.root))

    return end


def stopped(one: Living) -> Callable[[], object]:
    """Freeze the process, as a laptop that sleeps does."""
    one.process.send_signal(signal.SIGSTOP)
    return lambda: one.process.send_signal(signal.SIGCONT)


def removed(which: str) -> Callable[[Living], Callable[[], object]]:
    """Remove a machine-local folder under the running daemon."""

    def begin(one: Living) -> Callable[[], object]:
        shutil.rmtree(getattr(places_of(one.root), which), ignore_errors=True)
        return lambda: None

    return begin


def nothing(one: Living) -> Callable[[], object]:
    return lambda: None


HIDDEN_FROM_OWNER = [
    Trouble("inbox may not be written", mode("inbox", 0o555), hides_inbox=True),
    Trouble("inbox may not be read", mode("inbox", 0o000), hides_inbox=True),
    Trouble("memory may not be written", mode("memory", 0o555)),
    Trouble("short-term memory may not be read", mode(STM, 0o000)),
    Trouble("journal may not be written", mode("logs/journal", 0o555)),
    Trouble("blobs may not be written", mode("logs/journal/blobs", 0o000)),
    Trouble("logs may not be read", mode("logs", 0o000)),
    Trouble("settings may not be read", mode("system/config.yaml", 0o000)),
    Trouble("plugins folder may not be read", mode("plugins", 0o000)),
]
FOR_ALL = [
    Trouble("inbox moved away", away("inbox"), hides_inbox=True),
    Trouble("memory moved away", away("memory")),
    Trouble("system moved away", away("system")),
    Trouble("settings broken", text("system/config.yaml", "inbox: [")),
    Trouble("short-term memory without headings", text(STM, "oops\n")),
    Trouble("process frozen", stopped),
    Trouble("cache folder removed", removed("cache")),
    Trouble("file handles exhausted by a plugin", nothing, "Open many files. I live in Portland."),
    Trouble("threads leaked by a plugin", nothing, "Start many threads. I live in Portland."),
]
ON_A_DISK = [
    Trouble("disk full", filled, hides_inbox=True),
    Trouble("disk read-only", remounted, hides_inbox=True),
    Trouble("disk unmounted and back", unmounted, hides_inbox=True),
]


def suffer(one: Living, number: int, trouble: Trouble) -> None:
    """Let a trouble happen: the daemon lives, and what was dropped meanwhile is answered and reflected after it."""
    name = f"t{number}.md"
    end = trouble.begin(one)
    try:
        if not trouble.hides_inbox:
            one.drop(name, trouble.text)
        time.sleep(AWHILE_SECONDS)
        assert one.is_alive, f"{trouble.name}: {one.log.read_text()[-3000:]}"
    finally:
        end()
    if trouble.hides_inbox:
        one.drop(name, trouble.text)
    began = time.monotonic()
    one.wait_for_answer(name, 60)
    one.wait_for_event("exchange-reflected", 60, prompt=f"inbox/{name}")
    print(f"{trouble.name:40} lives; recovered in {time.monotonic() - began:5.2f} s")


def troubled_brain(root: Path) -> Path:
    """Make a brain with the leaking plugin."""
    living_brain(root, CONFIG.replace("rescan_seconds: 1", "rescan_seconds: 0.5"))
    trusted(root, "leaking", LEAKING)
    return root


def test_the_daemon_outlives_every_trouble_and_recovers(tmp_path: Path) -> None:
    """One daemon, one trouble after the other; at the end nothing is lost, nothing answered twice, and it ends."""
    root = troubled_brain(tmp_path / "brain")
    troubles = FOR_ALL + (HIDDEN_FROM_OWNER if shutil.which("setpriv") or os.geteuid() else [])
    with living(root, prefix=unprivileged()) as one:
        for number, trouble in enumerate(troubles):
            suffer(one, number, trouble)
        assert 0 == one.terminate()  # although leaked threads still sleep
    answered = [event.data["prompt"] for event in events_of(root, "prompt-answered")]
    assert len(troubles) == len(answered) == len(set(answered))
    noted = [root / STM, tmp_path / "meanwhile-memory/short_term.md"]
    assert len(troubles) == sum(file.read_text().count("<!-- event:") for file in noted)
    assert [] == unfolded(root)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


@contextmanager
def loop_disk(folder: Path) -> Iterator[Path]:
    """Mount a small disk of its own; skip visibly where that is not allowed."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("mounting a disk needs root and mkfs.ext4")
    image, root = folder / "disk.img", folder / "brain"
    root.mkdir()
    with image.open("wb") as file:
        file.truncate(24_000_000)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, root], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield root
    finally:
        subprocess.run(["umount", "--lazy", root], check=False)


def test_a_disk_may_fill_turn_read_only_or_go_and_come_back(tmp_path: Path) -> None:
    """With a real disk: nothing is written where it was mounted, and the daemon goes on when it is back."""
    with loop_disk(tmp_path) as root:
        shutil.rmtree(root / "lost+found")
        troubled_brain(root)
        with living(root) as one:
            one.answer("first.md")
            for number, trouble in enumerate(ON_A_DISK):
                suffer(one, number, trouble)
            one.wait_for_answer("while-full.md")
            one.wait_for_event("exchange-reflected", prompt="inbox/while-full.md")
            assert 0 == one.terminate()
        assert 2 + len(ON_A_DISK) == len(events_of(root, "prompt-answered"))
        assert [] == unfolded(root)


class FullDisk(Disk):
    """A disk that has no room at its n-th operation, and once more at each try until it is emptied."""

    def __init__(self) -> None:
        self.left = -1
        self.is_torn = False

    def spend(self, name: str, *arguments: object, **named: object) -> object:
        self.left -= 1
        if self.left == 0:
            self.left = 1
            if self.is_torn and name in ("write", "append"):
                path, content = arguments[:2]
                assert isinstance(content, bytes)
                getattr(Disk, name)(self, path, content[: len(content) // 2], **named)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return getattr(Disk, name)(self, *arguments, **named)


def _spending(name: str) -> Callable[..., object]:
    return lambda self, *arguments, **named: self.spend(name, *arguments, **named)


for _name in OPERATIONS:
    setattr(FullDisk, _name, _spending(_name))


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_disk_that_is_full_at_any_write_leaves_a_commit_whole_or_undone(tmp_path: Path, is_torn: bool) -> None:
    """At each operation in turn; freed, the same process goes on, and the tree is what the journal says."""
    for stop_at in range(1, 60):
        disk = FullDisk()
        kernel = failing_kernel(make_root(tmp_path / f"b{stop_at}"), disk)
        kernel.observed.adopt()
        before = kernel.read(STM) or b""
        disk.left, disk.is_torn = stop_at, is_torn
        changes = [update(STM, before, before + b"more\n"), create("memory/long_term/concrete/new.md", "new\n")]
        try:
            kernel.committer.commit("note-made", by="test", changes=changes)
            is_full = False
        except OSError as error:
            assert errno.ENOSPC == error.errno
            is_full = True
        disk.left = -1
        kernel.committer.recover()
        done = kernel.read(STM) == before + b"more\n"
        assert done == (kernel.read("memory/long_term/concrete/new.md") == b"new\n")
        assert done or is_full
        assert kernel.tracked() == kernel.folded()
        kernel.committer.close()
        if not is_full:
            break
    assert stop_at > 8


def test_nothing_is_written_where_the_tree_is_not(tmp_path: Path) -> None:
    """An empty folder where a disk was mounted is no brain: a commit is refused in words."""
    kernel = open_kernel(make_root(tmp_path / "brain"))
    kernel.observed.adopt()
    shutil.rmtree(tmp_path / "brain")
    (tmp_path / "brain").mkdir()
    with pytest.raises(StorageError, match="mount its disk"):
        kernel.committer.commit("note-made", by="test", changes=[create("memory/a.md", "a")])
    assert [] == list((tmp_path / "brain").iterdir())


def test_ids_ascend_although_the_clock_is_put_back(tmp_path: Path) -> None:
    """What is told of later sorts later, also after a last event that bears a time to come."""
    tomorrow = f"f{new_id()[1:]}"
    assert tomorrow < new_id(tomorrow) < new_id(new_id(tomorrow))
    kernel = open_kernel(make_root(tmp_path / "brain"))
    kernel.journal.record(Event(0, tomorrow, "2125-09-16T15:30:00Z", "note-made", "test"))
    ids = [kernel.committer.commit("note-made", by="test").id for _ in range(3)]
    assert [tomorrow, *ids] == sorted([tomorrow, *ids])


def test_of_daemons_started_at_once_exactly_one_serves(tmp_path: Path) -> None:
    """The others say so and end; the one that serves is not disturbed."""
    root = living_brain(tmp_path / "brain")
    logs = [tmp_path / f"{number}.log" for number in range(4)]
    many = []
    for log in logs:
        with log.open("wb") as out:
            many.append(Program(*command(root)[3:], out=out))
    try:
        eventually(lambda: sum(each.poll() is None for each in many) == 1, "one is left", 60)
        messages = [log.read_text() for log, each in zip(logs, many, strict=True) if each.poll() is not None]
        assert ["served by another daemon" in message for message in messages] == [True] * 3
        assert not any("Traceback" in message for message in messages)
        one = Living(root, next(each for each in many if each.poll() is None), tmp_path / "none.log")
        one.answer("a.md")
        assert 0 == one.terminate()
        assert not is_running(Brain(root))
    finally:
        for each in many:
            each.kill()
            each.wait()


def test_what_a_power_failure_tears_is_mended_at_the_start(tmp_path: Path) -> None:
    """The journal with half a line, the state database as garbage."""
    root = living_brain(tmp_path / "brain")
    with living(root) as one:
        one.answer("a.md")
        one.wait_for_event("exchange-reflected")
        one.kill()
    state = places_of(root).state
    for file in (root / "logs/journal").glob("*/*.jsonl"):
        with file.open("ab") as end:
            end.write(b'{"seq": 99, "id": "torn')
    for file in state.glob("state.db*"):
        file.write_bytes(b"\0" * 4_096)
    with living(root) as one:
        one.answer("b.md")
        one.wait_for_event("exchange-reflected", prompt="inbox/b.md")
        assert 0 == one.terminate()
    assert ["inbox/a.md", "inbox/b.md"] == [event.data["prompt"] for event in events_of(root, "prompt-answered")]
    assert [] == unfolded(root)
