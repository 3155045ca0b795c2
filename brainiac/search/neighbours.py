"""Nearest vectors where there are too many to compare all: a graph of the first rows, an exact look at the rest.

The graph is usearch's (HNSW, Malkov and Yashunin, 2016), of the extra `semantic`; without it the look stays exact.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brainiac.search.embed import onnx_runtime

if TYPE_CHECKING:
    from usearch.index import Index

EXACT_ROWS = 100_000  # so many are compared one by one in a few milliseconds
_BATCH = 2000
_LOOKED_AT = 256  # candidates of the graph's search: recall of the nearest 100 was over 0.95


class Neighbours:
    """Who is near among rows that are only ever appended.

    Args:
        path: Of the graph, in the cache folder.
        exact_rows: With no more rows than this, no graph is made.
    """

    def __init__(self, path: Path, exact_rows: int = EXACT_ROWS) -> None:
        self._path, self._exact_rows = path, exact_rows
        self._graph: Index | None = None

    def nearest(self, vectors: NDArray[np.float32], vector: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
        """Return the numbers of the rows nearest to a vector, nearest first."""
        graph = self._of(vectors)
        known = 0 if graph is None else len(graph)
        rows, near = np.arange(known, len(vectors)), vectors[known:] @ vector
        if graph is not None:
            found = graph.search(vector, limit).keys.astype(np.int64)
            rows, near = np.concatenate((found, rows)), np.concatenate((vectors[found] @ vector, near))
        best = np.argpartition(-near, min(limit, len(near) - 1))[:limit]
        ordered: NDArray[np.int64] = rows[best[np.argsort(-near[best], kind="stable")]]
        return ordered

    def grow(self, vectors: NDArray[np.float32]) -> None:
        """Put rows that are missing into the graph once they are many; a minute for 100,000, and searches go on."""
        known = self._of(vectors)
        if known is None or len(vectors) - len(known) <= self._exact_rows // 10:
            return
        graph = self._read(vectors)  # one of its own: the other one is searched meanwhile
        for start in range(len(graph), len(vectors), _BATCH):
            some = vectors[start : start + _BATCH]
            graph.add(np.arange(start, start + len(some), dtype=np.uint64), some, threads=1)
        half_done = self._path.with_suffix(".part")
        graph.save(str(half_done))
        half_done.replace(self._path)
        self._graph = graph

    def _of(self, vectors: NDArray[np.float32]) -> Index | None:
        """Return the graph, as far as it goes; None where all rows are looked at."""
        if self._graph is None and len(vectors) > self._exact_rows:
            with contextlib.suppress(ImportError):
                self._graph = self._read(vectors)
        return self._graph

    def _read(self, vectors: NDArray[np.float32]) -> Index:
        onnx_runtime()  # of the same extra: to import it after usearch ends the process
        from usearch.index import Index

        with contextlib.suppress(RuntimeError, OSError):  # none yet, or damaged: it is made anew
            graph = Index(**self._made(vectors))
            graph.load(str(self._path))
            last = len(graph) - 1
            if 0 <= last < len(vectors) and np.allclose(np.asarray(graph.get(last)), vectors[last], atol=0.01):
                return graph
        return Index(**self._made(vectors))

    @staticmethod
    def _made(vectors: NDArray[np.float32]) -> dict[str, Any]:
        return {"ndim": vectors.shape[1], "metric": "ip", "dtype": "f16", "expansion_search": _LOOKED_AT}
