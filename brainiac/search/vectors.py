"""Vectors of units, kept by content: a move or an edit of the front matter recomputes none.

They live in the cache folder, one file a model, float16, appended to; what is found by meaning joins the candidates
of the words, and how near each unit is becomes a signal of the ranking. Cosines are those of vectors with the brain's
mean taken out: with many models all texts lie close together, and only what sets them apart tells anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainiac.search.embed import Embedder, EmbedderError
from brainiac.search.encode import content_key
from brainiac.search.neighbours import EXACT_ROWS, Neighbours
from brainiac.search.signals import Signals, Units
from brainiac.search.units import Page, Unit

_NEAREST = 100
_PAUSE_SECONDS = 60.0
_MOST_PARTS = 65_536
_PRIOR_ROWS = 10  # a mean of few vectors is hardly that of all there will be
_GOOD_COSINE = 0.6  # what comes so near counts in full; a query that nothing is near to lifts nothing


class VectorFile:
    """An append-only file of vectors by content hash.

    Args:
        folder: In the cache.
        name: The model's name.
        exact_rows: With more rows than this, the nearest are found by a graph.
    """

    def __init__(self, folder: Path, name: str, exact_rows: int = EXACT_ROWS) -> None:
        safe = "".join(sign if sign.isalnum() or sign in "-." else "_" for sign in name)
        self._path = folder / f"{safe}.f16"
        self._neighbours = Neighbours(folder / f"{safe}.graph", exact_rows)
        self._rows: dict[int, int] = {}
        self._keys = np.empty(0, np.uint64)
        self._vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self._centre: NDArray[np.float32] = np.zeros(0, np.float32)
        self._lengths: NDArray[np.float32] = np.empty(0, np.float32)  # of the vectors without the centre
        self._read()

    def _read(self) -> None:
        try:
            raw = self._path.read_bytes()
        except OSError:
            return
        if len(raw) < 4:
            return
        width = int(np.frombuffer(raw[:4], np.uint32)[0])
        if not 0 < width <= _MOST_PARTS:
            self._path.unlink()  # damaged: all is embedded anew
            return
        row = np.dtype([("key", np.uint64), ("vector", np.float16, (width,))])
        count = (len(raw) - 4) // row.itemsize  # a torn last row is left out
        rows = np.frombuffer(raw, row, count, 4) if count else np.empty(0, row)
        lengths = np.linalg.norm(rows["vector"][:100].astype(np.float32), axis=1)
        if count and not 0.9 < float(np.median(lengths)) < 1.1:
            self._path.unlink()  # no vectors of length one stand where they would: the width is damaged
            return
        self._keys = rows["key"].copy()
        self._vectors = rows["vector"].astype(np.float32)
        self._rows = {int(key): number for number, key in enumerate(self._keys)}

    def missing(self, keys: Sequence[int]) -> list[int]:
        """Return the keys without a vector, each once."""
        return [key for key in dict.fromkeys(keys) if key not in self._rows]

    def add(self, keys: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Append vectors."""
        width = vectors.shape[1]
        row = np.dtype([("key", np.uint64), ("vector", np.float16, (width,))])
        rows = np.empty(len(keys), row)
        rows["key"], rows["vector"] = keys, vectors
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            whole = (file.tell() - 4) // row.itemsize * row.itemsize + 4
            if file.tell() == 0:
                file.write(np.uint32(width).tobytes())
            elif whole != file.tell():
                file.truncate(whole)  # a torn last row
            file.write(rows.tobytes())
        start = len(self._keys)
        self._keys = np.concatenate([self._keys, rows["key"]])
        kept = rows["vector"].astype(np.float32)
        self._vectors = np.concatenate([self._vectors, kept]) if start else kept
        self._rows.update((int(key), start + number) for number, key in enumerate(keys))

    def similar(
        self, keys: NDArray[np.uint64], vector: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the centred cosine with each key's vector, 0 where there is none yet, and which have one."""
        found = np.array([self._rows.get(int(key), -1) for key in keys])
        near = np.zeros(len(keys))
        has = found >= 0
        if has.any():
            near[has] = self._cosines(found[has], self._centred(vector))
        return near, has

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[int]:
        """Return the keys of the nearest vectors, nearest first."""
        if not len(self._keys):
            return []
        direction = self._centred(vector)
        rows = self._neighbours.nearest(self._vectors, direction, 2 * limit)
        best = np.argsort(-self._cosines(rows, direction), kind="stable")[:limit]
        keys: list[int] = self._keys[rows[best]].tolist()
        return keys

    def _centred(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the direction from the brain's mean to a vector."""
        count = len(self._vectors)
        if len(self._lengths) < count and len(self._lengths) < 0.99 * count:
            self._centre = self._vectors.sum(0) / np.float32(count + _PRIOR_ROWS)
            self._lengths = np.empty(0, np.float32)
        if len(self._lengths) < count:
            new = self._vectors[len(self._lengths) :] - self._centre
            self._lengths = np.concatenate((self._lengths, np.linalg.norm(new, axis=1)))
        moved = vector - self._centre
        direction: NDArray[np.float32] = moved / max(float(np.linalg.norm(moved)), 1e-9)
        return direction

    def _cosines(self, rows: NDArray[Any], direction: NDArray[np.float32]) -> NDArray[np.float32]:
        ahead = self._vectors[rows] @ direction - self._centre @ direction
        found: NDArray[np.float32] = ahead / np.maximum(self._lengths[rows], 1e-9)
        return found

    def grow(self) -> None:
        """Make what finds the nearest among very many; searches go on meanwhile."""
        self._neighbours.grow(self._vectors)

    def __len__(self) -> int:
        return len(self._keys)


class Vectors:
    """Meaning of a brain's units.

    Args:
        folder: In the cache.
        embedder: What makes vectors.
        may_leave: Whether a text of the page at a path may be given to an embedder elsewhere.
    """

    def __init__(
        self, folder: Path, embedder: Embedder, may_leave: Callable[[str, str], bool] = lambda path, text: True
    ) -> None:
        self._embedder, self.is_remote, self._may_leave = embedder, embedder.is_remote, may_leave
        self._file = VectorFile(folder, embedder.name)
        self._paths: dict[int, str] = {}
        self._asked: dict[str, NDArray[np.float32]] = {}
        self._mutex = threading.Lock()
        self._problem, self._again_at = "", 0.0

    def adopt(self, contents: Iterable[tuple[str, bytes]]) -> list[str]:
        """Learn which page each vector belongs to; return the paths of pages that lack any."""
        lacking = []
        for path, content in contents:
            keys = np.frombuffer(content, np.uint64).tolist()
            self._paths.update(dict.fromkeys(keys, path))
            if self._file.missing(keys):
                lacking.append(path)
        return lacking

    def take_in(self, page: Page) -> bool:
        """Embed what is new on a page, given with its units; return whether that could be done."""
        texts = {content_key(unit): unit.text for unit in page.units if self._is_embedded(page.path, unit)}
        missing = self._file.missing(list(texts))
        vectors = self._embedded([texts[key] for key in missing]) if missing else None
        if missing and vectors is None:
            return False
        with self._mutex:
            if vectors is not None:
                self._file.add(missing, vectors)
            self._paths.update(dict.fromkeys(texts, page.path))
        return True

    def _is_embedded(self, path: str, unit: Unit) -> bool:
        return not self.is_remote or (not unit.is_private and self._may_leave(path, unit.text))

    def grow(self) -> None:
        """See to it that very many vectors are searched fast."""
        self._file.grow()

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return vectors; None when the model fails, and then for a while: nobody shall wait for it again and again."""
        if time.monotonic() < self._again_at:
            return None
        try:
            vectors = self._embedder.embed(texts)
        except EmbedderError as error:
            self._problem, self._again_at = str(error), time.monotonic() + _PAUSE_SECONDS
            return None
        self._problem = ""
        return vectors

    def signals(self, text: str, units: Units) -> Signals:
        """Return how near in meaning each unit is, by itself and by its surroundings."""
        vector = self._asked_for(text)
        if vector is None:
            return {}
        with self._mutex:
            own, is_known = self._file.similar(units.content, vector)
        if not is_known.any():
            return {}
        meaning = np.maximum(own, 0) / max(float(own.max()), _GOOD_COSINE)
        return {
            "cosine": own,
            "embedded": is_known.astype(np.float64),
            "meaning": meaning,
            "meaning_previous": units.shift(meaning, -1),
            "meaning_next": units.shift(meaning, 1),
            "meaning_page": units.best_of_scope(meaning),
        }

    def nearest(self, text: str) -> dict[str, list[int]]:
        """Return the content keys of the units nearest in meaning by the path of their page, nearest first."""
        vector = self._asked_for(text)
        found: dict[str, list[int]] = {}
        if vector is not None:
            with self._mutex:
                for key in self._file.nearest(vector, _NEAREST):
                    if key in self._paths:
                        found.setdefault(self._paths[key], []).append(key)
        return found

    def _asked_for(self, text: str) -> NDArray[np.float32] | None:
        if text not in self._asked:
            vectors = self._embedded([text])
            if vectors is None:
                return None
            if len(self._asked) > 256:
                self._asked.clear()
            self._asked[text] = vectors[0]
        return self._asked[text]

    def status(self) -> dict[str, Any]:
        """Return the model, how many vectors there are, and what went wrong last."""
        return {"name": self._embedder.name, "vectors": len(self._file), "problem": self._problem}
