"""The bus: waits until a changed file is finished, decides what it is, and submits it to its tier (design: pipeline).

One thread checks files and keeps the timers. Four threads answer, in order within a conversation; one records changes,
one reflects, one works while it is quiet. A slow job delays only its own tier.
"""

from __future__ import annotations

import os
import sched
import sqlite3
import stat
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from brainiac.brain import Brain
from brainiac.errors import FormatError, StorageError, storage_trouble
from brainiac.events import TO_ANSWER, Action, FileChange, PathKind
from brainiac.formats.prompt import conversation_of, prompt_path_of
from brainiac.history.copies import find_marked, is_marked, mark_copy, settle_versions
from brainiac.library import read_prompt
from brainiac.pipeline import watch
from brainiac.pipeline.dispatch import HookDispatcher, KeyedExecutor
from brainiac.pipeline.inbox import Inbox, is_free
from brainiac.storage.external_edits import NotRestedError
from brainiac.tree import Stamp, original_of, stamp_of

FOREGROUND_WORKERS = 4
BURST = 32  # prompts that wait; while more do, no text gets its vector, which may wait until they are answered
STOP_SECONDS = 5.0
MAX_RETRY_SECONDS = 60.0  # between two attempts: twice as long each time, and no longer
GIT_SECONDS = 2.0  # between two looks whether git has finished
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
MERGE_SECONDS = 0.5  # a sync tool brings a copy and its original within that time


