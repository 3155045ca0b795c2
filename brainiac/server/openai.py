"""OpenAI's API under `/v1`: chat completions, streamed or not.

Each turn becomes a prompt in `inbox/` and its answer, as if the person had saved it there. Only the newest message of
the user counts as the person's; the others that a client sends are context for the answer and kept nowhere.
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
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BrainiacError, ModelError, UserError
from brainiac.events import new_id
from brainiac.formats.authors import PERSON, client_label
from brainiac.formats.markdown import one_line
from brainiac.formats.prompt import Exchange, Prompt, parse_prompt
from brainiac.formats.prompt import Response as PromptResponse
from brainiac.formats.short_term import ShortTermMemory
from brainiac.llm.catalog import count
from brainiac.llm.schemas import OFFLINE, Answer, AnswerRequest
from brainiac.server.guard import error_body, message_and_status
from brainiac.server.rest import CLIENT_HEADER, STREAM_HEADERS, in_thread, json_of
from brainiac.text.tokens import as_sentence
from brainiac.verbs import Caller

MODEL, RECALL = "brainiac", "brainiac/recall"
RECALLED = 6
MAX_EARLIER = 20
MAX_KEYS = 1_024  # of turns that are remembered
KEEP_ALIVE_SECONDS = 10.0
_NO_TOOLS = "`tools` are not served here: the answer is text from memory; send the request without them"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# ids of a user's message, of the message before it, and of the answer to it
_MESSAGE, _PARENT, _ANSWER = (f"x-openwebui-{name}-id" for name in ("user-message", "user-message-parent", "message"))
# with the client's name of the conversation; nothing is guessed from the messages
_CHAT_HEADERS = ("x-openwebui-chat-id", "x-conversation-id")


@dataclass(frozen=True, slots=True)
class Turn:
    """A request of a client.

    Attributes:
        text: The newest message of the user.
        earlier: Pairs of prompt and answer before it, as the client sends them.
        model: A model of this brain's settings; "" for its default.
        is_recall: Whether it is only searched for: no model is called and nothing is kept.
        conversation: A folder of the inbox; "" for none.
        key: The client's own name for this turn; "" for none.
        is_again: Whether the client wants another answer, if the turn has one already.
        can_revise: Whether the key names a place in the conversation, so that another text there replaces the prompt.
        is_chore: Whether the client asks for its own use, such as a title or tags: nothing is kept.
        caller: The client, with its door; its prompts have the person's own words.
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
    caller: Caller


class Turns:
    """Reads requests as turns, and remembers their keys, so that a repeated request is the same turn."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._answer_ids: OrderedDict[str, str] = OrderedDict()  # the client's, of the latest answer; by key of a turn
        self._keys: OrderedDict[str, str] = OrderedDict()  # of turns without a name of the client's; by request's hash

    def of(self, headers: Mapping[str, str], body: Mapping[str, Any], messages: Sequence[tuple[str, str]]) -> Turn:
        """Return the turn of a request.

        Args:
            headers: Its headers.
            body: Its body.
            messages: Role and text of each message in the body.

        Raises:
            UserError: It has no message of a user, or names an unknown model.
        """
        of_user = [number for number, (role, text) in enumerate(messages) if role == "user" and text.strip()]
        if not of_user:
            raise UserError("there is no message of the role `user` with text in it")
        newest = of_user[-1]
        model = str(body.get("model") or MODEL)
        if model not in (known := models(self._brain)):
            raise UserError(f"{model!r} is no model here; there are {', '.join(known)}")
        own_name = headers.get("x-brainiac-conversation", "")
        chat = next((headers[name] for name in _CHAT_HEADERS if headers.get(name)), "")
        conversation = own_name or chat
        key = self._key(headers, body, conversation)
        return Turn(
            text=messages[newest][1],
            # of a conversation with a name the inbox has the earlier turns
            earlier=() if conversation else tuple(_pairs(messages[:newest]))[-MAX_EARLIER:],
            model="" if model in (MODEL, RECALL) else model.removeprefix(f"{MODEL}/"),
            is_recall=model == RECALL,
            conversation=_folder(conversation, is_ours=bool(own_name)),
            key=key,
            is_again=self._is_again(headers, key),
            can_revise=bool(conversation) and _PARENT in headers,
            # clients that name the chat stream the answers that a person sees; what they do not stream is their own
            is_chore=bool(headers.get("x-openwebui-task")) or (bool(chat) and not body.get("stream")),
            caller=Caller(_client(headers), "person"),
        )

    def _key(self, headers: Mapping[str, str], body: Mapping[str, Any], conversation: str) -> str:
        """Return the key of a turn: the client's own, else that of the user's message, else a new one.

        A request without any of the client's names that repeats another after a failure has the key of that one.
        """
        if key := _idempotency_key(headers):
            return key
        if message := headers.get(_MESSAGE):
            # an edited message has a new id, but the same message before it
            return f"{conversation} after {headers[_PARENT]}" if conversation and _PARENT in headers else message
        digest = hashlib.sha256(json.dumps([_client(headers), body], sort_keys=True).encode()).hexdigest()
        if not (_is_retry(headers) and digest in self._keys):
            _remember(self._keys, digest, new_id())
        return self._keys[digest]

    def _is_again(self, headers: Mapping[str, str], key: str) -> bool:
        """Return whether a client wants another answer to a message: it gives each answer another id."""
        if _idempotency_key(headers) or not headers.get(_MESSAGE):
            return False
        former, answer_id = self._answer_ids.get(key), headers.get(_ANSWER, "")
        _remember(self._answer_ids, key, answer_id)
        return answer_id != former and not _is_retry(headers)


def _idempotency_key(headers: Mapping[str, str]) -> str:
    """Return the client's own key of a request; "" for none."""
    return headers.get("idempotency-key") or headers.get("x-idempotency-key") or ""


