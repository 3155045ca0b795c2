"""Which daemon serves a brain, told by two locks: one in this home's state folder, one in the brain's own folder.

Two homes on one folder (a container and its host, two users) share no state folder. The lock on a file in the brain's
folder, which no sync takes and which holds nothing, keeps the second daemon away: the kernel knows who has it, and lets
go of it when that process ends. Decision: docs/decisions/two-homes.md.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress

from brainiac.errors import LockedError
from brainiac.storage.database import LOCK, read_run_state
from brainiac.storage.files import is_flocked, is_held, locked, set_aside_non_file, take_flock
from brainiac.storage.store import Store

FILE = ".~brainiac-lock.tmp"  # git, Syncthing and sync services pass such a name over
ELSEWHERE = "a daemon of another home on this machine (a container, another user) serves {}"
WAIT_SECONDS = 1.0  # a check of another process holds a lock for a moment


class Serving:
    """The locks that only one daemon of a brain can have; for one thread.

    Args:
        store: The brain.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._path, self._home = store, store.root / FILE, ExitStack()
        self._handle: int | None = None  # of the folder's lock file, while it is locked

    def begin(self) -> str:
        """Take both locks.

        Returns:
            A sentence for a person where the folder cannot be locked, as on some network drives; "" where it is.

        Raises:
            LockedError: Another daemon serves the brain, of this home or another.
        """
        try:
            self._home.enter_context(locked(self._store.places.state / LOCK, WAIT_SECONDS))
        except LockedError as error:
            pid = read_run_state(self._store.database).pid
            suffix = f" (process {pid})" if pid else ""
            raise LockedError(f"{self._store.root} is served by another daemon{suffix}; stop that one first") from error
        try:
            self._take()
        except LockedError as error:
            self.end()
            raise LockedError(f"{ELSEWHERE.format(self._store.root)}; stop that one first") from error
        except OSError as error:
            self._store.log.warning("folder_not_locked", problem=str(error))
            return f"{self._store.root} cannot be locked: another home's daemon on it would not be seen. Run only one."
        return ""

    def keep(self) -> str:
        """Take the folder's lock again where its file was deleted or replaced, or its disk was away.

        Returns:
            A sentence for a person where another daemon has the lock by now, so that this one must end; else "".
        """
        with suppress(OSError):
            if self._handle is not None and os.path.samestat(os.fstat(self._handle), os.lstat(self._path)):
                return ""  # the locked file still stands at its path
        self._release()
        # while the disk is not mounted, the file would be made below the mount point
        if self._store.tree.is_there:
            try:
                self._take()
            except LockedError:
                return f"{ELSEWHERE.format(self._store.root)}; this one ends."
            except OSError:
                pass  # a person was told at the start
        return ""

    def end(self) -> None:
        """Let both locks go."""
        self._release()
        self._home.close()

    def _take(self) -> None:
        """Take the folder's lock; raises what `take_flock` raises."""
        if self._path.is_symlink():
            self._path.unlink()  # one that came by git may lead anywhere
        set_aside_non_file(self._path)
        self._handle = take_flock(self._path, WAIT_SECONDS)

    def _release(self) -> None:
        """Let the folder's lock go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def is_running(store: Store) -> bool:
    """Return whether a daemon serves this brain's folder, of this home or another on this machine."""
    return is_served_here(store) or is_flocked(store.root / FILE)


def is_served_here(store: Store) -> bool:
    """Return whether a daemon of this home serves a brain; its report is then up to date."""
    return is_held(store.places.state / LOCK)


def served_elsewhere(store: Store) -> str:
    """Return a sentence where a daemon of another home on this machine serves a brain's folder; "" where none does."""
    return ELSEWHERE.format(store.root) if not is_served_here(store) and is_flocked(store.root / FILE) else ""


def require_alone(store: Store) -> None:
    """Raise if a daemon of another home serves this folder; for work that only one home at a time may do.

    Raises:
        LockedError: A daemon of another home serves this folder.
    """
    if elsewhere := served_elsewhere(store):
        raise LockedError(f"{elsewhere}; do this in its home, or stop it first")
