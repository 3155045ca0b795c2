"""Recall on every kind of text in one table, beside the usual ways: FTS5, BM25, runs of signs, the embedder alone, RRF.

    python benchmarks/recall.py --locomo DATA.json --realtalk DATA.json \\
        --notes benchmarks/data/notes/hatch.json FOLDER --notes benchmarks/data/notes/pymdown.json FOLDER

Talk: share of the evidence among ten turns, of all questions and of those that need several turns (category 1); and,
for the product, the share that stands within the 2,000 tokens a model is shown. Facts: how often a message that answers
stands first / among three, asked once; always measured, on the sets that no weight was learned from. Notes: how often a
page that answers stands first / among ten. What is not given is left out. The product is measured by words and with the
embedder. The last line is one of JSON. Time and space are measured by `recall_scale.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import locomo, notes, questions, realtalk
from benchmarks.baselines import WAYS

DATA = Path(__file__).parent / "data"
COLUMNS = (*WAYS, "lexical", "hybrid")
TALK_FIGURES = {"R@10": "r@10", "category 1": "cat1_r@10", "in 2,000 tokens": "in_context"}
Row = Mapping[str, str]


def talk_rows(name: str, results: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, Row]]:
    """Yield a row for each figure of a set of conversations."""
    for label, key in TALK_FIGURES.items():
        yield f"{name}, {label}", {way: f"{scores[key]:.1f}" for way, scores in results.items() if key in scores}


def fact_results(path: Path, embedder: str) -> dict[str, list[float]]:
    """Return how often a message that answers stands first, among three and among five, by way."""
    given = questions.read(path)
    results = questions.measure_usual_ways(given)
    with tempfile.TemporaryDirectory() as name:
        for setting in dict.fromkeys(("none", embedder)):
            measured = questions.measure(given, Path(name), setting, days=1)["asked_1"]
            results["lexical" if setting == "none" else "hybrid"] = measured
    return results


def fact_rows(name: str, sets: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[tuple[str, Row]]:
    """Yield a row for each set of facts, and one for their mean."""
    ways = next(iter(sets.values()))
    means = {way: np.mean([results[way] for results in sets.values()], axis=0).tolist() for way in ways}
    for label, results in {**sets, f"all of {name}": means}.items():
        yield f"facts, {label}", {way: f"{first:.1f} / {three:.1f}" for way, (first, three, *_) in results.items()}


def note_row(results: Mapping[str, Mapping[str, float]]) -> Row:
    """Return the row of a folder of notes."""
    return {way: f"{scores['first']:.1f} / {scores['among_10']:.1f}" for way, scores in results.items()}


def table(rows: Sequence[tuple[str, Row]]) -> str:
    """Return rows as a table in Markdown; a way that was not measured has an empty cell."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for label, row in rows:
        lines.append(f"| {label} | " + " | ".join(row.get(way, "") for way in COLUMNS) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--realtalk", type=Path, metavar="FILE")
    parser.add_argument("--notes", type=Path, nargs=2, action="append", default=[], metavar=("FILE", "FOLDER"))
    parser.add_argument("--embedder", default="auto", help="of the hybrid column; none: words only")
    arguments = parser.parse_args()
    results: dict[str, object] = {}
    rows: list[tuple[str, Row]] = []
    for name, data, read in (
        ("LoCoMo", arguments.locomo, locomo.read),
        ("real chats", arguments.realtalk, realtalk.read),
    ):
        if data:
            measured = results[name] = locomo.measure_all(read(data), arguments.embedder)
            rows += talk_rows(name, measured)
    for folder in ("unseen", "languages"):
        paths = sorted((DATA / folder).glob("*.json"))
        sets = results[folder] = {f"{folder}/{path.stem}": fact_results(path, arguments.embedder) for path in paths}
        rows += fact_rows(folder, sets)
    for path, folder in arguments.notes:
        pages = results[path.stem] = notes.measure_all(path, folder, arguments.embedder)
        rows.append((f"notes, {path.stem}", note_row(pages)))
    print(table(rows))
    print(json.dumps(results, ensure_ascii=False))


if __name__ == "__main__":
    main()
