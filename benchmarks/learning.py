"""Learn the weights of `brainiac/search/rank.py`: a softmax of each unit of evidence against all that is none.

    python benchmarks/learning.py LOCOMO.json --notes benchmarks/data/notes/hatch.json FOLDER \\
        --notes benchmarks/data/notes/pymdown.json FOLDER [--embedder auto] [--write]

Each sort of unit has weights of its own: talk learns from the conversations and from the single facts of
`benchmarks/data/questions`, both weighing the same; facts from the latter; notes from the folders. In a last step the
three are made comparable, five figures learned on brains that hold a conversation, a set of facts and a folder at
once. With `--embedder` the weights with meaning are learned, else those by words alone. Printed is what each is worth
with the conversation, the sets of a fold or the folder that is asked left out. Few parameters and a ridge penalty keep
it from learning a data set by heart; real chats (realtalk.py) and `benchmarks/data/unseen` are never learned from.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import locomo, notes, questions
from brainiac.search import rank
from brainiac.search.documents import page_of
from brainiac.search.query import searches
from brainiac.search.rank import ALONE, AROUND, BY_HAND, BY_WORDS, N_SORTS, WITH_MEANING, Ranked, context_signals
from brainiac.search.search import Recall
from brainiac.search.signals import FACTS, NOTES, TALK

RIDGE = {TALK: 1e-3, FACTS: 1e-2, NOTES: 1e-3}
FOLDS = 3
NOTES_SIGNALS = ("own", "trigram_three", "section", "title_covered", "title_trigram", "meaning", "meaning_page")
PLAIN = ("own", "trigram_three")
SORT_SIGNALS = ("is_talk", "is_notes")
OTHER_SIGNALS = tuple(name for name in ALONE if name not in ("own", "section", "title_covered", "title_trigram"))
# what facts and notes cannot show is as in talk
AS_IN_TALK = {"about": (FACTS, NOTES), "day": (FACTS, NOTES)}
DEPTHS = (1, 3, 5, 10)


@dataclass(frozen=True)
class Asked:
    """A question with what answers it: ids of exchanges, or for notes the paths of pages."""

    text: str
    now: datetime | None
    answers: frozenset[str]
    sort: int
    is_learned_from: bool = True


@dataclass(frozen=True)
class Example:
    """A question's candidates, the id or path of each, and which of them are evidence."""

    asked: Asked
    ranked: Ranked
    ids: list[str]
    is_evidence: np.ndarray


@dataclass
class Weights:
    """The weights of one sort of unit."""

    names: tuple[str, ...]
    alone: np.ndarray
    around: np.ndarray
    scale: float = 1.0
    start: float = 0.0


@dataclass(frozen=True)
class Source:
    """A brain on disk with what is asked of it."""

    name: str
    root: Path
    asked: list[Asked] = field(repr=False)
    language: str = "en"


# --- the sources ------------------------------------------------------------------------------------------------


def talk_sources(data: Path, folder: Path) -> Iterator[Source]:
    """Yield a brain for each conversation."""
    for conversation in locomo.read(data):
        root = folder / conversation.name
        locomo.build_brain(conversation, root)
        asked = [
            Asked(q.text, conversation.asked_at, q.evidence, TALK, q.category != locomo.ADVERSARIAL)
            for q in conversation.questions
        ]
        yield Source(conversation.name, root, asked)


def fact_sources(folder: Path) -> Iterator[Source]:
    """Yield a brain for each set of single facts."""
    for path in sorted(questions.SETS.glob("*.json")):
        given, root = questions.read(path), folder / path.stem
        questions.build_brain(given.told, root)
        asked = [Asked(searches(q.text, ())[0], given.asked_at, q.answers, FACTS) for q in given.questions]
        yield Source(path.stem, root, asked, given.language)


def note_sources(pairs: Sequence[Sequence[Path]], folder: Path) -> Iterator[Source]:
    """Yield a brain for each folder of notes."""
    for path, pages in pairs:
        root = folder / path.stem
        notes.build_brain(pages, root)
        asked = [
            Asked(searches(q.text, ())[0], None, frozenset(f"{notes.LONG_TERM}/{page}" for page in q.pages), NOTES)
            for q in notes.read(path)
        ]
        yield Source(path.stem, root, asked)


