"""One call through litellm, streamed, bounded, and ended early on request; and what a provider's error means.

litellm is imported only here, when first needed (4 s, 170 MB). Every call is made within the budget: its highest
possible cost is reserved while it runs, and its real cost is journaled after it. One table has all exception classes of
litellm; a test fails when the installed version has a class that is not in it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from brainiac.clock import SYSTEM
from brainiac.errors import ModelError, StorageError, WindowError
from brainiac.events import ModelCalled
from brainiac.llm import catalog
from brainiac.llm.gate import Released, released_texts
from brainiac.search.embed import EmbedderError, Matrix, unit_norm
from brainiac.settings import MachineSettings

_CHARS_PER_TOKEN = 16  # the answer of a server that ignores max_tokens is cut off at so many
# providers of which litellm takes a key from `PROVIDER_API_KEY` alone; it is asked itself about the others
_USUAL_KEY = frozenset("anthropic cohere deepseek fireworks_ai groq mistral openai openrouter xai".split())
_MAX_TOOL_CALLS = 64  # in one answer; further ones are appended to the last


@dataclass(slots=True)
class ToolCall:
    """A call of a tool that the model asks for; `arguments` is JSON as it wrote it."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Completion:
    """The result of a call, filled in while it comes.

    Attributes:
        text: The answer so far.
        refusal: The model's refusal, in its words.
        finish: `stop`, `length`, `tool_calls`, `content_filter`; "" when the stream broke off.
        tool_calls: The calls of tools that the model asks for.
        usage: The tokens that the server reported; after a metered call an estimate if it reported none.
        cost_usd: The cost; 0 until a metered call is over.
        is_begun: Whether the server may charge for the call: it began to answer, or timed out after it got the request.
    """

    text: str = ""
    refusal: str = ""
    finish: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: catalog.Usage = field(default_factory=catalog.Usage)
    cost_usd: float = 0.0
    is_begun: bool = False

    @property
    def written(self) -> str:
        """All that the model wrote: the text, and the arguments of the calls of tools."""
        return self.text + "".join(tool.arguments for tool in self.tool_calls)


@contextmanager
def metered(
    ledger: catalog.Ledger,
    endpoint: catalog.Endpoint,
    purpose: str,
    input_tokens: int,
    max_tokens: int,
    cause: str | None = None,
    about: str = "",
) -> Iterator[Completion]:
    """Reserve the cost of a call, yield a completion to be filled in, and journal the call afterwards.

    Args:
        ledger: The brain's account of costs.
        endpoint: The model and where it is served.
        purpose: The purpose of the call.
        input_tokens: An estimate of its input.
        max_tokens: The longest answer.
        cause: The id of the event that led to the call.
        about: The id of the prompt or exchange that the call deals with.

    Raises:
        BudgetError: The call does not fit into the budget; it must not be made.
    """
    price, completion, started = ledger.price_of(endpoint), Completion(), SYSTEM.monotonic()
    with ledger.reserved(purpose, price.worst(input_tokens, max_tokens)):
        try:
            yield completion
        finally:
            # also after a failure, which may be charged for
            if completion.usage == catalog.Usage():  # the server reported none
                # a reasoning model that broke off may have used all its tokens for thoughts that are not shown
                is_unknown = not completion.finish and catalog.facts(endpoint.model).is_reasoning
                written = max_tokens if is_unknown else catalog.count(completion.written, endpoint.model)
                completion.usage = catalog.Usage(input_tokens, written)
            usage = completion.usage
            completion.cost_usd = price.cost(usage.input, usage.output, usage.cached, usage.written)
            if completion.is_begun:
                call = ModelCalled(
                    purpose=str(purpose),
                    model=endpoint.model,
                    is_remote=not endpoint.is_local,
                    about=about,
                    input_tokens=usage.input,
                    cached_tokens=usage.cached,
                    output_tokens=usage.output,
                    cost_usd=round(completion.cost_usd, 8),
                    took_ms=round((SYSTEM.monotonic() - started) * 1000),
                )
                ledger.record(call, cause)


