"""Status: how the brain stands, as `brainiac status` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainiac.health.overview import overview
from brainiac.window.frame import Action, Page, Visit


def status(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page."""
    return {"state": overview(visit.brain)}


PAGES = (Page("/status", "Status", status, is_live=True),)
ACTIONS: dict[str, Action] = {}
