"""Two daemons on one folder, from two homes: one serves, the other waits and takes over; nothing is done twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from brainiac.storage.heartbeat import DEAD_SECONDS, FILE
from tests.support.commands import Shell
from tests.support.living import living_brain
from tests.support.pipeline import eventually
from tests.support.program import Program, run_program


@dataclass
class Home:
    """A home with a state folder of its own, and what runs there."""

    folder: Path
    root: Path
    started: list[Program] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        own = {f"XDG_{each}_HOME": str(self.folder / each) for each in ("STATE", "CACHE", "CONFIG")}
        return {**os.environ, **own, "HOME": str(self.folder)}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_program("--brain", str(self.root), *words, env=self.environment, cwd=self.folder)

    def run(self) -> Program:
        """Start a daemon."""
        with (self.folder / "log").open("a") as log:
            daemon = Program("--brain", str(self.root), "run", out=log, env=self.environment)
        self.started.append(daemon)
        return daemon

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def device(self) -> str:
        return (self.folder / "STATE/brainiac/device_id").read_text().strip()

    def status(self) -> Any:
        done = self("status", "--json")
        assert 0 == done.returncode, done.stderr
        return json.loads(done.stdout)

    def wait_until_serving(self, seconds: float = 60) -> None:
        eventually(lambda: '"event": "watching"' in self.log, f"{self.folder.name} serves", seconds)

    def wait_until_waiting(self, seconds: float = 60) -> None:
        eventually(lambda: "This one waits" in self.log, f"{self.folder.name} waits", seconds)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    """One brain and two homes on it."""
    root = living_brain(tmp_path / "brain")
    both = Home(tmp_path / "host", root), Home(tmp_path / "container", root)
    for home in both:
        home.folder.mkdir()
    yield both
    for daemon in (daemon for home in both for daemon in home.started):
        daemon.send_signal(signal.SIGCONT)
        daemon.kill()
        daemon.wait(30)


def ask(root: Path, numbers: Sequence[int]) -> None:
    """Drop prompts that are about nothing in common."""
    for number in numbers:
        aside = root / f".aside-{number}"
        aside.write_text(f"My lucky number {number} is {number * 37}.\n")
        aside.rename(root / f"inbox/p{number}.md")


def wait_for(root: Path, numbers: Sequence[int], seconds: float = 90) -> None:
    """Wait until prompts are answered and stand in short-term memory."""

    def is_done() -> bool:
        text = (root / "memory/short_term.md").read_text()
        return all((root / f"inbox/p{n}.response.md").exists() and f"lucky number {n} " in text for n in numbers)

    eventually(is_done, "answered and reflected", seconds)
    time.sleep(1.5)  # whoever does it once more does it now


def counted(root: Path, kind: str) -> Counter[str]:
    """Count what happened to each prompt or exchange, in the journals of all devices."""
    found: Counter[str] = Counter()
    for path in (root / "logs/journal").glob("*/*.jsonl"):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["kind"] == kind:
                found[str(event["data"].get("prompt") or event["data"].get("exchange"))] += 1
    return found


def check_each_once(root: Path, numbers: Sequence[int]) -> None:
    text = (root / "memory/short_term.md").read_text()
    assert dict.fromkeys(numbers, 1) == {
        n: len(re.findall(rf"\*\*User:\*\* .*lucky number {n} is", text)) for n in numbers
    }
    events = re.findall(r"<!-- event: (\S+) -->", text)
    assert len(numbers) == len(events) == len(set(events))
    assert [f"p{n}.response.md" for n in sorted(numbers)] == sorted(
        (path.name for path in (root / "inbox").glob("*.response*.md")), key=lambda name: int(name[1:].split(".")[0])
    )
    assert {f"inbox/p{n}.md": 1 for n in numbers} == counted(root, "prompt-answered")
    assert [1] * len(numbers) == list(counted(root, "exchange-reflected").values())


def test_one_serves_and_the_other_takes_over(homes: tuple[Home, Home]) -> None:
    """Twelve prompts: each answered and reflected once. The first is killed: the second serves within seconds."""
    first, second = homes
    root = first.root
    daemon = first.run()
    first.wait_until_serving()
    second.run()
    second.wait_until_waiting()
    assert not list((root / "logs/journal").glob(f"{second.device}/*")), "it wrote nothing"
    told = second.status()["daemon"]
    assert f"the daemon of {first.device} (process {daemon.pid} on " in told["problem"]
    assert "stop" in told["problem"]
    assert "This one waits" in second("status").stdout
    ask(root, range(12))
    wait_for(root, range(12))
    check_each_once(root, range(12))
    assert not list((root / "logs/journal").glob(f"{second.device}/*.jsonl"))
    daemon.kill()
    killed = time.monotonic()
    second.wait_until_serving(DEAD_SECONDS + 20)
    assert time.monotonic() - killed > 1
    ask(root, range(12, 16))
    wait_for(root, range(12, 16))
    check_each_once(root, range(16))
    assert [] == second.status()["problems"], "no rival that has to be dealt with"
    again = first.run()  # the first comes back, and now it is the one that waits
    eventually(lambda: first.status()["daemon"].get("problem", "") != "", "the first waits")
    ask(root, [16])
    wait_for(root, [16])
    check_each_once(root, range(17))
    second.started[0].terminate()
    assert 0 == second.started[0].wait(30)
    ask(root, [17])
    wait_for(root, [17])
    check_each_once(root, range(18))
    again.terminate()
    assert 0 == again.wait(30)


def test_started_together_only_one_serves(homes: tuple[Home, Home]) -> None:
    """Of two that begin in the same moment one waits; nothing is done twice."""
    first, second = homes
    ask(first.root, range(12))
    first.run()
    second.run()
    wait_for(first.root, range(12))
    check_each_once(first.root, range(12))
    assert 1 == sum('"event": "watching"' in home.log for home in homes)
    assert 1 == sum("This one waits" in home.log for home in homes)


def test_commands_beside_the_daemon_of_another_home(
    homes: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ask` goes through the inbox and shows its answer; what would write memory is refused with what to do."""
    first, second = homes
    first.run()
    first.wait_until_serving()
    for variable, value in second.environment.items():
        monkeypatch.setenv(variable, value)
    shell = Shell(capsys, str(first.root))
    answered = shell("ask", "My lucky number 0 is 0.", "--json")
    assert 0 == answered.code, answered.err
    prompt = answered.json["prompt"]
    assert {prompt: 1} == counted(first.root, "prompt-answered")
    eventually(lambda: bool(counted(first.root, "exchange-reflected")), "reflected")
    before = (first.root / "memory/short_term.md").read_bytes()
    for words in (
        ["run", "--once"], ["promote"], ["organize"], ["undo", "--last"], ["forget", "--yes", prompt],
        ["adopt", "--yes"], ["doctor", "--fix"], ["ask", "--again", prompt], ["doctor", "--confirm-deletions"],
    ):  # fmt: skip
        done = shell(*words)
        assert 1 == done.code, words
        assert f"the daemon of {first.device}" in " ".join(done.err.split()), words
    for words in (["status"], ["costs"], ["search", "lucky"], ["log"]):
        assert 0 == shell(*words).code, words
    assert f"the daemon of {first.device}" in shell("status").out
    assert before == (first.root / "memory/short_term.md").read_bytes()
    assert {prompt: 1} == counted(first.root, "prompt-answered")


