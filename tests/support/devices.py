"""Devices that share a brain, and two ways in which files come from one to the other: a sync service, and git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.cli.brains import set_up
from brainiac.events import content_hash
from brainiac.history.copies import settle_versions
from brainiac.storage.commit import Committer
from brainiac.storage.journal import Journal
from brainiac.testing import CountingDisk, Crash, FileSync, run_once

JOURNALS = "logs/"


@dataclass
class Device:
    """A machine with a copy of the brain and state of its own.

    Attributes:
        home: Where its state, cache and config are.
        root: The brain.
        patch: Sets the environment.
        seen: The hash of each text that stood in a file of memory, inbox or settings when its daemon looked.
    """

    home: Path
    root: Path
    patch: pytest.MonkeyPatch
    seen: set[str] = field(default_factory=set)

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

    def look(self) -> None:
        """Do what a daemon does of its own accord: take in what changed, and merge what two devices wrote."""
        with self.opened() as brain:
            brain.observed.adopt()
            self._note_texts(brain)
            settle_versions(brain)
            self._note_texts(brain)

    def _note_texts(self, brain: Brain) -> None:
        texts = {path: content_hash(raw) for path, raw in self.files().items() if brain.tree.is_tracked(path)}
        # what is being saved at this moment is looked at again
        self.seen |= {digest for path, digest in texts.items() if brain.observed.hash_of(path) == digest}

    def run(self) -> None:
        with self.opened() as brain:
            run_once(brain)
            self._note_texts(brain)

    def drop(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def holds(self, path: str) -> bool:
        return (self.root / path).exists()

    def promote(self) -> None:
        with self.opened() as brain:
            if brain.is_active:
                promote(brain)

    def crash(self, disk: CountingDisk) -> None:
        """Take in what changed, merge and promote, on a disk that stops in the middle; nothing is put in order then."""
        self.enter()
        brain = Brain(self.root)
        brain.__dict__["journal"] = Journal(brain.tree, brain.places, disk)
        brain.__dict__["committer"] = Committer(brain.tree, brain.places, brain.journal, brain.clock, disk)
        with suppress(Crash):
            brain.observed.adopt()
            settle_versions(brain)
            if brain.is_active:
                promote(brain)
        brain.committer.database.close()
        brain.database.close()

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
            set_up(device.root)

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
