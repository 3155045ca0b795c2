"""How fast the window is: first byte and first paint of each page, event to visible, and memory with ten open pages.

    python benchmarks/window.py [--sizes 100,10000] [--visits 40] [--keep DIR]

A real daemon serves a brain of each size. Its journal has what an hour leaves: statements that were put right, and
prompts that were answered. First bytes are those of whole requests over loopback, one after another; beside them stands
what the daemon spent on one, since a machine may have other things to do. Event to visible
is from the return of a commit by another process until a page drawn anew has its words, by the stream that a browser
listens to. First paint is what Chromium tells, where there is one. With `--keep` the brains stay in a folder, each
with its index, and are served again from there. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.recall_scale import write_brain
from brainiac.brain import Brain
from brainiac.history.undo import correct, possible_targets
from brainiac.window.pages import PAGES
from brainiac.window.sessions import Sessions
from tests.support.browser import chromium, visiting, window_of, windowed
from tests.support.living import Living, events_of, living_brain, places_of

CORRECTED, ASKED, OPEN = 20, 5, 10
CONFIG = (
    "inbox: {settle_ms: 20, typing_seconds: 1}\nrecall: {embedder: none}\n"  # looked over each minute, as by default
)
NAME = "memory/long_term/concrete/f0000/m{}.md#^s005"


class Client:
    """One that is logged in."""

    def __init__(self, root: Path) -> None:
        self._host = window_of(root).removeprefix("http://")
        sessions = Sessions(places_of(root).state)
        self._headers = {"Cookie": f"{sessions.cookie}={sessions.begin(sessions.new_code())}"}

    @contextmanager
    def get(self, path: str) -> Iterator[HTTPResponse]:
        """Ask for a page; its first bytes have come."""
        connection = HTTPConnection(self._host, timeout=60)
        try:
            connection.request("GET", path, headers=self._headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def text(self, path: str) -> str:
        """Return a page."""
        with self.get(path) as response:
            assert response.status == 200, (path, response.status)
            return response.read().decode()


def _first_bytes(client: Client, daemon: Living, path: str, visits: int) -> dict[str, float]:
    """Return the milliseconds to the first byte of a page, warm, and those of the daemon's processor for one visit."""
    client.text(path)
    spans, spent = list[float](), _cpu_ms(daemon)
    for _ in range(visits):
        start = time.perf_counter()
        with client.get(path) as response:
            response.read(1)
            spans.append((time.perf_counter() - start) * 1000)
    cpu = round((_cpu_ms(daemon) - spent) / visits, 1)
    return {
        "p50": round(statistics.median(spans), 1),
        "p95": round(statistics.quantiles(spans, n=20)[-1], 1),
        "cpu": cpu,
    }


def _cpu_ms(daemon: Living) -> float:
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _rest(daemon: Living, seconds: float = 600) -> None:
    """Wait until a new daemon has put the brain in order, which no person waits for."""
    end, spent = time.monotonic() + seconds, 0.0
    while time.monotonic() < end and _cpu_ms(daemon) - spent > 100:
        spent = _cpu_ms(daemon)
        time.sleep(3)


def _visible(root: Path, client: Client, times: int) -> dict[str, float]:
    """Return the milliseconds from the commit of a change to a page that shows it."""
    spans = []
    with closing(Brain(root)) as brain, client.get("/live") as stream:
        for number in range(times):
            words = f"User has seen heron number {number} at {time.time_ns()}."
            correct(brain, possible_targets(brain, NAME.format(CORRECTED + number))[0], words)
            start = time.perf_counter()
            while True:
                line = stream.readline()
                if line.startswith(b"event: changed") and words in client.text("/"):
                    break
            spans.append((time.perf_counter() - start) * 1000)
    return {"p50": round(statistics.median(spans), 1), "max": round(max(spans), 1)}


def _memory_mb(daemon: Living) -> float:
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return round(int(status.partition("VmRSS:")[2].split()[0]) / 1024, 1)


def _paints(root: Path, paths: list[str]) -> dict[str, float]:
    """Return the milliseconds to the first paint of each page."""
    script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    paints = {}
    with chromium() as browser, visiting(browser, root) as visitor:
        for path in paths:
            visitor.go(path)
            visitor.page.wait_for_timeout(200)
            paints[path] = round(visitor.page.evaluate(script), 1)
    return paints


def measured(size: int, visits: int, keep: Path | None) -> dict[str, Any]:
    """Return what was measured with a brain of a size."""
    with ExitStack() as stack:
        folder = keep / str(size) if keep else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ |= {name: f"{folder}/{name}" for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        root = folder / "brain"
        if not root.exists():
            write_brain(root, size)
            living_brain(root, CONFIG)
        daemon = stack.enter_context(windowed(root))
        client = Client(root)
        if not events_of(root, "prompt-answered"):
            with closing(Brain(root)) as brain:
                for number in range(CORRECTED):
                    correct(brain, possible_targets(brain, NAME.format(number))[0], f"User put number {number} right.")
            for number in range(ASKED):
                daemon.answer(f"{number}.md", f"What of number {number}?")
        paths = [page.path for page in PAGES if page.is_listed]
        name = NAME.format(1).replace("#", "%23").replace("^", "%5E")
        paths += [f"{page.path}?name={name}" for page in PAGES if page.path in ("/why", "/wrong", "/forget")]
        said = next(iter(events_of(root, "prompt-answered"))).id
        paths += [f"{page.path}?name={said}" for page in PAGES if page.path in ("/why", "/wrong", "/forget")]
        _rest(daemon)
        result: dict[str, Any] = {"size": size, "mb": _memory_mb(daemon), "load": os.getloadavg()[0]}
        result["first_byte_ms"] = {path: _first_bytes(client, daemon, path, visits) for path in paths}
        result["visible_ms"] = _visible(root, client, min(visits, 10))
        streams = [stack.enter_context(client.get("/live")) for _ in range(OPEN)]
        for number in range(OPEN):
            client.text(paths[number % len(paths)])
        result["mb_with_ten_open"] = _memory_mb(daemon)
        assert len(streams) == OPEN
        if shutil.which("chromium"):
            result["first_paint_ms"] = _paints(root, paths)
        return result


def main() -> None:
    """Measure, and print the result of each size and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,10000")
    parser.add_argument("--visits", type=int, default=40)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    results = [measured(int(size), arguments.visits, arguments.keep) for size in arguments.sizes.split(",")]
    print(json.dumps(results))


if __name__ == "__main__":
    main()
