"""What a hostile page or program sends to a door, by name, and with what it must be refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from brainiac.server.guard import MAX_BODY_BYTES
from brainiac.verbs import VERBS
from tests.support.served import Reply, Served

EVIL = "http://evil.example"
ENDPOINTS = [
    ("GET", "/"),
    ("GET", "/api/status"),
    ("GET", "/api/events"),
    ("GET", "/api/openapi.json"),
    *(("POST", f"/api/{name}") for name in VERBS),
    ("GET", "/mcp"),
    ("POST", "/mcp"),
    ("DELETE", "/mcp"),
    ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
]


@dataclass(frozen=True)
class Attack:
    """One request that must be refused.

    Attributes:
        name: For a person.
        status: With which it is refused.
        headers: What it sends besides; `{port}` and `{token}` stand for the server's.
        is_authorized: Whether it has the token: then it must be refused all the same.
        method: Another one than that of the endpoint.
        has_body: It is only sent to what takes a body.
    """

    name: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    is_authorized: bool = True
    method: str = ""
    has_body: bool = False


ATTACKS = (
    Attack("a name that was rebound to this machine", 421, {"Host": "evil.example:{port}"}),
    Attack("a name that begins like ours", 421, {"Host": "127.0.0.1.evil.example:{port}"}),
    Attack("our name after somebody else's", 421, {"Host": "evil.example@127.0.0.1:{port}"}),
    Attack("a foreign page", 403, {"Origin": EVIL}),
    Attack("a sandboxed frame or a file", 403, {"Origin": "null"}),
    Attack("a page whose name begins like ours", 403, {"Origin": "http://127.0.0.1.evil.example:{port}"}),
    Attack("a page of another port of this machine", 403, {"Origin": "http://127.0.0.1:1"}),
    Attack(
        "a foreign page that asks whether it may",
        403,
        {"Origin": EVIL, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"},
        is_authorized=False,
        method="OPTIONS",
    ),
    Attack("no token", 401, is_authorized=False),
    Attack("an empty token", 401, {"Authorization": "Bearer "}, is_authorized=False),
    Attack("a guessed token", 401, {"Authorization": "Bearer guessed"}, is_authorized=False),
    Attack("the token and more", 401, {"Authorization": "Bearer {token}x"}, is_authorized=False),
    Attack("the token by another scheme", 401, {"Authorization": "Basic {token}"}, is_authorized=False),
    Attack("a token that is no ASCII", 401, {"Authorization": "Bearer é"}, is_authorized=False),
    Attack("a made-up session", 401, {"Cookie": "brainiac_session=guessed"}, is_authorized=False),
    Attack("a form", 415, {"Content-Type": "application/x-www-form-urlencoded"}, has_body=True),
    Attack("a form with files", 415, {"Content-Type": "multipart/form-data; boundary=x"}, has_body=True),
    Attack("a form as plain text", 415, {"Content-Type": "text/plain"}, has_body=True),
    Attack(
        "a body too large",
        413,
        {"Content-Type": "application/json", "Content-Length": str(MAX_BODY_BYTES + 1)},
        has_body=True,
    ),
)


def sent(server: Served, attack: Attack, method: str, path: str) -> Reply | None:
    """Send an attack to an endpoint; None where it needs a body and the endpoint takes none."""
    if attack.has_body and method != "POST":
        return None
    headers = {name: value.format(port=server.port, token=server.token) for name, value in attack.headers.items()}
    given = {"Content-Type": "application/json"} if method == "POST" else {}
    body = b'{"query":"x"}' if method == "POST" else None
    return server.send(attack.method or method, path, body, given | headers, is_authorized=attack.is_authorized)
