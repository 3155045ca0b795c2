"""The daemon under mixed load for a long while: is it at the end what it was at the start, and is nothing lost?

    python benchmarks/soak.py [--minutes 30] [--seed 1]

Prompts, revisions, captures, bad files, edits by hand, moves and removals of memories, changed settings, a plugin that
raises, exits and hangs, and a model on loopback that fails now and then; every so often a rest, in which Promotion and
Organization work. Memory (RSS), open descriptors and threads of the daemon are sampled each second, latency is measured
on prompts that no fault was meant for. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from tests.support.living import Living, journal_of, living, living_brain, model_machine, temporaries, trusted, unfolded
from tests.support.openai_server import Behaviour, Captured, ChatServer, cut, hang, raw, say, say_json, status
from tests.support.pipeline import eventually

CONFIG = """\
inbox: {settle_ms: 20, typing_seconds: 1}
watch: {rescan_seconds: 5}
plugins: {hang_seconds: 0.5}
promotion: {idle_seconds: 2}
organization: {idle_seconds: 3, min_entries: 20}
recall: {embedder: none}
llm:
  model: openai/test-model
  models: {consolidate: offline, synthesize: offline, summarize: offline, organize: offline}
  timeout_seconds: 2
  daily_budget_usd: 1000
  prices: {openai/test-model: [0.1, 0.1]}
"""
FAULTY = """
import sys, time
from brainiac import hookimpl

@hookimpl
def prompt_arrived(prompt):
    if "raise" in prompt.text:
        raise ValueError(prompt.text)
    if "exit" in prompt.text:
        sys.exit(1)
    if "hang" in prompt.text:
        time.sleep(1.5)

@hookimpl
def memory_modified(path):
    raise KeyError(path)

@hookimpl
def quiet(idle_seconds):
    raise RuntimeError(idle_seconds)
