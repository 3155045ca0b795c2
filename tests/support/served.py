"""A brain behind its doors, and raw requests to them as an attacker would send them."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainiac.brain import Brain
from brainiac.server.address import MINE, own_token, read_address, token_of
from brainiac.server.app import serving
from tests.support.models import make_brain


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass(frozen=True)
class Served:
    """A brain and the port of this machine that serves it."""

    brain: Brain
    port: int
    told: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return token_of(self.brain.places.state)

    @property
    def mine(self) -> dict[str, str]:
        """The header with the token for the person's own tools, in place of an assistant's."""
        return {"Authorization": f"Bearer {own_token(self.brain.places.state, MINE)}"}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}, *, is_authorized: bool = True
    ) -> Reply:
        """Send one request with just these headers, those of HTTP and, where wanted, the token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Authorization": f"Bearer {self.token}"} if is_authorized else {}
        given |= {"Content-Type": "application/json"} if isinstance(body, dict) else {}
        connection.request(method, path, raw, given | dict(headers))
        answer = connection.getresponse()
        reply = Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return reply


def free_port() -> int:
    """Return a port of loopback that nobody uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def served(folder: Path, settings: dict[str, Any] | None = None) -> Iterator[Served]:
    """Serve a new brain on a port."""
    brain = make_brain(folder, settings)
    port, told = free_port(), list[str]()
    with serving(brain, told.append, port=port):
        assert read_address(brain.places.state), told
        yield Served(brain, port, tuple(told))
    brain.close()
