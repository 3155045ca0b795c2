"""Learn the weights of `brainiac/search/signals.py`: a softmax of each unit of evidence against all that is none.

    python benchmarks/learning.py --talk LOCOMO.json --chats BEAM.json --people FRIENDS.json \\
        --notes benchmarks/data/notes/hatch.json FOLDER --notes benchmarks/data/notes/pymdown.json FOLDER \\
        [--embedder auto] [--write] [--vectors FILE]

Each sort of unit has weights of its own, learned on kinds of text that weigh the same: talk on conversations of two
(LoCoMo) and of many (FriendsQA), facts on what single people told in several languages (`benchmarks/data/questions`)
and on chats with an assistant (BEAM), notes on folders of pages with questions. Then two figures make talk and notes
comparable with facts, on brains that hold one of each at once. Printed is for each kind what the weights are worth on
the conversation, set or folder that is left out of the learning. Real chats (realtalk.py), `benchmarks/data/unseen`
and `benchmarks/data/languages` are never learned from.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import chats, locomo, notes, questions
from benchmarks.vault import unpack
from brainiac.search import embed, signals
from brainiac.search.documents import page_of
from brainiac.search.query import searches
from brainiac.search.retrieval import Ranked
from brainiac.search.search import Recall
from brainiac.search.signals import BY_WORDS, FACTS, N_SORTS, NOTES, ORDER, TALK, WEIGHTS, WITH_MEANING

RIDGE = 1e-3
FOLDS = 5
ROUNDS = 3  # in each the best unit of what answers is chosen anew
PLAIN = ("whole", "trigram")  # by which it is chosen at first
BASES = ("is_talk", "is_notes")
NAMES = tuple(name for name in WEIGHTS if name not in BASES)
# what each sort is weighed by: what it cannot show, and what only fits the data learned from, is left out
WEIGHED = {
    TALK: NAMES,
    FACTS: tuple("covered trigram whole whole_covered around fits day meaning meaning_page".split()),
    NOTES: tuple("covered trigram whole whole_covered around page title meaning meaning_page".split()),
}
# chats with an assistant are what most people bring: they count twice
GROUPS = {TALK: ("talk", "people"), FACTS: ("chats", "chats", "facts"), NOTES: ("notes",)}
# of a fact: learned where everything was asked before it is -5.7, but there no question tells anything itself
ASKS = -3.0
MIXED = 4
VAULT = Path(__file__).parent / "data/vault/dev.json"
DEPTHS = (1, 3, 5, 10)


@dataclass(frozen=True)
class Asked:
    """A question with what answers it: ids of exchanges, or for notes the paths of pages."""

    text: str
    now: datetime | None
    answers: frozenset[str]


@dataclass
class Source:
    """A brain on disk with what is asked of it.

    Attributes:
        kind: Of text: `talk`, `people`, `chats`, `facts`, `asked` or `notes`.
        id_of: Returns the id of the exchange that a unit stands in, by its anchor and moment; None: the page's path.
    """

    kind: str
    name: str
    root: Path
    asked: list[Asked] = field(repr=False)
    id_of: Callable[[str, str], str] | None = None
    language: str = "en"


@dataclass(frozen=True)
class Example:
    """The candidates of a question: signals, a row a unit, and the id of each."""

    kind: str
    asked: Asked
    names: dict[str, int]
    matrix: np.ndarray
    sort: np.ndarray
    ids: np.ndarray

    def of(self, names: Sequence[str]) -> np.ndarray:
        """Return columns by name."""
        return self.matrix[:, [self.names[name] for name in names]].astype(np.float64)


# --- the sources ------------------------------------------------------------------------------------------------


def talk_sources(data: Path, folder: Path) -> Iterator[Source]:
    """Yield a brain for each conversation of two."""
    for conversation in locomo.read(data):
        root = folder / conversation.name
        locomo.build_brain(conversation, root)
        asked = [
            Asked(q.text, conversation.asked_at, q.evidence)
            for q in conversation.questions
            if q.category != locomo.ADVERSARIAL
        ]
        yield Source("talk", conversation.name, root, asked, lambda anchor, at: anchor)


def chat_sources(kind: str, data: Path, folder: Path) -> Iterator[Source]:
    """Yield a brain for each imported chat."""
    for chat in chats.read(data):
        root = chats.build_brain(chat, folder / f"{kind}-{chat.name}")
        asked = [
            Asked(text, chat.asked_at, frozenset(map(str, answers))) for text, answers, _ in chat.questions if answers
        ]
        ids = {at: str(number) for at, number in chat.exchange_of.items()}
        yield Source(kind, chat.name, root, asked, lambda anchor, at, ids=ids: ids.get(at, ""))


def fact_sources(folder: Path) -> Iterator[Source]:
    """Yield a brain for each set of single facts, and one in which every second question was asked the day before."""
    for path in sorted(questions.SETS.glob("*.json")):
        given = questions.read(path)
        for kind, now in (("facts", given.asked_at), ("asked", given.asked_at + timedelta(days=1))):
            root, chosen = folder / f"{kind}-{path.stem}", given.questions
            questions.build_brain(given.told, root)
            if kind == "asked":
                questions.note(root, questions.asked_on(given.asked_at, chosen[::2]))
                chosen = chosen[1::2]
            asked = [Asked(searches(q.text, ())[0], now, q.answers) for q in chosen]
            yield Source(kind, path.stem, root, asked, lambda anchor, at: anchor, given.language)


def note_sources(pairs: Sequence[Sequence[Path]], folder: Path) -> Iterator[Source]:
    """Yield a brain for each folder of notes, and for the vault."""
    unpack(VAULT, folder / "vault")
    for path, pages in (*pairs, (VAULT, folder / "vault")):
        root = folder / f"notes-{path.stem}"
        notes.build_brain(pages, root)
        asked = [
            Asked(searches(q.text, ())[0], None, frozenset(f"{notes.LONG_TERM}/{page}" for page in q.pages))
            for q in notes.read(path)
        ]
        yield Source("notes", root.name, root, asked)


def mixed_sources(sources: Sequence[Source], folder: Path) -> Iterator[Source]:
    """Yield brains that hold a conversation, a set of facts and a folder at once, and the questions of each."""
    parts = [
        cycle([source for source in sources if source.kind == kind and source.language == "en"])
        for kind in ("talk", "facts", "notes")
    ]
    for number in range(MIXED):
        root, chosen = folder / f"mixed-{number}", [next(part) for part in parts]
        for source in chosen:
            shutil.copytree(source.root, root, dirs_exist_ok=True)
        for source in chosen:
            yield Source(f"mixed-{source.kind}", source.name, root, source.asked, source.id_of)


def examples(source: Source, embedder: str, cache: Path) -> list[Example]:
    """Return the candidates of every question of a source."""
    recall = questions.open_recall(source.root, cache / source.root.name, source.language, embedder)
    recall.reindex()
    units_of_page: dict[str, list[tuple[str, str]]] = {}
    found = []
    for asked in source.asked:
        ranked = recall.rank(asked.text, now=asked.now)
        if ranked is None or (embedder != "none" and "meaning" not in ranked.signals):
            continue
        names = [name for name in (*NAMES, *ORDER, "embedded") if name in ranked.signals]
        matrix = np.stack([ranked.signals[name] for name in names], 1).astype(np.float32)
        ids = np.array(_ids(recall, ranked, source, units_of_page))
        columns = {name: number for number, name in enumerate(names)}
        found.append(Example(source.kind, asked, columns, matrix, ranked.units.sort, ids))
    recall.close()
    return found


def _ids(recall: Recall, ranked: Ranked, source: Source, known: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Return the id of what each ranked unit stands in, see `Source.id_of`."""
    paths = [encoded.page.path for encoded in ranked.units.pages]
    if source.id_of is None:
        return [paths[page] for page in ranked.units.page]
    for path in paths:
        if path not in known:
            text = recall.tree.absolute(path).read_text("utf-8")
            units = page_of(path, text, recall.tree.kind_of(path)).units
            known[path] = [(unit.anchor, unit.at) for unit in units]
    places = zip(ranked.units.page.tolist(), ranked.units.position.tolist(), strict=True)
    return [source.id_of(*known[paths[page]][position]) for page, position in places]


