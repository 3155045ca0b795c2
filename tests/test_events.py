"""Events and changes as values."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac import events


def test_ids_ascend_and_never_repeat() -> None:
    """Ids made one after the other sort in that order, so that an id tells its age."""
    made = [events.new_id() for _ in range(1000)]
    assert made == sorted(set(made))


@given(st.binary())
def test_content_hash_is_sha256(content: bytes) -> None:
    """The identity of a text is what `sha256sum` prints, so that a person can check it."""
    assert hashlib.sha256(content).hexdigest() == events.content_hash(content)


def test_changes_hold_what_they_were_decided_on() -> None:
    """Each change carries its bytes before and after; a move its source."""
    assert (None, b"new") == _sides(events.create("a.md", "new"))
    assert (b"old", b"new") == _sides(events.update("a.md", "old", "new"))
    assert (b"old", None) == _sides(events.remove("a.md", "old"))
    assert (None, b"line\n") == _sides(events.append("logs/access.log", "line\n"))
    assert (None, b"asked") == _sides(events.observe("inbox/q.md", b"asked"))
    moved = events.move("a.md", "b.md", "old")
    assert ("a.md", "b.md", b"old", b"old") == (moved.source, moved.path, moved.before, moved.after)
    assert b"new" == events.move("a.md", "b.md", "old", "new").after


def _sides(change: events.Change) -> tuple[bytes | None, bytes | None]:
    return change.before, change.after


def test_undecodable_bytes_survive_as_text() -> None:
    """Bytes that are no UTF-8, read with surrogates as `Brain.read_text` does, are written back as they were."""
    raw = b"caf\xe9\n"
    assert raw == events.create("a.md", raw.decode("utf-8", "surrogateescape")).after


def test_events_do_not_change() -> None:
    """What happened is immutable."""
    event = events.Event(1, events.new_id(), "2025-09-16T15:30:00Z", "note-edited", "person")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.kind = "other"  # type: ignore[misc]
