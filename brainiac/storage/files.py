"""Reading, writing and locking files, and setting damaged ones aside.

`Disk` has the few system calls that durability depends on, each atomic or repeatable. Crash tests subclass it to stop
at the n-th operation.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path

import fasteners  # type: ignore[import-untyped]  # ships no types

from brainiac.errors import LockedError
from brainiac.tree import OUR_TEMPORARY_PREFIX

if sys.platform != "win32":
    import fcntl

_AT_FDCWD = -100
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2  # linux/fs.h
_RENAME_SWAP, _RENAME_EXCL = 2, 4  # macOS sys/stdio.h
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_COPIED_BYTES = 1 << 20
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}
# Unreadable files of the state folder are renamed to this ending, so that the program goes on and nothing is lost.
# `status` and `doctor` name them until a person removes them.
DAMAGED = ".damaged"


def temporary_beside(path: str) -> str:
    """Return a name for a temporary file in the same folder, ignored by sync and by the watcher."""
    folder, _ = os.path.split(path)
    return os.path.join(folder, OUR_TEMPORARY_PREFIX + secrets.token_hex(8))


class Disk:
    """All writing system calls; a crash test stops before, within or after each of these methods."""

    def write(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Make a new file; a file that exists is never overwritten."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            _write_all(handle, content)
        finally:
            os.close(handle)

    def append(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Add to the end of a file, made when missing."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
        try:
            _write_all(handle, content)
        finally:
            os.close(handle)

    def copy(self, source: Path, target: Path) -> str:
        """Copy a regular file with its mode and time to a new file; return its content hash.

        Raises:
            FileExistsError: There is something at the target.
            OSError: The source is a link, or cannot be read.
        """
        reading = os.open(source, _READ | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(reading, "rb") as file:
            info, digest = os.fstat(reading), hashlib.sha256()
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                while block := file.read(_COPIED_BYTES):
                    digest.update(block)
                    _write_all(handle, block)
            finally:
                os.close(handle)
        os.chmod(target, info.st_mode & 0o777)
        os.utime(target, ns=(info.st_mtime_ns, info.st_mtime_ns))
        return digest.hexdigest()

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file to a size in bytes."""
        os.truncate(path, size)

    def fsync(self, path: Path) -> None:
        """Bring a file's content, or a folder's entries, to the disk."""
        handle = os.open(path, os.O_RDONLY)
        try:
            if sys.platform == "darwin":  # plain fsync leaves the data in the drive's own cache there
                fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            else:
                os.fsync(handle)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:  # some network drives refuse it for folders
                raise
        finally:
            os.close(handle)

    def transact(self, database: Path, work: Callable[[], None]) -> None:
        """Do work that ends with a transaction of a SQLite file, brought to the disk."""
        work()

    def sync_filesystem(self, folder: Path) -> None:
        """Bring everything on a folder's filesystem to the disk at once; for thousands of files."""
        sync = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if sync is None:
            os.sync()
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            if sync(handle) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
        finally:
            os.close(handle)

    def exchange(self, first: Path, second: Path) -> bool:
        """Swap two existing files in one step.

        Returns:
            False when the system or the filesystem cannot; nothing was changed then.
        """
        return _rename_with(first, second, _RENAME_EXCHANGE, _RENAME_SWAP)

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file; a file at the target is replaced."""
        os.replace(source, target)

    def rename_new(self, source: Path, target: Path) -> None:
        """Rename a file to a path where there is nothing.

        Raises:
            FileExistsError: There is something; nothing was changed.
        """
        if not _rename_with(source, target, _RENAME_NOREPLACE, _RENAME_EXCL):
            # unlike a plain rename, a hard link fails where there is something
            os.link(source, target)
            os.unlink(source)

    def unlink(self, path: Path) -> None:
        """Remove a file; one that is gone already is no error."""
        path.unlink(missing_ok=True)

    def mkdir(self, path: Path) -> None:
        """Make one folder; one that exists is no error."""
        path.mkdir(exist_ok=True)


def make_folders(disk: Disk, folder: Path) -> list[Path]:
    """Make a folder and those above it; return each folder that got a new subfolder, to be fsynced by the caller."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    # from the top, since each is in the one before
    for path in reversed(missing):
        disk.mkdir(path)
    return [path.parent for path in reversed(missing)]


def copy_attributes(source: Path, target: Path) -> None:
    """Give a file another's mode and, where the system allows, its extended attributes."""
    os.chmod(target, os.stat(source).st_mode & 0o7777)
    if not hasattr(os, "listxattr"):
        return
    try:
        for name in os.listxattr(source):
            os.setxattr(target, name, os.getxattr(source, name))
    except OSError:
        return  # attributes of other users or security labels: not ours to set


def read_bytes(path: Path) -> bytes | None:
    """Return a regular file's content; None where there is nothing, or a folder, pipe, socket or device.

    A pipe could make the program wait forever: it is opened without blocking, and its type is checked before reading.
    """
    try:
        handle = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):  # a socket, or a device without a driver
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read()


def read_end(path: Path, start: int | None = None) -> tuple[int, bytes]:
    """Return a log's size and its content from an offset on; without an offset its last byte.

    A log that is shorter than the offset was cleared since: it is returned whole. Where there is none, (0, b"").
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(size - 1, 0) if start is None else start
            file.seek(start if start <= size else 0)
            return size, file.read()
    except (FileNotFoundError, NotADirectoryError):
        return 0, b""


def _write_all(handle: int, content: bytes) -> None:
    """Write all of a content; one call of `os.write` may write only a part."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]


