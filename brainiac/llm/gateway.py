"""The gateway: the one way to every model; it picks the engine for a request, as a rule the one by litellm below."""

from __future__ import annotations

import json
import posixpath
import re
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from pydantic import ValidationError

from brainiac.errors import BrainiacError, InvalidAnswerError, ModelError, WindowError
from brainiac.formats.discretion import Audience, is_private_event
from brainiac.formats.markdown import relative_link
from brainiac.formats.page import shareable_text
from brainiac.library import Library
from brainiac.llm import schemas
from brainiac.llm.catalog import FOREGROUND, FREE, Endpoint, Ledger, Price, count, endpoint_of, facts
from brainiac.llm.completion import Completion, complete, metered
from brainiac.llm.context.assembler import Assembler, schema_of
from brainiac.llm.context.blocks import Stability, WorkingMemory, budget_tokens, tool_tokens
from brainiac.llm.context.memory import focus_blocks
from brainiac.llm.gate import Gate, is_private_request
from brainiac.llm.offline import OfflineEngine
from brainiac.llm.salvage import BROKEN, read_result
from brainiac.llm.tools import Toolbox

_NO_LIMIT = 1_000_000  # tokens, of blocks that are only compared


class Gateway:
    """Serves requests by the engine that the settings name for their purpose.

    Args:
        library: The memory; its settings are read for every request, so that a change counts for the next one.

    Thread-safe.

    Attributes:
        ledger: The account of what calls cost, one for all engines.
        instead: The model that serves a purpose in this process, in place of that of the settings; by purpose.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self.ledger = Ledger(library)
        self.instead: dict[schemas.Purpose, str] = {}
        # Engines live as long as the brain is open: they remember how to begin a request like the one before it.
        self._mutex = threading.Lock()
        self._engines: dict[str, schemas.Engine] = {schemas.OFFLINE: OfflineEngine()}
        self._factories: dict[str, Callable[[Library], schemas.Engine]] | None = None

    def run(self, request: schemas.Request) -> schemas.Result:
        """Serve one request with a result of type `request.result`.

        A private request never goes to a remote engine: the offline engine serves it, and the answer's
        `model` says so.

        Raises:
            ModelError: The call failed; `retryable` says whether waiting helps. No other engine is tried.
        """
        engine = self.engine_for(request)
        if isinstance(engine, OfflineEngine | LiteLLMEngine):
            result = engine.run(request)
        else:  # one of a plugin, whose request has passed the gate
            gate = Gate.of(self._library, request, engine)
            result = engine.run(gate.admit(request))
            if isinstance(result, schemas.Answer) and isinstance(request, schemas.AnswerRequest):
                # it may have seen a shorter list of hits: its third may be the caller's fifth
                shown, known = gate.hits(request.hits), [(hit.path, hit.anchor, hit.text) for hit in request.hits]
                cited = [shown[index] for index in result.cited if 0 <= index < len(shown)]
                places = [known.index((hit.path, hit.anchor, hit.text)) for hit in cited]
                result = result.model_copy(update={"cited": places})
        if not isinstance(result, request.result):
            raise ModelError(
                f"The engine `{engine.name}` answered with {type(result).__name__}, not {request.result.__name__}.",
                advice="This is a fault of the plugin that registered it.",
            )
        if isinstance(result, schemas.Answer) and not result.model:
            return result.model_copy(update={"model": engine.name})
        return result

    def working_memory(
        self,
        request: schemas.Request,
        *,
        gate: Gate | None = None,
        budget_tokens: int | None = None,
        left_out: Collection[Stability] = (),
    ) -> WorkingMemory:
        """Return the working memory of one request as the model that would serve it sees it; tools left out.

        Args:
            request: The values to show.
            gate: What may be shown; None for the gate of the model that would serve.
            budget_tokens: A smaller budget than the settings' and the model's.
            left_out: Kinds of blocks to leave out.
        """
        engine = self.engine_for(request)
        gate, assembler = gate or Gate.of(self._library, request, engine), Assembler(self._library)
        return assembler.assemble(request, model=engine.name, gate=gate, budget_tokens=budget_tokens, left_out=left_out)

    def engine_for(self, request: schemas.Request) -> schemas.Engine:
        """Return the engine for a request: that of the prompt's `model`, else of the purpose, else the default.

        That of the purpose is the one in `instead`, else in the settings. Where the engine is remote and the request
        private, the offline engine takes its place.
        """
        settings = self._library.settings.llm
        of_prompt = getattr(getattr(request, "prompt", None), "model", None)
        of_purpose = self.instead.get(request.purpose) or settings.models.get(request.purpose.value)
        engine = self._engine(of_prompt or of_purpose or settings.model)
        is_kept_here = engine.is_remote and is_private_request(self._library, request)
        return self._engine(schemas.OFFLINE) if is_kept_here else engine

    def price_of(self, request: schemas.Request) -> Price:
        """Return the price of the engine for a request; the offline engine and those of plugins count as free.

        Raises:
            ModelError: No price is known, or there is no key.
        """
        engine = self.engine_for(request)
        if not isinstance(engine, LiteLLMEngine):
            return FREE
        return self.ledger.price_of(endpoint_of(engine.name, self._library.machine))

    def rests_on_private(self, request: schemas.AnswerRequest, answer: schemas.Answer) -> bool:
        """Return whether an answer made on this machine may repeat something private, and so is private too (F-RSP-4).

        A model may repeat anything it was shown; the offline engine repeats only the hits that it cites.
        """
        library, engine = self._library, self.engine_for(request)
        if engine.is_remote or request.prompt.by:
            return False  # it was shown nothing private
        remote_gate = Gate(library)
        hits = [request.hits[number] for number in answer.cited] if engine.name == schemas.OFFLINE else request.hits
        # a hit from which the remote gate cuts a line counts as hidden too
        is_any_hidden = remote_gate.hits(hits) != list(hits)
        if is_any_hidden or engine.name == schemas.OFFLINE:
            return is_any_hidden
        memory = request.short_term
        is_any_private = memory.is_private or any(turn.is_private for turn in request.conversation)
        if is_any_private or any(map(is_private_event, memory.events)):
            return True
        # short-term memory was checked above
        pages = {*answer.read, *answer.cited_paths} - {library.tree.relative(library.tree.short_term)}
        if any(shareable_text(text) != text for path in pages if (text := library.read_text(path))):
            return True
        # a private note in the prompt's focus was shown only to a model on this machine
        gates = (remote_gate, Gate(library, Audience.NOBODY))
        shareable, whole = (focus_blocks(library, request.prompt, _NO_LIMIT, len, gate) for gate in gates)
        return shareable != whole

    def _engine(self, name: str) -> schemas.Engine:
        """Return the engine of a model, made when first asked for: the offline one, a plugin's, or one by litellm."""
        with self._mutex:
            if name not in self._engines:
                if self._factories is None:
                    # plugins are asked once, and not at all in a brain that only uses the offline engine
                    self._factories = {}
                    self._library.call_hook("register_models", register=self._factories.__setitem__)
                factory = self._factories.get(name)
                engine = factory(self._library) if factory else LiteLLMEngine(self._library, name, self.ledger)
                self._engines[name] = engine
            return self._engines[name]


