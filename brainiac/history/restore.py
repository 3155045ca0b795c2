"""`brainiac restore`: puts the brain of a backup into an empty folder, every file checked by its hash."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from brainiac.errors import LockedError, UserError
from brainiac.history.backup import FILES, PART, Backup, Progress, backups_in, confined, file_hash
from brainiac.storage.files import Disk, is_held, make_folders, read_bytes, temporary_beside
from brainiac.storage.runstate import LOCK
from brainiac.tree import MARKER, LocalPlaces, is_brain

RESTORING = ".brainiac-restore"  # in a folder that is being restored: which backup
_MAKES_A_BRAIN = ("system/config.yaml", MARKER.as_posix())  # a folder with both is one


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of restoring a backup.

    Attributes:
        backup: The backup.
        folder: The restored brain.
        state: The renamed state folder of a brain that was in this folder before; None where there was none.
    """

    backup: Backup
    folder: Path
    state: Path | None = None


def find_backup(folder: Path) -> Backup:
    """Return the backup that a folder is, or the latest in it.

    Raises:
        UserError: There is none.
    """
    if backups := backups_in(folder):
        return backups[-1]
    if (folder / PART).is_dir():
        raise UserError(f"{folder} has one backup, which is not finished; run `brainiac backup {folder}` again")
    raise UserError(f"{folder} has no backup in it; name a folder that `brainiac backup` filled")


def damages(backup: Backup, progress: Progress = lambda done, total: None) -> list[str]:
    """Return a sentence for each file of a backup that is missing or has other bytes than when it was made.

    Raises:
        UserError: `SHA256SUMS` is missing or damaged.
    """
    digests, problems = backup.digests(), []
    for number, (path, digest) in enumerate(digests.items(), 1):
        actual = file_hash(backup.folder / FILES / path)
        if actual != digest:
            what = "missing, or no file" if actual is None else "has other bytes than when it was made"
            problems.append(f"{FILES}/{path}: {what}")
        progress(number, len(digests))
    return problems


def restore(
    backup: Backup, into: Path, *, disk: Disk | None = None, progress: Progress = lambda done, total: None
) -> Restored:
    """Put the brain of a backup into an empty folder, or go on with a restore that was interrupted.

    The folder is no brain before all of it is there and checked: the files that make it a brain come last.

    Args:
        backup: A whole backup; check `damages` first.
        into: A missing or empty folder, or one that an interrupted restore of the same backup left.
        disk: What writes.
        progress: Called with the files done and the total.

    Raises:
        UserError: The folder holds files, a daemon serves it, or the backup is damaged.
    """
    disk, into = disk or Disk(), Path(os.path.abspath(into))
    digests = backup.digests()
    _check_into(backup, into)
    state = _set_aside_state(LocalPlaces.of(into, backup.brain_id), into)
    make_folders(disk, into)
    if not (into / RESTORING).exists():
        disk.write(into / RESTORING, backup.sums.encode())
    # an interrupted run made it a brain already: what stands by now may be newer than the backup
    is_brain_by_now = any((into / path).exists() for path in _MAKES_A_BRAIN)
    ordinary = [path for path in digests if path not in _MAKES_A_BRAIN]
    paths = [*ordinary, *(path for path in _MAKES_A_BRAIN if path in digests)]
    for number, path in enumerate(paths, 1):
        if number == len(ordinary) + 1:
            disk.sync_filesystem(into)  # all else is on the disk before the folder becomes a brain
        if not (is_brain_by_now and (into / path).exists()):
            _restore_file(backup, path, digests[path], into, disk)
        progress(number, len(digests))
    for path in map(confined, backup.empty):
        make_folders(disk, into / path)
    disk.sync_filesystem(into)
    disk.unlink(into / RESTORING)
    return Restored(backup, into, state)


def _check_into(backup: Backup, into: Path) -> None:
    """Raise `UserError` where a backup cannot be restored into a folder."""
    if around := next(filter(is_brain, into.parents), None):
        raise UserError(f"{into} lies in the brain {around}; name a folder outside of it")
    if into.is_relative_to(backup.folder):
        raise UserError(f"{into} lies in the backup; name another folder")
    if into.exists() and not into.is_dir():
        raise UserError(f"{into} is a file; name an empty or a new folder")
    if not into.is_dir() or not any(into.iterdir()):
        return
    begun = read_bytes(into / RESTORING)
    if begun is None:
        raise UserError(f"{into} is not empty; nothing was changed: name an empty or a new folder")
    if not backup.sums.startswith(begun.decode("ascii", "replace")):  # a crash may have cut it off
        raise UserError(f"{into} has part of another backup, whose restore was interrupted; name another folder")


def _set_aside_state(places: LocalPlaces, into: Path) -> Path | None:
    """Rename this machine's state of a brain that was at this path before, as it tells of other files.

    Returns:
        Its new path; None where there is no such state.

    Raises:
        LockedError: A daemon serves the folder still.
    """
    if not places.state.is_dir():
        return None
    if is_held(places.state / LOCK):
        raise LockedError(f"a daemon serves {into} still; stop it first")
    number = 1
    while (aside := places.state.with_name(f"{places.state.name}-before-restore-{number}")).exists():
        number += 1
    os.rename(places.state, aside)
    shutil.rmtree(places.cache, ignore_errors=True)  # derived from other files
    return aside


def _restore_file(backup: Backup, path: str, digest: str, into: Path, disk: Disk) -> None:
    """Copy a file out of a backup and check its hash; a file that is there already with that hash stays.

    Raises:
        UserError: The backup's file is missing or damaged.
    """
    target = into / path
    if target.exists() and file_hash(target) == digest:
        return
    make_folders(disk, target.parent)
    draft = Path(temporary_beside(str(target))) if path in _MAKES_A_BRAIN else target
    disk.unlink(draft)
    try:
        copied = disk.copy(backup.folder / FILES / path, draft)
    except FileNotFoundError:
        copied = ""
    if copied != digest:
        disk.unlink(draft)
        raise UserError(f"{backup.folder / FILES / path} is missing or damaged; {into} is not a brain yet")
    if draft != target:  # whole or not at all: whoever sees it takes the folder for a brain
        disk.replace(draft, target)