# --- learning ---------------------------------------------------------------------------------------------------


def learn(groups: Sequence[Sequence[Example]], names: Sequence[str], before: np.ndarray | None = None) -> np.ndarray:
    """Return the weights that put evidence first; each group of examples weighs as much as the other.

    Args:
        groups: Of examples.
        names: The signals that are weighed.
        before: Weights of `NAMES` for each sort, a column each, that are kept; None for none.
    """
    used = [x for group in groups for x in group]
    shares = [1 / (len(groups) * len(group)) for group in groups for _ in group]
    weights = np.array([float(name in PLAIN) for name in names])
    for _ in range(ROUNDS):
        matrices, offsets, labels, kept = [], [], [], []
        for x, share in zip(used, shares, strict=True):
            offset = fixed(x) + (learned(x, before) if before is not None else 0.0)
            matrix = _columns(x, names)
            label = _labels(x, matrix @ weights + offset)
            if (label > 0).any() and (label == 0).any():
                matrices.append(matrix[label >= 0])
                offsets.append(offset[label >= 0])
                labels.append(label[label >= 0])
                kept.append(share)
        weights = _fit(matrices, offsets, labels, kept)
    return weights


def _columns(x: Example, names: Sequence[str]) -> np.ndarray:
    if tuple(names) == BASES:
        return np.stack([x.sort == TALK, x.sort == NOTES], 1).astype(np.float64)
    return x.of(names)


