"""One call through litellm: imported only here, when first needed (4 s, 170 MB); streamed, bounded, abandonable."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from brainiac.clock import SYSTEM
from brainiac.errors import ModelError
from brainiac.llm.costs import PATIENCE, Usage
from brainiac.llm.endpoints import Endpoint, host_of, missing_key
from brainiac.llm.failures import is_unreachable, model_error
from brainiac.llm.gate import Released

_CHARS_PER_TOKEN = 16  # a server that ignores max_tokens is cut off here


@lru_cache(maxsize=1)
def litellm() -> Any:
    """Import litellm, kept from calling home, reading `.env` files and printing banners."""
    # else it fetches a price list; else it loads `.env` of the current folder, which may be a stranger's brain
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LOGGING_EXECUTOR_MAX_THREADS"] = "2"  # else up to a hundred that log to nobody
    import litellm as library

    library.suppress_debug_info = True
    library.telemetry = False
    library.drop_params = True
    library.disable_hf_tokenizer_download = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # it logs requests, which are memories
    return library


@lru_cache(maxsize=1)
def _raised() -> tuple[type[BaseException], ...]:
    """What a call may raise: litellm's own classes, those below it, and what its parsing of odd replies trips over."""
    import httpx
    import openai

    exceptions = vars(litellm().exceptions).values()
    own = [cls for cls in exceptions if isinstance(cls, type) and issubclass(cls, Exception)]
    oddities = (OSError, ValueError, TypeError, LookupError, AttributeError, ImportError, RuntimeError)
    return (*own, openai.OpenAIError, httpx.HTTPError, httpx.StreamError, *oddities)


@dataclass(slots=True)
class ToolCall:
    """A tool the model wants called; `arguments` is JSON as it wrote it."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Completion:
    """What a call gave.

    Attributes:
        finish: `stop`, `length`, `tool_calls`, `content_filter`; "" when the stream broke off.
        usage: None when the server did not say.
        is_begun: The server may have worked: it began to answer, or took the request and said nothing in time.
    """

    text: str = ""
    refusal: str = ""
    finish: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | None = None
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        messages: What the gate let through.
        options: Further arguments of `litellm.completion`: tools, response_format, temperature.
        on_text: Called with each piece of text.
        abandon: Asked between pieces; true ends the call.
    """

    endpoint: Endpoint
    messages: Released
    max_tokens: int
    timeout_seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    on_text: Callable[[str], None] | None = None
    abandon: Callable[[], bool] | None = None


def complete(call: Call, completion: Completion) -> None:
    """Make a call and fill in what comes, so that what had come is known even when it fails.

    Raises:
        ModelError: It failed; nothing else is raised.
    """
    endpoint = call.endpoint
    messages = call.messages.for_endpoint(endpoint)
    library = _ready_for(endpoint)
    # not the brain's clock: a server's time does not stand still when a test's does
    deadline = SYSTEM.monotonic() + PATIENCE * call.timeout_seconds
    try:
        stream = library.completion(
            model=endpoint.model,
            messages=messages,
            max_tokens=call.max_tokens,
            timeout=call.timeout_seconds,
            stream=True,
            stream_options={"include_usage": True},
            max_retries=0,  # retries are the bus's: the prompt stays pending meanwhile
            num_retries=0,
            api_base=endpoint.api_base,
            api_key=endpoint.api_key,
            _skip_mcp_handler=True,  # tools would import a package that is not a dependency
            **call.options,
        )
        if stream is None:  # after a 422 it tries once more without what was complained of, then ends without a word
            raise library.exceptions.BadRequestError("status 422", endpoint.model, endpoint.provider)
        completion.is_begun = True
        with closing(_chunks(stream)) as chunks:
            for chunk in chunks:
                _take(chunk, completion, call.on_text)
                if _is_over(call, completion, deadline):
                    break
        completion.finish = completion.finish or ("length" if _is_too_long(call, completion) else "")
        if completion.finish != "length" and not getattr(stream, "received_finish_reason", None):
            completion.finish = ""
    except _raised() as error:
        raise _failed(error, endpoint, completion) from None


