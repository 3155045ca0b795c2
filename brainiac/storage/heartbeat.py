"""How two daemons on one folder, from two homes (a container, another user), see each other: one serves, others wait.

Each writes a heartbeat beside its journal, `logs/journal/<device>/.~brainiac-heartbeat.tmp`, a name that git, Syncthing
and other sync tools skip. No clocks are compared: a daemon whose heartbeat changes is alive, one whose heartbeat did
not change for `DEAD_SECONDS` is dead. A heartbeat names its own inode, so that a copied or synced one is ignored.
Decision: docs/decisions/two-homes.md.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from brainiac.clock import iso
from brainiac.errors import LockedError, StorageError
from brainiac.storage.files import locked
from brainiac.storage.runstate import LOCK
from brainiac.storage.store import Store

FILE = ".~brainiac-heartbeat.tmp"
BEAT_SECONDS = 1.0
DEAD_SECONDS = 10.0
STILL_SECONDS = 7.0  # a daemon that wrote no beat for so long may soon be taken for dead, and checks before it writes
_LOOK_SECONDS = 0.1
_BYTES = 1024
# a link that came by git is not followed, and a pipe not waited for
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Beat:
    """The content of a heartbeat file.

    Attributes:
        device: Id of the daemon's device.
        host: Name of its machine.
        pid: Its process.
        since: ISO 8601 UTC, when the daemon asked to serve; of two that start at once the earlier one serves.
        beat: Grows with every beat.
        inode: Of the file that this was written to.
        is_active: The settings name this device to run the processes, or name none.
        is_serving: The daemon runs the processes; False while it waits for another daemon to end.
        is_ended: The daemon stopped, or was found dead; the next daemon finishes its work.
    """

    device: str
    host: str = ""
    pid: int = 0
    since: str = ""
    beat: int = 0
    inode: int = 0
    is_active: bool = True
    is_serving: bool = True
    is_ended: bool = False

    @property
    def rank(self) -> tuple[bool, bool, str, str]:
        """Sort key; of several daemons the lowest serves.

        First comes the device that the settings name, then one that serves already, then the earliest.
        """
        return not self.is_active, not self.is_serving, self.since, self.device

    def __str__(self) -> str:
        return f"the daemon of {self.device} (process {self.pid} on {self.host or 'an unknown host'})"


class _File(NamedTuple):
    """A heartbeat file of another home's daemon, with its content and what that says."""

    path: str
    content: bytes
    beat: Beat


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A heartbeat file as this process last read it.

    Attributes:
        content: Of the file.
        since: Monotonic time when this content was first read.
        has_changed: Whether the content was different at an earlier reading.
    """

    content: bytes
    since: float
    has_changed: bool = False


class OtherDaemons:
    """The daemons of other homes on this folder, and whether they are alive.

    Args:
        store: Whose folder.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sightings: dict[str, _Sighting] = {}  # by device

    def look(self) -> list[Beat]:
        """Return the daemons that may be alive: their heartbeat changed, or was first read, within `DEAD_SECONDS`."""
        now, beats = time.monotonic(), []
        for _, content, beat in _files(self._store):
            # two machines' clocks may differ: only our own monotonic clock is asked how long the content is the same
            sighting = self._sightings.setdefault(beat.device, _Sighting(content, now))
            if content != sighting.content:
                sighting = self._sightings[beat.device] = _Sighting(content, now, has_changed=True)
            if not beat.is_ended and now - sighting.since < DEAD_SECONDS:
                beats.append(beat)
        return beats

    def living(self) -> list[Beat]:
        """Return the daemons that are certainly alive: their heartbeat changed since it was first read here."""
        return [beat for beat in self.look() if self._sightings[beat.device].has_changed]

    def end_dead(self) -> None:
        """Mark the heartbeats of dead daemons as ended, so that no daemon waits for them again."""
        possibly_alive = {beat.device for beat in self.look()}
        for file in list(_files(self._store)):
            if file.beat.device not in possibly_alive and not file.beat.is_ended:
                with suppress(OSError):
                    _write(Path(file.path), replace(file.beat, is_ended=True))


