"""What models cost: checked against the budget before each call, journaled after it, so that it survives restarts."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brainiac.clock import SYSTEM, iso
from brainiac.errors import BudgetError, storage_trouble
from brainiac.events import Event
from brainiac.library import Library
from brainiac.llm.catalog import FREE, Endpoint, Price, facts
from brainiac.llm.schemas import Purpose
from brainiac.settings import ModelSettings
from brainiac.storage.files import locked, make_way

Claim = tuple[bool, float, float]  # whether it is background work, USD, epoch seconds when the call is surely over

KIND = "model-called"
EMBED = "embed"  # what a call to an embedding model is for
PATIENCE = 5  # times the timeout that a whole answer may take; the timeout itself is for each wait
FOREGROUND: frozenset[str] = frozenset({Purpose.QUERIES, Purpose.ANSWER})
PROCESSES: dict[str, str] = {
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


def price_of(model: str, settings: ModelSettings, *, is_local: bool) -> Price:
    """Return what a model costs: the setting, nothing for one on this machine, else the published price.

    Raises:
        BudgetError: Nobody knows.
    """
    if own := settings.prices.get(model):
        fresh, output = own[0] / 1e6, own[1] / 1e6
        return Price(fresh, output, fresh, fresh)
    if is_local:
        return FREE
    if published := facts(model).price:
        return published
    raise BudgetError(
        f"The price of `{model}` is not known, so no call to it is made.",
        advice=f"Set it in system/config.yaml, USD per million tokens in and out: llm.prices: {{{model}: [1.0, 4.0]}}.",
    )


class Ledger:
    """Today's spend (the person's day) of this device, from its journal, and what calls in flight may still cost.

    Calls that run side by side, in threads or processes, cannot together pass the budget: what they may cost stands in
    a file of the state folder. A claim that a crash left there ends when its call would have.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._mutex = threading.Lock()
        self._since, self._seq = "", 0
        self._spent = {True: 0.0, False: 0.0}  # by whether it is background work

    def price_of(self, endpoint: Endpoint) -> Price:
        """Return what the model at an endpoint costs; see `price_of`."""
        return price_of(endpoint.model, self._library.settings.llm, is_local=endpoint.is_local)

    @contextmanager
    def reserved(self, purpose: str, worst_usd: float) -> Iterator[None]:
        """Set a call's worst case aside while it runs.

        Raises:
            BudgetError: It does not fit into what is left of today's budget; retryable where tomorrow's would do.
        """
        if worst_usd <= 0:
            yield
            return
        name, is_background = secrets.token_hex(8), purpose not in FOREGROUND
        ends_at = SYSTEM.now().timestamp() + (PATIENCE + 1) * self._library.settings.llm.timeout_seconds
        with self._claims() as claims:
            self._check(is_background, worst_usd, claims.values())
            claims[name] = (is_background, worst_usd, ends_at)
        try:
            yield
        finally:
            with self._claims() as claims:
                claims.pop(name, None)

    def record(
        self,
        purpose: str,
        model: str,
        usage: Usage,
        cost_usd: float,
        took_ms: int,
        cause: str | None = None,
        *,
        is_remote: bool = True,
        about: str = "",
    ) -> None:
        """Journal a call: numbers only, never a text.

        Args:
            purpose: What it was for.
            model: Which.
            usage: Its tokens.
            cost_usd: What it cost.
            took_ms: How long it took.
            cause: Id of the journal event that led to it.
            is_remote: Whether it left this machine.
            about: Id of the prompt or exchange that it dealt with.
        """
        data = {
            "purpose": str(purpose),
            "model": model,
            "is_remote": is_remote,
            **({"about": about} if about else {}),
            "input_tokens": usage.input,
            "cached_tokens": usage.cached,
            "output_tokens": usage.output,
            "cost_usd": round(cost_usd, 8),
            "took_ms": took_ms,
        }
        self._library.record(KIND, by=PROCESSES.get(purpose, "promotion"), data=data, cause=cause)

    def spent_today(self) -> tuple[float, float]:
        """Return USD spent today on answers and on background work."""
        with self._mutex:
            self._catch_up()
            return self._spent[False], self._spent[True]

    @contextmanager
    def _claims(self) -> Iterator[dict[str, Claim]]:
        """Give what calls in flight may cost, to be changed, while no other thread or process looks."""
        path = self._library.places.state / "claims.json"
        with storage_trouble(), locked(path.with_suffix(".lock")):
            make_way(path)
            now = SYSTEM.now().timestamp()
            claims = {name: claim for name, claim in _claims_in(path).items() if claim[2] > now}
            yield claims
            draft = path.with_suffix(".tmp")
            draft.write_text(json.dumps(claims), encoding="utf-8")
            os.replace(draft, path)

    def _check(self, is_background: bool, worst_usd: float, claims: Collection[Claim]) -> None:
        settings = self._library.settings.llm
        with self._mutex:
            self._catch_up()
        limits: list[tuple[str, float, tuple[bool, ...]]] = [
            ("llm.daily_budget_usd", settings.daily_budget_usd, (True, False))
        ]
        if is_background and settings.background_budget_usd is not None:
            limits.append(("llm.background_budget_usd", settings.background_budget_usd, (True,)))
        for name, limit, kinds in limits:
            spent = sum(self._spent[kind] for kind in kinds)
            spent += sum(usd for kind, usd, _ in claims if kind in kinds)
            if spent + worst_usd > limit:
                raise self._over(name, limit, spent, worst_usd)

    def _over(self, name: str, limit: float, spent: float, worst_usd: float) -> BudgetError:
        seconds = (self._library.midnight(1) - self._library.clock.now()).total_seconds()
        fits_tomorrow = worst_usd <= limit
        return BudgetError(
            f"This call may cost up to ${worst_usd:.4f}; ${spent:.4f} of today's ${limit:.2f} ({name}) is spent.",
            retryable=fits_tomorrow,
            retry_after_seconds=seconds if fits_tomorrow else None,
            advice=f"Raise {name} in system/config.yaml"
            + (", or wait: it starts anew at midnight." if fits_tomorrow else ", or choose a cheaper model."),
        )

    def _catch_up(self) -> None:
        """Take in what the journal gained since last time; the mutex is held."""
        since = iso(self._library.midnight())
        if since != self._since:
            self._since, self._spent = since, {True: 0.0, False: 0.0}
            events = _until(self._library.journal.events(reverse=True), since)
        else:
            events = list(self._library.journal.events(since_seq=self._seq))
        for event in events:
            self._seq = max(self._seq, event.seq)
            if event.kind == KIND and event.at >= since:
                is_background = event.data.get("purpose") not in FOREGROUND
                self._spent[is_background] += float(event.data.get("cost_usd", 0.0))


