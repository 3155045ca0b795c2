"""What is put in order between organizations: links after a move, dropped notes, manifests; and the triggers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from brainiac_plugins.organization.upkeep import Upkeep

from brainiac.clock import Clock
from brainiac.formats.markdown import find_links
from brainiac.formats.page import parse_memory
from brainiac.pipeline.daemon import Daemon
from tests.support.commands import do, quiet
from tests.support.organized import ARCHIVE, NOW, TOP, Scene, construct, expected_places, make_scene
from tests.support.pipeline import eventually

ALONE = "\nplugins: {disabled: [core_loop, reflection, promotion]}\ninbox: {settle_ms: 20}\n"
EAGER = ALONE + "organization: {min_entries: 40, max_entries: 20}\npromotion: {idle_seconds: 1}\n"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain")
    yield made
    made.brain.close()


@pytest.fixture
def live(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A brain that a daemon serves, on the system's clock."""
    made = make_scene(tmp_path / "brain", clock=Clock(), config=getattr(request, "param", ALONE))
    yield made
    made.brain.close()


def serving(scene: Scene) -> Daemon:
    daemon = Daemon(scene.brain)
    daemon.start()
    return daemon


def heard(scene: Scene, *paths: str) -> None:
    """Let the brain see what stands at paths, and tell the plugins of it as a daemon does."""
    for path in paths:
        if change := scene.brain.observed.note_change(path):
            scene.brain.plugins.call("file_changed", brain=scene.brain, change=change)


def in_manifest(scene: Scene, folder: str) -> list[str]:
    """Return the uuids that the manifest of a folder's index page names."""
    text = scene.text(f"{TOP}/{folder}/_index.md")
    return [link.uuid or "" for link in find_links(text.partition("## Manifest")[2].partition("\n## ")[0])]


def test_a_link_follows_its_page(scene: Scene) -> None:
    """By its uuid, or by the path that moved; all else stays byte for byte. A moved page's own links lead where they
    led, to pages and to other files; one that led nowhere is left as it is."""
    for name in ("one/b", "one/c"):
        scene.page(f"concrete/{name}")
    b, c = (scene.uuids[f"{TOP}/concrete/one/{name}.md"] for name in "bc")
    changes = {
        f'[B](../one/b.md "uuid:{b}")': f'[B](../two/b%20x.md "uuid:{b}")',
        f'[B](../one/b.md#^part "uuid:{b}")': f'[B](../two/b%20x.md#^part "uuid:{b}")',
        f'[C](../one/c.md "uuid:{c}") [B](../one/b.md)': f'[C](../one/c.md "uuid:{c}") [B](../two/b%20x.md)',
        f'`[B](../one/b.md "uuid:{b}")` [w](https://x.y) [h](#b) [[b]]': None,
        "[N](nowhere.md)": None,
    }
    source = scene.page("concrete/links/a", body="\n\n".join(changes))
    own = f'[C](c.md "uuid:{c}") [C](c.md) [F](../../files/x.pdf) [N](nowhere.md)'
    moved = f'[C](../one/c.md "uuid:{c}") [C](../one/c.md) [F](../../files/x.pdf) [N](nowhere.md)'
    file = scene.brain.tree.absolute(f"{TOP}/concrete/one/b.md")
    file.write_text(file.read_text() + own)
    scene.brain.tree.absolute(f"{TOP}/files").mkdir()
    scene.brain.tree.absolute(f"{TOP}/files/x.pdf").write_text("x")
    scene.brain.observed.adopt()
    quiet(scene.brain)
    file.parent.with_name("two").mkdir()
    file.rename(file.parent.with_name("two") / "b x.md")
    for change in scene.brain.observed.adopt():
        scene.brain.plugins.call("file_changed", brain=scene.brain, change=change)
    scene.advance(61)
    quiet(scene.brain)
    text = scene.text(source)
    assert [] == [after for before, after in changes.items() if (after or before) not in text]
    assert scene.text(f"{TOP}/concrete/two/b x.md").endswith(moved)


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
    quiet(live.brain)
    daemon = serving(live)
    try:
        live.brain.tree.absolute(f"{TOP}/concrete/people").rename(live.brain.tree.absolute(f"{TOP}/concrete/friends"))
        eventually(lambda: live.text(outside).count("../concrete/friends/") == 6, "links healed")
        friends = [path for path in live.brain.tree.scan(live.brain.tree.long_term) if "/friends/" in path]
        eventually(lambda: all(map(live.brain.observed.hash_of, friends)), "every move seen")
    finally:
        daemon.stop()
    quiet(live.brain)
    assert [] == live.problems()


