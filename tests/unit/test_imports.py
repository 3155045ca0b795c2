"""Imports: whatever shape an export has, what was said comes in once, dated, and marked as an import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.formats.markdown import StmEvent, parse_exchanges
from brainiac.history.forget import find_target, forget
from brainiac.history.undo import undo_all
from brainiac.imports import intake
from brainiac.imports.intake import Outcome, Report, import_path
from brainiac.storage.record import commits_of, find_event, last_caused
from brainiac.testing import make_brain
from tests.support.exports import chatgpt, claude, write_json, write_zip

TURNS = [("I fly to Lisbon on Friday.", "Enjoy it."), ("My seat is 14C.", "Noted, 14C.")]


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    return make_brain(tmp_path / "brain")


def take(brain: Brain, path: Path, **options: Any) -> Report:
    return import_path(brain, path, **options)


def outcomes(report: Report) -> list[Outcome]:
    return [outcome for outcomes in report.outcomes.values() for outcome in outcomes]


def states(report: Report) -> list[tuple[str, int, int]]:
    return [(outcome.state, outcome.taken, outcome.known) for outcome in outcomes(report)]


def pages(brain: Brain) -> dict[str, str]:
    """Return the imported pages by path, index pages left out."""
    files = (brain.tree.long_term / "events" / "imported").rglob("*.md")
    return {brain.tree.relative(file): file.read_text("utf-8") for file in sorted(files) if file.name != "_index.md"}


def said(brain: Brain) -> list[StmEvent]:
    return [event for text in pages(brain).values() for event in parse_exchanges(text)]


def texts(brain: Brain) -> list[tuple[str, str]]:
    return [(event.user, event.ai) for event in said(brain)]


def in_array(tmp_path: Path) -> Path:
    return write_json(tmp_path / "conversations.json", [chatgpt("c1", TURNS)])


def in_shards(tmp_path: Path) -> Path:
    files = {f"conversations-{n:03}.json": json.dumps([chatgpt(f"c{n}", [turn])]) for n, turn in enumerate(TURNS)}
    return write_zip(tmp_path / "export.zip", {**files, "user.json": "{}", "chat.html": "<html>"})


def in_zip_in_zip(tmp_path: Path) -> Path:
    inner = write_zip(tmp_path / "inner.zip", {"conversations.json": json.dumps([chatgpt("c1", TURNS)])})
    return write_zip(tmp_path / "outer.zip", {"Conversations__1-chatgpt-1.zip": inner.read_bytes()})


def under_a_key(tmp_path: Path) -> Path:
    value = {"version": {"n": [1]}, "conversations": [chatgpt("c1", TURNS)]}
    return write_json(tmp_path / "any name.txt", value)


def as_one_object(tmp_path: Path) -> Path:
    return write_json(tmp_path / "one.json", chatgpt("c1", TURNS))


def with_a_mark(tmp_path: Path) -> Path:
    path = tmp_path / "marked.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([chatgpt("c1", TURNS)]).encode())
    return path


def of_claude(tmp_path: Path) -> Path:
    return write_zip(
        tmp_path / "data.zip", {"conversations.json": json.dumps([claude("k1", TURNS)]), "users.json": "[]"}
    )


def of_claude_before(tmp_path: Path) -> Path:
    old = claude("k1", TURNS)
    old["messages"] = old.pop("chat_messages")
    return write_json(tmp_path / "claude.json", [old])


SHAPES = [
    in_array, in_shards, in_zip_in_zip, under_a_key, as_one_object, with_a_mark, of_claude, of_claude_before,
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_comes_in_once(brain: Brain, tmp_path: Path, shape: Any) -> None:
    """Each shape of an export gives the same exchanges with their dates, is found, and a second import adds nothing."""
    path = shape(tmp_path)
    first = take(brain, path)
    assert sorted(TURNS) == sorted(texts(brain))
    assert 2 == sum(outcome.taken for outcome in outcomes(first))
    assert all(event.at.startswith("2024-05-06T12:") for event in said(brain))
    assert all("origin: import\n" in text for text in pages(brain).values())
    assert "14C" in brain.recall.search("seat on the flight")[0].text
    before = pages(brain)
    assert {("known", 0, 2 // len(outcomes(first)))} == set(states(take(brain, path)))
    assert before == pages(brain)


def test_undo_takes_all_of_an_import_back(brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One undo takes back what an import brought in many commits, and the same import brings it in again."""
    monkeypatch.setattr(intake, "BATCH_ITEMS", 2)
    monkeypatch.setattr(intake, "PAGE_CHARACTERS", 300)
    # the first conversation stands in three shards, each with more of it
    shards = [[chatgpt(f"c{n}", TURNS) for n in range(3)], [chatgpt("c0", TURNS * 2)], [chatgpt("c0", TURNS * 9)]]
    for number, shard in enumerate(shards):
        write_json(tmp_path / "export" / f"conversations-{number:03}.json", shard)
    report = take(brain, tmp_path / "export")
    assert (22, 6, 22) == (
        len(said(brain)),
        sum(row.known for row in outcomes(report)),
        len({e.id for e in said(brain)}),
    )
    steps = commits_of(brain, find_event(brain, report.event))
    assert len(steps) == 4
    assert steps == last_caused(brain)
    undo_all(brain, steps)
    assert {} == pages(brain)
    with pytest.raises(UserError, match="not taken back already"):
        commits_of(brain, find_event(brain, report.event))
    take(brain, tmp_path / "export")
    assert 22 == len(said(brain))


