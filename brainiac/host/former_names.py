"""Modules that plugins of the first version import by the names they had then."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

# The documented ones, and those that a plugin cannot do without: an index returns pages, an engine takes requests.
FORMER = {
    "brainiac.recall": "brainiac.search",
    "brainiac.recall.conformance": "brainiac.search.conformance",
    "brainiac.recall.hit": "brainiac.search.documents",
    "brainiac.recall.index": "brainiac.search.index",
    "brainiac.notes": "brainiac.formats",
    "brainiac.notes.memory": "brainiac.formats.page",
    "brainiac.notes.prompt": "brainiac.formats.prompt",
}


class _FormerNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module by its former name: the very module of today, not a copy of it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in FORMER else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(FORMER[module.__name__])


_FORMER_NAMES = _FormerNames()


def serve_former_names() -> None:
    """Let the former names be imported; called before a plugin is loaded that is not ours."""
    if _FORMER_NAMES not in sys.meta_path:
        # before the finder of files, which would load the file of today a second time under the former name
        sys.meta_path.insert(0, _FORMER_NAMES)
