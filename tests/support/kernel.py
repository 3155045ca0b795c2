"""What the kernel's tests share: a small brain, and disks that fail at a chosen operation."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from brainiac import Brain
from brainiac.clock import Clock, ManualClock
from brainiac.storage.commit import Committer
from brainiac.storage.database import StateDatabase
from brainiac.storage.files import Disk
from brainiac.storage.journal import BlobStore, Journal
from brainiac.storage.transactions import WriteAhead
from brainiac.testing import CountingDisk as CountingDisk
from brainiac.testing import Crash as Crash

STM = "memory/short_term.md"
EMPTY_STM = (
    "# Short-Term Memory Scratchpad\n\n## Summary\n\n---\n## Structured Data\n### Goals\n"
    "### Key Facts & Decisions\n### Tasks\n\n---\n## Event Log\n"
)
OPERATIONS = CountingDisk.OPERATIONS


class Kernel:
    """A brain's durable part, opened; what it has is the brain's."""

    def __init__(self, brain: Brain) -> None:
        self.brain = brain

    def __getattr__(self, name: str) -> Any:
        return getattr(self.brain, name)

    def advance(self, seconds: float) -> None:
        """Move the clock, which is one moved by hand."""
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds)

    def read(self, path: str) -> bytes | None:
        absolute = self.tree.absolute(path)
        return absolute.read_bytes() if absolute.is_file() else None

    def write(self, path: str, text: str | bytes) -> None:
        absolute = self.tree.absolute(path)
        absolute.parent.mkdir(parents=True, exist_ok=True)
        absolute.write_bytes(text if isinstance(text, bytes) else text.encode())

    def tracked(self) -> dict[str, bytes]:
        """Every tracked file that stands, with its content."""
        entries = self.tree.walk(self.tree.inbox, self.tree.memory, self.tree.system)
        paths = [self.tree.relative(entry.path) for entry in entries]
        return {path: self.tree.absolute(path).read_bytes() for path in paths if self.tree.is_tracked(path)}

    def changed(self) -> list[str]:
        """The tracked files that are not as last seen, as a watcher would tell; those that are gone last."""
        with self.committer.commit_lock():
            self.committer.finish_pending()  # after git took the journal back, every file counts as changed
        states = self.committer.file_states.all()
        missing = [path for path in states if not os.path.lexists(self.tree.absolute(path))]
        return [*self.observed.restamped(), *(path for path in missing if not states[path].is_held)]

    def folded(self) -> dict[str, bytes]:
        """The same, as the journal tells it."""
        fold = self.journal.fold()
        return {path: self.journal.blobs.get(digest) for path, digest in fold.items() if self.tree.is_tracked(path)}


def everything(kernel: Kernel) -> list[bytes]:
    """Every text that stands in any file: tree, temporaries, blobs, commits that may be unfinished."""
    texts = [Path(folder, name).read_bytes() for folder, _, names in os.walk(kernel.root) for name in names]
    blobs = BlobStore(kernel.tree.journal / "blobs")
    for path in blobs.folder.glob("??/*"):
        if not path.name.startswith("."):
            texts.append(blobs.get(path.parent.name + path.name.removesuffix(".splice")))
    with closing(StateDatabase(kernel.places)) as database:
        for intent in WriteAhead(database, Disk()).read():
            texts += intent.texts.values()
    return texts


def forget_seen(places: Any) -> None:
    """Empty the table of what was seen of each file, which is derived."""
    with closing(sqlite3.connect(places.state / "state.db")) as database, database:
        database.executescript("DELETE FROM seen; DELETE FROM position")


def make_root(root: Path) -> Path:
    """Make the smallest brain."""
    for folder in ("inbox", "memory/long_term/concrete", "memory/archive", "system", "logs/journal"):
        (root / folder).mkdir(parents=True)
    (root / "system/core_identity.md").write_text("# Identity\n")
    (root / STM).write_text(EMPTY_STM)
    return root


def open_kernel(root: Path, *, clock: Clock | None = None) -> Kernel:
    """Open a brain as a fresh process would, without recovering it."""
    return Kernel(Brain(root, clock=clock or ManualClock(datetime(2025, 9, 16, 15, 30, tzinfo=UTC))))


def failing_kernel(root: Path, disk: Disk, clock: Clock | None = None) -> Kernel:
    """Open it on another disk."""
    kernel = open_kernel(root, clock=clock)
    on_disk(kernel.brain, disk)
    return kernel


def on_disk(brain: Brain, disk: Disk) -> Brain:
    """Let all that a brain commits from now on go to another disk."""
    brain.__dict__["journal"] = Journal(brain.tree, brain.places, disk)
    brain.__dict__["committer"] = Committer(brain.tree, brain.places, brain.journal, brain.clock, disk)
    return brain


class PowerDisk(CountingDisk):
    """A disk whose power fails at the crash: what was not brought to the disk by fsync is cut off."""

    def __init__(self, stop_at: int = 0, how: str = "before") -> None:
        super().__init__(stop_at, how)
        self.volatile: dict[Path, int] = {}
        self.synced: dict[
            Path, bytes | None
        ] = {}  # files of a database when a transaction was last brought to the disk

    def reached(self, name: str, operation: Callable[..., object], *arguments: Any, **named: Any) -> object:
        paths = [argument for argument in arguments if isinstance(argument, Path)]
        if name == "transact":
            operation = partial(self._transact, operation)
        if name in ("write", "append"):
            (path,) = paths
            self.volatile.setdefault(path, path.stat().st_size if path.exists() else 0)
        result = super().reached(name, operation, *arguments, **named)
        if name == "fsync":
            self.volatile.pop(paths[0], None)
        elif name == "sync_filesystem":
            self.volatile.clear()
        elif name in ("replace", "rename_new", "exchange"):
            self._renamed(paths[0], paths[1], is_exchange=name == "exchange")
        return result

    def _transact(self, operation: Callable[..., object], database: Path, work: Callable[[], object]) -> object:
        result = operation(database, work)
        files = (database, Path(f"{database}-wal"))
        self.synced = {file: file.read_bytes() if file.exists() else None for file in files}
        return result

    def _renamed(self, one: Path, other: Path, is_exchange: bool) -> None:
        first, second = self.volatile.pop(one, None), self.volatile.pop(other, None)
        if first is not None:
            self.volatile[other] = first
        if is_exchange and second is not None:
            self.volatile[one] = second

    def fail(self) -> None:
        """Lose what was never brought to the disk; names stay, contents go. Databases must be closed."""
        for path, size in self.volatile.items():
            if path.is_file():
                os.truncate(path, size)
        for path, content in self.synced.items():  # what was committed since is gone
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