def complete(
    endpoint: catalog.Endpoint,
    messages: Released,
    completion: Completion,
    *,
    max_tokens: int,
    timeout_seconds: float,
    options: Mapping[str, Any] | None = None,
    on_text: Callable[[str], None] | None = None,
    abandon: Callable[[], bool] | None = None,
) -> None:
    """Make a call and fill the completion in piece by piece, so that it holds what came even when the call fails.

    Args:
        endpoint: The model and where it is served.
        messages: The messages that passed the gate.
        completion: What is filled in.
        max_tokens: The longest answer.
        timeout_seconds: The longest wait for the next piece of the answer.
        options: Further arguments of `litellm.completion`: tools, response_format, temperature.
        on_text: Called with each piece of text.
        abandon: Called between pieces; the call ends when it returns true.

    Raises:
        ModelError: The call failed, or the messages may not be sent to the endpoint; no other error is raised.
    """
    content = messages.for_endpoint(endpoint)
    library = _litellm_for(endpoint)
    # the system's clock, not the brain's, which a test may have stopped
    longest_seconds = catalog.MAX_TIMEOUTS * timeout_seconds
    deadline = SYSTEM.monotonic() + longest_seconds
    try:
        stream = library.completion(
            model=endpoint.model,
            messages=content,
            max_tokens=max_tokens,
            timeout=timeout_seconds,
            # streamed even where nobody reads along: only between two pieces can a call be abandoned
            stream=True,
            # without it a stream reports no tokens, and the cost would be an estimate
            stream_options={"include_usage": True},
            max_retries=0,  # the bus retries: the prompt stays pending meanwhile
            num_retries=0,
            api_base=endpoint.api_base,
            api_key=endpoint.api_key,
            _skip_mcp_handler=True,  # tools would import a package that is not a dependency
            **(options or {}),
        )
        if stream is None:  # after a second status 422 litellm returns None instead of raising
            raise library.exceptions.BadRequestError("status 422", endpoint.model, endpoint.provider)
        completion.is_begun = True
        try:
            for chunk in stream:
                _take(chunk, completion, on_text)
                if abandon and abandon():
                    raise ModelError("The call was given up: the person is back.", retryable=True)
                if SYSTEM.monotonic() > deadline:
                    raise ModelError(
                        f"`{endpoint.model}` did not finish within {longest_seconds:.0f} seconds.",
                        retryable=True,
                        advice="A faster model or a higher llm.timeout_seconds helps.",
                    )
                if len(completion.written) > max_tokens * _CHARS_PER_TOKEN:  # the server ignores the limit
                    completion.finish = completion.finish or "length"
                    break
        finally:  # the connection is closed, so that the server stops generating
            if close := getattr(getattr(stream, "completion_stream", None), "close", None):
                close()
        # litellm makes up a reason where the server gave none, since the stream broke off
        if completion.finish != "length" and not getattr(stream, "received_finish_reason", None):
            completion.finish = ""
    except _raised() as error:
        raise _failed(error, endpoint, completion) from None


def embed(
    endpoint: catalog.Endpoint, texts: Released, timeout_seconds: float, completion: Completion
) -> list[list[float]]:
    """Return the vectors of texts, and fill the completion in with the tokens of the call.

    Raises:
        ModelError: The call failed; no other error is raised.
    """
    content = texts.for_endpoint(endpoint)
    library = _litellm_for(endpoint)
    try:
        answer = library.embedding(
            model=endpoint.model,
            input=content,
            timeout=timeout_seconds,
            max_retries=0,
            api_base=endpoint.api_base,
            api_key=endpoint.api_key,
        )
        completion.is_begun, completion.finish = True, "stop"
        if usage := getattr(answer, "usage", None):
            completion.usage = _usage(usage)
        return [item["embedding"] for item in answer.data]
    except _raised() as error:
        raise _failed(error, endpoint, completion) from None


# --- the stream of an answer ---------------------------------------------------------------------------------------