class Heartbeat:
    """The heartbeat of this process.

    Args:
        store: Whose folder it is to serve.
        on_replaced: Called once, in the heartbeat's thread, when another daemon serves instead.
    """

    def __init__(self, store: Store, on_replaced: Callable[[], None]) -> None:
        self._store, self._on_replaced, self._others = store, on_replaced, OtherDaemons(store)
        self._path = store.tree.confine(store.tree.journal / store.journal.device / FILE)
        self._own = Beat(store.journal.device, socket.gethostname(), os.getpid(), is_serving=False)
        self._mutex = threading.RLock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._beat_at = 0.0  # monotonic, of the last beat; 0.0 while no heartbeat is written
        self.is_replaced = False

    def claim(self, wait: Callable[[Beat], bool]) -> bool:
        """Become the only daemon that serves this folder.

        While another daemon serves, only the heartbeat is written. A daemon first writes its heartbeat and then looks
        for others: of two that start at once at least one sees the other, and the one of higher `rank` withdraws.

        Args:
            wait: Called repeatedly with the serving daemon while there is one; returns False to give up.

        Returns:
            Whether this daemon serves now.
        """
        self._own = replace(self._own, since=iso(self._store.clock.now()))
        may_serve = False
        try:
            may_serve = self._wait_for_turn(wait)
        finally:
            if not may_serve:
                self._withdraw()
        if not may_serve:
            return False
        self._others.end_dead()
        self._own = replace(self._own, is_serving=True)
        self._write_beat()
        self._thread.start()
        return True

    def _wait_for_turn(self, wait: Callable[[Beat], bool]) -> bool:
        """Wait until no other daemon serves or is about to; return False where `wait` gave up."""
        while True:
            self._own = replace(self._own, is_active=self._store.is_active)
            others = self._others.look()
            lower = [beat for beat in others if beat.rank < self._own.rank]
            if lower:  # these serve first
                self._withdraw()
            elif not self._beat_at:
                self._write_beat()
                continue  # look again: another may have written its heartbeat at the same moment
            elif others:
                self._write_beat()  # the others see it and withdraw, or prove to be dead
            else:
                return True
            if not wait(min(lower or others, key=lambda beat: beat.rank)):
                return False

    def _withdraw(self) -> None:
        """Mark this daemon's heartbeat as ended, if one was written."""
        if self._beat_at:
            self._end()
        self._beat_at = 0.0

    def check(self) -> None:
        """Make sure, before each commit, that no other daemon serves instead, as after this machine slept.

        Raises:
            StorageError: Another one does: this process must not write any more.
        """
        if time.monotonic() - self._beat_at > STILL_SECONDS:
            self._beat()
        if self.is_replaced:
            raise StorageError("Another daemon serves this brain by now; this one stands back and begins anew.")

    def stop(self) -> None:
        """Stop beating and mark the heartbeat as ended; a waiting daemon takes over at once."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(BEAT_SECONDS + 5)
        with self._mutex:
            if self._beat_at and not self.is_replaced:
                self._end()

    def _run(self) -> None:
        """Write a beat every second until the daemon stops or another one serves; runs in its own thread."""
        while not self._stopping.wait(BEAT_SECONDS) and not self.is_replaced:
            self._beat()
        if self.is_replaced:
            self._on_replaced()

    def _beat(self) -> None:
        """Write a beat and look for other daemons; give up serving where one of lower `rank` is alive.

        After a pause of `STILL_SECONDS` (this machine slept) give up for any other daemon: it took this one for dead
        and serves.
        """
        with self._mutex:
            was_paused = time.monotonic() - self._beat_at > STILL_SECONDS
            self._own = replace(self._own, is_active=self._store.is_active)
            self._write_beat()  # before looking: of two that do this at once, one sees the other
            # after a pause no heartbeat was read twice yet: those that may be alive count too
            others = self._others.look() if was_paused else self._others.living()
            if (was_paused and others) or any(beat.rank < self._own.rank for beat in others):
                self.is_replaced = True
                self._end()

    def _write_beat(self) -> None:
        """Write the next beat; a full disk is ignored, since it stops the other daemons' beats too."""
        self._own, self._beat_at = replace(self._own, beat=self._own.beat + 1), time.monotonic()
        with suppress(OSError):
            # while the brain's disk is not mounted, the folder would be made below the mount point
            if self._store.tree.is_there:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _write(self._path, self._own)

    def _end(self) -> None:
        """Mark this daemon's heartbeat as ended."""
        with suppress(OSError):
            _write(self._path, replace(self._own, is_ended=True))


