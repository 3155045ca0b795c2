"""`brainiac log`: the journal, readable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.cli.log import moment
from brainiac.events import create, move
from brainiac.testing import make_brain
from tests.support.commands import Shell
from tests.support.said import say_to

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    brain.commit("page-made", by="tester", changes=[create("memory/long_term/a.md", "# A\n")])
    brain.commit("page-moved", by="person", changes=[move("memory/long_term/a.md", "memory/long_term/b.md", "# A\n")])
    brain.record("thing-noted", by="tester", data={"text": "one\ntwo " + "x" * 200, "none": None})
    yield brain
    brain.close()


def kinds(shell: Shell, *options: str) -> list[str]:
    return [event["kind"] for event in shell("log", "--json", *options).json]


def test_log_shows_newest_last(shell: Shell) -> None:
    """Each event is a line of local time, id, kind, by whom, its files relative to the brain, and its cause."""
    lines = [line.split("\t") for line in shell("log", "--all").out.splitlines()]
    assert ["page-made", "page-moved", "thing-noted"] == [line[2] for line in lines][-3:]
    assert "memory/long_term/a.md → memory/long_term/b.md" == lines[-2][4]
    assert all(len(line) == 6 for line in lines)
    assert lines[-1][4].startswith("text: one two xxx")
    assert len(lines[-1][4]) < 100


def test_log_shows_causes(shell: Shell, brain: Brain) -> None:
    """What an event followed from stands in its line, by the same short id under which it is listed itself."""
    first = brain.record("thing-asked", by="tester")
    brain.record("thing-followed", by="tester", cause=first.id)
    brain.record("thing-reflected", by="tester", data={"exchange": first.id})
    asked, followed, reflected = (line.split("\t") for line in shell("log", "--all", "-n", "3").out.splitlines())
    assert [asked[1], asked[1], ""] == [followed[5], reflected[5], asked[5]]


def test_log_tells_in_words(shell: Shell, brain: Brain) -> None:
    """By itself each thing is a line of words with the id that undoes it; steps of the program's own are left out."""
    say_to(brain, "tea.md", "I drink oolong.")
    lines = [line.split("\t") for line in shell("log").out.splitlines()]
    assert ["inbox/tea.md → answered (offline)"] == [line[2] for line in lines if "tea" in line[2]]
    assert all(len(line) == 3 and len(line[1]) == 8 for line in lines)
    assert "exchange-reflected" not in shell("log").out
    assert ["memory/long_term/a.md"] == [line[2].split(" → ")[0] for line in lines if "page-made" in line[2]]
    assert "tea" not in shell("log", "--memory").out


@pytest.mark.parametrize(
    ("at", "words"),
    [("2026-03-09T08:05", "08:05"), ("2026-03-08T23:59", "yesterday 23:59"), ("2026-03-04T07:00", "Wed 07:00"),
     ("2026-03-01T07:00", "2026-03-01 07:00"), ("2026-03-10T01:00", "2026-03-10 01:00")],
)  # fmt: skip
def test_moments_are_told_as_people_say_them(at: str, words: str) -> None:
    """Today's by the hour, yesterday's and this week's by the day, all else by the date."""
    assert words == moment(datetime.fromisoformat(at), datetime.fromisoformat("2026-03-09T09:00"))


def test_log_can_be_narrowed(shell: Shell) -> None:
    """By number, kind and doer."""
    assert ["thing-noted"] == kinds(shell, "-n", "1")
    assert ["page-moved"] == kinds(shell, "--kind", "page-moved")
    assert ["page-made", "thing-noted"] == kinds(shell, "--by", "tester")
    assert ["page-made"] == kinds(shell, "--by", "tester", "--kind", "page-made", "--kind", "page-moved")
    assert [] == kinds(shell, "-n", "0")


def test_log_json_is_the_whole_event(shell: Shell, brain: Brain) -> None:
    """A script gets everything that the journal line holds."""
    (event,) = shell("log", "--json", "--kind", "page-made").json
    (kept,) = brain.journal.events(kinds={"page-made"})
    assert (kept.id, kept.seq, kept.changes[0].after) == (event["id"], event["seq"], event["changes"][0]["after"])


def test_log_of_a_new_brain_is_empty(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing happened, or nothing of a kind: that is said, and is no error."""
    make_brain(tmp_path / "new").close()
    done = Shell(capsys, str(tmp_path / "new"))("log")
    assert (0, "", "No event to show.") == (done.code, done.out, done.err.strip())
    assert "of kind banana" in Shell(capsys, str(tmp_path / "new"))("log", "--kind", "banana").err


@pytest.mark.slow
def test_follow_shows_what_happens_meanwhile(brain: Brain) -> None:
    """`--follow` prints each event as another process records it."""
    command = [sys.executable, "-m", "brainiac", "--brain", str(brain.root), "log", "--follow", "--json", "-n", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        assert "thing-noted" == json.loads(process.stdout.readline())["kind"]
        brain.record("later-noted", by="tester")
        assert "later-noted" == json.loads(process.stdout.readline())["kind"]
    finally:
        process.kill()
        process.wait()
