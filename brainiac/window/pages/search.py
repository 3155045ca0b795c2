"""Search: what memory has of some words, as they are typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainiac import verbs
from brainiac.errors import UserError
from brainiac.search.query import FIELDS_HELP, nothing_found, without_fields
from brainiac.search.shown import reasons, shown_hit
from brainiac.search.text import Analyzer
from brainiac.window.frame import Page, Visit

FILTERS = ("type", "after", "before")
TYPES = ("concrete", "events", "skills", "short-term", "archive")
STEP, MOST = 10, 100  # hits at first and with each "more", and at most


def search(visit: Visit) -> Mapping[str, Any]:
    """Return what `brainiac search` finds, what is sure of it apart."""
    brain, words = visit.brain, visit.given.get("q", "").strip()
    chosen = {name: visit.given.get(name, "").strip() for name in FILTERS}
    # as a person may type it too
    query = " ".join([words, *(f"{name}:{value}" for name, value in chosen.items() if value)]).strip()
    number = visit.given.get("n", "")
    limit = min(MOST, max(STEP, int(number))) if number.isascii() and number.isdigit() and len(number) < 4 else STEP
    values: dict[str, Any] = {"q": words, "chosen": chosen, "types": TYPES, "help": FIELDS_HELP}
    values |= {"problem": "", "groups": [], "more": 0, "nothing": nothing_found(query)}
    if not query:
        return values
    try:
        found = verbs.search(brain, query, limit=limit)
    except UserError as error:  # half typed: `type:ev` is no type yet
        return values | {"problem": str(error)}
    analyzer = Analyzer(brain.settings.recall.language, brain.zone)
    rows = [(shown_hit(each.hit, query, analyzer, brain.zone), each.id, reasons(each.hit)) for each in found.matches]
    # a list without words to be near has nothing that would be unsure
    sure = [row for row in rows if row[0].hit.is_sure or not without_fields(query).strip()]
    perhaps = [row for row in rows if row not in sure]
    more = min(MOST, limit + STEP) if found.cursor and limit < MOST else 0
    groups = [group for group in (("Found", sure), ("Perhaps", perhaps)) if group[1]]
    return values | {"groups": groups, "more": more}


PAGES = (Page("/search", "Search", search),)
