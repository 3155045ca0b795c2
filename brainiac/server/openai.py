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
from dataclasses import dataclass, replace
from itertools import chain
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
        caller: The client, with its door; its prompts have the person's own words.
        options: What `ask` is told of it too: the conversation, model and key; whether another answer is wanted, if the
            turn has one already; whether another text with this key replaces the prompt.
        is_recall: Whether it is only searched for: no model is called and nothing is kept.
        is_chore: Whether the client asks for its own use, such as a title or tags: nothing is kept.
    """

    text: str
    earlier: Sequence[tuple[str, str]]
    caller: Caller
    options: Mapping[str, Any]
    is_recall: bool
    is_chore: bool


class Turns:
    """Reads requests as turns, and remembers their keys, so that a repeated request is the same turn."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._answer_ids: OrderedDict[str, str] = OrderedDict()  # the client's, of the latest answer; by key of a turn
        self._keys: OrderedDict[str, str] = OrderedDict()  # of turns without a name of the client's; by request's hash

    def of(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Turn:
        """Return the turn of a request.

        Raises:
            UserError: It has no message of a user with text alone, or names an unknown model.
        """
        messages = _messages_in(body)
        of_user = [number for number, (role, text) in enumerate(messages) if role == "user" and text.strip()]
        if not of_user:
            raise UserError("there is no message of the role `user` with text in it")
        model = str(body.get("model") or MODEL)
        if model not in (known := models(self._brain)):
            raise UserError(f"{model!r} is no model here; there are {', '.join(known)}")
        own_name = headers.get("x-brainiac-conversation", "")
        chat = next((headers[name] for name in _CHAT_HEADERS if headers.get(name)), "")
        conversation = own_name or chat
        folder = conversation
        if conversation and not (own_name and _PLAIN_NAME.fullmatch(own_name)):
            folder = "chat-" + hashlib.sha256(conversation.encode("utf-8", "replace")).hexdigest()[:12]
        client = headers.get(CLIENT_HEADER) or headers.get("user-agent", "").split(" ")[0]
        caller = Caller(client_label("v1", client), "person")
        key, is_again = self._named(headers, body, conversation, caller)
        options = {"conversation": folder, "key": key, "is_again": is_again}
        options["model"] = "" if model in (MODEL, RECALL) else model.removeprefix(f"{MODEL}/")
        options["can_revise"] = bool(conversation) and _PARENT in headers  # the key is a place in the conversation
        # of a conversation with a name the inbox has the earlier turns
        earlier = () if conversation else tuple(_pairs(messages[: of_user[-1]]))[-MAX_EARLIER:]
        # clients that name the chat stream the answers that a person sees; what they do not stream is their own
        is_chore = bool(headers.get("x-openwebui-task")) or (bool(chat) and not body.get("stream"))
        return Turn(messages[of_user[-1]][1], earlier, caller, options, model == RECALL, is_chore)

    def _named(
        self, headers: Mapping[str, str], body: Mapping[str, Any], conversation: str, caller: Caller
    ) -> tuple[str, bool]:
        """Return the key of a turn, and whether the client wants another answer to it.

        The key is the client's own, else that of the user's message, else a new one. A request without any of the
        client's names that repeats another after a failure has the key of that one.
        """
        retries = headers.get("x-stainless-retry-count", "0")
        is_retry = retries.isdigit() and int(retries) > 0
        if key := headers.get("idempotency-key") or headers.get("x-idempotency-key") or "":
            return key, False
        if message := headers.get(_MESSAGE):
            # an edited message has a new id, but the same message before it
            key = f"{conversation} after {headers[_PARENT]}" if conversation and _PARENT in headers else message
            former, answer_id = self._answer_ids.get(key), headers.get(_ANSWER, "")  # each answer has another id
            _remember(self._answer_ids, key, answer_id)
            return key, answer_id != former and not is_retry
        digest = hashlib.sha256(json.dumps([caller.by, body], sort_keys=True).encode()).hexdigest()
        if not (is_retry and digest in self._keys):
            _remember(self._keys, digest, new_id())
        return self._keys[digest], False


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


def _pairs(messages: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each message of the user that was answered, with its answer; other roles are left out."""
    prompt = ""
    for role, text in messages:
        if role == "user":
            prompt = text
        elif role == "assistant" and prompt:
            yield prompt, text
            prompt = ""


def _messages_in(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the role and text of each message of a request.

    Raises:
        UserError: It has no list of messages, or one has an image, a recording or a file in it.
    """
    values, messages = body.get("messages"), []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UserError("messages must be a list of objects with `role` and `content`")
    for value in values:
        content = value.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        for kind in (str(part.get("type")) for part in parts if not isinstance(part.get("text"), str)):
            if kind != "refusal":  # an assistant's, which is its way of having no text
                what = f"a message has a part of the type `{kind:.40}`"
                raise UserError(f"{what}; only text is read here: send it without")
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        messages.append((str(value.get("role") or ""), "\n\n".join(texts)))
    return messages


# --- the answer ----------------------------------------------------------------------------------------------------


def reply_to(brain: Brain, turn: Turn, stream: Callable[[str], None] | None = None) -> tuple[str, dict[str, Any]]:
    """Return the answer to a turn, with fields of ours: its receipts, and what memory says beside it.

    Args:
        brain: The daemon's.
        turn: What is answered.
        stream: Called with pieces of the answer as they come.

    Raises:
        UserError: It was refused, or no model could serve.
    """
    if turn.is_recall:
        return _recalled(brain, turn), {"receipts": []}
    if turn.is_chore:
        return _chore(brain, turn), {"receipts": []}
    earlier = []  # turns that only the client has
    for said, answer in turn.earlier:
        prompt = _prompt(brain, turn, said, PERSON)
        earlier.append(Exchange(new_id(), prompt, PromptResponse(prompt.path, answer), prompt.at))
    result = verbs.ask(brain, turn.text, earlier=earlier, caller=turn.caller, stream=stream, **turn.options)
    if result.response is None:
        raise UserError(result.waits)
    told = [result.response.text, *chain(*turn.earlier)]
    first = verbs.push_beside(brain, result.prompt, told, Caller(turn.caller.by))
    return result.response.text, {"receipts": result.receipts, "push": first.text}


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
        prompt=replace(_prompt(brain, turn, turn.text, "tool"), remember=False),
        short_term=ShortTermMemory(),
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

    def list_models(request: Request) -> Response:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": MODEL} for name in models(brain)]
        return JSONResponse({"object": "list", "data": data})

    async def answer(request: Request) -> Response:
        body = await json_of(request)
        choice = body.get("tool_choice") or body.get("function_call")
        # nobody here would call a function
        if body.get("tools") or body.get("functions") or choice not in (None, "none", "auto"):
            raise UserError(_NO_TOOLS)
        turn = turns.of(request.headers, body)
        base = {"id": f"chatcmpl-{new_id()}", "created": int(time.time()), "model": str(body.get("model") or MODEL)}
        if body.get("stream"):
            options = body.get("stream_options")
            has_usage = isinstance(options, dict) and bool(options.get("include_usage"))
            pieces = _streamed(brain, turn, base, is_stopping, has_usage=has_usage)
            return StreamingResponse(pieces, 200, STREAM_HEADERS, "text/event-stream")
        reply, ours = await in_thread(reply_to, brain, turn)
        choices = [{"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}]
        base |= ours  # fields which clients pass over
        return JSONResponse({**base, "object": "chat.completion", "choices": choices, "usage": _usage(turn, reply)})

    async def responses(request: Request) -> Response:
        what = "OpenAI's Responses are not served here; set the program to chat completions (POST /v1/chat/completions)"
        return JSONResponse(error_body(what, 404), 404)

    return [
        Route("/v1/models", list_models),
        Route("/v1/chat/completions", answer, methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
    ]


async def _streamed(
    brain: Brain, turn: Turn, base: Mapping[str, Any], is_stopping: Callable[[], bool], *, has_usage: bool
) -> AsyncIterator[str]:
    """Yield an answer as server-sent events, as its pieces come; in between comments that keep the connection open.

    Args:
        brain: The daemon's.
        turn: What is answered.
        base: The fields that every event has.
        is_stopping: Returns whether the server is to end, and with it the stream.
        has_usage: Whether the client wants to know how much was used.
    """

    def line(value: Mapping[str, Any]) -> str:
        return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"

    def chunk(delta: dict[str, str], finish: str | None = None, **more: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return line({**base, "object": "chat.completion.chunk", "choices": choices, **more})

    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str]()

    # called in the thread that answers, where the queue must not be touched
    def stream(piece: str) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, piece)

    yield chunk({"role": "assistant", "content": ""})
    task = asyncio.ensure_future(in_thread(reply_to, brain, turn, stream))
    text, last_at = "", time.monotonic()  # the pieces so far, and when something was last sent
    while not (task.done() and queue.empty()) and not is_stopping():
        try:
            piece = await asyncio.wait_for(queue.get(), 0.05)
        except TimeoutError:
            if time.monotonic() - last_at > KEEP_ALIVE_SECONDS:
                last_at = time.monotonic()
                yield ": still at it\n\n"
            continue
        text, last_at = text + piece, time.monotonic()
        yield chunk({"content": piece})
    try:
        if not task.done():
            raise UserError("the daemon is ending; your prompt stands in the inbox")
        reply, ours = task.result()
    except BrainiacError as error:  # after the stream has begun
        yield line(error_body(message_and_status(error)[0], 503))
    else:
        if reply.startswith(text) and reply != text:  # what a process added after the model's last piece
            yield chunk({"content": reply[len(text) :]})
        yield chunk({}, "stop", **ours)
        if has_usage:
            usage = {"choices": [], "usage": _usage(turn, reply)}
            yield line({**base, "object": "chat.completion.chunk", **usage})
    yield "data: [DONE]\n\n"


def _usage(turn: Turn, reply: str) -> dict[str, int]:
    prompt, answer = count(turn.text), count(reply)  # estimates
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
