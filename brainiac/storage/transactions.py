"""One commit: planned, kept as pending, carried out, recorded for good, and finished after a crash.

Order: blobs of large texts, pending record (the commit point), files, blobs, journal line, tables. The state database
keeps a record of each commit that may be unfinished, until a checkpoint has synced its texts and journal lines: so a
commit waits for one fsync there and for those of its files. A record that cannot be read is set aside. See
docs/decisions/write-ahead.md.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from brainiac.clock import Clock, iso
from brainiac.errors import BlobError, ConflictError, StorageError, UserError
from brainiac.events import Change, Event, EventData, NoteMerged, RecordedChange, append, content_hash, new_id
from brainiac.formats.prompt import is_off_record, prompt_path_of
from brainiac.storage import files
from brainiac.storage.database import COMMITS, StateDatabase
from brainiac.storage.journal import Journal, from_line, to_line
from brainiac.storage.projection import FileStates, versions_of
from brainiac.tree import LocalPlaces, Tree

MISSING_TRIES, TRY_SECONDS = 20, 0.01  # how long a file may be missing while an editor saves it
INLINE_BYTES = 65_536  # larger texts become blobs before the commit point; writing them twice would cost more
CHECKPOINT_BYTES = 4_000_000
# removals last: after a crash between two steps of a move the text is at both paths rather than at none
_ORDER = {"append": 0, "create": 1, "update": 2, "remove": 3}


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
        steps = tuple(Step(**{**step, "versions": versions_of(step.get("versions", ()))}) for step in record["steps"])
        return cls(from_line(record["event"].encode()), record["since_seq"], steps, texts, record["is_done"])


class WriteAhead:
    """The commits that may be unfinished, in the state database; all calls are made under the commit lock.

    Args:
        database: Keeps their records: a commit, the end of one, or the merge of a displaced file.
        disk: What writes.

    Attributes:
        size: Of the records, in characters.
    """

    def __init__(self, database: StateDatabase, disk: files.Disk) -> None:
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
                    damaged = files.free_name(self._database.path)
                    self._disk.write(damaged, text.encode())
                    self._disk.fsync(damaged)
                    self._database.drop(COMMITS, key)
                self._last_key, self.size = key, self.size + len(text)
            self._stamp = stamp
        return self._intents

    def add(self, intent: Intent) -> None:
        """Make a commit binding: from here on it will be finished, now or after a crash."""
        self._disk.transact(self._database.path, lambda: self._keep(intent.to_record(), intent))

    def note_done(self, intent: Intent) -> None:
        """Record that a commit's files and its journal line are written; not synced, as `note_merged` is not.

        If the record is lost, finished work is checked once more.
        """
        self._keep({"done": intent.event.id})

    def note_merged(self, step: Step, digest: str) -> None:
        """Store the hash up to which a displaced file was merged."""
        self._keep({"merged": step.temporary, "hash": digest})

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

    def _keep(self, record: dict[str, Any], intent: Intent | None = None) -> None:
        """Keep a record and apply it; that of a commit is on the disk then."""
        text, self._last_key = json.dumps(record), new_id(self._last_key)
        self._database.keep(COMMITS, self._last_key, text, is_synced=intent is not None)
        self.size += len(text)
        # after the write: where the disk refused it, the commit does not count
        self._apply(record, intent)

    def _apply(self, record: dict[str, Any], intent: Intent | None = None) -> None:
        """Apply a record to what is known of the commits; that of a commit may be given parsed."""
        if "merged" in record:
            self._merged[record["merged"]] = record["hash"]
        elif "done" in record:
            done = record["done"]
            self._intents = [replace(i, is_done=True) if i.event.id == done else i for i in self._intents]
        else:
            self._intents.append(intent or Intent.from_record(record))


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

    def __init__(self, tree: Tree, disk: files.Disk, text_of: Callable[[str], bytes]) -> None:
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
        _, tail = files.read_end(path, step.size)
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
        self._disk.unlink(temporary)  # one partly written that a crash left
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
        is_done, content = _hash(path) == step.after, files.read_bytes(temporary)
        if content is not None and not is_done:
            # Before a swap the temporary file holds the new text, or as much of it as was written; after it the old
            # file. A person may have saved that anew just before, which gives it another inode.
            is_old_file = os.stat(temporary).st_ino == step.inode
            is_done = is_old_file or not self._after(step).startswith(content)
        if not is_done:
            self._disk.unlink(temporary)  # one partly written that a crash left
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
                files.copy_attributes(path, temporary)
                self._disk.fsync(temporary)
                return self._disk.exchange(temporary, path)
            except FileNotFoundError:
                if not remaining or not path.parent.is_dir():
                    raise
                time.sleep(TRY_SECONDS)
        raise AssertionError("the last try returns or raises")

    def _remove(self, step: Step) -> None:
        """Move a file aside and check it there; one that a person changed meanwhile is put back."""
        path, temporary = self._paths(step)
        if temporary.exists():  # a crash came after the move
            if path.exists():  # and a person has made a file there
                self.left.append(step.path)
                return
        else:
            present_hash = _hash(path)
            if present_hash != step.before:
                self.left += [] if present_hash is None else [step.path]
                return
            try:
                self._disk.replace(path, temporary)
            except FileNotFoundError:
                return
        # checked after the move, since an editor can no longer open the file by its name
        self._folders.add(path.parent)
        if _hash(temporary) != step.before:
            self.left.append(step.path)
            try:
                self._disk.rename_new(temporary, path)
            except FileExistsError:  # a person saved once more meanwhile: both saves are kept
                self.displaced.append(step.path)

    def _paths(self, step: Step) -> tuple[Path, Path]:
        """Return the path of a step's file, and that of the temporary file beside it."""
        return self._tree.absolute(step.path), self._tree.absolute(step.temporary)

    def _after(self, step: Step) -> bytes:
        """Return the new text of a step that writes one."""
        assert step.after is not None
        return self._text_of(step.after)

    def _make_folder(self, path: Path) -> None:
        """Make the folder of a file, and note which folders are to be synced."""
        self._folders.update(files.make_folders(self._disk, path.parent))


