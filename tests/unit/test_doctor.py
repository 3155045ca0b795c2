"""What the doctor finds, and what it mends without losing anything."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from freezegun import freeze_time

from brainiac.brain import Brain
from brainiac.events import create, new_id
from brainiac.formats.page import parse_memory
from brainiac.pipeline.daemon import Daemon
from brainiac.testing import make_brain
from tests.support.commands import Shell

CONCRETE = "memory/long_term/concrete"


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    brain.observed.adopt()
    yield brain
    brain.close()


def page(brain: Brain, name: str, body: str = "", **keys: str) -> str:
    """Put a complete memory page there, as a process would, and return its path."""
    meta = {
        "uuid": new_id(), "created_at": "2025-09-16T15:30:00Z", "updated_at": "2025-09-16T15:30:00Z", "tags": "[]",
        "emotion": "neutral", "reinforcement_count": "0", **keys,
    }  # fmt: skip
    text = "---\n" + "".join(f"{key}: {value}\n" for key, value in meta.items()) + f"---\n# {name}\n{body}"
    path = f"{CONCRETE}/{name}.md"
    brain.commit("page-made", by="tester", changes=[create(path, text)])
    return path


def told(shell: Shell) -> list[tuple[str, str]]:
    """Return what is found: path and what is wrong."""
    return [(problem["path"], problem["what"]) for problem in shell("doctor", "--json").json["problems"]]


def mended(shell: Shell) -> list[tuple[str, str]]:
    """Mend, and return what is left."""
    shell("doctor", "--fix")
    return told(shell)


def test_broken_front_matter_is_left_to_the_person(brain: Brain, shell: Shell) -> None:
    """What cannot be read is named and not touched."""
    path = brain.tree.absolute(f"{CONCRETE}/mira.md")
    path.write_text("---\ntags: [family\n---\n# Mira\n")
    problems = shell("doctor", "--json").json["problems"]
    assert 1 == sum(not problem["is_fixable"] for problem in problems if problem["path"].endswith("mira.md"))
    mended(shell)
    assert "---\ntags: [family\n---\n# Mira\n" == path.read_text()


def test_of_two_pages_with_one_uuid_the_newer_gets_its_own(brain: Brain, shell: Shell) -> None:
    """A copied page becomes a page of its own; the original keeps the identity that links name."""
    uuid = new_id()
    first = page(brain, "first", uuid=uuid)
    second = page(brain, "second", uuid=uuid, created_at="2025-09-17T00:00:00Z")
    assert [(second, f"has the uuid of {first}")] == told(shell)
    assert [] == mended(shell)
    uuids = [parse_memory(path, brain.read_text(path) or "").uuid for path in (first, second)]
    assert uuid == uuids[0]
    assert uuid != uuids[1]


def test_what_is_no_uuid_is_told(brain: Brain, shell: Shell) -> None:
    """A hand-made identity that is none is for the person to decide."""
    path = page(brain, "mira", uuid="mira-1")
    assert [(path, "'mira-1' is not a uuid")] == told(shell)


def test_links_are_healed_by_their_uuid(brain: Brain, shell: Shell) -> None:
    """A link whose page moved gets the new path, its text and all others stay; one that leads nowhere is told.

    Seeds: S8.
    """
    uuid = new_id()
    page(brain, "mira", uuid=uuid)
    body = f'[Mira](old/mira.md "uuid:{uuid}") [gone](gone.md) [web](https://example.org) [[Wiki]] `[code](x.md)`\n'
    path = page(brain, "links", body)
    gone = (path, f"links to {CONCRETE}/gone.md, which is not there")
    assert [(path, f"links to {CONCRETE}/old/mira.md, which is {CONCRETE}/mira.md now"), gone] == told(shell)
    assert [gone] == mended(shell)
    assert body.replace("old/mira.md", "mira.md") in (brain.read_text(path) or "")


def test_a_link_in_what_was_said_once_is_no_fault(brain: Brain, shell: Shell) -> None:
    """An exchange is kept word for word, with a link to a page that is gone by now; below it, a link counts."""
    gone = f'[Boat](boat.md "uuid:{new_id()}")'
    event = f'### 2025-09-16T15:30:00Z\n<!-- event: e1 -->\n**User:** "Which boat?"\n**AI:** "{gone}"\n'
    path = page(brain, "day", f"## Event Log\n\n{event}")
    assert [] == told(shell)
    path = page(brain, "note", f"{gone}\n")
    assert [(path, f"links to {CONCRETE}/boat.md, which is not there")] == told(shell)


def test_every_folder_gets_its_index_page(brain: Brain, shell: Shell) -> None:
    """A folder made by hand gets an `_index.md`, those between it and the top included.

    Seeds: S8.
    """
    brain.tree.absolute(f"{CONCRETE}/people/family").mkdir(parents=True)
    page(brain, "people/family/mira")
    missing = [f"{CONCRETE}/people/_index.md", f"{CONCRETE}/people/family/_index.md"]
    assert [(path, "is missing") for path in missing] == told(shell)
    assert [] == mended(shell)
    assert "# Family" in (brain.read_text(missing[1]) or "")


def test_short_term_memory_without_a_heading_is_told(brain: Brain, shell: Shell) -> None:
    """A lost heading is named and left to the person, since what stands below it is theirs."""
    brain.tree.short_term.write_text(brain.tree.short_term.read_text().replace("## Event Log", "## Log"))
    assert any(path == "memory/short_term.md" and "Event Log" in what for path, what in told(shell))


def test_missing_places_are_made_anew(brain: Brain, shell: Shell) -> None:
    """A deleted short-term memory or identity comes back as a new brain has it."""
    brain.tree.short_term.unlink()
    assert ("memory/short_term.md", "is missing") in told(shell)
    assert [] == mended(shell)
    assert brain.tree.short_term.is_file()


def test_names_that_some_file_systems_take_for_one(brain: Brain, shell: Shell) -> None:
    """Two pages whose names differ by case or accents' encoding alone are told."""
    page(brain, "Cafe\u0301")
    page(brain, "caf\xe9")
    assert 1 == sum("same name" in what for _, what in told(shell))


