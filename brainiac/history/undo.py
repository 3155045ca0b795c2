"""Taking back a whole commit by a new one: only what still is as it was left, else each file in the way is named.

Short-term memory, to which every exchange adds, is taken back by item; what is derived or a log stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from brainiac.brain import Brain
from brainiac.errors import BlobError, ConflictError, FormatError, UserError
from brainiac.events import (
    Change,
    Event,
    EventUndone,
    PathKind,
    RecordedChange,
    TreeAdopted,
    content_hash,
    create,
    move,
    remove,
    update,
)
from brainiac.history.rebase import rebased
from brainiac.storage.merge import three_way
from brainiac.storage.record import changers, consequences, undone_events

BY = "cli"
ATTEMPTS = 20  # each further one means that somebody else wrote one of the files in the same few milliseconds


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A file that keeps a commit from being taken back, why, and what a person can do."""

    path: str
    what: str
    todo: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}; {self.todo}"


@dataclass(slots=True)
class Undoing:
    """What taking an event back comes to.

    Attributes:
        event: The event.
        changes: What the new commit does.
        obstacles: What stands in the way; nothing is done while there are any.
        stays: What is not taken back, one sentence each.
        later: Events that this one led to; they stand.
    """

    event: Event
    changes: list[Change] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)
    later: list[Event] = field(default_factory=list)


def undo(brain: Brain, event: Event) -> tuple[Event, Undoing]:
    """Take an event back in one commit.

    Args:
        brain: The brain.
        event: Of this device.

    Returns:
        The new event, and what was done.

    Raises:
        UserError: It changed nothing, is taken back already, or files stand in the way; each is named.
        ConflictError: Somebody keeps writing the files.
    """
    for _ in range(ATTEMPTS):
        with brain.short_term_lock():
            undoing = plan(brain, event)
            if undoing.obstacles:
                raise UserError(*map(str, undoing.obstacles))
            undone = EventUndone(undone=event.id, kind_=event.kind)
            try:
                done = brain.commit(undone, by=BY, changes=undoing.changes, cause=event.id)
            except ConflictError:
                continue
            return done, undoing
    raise ConflictError([change.path for change in undoing.changes])


def plan(brain: Brain, event: Event) -> Undoing:
    """Return what taking an event back would do to the tree as it stands.

    Raises:
        UserError: It changed nothing, or is taken back already.
    """
    if event.kind == TreeAdopted.kind:
        raise UserError(f"{event.id} ({event.kind}) is where this device's history begins; there is nothing before it")
    if by := undone_events(brain).get(event.id):
        raise UserError(f"{event.id} ({event.kind}) is taken back already; `brainiac undo {by}` brings it back")
    undoing = Undoing(event, later=consequences(brain, event))
    for change in event.changes:
        _Reversal(brain, undoing, change).add()
    if not undoing.changes and not undoing.obstacles:
        raise UserError(f"{event.id} ({event.kind}) changed no file that could be taken back", *undoing.stays)
    return undoing


class _Reversal:
    """One change turned round, added to what the undoing does."""

    def __init__(self, brain: Brain, undoing: Undoing, change: RecordedChange) -> None:
        self._brain, self._undoing, self._change = brain, undoing, change
        self._now = brain.read(change.path)

    def add(self) -> None:
        change = self._change
        if change.op == "append":
            self._undoing.stays.append(f"{change.path}: the lines that were added to this log stay")
        elif change.op == "observe":
            return  # it was read, not written
        elif change.op == "remove":
            self._put_back(change.path)
        elif self._now is None:
            self._blocked("is gone", self._todo())
        elif content_hash(self._now) != change.after:
            self._changed_since(self._now)
        else:
            self._turn_round(self._now)

    def _turn_round(self, now: bytes) -> None:
        """Reverse a change whose file is as it left it."""
        change = self._change
        if change.op == "create" or change.before is None:
            self._undoing.changes.append(remove(change.path, now))
            return
        for before in self._text(change.before):
            if change.source is None:
                self._undoing.changes.append(update(change.path, now, before))
            elif self._brain.read(change.source) is None:
                self._undoing.changes.append(move(change.path, change.source, now, before))
            else:
                self._blocked(f"came from {change.source}, where another file stands now", "move that one away")

    def _put_back(self, path: str) -> None:
        for before in self._text(self._change.before):
            if self._now is None:
                self._undoing.changes.append(create(path, before))
            elif self._now != before:
                self._blocked("stands there anew", "move it away, or keep it and leave the event as it is")

    def _changed_since(self, now: bytes) -> None:
        kind = self._brain.tree.kind_of(self._change.path)
        if kind is PathKind.SHORT_TERM and self._change.before is not None:
            self._rebase(now)
        elif kind is PathKind.INDEX_PAGE:
            self._merge_back(now)
        else:
            self._blocked(f"was changed since {self._by_whom()}".rstrip(), self._todo())

    def _rebase(self, now: bytes) -> None:
        """Take short-term memory back by item, beside what came since."""
        for before in self._text(self._change.before):
            for after in self._text(self._change.after):
                try:
                    text, problems = rebased(_decoded(before), _decoded(after), _decoded(now))
                except FormatError as error:
                    problems, text = [error.problem], ""
                for problem in problems:
                    self._blocked(problem, "put it right by hand; the text of before is in the journal")
                if not problems and text != _decoded(now):
                    self._undoing.changes.append(update(self._change.path, now, text))

    def _merge_back(self, now: bytes) -> None:
        """Take back what an index page was given, where that is still to be told; its manifest is derived."""
        for before in self._text(self._change.before) if self._change.before else ():
            for after in self._text(self._change.after):
                if (merged := three_way(after, now, before)) is not None:
                    if merged != now:
                        self._undoing.changes.append(update(self._change.path, now, merged))
                    return
        self._undoing.stays.append(f"{self._change.path}: stays as it is by now; its manifest follows the files")

    def _text(self, digest: str | None) -> Iterator[bytes]:
        """Yield a text of the journal; where it is not kept any more, that is what stands in the way."""
        try:
            yield self._brain.committer.text_of(str(digest))
        except BlobError:
            self._blocked("its earlier text is not kept any more (purged, or missing)", "nothing can bring it back")

    def _blocked(self, what: str, todo: str) -> None:
        self._undoing.obstacles.append(Obstacle(self._change.path, what, todo))

    def _last_changer(self) -> Event | None:
        return max(changers(self._brain, self._change.path, self._undoing.event.seq), key=lambda e: e.seq, default=None)

    def _by_whom(self) -> str:
        later = self._last_changer()
        return f"by {later.by} ({later.kind}, {later.at}, event {later.id})" if later else ""

    def _todo(self) -> str:
        later = self._last_changer()
        by_hand = "mend it by hand"
        return f"take that back first (`brainiac undo {later.id}`), or {by_hand}" if later else by_hand


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
