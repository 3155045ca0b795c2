"""Score the offline engine on a set of statements and questions (benchmarks/data/offline_*.json).

    python benchmarks/offline.py benchmarks/data/offline_dev.json [--memory] [--product] [--show]

Everything said is put into short-term memory (or, with --memory, into memory pages as statements), every question is
asked at its own moment, and the first line of the answer is judged. With --product all goes through the inbox of a real
brain: search, Core Loop, Reflection and, with --memory, Promotion; each question then stands in short-term memory when
the next is asked. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from brainiac.clock import ManualClock, parse_iso
from brainiac.events import content_hash
from brainiac.language.sentences import content_stems
from brainiac.llm.offline import OfflineEngine
from brainiac.llm.schemas import (
    AnalyzeRequest,
    Answer,
    AnswerRequest,
    Candidates,
    QueriesRequest,
    Reflection,
    ReflectRequest,
)
from brainiac.notes.prompt import Exchange, Prompt, parse_response
from brainiac.notes.short_term import Item, ShortTermMemory, StmEvent
from brainiac.pipeline.daemon import answer_one
from brainiac.recall.hit import Hit
from brainiac.testing import make_brain

NOTHING = "nothing in memory"


class Search:
    """A plain lexical search over everything said, standing in for an index."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._hits = [(hit, Counter(content_stems(hit.text))) for hit in hits]
        self._frequency = Counter(stem for _, stems in self._hits for stem in stems)

    def __call__(self, query: str, limit: int) -> list[Hit]:
        wanted = set(content_stems(query))
        found = []
        for hit, stems in self._hits:
            score = sum(math.log(1 + len(self._hits) / self._frequency[stem]) for stem in wanted if stem in stems)
            if score:
                found.append(replace(hit, score=score))
        return sorted(found, key=lambda hit: (-hit.score, hit.anchor))[:limit]


def prompt_of(text: str, at: str) -> Prompt:
    """Return a prompt as the inbox would give it."""
    return Prompt(path="inbox/question.md", text=text, sha256=content_hash(text.encode()), at=at)


def tell(engine: OfflineEngine, statements: Sequence[dict[str, Any]]) -> ShortTermMemory:
    """Tell the statements one by one, with an answer and a reflection each, as the processes do."""
    stm = ShortTermMemory()
    for one in statements:
        now, prompt = parse_iso(one["at"]), prompt_of(one["text"], one["at"])
        said = engine.run(AnswerRequest(now=now, prompt=prompt, short_term=stm))
        reflection = engine.run(
            ReflectRequest(now=now, exchange=Exchange(one["id"], prompt, None, one["at"]), short_term=stm)
        )
        assert isinstance(said, Answer)
        assert isinstance(reflection, Reflection)
        done = set(reflection.done)
        tasks = (*stm.tasks, *(Item(text) for text in reflection.tasks))
        stm = replace(
            stm,
            goals=(*stm.goals, *(Item(text) for text in reflection.goals)),
            facts=(*stm.facts, *(Item(text) for text in (*reflection.facts, *reflection.decisions))),
            tasks=tuple(Item(item.text, item.is_done or item.text in done) for item in tasks),
            events=(StmEvent(one["id"], one["at"], one["text"], said.text, reflection.thoughts), *stm.events),
        )
    return stm


def file_away(engine: OfflineEngine, stm: ShortTermMemory, now: datetime) -> list[Hit]:
    """Return the statements that promotion would file, as hits of a search."""
    result = engine.run(AnalyzeRequest(now=now, events=tuple(reversed(stm.events)), short_term=stm))
    assert isinstance(result, Candidates)
    at = {event.id: event.at for event in stm.events}
    return [
        Hit(
            kind="statement",
            path="memory/long_term/concrete/notes.md",
            title=candidate.subject,
            text=candidate.statement,
            score=0,
            uuid="0",
            anchor=candidate.events[-1],
            at=at[candidate.events[-1]],
        )
        for candidate in result.candidates
    ]


def judge(question: dict[str, Any], text: str, said: dict[str, str]) -> bool:
    """Tell whether the first line (of a list, the list too) holds what it must and nothing it must not."""
    first, *rest = text.strip().splitlines() or [""]
    items = [line for line in rest if line.startswith("- ")]
    shown = "\n".join([first, *items]) if first.endswith(":") else first
    low = shown.lower()
    if low.startswith(NOTHING) or any(word.lower() in low for word in question["must_not_contain"]):
        return False
    if question["must_contain"]:
        return all(word.lower() in first.lower() for word in question["must_contain"])
    quoted = [_is_quoted(said[one], low) for one in question["answers"]]
    return all(quoted) if question.get("all") else any(quoted)


