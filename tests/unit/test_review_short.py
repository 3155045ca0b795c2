"""`review.md` stays short: a handful a week, a box for each kind, and `brainiac review`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brainiac.events import ProposalDecided, ProposalMade
from brainiac.testing import World
from brainiac.verbs import suggest

REVIEW, PAGE, DAY = "memory/review.md", "memory/long_term/concrete/home.md", 86400
ROOMS = "kitchen hall attic cellar study porch garden".split()
UUID = "01995b2e-7c00-7000-8000-000000000001"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A brain with a page of a statement a room."""
    made = World(tmp_path)
    statements = "".join(f"- The {room} is red. ^{room[:2]}{at}a\n" for at, room in enumerate(ROOMS))
    made.save(PAGE, f"---\nuuid: {UUID}\n---\n# Home\n\n{statements}")
    made.run()
    return made


def suggested(world: World, *rooms: str, change: str = "end") -> None:
    """Have a client suggest that statements ended."""
    for room in rooms:
        text = f"The {room} is blue." if change == "replace" else ""
        world.door("suggest", id=f"The {room} is red.", change=change, text=text)


def review(world: World) -> str:
    file = world.root / REVIEW
    return file.read_text() if file.exists() else ""


def asked(world: World) -> list[str]:
    """Return the rooms that lines of the file are about."""
    return re.findall(r"^- \[[^\n]*The (\w+) is red[^\n]*<!-- proposal: ", review(world), re.MULTILINE)


def decided(world: World) -> list[str]:
    with world.opened() as brain:
        return [event.data["how"] for event in brain.journal.events(kinds={ProposalDecided})]


def tick(world: World, old: str, new: str) -> None:
    world.save(REVIEW, review(world).replace(old, new))
    world.run()


def holds(world: World) -> list[str]:
    """Return the rooms whose statements stand outside of History."""
    body, _, _ = (world.root / PAGE).read_text().partition("## History")
    return re.findall(r"The (\w+) is red", body)


def test_five_new_lines_a_week_and_the_rest_waits(world: World) -> None:
    """F-REV-7: The file says how many wait; they come when a week is over or lines are decided, the oldest first."""
    suggested(world, *ROOMS)
    assert (ROOMS[:5], True) == (
        asked(world),
        review(world).endswith("2 more wait: `brainiac review --waiting` <!-- waiting -->\n"),
    )
    told = world.cli("review")
    assert ["kitchen" in told.out, "porch" in told.out, "2 more wait" in told.out] == [True, False, True]
    waits = world.cli("review", "--waiting", "--json").json
    assert ROOMS[5:] == [re.findall(r"The (\w+) is", line["what"])[0] for line in waits["lines"]]
    world.tick(6 * DAY)
    assert ROOMS[:5] == asked(world)
    tick(world, "- [ ] Retire “The hall", "- [-] Retire “The hall")
    world.tick(120)
    assert [room for room in ROOMS if room not in ("hall", "garden")] == asked(world)
    assert review(world).endswith("1 more waits: `brainiac review --waiting` <!-- waiting -->\n")
    world.tick(DAY)
    assert ROOMS[6] in asked(world)
    assert "more wait" not in review(world)


def test_a_line_that_waited_lapses_30_days_after_it_was_shown(world: World) -> None:
    """F-REV-7, F-REV-6: Until it has a line, nobody could have decided on it."""
    suggested(world, *ROOMS)
    world.tick(8 * DAY)
    assert ROOMS == asked(world)
    world.tick(22 * DAY)
    assert (ROOMS[5:], ["lapsed"] * 5) == (asked(world), decided(world))
    world.tick(8 * DAY)
    assert ([], ["lapsed"] * 7) == (asked(world), decided(world))
    assert "Review" in review(world)
    assert "## " not in review(world)


def test_what_the_person_asks_for_is_never_held_back(world: World) -> None:
    """F-REV-7: Nor is a prompt's `/forget`; what processes ask for has the room that is theirs."""
    suggested(world, *ROOMS[:5])
    with world.opened() as brain:
        suggest(brain, "The porch is red.", "end")
    world.drop("forget.md", "/forget garden")
    world.run()
    assert [*ROOMS[:5], "porch"] == asked(world)
    assert "as listed beside inbox/forget.md" in review(world)
    assert "more wait" not in review(world)


def test_what_would_destroy_comes_before_the_rest(world: World) -> None:
    """F-REV-7: Of those that wait it has its line first, though it was asked last."""
    suggested(world, *ROOMS[:6])
    suggested(world, "garden", change="forget")
    with world.opened() as brain:
        (made,) = [e for e in brain.journal.events(kinds={ProposalMade}) if "garden" in str(e.data)]
        assert made.data["proposals"][0]["waits"]
    tick(world, "- [ ] Retire “The hall", "- [-] Retire “The hall")
    world.tick(120)
    assert ("garden" in asked(world), "porch" in asked(world)) == (True, False)


def test_what_waits_and_became_pointless_or_private_or_was_forgotten_is_not_shown(world: World) -> None:
    """F-REV-7: What it was about changed: it expires. Of a page that is private by now its line has the mark."""
    suggested(world, *ROOMS)
    page = (world.root / PAGE).read_text()
    world.save(PAGE, page.replace("The porch is red.", "The porch is gone."))
    world.run()
    world.tick(8 * DAY)
    assert [*ROOMS[:5], "garden"] == asked(world)
    assert ["expired"] == decided(world)


