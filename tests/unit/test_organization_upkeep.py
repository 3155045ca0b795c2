"""What is put in order between organizations: links after a move, dropped notes, manifests; and the triggers."""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from brainiac_plugins.organization.upkeep import Upkeep

from brainiac.clock import SYSTEM
from brainiac.formats.index_page import parse_index
from brainiac.formats.markdown import find_links
from brainiac.formats.page import parse_memory
from brainiac.pipeline.daemon import Daemon
from brainiac.storage.links import with_repaired_links
from tests.support.organized import ARCHIVE, NOW, TOP, Scene, construct, expected_places, make_scene
from tests.support.pipeline import eventually

ALONE = "\nplugins: {disabled: [core_loop, reflection, promotion]}\ninbox: {settle_ms: 20}\n"
EAGER = ALONE + "organization: {min_entries: 40, max_entries: 20}\n"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain")
    yield made
    made.brain.close()


@pytest.fixture
def live(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A brain that a daemon serves, on the system's clock."""
    made = make_scene(tmp_path / "brain", clock=SYSTEM, config=getattr(request, "param", ALONE))
    yield made
    made.brain.close()


def serving(scene: Scene) -> Daemon:
    daemon = Daemon(scene.brain)
    daemon.start()
    return daemon


def seen(scene: Scene, *paths: str) -> Upkeep:
    """Let the brain see what stands at paths, and hear of it as the plugin does."""
    upkeep = Upkeep(scene.brain)
    upkeep.tend()
    for path in paths:
        change = scene.brain.observed.note_change(path)
        if change is not None:
            upkeep.note_change(change)
    return upkeep


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[B](../old/b.md "uuid:b")', '[B](b%20x.md "uuid:b")'),
        ('[B](../old/b.md#^part "uuid:b")', '[B](b%20x.md#^part "uuid:b")'),
        ('[C](../old/c.md "uuid:c") [B](../old/b.md)', '[C](../old/c.md "uuid:c") [B](b%20x.md)'),
        (
            '`[B](../old/b.md "uuid:b")` [w](https://x.y) [h](#b) [[b]]',
            '`[B](../old/b.md "uuid:b")` [w](https://x.y) [h](#b) [[b]]',
        ),
    ],
)
def test_a_link_follows_its_page(before: str, after: str) -> None:
    """By its uuid, or by the path that moved; all else stays byte for byte."""
    moved = {f"{TOP}/old/b.md": f"{TOP}/new/b x.md"}
    places = {"b": f"{TOP}/new/b x.md", "c": f"{TOP}/old/c.md"}
    page = f"{TOP}/new/a.md"
    assert f"x {after} y" == with_repaired_links(f"x {before} y", was=page, now=page, moved=moved, places=places)


def test_a_moved_pages_own_links_lead_where_they_led() -> None:
    """With and without uuid, to pages and to other files; one that led nowhere is left as it is."""
    before = '[B](b.md "uuid:b") [C](c.md) [F](../files/x.pdf) [N](nowhere.md)'
    after = '[B](../one/b.md "uuid:b") [C](../one/c.md) [F](../files/x.pdf) [N](nowhere.md)'
    standing = {f"{TOP}/one/c.md", f"{TOP}/files/x.pdf"}
    places = {"b": f"{TOP}/one/b.md"}
    assert after == with_repaired_links(
        before, was=f"{TOP}/one/a.md", now=f"{TOP}/two/a.md", moved={}, places=places, is_standing=standing.__contains__
    )


def test_links_are_healed_after_a_move_by_hand(live: Scene) -> None:
    """A person moves a page while the daemon runs: the pages that link to it, and its own links, follow at once."""
    target = live.page("concrete/people/mira")
    other = live.page("concrete/people/tom", links=(target,))
    source = live.page("skills/soup", links=(target, other))
    live.brain.tree.absolute(target).write_text(live.text(target) + f"\nWith {live.link(target, other)}.\n")
    daemon = serving(live)
    try:
        moved = f"{TOP}/concrete/family/mira.md"
        live.brain.tree.absolute(moved).parent.mkdir()
        live.brain.tree.absolute(target).rename(live.brain.tree.absolute(moved))
        eventually(lambda: "../concrete/family/mira.md" in live.text(source), "link healed")
        eventually(lambda: "../people/tom.md" in live.text(moved), "own link healed")
        eventually(lambda: "../family/mira.md" in live.text(other), "link healed in the old folder")
    finally:
        daemon.stop()


