"""The engine for every model that litellm reaches: working memory in, typed results out, every call in budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from brainiac.errors import ModelError, WindowError
from brainiac.library import Library
from brainiac.llm.catalog import facts
from brainiac.llm.completion import Call, Completion, complete
from brainiac.llm.context import tokens
from brainiac.llm.context.render import Assembler
from brainiac.llm.costs import FOREGROUND, Ledger, Usage
from brainiac.llm.endpoints import Endpoint, endpoint_of
from brainiac.llm.gate import Gate, Released
from brainiac.llm.metered import metered
from brainiac.llm.schemas import (
    AnswerRequest,
    Consolidation,
    ConsolidateRequest,
    Purpose,
    QueriesRequest,
    ReflectRequest,
    Request,
    Result,
)

# a decision is short: bounds cost, and a small model that does not find its end; reasoning models get the full length
MAX_OUTPUT_TOKENS = {
    Purpose.QUERIES: 400,
    Purpose.REFLECT: 2000,
    Purpose.SYNTHESIZE: 1000,
    Purpose.SUMMARIZE: 1500,
}
ASK_AGAIN = "That is no valid answer: {problems}\nAnswer again, the whole JSON and nothing else."
_OPTIONAL = {
    "response_format": ("response_format", "schema", "grammar", "format"),
    "tools": ("tool", "function"),
    "tool_choice": ("tool",),
}


class LiteLLMEngine:
    """Serves all purposes through litellm.

    Args:
        library: Its settings and this machine's are read for every request.
        model: A litellm name.
        ledger: What models cost.

    Raises:
        ModelError: The name cannot be one, or its key is missing.
    """

    def __init__(self, library: Library, model: str, ledger: Ledger) -> None:
        self._library, self.name = library, model
        self._ledger = ledger
        self._assembler = Assembler(library)
        self._refused_options: set[str] = set()

    @property
    def is_remote(self) -> bool:
        """Whether what it is asked leaves this machine."""
        return not self.endpoint.is_local

    @property
    def endpoint(self) -> Endpoint:
        """Where it is served now."""
        return endpoint_of(self.name, self._library.machine)

    def run(self, request: Request) -> Result:
        """Serve one request.

        Raises:
            ModelError: See `Gateway.run`.
        """
        if isinstance(request, AnswerRequest):
            from brainiac.llm.answering import answer

            return answer(self, self._library, request)
        try:
            return self._typed(request)
        except WindowError:
            if isinstance(request, ConsolidateRequest) and len(request.said) > 1:
                return self._halved(request)
            raise

    def memory(self, request: Request, gate: Gate, tools: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """Return the messages of a request's working memory."""
        return self._assembler.assemble(request, model=self.name, tools=tools, gate=gate).messages

    def call(
        self,
        request: Request,
        gate: Gate,
        messages: list[dict[str, Any]],
        *,
        on_text: Callable[[str], None] | None = None,
        **options: Any,
    ) -> tuple[Completion, Usage, float]:
        """Make one call within the budget and journal it; return what came, its tokens and its cost in USD.

        An option that the server refuses (a response format, tools) is left out from then on.

        Raises:
            ModelError: It failed, or does not fit the budget.
        """
        offered = {name: value for name, value in options.items() if name not in self._refused_options}
        try:
            return self._paid(request, gate.release(messages), on_text, offered)
        except ModelError as error:
            refused = [name for name in offered if _names(error, _OPTIONAL.get(name, ()))]
            if error.retryable or not refused:
                raise
            self._refused_options.update(refused)
            left = {name: value for name, value in offered.items() if name not in refused}
            return self._paid(request, gate.release(messages), on_text, left)

    def max_output(self, purpose: Purpose) -> int:
        """Return how many tokens an answer may have."""
        known, wanted = facts(self.name), self._library.settings.llm.max_output_tokens
        short = wanted if known.is_reasoning else MAX_OUTPUT_TOKENS.get(purpose, wanted)
        return min(wanted, short, known.max_output_tokens or wanted)

    def _paid(
        self,
        request: Request,
        messages: Released,
        on_text: Callable[[str], None] | None,
        options: dict[str, Any],
    ) -> tuple[Completion, Usage, float]:
        settings, endpoint = self._library.settings.llm, self.endpoint
        max_tokens = self.max_output(request.purpose)
        sent = json.dumps([list(messages.content), options.get("tools", "")], ensure_ascii=False)
        estimate = tokens.count(sent, self.name)
        made = Call(endpoint, messages, max_tokens, settings.timeout_seconds, options, on_text, request.abandon)
        about = _about(request)
        with metered(self._ledger, endpoint, request.purpose, estimate, max_tokens, request.cause, about) as call:
            complete(made, call.completion)
        return call.completion, call.usage, call.cost_usd

    def _typed(self, request: Request) -> Result:
        """Ask for JSON, and once more with the errors when it does not validate."""
        gate = Gate(self._library, is_remote=self.is_remote)
        messages = self.memory(request, gate)
        options: dict[str, Any] = {"response_format": request.result, "temperature": 0}
        problems = ""
        for _ in range(2):
            completion, *_ = self.call(request, gate, messages, **options)
            check_refusal(completion, self.name)
            try:
                return request.result.model_validate_json(_json_in(completion.text))
            except ValidationError as error:
                if completion.finish == "length" and isinstance(request, ConsolidateRequest) and len(request.said) > 1:
                    return self._halved(request)  # less to say about fewer exchanges
                problems = _sentences(error, completion)
            again = [{"role": "assistant", "content": completion.text[:4000] or "(nothing)"}]
            messages = [*messages, *again, {"role": "user", "content": ASK_AGAIN.format(problems=problems)}]
        raise ModelError(
            f"`{self.name}` gave no valid answer for `{request.purpose}`, twice: {problems}",
            retryable=request.purpose not in FOREGROUND,
            advice=f"A larger model may do better: llm.models: {{{request.purpose}: ...}} in system/config.yaml.",
        )

    def _halved(self, request: ConsolidateRequest) -> Consolidation:
        """Consolidate more than the window holds in two parts: nothing of what was said may be left unread."""
        from dataclasses import replace

        middle = len(request.said) // 2
        parts = [self.run(replace(request, said=part)) for part in (request.said[:middle], request.said[middle:])]
        return Consolidation(operations=[operation for part in parts for operation in part.operations])  # type: ignore[attr-defined]


