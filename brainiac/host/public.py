"""What plugins may import: the names of `brainiac` itself, and the public names of the modules listed here.

A public name is a function, class or constant of such a module that begins with no underscore. Everything else is
internal and may change at any time. The four processes and the examples import nothing else either; a test looks.
Plugins of the first version import modules by the names that these had then; those names still work.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

MODULES = {
    "A brain and what happens in it": (
        "brainiac.brain", "brainiac.events", "brainiac.errors", "brainiac.clock", "brainiac.tree",
        "brainiac.host.hookspecs", "brainiac.verbs",
    ),
    "Files and their formats": (
        "brainiac.formats.access_log", "brainiac.formats.authors", "brainiac.formats.discretion",
        "brainiac.formats.frontmatter", "brainiac.formats.index_page", "brainiac.formats.markdown",
        "brainiac.formats.page", "brainiac.formats.prompt", "brainiac.formats.short_term", "brainiac.text.dates",
        "brainiac.text.tokens",
    ),
    "What is stored": (
        "brainiac.storage.answered", "brainiac.storage.filed", "brainiac.storage.files", "brainiac.storage.folders",
        "brainiac.storage.links", "brainiac.storage.pages", "brainiac.storage.projection", "brainiac.storage.review",
        "brainiac.storage.statements",
    ),
    "Search": (
        "brainiac.search.documents", "brainiac.search.query", "brainiac.search.index", "brainiac.search.conformance",
    ),
    "Models": (
        "brainiac.llm.schemas", "brainiac.llm.gate", "brainiac.llm.redaction", "brainiac.llm.catalog",
        "brainiac.llm.offline", "brainiac.llm.context.assembler", "brainiac.llm.context.blocks",
        "brainiac.llm.context.instructions", "brainiac.llm.context.memory",
    ),
    "The past, and the running daemon": (
        "brainiac.history.copies", "brainiac.history.devices", "brainiac.history.digest", "brainiac.history.exchanges",
        "brainiac.history.forget", "brainiac.history.rebuild", "brainiac.history.targets", "brainiac.history.why",
        "brainiac.pipeline.daemon", "brainiac.pipeline.dispatch",
    ),
    "Commands": ("brainiac.cli.session", "brainiac.cli.styling", "brainiac.terminal"),
    "Tests": ("brainiac.testing",),
}  # fmt: skip


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