def _hash(path: Path) -> str | None:
    """Return the content hash of a file; None where there is no regular file."""
    content = files.read_bytes(path)
    return None if content is None else content_hash(content)


class Transactions:
    """Plans and carries out commits; safe across threads and processes.

    Args:
        tree: The brain's folder.
        places: Its machine-local places.
        journal: Where commits are recorded.
        clock: Dates them.
        disk: What writes.
        announce: Called with each event that was recorded here, in the recording thread, after it released the lock.
        holds_secret: Whether a text at a (relative) path has a secret in it, so that the journal must not keep it.
        database: What this machine keeps; opened here where None.

    Attributes:
        database: What this machine keeps.
        file_states: The state of each tracked file when it was last seen.
        write_ahead: The commits that may be unfinished.
    """

    def __init__(
        self,
        tree: Tree,
        places: LocalPlaces,
        journal: Journal,
        clock: Clock,
        disk: files.Disk | None = None,
        announce: Callable[[Event], None] = lambda event: None,
        holds_secret: Callable[[str, bytes], bool] = lambda path, content: False,
        database: StateDatabase | None = None,
    ) -> None:
        self.tree, self.journal, self.clock, self.disk = tree, journal, clock, disk or files.Disk()
        self.database = database or StateDatabase(places)
        self.file_states = FileStates(self.database, tree, journal)
        self.write_ahead = WriteAhead(self.database, self.disk)
        self._announce, self._holds_secret = announce, holds_secret
        self._depth = 0  # how often the thread that holds the commit lock entered it
        self._recorded: list[Event] = []  # to be announced when it leaves

    @contextmanager
    def commit_lock(self) -> Iterator[None]:
        """Hold the commit lock; events recorded meanwhile are announced when the thread's outermost hold ends."""
        recorded: list[Event] = []
        try:
            with files.locked(self.journal.lock):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                    if self._depth == 0:
                        recorded, self._recorded = self._recorded, []
        finally:
            # not under the lock: a listener may wait for a thread that waits for the lock
            for event in recorded:
                self._announce(event)

    def run_merge(
        self, event: NoteMerged, changes: Sequence[Change], path: str, base: str | None, save: bytes | None
    ) -> Event:
        """Merge a person's save into the file it was meant for; the caller holds the commit lock.

        Args:
            event: What happens.
            changes: The changes that the merge makes; without any, only the save's text is kept.
            path: The file.
            base: Hash of the version that the save was made from.
            save: The person's text; None where it is too large to be kept.

        Raises:
            ConflictError: A file moved meanwhile; nothing was changed.
        """
        plan = Plan(self, changes, expect={}, contents={})
        if save is not None and not self.is_hash_only(path, save):
            digest = content_hash(save)
            plan.texts[digest] = save
            if any(change.path == path for change in changes):
                # the person's version is recorded first and ours after it, so that undoing ours gives theirs back
                plan.recorded.insert(0, RecordedChange("observe", path, base, digest))
            else:  # no change names the text, so the event does
                event = replace(event, texts={path: digest})
        recorded = Event(0, "", "", event.kind, "kernel", None, event.to_json(), tuple(plan.recorded))
        return self._commit(recorded, plan.steps, plan.texts)

    def record(
        self,
        event: EventData,
        changes: Sequence[RecordedChange] = (),
        texts: Mapping[str, bytes] | None = None,
        by: str = "person",
    ) -> Event:
        """Record changes that a person made in the tree; writes no file there. The caller holds the commit lock.

        Args:
            event: What happened.
            changes: The changes that were detected.
            texts: Content by hash, of texts that are not blobs yet.
            by: Who did it.
        """
        self.finish_pending()
        recorded = Event(0, "", "", event.kind, by, None, event.to_json(), tuple(changes))
        return self._commit(recorded, (), texts or {})

    def finish_pending(self) -> None:
        """Apply what other processes recorded, and finish a commit that a crash or an error interrupted.

        Raises:
            StorageError: The tree is not there (its disk is not mounted): nothing may be written in its place.
        """
        if not self.tree.is_there:
            raise StorageError(f"{self.tree.root} is not there (no system/ in it); mount its disk, or put it back.")
        intents = self.write_ahead.read()
        self.file_states.catch_up()
        if not intents or intents[-1].is_done:
            return  # a commit is only recorded when the one before is done
        intent = intents[-1]
        if self.journal.last()[0] < intent.since_seq:
            # a power failure took the journal lines of earlier commits, which must stand before this one's
            self.restore()
        if self.journal.find(intent.event.id, intent.since_seq) is not None:
            self.write_ahead.note_done(intent)
        else:
            self._carry_out(intent)

    def restore(self) -> None:
        """Write again what a power failure may have taken: blobs and journal lines of commits that are done."""
        intents = self.write_ahead.read()
        since = min((intent.since_seq for intent in intents), default=0)
        recorded = {event.id for event in self.journal.events(since)} if intents else set()
        for intent in intents:
            # a blob's file may be there and empty: its name reached the disk, its content did not
            self._keep_texts(intent.event, intent.texts, is_verified=True)
            if intent.is_done and intent.event.id not in recorded:
                self.journal.record(intent.event)
        self.file_states.catch_up()

    def checkpoint(self) -> None:
        """Sync blobs and journal, then drop all pending commits without displaced files."""
        intents = self.write_ahead.read()
        # texts before the journal lines that name them, and both before no pending commit can restore them
        self.journal.blobs.sync(
            {digest for intent in intents if intent.texts for digest in _kept_digests(intent.event)}
        )
        self.journal.sync()
        needed = {intent.event.id for intent, _, _ in self.displaced_files()}
        self.write_ahead.keep_only([intent for intent in intents if intent.event.id in needed])

    def displaced_files(self) -> list[tuple[Intent, Step, Path]]:
        """Return the files that commits swapped out and that still exist: the commit, its write, and where the file is.

        An editor may still save into one of them, so each is checked for a person's save before it is removed.
        """
        steps = [(intent, step) for intent in self.write_ahead.read() for step in intent.steps if step.temporary]
        aside = [(intent, step, self.tree.absolute(step.temporary)) for intent, step in steps]
        return [displaced for displaced in aside if displaced[2].exists()]

    def text_of(self, digest: str) -> bytes:
        """Return a text by hash, from the pending commits or the journal's blobs.

        Raises:
            BlobError: It is in neither.
        """
        with files.locked(self.journal.lock):  # another process may be at its checkpoint
            intents = self.write_ahead.read()
        for intent in intents:
            if digest in intent.texts:
                return intent.texts[digest]
        return self.journal.blobs.get(digest)

    def kept_text(self, digest: str | None) -> bytes | None:
        """Return a text by its hash; None for no hash, and for a text that is off the record or purged."""
        try:
            return self.text_of(digest) if digest else None
        except BlobError:
            return None

    def is_hash_only(self, path: str, content: bytes | None) -> bool:
        """Return whether only the hash of a text at a (relative) path may be recorded, never the text.

        True for a file off the record, the answer to a prompt off the record, and a text with a secret in it.
        """
        if content is None:
            return False
        return self.is_off_record(path, content) or self._holds_secret(path, content)

    def is_off_record(self, path: str, content: bytes) -> bool:
        """Return whether a file at a (relative) path is off the record, or answers a prompt that is.

        Where the prompt is gone, the answer is still off the record if it was hash-only while the prompt existed.
        """
        prompt_paths = prompt_path_of(path)
        if is_off_record(content):
            return True
        try:
            texts = [files.read_bytes(self.tree.absolute(prompt)) for prompt in prompt_paths]
        except OSError:
            return True  # the prompt cannot be read and may be off the record
        prompts = [text for text in texts if text is not None]
        if prompt_paths and not prompts:
            return self.file_states.hash_only(path) == content_hash(content)
        return any(map(is_off_record, prompts))

    def _commit(self, event: Event, steps: Sequence[Step], texts: Mapping[str, bytes]) -> Event:
        """Record a commit as pending, which makes it binding, and carry it out; it gets its id and time here."""
        since_seq, last_id = self.journal.last()
        event = replace(event, id=new_id(last_id), at=iso(self.clock.now()))
        kept = _kept_digests(event)
        large = {digest: text for digest, text in texts.items() if len(text) > INLINE_BYTES and digest in kept}
        if large:
            self._keep_texts(event, large)
            self.journal.blobs.sync(set(large))
        # the commit waits for the line's fsync: texts that are blobs already, or that no step writes, stay out of it
        needed = {step.after for step in steps} | {digest for digest in kept if digest not in self.journal.blobs}
        inline = {digest: text for digest, text in texts.items() if digest in needed and digest not in large}
        intent = Intent(event, since_seq, tuple(steps), inline)
        self.write_ahead.add(intent)
        event = self._carry_out(intent)
        if self.write_ahead.size > CHECKPOINT_BYTES:
            self.checkpoint()
        return event

    def _carry_out(self, intent: Intent) -> Event:
        """Put a commit's files in place and record it, now or after a crash."""
        placement = Placement(self.tree, self.disk, self.text_of)
        placement.run(intent)
        # texts before the journal line that names them, so that a reader of the journal finds every text
        self._keep_texts(intent.event, intent.texts)
        event = self.journal.record(_with_outcome(intent, placement))
        self._recorded.append(event)
        self.file_states.catch_up()
        self.write_ahead.note_done(intent)
        return event

    def _keep_texts(self, event: Event, texts: Mapping[str, bytes], is_verified: bool = False) -> None:
        """Store the texts that the event names as blobs, each as a splice on its earlier version where that helps.

        Args:
            event: Names the texts that are kept.
            texts: By hash; others among them are passed over.
            is_verified: See `BlobStore.put`.
        """
        bases = {change.after: change.before for change in event.changes}
        # those that no change made first: they are earlier versions, on which others can be splices
        for digest in sorted(_kept_digests(event) & texts.keys(), key=lambda digest: digest in bases):
            self.journal.blobs.put(texts[digest], base=bases.get(digest), is_verified=is_verified)


