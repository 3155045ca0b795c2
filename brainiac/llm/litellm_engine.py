"""The engine for every model that litellm reaches: working memory in, typed results out, every call in budget."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from pydantic import ValidationError

from brainiac.errors import BrainiacError, ModelError, WindowError
from brainiac.library import Library
from brainiac.llm.catalog import Endpoint, count, endpoint_of, facts
from brainiac.llm.completion import Call, Completion, complete, metered
from brainiac.llm.context.assembler import Assembler
from brainiac.llm.context.blocks import budget_tokens, tool_tokens
from brainiac.llm.costs import FOREGROUND, Ledger
from brainiac.llm.gate import Gate, Released
from brainiac.llm.schemas import (
    Answer,
    AnswerRequest,
    ConsolidateRequest,
    Consolidation,
    Purpose,
    QueriesRequest,
    ReflectRequest,
    Request,
    Result,
)
from brainiac.llm.tools import Toolbox

# a decision is short: bounds cost, and a small model that does not find its end; reasoning models get the full length
MAX_OUTPUT_TOKENS = {
    Purpose.QUERIES: 400,
    Purpose.REFLECT: 2000,
    Purpose.SYNTHESIZE: 1000,
    Purpose.SUMMARIZE: 1500,
}
MAX_CALLS = 8  # of tools in one round
ASK_AGAIN = "That is no valid answer: {problems}\nAnswer again, the whole JSON and nothing else."
CUT_OFF = "\n\n*(The answer was cut off at {tokens:,} tokens; `llm.max_output_tokens` gives it more room.)*"
# options that a server may not take, and the words by which its refusal names them
_OPTIONAL = {
    "response_format": ("response_format", "schema", "grammar", "format"),
    "tools": ("tool", "function"),
    "tool_choice": ("tool",),
}
_LINK = re.compile(r'\[([^\[\]\n]*)\]\(<?([^)<>\s"]+)>?(\s+"uuid:([0-9A-Za-z-]+)")?\)')


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
        return not self._endpoint.is_local

    @property
    def _endpoint(self) -> Endpoint:
        return endpoint_of(self.name, self._library.machine)

    def run(self, request: Request) -> Result:
        """Serve one request.

        Raises:
            ModelError: See `Gateway.run`.
        """
        if isinstance(request, AnswerRequest):
            return self._answer(request)
        try:
            return self._typed(request)
        except WindowError:
            if isinstance(request, ConsolidateRequest) and len(request.said) > 1:
                return self._halved(request)
            raise

    # --- an answer, with tools where the model takes them ------------------------------------------------------

    def _answer(self, request: AnswerRequest) -> Answer:
        gate = Gate(self._library, is_remote=self.is_remote, is_kept=not request.off_record)
        room = tool_tokens(budget_tokens(self._library.settings, self.name))
        toolbox = Toolbox(self._library, request, gate, room_tokens=room)
        completion, tokens, cost_usd = self._talk(request, gate, toolbox)
        text = completion.text.strip()
        if completion.finish == "length":
            text += CUT_OFF.format(tokens=self._max_output(request.purpose))
        text, cited = _with_true_links(self._library, request, text, toolbox.read, gate)
        return Answer(
            text=text,
            cited=[index for index, hit in enumerate(request.hits) if hit.path in cited],
            read=toolbox.read,
            cited_paths=sorted(cited - {hit.path for hit in request.hits}),
            model=self.name,
            tokens=tokens,
            cost_usd=round(cost_usd, 8),
        )

    def _talk(self, request: AnswerRequest, gate: Gate, toolbox: Toolbox) -> tuple[Completion, int, float]:
        """Let the model call tools in a bounded number of rounds, then answer.

        Returns:
            The last call, and the tokens and USD of all of them.

        Raises:
            ModelError: It failed, refused, said nothing twice, or asked for tools without end.
        """
        rounds = self._library.settings.context.tool_rounds if facts(self.name).has_tools is not False else 0
        messages = self._messages(request, gate, toolbox.descriptions() if rounds else ())
        tokens, cost_usd, was_empty = 0, 0.0, False
        # after the rounds one call without tools, and one more for a model whose text was empty
        for left in range(rounds, -2, -1):
            options: dict[str, Any] = {}
            if rounds:
                options = {"tools": toolbox.definitions(), "tool_choice": "auto" if left > 0 else "none"}
            completion = self._call(request, gate, messages, options)
            tokens += completion.usage.input + completion.usage.output
            cost_usd += completion.cost_usd
            if completion.tool_calls and left > 0:
                messages = [*messages, *_tool_messages(completion, toolbox)]
                continue
            _check_refusal(completion, self.name)
            if completion.text.strip():
                return completion, tokens, cost_usd
            if was_empty:
                break
            was_empty = True
        why = "it kept asking for tools." if completion.tool_calls else "its text was empty, twice."
        raise ModelError(f"`{self.name}` gave no answer: {why}", advice="Ask again, or choose another model.")

    # --- everything else: JSON by a schema ---------------------------------------------------------------------

    def _typed(self, request: Request) -> Result:
        """Ask for JSON, and once more with the errors when it does not validate."""
        gate = Gate(self._library, is_remote=self.is_remote)
        messages = self._messages(request, gate)
        problems = ""
        # asked again once, with what was wrong
        for _ in range(2):
            completion = self._call(request, gate, messages, {"response_format": request.result, "temperature": 0})
            _check_refusal(completion, self.name)
            try:
                return request.result.model_validate_json(_json_in(completion.text))
            except ValidationError as error:
                if completion.finish == "length" and isinstance(request, ConsolidateRequest) and len(request.said) > 1:
                    return self._halved(request)  # there is less to say about fewer exchanges
                problems = _problems(error, completion)
            # cut, or a model that did not find its end would fill its own window
            again = [{"role": "assistant", "content": completion.text[:4000] or "(nothing)"}]
            messages = [*messages, *again, {"role": "user", "content": ASK_AGAIN.format(problems=problems)}]
        raise ModelError(
            f"`{self.name}` gave no valid answer for `{request.purpose}`, twice: {problems}",
            retryable=request.purpose not in FOREGROUND,
            advice=f"A larger model may do better: llm.models: {{{request.purpose}: ...}} in system/config.yaml.",
        )

    def _halved(self, request: ConsolidateRequest) -> Consolidation:
        """Consolidate more than the window holds in two parts: nothing of what was said may be left unread."""
        middle = len(request.said) // 2
        results = [self.run(replace(request, said=said)) for said in (request.said[:middle], request.said[middle:])]
        return Consolidation(operations=[operation for result in results for operation in result.operations])  # type: ignore[attr-defined]

    # --- one call ----------------------------------------------------------------------------------------------

    def _messages(self, request: Request, gate: Gate, tools: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        return self._assembler.assemble(request, model=self.name, tools=tools, gate=gate).messages

    def _call(
        self, request: Request, gate: Gate, messages: list[dict[str, Any]], options: dict[str, Any]
    ) -> Completion:
        """Make one call; an option that the server refuses (a response format, tools) is left out from then on.

        Raises:
            ModelError: It failed, or does not fit the budget.
        """
        offered = {name: value for name, value in options.items() if name not in self._refused_options}
        try:
            return self._paid(request, gate.release(messages), offered)
        except ModelError as error:
            problem = error.problem.lower()
            refused = {name for name in offered if any(word in problem for word in _OPTIONAL.get(name, ()))}
            if error.retryable or not refused:
                raise
            # remembered: the server will not learn it before it is restarted
            self._refused_options |= refused
            left = {name: value for name, value in offered.items() if name not in refused}
            return self._paid(request, gate.release(messages), left)

    def _paid(self, request: Request, messages: Released, options: dict[str, Any]) -> Completion:
        """Make one call within the budget and journal it."""
        endpoint, max_tokens = self._endpoint, self._max_output(request.purpose)
        on_text = request.on_text if isinstance(request, AnswerRequest) else None
        timeout_seconds = self._library.settings.llm.timeout_seconds
        call = Call(endpoint, messages, max_tokens, timeout_seconds, options, on_text, request.abandon)
        sent = json.dumps([list(messages.content), options.get("tools", "")], ensure_ascii=False)
        estimate = count(sent, self.name)
        with metered(
            self._ledger, endpoint, request.purpose, estimate, max_tokens, request.cause, _about(request)
        ) as completion:
            complete(call, completion)
        return completion

    def _max_output(self, purpose: Purpose) -> int:
        """Return how many tokens an answer may have."""
        listed, wanted = facts(self.name), self._library.settings.llm.max_output_tokens
        short = wanted if listed.is_reasoning else MAX_OUTPUT_TOKENS.get(purpose, wanted)
        return min(wanted, short, listed.max_output_tokens or wanted)


def _about(request: Request) -> str:
    """Return the id of the prompt or exchange that a request deals with; "" for one that deals with many."""
    if isinstance(request, ReflectRequest):
        return request.exchange.id
    return request.prompt.id if isinstance(request, AnswerRequest | QueriesRequest) else ""


def _check_refusal(completion: Completion, model: str) -> None:
    """Raise what a person should know when a model declined or the answer broke off.

    Raises:
        ModelError: It refused, was filtered, or did not finish.
    """
    if completion.refusal or completion.finish == "content_filter":
        words = f": “{completion.refusal[:200]}”" if completion.refusal else " (the provider's content filter)"
        raise ModelError(f"`{model}` refused to answer{words}.", advice="Rephrase the prompt, or choose another model.")
    if not completion.finish:
        raise ModelError(f"The answer of `{model}` broke off.", retryable=True)


def _json_in(text: str) -> str:
    """Return the JSON object in an answer that may have prose or a code fence around it."""
    match = re.search(r"\{.*\}", text[:400_000], re.DOTALL)
    return match.group() if match else text[:1000]


def _problems(error: ValidationError, completion: Completion) -> str:
    if not completion.text.strip():
        return "it was empty"
    if completion.finish == "length":
        return "it was too long and was cut off; be brief"
    return "; ".join(f"`{'.'.join(map(str, e['loc'])) or 'answer'}`: {e['msg']}" for e in error.errors()[:5])


def _tool_messages(completion: Completion, toolbox: Toolbox) -> list[dict[str, Any]]:
    """Return the tools that a model asked for, as it asked, and what they gave."""
    asked, results = [], []
    for number, call in enumerate(completion.tool_calls[:MAX_CALLS]):
        name = call.id or f"call_{number}"
        function = {"name": call.name, "arguments": call.arguments or "{}"}
        asked.append({"id": name, "type": "function", "function": function})
        results.append({"role": "tool", "tool_call_id": name, "content": toolbox.call(call.name, call.arguments)})
    return [{"role": "assistant", "content": completion.text or None, "tool_calls": asked}, *results]


def _with_true_links(
    library: Library, request: AnswerRequest, text: str, read: list[str], gate: Gate
) -> tuple[str, set[str]]:
    """Return an answer with its links relative to the response, and the paths that it cites.

    A link counts as citing only where it names a page that the model was shown. One that bears an identity and leads
    nowhere was made up, as small models do: its title stays.
    """
    # the uuid is the truth: models copy it right where they shorten a path
    shown = {hit.path: hit.uuid for hit in gate.hits(request.hits)} | dict.fromkeys(read, "")
    by_uuid = {uuid: path for path, uuid in shown.items() if uuid}
    folder = posixpath.dirname(request.prompt.path)
    cited: set[str] = set()

    def relative(match: re.Match[str]) -> str:
        title, target, _, uuid = match.groups()
        name, hash_sign, anchor = unquote(target).partition("#")
        path = by_uuid.get(uuid or "") or posixpath.normpath(name)
        if path not in shown:
            return match.group() if not uuid or _exists(library, path) else str(title)
        cited.add(path)
        place = quote(posixpath.relpath(path, folder or "."), safe="/.#^-_~")
        identity = f' "uuid:{uuid}"' if uuid else ""
        return f"[{title}]({place}{hash_sign}{quote(anchor, safe='^-')}{identity})"

    return _LINK.sub(relative, text), cited


def _exists(library: Library, path: str) -> bool:
    try:
        return library.read(path) is not None
    except BrainiacError:  # it leads out of the brain
        return False
