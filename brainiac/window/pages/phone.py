"""A phone: what another app shares, and what it takes to reach the window from there."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from brainiac import verbs
from brainiac.server.address import read_address
from brainiac.window.frame import Done, Page, Visit


def share(visit: Visit) -> Mapping[str, Any]:
    """Return what was shared, for a box: nothing is kept of it before a button is pressed."""
    parts = dict.fromkeys(visit.given.get(name, "").strip() for name in ("title", "text", "url"))
    return {"written": "\n".join(filter(None, parts)), "key": secrets.token_urlsafe(12)}


def phone(visit: Visit) -> Mapping[str, Any]:
    """Return the window's address, and the names under which it may be reached besides."""
    address = read_address(visit.brain.places.state)
    return {"address": address.window if address else "", "hosts": visit.brain.settings.server.hosts}


def note(visit: Visit) -> Done:
    """Have what was written remembered, and not answered."""
    verbs.remember(visit.brain, visit.need("text"), key=visit.need("key"))  # a form that comes twice notes once
    return Done("Noted.", to="/")


PAGES = (Page("/share", "Shared", share, is_listed=False), Page("/phone", "On a phone", phone, is_listed=False))
ACTIONS = {"note": note}
