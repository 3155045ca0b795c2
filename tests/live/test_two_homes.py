"""Two daemons on one folder, from two homes: one serves, the other says so and ends; nothing is done twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from brainiac.storage.serving import FILE
from tests.support.commands import Shell
from tests.support.living import living_brain, unprivileged
from tests.support.pipeline import eventually
from tests.support.program import Program, run_program

REFUSED = "A daemon of another home on this machine"


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

    def status(self) -> Any:
        done = self("status", "--json")
        assert 0 == done.returncode, done.stderr
        return json.loads(done.stdout)

    def wait_until_serving(self, seconds: float = 60) -> None:
        eventually(lambda: '"event": "watching"' in self.log, f"{self.folder.name} serves", seconds)

    def check_refused(self) -> None:
        """A daemon of this home says that another serves, with what to do, and ends."""
        assert 1 == self.run().wait(30)
        assert REFUSED.casefold() in " ".join(self.log.casefold().split())
        assert "stop that one first" in " ".join(self.log.split())


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    """One brain and two homes on it."""
    root = living_brain(tmp_path / "brain")
    both = Home(tmp_path / "host", root), Home(tmp_path / "container", root)
    for home in both:
        home.folder.mkdir()
    yield both
    for daemon in (daemon for home in both for daemon in home.started):
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


def test_one_serves_and_the_other_says_so_and_ends(homes: tuple[Home, Home]) -> None:
    """Each prompt is answered and reflected once, and the second writes nothing. Once the first is killed with -9,
    the second serves at once."""
    first, second = homes
    root = first.root
    daemon = first.run()
    first.wait_until_serving()
    second.check_refused()
    assert 1 == len(list((root / "logs/journal").glob("*-*"))), "the second has no journal"
    status = second.status()
    assert status["daemon"]["elsewhere"].startswith(REFUSED.lower())
    assert not status["daemon"]["is_running"]
    ask(root, range(8))
    wait_for(root, range(8))
    check_each_once(root, range(8))
    daemon.kill()
    daemon.wait(30)
    second.run()
    second.wait_until_serving(20)
    ask(root, range(8, 12))
    wait_for(root, range(8, 12))
    check_each_once(root, range(12))
    first.check_refused()


def test_started_together_only_one_serves(homes: tuple[Home, Home]) -> None:
    """Of two that begin in the same moment one ends; nothing is done twice."""
    first, second = homes
    ask(first.root, range(12))
    daemons = [first.run(), second.run()]
    wait_for(first.root, range(12))
    check_each_once(first.root, range(12))
    assert 1 == sum('"event": "watching"' in home.log for home in homes)
    assert [1] == [daemon.wait(30) for daemon in daemons if daemon.poll() is not None]


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
        assert REFUSED.lower() in " ".join(done.err.lower().split()), words
    for words in (["status"], ["costs"], ["search", "lucky"], ["log"]):
        assert 0 == shell(*words).code, words
    assert REFUSED.lower() in " ".join(shell("status").out.lower().split())
    assert before == (first.root / "memory/short_term.md").read_bytes()
    assert {prompt: 1} == counted(first.root, "prompt-answered")


@pytest.mark.parametrize("what", ["link", "lost link", "fifo", "folder", "another's"])
def test_whatever_stands_in_the_place_of_the_lock(homes: tuple[Home, Home], tmp_path: Path, what: str) -> None:
    """A link that came by git, a pipe, a folder, a file that a sync brought: the daemon serves, keeps the other away,
    and follows no link."""
    first, second = homes
    path, outside = first.root / FILE, tmp_path / "outside"
    match what:
        case "link":
            outside.write_text("mine")
            path.symlink_to(outside)
        case "lost link":
            path.symlink_to(outside)
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_bytes(b"from elsewhere")
    daemon = first.run()
    first.wait_until_serving()
    second.check_refused()
    assert what == "link" or not outside.exists()
    assert what != "link" or ("mine", False) == (outside.read_text(), path.is_symlink())
    daemon.terminate()
    assert 0 == daemon.wait(30)


def test_a_lock_that_is_deleted_or_copied(homes: tuple[Home, Home]) -> None:
    """The file deleted or replaced under a daemon: it locks the new one at once, and a second daemon is still refused.
    A copy of the folder, the file included, is nobody's."""
    first, second = homes
    first.run()
    first.wait_until_serving()
    second.root = first.root.with_name("copy")
    shutil.copytree(first.root, second.root)
    copied = second.run()
    second.wait_until_serving()
    copied.terminate()
    assert 0 == copied.wait(30)
    second.root = first.root
    for new in (None, b"replaced"):
        (first.root / FILE).unlink()
        if new is not None:
            (first.root / FILE).write_bytes(new)
        eventually(lambda: bool(second.status()["daemon"].get("elsewhere")), "the new file is locked")
        second.check_refused()
        assert 1 == first("run").returncode
    ask(first.root, [0])
    wait_for(first.root, [0])
    check_each_once(first.root, [0])


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="permissions do not apply to root")
def test_a_folder_that_cannot_be_locked_is_served_all_the_same(homes: tuple[Home, Home]) -> None:
    """Where the lock's file cannot be made, the daemon says what will not be seen, and serves."""
    home, _ = homes
    home.root.chmod(0o555)
    words = [*unprivileged(), sys.executable, "-m", "brainiac", "--brain", str(home.root), "run"]
    with (home.folder / "log").open("a") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log, env=home.environment)
    try:
        home.wait_until_serving()
        (home.root / "inbox/p0.md").write_text("My lucky number 0 is 0.\n")
        wait_for(home.root, [0])
        assert "cannot be locked" in " ".join(home.log.split())
    finally:
        daemon.kill()
        daemon.wait(30)
        home.root.chmod(0o755)
