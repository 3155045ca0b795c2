"""The real program: `python -m brainiac run` as a process of its own, with the bundled processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.storage.serving import is_running
from tests.support.living import Living, command, events_of, living, living_brain
from tests.support.pipeline import eventually

CONFIG = "inbox: {settle_ms: 20, typing_seconds: 0.5}\n"
OVERFLOWING_EVENTS = 40_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return living_brain(tmp_path / "brain", CONFIG)


def is_stopped(one: Living) -> bool:
    """Return whether every thread of a daemon is stopped, as Linux tells it."""
    stats = Path(f"/proc/{one.process.pid}/task").glob("*/stat")
    return {stat.read_text().rpartition(")")[2].split()[0] for stat in stats} == {"T"}


def test_the_running_program_answers_and_reflects_and_ends_cleanly(root: Path) -> None:
    """Seeds: U2, U3, S9."""
    with living(root) as one:
        one.answer("told.md", "I live in Portland.")
        eventually(lambda: "Portland" in (root / "memory/short_term.md").read_text(), "reflection", 30)
        assert "Portland" in one.answer("asked.md", "Where do I live?")
        assert 0 == one.terminate()
    assert not one.status["daemon"]["is_running"]
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
    with living(root) as one:
        page.write_text(f"# Keys\n\n{later}\n")
        time.sleep(1.5)  # the page rests before the prompt does, and is taken after the prompt was searched for
        answer = one.answer("asked.md", "Where does the spare key hang?")
        assert is_known == ("behind the blue door" in answer)


def test_a_second_daemon_is_refused_in_words(root: Path) -> None:
    with living(root) as one:
        second = subprocess.run(command(root), capture_output=True, text=True, timeout=60, check=False)
        assert 1 == second.returncode
        assert f"process {one.process.pid}" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_killed_daemon_loses_nothing(root: Path) -> None:
    """Prompts are dropped all along; whatever was under way when it was killed is done once by the next."""
    names = [f"n{number}.md" for number in range(12)]
    with living(root) as one:
        dropping = threading.Thread(target=lambda: [one.drop(name, f"Remember: item {name}") for name in names])
        dropping.start()
        eventually(lambda: any((root / "inbox").glob("*.response.md")), "a first answer", 30)
        one.kill()
        dropping.join()
    with living(root) as one:
        for name in names:
            one.wait_for_answer(name)
        noted = root / "memory/short_term.md"
        eventually(lambda: all(f'item {name}"' in noted.read_text() for name in names), "reflection", 30)
    assert len(names) == noted.read_text().count("**User:**")
    answered = [event.data["prompt"] for event in events_of(root, "prompt-answered")]
    assert sorted(f"inbox/{name}" for name in names) == sorted(answered)


@pytest.mark.skipif(sys.platform != "linux", reason="the queue is inotify's")
def test_an_overflow_of_the_system_s_queue_loses_no_prompt(root: Path) -> None:
    """The program is stopped while more happens than the system keeps; then it is let go on."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > OVERFLOWING_EVENTS:
        pytest.skip(f"the system keeps {limit} events")
    with living(root) as one:
        one.process.send_signal(signal.SIGSTOP)
        eventually(lambda: is_stopped(one), "it stops")  # on a busy machine it goes on for a while
        here, there = root / "memory/a.jpg", root / "memory/b.jpg"
        here.touch()
        for _ in range(limit // 4 + 100):  # each a move there and back: four events
            os.rename(here, there)
            os.rename(there, here)
        one.drop("late.md", "I live in Portland.")
        one.process.send_signal(signal.SIGCONT)
        one.wait_for_answer("late.md")
        eventually(lambda: one.status["daemon"]["watch"]["overflows"] >= 1, "the overflow is told")
