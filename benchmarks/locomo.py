"""Evidence recall on long two-person conversations, through the product's own formats and search.

    python benchmarks/locomo.py DATA.json

The product beside the usual ways. `in_context` is the share of evidence that stands in what a model is shown of
memory, 2,000 tokens with links and days. Weights are learned from five of these conversations among other things
(learning.py, which prints what they are worth for the conversation that is left out).

The data (LoCoMo, CC BY-NC 4.0) is read from the path and never part of the project. Each conversation becomes a
brain of its own: a page in `events/` for each session, an exchange for each turn with its speaker named.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.baselines import usual_ways
from brainiac.clock import iso
from brainiac.formats.markdown import StmEvent, render_exchange
from brainiac.llm.catalog import count
from brainiac.llm.context.blocks import quoted
from brainiac.llm.context.memory import MEMORY_HITS, long_term_block
from brainiac.search.query import searches
from brainiac.search.search import Recall
from brainiac.settings import RecallSettings, Settings
from brainiac.storage.store import Store
from brainiac.tree import LocalPlaces, Tree

DEPTH = 20
ADVERSARIAL = 5
CONTEXT_TOKENS = 2_000  # of found memories, links and days among them
CONTEXT_MODEL = "openai/gpt-4o"  # whose tokens are counted without a margin


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation; `text` as it is stored, speaker and image caption in it."""

    id: str
    session: int
    at: datetime
    text: str


@dataclass(frozen=True)
class Question:
    """A question with the turns that answer it."""

    text: str
    evidence: frozenset[str]
    category: int


@dataclass
class Conversation:
    """A conversation and what is asked of it."""

    name: str
    turns: list[Turn]
    questions: list[Question]
    asked_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.asked_at = max(turn.at for turn in self.turns) + timedelta(days=1)


def read(path: Path) -> list[Conversation]:
    """Read the data set."""
    return [_conversation(sample) for sample in json.loads(path.read_text("utf-8"))]


