"""Computers that share a brain: homes of their own, real daemons, and the real Syncthing between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.pipeline import eventually

START_SECONDS = 300.0


@dataclass
class Machine:
    """A computer with state of its own, a folder that is synced, and the daemon that serves it.

    Attributes:
        home: Where its state, cache and config are.
        root: The brain.
        daemon: Its process, where one runs.
    """

    home: Path
    root: Path
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        own = {f"XDG_{each}_HOME": str(self.home / each.lower()) for each in ("STATE", "CACHE", "CONFIG")}
        base = {name: value for name, value in os.environ.items() if name != "BRAINIAC_HOME"}
        return {**base, **own, "HOME": str(self.home), "PYTHONPATH": str(Path(__file__).parent.parent)}

    def run(self, *words: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Brainiac to its end."""
        self.home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "brainiac", "--brain", os.fspath(self.root), *words]
        done = subprocess.run(
            command, env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=600, check=False
        )
        assert not is_checked or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    @contextmanager
    def served(self) -> Iterator[float]:
        """Run the daemon; yield the seconds until it watched."""
        begun = time.monotonic()
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "log").open("wb") as log:
            command = [sys.executable, "-m", "brainiac", "--brain", os.fspath(self.root), "run"]
            self.daemon = subprocess.Popen(command, env=self.environment, cwd=self.home, stdout=log, stderr=log)
        try:
            eventually(lambda: "Watching" in self.log, "the daemon watches", START_SECONDS)
            yield round(time.monotonic() - begun, 1)
        finally:
            self.daemon.terminate()
            self.daemon.wait(60)
            self.daemon = None

    @property
    def log(self) -> str:
        with suppress(OSError):
            return (self.home / "log").read_text()
        return ""

    @property
    def device(self) -> str:
        return (self.home / "state/brainiac/device_id").read_text().strip()

    def events(self, kind: str) -> list[dict[str, object]]:
        """Return the events of a kind in the journal of every device, as they stand in this folder."""
        files = sorted((self.root / "logs/journal").glob("*/*.jsonl"))
        events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [event for event in events if event["kind"] == kind]
