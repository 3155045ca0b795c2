"""`brainiac.testing.World` speaks truly: each verb does what a person, a machine or a sync tool does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest

from brainiac.clock import ManualClock
from brainiac.testing import START, Moment, Save, World, make_brain, run_once

PAGE = "memory/long_term/concrete/mira.md"


def test_a_brain_whose_clock_stands_still_answers(tmp_path: Path) -> None:
    """`run_once` returns though nobody moves the clock while a file in the inbox waits to be finished."""
    brain = make_brain(tmp_path / "brain", clock=ManualClock(START))
    (brain.root / "inbox/a.md").write_text("I live in Portland.\n")
    assert 1 == run_once(brain).answered
    brain.close()


def test_a_dropped_prompt_is_answered_and_remembered(world: World) -> None:
    """`drop` and `run`: the answer stands beside the prompt, at the world's time, and the next one knows of it."""
    told = world.drop("told.md", "My locker is number 23.\n")
    assert told.answer is None
    assert 1 == world.run().answered
    assert told.answer
    asked = world.drop("trip/asked.md", "Where is my locker?\n")
    world.run()
    assert "My locker is number 23." in (asked.answer or "")
    assert "created_at: 2025-09-15T09:00:0" in world.tree()["inbox/trip/asked.response.md"]


def test_a_prompt_that_cannot_be_read_has_an_error(world: World) -> None:
    """Of a dropped file that is no text the error file is read."""
    broken = world.drop("broken.md", b"\xff\xfe\xff")
    world.run()
    assert broken.answer is None
    assert "Not answered" in (broken.error or "")


@pytest.mark.parametrize("how", get_args(Save))
def test_every_way_of_saving_leaves_the_text_and_nothing_else(world: World, how: Save) -> None:
    """A page that is saved in any way holds what was saved, is searched, and no temporary file stays."""
    world.save(PAGE, "My sister Mira is a botanist.\n")
    world.run()
    before, inode = set(world.tree()), (world.root / PAGE).stat().st_ino
    added = "She lives in Lund.\n"
    world.save(PAGE, added if how == "append" else f"My sister Mira is a botanist.\n{added}", how)
    assert "My sister Mira is a botanist.\nShe lives in Lund.\n" == world.tree()[PAGE]
    assert before == set(world.tree())
    assert (inode == (world.root / PAGE).stat().st_ino) == (how in ("write", "append"))
    world.run()
    assert PAGE in world.cli("search", "Lund").out


def test_two_days_under_a_daemon_files_what_was_said(world: World) -> None:
    """`tick` moves the clock and the timers: after two days what was said is on the page of the day it was said."""
    world.drop("a.md", "I moved to Portland.\n")
    world.run()
    assert "I moved to Portland." in world.tree()["memory/short_term.md"]
    world.tick(60)
    assert "I moved to Portland." in world.tree()["memory/short_term.md"]
    world.tick(2 * 24 * 3600)
    tree = world.tree()
    assert tree["memory/short_term.md"].endswith("## Event Log\n")
    [day] = [path for path, text in tree.items() if "2025-09-15" in path and "memory/" in path]
    assert "I moved to Portland." in tree[day]
    world.drop("b.md", "I bought a bicycle.\n")
    world.run()
    assert "created_at: 2025-09-17T09:0" in world.tree()["inbox/b.response.md"]


def test_commands_go_by_the_clock_of_the_world(world: World) -> None:
    """A command sees this brain at the world's time, and its exit code and both streams come back."""
    world.drop("a.md", "I moved to Portland.\n")
    world.run()
    assert {"2025-09-15"} == {line["at"][:10] for line in world.cli("log", "--json").json}
    assert world.cli("search", "Portland", "--json").json
    wrong = world.cli("show", "inbox/a.md", "--at", "never")
    assert (1, "") == (wrong.code, wrong.out)
    assert "'never' is no time" in wrong.err


def test_typed_words_are_read(world: World) -> None:
    """What is typed at a command's standard input is what it reads."""
    done = world.cli("chat", typed="I live in Portland.\nWhere do I live?\n")
    assert "Portland" in done.out, done
    assert "I live in Portland." in world.tree()["memory/short_term.md"]


