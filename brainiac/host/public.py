"""What plugins may import: the names of `brainiac` itself, and the public names of the modules listed here.

A public name is a function, class or constant of such a module that begins with no underscore. Everything else is
internal and may change at any time. The four processes and the examples import nothing else either; a test looks.
"""

from __future__ import annotations

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
    "Search": ("brainiac.search.documents", "brainiac.search.query"),
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
