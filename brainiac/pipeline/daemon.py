"""One running brain: lock, recover, adopt, watch, and stop in order."""

from __future__ import annotations

import ctypes
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from brainiac import errors
from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.events import Event, FileChange, PromptAnswered, new_id
from brainiac.history.devices import require_active
from brainiac.host.plugins import PluginStatus
from brainiac.imports.turns import take
from brainiac.library import read_prompt
from brainiac.pipeline.bus import Bus
from brainiac.pipeline.dispatch import ON_ANY_DEVICE, exchange_of
from brainiac.pipeline.inbox import Inbox, Pending, find_backlog, is_free, untaken_files
from brainiac.pipeline.watch import Watcher, folders_beside, scan
from brainiac.storage.database import RunState, write_run_state
from brainiac.storage.serving import Serving, is_running, require_alone
from brainiac.storage.turns import Turns
from brainiac.text.tokens import as_sentence
from brainiac.tree import Stamp

# --- quiet ------------------------------------------------------------------------------------------------------------

MAX_STEP_SECONDS = 30.0
MIN_STEP_SECONDS = 0.5


class QuietTimer:
    """Calls `quiet` with a growing `idle_seconds` while nothing is exchanged.

    Idleness counts from the last exchange in the journal, so that it survives a restart, and edits do not reset it.

    Args:
        brain: The brain.
        bus: Whose far-background tier does the work, and which must have nothing else to do.
    """

    def __init__(self, brain: Brain, bus: Bus) -> None:
        self._brain, self._bus = brain, bus
        self._started_at = iso(brain.clock.now())  # for a brain in which nothing was exchanged yet
        # after the clock was set back: the last exchange, which is in the future, and when that was noticed (monotonic)
        self._future_exchange, self._noticed_at = "", 0.0

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last exchange; where that lies in the future, since this was noticed."""
        clock, last = self._brain.clock, self._brain.answered.last_exchange_at or self._started_at
        idle = (clock.now() - parse_iso(last)).total_seconds()
        if idle >= 0:
            return idle
        if last != self._future_exchange:
            self._future_exchange, self._noticed_at = last, clock.monotonic()
        return clock.monotonic() - self._noticed_at

    def start(self) -> None:
        """Begin to count."""
        self._bus.later(self._step(), self._tick)

    def _step(self) -> float:
        """Return the seconds between two ticks: the shortest idle time in the settings, within 0.5 to 30."""
        settings = self._brain.settings
        shortest = min(MAX_STEP_SECONDS, settings.promotion.idle_seconds, settings.organization.idle_seconds)
        return max(MIN_STEP_SECONDS, shortest)

    def _tick(self) -> None:
        """Submit the hooks for a quiet brain if it is idle, and schedule the next tick for when it may be."""
        step, idle = self._step(), self.idle_seconds
        self._bus.later(step - idle if idle < step else step, self._tick)
        is_busy = self._bus.foreground.pending or self._bus.near.pending or self._bus.far.pending
        if idle >= step and not is_busy:
            # `quiet` where this device runs the processes, and the hook of the same meaning on every device
            for hook in ("quiet", ON_ANY_DEVICE):
                self._bus.far.submit("quiet", partial(self._bus.dispatcher.call, hook, idle_seconds=idle))


# --- the daemon -------------------------------------------------------------------------------------------------------

DISPLACED_SECONDS = 10.0
REPORT_SECONDS = 1.0
TURN_SECONDS = 1.0
MIN_AGE_SECONDS = 600.0  # longer than `ask` takes to reflect what it answered
SIGNAL_SECONDS = 0.5
# a thread that waits for a file releases the interpreter; by default it may take 5 ms to get it back
SWITCH_SECONDS = 0.0005
_M_ARENA_MAX = -8  # malloc.h


class Daemon:
    """The daemon of a brain; start and stop it in one thread.

    Args:
        brain: The brain.
        is_backlog_answered: Answer a backlog that would otherwise wait until a person says so.
        tell: Called with sentences for the person who started it.
        beside: What is to run while it serves, such as its doors; it begins before the tree is read.
    """

    def __init__(
        self,
        brain: Brain,
        *,
        is_backlog_answered: bool = False,
        tell: Callable[[str], None] = lambda sentence: None,
        beside: AbstractContextManager[object] | None = None,
    ) -> None:
        self._beside = beside or nullcontext()
        self._brain, self._is_backlog_answered, self._tell = brain, is_backlog_answered, tell
        self._serving, self._stop_request = Serving(brain), threading.Event()
        self.bus = Bus(brain)
        self.watcher = Watcher(
            brain.tree, lambda: brain.settings.watch, self.bus.look, self.bus.rescan, partial(folders_beside, brain)
        )
        self.quiet = QuietTimer(brain, self.bus)
        self._state = RunState()  # as last written
        self._plugins_stamp: object = None  # of the plugins as loaded

    def run(self) -> bool:
        """Serve until SIGTERM, SIGINT or `ask_to_stop`; return whether all work ended in time.

        Raises:
            LockedError: Another daemon serves this brain, of this home or another.
        """
        # all threads share two heaps of glibc: with one heap each, the daemon grew by 12 MB a minute under load
        if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
            mallopt(_M_ARENA_MAX, 2)
        sys.setswitchinterval(SWITCH_SECONDS)
        numbers = signal.SIGTERM, signal.SIGINT
        former = {number: signal.signal(number, lambda number, frame: self.ask_to_stop()) for number in numbers}
        try:
            with ExitStack() as beside:
                self.start(once_recovered=lambda: beside.enter_context(self._beside))
                self._tell_plugin_states(self._brain.plugins.status)
                self._tell(f"Watching {self._brain.tree.inbox}. Drop a note there; Ctrl-C ends.")
                # in short waits: a signal that another thread received, or that came just before, does not end the wait
                while not self._stop_request.wait(SIGNAL_SECONDS):
                    if problem := self._serving.keep():
                        self._tell(problem)
                        self.ask_to_stop()
            return self.stop()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def ask_to_stop(self) -> None:
        """Let `run` return; any thread may call."""
        self._stop_request.set()

    def start(self, *, is_watching: bool = True, once_recovered: Callable[[], object] = lambda: None) -> None:
        """Recover, adopt the tree as it stands, and begin to work.

        Args:
            is_watching: Watch the tree and run timers; False: only process what is in the inbox now.
            once_recovered: Called before the tree is read, which takes minutes where 100,000 files are new.

        Raises:
            LockedError: Another daemon serves this brain, of this home or another.
        """
        brain = self._brain
        if warning := self._serving.begin():
            self._tell(warning)
        try:
            # a commit that a crash interrupted is finished before anybody looks at the tree: half of it is no edit of a
            # person's
            brain.committer.recover()
            brain.journal.last()  # read now: pages ask for it, and need not wait while the tree is read
            once_recovered()
            # before the files are read: a later save changes its stamp, and the first rescan finds it
            stamps = scan(brain.tree, folders_beside(brain))
            adopted = brain.observed.adopt()
            brain.log.info("adopted", changes=len(adopted))
            self.bus.conflicted.update(brain.observed.conflicted)  # to be merged in the next step
            self._process_other_devices()
            brain.plugins.call("startup", brain=brain)
            self._plugins_stamp = brain.plugins.stamp()
            self.bus.dispatcher.start()
            self._submit_existing(adopted, stamps)
            self._state = RunState(pid=os.getpid(), since=iso(brain.clock.now()))
            if is_watching:
                # where the watcher polls nobody knows which files may be in the middle of being saved
                brain.unsettled = lambda: None if self.watcher.is_polling else self.bus.unsettled
                self.watcher.start()
                # what repeats: rescans, checks of displaced files, reports of the state, and the check for quiet
                self.bus.rescan()  # for changes since the first scan
                self.bus.later(brain.settings.watch.rescan_seconds, self._scan_periodically)
                self.bus.later(DISPLACED_SECONDS, self._check_displaced)
                self.bus.later(REPORT_SECONDS, self._keep_reporting)
                self.bus.later(TURN_SECONDS, self._take_turns)
                self.quiet.start()
            self._report()
            self.bus.start()
            brain.log.info("watching", root=str(brain.root), **asdict(self.watcher.health()))
        except BaseException:
            self._serving.end()
            raise

    def stop(self) -> bool:
        """Stop watching, the plugins and the bus, in this order; return whether all work ended in time."""
        self.watcher.stop()
        # plugins end while the bus still works, so that what they commit last is heard
        self._brain.plugins.call("shutdown", brain=self._brain)
        is_clean = self.bus.stop()
        try:
            with errors.storage_trouble():
                self._brain.committer.check_displaced()
        except errors.StorageError as error:
            self._brain.log.warning("left_for_next_start", problem=error.problem)
        self._report(is_stopped=True)
        self._serving.end()
        self._brain.log.info("stopped", is_clean=is_clean)
        return is_clean

    def _submit_existing(self, adopted: Sequence[FileChange], stamps: dict[str, Stamp]) -> None:
        """Submit the adopted changes, and of the files with these stamps what is to be processed; the rest is finished.

        Args:
            adopted: What was changed since the last run.
            stamps: The stamp of each file before it was adopted.
        """
        for change in adopted:
            self.bus.pass_on(change)
        for path in self._brain.observed.open_paths:  # perhaps still being saved
            stamps.pop(path, None)
            self.bus.look(str(self._brain.tree.absolute(path)))
        waiting = find_backlog(self._brain, stamps)
        # these cost no model call
        to_process = {*waiting.changed, *untaken_files(self._brain, stamps)}
        is_small = len(waiting.unanswered) <= self._brain.settings.inbox.backlog_limit
        if is_small or self._is_backlog_answered or is_free(self._brain):
            to_process.update(waiting.unanswered)
        else:
            reason = f"{len(waiting.unanswered)} prompts were unanswered at start; `brainiac run --answer-backlog`"
            for path in waiting.unanswered:
                self.bus.inbox.hold(Pending(path, reason, is_held=True))
        for path in sorted(to_process):
            self.bus.look(str(self._brain.tree.absolute(path)))
        for path, stamp in stamps.items():
            if path not in to_process:
                self.bus.settler.set_settled(path, stamp)

    # --- timers -----------------------------------------------------------------------------------------

    # each timer schedules its next run first, before anything in it can fail

    def _scan_periodically(self) -> None:
        """Check whether a file, a folder, another device or an exchange was missed; then again later."""
        self.bus.later(self._brain.settings.watch.rescan_seconds, self._scan_periodically)
        self.bus.notice.submit("watch", self.watcher.check)
        self.bus.notice.submit("devices", self._process_other_devices)
        if self._brain.is_active:  # another device may have handed over, or git have finished
            self.bus.retry({pending.prompt for pending in self.bus.inbox.pending if pending.is_for_device})
        self.bus.notice.submit("exchanges", lambda: self.bus.dispatcher.deliver_open_exchanges(MIN_AGE_SECONDS))
        self.bus.rescan()

    def _process_other_devices(self) -> None:
        """Merge conflict copies and files with conflict markers, and carry out purges."""
        from brainiac.history.purge import honour  # 0.2 s, which `ask` need not wait for

        self.bus.merge_versions()
        honour(self._brain)  # a copy may have brought words of a purge, which are gone once it is merged

    def _check_displaced(self) -> None:
        """Merge what an editor saved into a file while a commit replaced that file; then again later."""
        self.bus.later(DISPLACED_SECONDS, self._check_displaced)
        self.bus.notice.submit("displaced", self._brain.committer.check_displaced)

    def _take_turns(self) -> None:
        """Take in what was said to assistants elsewhere; then again later."""
        self.bus.later(TURN_SECONDS, self._take_turns)
        if not self.bus.near.pending and Turns(self._brain.database).over(self._brain.now()):
            self.bus.near.submit("turns", partial(take, self._brain))

    def _keep_reporting(self) -> None:
        """Write the daemon's state and reload plugins that changed, every second."""
        self.bus.later(REPORT_SECONDS, self._keep_reporting)
        self._report()

        def reload() -> None:  # and watch the folders that changed plugins add
            self._tell_plugin_states(self._brain.plugins.reload())
            self.bus.later(0, self.bus.learn_folders)
            self.bus.notice.submit("watch", self.watcher.check)

        stamp = self._brain.plugins.stamp()
        if stamp != self._plugins_stamp:
            self._plugins_stamp = stamp
            self.bus.notice.submit("plugins", reload)

    def _tell_plugin_states(self, plugins: Sequence[PluginStatus]) -> None:
        """Tell the person the state of each of the brain's own plugins, with the reason where one does not run."""
        for plugin in plugins:
            if plugin.source == "brain":
                self._tell(
                    as_sentence(f"Plugin {plugin.name}: {plugin.state}{f', {plugin.detail}' if plugin.detail else ''}")
                )

    def _report(self, *, is_stopped: bool = False) -> None:
        """Write the daemon's state for `status`, if it changed."""
        try:
            self._brain.check_settings()
            problem = ""
        except errors.SettingsError as error:
            problem = str(error)
        state = replace(
            self._state,
            pid=0 if is_stopped else os.getpid(),
            watch=asdict(self.watcher.health()),
            pending=[asdict(pending) for pending in self.bus.inbox.pending],
            settings=self._brain.settings.model_dump(mode="json"),
            problem=problem,
        )
        if state != self._state:
            with suppress(OSError, sqlite3.Error):  # the disk may be full: it is written when there is room
                write_run_state(self._brain.database, state)
                self._state = state


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `run --once` did.

    Attributes:
        answered: How many prompts it answered.
        reflected: How many exchanges the plugins were given.
        waiting: How many prompts wait.
        reasons: Why they wait, by path.
    """

    answered: int
    reflected: int
    waiting: int
    reasons: dict[str, str] = field(default_factory=dict)


def run_once(brain: Brain, *, is_backlog_answered: bool = False) -> Outcome:
    """Answer and reflect all prompts in the inbox, and end.

    Raises:
        LockedError: A daemon serves this brain, of this home or another; that one answers the prompts.
    """
    recorded: list[Event] = []
    brain.on_event(recorded.append)
    daemon = Daemon(brain, is_backlog_answered=is_backlog_answered)
    daemon.start(is_watching=False)
    try:
        daemon.bus.wait_idle()
    finally:
        daemon.stop()
    n_answered = sum(event.kind == PromptAnswered.kind for event in recorded)
    reasons = {pending.prompt: pending.reason for pending in daemon.bus.inbox.pending}
    return Outcome(n_answered, daemon.bus.dispatcher.exchanges, len(reasons), reasons)


def answer_one(brain: Brain, path: str, *, is_again: bool = False) -> Path:
    """Answer one prompt in this process, let the plugins reflect on the exchange, and return the answer's path.

    In the process of a daemon, the daemon does that.

    Args:
        brain: The brain.
        path: The prompt, relative.
        is_again: Answer it although it was answered.

    Raises:
        UserError: There is nothing to answer, no plugin answered, or another device does.
        ModelError: No model could serve.
    """
    if not brain.is_watched:
        require_alone(brain)
        if not is_running(brain):  # a running daemon did this at its start
            brain.committer.recover()
    prompt, former = read_prompt(brain, path), brain.answered.of(path)
    if prompt is None:
        raise errors.UserError(f"{path}: there is no prompt to answer (missing, blank or a draft)")
    prompt = replace(prompt, id=former.prompt_id if former else new_id())
    if not brain.answers_here(prompt):
        require_active(brain)  # raises where this device is passive, and says what to do
        raise errors.UserError(f"{path}: {prompt.device} answers it, as its `device` says")
    # before anything is recorded: what an earlier version of the prompt left in the journal goes
    if prompt.private or not prompt.remember:
        from brainiac.history.private import withdraw_private  # most prompts never need it

        withdraw_private(brain, prompt)
    if is_again or not (former and former.response and brain.answered.is_answered(prompt)):
        with nullcontext() if brain.is_watched else _reflected(brain):
            try:
                brain.plugins.call("prompt_arrived", brain=brain, prompt=prompt)
            finally:
                brain.observed.note_change(path)  # no answer's commit has recorded it where this failed
        brain.answered.refresh()
    answer = brain.answered.of(path)  # perhaps of another process, which was quicker
    is_stale = is_again and answer and former and answer.exchange == former.exchange
    if answer is None or not answer.response or is_stale or not brain.answered.is_answered(prompt):
        raise errors.UserError(f"{path}: no plugin answered it; see `brainiac plugins` and `brainiac log`")
    return brain.tree.absolute(answer.response)


def capture_one(brain: Brain, path: str) -> None:
    """Take in one note of `inbox/notes/` in this process, and reflect it; one that was taken in is left alone.

    Args:
        brain: The brain.
        path: The note, relative.

    Raises:
        UserError: Another device does it.
        LockedError: A daemon of another home serves the folder.
    """
    require_active(brain)
    require_alone(brain)
    brain.committer.recover()
    with _reflected(brain):
        Inbox(brain, ask_later=lambda path, seconds: None).take(path)


@contextmanager
def _reflected(brain: Brain) -> Iterator[None]:
    """Hand the exchanges of a block to the plugins at its end; where that fails, the next daemon hands them out again.

    On a device that does not run the processes nothing is handed out: the one that does finds it in the journal.
    """
    recorded: list[Event] = []
    brain.on_event(recorded.append)
    yield
    exchanges = [exchange_of(brain, event) for event in recorded] if brain.is_active else []
    for exchange in filter(None, exchanges):
        try:
            brain.plugins.call("response_arrived", brain=brain, exchange=exchange)
        except (errors.ModelError, errors.ConflictError) as error:
            brain.log.warning("reflection_postponed", event=exchange.id, problem=str(error))
