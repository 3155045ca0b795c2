"""Organization on real files: what the log shows is done, once, in one commit, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from brainiac_plugins.organization import run
from brainiac_plugins.organization.upkeep import Upkeep

from brainiac.events import content_hash
from brainiac.formats.markdown import find_links
from brainiac.formats.page import parse_memory
from tests.support.commands import do
from tests.support.organized import ARCHIVE, NOW, SMALL, TOP, Scene, construct, expected_places, make_scene

NOTHING = {"event": "", "done": [], "asked": [], "refused": [], "lines": 0}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain", config=SMALL)
    yield made
    made.brain.close()


def tended(scene: Scene) -> Scene:
    """Bring manifests up to date, as the first quiet does, so that only the organization itself is looked at."""
    scene.brain.observed.adopt()
    Upkeep(scene.brain).tend()
    return scene


def organize(scene: Scene) -> dict[str, Any]:
    """Have memory organized, and return what is told of it."""
    told: dict[str, Any] = do(scene.brain, "organize", "--json").json
    return told


def done(outcome: dict[str, Any]) -> list[tuple[str, list[str], str]]:
    return [(action["kind"], action["paths"], action["target"]) for action in outcome["done"]]


def related(text: str) -> list[str]:
    """Return the uuids of what an index page links to as related."""
    return [link.uuid or "" for link in find_links(text.partition("## Related Memories")[2])]


def test_exactly_what_the_log_shows_is_done(scene: Scene) -> None:
    """Used much: moved up; used together: linked; unused: archived; overgrown: split; nothing else, and all links hold.

    Seeds: S13, S15.
    """
    made = construct(scene, crowd=26, unused=4)
    before = tended(scene).tree()
    outcome = organize(scene)
    assert expected_places(made) == scene.pages()
    assert [] == scene.problems()
    mira, soup = (parse_memory(path, scene.text(path)) for path in made.pair)
    people, cooking = (f"{TOP}/concrete/people/_index.md", f"{TOP}/skills/cooking/_index.md")
    assert [soup.uuid] == related(scene.text(people))
    assert [mira.uuid] == related(scene.text(cooking))
    assert 130 == outcome["lines"]
    assert b"" == scene.tree()["logs/access.log"]
    events = [event.kind for event in scene.brain.journal.events() if event.id >= outcome["event"]]
    assert ["memory-organized", "tree-tidied"] == events
    changed = {path for path, content in scene.tree().items() if before.get(path) != content}
    linking = {
        path for path in made.others if path.endswith(("recent.md", "-0.md", "-1.md", "-2.md", "-3.md", "-4.md"))
    }
    moved = {new for old, new in expected_places(made).items() if old != new}
    assert {path for path in changed if "_index" not in path} == moved | linking | {*made.pair, "logs/access.log"}


@pytest.mark.slow
def test_a_second_run_changes_nothing(scene: Scene) -> None:
    """What was done is not done again, and nothing is journaled."""
    construct(scene, crowd=26, unused=4)
    organize(tended(scene))
    before, last = scene.tree(), scene.brain.journal.last()
    assert NOTHING == organize(scene)
    Upkeep(scene.brain).tend()
    assert before == scene.tree()
    assert last == scene.brain.journal.last()


def test_citations_are_counted_on_the_page(scene: Scene) -> None:
    """`reinforcement_count` grows by how often a memory was cited; the rest of the page stays byte for byte.

    Seeds: P1.
    """
    page = scene.page("concrete/people/mira")
    before = scene.text(page)
    scene.log("READ", page, at=NOW)
    for number in range(3):
        scene.log("CITE", page, at=NOW + timedelta(seconds=number))
    organize(tended(scene))
    assert before.replace("reinforcement_count: 0", "reinforcement_count: 3") == scene.text(page)


def test_use_adds_up_over_runs_until_it_was_acted_on(scene: Scene) -> None:
    """Citations of earlier runs count for a month; once a page was moved up they count no more."""
    page = scene.page("concrete/projects/house/plans/budget")
    for turn in range(2):
        for number in range(12):
            scene.log("CITE", page, at=NOW + timedelta(minutes=12 * turn + number))
        outcome = organize(tended(scene))
        assert bool(outcome["done"]) == (turn == 1)
    assert [] == done(organize(scene))
    assert f"{TOP}/concrete/projects/house/budget.md" == scene.pages()[page]


def test_only_processed_lines_are_cleared(scene: Scene) -> None:
    """What is added while memory is organized stays, and so do lines that are no entries. Seeds: S13."""
    page = scene.page("concrete/people/mira")
    scene.log("READ", page, at=NOW)
    log = scene.brain.tree.access_log
    log.write_text(log.read_text() + "a remark\n")
    tended(scene)

    def add(step: str) -> None:
        if step.startswith("writing"):
            scene.log("CITE", page, at=NOW)
            with log.open("a") as file:
                file.write("half a li")

    run.organize(scene.brain, progress=add)
    assert ["a remark", "2026-06-01T12:00:00Z | CITE | /elsewhere/brain/" + page, "half a li"] == log.read_text().split(
        "\n"
    )


def test_a_line_written_into_the_log_that_was_swapped_out_is_kept(scene: Scene) -> None:
    """A script that held the log open while it was cleared loses no line: it is added to the new log."""
    page = scene.page("concrete/people/mira")
    scene.log("READ", page, at=NOW)
    tended(scene)
    late = f"2026-06-01T12:00:09Z | CITE | /elsewhere/brain/{page}\n"
    with scene.brain.tree.access_log.open("a") as held:
        organize(scene)
        scene.log("READ", page, at=NOW)
        held.write(late)
    scene.brain.committer.check_displaced()
    assert f"2026-06-01T12:00:00Z | READ | /elsewhere/brain/{page}\n{late}" == scene.brain.tree.access_log.read_text()


def test_lines_of_a_page_that_moved_since_still_count(scene: Scene) -> None:
    """The log names a path; the journals tell where that page is now."""
    page = scene.page("concrete/people/mira")
    tended(scene)
    scene.brain.tree.absolute(page).rename(scene.brain.tree.long_term / "concrete/mira.md")
    scene.brain.observed.adopt()
    scene.log("CITE", page, at=NOW)
    organize(scene)
    assert "reinforcement_count: 1" in scene.text(f"{TOP}/concrete/mira.md")


def test_unused_days_become_a_digest(scene: Scene) -> None:
    """Unused days are archived word for word; a line of each stays, linked to its original, and no empty folder."""
    said = (
        '### 2025-03-0{0}T09:00:00Z\n<!-- exchange: e{0} -->\n**User:** "Planted tomatoes, row {0}."\n**AI:** "Good."\n'
    )
    days = [scene.page(f"events/2025/03/0{day}/2025-03-0{day}", days_ago=400, body=said.format(day)) for day in (4, 5)]
    before = {path: scene.text(path) for path in days}
    outcome = organize(tended(scene))
    digest = f"{TOP}/events/2025/03/digest.md"
    assert [("compress", days, f"{TOP}/events/2025/03")] == done(outcome)
    assert [before[path] for path in days] == [scene.text(path.replace(TOP, ARCHIVE)) for path in days]
    statements = [each.text for each in parse_memory(digest, scene.text(digest)).statements]
    assert ["2025-03-04: “Planted tomatoes, row 4.”", "2025-03-05: “Planted tomatoes, row 5.”"] == [
        each.partition(" ([")[0] for each in statements
    ]
    assert [] == scene.problems()
    assert not (scene.brain.root / f"{TOP}/events/2025/03/04/_index.md").exists()
    scene.advance(400 * 86400)
    assert [] == done(organize(scene))


def test_what_is_important_or_a_persons_is_put_before_them_once(scene: Scene) -> None:
    """Such a page is not archived: a line in review.md asks, and is not repeated. Seeds: S15."""
    grave = scene.page("concrete/past/vow", days_ago=300, importance="high")
    theirs = scene.page("concrete/past/poem", days_ago=300)
    tended(scene)
    file = scene.brain.tree.absolute(theirs)
    file.write_text(file.read_text() + "\nA line of mine.\n")
    scene.brain.observed.note_change(theirs)
    scene.advance(200 * 86400)
    outcome = organize(scene)
    assert [] == done(outcome)
    assert 1 == len(outcome["asked"])
    review = scene.text("memory/review.md")
    assert grave in review
    assert theirs in review
    assert NOTHING == organize(scene)
    assert review == scene.text("memory/review.md")


def test_a_place_that_a_person_chose_is_theirs(scene: Scene) -> None:
    """A page that a person moved to a folder is not moved up without their word."""
    page = scene.page("concrete/budget")
    tended(scene)
    chosen = scene.brain.tree.absolute(f"{TOP}/concrete/projects/house/plans/budget.md")
    chosen.parent.mkdir(parents=True)
    scene.brain.tree.absolute(page).rename(chosen)
    scene.brain.observed.adopt()
    scene.advance(120)
    for number in range(30):
        scene.log("CITE", scene.brain.tree.relative(chosen), at=NOW + timedelta(seconds=number))
    outcome = organize(scene)
    assert ([], 1) == (done(outcome), len(outcome["asked"]))


@pytest.mark.parametrize("put_back_seconds", [0, 86400])
def test_a_page_edited_a_moment_ago_is_left_out(scene: Scene, put_back_seconds: float) -> None:
    """Within a minute of a person's edit a page is not moved; not for days where the clock is put back."""
    page = scene.page("concrete/projects/house/plans/budget")
    tended(scene)
    file = scene.brain.tree.absolute(page)
    file.write_text(file.read_text() + "\nMine.\n")
    scene.brain.observed.note_change(page)
    for number in range(30):
        scene.log("CITE", page, at=NOW + timedelta(seconds=number))
    scene.advance(-put_back_seconds)
    outcome = organize(scene)
    left_out = [("move " + page, "it was edited a moment ago")]
    assert ([] if put_back_seconds else left_out) == [
        (f"move {proposal.split()[-1]}", reason) for proposal, reason in outcome["refused"]
    ]