def test_a_folder_that_a_person_renamed(live: Scene) -> None:
    """All its pages move at once; links from outside and among them hold, and the doctor has nothing to say."""
    first = live.page("concrete/people/mira")
    others = [live.page(f"concrete/people/person-{n}", links=(first,)) for n in range(5)]
    outside = live.page("skills/soup", links=(first, *others))
    live.brain.observed.adopt()
    Upkeep(live.brain).tend()
    daemon = serving(live)
    try:
        live.brain.tree.absolute(f"{TOP}/concrete/people").rename(live.brain.tree.absolute(f"{TOP}/concrete/friends"))
        eventually(lambda: live.text(outside).count("../concrete/friends/") == 6, "links healed")
        friends = [path for path in live.brain.tree.scan(live.brain.tree.long_term) if "/friends/" in path]
        eventually(lambda: all(map(live.brain.observed.hash_of, friends)), "every move seen")
    finally:
        daemon.stop()
    Upkeep(live.brain).tend()
    assert [] == live.problems()


def test_links_are_healed_after_a_move_while_nobody_watched(scene: Scene) -> None:
    """The next start finds the move; a page that was moved and edited at once is found by its uuid."""
    target, source = scene.page("concrete/mira"), None
    source = scene.page("skills/soup", links=(target,))
    upkeep = seen(scene)
    file = scene.brain.tree.absolute(target)
    file.with_name("mira-and-tom.md").write_text(file.read_text() + "\nAnd Tom.\n")
    file.unlink()
    for change in scene.brain.observed.adopt():
        upkeep.note_change(change)
    scene.advance(61)
    upkeep.tend()
    assert "../concrete/mira-and-tom.md" in scene.text(source)
    assert [] == scene.problems()


def test_a_dropped_note_gets_what_it_lacks_once_it_rests(scene: Scene) -> None:
    """After a minute of rest, and only the missing keys; what the person wrote stays byte for byte. Seeds: S7."""
    path = f"{TOP}/concrete/note.md"
    before = "---\ntags: [mine]  # my own\nmood: good\n---\n# A note\n\nWritten by hand.\n"
    scene.brain.tree.absolute(path).write_text(before)
    upkeep = seen(scene, path)
    for seconds, is_rested in ((59, False), (2, True)):
        scene.advance(seconds)
        upkeep.tend()
        assert is_rested == (before != scene.text(path))
    memory = parse_memory(path, scene.text(path))
    assert before.splitlines()[1:3] == scene.text(path).splitlines()[1:3]
    assert before.partition("---\n# ")[2] == scene.text(path).partition("---\n# ")[2]
    assert (True, True, "neutral", 0) == (
        bool(memory.uuid),
        bool(memory.created_at),
        memory.emotion,
        memory.reinforcement_count,
    )
    upkeep.tend()
    index = f"{TOP}/concrete/_index.md"
    assert [memory.uuid] == [each.uuid for each in parse_index(index, scene.text(index)).manifest]


def test_of_two_notes_with_one_uuid_the_newer_gets_a_new_one(scene: Scene) -> None:
    """A copy made by hand, with the original's dates and all, becomes a page of its own; links keep to the original."""
    page = scene.page("concrete/people/mira")
    source = scene.page("skills/soup", links=(page,))
    upkeep = seen(scene)
    scene.advance(100)
    copy = f"{TOP}/concrete/a-copy.md"
    scene.brain.tree.absolute(copy).write_text(scene.text(page))
    change = scene.brain.observed.note_change(copy)
    assert change is not None
    upkeep.note_change(change)
    scene.advance(61)
    upkeep.tend()
    assert scene.uuids[page] == parse_memory(page, scene.text(page)).uuid
    assert scene.uuids[page] != parse_memory(copy, scene.text(copy)).uuid
    assert [page] == [
        posixpath.normpath(posixpath.join(f"{TOP}/skills", link.target)) for link in find_links(scene.text(source))
    ]
    assert [] == scene.problems()


