"""The engine for every model that litellm reaches: it sends working memory and returns typed results."""

from __future__ import annotations

import json
import posixpath
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeGuard
from urllib.parse import quote, unquote

from pydantic import ValidationError

from brainiac.errors import BrainiacError, ModelError, WindowError
from brainiac.formats.markdown import relative_link
from brainiac.library import Library
from brainiac.llm import schemas
from brainiac.llm.catalog import Endpoint, count, endpoint_of, facts
from brainiac.llm.completion import Completion, complete, metered
from brainiac.llm.context.assembler import Assembler
from brainiac.llm.context.blocks import budget_tokens, tool_tokens
from brainiac.llm.context.instructions import schema_of
from brainiac.llm.costs import FOREGROUND, Ledger
from brainiac.llm.gate import Gate, is_through_door
from brainiac.llm.tools import Toolbox

# These answers are short. The limit bounds the cost of a small model that does not stop; reasoning models have none.
MAX_OUTPUT_TOKENS = {
    schemas.Purpose.QUERIES: 400,
    schemas.Purpose.REFLECT: 2000,
    schemas.Purpose.SYNTHESIZE: 1000,
    schemas.Purpose.SUMMARIZE: 1500,
}
MAX_CALLS = 8  # tool calls in one round
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
        library: The memory; its settings and this machine's are read for every request.
        model: A litellm name.
        ledger: The account of what calls cost.
    """

    def __init__(self, library: Library, model: str, ledger: Ledger) -> None:
        self._library, self.name = library, model
        self._ledger = ledger
        self._assembler = Assembler(library)
        self._refused_options: set[str] = set()

    @property
    def is_remote(self) -> bool:
        """Whether requests leave this machine."""
        return not self._endpoint.is_local

    @property
    def _endpoint(self) -> Endpoint:
        return endpoint_of(self.name, self._library.machine)

    def run(self, request: schemas.Request) -> schemas.Result:
        """Serve one request; a consolidation that is too long for the model's window is served in two halves.

        Raises:
            ModelError: See `Gateway.run`.
        """
        if isinstance(request, schemas.AnswerRequest):
            return self._answer(request)
        try:
            return self._typed(request)
        except WindowError:
            if not _can_be_halved(request):
                raise
            return self._halved(request)

    # --- an answer, with tools where the model takes them ------------------------------------------------------

    def _answer(self, request: schemas.AnswerRequest) -> schemas.Answer:
        """Have the model answer a prompt, and return the text with correct links and the pages it cites."""
        gate = Gate(
            self._library,
            is_remote=self.is_remote,
            is_answer_kept=not request.off_record,
            is_door=is_through_door(request),
        )
        room = tool_tokens(budget_tokens(self._library.settings, self.name))
        toolbox = Toolbox(self._library, request, gate, room_tokens=room)
        completion, tokens, cost_usd = self._answer_in_rounds(request, gate, toolbox)
        text = completion.text.strip()
        if completion.finish == "length":
            text += CUT_OFF.format(tokens=self._max_output(request.purpose))
        text, cited = _with_true_links(self._library, request, text, toolbox.read, gate)
        return schemas.Answer(
            text=text,
            cited=[index for index, hit in enumerate(request.hits) if hit.path in cited],
            read=toolbox.read,
            cited_paths=sorted(cited - {hit.path for hit in request.hits}),
            model=self.name,
            tokens=tokens,
            cost_usd=round(cost_usd, 8),
        )

    def _answer_in_rounds(
        self, request: schemas.AnswerRequest, gate: Gate, toolbox: Toolbox
    ) -> tuple[Completion, int, float]:
        """Have the model call tools in a bounded number of rounds, then answer.

        Returns:
            The last completion, and the tokens and USD of all calls.

        Raises:
            ModelError: A call failed, or the model refused, gave an empty text twice, or asked for tools without end.
        """
        rounds = self._library.settings.context.tool_rounds if facts(self.name).has_tools is not False else 0
        messages = self._messages(request, gate, toolbox.descriptions() if rounds else ())
        tokens, cost_usd, was_empty = 0, 0.0, False
        # after the rounds comes one call without tools, and one more for a model whose text was empty
        for number in range(rounds + 2):
            may_call_tools = number < rounds
            options: dict[str, Any] = {}
            if rounds:
                # also in the last calls: the messages before them have calls of these tools
                options = {"tools": toolbox.definitions(), "tool_choice": "auto" if may_call_tools else "none"}
            completion = self._call(request, gate, messages, options)
            tokens += completion.usage.input + completion.usage.output
            cost_usd += completion.cost_usd
            if completion.tool_calls and may_call_tools:
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

    # --- all other purposes: JSON by a schema ------------------------------------------------------------------

    def _typed(self, request: schemas.Request) -> schemas.Result:
        """Ask for JSON and return it as the request's result; ask once more, with the errors, if it does not validate.

        Where a consolidation's JSON was too long, its exchanges are consolidated in two halves instead.

        Raises:
            ModelError: A call failed, the model refused, or its JSON did not validate twice.
        """
        gate = Gate(self._library, is_remote=self.is_remote, is_door=is_through_door(request))
        messages = self._messages(request, gate)
        # not `strict`, which would demand every empty field
        form = {"name": request.result.__name__, "schema": schema_of(request.result)}
        options = {"response_format": {"type": "json_schema", "json_schema": form}, "temperature": 0}
        problems = ""
        for _ in range(2):
            completion = self._call(request, gate, messages, options)
            _check_refusal(completion, self.name)
            try:
                return request.result.model_validate_json(_json_in(completion.text))
            except ValidationError as error:
                if (
                    completion.finish == "length"
                    and isinstance(request, schemas.ConsolidateRequest)
                    and len(request.said) > 1
                ):
                    return self._halved(request)
                problems = _problems(error, completion)
            # cut, since the answer of a model that did not stop would fill its window
            answer = {"role": "assistant", "content": completion.text[:4000] or "(nothing)"}
            messages = [*messages, answer, {"role": "user", "content": ASK_AGAIN.format(problems=problems)}]
        raise ModelError(
            f"`{self.name}` gave no valid answer for `{request.purpose}`, twice: {problems}",
            retryable=request.purpose not in FOREGROUND,
            advice=f"A larger model may do better: llm.models: {{{request.purpose}: ...}} in system/config.yaml.",
        )

    def _halved(self, request: schemas.ConsolidateRequest) -> schemas.Consolidation:
        """Consolidate exchanges that are too many for one call in two halves, so that none is left out."""
        middle = len(request.said) // 2
        first, second = (
            self.run(replace(request, said=half)) for half in (request.said[:middle], request.said[middle:])
        )
        assert isinstance(first, schemas.Consolidation)
        assert isinstance(second, schemas.Consolidation)
        return schemas.Consolidation(operations=[*first.operations, *second.operations])

    # --- one call ----------------------------------------------------------------------------------------------

    def _messages(self, request: schemas.Request, gate: Gate, tools: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        return self._assembler.assemble(request, model=self.name, tools=tools, gate=gate).messages

    def _call(
        self, request: schemas.Request, gate: Gate, messages: list[dict[str, Any]], options: dict[str, Any]
    ) -> Completion:
        """Make one call within the budget and journal it.

        An option that the server refuses (a response format, tools) is not sent any more.

        Raises:
            ModelError: The call failed, or does not fit into the budget.
        """
        endpoint, max_tokens = self._endpoint, self._max_output(request.purpose)
        prompt, exchange = getattr(request, "prompt", None), getattr(request, "exchange", None)
        to_send = {name: value for name, value in options.items() if name not in self._refused_options}
        released = gate.release(messages, prompt.text if prompt else "")
        sent = json.dumps([list(released.content), to_send.get("tools", "")], ensure_ascii=False)
        about = exchange.id if exchange else prompt.id if prompt else ""
        try:
            with metered(
                self._ledger, endpoint, request.purpose, count(sent, self.name), max_tokens, request.cause, about
            ) as completion:
                complete(
                    endpoint,
                    released,
                    completion,
                    max_tokens=max_tokens,
                    timeout_seconds=self._library.settings.llm.timeout_seconds,
                    options=to_send,
                    on_text=getattr(request, "on_text", None),
                    abandon=request.abandon,
                )
                return completion
        except ModelError as error:
            problem = error.problem.lower()
            refused = {name for name in to_send if any(word in problem for word in _OPTIONAL.get(name, ()))}
            if error.retryable or not refused:
                raise
        self._refused_options |= refused
        return self._call(request, gate, messages, options)  # without the refused ones

    def _max_output(self, purpose: schemas.Purpose) -> int:
        """Return how many tokens an answer may have: by the settings, the purpose and the model."""
        model, setting = facts(self.name), self._library.settings.llm.max_output_tokens
        # thoughts count as output: a reasoning model needs more room than the answers of a purpose have
        for_purpose = setting if model.is_reasoning else MAX_OUTPUT_TOKENS.get(purpose, setting)
        return min(setting, for_purpose, model.max_output_tokens or setting)


def _can_be_halved(request: schemas.Request) -> TypeGuard[schemas.ConsolidateRequest]:
    """Return whether a request may be made in two: a consolidation of several exchanges."""
    return isinstance(request, schemas.ConsolidateRequest) and len(request.said) > 1


def _check_refusal(completion: Completion, model: str) -> None:
    """Raise an error where there is no complete answer.

    Raises:
        ModelError: The model refused, a filter stopped the answer, or the stream broke off.
    """
    if completion.refusal or completion.finish == "content_filter":
        words = f": “{completion.refusal[:200]}”" if completion.refusal else " (the provider's content filter)"
        raise ModelError(f"`{model}` refused to answer{words}.", advice="Rephrase the prompt, or choose another model.")
    if not completion.finish:
        raise ModelError(f"The answer of `{model}` broke off.", retryable=True)


def _json_in(text: str) -> str:
    """Return the JSON object in an answer that may have prose or a code fence around it.

    Where there is none it is the beginning of the answer, which then does not validate.
    """
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text[:1000]


def _problems(error: ValidationError, completion: Completion) -> str:
    """Return what is wrong with an answer that does not validate, in words for the model."""
    if not completion.text.strip():
        return "it was empty"
    if completion.finish == "length":
        return "it was too long and was cut off; be brief"
    return "; ".join(f"`{'.'.join(map(str, e['loc'])) or 'answer'}`: {e['msg']}" for e in error.errors()[:5])


def _tool_messages(completion: Completion, toolbox: Toolbox) -> list[dict[str, Any]]:
    """Run the tools that the model called; return the messages with its calls and their results."""
    calls, results = [], []
    for number, call in enumerate(completion.tool_calls[:MAX_CALLS]):
        call_id = call.id or f"call_{number}"
        function = {"name": call.name, "arguments": call.arguments or "{}"}
        calls.append({"id": call_id, "type": "function", "function": function})
        results.append({"role": "tool", "tool_call_id": call_id, "content": toolbox.call(call.name, call.arguments)})
    return [{"role": "assistant", "content": completion.text or None, "tool_calls": calls}, *results]


def _with_true_links(
    library: Library, request: schemas.AnswerRequest, text: str, read_paths: list[str], gate: Gate
) -> tuple[str, set[str]]:
    """Return an answer with its links relative to the response, and the paths that it cites.

    A link cites a page only if the model was shown that page. Of a link with a uuid that leads nowhere, which small
    models invent, only the title stays.

    Args:
        library: The memory.
        request: The request with the hits that the model was shown.
        text: The answer as the model wrote it.
        read_paths: Pages that the model read by tools.
        gate: The gate that the hits passed.
    """
    uuid_of_path = {hit.path: hit.uuid for hit in gate.hits(request.hits)} | dict.fromkeys(read_paths, "")
    path_of_uuid = {uuid: path for path, uuid in uuid_of_path.items() if uuid}
    folder = posixpath.dirname(request.prompt.path)
    cited: set[str] = set()

    def corrected(match: re.Match[str]) -> str:
        title, target, _, uuid = match.groups()
        name, hash_sign, anchor = unquote(target).partition("#")
        # the uuid comes before the path: models copy uuids correctly and shorten paths
        path = path_of_uuid.get(uuid or "") or posixpath.normpath(name)
        if path not in uuid_of_path:
            with suppress(BrainiacError):  # the path lies outside of the brain
                if not uuid or library.read(path) is not None:
                    return match.group()
            return str(title) if uuid else match.group()
        cited.add(path)
        place = quote(relative_link(path, folder), safe="/.#^-_~")
        identity = f' "uuid:{uuid}"' if uuid else ""
        return f"[{title}]({place}{hash_sign}{quote(anchor, safe='^-')}{identity})"

    return _LINK.sub(corrected, text), cited
