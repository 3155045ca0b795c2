"""The guard before every door: it decides which requests may pass.

It checks in this order: `Host` against an allow-list (against DNS rebinding), `Origin` (against pages of others), the
bearer token or the cookie of a browser that logged in, the size of the body, and its type. Nothing is ever allowed to
every origin.
"""

from __future__ import annotations

import ipaddress
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from brainiac.errors import BrainiacError, ConflictError, StorageError, UserError

# the types of ASGI, https://asgi.readthedocs.io/en/latest/specs/main.html
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

Refusal = tuple[int, str]  # the status of HTTP; what is wrong, and what to do

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OBSIDIAN = "app://obsidian.md"
COOKIE = "brainiac_session"
ORIGIN = "brainiac.origin"  # in the scope of a request that passed: whose words it brings in
LOGIN = "/login"
ADMIT = "brainiac.admit"  # in a scope: a function to be called once a request of its connection may pass
MAX_BODY_BYTES = 8_000_000  # a long conversation, sent whole with each turn
LOGIN_SECONDS = 60.0
SESSION_SECONDS = 30 * 86_400.0
_READING_METHODS = frozenset({"GET", "HEAD"})


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a server that listens at a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Logins:
    """Browsers that logged in, each by a code that is valid once and for a minute, and got a cookie for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._mutex = clock, threading.Lock()
        self._codes: dict[str, float] = {}  # until when each is valid, in seconds of the clock
        self._sessions: dict[str, float] = {}

    def new_code(self) -> str:
        """Return a code for one login."""
        code = secrets.token_urlsafe(24)
        with self._mutex:
            self._codes[code] = self._clock() + LOGIN_SECONDS
        return code

    def begin(self, code: str) -> str:
        """Return a new session for a code, which is used up by that; "" for an unknown, used or old code."""
        with self._mutex:
            if self._codes.pop(code, 0.0) <= self._clock():
                return ""
            session = secrets.token_urlsafe(32)
            self._sessions[session] = self._clock() + SESSION_SECONDS
            return session

    def has(self, session: str) -> bool:
        """Return whether a browser that shows this cookie is logged in."""
        with self._mutex:
            return self._sessions.get(session, 0.0) > self._clock()


@dataclass(frozen=True, slots=True)
class Guard:
    """Who may call.

    Attributes:
        tokens: Whose words come with each valid bearer token, by token.
        hosts: Names and addresses under which the server is reached, without port.
        origins: Pages of other places that may call, `app://obsidian.md` among them.
        logins: The browsers that logged in.
    """

    tokens: Mapping[str, str]
    hosts: Collection[str] = LOOPBACK_NAMES
    origins: Collection[str] = (OBSIDIAN,)
    logins: Logins = field(default_factory=Logins)

    def refusal(self, method: str, path: str, headers: Headers) -> Refusal | None:
        """Return why a request does not pass; None where it does."""
        host = _name_of(headers.first("host"))
        if host is None or host not in self.hosts:
            return (421, "this server is not called that; use the address that `brainiac status` shows")
        origin = headers.first("origin")
        is_allowed = origin in self.origins or _is_own(origin, headers)
        if headers.count("origin") > 1 or (origin and not is_allowed):
            return (403, "pages of this origin may not call; `server.origins` in system/config.yaml names those")
        if not self._is_authorized(method, path, headers):
            return (401, "a bearer token is needed; `brainiac token` prints it")
        return _body_refusal(method, headers)

    def origin_of(self, headers: Headers) -> str:
        """Return whose words a request that passed brings in, by its token; by a login they are the person's."""
        return self._origin_of_token(headers) or "person"

    def _origin_of_token(self, headers: Headers) -> str:
        """Return whose words come with a request's bearer token; "" where that is not valid."""
        scheme, _, token = headers.first("authorization").partition(" ")
        received, found = token.strip().encode(), ""
        for valid, origin in self.tokens.items():
            found = origin if secrets.compare_digest(received, valid.encode()) else found
        return found if scheme.lower() == "bearer" else ""

    def is_preflight(self, method: str, headers: Headers) -> bool:
        """Return whether a request is a CORS preflight, which carries no token."""
        return method == "OPTIONS" and bool(headers.first("origin") and headers.first("access-control-request-method"))

    def _is_authorized(self, method: str, path: str, headers: Headers) -> bool:
        """Return whether a request has a valid token or, from a page of ours, a valid cookie, or needs none."""
        if self.is_preflight(method, headers) or (path == LOGIN and method == "GET"):
            return True
        if self._origin_of_token(headers):
            return True
        cookies = (part.strip().partition("=") for part in headers.first("cookie").split(";"))
        if not self.logins.has(next((value for name, _, value in cookies if name == COOKIE), "")):
            return False
        # a browser sends the cookie with every request, also with one that another page causes; and it takes pages of
        # other ports of this machine for the same site
        site = headers.first("sec-fetch-site")
        if method in _READING_METHODS:
            return site in ("", "none", "same-origin")
        return site == "same-origin" or _is_own(headers.first("origin"), headers)


