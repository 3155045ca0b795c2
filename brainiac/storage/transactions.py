"""One commit at a time, made binding, carried out, recorded, and finished after a crash.

Order: blobs of large texts, write-ahead line (the commit point), files, blobs, journal line. What the write-ahead
file still holds needs no fsync of its own until a checkpoint. See docs/decisions/write-ahead.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from brainiac.errors import StorageError
from brainiac.events import Event
from brainiac.storage.file_state import LastSeen
from brainiac.storage.files import Disk, locked
from brainiac.storage.journal import Journal
from brainiac.storage.placing import Outcome, Placing
from brainiac.storage.write_ahead import Intent, Step, WriteAhead
from brainiac.tree import LocalPlaces, Tree

INLINE_BYTES = 65_536  # larger texts become blobs before the commit point; writing them twice would cost more
CHECKPOINT_BYTES = 4_000_000


@dataclass(slots=True)
class Recovery:
    """What was done at a start.

    Attributes:
        finished: Ids of the events that a crash had left unfinished and that are finished now.
        left: Paths of those events that a person changed meanwhile; they stand as the person left them.
        merged: Paths into which a displaced save was merged, or put back.
        swept: Hash by path of temporary files of ours that belonged to no commit; their texts are kept as blobs.
    """

    finished: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    swept: dict[str, str] = field(default_factory=dict)


class Transactions:
    """Carries out commits; all calls are made under the commit lock.

    Args:
        tree: The brain's folder.
        places: Its machine-local places.
        journal: Where commits are recorded.
        seen: What follows the journal.
        disk: What writes.

    Attributes:
        wal: The write-ahead file.
    """

    def __init__(self, tree: Tree, places: LocalPlaces, journal: Journal, seen: LastSeen, disk: Disk) -> None:
        self._tree, self._journal, self._seen, self._disk = tree, journal, seen, disk
        self.wal = WriteAhead(places.state / "write_ahead.jsonl", disk)
        self._recorded: list[Event] = []

    def run(self, event: Event, steps: tuple[Step, ...], texts: Mapping[str, bytes]) -> tuple[Event, Outcome]:
        """Carry out a commit that was found possible.

        Args:
            event: As it is to be recorded.
            steps: What is to be done to the tree.
            texts: Content by hash, of all that the steps and the event name and that may not be a blob yet.
        """
        kept = _kept(event)
        large = {digest: text for digest, text in texts.items() if len(text) > INLINE_BYTES and digest in kept}
        if large:
            self._keep(event, large)
            self._journal.blobs.sync(set(large))
        needed = {step.after for step in steps} | {digest for digest in kept if digest not in self._journal.blobs}
        inline = {digest: text for digest, text in texts.items() if digest in needed and digest not in large}
        intent = Intent(event, self._journal.last()[0], steps, inline)
        self.wal.add(intent)
        outcome = self._placing(intent).run(intent)
        return self._finish(intent, outcome), outcome

    def settle(self, report: Recovery | None = None) -> None:
        """Finish a commit that another process, or this one before an error, left unfinished.

        Raises:
            StorageError: The tree is not there: nothing may be written where its disk was mounted.
        """
        if not self._tree.is_there:
            raise StorageError(f"{self._tree.root} is not there (no system/ in it); mount its disk, or put it back.")
        intents, _ = self.wal.read()
        self._seen.catch_up()
        if intents and not intents[-1].is_done:
            intent = intents[-1]
            if self._journal.last()[0] < intent.since_seq:
                self.restore()  # a power failure took lines before it: the order must stay
            if self._journal.find(intent.event.id, intent.since_seq) is not None:
                self.wal.note_done(intent)
                return
            outcome = self._placing(intent).resume(intent)
            self._finish(intent, outcome)
            if report is not None:
                report.finished.append(intent.event.id)
                report.left += outcome.left

    def restore(self) -> None:
        """Write again what a power failure may have taken: blobs and journal lines of commits that are done."""
        intents, _ = self.wal.read()
        since = min((intent.since_seq for intent in intents), default=0)
        recorded = {event.id for event in self._journal.events(since)} if intents else set()
        for intent in intents:
            if intent.texts:
                self._keep(intent.event, intent.texts, is_verified=True)
            if intent.is_done and intent.event.id not in recorded:
                self._journal.record(intent.event, is_synced=False)
        self._seen.catch_up()

    def checkpoint(self, waiting: set[str]) -> None:
        """Bring all to the disk and drop it from the write-ahead file.

        Args:
            waiting: Ids of the events whose displaced files are still kept aside.
        """
        intents, _ = self.wal.read()
        self._journal.blobs.sync({digest for intent in intents if intent.texts for digest in _kept(intent.event)})
        self._journal.sync()
        self.wal.keep_only([intent for intent in intents if intent.event.id in waiting])

    def take_recorded(self) -> list[Event]:
        """Return the events that were recorded since the last call."""
        recorded, self._recorded = self._recorded, []
        return recorded

    def text_of(self, digest: str) -> bytes:
        """Return a text by hash, from the commits in flight or the journal's blobs.

        Raises:
            BlobError: It is in neither.
        """
        with locked(self._journal.lock):  # reading cuts off a line that is unfinished, or being written
            intents, _ = self.wal.read()
        for intent in intents:
            if digest in intent.texts:
                return intent.texts[digest]
        return self._journal.blobs.get(digest)

    def _placing(self, intent: Intent) -> Placing:
        def text(digest: str) -> bytes:
            return intent.texts[digest] if digest in intent.texts else self._journal.blobs.get(digest)

        return Placing(self._tree, self._disk, text)

    def _finish(self, intent: Intent, outcome: Outcome) -> Event:
        self._keep(intent.event, intent.texts)
        event = self._journal.record(_as_done(intent, outcome), is_synced=False)
        self._recorded.append(event)
        self._seen.apply(event)
        self.wal.note_done(intent)
        return event

    def _keep(self, event: Event, texts: Mapping[str, bytes], is_verified: bool = False) -> None:
        """Make blobs of the texts that the event names, each near the one it grew from."""
        for change in event.changes:
            if change.op == "append":
                continue
            for digest, near in ((change.before, None), (change.after, change.before)):
                if digest is not None and digest in texts:
                    self._journal.blobs.put(texts[digest], near=near, is_verified=is_verified)
        for digest in _further(event) & texts.keys():
            self._journal.blobs.put(texts[digest], is_verified=is_verified)


def _kept(event: Event) -> set[str]:
    """Return the hashes whose texts the journal keeps."""
    digests = {digest for change in event.changes if change.op != "append" for digest in (change.before, change.after)}
    return {digest for digest in digests if digest is not None} | _further(event)


def _further(event: Event) -> set[str]:
    """Return the texts that an event keeps without changing a file."""
    texts: Mapping[str, str] = event.data.get("texts", {})
    return set(texts.values())


def _as_done(intent: Intent, outcome: Outcome) -> Event:
    """Return the event as it came out: files that were left are named, and are no part of its changes."""
    event, left = intent.event, set(outcome.left)
    if not left and not outcome.displaced:
        return event
    data = dict(event.data)
    if outcome.displaced:
        data["displaced"] = sorted(set(outcome.displaced))
    if left:
        data["left"] = sorted(left)
        data["left_texts"] = {step.path: step.after for step in intent.steps if step.path in left and step.after}
    changes = []
    for change in event.changes:
        if change.op == "observe" or change.path not in left:
            changes.append(replace(change, op="create", source=None) if change.source in left else change)
    return replace(event, data=data, changes=tuple(changes))
