"""Brainiac: a folder that remembers. The names here are the public ones; plugins need nothing else.

They are imported when first used, so that a command pays only for what it needs.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as type checkers know it: `typing` and `pluggy` would be half of what a fast command imports
if TYPE_CHECKING:
    from typing import Any

    import pluggy

    from brainiac.brain import Brain
    from brainiac.errors import ConflictError, ModelError, UserError
    from brainiac.events import Event, FileChange, append, create, move, remove, update
    from brainiac.formats.page import Memory
    from brainiac.formats.prompt import Exchange, Prompt, Response
    from brainiac.search.documents import Hit

    hookimpl = pluggy.HookimplMarker("brainiac")

__version__ = "0.2.0"
__all__ = [
    "Brain",
    "ConflictError",
    "Event",
    "Exchange",
    "FileChange",
    "Hit",
    "Memory",
    "ModelError",
    "Prompt",
    "Response",
    "UserError",
    "append",
    "create",
    "hookimpl",
    "move",
    "remove",
    "update",
]
_MODULES = ("brain", "errors", "events", "formats.page", "formats.prompt", "search.documents")


def __getattr__(name: str) -> Any:
    """Return a public name, importing the module that has it on first use, so that `import brainiac` stays fast."""
    if name == "hookimpl":
        import pluggy  # a fast command needs it not

        return globals().setdefault(name, pluggy.HookimplMarker("brainiac"))
    if name in __all__:
        for module in _MODULES:
            value = getattr(importlib.import_module(f"brainiac.{module}"), name, None)
            if value is not None:
                return value
    raise AttributeError(f"module 'brainiac' has no attribute {name!r}")
