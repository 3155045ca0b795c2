"""The meaning of providers' errors: whether waiting helps, and what a person can do.

One table has all exception classes of litellm; a test fails when the installed version has a class that is not in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from brainiac.errors import ModelError, WindowError
from brainiac.llm.catalog import Endpoint, missing_key

_WAIT = ""  # only time helps; the caller's message says whether it is tried again by itself
_REQUEST = "See the message; another model may take it (llm.model, or `model:` in the prompt)."
_FILTER = "Rephrase the prompt, or choose another model."
_WINDOW = "Set context.budget_tokens to what the model takes, or choose a larger one."


class Failure(NamedTuple):
    """The meaning of an error: whether waiting helps, what happened, and what a person can do."""

    is_retryable: bool
    problem: str
    advice: str


# classes of the same meaning stand in one row
_ROWS: tuple[tuple[str, bool, str, str], ...] = (
    ("AuthenticationError", False, "the key was refused", "Check the key that brainiac is given."),
    ("PermissionDeniedError", False, "the key may not use this model", "Check the account, or choose another model."),
    ("PaymentRequiredError", False, "the account has no credit", "Add credit at the provider."),
    ("NotFoundError", False, "there is no such model or endpoint", "Check llm.model and this machine's api_bases."),
    ("LiteLLMUnknownProvider", False, "no such provider is known", "Check llm.model: `provider/model`."),
    ("ModelNotMappedError", False, "the model is not known", "Check llm.model."),
    ("BadRequestError InvalidRequestError UnprocessableEntityError ImageFetchError", False,
     "the request was refused", _REQUEST),
    ("UnsupportedParamsError", False, "the model does not take a parameter", _REQUEST),
    ("VectorStoreSearchError", False, "the provider's search failed", _REQUEST),
    ("ContextWindowExceededError", False, "the request is longer than the model's window", _WINDOW),
    ("ContentPolicyViolationError", False, "the provider's content filter refused it", _FILTER),
    ("RejectedRequestError GuardrailRaisedException GuardrailInterventionNormalStringError BlockedPiiEntityError "
     "SensitiveDataRouteException", False, "the request was rejected by a filter", _FILTER),
    ("ModifyResponseException", False, "the answer was replaced by a filter", _FILTER),
    ("BudgetExceededError", False, "a budget set outside brainiac is used up", "Raise it where it was set."),
    ("MockException", False, "a mocked call failed", _REQUEST),
    ("Timeout", True, "no answer in time", "llm.timeout_seconds gives it longer."),
    ("RateLimitError", True, "the provider asks to slow down", _WAIT),
    ("InternalServerError", True, "the provider has trouble", _WAIT),
    ("ServiceUnavailableError", True, "the provider is overloaded or down", _WAIT),
    ("BadGatewayError", True, "the provider is not reachable behind its gateway", _WAIT),
    ("APIConnectionError", True, "the connection failed", _WAIT),
    ("APIError OpenAIError", True, "the provider failed", _WAIT),
    ("APIResponseValidationError", True, "the provider's reply cannot be read", _WAIT),
    ("JSONSchemaValidationError", True, "the answer does not follow its schema", _WAIT),
    ("MidStreamFallbackError", True, "the answer broke off", _WAIT),
)  # fmt: skip
FAILURES: dict[str, Failure] = {
    name: Failure(is_retryable, problem, advice)
    for names, is_retryable, problem, advice in _ROWS
    for name in names.split()
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


def model_error(error: BaseException, endpoint: Endpoint) -> ModelError:
    """Return our error for one that litellm, or a library below it, raised.

    Args:
        error: The error.
        endpoint: The server that the request went to.
    """
    text = str(error)
    if "missing credentials" in text.lower() or "api_key client option must be set" in text.lower():
        return missing_key(endpoint.model, [])
    if is_unreachable(error):
        return ModelError(
            f"Nothing answers at {endpoint.place} for `{endpoint.model}`.",
            retryable=True,
            advice="Is the server running, is the address right, is this machine online?",
        )
    # litellm's message would repeat the whole text
    if "repeating the same chunk" in text:
        problem = f"`{endpoint.model}` repeated itself without end and was stopped."
        return ModelError(problem, advice="Ask again, or choose another model.")
    failure = _failure(error)
    if _is_quota_spent(error):  # it comes with the status for "slow down", but waiting does not help
        failure = FAILURES["PaymentRequiredError"]
    is_key_refused = failure.problem == FAILURES["AuthenticationError"].problem
    is_window = type(error).__name__ == "ContextWindowExceededError"
    message = _CLASSES.sub("", scrub(" ".join(text.split()))) or type(error).__name__
    excerpt = message if len(message) <= 300 else message[:299] + "…"
    return (WindowError if is_window else ModelError)(
        f"`{endpoint.model}`: {failure.problem} ({excerpt.rstrip('.')}).",
        retryable=failure.is_retryable,
        retry_after_seconds=retry_after_seconds(error) if failure.is_retryable else None,
        advice=_which_key(endpoint) if is_key_refused else failure.advice,
    )


def _is_quota_spent(error: BaseException) -> bool:
    """Return whether an error, or one in its chain, has the provider's code for a used-up account."""
    codes = {str(getattr(link, name, "")) for link in _chain(error) for name in ("code", "type")}
    return "insufficient_quota" in codes or "insufficient_quota" in str(error)


def _which_key(endpoint: Endpoint) -> str:
    """Return what to do about a key that was refused: which variable holds it."""
    if endpoint.key_variable:
        return f"Check {endpoint.key_variable} in the environment where brainiac runs."
    todo = "name the variable that holds one in this machine's config (api_key_variables)"
    return f"{endpoint.place} is sent no key: {todo}."


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


def _failure(error: BaseException) -> Failure:
    """Return the meaning of the first error in a chain that the table has; for none, a failure that may pass."""
    # litellm may fail while it handles an error: then the cause says what happened
    for link in _chain(error):
        for cls in type(link).__mro__:
            if failure := FAILURES.get(cls.__name__):
                # some refusals come as a retryable class; their HTTP status shows what they are
                status = getattr(link, "status_code", None) or 500
                if failure.is_retryable and 400 <= status < 500 and status not in _PASSING_STATUSES:
                    return FAILURES[_BY_STATUS.get(status, "BadRequestError")]
                return failure
    return Failure(True, "the call failed", _WAIT)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on, each once: an error may be in its own chain."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