def test_a_daemon_that_stood_still_stands_back(homes: tuple[Home, Home]) -> None:
    """Stopped for long (a paused container), it finds another serving when it goes on, and begins anew behind it."""
    first, second = homes
    daemon = first.run()
    first.wait_until_serving()
    second.run()
    second.wait_until_waiting()
    daemon.send_signal(signal.SIGSTOP)
    second.wait_until_serving(DEAD_SECONDS + 20)
    ask(first.root, range(3))
    wait_for(first.root, range(3))
    daemon.send_signal(signal.SIGCONT)
    first.wait_until_waiting(DEAD_SECONDS + 20)
    ask(first.root, range(3, 8))
    wait_for(first.root, range(3, 8))
    check_each_once(first.root, range(8))
    assert daemon.poll() is None


def test_the_device_that_is_named_serves(homes: tuple[Home, Home]) -> None:
    """`takeover` in the home that waits hands over while both run."""
    first, second = homes
    first.run()
    first.wait_until_serving()
    second.run()
    second.wait_until_waiting()
    assert 0 == second("takeover").returncode
    second.wait_until_serving(30)
    first.wait_until_waiting(30)
    ask(first.root, range(4))
    wait_for(first.root, range(4))
    check_each_once(first.root, range(4))


def test_what_the_first_had_answered_and_not_reflected_is_not_lost(homes: tuple[Home, Home], tmp_path: Path) -> None:
    """Killed between answer and reflection: the one that takes over reflects it, and the first does not again."""
    first, second = homes
    slow = (
        "import time\nimport brainiac\n@brainiac.hookimpl\ndef response_arrived(brain, exchange):\n"
        "    time.sleep(0 if (brain.root / 'go').exists() else 3600)\n"
    )
    (first.root / "plugins/slow.py").write_text(slow)
    assert 0 == first("plugins", "trust", "--yes", "slow").returncode
    daemon = first.run()
    first.wait_until_serving()
    ask(first.root, [0])
    eventually(lambda: (first.root / "inbox/p0.response.md").exists(), "answered", 60)
    journals = first.root / "logs/journal"
    eventually(lambda: any('"prompt-answered"' in f.read_text() for f in journals.glob("*/*.jsonl")), "recorded", 60)
    assert "lucky" not in (first.root / "memory/short_term.md").read_text()
    daemon.kill()
    second.run()
    wait_for(first.root, [0])
    check_each_once(first.root, [0])
    (first.root / "go").write_text("")
    second.started[0].terminate()
    second.started[0].wait(30)
    first.run()
    ask(first.root, [1])
    wait_for(first.root, [1])
    check_each_once(first.root, range(2))