def _take(chunk: Any, completion: Completion, on_text: Callable[[str], None] | None) -> None:
    """Add a chunk of the stream to the completion."""
    if usage := getattr(chunk, "usage", None):
        completion.usage = _usage(usage)
    # one answer is asked for; the last chunk, with the usage, may have none
    for choice in chunk.choices[:1]:
        delta = choice.delta
        completion.finish = choice.finish_reason or completion.finish
        completion.refusal += getattr(delta, "refusal", None) or ""
        for piece in getattr(delta, "tool_calls", None) or ():
            # a new index begins a call; a server that numbers its calls wildly must not fill memory
            index, calls = min(piece.index or 0, _MAX_TOOL_CALLS - 1), completion.tool_calls
            calls += [ToolCall() for _ in range(len(calls), index + 1)]
            call = calls[index]
            call.id = piece.id or call.id
            if piece.function:
                call.name = piece.function.name or call.name
                call.arguments += piece.function.arguments or ""
        if text := getattr(delta, "content", None):
            completion.text += text
            if on_text:
                on_text(text)


def _usage(usage: Any) -> catalog.Usage:
    """Return the tokens that a server reported."""
    # providers report the tokens read from their cache under one of two names
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    return catalog.Usage(int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0), int(cached), int(written))


# --- litellm -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def litellm() -> Any:
    """Import litellm, kept from calling home, reading `.env` files and printing banners."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # without it litellm fetches a price list
    # without it litellm loads `.env` of the current folder, which may be a stranger's brain
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LOGGING_EXECUTOR_MAX_THREADS"] = "2"  # instead of a hundred; nobody reads these logs
    import litellm as library  # takes seconds

    library.suppress_debug_info = True
    library.telemetry = False
    # models differ in what they take: a temperature that one refuses is no reason to fail
    library.drop_params = True
    # counting tokens for a Llama name would try to reach a model hub for 23 seconds
    library.disable_hf_tokenizer_download = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # it logs requests, which are memories
    return library


@lru_cache(maxsize=1)
def _raised() -> tuple[type[BaseException], ...]:
    """Return the classes that a call may raise: litellm's, those of the clients below it, and faults of its parsing."""
    import httpx  # litellm has loaded it by now
    import openai

    exceptions = vars(litellm().exceptions).values()
    of_litellm = [cls for cls in exceptions if isinstance(cls, type) and issubclass(cls, Exception)]
    of_parsing = (OSError, ValueError, TypeError, LookupError, AttributeError, ImportError, RuntimeError)
    return (*of_litellm, openai.OpenAIError, httpx.HTTPError, httpx.StreamError, *of_parsing)


def _failed(error: BaseException, endpoint: catalog.Endpoint, completion: Completion) -> ModelError:
    """Return our error for litellm's; after a timeout mark the call as begun, since the server may charge for it.

    The caller raises it `from None`: the traceback of litellm's error holds the key.
    """
    if isinstance(error, litellm().exceptions.Timeout) and not is_unreachable(error):
        completion.is_begun = True
    return model_error(error, endpoint)


def _litellm_for(endpoint: catalog.Endpoint) -> Any:
    """Return litellm for a call to an endpoint; for one on this machine the process's `NO_PROXY` gets its host.

    Raises:
        ModelError: The key is missing.
    """
    # a server of the person's own may need no key
    needs_key = not endpoint.api_key and not endpoint.api_base
    if needs_key and endpoint.provider in _USUAL_KEY and not os.environ.get(endpoint.key_variable):
        raise catalog.missing_key(endpoint.model, [endpoint.key_variable])  # before a person waits for the import
    library = litellm()
    if needs_key:
        # litellm would report a missing key as a server error, which is retried for ever
        variables = library.validate_environment(endpoint.model)["missing_keys"]
        if missing := [name for name in variables if not name.endswith("_BASE")]:  # such variables have addresses
            raise catalog.missing_key(endpoint.model, missing)
    if endpoint.is_local:
        host = catalog.host_of(endpoint.place)
        for name in ("NO_PROXY", "no_proxy"):
            hosts = [*os.environ.get(name, "").split(","), "127.0.0.1", "localhost", "::1", host]
            os.environ[name] = ",".join(dict.fromkeys(filter(None, hosts)))
    return library


# --- the meaning of providers' errors: whether waiting helps, and what a person can do -------------------------------


class Failure(NamedTuple):
    """What an error means: what happened, what a person can do ("" where only time helps), whether waiting helps."""

    problem: str
    advice: str = ""
    is_retryable: bool = False


