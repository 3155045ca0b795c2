"""One memory on several machines, with real daemons and real ways to sync.

    python benchmarks/sync.py clone [--prompts 10000]

`clone`: a brain with answered prompts and a model that costs money is cloned with git, and a daemon starts there. How
long until it watches, what does it answer once more, and what does it ask the model for?

The last line printed is one line of JSON; exit 1 unless every count of what went wrong is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.events import Event, RecordedChange, content_hash, new_id
from brainiac.formats.prompt import Response, parse_prompt, render_response
from brainiac.storage.journal import to_line
from tests.support.machines import START_SECONDS, Machine
from tests.support.openai_server import ChatServer
from tests.support.pipeline import eventually

AT = "2026-11-01T00:00:00Z"
PAID = """\
brain_id: shared
inbox: {settle_ms: 20, typing_seconds: 1}
recall: {embedder: none}
llm:
  model: openai/test-model
  daily_budget_usd: 1000
  prices: {openai/test-model: [0.1, 0.1]}
"""
FRESH = "zanzibar locker"


# --- a clone -------------------------------------------------------------------------------------------------------


@dataclass
class CloneResult:
    """What starting in a clone cost; the counts are to be 0.

    Attributes:
        prompts: Answered prompts in the repository.
        first_seconds: Of the first start, until the daemon watches.
        second_seconds: Of the second start.
        fresh_seconds: Until a prompt that was dropped after the first start had its answer.
        answered: Prompts that were answered once more.
        calls: Calls of the model that were not for that fresh prompt.
        waiting: Prompts that wait.
    """

    prompts: int
    first_seconds: float = 0.0
    second_seconds: float = 0.0
    fresh_seconds: float = 0.0
    answered: int = 0
    calls: int = 0
    waiting: int = 0

    @property
    def is_good(self) -> bool:
        return not (self.answered or self.calls or self.waiting)


def write_history(root: Path, prompts: int) -> None:
    """Write prompts, their responses, and the journal of the device that answered and noted them."""
    lines = []
    for number in range(prompts):
        path, raw = f"inbox/c{number % 100}/p{number}.md", f"I said thing {number}.\n".encode()
        prompt, exchange, prompt_id = parse_prompt(path, raw, at=AT, inbox="inbox"), new_id(), new_id()
        target = path.replace(".md", ".response.md")
        answer = render_response(
            Response(
                target,
                "Noted.",
                in_reply_to=path,
                prompt_id=prompt_id,
                prompt_sha256=prompt.sha256,
                created_at=AT,
                model="m",
            )
        ).encode()
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(raw)
        (root / target).write_bytes(answer)
        data = {"prompt": path, "prompt_id": prompt_id, "prompt_sha256": prompt.sha256, "response": target}
        data |= {"response_hash": content_hash(answer), "model": "m", "led": []}
        changes = (
            RecordedChange("observe", path, None, content_hash(raw)),
            RecordedChange("create", target, None, content_hash(answer)),
        )
        noted = {"exchange": exchange, "prompt": path, "is_extracted": True, "items": [], "thoughts": ""}
        answered = Event(2 * number + 1, exchange, AT, "prompt-answered", "core_loop", None, data, changes)
        reflected = Event(2 * number + 2, new_id(), AT, "exchange-reflected", "reflection", exchange, noted, ())
        lines += [to_line(answered), to_line(reflected)]
    journal = root / "logs/journal/desk-abcdef/2026-11-01.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"".join(lines))


def clone(folder: Path, prompts: int) -> CloneResult:
    """Clone a brain with answered prompts and start daemons in the clone.

    Args:
        folder: Where all is made.
        prompts: How many were answered.
    """
    desk = Machine(folder / "desk-home", folder / "desk")
    laptop = Machine(folder / "laptop-home", folder / "laptop")
    result = CloneResult(prompts)
    desk.run("init", os.fspath(desk.root))
    (desk.root / "system/config.yaml").write_text(PAID)
    write_history(desk.root, prompts)
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "a brain")):
        subprocess.run(["git", *words], cwd=desk.root, check=True)
    subprocess.run(["git", "clone", "-q", desk.root, laptop.root], check=True)
    with ChatServer() as server:
        config = laptop.home / "config/brainiac/config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        with laptop.served() as seconds:
            result.first_seconds = seconds
            begun = time.monotonic()
            (laptop.root / "inbox/fresh.md").write_text(f"Where is my {FRESH}?\n")
            eventually((laptop.root / "inbox/fresh.response.md").exists, "the fresh prompt is answered", START_SECONDS)
            result.fresh_seconds = round(time.monotonic() - begun, 1)
        with laptop.served() as seconds:
            result.second_seconds = seconds
            result.waiting = len(json.loads(laptop.run("status", "--json").stdout)["pending"])
        result.calls = sum(FRESH.encode() not in request.raw for request in server.requests)
        assert server.requests, "the fresh prompt was answered without the model"
    result.answered = len(laptop.events("prompt-answered")) - prompts - 1
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("clone",))
    parser.add_argument("--prompts", type=int)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        result = clone(Path(folder), options.prompts or 10_000)
    print(json.dumps(asdict(result)))
    return 0 if result.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
