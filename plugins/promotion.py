"""Promotion: while it is quiet, what was said moves into long-term memory (seeds S12, P5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainiac import hookimpl
from brainiac.clock import parse_iso
from brainiac.errors import LockedError

if TYPE_CHECKING:
    from brainiac.brain import Brain

NAME = "promotion"
RETRY_SECONDS = 600.0  # after a run that ended early; the model that failed is left in peace


@hookimpl
def quiet(brain: Brain, idle_seconds: float) -> None:
    """Promote when it is due; what cannot be done now stays for the next quiet."""
    from brainiac.promotion.due import is_due
    from brainiac.promotion.run import promote  # here: an answer waits for no plugin's imports

    if not is_due(brain, idle_seconds) or _failed_lately(brain):
        return
    last = brain.answered.last_exchange_at
    try:
        outcome = promote(brain, abandon=lambda: brain.answered.last_exchange_at != last)
    except LockedError:
        return  # somebody runs `brainiac promote`
    brain.log.info(
        "promoted", exchanges=outcome.exchanges, statements=outcome.statements, left=len(outcome.left),
        refused=len(outcome.refused), kept=len(outcome.kept), filed=len(outcome.filed), problem=outcome.problem,
    )  # fmt: skip


def _failed_lately(brain: Brain) -> bool:
    """Tell whether the last run began a short while ago and came to nothing."""
    kinds = {"promotion-started", "memory-promoted"}
    last = next(brain.journal.events(kinds=kinds, reverse=True), None)
    if last is None or last.kind != "promotion-started":
        return False
    # less than nothing where the clock was put back
    return 0 <= (brain.clock.now() - parse_iso(last.at)).total_seconds() < RETRY_SECONDS
