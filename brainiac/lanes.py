"""Worker threads with lanes: jobs of one key run in order, jobs of different keys side by side (design: pipeline)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

Job = Callable[[], None]


class Lanes:
    """A tier of the pipeline.

    Args:
        name: For the threads' names.
        workers: How many jobs run at once.
        on_idle: Called without locks held whenever the last job is done.
    """

    def __init__(self, name: str, workers: int, on_idle: Callable[[], None] | None = None) -> None:
        self._on_idle = on_idle
        self._changed = threading.Condition()
        self._lanes: dict[str, deque[Job]] = {}  # a key stands here while any of its jobs waits or runs
        self._ready: deque[str] = deque()
        self._is_stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(workers)
        ]

    def start(self) -> None:
        """Start the workers; jobs submitted before wait until then."""
        for thread in self._threads:
            thread.start()

    def submit(self, key: str, job: Job) -> None:
        """Run a job after those submitted under the same key."""
        with self._changed:
            lane = self._lanes.get(key)
            if lane is None:
                self._lanes[key] = deque([job])
                self._ready.append(key)
                self._changed.notify()
            else:
                lane.append(job)

    def stop(self, wait_seconds: float) -> bool:
        """Start no further job; return whether the running ones ended in time (each is given the whole time)."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(wait_seconds)
        return not any(thread.is_alive() for thread in started)

    @property
    def pending(self) -> int:
        """How many jobs wait or run."""
        with self._changed:
            return sum(len(lane) for lane in self._lanes.values())

    def _work(self) -> None:
        while (key := self._next()) is not None:
            self._lanes[key][0]()
            self._done(key)

    def _next(self) -> str | None:
        with self._changed:
            while not self._ready and not self._is_stopping:
                self._changed.wait()
            return None if self._is_stopping else self._ready.popleft()

    def _done(self, key: str) -> None:
        with self._changed:
            lane = self._lanes[key]
            lane.popleft()
            if lane:
                self._ready.append(key)
                self._changed.notify()
            else:
                del self._lanes[key]
            is_idle = not self._lanes
        if is_idle and self._on_idle:
            self._on_idle()
