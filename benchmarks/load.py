"""A running brain under load: thousands of prompts at once, then one every 50 ms; keyless, a real daemon.

    python benchmarks/load.py [--prompts 20000] [--minutes 10] [--every-ms 50] [--patience 3600] [--folder DIR]
    python benchmarks/load.py --beside CHECKOUT [--prompts 500]

Is each answered and reflected exactly once, how fast, and what does it cost: journal bytes an exchange, the largest
short-term memory, resident memory? All the while a fresh prompt in a conversation of its own is dropped every two
seconds: its latency is told as a ratio to that at rest. What came of it is judged from the files alone. Prints a table
and one line of JSON; exit 1 when anything was lost or done twice.

With `--beside` another checkout, one with an environment in `.venv`, does the same in turn: single drops, and bursts of
that many prompts. What counts are the ratios, since both share the machine.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.answering import SETTLE_MS, WORDS, Scratch, cpu_seconds, quantile
from benchmarks.answering import prompt as single
from brainiac.llm.catalog import count

AT_REST, PROBE_SECONDS = 20, 2.0
STRETCHES = ("start", "middle", "end")
_KIND = re.compile(rb'"kind":"([a-z-]+)"')
_MARK = re.compile(r"<!-- (?:event|exchange): ([0-9a-f-]{36}) -->")


def prompt(number: int) -> str:
    """Return a statement, a question or a few lines of talk, in turn."""
    word = WORDS[number % len(WORDS)]
    if number % 3 == 0:
        return f"I put the {word} jar into drawer {number}.\n"
    if number % 3 == 1:
        return f"What does the {word} box {number} hold?\n"
    return f"Somebody called about the {word} order {number}.\n\nIt is for Tuesday, and I said that I would look.\n"


class Tail:
    """Counts what the journal gains by kind, reading only what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._offsets = folder, collections.Counter[Path]()
        self.kinds = collections.Counter[str]()
        self.answered = 0  # of the load itself, probes aside

    def read(self) -> None:
        """Take in the whole lines that were added."""
        for path in self._folder.glob("*/*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._offsets[path])
                added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self._offsets[path] += len(whole)
            self.kinds.update(kind.decode() for kind in _KIND.findall(whole))
            self.answered += whole.count(b'"response":"inbox/load-')

    def of(self, kind: str) -> int:
        """Return how many events of a kind there are by now."""
        self.read()
        return self.kinds[kind]

    @property
    def reflected(self) -> int:
        """How many exchanges were reflected."""
        return self.kinds["exchange-reflected"]

    @property
    def unreflected(self) -> int:
        """How many were answered and not reflected yet."""
        return self.kinds["prompt-answered"] - self.reflected


class Watch(threading.Thread):
    """Samples short-term memory and the daemon's resident memory."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(daemon=True)
        assert scratch.daemon is not None
        self._file, self._pid = scratch.root / "memory/short_term.md", scratch.daemon.pid
        self.largest = ""
        self.rss_mb: list[float] = []
        self._is_over = threading.Event()

    def run(self) -> None:
        for number in range(10**9):
            if self._is_over.wait(0.05):
                return
            with suppress(OSError):
                if self._file.stat().st_size > len(self.largest):
                    self.largest = max(self.largest, self._file.read_text(), key=len)
            if number % 20 == 0:
                self.rss_mb.append(rss_mb(self._pid))

    def end(self) -> None:
        """Stop sampling."""
        self._is_over.set()
        self.join()


class Probes(threading.Thread):
    """Drops a fresh prompt of its own every now and then and takes the time of its answer."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        super().__init__(daemon=True)
        self._scratch, self._name = scratch, name
        self._is_over = threading.Event()
        self.taken: list[float] = []

    def run(self) -> None:
        while not self._is_over.is_set():
            number = len(self.taken)
            self.taken.append(self._scratch.answer(f"{self._name}-{number:04d}", f"Where is the key {number}?"))
            self._is_over.wait(PROBE_SECONDS)

    def end(self) -> dict[str, list[float]]:
        """Stop; return the milliseconds taken in the first, the middle and the last third of the time."""
        self._is_over.set()
        self.join()
        third = max(1, len(self.taken) // 3)
        return dict(zip(STRETCHES, (self.taken[:third], self.taken[third:-third], self.taken[-third:]), strict=True))


class Run:
    """One run of the load against a scratch brain."""

    def __init__(self, scratch: Scratch, options: argparse.Namespace) -> None:
        self.scratch, self._options = scratch, options
        self.tail = Tail(scratch.root / "logs/journal")
        self._dropped = 0
        self.figures: dict[str, Any] = {}

    def measure(self) -> None:
        """Load it and take the figures."""
        scratch, options = self.scratch, self._options
        assert scratch.daemon is not None
        rest = [scratch.answer(f"rest-{n:03d}", f"Where is the ring {n}?") for n in range(AT_REST)]
        self.figures["rest_latency_ms"] = round(statistics.median(rest), 1)
        watch = Watch(scratch)
        watch.start()
        with Phase(self, "burst"):
            for _ in range(options.prompts):
                self._drop()
            self._await(lambda: self._dropped - self.tail.answered)
        with Phase(self, "steady"):
            self._drop_steadily(options.minutes * 60, options.every_ms / 1000)
            self._await(lambda: self._dropped - self.tail.answered)
        started, reflected = time.monotonic(), self.tail.reflected
        self._await(lambda: self.tail.unreflected)
        seconds = time.monotonic() - started
        self.figures["rest_seconds"] = round(seconds, 1)
        self.figures["rest_reflections_per_s"] = round((self.tail.reflected - reflected) / max(seconds, 0.1), 1)
        watch.end()
        self.figures |= self._sizes(watch)

    def _drop(self) -> None:
        self.scratch.drop(f"load-{self._dropped:06d}", prompt(self._dropped))
        self._dropped += 1

    def _drop_steadily(self, seconds: float, step: float) -> None:
        began = time.monotonic()
        for number in range(round(seconds / step)):
            time.sleep(max(0.0, began + number * step - time.monotonic()))
            self._drop()

    def _await(self, left: Callable[[], int]) -> None:
        end = time.monotonic() + self._options.patience
        while time.monotonic() < end:
            self.tail.read()
            if left() <= 0:
                return
            time.sleep(0.1)

    def _sizes(self, watch: Watch) -> dict[str, Any]:
        files = [path.stat() for path in (self.scratch.root / "logs/journal").rglob("*") if path.is_file()]
        exchanges = max(1, self.tail.reflected)
        return {
            "exchanges": self.tail.reflected,
            "largest_short_term_tokens": count(watch.largest),
            "largest_short_term_bytes": len(watch.largest.encode()),
            "rss_mb_first": round(watch.rss_mb[0]),
            "rss_mb_most": round(max(watch.rss_mb)),
            "journal_bytes_per_exchange": round(sum(each.st_size for each in files) / exchanges),
            "journal_disk_bytes_per_exchange": round(sum(each.st_blocks * 512 for each in files) / exchanges),
            "journal_files_per_exchange": round(len(files) / exchanges, 2),
        }


class Phase:
    """A stretch of the run: how much was answered and reflected in it, at what cost, and how long a fresh one took."""

    def __init__(self, run: Run, name: str) -> None:
        self._run, self._name = run, name

    def _counts(self) -> tuple[int, int, float]:
        tail, daemon = self._run.tail, self._run.scratch.daemon
        assert daemon is not None
        tail.read()
        return tail.kinds["prompt-answered"], tail.reflected, cpu_seconds(daemon.pid)

    def __enter__(self) -> None:
        self._before, self._began = self._counts(), time.monotonic()
        self._probes = Probes(self._run.scratch, self._name)
        self._probes.start()

    def __exit__(self, *_: object) -> None:
        seconds, name, figures = time.monotonic() - self._began, self._name, self._run.figures
        answered, reflected, cpu = (after - before for after, before in zip(self._counts(), self._before, strict=True))
        figures[f"{name}_seconds"] = round(seconds, 1)
        figures[f"{name}_answers_per_s"] = round(answered / seconds, 1)
        figures[f"{name}_reflections_per_s"] = round(reflected / seconds, 1)
        figures[f"{name}_cpu_s"] = round(cpu, 1)
        figures[f"{name}_left_to_reflect"] = self._run.tail.unreflected
        for stretch, taken in self._probes.end().items():
            if taken:
                ratio = statistics.median(taken) / figures["rest_latency_ms"]
                figures[f"{name}_{stretch}_latency_ratio"] = round(ratio, 1)
                figures[f"{name}_{stretch}_latency_ms_p95"] = round(quantile(taken, 0.95))


def wrong(root: Path) -> dict[str, int]:
    """Judge from the files what was lost or done twice: answers, reflections, and where each exchange stands."""
    answered, reflected = collections.Counter[str](), collections.Counter[str]()
    exchanges = set()
    for path in (root / "logs/journal").glob("*/*.jsonl"):
        for line in path.read_bytes().splitlines():
            event = json.loads(line)
            if event["kind"] == "prompt-answered":
                answered[event["data"]["prompt"]] += 1
                exchanges.add(event["id"])
            elif event["kind"] == "exchange-reflected":
                reflected[event["data"]["exchange"]] += 1
    paths = [str(path.relative_to(root)) for path in (root / "inbox").rglob("*.md")]
    responses = {path.replace(".response", "") for path in paths if ".response" in path}
    prompts = {path for path in paths if ".response" not in path}
    standing = collections.Counter[str]()
    for page in (root / "memory").rglob("*.md"):
        standing.update(_MARK.findall(page.read_text()))
    return {
        "without_answer": len(prompts - responses),
        "answered_twice": sum(number > 1 for number in answered.values()),
        "not_reflected": len(exchanges - reflected.keys()),
        "reflected_twice": sum(number > 1 for number in reflected.values()),
        "not_in_memory": len(exchanges - standing.keys()),
        "twice_in_memory": sum(number > 1 for number in standing.values()),
    }


SINGLE_DROPS, BURSTS = 60, 2
QUIET_CPU, QUIET_SECONDS = 0.2, 4.0


def beside(folder: Path, other: Path, prompts: int) -> dict[str, Any]:
    """Return the figures of this checkout and of another one, and their ratios."""
    scratches = {"here": Scratch(folder / "here", 100), "there": Scratch(folder / "there", 100, other)}
    taken: dict[str, list[float]] = {name: [] for name in scratches}
    figures: dict[str, Any] = {}
    try:
        for scratch in scratches.values():
            scratch.start()
            quiet(scratch)
        for number in range(SINGLE_DROPS):
            for name, scratch in scratches.items():
                taken[name].append(scratch.answer(f"single-{number}", single(number)) - SETTLE_MS)
                time.sleep(0.5)
        for number in range(BURSTS):
            for name, scratch in scratches.items():
                done = burst(scratch, number, prompts)
                figures |= {f"{name}_burst{number}_{key}": value for key, value in done.items()}
    finally:
        for scratch in scratches.values():
            scratch.stop()
    for name, times in taken.items():
        figures |= {f"{name}_drop_ms_p50": statistics.median(times), f"{name}_drop_ms_p95": quantile(times, 0.95)}
        figures[f"{name}_rss_grown_mb"] = figures[f"{name}_burst1_rss_mb"] - figures[f"{name}_burst0_rss_mb"]
    ratios = {
        f"ratio_{key}": figures[f"here_{key}"] / figures[f"there_{key}"]
        for key in ("drop_ms_p50", "burst0_answers_per_s", "burst0_cpu_ms")
    }
    return {name: round(value, 2) for name, value in (figures | ratios).items()}


def burst(scratch: Scratch, number: int, prompts: int) -> dict[str, float]:
    """Drop prompts at once; return what was answered a second, at what cost, and the memory once it is quiet."""
    assert scratch.daemon is not None
    tail = Tail(scratch.root / "logs/journal")
    tail.read()
    before, answered, reflected = cpu_seconds(scratch.daemon.pid), tail.answered, tail.reflected
    began = time.monotonic()
    for each in range(number * prompts, (number + 1) * prompts):
        scratch.drop(f"load-{each:06d}", prompt(each))
    while tail.answered - answered < prompts:
        time.sleep(0.1)
        tail.read()
    seconds, cpu = time.monotonic() - began, cpu_seconds(scratch.daemon.pid) - before
    share = (tail.reflected - reflected) / prompts
    quiet(scratch)
    return {
        "answers_per_s": prompts / seconds,
        "cpu_ms": cpu / prompts * 1000,
        "share_reflected": share,
        "cpu_ms_until_quiet": (cpu_seconds(scratch.daemon.pid) - before) / prompts * 1000,
        "rss_mb": rss_mb(scratch.daemon.pid),
    }


def quiet(scratch: Scratch) -> None:
    """Wait until the daemon hardly works."""
    assert scratch.daemon is not None
    last = -1.0
    while (now := cpu_seconds(scratch.daemon.pid)) - last > QUIET_CPU:
        last = now
        time.sleep(QUIET_SECONDS)


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Load a brain, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=20_000, help="dropped at once")
    parser.add_argument("--minutes", type=float, default=10.0, help="of steady load after that")
    parser.add_argument("--every-ms", type=float, default=50.0, help="between two prompts of the steady load")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds to wait for what is left")
    parser.add_argument("--folder", type=Path, help="where to make the brain; it is kept")
    parser.add_argument("--beside", type=Path, help="another checkout to compare with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brainiac-load-") as temporary:
        if options.beside:
            figures = beside(Path(temporary), options.beside.resolve(), options.prompts)
            print("\n".join(f"{name:34} {value}" for name, value in figures.items()), json.dumps(figures), sep="\n")
            return
        scratch = Scratch(options.folder or Path(temporary), 0)
        scratch.start()
        run = Run(scratch, options)
        try:
            run.measure()
        finally:
            scratch.stop()
        faults = wrong(scratch.root)
    for name, value in (run.figures | faults).items():
        print(f"{name:34} {value}")
    print(json.dumps(run.figures | faults))
    sys.exit(any(faults.values()))


if __name__ == "__main__":
    main()
