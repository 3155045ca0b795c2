"""`Library`: a store with search and with queries on answered prompts, as models, context and gate need it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

from brainiac.formats.prompt import Exchange, Prompt
from brainiac.search.search import Recall
from brainiac.storage.answered import Answered
from brainiac.storage.conversations import earlier_exchanges
from brainiac.storage.store import Store


class Library(Store, ABC):
    """A store with its index of exchanges and its search."""

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