def _is_retry(headers: Mapping[str, str]) -> bool:
    """Return whether a client says that it repeats a request after a failure."""
    retries = headers.get("x-stainless-retry-count", "0")
    return retries.isdigit() and int(retries) > 0


def _remember(values: OrderedDict[str, str], name: str, value: str) -> None:
    """Add a value as the newest; the oldest is dropped where there are too many."""
    values[name] = value
    values.move_to_end(name)
    while len(values) > MAX_KEYS:
        values.popitem(last=False)


def models(brain: Brain) -> list[str]:
    """Return the models that a client may name."""
    settings = brain.settings.llm
    names = dict.fromkeys(name for name in (settings.model, *settings.models.values()) if name != OFFLINE)
    return [MODEL, RECALL, *(f"{MODEL}/{name}" for name in names)]


def _client(headers: Mapping[str, str]) -> str:
    """Return the client as it names itself, with its door."""
    return client_label("v1", headers.get(CLIENT_HEADER) or headers.get("user-agent", "").split(" ")[0])


def _folder(name: str, *, is_ours: bool) -> str:
    """Return the inbox folder of a conversation: its name if it is plain and from our own header, else a hash of it."""
    if not name:
        return ""
    if is_ours and _PLAIN_NAME.fullmatch(name):
        return name
    return "chat-" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]


