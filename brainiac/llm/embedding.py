"""Embedders at a provider, each batch within the budget and through the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from brainiac.errors import ModelError, StorageError
from brainiac.llm.catalog import FREE, count, endpoint_of
from brainiac.llm.completion import Completion, embed, metered
from brainiac.llm.costs import EMBED, Ledger
from brainiac.llm.gate import released_texts
from brainiac.search.embed import EmbedderError, Matrix, unit_norm
from brainiac.settings import MachineSettings

_BATCH = 256
_TIMEOUT_SECONDS = 15


class RemoteEmbedder:
    """Any embedding model that litellm reaches.

    Args:
        model: A litellm name such as `openai/text-embedding-3-small`.
        machine: Endpoints and key names of this machine.
        ledger: Returns the brain's account of costs; None where calls are not accounted for.

    Raises:
        EmbedderError: The name is no model's name, or its key is missing.
    """

    def __init__(self, model: str, machine: MachineSettings, ledger: Callable[[], Ledger] | None = None) -> None:
        try:
            self._endpoint = endpoint_of(model, machine)
        except ModelError as error:
            raise _embedder_error(error) from error
        self.name, self._ledger = model, ledger
        self.is_remote = not self._endpoint.is_local

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Matrix:
        """Return the vectors of texts, of unit norm; a query is embedded like a page."""
        ledger = self._ledger() if self._ledger else None
        vectors: list[list[float]] = []
        try:
            for start in range(0, len(texts), _BATCH):
                vectors += self._batch(texts[start : start + _BATCH], ledger)
        except ModelError as error:
            raise _embedder_error(error) from error
        except StorageError as error:  # the costs cannot be recorded; search goes on by words alone meanwhile
            raise EmbedderError(f"recall.embedder: {error.problem}") from error
        return unit_norm(np.array(vectors, np.float32))

    def _batch(self, texts: Sequence[str], ledger: Ledger | None) -> list[list[float]]:
        """Return the vectors of one batch.

        Raises:
            ModelError: The server fails.
            BudgetError: The call does not fit into the budget; it is not made.
        """
        released = released_texts(texts, self._endpoint)
        # free calls to this machine are not journaled: there is one for every page and question
        if ledger is None or (self._endpoint.is_local and ledger.price_of(self._endpoint) == FREE):
            return embed(self._endpoint, released, _TIMEOUT_SECONDS, Completion())
        estimate = sum(count(text, self.name) for text in texts)
        with metered(ledger, self._endpoint, EMBED, estimate, 0) as completion:
            return embed(self._endpoint, released, _TIMEOUT_SECONDS, completion)


def _embedder_error(error: ModelError) -> EmbedderError:
    return EmbedderError(f"recall.embedder: {error.problem} {error.advice}".strip())
