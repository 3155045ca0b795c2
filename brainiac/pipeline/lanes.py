"""Tiers of work: jobs of one key run in order, jobs of different keys side by side (design: pipeline)."""

from __future__ import annotations

import threading
import time
from collections import deque
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
        self._running: set[Future[None]] = set()
        self._is_stopping = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)

    def submit(self, key: str, job: Job) -> None:
        """Run a job after those submitted under the same key; once stopping, not at all."""
        with self._mutex:
            lane = self._lanes.setdefault(key, deque())
            lane.append(job)
            if len(lane) == 1:
                self._start(key)

    def stop(self, wait_seconds: float) -> bool:
        """Start no further job; return whether those that ran ended in time."""
        with self._mutex:
            self._is_stopping = True
            running = set(self._running)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(running, wait_seconds).not_done

    @property
    def is_crowded(self) -> bool:
        """Whether more jobs wait or run than twice its workers: a dropped file makes two."""
        return self.pending > 2 * self._workers

    @property
    def pending(self) -> int:
        """How many jobs wait or run."""
        with self._mutex:
            return sum(len(lane) for lane in self._lanes.values())

    def _start(self, key: str) -> None:
        if self._is_stopping:
            self._lanes.pop(key)
            return
        future = self._pool.submit(self._run, key, self._lanes[key][0])
        self._running.add(future)
        future.add_done_callback(self._ended)

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
            lane = self._lanes[key]
            lane.popleft()
            if lane:
                self._start(key)
            else:
                del self._lanes[key]
            is_idle = not self._lanes
        if is_idle:
            self._on_idle()

    def _ended(self, future: Future[None]) -> None:
        self._running.discard(future)
        if not future.cancelled() and (bug := future.exception()) is not None:
            self._on_bug(bug)