def test_changes_that_nobody_saw_are_taken_in(brain: Brain, shell: Shell) -> None:
    """An edit made while nothing ran is told, and --fix records it without touching the file."""
    path = page(brain, "mira")
    text = (brain.read_text(path) or "") + "A botanist.\n"
    brain.tree.absolute(path).write_text(text)
    assert [(path, "was changed while nobody watched")] == told(shell)
    assert [] == mended(shell)
    assert text == brain.read_text(path)
    brain.tree.absolute(path).unlink()
    assert [(path, "was changed while nobody watched")] == told(shell)
    assert [] == mended(shell)


def test_a_question_that_failed_is_no_change_that_nobody_saw(brain: Brain, shell: Shell) -> None:
    """What `ask` saved is in the journal although nothing answered it."""
    (brain.root / "system/config.yaml").write_text("plugins: {disabled: [core_loop]}\n")
    asked = shell("ask", "Where is my locker?")
    assert (1, True) == (asked.code, "no plugin answered" in asked.err)
    assert ["system/config.yaml"] == [path for path, _ in told(shell)]


def test_what_a_daemon_takes_in_at_this_moment_is_no_problem(brain: Brain, shell: Shell) -> None:
    """A change is told only once the daemon has had the time to notice it."""
    path = page(brain, "mira")
    found: list[tuple[str, str]] = []
    daemon = Daemon(other := Brain(brain.root))
    daemon.start(is_watching=False)
    brain.tree.absolute(path).write_text((brain.read_text(path) or "") + "A botanist.\n")
    command = threading.Thread(target=lambda: found.extend(told(shell)))  # a lock is its thread's own
    command.start()
    command.join()
    daemon.stop()
    other.close()
    assert ([], [(path, "was changed while nobody watched")]) == (found, told(shell))


def test_garbage_in_the_access_log_is_told(brain: Brain, shell: Shell) -> None:
    """Lines that are no entries are named by number.

    Seeds: S14.
    """
    brain.tree.access_log.write_text("2025-09-16T15:30:00Z | READ | /b/memory/a.md\nhello\n")
    assert [("logs/access.log", "lines 2 are no entries")] == told(shell)


def test_leftovers_of_a_crash_are_swept_and_kept(brain: Brain, shell: Shell) -> None:
    """An old temporary file of ours is told and removed, its text kept in the journal; a young one is left alone."""
    left = brain.tree.inbox / ".brainiac-0123456789abcdef"
    left.write_text("half")
    assert [] == told(shell)
    with freeze_time(datetime.now(UTC) + timedelta(hours=2), tick=True):  # its time of change cannot be put back
        assert ["inbox/.brainiac-0123456789abcdef"] == [path for path, _ in told(shell)]
        assert [] == mended(shell)
    assert not os.path.lexists(left)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_folder_that_cannot_be_written_is_named(brain: Brain, shell: Shell) -> None:
    """On a disk that became read-only doctor says so of each place; what it tried leaves nothing behind."""
    inbox = str(brain.tree.inbox)
    assert [] == told(shell)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", inbox], capture_output=True)
    if mounted.returncode:
        pytest.skip("no mounts here")
    try:
        assert ("inbox", "cannot be written: Read-only file system") in told(shell)
    finally:
        subprocess.run(["umount", inbox], check=True)
    assert [] == list(brain.root.rglob(".brainiac-*"))
