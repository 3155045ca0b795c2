"""`brainiac backup` and `restore`: whole copies of a brain, each of one moment, made while a daemon goes on working.

A backup is a folder of its own, `DIR/2026-03-01T12-00-00Z/`: the brain's files in `brain/` as they stood, `SHA256SUMS`
beside it, which `sha256sum -c` reads, and `backup.json`. It gets its name as the last step, so that a crash leaves no
half one. It is put back into an empty folder, every file checked by its hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from pathlib import Path

from brainiac.clock import iso
from brainiac.errors import LockedError, StorageError, UserError
from brainiac.events import TextsPurged, content_hash
from brainiac.formats.prompt import prompt_path_of
from brainiac.skeleton import DOTFILES
from brainiac.storage.database import LOCK
from brainiac.storage.files import Disk, is_held, locked, make_folders, read_bytes
from brainiac.storage.store import Store
from brainiac.tree import OUR_TEMPORARY_PREFIX, LocalPlaces, Stamp, is_brain

FILES, SUMS, ABOUT = "brain", "SHA256SUMS", "backup.json"
PART = ".brainiac-backup"  # in the folder of backups: one that is being made, or was interrupted
FORMAT = 2
_FORMATS = (1, 2)  # in the first, files that had not changed were hard links to the backup before
ATTEMPTS = 20  # at a file that is written while it is copied
_LEFT_OUT_PREFIXES = (OUR_TEMPORARY_PREFIX, ".~brainiac-", "__pycache__")  # of names: being written, or derived

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Backup:
    """A whole backup.

    Attributes:
        folder: Its folder.
        brain_id: The brain's id.
        device: The device that made it.
        made_at: Its moment, ISO 8601 UTC.
        files: How many files it has.
        size: Their size in bytes.
        sums: Content hash of its `SHA256SUMS`.
        empty: Its folders without files.
    """

    folder: Path
    brain_id: str
    device: str
    made_at: str
    files: int
    size: int
    sums: str
    empty: tuple[str, ...] = ()

    def digests(self) -> dict[str, str]:
        """Return the content hash of each of its files by path.

        Raises:
            UserError: `SHA256SUMS` is missing or damaged.
        """
        raw = read_bytes(self.folder / SUMS)
        if raw is None or content_hash(raw) != self.sums:
            raise UserError(f"{SUMS} is missing or damaged; take another backup ({_BY_HAND})")
        return dict(map(_sum_of, raw.splitlines()))


_BY_HAND = f"its folder {FILES}/ is a plain copy: what is whole in it can be copied by hand"


@dataclass(slots=True)
class Made:
    """The result of making a backup.

    Attributes:
        backup: The new backup.
        off_record: Paths that were left out because they are off the record.
        links: Paths that were left out because they are links, pipes or devices.
        unreadable: Paths that were left out because there is no permission to read them.
        beside: Names in the brain's folder that are no part of the brain, and not in the backup.
        outdated: Earlier backups in the same folder that have texts which were purged since.
    """

    backup: Backup
    off_record: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    outdated: list[Path] = field(default_factory=list)


def backups_in(folder: Path) -> list[Backup]:
    """Return the whole backups in a folder, oldest first; for a folder that is a backup itself, that one."""
    if own := _read(folder):
        return [own]
    backups = (_read(path) for path in sorted(folder.iterdir())) if folder.is_dir() else iter(())
    return sorted((backup for backup in backups if backup), key=lambda backup: (backup.made_at, backup.folder))


def _read(folder: Path) -> Backup | None:
    """Return the backup that a folder is; None for another folder, or one that is not finished."""
    if folder.name == PART or not folder.is_dir():
        return None
    try:
        about = json.loads(read_bytes(folder / ABOUT) or b"")
        if about.pop("format") not in _FORMATS:
            raise UserError(f"{folder} was made by a newer version of Brainiac; update this one")
        about.pop("begun_ns", None)  # of the first format
        return Backup(folder, **about | {"empty": tuple(about["empty"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


# --- making one ----------------------------------------------------------------------------------------------------


def back_up(
    store: Store, folder: Path, *, disk: Disk | None = None, progress: Progress = lambda done, total: None
) -> Made:
    """Add a backup of a brain to a folder; the backups before it stay as they are, also if this one is interrupted.

    Args:
        store: The brain; a daemon may serve it.
        folder: Outside of the brain; made when missing.
        disk: What writes.
        progress: Called with the files copied so far, and how many there will be, as far as known.

    Raises:
        UserError: The folder lies in the brain, or holds other files or another brain's backups.
        LockedError: Another backup is being made.
        StorageError: A file cannot be read, or the disk is full.
    """
    disk, folder = disk or Disk(), folder.resolve()
    former = _check_folder(store, folder)
    try:
        with locked(store.places.state / "backup.lock", wait_seconds=0):
            make_folders(disk, folder)
            if (folder / PART).exists():  # of a run that was interrupted
                shutil.rmtree(folder / PART)
            made = _Copying(store, folder / PART, former[-1].files if former else 0, disk, progress).run()
            disk.sync_filesystem(folder / PART)  # all of it is on the disk before it gets its name
            disk.replace(folder / PART, made.backup.folder)
            disk.fsync(folder)
    except LockedError as error:
        raise LockedError(f"another backup of {store.root} is being made; wait for it to end") from error
    purges = (event.at for _, event in store.projection.purges() if isinstance(event.what, TextsPurged))
    last_purge = max(purges, default="")
    made.outdated = [backup.folder for backup in former if backup.made_at <= last_purge]
    return made


def _check_folder(store: Store, folder: Path) -> list[Backup]:
    """Return the backups of this brain in a folder.

    Raises:
        UserError: Backups cannot lie there.
    """
    if folder.is_relative_to(store.root):
        raise UserError(f"{folder} lies in the brain; name a folder outside of it, best on another disk")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder")
    backups = backups_in(folder)
    if any(backup.folder == folder for backup in backups):
        raise UserError(f"{folder} is a backup; name the folder it lies in, {folder.parent}")
    if others := [backup for backup in backups if backup.brain_id != store.settings.brain_id]:
        raise UserError(f"{folder} has backups of another brain ({others[0].folder.name}); name another folder")
    if not backups and folder.is_dir() and any(path.name != PART for path in folder.iterdir()):
        raise UserError(f"{folder} holds other files; name an empty or a new folder")
    return backups


class _Copying:
    """Copies a brain into the folder of an unfinished backup.

    All files are copied without any lock; then, while nothing can be committed, those that were committed meanwhile
    and the journals are copied again: so all are of one moment. The journal's texts (its blobs) come last: a text is
    written before the line that names it, so all texts that the copied journals name are there.

    Args:
        store: The brain.
        part: The unfinished backup's folder.
        estimate: How many files there may be.
        disk: What writes.
        progress: See `back_up`.
    """

    def __init__(self, store: Store, part: Path, estimate: int, disk: Disk, progress: Progress) -> None:
        self._store, self._tree, self._part, self._disk = store, store.tree, part, disk
        self._estimate, self._progress = estimate, progress
        self._files: dict[str, str] = {}  # content hash by path
        self._stamps: dict[str, Stamp] = {}  # of a file as it was copied, by path
        self._changed: set[str] = set()  # the files that the present pass copied
        self._left_out: dict[str, str] = {}  # path → `off the record`, `link` or `unreadable`
        self._empty: set[str] = set()  # folders without files
        self._tops = (self._tree.inbox, self._tree.memory, self._tree.system, self._tree.plugins, self._tree.logs)

    def run(self) -> Made:
        """Copy the brain; return the backup, whose folder has still to get its name."""
        self._copy_all()
        # what changed while the first pass took its time; nothing is committed now, and no purge destroys a text
        with self._store.commit_lock():
            # merges the saves that persons made into displaced files; such files are not copied
            self._store.committer.check_displaced()
            self._copy_all()
            made_at = iso(self._store.clock.now())
        made = Made(self._write_description(made_at), beside=self._names_beside())
        paths_by_reason = {"off the record": made.off_record, "link": made.links, "unreadable": made.unreadable}
        for path, reason in sorted(self._left_out.items()):
            paths_by_reason[reason].append(path)
        return made

    # files

    def _copy_all(self) -> None:
        """Copy the files whose copies are missing or old, and remove the copies of deleted files."""
        self._changed.clear()
        self._left_out.clear()
        self._empty.clear()
        dotfiles = [name for name in DOTFILES if os.path.lexists(self._tree.root / name)]
        present = set()
        for path in chain(*map(self._paths, self._tops), dotfiles):
            present.add(path)
            self._take(path)
        for path in self._files.keys() - present:
            self._drop(path)

    def _paths(self, top: Path) -> Iterator[str]:
        """Yield the paths of a folder's files but caches and temporary files; note empty folders in `_empty`."""
        for folder, names, files in os.walk(top, onerror=self._note_unreadable):
            links = [name for name in names if os.path.islink(os.path.join(folder, name))]
            names[:] = [name for name in names if name not in links and not name.startswith(_LEFT_OUT_PREFIXES)]
            if not (names or files or links):
                self._empty.add(self._tree.relative(folder))
            for name in sorted((*files, *links)):
                if not name.startswith(_LEFT_OUT_PREFIXES):
                    yield self._tree.relative(os.path.join(folder, name))

    def _note_unreadable(self, error: OSError) -> None:
        """Note a file or folder without permission to read it: a backup of all else is better than none.

        One that vanished meanwhile is passed over; any other error is raised.
        """
        if isinstance(error, PermissionError):
            self._left_out[self._tree.relative(str(error.filename))] = "unreadable"
        elif not isinstance(error, FileNotFoundError):
            raise error

    def _take(self, path: str) -> None:
        """Bring the copy of a file up to date."""
        try:
            info = os.lstat(f"{self._tree.root}/{path}")
            if self._stamps.get(path) == Stamp.of(info) and not self._is_prompt_changed(path):
                return  # copied by an earlier pass
            if reason := self._reason_to_leave_out(path, info):
                self._left_out[path] = reason
                self._drop(path)
                return
            self._files[path] = self._copy(path)
            self._changed.add(path)
        except (FileNotFoundError, NotADirectoryError):
            self._drop(path)  # moved or removed meanwhile: it is not of this backup's moment
        except PermissionError as error:
            self._note_unreadable(error)
            self._drop(path)

    def _drop(self, path: str) -> None:
        """Take a file out of the backup."""
        if self._files.pop(path, None) is not None:
            self._stamps.pop(path, None)
            self._disk.unlink(self._target(path))

    def _reason_to_leave_out(self, path: str, info: os.stat_result) -> str:
        """Return why a file does not belong into a backup; "" for one that does."""
        if not stat.S_ISREG(info.st_mode):
            return "link"
        if not self._tree.is_tracked(path):
            return ""
        content = read_bytes(self._tree.absolute(path))
        return "off the record" if content and self._store.committer.is_off_record(path, content) else ""

    def _is_prompt_changed(self, path: str) -> bool:
        """Return whether a file is a response whose prompt is missing or was copied anew by this pass.

        The prompt may say by now that the exchange is off the record.
        """
        prompts = prompt_path_of(path)
        has_same = any(prompt in self._files and prompt not in self._changed for prompt in prompts)
        return bool(prompts) and not has_same

    def _copy(self, path: str) -> str:
        """Copy the present state of a file, whole; return its content hash.

        Raises:
            StorageError: Somebody keeps writing it.
        """
        source, target = self._tree.absolute(path), self._target(path)
        make_folders(self._disk, target.parent)
        if path in self._files:  # copied by an earlier pass
            self._disk.unlink(target)
        for _ in range(ATTEMPTS):
            try:
                if self._tree.is_tracked(path):
                    self._store.observed.saves.at_rest(path, source)
                stamp = Stamp.of(os.lstat(source))
                digest = self._disk.copy(source, target)
                if Stamp.of(os.lstat(source)) == stamp:
                    self._stamps[path] = stamp
                    done = len(self._files)
                    self._progress(done, max(done, self._estimate))
                    return digest
            except OSError:
                self._disk.unlink(target)  # no half copy may stay
                raise
            self._disk.unlink(target)
        raise StorageError(f"{path} is written all the time; it could not be copied whole. Run the backup again.")

    # the whole

    def _target(self, path: str) -> Path:
        """Return where the copy of a file goes, in the folder that has a name of its own until all is copied."""
        return Path(f"{self._part}/{FILES}/{path}")

    def _names_beside(self) -> list[str]:
        """Return the names in the brain's folder that are no part of the brain."""
        own = {path.partition("/")[0] for path in self._files} | set(DOTFILES)
        own |= {self._tree.relative(top).partition("/")[0] for top in self._tops}
        names = set(os.listdir(self._tree.root)) - own
        return sorted(name for name in names if not name.startswith(_LEFT_OUT_PREFIXES))

    def _write_description(self, made_at: str) -> Backup:
        """Write `SHA256SUMS` and `backup.json`; return the backup."""
        digests = sorted(self._files.items())
        # named by its moment, without the colons that some filesystems refuse
        stem = self._part.parent / made_at.replace(":", "-")
        others = (stem.with_name(f"{stem.name}-{number}") for number in count(2))
        sums = b"".join(_sum_line(path, digest) for path, digest in digests)
        size = sum(os.stat(f"{self._part}/{FILES}/{path}").st_size for path, _ in digests)
        backup = Backup(
            folder=next(folder for folder in chain([stem], others) if not folder.exists()),
            brain_id=self._store.settings.brain_id,
            device=self._store.journal.device,
            made_at=made_at,
            files=len(digests),
            size=size,
            sums=content_hash(sums),
            empty=tuple(sorted(self._empty)),
        )
        about = {"format": FORMAT} | {key: value for key, value in asdict(backup).items() if key != "folder"}
        self._disk.write(self._part / SUMS, sums)
        self._disk.write(self._part / ABOUT, json.dumps(about, indent=1).encode() + b"\n")
        return backup


