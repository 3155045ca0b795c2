"""The access log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One line: when, `READ` or `CITE`, and the absolute path."""

    at: str
    action: str
    path: str
