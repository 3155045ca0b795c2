"""Pages found by paraphrased queries in folders of real notes: public documentation, as a person keeps long pages.

A file is `{"package", "folder", "questions": [{"text", "pages": [paths]}]}`: FOLDER is the folder of that name in the
package's source distribution (`pip download --no-binary :all: --no-deps hatch==1.18.2`), which is no part of the
project. Queries were written from the pages' headings, in other words, by somebody who had not seen any ranking.
Measured is how often a page that answers stands first, among five and among ten; `recall.py` prints it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.baselines import Find, usual_ways
from benchmarks.locomo import open_recall
from brainiac.search.query import searches
from brainiac.search.search import Recall

DEPTHS = (1, 5, 10)
UNITS = 100  # so many paragraphs hold ten pages
LONG_TERM = Path("memory/long_term/concrete")


@dataclass(frozen=True)
class Question:
    """What is asked, and the pages that answer it."""

    text: str
    pages: frozenset[str]


def read(path: Path) -> list[Question]:
    """Read a file of questions."""
    asked = json.loads(path.read_text("utf-8"))["questions"]
    return [Question(one["text"], frozenset(one["pages"])) for one in asked]


def build_brain(notes: Path, root: Path) -> None:
    """Copy every Markdown file into long-term memory, byte for byte."""
    (root / "system").mkdir(parents=True)
    (root / "system" / "core_identity.md").write_text("# Core Identity\n", "utf-8")
    for file in sorted(notes.rglob("*.md")):
        copy = root / LONG_TERM / file.relative_to(notes)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())


def pages_found(recall: Recall, text: str) -> list[str]:
    """Return the pages of the hits, best first, relative to the folder of notes."""
    hits = recall.search(searches(text, ())[0], limit=UNITS)
    return list(dict.fromkeys(str(Path(hit.path).relative_to(LONG_TERM)) for hit in hits))


def measure(questions: Sequence[Question], find: Callable[[str], Sequence[str]]) -> dict[str, float]:
    """Return in how many of a hundred a page that answers stands first, among five, among ten; and the time."""
    took, met = [], []
    for question in questions:
        start = time.process_time()
        found = find(question.text)
        took.append(time.process_time() - start)
        met.append([not question.pages.isdisjoint(found[:depth]) for depth in DEPTHS])
    shares = dict(zip(("first", "among_5", "among_10"), (100 * np.mean(met, axis=0)).round(1).tolist(), strict=True))
    p50, p95 = np.percentile(took, (50, 95)) * 1000
    return {**shares, "p50_ms": round(float(p50), 1), "p95_ms": round(float(p95), 1)}


def measure_usual_ways(notes: Path, questions: Sequence[Question]) -> dict[str, dict[str, float]]:
    """Ask every question in the usual ways, over the paragraphs of all pages; the best one stands for its page."""
    texts = {str(file.relative_to(notes)): file.read_text("utf-8") for file in sorted(notes.rglob("*.md"))}
    paragraphs = [(name, part) for name, text in texts.items() for part in text.split("\n\n") if part.strip()]

    def by_page(find: Find, text: str) -> Sequence[str]:
        return list(dict.fromkeys(paragraphs[number][0] for number in find(text, UNITS)))

    ways = usual_ways([part for _, part in paragraphs])
    return {name: measure(questions, partial(by_page, find)) for name, find in ways}


def measure_all(path: Path, notes: Path, embedder: str) -> dict[str, dict[str, float]]:
    """Return the measures of the product and of the usual ways.

    Args:
        path: The file of questions.
        notes: The folder that they are asked of.
        embedder: Of the hybrid run; `none` leaves it out.
    """
    questions, row = read(path), {}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "brain"
        build_brain(notes, root)
        for setting in dict.fromkeys(("none", embedder)):
            recall = open_recall(root, Path(name) / setting, setting)
            recall.reindex()
            row["lexical" if setting == "none" else "hybrid"] = measure(questions, partial(pages_found, recall))
            recall.close()
    return row | measure_usual_ways(notes, questions)
