"""Score the preservation check on the evaluation sets; one JSON line of all figures at the end."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

from brainiac_plugins.promotion import preservation
from brainiac_plugins.promotion.entities import find_mentions

DATA = Path(__file__).parent / "data"
Z95 = 1.96


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share (Wilson 1927)."""
    if not total:
        return 0.0, 1.0
    share, spread = hits / total, Z95**2 / total
    middle = (share + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * sqrt(share * (1 - share) / total + spread / (4 * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def load(name: str) -> dict[str, Any]:
    """Read an evaluation set."""
    return json.loads((DATA / name).read_text("utf-8"))


def score_merges(name: str, is_verbose: bool) -> dict[str, Any]:
    """Print and return what the check catches of damaging merges, and its false alarms on correct ones."""
    data = load(name)
    correct = {case["id"]: case for case in data["correct"]}
    caught: dict[str, Counter[str]] = defaultdict(Counter)
    for case in data["damaging"]:
        origin = correct[case["of"]]
        losses = preservation.check(origin["old"], origin["new"], case["merged"], origin["contradicted"])
        caught[case["kind"]]["caught" if losses else "missed"] += 1
        if is_verbose and not losses:
            print(f"  missed {case['id']} {case['kind']}: {case['merged']}  [{case['dropped']}{case.get('added', '')}]")
    alarms: dict[str, Counter[str]] = defaultdict(Counter)
    for case in correct.values():
        losses = preservation.check(case["old"], case["new"], case["merged"], case["contradicted"])
        alarms[case["kind"]]["false alarm" if losses else "quiet"] += 1
        if is_verbose and losses:
            print(f"  false alarm {case['id']}: {case['merged']}  {[(x.kind, x.side, x.words) for x in losses]}")
    print(f"\n{name}: damaging merges caught")
    total_caught = _table(caught, "caught")
    print(f"{name}: false alarms on correct merges")
    return {"caught": total_caught, "false_alarms": _table(alarms, "false alarm")}


def _table(counts: dict[str, Counter[str]], hit: str) -> dict[str, list[int]]:
    rows = {kind: [counter[hit], counter.total()] for kind, counter in sorted(counts.items())}
    rows["all"] = [sum(row[0] for row in rows.values()), sum(row[1] for row in rows.values())]
    for kind, (hits, total) in rows.items():
        low, high = wilson(hits, total)
        print(f"  {kind:22} {hits:4}/{total:<4} {hits / total:6.1%}  [{low:.1%}, {high:.1%}]")
    return rows


def time_check() -> float:
    """Return the median time of one check of texts that were not seen before, in milliseconds."""
    cases = load("merges_dev.json")["correct"]
    times = []
    for case in cases:
        find_mentions.cache_clear()
        begin = time.perf_counter()
        preservation.check(case["old"], case["new"], case["merged"], case["contradicted"])
        times.append((time.perf_counter() - begin) * 1000)
    print(f"\none check: {median(times):.2f} ms (median)")
    return round(median(times), 3)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="name every miss of the development sets")
    parser.add_argument("--heldout", action="store_true", help="score the held-out sets too; not while developing")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {
        "merges_dev": score_merges("merges_dev.json", arguments.verbose),
        "check_ms": time_check(),
    }
    if arguments.heldout:
        figures["merges_heldout"] = score_merges("merges_heldout.json", False)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