def _is_quoted(statement: str, shown: str) -> bool:
    wanted = content_stems(statement)
    held = set(content_stems(shown))
    return sum(stem in held for stem in wanted) / len(wanted) >= 0.6


Ask = Callable[[dict[str, Any]], str]


@contextmanager
def in_memory(data: dict[str, Any], *, memory: bool) -> Iterator[Ask]:
    """Yield what asks a question of the engine alone."""
    engine = OfflineEngine()
    stm = tell(engine, data["statements"])
    hits: list[Hit] = []
    if memory:
        hits = file_away(engine, stm, parse_iso(data["questions"][0]["at"]))
        stm = ShortTermMemory()
    search = Search(hits)

    def ask(question: dict[str, Any]) -> str:
        now, prompt = parse_iso(question["at"]), prompt_of(question["text"], question["at"])
        queries = engine.run(QueriesRequest(now=now, prompt=prompt, short_term=stm))
        found = {hit.anchor + hit.text: hit for query in queries.queries for hit in search(query, 8)}  # type: ignore[attr-defined]
        answer = engine.run(
            AnswerRequest(now=now, prompt=prompt, short_term=stm, hits=list(found.values())[:8], search=search)
        )
        assert isinstance(answer, Answer)
        return answer.text

    yield ask


@contextmanager
def in_product(data: dict[str, Any], *, memory: bool) -> Iterator[Ask]:
    """Yield what asks a question of a real brain, by a file in its inbox."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {f"XDG_{name}_HOME": f"{folder}/{name}" for name in ("STATE", "CACHE", "CONFIG")}
        clock = ManualClock(parse_iso(data["statements"][0]["at"]))
        brain = make_brain(Path(folder) / "brain", clock=clock)

        def ask(one: dict[str, Any]) -> str:
            clock.advance(max(1.0, (parse_iso(one["at"]) - clock.now()).total_seconds()))
            path = f"inbox/{one['id']}.md"
            brain.tree.absolute(path).write_text(one["text"] + "\n", "utf-8")
            brain.recall.rescan()
            target = answer_one(brain, path)
            return parse_response(brain.tree.relative(target), target.read_bytes()).text

        for one in data["statements"]:
            ask(one)
        if memory:
            clock.advance(86_400)
            brain.plugins.call("quiet", brain=brain, idle_seconds=86_400)
        yield ask
        brain.close()


def run(path: Path, *, memory: bool, show: bool, product: bool = False) -> dict[str, Any]:
    """Score one set and print a table."""
    data = json.loads(path.read_text("utf-8"))
    said = {one["id"]: one["text"] for one in data["statements"]}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    took = []
    with (in_product if product else in_memory)(data, memory=memory) as ask:
        for question in data["questions"]:
            started = time.process_time()
            text = ask(question)
            took.append((time.process_time() - started) * 1000)
            is_nothing = text.lower().startswith(NOTHING)
            is_right = is_nothing if question["kind"] == "unanswerable" else judge(question, text, said)
            kind = question["kind"] + (":" + question["distance"] if question.get("distance") else "")
            counts[kind].update(asked=1, right=is_right, nothing=is_nothing)
            if show and not is_right:
                print(f"{question['id']} {kind}: {question['text']}\n    {text.strip()[:600]}")
                print(f"    wanted {question['answers']}")
    return report(path.stem, counts, sorted(took))


def report(name: str, counts: dict[str, Counter[str]], took_ms: list[float]) -> dict[str, Any]:
    """Print the table and return the figures."""
    print(f"{'kind':24}{'asked':>6}{'right':>6}{'nothing':>8}")
    for kind, count in sorted(counts.items()):
        print(f"{kind:24}{count['asked']:6}{count['right']:6}{count['nothing']:8}")
    known = sum((count for kind, count in counts.items() if not kind.startswith("unanswerable")), Counter())
    unknown = sum((count for kind, count in counts.items() if kind.startswith("unanswerable")), Counter())
    return {
        "set": name,
        "first_line": round(known["right"] / known["asked"], 3),
        "abstained": round(unknown["right"] / unknown["asked"], 3),
        "false_nothing": round(known["nothing"] / known["asked"], 3),
        "answer_cpu_ms_p50": round(took_ms[len(took_ms) // 2], 2),
        "answer_cpu_ms_p95": round(took_ms[int(len(took_ms) * 0.95)], 2),
    }


def main() -> int:
    """Read the arguments and print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", type=Path)
    parser.add_argument("--memory", action="store_true", help="memory pages instead of short-term memory")
    parser.add_argument("--product", action="store_true", help="through the inbox of a real brain")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    arguments = parser.parse_args()
    figures = run(arguments.set, memory=arguments.memory, show=arguments.show, product=arguments.product)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
