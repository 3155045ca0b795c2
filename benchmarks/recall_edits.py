"""Thousands of random edits, moves and deletions by hand while queries run: the index must equal a rebuild.

    python benchmarks/recall_edits.py [--edits 10000]

Every query's results are then compared with those of an index built from scratch, scores included. Every fiftieth
edit is looked for at once. Ends with one line of JSON; exit code 1 when anything differs or was missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.recall_scale import vocabulary, write_brain
from brainiac.search.documents import Hit
from brainiac.search.search import Recall
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree

MEMORIES = 2000
CHECK_EVERY = 50


def open_recall(root: Path, cache: Path) -> Recall:
    """Return a search with an index of its own."""
    places = LocalPlaces(state=cache, cache=cache, config=cache / "config.yaml", device=cache)
    return Recall(Tree(root), places, Settings(recall=RecallSettings(embedder="none")))


class Hand:
    """Somebody who edits, moves and deletes files, and tells of each."""

    def __init__(self, root: Path, recall: Recall) -> None:
        self._root, self._recall, self._random = root, recall, random.Random(3)
        self._words = vocabulary(self._random)[0][:3000]
        self._paths = sorted(str(path.relative_to(root)) for path in (root / "memory").rglob("*.md"))
        self.missed = 0

    def edit(self, number: int) -> None:
        """Do one thing to one file."""
        place = self._random.randrange(len(self._paths))
        path = self._paths[place]
        what = self._random.choices(["write", "move", "delete"], [6, 2, 1])[0]
        if what == "write":
            self._write(path, number)
        elif what == "move":
            moved = f"memory/long_term/concrete/g{number % 37}/n{number}.md"
            (self._root / moved).parent.mkdir(exist_ok=True)
            (self._root / path).rename(self._root / moved)
            self._paths[place] = moved
            self._tell(path, moved)
        else:
            (self._root / path).unlink()
            self._paths[place] = f"memory/long_term/concrete/new/n{number}.md"
            self._tell(path)
            self._write(self._paths[place], number)

    def _write(self, path: str, number: int) -> None:
        words = " ".join(self._random.choices(self._words, k=30))
        (self._root / path).parent.mkdir(exist_ok=True)
        (self._root / path).write_text(f"# Page {number}\n\n- User {words} mark{number}. ^e{number}\n", "utf-8")
        self._tell(path)
        if number % CHECK_EVERY == 0:
            found = self._recall.search(f"mark{number}", limit=1)
            self.missed += [path] != [hit.path for hit in found]

    def _tell(self, *paths: str) -> None:
        for path in paths:
            self._recall.note_change(path)


def _places(hits: list[Hit]) -> list[tuple[str, str]]:
    return [(hit.path, hit.anchor) for hit in hits]


def main() -> None:
    """Edit while querying, then compare with a rebuild."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=10_000)
    edits = parser.parse_args().edits
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "brain"
        queries = write_brain(root, MEMORIES)
        recall = open_recall(root, Path(name) / "live")
        recall.reindex()
        done, asked = threading.Event(), [0]

        def ask() -> None:
            while not done.is_set():
                recall.search(queries[asked[0] % len(queries)])
                asked[0] += 1

        asking = threading.Thread(target=ask)
        asking.start()
        hand, start = Hand(root, recall), time.perf_counter()
        for number in range(edits):
            hand.edit(number)
        took = time.perf_counter() - start
        done.set()
        asking.join()
        recall.flush()
        fresh = open_recall(root, Path(name) / "fresh")
        fresh.reindex()
        pairs = [(recall.search(query, limit=20), fresh.search(query, limit=20)) for query in queries]
        pairs += [(recall.search(f"mark{n}"), fresh.search(f"mark{n}")) for n in range(0, edits, 7)]
        differing = sum(one != other for one, other in pairs)
        reordered = sum(_places(one) != _places(other) for one, other in pairs)
        for opened in (recall, fresh):
            opened.close()
    result = {"edits": edits, "seconds": round(took, 1), "queries_meanwhile": asked[0], "missed": hand.missed}
    result |= {"compared": len(pairs), "other_scores": differing, "other_hits": reordered}
    print(json.dumps(result))
    sys.exit(bool(reordered or hand.missed))


if __name__ == "__main__":
    main()