"""
FAULTS: tuple[Behaviour, ...] = (
    status(429, "slow down", {"Retry-After": "1"}),
    status(500, "internal error"),
    cut("I beg"),
    hang(4),
    raw("data: {not json\n\n"),
    status(503, "overloaded"),
    say(""),
)
TALK = (
    "Remember item {}: I like tea.",
    "Where is item {}?",
    "Item {} is what I bought in Leith.",
    "Who knows item {}?",
)
FAULT_EVERY = 8  # prompts
LONG_SECONDS = 60.0  # a shorter run, as in the suite, skips what has to be waited for
CYCLE_SECONDS, PACE_SECONDS = 30.0, 0.6
MOST_WAITING = 6  # prompts: a person who waits for answers asks no more; a backlog would tell of the machine's load
MOST_REST_SECONDS = 60.0


class Provider:
    """A model that serves by purpose, and fails once for each prompt that is chosen for it."""

    def __init__(self) -> None:
        self._failed: set[int] = set()
        self._mutex = threading.Lock()

    def behave(self, captured: Captured) -> Behaviour:
        number = max(
            map(int, re.findall(r"[Ii]tem (\d+)", str(captured.body["messages"][-1]["content"])[-400:])), default=1
        )
        with self._mutex:
            if is_chosen(number) and number not in self._failed:
                self._failed.add(number)
                return FAULTS[number // FAULT_EVERY % len(FAULTS)]
        return say(f"Noted, item {number}.") if captured.body.get("tools") else say_json({})


def is_chosen(number: int) -> bool:
    """Tell whether the provider fails for a prompt."""
    return number % FAULT_EVERY == 0


@dataclass(frozen=True)
class Sample:
    """What the daemon held at a moment."""

    at: float
    rss_mb: float
    descriptors: int
    threads: int


@dataclass
class Quarter:
    """The medians of a stretch of time."""

    rss_mb: float = 0.0
    descriptors: float = 0.0
    threads: float = 0.0
    latency_p50_ms: float = 0.0
    latency_p95_ms: float = 0.0
    prompts: int = 0


@dataclass
class Report:
    """What came of it; `wrong` names what should not be."""

    minutes: float
    prompts: int
    actions: dict[str, int]
    events: int
    plugin_faults: int
    quarters: list[Quarter]
    wrong: list[str] = field(default_factory=list)


class Load:
    """Does one random thing after another to a brain, as people and tools do."""

    def __init__(self, one: Living, chance: random.Random) -> None:
        self._one, self._chance = one, chance
        self._numbers = itertools.count(1)
        self.waiting: dict[str, tuple[float, bool]] = {}  # prompt to when it was dropped and whether it counts
        self.latencies: list[tuple[float, float]] = []
        self.expected: dict[Path, list[str]] = {}  # page to what a person wrote in it
        self.dropped: list[str] = []
        self.actions: dict[str, int] = {}
        self._memory = one.root / "memory/long_term/concrete"

    def act(self) -> None:
        """Do something; nothing new is asked while much waits for an answer."""
        kinds: dict[Callable[[], None], int] = {
            self.prompt: 45, self.offline_prompt: 8, self.revise: 5, self.move_prompt: 5, self.capture: 5,
            self.bad_file: 3, self.trouble_plugin: 6, self.new_page: 6, self.edit_page: 12, self.move_page: 4,
            self.remove_page: 2, self.settings: 2,
        }  # fmt: skip
        asking = {self.prompt, self.offline_prompt, self.revise, self.trouble_plugin}
        open_to = [kind for kind in kinds if len(self.waiting) < MOST_WAITING or kind not in asking]
        action = self._chance.choices(open_to, [kinds[kind] for kind in open_to])[0]
        self.actions[action.__name__] = self.actions.get(action.__name__, 0) + 1
        action()

    def look(self, seconds: float = 0.0) -> None:
        """Take the time of what is answered within so many seconds."""
        end = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            for name, (since, counts) in list(self.waiting.items()):
                if self._one.response(name) is not None:
                    del self.waiting[name]
                    if counts:
                        self.latencies.append((now, now - since))
            if now >= end:
                return
            time.sleep(0.02)

    def is_answered(self) -> bool:
        """Look once more and return whether nothing waits for an answer."""
        self.look()
        return not self.waiting

    # --- prompts ----------------------------------------------------------------------------------------

    def prompt(self, more: str = "", meta: str = "", counts: bool = True) -> None:
        number = next(self._numbers)
        folder = f"talk-{number % 5}-{number // 200}/" if number % 3 else ""
        name = f"{folder}p{number}.md"
        self.waiting[name] = time.monotonic(), counts and not is_chosen(number)
        self._one.drop(name, f"{meta}{self._chance.choice(TALK).format(number)}{more}\n")
        self.dropped.append(name)

    def offline_prompt(self) -> None:
        self.prompt(meta="---\nmodel: offline\n---\n", counts=False)

    def trouble_plugin(self) -> None:
        self.prompt(more=f" Please {self._chance.choice(('raise', 'exit', 'hang'))}.", counts=False)

    def revise(self) -> None:
        if answered := self._answered():
            name = self._chance.choice(answered)
            path = self._one.root / "inbox" / name
            path.write_text(f"{path.read_text().splitlines()[-1]} A revision.\n/send\n")

    def move_prompt(self) -> None:
        if answered := self._answered():
            name = self._chance.choice(answered)
            path = self._one.root / "inbox" / name
            self.dropped[self.dropped.index(name)] = new = name.replace(".md", "m.md")
            path.rename(self._one.root / "inbox" / new)

    def capture(self) -> None:
        self._one.drop(f"notes/n{next(self._numbers)}.md", "A thought about the garden.\n")

    def bad_file(self) -> None:
        bad = self._chance.choice(
            (b"\xff\xfe\x00 not UTF-8", b"---\nmodel: [\n---\nWhere?\n", b"---\nanswer: perhaps\n---\nx\n")
        )
        self._one.drop(f"bad{next(self._numbers)}.md", bad)

    def _answered(self) -> list[str]:
        return [name for name in self.dropped[-60:] if self._one.response(name) is not None]

    # --- memories, by hand ------------------------------------------------------------------------------

    def new_page(self) -> None:
        number = next(self._numbers)
        path = self._memory / f"topic-{number % 7}" / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {number}\n\n- Line {number} by hand.\n")
        self.expected[path] = [f"Line {number} by hand."]

    def edit_page(self) -> None:
        """Save as editors do: in place, or by a new file in the old one's place."""
        if (path := self._page()) is None:
            return self.new_page()
        line = f"Edit {next(self._numbers)} by hand."
        text = path.read_text() + f"- {line}\n"
        if self._chance.random() < 0.5:
            path.write_text(text)
        else:
            aside = path.parent / f".{path.name}.swp"
            aside.write_text(text)
            aside.rename(path)
        self.expected[path].append(line)
        return None

    def move_page(self) -> None:
        if (path := self._page()) is not None:
            target = (
                path.parent.parent / f"topic-{self._chance.randrange(7)}" / f"m{next(self._numbers)}-{path.name[-40:]}"
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            self.expected[target] = self.expected.pop(path)

    def remove_page(self) -> None:
        if len(self.expected) > 5 and (path := self._page()) is not None:
            path.unlink()
            del self.expected[path]

    def _page(self) -> Path | None:
        """Choose a page of a person's; Organization may have moved it."""
        if not self.expected:
            return None
        path = self._chance.choice(list(self.expected))
        if not path.exists():
            found = next((self._one.root / "memory").rglob(path.name))
            self.expected[found] = self.expected.pop(path)
            return found
        return path

    def settings(self) -> None:
        limit = self._chance.randrange(4, 9)
        (self._one.root / "system/config.yaml").write_text(f"{CONFIG}context: {{memory_tokens: {100 * limit}}}\n")


def sample(pid: int) -> Sample:
    """Look at a process."""
    told = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))
    return Sample(time.monotonic(), int(told["VmRSS"]) / 1024, len(os.listdir(f"/proc/{pid}/fd")), int(told["Threads"]))