@lru_cache(maxsize=1)
def _system_rename() -> Callable[[bytes, bytes, int, int], int] | None:
    """Return the system's rename with flags (old, new, Linux flag, macOS flag); None where it has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if renameat2 := getattr(libc, "renameat2", None):
        return lambda old, new, linux, _: int(renameat2(_AT_FDCWD, old, _AT_FDCWD, new, ctypes.c_uint(linux)))
    if renamex_np := getattr(libc, "renamex_np", None):
        return lambda old, new, _, macos: int(renamex_np(old, new, ctypes.c_uint(macos)))
    return None


def _rename_with(source: Path, target: Path, linux_flag: int, macos_flag: int) -> bool:
    """Rename with a flag; return False where the system or the filesystem does not know it."""
    rename = _system_rename()
    if rename is None:
        return False
    if rename(os.fsencode(source), os.fsencode(target), linux_flag, macos_flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


def free_name(path: Path) -> Path:
    """Return the first unused name for setting aside the file at a path: `NAME.damaged`, `NAME.damaged-1`, …"""
    names = (path.with_name(f"{path.name}{DAMAGED}{f'-{number}' if number else ''}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def set_aside_non_file(path: Path) -> None:
    """Rename whatever is at a file's path and is no regular file, such as a folder, so that the file can be written."""
    if os.path.lexists(path) and not path.is_file():
        os.rename(path, free_name(path))


def set_aside_files(folder: Path) -> list[Path]:
    """Return the damaged files that were set aside in a folder."""
    return sorted(folder.glob(f"*{DAMAGED}*"))


# POSIX locks belong to the process, not to the handle: two threads of a process would both get one, and closing any
# handle on the file releases it. So each lock file has one handle per process, kept here with a lock for its threads.
@dataclass(slots=True)
class _Lock:
    """The one handle of this process on a lock file, the lock among its threads, and how often they entered."""

    between_processes: fasteners.InterProcessLock
    within: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0


_locks: dict[str, _Lock] = {}  # by real path, and by every other spelling of it that was used
_registry = threading.Lock()


def _forget_locks() -> None:
    """Forget all locks in a forked child process, which has none of its parent's."""
    global _registry
    _registry = threading.Lock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


@contextmanager
def locked(path: Path, wait_seconds: float | None = None) -> Iterator[None]:
    """Hold a lock for this thread; a thread that has it may enter again, other threads and processes wait.

    Args:
        path: The lock file; made when missing and never removed.
        wait_seconds: How long to wait; None: without limit; 0: not at all.

    Raises:
        LockedError: Another process or thread held it all that time.
    """
    lock = _lock_of(path)
    if not lock.within.acquire(timeout=-1 if wait_seconds is None else wait_seconds):
        raise _busy(path)
    try:
        if lock.depth == 0:
            between = lock.between_processes
            # a commit takes a few milliseconds: fasteners' own steps of 10 ms would be most of the wait
            how = {"blocking": wait_seconds != 0, "delay": 0.001, "max_delay": 0.02, "timeout": wait_seconds}
            try:
                is_acquired = between.acquire(**how)
            except IsADirectoryError:  # damage: a folder is in the lock file's place
                set_aside_non_file(Path(os.fsdecode(between.path)))
                is_acquired = between.acquire(**how)
            if not is_acquired:
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


def is_held(path: Path) -> bool:
    """Return whether a process or thread holds the lock of a lock file, this one included."""
    if _lock_of(path).depth:
        return True
    try:
        with locked(path, wait_seconds=0):
            return False
    except LockedError:
        return True


def take_flock(path: Path, wait_seconds: float) -> int:
    """Take the kernel's lock on a file, made when missing; return the handle, which holds it until it is closed.

    Unlike that of `locked` it is this very handle's, and the handle only reads: whoever may read the file may ask for
    its lock, and its disk may be made read-only meanwhile.

    Raises:
        LockedError: Another handle held it all that time.
        OSError: The file cannot be made, it is a link, or its drive or this system keeps no such locks.
    """
    handle = os.open(path, _READ | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    end = time.monotonic() + wait_seconds
    try:
        while not _flock(handle, is_shared=False):
            if time.monotonic() > end:
                raise _busy(path)
            time.sleep(0.02)
    except BaseException:
        os.close(handle)
        raise
    return handle


def is_flocked(path: Path) -> bool:
    """Return whether somebody holds the lock of `take_flock` on a file; False where it cannot be asked."""
    try:
        handle = os.open(path, _READ | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return not _flock(handle, is_shared=True)  # shared: two who ask at once do not see each other
    except OSError:
        return False
    finally:
        os.close(handle)


def _flock(handle: int, *, is_shared: bool) -> bool:
    """Return whether an open file could be locked."""
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_of(path: Path) -> _Lock:
    """Return the lock of a lock file; a path through a symlink and the real path get the same one."""
    name = os.fspath(path)
    with _registry:
        if name not in _locks:
            real_path = os.path.realpath(path)
            os.makedirs(os.path.dirname(real_path), mode=0o700, exist_ok=True)
            _locks[name] = _locks.setdefault(real_path, _Lock(fasteners.InterProcessLock(real_path)))
        return _locks[name]


def _busy(path: Path) -> LockedError:
    """Return the error for a lock that is held elsewhere."""
    return LockedError(f"{path}: held by another process or thread of Brainiac; wait for it to end, or stop it")
