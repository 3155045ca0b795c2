"""Commits that may be unfinished, and writing their files, now or after a crash.

The state database keeps a record of each; adding it is the commit point. Records stay until a checkpoint has synced
their texts and journal lines, so that a commit waits for one fsync here and for those of its files. A record that
cannot be read is set aside. See docs/decisions/write-ahead.md.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from brainiac.events import Event, content_hash, new_id
from brainiac.storage.database import COMMITS, StateDatabase
from brainiac.storage.files import Disk, copy_attributes, free_name, make_folders, read_bytes, read_end
from brainiac.storage.journal import from_line, to_line
from brainiac.tree import Tree

MISSING_TRIES, TRY_SECONDS = 20, 0.01  # how long a file may be missing while an editor saves it


@dataclass(frozen=True, slots=True)
class Step:
    """The change of one file in a commit.

    Attributes:
        op: What is to be done; a move is a create and a remove.
        path: Relative.
        before: Hash of the content that the file must have; None for no file.
        after: Hash of the content that it is to have; None for no file.
        temporary: Relative path of a file beside it: the new text until both are swapped, then the displaced file.
        inode: Of the file before; after a crash it tells the displaced file from the new text.
        size: For `append`: the size of the log before, in bytes.
        versions: `FileState.versions` at that time: a displaced save was made from one of them, never from a later
            one.
    """

    op: Literal["append", "create", "update", "remove"]
    path: str
    before: str | None = None
    after: str | None = None
    temporary: str = ""
    inode: int = 0
    size: int = 0
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """One commit.

    Attributes:
        event: As it will be recorded, unless a person changes some of its files meanwhile.
        since_seq: The journal's last `seq` before it; its journal line comes after.
        steps: In the order in which they are done.
        texts: Content by hash, of texts that are no blobs yet.
        is_done: Its files are written; after a power failure a blob or the journal line may still be missing.
    """

    event: Event
    since_seq: int
    steps: tuple[Step, ...] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict)
    is_done: bool = False

    def to_record(self) -> dict[str, Any]:
        """Return the commit as the JSON object of its record."""
        return {
            "event": to_line(self.event).decode(),
            "since_seq": self.since_seq,
            "steps": [asdict(step) for step in self.steps],
            "texts": {digest: base64.b64encode(text).decode() for digest, text in self.texts.items()},
            "is_done": self.is_done,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Intent:
        """Return the commit of a record.

        Raises:
            ValueError: A text has another hash.
            KeyError, TypeError, AttributeError: The object is no commit.
        """
        texts = {digest: base64.b64decode(text) for digest, text in record["texts"].items()}
        if any(content_hash(text) != digest for digest, text in texts.items()):
            raise ValueError("a text is not what its hash says")
        steps = tuple(Step(**{**step, "versions": tuple(step.get("versions", ()))}) for step in record["steps"])
        return cls(from_line(record["event"].encode()), record["since_seq"], steps, texts, record["is_done"])


class WriteAhead:
    """The commits that may be unfinished, in the state database; all calls are made under the commit lock.

    Args:
        database: Keeps their records: a commit, the end of one, or the merge of a displaced file.
        disk: What writes.

    Attributes:
        size: Of the records, in characters.
    """

    def __init__(self, database: StateDatabase, disk: Disk) -> None:
        self._database, self._disk = database, disk
        self._stamp: tuple[int, int] | None = None
        self._last_key, self.size = "", 0
        self._intents: list[Intent] = []
        self._merged: dict[str, str] = {}  # by path of a displaced file: hash of its content that was merged last

    def read(self) -> list[Intent]:
        """Return the commits; they are parsed again only when another process wrote to the database."""
        if (stamp := self._database.stamp()) != self._stamp:
            self._intents, self._merged, self._last_key, self.size = [], {}, "", 0
            for key, text in self._database.kept(COMMITS).items():
                try:
                    self._apply(json.loads(text))
                except (ValueError, KeyError, TypeError, AttributeError):  # it may have the only copy of a text
                    damaged = free_name(self._database.path)
                    self._disk.write(damaged, text.encode())
                    self._disk.fsync(damaged)
                    self._database.drop(COMMITS, key)
                self._last_key, self.size = key, self.size + len(text)
            self._stamp = stamp
        return self._intents

    def add(self, intent: Intent) -> None:
        """Make a commit binding: from here on it will be finished, now or after a crash."""
        self._disk.transact(self._database.path, lambda: self._keep(intent.to_record(), is_synced=True))
        # after the write: where the disk refused it, the commit does not count
        self._intents.append(intent)

    def note_done(self, intent: Intent) -> None:
        """Record that a commit's files and its journal line are written."""
        self._note({"done": intent.event.id})

    def note_merged(self, step: Step, digest: str) -> None:
        """Store the hash up to which a displaced file was merged."""
        self._note({"merged": step.temporary, "hash": digest})

    def base_of(self, step: Step) -> str | None:
        """Return the hash of a displaced file's content when it was last merged, else when it was swapped out."""
        return self._merged.get(step.temporary, step.before)

    def keep_only(self, intents: Iterable[Intent]) -> None:
        """Keep only these commits, without their texts, which must be synced as blobs.

        Args:
            intents: Those that still have displaced files.
        """
        if not self.size:
            return
        kept = [replace(intent, texts={}, is_done=True) for intent in intents]
        displaced = {step.temporary for intent in kept for step in intent.steps}
        records = [intent.to_record() for intent in kept]
        records += [{"merged": path, "hash": digest} for path, digest in self._merged.items() if path in displaced]
        texts = {f"{number:06}": json.dumps(record) for number, record in enumerate(records)}
        self._disk.transact(self._database.path, lambda: self._database.keep_only(COMMITS, texts))
        self._database.empty_log()  # texts that were off the record may stand there
        self._stamp = None

    def _note(self, record: dict[str, Any]) -> None:
        """Keep a record without syncing it; if it is lost, finished work is checked once more."""
        self._keep(record)
        self._apply(record)

    def _keep(self, record: dict[str, Any], *, is_synced: bool = False) -> None:
        text, self._last_key = json.dumps(record), new_id(self._last_key)
        self._database.keep(COMMITS, self._last_key, text, is_synced=is_synced)
        self.size += len(text)

    def _apply(self, record: dict[str, Any]) -> None:
        """Apply a record to what is known of the commits."""
        if "merged" in record:
            self._merged[record["merged"]] = record["hash"]
        elif "done" in record:
            done = record["done"]
            self._intents = [replace(i, is_done=True) if i.event.id == done else i for i in self._intents]
        else:
            self._intents.append(Intent.from_record(record))


