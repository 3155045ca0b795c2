"""What grows old in memory although every file is in order; found without a model, for a person to look at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from brainiac.brain import Brain
from brainiac.formats.memory import Memory, Statement
from brainiac.health.stale import StaleItem

from .catalog import Catalog
from .digest import TAG
from .past import read_past
from .patterns import last_used
from .usage import read_usage


def find_stale(brain: Brain) -> Iterator[StaleItem]:
    """Yield what was superseded, pages nobody links to or cites, and overgrown folders."""
    catalog = Catalog(brain)
    for page in catalog.pages.values():
        yield from _broken_history(page)
    for path in brain.recall.links.orphans():
        if path in catalog.pages and not path.startswith(f"{catalog.root}/events/"):
            yield StaleItem("orphan", path, "no page links to it, and it links to none", "link it where it belongs")
    yield from _uncited(brain, catalog)
    limit = brain.settings.organization.max_entries
    for folder, entries in sorted(catalog.entries.items()):
        if len(entries) > limit:
            yield StaleItem(
                "overgrown", folder, f"holds {len(entries)} entries, {limit} are meant", "`brainiac organize`"
            )


def _shown(statement: Statement) -> str:
    return f"“{statement.text}”" + (f" ^{statement.block_id}" if statement.block_id else "")


def _broken_history(page: Memory) -> Iterator[StaleItem]:
    """Name what is said to be replaced by a statement that the page does not have."""
    held = {each.block_id for each in page.statements}
    for each in page.statements:
        if each.replaced_by and each.replaced_by not in held:
            what = f"{_shown(each)} was replaced by ^{each.replaced_by}, which is not there"
            yield StaleItem("superseded", page.path, what, "say what holds now")


def _uncited(brain: Brain, catalog: Catalog) -> Iterator[StaleItem]:
    """Name the pages that nobody has used for as long as would send them to the archive, and that were never cited."""
    past = read_past(brain)
    usage = read_usage(brain, catalog, past)
    days = brain.settings.organization.unused_days
    before = (brain.clock.now() - timedelta(days=days)).date().isoformat()
    for path, page in catalog.pages.items():
        last = last_used(page, past, usage)
        if last and last < before and not page.reinforcement_count and TAG not in page.tags:
            yield StaleItem("uncited", path, f"was never cited, and not used since {last}", "let it go to the archive")