@contextmanager
def sampling(pid: int) -> Iterator[list[Sample]]:
    """Look at a process each second."""
    samples: list[Sample] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(1.0):
            samples.append(sample(pid))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()


def run(root: Path, seconds: float, seed: int = 1, cycle_seconds: float = CYCLE_SECONDS) -> Report:
    """Load a daemon for so long, let it finish, and count.

    Args:
        root: Where the brain is made.
        seconds: How long it is loaded.
        seed: Of what happens.
        cycle_seconds: How long it is loaded before each rest.
    """
    living_brain(root, CONFIG)
    trusted(root, "faulty", FAULTY)
    with ChatServer() as server:
        server.default = lambda exchange: provider.behave(exchange.request)(exchange)
        provider = Provider()
        model_machine(server.url)
        with living(root) as one:
            load = Load(one, random.Random(seed))
            _warm_up(one, load, is_long=seconds >= LONG_SECONDS)
            with sampling(one.process.pid) as samples:
                began = time.monotonic()
                _loaded(one, load, seconds, cycle_seconds)
                ended = time.monotonic()
            wrong = _finished(one, load, is_long=seconds >= LONG_SECONDS)
    return _report(root, load, samples, (began, ended), wrong)


def _warm_up(one: Living, load: Load, *, is_long: bool) -> None:
    """Let it load the model library and what a first run of each process needs, which stays loaded."""
    for _ in range(FAULT_EVERY - 1):
        load.prompt()
    load.offline_prompt()
    load.new_page()
    eventually(load.is_answered, "the first answers", 60)
    if is_long:
        one.wait_for_event("memory-promoted", 60)
    load.latencies.clear()


