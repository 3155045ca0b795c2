"""The example plugin: a line in the daily note for every answered question."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.pipeline.daemon import Daemon
from brainiac.testing import install_plugin, make_brain, run_once

EXAMPLE = Path(__file__).parent.parent.parent / "examples/plugins/daily_note.py"


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    install_plugin(brain, EXAMPLE)
    yield brain
    brain.close()


def ask(brain: Brain, name: str, text: str) -> list[str]:
    """Save a prompt, let it be answered, and return the lines of the daily note."""
    (brain.tree.inbox / name).write_text(text)
    run_once(brain)
    (note,) = [*(brain.root / "daily").glob("[0-9]*.md"), Path("/dev/null")][:1]
    return [line for line in note.read_text().splitlines() if line.startswith("- ")]


def test_a_line_for_each_answer_with_links_that_lead_there(brain: Brain) -> None:
    """Each answered question has one line, in order, with links to prompt and answer.

    Seeds: U4.
    """
    ask(brain, "one.md", "I live in Portland.")
    lines = ask(brain, "two.md", "Where do I live?")
    assert 2 == len(lines)
    assert "[I live in Portland.](<../inbox/one.md>) → [answer](<../inbox/one.response.md>)" in lines[0]
    assert "[Where do I live?](<../inbox/two.md>)" in lines[1]
    assert all((brain.root / "daily" / f"../inbox/{name}.response.md").exists() for name in ("one", "two"))


def test_a_second_call_changes_nothing(brain: Brain) -> None:
    """An exchange that is told of again, as after a crash, adds no second line."""
    lines = ask(brain, "one.md", "I live in Portland.")
    from brainiac.pipeline.dispatch import exchange_of

    (event,) = brain.journal.events(kinds={"prompt-answered"})
    brain.plugins.call("response_arrived", brain=brain, exchange=exchange_of(brain, event))
    assert lines == ask(brain, "nothing.txt", "")


def test_a_revision_takes_the_place_of_what_it_revises(brain: Brain) -> None:
    """A question saved anew has one line, that of its last text."""
    ask(brain, "one.md", "I live in Portland.")
    (line,) = ask(brain, "one.md", "I live in Salem.")
    assert "I live in Salem." in line


def test_what_is_off_the_record_is_not_noted(brain: Brain) -> None:
    """A prompt that is not to be remembered leaves no line."""
    assert [] == ask(brain, "one.md", "---\nremember: false\n---\nI like jazz.")


def test_a_persons_lines_stay(brain: Brain) -> None:
    """What a person writes into the note stands beside the plugin's lines."""
    ask(brain, "one.md", "I live in Portland.")
    (note,) = (brain.root / "daily").glob("[0-9]*.md")
    note.write_text(note.read_text() + "- bought bread\n")
    lines = ask(brain, "two.md", "Where do I live?")
    assert ["- bought bread"] == lines[1:2]
    assert 3 == len(lines)


def test_a_running_daemon_keeps_the_note(brain: Brain) -> None:
    """With the daemon at work, a dropped prompt is answered and noted without anybody asking.

    Seeds: U3, U4.
    """
    daemon = Daemon(brain)
    daemon.start()
    try:
        (brain.tree.inbox / "live.md").write_text("I live in Portland.\n")
        deadline = time.monotonic() + 30
        while not list((brain.root / "daily").glob("[0-9]*.md")) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        daemon.stop()
    (note,) = (brain.root / "daily").glob("[0-9]*.md")
    assert "live.response.md" in note.read_text()