def fixed(x: Example) -> np.ndarray:
    """Return what the order by hand adds to the score of each unit."""
    return x.of(list(ORDER)) @ np.array(list(ORDER.values()))


def learned(x: Example, weights: np.ndarray) -> np.ndarray:
    """Return the score of each unit by the weights of its sort."""
    names = [name for name in NAMES if name in x.names]
    rows = [NAMES.index(name) for name in names]
    scores: np.ndarray = (x.of(names) * weights[rows][:, x.sort].T).sum(1)
    return scores


def _labels(x: Example, scores: np.ndarray) -> np.ndarray:
    """Return 1 for evidence, 0 for what is none, -1 for what is not learned from.

    Of an exchange or a page that answers only its best unit is learned from, and of units without a vector none.
    """
    labels = np.zeros(len(x.ids))
    for name in x.asked.answers:
        units = np.flatnonzero(x.ids == name)
        labels[units] = -1
        if len(units):
            labels[units[np.argmax(scores[units])]] = 1
    if "embedded" in x.names:
        labels[x.of(["embedded"])[:, 0] == 0] = -1
    return labels


def _fit(
    matrices: Sequence[np.ndarray], offsets: Sequence[np.ndarray], labels: Sequence[np.ndarray], shares: Sequence[float]
) -> np.ndarray:
    """Minimize the softmax loss by Newton's method with step halving; an offset is added to the score of each unit."""
    weights = np.zeros(matrices[0].shape[1])
    loss, gradient, curvature = _loss(matrices, offsets, labels, shares, weights)
    for _ in range(25):
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while size > 1e-4:
            attempt = _loss(matrices, offsets, labels, shares, weights - size * step)
            if attempt[0] < loss:
                break
            size /= 2
        else:
            break
        improved = loss - attempt[0]
        weights, (loss, gradient, curvature) = weights - size * step, attempt
        if improved < 1e-6:
            break
    return weights


