"""Embedders at a provider, each batch within the budget and through the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from brainiac.errors import ModelError, StorageError
from brainiac.llm.costs import Ledger
from brainiac.llm.endpoints import endpoint_of
from brainiac.llm.metered import embedded
from brainiac.search.embed import EmbedderError, Matrix, unit_norm
from brainiac.settings import MachineSettings

_BATCH = 256
_TIMEOUT_SECONDS = 15


class RemoteEmbedder:
    """Any embedding model that litellm reaches, each batch within the budget.

    Args:
        model: litellm's name, `openai/text-embedding-3-small`.
        machine: Endpoints and key names of this machine.
        ledger: Gives the brain's account of what models cost; None where nobody keeps one.

    Raises:
        EmbedderError: The name cannot be one, or its key is missing.
    """

    def __init__(self, model: str, machine: MachineSettings, ledger: Callable[[], Ledger] | None = None) -> None:
        try:
            self._endpoint = endpoint_of(model, machine)
        except ModelError as error:
            raise _explained(error) from error
        self.name, self._ledger = model, ledger
        self.is_remote = not self._endpoint.is_local

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return vectors of unit norm, asked for in batches."""
        ledger = self._ledger() if self._ledger else None
        batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
        try:
            parts = [embedded(self._endpoint, batch, _TIMEOUT_SECONDS, ledger) for batch in batches]
        except ModelError as error:
            raise _explained(error) from error
        except StorageError as error:  # what it costs cannot be kept: words answer meanwhile
            raise EmbedderError(f"recall.embedder: {error.problem}") from error
        return unit_norm(np.array([row for rows in parts for row in rows], np.float32))


def _explained(error: ModelError) -> EmbedderError:
    return EmbedderError(f"recall.embedder: {error.problem} {error.advice}".strip())