def mixed_sources(sources: Sequence[Sequence[Source]], folder: Path) -> Iterator[Source]:
    """Yield brains of one source of each sort, for as long as there are conversations."""
    talk, facts, pages = sources
    english = [source for source in facts if source.language == "en"]
    for number, parts in enumerate(zip_longest(talk, english[: len(talk)], pages * len(talk))):
        if parts[0] is None:
            return
        root = folder / f"mixed-{number}"
        for part in filter(None, parts):
            shutil.copytree(part.root, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".cache"))
        yield Source(root.name, root, [asked for part in filter(None, parts) for asked in part.asked])


def examples(source: Source, embedder: str) -> list[Example]:
    """Return the candidates of every question of a source."""
    recall = questions.open_recall(source.root, source.root / ".cache", source.language, embedder)
    recall.reindex()
    ids_of_page: dict[str, list[str]] = {}
    found = []
    for asked in source.asked:
        if (ranked := recall.rank(asked.text, now=asked.now)) is None:
            continue
        ids = _ids(recall, ranked, asked.sort, ids_of_page)
        found.append(Example(asked, ranked, ids, np.array([name in asked.answers for name in ids], np.float64)))
    recall.close()
    # before the first vector stands there is nothing to learn of meaning
    return [example for example in found if embedder == "none" or "meaning" in example.ranked.signals]


def _ids(recall: Recall, ranked: Ranked, sort: int, known: dict[str, list[str]]) -> list[str]:
    """Return the path of each ranked unit's page, or for an exchange its id."""
    paths = [encoded.page.path for encoded in ranked.units.pages]
    if sort == NOTES:
        return [paths[page] for page in ranked.units.page]
    for path in paths:
        if path not in known:
            text = recall.tree.absolute(path).read_text("utf-8")
            known[path] = [unit.anchor for unit in page_of(path, text, recall.tree.kind_of(path)).units]
    places = zip(ranked.units.page.tolist(), ranked.units.position.tolist(), strict=True)
    return [known[paths[page]][position] for page, position in places]


# --- learning ---------------------------------------------------------------------------------------------------


def learn(groups: Sequence[Sequence[Example]], names: Sequence[str], sort: int) -> Weights:
    """Return the weights that put evidence first; each group of examples weighs as much as the other."""
    used, shares = _shared(groups)
    names = tuple(name for name in names if name in used[0].ranked.signals and name not in SORT_SIGNALS)
    # which paragraph of a page that answers is the best is judged by plain BM25 at first
    matrices, weights = [_matrix(x, names) for x in used], np.array([float(name in PLAIN) for name in names])
    for _ in range(3 if sort == NOTES else 1):
        labels = [_labels(x, matrix @ weights) for x, matrix in zip(used, matrices, strict=True)]
        weights = _fit(matrices, labels, shares, RIDGE[sort])
    if sort != TALK:  # of a page's paragraphs, and of what was told one by one, the neighbours tell too little
        around = np.array([0.0, 0.0, 0.0, AROUND["place_on_page"][TALK] * (sort == NOTES)])
        return Weights(names, weights, around)
    second = _fit(
        [np.column_stack([m @ weights, _around(x, m @ weights)]) for x, m in zip(used, matrices, strict=True)],
        labels, shares, RIDGE[sort],
    )  # fmt: skip
    # the first column is the first pass itself: its scale is folded into the other weights
    return Weights(names, weights, second[1:] / second[0])


def _shared(groups: Sequence[Sequence[Example]]) -> tuple[list[Example], list[float]]:
    kept = [[x for x in group if x.asked.is_learned_from and x.is_evidence.any()] for group in groups]
    return [x for group in kept for x in group], [1 / (len(kept) * len(group)) for group in kept for _ in group]