def _loss(
    matrices: Sequence[np.ndarray], offsets: Sequence[np.ndarray], labels: Sequence[np.ndarray],
    shares: Sequence[float], weights: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:  # fmt: skip
    width = len(weights)
    loss, gradient, curvature = 0.0, np.zeros(width), np.zeros((width, width))
    for matrix, offset, label, weight in zip(matrices, offsets, labels, shares, strict=True):
        others, evidence = matrix[label == 0], matrix[label > 0]
        against, own = others @ weights + offset[label == 0], evidence @ weights + offset[label > 0]
        highest = max(against.max(initial=-np.inf), own.max())
        share = np.exp(against - highest)
        total_of_others, mean_of_others = share.sum(), others.T @ share
        scatter_of_others = (others * share[:, None]).T @ others
        for unit, value in zip(evidence, own, strict=True):
            own_share = np.exp(value - highest)
            total = total_of_others + own_share
            mean = (mean_of_others + own_share * unit) / total
            scatter = (scatter_of_others + own_share * np.outer(unit, unit)) / total - np.outer(mean, mean)
            part = weight / len(evidence)
            loss += part * (np.log(total) + highest - value)
            gradient += part * (mean - unit)
            curvature += part * scatter
    return loss + RIDGE / 2 * weights @ weights, gradient + RIDGE * weights, curvature + RIDGE * np.eye(width)


# --- what it is worth, and writing it ---------------------------------------------------------------------------


def worth(asked: Sequence[Example], weights: np.ndarray) -> dict[str, float]:
    """Return the mean share of the evidence at some depths; of facts and notes how often any of it is there."""
    met = []
    for x in asked:
        order = np.argsort(-(learned(x, weights) + fixed(x)), kind="stable")
        found = [name for name in dict.fromkeys(x.ids[order].tolist()) if name]
        shares = [len(x.asked.answers & set(found[:depth])) / len(x.asked.answers) for depth in DEPTHS]
        met.append(np.ceil(shares) if x.kind in ("facts", "asked", "notes") else shares)
    return {f"at_{depth}": round(100 * float(share), 1) for depth, share in zip(DEPTHS, np.mean(met, 0), strict=True)}


def table_of(by_kind: dict[str, list[Example]], mixed: Sequence[Example]) -> np.ndarray:
    """Return the weights of `NAMES` and then of `BASES`, a column for each sort.

    Args:
        by_kind: Examples of each kind of text.
        mixed: Examples from brains that hold several kinds; without any the sorts are not made comparable.
    """
    known = next(iter(by_kind.values()))[0].names
    weights = np.zeros((len(NAMES), N_SORTS))
    for sort, kinds in GROUPS.items():
        names = [name for name in WEIGHED[sort] if name in known]
        if any(by_kind.get(kind) for kind in kinds):
            learned_from = [by_kind[kind] for kind in kinds if by_kind.get(kind)]
            weights[[NAMES.index(name) for name in names], sort] = learn(learned_from, names)
    weights[NAMES.index("asks"), FACTS] = ASKS
    for name in ("about", "day"):  # few facts and notes are asked for by a day, or by who says them
        weights[NAMES.index(name)] = weights[NAMES.index(name), TALK]
    if not mixed:
        return weights
    kinds = sorted({x.kind for x in mixed})
    bases = learn([[x for x in mixed if x.kind == kind] for kind in kinds], BASES, weights)
    return np.vstack([weights, [[bases[0], 0.0, 0.0], [0.0, 0.0, bases[1]]]])


def write_weights(weights: np.ndarray, column: int) -> None:
    """Replace the columns of the learned table in `brainiac/search/signals.py`."""
    values = dict(zip((*NAMES, *BASES), weights, strict=True))

    def row(match: re.Match[str]) -> str:
        figures = [float(figure) for figure in match[2].split(",")]
        figures[column : column + N_SORTS] = values[match[1]].tolist()
        return f'    "{match[1]}": ({", ".join(f"{figure:.2f}" for figure in figures)}),'

    path = Path(signals.__file__)
    table = rf'^    "(\w+)": \(((?:-?[\d.]+, ){{{2 * N_SORTS - 1}}}-?[\d.]+)\),$'
    text = re.sub(table, row, path.read_text("utf-8"), flags=re.MULTILINE)
    path.write_text(text.replace("-0.00", "0.00"), "utf-8")


def remember_vectors(file: Path | None) -> None:
    """Let the local embedder make the vector of a text once, and keep it in a file between runs."""
    known: dict[bytes, np.ndarray] = pickle.loads(file.read_bytes()) if file and file.exists() else {}
    make = embed.E5Embedder.embed

    def remembered(self: Any, texts: Sequence[str], *, is_query: bool = False) -> np.ndarray:
        keys = [
            hashlib.blake2b(f"{is_query}{text}".encode(errors="replace"), digest_size=12).digest() for text in texts
        ]
        if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in known}:
            vectors = make(self, list(new.values()), is_query=is_query)
            known.update(zip(new, vectors.astype(np.float16), strict=True))
            if file:
                file.write_bytes(pickle.dumps(known))
        return np.array([known[key] for key in keys]).astype(np.float32)

    embed.E5Embedder.embed = remembered  # type: ignore[method-assign]


