"""How often a wish or a secret is told from an ordinary message by meaning (`brainiac/search/wishes.py`).

    python benchmarks/wishes.py            # measure
    python benchmarks/wishes.py --write    # learn the directions from the examples, and write the packaged file

A wish asks to forget something, not to keep it, to correct or remember it, for the tasks, for help, and so on.
`data/wishes/examples.json` holds examples of each kind, and of what only sounds like them; with the messages of
`data/questions` they are all that is learned from. `dev.json` was looked at; the texts of `blind.json`, `talk.json` and
`talk_ordinary.json` never were, but the figures of the latter two chose between ways to learn. Questions for several
things are learned from `lists.json`, and which text answers a question from `answers.json`: pairs of a note that does
and one that only shares its words; both are measured by `everyday.py`. Shown is how many of the
wishes and secrets are found, and how many ordinary messages are taken for one: of these sets, many of which were
written to be mistaken, and of `data/month.json`, `data/unseen` and `data/languages`, which are what people write. Ends
with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.search.embed import Matrix, local_embedder
from brainiac.search.wishes import (
    ANSWERS,
    FILE,
    LIST,
    PRIVATE,
    SECRET,
    WISH,
    WISHES,
    directions,
    kinds_near,
    own_sentences,
)  # fmt: skip
from brainiac.text.tokens import pieces

DATA = Path(__file__).parent / "data"
PACKAGED = Path(__file__).parent.parent / "brainiac" / "search" / FILE
RIDGE, SECRET_RIDGE = 1e-4, 1e-3
# of the examples of a kind, of other kinds, of what sounds alike, of ordinary messages
WEIGHTS, SECRET_WEIGHTS = (1.0, 0.5, 4.0, 2.0), (1.0, 2.0, 2.0)
FOLDS = 5  # of the examples, each held out once for choosing the thresholds
TAKEN, ALIKE = 0.025, 1 / 3  # so much may be taken for a wish where so many sound alike, more than what people write
LISTED = 0.06  # so much of questions for one thing may be taken for one for several: it costs little
DOUBTED = 0.07  # so many of the notes that answer are doubted
SCALE = 20.0  # of the products beside their sum
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


def direction(*groups: Matrix, weighted: Sequence[float] = WEIGHTS, ridge: float = RIDGE) -> Matrix:
    """Return the direction of the first group, its offset last, by logistic regression with a ridge penalty."""
    vectors = np.concatenate(groups)
    mean = vectors.mean(0)
    rows = np.c_[vectors - mean, np.ones(len(vectors))]
    labels = np.r_[np.ones(len(groups[0])), np.zeros(len(vectors) - len(groups[0]))]
    weights = np.concatenate(
        [np.full(len(group), weight / len(group)) for group, weight in zip(groups, weighted, strict=True)]
    )
    penalty = ridge * np.diag(np.r_[np.ones(len(mean)), 0])
    found = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (chance - labels)) + penalty @ found
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows + penalty
        found -= np.linalg.solve(curve, slope)
    return np.r_[found[:-1], found[-1] - mean @ found[:-1]].astype(np.float32)


def secret_direction(groups: Mapping[str, Matrix]) -> Matrix:
    """Return the direction of `SECRET`; it has no threshold."""
    other, told = np.concatenate([groups[WISH], groups["other"]]), groups["told"]
    weights = direction(groups[SECRET], other, told, weighted=SECRET_WEIGHTS, ridge=SECRET_RIDGE)
    told = told[told @ weights[:-1] + weights[-1] < 0]  # some of what people told is one
    return direction(groups[SECRET], other, told, weighted=SECRET_WEIGHTS, ridge=SECRET_RIDGE)


def wish_directions(groups: Mapping[str, Matrix]) -> list[Matrix]:
    """Return the directions of `WISHES`, each learned against other kinds, what sounds alike, and ordinary messages."""
    learned = []
    for kind in WISHES:
        own = (PRIVATE, WISH) if kind == PRIVATE else (kind,)  # one line names the commands of both
        kinds = np.concatenate([groups[other] for other in (*WISHES, SECRET) if other not in own])
        learned.append(
            direction(np.concatenate([groups[name] for name in own]), kinds, groups["alike"], groups["told"])
        )
    return learned


def thresholds(groups: Mapping[str, Matrix]) -> Matrix:
    """Return what each of `WISHES` has to exceed so that `TAKEN` of messages do, by examples that are held out once."""
    chance, scores = np.random.default_rng(0), {"alike": list[Matrix](), "told": list[Matrix]()}
    folds = {name: chance.permutation(len(vectors)) % FOLDS for name, vectors in groups.items()}
    for fold in range(FOLDS):
        learned = np.array(wish_directions({name: group[folds[name] != fold] for name, group in groups.items()}))
        for name, rows in scores.items():
            rows.append(groups[name][folds[name] == fold] @ learned[:, :-1].T + learned[:, -1])
    alike, told = map(np.concatenate, scores.values())
    for share in np.linspace(TAKEN, 0, 51):  # for each kind: what is taken adds up
        least = np.quantile(alike, 1 - share, axis=0)
        if ALIKE * (alike > least).any(1).mean() + (1 - ALIKE) * (told > least).any(1).mean() <= TAKEN:
            break
    return least


def out_of_fold(scored: Callable[[Matrix], Matrix], n: int) -> Matrix:
    """Return the score of each of n examples by what was learned without it.

    Args:
        scored: Returns the scores of all by what is learned from those that a mask names.
    """
    folds, scores = np.random.default_rng(0).permutation(n) % FOLDS, np.empty(n)
    for fold in range(FOLDS):
        scores[folds == fold] = scored(folds != fold)[folds == fold]
    return scores


def list_direction(told: Matrix) -> Matrix:
    """Return the direction of a question for several things."""
    data = read(DATA / "wishes" / "lists.json")
    several = embedded(data["list"])
    one = embedded([*data["one"], *(row["question"] for row in read(DATA / "wishes" / "answers.json"))])

    def learned(mask: Matrix) -> Matrix:
        return direction(several, one[mask], told, weighted=(1.0, 2.0, 2.0))

    def scored(mask: Matrix) -> Matrix:
        return one @ learned(mask)[:-1] + learned(mask)[-1]

    weights = learned(np.ones(len(one), bool))
    weights[-1] -= np.quantile(out_of_fold(scored, len(one)), 1 - LISTED)
    return weights


def answer_weights() -> Matrix:
    """Return the weights of the products of a question's vector and a note's by which it answers; an offset last."""
    rows = read(DATA / "wishes" / "answers.json")
    asked = embedded(row["question"] for row in rows)
    does, misses = (asked * local_embedder().embed([row[kind] for row in rows]) for kind in ("answers", "misses"))

    def learned(mask: Matrix) -> Matrix:
        parts = [np.c_[part[mask].sum(1, keepdims=True) * SCALE, part[mask] * SCALE] for part in (does, misses)]
        weights = direction(*parts, weighted=(1.0, 1.0), ridge=1e-3)
        return np.r_[SCALE * (weights[1:-1] + weights[0]), weights[-1]]

    weights = learned(np.ones(len(rows), bool))
    held_out = out_of_fold(lambda mask: does @ learned(mask)[:-1] + learned(mask)[-1], len(rows))
    weights[-1] -= np.quantile(held_out, DOUBTED)
    return weights


def learn() -> dict[str, Any]:
    examples = read(DATA / "wishes" / "examples.json")
    groups = {name: embedded(texts) for name, texts in examples.items()}
    wishes = {text for kind in WISHES for text in examples[kind]}
    groups["alike"] = embedded(text for name in ("other", "ordinary") for text in examples[name] if text not in wishes)
    groups["told"] = embedded(sentence for text in messages(DATA / "questions") for sentence in pieces(text))
    learned = {SECRET: secret_direction(groups)}
    for kind, weights, least in zip(WISHES, wish_directions(groups), thresholds(groups), strict=True):
        learned[kind] = np.r_[weights[:-1], weights[-1] - least]
    learned |= {LIST: list_direction(groups["told"]), ANSWERS: answer_weights()}
    return {kind: [round(float(part), 3) for part in weights] for kind, weights in learned.items()}


def found(texts: Iterable[str], kind: str) -> list[str]:
    kinds = {WISH, PRIVATE} if kind == WISH else {kind}  # one line serves both
    return [text for text in texts if kinds & kinds_near(list(embedded(own_sentences(text) or [text])))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PACKAGED.write_text(json.dumps(directions() | {"embedder": local_embedder().name} | learn()) + "\n")
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
    ordinary = [row["text"] for row in read(DATA / "wishes" / "talk_ordinary.json")]
    taken = [kind for kind in WISHES if kind != PRIVATE for _ in found(ordinary, kind)]
    result["talk"] = {"ordinary_taken": len(taken), "ordinary": len(ordinary)}
    print(f"talk   taken for a wish {len(taken)} of {len(ordinary)} ordinary: {' '.join(taken)}")
    rows = read(DATA / "wishes" / "talk.json")
    for wish in dict.fromkeys(row["wish"] for row in rows):
        texts = [row["text"] for row in rows if row["wish"] == wish]
        hits = found(texts, wish if wish in ("correct", "remember") else WISH)
        result["talk"][wish] = len(hits)
        print(f"talk   {wish}: {len(hits)} of {len(texts)}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
