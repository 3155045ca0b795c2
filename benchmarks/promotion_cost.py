"""What a promotion of 200 events on 10,000 memories costs besides the model: time, files, journal and blob bytes.

    python benchmarks/promotion_cost.py [--memories 10000] [--events 200]

The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from brainiac.host.trust import open_namespace

open_namespace()  # `brainiac_plugins`
from brainiac_plugins.organization.upkeep import Upkeep
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso
from brainiac.events import new_id, update
from brainiac.formats.page import new_memory
from brainiac.formats.short_term import ShortTermDocument, StmEvent
from brainiac.llm.gateway import Gateway
from brainiac.skeleton import create_brain

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PLACES = "Oslo Lisbon Leeds Cork Porto Turin Ghent Graz Lyon Bergen Malmo Tartu".split()
THINGS = "a bicycle|a cello|two cats|a greenhouse|an old piano|a sailing boat|a sourdough starter|three hens".split("|")


def name_of(number: int) -> str:
    """Return a name that no other number has."""
    syllables = "ba de fi go lu ma ne pi ro su ta ve".split()
    return "".join(syllables[number // 12**place % 12] for place in range(4)).title()


def make(root: Path, memories: int, events: int) -> Brain:
    """Make a brain with so many pages and so many events in its log."""
    clock, chance = ManualClock(START), random.Random(7)
    create_brain(root, clock=clock)
    with (root / "system/config.yaml").open("a", encoding="utf-8") as config:
        config.write("\nrecall: {embedder: none}\n")
    for number in range(memories):
        name, folder = name_of(number), root / f"memory/long_term/concrete/people-{number // 150:03d}"
        folder.mkdir(exist_ok=True)
        said = [f"{name} lives in {chance.choice(PLACES)}", f"{name} has {chance.choice(THINGS)}"]
        meta: dict[str, Any] = {"subject": name, "subject_type": "person"}
        text = new_memory(name, uuid=new_id(), now=iso(START), statements=said, **meta)
        (folder / f"{name.lower()}.md").write_text(text, encoding="utf-8")
    brain = Brain(root, clock=clock)
    brain.observed.adopt()
    Upkeep(brain).tend()  # index pages stand, as in a memory that grew
    document = ShortTermDocument(str(brain.short_term()))
    for number in range(events):
        at = iso(START + timedelta(minutes=number))
        name, verb = name_of(chance.randrange(memories)), chance.choice(("bought", "sold"))
        text = f"My friend {name} {verb} {chance.choice(THINGS)}."
        document = document.with_event(StmEvent(new_id(), at, text, "Noted."))
    path = "memory/short_term.md"
    brain.commit("exchange-reflected", by="bench", changes=[update(path, brain.read(path) or b"", str(document))])
    clock.advance(86_400)
    brain.recall.reindex()
    return brain


def size_of(folder: Path) -> tuple[int, int]:
    """Return the bytes of a journal's lines and of its blobs."""
    lines = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    return lines, sum(path.stat().st_size for path in (folder / "blobs").rglob("*") if path.is_file())


def main() -> int:
    """Read the arguments, promote, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=200)
    arguments = parser.parse_args()
    in_model, cpu_in_model = [0.0], [0.0]
    run = Gateway.run

    def timed(self: Gateway, request: Any) -> Any:
        started, cpu = time.perf_counter(), time.process_time()
        try:
            return run(self, request)
        finally:
            in_model[0] += time.perf_counter() - started
            cpu_in_model[0] += time.process_time() - cpu

    Gateway.run = timed  # type: ignore[method-assign]  # only looks at the clock
    with tempfile.TemporaryDirectory() as scratch:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = f"{scratch}/{variable.lower()}"
        brain = make(Path(scratch) / "brain", arguments.memories, arguments.events)
        lines, blobs = size_of(brain.tree.journal)
        started, cpu = time.perf_counter(), time.process_time()
        outcome = promote(brain)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        after = size_of(brain.tree.journal)
        brain.close()
    assert outcome.event is not None
    figures = {
        "memories": arguments.memories,
        "events": outcome.exchanges,
        "statements": outcome.statements,
        "seconds": round(seconds, 2),
        "seconds_outside_model": round(seconds - in_model[0], 2),
        "cpu_seconds_outside_model": round(cpu - cpu_in_model[0], 2),
        "files_written": len(outcome.event.changes),
        "journal_bytes": after[0] - lines,
        "blob_bytes": after[1] - blobs,
    }
    for name, value in figures.items():
        print(f"{name:24}{value}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
