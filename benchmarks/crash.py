"""SIGKILL of the daemon and of commands under mixed load, again and again; what is lost, doubled, half-done or leaked?

    python benchmarks/crash.py [--kills 300] [--seed 1] [--model] [--show] [--keep DIR]

A person talks, takes notes, revises, edits short-term memory and pages in three styles of saving, saves buffers that
were opened before, saves while nothing runs and twice in a row, deletes, ticks; `promote`, `organize` and `ask` run
beside. The plan follows from the seed. Nothing of Brainiac is imported: it is run as a process (crash_person.py acts)
and judged by its files (crash_judge.py). With --model a model behind a remote name counts its calls and keeps every
byte it was sent. The last line printed is one line of JSON; exit 1 unless all counts are 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.crash_judge import STM, Book, Prompt, judge, left_to_do, settled
from benchmarks.crash_person import Person
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json
from tests.support.program import Program, run_program

CONFIG = """\
brain_id: crash
inbox: {settle_ms: 20, typing_seconds: 1, backlog_limit: 100000}
watch: {rescan_seconds: 1}
promotion: {idle_seconds: 1, min_events: 6}
organization: {idle_seconds: 2}
recall: {embedder: none}
"""
MODEL = """\
llm:
  model: openai/test-model
  daily_budget_usd: 1000
  prices: {openai/test-model: [0.1, 0.1]}