def is_running(store: Store) -> bool:
    """Return whether a daemon serves this brain's folder, of this home or another."""
    try:
        # a daemon of this home holds the lock as long as it lives
        with locked(store.places.state / LOCK, wait_seconds=0):
            pass
    except LockedError:
        return True
    return other_daemon(store) is not None


def other_daemon(store: Store) -> Beat | None:
    """Return the daemon of another home that serves this folder; None where there is none.

    Takes up to one beat, and `DEAD_SECONDS` once where a daemon died.
    """
    others = OtherDaemons(store)
    while others.look():
        if living := others.living():
            return living[0]
        time.sleep(_LOOK_SECONDS)
    others.end_dead()
    return None


def require_alone(store: Store) -> None:
    """Raise if a daemon of another home serves this folder; for work that only one home at a time may do.

    Raises:
        LockedError: A daemon of another home serves this folder.
    """
    if other := other_daemon(store):
        raise LockedError(f"{serving_message(store, other)}; do this in its home, or stop it first")


def serving_message(store: Store, other: Beat) -> str:
    """Return a sentence that says which daemon serves the folder of a brain."""
    return f"{other} serves {store.root}"


def possible_other_daemon(store: Store) -> Beat | None:
    """Return a daemon that probably serves this folder from another home, by its heartbeat's file time; None for none.

    Enough for a message, and at once; `other_daemon` is certain and takes up to ten seconds.
    """
    now = time.time()  # file times are the system clock's
    recent = (file.beat for file in _files(store) if now - _changed_at(file.path) < DEAD_SECONDS)
    return next((beat for beat in recent if not beat.is_ended), None)


def ended_devices(store: Store) -> set[str]:
    """Return the devices whose daemons served this very folder and ended; the next daemon finishes their work."""
    return {file.beat.device for file in _files(store) if file.beat.is_ended}


def devices_in_folder(store: Store) -> set[str]:
    """Return the devices whose daemons serve, or served, this very folder."""
    return {file.beat.device for file in _files(store)}


def _files(store: Store) -> Iterator[_File]:
    """Yield the heartbeats that other homes' daemons wrote to this folder."""
    with suppress(OSError), os.scandir(store.tree.journal) as folders:
        for folder in folders:
            path = os.path.join(folder.path, FILE)
            # a link that came by git may lead out of the brain
            if folder.name == store.journal.device or folder.is_symlink():
                continue
            try:
                content, inode = _read(path)
            except OSError:
                continue
            beat = _parsed(folder.name, content, inode)
            if beat.inode == inode:  # else a sync, a copy or a backup brought it here
                yield _File(path, content, beat)


def _read(path: str) -> tuple[bytes, int]:
    """Return content and inode of a regular file.

    Raises:
        OSError: There is none.
    """
    file = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(f"{path} is no regular file")
        return os.read(file, _BYTES), info.st_ino
    finally:
        os.close(file)


def _parsed(device: str, content: bytes, inode: int) -> Beat:
    """Return the beat in a heartbeat file; one with only device and inode where the file is half written or damaged."""
    unknown = Beat(device, inode=inode)
    try:
        beat = Beat(**{**json.loads(content), "device": device})
    except (ValueError, TypeError):
        return unknown
    is_valid = all(type(getattr(beat, name)) is type(value) for name, value in asdict(unknown).items())
    return beat if is_valid else unknown


def _write(path: Path, beat: Beat) -> None:
    """Write a heartbeat in place and in one write, so that it keeps the inode that it names and is read whole."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(f"{path} is no regular file")
        text = json.dumps(asdict(replace(beat, inode=info.st_ino)))
        # always of the same length, since the former beat is written over
        os.write(file, text.ljust(_BYTES - 1).encode() + b"\n")
    finally:
        os.close(file)


def _changed_at(path: str) -> float:
    """Return when a file was last written, in seconds since 1970; 0 where there is none."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
