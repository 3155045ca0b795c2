"""How search holds at size: build, warm start, edits, queries, bytes and memory, at 1,000 / 10,000 / 100,000 memories.

    python benchmarks/recall_scale.py [--sizes 1000,10000,100000]

Each size runs in a process of its own, so that peak memory is its own. Times are CPU time of all its threads, which a
busy machine changes least; `wall_s` is the build's by the clock. Ratios are to what cannot be avoided: reading all
bytes once, and one scandir and stat pass, both warm. Queries are measured on the fresh index, and once more after the
edits, when passages are marked as deleted. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from brainiac.search.search import Recall
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree

QUERIES = 300
EDITS = 30
PER_FOLDER = 200


def vocabulary(random_: random.Random) -> tuple[list[str], list[float]]:
    """Return words of two to four syllables and their frequencies, after Zipf."""
    syllables = [c + v for c in "bcdfghjklmnprstvwz" for v in "aeiou"]
    words = list(dict.fromkeys("".join(random_.choices(syllables, k=random_.randint(2, 4))) for _ in range(40_000)))
    return words, [1 / (rank + 5) for rank in range(len(words))]


def write_brain(root: Path, size: int) -> list[str]:
    """Write memories of about 950 bytes; return queries made of their words."""
    random_ = random.Random(7)
    words, weights = vocabulary(random_)
    (root / "system").mkdir(parents=True)
    (root / "system" / "core_identity.md").write_text("# Core Identity\n", "utf-8")
    start, queries = datetime(2020, 1, 1, tzinfo=UTC), []
    for number in range(size):
        chosen = random_.choices(words, weights, k=105)
        at = (start + timedelta(minutes=25 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        statements = "".join(
            f"- User {' '.join(chosen[place : place + 20])}. ^s{place:03d}\n" for place in range(5, 105, 20)
        )
        meta = f"uuid: 0199aaaa-0000-7000-8000-{number:012x}\ncreated_at: {at}\nupdated_at: {at}\n"
        meta += f"tags: [{chosen[0]}, {chosen[1]}]\n"
        folder = root / "memory" / "long_term" / "concrete" / f"f{number // PER_FOLDER:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"---\n{meta}reinforcement_count: 0\n---\n# {' '.join(chosen[2:5])}\n\n{statements}"
        (folder / f"m{number}.md").write_text(text, "utf-8")
        if number % max(1, size // QUERIES) == 0:
            place = random_.randrange(5, 90)
            queries.append(f"what did {' '.join(random_.sample(chosen[place : place + 12], 5))} do?")
    return queries[:QUERIES]


def timed(action: Callable[[], object]) -> float:
    """Return how many seconds of CPU time something takes, in all threads."""
    start = time.process_time()
    action()
    return time.process_time() - start


def read_all(root: Path) -> None:
    """Read all bytes once, as any build must."""
    for entry in _files(root / "memory"):
        with open(entry.path, "rb") as file:
            file.read()


def stat_all(root: Path) -> None:
    """List and stat everything once, as any check must."""
    for entry in _files(root / "memory"):
        entry.stat()


def _files(top: Path):
    stack = [str(top)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    yield entry


def peak_mb() -> float:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb() -> float:
    """Return the resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(size: int) -> dict[str, float]:
    """Measure one size."""
    with tempfile.TemporaryDirectory() as name:
        root, cache = Path(name) / "brain", Path(name) / "cache"
        queries = write_brain(root, size)
        places = LocalPlaces(state=cache, cache=cache, config=cache / "config.yaml", device=cache)

        def open_recall() -> Recall:
            return Recall(Tree(root), places, Settings(recall=RecallSettings(embedder="none")))

        read_all(root)
        read = min(timed(lambda: read_all(root)) for _ in range(3))
        stat = min(timed(lambda: stat_all(root)) for _ in range(3))
        recall = open_recall()
        started = time.perf_counter()
        build = timed(recall.reindex)
        wall = time.perf_counter() - started
        recall.close()
        start = min(_start(open_recall) for _ in range(3))
        recall = open_recall()
        recall.search("warm up")
        took = quantiles(recall, queries)
        edit = [_edit(recall, root, number) for number in range(EDITS)]
        recall.flush()
        edited = quantiles(recall, queries)
        stored = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())
        text = sum(entry.stat().st_size for entry in _files(root / "memory"))
        recall.close()
        return {
            "memories": size,
            "read_s": round(read, 3),
            "build_s": round(build, 3),
            "wall_s": round(wall, 3),
            "build_to_read": round(build / read, 2),
            "stat_s": round(stat, 3),
            "start_s": round(start, 3),
            "start_to_stat": round(start / stat, 2),
            "edit_to_found_ms": round(statistics.median(edit) * 1000, 1),
            "query_p50_p95_ms": took,
            "query_edited_p50_p95_ms": edited,
            "index_bytes_per_byte": round(stored / text, 2),
            "resident_mb": round(resident_mb()),
            "peak_mb": round(peak_mb()),
        }


def quantiles(recall: Recall, queries: list[str]) -> list[float]:
    """Return p50 and p95 of whole searches in ms."""
    took = sorted(timed(lambda query=query: recall.search(query)) * 1000 for query in queries)
    return [round(took[int(len(took) * share)], 2) for share in (0.5, 0.95)]


def _start(open_recall: Callable[[], Recall]) -> float:
    recall = open_recall()
    took = timed(recall.status)
    recall.close()
    return took


def _edit(recall: Recall, root: Path, number: int) -> float:
    """Return the seconds from a file's save to its being found."""
    path = f"memory/long_term/concrete/f0000/m{number}.md"
    word = f"zyxquw{number}"
    (root / path).write_text(f"# Edited\n\n- User keeps {word} in the shed. ^e{number}\n", "utf-8")

    def save_and_find() -> None:
        recall.note_change(path)
        found = recall.search(f"Where is {word}?", limit=1)
        assert [path] == [hit.path for hit in found]

    return timed(save_and_find)


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    results = []
    for size in arguments.sizes.split(","):
        command = [sys.executable, __file__, "--one", size]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        results.append(json.loads(output.splitlines()[-1]))
        print(results[-1], file=sys.stderr, flush=True)
    print(json.dumps({"scale": results}))


if __name__ == "__main__":
    main()