@contextmanager
def beating(path: Path, inode: int | None = None) -> Iterator[None]:
    """Write a heartbeat that moves, as a daemon or a sync does, from a process of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    script = (
        "import json, os, sys, time\n"
        "path, inode, beat = sys.argv[1], int(sys.argv[2]), 0\n"
        "while True:\n"
        "    beat += 1\n"
        "    with open(path, 'a+') as file:\n"
        "        file.truncate(0)\n"
        "        told = dict(device='other-1', host='h', pid=1, since='2020', beat=beat, is_active=True,\n"
        "                    is_serving=True, is_ended=False, inode=inode or os.fstat(file.fileno()).st_ino)\n"
        "        file.write(json.dumps(told))\n"
        "    time.sleep(0.3)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path), str(inode or 0)])
    try:
        eventually(path.exists)
        yield
    finally:
        process.kill()
        process.wait(10)


def test_what_a_sync_brings_is_no_daemon_here(homes: tuple[Home, Home]) -> None:
    """A heartbeat from another machine moves, but says of itself that it is another file: it keeps nobody waiting."""
    home, _ = homes
    path = home.root / "logs/journal/other-1" / FILE
    with beating(path, inode=123_456_789):
        began = time.monotonic()
        home.run()
        home.wait_until_serving(30)
        assert time.monotonic() - began < DEAD_SECONDS
        ask(home.root, [0])
        wait_for(home.root, [0])
    with beating(path):  # the very same, but of this folder
        done = home("status")
        assert 0 == done.returncode


def test_a_restart_in_the_same_home_waits_for_nobody(homes: tuple[Home, Home]) -> None:
    """Killed and started again: its own heartbeat is no hindrance; a copy of the folder has none."""
    home, other = homes
    daemon = home.run()
    home.wait_until_serving()
    daemon.kill()
    daemon.wait(30)
    (home.folder / "log").write_text("")
    began = time.monotonic()
    home.run()
    home.wait_until_serving(30)
    assert time.monotonic() - began < DEAD_SECONDS
    copy = home.root.with_name("copy")
    shutil.copytree(home.root, copy)
    other.root = copy
    began = time.monotonic()
    other.run()
    other.wait_until_serving(30)
    assert time.monotonic() - began < DEAD_SECONDS


def test_what_is_no_heartbeat_keeps_nobody_for_long(homes: tuple[Home, Home]) -> None:
    """A FIFO, a link, a folder, garbage and a huge file in its place: the daemon serves as after a dead one."""
    home, _ = homes
    fifo, link, folder, garbage, huge = (home.root / f"logs/journal/other-{number}" / FILE for number in range(5))
    for path in (fifo, link, folder, garbage, huge):
        path.parent.mkdir(parents=True)
    os.mkfifo(fifo)
    link.symlink_to("/dev/zero")
    folder.mkdir()
    garbage.write_bytes(b"{")
    huge.write_bytes(b"0" * 5_000_000)
    home.run()
    home.wait_until_serving(DEAD_SECONDS + 20)
    began = time.monotonic()
    home.started[0].terminate()
    home.started[0].wait(30)
    assert time.monotonic() - began < DEAD_SECONDS
