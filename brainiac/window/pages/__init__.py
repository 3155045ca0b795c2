"""The table of pages and actions; the navigation has them in this order."""

from __future__ import annotations

from brainiac.window.frame import Action, Page
from brainiac.window.pages import memory, status, today

_MODULES = (today, memory, status)
PAGES: tuple[Page, ...] = tuple(page for module in _MODULES for page in module.PAGES)
ACTIONS: dict[str, Action] = {name: action for module in _MODULES for name, action in module.ACTIONS.items()}
