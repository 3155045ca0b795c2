"""How often a wish or a secret is told from an ordinary message by meaning (`brainiac/search/wishes.py`).

    python benchmarks/wishes.py            # measure
    python benchmarks/wishes.py --write    # learn the directions from the examples, and write the packaged file

A wish asks to forget something or not to keep it. `data/wishes/examples.json` holds examples of wishes, of secrets, and
of what only sounds like them; with the messages of `data/questions` they are all that is learned from. Examples were
added until `dev.json` looked right; `blind.json` was written before any of it and never looked at for that. Shown is
how many of the wishes and secrets are found, and how many ordinary messages are taken for one: of `dev` and `blind`,
most of which were written to be mistaken, and of the messages of `data/month.json`, `data/unseen` and `data/languages`,
which are what people write. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.search.embed import Matrix, local_embedder
from brainiac.search.wishes import FILE, SECRET, WISH, kinds_near, own_sentences
from brainiac.text.tokens import pieces

DATA = Path(__file__).parent / "data"
PACKAGED = Path(__file__).parent.parent / "brainiac" / "search" / FILE
RIDGE = 1e-3
WEIGHTS = (1.0, 2.0, 2.0)  # of the examples of a kind, of the other examples, and of ordinary messages
STEPS = 15  # of Newton's method


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def messages(folder: Path) -> Iterator[str]:
    """Yield what is told and asked in the sets of a folder."""
    for path in sorted(folder.glob("*.json")):
        data = read(path)
        yield from (row["text"] for row in (*data["told"], *data["questions"]))


def embedded(texts: Iterable[str]) -> Matrix:
    return local_embedder().embed(list(texts), is_query=True)


def direction(kind: Matrix, other: Matrix, ordinary: Matrix) -> Matrix:
    """Return the direction, its offset last, by logistic regression with a ridge penalty."""
    groups = (kind, other, ordinary)
    vectors = np.concatenate(groups)
    mean = vectors.mean(0)
    rows = np.c_[vectors - mean, np.ones(len(vectors))]
    labels = np.r_[np.ones(len(kind)), np.zeros(len(other) + len(ordinary))]
    weights = np.concatenate(
        [np.full(len(group), weight / len(group)) for group, weight in zip(groups, WEIGHTS, strict=False)]
    )
    penalty = RIDGE * np.diag(np.r_[np.ones(len(mean)), 0])
    found = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (chance - labels)) + penalty @ found
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows + penalty
        found -= np.linalg.solve(curve, slope)
    return np.r_[found[:-1], found[-1] - mean @ found[:-1]].astype(np.float32)


def learn() -> dict[str, Any]:
    examples = {kind: embedded(texts) for kind, texts in read(DATA / "wishes" / "examples.json").items()}
    told = [sentence for text in messages(DATA / "questions") for sentence in pieces(text)]
    ordinary = embedded(told)
    learned: dict[str, Any] = {"embedder": local_embedder().name}
    for kind in (WISH, SECRET):
        other = np.concatenate([vectors for name, vectors in examples.items() if name != kind])
        weights = direction(examples[kind], other, ordinary)
        if kind == SECRET:  # some of what people told is one
            is_other = ordinary @ weights[:-1] + weights[-1] < 0
            weights = direction(examples[kind], other, ordinary[is_other])
        learned[kind] = [round(float(part), 3) for part in weights]
    return learned


def found(texts: Iterable[str], kind: str) -> list[str]:
    return [text for text in texts if kind in kinds_near(list(embedded(own_sentences(text) or [text])))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PACKAGED.write_text(json.dumps(learn()) + "\n")
        return
    people = [row["text"] for row in read(DATA / "month.json") if not row["text"].startswith("/")]
    people += [*messages(DATA / "unseen"), *messages(DATA / "languages")]
    result: dict[str, Any] = {}
    for name in ("dev", "blind", "people"):
        data = {"ordinary": people} if name == "people" else read(DATA / "wishes" / f"{name}.json")
        for kind in (WISH, SECRET):
            wrong = found(data["ordinary"], kind)
            hits = found(data.get(kind, ()), kind)
            result[f"{name}_{kind}"] = {
                "found": len(hits), "of": len(data.get(kind, ())),
                "ordinary_taken": len(wrong), "ordinary": len(data["ordinary"]),
            }  # fmt: skip
            print(f"{name:7}{kind:7} found {len(hits)} of {len(data.get(kind, ()))},"
                  f" taken for one {len(wrong)} of {len(data['ordinary'])} ordinary")  # fmt: skip
            if name != "blind":
                for text in wrong[:20]:
                    print("          taken:", " ".join(text.split())[:120])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