def test_a_machine_of_its_own(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No verb touches the home of who runs the test, nor its environment, whatever it is set to."""
    elsewhere = tmp_path / "elsewhere"
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "BRAINIAC_HOME"):
        monkeypatch.setenv(name, str(elsewhere))
    before = dict(os.environ)
    world.drop("a.md", "I moved to Portland.\n")
    world.run()
    world.cli("search", "Portland")
    assert not elsewhere.exists()
    assert before == dict(os.environ)
    assert {"config", "state", "cache"} >= {path.name for path in world.home.iterdir()}
    assert ["laptop-0a1b2c"] == [path.name for path in (world.root / "logs/journal").iterdir() if path.name != "blobs"]


@pytest.mark.slow
@pytest.mark.parametrize("how", get_args(Moment))
def test_killed_at_each_moment_a_daemon_loses_and_doubles_nothing(tmp_path: Path, how: Moment) -> None:
    """`kill` ends a real process at any operation on the disk; the next run has one answer and one event."""
    killed = 0
    for at in range(1, 1000, 37):
        world = World(tmp_path / str(at))
        asked = world.drop("a.md", "I moved to Portland.\n")
        if not world.kill(at, how):
            break
        killed += 1
        world.run()
        assert asked.answer
        assert 1 == world.tree()["memory/short_term.md"].count("I moved to Portland.")
    else:
        pytest.fail("it was killed each time: the command never ends")
    assert killed >= 2


def test_a_command_is_killed(world: World) -> None:
    """Any command may be the one that dies, and one that ends before is said to have ended."""
    world.save(PAGE, "My sister Mira is a botanist.\n")
    world.run()
    assert world.kill(1, "before", "forget", PAGE, "--yes")
    assert PAGE in world.tree()
    assert not world.kill(100_000, "before", "forget", PAGE, "--yes")
    assert PAGE not in world.tree()


def test_what_two_devices_say_is_known_to_both(world: World) -> None:
    """`device` has a copy of the brain and a journal of its own; `sync` brings pages and journals both ways."""
    world.save(PAGE, "My sister Mira is a botanist.\n")
    world.run()
    tablet = world.device("tablet")
    assert "My sister Mira is a botanist.\n" == tablet.tree()[PAGE]
    tablet.save("memory/long_term/concrete/tom.md", "My brother Tom is a baker.\n")
    tablet.run()
    world.sync(tablet)
    world.run()
    assert "tom.md" in world.cli("search", "baker").out
    journals = {path.name for path in (world.root / "logs/journal").iterdir()}
    assert {"laptop-0a1b2c", "tablet-0a1b2c"} <= journals


def test_what_both_changed_stands_once_and_as_a_conflict_copy(world: World) -> None:
    """The later save stands on both, the other as a copy on both, a deletion loses; a run merges the two."""
    world.save(PAGE, "- A botanist.\n")
    world.save("memory/long_term/concrete/gone.md", "Deleted here, changed there.\n")
    world.run()
    tablet = world.device("tablet")
    world.save(PAGE, "- A botanist.\n- In Lund.\n")
    (world.root / "memory/long_term/concrete/gone.md").unlink()
    world.tick(5)
    tablet.save(PAGE, "- A botanist.\n- With a dog.\n")
    tablet.save("memory/long_term/concrete/gone.md", "Changed there.\n")
    world.sync(tablet)
    for device in (world, tablet):
        assert "- A botanist.\n- With a dog.\n" == device.tree()[PAGE]
        [copy] = [text for path, text in device.tree().items() if "mira.sync-conflict" in path]
        assert "- In Lund." in copy
        assert "Changed there.\n" == device.tree()["memory/long_term/concrete/gone.md"]
    world.run()
    assert {"- In Lund.", "- With a dog."} <= set(world.tree()[PAGE].split("\n"))
    assert [] == [path for path in world.tree() if "sync-conflict" in path]


def test_three_devices_that_pass_a_change_on_have_no_conflict(world: World) -> None:
    """A change that comes by way of a third device is no change of both."""
    world.save(PAGE, "- One.\n")
    tablet, desk = world.device("tablet"), world.device("desk")
    world.save(PAGE, "- One.\n- Two.\n")
    world.sync(tablet)
    tablet.save(PAGE, "- One.\n- Two.\n- Three.\n")
    tablet.sync(desk)
    desk.sync(world)
    assert "- One.\n- Two.\n- Three.\n" == world.tree()[PAGE]
    assert 0 == world.file_sync.copies
