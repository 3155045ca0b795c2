"""The nearest of very many vectors: all compared, or a graph of them; needs the extra `semantic`.

    python benchmarks/recall_vectors.py [--rows 200000] [--queries 200]

Vectors of 384 parts are drawn around centres, as texts are about subjects; queries near some of them. Told are the
seconds the graph takes to be made, its bytes, p50 and p95 of a query in ms of CPU time with and without it, which share
of the exact nearest 100 it finds, and the same once a tenth more rows came after it was made. The last line printed is
one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainiac.search.embed import Matrix, unit_norm
from brainiac.search.neighbours import EXACT_ROWS, Neighbours

PARTS, CENTRES, SPREAD, NEAREST = 384, 2_000, 1.0, 100


def drawn(rows: int, random: np.random.Generator, centres: Matrix) -> Matrix:
    """Return rows of unit norm around centres."""
    chosen = centres[random.integers(0, len(centres), rows)]
    noise = random.standard_normal((rows, PARTS), np.float32) * np.float32(SPREAD / np.sqrt(PARTS))
    return unit_norm(chosen + noise)


def measured(find: Callable[[Matrix], NDArray[np.int64]], queries: Matrix) -> tuple[list[float], list[set[int]]]:
    """Return p50 and p95 in ms, and what each query found."""
    took, found = [], []
    for query in queries:
        start = time.process_time()
        rows = find(query)
        took.append((time.process_time() - start) * 1000)
        found.append(set(rows.tolist()))
    took.sort()
    return [round(took[int(len(took) * share)], 2) for share in (0.5, 0.95)], found


def shared(found: list[set[int]], exact: list[set[int]]) -> float:
    """Return the mean share of the exact ones that were found."""
    return round(float(np.mean([len(a & b) / len(b) for a, b in zip(found, exact, strict=True)])), 4)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    centres = unit_norm(random.standard_normal((CENTRES, PARTS), np.float32))
    vectors = drawn(arguments.rows, random, centres)
    queries = drawn(arguments.queries, random, centres)
    with tempfile.TemporaryDirectory() as folder:
        exact = Neighbours(Path(folder) / "none", exact_rows=10 * arguments.rows)
        graph = Neighbours(Path(folder) / "rows.graph", min(EXACT_ROWS, arguments.rows // 2))
        exact_ms, truth = measured(lambda query: exact.nearest(vectors, query, NEAREST), queries)
        start = time.process_time()
        graph.grow(vectors)
        made = time.process_time() - start
        graph_ms, found = measured(lambda query: graph.nearest(vectors, query, NEAREST), queries)
        more = np.concatenate((vectors, drawn(arguments.rows // 10, random, centres)))
        more_ms, later = measured(lambda query: graph.nearest(more, query, NEAREST), queries)
        _, later_truth = measured(lambda query: exact.nearest(more, query, NEAREST), queries)
        told = {
            "rows": arguments.rows,
            "exact_p50_p95_ms": exact_ms,
            "graph_made_s": round(made, 1),
            "graph_mb": round((Path(folder) / "rows.graph").stat().st_size / 2**20),
            "graph_p50_p95_ms": graph_ms,
            "graph_recall@100": shared(found, truth),
            "a_tenth_more_p50_p95_ms": more_ms,
            "a_tenth_more_recall@100": shared(later, later_truth),
        }
    for name, value in told.items():
        print(f"{name:26}{value}")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
