"""The one set of all memory pages: what it holds, how pages are found in it, and what of it is read again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac.storage.pages import PageSet
from tests.support.organized import TOP, Scene, make_scene

NOW = "2026-01-01T00:00:00Z"
MIRA, TRIP, INDEX = f"{TOP}/concrete/mira.md", f"{TOP}/events/trip.md", f"{TOP}/concrete/_index.md"
OLD, BROKEN, LATIN = "memory/archive/concrete/old.md", f"{TOP}/concrete/broken.md", f"{TOP}/concrete/latin.md"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(tmp_path / "brain")
    write(made, MIRA, page("Mira", "- Mira sings. ^aaaa", "aliases: [Mimi]\n"))
    write(made, TRIP, page("Trip", 'With [Mira](../gone/mira.md "uuid:u-mira").'))
    write(made, OLD, page("Old"))
    write(made, BROKEN, "---\ntags: [\n---\n# Broken\n")
    made.brain.tree.absolute(LATIN).write_bytes(b"# Caf\xe9\n")
    yield made
    made.brain.close()


def page(title: str, body: str = "", meta: str = "") -> str:
    """Return a page's text."""
    stamps = f"created_at: {NOW}\nupdated_at: {NOW}\n"
    return f"---\nuuid: u-{title.lower()}\n{stamps}{meta}---\n# {title}\n\n{body}\n"


def write(scene: Scene, path: str, text: str) -> None:
    file = scene.brain.tree.absolute(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def age(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything that was written lie for long enough to be believed."""
    monkeypatch.setattr("brainiac.storage.pages.SETTLED_NS", -1)


def test_it_holds_what_can_be_read_and_names_what_cannot(scene: Scene) -> None:
    """Memories, index pages and the archive; front matter that is broken and bytes that are no text are named."""
    held = scene.brain.pages()
    assert {MIRA, TRIP, OLD, INDEX} <= held.pages.keys()
    assert {BROKEN, LATIN} == held.broken.keys()
    assert {MIRA, TRIP} <= held.memories.keys()
    assert not {OLD, INDEX} & held.memories.keys()


def test_pages_are_found_by_identity_and_by_name(scene: Scene) -> None:
    """By uuid unless two pages bear it, by title and alias, a statement by its block id."""
    held = scene.brain.pages()
    assert MIRA == held.path_by_uuid["u-mira"]
    assert [MIRA] == [page.path for page in held.by_name["mimi"]] == [page.path for page in held.by_name["mira"]]
    (statement,) = held.pages[MIRA].statements
    assert statement == held.statement("u-mira", statement.block_id)
    assert held.statement("u-mira", "none") is held.statement("u-none", statement.block_id) is None
    write(scene, f"{TOP}/concrete/copy.md", held.pages[MIRA].text)
    held = scene.brain.pages()
    assert "u-mira" not in held.path_by_uuid
    assert [f"{TOP}/concrete/copy.md", MIRA] == held.by_uuid["u-mira"]


def test_links_lead_where_the_uuid_is(scene: Scene) -> None:
    """A path that went stale is no matter where the link names a uuid."""
    held = scene.brain.pages()
    (link,) = held.pages[TRIP].links
    assert MIRA == held.target(held.pages[TRIP], link)
    assert {TRIP} == held.linking_to[MIRA]


def test_a_folder_has_its_children_and_free_names(scene: Scene) -> None:
    """A new page takes no name that stands there, in whatever case, whatever it is."""
    held = scene.brain.pages()
    assert {MIRA} == held.children[f"{TOP}/concrete"]
    (scene.brain.tree.absolute(TOP) / "concrete" / "ZOE.md").mkdir()
    held = scene.brain.pages()
    assert f"{TOP}/concrete/mira-2.md" == held.free_path(f"{TOP}/concrete", "Mira")
    assert f"{TOP}/concrete/zoe-3.md" == held.free_path(f"{TOP}/concrete", "Zoe", {"zoe-2.md"})
    assert f"{TOP}/concrete/new/mira.md" == held.free_path(f"{TOP}/concrete/new", "Mira")


def test_only_what_changed_is_read_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size, times and inode tell; a page that was written a moment ago is read again all the same."""
    first = scene.brain.pages()
    assert first.pages[MIRA] is not scene.brain.pages().pages[MIRA]
    age(scene, monkeypatch)
    first = scene.brain.pages()
    write(scene, TRIP, page("Trip").replace("# Trip", "# Other trip"))
    os.utime(scene.brain.tree.absolute(BROKEN))
    second = scene.brain.pages()
    assert first.pages[MIRA] is second.pages[MIRA]
    assert ("Trip", "Other trip") == (first.pages[TRIP].title, second.pages[TRIP].title)
    assert first.broken[LATIN] is second.broken[LATIN]
    assert first.broken[BROKEN] is not second.broken[BROKEN]


def test_changes_hold_what_was_read(scene: Scene) -> None:
    """An update is made on the text as it was read; where no page is, one is made."""
    held = PageSet(scene.brain.tree)
    before = held.pages[MIRA].text
    change, new = held.change(MIRA, "after"), held.change(f"{TOP}/concrete/new.md", "text")
    assert ("update", before.encode(), b"after") == (change.op, change.before, change.after)
    assert ("create", None, b"text") == (new.op, new.before, new.after)
