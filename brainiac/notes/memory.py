"""Memory pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Statement:
    """A list item of a page."""

    text: str
    block_id: str
    is_history: bool
    start: int
    end: int
    section: str = ""
    since: str = ""
    until: str = ""
    replaced_by: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory page."""

    path: str
    uuid: str
    title: str
    created_at: str
    updated_at: str
    tags: tuple[str, ...]
    emotion: str
    reinforcement_count: int
    statements: tuple[Statement, ...]
    body: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)