def test_a_box_decides_all_lines_of_its_kind(world: World) -> None:
    """F-REV-8: All but the line with a mark of its own; each once, and all taken back by one `undo`."""
    suggested(world, *ROOMS[:3])
    assert 1 == review(world).count("all of these")
    world.save(REVIEW, review(world).replace("- [ ] Retire “The hall", "- [-] Retire “The hall"))
    tick(world, "- [ ] all", "- [x] all")
    assert ["hall", *ROOMS[3:]] == holds(world)
    assert ["applied", "applied", "declined"] == sorted(decided(world))
    world.run()
    world.tick(120)
    assert ("all of" in review(world), asked(world), len(decided(world))) == (False, [], 3)
    assert "3 decided at once" in world.cli("log").out
    assert 0 == world.cli("undo", "--last").code
    assert set(ROOMS) == set(holds(world))


def test_a_box_is_for_the_lines_that_stood_below_it(world: World) -> None:
    """F-REV-8: Not for one that came while the person ticked, one that they took out, or one that is half typed."""
    suggested(world, *ROOMS[:4])
    text = review(world).replace("- [ ] all", "- [x] all").replace("- [ ] Retire “The hall", "- [ Retire “The hall")
    text = "".join(line for line in text.splitlines(keepends=True) if "The attic" not in line)
    suggested(world, "study")  # the editor has not loaded it
    world.save(REVIEW, text)
    world.run()
    assert ["hall", "attic", *ROOMS[4:]] == holds(world)
    assert "study" in asked(world)


def test_a_box_that_arrives_by_sync_acts_once(world: World) -> None:
    """F-REV-8: A passive device ticks it; the active one, which meanwhile added a line, does it and no more."""
    suggested(world, *ROOMS[:2])
    assert 0 == world.cli("takeover").code
    phone = world.device("phone")
    phone.save(REVIEW, review(phone).replace("- [ ] all", "- [x] all"))
    phone.run()
    assert [] == decided(phone)
    suggested(world, "attic")
    world.clock.advance(60)
    for _ in range(3):
        world.sync(phone)
        world.run()
        phone.run()
    assert ROOMS[2:] == holds(world) == holds(phone)
    assert ["applied"] * 2 == decided(world)
    assert ["attic"] == [room for room in asked(world) if room in holds(world)]


def test_a_box_with_one_line_left_goes_and_remarks_stay(world: World) -> None:
    """F-REV-4, F-REV-8: What a person wrote between stands byte for byte."""
    suggested(world, *ROOMS[:2])
    suggested(world, "attic", change="replace")
    assert ["## To be ended", "## To be written"] == re.findall(r"## .*", review(world))
    text = review(world).replace("- [ ] Retire “The hall", "Ask Mira first.\n\n- [-] Retire “The hall")
    world.save(REVIEW, text)
    world.run()
    world.tick(120)
    gone = [line for line in text.splitlines() if "all of these" in line or "The hall" in line]
    assert [line for line in text.splitlines() if line not in gone] == review(world).splitlines()


def test_review_decides_by_line_by_kind_and_all_of_them(world: World) -> None:
    """`review --yes KIND --no ID`: the line named wins; what is decided at once is one `undo`."""
    suggested(world, *ROOMS[:3])
    suggested(world, "study", change="replace")
    rows = {line["what"].split()[2]: line for line in world.cli("review", "--json").json["lines"]}
    assert {"retire", "replace"} == {line["kind"] for line in rows.values()}
    assert (1, True) == ((said := world.cli("review", "--yes", "nothing")).code, "names no line" in said.err)
    said = world.cli("review", "--yes", "retire", "--no", rows["hall"]["id"][-8:], "--json")
    assert ["applied", "applied", "declined"] == sorted(said.json["decided"].values())
    assert ["hall", *ROOMS[3:]] == holds(world)
    assert ["study"] == asked(world)
    assert 0 == world.cli(*said.json["undo"].split()[1:]).code
    assert set(ROOMS) == set(holds(world))
    told = world.cli("review", "--yes", "all")
    assert "applied: Replace “The study is red.”" in told.out
    assert "The study is blue." in (world.root / PAGE).read_text()
    assert "Nothing waits" in world.cli("review").out


def test_what_waits_can_be_decided_too(world: World) -> None:
    """`review --waiting --no all` clears what has no line yet, and leaves the lines."""
    suggested(world, *ROOMS)
    assert 0 == world.cli("review", "--waiting", "--no", "all").code
    assert (ROOMS[:5], ["declined"] * 2) == (asked(world), decided(world))
    assert "more wait" not in review(world)


def test_the_settings_say_how_many(world: World) -> None:
    """`review.max_new`."""
    config = world.root / "system/config.yaml"
    world.save("system/config.yaml", config.read_text() + "\nreview: {max_new: 2}\n")
    suggested(world, *ROOMS)
    assert ROOMS[:2] == asked(world)


def test_the_digest_groups_what_a_run_did_by_page(world: World) -> None:
    """Two statements of one page are one line of the file, with the page once and an undo for each."""
    for text in ("The roof leaks. #house", "The door squeaks. #house", "Mira sings. #mira"):
        world.drop(f"{len(text)}.md", f"/remember {text}")
    world.run()
    assert 0 == world.cli("promote").code
    digest = (world.root / "logs/digest.md").read_text()
    (line,) = [each for each in digest.splitlines() if "The roof leaks." in each]
    assert "The door squeaks." in line
    assert 1 == line.count("[house](")
    assert 2 == line.count("brainiac undo")
    assert "Mira sings." not in line
