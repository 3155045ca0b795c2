"""`memory/Today.md`: what is due, what waits as boxes to tick and what changed, for Obsidian and a phone alone.

Each test is a folder that a person opens: files saved, commands run, time passing under the daemon.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import UserError
from brainiac.events import TreeTidied
from brainiac.history.rebuild import make_raw
from brainiac.storage.today import MAX_LINES, renewed, without_ours
from brainiac.testing import World

TODAY = "memory/Today.md"
QUIET = 3600.0  # longer than the quiet after which memory is put in order, and than a file rests


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a brain that was told some things, and in which somebody wishes the dentist forgotten."""
    made = World(tmp_path)
    made.save("system/config.yaml", "today: true\n", "append")
    made.drop("a.md", "/remember The spare key hangs behind the blue door.")
    made.drop("b.md", "/todo Send the contract to Mira by 2025-09-20")
    made.drop("c.md", "/todo Water the lemon tree")
    made.drop("d.md", "/remember My dentist is Dr. Vogel.")
    made.run()
    made.cli("promote")
    made.drop("e.md", "/forget Vogel")
    made.run()
    made.tick(QUIET)
    return made


def text(world: World) -> str:
    return world.tree().get(TODAY, "")


def edit(world: World, old: str, new: str) -> None:
    """Save it with a change, as Obsidian does, and let time pass."""
    assert old in text(world)
    world.save(TODAY, text(world).replace(old, new, 1), "replace")
    world.tick(QUIET)


def writings(world: World) -> int:
    """Return how often it was written by us."""
    with world.opened() as brain:
        return sum(event.data["what"] == "today" for event in brain.journal.events(kinds={TreeTidied}))


def problems(world: World) -> list[str]:
    return [problem["path"] for problem in world.cli("doctor", "--json").json["problems"]]


def test_it_says_what_is_due_what_waits_and_what_was_learned(world: World) -> None:
    """F-TDY-1: What has a day comes first, what waits has a box, what was learned a link to its page.

    Seeds: U4.
    """
    told = text(world)
    due, waits, lately = (told.index(f"## {title}") for title in ("Due", "Waits for you", "Lately"))
    assert due < told.index("2025-09-20: Send the contract") < told.index("- Water the lemon tree") < waits
    assert re.search(r"- \[ \] Forget .* <!-- proposal: ", told[waits:lately])
    (key,) = [line for line in told[lately:].splitlines() if "spare key" in line]
    link = re.search(r"\]\(([^)]+)\)$", key)
    assert link
    assert (world.root / "memory" / link[1]).is_file()
    assert [] == problems(world)


def test_none_is_written_unless_asked_for(tmp_path: Path) -> None:
    """F-TDY-1: Without the setting there is no such file; one that a person has of that name is theirs."""
    world = World(tmp_path)
    world.drop("a.md", "/todo Water the lemon tree")
    world.run()
    world.tick(QUIET)
    assert "" == text(world)
    world.save(TODAY, "My own day.\n")
    world.tick(QUIET)
    assert "My own day.\n" == text(world)


def test_it_is_written_when_its_content_changes_and_no_more(world: World) -> None:
    """F-TDY-2: Not for each answer, not each day, and neither twice for one change; of many lines so many are told."""
    former = text(world), writings(world)
    for name in ("f", "g"):
        world.drop(f"{name}.md", "What is the time?")
        world.run()
        world.tick(QUIET)
    world.tick(86_400)
    assert former == (text(world), writings(world))
    for number in range(MAX_LINES + 10):
        world.drop(f"t{number}.md", f"/todo Count the {number}. star of the northern sky")
    world.run()
    world.tick(QUIET)
    assert former[1] + 1 == writings(world)
    assert (MAX_LINES - 2, 1) == (text(world).count("star of the northern sky"), text(world).count("- 12 more\n"))


def test_a_tick_decides_what_waits(world: World) -> None:
    """F-TDY-3: It is done as if it had been ticked in `review.md`, once, and goes from both; doctor agrees."""
    assert "Vogel" in text(world)
    edit(world, "- [ ] Forget", "- [x] Forget")
    world.tick(QUIET)
    standing = {path for path, words in world.tree().items() if "Vogel" in words and not path.startswith("logs/")}
    assert set() == standing
    assert ("Forget" in text(world), "Forget" in world.tree()["memory/review.md"]) == (False, False)
    assert "spare key" in text(world)
    assert [] == problems(world)


def test_what_is_declined_stays(world: World) -> None:
    """F-TDY-3: A dash declines; a tick in one file against a dash in the other decides nothing."""
    review = world.tree()["memory/review.md"]
    world.save("memory/review.md", review.replace("- [ ] Forget", "- [x] Forget"), "replace")
    edit(world, "- [ ] Forget", "- [-] Forget")
    assert "Vogel" in world.tree()["memory/short_term.md"] + text(world)
    assert "- [-] Forget" in text(world)  # their mark is not touched
    world.save("memory/review.md", review, "replace")
    world.tick(QUIET)
    assert "Forget" not in text(world)
    assert "My dentist is Dr. Vogel." in text(world)