_ANOTHER = "Rephrase the prompt, or choose another model."
_REFUSAL = Failure(
    "the request was refused", "See the message; another model may take it (llm.model, or `model:` in the prompt)."
)
# by the name of litellm's class, or of one that it inherits from
FAILURES = {
    "AuthenticationError": Failure("the key was refused", "Check the key that brainiac is given."),
    "PermissionDeniedError": Failure("the key may not use this model", "Check the account, or choose another model."),
    "PaymentRequiredError": Failure("the account has no credit", "Add credit at the provider."),
    "NotFoundError": Failure("there is no such model or endpoint", "Check llm.model and this machine's api_bases."),
    "LiteLLMUnknownProvider": Failure("no such provider is known", "Check llm.model: `provider/model`."),
    "ModelNotMappedError": Failure("the model is not known", "Check llm.model."),
    "ContextWindowExceededError": Failure(
        "the request is longer than the model's window",
        "Set context.budget_tokens to what the model takes, or choose a larger one.",
    ),
    "ContentPolicyViolationError": Failure("the provider's content filter refused it", _ANOTHER),
    "BadRequestError": _REFUSAL,
    "UnprocessableEntityError": _REFUSAL,
    "Timeout": Failure("no answer in time", "llm.timeout_seconds gives it longer.", is_retryable=True),
    "RateLimitError": Failure("the provider asks to slow down", is_retryable=True),
    "InternalServerError": Failure("the provider has trouble", is_retryable=True),
    "ServiceUnavailableError": Failure("the provider is overloaded or down", is_retryable=True),
    "MidStreamFallbackError": Failure("the answer broke off", is_retryable=True),
    "BadGatewayError": Failure("the provider is not reachable behind its gateway", is_retryable=True),
    "APIConnectionError": Failure("the connection failed", is_retryable=True),
    "OpenAIError": Failure("the provider failed", is_retryable=True),  # all others inherit from it
}
_BY_STATUS = {
    401: "AuthenticationError",
    402: "PaymentRequiredError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
}
_PASSING_STATUSES = (408, 409, 425, 429)
_REFUSED = ("ConnectError", "ConnectionRefusedError", "ConnectTimeout")
# litellm puts the names of its classes before the provider's message, sometimes twice
_CLASSES = re.compile(r"\A(?:(?:litellm\.)?\w+(?:Error|Exception)(?::| -)\s*)+")
_KEY_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)(?:_|$)")


def model_error(error: BaseException, endpoint: catalog.Endpoint) -> ModelError:
    """Return our error for one that litellm, or a library below it, raised.

    Args:
        error: The error.
        endpoint: The server that the request went to.
    """
    text = str(error)
    # errors whose class says less than their text or their chain
    if "missing credentials" in text.lower() or "api_key client option must be set" in text.lower():
        return catalog.missing_key(endpoint.model, [])
    if is_unreachable(error):
        return ModelError(
            f"Nothing answers at {endpoint.place} for `{endpoint.model}`.",
            retryable=True,
            advice="Is the server running, is the address right, is this machine online?",
        )
    if "repeating the same chunk" in text:  # litellm's message would repeat the whole text
        problem = f"`{endpoint.model}` repeated itself without end and was stopped."
        return ModelError(problem, advice="Ask again, or choose another model.")
    failure, links = Failure("the call failed", is_retryable=True), list(_chain(error))
    # it comes with the status for "slow down", but waiting does not help
    codes = {str(getattr(link, name, "")) for link in links for name in ("code", "type")}
    if "insufficient_quota" in codes or "insufficient_quota" in text:
        failure, links = FAILURES["PaymentRequiredError"], []
    # the first that the table has: litellm may fail while it handles an error, then the cause says what happened
    for link in links:
        if known := next((FAILURES[cls.__name__] for cls in type(link).__mro__ if cls.__name__ in FAILURES), None):
            # some refusals come as a class for what may pass
            status = getattr(link, "status_code", None) or 0
            is_refusal = known.is_retryable and 400 <= status < 500 and status not in _PASSING_STATUSES
            failure = FAILURES[_BY_STATUS.get(status, "BadRequestError")] if is_refusal else known
            break
    advice = failure.advice
    if failure == FAILURES["AuthenticationError"]:
        has_key = f"Check {endpoint.key_variable} in the environment where brainiac runs."
        todo = "name the variable that holds one in this machine's config (api_key_variables)"
        advice = has_key if endpoint.key_variable else f"{endpoint.place} is sent no key: {todo}."
    message = _CLASSES.sub("", scrub(" ".join(text.split()))) or type(error).__name__
    excerpt = message if len(message) <= 300 else message[:299] + "…"
    is_window = failure == FAILURES["ContextWindowExceededError"]
    return (WindowError if is_window else ModelError)(
        f"`{endpoint.model}`: {failure.problem} ({excerpt.rstrip('.')}).",
        retryable=failure.is_retryable,
        retry_after_seconds=retry_after_seconds(error) if failure.is_retryable else None,
        advice=advice,
    )