class Placement:
    """Writes the files of one commit so that no newer save is overwritten.

    Each step looks at the files to see whether it is done already, so that a new commit and one that a crash
    interrupted run the same code. An updated file is swapped with the new one in one operation, and the old one is
    checked afterwards: a check before a replacement lost saves that were made in between. A removed file is moved aside
    and checked there.

    Args:
        tree: The brain's folder.
        disk: What writes.
        text_of: Returns a text of the commit by its hash.

    Attributes:
        left: Paths that a person changed meanwhile; they were not written.
        displaced: Paths whose displaced file has a person's save, which is still to be merged.
    """

    def __init__(self, tree: Tree, disk: Disk, text_of: Callable[[str], bytes]) -> None:
        self._tree, self._disk, self._text_of = tree, disk, text_of
        self._folders: set[Path] = set()
        self.left: list[str] = []
        self.displaced: list[str] = []

    def run(self, intent: Intent) -> None:
        """Do all steps of a commit that are not done yet."""
        methods = {"append": self._append, "create": self._create, "update": self._update, "remove": self._remove}
        target_by_source = {change.source: change.path for change in intent.event.changes if change.source is not None}
        for step in intent.steps:
            # a move, whose creation comes first, to a path where a person has made a file: nothing moves
            if step.op == "remove" and target_by_source.get(step.path) in self.left:
                self.left.append(step.path)
            else:
                methods[step.op](step)
        # a rename survives a power cut only if its folder was synced; each folder once, after all steps
        for folder in sorted(self._folders):
            self._disk.fsync(folder)

    def _append(self, step: Step) -> None:
        """Append lines to a log, or what is missing of them after a crash; others may have appended lines since."""
        path, text = self._tree.absolute(step.path), self._after(step)
        _, tail = read_end(path, step.size)
        if text in tail:  # done before the crash
            return
        if text.startswith(tail):  # nothing, or a part, was written before the crash
            text = text[len(tail) :]
        elif not tail.endswith(b"\n"):  # somebody else's unfinished line
            text = b"\n" + text
        self._make_folder(path)
        self._disk.append(path, text, mode=0o644)
        self._disk.fsync(path)

    def _create(self, step: Step) -> None:
        """Write a new file; where a person has made one at that path meanwhile, theirs is left."""
        path, temporary = self._paths(step)
        present_hash = _hash(path)
        self._discard(temporary)
        self._folders.add(path.parent)
        if present_hash is not None:
            if present_hash != step.after:  # else it was written before the crash
                self.left.append(step.path)
            return
        self._make_folder(path)
        # written beside the file and then renamed, so that watchers and sync tools never see half a file;
        # readable for other users, as a file that an editor makes
        self._disk.write(temporary, self._after(step), mode=0o644)
        self._disk.fsync(temporary)
        try:
            self._disk.rename_new(temporary, path)
        except FileExistsError:
            self._disk.unlink(temporary)
            self.left.append(step.path)

    def _update(self, step: Step) -> None:
        """Swap the new text with the file; where that had a person's newer save, add its path to `displaced`."""
        path, temporary = self._paths(step)
        is_done = _hash(path) == step.after or self._was_swapped(step, temporary)
        if not is_done:
            self._discard(temporary)
            if not self._swap(step, path, temporary):
                self._disk.unlink(temporary)
                self.left.append(step.path)
                return
        self._folders.add(path.parent)
        # after the swap the temporary file is the former one
        if _hash(temporary) not in (None, step.before):
            self.displaced.append(step.path)

    def _swap(self, step: Step, path: Path, temporary: Path) -> bool:
        """Write the new text to a file; return False where there is no regular file any more.

        Where the filesystem cannot swap files, False also for a file that a person has just saved; elsewhere `_update`
        finds such a save afterwards.
        """
        if path.is_symlink() or path.is_dir():
            return False
        try:
            self._disk.write(temporary, self._after(step))
            if self._exchange(temporary, path):
                return True
        except FileNotFoundError:  # the file is gone, or its folder
            return False
        # this filesystem cannot swap files: the check is as late as it can be
        if _hash(path) != step.before:
            return False
        self._disk.replace(temporary, path)
        return True

    def _exchange(self, temporary: Path, path: Path) -> bool:
        """Swap two files; wait a moment where the file is missing, since some editors move it away before they save.

        Returns:
            False where the filesystem cannot swap files.
        """
        for remaining in reversed(range(MISSING_TRIES)):
            try:
                # at each try, since the editor's new file may have other attributes
                copy_attributes(path, temporary)
                self._disk.fsync(temporary)
                return self._disk.exchange(temporary, path)
            except FileNotFoundError:
                if not remaining or not path.parent.is_dir():
                    raise
                time.sleep(TRY_SECONDS)
        raise AssertionError("the last try returns or raises")

    def _was_swapped(self, step: Step, temporary: Path) -> bool:
        """Return whether the file and the temporary one changed places before a crash.

        Before that the temporary file holds the new text, or as much of it as was written; after that the old file.
        """
        content = read_bytes(temporary)
        if content is None:
            return False
        is_old_file = os.stat(temporary).st_ino == step.inode
        # a person may have saved the old file anew just before, which gives it another inode
        return is_old_file or not self._after(step).startswith(content)

    def _remove(self, step: Step) -> None:
        """Move a file aside and check it there; one that a person changed meanwhile is put back."""
        path, temporary = self._paths(step)
        if not self._move_aside(step, path, temporary):
            return
        # checked after the move, since an editor can no longer open the file by its name
        self._folders.add(path.parent)
        if _hash(temporary) != step.before:
            self.left.append(step.path)
            try:
                self._disk.rename_new(temporary, path)
            except FileExistsError:  # a person saved once more meanwhile: both saves are kept
                self.displaced.append(step.path)

    def _move_aside(self, step: Step, path: Path, temporary: Path) -> bool:
        """Move a file aside; return False where it is gone already, or a person's file is at its path."""
        if temporary.exists():  # a crash came after the move
            is_made_anew = path.exists()
            if is_made_anew:
                self.left.append(step.path)
            return not is_made_anew
        present_hash = _hash(path)
        if present_hash != step.before:
            if present_hash is not None:
                self.left.append(step.path)
            return False
        try:
            self._disk.replace(path, temporary)
        except FileNotFoundError:
            return False
        return True

    def _paths(self, step: Step) -> tuple[Path, Path]:
        """Return the path of a step's file, and that of the temporary file beside it."""
        return self._tree.absolute(step.path), self._tree.absolute(step.temporary)

    def _after(self, step: Step) -> bytes:
        """Return the new text of a step that writes one."""
        assert step.after is not None
        return self._text_of(step.after)

    def _make_folder(self, path: Path) -> None:
        """Make the folder of a file, and note which folders are to be synced."""
        self._folders.update(make_folders(self._disk, path.parent))

    def _discard(self, temporary: Path) -> None:
        """Remove a partly written temporary file that a crash left."""
        if os.path.lexists(temporary):
            self._disk.unlink(temporary)


def _hash(path: Path) -> str | None:
    """Return the content hash of a file; None where there is no regular file."""
    content = read_bytes(path)
    return None if content is None else content_hash(content)
