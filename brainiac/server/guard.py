"""The guard before every door: it decides which requests may pass.

It checks in this order: `Host` against an allow-list (against DNS rebinding), `Origin` (against pages of others), the
bearer token, the size of the body, and its type. Nothing is ever allowed to every origin.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainiac.errors import BrainiacError, ConflictError, StorageError, UserError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OBSIDIAN = "app://obsidian.md"
ORIGIN = "brainiac.origin"  # in the scope of a request that passed: whose words it brings in
ADMIT = "brainiac.admit"  # in a scope: a function to be called once a request of its connection may pass
MAX_BODY_BYTES = 8_000_000  # a long conversation, sent whole with each turn
TOO_LARGE = f"the body is larger than {MAX_BODY_BYTES} bytes"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a server that listens at a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Guard:
    """Who may call.

    Attributes:
        tokens: Whose words come with each valid bearer token, by token.
        hosts: Names and addresses under which the server is reached, without port.
        origins: Pages of other places that may call, `app://obsidian.md` among them.
    """

    tokens: Mapping[str, str]
    hosts: Collection[str] = LOOPBACK_NAMES
    origins: Collection[str] = (OBSIDIAN,)

    def refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Return why a request does not pass, as HTTP's status and what to do; None where it does."""
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if host_name(host) not in self.hosts:
            return 421, "this server is not called that; use the address that `brainiac status` shows"
        is_allowed = origin in ("", *self.origins, f"http://{host}", f"https://{host}")
        if len(headers.getlist("origin")) > 1 or not is_allowed:
            return 403, "pages of this origin may not call; `server.origins` in system/config.yaml names those"
        if not (self.is_preflight(method, headers) or self.origin_of(headers)):
            return 401, "a bearer token is needed; `brainiac token` prints it"
        length = headers.get("content-length") or "0"
        if not (length.isascii() and length.isdigit()) or int(length) > MAX_BODY_BYTES:
            return 413, TOO_LARGE
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = length != "0" or "transfer-encoding" in headers
        if method not in ("GET", "HEAD") and has_body and kind != "application/json":  # a foreign page's form can send
            return 415, "send application/json"
        return None

    def origin_of(self, headers: Headers) -> str:
        """Return whose words come with a request's bearer token; "" where that is not valid."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        received, found = token.strip().encode(), ""
        for valid, origin in self.tokens.items():
            found = origin if secrets.compare_digest(received, valid.encode()) else found
        return found if scheme.lower() == "bearer" else ""

    def is_preflight(self, method: str, headers: Headers) -> bool:
        """Return whether a request is a CORS preflight, which carries no token."""
        return method == "OPTIONS" and bool(headers.get("origin") and headers.get("access-control-request-method"))


def host_name(host: str) -> str | None:
    """Return the name in a `Host` header, without its port; None where it is no host."""
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname if parts.hostname and not (parts.path or parts.username or parts.query) else None
    except ValueError:
        return None


def is_same(given: str, secret: str) -> bool:
    """Return whether a text is a secret, in a time that does not tell how much of it is."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def guarded(app: ASGIApp, guard: Guard) -> ASGIApp:
    """Return an application behind a guard: it gets only the requests that the guard lets pass."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket, which nothing here speaks
            await send({"type": "websocket.close", "code": 1008})
            return
        headers, method, n_read = Headers(scope=scope), scope["method"], 0

        async def sending(message: Message) -> None:
            """Send with the headers of every answer; by them a page of an allowed origin may read it."""
            if message["type"] == "http.response.start":
                extra = [(b"x-content-type-options", b"nosniff"), (b"vary", b"Origin")]
                if (origin := headers.get("origin", "")) in guard.origins:
                    extra.append((b"access-control-allow-origin", origin.encode("latin-1")))
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        async def limited() -> Message:
            """Receive; where a body without `Content-Length` turns out to be too large, raise `TooLargeError`."""
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > MAX_BODY_BYTES:
                raise TooLargeError
            return message

        if refusal := guard.refusal(method, headers):
            status, what = refusal
            challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            await JSONResponse(error_body(what, status), status, challenge)(scope, receive, sending)
        elif guard.is_preflight(method, headers):
            await _preflight(headers)(scope, receive, sending)
        else:
            if admit := scope.get(ADMIT):
                admit()
            await app({**scope, ORIGIN: guard.origin_of(headers)}, limited, sending)

    return serve


def _preflight(headers: Headers) -> Response:
    """Return the response to a CORS preflight, which only comes this far from an allowed origin."""
    # clients send headers of their own, `x-stainless-os` and a dozen more: those that are asked for are allowed
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", ""),
        "Access-Control-Max-Age": "600",
    }
    if headers.get("access-control-request-private-network"):
        allowed["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=allowed)


class TooLargeError(Exception):
    """A body is too large."""


def error_body(message: str, status: int) -> dict[str, Any]:
    """Return the body of every door's error, in the form that OpenAI's clients read."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": str(status)}}


_FAILURES = (
    (TooLargeError, 413, TOO_LARGE),
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
