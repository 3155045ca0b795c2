"""Facts about a model by its name: window, prices, tokens, the endpoint that serves it, its key; and what calls cost.

Endpoints and keys come from the environment or this machine's own config, never from the tree, since a synced
`config.yaml` must not send a key to a stranger. Costs are checked against the budget before each call, and journaled
after it.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import os
import re
import secrets
import socket
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from brainiac.clock import SYSTEM, iso
from brainiac.errors import BudgetError, ModelError, storage_trouble
from brainiac.events import ModelCalled
from brainiac.library import Library
from brainiac.llm.schemas import Purpose
from brainiac.settings import MachineSettings
from brainiac.storage.files import locked

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
        text: Any text.
        model: A litellm name; families other than OpenAI's get a margin.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer takes no surrogates: bytes that are no UTF-8
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


# --- what calls cost ------------------------------------------------------------------------------------------------

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


def cost_rows(library: Library, since_day: str = "", *, of_all_devices: bool = False) -> list[CostRow]:
    """Return the sums of this device's calls by day, process, purpose and model, newest day first.

    Args:
        library: The memory whose calls are summed.
        since_day: The first day, an ISO date in the person's time zone; "" for all.
        of_all_devices: Also those of the others, as far as their journals are here.
    """
    library.projection.follow()
    calls = library.projection.query(
        "SELECT at, by, purpose, model, input_tokens, cached_tokens, output_tokens, cost_usd FROM calls"
        " WHERE ?1 IN ('', device) AND (?2 = '' OR at >= date(?2, '-1 day'))",  # stamps are UTC, days are the person's
        "" if of_all_devices else library.journal.device,
        since_day,
    )
    groups: dict[tuple[str, str, str, str], list[list[float]]] = defaultdict(list)
    for at, process, purpose, model, *figures in calls:
        # the query has a day more
        if (day := library.day_of(at)) >= since_day:
            groups[day, process, purpose, model].append(figures)
    rows = []
    # sorting is stable: newest day first, within a day by name
    for key, group in sorted(sorted(groups.items()), key=lambda row: row[0][0], reverse=True):
        input_tokens, cached_tokens, output_tokens, usd = map(sum, zip(*group, strict=True))
        rows.append(CostRow(*key, len(group), input_tokens, cached_tokens, output_tokens, round(usd, 8)))
    return rows