def _check_place(path: Path) -> None:
    """Check that the system lets a file be written at a path, before the commit is binding.

    A binding commit that cannot be carried out would be tried again before every other one, and so stop them all.

    Raises:
        OSError: The path is too long, or nothing may be written in its folder.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(files.temporary_beside(str(path)))
        os.lstat(path)
    folder = next(folder for folder in path.parents if folder.is_dir())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


class Plan:
    """The steps of a commit, checked against the tree before anything is written.

    Args:
        transactions: Has the last seen states of files, and decides which texts are hash-only.
        changes: The changes to make.
        expect: Content hash by path of further files on which the decision rested; None for "must not exist".
        contents: Content by path of the files that were read already; None for no file.

    Attributes:
        steps: In the order in which they are done.
        recorded: The changes as the journal will record them.
        texts: Content by hash, all that the steps and the journal need.
        off_record: Hashes of the texts that are written or observed but not kept.

    Raises:
        ConflictError: A file has not the content that a change or `expect` has for it.
        UserError: Two changes name one path.
    """

    def __init__(
        self,
        transactions: Transactions,
        changes: Sequence[Change],
        expect: Mapping[str, str | None],
        contents: Mapping[str, bytes | None],
    ) -> None:
        self._tree, self._states = transactions.tree, transactions.file_states
        self._is_hash_only = transactions.is_hash_only
        self._contents = dict(contents)
        self._conflicts: list[str] = []
        self.steps: list[Step] = []
        self.recorded: list[RecordedChange] = []
        self.texts: dict[str, bytes] = {}
        self.off_record: list[str] = []
        # all conflicts are collected, so that the caller can decide anew on everything at once
        for path, expected in expect.items():
            self._check_content(path, expected)
        added: dict[str, bytes] = {}
        for change in changes:
            if change.op == "append":
                added[change.path] = added.get(change.path, b"") + (change.after or b"")
        others = [change for change in changes if change.op != "append"]
        paths = Counter([*added, *(path for change in others for path in (change.path, change.source) if path)])
        repeated = sorted(path for path, count in paths.items() if count > 1)
        if repeated:
            raise UserError(*(f"{path}: named by two changes of one commit; make them one" for path in repeated))
        for change in (*(append(path, text) for path, text in added.items()), *others):
            self._add(change)
        if self._conflicts:
            raise ConflictError(self._conflicts)
        # short-term memory last: it names what the other files hold
        last = self._tree.relative(self._tree.short_term)
        self.steps.sort(key=lambda step: (step.path == last, _ORDER[step.op]))

    def _add(self, change: Change) -> None:
        """Add the steps and the recorded change for one change."""
        before = None if change.before is None else self._add_text(change.before)
        after = None if change.after is None else self._add_text(change.after)
        if change.op == "append":
            size, last = files.read_end(self._tree.absolute(change.path))
            text = (b"" if last in (b"", b"\n") else b"\n") + (change.after or b"")  # below an unfinished line
            self.steps.append(Step("append", change.path, after=self._add_text(text), size=size))
        elif change.op == "observe":
            self._check_content(change.path, after)
        elif change.source is not None:
            self._step("create", change.path, None, after)
            self._step("remove", change.source, before, None)
        else:
            self._step(change.op, change.path, before, after)  # type: ignore[arg-type]  # a move has a source
        self._record(change, before, after)

    def _step(
        self, op: Literal["create", "update", "remove"], path: str, before: str | None, after: str | None
    ) -> None:
        """Add the step for one file, unless it would leave the file unchanged."""
        self._check_content(path, before)
        if op == "update" and before == after:
            return  # sync tools and watchers need not notice a file written anew with the same text
        _check_place(self._tree.absolute(path))
        exists = before is not None and self._contents[path] is not None  # else there is a conflict
        inode = os.stat(self._tree.absolute(path)).st_ino if exists else 0
        # stored now: when a displaced save is found later, the file may have newer versions that no editor had loaded
        state = self._states.get(path)
        versions = state.versions if state is not None and state.hash == before else ()
        self.steps.append(Step(op, path, before, after, files.temporary_beside(path), inode, versions=versions))

    def _record(self, change: Change, before: str | None, after: str | None) -> None:
        """Add the record of a change for the journal; nothing is recorded of a change between hash-only texts."""
        path, is_hash_only = change.source or change.path, self._is_hash_only(change.path, change.after)
        if is_hash_only and after is not None:
            self.off_record.append(after)
        was_hash_only, state = self._is_hash_only(path, change.before), self._states.get(path)
        if change.op != "append" and (is_hash_only or was_hash_only):
            # the journal is told of the kept texts alone: one is gone from its path, or one is new there
            if state is not None:
                self.recorded.append(RecordedChange("observe", path, state.hash, None))
            if not is_hash_only and after is not None:
                self.recorded.append(RecordedChange("create", change.path, None, after))
            return
        if change.op == "observe":
            # nothing is written: the content before is the one that this device saw last
            before = state.hash if state else None
        self.recorded.append(RecordedChange(change.op, change.path, before, after, change.source))

    def _check_content(self, path: str, expected: str | None) -> None:
        """Add a path to the conflicts if its file does not have the expected hash."""
        if path not in self._contents:
            self._contents[path] = files.read_bytes(self._tree.absolute(path))
        content = self._contents[path]
        if (None if content is None else content_hash(content)) != expected:
            self._conflicts.append(path)

    def _add_text(self, text: bytes) -> str:
        """Add a text to those that the commit keeps, and return its hash."""
        digest = content_hash(text)
        self.texts[digest] = text
        return digest


def _kept_digests(event: Event) -> set[str]:
    """Return the hashes of the texts that the journal keeps for an event: those of its changes and of `texts`.

    What was appended to a log is not kept: it stands in the log.
    """
    digests = {digest for change in event.changes if change.op != "append" for digest in (change.before, change.after)}
    return {*digests, *event.data.get("texts", {}).values()} - {None}


def _with_outcome(intent: Intent, placement: Placement) -> Event:
    """Return a commit's event as it is recorded after its steps.

    Files that were not written, since a person changed them meanwhile, are in its `left` and not among its changes.
    """
    event, left = intent.event, set(placement.left)
    if not left and not placement.displaced:
        return event
    data = dict(event.data)
    if placement.displaced:
        data["displaced"] = sorted(set(placement.displaced))
    if left:
        data["left"] = sorted(left)
        data["left_texts"] = {step.path: step.after for step in intent.steps if step.path in left and step.after}
    changes = []
    for change in event.changes:
        if change.source in left and change.path not in left:
            changes.append(replace(change, op="create", source=None))  # of a move only the new file was made
        elif change.op == "observe" or change.path not in left:
            changes.append(change)
    return replace(event, data=data, changes=tuple(changes))
