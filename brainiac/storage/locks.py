"""The one place where lock files are opened: an inter-process lock is always paired with an in-process one.

POSIX locks belong to the process, not to the handle: two threads of a process would both get one, and closing any
handle on the file releases it. So each lock file has one handle per process, kept here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import fasteners  # type: ignore[import-untyped]  # ships no types

from brainiac.errors import LockedError
from brainiac.storage.damaged import make_way


@dataclass(slots=True)
class _Lock:
    between_processes: fasteners.InterProcessLock
    within: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0


_locks: dict[str, _Lock] = {}  # by real path, and by every spelling of it that was asked for
_registry = threading.Lock()


def _forget_all() -> None:
    """A forked child holds none of its parent's locks."""
    global _registry
    _registry = threading.Lock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


@contextmanager
def locked(path: Path, wait_seconds: float | None = None) -> Iterator[None]:
    """Hold a lock file for this thread; reentrant in a thread, exclusive across threads and processes.

    Args:
        path: The lock file, in the state folder; made when missing and never removed.
        wait_seconds: How long to wait; None: without limit; 0: not at all.

    Raises:
        LockedError: Somebody else held it all that time.
    """
    lock = _lock_of(path)
    if not lock.within.acquire(timeout=-1 if wait_seconds is None else wait_seconds):
        raise _busy(path)
    try:
        if lock.depth == 0 and not _acquire(lock.between_processes, wait_seconds):
            raise _busy(path)
        lock.depth += 1
        try:
            yield
        finally:
            lock.depth -= 1
            if lock.depth == 0:
                lock.between_processes.release()
    finally:
        lock.within.release()


def _lock_of(path: Path) -> _Lock:
    spelled = os.fspath(path)
    with _registry:
        if spelled not in _locks:
            real = os.path.realpath(path)
            os.makedirs(os.path.dirname(real), mode=0o700, exist_ok=True)
            _locks[spelled] = _locks.setdefault(real, _Lock(fasteners.InterProcessLock(real)))
        return _locks[spelled]


def _acquire(lock: fasteners.InterProcessLock, wait_seconds: float | None) -> bool:
    # a commit lasts a few milliseconds: fasteners' own steps of 10 ms would be most of the wait
    acquire = partial(lock.acquire, blocking=wait_seconds != 0, delay=0.001, max_delay=0.02, timeout=wait_seconds)
    try:
        return bool(acquire())
    except IsADirectoryError:
        make_way(Path(os.fsdecode(lock.path)))
        return bool(acquire())


def _busy(path: Path) -> LockedError:
    return LockedError(f"{path}: held by another process or thread of Brainiac; wait for it to end, or stop it")
