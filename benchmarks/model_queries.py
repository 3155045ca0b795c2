"""Whether the queries that a model writes find more than the question itself, and how to merge what each finds.

    python benchmarks/model_queries.py DATA.json GGUF [--python PYTHON] [--every 5] [--kept FILE]
    python benchmarks/model_queries.py DATA.json offline [--every 5]
    ... --nameless                                # the question says "she" where it named a speaker, the queries do not

Every n-th question of the conversations that `locomo.py` reads is put to the product's purpose `queries`; what the
model wrote is kept in FILE, so that scoring can be repeated without it. The last line is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.local_model import MODEL, served
from benchmarks.locomo import DEPTH, Conversation, Question, Scores, build_brain, open_recall, read
from brainiac.brain import Brain
from brainiac.errors import ModelError
from brainiac.formats.prompt import parse_prompt
from brainiac.formats.short_term import ShortTermMemory
from brainiac.llm.schemas import Queries, QueriesRequest
from brainiac.search.documents import Hit
from brainiac.search.query import merged, searches
from brainiac.search.search import Recall
from tests.support.models import make_brain, write_machine

OFFLINE = "offline"
Kept = dict[str, list[str]]
Asked = Mapping[str, tuple[Conversation, Question]]


def every(conversations: Sequence[Conversation], step: int) -> Asked:
    """Return each n-th question by a name that stays, all conversations in a row."""
    asked = [
        (f"{one.name}:{number}", (one, question))
        for one in conversations
        for number, question in enumerate(one.questions)
    ]
    return dict(asked[::step])


def ask(brain: Brain, asked: Asked, known: Kept, kept: Path | None) -> None:
    """Let the model write queries where none are known yet; one that gives no valid answer wrote none."""
    for name, (conversation, question) in asked.items():
        if name in known:
            continue
        prompt = parse_prompt("inbox/q.md", question.text.encode(), at=conversation.asked_at.isoformat())
        request = QueriesRequest(now=conversation.asked_at, prompt=prompt, short_term=ShortTermMemory())
        started = time.monotonic()
        try:
            found = brain.models.run(request)
            assert isinstance(found, Queries)
            known[name] = list(found.queries)
        except ModelError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            known[name] = []
        if kept:
            kept.write_text(json.dumps(known, ensure_ascii=False, indent=0), "utf-8")
            print(f"{time.monotonic() - started:5.1f} s  {question.text}  {known[name]}", file=sys.stderr, flush=True)


@contextmanager
def asking(model: str, python: str, threads: int, folder: Path) -> Iterator[Brain]:
    """Yield a brain whose queries are written by the model of a file, or by the offline engine."""
    for name in ("STATE", "CACHE", "CONFIG"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())
    if model == OFFLINE:
        brain = make_brain(folder / "brain", {"llm": {"model": OFFLINE}})
        yield brain
    else:
        with served(python, Path(model), threads) as url:
            brain = make_brain(folder / "brain", {"llm": {"model": MODEL, "timeout_seconds": 600}})
            write_machine(brain, {"api_bases": {"openai": url}})
            yield brain
    brain.close()


Place = tuple[str, str, str]
Found = Sequence[Sequence[Hit]]
Worth = Callable[[Sequence[Hit]], Iterable[float]]


def highest(found: Found) -> list[Hit]:
    """Keep each place with the highest of its scores, whichever search it is of."""
    best: dict[Place, Hit] = {}
    for hit in (hit for hits in found for hit in hits):
        if place(hit) not in best or hit.score > best[place(hit)].score:
            best[place(hit)] = hit
    return sorted(best.values(), key=lambda hit: -hit.score)


def summed(weight: float, worth: Worth, found: Found) -> list[Hit]:
    """Add up what each search says of a place; the question weighs 1, each further query `weight`."""
    total: dict[Place, float] = defaultdict(float)
    hits_at: dict[Place, Hit] = {}
    for number, hits in enumerate(found):
        for hit, value in zip(hits, worth(hits), strict=True):
            total[place(hit)] += value * (weight if number else 1.0)
            hits_at.setdefault(place(hit), hit)
    return sorted(hits_at.values(), key=lambda hit: -total[place(hit)])


def filled_up(own: int, found: Found) -> list[Hit]:
    """Put the question's first hits first, and what is left by reciprocal ranks behind them."""
    rest = summed(1.0, ranks, [found[0][own:], *found[1:]])
    return list({place(hit): hit for hit in [*found[0][:own], *rest]}.values())


def ranks(hits: Sequence[Hit]) -> Iterator[float]:
    """Say 1 / (10 + rank) of each."""
    return (1 / (10 + rank) for rank in range(1, len(hits) + 1))


