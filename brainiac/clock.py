"""`Clock`, the only source of time in the program, so that a test can move it by hours at once.

An object that is passed around, and not `freezegun`, which also freezes `time.monotonic`, so that waits would not end.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta, tzinfo


class Clock:
    """The system's clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back, for measuring waits."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, timeout_seconds: float | None) -> bool:
        """Wait on a held condition; return whether it was notified (False: the time ran out)."""
        return condition.wait(timeout_seconds)

    def skip(self, seconds: float) -> None:
        """Let time pass for which everybody waits: here it does so by itself."""


class ManualClock(Clock):
    """A clock that a test moves by hand; waits end when it is moved far enough or notified.

    Args:
        start: The first moment, with a time zone.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)
        self._elapsed_seconds = 0.0
        # all conditions ever waited on, since a thread may be just about to wait
        self._conditions: set[threading.Condition] = set()
        self._mutex = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed_seconds

    def wait(self, condition: threading.Condition, timeout_seconds: float | None) -> bool:
        """Wait until the condition is notified or `advance` is called; return False where the timeout has passed."""
        if timeout_seconds is not None and timeout_seconds <= 0:
            return False
        with self._mutex:
            self._conditions.add(condition)
            deadline = None if timeout_seconds is None else self._elapsed_seconds + timeout_seconds
        condition.wait()  # also ended by an `advance` that is too short: callers wait in a loop
        return deadline is None or self._elapsed_seconds < deadline

    def skip(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock on by some seconds and wake all waiting threads."""
        with self._mutex:
            self._now += timedelta(seconds=seconds)
            self._elapsed_seconds += seconds
            conditions = list(self._conditions)
        for condition in conditions:
            with condition:
                condition.notify_all()


SYSTEM = Clock()


def iso(moment: datetime) -> str:
    """Format a moment as ISO 8601 UTC to the second, `2025-09-16T15:30:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_iso(text: str) -> datetime:
    """Read an ISO 8601 moment; one without an offset is taken as UTC.

    Raises:
        ValueError: It is no ISO 8601 moment.
    """
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def is_within(seconds: float, at: str, now: datetime) -> bool:
    """Return whether an ISO 8601 moment lies less than so many seconds back; never of one after `now`.

    A clock that was put back makes later moments of what was recorded before: they must not count as just now for days.
    """
    return 0 <= (now - parse_iso(at)).total_seconds() < seconds


def day_in(zone: tzinfo | None, at: str) -> str:
    """Return the day of a moment in a time zone, as `2025-09-16`.

    Args:
        zone: The time zone; None for UTC.
        at: An ISO 8601 moment; of any other text, such as a day without an hour, the first ten characters are returned.
    """
    if len(at) <= len("2025-09-16"):
        return at
    try:
        return parse_iso(at).astimezone(zone or UTC).date().isoformat()
    except (ValueError, OverflowError):
        return at[:10]


def moment_in(zone: tzinfo, at: str) -> str:
    """Return a moment in a time zone as ISO 8601, `2025-09-17T03:30:00+12:00`, or with a `Z` in UTC.

    Any other text, such as a day without an hour, is returned unchanged.
    """
    try:
        moment = parse_iso(at).astimezone(zone)
    except (ValueError, OverflowError):
        return at
    is_day = len(at) <= len("2025-09-16")
    return at if is_day else moment.isoformat(timespec="seconds") if moment.utcoffset() else iso(moment)
