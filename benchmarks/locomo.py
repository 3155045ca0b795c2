"""Evidence recall on long two-person conversations, through the product's own formats and search.

    python benchmarks/locomo.py DATA.json                 # measure: the product beside the usual ways
    python benchmarks/locomo.py DATA.json --cross         # weights learned without the source that is asked
    python benchmarks/locomo.py DATA.json --learn         # write brainiac/search/rank.py anew

Weights are learned from these conversations and from the sets in benchmarks/data/questions (questions.py).

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import questions
from benchmarks.baselines import BASELINES
from benchmarks.learning import Example, learn, score, write_weights
from brainiac.clock import iso
from brainiac.formats.markdown import StmEvent, render_exchange
from brainiac.search.query import searches
from brainiac.search.rank import Ranked
from brainiac.search.search import Recall
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree

DEPTH = 20
ADVERSARIAL = 5
FACTS = Path(__file__).parent / "data" / "questions"
FOLDS = 3


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


def examples(conversation: Conversation, recall: Recall) -> Iterator[Example]:
    """Yield the signals of every candidate for every question."""
    for question in conversation.questions:
        ranked = recall.rank(question.text, now=conversation.asked_at)
        if ranked is not None:
            yield Example(
                question.category != ADVERSARIAL, ranked, _is_evidence(conversation, ranked, question), question
            )


def _is_evidence(conversation: Conversation, ranked: Ranked, question: Question) -> np.ndarray:
    ids = unit_ids(conversation, ranked)
    return np.array([unit in question.evidence for unit in ids], np.float64)


def unit_ids(conversation: Conversation, ranked: Ranked) -> list[str]:
    """Return the turn that each ranked unit is: pages hold a session's turns in order."""
    by_session: dict[int, list[str]] = defaultdict(list)
    for turn in conversation.turns:
        by_session[turn.session].append(turn.id)
    turns = [by_session[int(re.search(r"session-(\d+)\.md$", page.page.path)[1])] for page in ranked.units.pages]
    places = zip(ranked.units.page.tolist(), ranked.units.position.tolist(), strict=True)
    return [turns[page][position] for page, position in places]


def measure(conversations: Sequence[Conversation], folder: Path, embedder: str) -> dict[str, float]:
    """Ask every question through `Recall.search`."""
    scores = Scores()
    for conversation in conversations:
        recall = open_recall(folder / conversation.name, folder / f"{conversation.name}-{embedder}", embedder)
        recall.reindex()
        session_of = {turn.id: turn.session for turn in conversation.turns}
        for question in conversation.questions:
            hits = recall.search(question.text, limit=DEPTH, kinds=("exchange",), now=conversation.asked_at)
            scores.add(question, [hit.anchor for hit in hits], session_of.__getitem__)
        recall.close()
    return scores.summary()


def measure_baselines(conversations: Sequence[Conversation]) -> dict[str, dict[str, float]]:
    """Ask every question in the usual ways, on the same turns."""
    results = {}
    for name, make in BASELINES.items():
        scores = Scores()
        for conversation in conversations:
            find = make([turn.text for turn in conversation.turns])
            if find is None:
                break
            session_of = {turn.id: turn.session for turn in conversation.turns}
            for question in conversation.questions:
                found = [conversation.turns[number].id for number in find(question.text, DEPTH)]
                scores.add(question, found, session_of.__getitem__)
        if scores.values:
            results[name] = scores.summary()
            print(name, results[name], file=sys.stderr, flush=True)
    return results


def cross_validate(
    by_conversation: Sequence[list[Example]], conversations: Sequence[Conversation], facts: Sequence[Example]
) -> dict[str, float]:
    """Score each conversation with weights learned from the others and from facts."""
    scores = Scores()
    for held_out, conversation in enumerate(conversations):
        others = [x for number, xs in enumerate(by_conversation) if number != held_out for x in xs]
        weights = learn([*others, *facts])
        session_of = {turn.id: turn.session for turn in conversation.turns}
        for example in by_conversation[held_out]:
            order = np.argsort(-score(example.ranked, weights), kind="stable")[:DEPTH]
            ids = unit_ids(conversation, example.ranked)
            scores.add(example.question, [ids[number] for number in order], session_of.__getitem__)
    return scores.summary()


def fact_examples(folder: Path, embedder: str) -> dict[str, list[Example]]:
    """Return the examples of each set of single facts."""
    found = {}
    for path in sorted(FACTS.glob("*.json")):
        given, root = questions.read(path), folder / f"{path.stem}-{embedder}"
        questions.build_brain(given.told, root)
        recall = questions.open_recall(root, root / ".cache", given.language, embedder)
        recall.reindex()
        found[path.stem] = list(questions.examples(given, recall))
        recall.close()
    return found


def cross_validate_facts(by_set: Mapping[str, list[Example]], talk: Sequence[Example]) -> dict[str, float]:
    """Score each set with weights learned from the conversations and the sets of other folds."""
    met = []
    for fold in range(FOLDS):
        held_out = set(list(by_set)[fold::FOLDS])
        weights = learn([*talk, *(x for name, xs in by_set.items() if name not in held_out for x in xs)])
        for example in (x for name in held_out for x in by_set[name]):
            order = np.argsort(-score(example.ranked, weights), kind="stable")
            met.append([example.is_evidence[order[:depth]].any() for depth in (1, 3, 5)])
    shares = 100 * np.mean(met, axis=0)
    return dict(zip(("first", "among_3", "among_5"), np.round(shares, 1).tolist(), strict=True))


def run(description: str | None, read_data: Callable[[Path], list[Conversation]]) -> None:
    """Run what the command line asks for and end with one line of JSON.

    Args:
        description: For `--help`.
        read_data: Reads the file that the command line names.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--cross", action="store_true")
    parser.add_argument("--embedder", default="auto", help="of the hybrid run; none: lexical only")
    arguments = parser.parse_args()
    conversations = read_data(arguments.data)
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for conversation in conversations:
            build_brain(conversation, folder / conversation.name)
        embedders = {"lexical": "none"}
        if has_embedder(folder / conversations[0].name, folder / "probe", arguments.embedder):
            embedders["hybrid"] = arguments.embedder
        elif arguments.embedder != "none":
            print("hybrid left out: no embedder is installed; pip install '.[semantic]'", file=sys.stderr)
        if arguments.learn or arguments.cross:
            for label, embedder in embedders.items():
                gathered = []
                for conversation in conversations:
                    recall = open_recall(
                        folder / conversation.name, folder / f"{conversation.name}-{embedder}", embedder
                    )
                    recall.reindex()
                    gathered.append(list(examples(conversation, recall)))
                    recall.close()
                by_set = fact_examples(folder, embedder)
                talk, facts = [x for xs in gathered for x in xs], [x for xs in by_set.values() for x in xs]
                results[f"{label}-cross"] = cross_validate(gathered, conversations, facts)
                results[f"{label}-facts-cross"] = cross_validate_facts(by_set, talk)
                for name in (f"{label}-cross", f"{label}-facts-cross"):
                    print(name, results[name], file=sys.stderr, flush=True)
                if arguments.learn:
                    write_weights(label, learn([*talk, *facts]))
        else:
            for label, embedder in embedders.items():
                results[label] = measure(conversations, folder, embedder)
                print(label, results[label], file=sys.stderr, flush=True)
            results |= measure_baselines(conversations)
    print(json.dumps(results))


if __name__ == "__main__":
    run(__doc__, read)
