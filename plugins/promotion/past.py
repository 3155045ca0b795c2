"""Catching up: exchanges that were consolidated without a model go to one, window by window, oldest first.

It is the same in place (`promote --past`) and in a brain that was just made from another's raw exchanges (`rebuild`).
Each window is one consolidating call and one commit, so that a run which ends early, however it ends, goes on where it
was. The commits have the event of the catch-up as their cause, by which one `undo` takes all of them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from brainiac.brain import Brain
from brainiac.clock import parse_iso
from brainiac.errors import ModelError, UserError
from brainiac.events import CatchUpEnded, CatchUpStarted, Event
from brainiac.formats.short_term import StmEvent
from brainiac.history.digest import write_digest
from brainiac.llm.catalog import count
from brainiac.llm.schemas import OFFLINE, Purpose
from brainiac.storage.files import locked
from brainiac.storage.said import FiledExchanges, WaitingExchanges, exchanges_in_pages

from .filing import NAME
from .known import MAX_SHOWN
from .request import parts_of
from .run import Outcome, Run, empty_request, joined, readers

# What a call takes besides what was said, measured on two recorded months: the request's fixed part and what is known,
# and the answer's tokens for an exchange. Pages are named by further calls, most of them small.
FIXED_TOKENS, TOKENS_OF_STATEMENT, OUTPUT_TOKENS = 2600, 30, 400
VERIFY_TOKENS, TOKENS_OF_CLAIMS, TOKENS_OF_VERDICTS = 1000, 80, 40  # second reader, estimated
AT_ONCE = 1000  # exchanges whose pages are read together
PURPOSES = (Purpose.CONSOLIDATE, Purpose.VERIFY, Purpose.SYNTHESIZE)


@dataclass(slots=True)
class Past:
    """The exchanges that no model has consolidated, and what handing them to one would take, about.

    Attributes:
        model: The model that would read them.
        since: The first day that is asked for; "" for all.
        exchanges: How many it would read.
        first_day: Of these; "" where there are none.
        last_day: Of these.
        withheld: Those that it may not see: they are private, and it is not on this machine.
        gone: Those that are on no page any more.
        calls: Consolidating calls.
        input_tokens: Of all calls.
        output_tokens: Of all calls.
        cost_usd: Of all calls.
        left_usd: What is left of today's budget.
    """

    model: str
    since: str = ""
    exchanges: int = 0
    first_day: str = ""
    last_day: str = ""
    withheld: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    left_usd: float = 0.0


def require_model(brain: Brain, model: str) -> str:
    """Return the name of the model that would read the exchanges.

    Args:
        brain: The brain.
        model: The model for this run; "" for that of the settings. It serves the brain from here on.

    Raises:
        UserError: No model is set.
        ModelError: The model's price or key is not known.
    """
    if model:
        brain.models.instead |= dict.fromkeys(PURPOSES, model)
    request = empty_request(brain, is_private=False)
    engine = brain.models.engine_for(request)
    if engine.name == OFFLINE:
        raise UserError("no model is set that could read them; set `llm.model`, or name one with --model")
    brain.models.price_of(request)  # raises without a price or key
    return engine.name


class CatchUp:
    """What a model is to read of a brain, and the reading: of the exchanges that none has read, oldest first.

    Made, it has changed no file and called no model.

    Args:
        brain: The brain.
        since: The first day, ISO 8601; "" for all.
        model: The model for this run; "" for that of the settings. It serves the brain from here on.

    Attributes:
        plan: What it would do and cost.

    Raises:
        UserError: No model is set.
        ModelError: The model's price or key is not known.
    """

    def __init__(self, brain: Brain, since: str = "", model: str = "") -> None:
        self._brain, self.plan = brain, Past(require_model(brain, model), since)
        brain.projection.follow()
        # whether there is a model for exchanges that are private, and for others
        filings, found, rows, may_see = FiledExchanges(brain), set[str](), list[tuple[str, str, bool]](), readers(brain)
        ids = sorted(filings.without_model, key=filings.page_of)  # so that each page is read about once
        for event in self._read(ids):
            found.add(event.id)
            if brain.day_of(event.at) < since:
                continue
            if not may_see[event.is_private]:
                self.plan.withheld.append(event.id)
            else:
                rows.append((event.at, event.id, event.is_private))
        self.plan.gone = [exchange for exchange in ids if exchange not in found]
        rows.sort()
        self._unread = {exchange for _, exchange, _ in rows}
        # private exchanges go to a model apart: it may be another one
        self._ids = [[exchange for _, exchange, is_private in rows if is_private == value] for value in (False, True)]
        self._estimate()

    def _read(self, ids: Sequence[str]) -> Iterator[StmEvent]:
        """Yield exchanges as their pages have them by now, a few pages at once."""
        for start in range(0, len(ids), AT_ONCE):
            part = ids[start : start + AT_ONCE]
            found = exchanges_in_pages(self._brain, part)
            yield from (found[exchange][1] for exchange in part if exchange in found)

    def _windows(self) -> Iterator[list[StmEvent]]:
        """Yield as many exchanges as one call takes, oldest first, the private ones after all others."""
        # the windows do not depend on what was read already: a run that is begun again asks the same questions, and the
        # answers that were paid for serve it
        for ids in self._ids:
            yield from parts_of(self._read(ids), self._begins_part)

    def _begins_part(self, part: Sequence[StmEvent], event: StmEvent) -> bool:
        """Return whether a promotion would have been due between some exchanges and the next one.

        Then they are not read together: a statement that changed between them gets its History, as it would have had.
        """
        settings, idle, age = self._brain.settings.promotion, 0.0, 0.0
        with suppress(ValueError):  # of an import that has no moments
            idle, age = ((parse_iso(event.at) - parse_iso(row.at)).total_seconds() for row in (part[-1], part[0]))
        is_enough = len(part) >= settings.min_events or age > settings.max_age_hours * 3600
        return idle >= settings.idle_seconds and is_enough

    def _estimate(self) -> None:
        """Put into the plan how many exchanges and calls there are, and what they cost."""
        brain, plan = self._brain, self.plan
        n_statements = sum(len(page.statements) for page in brain.pages().memories.values())
        for window in self._windows():
            plan.calls += 1
            days = [brain.day_of(event.at) for event in window]
            plan.first_day = min(plan.first_day or days[0], *days)
            plan.last_day = max(plan.last_day, *days)
            said_tokens = sum(count(f"{event.user}\n{event.ai}", plan.model) for event in window)
            # about one statement becomes of each exchange in the windows before
            n_known = min(n_statements + plan.exchanges, MAX_SHOWN)
            plan.input_tokens += FIXED_TOKENS + VERIFY_TOKENS + 2 * said_tokens
            plan.input_tokens += n_known * TOKENS_OF_STATEMENT + TOKENS_OF_CLAIMS * len(window)
            plan.output_tokens += (OUTPUT_TOKENS + TOKENS_OF_VERDICTS) * len(window)
            plan.exchanges += len(window)
        price = brain.models.price_of(empty_request(brain, is_private=False))
        plan.cost_usd = price.worst(plan.input_tokens, plan.output_tokens)
        plan.left_usd = max(0.0, brain.settings.llm.daily_budget_usd - sum(brain.models.ledger.spent_today()))

    def run(self, progress: Callable[[int, int], None] | None = None) -> tuple[Event, Outcome]:
        """Have the model read the exchanges; a catch-up that was interrupted is continued.

        Args:
            progress: Called with the number of exchanges that are read, and of all.

        Returns:
            The event by whose id all of it is undone, and what was done; its `problem` says why it ended early.

        Raises:
            LockedError: Another process promotes this brain at this moment.
        """
        brain, plan = self._brain, self.plan
        outcome, n_read, left, gone = Outcome(), 0, dict[str, str](), plan.gone
        with locked(brain.places.state / "promotion.lock", wait_seconds=0):
            what = CatchUpStarted(exchanges=plan.exchanges, since=plan.since, model=plan.model)
            # only the event at the end says what was withheld
            sql = (
                "SELECT run FROM catch_ups WHERE device = ? GROUP BY run HAVING max(withheld) IS NULL ORDER BY run DESC"
            )
            interrupted = brain.journal.find(brain.projection.value(sql, brain.journal.device) or "")
            started = interrupted or brain.record(what, by=NAME)
            # those that are on no page any more end with the first window: an empty one where none is to be read
            for window in self._windows() if plan.exchanges else [list[StmEvent]()] if gone else []:
                filed = WaitingExchanges(window, gone, is_partial=True)
                try:
                    next_outcome = Run(brain, brain.short_term().memory, filed, None, started.id, self._unread).run()
                except ModelError as error:
                    next_outcome = Outcome(problem=f"{error.problem} {error.advice}".strip())
                outcome = joined(outcome, next_outcome)
                left |= next_outcome.left
                if outcome.problem:
                    break
                gone = []
                self._unread -= {event.id for event in window}
                n_read += len(window)
                if progress:
                    progress(n_read, plan.exchanges)
            else:
                brain.record(CatchUpEnded(withheld=tuple(plan.withheld)), by=NAME, cause=started.id)
        if outcome.event is not None:
            write_digest(brain)
        return started, replace(outcome, left=left)