def test_links_are_healed_after_a_move_while_nobody_watched(scene: Scene) -> None:
    """The next start finds the move; a page that was moved and edited at once is found by its uuid."""
    target, source = scene.page("concrete/mira"), None
    source = scene.page("skills/soup", links=(target,))
    quiet(scene.brain)
    file = scene.brain.tree.absolute(target)
    file.with_name("mira-and-tom.md").write_text(file.read_text() + "\nAnd Tom.\n")
    file.unlink()
    for change in scene.brain.observed.adopt():
        scene.brain.plugins.call("file_changed", brain=scene.brain, change=change)
    scene.advance(61)
    quiet(scene.brain)
    assert "../concrete/mira-and-tom.md" in scene.text(source)
    assert [] == scene.problems()


def test_a_dropped_note_gets_what_it_lacks_once_it_rests(scene: Scene) -> None:
    """After a minute of rest, and only the missing keys; what the person wrote stays byte for byte. Seeds: S7."""
    path = f"{TOP}/concrete/note.md"
    before = "---\ntags: [mine]  # my own\nmood: good\n---\n# A note\n\nWritten by hand.\n"
    scene.brain.tree.absolute(path).write_text(before)
    quiet(scene.brain)
    heard(scene, path)
    for seconds, is_rested in ((59, False), (2, True)):
        scene.advance(seconds)
        quiet(scene.brain)
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
    quiet(scene.brain)
    assert [memory.uuid] == in_manifest(scene, "concrete")


def test_of_two_notes_with_one_uuid_the_newer_gets_a_new_one(scene: Scene) -> None:
    """A copy made by hand, with the original's dates and all, becomes a page of its own; links keep to the original."""
    page = scene.page("concrete/people/mira")
    source = scene.page("skills/soup", links=(page,))
    quiet(scene.brain)
    scene.advance(100)
    copy = f"{TOP}/concrete/a-copy.md"
    scene.brain.tree.absolute(copy).write_text(scene.text(page))
    heard(scene, copy)
    scene.advance(61)
    quiet(scene.brain)
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
    quiet(scene.brain)
    index = f"{TOP}/concrete/people/_index.md"
    file = scene.brain.tree.absolute(index)
    file.write_text(
        file.read_text().replace("## Related Memories\n", "## Related Memories\n- mine\n\n## My own\nText.\n")
    )
    other = scene.page("concrete/people/tom")
    heard(scene, index, other)
    scene.advance(61)
    quiet(scene.brain)
    assert [scene.uuids[page], scene.uuids[other]] == in_manifest(scene, "concrete/people")
    assert scene.text(index).endswith("## Related Memories\n- mine\n\n## My own\nText.\n")
    last = scene.brain.journal.last()
    scene.brain.plugins.call("memory_modified", brain=scene.brain, path=page)
    quiet(scene.brain)
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
    page = live.page("concrete/vow", days_ago=300, importance="high")
    live.brain.observed.adopt()
    do(live.brain, "organize")
    daemon = serving(live)
    try:
        review = live.brain.tree.review
        review.write_text(review.read_text().replace("[ ]", "[x]"))
        eventually(lambda: live.pages().get(page) == page.replace(TOP, ARCHIVE), "archived")
    finally:
        daemon.stop()


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
