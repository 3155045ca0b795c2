"""Which daemon serves a brain, told by two locks: one in this home's state folder, one in the brain's own folder.

Two homes on one folder (a container and its host, two users) share no state folder. The lock on a file in the brain's
folder, which no sync takes and which holds nothing, keeps the second daemon away: the kernel knows who has it, and lets
go of it when that process ends. Decision: docs/decisions/two-homes.md.
"""

from __future__ import annotations

from contextlib import ExitStack

from brainiac.errors import LockedError
from brainiac.storage.files import is_held, locked, set_aside_non_file
from brainiac.storage.runstate import LOCK, read_run_state
from brainiac.storage.store import Store

FILE = ".~brainiac-lock.tmp"  # git, Syncthing and sync services pass such a name over
WAIT_SECONDS = 1.0  # a check of another process holds a lock for a moment


def serve_alone(store: Store, locks: ExitStack) -> str:
    """Take the locks that only one daemon of a brain can have, until `locks` is closed.

    Returns:
        A sentence for a person where the folder cannot be locked, as on some network drives; "" where it is.

    Raises:
        LockedError: Another daemon serves the brain, of this home or another.
    """
    try:
        locks.enter_context(locked(store.places.state / LOCK, WAIT_SECONDS))
    except LockedError as error:
        pid = read_run_state(store.places.state).pid
        suffix = f" (process {pid})" if pid else ""
        raise LockedError(f"{store.root} is served by another daemon{suffix}; stop that one first") from error
    path = store.root / FILE
    try:
        if path.is_symlink():
            path.unlink()  # one that came by git may lead anywhere
        set_aside_non_file(path)
        locks.enter_context(locked(path, WAIT_SECONDS))
        path.chmod(0o666)  # another user's daemon must be able to ask for it
    except LockedError as error:
        raise LockedError(f"{elsewhere_message(store)}; stop that one first") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: how fasteners says that a drive keeps no locks
        if is_held(path):
            raise LockedError(f"{elsewhere_message(store)}; stop that one first") from error
        store.log.warning("folder_not_locked", problem=str(error))
        return f"{store.root} cannot be locked: a daemon of another home on it would not be seen. Run only one."
    return ""


def is_running(store: Store) -> bool:
    """Return whether a daemon serves this brain's folder, of this home or another on this machine."""
    return is_served_here(store) or is_held(store.root / FILE)


def is_served_here(store: Store) -> bool:
    """Return whether a daemon of this home serves a brain; its report is then up to date."""
    return is_held(store.places.state / LOCK)


def is_served_elsewhere(store: Store) -> bool:
    """Return whether a daemon of another home on this machine serves a brain's folder."""
    return not is_served_here(store) and is_held(store.root / FILE)


def require_alone(store: Store) -> None:
    """Raise if a daemon of another home serves this folder; for work that only one home at a time may do.

    Raises:
        LockedError: A daemon of another home serves this folder.
    """
    if is_served_elsewhere(store):
        raise LockedError(f"{elsewhere_message(store)}; do this in its home, or stop it first")


def elsewhere_message(store: Store) -> str:
    """Return a sentence that says that a daemon of another home serves the folder of a brain."""
    return f"a daemon of another home on this machine (a container, another user) serves {store.root}"