class Headers:
    """The headers of a request."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._raw = [(name.lower().decode("latin-1"), value.decode("latin-1")) for name, value in raw]

    def first(self, name: str) -> str:
        """Return the first value of a header; "" for none."""
        return next((value for key, value in self._raw if key == name), "")

    def count(self, name: str) -> int:
        """Return how many headers have a name."""
        return sum(key == name for key, _ in self._raw)


def _name_of(host: str) -> str | None:
    """Return the name in a `Host` header, without its port; None where it is no host."""
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname if parts.hostname and not (parts.path or parts.username or parts.query) else None
    except ValueError:
        return None


def _is_own(origin: str, headers: Headers) -> bool:
    """Return whether an origin is this server itself."""
    return origin in (f"http://{headers.first('host')}", f"https://{headers.first('host')}")


def _body_refusal(method: str, headers: Headers) -> Refusal | None:
    """Return why a body is refused: too large, or of a type that a foreign page's form can send; None for any other."""
    length = headers.first("content-length") or "0"
    is_number = length.isascii() and length.isdigit()
    if not is_number or int(length) > MAX_BODY_BYTES:
        return (413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    kind = headers.first("content-type").partition(";")[0].strip().lower()
    has_body = length != "0" or headers.first("transfer-encoding")
    if method not in _READING_METHODS and has_body and kind != "application/json":
        return (415, "send application/json")
    return None


def guarded(app: ASGIApp, guard: Guard) -> ASGIApp:
    """Return an application behind a guard: it gets only the requests that the guard lets pass."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket, which nothing here speaks
            await send({"type": "websocket.close", "code": 1008})
            return
        headers, method = Headers(scope["headers"]), scope["method"]
        if refusal := guard.refusal(method, scope["path"], headers):
            await _response(*refusal)(scope, receive, _with_cors(send, guard, headers))
        elif guard.is_preflight(method, headers):
            await _preflight(headers)(scope, receive, _with_cors(send, guard, headers))
        elif scope["path"] == LOGIN and method == "GET":
            await _login(guard, scope)(scope, receive, send)
        else:
            if admit := scope.get(ADMIT):
                admit()
            known = {**scope, ORIGIN: guard.origin_of(headers)}
            await app(known, _limited(receive), _with_cors(send, guard, headers))

    return serve


class TooLargeError(Exception):
    """A body without a `Content-Length` turned out to be too large."""


def _limited(receive: Receive) -> Receive:
    """Return a `receive` that raises `TooLargeError` where a body is too large, for one without `Content-Length`."""
    n_read = 0

    async def limited() -> Message:
        nonlocal n_read
        message = await receive()
        n_read += len(message.get("body", b""))
        if n_read > MAX_BODY_BYTES:
            raise TooLargeError
        return message

    return limited


def _with_cors(send: Send, guard: Guard, headers: Headers) -> Send:
    """Return a `send` that adds the headers of every answer; by them a page of an allowed origin may read it."""
    origin = headers.first("origin")
    extra = [(b"x-content-type-options", b"nosniff"), (b"vary", b"Origin")]
    if origin in guard.origins:
        extra.append((b"access-control-allow-origin", origin.encode("latin-1")))

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return sending


def _response(status: int, message: str) -> Any:
    """Return an error as a response."""
    from starlette.responses import JSONResponse  # only where doors are served

    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(error_body(message, status), status, headers)


def error_body(message: str, status: int) -> dict[str, Any]:
    """Return the body of every door's error, in the form that OpenAI's clients read."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": str(status)}}


_FAILURES = (
    (TooLargeError, 413, f"the body is larger than {MAX_BODY_BYTES} bytes"),
    (UserError, 400, ""),
    (ConflictError, 409, "somebody else keeps writing there; try again"),
    (StorageError, 503, "the disk cannot be written now; `brainiac status` tells more"),
    (BrainiacError, 503, ""),
)


def message_and_status(error: Exception) -> tuple[str, int]:
    """Return an error as every door tells it, on one line, and HTTP's status; of a bug only that there is one."""
    for kind, status, message in _FAILURES:
        if isinstance(error, kind):
            return message or str(error).replace("\n", "; "), status
    return "a bug in brainiac; its log tells more", 500


def _preflight(headers: Headers) -> Any:
    """Return the response to a CORS preflight, which only comes this far from an allowed origin."""
    from starlette.responses import Response  # only where doors are served

    # clients send headers of their own, `x-stainless-os` and a dozen more: those that are asked for are allowed
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
        "Access-Control-Allow-Headers": headers.first("access-control-request-headers"),
        "Access-Control-Max-Age": "600",
    }
    if headers.first("access-control-request-private-network"):
        allowed["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=allowed)


def _login(guard: Guard, scope: Scope) -> Any:
    """Return the response to a browser that was opened with a one-time code: a cookie, and a redirect to the window."""
    from starlette.responses import RedirectResponse  # only where doors are served

    code = parse_qs(scope["query_string"].decode("latin-1")).get("once", [""])[0]
    session = guard.logins.begin(code)
    if not session:
        return _response(403, "this link was used or is too old; `brainiac open` makes another")
    response = RedirectResponse("/", 303, {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"})
    response.set_cookie(COOKIE, session, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict")
    return response
