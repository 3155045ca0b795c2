"""Devices that share a brain, and two ways in which files come from one to the other: a sync service, and git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.testing import FileSync, run_once
from tests.support.commands import do

JOURNALS = "logs/"


@dataclass
class Device:
    """A machine with a copy of the brain and state of its own.

    Attributes:
        home: Where its state, cache and config are.
        root: The brain.
        patch: Sets the environment.
    """

    home: Path
    root: Path
    patch: pytest.MonkeyPatch

    @contextmanager
    def opened(self) -> Iterator[Brain]:
        self.enter()
        brain = Brain(self.root)
        try:
            yield brain
        finally:
            brain.close()

    def enter(self) -> None:
        """Make what is opened from now on this machine's."""
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            self.patch.setenv(variable, str(self.home / variable))

    def run(self) -> None:
        with self.opened() as brain:
            run_once(brain)

    def drop(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def holds(self, path: str) -> bool:
        return (self.root / path).exists()

    def promote(self) -> None:
        with self.opened() as brain:
            if brain.is_active:
                do(brain, "promote")

    def files(self) -> dict[str, bytes]:
        """Return what is synced: all but what belongs to one machine."""
        return FileSync().files(self.root)


class Syncthing:
    """A sync tool.

    Args:
        left_out: Beginnings of paths that are not synced: `logs/` as with Obsidian Sync.
    """

    def __init__(self, left_out: tuple[str, ...] = ()) -> None:
        self.tool = FileSync(left_out)

    def begin(self, devices: Sequence[Device]) -> None:
        for device in devices[1:]:
            self.sync(devices[0], device)

    def sync(self, source: Device, target: Device, part: str = "") -> None:
        """Bring what the source has to the target: the paths that begin with `part`; the rest is on its way."""
        self.tool.send(source.root, target.root, part)


class Git:
    """Git through a bare repository, with the merge driver, as the plugin does it."""

    def begin(self, devices: Sequence[Device]) -> None:
        first, *others = devices
        hub = first.root.parent / "hub"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", hub], check=True)
        _git(first, "init", "-q", "-b", "main")
        _git(first, "remote", "add", "origin", os.fspath(hub))
        _commit(first)
        _git(first, "push", "-qu", "origin", "main")
        for device in others:
            subprocess.run(["git", "clone", "-q", hub, device.root], check=True)
        for device in devices:
            with device.opened() as brain:
                do(brain, "git", "setup")

    def sync(self, source: Device, target: Device, part: str = "") -> None:
        for device in (source, target):
            _commit(device)
            if _git(device, "pull", "-q", "--no-rebase", "--no-edit", is_checked=False):
                _commit(device)  # a file that one deleted and the other changed stands; markers are merged later
            _git(device, "push", "-q")
        _git(source, "pull", "-q", "--no-rebase", "--no-edit")


def _commit(device: Device) -> None:
    _git(device, "add", "-A")
    _git(device, "commit", "-qm", "changed", is_checked=False)


def _git(device: Device, *arguments: str, is_checked: bool = True) -> int:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=device.root, capture_output=True, check=False, text=True)
    assert not is_checked or done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.returncode
