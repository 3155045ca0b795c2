"""A server on loopback that speaks the OpenAI chat protocol (and enough of Anthropic's) by a script, over real HTTP.

    with ChatServer() as server:
        server.script(say("Hello."), status(429, "slow down", {"Retry-After": "7"}))
        ...                      # point a model at server.url
        server.requests[0].body  # what was sent

Each request takes the next behaviour; when the script is used up, `server.default` serves.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Behaviour = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Captured:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes = b""

    @property
    def text(self) -> str:
        """All message texts, in order, as one."""
        return "\n\n".join(_text_of(message.get("content")) for message in self._messages())

    def _messages(self) -> list[dict[str, Any]]:
        system = self.body.get("system")
        first = [{"role": "system", "content": system}] if system else []
        return first + list(self.body.get("messages", []))


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") or _text_of(part.get("content")) for part in content)
    return content or ""


class Exchange:
    """One request in a behaviour's hand."""

    def __init__(self, handler: BaseHTTPRequestHandler, captured: Captured, stopping: threading.Event) -> None:
        self.handler, self.request, self.stopping = handler, captured, stopping
        self.is_anthropic = captured.path.endswith("/messages")

    def start(self, code: int = 200, content_type: str = "text/event-stream", headers: Mapping[str, str] = {}) -> None:
        self.handler.send_response(code)
        self.handler.send_header("Content-Type", content_type)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.send_header("Connection", "close")
        self.handler.end_headers()

    def write(self, text: str) -> None:
        self.handler.wfile.write(text.encode())
        self.handler.wfile.flush()

    def send(self, data: Any) -> None:
        """Send one event of a stream."""
        name = f"event: {data['type']}\n" if self.is_anthropic else ""
        self.write(f"{name}data: {json.dumps(data)}\n\n")

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> None:
        """Send a piece of an answer in OpenAI's form."""
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
        self.send({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})

    def usage(self, tokens: tuple[int, int], cached: int = 0) -> None:
        used = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self.send({**head, "choices": [], "usage": used})

    def done(self) -> None:
        self.write("data: [DONE]\n\n")


def say(text: str, *, tokens: tuple[int, int] = (100, 20), cached: int = 0, finish: str = "stop") -> Behaviour:
    """Answer with a text, streamed in pieces."""

    def behave(exchange: Exchange) -> None:
        if exchange.is_anthropic:
            return _say_anthropic(exchange, text, tokens, cached)
        exchange.start()
        exchange.chunk({"role": "assistant", "content": ""})
        for piece in _pieces(text):
            exchange.chunk({"content": piece})
        exchange.chunk({}, finish)
        exchange.usage(tokens, cached)
        exchange.done()
        return None

    return behave


def _pieces(text: str) -> Iterator[str]:
    size = max(7, len(text) // 50)
    return (text[at : at + size] for at in range(0, len(text), size))


def _say_anthropic(exchange: Exchange, text: str, tokens: tuple[int, int], cached: int) -> None:
    usage = {"input_tokens": tokens[0] - cached, "cache_read_input_tokens": cached, "output_tokens": 0}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    exchange.start()
    exchange.send({"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}})
    exchange.send({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in _pieces(text):
        exchange.send({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    exchange.send({"type": "content_block_stop", "index": 0})
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    exchange.send({"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens[1]}})
    exchange.send({"type": "message_stop"})


def say_json(data: Any, **options: Any) -> Behaviour:
    """Answer with JSON."""
    return say(json.dumps(data), **options)


def by_request(answer: Callable[[Captured], Behaviour]) -> Behaviour:
    """Choose what to do by the request."""
    return lambda exchange: answer(exchange.request)(exchange)


def call_tools(*calls: tuple[str, Any]) -> Behaviour:
    """Ask for tools: (name, arguments) with arguments as values, or as the text the model wrote."""

    def behave(exchange: Exchange) -> None:
        exchange.start()
        for index, (name, arguments) in enumerate(calls):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            head = {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            exchange.chunk({"role": "assistant", "tool_calls": [head]})
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                exchange.chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        exchange.chunk({}, "tool_calls")
        exchange.usage((100, 20))
        exchange.done()

    return behave


def status(code: int, message: str, headers: Mapping[str, str] = {}, **error: Any) -> Behaviour:
    """Refuse with an HTTP status and an error body."""

    def behave(exchange: Exchange) -> None:
        exchange.start(code, "application/json", headers)
        exchange.write(
            json.dumps({"error": {"message": message, "type": "error", "param": None, "code": None, **error}})
        )

    return behave


def refuse(text: str) -> Behaviour:
    """Decline by the protocol's refusal field."""

    def behave(exchange: Exchange) -> None:
        exchange.start()
        exchange.chunk({"role": "assistant", "refusal": text})
        exchange.chunk({}, "stop")
        exchange.usage((100, 20))
        exchange.done()

    return behave


def hang(seconds: float) -> Behaviour:
    """Take the request and say nothing for a while."""

    def behave(exchange: Exchange) -> None:
        exchange.stopping.wait(seconds)

    return behave


def stall(text: str, seconds: float) -> Behaviour:
    """Begin an answer and then say nothing for a while."""

    def behave(exchange: Exchange) -> None:
        exchange.start()
        exchange.chunk({"role": "assistant", "content": text})
        exchange.stopping.wait(seconds)

    return behave


def cut(text: str) -> Behaviour:
    """Begin an answer and close the connection."""

    def behave(exchange: Exchange) -> None:
        exchange.start()
        exchange.chunk({"role": "assistant", "content": text})

    return behave


def raw(text: str, content_type: str = "text/event-stream") -> Behaviour:
    """Send bytes as they are."""

    def behave(exchange: Exchange) -> None:
        exchange.start(200, content_type)
        exchange.write(text)

    return behave


def babble(piece: str = "and so on {} ", *, pause_seconds: float = 0.0) -> Behaviour:
    """Never stop, whatever max_tokens says; `{}` in the piece counts up."""

    def behave(exchange: Exchange) -> None:
        exchange.start()
        for number in itertools.count():
            if exchange.stopping.is_set():
                return
            exchange.chunk({"role": "assistant", "content": piece.format(number)})
            time.sleep(pause_seconds)

    return behave


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        # clients differ in how they write a header's name
        headers = {name.title(): value for name, value in self.headers.items()}
        captured = Captured(self.path, headers, json.loads(raw or b"{}"), raw)
        owner = self.server.owner
        with owner.mutex:
            owner.requests.append(captured)
            behaviour = owner.queue.popleft() if owner.queue else owner.default
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):
            behaviour(Exchange(self, captured, owner.stopping))

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    owner: ChatServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests want."""


class ChatServer:
    """The server; use it as a context manager.

    Attributes:
        requests: All that came, oldest first.
        default: What is done when the script is used up.
    """

    def __init__(self) -> None:
        self.requests: list[Captured] = []
        self.queue: deque[Behaviour] = deque()
        self.default: Behaviour = say("All right.")
        self.mutex, self.stopping = threading.Lock(), threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self

    @property
    def url(self) -> str:
        """The endpoint, for `api_bases`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *behaviours: Behaviour) -> None:
        """Append behaviours, one a request."""
        with self.mutex:
            self.queue.extend(behaviours)

    @property
    def bodies(self) -> Sequence[dict[str, Any]]:
        """The bodies of all requests."""
        return [request.body for request in self.requests]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
