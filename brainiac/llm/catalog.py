"""Facts about a model by its name: window, prices, tokens, the endpoint that serves it, and its key.

Endpoints and keys come from the environment or this machine's own config, never from the tree, since a synced
`config.yaml` must not send a key to a stranger.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from brainiac.errors import ModelError
from brainiac.settings import MachineSettings

UNKNOWN_WINDOW_TOKENS = 8_192
_PRICE_LIST = "model_prices_and_context_window_backup.json"
# sha1 of the address tiktoken would download the table from: its name in a cache folder
_CL100K_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_PIECE_CHARS = 8_000  # texts are counted in pieces, since a very long run of spaces overflows the tokenizer's stack
_OTHERS_MARGIN = 1.15  # models of other families than OpenAI's need up to so many times the tokens
# the usual addresses of local servers: named here, so that it is certain that nothing leaves the machine
LOCAL_DEFAULTS = {
    "ollama": "http://127.0.0.1:11434",
    "ollama_chat": "http://127.0.0.1:11434",
    "lm_studio": "http://127.0.0.1:1234/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
}
_NO_KEY = "none"  # clients refuse to call without one; servers that need none ignore it
_NAME = re.compile(r"[\w.:@+-]+(?:/[\w.:@+-]+)*", re.ASCII)
# a local Ollama forwards models of such names (`glm-4.6:cloud`, `gpt-oss:120b-CLOUD`) to the servers of its makers
_IN_THE_CLOUD = re.compile(r"(?<![a-z0-9])cloud(?![a-z0-9])", re.IGNORECASE)


# --- window and prices, from the list that litellm ships -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Price:
    """USD per token.

    Attributes:
        fresh: Of the input.
        output: Of the answer.
        cached: Of input that is read from the provider's cache.
        cache_write: Of input that is written to it.
    """

    fresh: float
    output: float
    cached: float
    cache_write: float

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int, written_tokens: int) -> float:
        """Return the cost of a call in USD.

        Args:
            input_tokens: All input tokens, cached and written ones included.
            output_tokens: All generated tokens.
            cached_tokens: The input tokens that were read from the provider's cache.
            written_tokens: The input tokens that were written to it.
        """
        fresh_tokens = max(0, input_tokens - cached_tokens - written_tokens)
        input_usd = fresh_tokens * self.fresh + cached_tokens * self.cached + written_tokens * self.cache_write
        return input_usd + output_tokens * self.output

    def worst(self, input_tokens: int, output_tokens: int) -> float:
        """Return the highest cost of a call in USD: nothing is read from the cache, and the whole output is used."""
        return input_tokens * max(self.fresh, self.cache_write) + output_tokens * self.output


FREE = Price(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The entry of one model in litellm's list; defaults for a model that it does not have.

    Attributes:
        window_tokens: The longest input.
        max_output_tokens: The longest answer; None where unknown.
        price: None where unknown.
        has_tools: Whether it takes tools; None where unknown.
        is_reasoning: Whether it spends output tokens on thoughts that are not shown.
    """

    window_tokens: int = UNKNOWN_WINDOW_TOKENS
    max_output_tokens: int | None = None
    price: Price | None = None
    has_tools: bool | None = None
    is_reasoning: bool = False


@lru_cache(maxsize=256)
def facts(model: str) -> ModelFacts:
    """Return the facts about a model by its litellm name, `provider/model` or only `model`."""
    models = _price_list()
    provider, _, bare_name = model.partition("/")
    # the list has some models with their provider's name before them, some without
    entry = models.get(model)
    if entry is None:
        entry = models.get(bare_name, {})
        if entry.get("litellm_provider") != provider:
            return ModelFacts()
    # only an embedding model has no output; for any other one a missing output price is unknown, not zero
    needed = {"input_cost_per_token"} | (set() if entry.get("mode") == "embedding" else {"output_cost_per_token"})
    fresh = float(entry.get("input_cost_per_token") or 0)
    price = Price(
        fresh=fresh,
        output=float(entry.get("output_cost_per_token") or 0),
        cached=float(entry.get("cache_read_input_token_cost") or fresh),
        cache_write=float(entry.get("cache_creation_input_token_cost") or fresh),
    )
    return ModelFacts(
        window_tokens=int(entry.get("max_input_tokens") or entry.get("max_tokens") or UNKNOWN_WINDOW_TOKENS),
        max_output_tokens=entry.get("max_output_tokens"),
        price=price if needed <= entry.keys() else None,
        has_tools=bool(entry.get("supports_function_calling")),
        is_reasoning=bool(entry.get("supports_reasoning")),
    )


def provider_of(model: str) -> str:
    """Return litellm's name of a model's provider; `openai` for a bare name that no list knows."""
    prefix, slash, _ = model.partition("/")
    return prefix if slash else str(_price_list().get(model, {}).get("litellm_provider") or "openai")


def litellm_folder() -> Path | None:
    """Return where litellm is installed, without importing it (4 s, 170 MB)."""
    spec = importlib.util.find_spec("litellm")
    return Path(spec.origin).parent if spec and spec.origin else None


