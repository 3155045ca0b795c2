"""How two daemons on one folder, from two homes (a container, another user), see each other: one serves, others wait.

Each writes a heartbeat beside its journal, `logs/journal/<device>/.~brainiac-heartbeat.tmp`, a name that git, Syncthing
and other sync tools pass over. Nothing rests on anybody's clock: whose heartbeat is seen to change lives, whose is not
for `DEAD_SECONDS` is dead. A heartbeat names its own inode, so one that was copied or synced here is told from one that
is written here. Decision: docs/decisions/two-homes.md.
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

from brainiac.clock import iso
from brainiac.errors import LockedError, StorageError
from brainiac.storage.store import Store

FILE = ".~brainiac-heartbeat.tmp"
BEAT_SECONDS = 1.0
DEAD_SECONDS = 10.0
STILL_SECONDS = 7.0  # who did not beat for so long, short of dead, may have been taken for dead
_LOOK_SECONDS = 0.1
_BYTES = 1024
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat tells of its daemon.

    Attributes:
        since: ISO 8601 UTC, when it began to want to serve; of two that begin at once the earlier one goes first.
        beat: Grows with every beat.
        inode: Of the file that this was written to.
        is_active: It is the device that the settings name to run the processes, or they name none.
        is_serving: It works; False while it still looks whether it may.
        is_ended: It ended, or was found dead; whoever serves next deals with what it left.
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
        """Of several that want to serve, the least may: the named device, who serves already, who came first."""
        return not self.is_active, not self.is_serving, self.since, self.device

    def __str__(self) -> str:
        return f"the daemon of {self.device} (process {self.pid} on {self.host or 'an unknown host'})"


class OtherDaemons:
    """The daemons of other homes on this folder, as they are seen to live.

    Args:
        store: Whose folder.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[str, tuple[bytes, float, bool]] = {}  # by path: content, since when it is so, whether it moved

    def look(self) -> list[Beat]:
        """Return those that live or have not been shown to be dead."""
        now, beats = time.monotonic(), []
        for path, raw, beat in _beats(self._store):
            known, since, has_moved = self._seen.get(path, (raw, now, False))
            if raw != known:
                known, since, has_moved = raw, now, True
            self._seen[path] = known, since, has_moved
            if not beat.is_ended and now - since < DEAD_SECONDS:
                beats.append(beat)
        return beats

    def moving(self) -> list[Beat]:
        """Return those that were seen to live."""
        beats = self.look()
        alive = {os.path.basename(os.path.dirname(path)) for path, (_, _, moved) in self._seen.items() if moved}
        return [beat for beat in beats if beat.device in alive]

    def end_dead(self) -> None:
        """Mark those that are dead, so that nobody waits for them again."""
        living = {beat.device for beat in self.look()}
        for path, _, beat in list(_beats(self._store)):
            if beat.device not in living and not beat.is_ended:
                with suppress(OSError):
                    _write(Path(path), replace(beat, is_ended=True))


class Heartbeat:
    """This process's own.

    Args:
        store: Whose folder it is to serve.
        ousted: Called once, in a thread of its own, when another daemon serves instead.
    """

    def __init__(self, store: Store, ousted: Callable[[], None]) -> None:
        self._store, self._ousted, self._others = store, ousted, OtherDaemons(store)
        self._path = store.tree.confine(store.tree.journal / store.journal.device / FILE)
        self._own = Beat(store.journal.device, socket.gethostname(), os.getpid(), is_serving=False)
        self._mutex = threading.RLock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="heartbeat", daemon=True)
        self._last = 0.0  # monotonic, of the last beat
        self.is_ousted = False

    def claim(self, wait: Callable[[Beat], bool]) -> bool:
        """Become the one daemon that serves this folder.

        Nothing is written while another serves. Who wants to serve says so first and looks then: of two that do so at
        once at least one sees the other, and the one of lesser rank withdraws.

        Args:
            wait: Called again and again while another serves, with that one; False gives up.
        """
        self._own = replace(self._own, since=iso(self._store.clock.now()))
        is_first = False
        try:
            is_first = self._is_first(wait)
        finally:
            if not is_first:
                self._withdraw()
        if not is_first:
            return False
        self._others.end_dead()
        self._own = replace(self._own, is_serving=True)
        self._tell()
        self._thread.start()
        return True

    def _is_first(self, wait: Callable[[Beat], bool]) -> bool:
        """Wait until nobody else serves or wants to; return whether that came to be."""
        while True:
            self._own = replace(self._own, is_active=self._store.is_active)
            others = self._others.look()
            better = [beat for beat in others if beat.rank < self._own.rank]
            if better:
                self._withdraw()
            elif not self._last:
                self._tell()
                continue
            elif others:
                self._tell()  # they see it and withdraw, or turn out to be dead
            else:
                return True
            if not wait(min(better or others, key=lambda beat: beat.rank)):
                return False

    def _withdraw(self) -> None:
        if self._last:
            self._end()
        self._last = 0.0

    def check(self) -> None:
        """Refuse to go on for one that stood still so long that another may serve by now; called before each commit.

        Raises:
            StorageError: It must not write any more.
        """
        if time.monotonic() - self._last > STILL_SECONDS:
            self._beat()
        if self.is_ousted:
            raise StorageError("Another daemon serves this brain by now; this one stands back and begins anew.")

    def stop(self) -> None:
        """End; whoever waits takes over at once."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(BEAT_SECONDS + 5)
        with self._mutex:
            if self._last and not self.is_ousted:
                self._end()

    def _beat_on(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS) and not self.is_ousted:
            self._beat()
        if self.is_ousted:
            self._ousted()

    def _beat(self) -> None:
        with self._mutex:
            stood_still = time.monotonic() - self._last > STILL_SECONDS
            self._own = replace(self._own, is_active=self._store.is_active)
            self._tell()  # before looking: one of two that do this at once sees the other
            others = self._others.look() if stood_still else self._others.moving()
            if (stood_still and others) or any(beat.rank < self._own.rank for beat in others):
                self.is_ousted = True
                self._end()

    def _tell(self) -> None:
        """Write the next beat; a disk that takes nothing more takes nobody else's either."""
        self._own, self._last = replace(self._own, beat=self._own.beat + 1), time.monotonic()
        with suppress(OSError):
            if self._store.tree.is_there:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _write(self._path, self._own)

    def _end(self) -> None:
        with suppress(OSError):
            _write(self._path, replace(self._own, is_ended=True))


