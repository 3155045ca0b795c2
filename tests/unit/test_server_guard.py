"""Who gets past the guard: each attack on a port of loopback, sent over real HTTP."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from brainiac.server.address import FILE, TOKEN, call, read_address, token_of
from brainiac.server.app import STRANGER_SECONDS, serving
from tests.support.attacks import ATTACKS, ENDPOINTS, EVIL, Attack, sent
from tests.support.models import make_brain
from tests.support.served import Served, free_port, served

OBSIDIAN, FRIEND = "app://obsidian.md", "http://localhost:3000"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all attacks: none of them changes anything."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(tmp_path_factory.mktemp("machine")))
        with served(tmp_path_factory.mktemp("served"), {"server": {"origins": [FRIEND]}}) as server:
            yield server


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_reaches_no_door(server: Served, attack: Attack) -> None:
    """Refused at each endpoint of REST, MCP and OpenAI's API, and no page of a foreign origin may read the answer."""
    for method, path in ENDPOINTS:
        reply = sent(server, attack, method, path)
        if reply is not None:
            assert attack.status == reply.status, path
            assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("path", ["/api/%2e%2e/login", "//evil.example/api/status", "/api/../login", "/nothing"])
def test_no_path_goes_around_the_token(server: Served, path: str) -> None:
    """Nor does a strange spelling."""
    assert 401 == server.send("GET", path, is_authorized=False).status
    assert 401 == server.send("POST", "/login", {}, is_authorized=False).status


def test_a_body_that_does_not_say_its_length_is_bounded(server: Served) -> None:
    """It is read up to the limit and no further, and the server goes on serving."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        head = f"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(16):
                line.sendall(chunk)
            answer = line.recv(64)
        except OSError:
            answer = b""
    assert not answer or answer.startswith(b"HTTP/1.1 413")
    assert 200 == server.send("POST", "/api/search", {"query": "Portland"}).status


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["half a head", "a head without a token", "a preflight", "nothing"])
def test_strangers_keep_nobody_out(server: Served, sent: str) -> None:
    """700 connections that never show a token, whatever they send, cost a client of ours no answer; they are ended."""
    head = f"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    preflight = f"{head}Origin: {OBSIDIAN}\r\nAccess-Control-Request-Method: GET\r\n\r\n".replace("GET", "OPTIONS", 1)
    texts = {"half a head": f"{head}X-Slow: ", "a head without a token": f"{head}\r\n", "a preflight": preflight}
    strangers = []
    try:
        for _ in range(700):
            strangers.append(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            strangers[-1].sendall(texts.get(sent, "").encode())
        for _ in range(3):
            assert 200 == server.send("POST", "/api/search", {"query": "Portland"}).status
        began = time.monotonic()
        for stranger in strangers:
            stranger.settimeout(max(STRANGER_SECONDS + 5 - (time.monotonic() - began), 0.1))
            with suppress(ConnectionError):
                while stranger.recv(4096):
                    pass  # the server closes it, at once or when its time is over
    finally:
        for stranger in strangers:
            stranger.close()


@pytest.mark.slow
def test_a_client_that_showed_its_token_may_take_its_time(server: Served) -> None:
    """Its connection stays open for longer than a stranger's, between two calls and while it sends one."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        head = f"GET /api/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        answers = []
        for part in (head, head[:20], head[20:]):
            line.sendall(part.encode())
            answers.append(line.recv(65536) if part.endswith("\r\n\r\n") else b"")
            while answers[-1] and not answers[-1].endswith(b"}"):
                answers[-1] += line.recv(65536)
            time.sleep(STRANGER_SECONDS / 2 + 1)
    assert [True, False, True] == [answer.startswith(b"HTTP/1.1 200") for answer in answers]


def test_known_origins_may_call_and_no_other(server: Served) -> None:
    """Obsidian gets back the headers it asks for, whatever they are called; the page itself is named, never `*`."""
    wanted = "authorization,x-stainless-os,x-anything-new"
    asking = {"Origin": OBSIDIAN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
    for origin in (OBSIDIAN, FRIEND):
        reply = server.send("OPTIONS", "/api/search", headers=asking | {"Origin": origin}, is_authorized=False)
        assert (204, origin) == (reply.status, reply.headers["access-control-allow-origin"])
        assert wanted == reply.headers["access-control-allow-headers"]
    refused = server.send("OPTIONS", "/api/search", headers=asking | {"Origin": EVIL}, is_authorized=False)
    assert (403, None) == (refused.status, refused.headers.get("access-control-allow-origin"))
    reply = server.send("POST", "/api/search", {"query": "Portland"}, {"Origin": OBSIDIAN})
    assert (200, OBSIDIAN) == (reply.status, reply.headers["access-control-allow-origin"])
    unauthorized = server.send("POST", "/api/search", {"query": "x"}, {"Origin": OBSIDIAN}, is_authorized=False)
    assert (401, OBSIDIAN) == (unauthorized.status, unauthorized.headers["access-control-allow-origin"])
    assert "access-control-allow-origin" not in server.send("GET", "/api/status").headers


def test_the_token_is_this_users_alone(server: Served) -> None:
    """It stands outside of the brain, readable by nobody else, and so does the socket; it stays when asked again."""
    state = server.brain.places.state
    assert 0o600 == stat.S_IMODE((state / TOKEN).stat().st_mode)
    address = read_address(state)
    assert address is not None
    assert 0o700 == stat.S_IMODE(Path(address.socket).parent.stat().st_mode)
    assert token_of(state) == token_of(state)
    files = (path for path in server.brain.root.rglob("*") if path.is_file())
    assert not any(server.token.encode() in path.read_bytes() for path in files)


def test_other_machines_are_let_in_only_with_a_token_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting alone, which another device may have synced here, opens nothing; a token too short neither."""
    brain, told = make_brain(tmp_path, {"server": {"host": "0.0.0.0", "hosts": ["box.home"]}}), list[str]()
    with serving(brain, told.append, port=free_port()):
        address = read_address(brain.places.state)
        assert address is not None
        assert "" == address.url
    assert "BRAINIAC_SERVER_TOKEN" in told[0]
    monkeypatch.setenv("BRAINIAC_SERVER_TOKEN", "short")
    with serving(brain, told.append, port=free_port()):
        assert read_address(brain.places.state) is None
    monkeypatch.setenv("BRAINIAC_SERVER_TOKEN", "long enough to be a token of its own")
    port = free_port()
    with serving(brain, told.append, port=port):
        outside = Served(brain, port)
        assert 200 == outside.send("GET", "/api/status", headers={"Host": "box.home"}).status
        assert 421 == outside.send("GET", "/api/status", headers={"Host": "other.home"}).status
        # our own clients go on with the state folder's token: an assistant starts them without that variable
        monkeypatch.delenv("BRAINIAC_SERVER_TOKEN")
        assert call(brain.places.state, "/api/list", {}, client="test:x")["entries"]
    assert not (brain.places.state / FILE).exists()
    brain.close()


def test_a_taken_port_is_told_and_the_rest_is_served(server: Served, tmp_path: Path) -> None:
    """The socket for this user's own programs is there all the same; a second daemon of another brain does not die."""
    brain, told = make_brain(tmp_path), list[str]()
    with serving(brain, told.append, port=server.port):
        address = read_address(brain.places.state)
        assert address is not None
        assert os.path.exists(address.socket)
    assert str(server.port) in told[0]
    assert not os.path.exists(address.socket)
    brain.close()
