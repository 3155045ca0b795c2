"""Answering with tools: a bounded number of rounds, then the text; the links in it made right (seeds S10, R3, R8)."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from brainiac.errors import BrainiacError, ModelError
from brainiac.library import Library
from brainiac.llm.catalog import facts
from brainiac.llm.completion import Completion
from brainiac.llm.context.budget import budget_tokens, tool_tokens
from brainiac.llm.context.tools import Toolbox
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import Answer, AnswerRequest

if TYPE_CHECKING:
    from brainiac.llm.providers import LiteLLMEngine

MAX_CALLS = 8
CUT_OFF = "\n\n*(The answer was cut off at {tokens:,} tokens; `llm.max_output_tokens` gives it more room.)*"
_LINK = re.compile(r'\[([^\[\]\n]*)\]\(<?([^)<>\s"]+)>?(\s+"uuid:([0-9A-Za-z-]+)")?\)')


def answer(engine: LiteLLMEngine, library: Library, request: AnswerRequest) -> Answer:
    """Let a model answer, with tools where it takes them.

    Raises:
        ModelError: It failed, refused, said nothing twice, or asked for tools without end.
    """
    room = tool_tokens(budget_tokens(library.settings, engine.name))
    gate = Gate(library, is_remote=engine.is_remote, is_kept=not request.off_record)
    toolbox = Toolbox(library, request, gate, room_tokens=room)
    rounds = library.settings.context.tool_rounds if facts(engine.name).has_tools is not False else 0
    messages = engine.memory(request, gate, toolbox.descriptions() if rounds else ())
    tokens, cost = 0, 0.0
    completion = Completion()
    was_empty = False
    for left in range(rounds, -2, -1):
        options: dict[str, Any] = {}
        if rounds:
            options = {"tools": toolbox.definitions(), "tool_choice": "auto" if left > 0 else "none"}
        completion, usage, paid = engine.call(request, gate, messages, on_text=request.on_text, **options)
        tokens, cost = tokens + usage.input + usage.output, cost + paid
        if completion.tool_calls and left > 0:
            messages = [*messages, *_tool_messages(completion, toolbox)]
            continue
        _check(completion, engine.name)
        if completion.text.strip():
            break
        if was_empty or left < 0:
            raise ModelError(
                f"`{engine.name}` gave no answer: "
                + ("it kept asking for tools." if completion.tool_calls else "its text was empty, twice."),
                advice="Ask again, or choose another model.",
            )
        was_empty = True
    text = completion.text.strip()
    if completion.finish == "length":
        text += CUT_OFF.format(tokens=engine.max_output(request.purpose))
    return _finished(library, request, text, toolbox, gate).model_copy(
        update={"model": engine.name, "tokens": tokens, "cost_usd": round(cost, 8)}
    )


def _check(completion: Completion, model: str) -> None:
    from brainiac.llm.providers import check_refusal

    check_refusal(completion, model)


def _tool_messages(completion: Completion, toolbox: Toolbox) -> list[dict[str, Any]]:
    calls = completion.tool_calls[:MAX_CALLS]
    for number, call in enumerate(calls):
        call.id = call.id or f"call_{number}"
    asked = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in calls
    ]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": toolbox.call(call.name, call.arguments)} for call in calls
    ]
    return [{"role": "assistant", "content": completion.text or None, "tool_calls": asked}, *results]


def _finished(library: Library, request: AnswerRequest, text: str, toolbox: Toolbox, gate: Gate) -> Answer:
    """Return the answer with its links relative to the response, and what it cites of what it was shown.

    A link counts as citing only where it names a page that the model was shown. One that bears an identity and leads
    nowhere was made up, as small models do: its title stays.
    """
    shown = {hit.path: hit.uuid for hit in gate.hits(request.hits)} | dict.fromkeys(toolbox.read, "")
    by_uuid = {uuid: path for path, uuid in shown.items() if uuid}
    folder = posixpath.dirname(request.prompt.path)
    cited: set[str] = set()

    def relative(found: re.Match[str]) -> str:
        title, target, _, uuid = found.groups()
        named, hash_sign, anchor = unquote(target).partition("#")
        path = by_uuid.get(uuid or "") or posixpath.normpath(named)
        if path not in shown:
            return found.group() if not uuid or _is_there(library, path) else title
        cited.add(path)
        place = quote(posixpath.relpath(path, folder or "."), safe="/.#^-_~")
        identity = f' "uuid:{uuid}"' if uuid else ""
        return f"[{title}]({place}{hash_sign}{quote(anchor, safe='^-')}{identity})"

    text = _LINK.sub(relative, text)
    return Answer(
        text=text,
        cited=[index for index, hit in enumerate(request.hits) if hit.path in cited],
        read=toolbox.read,
        cited_paths=sorted(cited - {hit.path for hit in request.hits}),
    )


def _is_there(library: Library, path: str) -> bool:
    try:
        return library.read(path) is not None
    except BrainiacError:  # it leads out of the brain
        return False