def test_manifests_follow_their_folders(scene: Scene) -> None:
    """Derived in a commit of their own, with the summary and what a person added kept; equal bytes are not written.

    Seeds: S8.
    """
    page = scene.page("concrete/people/mira")
    upkeep = seen(scene)
    index = f"{TOP}/concrete/people/_index.md"
    file = scene.brain.tree.absolute(index)
    file.write_text(
        file.read_text().replace("## Related Memories\n", "## Related Memories\n- mine\n\n## My own\nText.\n")
    )
    other = scene.page("concrete/people/tom")
    for path in (index, other):
        change = scene.brain.observed.note_change(path)
        assert change is not None
        upkeep.note_change(change)
    scene.advance(61)
    upkeep.tend()
    assert [scene.uuids[page], scene.uuids[other]] == [
        each.uuid for each in parse_index(index, scene.text(index)).manifest
    ]
    assert scene.text(index).endswith("## Related Memories\n- mine\n\n## My own\nText.\n")
    last = scene.brain.journal.last()
    upkeep.note_page(page)
    upkeep.tend()
    assert last == scene.brain.journal.last()


@pytest.mark.parametrize("live", [EAGER], indirect=True)
def test_lines_of_a_script_have_memory_organized(live: Scene) -> None:
    """Nobody asks anything: the access log grows over `organization.min_entries`. Seeds: S13."""
    made = construct(live, crowd=26, unused=4)
    lines = live.brain.tree.access_log.read_text()
    live.brain.tree.access_log.write_text("")
    daemon = serving(live)
    try:
        with live.brain.tree.access_log.open("a") as log:
            log.write(lines)
        eventually(lambda: not live.brain.tree.access_log.read_text(), "log cleared")
        eventually(lambda: daemon.bus.is_idle, "idle")
    finally:
        daemon.stop()
    assert expected_places(made) == live.pages()
    assert [] == live.problems()


def test_a_tick_is_obeyed_by_the_daemon(live: Scene) -> None:
    """The person ticks the box in their editor, and the page is put to rest."""
    from brainiac_plugins.organization.run import organize

    page = live.page("concrete/vow", days_ago=300, importance="high")
    live.brain.observed.adopt()
    organize(live.brain)
    daemon = serving(live)
    try:
        review = live.brain.tree.review
        review.write_text(review.read_text().replace("[ ]", "[x]"))
        eventually(lambda: live.pages().get(page) == page.replace(TOP, ARCHIVE), "archived")
    finally:
        daemon.stop()


def test_a_brain_has_one_upkeep(scene: Scene) -> None:
    """Two tiers that ask for it at once, for the first time, get the same one."""
    plugin = scene.brain.plugins._pluggy.get_plugin("organization")
    assert plugin
    for _ in range(20):
        scene.brain._states.clear()
        barrier = threading.Barrier(4)
        found: set[Upkeep] = set()

        def ask(barrier: threading.Barrier = barrier, found: set[Upkeep] = found) -> None:
            barrier.wait(10)
            found.add(plugin._upkeep(scene.brain))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert 1 == len(found)


def test_when_memory_is_organized(scene: Scene) -> None:
    """Once in a long quiet, every few hours even in a short one, and when the log has grown. Seeds: P6."""
    settings = scene.brain.settings.organization
    upkeep = Upkeep(scene.brain)
    assert not upkeep.is_due(60)
    assert upkeep.is_due(settings.idle_seconds)
    upkeep.organize()
    scene.advance(60)
    assert not upkeep.is_due(settings.idle_seconds + 60)
    scene.advance(4 * 3600)
    assert upkeep.is_due(60)
    upkeep.organize()
    page = scene.page("concrete/people/mira")
    for number in range(settings.min_entries):
        assert not upkeep.is_due(60)
        scene.log("READ", page, at=NOW + timedelta(seconds=number))
    assert upkeep.is_due(60)