def _about(request: Request) -> str:
    """Return the id of the prompt or exchange that a request deals with; "" for one that deals with many."""
    if isinstance(request, ReflectRequest):
        return request.exchange.id
    return request.prompt.id if isinstance(request, AnswerRequest | QueriesRequest) else ""


def check_refusal(completion: Completion, model: str) -> None:
    """Raise what a person should know when a model declined or the answer broke off.

    Raises:
        ModelError: It refused, was filtered, or did not finish.
    """
    if completion.refusal or completion.finish == "content_filter":
        said = f": “{completion.refusal[:200]}”" if completion.refusal else " (the provider's content filter)"
        raise ModelError(f"`{model}` refused to answer{said}.", advice="Rephrase the prompt, or choose another model.")
    if not completion.finish:
        raise ModelError(f"The answer of `{model}` broke off.", retryable=True, advice="It is tried again by itself.")


def _names(error: ModelError, words: tuple[str, ...]) -> bool:
    text = error.problem.lower()
    return any(word in text for word in words)


def _json_in(text: str) -> str:
    """Return the JSON object in an answer that may have prose or a code fence around it."""
    found = re.search(r"\{.*\}", text[:400_000], re.DOTALL)
    return found.group() if found else text[:1000]


def _sentences(error: ValidationError, completion: Completion) -> str:
    if not completion.text.strip():
        return "it was empty"
    if completion.finish == "length":
        return "it was too long and was cut off; be brief"
    told = [f"`{'.'.join(map(str, e['loc'])) or 'answer'}`: {e['msg']}" for e in error.errors()[:5]]
    return "; ".join(told)