def _sum_line(path: str, digest: str) -> bytes:
    """Return a line as `sha256sum` writes it, with backslashes and newlines of a name as escapes."""
    name = os.fsencode(path)
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return (b"\\" if escaped != name else b"") + digest.encode() + b"  " + escaped + b"\n"


def _sum_of(line: bytes) -> tuple[str, str]:
    """Return path and content hash that a line of `SHA256SUMS` names.

    Raises:
        UserError: The path leads outside of the backup.
    """
    digest, _, name = line.lstrip(b"\\").partition(b"  ")
    # a backslash before the line says that the name has escapes, as `_sum_line` writes them
    if line.startswith(b"\\"):
        parts = (part.replace(b"\\n", b"\n").replace(b"\\r", b"\r") for part in name.split(b"\\\\"))
        name = b"\\".join(parts)
    return confined(os.fsdecode(name)), digest.decode()


def confined(path: str) -> str:
    """Return a path that a backup names; raise `UserError` where it leads outside of it."""
    if os.path.isabs(path) or os.path.normpath(path) != path or path.split("/")[0] in ("..", "."):
        raise UserError(f"the backup names {path!r}, which leads outside of it; nothing was restored")
    return path


def file_hash(path: Path) -> str | None:
    """Return the content hash of a regular file; None where there is none. A pipe would be waited for without end."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None


# --- putting one back ----------------------------------------------------------------------------------------------


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
    """Put the brain of a backup into a new or empty folder, wholly or not at all.

    Args:
        backup: A whole backup; check `damages` first.
        into: A missing or empty folder.
        disk: What writes.
        progress: Called with the files done and the total.

    Raises:
        UserError: The folder holds files, a daemon serves it, or the backup is damaged.
    """
    disk, into = disk or Disk(), into.resolve()
    digests = backup.digests()
    if around := next(filter(is_brain, into.parents), None):
        raise UserError(f"{into} lies in the brain {around}; name a folder outside of it")
    if into.is_relative_to(backup.folder.resolve()):
        raise UserError(f"{into} lies in the backup; name another folder")
    if into.exists() and (not into.is_dir() or any(into.iterdir()) or into.is_mount()):
        raise UserError(
            f"{into} is a file, not empty, or a whole disk; nothing was changed: name an empty or a new folder"
        )
    # put together in a folder beside, so that nobody takes a part of it for the brain
    draft = into.with_name(f".{into.name}.restore")
    shutil.rmtree(draft, ignore_errors=True)  # of a run that was interrupted
    make_folders(disk, draft)
    for number, (path, digest) in enumerate(digests.items(), 1):
        make_folders(disk, (draft / path).parent)
        try:
            copied = disk.copy(backup.folder / FILES / path, draft / path)
        except FileNotFoundError:
            copied = ""
        if copied != digest:
            shutil.rmtree(draft)
            raise UserError(f"{backup.folder / FILES / path} is missing or damaged; nothing was restored")
        progress(number, len(digests))
    for path in map(confined, backup.empty):
        make_folders(disk, draft / path)
    disk.sync_filesystem(draft)
    state = _set_aside_state(LocalPlaces.of(into, backup.brain_id), into)
    disk.replace(draft, into)
    disk.fsync(into.parent)
    return Restored(backup, into, state)


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
    names = (f"{places.state.name}-before-restore-{number}" for number in count(1))
    aside = next(path for path in map(places.state.with_name, names) if not path.exists())
    os.rename(places.state, aside)
    shutil.rmtree(places.cache, ignore_errors=True)  # derived from other files
    return aside
