"""Handing changes, exchanges and events to the plugins' hooks, each tier of work in order."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import timedelta
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import parse_iso
from brainiac.errors import (
    BlobError,
    BrainiacError,
    ConflictError,
    FormatError,
    ModelError,
    StorageError,
    storage_trouble,
)
from brainiac.events import (
    Event,
    ExchangeEvent,
    ExchangeUnreflected,
    FileChange,
    PathKind,
    PluginFailed,
    RecordedChange,
    content_hash,
)
from brainiac.formats.prompt import Exchange, Prompt, is_off_record, parse_prompt, parse_response
from brainiac.llm.gate import is_hidden
from brainiac.storage.external_edits import FOUND

# --- tiers of work ----------------------------------------------------------------------------------------------------

Job = Callable[[], None]

STEP_SECONDS, STAND_BACK_STEPS = 0.02, 500  # a job stands back for ten seconds at most


class KeyedExecutor:
    """A tier of the pipeline: jobs of one key run in order, jobs of different keys side by side, and keys take turns.

    The turns go to the key that came last and to the one that waits longest, by turns: behind thousands that wait, one
    that comes fresh is next but one, and the oldest is never passed over for long.

    Args:
        name: For its threads.
        workers: How many jobs run at once.
        on_idle: Called, without locks held, whenever the last job is done.
        on_bug: Called with what a job raised; a job deals with the errors it expects.
        first: A tier whose jobs go first: while it is crowded, a job here stands back for a while.
    """

    def __init__(
        self,
        name: str,
        workers: int,
        on_idle: Callable[[], None],
        on_bug: Callable[[BaseException], None],
        first: KeyedExecutor | None = None,
    ) -> None:
        self._on_idle, self._on_bug = on_idle, on_bug
        self._workers, self._first = workers, first
        self._mutex = threading.Lock()
        self._lanes: dict[str, deque[Job]] = {}  # a key stands here while any of its jobs waits or runs
        self._waiting: OrderedDict[str, None] = OrderedDict()  # keys that wait for their turn, longest first
        self._fresh: OrderedDict[str, None] = OrderedDict()  # of these, the ones that had none yet
        self._is_turn_of_newest = False
        self._pending = self._busy = 0
        self._running: set[Future[None]] = set()
        self._is_stopping = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)

    def submit(self, key: str, job: Job) -> None:
        """Run a job after those submitted under the same key; once stopping, not at all."""
        with self._mutex:
            if self._is_stopping:
                return
            self._pending += 1
            if key in self._lanes:
                self._lanes[key].append(job)
                return
            self._lanes[key] = deque([job])
            self._waiting[key] = self._fresh[key] = None
            self._start()

    def stop(self, wait_seconds: float) -> bool:
        """Start no further job; return whether those that ran ended in time."""
        with self._mutex:
            self._is_stopping = True
            running = set(self._running)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(running, wait_seconds).not_done

    @property
    def is_crowded(self) -> bool:
        """Whether more jobs wait or run than it has workers."""
        return self._pending > self._workers

    @property
    def pending(self) -> int:
        """How many jobs wait or run."""
        return self._pending

    def _start(self) -> None:
        """Put a worker to the next turn, if one is free; the mutex is held."""
        if self._waiting and self._busy < self._workers and not self._is_stopping:
            self._busy += 1
            key = self._next()
            future = self._pool.submit(self._run, key, self._lanes[key][0])
            self._running.add(future)
            future.add_done_callback(self._ended)

    def _next(self) -> str:
        """Take the key whose turn it is from those that wait."""
        self._is_turn_of_newest = not self._is_turn_of_newest
        if self._is_turn_of_newest and self._fresh:
            key, _ = self._fresh.popitem()
            del self._waiting[key]
        else:
            key, _ = self._waiting.popitem(last=False)
            self._fresh.pop(key, None)
        return key

    def _run(self, key: str, job: Job) -> None:
        try:
            self._stand_back()
            job()
        finally:
            self._done(key)

    def _stand_back(self) -> None:
        for _ in range(STAND_BACK_STEPS):
            if self._first is None or not self._first.is_crowded or self._is_stopping:
                return
            time.sleep(STEP_SECONDS)

    def _done(self, key: str) -> None:
        with self._mutex:
            self._pending -= 1
            self._busy -= 1
            lane = self._lanes[key]
            lane.popleft()
            if lane:
                self._waiting[key] = None
            else:
                del self._lanes[key]
            self._start()
            is_idle = not self._lanes
        if is_idle:
            self._on_idle()

    def _ended(self, future: Future[None]) -> None:
        self._running.discard(future)
        if not future.cancelled() and (bug := future.exception()) is not None:
            self._on_bug(bug)


# --- hooks ------------------------------------------------------------------------------------------------------------

MAX_RETRY_SECONDS = 300.0
INACTIVE_SECONDS = 30.0  # how often an exchange looks whether this device runs the processes again
_LANE = "in order"
_ACTIONS = {"create": "created", "update": "modified", "remove": "deleted", "move": "moved"}


class HookDispatcher:
    """Turns journal events and outside changes into hook calls, in order.

    Args:
        brain: The brain.
        near: The tier the calls run in.
        later: Runs a job after so many seconds.
    """

    def __init__(self, brain: Brain, near: KeyedExecutor, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._brain, self._near, self._later = brain, near, later
        self._mutex = threading.Lock()
        self._open: set[str] = set()  # exchanges handed out and not yet dealt with
        self._has_failed = False  # a plugin, at the exchange that is being handed out
        self.exchanges = 0

    def start(self) -> None:
        """Hand out what an earlier run left, and from now on what is recorded."""
        _ = self._brain.answered  # before listening, so that it hears of each event first
        self._brain.on_event(self._recorded)
        self.hand_out_left()

    def hand_out_left(self, rest_seconds: float = 0.0) -> None:
        """Hand out exchanges that nothing followed from: whoever answered them died or met an error.

        Args:
            rest_seconds: Those that were answered this long ago; a younger one may be another process's work.
        """
        latest = self._brain.clock.now() - timedelta(seconds=rest_seconds)
        for event in self._brain.answered.undelivered():
            if parse_iso(event.at) <= latest or not rest_seconds:
                self._hand_out(event)

    def changed(self, change: FileChange) -> None:
        """Tell of a change that came from outside."""
        self._near.submit(_LANE, lambda: self._tell_file(change))

    def call(self, hook: str, **arguments: Any) -> BrainiacError | None:
        """Call a hook that nobody waits for; return what a plugin wants rescheduled.

        Where another device runs the processes nothing is called.
        """
        if not self._brain.is_active:
            return None
        try:
            self._brain.plugins.call(hook, brain=self._brain, **arguments)
        except (ModelError, ConflictError, StorageError) as error:
            self._brain.log.warning("hook_postponed", hook=hook, problem=str(error))
            return error
        return None

    def _recorded(self, event: Event) -> None:
        """Take an event, in the thread that recorded it."""
        if isinstance(event.what, ExchangeEvent):
            self._hand_out(event)
        failed_hook = event.what.hook if isinstance(event.what, PluginFailed) else ""
        self._has_failed |= failed_hook == "response_arrived"
        memories = [change for change in event.changes if self._is_memory(change)]
        if memories and event.kind not in FOUND:  # what was found, the bus tells of
            self._near.submit(_LANE, lambda: self._tell_memories(memories))
        is_own_echo = failed_hook == "event_recorded"
        if not is_own_echo and self._brain.plugins.has("event_recorded"):
            self._near.submit(_LANE, lambda: self._tell_event(event))

    def _is_memory(self, change: RecordedChange) -> bool:
        return change.op in _ACTIONS and self._brain.tree.kind_of(change.path) is PathKind.MEMORY

    def _tell_file(self, change: FileChange) -> None:
        if change.kind is PathKind.MEMORY and not change.is_ours:
            self._tell_of_memory(change.action, change.path, change.old_path)
        self.call("file_changed", change=change)

    def _tell_event(self, event: Event) -> None:
        self.call("event_recorded", event=event)

    def _tell_memories(self, changes: Sequence[RecordedChange]) -> None:
        for change in changes:
            self._tell_of_memory(_ACTIONS[change.op], change.path, change.source)

    def _tell_of_memory(self, action: str, path: str, old_path: str | None) -> None:
        hook = f"memory_{action}"
        if not self._brain.plugins.has(hook):
            return
        if action == "deleted":
            self.call(hook, path=path)
            return
        from brainiac.formats.page import parse_memory

        text = self._brain.read_text(path)
        if text is None:
            return  # gone since: its deletion is told of next
        try:
            memory = parse_memory(path, text)
        except FormatError as error:
            self._brain.log.warning("memory_unreadable", path=path, problem=str(error))
            return
        more = {"old_path": old_path} if action == "moved" else {}
        self.call(hook, path=path, memory=memory, **more)

    # --- exchanges --------------------------------------------------------------------------------------

    def _hand_out(self, event: Event) -> None:
        with self._mutex:
            if event.id in self._open:
                return
            self._open.add(event.id)
        self._submit(event, attempt=1)

    def _submit(self, event: Event, attempt: int) -> None:
        self._near.submit(_LANE, lambda: self._deliver(event, attempt))

    def _deliver(self, event: Event, attempt: int) -> None:
        if not self._brain.is_active:
            self._later(INACTIVE_SECONDS, lambda: self._submit(event, attempt))
            return
        exchange: Exchange | None = None
        error: BrainiacError | None = None
        try:
            with storage_trouble():
                exchange = exchange_of(self._brain, event)
            if exchange is None and not self._brain.tree.is_there:
                raise StorageError("The brain's folder is not there; what was said is reflected when it is back.")
        except StorageError as trouble:
            error = trouble
        self._has_failed = False
        if exchange:
            error = self.call("response_arrived", exchange=exchange)
        if error is None or (isinstance(error, ModelError) and not error.retryable):
            error = self._end(event)
        if error is not None:
            seconds = min(MAX_RETRY_SECONDS, 2.0 ** (attempt - 1))
            self._later(seconds, lambda: self._submit(event, attempt + 1))
            return
        self.exchanges += exchange is not None
        if not self._has_failed:
            with self._mutex:
                self._open.discard(event.id)

    def _end(self, event: Event) -> StorageError | None:
        """Record that nothing followed from an exchange, unless something did, so that it is not handed out again.

        Where a plugin failed, mended perhaps by the next start, it is handed out by that.
        """
        if self._has_failed or not self._brain.answered.is_undelivered(event.id):
            return None
        try:
            with storage_trouble():
                self._brain.record(ExchangeUnreflected(exchange=event.id), by="kernel", cause=event.id)
        except StorageError as error:
            return error
        return None


def exchange_of(brain: Brain, event: Event) -> Exchange | None:
    """Return the exchange that an event made known, as it stood then; None when its texts are gone.

    Args:
        brain: The brain.
        event: Whatever was recorded; None for what is no exchange.
    """
    if not isinstance(event.what, ExchangeEvent):
        return None
    hashes: dict[str, str | None] = {change.path: change.after for change in event.changes}
    path, response_path = event.what.prompt, event.what.response
    raw = _text_of(brain, path, hashes.get(path))
    if raw is None:
        return None
    try:
        prompt = parse_prompt(path, raw, at=event.at, inbox=brain.tree.layout.inbox)
        response = None
        if response_path:
            answer = _text_of(brain, response_path, hashes.get(response_path) or event.what.response_hash)
            if answer is None:
                return None
            response = parse_response(response_path, answer)
    except FormatError:
        return None
    prompt = _as_asked_now(brain, prompt)
    return Exchange(event.id, prompt, response, event.at, brain.answered.superseded_by(event.id))


def _as_asked_now(brain: Brain, prompt: Prompt) -> Prompt:
    """Return a prompt as it was answered, kept to itself if its file, or an answer beside it, asks for that by now."""
    raw = brain.read(prompt.path)
    is_private = prompt.private or is_hidden(brain.tree, prompt.path)
    return replace(prompt, private=is_private, remember=prompt.remember and not is_off_record(raw))


def _text_of(brain: Brain, path: str, expected: str | None) -> bytes | None:
    """Return a file's bytes as an event left them: from the tree when they still stand there, else from the journal."""
    raw = brain.read(path)
    if raw is not None and expected in (None, content_hash(raw)):
        return raw
    try:
        return brain.committer.text_of(expected) if expected else None
    except BlobError:
        return raw