def _conversation(sample: dict) -> Conversation:
    told, turns = sample["conversation"], []
    sessions = sorted(int(key.split("_")[1]) for key in told if re.fullmatch(r"session_\d+", key))
    for session in sessions:
        start = datetime.strptime(told[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for number, turn in enumerate(told[f"session_{session}"]):
            image = f" ![{turn['blip_caption']}](image.jpg)" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{image}"
            turns.append(Turn(turn["dia_id"], session, start + timedelta(seconds=number), text))
    known = {turn.id for turn in turns}
    questions = []
    for asked in sample["qa"]:
        named = re.findall(r"D\d+:\d+", " ".join(map(str, asked.get("evidence", []))))
        if evidence := frozenset(named) & known:
            text = searches(asked["question"], ())[0]  # as a prompt is searched for
            questions.append(Question(text, evidence, asked["category"]))
    return Conversation(sample["sample_id"], turns, questions)


def build_brain(conversation: Conversation, root: Path) -> Recall:
    """Write a conversation as episodic pages and return a search over them."""
    (root / "system").mkdir(parents=True)
    (root / "system" / "core_identity.md").write_text("# Core Identity\n", "utf-8")
    sessions: dict[int, list[Turn]] = defaultdict(list)
    for turn in conversation.turns:
        sessions[turn.session].append(turn)
    for session, turns in sessions.items():
        folder = root / "memory" / "long_term" / "events" / turns[0].at.strftime("%Y/%m/%d")
        folder.mkdir(parents=True, exist_ok=True)
        exchanges = "\n".join(render_exchange(StmEvent(turn.id, iso(turn.at), turn.text)) for turn in turns)
        head = f"---\nuuid: {conversation.name}-{session}\ncreated_at: {iso(turns[0].at)}\n---\n"
        title = f"# Conversation of {turns[0].at.strftime('%-d %B %Y')}\n\n"
        (folder / f"session-{session}.md").write_text(head + title + exchanges, "utf-8")
    return root


def open_recall(root: Path, cache: Path, embedder: str) -> Recall:
    """Return the product's search with an index of its own."""
    tree = Tree(root)
    places = LocalPlaces(state=cache, cache=cache, config=cache / "config.yaml", device=cache)
    return Recall(tree, places, Settings(recall=RecallSettings(embedder=embedder)))


def has_embedder(root: Path, cache: Path, embedder: str) -> bool:
    """Tell whether there is one; without it the hybrid run would be the lexical one under another name."""
    recall = open_recall(root, cache, embedder)
    try:
        return recall.status()["embedder"]["name"] != "none"
    finally:
        recall.close()


@dataclass
class Scores:
    """Measures, gathered question by question."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, question: Question, found: Sequence[str], session_of: Callable[[str], int]) -> None:
        """Score what was found for one question, best first."""
        evidence, category = question.evidence, question.category
        at_10 = len(evidence & set(found[:10])) / len(evidence)
        self.values[f"cat{category}_r@10"].append(at_10)
        if category == ADVERSARIAL:
            return
        for depth in (1, 5, 10, 20):
            self.values[f"r@{depth}"].append(len(evidence & set(found[:depth])) / len(evidence))
        self.values["all@10"].append(float(evidence <= set(found[:10])))
        first = next((place for place, turn in enumerate(found, 1) if turn in evidence), None)
        self.values["mrr"].append(1 / first if first else 0.0)
        sessions = {session_of(turn) for turn in evidence}
        met = list(dict.fromkeys(session_of(turn) for turn in found))[:5]
        self.values["session_r@5"].append(len(sessions & set(met)) / len(sessions))

    def summary(self) -> dict[str, float]:
        """Return the means: shares in percent, MRR from 0 to 1."""
        return {
            name: round(float(np.mean(values)) * (1 if name == "mrr" else 100), 3 if name == "mrr" else 1)
            for name, values in sorted(self.values.items())
        }


def measure(conversations: Sequence[Conversation], folder: Path, embedder: str) -> dict[str, float]:
    """Ask every question through `Recall.search`."""
    scores, tokens = Scores(), partial(count, model=CONTEXT_MODEL)
    for conversation in conversations:
        recall = open_recall(folder / conversation.name, folder / f"{conversation.name}-{embedder}", embedder)
        recall.reindex()
        session_of = {turn.id: turn.session for turn in conversation.turns}
        store = Store(folder / conversation.name, is_reading=True)
        texts = {turn.id: quoted(turn.text) for turn in conversation.turns}
        for question in conversation.questions:
            hits = recall.search(question.text, limit=MEMORY_HITS, kinds=("exchange",), now=conversation.asked_at)
            scores.add(question, [hit.anchor for hit in hits[:DEPTH]], session_of.__getitem__)
            if question.category != ADVERSARIAL:
                shown = long_term_block(store, hits, (), CONTEXT_TOKENS, tokens).text
                inside = [texts[turn] in shown for turn in question.evidence]
                scores.values["in_context"].append(sum(inside) / len(inside))
        store.close()
        recall.close()
    return scores.summary()


def measure_baselines(conversations: Sequence[Conversation]) -> dict[str, dict[str, float]]:
    """Ask every question in the usual ways, on the same turns."""
    by_way: dict[str, Scores] = defaultdict(Scores)
    for conversation in conversations:
        session_of = {turn.id: turn.session for turn in conversation.turns}
        for name, find in usual_ways([turn.text for turn in conversation.turns]):
            for question in conversation.questions:
                found = [conversation.turns[number].id for number in find(question.text, DEPTH)]
                by_way[name].add(question, found, session_of.__getitem__)
    return {name: scores.summary() for name, scores in by_way.items()}


def measure_all(conversations: Sequence[Conversation], embedder: str) -> dict[str, dict[str, float]]:
    """Return the measures of the product, by words (`lexical`) and with an embedder (`hybrid`), and of the usual ways.

    Args:
        conversations: What is asked of what.
        embedder: Of the hybrid run, as in `recall.embedder`; `none` leaves that run out.
    """
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for conversation in conversations:
            build_brain(conversation, folder / conversation.name)
        embedders = {"lexical": "none"}
        if has_embedder(folder / conversations[0].name, folder / "probe", embedder):
            embedders["hybrid"] = embedder
        elif embedder != "none":
            print("hybrid left out: the embedder cannot be loaded", file=sys.stderr)
        for label, setting in embedders.items():
            results[label] = measure(conversations, folder, setting)
            print(label, results[label], file=sys.stderr, flush=True)
    return results | measure_baselines(conversations)


def run(description: str | None, read_data: Callable[[Path], list[Conversation]]) -> None:
    """Run what the command line asks for and end with one line of JSON.

    Args:
        description: For `--help`.
        read_data: Reads the file that the command line names.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="auto", help="of the hybrid run; none: lexical only")
    arguments = parser.parse_args()
    print(json.dumps(measure_all(read_data(arguments.data), arguments.embedder)))


if __name__ == "__main__":
    run(__doc__, read)
