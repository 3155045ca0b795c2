"""One commit: planned, recorded as pending, carried out, recorded for good, and finished after a crash.

Order: blobs of large texts, pending record (the commit point), files, blobs, journal line, tables. What is still
pending needs no fsync of its own until a checkpoint. See docs/decisions/write-ahead.md.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from brainiac.clock import Clock, iso
from brainiac.errors import ConflictError, StorageError, UserError
from brainiac.events import (
    Change,
    Event,
    EventData,
    NoteMerged,
    PluginEvent,
    RecordedChange,
    append,
    content_hash,
    kind_and_data,
    new_id,
)
from brainiac.formats.prompt import is_off_record, prompt_path_of
from brainiac.storage.database import StateDatabase
from brainiac.storage.file_state import FileStates
from brainiac.storage.files import Disk, locked, read_bytes, read_end, temporary_beside
from brainiac.storage.journal import Journal
from brainiac.storage.write_ahead import Intent, Placement, Step, WriteAhead
from brainiac.tree import LocalPlaces, Tree

INLINE_BYTES = 65_536  # larger texts become blobs before the commit point; writing them twice would cost more
CHECKPOINT_BYTES = 4_000_000
# removals last: after a crash between two steps of a move the text is at both paths rather than at none
_ORDER = {"append": 0, "create": 1, "update": 2, "remove": 3}


class DisplacedFile(NamedTuple):
    """A file that a commit swapped out, at the path where it is kept until it was checked for a person's save.

    Attributes:
        intent: The commit, as it is pending.
        step: The write of the commit that swapped it out.
        path: Where it is kept.
    """

    intent: Intent
    step: Step
    path: Path


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
        disk: Disk | None = None,
        announce: Callable[[Event], None] = lambda event: None,
        holds_secret: Callable[[str, bytes], bool] = lambda path, content: False,
        database: StateDatabase | None = None,
    ) -> None:
        self.tree, self.journal, self.clock, self.disk = tree, journal, clock, disk or Disk()
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
            with locked(self.journal.lock):
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

    def run(
        self,
        event: EventData | PluginEvent | str,
        changes: Sequence[Change],
        contents: Mapping[str, bytes | None],
        *,
        by: str,
        data: Mapping[str, Any] | None = None,
        cause: str | None = None,
        expect: Mapping[str, str | None] | None = None,
    ) -> Event:
        """Change the tree and record it; the caller holds the commit lock.

        Args:
            event: What happens.
            changes: With confined paths.
            contents: Content by path of the files that were read already.
            by: Who does it.
            data: Plain JSON values of a plugin's own kind.
            cause: Id of the event that led here.
            expect: Hash by path of further files, None for "must not exist".

        Raises:
            ConflictError: A file has not the content that a change or `expect` has for it; nothing was changed.
            UserError: Two changes name one path.
        """
        plan = _Plan(self, changes, expect or {}, contents)
        off_record = {"off_record": plan.off_record} if plan.off_record else {}
        kind, data = kind_and_data(event, data)
        return self._commit(_event(kind, by, plan.recorded, data | off_record, cause), plan.steps, plan.texts)

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
        plan = _Plan(self, changes, expect={}, contents={})
        if save is not None and not self.is_hash_only(path, save):
            digest = content_hash(save)
            plan.texts[digest] = save
            if any(change.path == path for change in changes):
                # the person's version is recorded first and ours after it, so that undoing ours gives theirs back
                plan.recorded.insert(0, RecordedChange("observe", path, base, digest))
            else:  # no change names the text, so the event does
                event = replace(event, texts={path: digest})
        return self._commit(_event(event.kind, "kernel", plan.recorded, event.to_json()), plan.steps, plan.texts)

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
        return self._commit(_event(event.kind, by, changes, event.to_json()), (), texts or {})

    def finish_pending(self) -> list[Event]:
        """Apply what other processes recorded, and finish a commit that a crash or an error interrupted.

        Returns:
            The events of finished commits, at most one.

        Raises:
            StorageError: The tree is not there (its disk is not mounted): nothing may be written in its place.
        """
        if not self.tree.is_there:
            raise StorageError(f"{self.tree.root} is not there (no system/ in it); mount its disk, or put it back.")
        intents = self.write_ahead.read()
        self.file_states.catch_up()
        if not intents or intents[-1].is_done:
            return []  # a commit is only recorded when the one before is done
        intent = intents[-1]
        if self.journal.last()[0] < intent.since_seq:
            # a power failure took the journal lines of earlier commits, which must stand before this one's
            self.restore()
        if self.journal.find(intent.event.id, intent.since_seq) is not None:
            self.write_ahead.note_done(intent)
            return []
        return [self._carry_out(intent)]

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
        needed = {displaced.intent.event.id for displaced in self.displaced_files()}
        self.write_ahead.keep_only([intent for intent in intents if intent.event.id in needed])

    def displaced_files(self) -> list[DisplacedFile]:
        """Return the files that commits swapped out and that still exist.

        An editor may still save into one of them, so each is checked for a person's save before it is removed.
        """
        displaced = []
        for intent in self.write_ahead.read():
            for step in intent.steps:
                path = self.tree.absolute(step.temporary)
                if step.temporary and path.exists():
                    displaced.append(DisplacedFile(intent, step, path))
        return displaced

    def text_of(self, digest: str) -> bytes:
        """Return a text by hash, from the pending commits or the journal's blobs.

        Raises:
            BlobError: It is in neither.
        """
        with locked(self.journal.lock):  # another process may be at its checkpoint
            intents = self.write_ahead.read()
        for intent in intents:
            if digest in intent.texts:
                return intent.texts[digest]
        return self.journal.blobs.get(digest)

    def is_hash_only(self, path: str, content: bytes | None) -> bool:
        """Return whether only the hash of a text at a (relative) path may be recorded, never the text.

        True for a file off the record, the answer to a prompt off the record, and a text with a secret in it.
        """
        if content is None:
            return False
        return self.is_off_record(path, content) or self._holds_secret(path, content)

    def is_off_record(self, path: str, content: bytes) -> bool:
        """Return whether a file at a (relative) path is off the record, or answers a prompt that is."""
        return is_off_record(content) or self._is_answer_off_record(path, content)

    def _is_answer_off_record(self, path: str, content: bytes) -> bool:
        """Return whether a file is the answer to a prompt off the record.

        Where the prompt is gone, the answer is still off the record if it was hash-only while the prompt existed.
        """
        prompt_paths = prompt_path_of(path)
        try:
            prompts = [raw for prompt in prompt_paths if (raw := read_bytes(self.tree.absolute(prompt))) is not None]
        except OSError:
            return True  # the prompt cannot be read and may be off the record
        if prompt_paths and not prompts:
            return self.file_states.hash_only(path) == content_hash(content)
        return any(map(is_off_record, prompts))

    def _commit(self, event: Event, steps: Sequence[Step], texts: Mapping[str, bytes]) -> Event:
        """Record a commit as pending, which makes it binding, and carry it out."""
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
        os.lstat(temporary_beside(str(path)))
        os.lstat(path)
    folder = next(folder for folder in path.parents if folder.is_dir())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


class _Plan:
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
        for change in _with_joined_appends(changes):
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
            self._append(change)
        elif change.op == "observe":
            self._check_content(change.path, after)
        elif change.source is not None:
            self._step("create", change.path, None, after)
            self._step("remove", change.source, before, None)
        else:
            self._step(change.op, change.path, before, after)  # type: ignore[arg-type]  # a move has a source
        self._record(change, before, after)

    def _append(self, change: Change) -> None:
        """Add the step that appends lines to a log, on a new line where the last one is unfinished."""
        size, last = read_end(self._tree.absolute(change.path))
        text = change.after or b""
        if last not in (b"", b"\n"):
            text = b"\n" + text
        self.steps.append(Step("append", change.path, after=self._add_text(text), size=size))

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
        self.steps.append(Step(op, path, before, after, temporary_beside(path), inode, versions=versions))

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
            self._contents[path] = read_bytes(self._tree.absolute(path))
        content = self._contents[path]
        if (None if content is None else content_hash(content)) != expected:
            self._conflicts.append(path)

    def _add_text(self, text: bytes) -> str:
        """Add a text to those that the commit keeps, and return its hash."""
        digest = content_hash(text)
        self.texts[digest] = text
        return digest


def _with_joined_appends(changes: Sequence[Change]) -> list[Change]:
    """Return the changes with all appends to one log joined; raise `UserError` for two changes of one file."""
    added: dict[str, bytes] = {}
    for change in changes:
        if change.op == "append":
            added[change.path] = added.get(change.path, b"") + (change.after or b"")
    others = [change for change in changes if change.op != "append"]
    paths = Counter([*added, *(path for change in others for path in (change.path, change.source) if path)])
    repeated = sorted(path for path, count in paths.items() if count > 1)
    if repeated:
        raise UserError(*(f"{path}: named by two changes of one commit; make them one" for path in repeated))
    return [*(append(path, text) for path, text in added.items()), *others]


def _event(
    kind: str, by: str, changes: Sequence[RecordedChange], data: Mapping[str, Any], cause: str | None = None
) -> Event:
    """Return an event without `seq`, id and time, which the commit and the journal give it."""
    return Event(0, "", "", kind, by, cause, data, tuple(changes))


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
