"""How much of each request a provider's prefix cache holds: our order of working memory against the naive one.

A conversation of 60 turns with promotions in it and a memory that grows. A turn is two calls, as the Core Loop makes
them: queries, then the answer. Every request goes over real HTTP to a server on loopback, and what is measured is read
off the captured bodies:

- share: tokens in the common prefix with the request before of the same purpose, of all input tokens;
- uncached: the other tokens, a turn;
- dollars a turn at published prices, 150 tokens of output, by each provider's own rule: OpenAI caches prefixes of at
  least 1,024 tokens in steps of 128; Anthropic caches up to the marks, in whole parts, and charges for writing.

The naive order is what a first version does: identity, role, what was retrieved (best first), then short-term memory
as the file has it (lists as they stand, events newest first), then the prompt.
No tools are offered, so that both send the same words.

    python benchmarks/context_cache.py [--turns 60] [--promote-every 20] [--json FILE] [--memories 10000]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso, parse_iso
from brainiac.formats.prompt import parse_prompt
from brainiac.formats.short_term import Item, ShortTermMemory, StmEvent
from brainiac.llm.catalog import count, endpoint_of, facts
from brainiac.llm.completion import Completion, complete
from brainiac.llm.context.assembler import Assembler
from brainiac.llm.context.blocks import quoted
from brainiac.llm.context.memory import page_text
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import AnswerRequest, QueriesRequest
from brainiac.search.documents import Hit
from tests.support.models import make_brain, write_machine, write_memory
from tests.support.openai_server import Captured, ChatServer, by_request, say

OPENAI, ANTHROPIC = "openai/gpt-5-mini", "anthropic/claude-sonnet-4-5"
OUTPUT_TOKENS = 75  # a call
FIRST = 9  # turns before the tenth are not counted
ANSWERS = (
    "Noted. That fits with what you said before about it, and I have put it beside the earlier plan.",
    "Here is what I hold on that: the date, who is coming, and what was still open. Shall I add the rest?",
    "Taken in. You had wanted to settle this before the end of the month; two of the three points are done now.",
)


@dataclass
class Turn:
    """What one call of a turn looked like."""

    tokens: int
    shared: int
    parts: list[tuple[str, bool]]  # text and whether a cache mark stands after it


class Script:
    """The conversation: what stands in short-term and long-term memory at each turn."""

    def __init__(self, brain: Brain, clock: ManualClock, promote_every: int) -> None:
        month = json.loads((ROOT / "benchmarks/data/month.json").read_text())
        self.said = [message["text"] for message in month]
        self._brain, self._clock, self._every = brain, clock, promote_every
        self.memory = ShortTermMemory()
        self.pages = 0

    def requests(self, turn: int) -> tuple[QueriesRequest, AnswerRequest]:
        """Return the requests of a turn."""
        now = self._clock.now()
        prompt = parse_prompt(f"inbox/talk/{turn:03d}.md", self.said[turn % len(self.said)].encode(), at=iso(now))
        hits = self._brain.recall.search(prompt.text, limit=8, now=now)
        queries = QueriesRequest(now=now, prompt=prompt, short_term=self.memory)
        return queries, AnswerRequest(now=now, prompt=prompt, short_term=self.memory, hits=hits)

    def reflect(self, turn: int) -> None:
        """Do what Reflection and Promotion do to the two memories."""
        text = self.said[turn % len(self.said)]
        event = StmEvent(
            f"0199c0de-0000-7000-8000-{turn:012d}", iso(self._clock.now()), text, ANSWERS[turn % 3], "Noted."
        )
        facts_, tasks = self.memory.facts, self.memory.tasks
        if turn % 2 == 0:
            facts_ = (*facts_, Item(f"User said: {text[:120]}"))
        if turn % 5 == 0:
            tasks = (*tasks, Item(f"Come back to: {text[:60]}"))
        if turn % 7 == 0 and tasks:
            tasks = (replace(tasks[0], is_done=True), *tasks[1:])
        self.memory = replace(self.memory, facts=facts_, tasks=tasks, events=(event, *self.memory.events))
        self._clock.advance(90)
        if (turn + 1) % self._every == 0 or self._size() > 4096:
            self._promote()

    def _size(self) -> int:
        return sum(count(event.user + event.ai) + 30 for event in self.memory.events)

    def _promote(self) -> None:
        for event in self.memory.events:
            self.pages += 1
            path = f"concrete/page-{self.pages}.md"
            write_memory(self._brain.root, path, event.user[:40], self.pages % 10, f"{event.user} ^b{self.pages}")
            self._brain.recall.note_change(f"memory/long_term/{path}")
        open_tasks = tuple(item for item in self.memory.tasks if not item.is_done)
        self.memory = ShortTermMemory(summary=f"{self.pages} exchanges were archived by now.", tasks=open_tasks)


def naive_messages(
    brain: Brain, request: QueriesRequest | AnswerRequest, head: str, *, has_mark: bool
) -> list[dict[str, Any]]:
    """Return the request as a first version would send it: the same words in the naive order."""
    pages: dict[str, list[Hit]] = {}
    for hit in getattr(request, "hits", ()):
        pages.setdefault(hit.path, []).append(hit)
    memory = request.short_term
    lists = "\n".join(f"- {item.text}" for item in (*memory.goals, *memory.facts, *memory.tasks))
    events = [
        f"#### {e.at}\nUser:\n{quoted(e.user)}\nAI:\n{quoted(e.ai)}\nThoughts:\n{quoted(e.thoughts)}"
        for e in memory.events
    ]
    pieces = [
        *(["## Relevant Long-Term Memory"] if pages else []),
        *(page_text(brain, hits, count) for hits in pages.values()),
        "## Short-Term Memory",
        quoted(memory.summary),
        quoted(lists),
        "### Event Log",
        *events,
        "## User Prompt",
        request.prompt.text,
    ]
    system = [{"type": "text", "text": head, "cache_control": {"type": "ephemeral"}}] if has_mark else head
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(pieces)}]


def conversation(turns: int, promote_every: int, model: str, *, is_naive: bool) -> list[Turn]:
    """Hold the conversation and return what was captured."""
    with tempfile.TemporaryDirectory() as folder, ChatServer() as server:
        clock = ManualClock(parse_iso("2026-03-01T09:00:00Z"))
        brain = make_brain(Path(folder), {"llm": {"model": model}, "context": {"tool_rounds": 0}}, clock=clock)
        identity = (ROOT / "system/core_identity.md").read_text()
        (brain.root / "system/core_identity.md").write_text(identity)
        base = server.url if model == OPENAI else server.url.removesuffix("/v1")
        write_machine(brain, {"api_bases": {model.partition("/")[0]: base}})
        server.default = by_request(lambda request: say('{"queries": []}' if is_queries(request) else "Noted."))
        script = Script(brain, clock, promote_every)
        heads = {
            r.purpose: Assembler(brain).assemble(r, model=OPENAI).messages[0]["content"] for r in script.requests(0)
        }
        for turn in range(turns):
            for request in script.requests(turn):
                if is_naive:
                    messages = naive_messages(brain, request, heads[request.purpose], has_mark=model == ANTHROPIC)
                    sent = Gate(brain).release(messages)
                    endpoint = endpoint_of(model, brain.machine)
                    complete(endpoint, sent, Completion(), max_tokens=100, timeout_seconds=30)
                else:
                    brain.models.run(request)
            script.reflect(turn)
        brain.close()
        by_purpose = [
            [parts_of(r.body) for r in server.requests if is_queries(r) is wanted] for wanted in (True, False)
        ]
        return [call for calls in zip(*map(_measured, by_purpose), strict=True) for call in calls]


def is_queries(request: Captured) -> bool:
    """Tell which of a turn's two calls a request is."""
    return "You write the searches" in request.text


