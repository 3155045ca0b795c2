"""Calls within the budget: the worst case is set aside while one runs, what it took is journaled after it.

A call that failed counts too where the server may have worked on it, though nobody says how much: its input, what it
said, and for a reasoning model, whose thinking is not seen, all that it might have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from brainiac.clock import SYSTEM
from brainiac.llm import completion as calls
from brainiac.llm.catalog import FREE, facts
from brainiac.llm.completion import Completion
from brainiac.llm.context import tokens
from brainiac.llm.costs import EMBED, Ledger, Usage
from brainiac.llm.endpoints import Endpoint
from brainiac.llm.gate import released_texts


@dataclass(slots=True)
class Metered:
    """A call; `usage` and `cost_usd` are known when it is over."""

    completion: Completion = field(default_factory=Completion)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0


@contextmanager
def metered(
    ledger: Ledger,
    endpoint: Endpoint,
    purpose: str,
    input_tokens: int,
    max_tokens: int,
    cause: str | None = None,
    about: str = "",
) -> Iterator[Metered]:
    """Give a call to fill in, within the budget, and journal it.

    Args:
        ledger: The brain's.
        endpoint: Where the model is.
        purpose: What it is for.
        input_tokens: An estimate.
        max_tokens: The longest answer.
        cause: Id of the event that led here.
        about: Id of the prompt or exchange that it deals with.

    Raises:
        BudgetError: It does not fit the budget; it is not made.
    """
    price, call, started = ledger.price_of(endpoint), Metered(), SYSTEM.monotonic()
    with ledger.reserved(purpose, price.worst(input_tokens, max_tokens)):
        try:
            yield call
        finally:
            usage = call.usage = call.completion.usage or _estimated(call, endpoint.model, input_tokens, max_tokens)
            call.cost_usd = price.cost(usage.input, usage.output, usage.cached, usage.written)
            if call.completion.is_begun:
                took_ms = round((SYSTEM.monotonic() - started) * 1000)
                is_remote = not endpoint.is_local
                cost = call.cost_usd
                ledger.record(purpose, endpoint.model, usage, cost, took_ms, cause, is_remote=is_remote, about=about)


def _estimated(call: Metered, model: str, input_tokens: int, max_tokens: int) -> Usage:
    done = call.completion
    if not done.finish and facts(model).is_reasoning:
        return Usage(input_tokens, max_tokens)
    said = done.text + "".join(tool.arguments for tool in done.tool_calls)
    return Usage(input_tokens, tokens.count(said, model) if said else 0)


def embedded(
    endpoint: Endpoint, texts: Sequence[str], timeout_seconds: float, ledger: Ledger | None
) -> list[list[float]]:
    """Return the vectors of texts; what is free here is not journaled, since every page and question is a call.

    Raises:
        ModelError: It failed, or does not fit the budget.
    """
    released = released_texts(texts, endpoint)
    if ledger is None or (endpoint.is_local and ledger.price_of(endpoint) == FREE):
        return calls.embed(endpoint, released, timeout_seconds, Completion())
    estimate = sum(tokens.count(text, endpoint.model) for text in texts)
    with metered(ledger, endpoint, EMBED, estimate, 0) as call:
        return calls.embed(endpoint, released, timeout_seconds, call.completion)
