"""kill -9 of the daemon at random moments under load, again and again; what is lost, doubled or left behind?

    python benchmarks/kill9.py [--kills 300] [--seed 1] [--model]

Prompts are dropped and memories saved all along; one kill in five comes while the daemon starts. After the last kill it
is left to finish, and then: one response a revision, nothing unanswered, every exchange once in short-term memory, no
edit lost, no temporary file left, the journal's fold equal to the tree. With --model a server on loopback counts paid
calls: a crash undoes at most what each worker (four answer, one reflects) was at, and without one nothing is asked
twice.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent.parent)]
from living import CONFIG, Living, events_of, living, living_brain, model_machine, temporaries, unfolded
from pipeline import eventually

from tests.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json

WORKERS = 5
PROMPTS_PER_LIFE = 3
IN_START, AFTER_START_SECONDS = 0.2, 1.2
MODEL_SECONDS = 0.1  # that the model on loopback takes for a call, so that kills fall into calls
MODEL = "llm: {model: openai/test-model, daily_budget_usd: 1000, prices: {openai/test-model: [0.1, 0.1]}}\n"
UNPROMOTED = "promotion: {idle_seconds: 100000, max_tokens: 100000000}\n"  # so that each exchange can be counted


@dataclass(frozen=True)
class Calls:
    """What was asked of the model.

    Attributes:
        made: Calls in all.
        repeated: Calls for the same purpose and prompt beyond the first.
        most_for_one_crash: Pieces of work (an answer, a reflection) that one crash undid, at most; begun again later.
        without_crash: Calls made twice by one and the same process.
    """

    made: int = 0
    repeated: int = 0
    most_for_one_crash: int = 0
    without_crash: int = 0


@dataclass(frozen=True)
class Result:
    """What came of it."""

    kills: int
    prompts: int
    seconds: float
    wrong: dict[str, int]
    calls: Calls = Calls()

    @property
    def is_clean(self) -> bool:
        within = self.calls.most_for_one_crash <= WORKERS and not self.calls.without_crash
        return within and not any(self.wrong.values())


class Attack:
    """A brain under load whose daemon is killed.

    Args:
        root: Where the brain is made.
        seed: Of the moments.
        server: What counts the calls, if a model answers.
    """

    def __init__(self, root: Path, seed: int, server: ChatServer | None) -> None:
        living_brain(root, CONFIG + UNPROMOTED + (MODEL if server else ""))
        self._root, self._chance, self._server = root, random.Random(seed), server
        self._names: list[str] = []
        self._calls_at_crash: list[int] = []

    def life(self) -> None:
        """Start the daemon, load it, and kill it."""
        number = len(self._calls_at_crash)
        in_start = self._chance.random() < IN_START
        with living(self._root, "--answer-backlog", is_awaited=not in_start) as one:
            for _ in range(PROMPTS_PER_LIFE):
                item = len(self._names)
                self._names.append(f"c{item % 4}/n{item}.md" if item % 3 else f"n{item}.md")
                one.drop(self._names[-1], f"Remember item {item}. Where do I live?")
            self._page(number).write_text(f"# Page {number}\n\n- Edit {number} of a person.\n")
            self._wait(in_start)
            one.kill()
        time.sleep(0.05)  # what it had sent reaches the server
        self._calls_at_crash.append(len(self._server.requests) if self._server else 0)

    def _wait(self, in_start: bool) -> None:
        if self._server and not in_start:  # the model's library takes seconds to load
            before = len(self._server.requests)
            eventually(lambda: self._server is None or len(self._server.requests) > before, "a call", 60)
        time.sleep(self._chance.uniform(0.0, AFTER_START_SECONDS))

    def finish(self, seconds: float) -> Living:
        """Let the daemon finish what is left, and end it."""
        with living(self._root, "--answer-backlog") as one:
            eventually(lambda: all(one.response(name) for name in self._names), "all answers", seconds)
            reflected = lambda: len(events_of(self._root, "exchange-reflected")) >= len(self._names)  # noqa: E731
            eventually(reflected, "all reflected", seconds)
            eventually(lambda: not temporaries(self._root), "what was displaced is let go after ten seconds", 60)
            one.terminate()
        return one

    def _page(self, number: int) -> Path:
        return self._root / f"memory/long_term/concrete/page{number}.md"

    def result(self, seconds: float) -> Result:
        """Count."""
        answered = Counter(str(event.data["prompt"]) for event in events_of(self._root, "prompt-answered"))
        noted = (self._root / "memory/short_term.md").read_text()
        once = [noted.count(f'"Remember item {item}. Where do I live?"') for item in range(len(self._names))]
        kills = len(self._calls_at_crash)
        wrong = {
            "unanswered": sum(f"inbox/{name}" not in answered for name in self._names),
            "answered twice": sum(count > 1 for count in answered.values()),
            "unreflected": once.count(0),
            "reflected twice": sum(count > 1 for count in once),
            "lost edits": sum(f"Edit {each} of a person." not in self._page(each).read_text() for each in range(kills)),
            "temporaries": len(temporaries(self._root)),
            "not as the journal tells": len(unfolded(self._root)),
        }
        return Result(kills, len(self._names), round(seconds, 1), wrong, self._counted())

    def _counted(self) -> Calls:
        if self._server is None:
            return Calls()
        ends = [*self._calls_at_crash, len(self._server.requests)]
        calls = list(map(_purpose_and_prompt, self._server.requests))
        lives = [calls[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        again: set[tuple[bool, str]] = set()  # work that a later life began
        wasted = []
        for made in reversed(lives):
            work = {(purpose == "reflect", prompt) for purpose, prompt in made}
            wasted.append(len(work & again))
            again |= work
        return Calls(
            made=len(calls),
            repeated=len(calls) - len(set(calls)),
            most_for_one_crash=max(wasted),
            without_crash=sum(len(made) - len(set(made)) for made in lives),
        )


def _purpose_and_prompt(request: Captured) -> tuple[str, str]:
    body = request.body
    named = body.get("response_format", {}).get("json_schema", {}).get("name", "")
    purpose = "answer" if body.get("tools") else {"Reflection": "reflect", "Queries": "queries"}.get(named, named)
    asked = str(body["messages"][-1]["content"]).rsplit("## User Prompt", 1)[-1]
    return purpose, asked.partition("Remember item ")[2].partition(".")[0]


def run(root: Path, kills: int, seed: int = 1, server: ChatServer | None = None) -> Result:
    """Load and kill a daemon so many times, then let it finish and count."""
    attack, began = Attack(root, seed, server), time.monotonic()
    for _ in range(kills):
        attack.life()
    attack.finish(120 + 2 * kills)
    return attack.result(time.monotonic() - began)


def model(captured: Captured) -> Behaviour:
    """Answer as a model that takes a moment and adds nothing."""
    time.sleep(MODEL_SECONDS)
    return say("Noted.") if captured.body.get("tools") else say_json({})


def main(arguments: Sequence[str] | None = None) -> None:
    """Kill, count and print; exit 1 when anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", action="store_true", help="answer by a counted model on loopback")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        server = None
        if options.model:
            server = stack.enter_context(ChatServer())
            server.default = by_request(model)
            model_machine(server.url)
        result = run(Path(folder) / "brain", options.kills, options.seed, server)
    print(f"{result.kills} kills, {result.prompts} prompts, {result.seconds} s")
    for what, count in result.wrong.items():
        print(f"{what:26}{count:6}")
    if server:
        print(result.calls, f"(allowed for one crash: {WORKERS}, without one: 0)")
    print("clean" if result.is_clean else "NOT CLEAN")
    sys.exit(not result.is_clean)


if __name__ == "__main__":
    main()