def parts_of(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return a captured request's texts in order, each with whether a cache mark follows it."""
    found: list[tuple[str, bool]] = []
    system = body.get("system") or []
    for content in [system, *(message["content"] for message in body["messages"])]:
        parts = content if isinstance(content, list) else [{"text": content}]
        found += [(part["text"], "cache_control" in part) for part in parts]
    return found


def _measured(requests: Sequence[list[tuple[str, bool]]]) -> list[Turn]:
    turns, before = [], ""
    for parts in requests:
        text = "".join(part for part, _ in parts)
        shared = count(os.path.commonprefix([before, text])) if before else 0  # noqa: RUF071 - texts, not paths
        turns.append(Turn(count(text), shared, parts))
        before = text
    return turns


def dollars(turns: Sequence[Turn], model: str) -> float:
    """Return the mean cost of a turn from the tenth on, by the provider's rule of caching."""
    price = facts(model).price
    assert price is not None
    costs = []
    for before, turn in zip(turns[2 * FIRST - 2 :], turns[2 * FIRST :], strict=False):
        cached, written = _openai(turn) if model == OPENAI else _anthropic(before, turn)
        costs.append(price.cost(turn.tokens, OUTPUT_TOKENS, cached, written))
    return 2 * statistics.mean(costs)


def _openai(turn: Turn) -> tuple[int, int]:
    return (turn.shared // 128 * 128 if turn.shared >= 1024 else 0), 0


def _anthropic(before: Turn, turn: Turn) -> tuple[int, int]:
    """Cached: the longest run of whole parts up to a mark of the request before; written: from there to our mark."""
    same = 0
    for (old, _), (new, _) in zip(before.parts, turn.parts, strict=False):
        if old != new:
            break
        same += 1
    marks = [index + 1 for index, (_, is_marked) in enumerate(before.parts) if is_marked and index < same]
    ours = [index + 1 for index, (_, is_marked) in enumerate(turn.parts) if is_marked]
    upto = max(marks, default=0)
    cached = count("".join(text for text, _ in turn.parts[:upto]))
    return cached, max(0, count("".join(text for text, _ in turn.parts[: max(ours, default=0)])) - cached)


def summary(turns: Sequence[Turn], model: str) -> dict[str, Any]:
    """Return the figures of turns 10 to the last."""
    late = turns[2 * FIRST :]
    kinds = {"turn": late, "queries": late[0::2], "answer": late[1::2]}
    shares = {name: sum(c.shared for c in calls) / sum(c.tokens for c in calls) for name, calls in kinds.items()}
    return {
        "tokens_per_turn": round(2 * statistics.mean(call.tokens for call in late)),
        "share_cached": {name: round(share, 4) for name, share in shares.items()},
        "uncached_per_turn": round(2 * statistics.mean(call.tokens - call.shared for call in late)),
        "usd_per_turn": round(dollars(turns, model), 6),
    }


def assembly(memories: int, runs: int = 200) -> dict[str, Any]:
    """Measure search and assembly on a brain of so many memories, and the tokens they send."""
    with tempfile.TemporaryDirectory() as folder:
        brain = make_brain(Path(folder))
        for number in range(memories):
            path = f"concrete/{number % 97}/note-{number}.md"
            text = f"User's project {number} uses tool {number % 313} and is due on day {number % 365}. ^b{number}"
            write_memory(brain.root, path, f"Project {number}", number % 10, text)
        brain.recall.reindex()
        events = tuple(
            StmEvent(f"e{n}", f"2025-09-16T10:{n:02d}:00Z", ANSWERS[n % 3], ANSWERS[(n + 1) % 3]) for n in range(20)
        )
        memory = ShortTermMemory(summary="Projects.", events=events)
        assembler, searched, took, sizes = Assembler(brain), [], [], []
        now = parse_iso("2025-09-16T15:30:00Z") + timedelta(0)
        for run in range(runs + 5):
            prompt = parse_prompt("inbox/q.md", f"When is project {run * 37 % memories} due?".encode(), at=iso(now))
            started = time.perf_counter()
            hits = brain.recall.search(prompt.text, limit=8, now=now)
            searched.append((time.perf_counter() - started) * 1000)
            started = time.perf_counter()
            found = assembler.assemble(
                AnswerRequest(now=now, prompt=prompt, short_term=memory, hits=hits), model=OPENAI
            )
            took.append((time.perf_counter() - started) * 1000)
            sizes.append(found.tokens)
        brain.close()
    return {
        "memories": memories,
        "tokens_per_turn": round(statistics.mean(sizes)),
        "search": _percentiles(searched[5:]),  # the first ones load tables and templates
        "assembly": _percentiles(took[5:]),
    }


def _percentiles(took_ms: Sequence[float]) -> dict[str, float]:
    ordered = sorted(took_ms)
    return {f"p{share}_ms": round(ordered[int(len(ordered) * share / 100)], 2) for share in (50, 95)}


def main() -> None:
    """Run and print figures and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--promote-every", type=int, default=20)
    parser.add_argument("--memories", type=int, nargs="*", default=[], help="measure assembly on brains of these sizes")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({f"XDG_{name}_HOME": f"{home}/{name}" for name in ("STATE", "CACHE", "CONFIG")})
        os.environ.update(OPENAI_API_KEY="none", ANTHROPIC_API_KEY="none")
        figures: dict[str, Any] = {"turns": options.turns, "promote_every": options.promote_every}
        for model in (OPENAI, ANTHROPIC):
            for is_naive in (False, True):
                turns = conversation(options.turns, options.promote_every, model, is_naive=is_naive)
                name = f"{'naive' if is_naive else 'ours'}, {model}"
                figures[name] = summary(turns, model)
                print(name, json.dumps(figures[name]), flush=True)
        figures["assembly"] = []
        for memories in options.memories:
            figures["assembly"].append(assembly(memories))
            print("assembly", json.dumps(figures["assembly"][-1]), flush=True)
    print(json.dumps(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
