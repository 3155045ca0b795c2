"""The machine's clock is put back by a day while the real daemon runs, and forth again."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.living import CONFIG, events_of, journal_of, living, living_brain, unfolded
from tests.support.pipeline import eventually

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)

# libfaketime refuses to sleep until a moment of the monotonic clock, which is how Python's `time.sleep` waits
SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds) and None\n"


def put_clock(shift: Path, by: str) -> None:
    """Put the clock of the daemon, and wait until it sees that."""
    shift.write_text(f"{by}\n")
    time.sleep(1.5)


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="needs Debian's package libfaketime, to put a process's clock back")
def test_a_clock_put_back_by_a_day_loses_doubles_and_stops_nothing(tmp_path: Path) -> None:
    """The journal ascends by `seq` and id whatever the time; what was said is answered, reflected and promoted once."""
    root = living_brain(tmp_path / "brain", CONFIG + "promotion: {idle_seconds: 1, min_events: 1}\n")
    shift = tmp_path / "shift"
    environment = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(shift),
        "FAKETIME_CACHE_DURATION": "1",  # without it each look at the clock reads the file
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
        "PYTHONPATH": str(tmp_path),
    }
    (tmp_path / "sitecustomize.py").write_text(SLEEP)
    put_clock(shift, "+0")
    with living(root, environment=environment) as one:
        one.answer("a.md", "I live in Portland.")
        put_clock(shift, "-1d")
        one.wait_for_event("exchange-reflected", prompt="inbox/a.md")
        eventually(lambda: len(events_of(root, "memory-promoted")) == 1, "promoted although the clock was put back", 30)
        one.drop("b.md", "My sister Mara lives in Leith.")
        one.drop("a.md", "I live in Seattle now.")
        one.wait_for_event("exchange-reflected", prompt="inbox/b.md")
        eventually(lambda: len(events_of(root, "exchange-reflected")) == 3, "the revision is reflected", 30)
        put_clock(shift, "+0")
        one.answer("c.md", "I like tea.")
        one.wait_for_event("exchange-reflected", prompt="inbox/c.md")
        assert 0 == one.terminate()
    put_clock(shift, "-1d")
    with living(root, environment=environment) as one:
        one.answer("d.md", "I have a bicycle.")
        one.wait_for_event("exchange-reflected", prompt="inbox/d.md")
        assert 0 == one.terminate()
    assert "job_failed" not in one.log.read_text()
    events = list(journal_of(root).events())
    assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))
    assert all(earlier.id < later.id for earlier, later in pairwise(events))
    assert any(later.at[:10] < earlier.at[:10] for earlier, later in pairwise(events))
    answered = [event.data["prompt"] for event in events if event.kind == "prompt-answered"]
    assert [f"inbox/{name}.md" for name in "aabcd"] == sorted(answered)
    kept = "\n".join(path.read_text() for path in (root / "memory").rglob("*.md"))
    assert [] == [said for said in ("Portland", "Leith", "Seattle", "tea", "bicycle") if said not in kept]
    assert [] == unfolded(root)
