"""The real program: `python -m brainiac run` as a process of its own, with the bundled processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.formats.short_term import EMPTY
from brainiac.storage.database import read_run_state
from brainiac.storage.serving import is_running
from tests.support.pipeline import eventually, make_folder
from tests.support.program import Program

CONFIG = "inbox: {settle_ms: 20, typing_seconds: 0.5}\n"
OVERFLOWING_EVENTS = 40_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_folder(tmp_path / "brain", CONFIG)
    (root / "memory/short_term.md").write_text(EMPTY)
    return root


def command(root: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "brainiac", "--brain", str(root), "run", *arguments]


@contextmanager
def daemon(root: Path) -> Iterator[Program]:
    """Run the program until it watches; end it if the test did not."""
    with (root.parent / "daemon.log").open("ab") as log:
        process = Program("--brain", str(root), "run", out=log)
    try:
        eventually(lambda: process.poll() is None and read_run_state(Brain(root).database).pid == process.pid, "start")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)


def drop(root: Path, name: str, text: str) -> None:
    aside = root / f".{name}.aside"
    aside.write_text(text)
    aside.rename(root / "inbox" / f"{name}.md")


def is_stopped(pid: int) -> bool:
    """Return whether every thread of a process is stopped, as Linux tells it."""
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


def wait_for_answer(root: Path, name: str) -> str:
    path = root / f"inbox/{name}.response.md"
    eventually(path.exists, f"an answer to {name}", 30)
    return path.read_text()


def test_the_running_program_answers_and_reflects_and_ends_cleanly(root: Path) -> None:
    """Seeds: U2, U3, S9."""
    with daemon(root) as process:
        drop(root, "told", "I live in Portland.")
        wait_for_answer(root, "told")
        eventually(lambda: "Portland" in (root / "memory/short_term.md").read_text(), "reflection", 30)
        drop(root, "asked", "Where do I live?")
        assert "Portland" in wait_for_answer(root, "asked")
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(20)
    assert 0 == read_run_state(Brain(root).database).pid
    assert not is_running(Brain(root))


@pytest.mark.parametrize(
    ("later", "is_known"),
    [("The spare key hangs behind the blue door.", True), ("", False)],
    ids=["written meanwhile", "taken out meanwhile"],
)
def test_what_changes_while_a_prompt_rests_counts_in_its_answer(root: Path, later: str, is_known: bool) -> None:
    """Memory is searched while the prompt rests; the answer is of memory as it is when the prompt is taken."""
    (root / "system/config.yaml").write_text("inbox: {settle_ms: 3000}\n")
    page = root / "memory/long_term/concrete/places/keys.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("# Keys\n\n" + ("" if is_known else "The spare key hangs behind the blue door.\n"))
    with daemon(root):
        page.write_text(f"# Keys\n\n{later}\n")
        time.sleep(1.5)  # the page rests before the prompt does, and is taken after the prompt was searched for
        drop(root, "asked", "Where does the spare key hang?")
        assert is_known == ("behind the blue door" in wait_for_answer(root, "asked"))


def test_a_second_daemon_is_refused_in_words(root: Path) -> None:
    with daemon(root) as process:
        second = subprocess.run(command(root), capture_output=True, text=True, timeout=60, check=False)
        assert 1 == second.returncode
        assert f"process {process.pid}" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_killed_daemon_loses_nothing(root: Path) -> None:
    """Prompts are dropped all along; whatever was under way when it was killed is done once by the next."""
    names = [f"n{number}" for number in range(12)]

    def drop_all() -> None:
        for name in names:
            drop(root, name, f"Remember: item {name}")

    with daemon(root) as process:
        dropping = threading.Thread(target=drop_all)
        dropping.start()
        eventually(lambda: any((root / "inbox").glob("*.response.md")), "a first answer", 30)
        process.kill()
        process.wait(20)
        dropping.join()
    with daemon(root):
        for name in names:
            wait_for_answer(root, name)
        noted = root / "memory/short_term.md"
        eventually(lambda: all(f'item {name}"' in noted.read_text() for name in names), "reflection", 30)
    assert len(names) == noted.read_text().count("**User:**")
    kinds = [event.data["prompt"] for event in Brain(root).journal.events(kinds={"prompt-answered"})]
    assert sorted(f"inbox/{name}.md" for name in names) == sorted(kinds)


@pytest.mark.skipif(sys.platform != "linux", reason="the queue is inotify's")
def test_an_overflow_of_the_system_s_queue_loses_no_prompt(root: Path) -> None:
    """The program is stopped while more happens than the system keeps; then it is let go on."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > OVERFLOWING_EVENTS:
        pytest.skip(f"the system keeps {limit} events")
    with daemon(root) as process:
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: is_stopped(process.pid), "it stops")  # on a busy machine it goes on for a while
        here, there = root / "memory/a.jpg", root / "memory/b.jpg"
        here.touch()
        for _ in range(limit // 4 + 100):  # each a move there and back: four events
            os.rename(here, there)
            os.rename(there, here)
        drop(root, "late", "I live in Portland.")
        process.send_signal(signal.SIGCONT)
        wait_for_answer(root, "late")
        eventually(lambda: read_run_state(Brain(root).database).watch["overflows"] >= 1, "the overflow is told")


def test_one_pass_says_what_it_did(root: Path) -> None:
    drop(root, "told", "I live in Portland.")
    done = subprocess.run(command(root, "--once"), capture_output=True, text=True, timeout=60, check=False)
    assert (0, "answered 1, reflected 1, waiting 0\n") == (done.returncode, done.stdout)
