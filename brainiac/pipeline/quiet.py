"""The quiet timer: how long nobody has exchanged anything, told to far-background plugins now and then."""

from __future__ import annotations

from brainiac.brain import Brain
from brainiac.clock import parse_iso
from brainiac.pipeline.bus import Bus

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
        self._since = brain.clock.now()  # for a brain in which nothing was exchanged yet
        self._to_come: tuple[str | None, float] | None = None  # a last exchange that bears a time to come, since when

    def start(self) -> None:
        """Begin to count."""
        self._bus.later(self._step(), self._tick)

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last exchange."""
        clock, last = self._brain.clock, self._brain.answered.last_exchange_at
        idle = (clock.now() - (parse_iso(last) if last else self._since)).total_seconds()
        if idle >= 0:
            return idle
        # the clock was put back: a day must not pass before it is quiet
        if self._to_come is None or self._to_come[0] != last:
            self._to_come = last, clock.monotonic()
        return clock.monotonic() - self._to_come[1]

    def _step(self) -> float:
        """Seconds between two calls: short enough for the shortest wait that is set."""
        settings = self._brain.settings
        return max(
            MIN_STEP_SECONDS,
            min(MAX_STEP_SECONDS, settings.promotion.idle_seconds, settings.organization.idle_seconds),
        )

    def _tick(self) -> None:
        step, idle = self._step(), self.idle_seconds
        self._bus.later(step - idle if idle < step else step, self._tick)
        if idle >= step and self._brain.is_active and not self._bus.is_busy and not self._bus.far.pending:
            self._bus.far.submit("quiet", self._tell)

    def _tell(self) -> None:
        self._bus.announcer.call("quiet", idle_seconds=self.idle_seconds)