def calibrate(by_sort: Sequence[Weights], groups: Sequence[Sequence[Example]]) -> None:
    """Learn a scale for each sort and where facts and notes start beside talk, on brains that hold all three."""
    used, shares = _shared(groups)
    for _ in range(2):
        matrices, labels = [], []
        for x in used:
            sort, scores = x.ranked.units.sort, score(x, by_sort)
            matrix = np.zeros((len(sort), N_SORTS + 2))
            for number, weights in enumerate(by_sort):
                is_it = sort == number
                matrix[is_it, number] = (scores[is_it] - weights.start) / weights.scale
            matrix[:, N_SORTS], matrix[:, N_SORTS + 1] = sort == TALK, sort == NOTES
            matrices.append(matrix)
            labels.append(_labels(x, scores))
        learned = _fit(matrices, labels, shares, 1e-3)
        for number, weights in enumerate(by_sort):
            weights.scale = learned[number] / learned[TALK]
        by_sort[TALK].start, by_sort[NOTES].start = learned[N_SORTS:] / learned[TALK]


def score(x: Example, by_sort: Sequence[Weights]) -> np.ndarray:
    """Return the scores of a question's candidates, each by the weights of its sort."""
    sort = x.ranked.units.sort
    alone, around = np.zeros(len(sort)), np.zeros((len(sort), len(AROUND)))
    for number, weights in enumerate(by_sort):
        is_it = sort == number
        alone[is_it] = weights.scale * (_matrix(x, weights.names)[is_it] @ weights.alone) + weights.start
        around[is_it] = weights.scale * weights.around
    by_hand = sum(BY_HAND[name] * x.ranked.signals[name] for name in ("only_asks", "headed"))
    scores: np.ndarray = alone + (_around(x, alone) * around).sum(1) + by_hand
    return scores


def _labels(x: Example, scores: np.ndarray) -> np.ndarray:
    """Return 1 for evidence, 0 for what is none; of a page that answers only its best unit is learned from."""
    if x.asked.sort != NOTES:
        return x.is_evidence
    page = x.ranked.units.page
    labels = -x.is_evidence
    for number in np.unique(page[x.is_evidence > 0]):
        units = np.flatnonzero(page == number)
        labels[units[np.argmax(scores[units])]] = 1
    return labels


def _matrix(x: Example, names: Sequence[str]) -> np.ndarray:
    return np.stack([x.ranked.signals[name] for name in names], 1)


def _around(x: Example, alone: np.ndarray) -> np.ndarray:
    found = context_signals(x.ranked.units, alone)
    return np.stack([found[name] for name in AROUND], 1)


def _fit(
    matrices: Sequence[np.ndarray], labels: Sequence[np.ndarray], shares: Sequence[float], ridge: float
) -> np.ndarray:
    """Minimize the softmax loss by Newton's method with step halving."""
    weights = np.zeros(matrices[0].shape[1])
    loss, gradient, curvature = _loss(matrices, labels, shares, weights, ridge)
    for _ in range(25):
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while size > 1e-4:
            attempt = _loss(matrices, labels, shares, weights - size * step, ridge)
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
    matrices: Sequence[np.ndarray], labels: Sequence[np.ndarray], shares: Sequence[float], weights: np.ndarray,
    ridge: float,
) -> tuple[float, np.ndarray, np.ndarray]:  # fmt: skip
    width = len(weights)
    loss, gradient, curvature = 0.0, np.zeros(width), np.zeros((width, width))
    for matrix, label, weight in zip(matrices, labels, shares, strict=True):
        others, evidence = matrix[label == 0], matrix[label > 0]
        against, own = others @ weights, evidence @ weights
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
    return loss + ridge / 2 * weights @ weights, gradient + ridge * weights, curvature + ridge * np.eye(width)


# --- what it is worth, and writing it ---------------------------------------------------------------------------


def worth(asked: Sequence[Example], by_sort: Sequence[Weights]) -> dict[str, float]:
    """Return the mean share of the evidence at some depths; of notes in how many a page that answers is there."""
    met = []
    for x in asked:
        if not x.asked.is_learned_from:
            continue
        order = np.argsort(-score(x, by_sort), kind="stable")
        found = list(dict.fromkeys(x.ids[number] for number in order))
        shares = [len(x.asked.answers & set(found[:depth])) / len(x.asked.answers) for depth in DEPTHS]
        met.append(shares if x.asked.sort == TALK else np.ceil(shares))
    return {f"at_{depth}": round(100 * float(share), 1) for depth, share in zip(DEPTHS, np.mean(met, 0), strict=True)}


