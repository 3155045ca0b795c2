"""What grows old in memory although every file is in order, for a person to look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StaleItem:
    """Something that a person may want to look at.

    Attributes:
        kind: `superseded`, `orphan`, `uncited`, `overgrown`.
        path: Of the page or folder, relative.
        what: What was found.
        todo: What can be done about it.
    """

    kind: str
    path: str
    what: str
    todo: str
