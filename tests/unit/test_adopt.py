"""`adopt`: a person releases statements of theirs, and only then may a process change them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.clock import Clock
from brainiac.formats.page import parse_memory
from brainiac.testing import command, make_brain
from tests.support.commands import do
from tests.support.promotions import ScriptedEngine, set_model, with_model
from tests.support.said import tell

PAGE = "memory/long_term/concrete/garden.md"
TEXT = """\
---
# mine
uuid: 01995b2e-7c00-7000-8000-000000000002
created_at: 2025-01-01T00:00:00Z
updated_at: 2025-01-01T00:00:00Z
tags: []
emotion: calm
reinforcement_count: 0
---

# Garden
A paragraph stays mine.

- The beds face south.
  - with a nested line
* Tomatoes are planted in May. ^abcd

## History
- ~~The beds face north.~~ (until 2024-01-01) ^zzzz
"""


class MovedClock(Clock):
    """The system's clock, put forward."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def brain(tmp_path: Path, clock: MovedClock) -> Iterator[Brain]:
    engine = ScriptedEngine()
    engine.on("moved to Seattle", "replace", "Portland")
    brain = with_model(make_brain(tmp_path / "brain", clock=clock), engine)
    set_model(brain.root)
    brain.tree.absolute(PAGE).write_text(TEXT)
    brain.observed.adopt()
    yield brain
    brain.close()


def ours(brain: Brain, path: str) -> list[bool]:
    """Whether each statement that holds on a page is ours: what a person may still release is not."""
    asked = command(brain, "adopt").out
    memory = parse_memory(path, brain.read_text(path) or "")
    return [f"{path}: {one.text}" not in asked for one in memory.statements if not one.is_history]


def test_a_page_is_released(brain: Brain) -> None:
    """Statements become ours; all that changes in the file is the block id that was missing; once is enough."""
    assert [False, False] == ours(brain, PAGE)
    released = do(brain, "adopt", PAGE, "--json").json
    (event,) = brain.journal.events(kinds={"statements-adopted"})
    assert (released["event"], "person", 2) == (event.id, event.by, len(released["statements"]))
    assert [True, True] == ours(brain, PAGE)
    (block,) = [row["block"] for row in released["statements"] if row["block"] != "abcd"]
    assert TEXT.replace("face south.", f"face south. ^{block}") == brain.read_text(PAGE)
    assert {"event": None, "statements": []} == do(brain, "adopt", PAGE, "--json").json


def test_what_is_edited_after_is_a_persons_again(brain: Brain) -> None:
    """The text's hash counts, not the block id alone."""
    do(brain, "adopt", "--yes")
    path = brain.tree.absolute(PAGE)
    path.write_text(path.read_text().replace("in May", "in June"))
    assert [True, False] == ours(brain, PAGE)


@pytest.mark.parametrize("is_released", [False, True])
def test_a_released_statement_may_be_replaced(brain: Brain, clock: MovedClock, is_released: bool) -> None:
    """Before it is released Promotion puts a change before the person; afterwards it makes it.

    Seeds: S15.
    """
    text = TEXT.replace("The beds face south.\n  - with a nested line", "User lives in Portland since 2020.")
    brain.tree.absolute(PAGE).write_text(text)
    brain.observed.adopt()
    if is_released:
        do(brain, "adopt", PAGE)
    clock.ahead = timedelta(minutes=5)  # what a person edited a moment ago is left alone
    tell(brain, "one", "I moved to Seattle last week.")
    do(brain, "promote")
    memory = parse_memory(PAGE, brain.read_text(PAGE) or "")
    holds = [one.text for one in memory.statements if not one.is_history]
    assert is_released is not ("User lives in Portland since 2020." in holds)


def test_a_page_without_keys_gets_an_identity(brain: Brain) -> None:
    """A note that was just dropped can be released at once."""
    (brain.tree.long_term / "concrete/new.md").write_text("- Fresh fact.\n")
    released = do(brain, "adopt", "memory/long_term/concrete/new.md", "--json").json
    memory = parse_memory("", brain.read_text("memory/long_term/concrete/new.md") or "")
    assert memory.uuid
    assert [memory.uuid] == [row["page"] for row in released["statements"]]


def test_the_command(brain: Brain) -> None:
    """A page at once; all of memory only after a yes; nothing outside of it."""
    assert 2 == command(brain, "adopt").code
    assert [False, False] == ours(brain, PAGE)
    assert "2 statements are ours now." in do(brain, "adopt", "--yes").out
    assert "nothing to release" in do(brain, "adopt", PAGE).out
    assert [1, 1] == [command(brain, "adopt", path).code for path in ("memory/long_term/none.md", "system")]
