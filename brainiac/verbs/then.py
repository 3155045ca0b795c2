"""What has changed since, beside what a verb answered from memory as it stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brainiac.history.as_of import AsOf, changed_since
from brainiac.verbs.reading import Briefing, Caller, Listing, Matches, Page, Reason
from brainiac.verbs.writing import Asked

MAX_LINES = 20


def since(then: AsOf, result: Any, caller: Caller) -> list[str]:
    """Return what became of the pages in a result, and of the statements that it names, a line each.

    Args:
        then: The brain that was asked.
        result: What a verb returned.
        caller: Who asks, and sees no more of the present than by asking now.
    """
    words: Sequence[str] = ()
    match result:
        case Matches(matches=matches):
            paths, words = [match.hit.path for match in matches], [match.hit.text for match in matches]
        case Page(id=path) | Reason(why=path):
            paths = [path if isinstance(path, str) else path.path]
        case Listing(entries=entries):
            paths = [entry.id for entry in entries]
        case Asked():
            paths = [str(receipt.get("path", "")).partition("#")[0] for receipt in result.receipts]
        case Briefing(memory=memory):
            pages, text = then.pages().pages.items(), "\n".join(block.text for block in memory.blocks)
            paths = [path for path, page in pages if path in text or page.title in text]
        case _:
            paths = []
    lines = changed_since(then, caller.gate(then.present), paths, words)
    more = [f"and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return [*map(caller.fenced, lines[:MAX_LINES]), *more]