def embed(endpoint: Endpoint, texts: Released, timeout_seconds: float, completion: Completion) -> list[list[float]]:
    """Return the vectors of texts, and fill in what is known of the call.

    Raises:
        ModelError: It failed; nothing else is raised.
    """
    given = texts.for_endpoint(endpoint)
    library = _ready_for(endpoint)
    try:
        answer = library.embedding(
            model=endpoint.model,
            input=given,
            timeout=timeout_seconds,
            max_retries=0,
            api_base=endpoint.api_base,
            api_key=endpoint.api_key,
        )
        completion.is_begun, completion.finish = True, "stop"
        completion.usage = _usage(answer.usage) if getattr(answer, "usage", None) else None
        return [item["embedding"] for item in answer.data]
    except _raised() as error:
        raise _failed(error, endpoint, completion) from None


def _failed(error: BaseException, endpoint: Endpoint, completion: Completion) -> ModelError:
    """Return our error; raised without the library's, whose traceback holds headers and with them the key."""
    if isinstance(error, litellm().exceptions.Timeout) and not is_unreachable(error):
        completion.is_begun = True
    return model_error(error, endpoint)


def _chunks(stream: Any) -> Generator[Any, None, None]:
    try:
        yield from stream
    finally:
        close = getattr(getattr(stream, "completion_stream", None), "close", None)
        if close:
            close()  # a server stops generating when nobody listens


def _is_over(call: Call, completion: Completion, deadline: float) -> bool:
    if call.abandon and call.abandon():
        raise ModelError("The call was given up: the person is back.", retryable=True)
    if SYSTEM.monotonic() > deadline:
        raise ModelError(
            f"`{call.endpoint.model}` did not finish within {PATIENCE * call.timeout_seconds:.0f} seconds.",
            retryable=True,
            advice="A faster model or a higher llm.timeout_seconds helps.",
        )
    return _is_too_long(call, completion)


def _is_too_long(call: Call, completion: Completion) -> bool:
    arguments = sum(len(tool.arguments) for tool in completion.tool_calls)
    return len(completion.text) + arguments > call.max_tokens * _CHARS_PER_TOKEN


def _take(chunk: Any, completion: Completion, on_text: Callable[[str], None] | None) -> None:
    if usage := getattr(chunk, "usage", None):
        completion.usage = _usage(usage)
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
    index = piece.index or 0
    while len(calls) <= min(index, 63):
        calls.append(ToolCall())
    call = calls[min(index, 63)]
    call.id = piece.id or call.id
    call.name = (piece.function.name if piece.function else None) or call.name
    call.arguments += (piece.function.arguments if piece.function else None) or ""


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    return Usage(int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0), int(cached), int(written))


def _ready_for(endpoint: Endpoint) -> Any:
    library = litellm()
    _require_key(library, endpoint)
    if endpoint.is_local:
        _keep_off_proxies(endpoint)
    return library


def _require_key(library: Any, endpoint: Endpoint) -> None:
    """Tell a missing key before calling: litellm reports it as trouble at the provider, worth a retry for ever."""
    if endpoint.api_key or endpoint.api_base:
        return
    missing = [
        name for name in library.validate_environment(endpoint.model)["missing_keys"] if not name.endswith("_BASE")
    ]
    if missing:
        raise missing_key(endpoint.model, missing)


def _keep_off_proxies(endpoint: Endpoint) -> None:
    """Keep what is said to a server on this machine from a proxy that the environment names."""
    own = dict.fromkeys(("127.0.0.1", "localhost", "::1", host_of(endpoint.place)))
    for name in ("NO_PROXY", "no_proxy"):
        hosts = os.environ.get(name, "").split(",")
        if missing := [host for host in own if host not in hosts]:
            os.environ[name] = ",".join([*filter(None, hosts), *missing])