def main() -> None:
    """Learn, print what it is worth, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talk", type=Path, required=True, help="conversations of LoCoMo")
    parser.add_argument("--chats", type=Path, required=True, help="chats with an assistant, see chats.py")
    parser.add_argument("--people", type=Path, required=True, help="talk of several, in the same form")
    parser.add_argument("--notes", type=Path, nargs=2, action="append", required=True, metavar=("FILE", "FOLDER"))
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--vectors", type=Path, help="where the vectors are kept between runs")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.embedder != "none":
        remember_vectors(arguments.vectors)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [
            *talk_sources(arguments.talk, folder),
            *chat_sources("people", arguments.people, folder),
            *chat_sources("chats", arguments.chats, folder),
            *fact_sources(folder),
            *note_sources(arguments.notes, folder),
        ]
        found = [(source.kind, examples(source, arguments.embedder, folder / "cache")) for source in sources]
        mixed = [
            x
            for source in mixed_sources(sources, folder)
            for x in examples(source, arguments.embedder, folder / "cache")
        ]
    kinds = list(dict.fromkeys(kind for kind, _ in found))

    def of_kinds(left_out: Sequence[int] = ()) -> dict[str, list[Example]]:
        by_kind: dict[str, list[Example]] = {kind: [] for kind in kinds}
        for number, (kind, asked) in enumerate(found):
            by_kind[kind] += asked if number not in left_out else []
        return by_kind

    for kind in kinds:
        numbers = [number for number, (other, _) in enumerate(found) if other == kind]
        total, shares = 0, np.zeros(len(DEPTHS))
        names = list(dict.fromkeys(sources[number].name for number in numbers))
        for fold in range(min(FOLDS, len(names))):
            held_out = [number for number in numbers if names.index(sources[number].name) % FOLDS == fold]
            asked = [x for number in held_out for x in found[number][1]]
            shares += len(asked) * np.array(list(worth(asked, table_of(of_kinds(held_out), ())).values()))
            total += len(asked)
        if kind == "notes":
            for number in numbers:
                print(found[number][0], sources[number].name, worth(found[number][1], table_of(of_kinds([number]), ())))
        print(kind, total, dict(zip(DEPTHS, (shares / total).round(1).tolist(), strict=True)), flush=True)
    weights = table_of(of_kinds(), mixed)
    for kind in sorted({x.kind for x in mixed}):
        print(kind, worth([x for x in mixed if x.kind == kind], weights))
    if arguments.write:
        write_weights(weights, BY_WORDS if arguments.embedder == "none" else WITH_MEANING)


if __name__ == "__main__":
    main()