@lru_cache(maxsize=1)
def _price_list() -> dict[str, dict[str, Any]]:
    """Return the list that litellm ships, by model; {} where litellm is not installed."""
    folder = litellm_folder()
    try:
        return json.loads((folder / _PRICE_LIST).read_bytes()) if folder else {}
    except (OSError, ValueError):
        return {}


# --- tokens, without a network -------------------------------------------------------------------------------------


def count(text: str, model: str = "") -> int:
    """Return an estimate of how many tokens a text has for a model, rather too high than too low.

    Args:
        text: Any text; without surrogates.
        model: A litellm name; families other than OpenAI's get a margin.
    """
    n_tokens = sum(_count_piece(text[at : at + _PIECE_CHARS]) for at in range(0, len(text), _PIECE_CHARS))
    is_exact = model.startswith(("openai/", "azure/", "gpt-", "o1", "o3", "o4"))
    return n_tokens if is_exact else int(n_tokens * _OTHERS_MARGIN)


@lru_cache(maxsize=2048)  # entries have up to 8 kB each
def _count_piece(text: str) -> int:
    """Return how many tokens a text has."""
    encode = _encoder()
    # without a tokenizer three bytes count as one token, which is too high for prose and code alike
    return len(encode(text)) if encode else len(text.encode()) // 3 + 1


@lru_cache(maxsize=1)
def _encoder() -> Callable[[str], list[int]] | None:
    """Return tiktoken's encoder with the tables that litellm ships; None where these are missing.

    Without them tiktoken would download its own.
    """
    litellm = litellm_folder()
    folder = litellm and litellm / "litellm_core_utils" / "tokenizers"
    if not folder or not (folder / _CL100K_FILE).is_file():
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)  # litellm sets it too
    import tiktoken  # a tenth of a second and a Rust library: a brain without a model never counts

    return tiktoken.get_encoding("cl100k_base").encode_ordinary


# --- endpoints and keys --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server that requests for a model go to.

    Attributes:
        model: The litellm name.
        provider: litellm's name of the provider.
        api_base: The server's address; None for the provider's own.
        api_key: The key; None where litellm reads the provider's usual variable.
        is_local: Whether the server is on this machine.
        key_variable: The environment variable that holds the key; "" where none is sent.
    """

    model: str
    provider: str
    api_base: str | None
    api_key: str | None = field(repr=False)
    is_local: bool
    key_variable: str = ""

    @property
    def place(self) -> str:
        """The address or provider, to be shown to a person."""
        return self.api_base or self.provider


def endpoint_of(model: str, machine: MachineSettings, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the endpoint of a model.

    Args:
        model: A litellm name. One with an address in it is refused, since litellm would send requests there.
        machine: This machine's own settings.
        environ: The environment.

    Raises:
        ModelError: It is not a model's name, or the variable for its key is not set.
    """
    if not _NAME.fullmatch(model):
        raise ModelError(
            f"`{model[:80]!r}` is not the name of a model.",
            advice="Use `offline` or a litellm name such as `openai/gpt-5-mini`; no addresses in it.",
        )
    provider = provider_of(model)
    # the variables that each provider's own tools read; `_chat` is only litellm's name for another way to call it
    family = provider.removesuffix("_chat").upper()
    base = (
        machine.api_bases.get(model)
        or machine.api_bases.get(provider)
        or environ.get(f"{family}_API_BASE")
        or environ.get(f"{family}_BASE_URL")
        or LOCAL_DEFAULTS.get(provider)
    )  # None for the provider's own, which litellm knows
    is_local = base is not None and is_loopback(base) and not _IN_THE_CLOUD.search(model)
    usual_variable = f"{provider.upper()}_API_KEY"
    if variable := machine.api_key_variables.get(model) or machine.api_key_variables.get(provider):
        key = environ.get(variable)
        if not key:
            raise missing_key(model, [variable])
        return Endpoint(model, provider, base, key, is_local, variable)
    if base is None:  # litellm reads the key itself
        return Endpoint(model, provider, None, None, is_local, usual_variable)
    # the provider's key is never sent to a local server
    key = None if is_local else environ.get(usual_variable)
    return Endpoint(model, provider, base, key or _NO_KEY, is_local, usual_variable if key else "")


def missing_key(model: str, variables: list[str]) -> ModelError:
    """Return the error for a key that is not set, which is not retryable."""
    return ModelError(
        f"There is no key for `{model}`: {' or '.join(variables) or 'its variable'} is not set in the environment.",
        advice="Set it where brainiac runs, or name another variable in this machine's config (api_key_variables), "
        "or set `llm.model: offline`.",
    )


def is_loopback(address: str) -> bool:
    """Return whether an address is on this machine; a name has to resolve to it."""
    host = host_of(address)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        if host != "localhost" and not host.endswith(".localhost"):
            return False
    try:  # all addresses of the name, since a client may take any of them
        addresses = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(addresses) and all(ipaddress.ip_address(address).is_loopback for address in addresses)


def host_of(address: str) -> str:
    """Return the host of an address, in lower case; "" where there is none."""
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
