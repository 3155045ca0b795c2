"""`Library`: a store with search and with queries on answered prompts, as models, context and gate need it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from functools import cached_property

from brainiac.clock import iso
from brainiac.formats.prompt import Exchange, Prompt
from brainiac.search.search import Recall
from brainiac.storage.answered import Answered, earlier_exchanges
from brainiac.storage.heartbeat import devices_in_folder
from brainiac.storage.store import Store

RECENT_DAYS = 7  # a device that answered nothing for so long does not keep another from answering
ELDER_SECONDS = 2.0


class Library(Store, ABC):
    """A store with its index of exchanges and its search."""

    _elder = (float("-inf"), "")  # when was last looked which device is to answer, and which it is

    @cached_property
    def answered(self) -> Answered:
        """Which prompts have been answered, and by which file."""
        return Answered(self)

    @property
    @abstractmethod
    def recall(self) -> Recall:
        """Search."""

    def conversation(self, prompt: Prompt) -> list[Exchange]:
        """Return the earlier exchanges of a prompt's conversation, oldest first."""
        return earlier_exchanges(self, self.answered, prompt)

    def _elder_device(self) -> str:
        """Return the device that is to answer where several do without a setting that names one; "" for this one.

        Of those that answered in the same period, the one whose first answer is the oldest goes on: all devices see
        that alike in the journals. One that ended before this one began, as on a machine that was replaced, is none.
        """
        now = self.clock.monotonic()
        if now - self._elder[0] >= ELDER_SECONDS:
            self._elder = now, self._find_elder() if self.journal.foreign_sizes() else ""
        return self._elder[1]

    def _find_elder(self) -> str:
        """Return the device that `_elder_device` names."""
        self.projection.follow()
        rows = self.projection.query("SELECT device, min(event), max(event), max(at) FROM exchanges GROUP BY device")
        spans = {device: (first, last, at) for device, first, last, at in rows}
        since = iso(self.clock.now() - timedelta(days=RECENT_DAYS))
        first, last, _ = spans.pop(self.journal.device, ("", "", ""))
        elder = min(
            (other_first, device)
            for device, (other_first, other_last, at) in [*spans.items(), ("", (first, "", ""))]
            if not device or (at >= since and first and other_last > first and last > other_first)
        )[1]
        return "" if elder in devices_in_folder(self) else elder
