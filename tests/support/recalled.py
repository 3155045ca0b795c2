"""A brain's folder that a test writes as it likes, and the search of a brain that is opened on it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brainiac import Brain
from brainiac.clock import ManualClock
from tests.support.models import write_settings

NOW = datetime(2025, 9, 16, 12, tzinfo=UTC)
CONCRETE = "memory/long_term/concrete"


class Folder:
    """A brain's folder, and the searches that were opened over it.

    Args:
        root: Where it is to be.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.opened = root, list[Brain]()
        self.write("system/core_identity.md", "# Core Identity\n")
        (root / "memory" / "long_term").mkdir(parents=True)

    def write(self, path: str, text: str) -> str:
        """Write a file, whoever is looking."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        return path

    def memory(self, name: str, *statements: str, meta: str = "") -> str:
        """Write a memory page."""
        lines = "".join(f"- {text} ^s{number}\n" for number, text in enumerate(statements))
        return self.write(f"{CONCRETE}/{name}.md", f"---\nuuid: {name}\n{meta}---\n# {name.title()}\n\n{lines}")

    def brain(
        self, language: str = "english", time_zone: str = "UTC", embedder: str = "none", **settings: Any
    ) -> Brain:
        """Open the brain with settings of its own."""
        recall = {"embedder": embedder, "language": language}
        write_settings(self.root, {"recall": recall, "time_zone": time_zone, **settings})
        self.opened.append(Brain(self.root, clock=ManualClock(NOW)))
        return self.opened[-1]

    def recall(self, language: str = "english", time_zone: str = "UTC", embedder: str = "none") -> Any:
        """Open the brain's search, by words alone unless an embedder is named."""
        return self.brain(language, time_zone, embedder).recall

    def close(self) -> None:
        """Close all that was opened."""
        for brain in self.opened:
            brain.close()


def texts(recall: Any, query: str, **options: Any) -> list[str]:
    """Return the texts found."""
    return [hit.text for hit in recall.search(query, **options)]
