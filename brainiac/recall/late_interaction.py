"""How near the words of a question are to the words of a text, each in its context: late interaction.

After ColBERT (Khattab and Zaharia, 2020), with the tokens of the very model that embeds whole texts: one vector a text
loses what stands in a subordinate clause. A token is reduced to its principal parts and kept in bytes, in the cache.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainiac.language.relatedness import ranks
from brainiac.recall.alike import best_in_each, cosines_of
from brainiac.recall.embed import Matrix, unit_norm

PARTS = 64  # recall of 32 and 96 differs by half a percent each way (docs/decisions/ranker.md)
_LISTS, _LIST_WORDS, _OF_WORDS = 400, 8, 3000
_AT_ONCE = 500  # SQLite takes no more values than so many everywhere

EmbedTokens = Callable[[Sequence[str]], tuple[Matrix, Sequence[Matrix]]]


class TokenVectors:
    """Vectors of the tokens of texts, by content hash.

    Args:
        folder: In the cache.
        name: The model's name, fit for a file name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{name}.tokens.db"
        try:
            self._open(path)
        except sqlite3.DatabaseError:  # damaged: all of it can be made again
            path.unlink()
            self._open(path)

    def _open(self, path: Path) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("create table if not exists axes (place integer primary key, axis blob)")
        self._db.execute("create table if not exists tokens (key integer primary key, vectors blob)")
        self._axes: Matrix | None = None
        rows = self._db.execute("select axis from axes order by place").fetchall()
        if len(rows) == PARTS + 1:
            self._axes = np.frombuffer(b"".join(row[0] for row in rows), np.float32).reshape(PARTS + 1, -1)

    @property
    def is_new(self) -> bool:
        """Whether nothing can be in it yet."""
        return self._axes is None

    def learn(self, embed_tokens: EmbedTokens) -> None:
        """Find the principal parts of a model's tokens from lists of common words; the same words give the same.

        Raises:
            EmbedderError: The model fails.
        """
        random, words = np.random.default_rng(0), list(ranks())[:_OF_WORDS]
        lists = [" ".join(random.choice(words, _LIST_WORDS, replace=False)) for _ in range(_LISTS)]
        tokens = np.concatenate(embed_tokens(lists)[1])
        centre = tokens.mean(0, keepdims=True)
        _, _, parts = np.linalg.svd((tokens - centre).T @ (tokens - centre))
        self._axes = np.concatenate((centre, parts[:PARTS])).astype(np.float32)
        rows = [(place, axis.tobytes()) for place, axis in enumerate(self._axes)]
        self._db.executemany("insert or replace into axes values (?, ?)", rows)

    def add(self, keys: Sequence[int], tokens: Sequence[Matrix]) -> None:
        """Keep the tokens of texts."""
        kept = [self._reduced(own).tobytes() for own in tokens]
        self._db.execute("begin immediate")
        with contextlib.closing(self._db.cursor()) as cursor:
            cursor.executemany("insert or replace into tokens values (?, ?)", zip(_signed(keys), kept, strict=True))
        self._db.execute("commit")

    def nearness(self, keys: NDArray[np.uint64], asked: Matrix) -> NDArray[np.float64]:
        """Return `(n_asked, n_keys)`: how near each text's nearest token is to each asked one; 0 where there is none.

        Args:
            keys: Content hashes of texts.
            asked: Tokens of the question, as the model gives them.
        """
        wanted = _signed(keys)
        found: dict[int, bytes] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            found.update(self._db.execute(f"select key, vectors from tokens where key in ({marks})", some).fetchall())
        kept = [found.get(key, b"") for key in wanted]
        counts = np.array([len(own) // PARTS for own in kept])
        tokens = np.frombuffer(b"".join(kept), np.int8).reshape(-1, PARTS)
        return best_in_each(np.maximum(cosines_of(self._reduced(asked), tokens), 0), counts)

    def _reduced(self, tokens: Matrix) -> NDArray[np.int8]:
        """Return tokens by their principal parts, of length 127."""
        assert self._axes is not None
        reduced: NDArray[np.int8] = np.round(unit_norm((tokens - self._axes[0]) @ self._axes[1:].T) * 127).astype(
            np.int8
        )
        return reduced

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def _signed(keys: Sequence[int] | NDArray[np.uint64]) -> list[int]:
    """Return 64-bit hashes as the numbers that SQLite takes."""
    signed: list[int] = np.asarray(keys, np.uint64).view(np.int64).tolist()
    return signed
