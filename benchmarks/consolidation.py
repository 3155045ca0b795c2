"""Live a month of talk with a model whose every judgement a reader writes by hand, or that is replayed.

    python benchmarks/consolidation.py MONTH.json --folder DIR [--answers DIR] [--keep BRAIN]

MONTH.json is `{"person", "messages": [{"id", "at", "conversation", "text", "answer"}], "facts", "not_facts", …}`, by a
writer who knows nothing of the program. The program runs as it is, with litellm and a server on loopback as its model:
a prompt is answered by the month's own `answer`; every other call (consolidate, synthesize, summarize, organize) is put
into DIR as `NNN.request.md`, and its answer taken from `NNN.answer.json` as soon as that stands there.

The reader: read `NNN.request.md` and nothing else of DIR or of the month, decide as the model would, write the JSON
that it asks for to `NNN.answer.tmp` and rename it to `NNN.answer.json`; wait for the next request, until `memory.md` is
there. A run that was stopped is started again with the same DIR: answers that stand there are taken at once. With
`--answers` they are taken from another folder, and nobody is waited for.

At the end `DIR/memory.md` holds all that memory came to, for a judge who is given the month's `facts` and `not_facts`
beside it; `DIR/operations.json` holds every operation with what became of it. `queries` and `reflect` are served
without a model. Tokens are counted by the program's own counter. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.keyless import be_quiet, make, pages_of
from brainiac.brain import Brain
from brainiac.clock import ManualClock, parse_iso
from brainiac.errors import ModelError
from brainiac.events import EventsAnalyzed, MemoryPromoted, ModelCalled
from brainiac.llm.catalog import count
from brainiac.llm.schemas import Purpose
from brainiac.pipeline.daemon import answer_one
from brainiac.storage.statements import StatementLog
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say

DOLLARS = 2 / 1e6, 8 / 1e6  # for a token in and out
KEYLESS = (Purpose.QUERIES, Purpose.REFLECT)
# Names whose window litellm knows, one for each purpose, by which the server tells them.
MODELS = {
    "gpt-4.1": Purpose.ANSWER,
    "gpt-4.1-mini": Purpose.CONSOLIDATE,
    "gpt-4.1-nano": Purpose.SYNTHESIZE,
    "gpt-4o": Purpose.SUMMARIZE,
    "gpt-4o-mini": Purpose.ORGANIZE,
}
LOOK_SECONDS = 0.2
Message = Mapping[str, Any]


@dataclass
class Reader:
    """Answers the program's calls: prompts from the month, everything else from a folder.

    Attributes:
        folder: Where requests are put, and answers expected.
        answers: Recorded answers, taken in order; None to wait for a reader.
        reply: The month's answer to the prompt that is being answered.
        calls: Purpose and answer of each call that a reader answered, in order.
        is_out: Whether there was no recorded answer to a call.
    """

    folder: Path
    answers: Path | None
    reply: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    is_out: bool = False

    def serve(self, request: Captured) -> Behaviour:
        """Return what to answer to a request."""
        purpose = MODELS[str(request.body["model"]).rpartition("/")[2]]
        text = self.reply if purpose == Purpose.ANSWER else self._read(purpose, request)
        return say(text, tokens=(count(request.text), count(text)))

    def _read(self, purpose: str, request: Captured) -> str:
        number = f"{len(self.calls) + 1:03d}"
        (self.folder / f"{number}.request.md").write_text(request.text + "\n", encoding="utf-8")
        answer = (self.answers or self.folder) / f"{number}.answer.json"
        if not answer.exists():
            print(f"{number} {purpose}: waiting for {answer}", flush=True)
        while not answer.exists():
            if self.answers:
                self.is_out = True
                return ""
            time.sleep(LOOK_SECONDS)
        text = answer.read_text("utf-8")
        self.calls.append((purpose, text))
        return text


def settings_of(brain_folder: Path) -> None:
    """Have a model serve a brain as a person sets it, under a name for each purpose by which the server knows it."""
    config = brain_folder / "system/config.yaml"
    models = {str(purpose): f"openai/{model}" for model, purpose in MODELS.items()}
    models |= dict.fromkeys(map(str, KEYLESS), "offline")
    llm = {"model": models[Purpose.ANSWER], "models": models, "timeout_seconds": 86_400}  # a reader takes their time
    settings = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**settings, "llm": llm}), encoding="utf-8")


def live(messages: Sequence[Message], brain: Brain, reader: Reader) -> None:
    """Drop every message at its moment and let the processes work; quiet time promotes as the daemon does."""
    clock = brain.clock
    assert isinstance(clock, ManualClock)
    brain.observed.adopt()
    for number, message in enumerate(messages):
        clock.advance(max(0.0, (parse_iso(message["at"]) - clock.now()).total_seconds()))
        folder = f"inbox/{message['conversation']}".rstrip("/")
        path = brain.root / folder / f"{message['id']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(message["text"] + "\n", encoding="utf-8")
        reader.reply = message["answer"]
        answer_one(brain, f"{folder}/{path.name}")
        following = messages[number + 1]["at"] if number + 1 < len(messages) else None
        be_quiet(brain, clock, message["at"], following)
        if reader.is_out:
            raise SystemExit(f"{reader.answers}: a call has no recorded answer; what was asked is in {reader.folder}")


def figures_of(messages: Sequence[Message], brain: Brain, reader: Reader) -> dict[str, Any]:
    """Return what the month cost, and what became of the operations."""
    calls = [event.what for event in brain.journal.events(kinds={ModelCalled})]
    by_purpose: dict[str, list[int]] = {}
    for call in calls:
        assert isinstance(call, ModelCalled)
        row = by_purpose.setdefault(call.purpose, [0, 0, 0])
        row[:] = row[0] + 1, row[1] + call.input_tokens, row[2] + call.output_tokens
    judged = [sum(column) for column in zip(*(by_purpose[p] for p in by_purpose if p != Purpose.ANSWER), strict=True)]
    count_, tokens_in, tokens_out = judged or [0, 0, 0]
    return {
        "exchanges": len(messages),
        "calls": {purpose: dict(zip(("calls", "in", "out"), row, strict=True)) for purpose, row in by_purpose.items()},
        "calls an exchange": round(count_ / len(messages), 3),
        "tokens in an exchange": round(tokens_in / len(messages)),
        "dollars": round(tokens_in * DOLLARS[0] + tokens_out * DOLLARS[1], 3),
        **_operations(brain, reader),
        "statements by origin": dict(Counter(origin for *_, origin in statements(brain))),
    }


def _operations(brain: Brain, reader: Reader) -> dict[str, Any]:
    analyzed = [event.what for event in brain.journal.events(kinds={EventsAnalyzed})]
    looks = [what for what in analyzed if isinstance(what, EventsAnalyzed)]
    given = sum(len(operations_in(text)) for purpose, text in reader.calls if purpose == Purpose.CONSOLIDATE)
    refused = [row for look in looks for row in look.refused]
    refused += [
        row
        for event in brain.journal.events(kinds={MemoryPromoted})
        if isinstance(event.what, MemoryPromoted)
        for row in event.what.refused
        if "#r" not in row.candidate  # those of a look are counted with it
    ]
    return {
        "operations given": given,
        "accepted": sum(len(look.candidates) for look in looks),
        "asked again": sum(len(look.asked) for look in looks),
        "finally refused": [f"{row.statement[:80]}: {row.reason}" for row in refused],
    }


def operations_in(answer: str) -> list[dict[str, Any]]:
    """Return the operations of an answer; none where it is no JSON."""
    try:
        operations: list[dict[str, Any]] = json.loads(answer).get("operations", [])
    except ValueError:
        return []
    return operations


def statements(brain: Brain) -> list[tuple[str, str, str]]:
    """Return what holds: path, text and whose words it rests on."""
    log = StatementLog(brain)
    return [
        (page.path, statement.text, origin_in(log, page.uuid or page.path, statement.block_id))
        for page in pages_of(brain)
        for statement in page.statements
        if not statement.is_history
    ]


def origin_in(log: StatementLog, page: str, block: str) -> str:
    """Return whose words a statement rests on by the journal; a person wrote what it does not know."""
    origins = [change.record.origin for change in log.changes_of(page) if change.block == block]
    return origins[-1] if origins else "written by the person"


def memory_of(brain: Brain) -> str:
    """Return all that memory came to, for a judge; what was said word for word is left out."""
    log, parts = StatementLog(brain), []
    for page in pages_of(brain):
        names = "; ".join([page.title, *page.aliases])
        lines = [f"# {names}", f"({page.path}) {page.meta.get('summary') or ''}"]
        for statement in page.statements:
            origin = origin_in(log, page.uuid or page.path, statement.block_id)
            lines.append(f"- {'PAST: ' if statement.is_history else ''}{statement.text}  [{origin}]")
        if page.statements:
            parts.append("\n".join(lines))
    for path in (brain.tree.short_term, brain.tree.review):
        text = brain.read_text(brain.tree.relative(path))
        parts.append(f"# {brain.tree.relative(path)}\n\n{text or '(nothing)'}")
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Read the arguments, live the month, write what memory came to, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("month", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="where requests and answers go")
    parser.add_argument("--answers", type=Path, help="recorded answers to replay")
    parser.add_argument("--keep", type=Path, help="leave the brain here")
    given = parser.parse_args()
    messages = json.loads(given.month.read_text("utf-8"))["messages"]
    given.folder.mkdir(parents=True, exist_ok=True)
    reader = Reader(given.folder, given.answers)
    with tempfile.TemporaryDirectory() as scratch, ChatServer() as server:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = f"{scratch}/{variable.lower()}"
        root = given.keep or Path(scratch) / "brain"
        shutil.rmtree(root, ignore_errors=True)
        server.default = by_request(reader.serve)
        brain = make([{**messages[0], "kind": "prompt"}], root, "none")
        settings_of(root)
        brain.places.config.parent.mkdir(parents=True, exist_ok=True)
        brain.places.config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        try:
            live(messages, brain, reader)
        except ModelError as error:
            print(f"the month ended early: {error}", file=sys.stderr)
            return 1
        figures = figures_of(messages, brain, reader)
        (given.folder / "memory.md").write_text(memory_of(brain), encoding="utf-8")
        looks = [event.data for event in brain.journal.events(kinds={EventsAnalyzed})]
        text = json.dumps(looks, ensure_ascii=False, indent=1)
        (given.folder / "operations.json").write_text(text, encoding="utf-8")
        brain.close()
    print(json.dumps({"month": given.month.stem, **figures}, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
