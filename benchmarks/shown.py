"""What models are shown: the tokens of Reflection, and how much of what answers a question is in an answer's context.

    python benchmarks/shown.py [--locomo LOCOMO.json] [--chats BEAM.json] [--first 4] [--embedder auto]

The month of `data/month.json` is lived by the program as it is, with litellm and a server on loopback as its model. It
notes each telling as a fact, and consolidates it as one statement in the same words. Of Reflection: calls, tokens of a
call, and how many of these stand behind the common prefix with the call before. Then the month's own questions are
asked of what memory came to. The other conversations are imported; the first so many of a file.

`evidence` is the share of what answers a question that stands in the found memories an answer is shown, said raw or as
a statement; `tokens` are theirs. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import chats, locomo
from benchmarks.keyless import live, make
from benchmarks.questions import open_recall
from brainiac.brain import Brain
from brainiac.events import ModelCalled
from brainiac.llm.catalog import count
from brainiac.llm.context.blocks import clean
from brainiac.llm.context.memory import MEMORY_HITS, long_term_block
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import OFFLINE, Purpose
from brainiac.search.query import searches
from brainiac.storage.store import Store
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json

MONTH = Path(__file__).parent / "data/month.json"
MODEL = "openai/gpt-4.1-mini"
WITH_MODEL = (Purpose.ANSWER, Purpose.REFLECT, Purpose.CONSOLIDATE)
LATE = 9  # calls before the tenth are not counted
TOKENS = 2_000  # as `context.memory_tokens` has it by default
ANSWERS = (
    "Noted. That fits with what you said before about it, and I have put it beside the earlier plan.",
    "Here is what I hold on that: the date, who is coming, and what was still open. Shall I add the rest?",
    "Taken in. You had wanted to settle this before the end of the month; two of the three points are done now.",
)
Shown = tuple[float, int]  # the share of a question's evidence that is shown, and the tokens of what is


class Model:
    """Answers as a model would that takes everything told for a fact.

    Attributes:
        asking: The words of the month's questions, which state nothing.
        reflected: The requests of Reflection, in order.
    """

    def __init__(self, asking: set[str]) -> None:
        self.asking, self.reflected, self._answers = asking, list[str](), 0

    def __call__(self, request: Captured) -> Behaviour:
        """Return what to answer to a request."""
        text = request.text
        if "You note what one new exchange adds" in text:
            self.reflected.append(text)
            said = _said(text.rpartition("User:\n")[2])
            return say_json(
                {"facts": [] if said in self.asking else [f"User said: {said[:160]}"], "thoughts": "Noted."}
            )
        if "You keep a person's long-term memory" in text:
            exchanges = re.findall(r"\(id (e\d+)\).*?\nUser:\n((?:>.*\n)+)", text)
            told = [(name, _said(lines)) for name, lines in exchanges]
            return say_json({"operations": [_new(name, said) for name, said in told if said not in self.asking]})
        self._answers += 1
        return say(ANSWERS[self._answers % len(ANSWERS)])


def _said(lines: str) -> str:
    """Return the words of quoted lines on one line."""
    quote = re.match(r"(?:>.*\n?)+", lines)
    return " ".join(line.lstrip("> ") for line in quote[0].splitlines()).strip() if quote else ""


def _new(name: str, said: str) -> dict[str, Any]:
    return {
        "action": "new",
        "text": said[:900],
        "page": {"title": "User", "kind": "concrete", "folder": "user"},
        "evidence": [{"exchange": name, "quote": said[:900]}],
        "subject": "User",
        "subject_type": "person",
    }


def month(embedder: str) -> dict[str, Any]:
    """Live the month, and ask its questions at its end."""
    messages = json.loads(MONTH.read_text("utf-8"))
    said = {message["id"]: " ".join(message["text"].split()) for message in messages}
    model = Model({said[message["id"]] for message in messages if message["asks"]})
    with tempfile.TemporaryDirectory() as folder, ChatServer() as server:
        server.default = by_request(model)
        brain = make(messages, Path(folder) / "brain", embedder)
        config = brain.root / "system/config.yaml"
        llm = {
            "model": MODEL,
            "models": {str(other): OFFLINE for other in Purpose if other not in WITH_MODEL},
            "daily_budget_usd": 1_000,
        }
        config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text("utf-8")), "llm": llm}), encoding="utf-8")
        brain.places.config.parent.mkdir(parents=True, exist_ok=True)
        brain.places.config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        live(messages, brain)
        calls = [event.what for event in brain.journal.events(kinds={ModelCalled})]
        shown = []
        for message in messages:
            if message["asks"]:
                hits = brain.recall.search(searches(message["text"], ())[0], limit=MEMORY_HITS, now=brain.now())
                hits = [hit for hit in Gate(brain).hits(hits) if message["id"] not in hit.anchor]
                texts = [[said[name][:900]] for name in message["asks"]]
                shown.append(shown_of(brain, hits, texts))
        brain.close()
    return {"reflection": reflection(len(messages), model.reflected), "calls": len(calls), **figures(shown)}


def reflection(exchanges: int, requests: Sequence[str]) -> dict[str, int]:
    """Return what Reflection sent."""
    late = list(zip(requests[LATE - 1 :], requests[LATE:], strict=False))
    sizes = [count(request, MODEL) for _, request in late]
    shared = [count(os.path.commonprefix(pair), MODEL) for pair in late]  # noqa: RUF071 - texts, not paths
    uncached = [size - same for size, same in zip(sizes, shared, strict=True)]
    return {
        "exchanges": exchanges,
        "calls": len(requests),
        "tokens": round(statistics.mean(sizes)),
        "most tokens": max(sizes),
        "uncached": round(statistics.mean(uncached)),
    }


def shown_of(store: Store | Brain, hits: Sequence[Any], evidence: Sequence[Sequence[str]]) -> Shown:
    """Return how much of a question's evidence the hits show a model.

    Args:
        store: The brain.
        hits: The hits, best first.
        evidence: Of each thing that answers, the texts any one of which says it.
    """
    text = long_term_block(store, hits, (), TOKENS, lambda text: count(text, MODEL)).text
    words = _words(text)
    inside = [any(_words(way) in words for way in ways) for ways in evidence]
    return sum(inside) / len(inside), count(text, MODEL)


def _words(text: str) -> str:
    """Return a text without quote marks, on one line."""
    return " ".join(text.replace(">", " ").split())


def figures(shown: Sequence[Shown]) -> dict[str, float]:
    """Return the means over questions."""
    shares, tokens = zip(*shown, strict=True)
    return {
        "questions": len(shown),
        "evidence": round(100 * statistics.mean(shares), 1),
        "tokens": round(statistics.mean(tokens)),
    }


def talk(path: Path, first: int, embedder: str) -> Iterator[Shown]:
    """Ask the questions of a file of LoCoMo."""
    for conversation in locomo.read(path)[:first]:
        with tempfile.TemporaryDirectory() as folder:
            root = locomo.build_brain(conversation, Path(folder) / "brain")
            recall = locomo.open_recall(root, Path(folder) / "cache", embedder)
            recall.reindex()
            store, texts = Store(root, is_reading=True), {turn.id: turn.text for turn in conversation.turns}
            for question in conversation.questions:
                if question.category != locomo.ADVERSARIAL:
                    hits = recall.search(question.text, limit=MEMORY_HITS, now=conversation.asked_at)
                    yield shown_of(store, hits, [[clean(texts[turn])] for turn in question.evidence])
            store.close()
            recall.close()


def assistant_chats(path: Path, first: int, embedder: str) -> Iterator[Shown]:
    """Ask the questions of a file of chats with an assistant; what answers is what the person said, nearly always."""
    for chat in chats.read(path)[:first]:
        with tempfile.TemporaryDirectory() as folder:
            root = chats.build_brain(chat, Path(folder))
            recall = open_recall(root, Path(folder) / "cache", "en", embedder)
            recall.reindex()
            store = Store(root, is_reading=True)
            for text, answers, _ in chat.questions:
                if answers:
                    hits = recall.search(text, limit=MEMORY_HITS, now=chat.asked_at)
                    yield shown_of(store, hits, [[chat.exchanges[n].split("\n\n")[0][:150]] for n in answers])
            store.close()
            recall.close()


def main() -> None:
    """Measure, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--chats", type=Path)
    parser.add_argument("--first", type=int, default=4)
    parser.add_argument("--embedder", default="auto")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({f"XDG_{name}_HOME": f"{home}/{name}" for name in ("STATE", "CACHE", "CONFIG")})
        os.environ.setdefault("OPENAI_API_KEY", "none")
        found: dict[str, Any] = {"month": month(options.embedder)}
        print(found, file=sys.stderr, flush=True)
        if options.locomo:
            found["talk"] = figures(list(talk(options.locomo, options.first, options.embedder)))
        if options.chats:
            found["chats"] = figures(list(assistant_chats(options.chats, options.first, options.embedder)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
