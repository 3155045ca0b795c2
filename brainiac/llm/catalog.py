"""What is known of models by name: window and prices, read from the list that litellm ships, without importing it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brainiac.llm.context.tokens import litellm_folder

UNKNOWN_WINDOW_TOKENS = 8_192
_LIST = "model_prices_and_context_window_backup.json"


@dataclass(frozen=True, slots=True)
class Price:
    """USD per token."""

    fresh: float
    output: float
    cached: float
    cache_write: float

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0) -> float:
        """Return USD for a call.

        Args:
            input_tokens: All that was read, cached and written ones included.
            output_tokens: All that was generated.
            cached_tokens: Of the input, those read from the provider's cache.
            written_tokens: Of the input, those written to it.
        """
        plain = max(0, input_tokens - cached_tokens - written_tokens)
        read = plain * self.fresh + cached_tokens * self.cached + written_tokens * self.cache_write
        return read + output_tokens * self.output

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most a call can cost: nothing cached, everything written, the whole output used."""
        return input_tokens * max(self.fresh, self.cache_write) + output_tokens * self.output


FREE = Price(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the list says of one model; defaults where it says nothing.

    Attributes:
        price: None where unknown.
        has_tools: None where unknown.
    """

    window_tokens: int = UNKNOWN_WINDOW_TOKENS
    max_output_tokens: int | None = None
    price: Price | None = None
    has_tools: bool | None = None
    is_reasoning: bool = False


@lru_cache(maxsize=1)
def _listed() -> dict[str, dict[str, Any]]:
    folder = litellm_folder()
    try:
        return json.loads((folder / _LIST).read_bytes()) if folder else {}
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=256)
def facts(model: str) -> ModelFacts:
    """Return what is known of a model by its litellm name, `provider/model` or a bare one."""
    listed = _entry(model)
    if listed is None:
        return ModelFacts()
    window = listed.get("max_input_tokens") or listed.get("max_tokens")
    return ModelFacts(
        window_tokens=int(window or UNKNOWN_WINDOW_TOKENS),
        max_output_tokens=listed.get("max_output_tokens"),
        price=_price(listed),
        has_tools=bool(listed.get("supports_function_calling")),
        is_reasoning=bool(listed.get("supports_reasoning")),
    )


def provider_of(model: str) -> str:
    """Return litellm's name of a model's provider; `openai` for a bare name that no list knows."""
    listed = _listed()
    prefix, slash, _ = model.partition("/")
    if slash:
        return prefix
    return str(listed.get(model, {}).get("litellm_provider") or "openai")


def _entry(model: str) -> dict[str, Any] | None:
    known = _listed()
    provider, _, name = model.partition("/")
    if model in known:
        return known[model]
    bare = known.get(name)
    return bare if bare and bare.get("litellm_provider") == provider else None


def _price(listed: dict[str, Any]) -> Price | None:
    needed = {"input_cost_per_token"} | (set() if listed.get("mode") == "embedding" else {"output_cost_per_token"})
    if not needed <= listed.keys():
        return None
    fresh = float(listed["input_cost_per_token"] or 0)
    return Price(
        fresh=fresh,
        output=float(listed.get("output_cost_per_token") or 0),
        cached=float(listed.get("cache_read_input_token_cost") or fresh),
        cache_write=float(listed.get("cache_creation_input_token_cost") or fresh),
    )
