"""OpenAI's API under `/v1`: chat completions, streamed or not, and stateless responses.

Each turn becomes a prompt and its answer in `inbox/`, as if the person had saved it there. Only the newest message of
the user is the person's; what a client sends beside it is context for the answer and kept nowhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BrainiacError, ModelError, UserError
from brainiac.events import new_id
from brainiac.formats.prompt import Exchange, Prompt, parse_prompt
from brainiac.formats.prompt import Response as PromptResponse
from brainiac.formats.short_term import ShortTermMemory
from brainiac.llm.catalog import count
from brainiac.llm.schemas import OFFLINE, Answer, AnswerRequest
from brainiac.server.guard import error_body
from brainiac.server.rest import CLIENT_HEADER, Threads, failure, json_of
from brainiac.verbs import Caller

MODEL, RECALL = "brainiac", "brainiac/recall"
RECALLED = 6
MAX_EARLIER = 20
KEPT_KEYS = 1_024
KEEP_ALIVE_SECONDS = 10.0
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PARENT = "x-openwebui-user-message-parent-id"
# by which clients name the conversation that they hold; nothing is guessed from what was said in it
_CHAT_HEADERS = ("x-openwebui-chat-id", "x-conversation-id")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a client asks for.

    Attributes:
        text: The newest message of the user.
        earlier: Pairs of what was said and answered before, as the client tells it.
        model: One of this brain's settings; "" for its default.
        is_recall: It is to be found and quoted, by no model, and nothing is kept.
        conversation: A folder of the inbox; "" for none.
        key: The client's own name for this turn; "" for none.
        is_again: The client wants another answer to it.
        can_revise: The key stands for a place in the conversation, where the person may say something else instead.
        is_chore: The client asks for itself, for a title or tags: nothing is kept.
        client: Who asks.
    """

    text: str
    earlier: tuple[tuple[str, str], ...]
    model: str
    is_recall: bool
    conversation: str
    key: str
    is_again: bool
    can_revise: bool
    is_chore: bool
    client: str

    @property
    def caller(self) -> Caller:
        """Who asks, with the person's own words."""
        return Caller(self.client, "person")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client gets.

    Attributes:
        text: The answer.
        model: Which model gave it.
        asked: Tokens of what was asked.
        answered: Tokens of the answer.
    """

    text: str
    model: str
    asked: int
    answered: int


class Turns:
    """Reads requests as turns, and remembers which of them came before."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._keys: OrderedDict[str, str] = OrderedDict()

    def of(self, headers: Mapping[str, str], body: Mapping[str, Any], messages: Sequence[tuple[str, str]]) -> Turn:
        """Return what a request asks for.

        Raises:
            UserError: No message of a user is in it, or it names a model that is none.
        """
        asked = [number for number, (role, text) in enumerate(messages) if role == "user" and text.strip()]
        if not asked:
            raise UserError("there is no message of the role `user` with text in it")
        model = str(body.get("model") or MODEL)
        chat = next((headers[name] for name in _CHAT_HEADERS if headers.get(name)), "")
        named = headers.get("x-brainiac-conversation") or chat or _conversation_in(body)
        key, is_again = self._key(headers, body, named)
        return Turn(
            text=messages[asked[-1]][1],
            earlier=() if named else tuple(_pairs(messages[: asked[-1]]))[-MAX_EARLIER:],
            model=self._model(model),
            is_recall=model == RECALL,
            conversation=_folder(named, is_ours=bool(headers.get("x-brainiac-conversation"))),
            key=key,
            is_again=is_again,
            can_revise=bool(named) and _PARENT in headers,
            # a client that names its chat streams what the person sees, and nothing else
            is_chore=bool(headers.get("x-openwebui-task")) or (bool(chat) and not body.get("stream")),
            client=_client(headers),
        )

    def _model(self, model: str) -> str:
        """Return the model of the settings that a name means; "" for the default.

        Raises:
            UserError: There is none.
        """
        if model in (MODEL, RECALL):
            return ""
        name = model.removeprefix(f"{MODEL}/")
        if model not in models(self._brain):
            raise UserError(f"{model!r} is no model here; there are {', '.join(models(self._brain))}")
        return name

    def _key(self, headers: Mapping[str, str], body: Mapping[str, Any], conversation: str) -> tuple[str, bool]:
        """Return the client's key of a turn, and whether it wants another answer to it.

        A client that repeats a request since no answer came says so in a header; it means the same turn. Where it names
        the message before, the turn is known by that: a message that was edited has a name of its own.
        """
        retries = headers.get("x-stainless-retry-count", "0")
        is_retry = retries.isdigit() and int(retries) > 0
        if key := headers.get("idempotency-key") or headers.get("x-idempotency-key"):
            return key, False
        if message := headers.get("x-openwebui-user-message-id"):
            if conversation and _PARENT in headers:
                message = f"{conversation} after {headers[_PARENT]}"
            answer = headers.get("x-openwebui-message-id", "")
            former = self._keys.get(message)
            self._keep(message, answer)
            return message, not is_retry and former != answer
        digest = hashlib.sha256(json.dumps([_client(headers), body], sort_keys=True).encode()).hexdigest()
        if not is_retry or digest not in self._keys:
            self._keep(digest, new_id())
        return self._keys[digest], False

    def _keep(self, name: str, value: str) -> None:
        self._keys[name] = value
        self._keys.move_to_end(name)
        while len(self._keys) > KEPT_KEYS:
            self._keys.popitem(last=False)