def write_weights(by_sort: Sequence[Weights], column: int) -> None:
    """Replace the columns of the learned tables in `brainiac/search/rank.py`."""
    values: dict[str, list[float]] = {}
    for sort, weights in enumerate(by_sort):
        for name, value in [*zip(weights.names, weights.alone, strict=True), *zip(AROUND, weights.around, strict=True)]:
            values.setdefault(name, [0.0] * N_SORTS)[sort] = float(value) * weights.scale
    for name, sorts in AS_IN_TALK.items():
        for sort in sorts:
            values[name][sort] = values[name][TALK]
    for name, sort in zip(SORT_SIGNALS, (TALK, NOTES), strict=True):
        values[name] = [by_sort[sort].start if number == sort else 0.0 for number in range(N_SORTS)]

    def row(match: re.Match[str]) -> str:
        figures = [float(figure) for figure in match[2].split(",")]
        figures[column : column + N_SORTS] = values.get(match[1], [0.0] * N_SORTS)
        return f'    "{match[1]}": ({", ".join(f"{figure:.2f}" for figure in figures)}),'

    path = Path(rank.__file__)
    table = rf'^    "(\w+)": \(((?:-?[\d.]+, ){{{2 * N_SORTS - 1}}}-?[\d.]+)\),$'
    text = re.sub(table, row, path.read_text("utf-8"), flags=re.MULTILINE)
    path.write_text(text.replace("-0.00", "0.00"), "utf-8")


def main() -> None:
    """Learn, print what it is worth, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the conversations of LoCoMo")
    parser.add_argument("--notes", type=Path, nargs=2, action="append", required=True, metavar=("FILE", "FOLDER"))
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [
            list(talk_sources(arguments.data, folder)),
            list(fact_sources(folder)),
            list(note_sources(arguments.notes, folder)),
        ]
        found = [[examples(source, arguments.embedder) for source in of_sort] for of_sort in sources]
        mixed = [x for source in mixed_sources(sources, folder) for x in examples(source, arguments.embedder)]
    talk, facts, pages = found

    def flat(groups: Sequence[list[Example]], left_out: Sequence[int] = ()) -> list[Example]:
        return [x for number, group in enumerate(groups) if number not in left_out for x in group]

    for number, conversation in enumerate(talk):
        weights = learn([flat(talk, [number]), flat(facts)], OTHER_SIGNALS, TALK)
        print("talk", sources[TALK][number].name, worth(conversation, [weights] * N_SORTS), flush=True)
    for fold in range(FOLDS):
        held_out = range(len(facts))[fold::FOLDS]
        weights = learn([flat(facts, held_out)], OTHER_SIGNALS, FACTS)
        print("facts", fold, worth([x for number in held_out for x in facts[number]], [weights] * N_SORTS), flush=True)
    for number, group in enumerate(pages if len(pages) > 1 else []):
        weights = learn([flat(pages, [number])], NOTES_SIGNALS, NOTES)
        print("notes", sources[NOTES][number].name, worth(group, [weights] * N_SORTS), flush=True)
    by_sort = [
        learn([flat(talk), flat(facts)], OTHER_SIGNALS, TALK),
        learn([flat(facts)], OTHER_SIGNALS, FACTS),
        learn([flat(pages)], NOTES_SIGNALS, NOTES),
    ]
    calibrate(by_sort, [[x for x in mixed if x.asked.sort == sort] for sort in range(N_SORTS)])
    print("mixed", *(worth([x for x in mixed if x.asked.sort == sort], by_sort) for sort in range(N_SORTS)))
    if arguments.write:
        write_weights(by_sort, BY_WORDS if arguments.embedder == "none" else WITH_MEANING)


if __name__ == "__main__":
    main()