def scaled(hits: Sequence[Hit]) -> Iterator[float]:
    """Say of each its score, from 0 for the last to 1 for the first."""
    low, high = (hits[-1].score, hits[0].score) if hits else (0.0, 0.0)
    return ((hit.score - low) / (high - low) if high > low else 1.0 for hit in hits)


def place(hit: Hit) -> Place:
    """Return what makes a hit one thing found."""
    return hit.path, hit.anchor, hit.speaker


MERGES: dict[str, Callable[[Found], list[Hit]]] = {
    "as the product does": merged,
    "highest score": highest,
    "scaled sum, 0.5": partial(summed, 0.5, scaled),
    "scaled sum, 0.25": partial(summed, 0.25, scaled),
    "reciprocal ranks, 1": partial(summed, 1.0, ranks),
    "reciprocal ranks, 0.25": partial(summed, 0.25, ranks),
    "question's 5 first": partial(filled_up, 5),
    "question's 8 first": partial(filled_up, 8),
}


def nameless(asked: Asked) -> Asked:
    """Return the questions as they are asked in a conversation: "she" for who speaks in it."""
    made = {}
    for name, (conversation, question) in asked.items():
        speakers = "|".join({re.escape(turn.text.partition(":")[0]) for turn in conversation.turns})
        made[name] = conversation, replace(question, text=re.sub(rf"\b(?:{speakers})\b", "she", question.text))
    return made


def measure(asked: Asked, queries: Kept, folder: Path, embedder: str) -> dict[str, dict[str, float]]:
    """Score the question alone, the queries alone, all words in one search, and both by each merge."""
    scores: dict[str, Scores] = defaultdict(Scores)
    for name, group in groupby(asked.items(), key=lambda pair: pair[1][0].name):
        some = dict(group)
        conversation = next(iter(some.values()))[0]
        if not (folder / name).exists():
            build_brain(conversation, folder / name)
        recall = open_recall(folder / name, folder / f"{name}-{embedder}", embedder)
        recall.reindex()
        session_of = {turn.id: turn.session for turn in conversation.turns}

        def search(query: str, recall: Recall = recall, now: datetime = conversation.asked_at) -> list[Hit]:
            return recall.search(query, limit=DEPTH, kinds=("exchange",), now=now)

        for key, (_, question) in some.items():
            for way, hits in _ways(question.text, queries[key], search):
                scores[way].add(question, [hit.anchor for hit in hits], session_of.__getitem__)
        recall.close()
    return {way: one.summary() for way, one in scores.items()}


def _ways(question: str, queries: Sequence[str], search: Callable[[str], list[Hit]]) -> Iterator[tuple[str, list[Hit]]]:
    plain, *further = searches(question, queries)
    found = [search(query) for query in (plain, *further)]
    yield "the question as search syntax", search(question)
    yield "the question alone", found[0]
    yield "the queries alone", summed(1.0, ranks, [search(query) for query in queries])
    yield "all words in one search", search(" ".join([plain, *queries]))
    yield from ((way, merge(found)) for way, merge in MERGES.items())


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", help="a GGUF file, or `offline`")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with xllamacpp")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--kept", type=Path, help="where the queries are kept, and read from")
    parser.add_argument("--nameless", action="store_true")
    parser.add_argument("--embedder", default="auto", help="none: lexical only")
    options = parser.parse_args(arguments)
    asked = every(read(options.data), options.every)
    queries: Kept = json.loads(options.kept.read_text("utf-8")) if options.kept and options.kept.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        if not queries.keys() >= asked.keys():
            with asking(options.model, options.python, options.threads, Path(name)) as brain:
                ask(brain, asked, queries, options.kept)
        queries = {key: queries[key] for key in asked}
        asked = nameless(asked) if options.nameless else asked
        embedders = {"lexical": "none"} | ({"hybrid": options.embedder} if options.embedder != "none" else {})
        results = {label: measure(asked, queries, Path(name), one) for label, one in embedders.items()}
    _print(results, queries)


SHOWN = ("r@1", "r@5", "r@10", "r@20", "mrr", *(f"cat{category}_r@10" for category in range(1, 6)))


def _print(results: Mapping[str, Mapping[str, Mapping[str, float]]], queries: Kept) -> None:
    written = sum(len(some) for some in queries.values())
    print(
        f"{len(queries)} questions, {written} queries, {sum(not some for some in queries.values())} questions without"
    )
    for label, ways in results.items():
        print(f"\n{label:30}" + "".join(f"{name.removesuffix('_r@10'):>7}" for name in SHOWN))
        for way, summary in ways.items():
            print(f"{way:30}" + "".join(f"{summary.get(name, float('nan')):7}" for name in SHOWN))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
