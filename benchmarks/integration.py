"""Score deciding and the preservation check on the evaluation sets; one JSON line of all figures at the end."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

from brainiac.integration.operations import band

from brainiac.integration import decide, preservation
from brainiac.language.entities import find_mentions
from brainiac.llm.schemas import Candidate, Existing, IntegrateRequest, Operation

DATA = Path(__file__).parent / "data"
NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
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


def score_decisions(name: str, *, is_shown: bool) -> dict[str, Any]:
    """Print and return how many cases get the right operation on the right statement.

    Args:
        name: The evaluation set.
        is_shown: Whether each case is printed; held-out texts are not.
    """
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for case in _cases(load(name)):
        chosen = _decide(case)
        right = (chosen.operation, chosen.id or None) == (case["operation"], case["target"])
        kept = all(_stands(word, chosen.content) for word in case["must_keep"])
        in_band = band(chosen.relevance) == case["band"]  # of development cases none is given
        kind = case.get("kind", "document")
        rows[kind].update(right=right, kept=kept, in_band=in_band, total=1)
        if is_shown:
            mark = "ok " if right and kept else "BAD"
            found = f"{chosen.operation:9} {chosen.relevance.score} {chosen.content}"
            print(f"  {mark} {case['id']} {case['operation']:6} {found}")
    return _decision_table(name, rows)


def _cases(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cases of either format in one shape; where our rules differ from the document's, ours count."""
    for case in data.get("cases", []):
        expected = {key: case.get(f"expected_{key}") for key in ("operation", "target", "band")}
        target = None if expected["operation"] == "NEW" else expected["target"]
        yield case | expected | {"target": target, "must_keep": case.get("must_keep") or []}
    for case in data.get("examples", []) + data.get("anti_examples", []):
        yield case | {"must_keep": case.get("ours", {}).get("must_keep", [])}


def _stands(words: str, content: str) -> bool:
    """Tell whether words stand in a text, in these or equal ones ("five years" as "5 years")."""
    values = [mention.values for mention in find_mentions(content)]
    wanted = find_mentions(words)
    is_equal = bool(wanted) and all(any(one.values & other for other in values) for one in wanted)
    return is_equal or words.casefold() in content.casefold()


def _decide(case: dict[str, Any]) -> Operation:
    existing = [Existing(one["id"], one["content"]) for one in case["existing"]]
    is_forget = bool(case.get("is_forget"))
    candidate = Candidate(statement=case["candidate"], is_forget=is_forget)
    request = IntegrateRequest(now=NOW, message=case["message"], candidate=candidate, existing=existing)
    operations = decide(request).operations
    return operations[0] if operations else Operation.model_construct(operation="none", content="", id="")


def _decision_table(name: str, rows: dict[str, Counter[str]]) -> dict[str, Any]:
    rows["all"] = sum(rows.values(), Counter())
    print(f"\n{name}: right operation and target, details kept, right band")
    for kind, row in rows.items():
        low, high = wilson(row["right"], row["total"])
        figures = " ".join(f"{row[key]:3}/{row['total']}" for key in ("right", "kept", "in_band"))
        print(f"  {kind:28} {figures}  [{low:.1%}, {high:.1%}]")
    return dict(rows["all"])


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
        "document": score_decisions("integration_examples.json", is_shown=True),
        "decisions_dev": score_decisions("integration_dev.json", is_shown=arguments.verbose),
        "merges_dev": score_merges("merges_dev.json", arguments.verbose),
        "check_ms": time_check(),
    }
    if arguments.heldout:
        figures["decisions_heldout"] = score_decisions("integration_heldout.json", is_shown=False)
        figures["merges_heldout"] = score_merges("merges_heldout.json", False)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