def _loaded(one: Living, load: Load, seconds: float, cycle_seconds: float) -> None:
    """Load it for so long; after each cycle comes a rest until what was said is promoted."""
    end, pace = time.monotonic() + seconds, min(PACE_SECONDS, cycle_seconds / 40)
    while time.monotonic() < end:
        cycle_end = min(end, time.monotonic() + cycle_seconds)
        while time.monotonic() < cycle_end:
            load.act()
            load.look(pace)
        rest_end = time.monotonic() + min(MOST_REST_SECONDS, cycle_seconds)
        while time.monotonic() < rest_end and not _has_rested(one, load):
            load.look(0.2)


def _has_rested(one: Living, load: Load) -> bool:
    noted = (one.root / "memory/short_term.md").read_text()
    return not load.waiting and "<!-- event:" not in noted


def _finished(one: Living, load: Load, *, is_long: bool) -> list[str]:
    """Let it finish and tell what is wrong."""
    wrong = []
    try:
        eventually(load.is_answered, "all answers", 60)
        if is_long:  # displaced files are let go after ten seconds; pages of the last minute are completed first
            eventually(lambda: not temporaries(one.root), "no temporaries", 90)
        if (code := one.terminate()) != 0:
            wrong.append(f"it ended with {code}")
    except AssertionError as error:
        wrong.append(f"{error}; waiting: {sorted(load.waiting)[:10]}; temporaries: {temporaries(one.root)[:5]}")
    kept = "\n".join(path.read_text() for path in (one.root / "memory").rglob("*.md"))
    wrong += [
        f"lost edit: {path.name}: {line}" for path, lines in load.expected.items() for line in lines if line not in kept
    ]
    return wrong


def _report(root: Path, load: Load, samples: Sequence[Sample], span: tuple[float, float], wrong: list[str]) -> Report:
    began, ended = span
    quarter = (ended - began) / 4
    events = list(journal_of(root).events())
    answers = [
        (event.data["prompt_id"], event.data["prompt_sha256"]) for event in events if event.kind == "prompt-answered"
    ]
    wrong += (
        [f"{len(answers) - len(set(answers))} revisions answered twice"] if len(answers) > len(set(answers)) else []
    )
    wrong += [f"not as the journal tells: {path}" for path in unfolded(root)]
    return Report(
        minutes=round((ended - began) / 60, 2),
        prompts=len(load.dropped),
        actions=dict(sorted(load.actions.items())),
        events=len(events),
        plugin_faults=sum(event.kind == "plugin-failed" for event in events),
        quarters=[
            _quarter(samples, load.latencies, began + number * quarter, began + (number + 1) * quarter)
            for number in range(4)
        ],
        wrong=wrong,
    )


def _quarter(samples: Sequence[Sample], latencies: Sequence[tuple[float, float]], start: float, end: float) -> Quarter:
    some = [each for each in samples if start <= each.at <= end]
    took = sorted(1000 * seconds for at, seconds in latencies if start <= at <= end)
    if not some or not took:
        return Quarter()
    return Quarter(
        rss_mb=round(statistics.median(each.rss_mb for each in some), 1),
        descriptors=statistics.median(each.descriptors for each in some),
        threads=statistics.median(each.threads for each in some),
        latency_p50_ms=round(took[len(took) // 2]),
        latency_p95_ms=round(took[int(len(took) * 0.95)]),
        prompts=len(took),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Load, count and print; exit 1 when something was lost, doubled or left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="make the brain here and leave it")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        report = run(folder / "brain", 60 * options.minutes, options.seed)
    told: dict[str, Any] = asdict(report)
    print(f"{'quarter':16}{'first':>10}{'second':>10}{'third':>10}{'last':>10}")
    for name in told["quarters"][0]:
        print(f"{name:16}" + "".join(f"{quarter[name]:10}" for quarter in told["quarters"]))
    print(*(f"WRONG {what}" for what in report.wrong[:30]), sep="\n")
    print(json.dumps(told))
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