"""
REMOTE = "http://models.example/v1"  # reached through a proxy on loopback, so that it is a stranger's to the product
MODEL_SECONDS = 0.05  # that the model takes for a call, so that kills fall into calls
IN_START = 0.2  # share of the kills that come while the daemon starts
COMMAND = 0.35  # share of the lives in which a command runs beside
START_SECONDS, CALL_SECONDS = 60.0, 10.0
# what was displaced is let go after eleven seconds, and that is looked at every ten
REST_SECONDS, PATIENCE_SECONDS = 25.0, 45.0
WORKERS = 6  # four answer, one reflects, and a command beside

Processes = Sequence[Program]


class Attack:
    """A brain under load whose processes are killed.

    Args:
        folder: Where all is made: the brain, and this machine's state, cache and config.
        seed: Of the plan.
        server: The model, if there is one.
    """

    def __init__(self, folder: Path, seed: int, server: ChatServer | None = None) -> None:
        self.root, self.seed, self.server = folder / "brain", seed, server
        self.book = Book(self.root, tuple(folder / name for name in ("state", "cache")))
        self.person = Person(self.root, self.book)
        self.lives = 0
        self.kills, self.killed_processes, self._logs = 0, 0, folder / "logs"
        self._environment = environment(folder, server)
        self._logs.mkdir(parents=True)
        self._run("init", str(self.root))
        (self.root / "system/config.yaml").write_text(CONFIG + (MODEL if server else ""))

    def life(self) -> None:
        """Start the daemon, act, and kill all that runs; then save what one saves while nothing runs."""
        at = f"{self.seed}/{self.lives}"
        plan, self.lives = random.Random(at), self.lives + 1
        daemon = self._start()
        commands: list[Program] = []
        try:
            if plan.random() >= IN_START:
                self._await(daemon)
            for number in range(plan.randint(2, 5)):
                self.person.act(f"{at}/{number}")
                if plan.random() < COMMAND / 3:
                    commands += self._command(plan)
                time.sleep(plan.uniform(0.0, 0.15))
            if self.server and plan.random() < 0.5:  # the model's library takes seconds to load
                self._await_call(daemon)
            time.sleep(plan.choice((plan.uniform(0.0, 0.3), plan.uniform(0.0, 1.5))))
            last = threading.Thread(target=self.person.act, args=(f"{at}/last",))
            last.start()  # the kill falls into a save
            time.sleep(plan.uniform(0.0, 0.05))
        finally:
            is_spared = plan.random() < 0.3
            self._end([daemon] if is_spared else [daemon, *commands], commands if is_spared else ())
        last.join()
        for number in range(plan.choice((0, 0, 1, 2, 3))):
            self.person.act(f"{at}/down/{number}")
        if plan.random() < 0.12:
            self._killed_alone(plan)

    def _command(self, plan: random.Random) -> list[Program]:
        """Run a command beside the daemon."""
        verb = plan.choice(("promote", "promote", "organize", "ask", "private", "hidden"))
        if verb in ("promote", "organize"):
            return [self._popen(verb)]
        name = self.person.word()
        text = f"Tell me about {name}."
        options = {"ask": [], "private": ["--private"], "hidden": ["--off-record"]}[verb]
        head = {"ask": "", "private": "private: true", "hidden": "remember: false"}[verb]
        self.book.asked.append(Prompt("", head, [name], [text]))
        return [self._popen("ask", *options, text)]

    def _killed_alone(self, plan: random.Random) -> None:
        """Kill commands that run without a daemon."""
        commands = self._command(plan) + (self._command(plan) if plan.random() < 0.3 else [])
        time.sleep(plan.uniform(0.05, 1.0))
        self._end(commands)

    def _end(self, processes: Sequence[Program], spared: Sequence[Program] = ()) -> None:
        """Kill all processes at once, after those that are spared have ended by themselves."""
        for process in spared:
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
        alive = [process for process in (*processes, *spared) if process.poll() is None]
        for process in alive:
            process.kill()
        for process in alive:
            process.wait(30)
        self.kills += bool(alive)
        self.killed_processes += len(alive)
        read = -1
        while self.server and read < len(self.server.requests):  # what was sent before the end is read after it
            read = len(self.server.requests)
            time.sleep(0.1)
        self.book.crashes.append(len(self.server.requests) if self.server else 0)

    def finish(self, seconds: float) -> None:
        """Let the daemon do what is left to do, end it, and promote what is left."""
        daemon = self._start()
        self._await(daemon)
        end, since, stamp = time.monotonic() + seconds, time.monotonic(), ""
        while time.monotonic() < end and daemon.poll() is None:
            if (now := settled(self.book)) != stamp:
                stamp, since = now, time.monotonic()
            rest = time.monotonic() - since
            if rest > PATIENCE_SECONDS or (rest > REST_SECONDS and not left_to_do(self.book)):
                break
            time.sleep(0.5)
        daemon.terminate()
        daemon.wait(60)

    def promote(self) -> None:
        """Promote twice: what one run leaves is for the next."""
        for _ in range(2):
            self._run("promote", is_checked=False)

    def doctor(self) -> list[str]:
        """Return what `doctor` names after it mended what it can: pages made by hand still lack their keys.

        That a person's mark makes all of short-term memory private is what it has to name.
        """
        self._run("doctor", "--fix", is_checked=False)
        done = self._run("doctor", "--json", is_checked=False)
        named = [f"{each['path']}: {each['what']}" for each in json.loads(done.stdout)["problems"]]
        return [one for one in named if not one.startswith(f"{STM}: has a mark `<!-- private -->`")]

    def _line(self, *arguments: str) -> tuple[str, ...]:
        return arguments if arguments[0] == "init" else ("--brain", str(self.root), *arguments)

    def _popen(self, *arguments: str) -> Program:
        with (self._logs / "commands.log").open("ab") as out:
            return Program(*self._line(*arguments), out=out, env=self._environment)

    def _run(self, *arguments: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        done = run_program(*self._line(*arguments), env=self._environment)
        if is_checked:
            done.check_returncode()
        return done

    def _start(self) -> Program:
        with (self._logs / f"{self.lives}.log").open("wb") as out:
            return Program(*self._line("run"), out=out, env=self._environment)

    def _await(self, daemon: Program) -> None:
        log, end = self._logs / f"{self.lives}.log", time.monotonic() + START_SECONDS
        while b'"watching"' not in log.read_bytes():
            assert daemon.poll() is None, f"it did not start: {log.read_text()[-3000:]}"
            assert time.monotonic() < end, f"it does not watch: {log.read_text()[-3000:]}"
            time.sleep(0.01)

    def _await_call(self, daemon: Program) -> None:
        """Wait until the model is asked something, so that the kill falls into calls."""
        assert self.server
        before, end = len(self.server.requests), time.monotonic() + CALL_SECONDS * left_to_do(self.book)
        while len(self.server.requests) == before and daemon.poll() is None and time.monotonic() < end:
            time.sleep(0.05)


def environment(folder: Path, server: ChatServer | None) -> dict[str, str]:
    """Return the variables of a machine of its own, on which a remote model is behind a proxy on loopback."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BRAINIAC", "XDG_"))}
    kept |= {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE", "CONFIG")}
    kept["HOME"] = str(folder)
    if server:
        config = folder / "config/brainiac/config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"api_bases: {{openai: {REMOTE}}}\n")
        kept |= dict.fromkeys(("HTTP_PROXY", "http_proxy"), server.url.removesuffix("/v1"))
    return kept


def model(captured: Captured) -> Behaviour:
    """Answer as a model that takes a moment and adds nothing."""
    time.sleep(MODEL_SECONDS)
    return say("Noted.") if captured.body.get("tools") else say_json({})


@dataclass(frozen=True)
class Result:
    """What came of a run.

    Attributes:
        totals: How much there was, by name.
        wrong: What is not as it must be, by name.
    """

    totals: dict[str, float]
    wrong: dict[str, list[str]]

    @property
    def is_clean(self) -> bool:
        return not any(self.wrong.values())

    def counts(self) -> dict[str, int]:
        """Return how often each thing is wrong."""
        return {name: len(what) for name, what in self.wrong.items()}


def repeated_calls(attack: Attack) -> tuple[int, dict[str, list[str]]]:
    """Return how often the model was asked, and what it was asked again more often than crashes account for."""
    if attack.server is None:
        return 0, {}
    ends = [0, *attack.book.crashes, len(attack.server.requests)]
    made = [_work(request) for request in attack.server.requests]
    lives = [[work for work in made[start:end] if work[1]] for start, end in pairwise(ends)]
    again: set[tuple[str, str]] = set()  # what a later life asks
    undone, repeated = [], []
    for number, life in reversed(list(enumerate(lives))):
        prompts = sorted({prompt for _, prompt in set(life) & again})
        undone += [f"{prompt}: undone by crash {number}" for prompt in prompts[WORKERS:]]
        again |= set(life)
        repeated += [f"{purpose} {prompt}" for (purpose, prompt), times in Counter(life).items() if times > 1]
    return len(made), {"calls_undone": undone, "calls_repeated": repeated}


def _work(request: Captured) -> tuple[str, str]:
    """Return the purpose of a request and the prompt it serves; "" where it serves none alone."""
    named = request.body.get("response_format", {}).get("json_schema", {}).get("name", "")
    purpose = "answer" if request.body.get("tools") else named
    asked = str(request.body["messages"][-1]["content"]).rsplit("## User Prompt", 1)[-1]
    words = re.findall(r"zz[a-z]{8}", asked) if purpose in ("answer", "Queries", "Reflection") else []
    return purpose, words[-1] if words else ""


def run(folder: Path, kills: int, seed: int = 1, server: ChatServer | None = None) -> Result:
    """Kill so many times, let the daemon finish, promote what is left, and judge before and after."""
    attack, began = Attack(folder, seed, server), time.monotonic()
    while attack.kills < kills:
        attack.life()
    took = time.monotonic() - began
    attack.finish(120 + 2 * kills)
    before = judge(attack.book, server, is_at_rest=True)
    attack.promote()
    after = judge(attack.book, server, is_at_rest=False)
    made, repeated = repeated_calls(attack)
    wrong = {name: sorted({*before.wrong[name], *after.wrong[name]}) for name in after.wrong}
    wrong |= {"doctor": attack.doctor(), **repeated}
    totals = {"kills": attack.kills, "processes": attack.killed_processes, "seed": seed, "calls": made}
    return Result({**totals, "seconds_a_kill": round(took / attack.kills, 2), **after.totals}, wrong)


def main(arguments: Sequence[str] | None = None) -> None:
    """Kill, count and print; exit 1 when anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", action="store_true", help="answer by a model that keeps what it is sent")
    parser.add_argument("--show", action="store_true", help="name what is wrong")
    parser.add_argument("--keep", type=Path, help="a new folder for the brain, kept to be looked at")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(ChatServer()) if options.model else None
        if server:
            server.default = by_request(model)
        result = run(folder, options.kills, options.seed, server)
    for name, number in (*result.totals.items(), *result.counts().items()):
        print(f"{name:24}{number:>8}")
    if options.show:
        print(json.dumps({name: what for name, what in result.wrong.items() if what}, indent=1, ensure_ascii=False))
    print(json.dumps({**result.totals, "wrong": result.counts(), "is_clean": result.is_clean}))
    sys.exit(not result.is_clean)


if __name__ == "__main__":
    main()
