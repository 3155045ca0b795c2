"""Devices that share a brain, and two ways in which files come from one to the other: a sync service, and git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.cli.git import set_up
from brainiac.history.copies import settle_versions
from brainiac.testing import run_once

LEFT_OUT = ("logs/access.log",)


@dataclass
class Device:
    """A machine with a copy of the brain and state of its own."""

    home: Path
    root: Path
    patch: pytest.MonkeyPatch

    @contextmanager
    def opened(self) -> Iterator[Brain]:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            self.patch.setenv(variable, str(self.home / variable))
        brain = Brain(self.root)
        try:
            yield brain
        finally:
            brain.close()

    def look(self) -> None:
        """Do what a daemon does of its own accord: take in what changed, and merge what two devices wrote."""
        with self.opened() as brain:
            brain.observed.adopt()
            settle_versions(brain)

    def run(self) -> None:
        with self.opened() as brain:
            run_once(brain)

    def files(self) -> dict[str, bytes]:
        """Return what is synced: all but what belongs to one machine."""
        paths = (path for path in self.root.rglob("*") if path.is_file())
        relative = {path.relative_to(self.root).as_posix(): path for path in paths}
        return {
            name: path.read_bytes()
            for name, path in relative.items()
            if name not in LEFT_OUT and not name.startswith(".git/") and "/.~" not in name and "/.brainiac-" not in name
        }


@dataclass
class Syncthing:
    """Syncthing as observed: per file the receiver decides; where both changed, the later one stands and the other
    becomes a copy; a deletion loses against a change.
    """

    agreed: dict[str, bytes | None] = field(default_factory=dict)  # what both had last
    copies: int = 0

    def begin(self, devices: tuple[Device, Device]) -> None:
        self.agreed = dict(devices[0].files())
        for path, content in self.agreed.items():
            place = devices[1].root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content or b"")

    def sync(self, source: Device, target: Device) -> None:
        theirs, ours = source.files(), target.files()
        for path in sorted(theirs.keys() | ours.keys()):
            their, our, former = theirs.get(path), ours.get(path), self.agreed.get(path)
            if their == our:
                self.agreed[path] = their
            elif their != former and (our == former or self._is_later(source, target, path, their, our)):
                if our not in (former, None):
                    self.copies += 1
                    stem, dot, ending = path.rpartition(".")
                    name = f"{stem}.sync-conflict-20260101-{self.copies:06d}-ABCDEFG{dot}{ending}"
                    (target.root / name).write_bytes(our or b"")
                self._put(target, path, their)
                self.agreed[path] = their

    @staticmethod
    def _is_later(source: Device, target: Device, path: str, their: bytes | None, our: bytes | None) -> bool:
        if their is None or our is None:
            return our is None
        return (source.root / path).stat().st_mtime_ns > (target.root / path).stat().st_mtime_ns

    @staticmethod
    def _put(target: Device, path: str, content: bytes | None) -> None:
        place = target.root / path
        if content is None:
            place.unlink(missing_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


class Git:
    """Git through a bare repository, with the merge driver, as the plugin does it."""

    def begin(self, devices: tuple[Device, Device]) -> None:
        one, other = devices
        hub = one.root.parent / "hub"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", hub], check=True)
        _git(one, "init", "-q", "-b", "main")
        _git(one, "remote", "add", "origin", os.fspath(hub))
        _commit(one)
        _git(one, "push", "-qu", "origin", "main")
        subprocess.run(["git", "clone", "-q", hub, other.root], check=True)
        for device in devices:
            set_up(device.root)

    def sync(self, source: Device, target: Device) -> None:
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
