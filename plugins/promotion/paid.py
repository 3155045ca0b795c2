"""Keeps answers that were paid for until they are carried out: a run that is begun again pays none of them twice.

They lie in the state database, which a purge empties of them, and are removed with the commit of the run.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import ValidationError

from brainiac.brain import Brain
from brainiac.llm.schemas import OFFLINE, Request, Result

_OWNER = "answers"  # of what the database keeps; a purge drops them


class PaidAnswers:
    """Serves requests by the brain's models, and the same request a second time from the database.

    Args:
        brain: Its models answer; its database keeps them.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain

    def run(self, request: Request) -> Result:
        """Return the answer to a request.

        Raises:
            ModelError: The model cannot serve now.
        """
        model = self._brain.models.engine_for(request).name
        if model == OFFLINE:
            return self._brain.models.run(request)
        key = _key(request, model)
        if (known := self._known(request, key)) is not None:
            return known
        result = self._brain.models.run(request)
        self._brain.database.keep(_OWNER, key, json.dumps(result.model_dump(mode="json", warnings=False)))
        return result

    def settle(self) -> None:
        """Remove the answers, which are carried out and committed."""
        self._brain.database.keep_only(_OWNER, {})

    def _known(self, request: Request, key: str) -> Result | None:
        """Return the answer that is kept; None for none, or where the program that wrote it was another version."""
        with suppress(KeyError, ValueError, ValidationError):
            return request.result.model_validate(json.loads(self._brain.database.kept(_OWNER)[key]))
        return None


def _key(request: Request, model: str) -> str:
    """Return a hash of all that a request shows a model; of its time only the day counts."""
    day = datetime(request.now.year, request.now.month, request.now.day, tzinfo=UTC)
    content = replace(request, now=day, cause=None, abandon=None)
    return hashlib.sha256(f"{model}\n{content!r}".encode("utf-8", "surrogatepass")).hexdigest()
