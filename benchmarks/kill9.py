"""kill -9 of the daemon at random moments under load, again and again; what is lost, doubled or left behind?

    python benchmarks/kill9.py [--kills 300] [--seed 1] [--model]

Prompts are dropped, revised, moved and edited all along. After the last kill the daemon is left to finish, and then:
one response a revision, nothing unanswered, every exchange once in short-term memory, no temporary file left, the
journal's fold equal to the tree. With --model a server on loopback counts paid calls: repeated at most once for each
worker (five) and crash.
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
from dataclasses import dataclass, fields
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent.parent)]
from living import CONFIG, events_of, living, living_brain, temporaries, unfolded
from pipeline import eventually

from tests.openai_server import ChatServer, by_request, say, say_json

WORKERS = 5
PROMPTS_PER_LIFE = 3
MODEL = "llm: {model: openai/test-model, daily_budget_usd: 1000, prices: {openai/test-model: [0.1, 0.1]}}\n"


@dataclass(frozen=True)
class Result:
    """What came of it; all but the first three should be zero."""

    kills: int
    prompts: int
    seconds: float
    unanswered: int = 0
    answered_twice: int = 0
    unreflected: int = 0
    reflected_twice: int = 0
    lost_edits: int = 0
    temporaries: int = 0
    unfolded: int = 0
    calls_repeated_beyond_one_a_worker_and_crash: int = 0

    @property
    def is_clean(self) -> bool:
        return not any(getattr(self, field.name) for field in fields(self)[3:])


def run(root: Path, kills: int, seed: int = 1, server: ChatServer | None = None) -> Result:
    """Load and kill a daemon so many times, then let it finish and count."""
    living_brain(root, CONFIG + (MODEL if server else ""))
    chance, began = random.Random(seed), time.monotonic()
    names: list[str] = []
    for life in range(kills):
        with living(root, "--answer-backlog", is_awaited=life == 0) as one:
            for _ in range(PROMPTS_PER_LIFE):
                names.append(f"c{len(names) % 4}/n{len(names)}.md" if len(names) % 3 else f"n{len(names)}.md")
                one.drop(names[-1], f"Remember item {len(names) - 1}. Where do I live?")
            page = root / "memory/long_term/concrete" / f"page{life}.md"
            page.write_text(f"# Page {life}\n\n- Edit {life} of a person.\n")
            time.sleep(chance.uniform(0.0, 1.2) + (4.0 if server and life == 0 else 0.6))
            one.kill()
    with living(root, "--answer-backlog") as one:
        eventually(lambda: all(one.response(name) for name in names), "all answers", 120 + kills)
        done = lambda: len(events_of(root, "exchange-reflected")) >= len(names)  # noqa: E731
        eventually(done, "all reflected", 120 + kills)
        eventually(lambda: not temporaries(root), "what was displaced is let go after ten seconds", 60)
        one.terminate()
    return _counted(root, kills, names, time.monotonic() - began, server)


def _counted(root: Path, kills: int, names: Sequence[str], seconds: float, server: ChatServer | None) -> Result:
    answered = Counter(str(event.data["prompt"]) for event in events_of(root, "prompt-answered"))
    noted = (root / "memory/short_term.md").read_text()
    once = [noted.count(f'"Remember item {number}. Where do I live?"') for number in range(len(names))]
    edits = [(root / f"memory/long_term/concrete/page{life}.md").read_text() for life in range(kills)]
    return Result(
        kills=kills,
        prompts=len(names),
        seconds=round(seconds, 1),
        unanswered=sum(f"inbox/{name}" not in answered for name in names),
        answered_twice=sum(count > 1 for count in answered.values()),
        unreflected=once.count(0),
        reflected_twice=sum(count > 1 for count in once),
        lost_edits=sum(f"Edit {life} of a person." not in text for life, text in enumerate(edits)),
        temporaries=len(temporaries(root)),
        unfolded=len(unfolded(root)),
        calls_repeated_beyond_one_a_worker_and_crash=_repeated(server, kills) if server else 0,
    )


def _repeated(server: ChatServer, kills: int) -> int:
    """Count calls of equal purpose for the same prompt beyond the first, less one a worker and crash."""
    calls = Counter(_purpose(request.body) for request in server.requests)
    return max(0, sum(count - 1 for count in calls.values()) - WORKERS * kills)


def _purpose(body: dict[str, object]) -> tuple[str, str]:
    messages = body["messages"]
    assert isinstance(messages, list)
    said = str(messages[-1]["content"]).rsplit("## User Prompt", 1)[-1]
    return str(messages[0]["content"])[-300:], said.split("UTC.)", 1)[-1][:120]


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
            server.default = by_request(lambda request: say("Noted.") if request.body.get("tools") else say_json({}))
            config = Path(folder) / "config/brainiac/config.yaml"
            config.parent.mkdir(parents=True)
            config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        result = run(Path(folder) / "brain", options.kills, options.seed, server)
    print(result, "clean" if result.is_clean else "NOT CLEAN")
    sys.exit(not result.is_clean)


if __name__ == "__main__":
    main()