def _pairs(messages: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each message of the user that was answered, with its answer; other roles are left out."""
    prompt = ""
    for role, text in messages:
        if role == "user":
            prompt = text
        elif role == "assistant" and prompt:
            yield prompt, text
            prompt = ""


def messages_of(values: Any) -> list[tuple[str, str]]:
    """Return the role and text of each message; `values` are the `messages` of a request.

    Raises:
        UserError: It is no list of messages.
    """
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UserError("messages must be a list of objects with `role` and `content`")
    return [(str(value.get("role") or ""), _text_in(value.get("content"))) for value in values]


def _text_in(content: Any) -> str:
    """Return the text of a message's content.

    Raises:
        UserError: There is an image, a recording or a file in it.
    """
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    for kind in (str(part.get("type")) for part in parts if not isinstance(part.get("text"), str)):
        if kind != "refusal":  # an assistant's, which is its way of having no text
            raise UserError(f"a message has a part of the type `{kind:.40}`; only text is read here: send it without")
    return "\n\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


# --- the answer ----------------------------------------------------------------------------------------------------


def reply_to(brain: Brain, turn: Turn, stream: Callable[[str], None] | None = None) -> str:
    """Return the answer to a turn; `stream` is called with pieces of the answer as they come.

    Raises:
        UserError: It was refused, or no model could serve.
    """
    if turn.is_recall:
        return _recalled(brain, turn)
    if turn.is_chore:
        return _chore(brain, turn)
    earlier = []  # turns that only the client has
    for said, answer in turn.earlier:
        prompt = _prompt(brain, turn, said, PERSON)
        earlier.append(Exchange(new_id(), prompt, PromptResponse(prompt.path, answer), prompt.at))
    result = verbs.ask(
        brain,
        turn.text,
        conversation=turn.conversation,
        model=turn.model,
        key=turn.key,
        is_again=turn.is_again,
        can_revise=turn.can_revise,
        earlier=earlier,
        caller=turn.caller,
        stream=stream,
    )
    if result.response is None:
        raise UserError(result.waits)
    return result.response.text


def _recalled(brain: Brain, turn: Turn) -> str:
    """Return what a search finds, quoted; nothing is written."""
    matches = verbs.search(brain, turn.text, limit=RECALLED, caller=turn.caller).matches
    # a client, unlike the person, gets each text as a block quote, to which the source is added
    quotes = []
    for match in matches:
        source = ", ".join(filter(None, (match.hit.author.named, match.title)))
        lines = [match.text, ">", f"> — {source}, {match.date} (`{match.id}`)"]
        quotes.append("\n".join([*lines, *(f"> {one_line(as_sentence(former))}" for former in match.hit.former)]))
    return "\n\n".join(quotes) or "Memory holds nothing on that."


def _chore(brain: Brain, turn: Turn) -> str:
    """Return the answer to a request for the client's own use: it is made without memory and kept nowhere."""
    request = AnswerRequest(
        now=brain.now(),
        prompt=_prompt(brain, turn, turn.text, "tool"),
        short_term=ShortTermMemory(),
        off_record=True,
        zone=brain.zone,
    )
    try:
        answer = brain.models.run(request)
    except ModelError as error:
        raise UserError(f"{error.problem} {error.advice}".strip()) from error
    assert isinstance(answer, Answer)
    return answer.text


def _prompt(brain: Brain, turn: Turn, text: str, origin: str) -> Prompt:
    """Return a text of a client as a prompt that is in no file: parsed like one, with a path that no file has."""
    inbox = brain.tree.layout.inbox
    content = f"---\norigin: {origin}\nby: {json.dumps(turn.caller.by)}\n---\n{text}".encode("utf-8", "replace")
    return parse_prompt(f"{inbox}/v1.md", content, at=iso(brain.now()), inbox=inbox)


# --- the API -------------------------------------------------------------------------------------------------------


def openai_routes(brain: Brain, is_stopping: Callable[[], bool]) -> list[Route]:
    """Return the routes under `/v1`.

    Args:
        brain: The daemon's.
        is_stopping: Returns whether the server is to end, and with it its streams.
    """
    turns = Turns(brain)

    async def list_models(request: Request) -> Response:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": MODEL} for name in models(brain)]
        return JSONResponse({"object": "list", "data": data})

    async def answer(request: Request) -> Response:
        body = await json_of(request)
        choice = body.get("tool_choice") or body.get("function_call")
        # nobody here would call a function
        if body.get("tools") or body.get("functions") or choice not in (None, "none", "auto"):
            raise UserError(_NO_TOOLS)
        turn = turns.of(request.headers, body, messages_of(body.get("messages")))
        writer = _Chat(str(body.get("model") or MODEL), body, turn)
        if not body.get("stream"):
            return JSONResponse(writer.whole(await in_thread(reply_to, brain, turn)))
        pieces = _pieces(brain, turn, is_stopping)
        return StreamingResponse(writer.stream(pieces), 200, STREAM_HEADERS, "text/event-stream")

    async def responses(request: Request) -> Response:
        what = "OpenAI's Responses are not served here; set the program to chat completions (POST /v1/chat/completions)"
        return JSONResponse(error_body(what, 404), 404)

    return [
        Route("/v1/models", list_models),
        Route("/v1/chat/completions", answer, methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
    ]


Pieces = AsyncIterator[str | BrainiacError | None]  # see `_pieces`


async def _pieces(brain: Brain, turn: Turn, is_stopping: Callable[[], bool]) -> Pieces:
    """Yield the pieces of an answer as they come, None where none came for long, and an error where it failed."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str]()

    # called in the thread that answers, where the queue must not be touched
    def stream(piece: str) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, piece)

    task = asyncio.ensure_future(in_thread(reply_to, brain, turn, stream))
    text, last_at = "", time.monotonic()  # the pieces so far, and when something was last sent
    while not (task.done() and queue.empty()) and not is_stopping():
        try:
            piece = await asyncio.wait_for(queue.get(), 0.05)
        except TimeoutError:
            if time.monotonic() - last_at > KEEP_ALIVE_SECONDS:
                last_at = time.monotonic()
                yield None
            continue
        text, last_at = text + piece, time.monotonic()
        yield piece
    if not task.done():
        yield UserError("the daemon is ending; your prompt stands in the inbox")
        return
    try:
        reply: str = task.result()
    except BrainiacError as error:
        yield error
        return
    # what a process added to the answer after the model's last piece
    if reply.startswith(text) and reply != text:
        yield reply[len(text) :]


def _line(value: Mapping[str, Any]) -> str:
    """Return an object as a server-sent event."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


class _Chat:
    """Writes replies in the form of chat completions.

    Args:
        model: The client's name of the model.
        body: The request's body.
        turn: What they answer.
    """

    def __init__(self, model: str, body: Mapping[str, Any], turn: Turn) -> None:
        self._turn = turn
        self._base = {"id": f"chatcmpl-{new_id()}", "created": int(time.time()), "model": model}
        options = body.get("stream_options")
        self._has_usage = isinstance(options, dict) and bool(options.get("include_usage"))

    def whole(self, reply: str) -> dict[str, Any]:
        """Return an answer in one piece."""
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        return {**self._base, "object": "chat.completion", "choices": [choice], "usage": self._usage(reply)}

    async def stream(self, pieces: Pieces) -> AsyncIterator[str]:
        """Yield an answer as it comes."""
        yield self._chunk({"role": "assistant", "content": ""})
        text = ""
        async for piece in pieces:
            if piece is None:
                yield ": still at it\n\n"
            elif isinstance(piece, str):
                text += piece
                yield self._chunk({"content": piece})
            else:  # after the stream has begun
                yield _line(error_body(message_and_status(piece)[0], 503))
                break
        else:
            yield self._chunk({}, "stop")
            if self._has_usage:
                yield _line({**self._base, "object": _CHUNK, "choices": [], "usage": self._usage(text)})
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _line({**self._base, "object": _CHUNK, "choices": [choice]})

    def _usage(self, reply: str) -> dict[str, int]:
        prompt, answer = count(self._turn.text), count(reply)  # estimates
        return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


_CHUNK = "chat.completion.chunk"