def test_undo_names_a_page_that_a_person_changed(brain: Brain, tmp_path: Path) -> None:
    """A page that somebody wrote on stands in the way of the whole undo, which then changes nothing."""
    report = take(brain, in_shards(tmp_path))
    path = sorted(pages(brain))[0]
    file = brain.tree.absolute(path)
    file.write_text(file.read_text("utf-8") + "\nMine.\n", "utf-8")
    before = pages(brain)
    with pytest.raises(UserError, match=path):
        undo_all(brain, commits_of(brain, find_event(brain, report.event)))
    assert before == pages(brain)


def test_a_longer_conversation_adds_its_new_turns(brain: Brain, tmp_path: Path) -> None:
    """A conversation that went on adds its new exchanges to its page, where what a person wrote stays."""
    path = in_array(tmp_path)
    take(brain, path)
    (page,) = pages(brain)
    file = brain.tree.absolute(page)
    file.write_text(
        file.read_text("utf-8").replace("My seat is 14C.", "My seat is 15C.") + "\n## Mine\nKept.\n", "utf-8"
    )
    write_json(path, [chatgpt("c1", [*TURNS, ("Thanks.", "Any time.")], title="Renamed since")])
    assert [("taken", 1, 2)] == states(take(brain, path))
    text = pages(brain)[page]
    assert ["I fly to Lisbon on Friday.", "My seat is 15C.", "Thanks."] == [event.user for event in said(brain)]
    assert text.index("Any time.") < text.index("## Mine\nKept.")


def test_what_was_taken_out_stays_out(brain: Brain, tmp_path: Path) -> None:
    """What a person deleted or forgot does not come in again with the next import."""
    path = in_shards(tmp_path)
    take(brain, path)
    first, _ = pages(brain)
    brain.tree.absolute(first).unlink()
    forget(brain, find_target(brain, said(brain)[0].id))
    assert [] == said(brain)
    assert {("known", 0, 1)} == set(states(take(brain, path)))
    assert [] == said(brain)


def test_a_dry_run_changes_nothing(brain: Brain, tmp_path: Path) -> None:
    """A dry run says what would come in, each conversation once, and writes neither page nor event."""
    shards = [[chatgpt("c1", TURNS)], [chatgpt("c1", TURNS), {"mapping": {}, "title": "Empty"}]]
    for number, shard in enumerate(shards):
        write_json(tmp_path / "export" / f"conversations-{number:03}.json", shard)
    seq = brain.journal.last()
    report = take(brain, tmp_path / "export", is_dry=True)
    assert [("taken", 2, 0), ("known", 0, 2), ("skipped", 0, 0)] == states(report)
    assert (seq, {}, "") == (brain.journal.last(), pages(brain), report.event)