class Bus:
    """The pipeline of one running brain.

    Args:
        brain: The brain.

    Attributes:
        conflicted: Paths of files that may have git's conflict markers; only the notice tier uses it once the bus has
            started.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._changed = threading.Condition()
        self._hints: dict[str, None] = {}  # absolute paths to check, in order, each once
        self._is_checking = False  # whether the bus's thread is checking paths that are no hints any more
        self._is_stopping = False
        self._agenda = sched.scheduler(brain.clock.monotonic)
        self._is_merge_due = False
        self.conflicted: set[str] = set()
        self.settler = watch.Settler(
            lambda: brain.settings.inbox, lambda path: watch.ends_with_send(brain.tree.absolute(path))
        )
        self.foreground = KeyedExecutor("foreground", FOREGROUND_WORKERS, self._wake, self._log_bug)
        self.ahead = KeyedExecutor("ahead", 1, self._wake, self._log_bug)
        self.notice = KeyedExecutor("notice", 1, self._wake, self._log_bug)
        self.near = KeyedExecutor("near-background", 1, self._wake, self._log_bug, yields_to=self.foreground)
        self.far = KeyedExecutor("far-background", 1, self._wake, self._log_bug)
        self.inbox = Inbox(brain, self._ask_later)
        self.dispatcher = HookDispatcher(brain, self.near, self.later)
        self._tiers = self.ahead, self.foreground, self.notice, self.near, self.far
        self._thread = threading.Thread(target=self._run, name="bus", daemon=True)

    def start(self) -> None:
        """Start the bus's thread."""
        self._brain.recall.is_hurried = lambda: self.foreground.pending > BURST
        self._thread.start()

    def stop(self) -> bool:
        """Stop the bus's thread, then the tiers; return whether all running jobs ended within a few seconds."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS)
        # all are stopped, also after one that did not end
        are_ended = [tier.stop(STOP_SECONDS) for tier in self._tiers]
        return all(are_ended)

    def look(self, path: str) -> None:
        """Have a file or folder checked as soon as possible; any thread may call.

        Args:
            path: Absolute; it need not exist.
        """
        with self._changed:
            self._hints[path] = None
            self._changed.notify_all()

    def rescan(self) -> None:
        """Look at each file whose stamp differs from the settled one: a change that watching missed."""

        def look() -> None:
            self._brain.answered.refresh()
            self._look_at_sources()
            beside = watch.folders_beside(self._brain)
            for path in watch.changed_paths(self._brain.tree, self.settler.settled, beside):
                self.look(str(self._brain.tree.absolute(path)))

        self.notice.submit("rescan", look)

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        """Run a short job in the bus's own thread after a number of seconds."""
        self._agenda.enter(seconds, 0, job)
        with self._changed:
            self._changed.notify_all()

    def ask(self, path: str) -> None:
        """Process a file of the inbox, after the earlier jobs of its conversation."""
        self.foreground.submit(self._conversation(path), lambda: self.inbox.take(path))

    @property
    def unsettled(self) -> list[str]:
        """The relative paths that are to be checked or not finished yet; any thread may ask."""
        with self._changed:
            hints = list(self._hints)
        return [*map(self._brain.tree.relative, hints), *self.settler.waiting_paths]

    @property
    def is_idle(self) -> bool:
        """Whether no path is to be checked, no file waits to be finished, no timer is due, and no job runs.

        Retries may be pending.
        """
        with self._changed:  # or a file may go on from those that wait to a job between the two
            return not self._is_working and not self.settler.waiting_paths

    @property
    def _is_working(self) -> bool:
        """Whether there is something to do that needs no time to pass; the caller holds the lock."""
        left = self._seconds_left(self._brain.clock.monotonic())
        is_due = left is not None and left <= 0
        return bool(self._hints) or self._is_checking or is_due or any(tier.pending for tier in self._tiers)

    def wait_idle(self) -> None:
        """Block until `is_idle`; a clock that is moved by hand is moved on to when the next file is finished."""
        clock = self._brain.clock
        with self._changed:
            while not self.is_idle:
                due = self.settler.next_due()
                if due is not None and not self._is_working:
                    clock.skip(due - clock.monotonic())
                self._changed.wait()

    def _conversation(self, path: str) -> str:
        """Return the conversation of a prompt, or of the one that a response is to: the key of its jobs."""
        return conversation_of(next(iter(prompt_path_of(path)), path), inbox=self._brain.tree.layout.inbox)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # --- the bus's own thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        """Check paths, pass on finished files and run timers until the bus stops; after each round wake `wait_idle`."""
        clock = self._brain.clock
        while (hints := self._next_hints()) is not None:
            for path in hints:
                self._safely(partial(self._check_path, path))
            for path in self.settler.take_due(clock.monotonic()):
                self._safely(partial(self._finish, path))
            self._safely(lambda: self._agenda.run(blocking=False))
            with self._changed:
                self._is_checking = False
                self._changed.notify_all()

    def _safely(self, step: Callable[[], object]) -> None:
        """Run a step and log any error: this thread must not end, and the rescan finds what a failed step missed."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - logged, as the tiers log what a job of theirs raises
            self._log_bug(error)

    def _next_hints(self) -> list[str] | None:
        """Wait until there are paths to check, or a timer or file is due; return the paths, None when the bus stops."""
        clock = self._brain.clock
        with self._changed:
            while not self._hints and not self._is_stopping:
                seconds = self._seconds_left(clock.monotonic())
                if seconds is not None and seconds <= 0:
                    break
                clock.wait(self._changed, seconds)
            hints, self._hints = list(self._hints), {}
            self._is_checking = True  # until `_run` has checked these, the bus is not idle
            return None if self._is_stopping else hints

    def _seconds_left(self, now: float) -> float | None:
        """Return the seconds until the next timer or file is due; None when there is none."""
        due = [event.time for event in self._agenda.queue[:1]]
        if (file_due := self.settler.next_due()) is not None:
            due.append(file_due)
        return min(due) - now if due else None

    def _check_path(self, path: str) -> None:
        """Check an absolute path where something changed: pass the stamps of what is there to the settler."""
        tree = self._brain.tree
        relative = tree.relative(path)
        kind = tree.kind_of(relative)
        if kind is PathKind.IGNORED and original_of(relative) is not None:  # a sync tool's conflict copy
            mark_copy(self._brain, relative)
            self._soon_merge()
        if kind in (PathKind.IGNORED, PathKind.JOURNAL) or relative == tree.layout.logs:
            return
        try:
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            is_folder = not self._is_known(relative)  # it is gone: what was no known file may have been a folder
        if is_folder:
            self._check_folder(relative)
        else:
            self._observe(relative, stamp_of(path))

    def _check_folder(self, folder: str) -> None:
        """Check all files that are or were in a folder: events in a new or moved folder get lost."""
        tree = self._brain.tree
        # known files first: a folder that was moved away brings no event for what was in it
        for path in self.settler.known_below(folder):
            self._observe(path, stamp_of(tree.absolute(path)))
        files = tree.scan(tree.absolute(folder)).items()
        # by modification time, so that a conversation's prompts are answered in the order they were written
        for path, stamp in sorted(files, key=lambda file: (file[1].mtime_ns, file[0])):
            self._observe(path, stamp)

    def _is_known(self, relative: str) -> bool:
        """Return whether the settler has a file at a path."""
        return relative in self.settler.settled or self.settler.is_waiting(relative)

    def _observe(self, relative: str, stamp: Stamp | None) -> None:
        """Pass a file's stamp to the settler; None: it was deleted."""
        is_typed = self._brain.tree.kind_of(relative) in TO_ANSWER
        if is_typed:  # before it is finished: what was dropped with it is answered with what it says
            self._brain.recall.note_change(relative)
        is_new = self.settler.observe(relative, stamp, self._brain.clock.monotonic(), is_typed=is_typed)
        # while it rests; of many that come at once none, since each answer changes what the others would find
        is_crowded = self.foreground.is_crowded or self.ahead.is_crowded
        if is_typed and is_new and stamp and stamp.size and not is_crowded:
            self.ahead.submit("in order", lambda: self._search_ahead(relative))

    def _search_ahead(self, path: str) -> None:
        """Search for what a resting prompt says, so that its answer need not wait for that."""
        with suppress(FormatError, OSError):  # told when it is taken
            if prompt := read_prompt(self._brain, path):
                self._brain.recall.search_ahead(prompt.said, asking=path, is_private=prompt.private)

    def _finish(self, path: str) -> None:
        """Submit a file whose waiting time is over to the tier that processes it, unless it changed once more."""
        tree = self._brain.tree
        stamp, former = stamp_of(tree.absolute(path)), self.settler.settled.get(path)
        if not self.settler.finish(path, stamp):
            self._observe(path, stamp)
            return
        action: Action = "deleted" if stamp is None else "created" if former is None else "modified"
        change = FileChange(action, path, tree.kind_of(path))
        if watch.is_unwritten(former, stamp) and not tree.is_tracked(path):
            return
        try:
            self._brain.recall.note_change(path)  # first, so that a search by a plugin finds the new text
            if change.kind in TO_ANSWER and stamp is not None:
                self.foreground.submit(self._conversation(path), lambda: self._answer(change))
            else:
                self._submit_notice(change)
        except BaseException:
            self.settler.set_settled(path, former)  # so that the rescan finds the change again
            raise

    def _answer(self, change: FileChange) -> None:
        """Answer a prompt first and tell other plugins of it afterwards, so that the answer does not wait for them."""
        try:
            self.inbox.take(change.path)
        finally:
            self._submit_notice(change)

    def _soon_merge(self) -> None:
        """Have `merge_versions` run some seconds after it is first asked: sync tools rename whole files into place."""

        def run() -> None:
            self._is_merge_due = False
            self.notice.submit("versions", self.merge_versions)

        if not self._is_merge_due:
            self._is_merge_due = True
            self.later(max(MERGE_SECONDS, self._brain.settings.inbox.settle_ms / 1000), run)

    def merge_versions(self) -> None:
        """Merge what two devices wrote: conflict copies, moved pages, conflict markers; what has to wait stays."""
        settle_versions(self._brain, sorted(self.conflicted))
        self.conflicted = set(find_marked(self._brain, self.conflicted))

    def _ask_later(self, path: str, seconds: float) -> None:
        """Process a prompt after some seconds, unless it is being changed then: its change processes it."""
        self.later(seconds, lambda: None if self.settler.is_waiting(path) else self.ask(path))

    def learn_folders(self) -> None:
        """Mark the files of folders that begin to be watched as finished, since nobody changed them just now."""
        for path, stamp in watch.scan(self._brain.tree, watch.folders_beside(self._brain)).items():
            if not self._is_known(path) and self._brain.tree.kind_of(path) in (PathKind.OTHER, PathKind.SOURCE):
                self.settler.set_settled(path, stamp)

    # --- the notice tier --------------------------------------------------------------------------------

    def _submit_notice(self, change: FileChange, attempt: int = 1) -> None:
        self.notice.submit("in order", lambda: self._notice(change, attempt))

    def _notice(self, change: FileChange, attempt: int) -> None:
        """Record a person's change in the journal and do what follows from it; after an error try again later.

        Args:
            change: The change.
            attempt: How often this was tried, counting this time.
        """
        brain, again = self._brain, partial(self._submit_notice, change)
        if brain.git_operation:  # what git checks out meanwhile is no edit
            self.later(GIT_SECONDS, again)
            return
        recorded: FileChange | None = change
        try:
            if brain.tree.is_tracked(change.path):
                with storage_trouble():
                    # None: the journal has it already
                    recorded = brain.observed.note_change(change.path, change.action)
        except NotRestedError as error:
            self.later(error.again_in_seconds, again)
        except StorageError as error:
            brain.log.warning("file_unreadable", path=change.path, problem=error.problem)
            self.later(min(MAX_RETRY_SECONDS, 2.0**attempt), partial(again, attempt=attempt + 1))
        else:
            path = change.path
            if recorded is None and change.kind in TO_ANSWER:
                # off the record: recorded with its answer, by its hash alone; the hooks have not heard of it yet
                recorded = change
            if recorded is not None:
                if is_marked(brain, path):
                    self.conflicted.add(path)
                # a new page may be one that another device moved here, or that stands again where it was moved from, or
                # a copy
                if path in self.conflicted or (recorded.action == "created" and change.kind in _PAGES):
                    self._soon_merge()
                self.pass_on(recorded)
            elif change.kind is PathKind.CONFIG:  # written by the command `takeover`, which recorded it
                self.retry()

    def pass_on(self, change: FileChange) -> None:
        """Call the hooks for a recorded change, and process responses, deletions and settings."""
        self.dispatcher.submit_change(change)
        path, kind = change.path, change.kind
        if change.action == "deleted" and kind in TO_ANSWER:
            self.ask(path)  # removes it from the waiting prompts, and its error file
        elif kind is PathKind.RESPONSE and change.action != "deleted" and not change.is_ours:
            self.ask(path)
        elif kind is PathKind.ERROR and change.action == "deleted":  # a person's way to ask for another attempt
            self.retry(prompt_path_of(path))
        elif kind is PathKind.CONFIG:  # other sources, models or devices may be set now
            self._look_at_sources()
            self.retry()
        elif kind in (PathKind.FILE, PathKind.OTHER) and path.startswith(self._brain.tree.layout.inbox + "/"):
            self.ask(path)

    def retry(self, paths: Collection[str] | None = None) -> None:
        """Process waiting prompts again: those at some paths; None for all, a held backlog only where it is free."""
        for pending in self.inbox.pending:
            is_due = not pending.is_held or is_free(self._brain)
            if is_due if paths is None else pending.prompt in paths:
                self.ask(pending.prompt)

    def _look_at_sources(self) -> None:
        """Read the sources from the settings and this machine's permissions; search and watch them if they changed."""
        if self._brain.refresh_sources():
            self.learn_folders()
            self._brain.recall.rescan()

    def _log_bug(self, error: BaseException) -> None:
        """Log an unexpected error; trouble with the disk is a warning, since the work is done again later."""
        if isinstance(error, OSError | sqlite3.Error):
            error = StorageError.of(error) or error
        if isinstance(error, StorageError):
            self._brain.log.warning("job_postponed", problem=error.problem)
        else:
            self._brain.log.error("job_failed", error=repr(error), exc_info=error)
