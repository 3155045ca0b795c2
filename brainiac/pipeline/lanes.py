"""Tiers of work: jobs of one key run in order, jobs of different keys side by side, and keys take turns.

The turns go to the key that came last and to the one that waits longest, by turns: behind thousands that wait, one
that comes fresh is next but one, and the oldest is never passed over for long. Who had a turn is fresh no more.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

Job = Callable[[], None]

STEP_SECONDS, STAND_BACK_STEPS = 0.02, 500  # a job stands back for ten seconds at most


class Lanes:
    """A tier of the pipeline.

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
        first: Lanes | None = None,
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
