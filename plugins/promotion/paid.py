"""Keeps answers that were paid for until they are carried out: a run that is begun again pays none of them twice.

They lie in the cache, which a purge empties, and are removed with the commit of the run.
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

FILE = "promotion-answers.jsonl"


class PaidAnswers:
    """Serves requests by the brain's models, and the same request a second time from the file.

    Args:
        brain: Its models answer; whose cache has the file.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain, self._path = brain, brain.places.cache / FILE

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
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        answer = result.model_dump(mode="json", warnings=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "answer": answer}) + "\n")
        return result

    def settle(self) -> None:
        """Remove the answers, which are carried out and committed."""
        self._path.unlink(missing_ok=True)

    def _known(self, request: Request, key: str) -> Result | None:
        """Return the answer in the file; None where it has none, or the program that wrote it was another version."""
        with suppress(FileNotFoundError):
            for line in self._path.read_text("utf-8").splitlines():
                # a kill may have torn the last line
                with suppress(ValueError, KeyError, TypeError, ValidationError):
                    if (row := json.loads(line))["key"] == key:
                        return request.result.model_validate(row["answer"])
        return None


def _key(request: Request, model: str) -> str:
    """Return a hash of all that a request shows a model; of its time only the day counts."""
    day = datetime(request.now.year, request.now.month, request.now.day, tzinfo=UTC)
    content = replace(request, now=day, cause=None, abandon=None)
    return hashlib.sha256(f"{model}\n{content!r}".encode("utf-8", "surrogatepass")).hexdigest()
