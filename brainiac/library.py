"""`Library`: a store with search and with queries on answered prompts, as models, context and gate need it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from functools import cached_property

from brainiac.clock import iso
from brainiac.formats.prompt import Exchange, Prompt
from brainiac.search.search import Recall
from brainiac.storage.answered import Answered
from brainiac.storage.store import Store

RECENT_DAYS = 7  # a device that answered nothing for so long does not keep another from answering
ELDER_SECONDS = 2.0


class Library(Store, ABC):
    """A store with its index of exchanges and its search."""

    _elder, _elder_found_at = "", float("-inf")  # the last result of `_find_elder`, and when (monotonic)

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
        return self.answered.earlier_exchanges(prompt)

    def _elder_device(self) -> str:
        """Return the device that is to run the processes where several do and no setting names one; "" for this one."""
        now = self.clock.monotonic()
        if now - self._elder_found_at >= ELDER_SECONDS:
            self._elder = self._find_elder() if self.journal.foreign_sizes() else ""
            self._elder_found_at = now
        return self._elder

    def _find_elder(self) -> str:
        """Return the device whose first answer is the oldest, which all devices see alike in the journals; "" for this.

        Others count only if they answered lately, and in the same period as this one: a device that ended before this
        one began was replaced by it.
        """
        self.projection.follow()
        rows = self.projection.query("SELECT device, min(event), max(event), max(at) FROM exchanges GROUP BY device")
        answers = {device: (first, last, last_at) for device, first, last, last_at in rows}
        first, last, _ = answers.pop(self.journal.device, ("", "", ""))
        if not first:
            return ""
        since = iso(self.clock.now() - timedelta(days=RECENT_DAYS))
        this_device = ""
        candidates = [(first, this_device)]
        for device, (other_first, other_last, other_last_at) in answers.items():
            is_same_period = other_last > first and last > other_first
            if other_last_at >= since and is_same_period:
                candidates.append((other_first, device))
        _, elder = min(candidates)
        return elder
