"""What becomes of hostile files in the inbox: a table of some 280, with the real daemon.

    python benchmarks/hostile_inputs.py [--kind KIND]

Each file must get what its rule says (an answer, an error file, or nothing), must be left byte for byte as it was,
and after each kind the daemon must answer an ordinary prompt.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from tests.support.hostile import PASSED_OVER, Case, cases, outcome, remove
from tests.support.living import Living, living, living_brain, unprivileged
from tests.support.pipeline import eventually

WAIT_SECONDS = 120.0  # sixty odd texts took 21 s at a load of eight on two cores; reflection of a megabyte takes 2-6 s


@dataclass(frozen=True)
class Row:
    """What one case got."""

    case: Case
    got: str
    is_untouched: bool
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.got == self.case.expected and self.is_untouched


def run(root: Path, wanted: Callable[[Case], bool] = lambda case: True) -> Iterator[Row]:
    """Make the cases in a brain, kind by kind, and yield what each got.

    Args:
        root: Where the brain is made.
        wanted: Which cases.

    Raises:
        AssertionError: The daemon ended, or did not answer an ordinary prompt any more.
    """
    living_brain(root)
    prompts = root / "inbox"
    with living(root, prefix=unprivileged()) as one:
        rows: list[Row] = []
        try:
            for number, (_, group) in enumerate(groupby(filter(wanted, cases()), key=lambda case: case.kind)):
                rows += _batch(one, os.fsencode(prompts), list(group), number)
            time.sleep(2)  # a rescan more
            yield from (_again(os.fsencode(prompts), row) for row in rows)
        finally:
            remove(prompts)


def _batch(one: Living, prompts: bytes, group: Sequence[Case], number: int) -> list[Row]:
    before: dict[bytes, object] = {}
    began = time.monotonic()
    for case in group:
        path = os.path.join(prompts, case.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        case.make(path)
        before[case.name] = _state(path)
    seconds: dict[bytes, float] = {}

    def are_dealt_with() -> bool:
        for case in group:
            if case.name not in seconds and outcome(os.path.join(prompts, case.name)) == case.expected:
                seconds[case.name] = time.monotonic() - began
        return len(seconds) == len(group) or time.monotonic() - began > WAIT_SECONDS

    eventually(are_dealt_with, "the batch", 2 * WAIT_SECONDS)
    one.drop(f"ordinary-{number}.md", "I live in Portland.")
    one.wait_for_answer(f"ordinary-{number}.md", WAIT_SECONDS)
    return [_row(prompts, case, before[case.name], seconds.get(case.name, WAIT_SECONDS)) for case in group]


def _row(prompts: bytes, case: Case, before: object, seconds: float) -> Row:
    path = os.path.join(prompts, case.name)
    return Row(case, outcome(path), _state(path) == before, seconds)


def _again(prompts: bytes, row: Row) -> Row:
    got = outcome(os.path.join(prompts, row.case.name)) if row.case.expected == PASSED_OVER else row.got
    return Row(row.case, got, row.is_untouched, row.seconds)


def _state(path: bytes) -> object:
    found = os.lstat(path)
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table by kind and every case that got other than its rule says; exit 1 when there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", help="only this kind")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        rows = list(run(Path(folder) / "brain", lambda case: options.kind in (None, case.kind)))
    print(f"{'kind':24} {'expected':12} {'cases':>5} {'right':>5} {'slowest s':>9}")
    for (kind, expected), group in groupby(rows, key=lambda row: (row.case.kind, row.case.expected)):
        some = list(group)
        right, slowest = sum(row.is_right for row in some), max(row.seconds for row in some)
        print(f"{kind:24} {expected:12} {len(some):5} {right:5} {slowest:9.2f}")
    wrong = [row for row in rows if not row.is_right]
    for row in wrong:
        print(f"WRONG {row.case.name!r}: {row.got}, untouched {row.is_untouched}, expected {row.case.expected}")
    print(f"{len(rows)} cases, {len(rows) - len(wrong)} right; the daemon answered after each kind")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
