"""Computers that share a brain: homes of their own, real daemons, and the real Syncthing between them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

from tests.support.pipeline import eventually
from tests.support.program import Program, run_program

START_SECONDS = 300.0
_IS_LOCAL = re.compile(r"(?:^|/)\.(?:brainiac-|~|st|git/|syncthing\.)|^logs/(?:access\.log|digest)")


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
    daemon: Program | None = None

    @property
    def environment(self) -> dict[str, str]:
        own = {f"XDG_{each}_HOME": str(self.home / each.lower()) for each in ("STATE", "CACHE", "CONFIG")}
        base = {name: value for name, value in os.environ.items() if name != "BRAINIAC_HOME"}
        return {**base, **own, "HOME": str(self.home)}

    def run(self, *words: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Brainiac to its end."""
        self.home.mkdir(parents=True, exist_ok=True)
        done = run_program("--brain", os.fspath(self.root), *words, env=self.environment, cwd=self.home, seconds=600)
        assert not is_checked or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    @contextmanager
    def served(self) -> Iterator[float]:
        """Run the daemon; yield the seconds until it watched."""
        begun = time.monotonic()
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "log").open("wb") as log:
            line = ("--brain", os.fspath(self.root), "run")
            self.daemon = Program(*line, out=log, env=self.environment, cwd=self.home)
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

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def files(self) -> dict[str, bytes]:
        """Return what is synced: all but what `.stignore` leaves out and what Syncthing keeps for itself."""
        paths = {self.relative(path): path for path in self.root.rglob("*") if path.is_file()}
        files = {}
        for name in sorted(paths):
            with suppress(FileNotFoundError):  # it was replaced or moved at this moment
                if not _IS_LOCAL.search(name):
                    files[name] = paths[name].read_bytes()
        return files

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind in the journal of every device, as they stand in this folder."""
        texts = [text for path, text in sorted(self.files().items()) if path.endswith(".jsonl")]
        events = [json.loads(line) for text in texts for line in text.splitlines() if line.endswith(b"}")]
        return [event for event in events if event["kind"] == kind]


class Syncthing:
    """The real Syncthing on loopback between machines, each with a process of its own.

    Args:
        machines: Whose roots are synced; all but the first are filled.
        folder: Where it keeps its state.
    """

    def __init__(self, machines: Sequence[Machine], folder: Path) -> None:
        self.nodes = [_Node(machine, folder / str(number)) for number, machine in enumerate(machines)]

    def __enter__(self) -> Self:
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.connect(self.nodes)
        return self

    def __exit__(self, *exc: object) -> None:
        for node in self.nodes:
            node.process.terminate()
        for node in self.nodes:
            node.process.wait(30)

    def set_online(self, is_online: bool, machine: Machine) -> None:
        """Take a machine off the network, or bring it back."""
        for node in self.nodes:
            if node.machine is machine:
                node.request("POST", f"system/{'resume' if is_online else 'pause'}")

    def wait_until_same(self, seconds: float = 120.0) -> None:
        """Wait until all that was written has arrived everywhere."""
        eventually(self._is_same, "everything is synced", seconds)

    def _is_same(self) -> bool:
        trees = [node.machine.files() for node in self.nodes]
        return all(tree == trees[0] for tree in trees[1:]) and all(node.is_at_rest for node in self.nodes)


class _Node:
    """The Syncthing of one machine.

    Args:
        machine: Whose root it syncs.
        home: Of its own.
    """

    def __init__(self, machine: Machine, home: Path) -> None:
        self.machine, self.home = machine, home
        self.port, self.sync_port = _free_ports(2)
        machine.root.mkdir(parents=True, exist_ok=True)
        self._call("generate", "--home", os.fspath(home), "--no-default-folder", "--skip-port-probing")
        text = (home / "config.xml").read_text()
        self.id = re.findall(r'<device id="([A-Z0-9-]+)"', text)[0]
        self.key = re.findall("<apikey>(.*?)</apikey>", text)[0]
        text = re.sub(r"<address>127\.0\.0\.1:\d+</address>", f"<address>127.0.0.1:{self.port}</address>", text)
        text = text.replace("<listenAddress>default<", f"<listenAddress>tcp://127.0.0.1:{self.sync_port}<")
        for option in ("globalAnnounce", "localAnnounce", "relays", "nat", "crashReporting"):
            text = text.replace(f"<{option}Enabled>true<", f"<{option}Enabled>false<")
        (home / "config.xml").write_text(re.sub("<urAccepted>.*?<", "<urAccepted>-1<", text))

    def start(self) -> None:
        with (self.home / "log").open("wb") as log:
            command = ["syncthing", "serve", "--home", os.fspath(self.home), "--no-browser"]
            self.process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        eventually(self._answers, "Syncthing starts", 60)

    def connect(self, nodes: Sequence[_Node]) -> None:
        """Share the brain with the other machines."""
        for node in nodes:
            if node is not self:
                address = f"tcp://127.0.0.1:{node.sync_port}"
                self.request("POST", "config/devices", {"deviceID": node.id, "addresses": [address]})
        folder: dict[str, object] = {
            "id": "brain",
            "path": os.fspath(self.machine.root),
            "devices": [{"deviceID": n.id} for n in nodes],
        }
        folder |= {"fsWatcherDelayS": 1, "rescanIntervalS": 10, "minDiskFree": {"value": 0, "unit": "%"}}
        self.request("POST", "config/folders", folder)

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Call its REST interface."""
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        url, data = f"http://127.0.0.1:{self.port}/rest/{path}", None if body is None else json.dumps(body).encode()
        with urlopen(Request(url, data, headers, method=method), timeout=10) as reply:
            text = reply.read()
        return json.loads(text) if text.strip() else None

    @property
    def is_at_rest(self) -> bool:
        state = self.request("GET", "db/status?folder=brain")
        return bool(state["state"] == "idle" and state["needTotalItems"] == 0)

    def _answers(self) -> bool:
        with suppress(OSError):
            self.request("GET", "system/ping")
            return True
        return False

    def _call(self, *words: str) -> None:
        subprocess.run(["syncthing", *words], env=self._environment, capture_output=True, check=True)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "STNOUPGRADE": "1", "STNODEFAULTFOLDER": "1", "HOME": os.fspath(self.home)}


def _free_ports(count: int) -> list[int]:
    """Return ports of loopback on which nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
