"""The brains of tests/data/first_version, put where the code under test looks for them, with all of their state."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from brainiac.storage.heartbeat import FILE as HEARTBEAT
from brainiac.tree import LocalPlaces
from tests.support.plain_reader import decoded, is_temporary, texts
from tests.support.program import Program, run_program

DATA = Path(__file__).parent.parent / "data/first_version"
START_SECONDS, STOP_SECONDS = 90.0, 40.0


@dataclass
class OldBrain:
    """A brain of the first version on a machine of its own, which the present code takes up.

    Attributes:
        root: The brain.
        home: What is this machine's: state, cache, config.
        words: What a person said and wrote there (words.json).
        inbox: Where prompts stand, relative.
        memory: Where memory stands.
        logs: Where the journal stands.
        stages: Every file of the tree, by what had happened until then.
    """

    root: Path
    home: Path
    words: dict[str, Any]
    inbox: str = "inbox"
    memory: str = "memory"
    logs: str = "logs"
    stages: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command on it."""
        return run_program("--brain", str(self.root), *arguments, env=self._environment)

    def run_until(self, condition: Callable[[], bool], what: str) -> None:
        """Run the daemon until something holds and nothing is written any more, and end it as a person does."""
        log = self.home / "daemon.log"
        with log.open("ab") as out:
            daemon = Program("--brain", str(self.root), "run", out=out, env=self._environment)
        try:
            end = time.monotonic() + START_SECONDS
            while not condition():
                assert daemon.poll() is None, f"the daemon ended: {log.read_text()[-3000:]}"
                assert time.monotonic() < end, f"{what} did not happen: {log.read_text()[-3000:]}"
                time.sleep(0.2)
            self._wait_for_rest()
            daemon.send_signal(signal.SIGTERM)
            assert 0 == daemon.wait(STOP_SECONDS), log.read_text()[-3000:]
        finally:
            if daemon.poll() is None:
                daemon.kill()
            daemon.wait()

    def note(self, stage: str) -> None:
        """Keep every file as it stands now."""
        self.stages[stage] = texts(self.root)

    def text(self, stage: str, *folders: str) -> str:
        """Return all that stood in some folders at a stage, journal and access log apart; without folders, all."""
        return "\n".join(map(decoded, self.files(stage, *folders).values()))

    def files(self, stage: str, *folders: str) -> dict[str, bytes]:
        """Return the files of `text` by path."""
        wanted, hidden = tuple(f"{folder}/" for folder in folders) or ("",), f"{self.logs}/"
        kept = self.stages[stage].items()
        return {p: t for p, t in kept if p.startswith(wanted) and not p.startswith(hidden) and not is_temporary(p)}

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BRAINIAC", "XDG_"))}
        return kept | {"HOME": str(self.home), **_places(self.home)}

    def _wait_for_rest(self, seconds: float = 1.5) -> None:
        stamp, since, end = self._stamp(), time.monotonic(), time.monotonic() + START_SECONDS
        while time.monotonic() - since < seconds and time.monotonic() < end:
            time.sleep(0.2)
            if (now := self._stamp()) != stamp:
                stamp, since = now, time.monotonic()

    def _stamp(self) -> dict[str, int]:
        found = {}
        for path in self.root.rglob("*"):
            if path.name == HEARTBEAT:  # it changes each second
                continue
            try:
                found[str(path)] = path.stat().st_mtime_ns
            except FileNotFoundError:
                continue
        return found


def unpacked(name: str, folder: Path, *, inbox: str = "inbox", memory: str = "memory", logs: str = "logs") -> OldBrain:
    """Unpack one of the brains into a folder, and its state where the present code looks for it."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="tar")
    root, home = folder / "brain", folder / "home"
    found = re.search(r"^brain_id: (\S+)", (root / "system/config.yaml").read_text("utf-8"), re.MULTILINE)
    assert found
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in _places(home).items():
            patch.setenv(variable, value)
        places = LocalPlaces.of(root, found[1])
    places.device.mkdir(parents=True, exist_ok=True)
    (folder / "device/device_id").rename(places.device / "device_id")
    places.state.parent.mkdir(parents=True, exist_ok=True)
    (folder / "state").rename(places.state)
    words = json.loads((DATA / "words.json").read_text("utf-8"))[name]
    return OldBrain(root, home, words, inbox, memory, logs)


def _places(home: Path) -> dict[str, str]:
    return {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "CACHE", "CONFIG")}
