"""What grows old in memory although every file is in order; found without a model, for a person to look at."""

from __future__ import annotations

from collections.abc import Iterator

from brainiac.brain import Brain
from brainiac.formats.memory import Memory
from brainiac.host.hookspecs import StaleItem

from .past import read_past
from .usage import read_usage, unused_pages


def find_stale(brain: Brain) -> Iterator[StaleItem]:
    """Yield what was superseded, pages nobody links to or cites, and overgrown folders."""
    pages, past = brain.pages(), read_past(brain)
    for page in pages.memories.values():
        yield from _broken_history(page)
    for path in brain.recall.links.orphans():
        if path in pages.memories and pages.kind_of(path) != "events":
            yield StaleItem("orphan", path, "no page links to it, and it links to none", "link it where it belongs")
    for page, last in unused_pages(brain, pages, past, read_usage(brain, pages, past)):
        if not page.reinforcement_count:
            what = f"was never cited, and not used since {last}"
            yield StaleItem("uncited", page.path, what, "let it go to the archive")
    limit = brain.settings.organization.max_entries
    for folder, children in sorted(pages.children.items()):
        if len(children) > limit:
            what = f"holds {len(children)} entries, {limit} are meant"
            yield StaleItem("overgrown", folder, what, "`brainiac organize`")


def _broken_history(page: Memory) -> Iterator[StaleItem]:
    """Name what is said to be replaced by a statement that the page does not have."""
    block_ids = {statement.block_id for statement in page.statements}
    for statement in page.statements:
        if statement.replaced_by and statement.replaced_by not in block_ids:
            name = f" ^{statement.block_id}" if statement.block_id else ""
            what = f"“{statement.text}”{name} was replaced by ^{statement.replaced_by}, which is not there"
            yield StaleItem("superseded", page.path, what, "say what holds now")
