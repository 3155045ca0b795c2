"""How fast a running brain answers: one drop at a time, at rest, and the commands (under load: `load.py`).

A real daemon in a process of its own serves a scratch brain; files are dropped as a script would drop them.
Prints a table and one line of JSON. `--memories`, `--drops`, `--idle-seconds` set the sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

WORDS = (
    "amber birch copper delta ember fjord granite harbor indigo juniper kestrel lagoon meadow nectar orchid pebble "
    "quartz raven saffron timber umber violet willow xenon yarrow zephyr"
).split()
SETTLE_MS = 100


class Scratch:
    """A scratch brain with machine-local folders of its own.

    Args:
        folder: For the brain and these folders.
        memories: How many pages it has.
        checkout: Of the program, with an environment in `.venv`; None for this one.
    """

    def __init__(self, folder: Path, memories: int, checkout: Path | None = None) -> None:
        self.root, self._cwd = folder / "brain", checkout or Path(__file__).parent.parent
        self._program = [str(checkout / ".venv/bin/python") if checkout else sys.executable, "-m", "brainiac"]
        self.environment = {
            **os.environ,
            **{f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG")},
        }
        self.daemon: subprocess.Popen[bytes] | None = None
        self.run("init", str(self.root))
        pages = self.root / "memory" / "long_term" / "concrete" / "things"
        pages.mkdir()
        for number in range(memories):
            (pages / f"m{number}.md").write_text(page(number))

    def run(self, *arguments: str) -> str:
        """Run one command and return what it printed."""
        command, environment = [*self._program, *arguments], self.environment
        done = subprocess.run(command, env=environment, cwd=self._cwd, capture_output=True, text=True, check=True)
        return done.stdout

    def start(self, *prefix: str) -> None:
        """Start the daemon and wait until it watches."""
        command = [*prefix, *self._program, "--brain", str(self.root), "run"]
        quiet = subprocess.DEVNULL
        self.daemon = subprocess.Popen(
            command, env=self.environment, cwd=self._cwd, stdout=quiet, stderr=quiet, start_new_session=True
        )
        self.answer("warm-up", "What is in the amber box?")

    def stop(self) -> None:
        """Stop the daemon."""
        assert self.daemon is not None
        os.killpg(self.daemon.pid, signal.SIGTERM)  # the whole group: the daemon may run under strace
        self.daemon.wait(60)

    def drop(self, name: str, text: str) -> Path:
        """Save a prompt and return where its answer will stand."""
        (self.root / "inbox" / f"{name}.md").write_text(text + "\n")
        return self.root / "inbox" / f"{name}.response.md"

    def answer(self, name: str, text: str) -> float:
        """Drop a prompt; return the milliseconds until its answer stands there."""
        target = self.drop(name, text)
        started = time.perf_counter()
        while not target.exists():
            time.sleep(0.0005)
            if time.perf_counter() - started > 120:
                raise SystemExit(f"no answer to {name}")
        return (time.perf_counter() - started) * 1000


def page(number: int) -> str:
    """Return one memory of about 400 bytes."""
    a, b, c = (WORDS[(number * k + number // 26) % len(WORDS)] for k in (1, 7, 11))
    return (
        f"---\nuuid: {uuid.UUID(int=(1 << 76) * 7 + (2 << 62) + number)}\ncreated_at: 2026-01-01T00:00:00Z\n"
        f"updated_at: 2026-01-02T00:00:00Z\ntags: [{a}, {b}]\nemotion: calm\nreinforcement_count: 1\n---\n"
        f"# The {a} box {number}\n\n"
        f"- The {a} box {number} holds {b} and {c} since {2000 + number % 25}. ^a{number:05d}\n"
        f"- User put the {c} lid of box {number} on the shelf near the {b} door. ^b{number:05d}\n"
    )


def prompt(number: int) -> str:
    """Return a question or a statement, in turn."""
    word = WORDS[number % len(WORDS)]
    return f"What does the {word} box {number} hold?" if number % 2 else f"I put the {word} jar into drawer {number}."


def quantile(values: list[float], share: float) -> float:
    """Return the value below which a share lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def one_by_one(scratch: Scratch, drops: int) -> dict[str, float]:
    """Measure single drops, the settling time subtracted."""
    taken = [scratch.answer(f"single-{n:04d}", prompt(n)) - SETTLE_MS for n in range(drops)]
    return {"drop_ms_p50": round(statistics.median(taken), 1), "drop_ms_p95": round(quantile(taken, 0.95), 1)}