def other_daemon(store: Store) -> Beat | None:
    """Return the daemon of another home that serves this folder.

    It may take as long as a beat, and `DEAD_SECONDS` once where one died.
    """
    others = OtherDaemons(store)
    while others.look():
        if moving := others.moving():
            return moving[0]
        time.sleep(_LOOK_SECONDS)
    others.end_dead()
    return None


def require_alone(store: Store) -> None:
    """Refuse what only one home at a time may do.

    Raises:
        LockedError: A daemon of another home serves this folder.
    """
    if other := other_daemon(store):
        raise LockedError(f"{serving_message(store, other)}; do this in its home, or stop it first")


def serving_message(store: Store, other: Beat) -> str:
    """Say who serves the folder of a brain."""
    return f"{other} serves {store.root}"


def recently_seen_daemon(store: Store) -> Beat | None:
    """Return the daemon of another home that serves this folder by all appearances, without waiting to see it move."""
    now = time.time()  # file times are the system clock's
    fresh = [beat for path, _, beat in _beats(store) if not beat.is_ended and now - _changed_at(path) < DEAD_SECONDS]
    return fresh[0] if fresh else None


def ended_devices(store: Store) -> set[str]:
    """Return the devices whose daemons served this very folder and ended: what they left undone is for the next."""
    return {beat.device for _, _, beat in _beats(store) if beat.is_ended}


def devices_in_folder(store: Store) -> set[str]:
    """Return the devices whose daemons serve, or served, this very folder."""
    return {beat.device for _, _, beat in _beats(store)}


def _beats(store: Store) -> Iterator[tuple[str, bytes, Beat]]:
    """Yield path, content and meaning of the heartbeats that others wrote to this folder."""
    with suppress(OSError), os.scandir(store.tree.journal) as folders:
        for folder in folders:
            path = os.path.join(folder.path, FILE)
            if folder.name == store.journal.device or folder.is_symlink():
                continue
            try:
                raw, inode = _read(path)
            except OSError:
                continue
            beat = _parsed(folder.name, raw, inode)
            if beat.inode == inode:  # else it came from elsewhere: a sync, a copy, a backup
                yield path, raw, beat


def _read(path: str) -> tuple[bytes, int]:
    """Return content and inode of a regular file.

    Raises:
        OSError: There is none.
    """
    file = os.open(path, os.O_RDONLY | _SAFELY)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no regular file")
        return os.read(file, _BYTES), found.st_ino
    finally:
        os.close(file)


def _parsed(device: str, raw: bytes, inode: int) -> Beat:
    """Return what a heartbeat says; one that cannot be read may be half written: it lives while it changes."""
    unknown = Beat(device, inode=inode)
    try:
        beat = Beat(**{**json.loads(raw), "device": device})
    except (ValueError, TypeError):
        return unknown
    is_sound = all(type(getattr(beat, name)) is type(value) for name, value in asdict(unknown).items())
    return beat if is_sound else unknown


def _write(path: Path, beat: Beat) -> None:
    """Write a heartbeat in place, so that its inode stays and its folder is not touched, and at once, so that it is
    whole."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | _SAFELY, 0o644)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no regular file")
        text = json.dumps(asdict(replace(beat, inode=found.st_ino)))
        os.write(file, text.ljust(_BYTES - 1).encode() + b"\n")
    finally:
        os.close(file)


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
