"""A promotion is interrupted at every disk operation; a person saves the same pages while one runs."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.formats.page import parse_exchanges
from brainiac.storage.commit import Committer
from brainiac.storage.journal import Journal
from brainiac.tree import LocalPlaces
from tests.support.kernel import CountingDisk, Crash, PowerDisk
from tests.support.promotions import START, later, make_brain, page_with, pages, statements, tell, with_model

SAID = (
    "My sister Ruth has a bicycle.",
    "How I water plants:\n1. fill the can\n2. pour slowly",
    "hi!",
    "I don't like tea.",
)


def prepare(tmp_path: Path) -> Path:
    """Make a brain with pages and an event log once, then put copies of it in place."""
    root, kept = tmp_path / "brain", tmp_path / "kept"
    state = LocalPlaces.of(tmp_path, "x").device
    if kept.exists():
        for name, folder in (("root", root), ("state", state)):
            shutil.rmtree(folder)
            shutil.copytree(kept / name, folder)
        return root
    brain = make_brain(root)
    tell(brain, "My sister Ruth lives in Bristol.")
    tell(brain, "I like tea.")
    promote(brain)
    later(brain)
    for text in SAID:
        tell(brain, text)
    brain.close()
    shutil.copytree(root, kept / "root")
    shutil.copytree(state, kept / "state")
    return root


def opened(root: Path, disk: CountingDisk | None = None) -> Brain:
    """Open it, with a disk that fails if one is given."""
    brain = with_model(Brain(root, clock=ManualClock(START)))
    later(brain, 7200)
    if disk:
        brain.__dict__["journal"] = Journal(brain.tree, brain.places, disk)
        brain.__dict__["committer"] = Committer(brain.tree, brain.places, brain.journal, brain.clock, disk)
    return brain


def check(brain: Brain) -> bool:
    """Every exchange is in the log or on its day's page, once; tree and journal agree; return whether it is filed."""
    log = [event.user for event in brain.short_term().memory.events]
    filed = [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert sorted((*SAID, "My sister Ruth lives in Bristol.", "I like tea.")) == sorted([*log, *filed])
    assert log in ([], list(reversed(SAID)))
    assert [] == brain.observed.adopt()
    promoted = list(brain.journal.events(kinds={"memory-promoted"}))
    assert 2 - bool(log) == len(promoted)
    assert bool(log) != any("bicycle" in text for text in statements(brain))
    return not log


def rounds(tmp_path: Path) -> int:
    disk = CountingDisk()
    brain = opened(prepare(tmp_path), disk)
    promote(brain)
    brain.committer.database.close()
    return len(disk.done)


LAST_OPERATIONS = 16  # of some hundreds


@pytest.mark.parametrize(("kind", "how"), [(CountingDisk, "before"), (CountingDisk, "torn"), (PowerDisk, "after")])
def test_a_promotion_interrupted_anywhere_is_whole_or_not_at_all(
    tmp_path: Path, kind: type[CountingDisk], how: str
) -> None:
    """After recovery all pages, index pages and short-term memory are as before or as after, and a new run ends it."""
    total, outcomes = rounds(tmp_path), set()
    prepare(tmp_path)
    for number in range(1, total + 1, 4 if how == "before" else 8):
        root = prepare(tmp_path)
        disk = kind(number, how)
        broken = opened(root, disk)
        try:
            promote(broken)
        except Crash:
            pass
        else:  # block ids and blob folders differ from run to run, and so does the last operation's number
            assert len(disk.done) < number
            assert total - number < LAST_OPERATIONS
            continue
        broken.committer.database.close()
        if isinstance(disk, PowerDisk):
            disk.fail()

        brain = opened(root)
        brain.committer.recover()
        outcomes.add(check(brain))
        if number % 8 == 1:
            promote(brain)
            assert check(brain)
        brain.committer.database.close()
    assert {True, False} == outcomes


def test_no_save_of_a_racing_editor_is_lost(tmp_path: Path) -> None:
    """Whoever saves a page again and again while promotions run finds all they wrote, and every statement too."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My sister Ruth lives in Bristol.")
    promote(brain)
    path = brain.root / page_with(brain, "Ruth").path
    written: list[str] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            text = path.read_text()
            line = f"Note {len(written)} of mine."
            path.write_text(text + f"\n{line}\n")
            written.append(line)
            time.sleep(0.03)

    assert isinstance(brain.clock, ManualClock)
    editor = threading.Thread(target=write)
    editor.start()
    try:
        for number in range(6):
            brain.clock.advance(3600)
            tell(brain, f"Ruth has {number + 2} bicycles in shed {number}.")
            promote(brain)
    finally:
        stop.set()
        editor.join()
    brain.clock.advance(3600)
    brain.observed.adopt()
    brain.clock.advance(3600)
    promote(brain)
    brain.committer.check_displaced()
    text = path.read_text()
    journaled = [brain.committer.text_of(change.after).decode() for event in brain.journal.events()
                 for change in event.changes if change.after and change.path.endswith(path.name)]  # fmt: skip
    assert [] == [line for line in written if line not in text and not any(line in one for one in journaled)]
    assert () == brain.short_term().memory.events
