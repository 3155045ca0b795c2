"""Events and changes as values."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac import events
from brainiac.history.sentences import sentence
from brainiac.storage.journal import from_line
from tests.support.examples import examples


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
        event.kind = "other"  # type: ignore[misc]  # what must fail


def test_every_kind_reads_its_own_lines() -> None:
    """What is written of an event is read as the same value, and by any other reader as the same kind."""
    answered = events.PromptAnswered(
        prompt="inbox/q.md", prompt_id="p", prompt_sha256="s", response="inbox/q.response.md", model="m"
    )
    line = events.Event(1, events.new_id(), "2025-09-16T15:30:00Z", answered.kind, "core_loop", data=answered.to_json())
    assert answered == line.what
    assert ["prompt", "prompt_id", "prompt_sha256", "response", "model"] == list(line.data)


def test_what_is_not_known_of_an_event_is_kept() -> None:
    """An older or a later line is read as far as it goes, and written back key by key as it was."""
    data = {"items": ["h"], "later": {"a": 1}, "exchange": "e", "prompt": None}
    reflected = events.ExchangeReflected.from_json(data)
    assert ("e", ("h",), "", True) == (reflected.exchange, reflected.items, reflected.prompt, reflected.is_extracted)
    assert list(data.items()) == list(reflected.to_json().items())
    reworded = dataclasses.replace(reflected, items=("other",)).to_json()
    assert list((data | {"items": ["other"]}).items()) == list(reworded.items())


@pytest.mark.slow
@pytest.mark.parametrize("event", events.KINDS.values(), ids=lambda event: event.kind)
@examples(10)
@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())))
def test_no_line_is_too_damaged_to_be_read(event: type[events.EventData], rest: dict[str, object]) -> None:
    """Journals come from other versions and by way of sync: whatever a line holds, reading it raises nothing."""
    keys = [field.name.rstrip("_") for field in dataclasses.fields(event)]
    for value in rest.values():
        data = rest | dict.fromkeys(keys, value)
        assert data == event.from_json(data).to_json()


def test_kinds_that_are_not_ours_are_kept() -> None:
    """A plugin's event has its data as they are."""
    line = events.Event(1, events.new_id(), "2025-09-16T15:30:00Z", "tag-added", "x", data={"b": [1], "a": None})
    assert events.PluginEvent("tag-added", {"b": [1], "a": None}) == line.what
    assert line.data == line.what.to_json()


FORMER = {  # a line of an earlier version: its kind and data, what is read of it, and what `log` says
    "links-healed": ({"moved": {"a": "b"}}, events.TreeTidied(what="links", moved={"a": "b"}), ""),
    "manifests-derived": ({}, events.TreeTidied(what="index-pages"), ""),
    "mentions-derived": ({}, events.TreeTidied(what="mentions"), ""),
    "note-completed": ({}, events.TreeTidied(what="note"), ""),
    "review-tidied": ({}, events.TreeTidied(what="review"), ""),
    "error-cleared": ({}, events.TreeTidied(what="error"), ""),
    "leftovers-swept": ({"texts": {"a": "h"}}, events.TreeTidied(what="leftovers", texts={"a": "h"}), ""),
    "proposal-applied": (
        {"proposal": "p"},
        events.ProposalDecided(proposal="p", how="applied"),
        "memory/review.md → done as you ticked it",
    ),
    "proposal-declined": (
        {"proposal": "p"},
        events.ProposalDecided(proposal="p", how="declined"),
        "memory/review.md → left as you said",
    ),
    "proposal-expired": ({"proposal": "p"}, events.ProposalDecided(proposal="p", how="expired"), ""),
    "forgetting-proposed": ({}, events.ProposalMade(proposals=()), "memory/review.md → asks you something"),
    "change-suggested": ({}, events.ProposalMade(proposals=()), "memory/review.md → asks you something"),
    "copy-found": ({}, events.ProposalMade(proposals=()), "memory/review.md → asks you something"),
    "notes-deleted": ({}, events.NoteDeleted(), "a.md → deleted by hand"),
    "plugin-distrusted": ({"plugin": "x"}, events.PluginTrusted(plugin="x", is_trusted=False), "x → trusted no more"),
}


@pytest.mark.parametrize("kind", events.FORMER_KINDS)
def test_lines_of_earlier_versions_say_what_they_said(kind: str) -> None:
    """A line whose kind is none of today's is read as today's, and `log` has the sentence it had."""
    data, what, said = FORMER[kind]
    line = {"seq": 1, "id": events.new_id(), "at": "2025-09-16T15:30:00Z", "kind": kind, "by": "x", "data": data}
    changes = [{"op": "remove", "path": "a.md", "before": "h", "after": None}]
    event = from_line(json.dumps(line | {"changes": changes}).encode())
    assert (what, what.kind) == (event.what, event.kind)
    assert said == sentence(event)
    assert {what.kind} == events.kinds_of(kind)
