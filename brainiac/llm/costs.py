"""The costs of model calls: checked against the budget before each call, journaled after it."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from brainiac.clock import SYSTEM, iso
from brainiac.errors import BudgetError, storage_trouble
from brainiac.events import ModelCalled
from brainiac.library import Library
from brainiac.llm.catalog import FREE, Endpoint, Price, facts
from brainiac.llm.schemas import Purpose
from brainiac.storage.files import locked

_OWNER = "running calls"  # of what the database keeps
EMBED = "embed"  # the purpose of calls to an embedding model
MAX_TIMEOUTS = 5  # a whole answer may take so many timeouts; one timeout is for the wait between two pieces
FOREGROUND: frozenset[str] = frozenset({Purpose.QUERIES, Purpose.ANSWER})
PROCESSES: dict[str, str] = {  # the process that makes the calls of a purpose
    Purpose.QUERIES: "core_loop",
    Purpose.ANSWER: "core_loop",
    Purpose.REFLECT: "reflection",
    Purpose.ORGANIZE: "organization",
    EMBED: "recall",
}  # all others: promotion


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `cached` and `written` (to the provider's cache) are part of `input`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0


class Claim(NamedTuple):
    """What a running call may still cost.

    Attributes:
        is_background: Whether it counts against the budget of background work.
        usd: The highest cost.
        ends_at: When the call is over for sure and the claim expires, epoch seconds.
    """

    is_background: bool
    usd: float
    ends_at: float


class Ledger:
    """The account of this device: what was spent today (the person's day), and what running calls may still cost.

    The highest costs of running calls stand in the state database, so that calls in several threads and
    processes together stay within the budget. A claim that a crash left there expires.
    """

    def __init__(self, library: Library) -> None:
        self._library = library

    def price_of(self, endpoint: Endpoint) -> Price:
        """Return a model's price: that of the settings, 0 for a model on this machine, else the published one.

        Raises:
            BudgetError: No price is known.
        """
        model = endpoint.model
        if usd_per_million := self._library.settings.llm.prices.get(model):
            # the settings have no prices of tokens in the provider's cache: they count like any others
            fresh, output = (usd / 1e6 for usd in usd_per_million)
            return Price(fresh=fresh, output=output, cached=fresh, cache_write=fresh)
        if price := FREE if endpoint.is_local else facts(model).price:
            return price
        raise BudgetError(
            f"The price of `{model}` is not known, so no call to it is made.",
            advice="Set it in system/config.yaml, USD per million tokens in and out: "
            f"llm.prices: {{{model}: [1.0, 4.0]}}.",
        )

    @contextmanager
    def reserved(self, purpose: str, worst_usd: float) -> Iterator[None]:
        """Reserve the highest cost of a call while it runs.

        Raises:
            BudgetError: It is more than is left of today's budget; retryable where it fits into a whole day's budget.
        """
        # a free call needs no claim, and no lock that other processes wait for
        if worst_usd <= 0:
            yield
            return
        # a random name and the system's clock, since other threads and processes have claims too
        name, is_background, now = secrets.token_hex(8), purpose not in FOREGROUND, SYSTEM.now().timestamp()
        database = self._library.database
        # by then the call is over, with a timeout to spare: the claim of a process that was killed ends by itself
        ends_at = now + (MAX_TIMEOUTS + 1) * self._library.settings.llm.timeout_seconds
        # checked and claimed under one lock: two calls that fit singly may not fit together
        with storage_trouble(), locked(self._library.journal.lock):
            claims = {key: Claim(*json.loads(text)) for key, text in database.kept(_OWNER).items()}
            running = {key: claim for key, claim in claims.items() if claim.ends_at > now}
            for key in claims.keys() - running.keys():
                database.drop(_OWNER, key)
            self._check(is_background, worst_usd, running.values())
            database.keep(_OWNER, name, json.dumps(Claim(is_background, worst_usd, ends_at)))
        try:
            yield
        finally:
            with storage_trouble():
                database.drop(_OWNER, name)

    def record(self, call: ModelCalled, cause: str | None = None) -> None:
        """Journal a call: numbers only, never a text.

        Args:
            call: The event.
            cause: The id of the journal event that led to the call.
        """
        self._library.record(call, by=PROCESSES.get(call.purpose, "promotion"), cause=cause)

    def spent_today(self) -> tuple[float, float]:
        """Return USD spent today on answers and on background work."""
        self._library.projection.follow()
        rows = self._library.projection.query(
            "SELECT purpose, sum(cost_usd) FROM calls WHERE device = ? AND at >= ? GROUP BY purpose",
            self._library.journal.device,
            iso(self._library.midnight()),
        )
        answers = sum(usd for purpose, usd in rows if purpose in FOREGROUND)
        return float(answers), float(sum(usd for _, usd in rows) - answers)

    def _check(self, is_background: bool, worst_usd: float, claims: Collection[Claim]) -> None:
        """Check that a call with this highest cost fits into today's limits, beside today's calls and the claims.

        Raises:
            BudgetError: It does not; retryable where it fits into tomorrow's limit.
        """
        settings, (answers_usd, background_usd) = self._library.settings.llm, self.spent_today()
        background_usd += sum(claim.usd for claim in claims if claim.is_background)
        total_usd = answers_usd + background_usd + sum(claim.usd for claim in claims if not claim.is_background)
        limits = [("llm.daily_budget_usd", settings.daily_budget_usd, total_usd)]
        # answers may use the whole budget, background work only its share: it must not use up what answers need
        if is_background and settings.background_budget_usd is not None:
            limits.append(("llm.background_budget_usd", settings.background_budget_usd, background_usd))
        for setting, limit_usd, spent_usd in limits:
            if spent_usd + worst_usd <= limit_usd:
                continue
            seconds = (self._library.midnight(1) - self._library.clock.now()).total_seconds()
            fits_tomorrow = worst_usd <= limit_usd
            raise BudgetError(
                f"This call may cost up to ${worst_usd:.4f}; ${spent_usd:.4f} of today's ${limit_usd:.2f} ({setting}) "
                "is spent.",
                retryable=fits_tomorrow,
                retry_after_seconds=seconds if fits_tomorrow else None,
                advice=f"Raise {setting} in system/config.yaml"
                + (", or wait: it starts anew at midnight." if fits_tomorrow else ", or choose a cheaper model."),
            )


@dataclass(frozen=True, slots=True)
class CostRow:
    """The sum of the calls of one day, process, purpose and model."""

    day: str
    process: str
    purpose: str
    model: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float


def cost_rows(library: Library, since_day: str = "") -> list[CostRow]:
    """Return the sums of this device's calls by day, process, purpose and model, newest day first.

    Args:
        library: The memory whose calls are summed.
        since_day: The first day, an ISO date in the person's time zone; "" for all.
    """
    library.projection.follow()
    calls = library.projection.query(
        "SELECT at, by, purpose, model, input_tokens, cached_tokens, output_tokens, cost_usd FROM calls"
        " WHERE device = ?1 AND (?2 = '' OR at >= date(?2, '-1 day'))",  # stamps are UTC, days are the person's
        library.journal.device,
        since_day,
    )
    groups: dict[tuple[str, str, str, str], list[list[float]]] = defaultdict(list)
    for at, process, purpose, model, *figures in calls:
        # the query has a day more
        if (day := library.day_of(at)) >= since_day:
            groups[day, process, purpose, model].append(figures)
    rows = []
    for key, group in groups.items():
        input_tokens, cached_tokens, output_tokens, usd = map(sum, zip(*group, strict=True))
        rows.append(CostRow(*key, len(group), input_tokens, cached_tokens, output_tokens, round(usd, 8)))
    # sorting is stable: newest day first, within a day by name
    rows.sort(key=lambda row: (row.process, row.purpose, row.model))
    return sorted(rows, key=lambda row: row.day, reverse=True)