def test_a_persons_lines_stay_and_what_they_take_out_does_not_come_back(world: World) -> None:
    """F-TDY-4: Own lines, a remark below a line of ours and a line that was reworded outlive each writing."""
    edit(world, "- Water the lemon tree\n", "- Water the lemon tree\n  - with rain water\n- buy bread\n")
    edit(world, "2025-09-20: Send the contract", "2025-09-20, by train: Send the contract")
    gone = next(line for line in text(world).splitlines() if "spare key" in line)
    edit(world, f"{gone}\n", "")
    world.drop("h.md", "/todo Call the plumber")
    world.run()
    world.tick(QUIET)
    told = text(world)
    assert ["- buy bread", "  - with rain water", "by train"] == [
        words for words in ("- buy bread", "  - with rain water", "by train") if told.count(words) == 1
    ]
    assert ("Call the plumber" in told, gone in told) == (True, False)
    world.drop("i.md", "/done Water the lemon tree")
    world.run()
    world.tick(QUIET)
    assert "  - with rain water" in text(world)


def test_a_save_of_an_old_buffer_is_merged(world: World) -> None:
    """F-TDY-4: An editor that has had it open since yesterday takes back nothing that was written meanwhile."""
    buffer = text(world)
    world.drop("h.md", "/todo Call the plumber")
    world.run()
    world.tick(QUIET)
    world.save(TODAY, f"{buffer}\nRemember the umbrella.\n", "backup")
    world.tick(QUIET)
    assert ("Call the plumber" in text(world), "Remember the umbrella." in text(world)) == (True, True)


def test_what_is_private_is_left_out(world: World) -> None:
    """F-TDY-5: What stands on a page that becomes private is not told, nor tasks where one of them is private."""
    world.save("memory/short_term.md", world.tree()["memory/short_term.md"].replace(
        "- [ ] Water the lemon tree", "- [ ] Water the lemon tree <!-- private -->"))  # fmt: skip
    (page,) = (path for path, words in world.tree().items() if "/concrete/notes/2" in path and "spare key" in words)
    world.save(page, world.tree()[page].replace("---\n", "---\nprivate: true\n", 1), "replace")
    world.tick(QUIET)
    told = [words for words in ("spare key", "Vogel", "lemon tree", "contract") if words in text(world)]
    assert ([], 1) == (told, text(world).count("- [ ] Forget"))


def test_it_is_neither_searched_nor_consolidated_nor_shown(world: World) -> None:
    """F-TDY-5: It repeats memory: nothing is found in it, and what a person writes there is not said to the brain."""
    edit(world, "## Due\n", "## Due\n\nThe zebra is called Ottokar.\n")
    assert [] == world.cli("search", "zebra Ottokar", "--json").json.get("hits", [])
    assert [TODAY] == [path for path, words in world.tree().items() if "Ottokar" in words and "logs/" not in path]
    with pytest.raises(UserError):
        world.door("fetch", id=TODAY)


def test_forgetting_undoing_and_making_anew_agree_with_it(world: World) -> None:
    """F-TDY-6: A purge leaves no word in it or its versions, `undo` is told by it, `rebuild` takes a person's lines."""
    edit(world, "## Due\n", "## Due\n\nMy own line.\n")
    world.cli("undo", "--last")
    assert ("spare key" in text(world), "My own line." in text(world)) == (False, True)
    world.cli("forget", "--purge", "Vogel", "--yes")
    assert ("Vogel" in text(world), "My own line." in text(world)) == (False, True)
    found = world.cli("prove", "forgotten", "Vogel", "--json")
    assert 0 == found.code, found.out
    assert [] == problems(world)
    made = world.folder / "made"
    with world.opened() as brain:
        make_raw(brain, made)
    assert "My own line.\n\n" == (made / TODAY).read_text()


LINES = st.lists(st.sampled_from(["- a", "- b", "- c", "# T", "## S", "words", "", "- [ ] q <!-- proposal: p1 -->"]))


@given(st.lists(LINES, min_size=2, max_size=4), LINES)
def test_a_merge_keeps_their_lines_and_comes_to_rest(fresh: list[list[str]], own: list[str]) -> None:
    """F-TDY-4: Whatever ours is from one writing to the next, theirs stands, and a second writing does nothing."""
    texts = ["".join(f"{line}\n" for line in lines) for lines in fresh]
    theirs = [f"{line} of mine" for line in own if line.strip()]
    present = renewed("", texts[0])
    head, newline, tail = present.partition("\n")
    present = head + newline + "".join(f"{line}\n" for line in theirs) + tail
    for each in texts:
        present = renewed(present, each)
        assert present == renewed(present, each)
        assert set(theirs) <= set(present.splitlines())
        assert set(filter(None, each.splitlines())) <= set(present.splitlines())
    assert sorted(theirs) == sorted(line for line in without_ours(present).splitlines() if line)