def is_unreachable(error: BaseException) -> bool:
    """Return whether the request reached no server at all."""
    return any(type(link).__name__ in _REFUSED for link in _chain(error))


def retry_after_seconds(error: BaseException) -> float | None:
    """Return the seconds to wait by a `Retry-After` header, which has seconds or a date; None without one."""
    for link in _chain(error):
        headers: Any = getattr(getattr(link, "response", None), "headers", None) or {}
        extra: Any = getattr(link, "litellm_response_headers", None) or {}
        if value := headers.get("retry-after") or extra.get("retry-after"):
            with suppress(ValueError):
                return max(0.0, float(value))
            with suppress(ValueError):
                return max(0.0, (parsedate_to_datetime(str(value)) - datetime.now(UTC)).total_seconds())
            return None
    return None


def scrub(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a provider's message with `[key]` for each key of the environment and each word that looks like a key."""
    # providers repeat the key that they refuse, whole or with asterisks in its middle
    for name, value in environ.items():
        if len(value) >= 8 and _KEY_NAME.search(name.upper()):
            text = text.replace(value, "[key]")
    text = re.sub(r"\b(?:sk|pk|rk|gsk|xai|AIza|key)[-_]?[A-Za-z0-9_*-]{8,}", "[key]", text)
    return re.sub(r"(?i)(bearer|basic|api[-_ ]key(?: provided)?:?)\s+\S{6,}", r"\1 [key]", text)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on, each once: an error may be in its own chain."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


# --- embedders at a provider, each batch within the budget and through the gate -------------------------------------

_BATCH = 256
_TIMEOUT_SECONDS = 15


class RemoteEmbedder:
    """Any embedding model that litellm reaches.

    Args:
        model: A litellm name such as `openai/text-embedding-3-small`.
        machine: Endpoints and key names of this machine.
        ledger: Returns the brain's account of costs; None where calls are not accounted for.

    Raises:
        EmbedderError: The name is no model's name, or its key is missing.
    """

    def __init__(
        self, model: str, machine: MachineSettings, ledger: Callable[[], catalog.Ledger] | None = None
    ) -> None:
        try:
            self._endpoint = catalog.endpoint_of(model, machine)
        except ModelError as error:
            raise _embedder_error(error) from error
        self.name, self._ledger = model, ledger
        self.is_remote = not self._endpoint.is_local

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Matrix:
        """Return the vectors of texts, of unit norm; a query is embedded like a page."""
        ledger, endpoint = self._ledger() if self._ledger else None, self._endpoint
        vectors: list[list[float]] = []
        try:
            for start in range(0, len(texts), _BATCH):
                batch = texts[start : start + _BATCH]
                released = released_texts(batch, endpoint)
                # free calls to this machine are not journaled: there is one for every page and question
                if ledger is None or (endpoint.is_local and ledger.price_of(endpoint) == catalog.FREE):
                    vectors += embed(endpoint, released, _TIMEOUT_SECONDS, Completion())
                    continue
                estimate = sum(catalog.count(text, self.name) for text in batch)
                with metered(ledger, endpoint, catalog.EMBED, estimate, 0) as completion:  # else it is not made
                    vectors += embed(endpoint, released, _TIMEOUT_SECONDS, completion)
        except ModelError as error:
            raise _embedder_error(error) from error
        except StorageError as error:  # the costs cannot be recorded; search goes on by words alone meanwhile
            raise EmbedderError(f"recall.embedder: {error.problem}") from error
        return unit_norm(np.array(vectors, np.float32))


def _embedder_error(error: ModelError) -> EmbedderError:
    return EmbedderError(f"recall.embedder: {error.problem} {error.advice}".strip())
