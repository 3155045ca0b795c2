"""The link graph: uuid before path, and who is linked to most."""

from __future__ import annotations

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