def models(brain: Brain) -> list[str]:
    """Return the models that a client may name."""
    settings = brain.settings.llm
    named = dict.fromkeys(name for name in (settings.model, *settings.models.values()) if name != OFFLINE)
    return [MODEL, RECALL, *(f"{MODEL}/{name}" for name in named)]


def _client(headers: Mapping[str, str]) -> str:
    name = headers.get(CLIENT_HEADER) or headers.get("user-agent", "").split(" ")[0] or "unknown"
    return "v1:" + "".join(sign for sign in name if sign.isprintable())[:60]


def _conversation_in(body: Mapping[str, Any]) -> str:
    value = body.get("conversation")
    return str(value.get("id") or "") if isinstance(value, dict) else str(value or "")


def _folder(name: str, *, is_ours: bool) -> str:
    """Return the folder of a conversation: its name where it is a plain one meant for us, else one made of its id."""
    if not name:
        return ""
    if is_ours and _PLAIN_NAME.fullmatch(name):
        return name
    return "chat-" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]


def _pairs(messages: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield what the user said and what the assistant answered; other roles are the client's own."""
    said = ""
    for role, text in messages:
        if role == "user":
            said = text
        elif role == "assistant" and said:
            yield said, text
            said = ""


def messages_of(values: Any) -> list[tuple[str, str]]:
    """Return the role and text of each message, of either API.

    Raises:
        UserError: They are no list of messages.
    """
    if isinstance(values, str):
        return [("user", values)]
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UserError("messages must be a list of objects with `role` and `content`")
    return [(str(value.get("role") or ""), _text_in(value.get("content"))) for value in values]


def _text_in(content: Any) -> str:
    """Return the text of a message's content; images and files in it are left out."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


# --- the answer ----------------------------------------------------------------------------------------------------


def reply_to(brain: Brain, turn: Turn, stream: Callable[[str], None]) -> Reply:
    """Answer a turn.

    Raises:
        UserError: It was refused, or no model could serve.
    """
    if turn.is_recall:
        return _recalled(brain, turn)
    if turn.is_chore:
        return _chore(brain, turn)
    asked = verbs.ask(
        brain,
        turn.text,
        conversation=turn.conversation,
        model=turn.model,
        key=turn.key,
        is_again=turn.is_again,
        can_revise=turn.can_revise,
        earlier=[_exchange(brain, turn, said, answered) for said, answered in turn.earlier],
        caller=turn.caller,
        stream=stream,
    )
    if asked.response is None:
        raise UserError(asked.waits)
    return _reply(turn, asked.response.text, asked.response.model)


def _reply(turn: Turn, text: str, model: str) -> Reply:
    return Reply(text, model, count(turn.text), count(text))


def _recalled(brain: Brain, turn: Turn) -> Reply:
    """Return what memory holds on a question, quoted; nothing is written."""
    matches = verbs.search(brain, turn.text, limit=RECALLED, caller=turn.caller).matches
    lines = [f"{match.text}\n>\n> — {match.title}, {match.date} (`{match.id}`)" for match in matches]
    return _reply(turn, "\n\n".join(lines) or "Memory holds nothing on that.", RECALL)


def _chore(brain: Brain, turn: Turn) -> Reply:
    """Return the answer to what a client asks for itself: without memory, and kept nowhere."""
    now = brain.now()
    prompt = _prompt(brain, turn, turn.text)
    request = AnswerRequest(now=now, prompt=prompt, short_term=ShortTermMemory(), off_record=True, zone=brain.zone)
    try:
        answer = brain.models.run(request)
    except ModelError as error:
        raise UserError(f"{error.problem} {error.advice}".strip()) from error
    assert isinstance(answer, Answer)
    return _reply(turn, answer.text, answer.model)


def _prompt(brain: Brain, turn: Turn, text: str) -> Prompt:
    """Return words of a client as a prompt that stands in no file."""
    head = f"---\norigin: tool\nby: {json.dumps(turn.client)}\n---\n"
    path = f"{brain.tree.layout.inbox}/v1.md"
    return parse_prompt(
        path, (head + text).encode("utf-8", "replace"), at=iso(brain.now()), inbox=brain.tree.layout.inbox
    )


def _exchange(brain: Brain, turn: Turn, said: str, answered: str) -> Exchange:
    """Return a turn that only the client keeps."""
    prompt = _prompt(brain, turn, said)
    return Exchange(new_id(), prompt, PromptResponse(prompt.path, answered), prompt.at)


# --- the two APIs --------------------------------------------------------------------------------------------------


def openai_routes(brain: Brain, is_stopping: Callable[[], bool]) -> list[Route]:
    """Return what is under `/v1`."""
    turns, threads = Turns(brain), list[Threads]()

    def pool() -> Threads:
        if not threads:
            threads.append(Threads())
        return threads[0]

    async def list_models(request: Request) -> Response:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": MODEL} for name in models(brain)]
        return JSONResponse({"object": "list", "data": data})

    async def serve(request: Request, form: type[_Chat | _Responses], messages: str) -> Response:
        try:
            body = await json_of(request)
            if body.get("previous_response_id"):
                raise UserError("`previous_response_id` is not kept here: send the whole `input` each time")
            turn = turns.of(request.headers, body, messages_of(body.get(messages)))
        except BrainiacError as error:
            return failure(error)
        shape = form(str(body.get("model") or MODEL), body)
        if body.get("stream"):
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            pieces = _pieces(brain, turn, pool(), is_stopping)
            return StreamingResponse(shape.stream(pieces), 200, headers, "text/event-stream")
        try:
            return JSONResponse(shape.whole(await pool().run(partial(reply_to, brain, turn, _ignore))))
        except BrainiacError as error:
            return failure(error)

    async def chat(request: Request) -> Response:
        return await serve(request, _Chat, "messages")

    async def responses(request: Request) -> Response:
        return await serve(request, _Responses, "input")

    return [
        Route("/v1/models", list_models),
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
    ]


def _ignore(piece: str) -> None:
    pass


Pieces = AsyncIterator[str | Reply | BrainiacError | None]


async def _pieces(brain: Brain, turn: Turn, threads: Threads, is_stopping: Callable[[], bool]) -> Pieces:
    """Yield the answer's pieces as they are written, None while there is none, and at the end the reply or an error."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str]()

    def stream(piece: str) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, piece)

    answering = asyncio.ensure_future(threads.run(partial(reply_to, brain, turn, stream)))
    said, silent = "", time.monotonic()
    while not (answering.done() and queue.empty()) and not is_stopping():
        try:
            piece = await asyncio.wait_for(queue.get(), 0.05)
        except TimeoutError:
            if time.monotonic() - silent > KEEP_ALIVE_SECONDS:
                silent = time.monotonic()
                yield None
            continue
        said, silent = said + piece, time.monotonic()
        yield piece
    if not answering.done():
        yield UserError("the daemon is ending; your prompt stands in the inbox")
        return
    try:
        reply: Reply = answering.result()
    except BrainiacError as error:
        yield error
        return
    if reply.text.startswith(said) and reply.text != said:
        yield reply.text[len(said) :]
    yield reply


