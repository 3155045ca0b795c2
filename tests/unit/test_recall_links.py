"""The link graph: uuid before path, and who is linked to most."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.recalled import CONCRETE, Folder


def graph(root: Path, **links: str) -> Any:
    """Return the links of a brain with pages `name: text`, their uuids their names."""
    folder = Folder(root)
    for day, (name, text) in enumerate(links.items(), 1):
        head = f"---\nuuid: {name}\nupdated_at: 2025-01-{day:02d}T00:00:00Z\n---\n"
        folder.write(path(name), f"{head}# {name.title()}\n\n{text}\n")
    return folder.recall().links


def path(name: str) -> str:
    """Return a page's path."""
    return f"{CONCRETE}/{name}.md"


def test_forward_and_back_by_uuid_and_path(tmp_path: Path) -> None:
    """A link leads to the page of its uuid, wherever that is, else to its path; both ways are known."""
    made = graph(tmp_path, a='[B](elsewhere/b.md "uuid:b") [C](c.md)', b="", c="")
    assert ([path("b"), path("c")], [path("a")], [path("a")]) == (
        made.forward("a"),
        made.back("b"),
        made.back(path("c")),
    )


def test_hubs(tmp_path: Path) -> None:
    """Hubs are the most connected memories, ties by the most recently updated, index pages left out. Seeds: R5."""
    made = graph(tmp_path, a="[B](b.md) [C](c.md) [B](b.md)", b="[A](a.md)", c="", _index="[C](c.md) [B](b.md)")
    assert [(path("a"), 2), (path("c"), 1), (path("b"), 1)] == [(page.path, edges) for page, edges in made.hubs()]


def test_manifest_and_outside_links_are_no_edges(tmp_path: Path) -> None:
    """Links of a manifest, to the web and within a page connect nothing."""
    text = "[x](https://x.y) [y](#part) ![i](i.png)\n\n## Manifest\n- [B](b.md)\n"
    assert [] == graph(tmp_path, a=text, b="").forward("a")


def test_what_changed_is_what_a_fresh_reader_finds(tmp_path: Path) -> None:
    """After pages were changed, moved, removed and added, the newest of them too, the links are those of all files."""
    folder, here = Folder(tmp_path), dict.fromkeys("abcd", "")
    kept = folder.recall()
    for name, now, text in [
        *((name, name, "[B](b.md)") for name in "abcd"),
        *(("d", "d", "[A](a.md)"), ("a", "moved/a", "[[c]]"), ("c", "c", ""), ("d", "", ""), ("e", "e", "[[a]]")),
    ]:
        former = here.pop(name, "")
        if former:
            (tmp_path / former).unlink()
        if now:
            here[name] = folder.write(path(now), f"---\nuuid: {name}\n---\n# {name}\n\n{text}\n")
        for changed in filter(None, (former, here.get(name))):
            kept.note_change(changed)
        fresh = folder.recall().links
        assert fresh.pages == kept.links.pages
        assert [fresh.back(each) for each in here] == [kept.links.back(each) for each in here]


def test_what_changed_last_comes_first(tmp_path: Path) -> None:
    """By its file, not by a date in it that no hand renews; of an index too that was made before it could tell."""
    folder = Folder(tmp_path)
    for day, name in enumerate("cab", 1):
        file = folder.write(path(name), f"---\nupdated_at: 2025-02-0{4 - day}\n---\n# {name}\n")
        os.utime(tmp_path / file, (86400 * day, 86400 * day))
    brain = folder.brain()
    brain.recall.reindex()
    with closing(sqlite3.connect(brain.places.cache / "index" / "pages.db")) as index:
        index.execute("drop index pages_by_change")
    latest = folder.recall().latest(lambda page: not page.path.endswith("c.md"), 2)
    assert [(path("b"), "1970-01-04"), (path("a"), "1970-01-03")] == [(page.path, page.at[:10]) for page in latest]
