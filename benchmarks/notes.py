"""Pages found by paraphrased queries in folders of real notes: public documentation, as a person keeps long pages.

    python benchmarks/notes.py benchmarks/data/notes/hatch.json FOLDER [more pairs of file and folder]
    python benchmarks/notes.py --embedder none benchmarks/data/notes/hatch.json FOLDER

A file is `{"package", "folder", "questions": [{"text", "pages": [paths]}]}`: FOLDER is the folder of that name in the
package's source distribution (`pip download --no-binary :all: --no-deps hatch==1.18.2`), which is no part of the
project. Queries were written from the pages' headings, in other words, by somebody who had not seen any ranking.
Shown is how often a page that answers stands first, among five and among ten, for the product and for the usual ways:
BM25 over paragraphs (the best of each page), over whole pages, and SQLite FTS5. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.baselines import Find, bm25s, fts5, okapi, trigrams
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


def usual_ways(notes: Path) -> Iterator[tuple[str, Callable[[str], Sequence[str]]]]:
    """Yield what the product is compared by."""
    texts = {str(file.relative_to(notes)): file.read_text("utf-8") for file in sorted(notes.rglob("*.md"))}
    paragraphs = [(name, part) for name, text in texts.items() for part in text.split("\n\n") if part.strip()]

    def by_page(find: Find, names: Sequence[str]) -> Callable[[str], Sequence[str]]:
        return lambda text: list(dict.fromkeys(names[number] for number in find(text, UNITS)))

    names, parts = [name for name, _ in paragraphs], [part for _, part in paragraphs]
    if library := bm25s(parts):
        yield "bm25s_paragraphs", by_page(library, names)
    yield "bm25_paragraphs", by_page(okapi(parts), names)
    yield "bm25_pages", by_page(okapi(list(texts.values())), list(texts))
    yield "fts5_pages", by_page(fts5(list(texts.values())), list(texts))
    yield "trigrams_paragraphs", by_page(trigrams(parts), names)


def main() -> None:
    """Measure the pairs of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="+", help="a file of questions, then its folder of notes")
    parser.add_argument("--embedder", default="", help="of the product; without it: none, then auto")
    arguments = parser.parse_args()
    results: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        for path, notes in zip(arguments.pairs[::2], arguments.pairs[1::2], strict=True):
            questions, root = read(path), Path(name) / path.stem
            build_brain(notes, root)
            row = results[path.stem] = {way: measure(questions, find) for way, find in usual_ways(notes)}
            for embedder in [arguments.embedder] if arguments.embedder else ["none", "auto"]:
                recall = open_recall(root, root.parent / f"{path.stem}-{embedder}", embedder)
                recall.reindex()
                found = measure(questions, lambda text, recall=recall: pages_found(recall, text))
                row["words" if embedder == "none" else "hybrid"] = found
                recall.close()
            print(path.stem, json.dumps(row, indent=1), file=sys.stderr, flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
