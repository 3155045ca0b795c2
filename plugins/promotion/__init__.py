"""Promotion: while it is quiet, what was said moves into long-term memory.

Where it is never quiet, the oldest exchanges are filed without a model, so that short-term memory stays small.
"""

from __future__ import annotations

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.clock import is_within
from brainiac.errors import ConflictError, FormatError, LockedError, StorageError
from brainiac.events import MemoryPromoted, PromotionStarted

NAME = "promotion"
RETRY_SECONDS = 600.0  # after a run that ended early; the model that failed is left in peace


@hookimpl
def response_arrived(brain: Brain) -> None:
    """File the oldest exchanges where short-term memory is too full; Reflection, called before, has noted this one.

    A failure is logged and not raised: the hook would otherwise be called again with the same exchange.
    """
    text = brain.read(brain.tree.short_term) or b""
    if len(text) <= brain.settings.promotion.max_tokens:  # a token is a byte or more
        return
    from . import filing  # here: an answer waits for no plugin's imports

    try:
        event = filing.file_overflow(brain)
    except (ConflictError, FormatError, StorageError) as error:
        brain.log.warning("filing_postponed", problem=str(error))
    else:
        brain.log.info("filed", exchanges=len(event.data["exchanges"]) if event else 0)


@hookimpl
def quiet(brain: Brain, idle_seconds: float) -> None:
    """Promote when it is due; events that cannot be decided now stay for the next quiet."""
    from . import filing, over, run  # here: an answer waits for no plugin's imports

    filing.tidy_inbox(brain)
    if ended := over.end_what_is_over(brain):
        brain.log.info("ended", statements=ended)
    if not run.is_due(brain, idle_seconds) or _failed_lately(brain):
        return
    last = brain.answered.last_exchange_at
    try:
        outcome = run.promote(brain, abandon=lambda: brain.answered.last_exchange_at != last)
    except LockedError:
        return  # somebody runs `brainiac promote`
    brain.log.info(
        "promoted", exchanges=outcome.exchanges, statements=outcome.statements, left=len(outcome.left),
        refused=len(outcome.refused), kept=len(outcome.kept), filed=len(outcome.filed), problem=outcome.problem,
    )  # fmt: skip


def _failed_lately(brain: Brain) -> bool:
    """Return whether the last run began less than ten minutes ago and committed nothing."""
    kinds = {PromotionStarted, MemoryPromoted}
    last = next(brain.journal.events(kinds=kinds, reverse=True), None)
    if last is None or last.kind != PromotionStarted.kind:
        return False
    return is_within(RETRY_SECONDS, last.at, brain.clock.now())