# --- the engine for every model that litellm reaches ---------------------------------------------------------------

# These answers are short. The limit bounds the cost of a small model that does not stop; reasoning models have none.
MAX_OUTPUT_TOKENS = {
    schemas.Purpose.QUERIES: 400,
    schemas.Purpose.REFLECT: 2000,
    schemas.Purpose.SYNTHESIZE: 2000,
    schemas.Purpose.SUMMARIZE: 1500,
}
MAX_CALLS = 8  # tool calls in one round
GO_ON = "It was cut off. Go on with JSON of the same form: only the operations after the last one that is whole."
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
        """Serve one request; exchanges or claims that are too many for the model's window are served in two halves.

        Raises:
            ModelError: See `Gateway.run`.
        """
        if isinstance(request, schemas.AnswerRequest):
            return self._answer(request)
        try:
            return self._typed(request)
        except WindowError:
            name = {schemas.ConsolidateRequest: "said", schemas.VerifyRequest: "claims"}.get(type(request), "")
            rows, joined = getattr(request, name, ()), dict[str, list[Any]]()
            if len(rows) < 2:
                raise
            for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):  # so that none is left out
                half: dict[str, Any] = {name: part}
                for field, values in self.run(replace(request, **half)):
                    joined[field] = [*joined.get(field, ()), *values]
            return request.result(**joined)

    # --- an answer, with tools where the model takes them ------------------------------------------------------

    def _answer(self, request: schemas.AnswerRequest) -> schemas.Answer:
        """Have the model call tools in a bounded number of rounds, then answer.

        Returns:
            The text with correct links, and the pages it cites.

        Raises:
            ModelError: A call failed, or the model refused, gave an empty text twice, or asked for tools without end.
        """
        settings, gate = self._library.settings, Gate.of(self._library, request, self)
        toolbox = Toolbox(self._library, request, gate, room_tokens=tool_tokens(budget_tokens(settings, self.name)))
        rounds = settings.context.tool_rounds if facts(self.name).has_tools is not False else 0
        tools = toolbox.descriptions() if rounds else ()
        memory = self._assembler.assemble(request, model=self.name, tools=tools, gate=gate)
        messages, tokens, cost_usd, was_empty = memory.messages, 0, 0.0, False
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
                calls, results = [], []
                for at, call in enumerate(completion.tool_calls[:MAX_CALLS]):
                    call_id, given = call.id or f"call_{at}", toolbox.call(call.name, call.arguments)
                    function = {"name": call.name, "arguments": call.arguments or "{}"}
                    calls.append({"id": call_id, "type": "function", "function": function})
                    results.append({"role": "tool", "tool_call_id": call_id, "content": given})
                asking = {"role": "assistant", "content": completion.text or None, "tool_calls": calls}
                messages = [*messages, asking, *results]
                continue
            _check_refusal(completion, self.name)
            if was_empty or completion.text.strip():
                break
            was_empty = True
        if not (text := completion.text.strip()):
            why = "it kept asking for tools." if completion.tool_calls else "its text was empty, twice."
            raise ModelError(f"`{self.name}` gave no answer: {why}", advice="Ask again, or choose another model.")
        if completion.finish == "length":
            text += CUT_OFF.format(tokens=self._max_output(request.purpose))
        text, places = _with_true_links(self._library, request, text, toolbox.read, gate)
        keys, cited = {key for block in memory.blocks for key in block.hits}, {path for path, _ in places}
        rows = list(enumerate(request.hits))
        return schemas.Answer(
            text=text,
            # a link to one statement cites that alone
            cited=[index for index, hit in rows if {(hit.path, ""), (hit.path, hit.anchor)} & places],
            shown=[index for index, hit in rows if hit.key in keys],
            read=toolbox.read,
            cited_paths=sorted(cited - {hit.path for hit in request.hits}),
            model=self.name,
            tokens=tokens,
            cost_usd=round(cost_usd, 8),
        )

    # --- all other purposes: JSON by a schema ------------------------------------------------------------------

    def _typed(self, request: schemas.Request) -> schemas.Result:
        """Ask for JSON and return it as the request's result; ask once more, with the errors, if it does not validate.

        Raises:
            WindowError: The JSON for several exchanges was too long.
            ModelError: A call failed, the model refused, or its JSON did not validate twice.
        """
        gate = Gate.of(self._library, request, self)
        messages = self._assembler.assemble(request, model=self.name, gate=gate).messages
        # not `strict`, which would demand every empty field
        form = {"name": request.result.__name__, "schema": schema_of(request.result)}
        options = {"response_format": {"type": "json_schema", "json_schema": form}, "temperature": 0}
        problems, fails, whole, unread = "", 0, list[schemas.Operation](), list[schemas.Unread]()
        while fails < 2:
            completion = self._call(request, gate, messages, options)
            _check_refusal(completion, self.name)
            is_cut = completion.finish == "length"
            text, ask = completion.text, GO_ON
            try:
                result = read_result(text, request.result)
            except ValidationError as error:
                said = request.said if isinstance(request, schemas.ConsolidateRequest) else ()
                if is_cut and len(said) > 1 and not whole:
                    raise WindowError(f"`{self.name}` has too much to say on {len(said)} exchanges.") from None
                fails, problems = fails + 1, "it was too long and was cut off; be brief"  # in words for the model
                if not text.strip():
                    problems = "it was empty"
                elif not is_cut:
                    problems = schemas.problems_in(error)
                # cut, since the answer of a model that did not stop would fill its window
                text, ask = text[:4000], ASK_AGAIN.format(problems=problems)
            else:
                if not isinstance(result, schemas.Consolidation):
                    return result
                # a model that begins its list anew repeats what it has given
                more = [operation for operation in result.operations if operation not in whole]
                whole += more
                unread += [row for row in result.unread if not (is_cut and more and row.problem == BROKEN)]
                # one that never ends is not gone on with for ever
                if not (is_cut and more) or len(whole) >= schemas.MAX_ROWS:
                    return schemas.Consolidation(operations=whole[: schemas.MAX_ROWS], unread=unread)
            answered = {"role": "assistant", "content": text or "(nothing)"}
            messages = [*messages, answered, {"role": "user", "content": ask}]
        if whole:  # what was to follow is asked about by name
            unread.append(schemas.Unread(text="", problem=f"what was to follow: {problems}"))
            return schemas.Consolidation(operations=whole, unread=unread)
        raise InvalidAnswerError(
            f"`{self.name}` gave no valid answer for `{request.purpose}`, twice: {problems}",
            retryable=request.purpose not in FOREGROUND,
            advice=f"A larger model may do better: llm.models: {{{request.purpose}: ...}} in system/config.yaml.",
        )

    # --- one call ----------------------------------------------------------------------------------------------

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


def _with_true_links(
    library: Library, request: schemas.AnswerRequest, text: str, read_paths: list[str], gate: Gate
) -> tuple[str, set[tuple[str, str]]]:
    """Return an answer with its links relative to the response, and what it cites: paths, each with a block id or "".

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
    anchors = {(hit.path, hit.anchor) for hit in gate.hits(request.hits)}
    cited: set[tuple[str, str]] = set()

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
        place = (path, anchor.removeprefix("^"))
        cited.add(place if place in anchors else (path, ""))
        link = quote(relative_link(path, folder), safe="/.#^-_~")
        identity = f' "uuid:{uuid}"' if uuid else ""
        return f"[{title}]({link}{hash_sign}{quote(anchor, safe='^-')}{identity})"

    return _LINK.sub(corrected, text), cited
