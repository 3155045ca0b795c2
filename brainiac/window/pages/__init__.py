"""The table of pages and actions; the navigation has them in this order."""

from __future__ import annotations

from brainiac.window.frame import Action, Page
from brainiac.window.pages import ask, contents, memory, page, phone, review, search, status, timeline, today

_MODULES = (today, ask, review, search, contents, timeline, page, memory, status, phone)
PAGES: tuple[Page, ...] = tuple(each for module in _MODULES for each in module.PAGES)
ACTIONS: dict[str, Action] = {
    name: action for module in _MODULES for name, action in getattr(module, "ACTIONS", {}).items()
}
