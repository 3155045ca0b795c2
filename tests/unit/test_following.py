"""A fold over the journals that is kept: only what came is read, and all anew where the journals do not go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.events import Event, EventUndone, new_id
from brainiac.storage.following import Following
from brainiac.storage.journal import to_line
from brainiac.storage.store import Store
from tests.support.kernel import make_root

AT = "2025-09-16T15:30:00Z"


@dataclass
class Heard:
    kinds: list[str] = field(default_factory=list)


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = Brain(make_root(tmp_path / "b"))
    yield brain
    brain.close()


def following(taken: list[str], kinds: frozenset[str] | None = None) -> Following[Heard]:
    """Return a fold that also tells of each event it takes."""

    def take(store: Store, heard: Heard, event: Event, is_own: bool) -> None:
        taken.append(event.kind)
        heard.kinds.append(event.kind if is_own else f"their {event.kind}")

    return Following(lambda store: Heard(), take, kinds)


def test_each_event_is_taken_once_and_the_value_is_the_callers_own(brain: Brain) -> None:
    """Of twelve events asked for after each, twelve are taken in all; what a caller does to the value stays his."""
    taken: list[str] = []
    fold = following(taken)
    for number in range(12):
        brain.record(f"k{number}", by="t")
        fold.of(brain).kinds.clear()
    assert [f"k{number}" for number in range(12)] == taken == fold.of(brain).kinds


def test_all_is_folded_anew_when_earlier_events_count_otherwise(brain: Brain) -> None:
    """An undoing, another device's journal, and a journal that was taken back have all read again."""
    taken: list[str] = []
    fold = following(taken, frozenset({"one", "two"}))
    brain.record("one", by="t")
    brain.record("passed over", by="t")
    assert ["one"] == fold.of(brain).kinds == taken
    brain.record(EventUndone.kind, by="t", data={"undone": "x"})
    assert ["one"] == fold.of(brain).kinds
    assert 2 == len(taken)
    theirs = brain.tree.journal / "laptop-1/2025-09-16.jsonl"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(to_line(Event(1, new_id(), AT, "two", "t")))
    assert ["their two", "one"] == fold.of(brain).kinds
    (own,) = brain.journal.folder.glob("*.jsonl")
    own.write_bytes(to_line(Event(1, new_id(), AT, "two", "t")) + to_line(Event(2, new_id(), AT, "two", "t")))
    assert ["their two", "two", "two"] == fold.of(brain).kinds


def test_an_error_leaves_nothing_half_folded(brain: Brain) -> None:
    """An event that cannot be taken is met again by the next look, from the beginning."""
    is_broken = [True]

    def take(store: Store, heard: Heard, event: Event, is_own: bool) -> None:
        heard.kinds.append(event.kind)
        if event.kind == "odd" and is_broken:
            raise ValueError("odd")

    fold = Following(lambda store: Heard(), take)
    brain.record("one", by="t")
    fold.of(brain)
    brain.record("odd", by="t")
    with pytest.raises(ValueError, match="odd"):
        fold.of(brain)
    is_broken.clear()
    assert ["one", "odd"] == fold.of(brain).kinds
