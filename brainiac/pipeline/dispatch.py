"""Calls the plugins' hooks for file changes, exchanges and events, and runs the pipeline's tiers of work."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from brainiac import errors, events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.formats.page import parse_memory
from brainiac.formats.prompt import Exchange, is_off_record, parse_prompt, parse_response
from brainiac.llm.gate import is_hidden
from brainiac.storage.external_edits import FOUND

# --- tiers of work ----------------------------------------------------------------------------------------------------

Job = Callable[[], object]

STEP_SECONDS, MAX_STEPS = 0.02, 500  # a job waits for the tier before it for ten seconds at most
SHARE = 2  # and for so many jobs there at most, or in a burst nothing would be reflected until all is answered


class KeyedExecutor:
    """A tier of the pipeline: jobs with one key run in order, jobs with different keys at the same time.

    A free worker takes alternately the newest key and the key that has waited longest. So a new prompt is answered soon
    even behind thousands, and the oldest one is not left waiting.

    Args:
        name: For its threads.
        workers: How many jobs run at once.
        on_idle: Called, without locks held, whenever the last job is done.
        on_bug: Called with an unexpected error of a job; jobs handle the errors they expect.
        yields_to: Another tier: while more jobs wait or run there than it has workers, a job here lets `SHARE` of them
            end, for ten seconds at most, before it starts.

    Attributes:
        pending: How many jobs wait or run.
        n_done: How many jobs ended.
    """

    def __init__(
        self,
        name: str,
        workers: int,
        on_idle: Callable[[], None],
        on_bug: Callable[[BaseException], None],
        yields_to: KeyedExecutor | None = None,
    ) -> None:
        self._on_idle, self._on_bug = on_idle, on_bug
        self._workers, self._yields_to = workers, yields_to
        self._changed = threading.Condition()
        self._lanes: dict[str, deque[Job]] = {}  # the waiting and running jobs by key
        # the keys that wait for a worker, longest first, each with whether it never had one
        self._waiting: OrderedDict[str, bool] = OrderedDict()
        self._is_turn_of_newest = False
        self.pending = self.n_done = 0
        self._busy = 0  # workers that run a job
        self._is_stopping = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)

    @property
    def is_crowded(self) -> bool:
        """Whether more jobs wait or run than there are workers."""
        return self.pending > self._workers

    def submit(self, key: str, job: Job) -> None:
        """Run a job after the earlier jobs of the same key; after `stop` it is dropped."""
        with self._changed:
            if self._is_stopping:
                return
            self.pending += 1
            if key in self._lanes:
                self._lanes[key].append(job)
                return
            self._lanes[key] = deque([job])
            self._waiting[key] = True
            self._start_next()

    def stop(self, wait_seconds: float) -> bool:
        """Start no further job; return whether those that ran ended in time."""
        with self._changed:
            self._is_stopping = True
            # its threads are not waited for: a hanging plugin must not keep the daemon from ending
            self._pool.shutdown(wait=False)
            return self._changed.wait_for(lambda: not self._busy, wait_seconds)

    def _start_next(self) -> None:
        """Give a waiting key to a free worker, if there are both; the caller holds the mutex."""
        if not self._waiting or self._busy >= self._workers or self._is_stopping:
            return
        self._busy += 1
        self._is_turn_of_newest = not self._is_turn_of_newest
        # only keys that never had a worker are new: a busy conversation cannot push the others back again and again
        newest = (key for key in reversed(self._waiting) if self._waiting[key])
        longest = next(iter(self._waiting))
        key = next(newest, longest) if self._is_turn_of_newest else longest
        del self._waiting[key]
        self._pool.submit(self._run, key, self._lanes[key][0])

    def _run(self, key: str, job: Job) -> None:
        """Run one job, then free the worker, and let the key wait for one again if it has more jobs."""
        try:
            other, steps = self._yields_to, MAX_STEPS
            enough = other.n_done + SHARE if other else 0
            while other and other.is_crowded and other.n_done < enough and steps and not self._is_stopping:
                time.sleep(STEP_SECONDS)
                steps -= 1
            if not self._is_stopping:
                job()
        except BaseException as bug:  # noqa: BLE001 - reported; jobs handle the errors that they expect
            self._on_bug(bug)
        finally:
            with self._changed:
                self.pending -= 1
                self.n_done += 1
                self._busy -= 1
                lane = self._lanes[key]
                lane.popleft()
                if lane:
                    self._waiting[key] = False
                else:
                    del self._lanes[key]
                self._start_next()
                self._changed.notify_all()
                is_idle = not self._lanes
            if is_idle:
                self._on_idle()


# --- hooks ------------------------------------------------------------------------------------------------------------

MAX_RETRY_SECONDS = 300.0
INACTIVE_SECONDS = 30.0  # how often an exchange looks whether this device runs the processes again
ON_ANY_DEVICE = "quiet_on_any_device"  # the background hook that a device calls which leaves the processes to another
_LANE = "in order"
_ACTIONS = {"create": "created", "update": "modified", "remove": "deleted", "move": "moved"}


class HookDispatcher:
    """Turns journal events and outside changes into hook calls, in order.

    An exchange is delivered once `response_arrived` was called for it and it has an outcome in the journal.

    Args:
        brain: The brain.
        near: The tier in which the hooks are called.
        later: Runs a job after a number of seconds.

    Attributes:
        exchanges: How many exchanges the plugins were given.
    """

    def __init__(self, brain: Brain, near: KeyedExecutor, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._brain, self._near, self._later = brain, near, later
        self._mutex = threading.Lock()
        self._open: set[str] = set()  # ids of the exchange events whose delivery has started and not ended
        # whether a plugin failed at the exchange that is being delivered; `_on_event` hears of it
        self._has_failed = False
        self.exchanges = 0

    def start(self) -> None:
        """Deliver the exchanges that an earlier run left, and from now on every recorded event."""
        _ = self._brain.answered  # before listening, so that it hears of each event first
        self._brain.on_event(self._on_event)
        self.deliver_open_exchanges()

    def deliver_open_exchanges(self, min_age_seconds: float = 0.0) -> None:
        """Deliver the exchanges without an outcome: the process that answered them died, or another device answered.

        Args:
            min_age_seconds: Leave out what was answered on this machine later than that: another process may be
                delivering it.
        """
        self._brain.answered.refresh()
        # "~" sorts behind every moment
        latest = iso(self._brain.clock.now() - timedelta(seconds=min_age_seconds)) if min_age_seconds else "~"
        for event in self._brain.answered.undelivered(latest):
            self._start_delivery(event)

    def submit_change(self, change: events.FileChange) -> None:
        """Have the hooks called for a change that a person made: that of a memory, then `file_changed`.

        A process's change of a memory is left out here: its event calls the hook (`_on_event`).
        """
        if change.kind is events.PathKind.MEMORY and not change.is_ours:
            call_hook = partial(self._call_memory_hook, change.action, change.path, change.old_path)
            self._near.submit(_LANE, call_hook)
        self._near.submit(_LANE, partial(self.call, "file_changed", change=change))

    def call(self, hook: str, **arguments: Any) -> errors.BrainiacError | None:
        """Call a background hook, unless it is for the device that runs the processes and this is another one.

        Returns:
            The model, conflict or storage error because of which the call should be repeated later; else None.
        """
        if not self._brain.is_active and hook != ON_ANY_DEVICE:
            return None
        try:
            self._brain.plugins.call(hook, brain=self._brain, **arguments)
        except (errors.ModelError, errors.ConflictError, errors.StorageError) as error:
            self._brain.log.warning("hook_postponed", hook=hook, problem=str(error))
            return error
        return None

    def _on_event(self, event: events.Event) -> None:
        """Submit the hook calls that follow from a recorded event; called in the thread that recorded it."""
        if isinstance(event.what, events.ExchangeEvent):
            self._start_delivery(event)
        failed_hook = event.what.hook if isinstance(event.what, events.PluginFailed) else ""
        if failed_hook == "response_arrived":
            self._has_failed = True
        if event.kind not in FOUND:  # the bus reports what a person changed
            for change in event.changes:
                if change.op not in _ACTIONS or self._brain.tree.kind_of(change.path) is not events.PathKind.MEMORY:
                    continue
                call_hook = partial(self._call_memory_hook, _ACTIONS[change.op], change.path, change.source)
                self._near.submit(_LANE, call_hook)
        # a plugin that fails at each event would be called with its own failure, and so on for ever
        if failed_hook != "event_recorded" and self._brain.plugins.has("event_recorded"):
            self._near.submit(_LANE, partial(self.call, "event_recorded", event=event))

    def _call_memory_hook(self, action: str, path: str, old_path: str | None) -> None:
        """Call `memory_created`, `memory_modified`, `memory_moved` or `memory_deleted` for a page."""
        hook = f"memory_{action}"
        more: dict[str, Any] = {"old_path": old_path} if action == "moved" else {}
        text = None if action == "deleted" else self._brain.read_text(path)
        # without a text it was deleted since: the hook for that comes next
        if not self._brain.plugins.has(hook) or (text is None and action != "deleted"):
            return
        try:
            more |= {} if text is None else {"memory": parse_memory(path, text)}
        except errors.FormatError as error:
            self._brain.log.warning("memory_unreadable", path=path, problem=str(error))
        else:
            self.call(hook, path=path, **more)

    # --- exchanges --------------------------------------------------------------------------------------

    def _start_delivery(self, event: events.Event) -> None:
        """Submit an exchange to the hooks, unless its delivery is under way already."""
        with self._mutex:
            if event.id in self._open:
                return
            self._open.add(event.id)
        self._submit(event, attempt=1)

    def _submit(self, event: events.Event, attempt: int) -> None:
        self._near.submit(_LANE, lambda: self._deliver(event, attempt))

    def _deliver(self, event: events.Event, attempt: int) -> None:
        """Call `response_arrived` for an exchange, and record it as unreflected if no plugin recorded an outcome.

        After an error that may pass it is tried again, each time after twice the wait. An exchange whose texts are lost
        counts as delivered. One at which a plugin failed stays open until the next start, perhaps with a repaired
        plugin: delivered again now, it would only fail again.
        """
        brain = self._brain
        if not brain.is_active:
            self._later(INACTIVE_SECONDS, lambda: self._submit(event, attempt))
            return
        self._has_failed = False
        try:
            with errors.storage_trouble():
                exchange = exchange_of(brain, event)
                if exchange is None and not brain.tree.is_there:
                    raise errors.StorageError(
                        "The brain's folder is not there; what was said is reflected when it is back."
                    )
                error = self.call("response_arrived", exchange=exchange) if exchange else None
                if error is not None and not (isinstance(error, errors.ModelError) and not error.retryable):
                    raise error
                # also after an error that no retry mends, or each start would deliver the exchange again
                if not self._has_failed and brain.answered.undelivered(exchange=event.id):
                    brain.record(events.ExchangeUnreflected(exchange=event.id), by="kernel", cause=event.id)
                self.exchanges += exchange is not None
        except (errors.ModelError, errors.ConflictError, errors.StorageError):
            # a provider that is down for an hour is not asked every second
            seconds = min(MAX_RETRY_SECONDS, 2.0 ** (attempt - 1))
            self._later(seconds, lambda: self._submit(event, attempt + 1))
            return
        if not self._has_failed:
            with self._mutex:
                self._open.discard(event.id)


def exchange_of(brain: Brain, event: events.Event) -> Exchange | None:
    """Return the exchange of an event with its texts of that time; None for another event or when texts are lost.

    Raises:
        StorageError: A text cannot be read now.
    """
    if not isinstance(event.what, events.ExchangeEvent):
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
            response_hash = hashes.get(response_path) or event.what.response_hash or None
            answer = _text_of(brain, response_path, response_hash)
            if answer is None:
                return None
            response = parse_response(response_path, answer)
    except errors.FormatError:
        return None
    # what was said later counts: its present file, or the answer beside it, may be private or off the record by now
    is_private = prompt.private or is_hidden(brain.tree, path)  # looks at the answer too
    is_remembered = prompt.remember and not is_off_record(brain.read(path))
    prompt = prompt.of_author(event.what.origin, event.what.author)
    prompt = replace(prompt, private=is_private, remember=is_remembered)
    return Exchange(event.id, prompt, response, event.at, brain.answered.previous_version(event.id))


def _text_of(brain: Brain, path: str, expected: str | None) -> bytes | None:
    """Return the content with an expected hash, from the file or else from the journal.

    The file's present content is returned where neither has it or no hash is known; None where there is no file either.
    """
    raw = brain.read(path)
    if expected is None or (raw is not None and events.content_hash(raw) == expected):
        return raw
    try:
        return brain.committer.text_of(expected)
    except errors.BlobError:
        return raw
