"""Learn the weights of `brainiac/llm/offline/weights.py` and say what they are worth on sets they never saw.

    python benchmarks/offline_weights.py benchmarks/data/offline_dev*.json

Every statement, and "none", is a class of a softmax: a statement's score is the weighted sum of its figures, that of
"none" is 0. Weights are drawn towards `PRIOR`, what one would expect before seeing a question: the sets are small.
Printed are the figures of each set with weights learned on the others, their means, then the table to keep. Which
figures, rules and thresholds stay was chosen by those means; the sets' words were seen all the same, so a new writer
fares somewhat worse.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from offline import prompt_of, run, tell

from brainiac.clock import parse_iso
from brainiac.llm.offline import OfflineEngine, weights
from brainiac.llm.offline.evidence import Evidence, gather
from brainiac.llm.offline.features import asked_of, figures_of
from brainiac.llm.offline.questions import Question, parse_question
from brainiac.llm.offline.wording import quote

PRIOR = {
    "coverage": 3.0,
    "exactly": 0.5,
    "matter": 2.0,
    "unmet": -1.0,
    "density": 1.0,
    "lacks name": -2.0,
    "holds": 1.5,
    "lacks kind": -2.0,
    "surely lacks kind": -2.0,
    "own": 0.5,
    "another's": -1.5,
    "past": -2.5,
    "another time": -2.0,
    "task": -1.0,
    "of oneself": 5.0,
}
LENIENCE = 0.3  # added to "always": a wrong answer is quoted and dated, so a false "nothing" costs more
PULL = 0.01  # of a weight towards its prior, for each step
STEPS, RATE = 300, 0.15
MEASURES = ("first_line", "abstained", "false_nothing")
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """One question beside every statement: figures, and which statements answer it (none of an unanswerable one)."""

    figures: Matrix  # (n_statements, n_figures)
    is_right: NDArray[np.bool_]


def examples_of(path: Path) -> list[Example]:
    """Return the questions of a set that ask for one statement; lists and "before" are answered by rule."""
    data = json.loads(path.read_text("utf-8"))
    evidence = gather(tell(OfflineEngine(), data["statements"]), (), "english")
    said = {one["id"]: one["text"] for one in data["statements"]}
    known = frozenset().union(*(one.sentence.names for one in evidence))
    examples = []
    for asked in data["questions"]:
        text = prompt_of(asked["text"], asked["at"]).text
        question = parse_question(text, parse_iso(asked["at"]), "english", known)
        example = _example(question, asked, evidence, said)
        if example is not None and (asked["kind"] == "unanswerable" or example.is_right.any()):
            examples.append(example)
    return examples


def _example(
    question: Question, asked: Mapping[str, Any], evidence: Sequence[Evidence], said: Mapping[str, str]
) -> Example | None:
    if asked.get("all") or question.asks_former or asked["kind"] == "last-week":
        return None
    beside = asked_of(question, evidence)
    answers = [said[one] for one in asked["answers"]]
    rows = [[figures_of(beside, one).values[name] for name in weights.WEIGHTS] for one in evidence]
    return Example(np.array(rows), np.array([_is_right(one, answers, asked) for one in evidence]))


def _is_right(one: Evidence, answers: Sequence[str], asked: Mapping[str, Any]) -> bool:
    utterance, shown = one.sentence.utterance.strip(), quote(one).lower()
    if not any(utterance == answer.strip() or utterance in answer for answer in answers):
        return False
    lacking = any(word.lower() not in shown for word in asked["must_contain"])
    return not lacking and not any(word.lower() in shown for word in asked["must_not_contain"])


def learn(examples: Sequence[Example]) -> Matrix:
    """Return the weights that make the right choices likeliest (Adam on the softmax's loss)."""
    most, count = max(len(one.figures) for one in examples), len(weights.WEIGHTS)
    figures = np.zeros((len(examples), most, count))
    mask, right = np.full((len(examples), most), -1e9), np.zeros((len(examples), most))
    for i, one in enumerate(examples):
        figures[i, : len(one.figures)], mask[i, : len(one.figures)] = one.figures, 0
        right[i, : len(one.figures)] = one.is_right
    prior = np.array([PRIOR.get(name, 0.0) for name in weights.WEIGHTS])
    pulled = np.array([0.0 if name == "always" else PULL for name in weights.WEIGHTS])
    found, mean, square = np.zeros(count), np.zeros(count), np.zeros(count)
    for step in range(1, STEPS + 1):
        scores = np.concatenate([figures @ found + mask, np.zeros((len(examples), 1))], axis=1)
        chance = np.exp(scores - scores.max(1, keepdims=True))
        chance = (chance / chance.sum(1, keepdims=True))[:, :-1]
        wanted = chance * right
        wanted /= np.maximum(wanted.sum(1, keepdims=True), 1e-12)
        slope = np.einsum("ij,ijk->k", chance - wanted, figures) / len(examples) + pulled * (found - prior)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        pace = RATE * (1 if step < 0.7 * STEPS else 0.2)
        found = found - pace * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    found[list(weights.WEIGHTS).index("always")] += LENIENCE
    return found


def keep(found: Matrix) -> None:
    """Let the engine of this process use the weights."""
    weights.WEIGHTS.update(zip(weights.WEIGHTS, (round(float(one), 2) for one in found), strict=True))


def main() -> int:
    """Read the arguments, print the figures of left-out sets and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--show", action="store_true", help="print what went wrong in each left-out set")
    arguments = parser.parse_args()
    examples = {path: examples_of(path) for path in arguments.sets}
    left_out: list[dict[str, Any]] = []
    for path in arguments.sets:
        keep(learn([one for other, found in examples.items() if other != path for one in found]))
        with contextlib.redirect_stdout(sys.stdout if arguments.show else io.StringIO()):
            figures = run(path, memory=False, show=arguments.show)
        print(json.dumps(figures), flush=True)
        left_out.append(figures)
    means = {name: sum(one[name] for one in left_out) / len(left_out) for name in MEASURES}
    print(json.dumps({"set": "mean", **{name: round(mean, 3) for name, mean in means.items()}}))
    keep(learn([one for found in examples.values() for one in found]))
    for name, value in weights.WEIGHTS.items():
        print(f'    "{name}": {value},')
    return 0


if __name__ == "__main__":
    sys.exit(main())
