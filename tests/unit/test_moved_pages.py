"""A page that one device moves while another edits or moves it is one page again, at its new path, on both."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from brainiac.testing import make_brain
from tests.support.commands import do, problems_of
from tests.support.devices import JOURNALS, Device, Syncthing

pytestmark = pytest.mark.slow

OLD, NEW, OTHER = (f"memory/long_term/{name}.md" for name in ("concrete/bob", "concrete/friends/bob", "skills/bob"))
REVIEW = "memory/review.md"
GARDEN = "memory/long_term/concrete/garden.md"
PAGE = """\
---
uuid: 0199aaaa-0000-7000-8000-00000000000{}
created_at: 2026-11-01T00:00:00Z
updated_at: 2026-11-01T00:00:00Z
tags: []
emotion: neutral
reinforcement_count: 0
---
# {}

- Likes tea, see [Garden](garden.md). ^aaaa
- Lives in Porto. ^bbbb
"""


class Pair:
    """A desk that runs the processes and a laptop, with the pages of both."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, has_journals: bool = True) -> None:
        self.desk, self.laptop = (Device(folder / f"{name}-home", folder / name, patch) for name in ("desk", "laptop"))
        self.desk.enter()
        make_brain(self.desk.root).close()
        for number, path in enumerate((OLD, GARDEN)):
            self.desk.drop(path, PAGE.format(number, path))
        with self.desk.opened() as brain:
            do(brain, "takeover")
        self.transport = Syncthing(() if has_journals else (JOURNALS,))
        self.transport.begin((self.desk, self.laptop))
        for device in (self.desk, self.laptop):
            device.run()

    def meet(self) -> None:
        """Sync and look until nothing changes any more; both hold the same then."""
        for _ in range(6):
            before = self.pages(self.desk), self.pages(self.laptop)
            for device in (self.desk, self.laptop):
                device.run()
            self.transport.sync(self.desk, self.laptop)
            self.transport.sync(self.laptop, self.desk)
            if before == (self.pages(self.desk), self.pages(self.laptop)):
                break
        assert before[0] == before[1]

    @staticmethod
    def pages(device: Device) -> dict[str, str]:
        files = device.files().items()
        return {path: text.decode() for path, text in files if path.endswith("bob.md") or path == REVIEW}


def move(device: Device, path: str, new_path: str) -> None:
    target = device.root / new_path
    target.parent.mkdir(parents=True, exist_ok=True)
    (device.root / path).rename(target)


def edit(device: Device, path: str, old: str, new: str) -> None:
    file = device.root / path
    file.write_text(file.read_text().replace(old, new))
    rested = time.time() - 1  # what was written this very moment may still be being saved
    os.utime(file, (rested, rested))


def whole(pair: Pair) -> None:
    move(pair.desk, OLD, NEW)


def edited_too(pair: Pair) -> None:
    """Nobody looks between: the journal has a page that went and another one that came."""
    move(pair.desk, OLD, NEW)
    edit(pair.desk, NEW, "# ", "# Uncle ")


def in_two_steps(pair: Pair) -> None:
    """The old path settles first, and a start lies between, so that the journal has no move."""
    text = (pair.desk.root / OLD).read_text()
    (pair.desk.root / OLD).unlink()
    pair.desk.run()
    pair.desk.drop(NEW, text)


@pytest.mark.parametrize("move_page", [whole, edited_too, in_two_steps])
@pytest.mark.parametrize("mover", ["desk", "laptop"])
def test_moved_here_and_edited_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move_page: Callable[[Pair], None], mover: str
) -> None:
    """The edit stands at the new path, nothing at the old one, whichever device runs the processes; a link leads where
    it led, what neither changed stands once, and nobody is asked."""
    pair = Pair(tmp_path, monkeypatch)
    if mover == "laptop":
        with pair.laptop.opened() as brain:
            do(brain, "takeover")
        pair.meet()
    move_page(pair)
    edit(pair.laptop, OLD, "Likes tea", "Likes green tea")
    pair.meet()
    pages = pair.pages(pair.desk)
    assert {NEW} == pages.keys()
    assert "- Likes green tea, see [Garden](../garden.md). ^aaaa\n- Lives in Porto. ^bbbb\n" in pages[NEW]
    assert ("# Uncle" in pages[NEW]) == (move_page is edited_too)
    with pair.laptop.opened() as brain:
        assert [] == [problem for problem in problems_of(brain) if OLD in problem]


def test_moved_to_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands at the first of them by name, with what both wrote."""
    pair = Pair(tmp_path, monkeypatch)
    move(pair.desk, OLD, OTHER)
    move(pair.laptop, OLD, NEW)
    edit(pair.laptop, NEW, "Likes tea", "Likes green tea")
    pair.meet()
    pages = pair.pages(pair.desk)
    assert ({NEW}, 1) == (set(pages) - {"memory/review.md"}, pages[NEW].count("green tea"))


def test_moved_on_while_the_old_path_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The desk sees the old path go when it merges what came back, then a third one: that grew from the second."""
    pair = Pair(tmp_path, monkeypatch)
    begun = (pair.desk.root / OLD).read_text()
    move(pair.desk, OLD, NEW)
    for pet in ("dog", "cat"):
        pair.desk.run()
        edit(pair.laptop, OLD, "- Lives", f"- Has a {pet}. ^{pet}\n- Lives")
        pair.laptop.run()
        pair.transport.sync(pair.laptop, pair.desk)
        pair.desk.run()
        if pet == "dog":
            pair.desk.drop(OTHER, begun + "- Has a bird. ^bird\n")
            pair.desk.run()
            (pair.desk.root / NEW).unlink()
    [page] = (text for path, text in pair.pages(pair.desk).items() if path != REVIEW)
    assert {"dog", "bird", "cat"} == set(re.findall("dog|bird|cat", page))


@pytest.mark.parametrize("mover", ["desk", "laptop"])
def test_without_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mover: str) -> None:
    """As with Obsidian Sync: the device that moved the page merges it, also where the other one runs the processes;
    which text of a statement is the newer one nobody knows, so that both stand."""
    pair = Pair(tmp_path, monkeypatch, has_journals=False)
    there, here = (pair.laptop, pair.desk) if mover == "laptop" else (pair.desk, pair.laptop)
    move(there, OLD, NEW)
    edit(here, OLD, "Likes tea", "Likes green tea")
    pair.meet()
    pages = pair.pages(pair.desk)
    assert {NEW, REVIEW} == pages.keys()
    assert ["- Likes green tea", "- Likes tea"] == sorted(re.findall("- Likes [a-z ]*tea", pages[NEW]))


def test_what_was_copied_by_hand_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that somebody copied, on a device that knows where it was moved before, is a page of its own."""
    pair = Pair(tmp_path, monkeypatch)
    move(pair.desk, OLD, NEW)
    pair.meet()
    pair.desk.drop(OTHER, (pair.desk.root / NEW).read_text())
    pair.meet()
    assert {NEW, OTHER} == pair.pages(pair.laptop).keys() == pair.pages(pair.desk).keys()


def test_a_half_arrived_move_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moved back on the laptop; of that the new file alone has arrived when the desk looks: what it removes then is
    not the last place where the page stands."""
    pair = Pair(tmp_path, monkeypatch)
    move(pair.desk, OLD, NEW)
    pair.meet()
    move(pair.laptop, NEW, OLD)
    pair.laptop.run()
    pair.transport.sync(pair.laptop, pair.desk, OLD)
    pair.desk.run()
    pair.meet()
    (text,) = pair.pages(pair.laptop).values()
    assert "Lives in Porto" in text