def _line(value: Mapping[str, Any], event: str = "") -> str:
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _error(error: BrainiacError) -> dict[str, Any]:
    return error_body("; ".join(error.problems) if isinstance(error, UserError) else str(error), 503)


class _Chat:
    """The form of chat completions.

    Args:
        model: As the client named it.
        body: What it sent.
    """

    def __init__(self, model: str, body: Mapping[str, Any]) -> None:
        self._base = {"id": f"chatcmpl-{new_id()}", "created": int(time.time()), "model": model}
        options = body.get("stream_options")
        self._has_usage = isinstance(options, dict) and bool(options.get("include_usage"))

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Return an answer in one piece."""
        choice = {"index": 0, "message": {"role": "assistant", "content": reply.text}, "finish_reason": "stop"}
        return {**self._base, "object": "chat.completion", "choices": [choice], "usage": self._usage(reply)}

    async def stream(self, pieces: Pieces) -> AsyncIterator[str]:
        """Yield an answer as it comes."""
        yield self._chunk({"role": "assistant", "content": ""})
        async for piece in pieces:
            if piece is None:
                yield ": still at it\n\n"
            elif isinstance(piece, str):
                yield self._chunk({"content": piece})
            elif isinstance(piece, Reply):
                yield self._chunk({}, "stop")
                if self._has_usage:
                    yield _line({**self._base, "object": _CHUNK, "choices": [], "usage": self._usage(piece)})
            else:
                yield _line(_error(piece))
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _line({**self._base, "object": _CHUNK, "choices": [choice]})

    def _usage(self, reply: Reply) -> dict[str, int]:
        total = reply.asked + reply.answered
        return {"prompt_tokens": reply.asked, "completion_tokens": reply.answered, "total_tokens": total}


_CHUNK = "chat.completion.chunk"


class _Responses:
    """The form of responses; nothing is kept by which a later one could go on.

    Args:
        model: As the client named it.
        body: What it sent.
    """

    def __init__(self, model: str, body: Mapping[str, Any]) -> None:
        self._model, self._at = model, int(time.time())
        self._id, self._message = f"resp_{new_id()}", f"msg_{new_id()}"
        self._number = -1

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Return an answer in one piece."""
        return self._response("completed", [self._item("completed", reply.text)], reply)

    async def stream(self, pieces: Pieces) -> AsyncIterator[str]:
        """Yield an answer as it comes; each step is announced, since clients break where one is missing."""
        place = {"item_id": self._message, "output_index": 0, "content_index": 0}
        yield self._event("response.created", response=self._response("in_progress", []))
        yield self._event("response.in_progress", response=self._response("in_progress", []))
        yield self._event("response.output_item.added", output_index=0, item=self._item("in_progress"))
        yield self._event("response.content_part.added", **place, part=_part(""))
        async for piece in pieces:
            if piece is None:
                yield ": still at it\n\n"
            elif isinstance(piece, str):
                yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
            elif isinstance(piece, Reply):
                item = self._item("completed", piece.text)
                yield self._event("response.output_text.done", **place, text=piece.text, logprobs=[])
                yield self._event("response.content_part.done", **place, part=_part(piece.text))
                yield self._event("response.output_item.done", output_index=0, item=item)
                yield self._event("response.completed", response=self._response("completed", [item], piece))
            else:
                failed = self._response("failed", []) | {"error": {"code": "server_error", **_error(piece)["error"]}}
                yield self._event("response.failed", response=failed)

    def _event(self, kind: str, **values: Any) -> str:
        self._number += 1
        return _line({"type": kind, "sequence_number": self._number, **values}, kind)

    def _item(self, status: str, text: str | None = None) -> dict[str, Any]:
        content = [] if text is None else [_part(text)]
        return {"type": "message", "id": self._message, "status": status, "role": "assistant", "content": content}

    def _response(self, status: str, output: list[dict[str, Any]], reply: Reply | None = None) -> dict[str, Any]:
        usage = None
        if reply is not None:
            details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
            total = reply.asked + reply.answered
            usage = {"input_tokens": reply.asked, "output_tokens": reply.answered, "total_tokens": total, **details}
        fixed = {"parallel_tool_calls": False, "tool_choice": "none", "tools": [], "error": None, "store": False}
        head = {"id": self._id, "object": "response", "created_at": self._at, "model": self._model, "status": status}
        return {**head, **fixed, "incomplete_details": None, "instructions": None, "output": output, "usage": usage}


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