def bare_ratio(scratch: Scratch) -> dict[str, float]:
    """Compare a drop's writes done by the product with the same bytes written bare, each file fsynced."""
    folder = scratch.root / "bare"
    folder.mkdir()
    taken = []
    for number in range(50):
        started = time.perf_counter()
        for name, size in (("response", 600), ("log", 120), ("journal", 700)):
            with (folder / f"{name}-{number}").open("wb") as file:
                file.write(b"x" * size)
                file.flush()
                os.fsync(file.fileno())
        taken.append((time.perf_counter() - started) * 1000)
    shutil.rmtree(folder)
    return {"bare_ms_p50": round(statistics.median(taken), 2)}


def idle(scratch: Scratch, seconds: float) -> dict[str, float]:
    """Measure the daemon at rest: resident memory and share of one processor.

    What it does once after a start (the index, a look over all pages in the first quiet) is told apart.
    """
    assert scratch.daemon is not None
    pid = scratch.daemon.pid
    for _ in range(100):
        before = cpu_seconds(pid)
        time.sleep(6)
        if cpu_seconds(pid) - before < 0.2:
            break
    at_start = cpu_seconds(pid)
    time.sleep(seconds)
    return {
        "cpu_s_after_start": round(at_start, 1),
        "idle_cpu_percent": round((cpu_seconds(pid) - at_start) / seconds * 100, 2),
        "idle_rss_mb": round(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6),
    }


def cpu_seconds(pid: int) -> float:
    """Return the processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commands(scratch: Scratch) -> dict[str, float]:
    """Measure whole commands, the daemon down: the best of five, since other work on the machine only adds."""
    figures: dict[str, float] = {}
    brain = ("--brain", str(scratch.root))
    for name, arguments in (("status_s", ("status",)), ("ask_s", ("ask", "What does the amber box 26 hold?"))):
        taken = []
        for _ in range(6):
            started = time.perf_counter()
            scratch.run(*brain, *arguments)
            taken.append(time.perf_counter() - started)
        figures |= {name: round(statistics.median(taken[1:]), 3), f"{name}_best": round(min(taken[1:]), 3)}
    return figures


def fsyncs(scratch: Scratch, drops: int = 20) -> dict[str, float]:
    """Count the fsyncs of an answer with its reflection by strace, where that is installed."""
    if shutil.which("strace") is None:
        return {}
    trace = scratch.root.parent / "trace"
    scratch.start("strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace))
    time.sleep(1)
    before = trace.read_text().count("sync(")
    for number in range(drops):
        scratch.answer(f"traced-{number}", prompt(number))
    time.sleep(1)
    counted = trace.read_text().count("sync(") - before
    scratch.stop()
    return {"fsyncs_per_exchange": round(counted / drops, 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--drops", type=int, default=200)
    parser.add_argument("--idle-memories", type=int, default=10_000)
    parser.add_argument("--idle-seconds", type=float, default=60)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="brainiac-bench-") as folder:
        scratch = Scratch(Path(folder), options.memories)
        scratch.start()
        time.sleep(3)
        figures |= one_by_one(scratch, options.drops) | bare_ratio(scratch)
        scratch.stop()
        figures |= commands(scratch) | fsyncs(scratch)
    if options.idle_seconds:
        with tempfile.TemporaryDirectory(prefix="brainiac-bench-") as folder:
            scratch = Scratch(Path(folder), options.idle_memories)
            scratch.start()
            figures |= idle(scratch, options.idle_seconds)
            scratch.stop()
    for name, value in figures.items():
        print(f"{name:28} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