def _claims_in(path: Path) -> dict[str, Claim]:
    """Read the claims; none where the file is missing or damaged: calls in flight end soon."""
    try:
        claims = json.loads(path.read_bytes())
        return {name: (bool(kind), float(usd), float(until)) for name, (kind, usd, until) in claims.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def _until(newest_first: Iterable[Event], since: str) -> list[Event]:
    found = []
    for event in newest_first:
        found.append(event)  # the first one of an earlier day too: it marks how far was read
        if event.at < since:
            break
    return found


@dataclass(frozen=True, slots=True)
class CostRow:
    """Calls of one day, process and model, added up."""

    day: str
    process: str
    purpose: str
    model: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float


def cost_rows(events: Iterable[Event], day_of: Callable[[str], str], since_day: str = "") -> list[CostRow]:
    """Add up the journal's calls by day, process, purpose and model; newest day first.

    Args:
        events: Any events of the journal.
        day_of: Returns the person's day of a stamp.
        since_day: ISO date; older ones are left out.
    """
    totals: dict[tuple[str, str, str, str], list[float]] = {}
    for event in events:
        if event.kind != KIND or (day := day_of(event.at)) < since_day:
            continue
        data = event.data
        key = (day, event.by, str(data.get("purpose", "")), str(data.get("model", "")))
        numbers = [1, *(data.get(name, 0) for name in ("input_tokens", "cached_tokens", "output_tokens", "cost_usd"))]
        totals[key] = [a + b for a, b in zip(totals.get(key, [0] * 5), numbers, strict=True)]
    rows = [CostRow(*key, *_whole(sums), cost_usd=round(sums[4], 8)) for key, sums in totals.items()]
    rows.sort(key=lambda row: (row.process, row.purpose, row.model))
    return sorted(rows, key=lambda row: row.day, reverse=True)


def _whole(sums: list[float]) -> tuple[int, int, int, int]:
    return int(sums[0]), int(sums[1]), int(sums[2]), int(sums[3])
