"""Does the newest of two tellings of the same stand first, and only then?

    python benchmarks/newest.py FILE [--show]
    python benchmarks/newest.py --write      # learn the direction of what sounds new, and write the packaged file

`changes` are things told twice, the second time with another value; `decoys` are followed by what looks alike: about
another subject, a plan, what might be, an older time told later. Each is told in a brain of its own among thirty other
messages, and asked for. Shown is in how many of a hundred the newer stands first. The direction (`now` in
`wishes.json`) is learned from `data/newest/examples.json`, which shares no text with the stories; the two thresholds
in `search/retrieval.py` were chosen on `dev.json`. Needs the local embedder.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import questions
from brainiac.clock import iso
from brainiac.formats.markdown import StmEvent
from brainiac.search import wishes
from brainiac.search.embed import local_embedder
from brainiac.search.query import searches

EXAMPLES = Path(__file__).parent / "data" / "newest" / "examples.json"
PACKAGED = Path(wishes.__file__).parent / wishes.FILE
START = datetime(2025, 6, 1, 9, tzinfo=UTC)
BETWEEN, RIDGE = 30, 3.0


def direction() -> np.ndarray:
    """Return the direction from examples of what does not sound new to such that do, its offset last."""
    examples = json.loads(EXAMPLES.read_text("utf-8"))
    vectors = np.array(local_embedder().embed([*examples["new"], *examples["other"]]))
    wanted = np.r_[np.ones(len(examples["new"])), -np.ones(len(examples["other"]))]
    mean, middle = vectors.mean(0), wanted.mean()
    rows = vectors - mean
    penalty = RIDGE * float((rows**2).sum(1).mean()) * np.eye(len(rows))
    found = rows.T @ np.linalg.solve(rows @ rows.T + penalty, wanted - middle)
    return np.r_[found, middle - mean @ found]


def first_found(first: str, later: str, question: str, between: list[str], folder: Path) -> str:
    """Tell a story in a brain of its own, ask, and return the text that is found first."""
    texts = [*between[:10], first, *between[10:20], later, *between[20:]]
    told = [StmEvent(f"x{n:03d}", iso(START + timedelta(days=2 * n)), text) for n, text in enumerate(texts)]
    questions.build_brain(told, folder / "brain")
    recall = questions.open_recall(folder / "brain", folder / "cache", "en", "local")
    recall.reindex()
    hits = recall.search(searches(question, ())[0], limit=1, now=START + timedelta(days=90))
    recall.close()
    return hits[0].text if hits else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true", help="name what went wrong")
    arguments = parser.parse_args()
    if arguments.write:
        found = [round(float(part), 3) for part in direction()]
        PACKAGED.write_text(json.dumps(wishes.directions() | {wishes.NOW: found}) + "\n")
    if arguments.data is None:
        return
    data, chance, result = json.loads(arguments.data.read_text("utf-8")), random.Random(0), dict[str, float]()
    for kind, names in (("changes", ("old", "new")), ("decoys", ("first", "later"))):
        newer, former = [], []
        for row in data[kind]:
            first, later = (row[name] for name in names)
            with tempfile.TemporaryDirectory() as folder:
                found = first_found(
                    first, later, row["question"], chance.sample(data["between"], BETWEEN), Path(folder)
                )
            newer.append(found == later)
            former.append(found == first)
            if arguments.show and newer[-1] != (kind == "changes"):
                print(kind, "|", first, "|", later, "|", found)
        result[f"{kind}_newer_first"] = round(100 * float(np.mean(newer)), 1)
        result[f"{kind}_former_first"] = round(100 * float(np.mean(former)), 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