def test_a_large_part_of_memory_is_not_put_to_rest_at_once(scene: Scene) -> None:
    """An imported folder of old notes is not archived by itself: a person is asked."""
    pages = [scene.page(f"concrete/old/{number % 2}/{number}", days_ago=900) for number in range(30)]
    outcome = organize(tended(scene))
    assert ([], 1) == (done(outcome), len(outcome["asked"]))
    assert {path: path for path in pages} == scene.pages()


def test_a_file_that_changes_while_memory_is_organized(scene: Scene) -> None:
    """The run looks again and goes on from what stands there then; the person's text stands."""
    made = construct(scene, crowd=26, unused=4)
    tended(scene)
    page = scene.brain.tree.absolute(made.others[0])
    steps: list[str] = []

    def edit(step: str) -> None:
        steps.append(step)
        if step.startswith("writing") and len(steps) < 4:
            page.write_text(page.read_text() + "\nA line of mine.\n")

    run.organize(scene.brain, progress=edit)
    assert "A line of mine." in page.read_text()
    assert expected_places(made) == scene.pages()


def test_names_that_are_taken(scene: Scene) -> None:
    """A page that moves where its name is taken gets a number; none is written over."""
    taken = scene.page("concrete/projects/house/budget")
    page = scene.page("concrete/projects/house/plans/budget")
    for number in range(30):
        scene.log("CITE", page, at=NOW + timedelta(seconds=number))
    hashes = content_hash(scene.text(taken).encode())
    organize(tended(scene))
    assert f"{TOP}/concrete/projects/house/budget-2.md" == scene.pages()[page]
    assert hashes == content_hash(scene.text(taken).encode())


def test_what_was_taken_back_is_not_done_again(scene: Scene) -> None:
    """`undo` of an organization puts every page back where it was; the next run asks where it would do it again."""
    construct(scene, crowd=26, unused=4)
    tended(scene)
    do(scene.brain, "undo", organize(scene)["event"])
    Upkeep(scene.brain).tend()
    assert {path: path for path in scene.uuids} == scene.pages()
    assert [] == scene.problems()
    outcome = organize(scene)
    assert [] == done(outcome)
    assert {"Move"} == {what.split()[0] for what in outcome["asked"]}
    assert {path: path for path in scene.uuids} == scene.pages()
