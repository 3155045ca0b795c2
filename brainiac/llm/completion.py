"""One call through litellm, streamed, bounded, and ended early on request.

litellm is imported only here, when first needed (4 s, 170 MB). Every call is made within the budget: its highest
possible cost is reserved while it runs, and its real cost is journaled after it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from brainiac.clock import SYSTEM
from brainiac.errors import ModelError
from brainiac.events import ModelCalled
from brainiac.llm.catalog import Endpoint, count, facts, host_of, missing_key
from brainiac.llm.costs import MAX_TIMEOUTS, Ledger, Usage
from brainiac.llm.gate import Released
from brainiac.llm.provider_errors import is_unreachable, model_error

_CHARS_PER_TOKEN = 16  # the answer of a server that ignores max_tokens is cut off at so many
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
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call.

    Attributes:
        endpoint: The model and where it is served.
        messages: The messages that passed the gate.
        max_tokens: The longest answer.
        timeout_seconds: The longest wait for the next piece of the answer.
        options: Further arguments of `litellm.completion`: tools, response_format, temperature.
        on_text: Called with each piece of text.
        abandon: Called between pieces; the call ends when it returns true.
    """

    endpoint: Endpoint
    messages: Released
    max_tokens: int
    timeout_seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    on_text: Callable[[str], None] | None = None
    abandon: Callable[[], bool] | None = None


@contextmanager
def metered(
    ledger: Ledger,
    endpoint: Endpoint,
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
            if completion.usage == Usage():
                completion.usage = _estimated(completion, endpoint.model, input_tokens, max_tokens)
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


def _estimated(completion: Completion, model: str, input_tokens: int, max_tokens: int) -> Usage:
    """Return an estimate of a call's tokens, for a server that reported none."""
    # a reasoning model that broke off may have used all its tokens for thoughts that are not shown
    if not completion.finish and facts(model).is_reasoning:
        return Usage(input_tokens, max_tokens)
    output = completion.text + "".join(tool.arguments for tool in completion.tool_calls)
    return Usage(input_tokens, count(output, model))


def complete(call: Call, completion: Completion) -> None:
    """Make a call and fill the completion in piece by piece, so that it holds what came even when the call fails.

    Raises:
        ModelError: The call failed; no other error is raised.
    """
    endpoint = call.endpoint
    messages = call.messages.for_endpoint(endpoint)
    library = _ready_for(endpoint)
    # the system's clock, not the brain's, which a test may have stopped
    deadline = SYSTEM.monotonic() + MAX_TIMEOUTS * call.timeout_seconds
    try:
        stream = library.completion(
            model=endpoint.model,
            messages=messages,
            max_tokens=call.max_tokens,
            timeout=call.timeout_seconds,
            # streamed even where nobody reads along: only between two pieces can a call be abandoned
            stream=True,
            # without it a stream reports no tokens, and the cost would be an estimate
            stream_options={"include_usage": True},
            max_retries=0,  # the bus retries: the prompt stays pending meanwhile
            num_retries=0,
            api_base=endpoint.api_base,
            api_key=endpoint.api_key,
            _skip_mcp_handler=True,  # tools would import a package that is not a dependency
            **call.options,
        )
        if stream is None:  # after a second status 422 litellm returns None instead of raising
            raise library.exceptions.BadRequestError("status 422", endpoint.model, endpoint.provider)
        completion.is_begun = True
        with closing(_chunks(stream)) as chunks:
            for chunk in chunks:
                _take(chunk, completion, call.on_text)
                _check_time(call, deadline)
                if _is_too_long(completion, call.max_tokens):
                    completion.finish = completion.finish or "length"
                    break
        # litellm makes up a reason where the server gave none, since the stream broke off
        if completion.finish != "length" and not getattr(stream, "received_finish_reason", None):
            completion.finish = ""
    except _raised() as error:
        raise _failed(error, endpoint, completion) from None


def embed(endpoint: Endpoint, texts: Released, timeout_seconds: float, completion: Completion) -> list[list[float]]:
    """Return the vectors of texts, and fill the completion in with the tokens of the call.

    Raises:
        ModelError: The call failed; no other error is raised.
    """
    content = texts.for_endpoint(endpoint)
    library = _ready_for(endpoint)
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


def _chunks(stream: Any) -> Generator[Any, None, None]:
    """Yield the chunks of a stream; close the connection at the end, so that the server stops generating."""
    try:
        yield from stream
    finally:
        close = getattr(getattr(stream, "completion_stream", None), "close", None)
        if close:
            close()


def _check_time(call: Call, deadline: float) -> None:
    """Raise `ModelError` where a call is to be abandoned, or takes too long."""
    if call.abandon and call.abandon():
        raise ModelError("The call was given up: the person is back.", retryable=True)
    if SYSTEM.monotonic() > deadline:
        raise ModelError(
            f"`{call.endpoint.model}` did not finish within {MAX_TIMEOUTS * call.timeout_seconds:.0f} seconds.",
            retryable=True,
            advice="A faster model or a higher llm.timeout_seconds helps.",
        )


def _is_too_long(completion: Completion, max_tokens: int) -> bool:
    """Return whether a server that ignores the limit has written far more than it."""
    length = len(completion.text) + sum(len(tool.arguments) for tool in completion.tool_calls)
    return length > max_tokens * _CHARS_PER_TOKEN


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
            _take_tool_call(piece, completion.tool_calls)
        if text := getattr(delta, "content", None):
            completion.text += text
            if on_text:
                on_text(text)


def _take_tool_call(piece: Any, calls: list[ToolCall]) -> None:
    """Add a piece of a tool call to the call with its index; a new index begins a call."""
    # a server that numbers its calls wildly must not fill memory
    index = min(piece.index or 0, _MAX_TOOL_CALLS - 1)
    calls += [ToolCall() for _ in range(len(calls), index + 1)]
    call = calls[index]
    call.id = piece.id or call.id
    if piece.function:
        call.name = piece.function.name or call.name
        call.arguments += piece.function.arguments or ""


def _usage(usage: Any) -> Usage:
    """Return the tokens that a server reported."""
    # providers report the tokens read from their cache under one of two names
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    return Usage(int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0), int(cached), int(written))


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


def _failed(error: BaseException, endpoint: Endpoint, completion: Completion) -> ModelError:
    """Return our error for litellm's; after a timeout mark the call as begun, since the server may charge for it.

    The caller raises it `from None`: the traceback of litellm's error holds the key.
    """
    if isinstance(error, litellm().exceptions.Timeout) and not is_unreachable(error):
        completion.is_begun = True
    return model_error(error, endpoint)


def _ready_for(endpoint: Endpoint) -> Any:
    """Return litellm for a call to an endpoint; calls to this machine are exempted from proxies.

    Raises:
        ModelError: The key is missing.
    """
    library = litellm()
    if not endpoint.api_key and not endpoint.api_base:
        # litellm would report a missing key as a server error, which is retried for ever
        variables = library.validate_environment(endpoint.model)["missing_keys"]
        if missing := [name for name in variables if not name.endswith("_BASE")]:
            raise missing_key(endpoint.model, missing)
    if endpoint.is_local:
        for name in ("NO_PROXY", "no_proxy"):
            hosts = [*os.environ.get(name, "").split(","), "127.0.0.1", "localhost", "::1", host_of(endpoint.place)]
            os.environ[name] = ",".join(dict.fromkeys(filter(None, hosts)))
    return library
