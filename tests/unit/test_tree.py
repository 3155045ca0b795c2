"""The places of a brain, and that nothing which is named leaves it."""

from __future__ import annotations

import json
import os
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac import Brain
from brainiac.errors import ConfinementError, NotABrainError
from brainiac.events import PathKind
from brainiac.tree import find_root, is_printable, is_temporary, slugify


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A brain's folder with a neighbour that must stay untouched."""
    (tmp_path / "secret.md").write_text("not yours")
    brain = tmp_path / "brain"
    for folder in ("inbox/notes", "memory/long_term/concrete", "system", "plugins", "logs"):
        (brain / folder).mkdir(parents=True)
    (brain / "system/core_identity.md").write_text("# Core Identity\n")
    return brain


@pytest.fixture
def tree(root: Path) -> Any:
    return Brain(root).tree


@pytest.mark.parametrize(
    "path",
    [
        "inbox/q.md",
        "./inbox//q.md",
        "inbox/../memory/short_term.md",
        "memory/long_term/not/there/yet.md",
        "",
        "~/q.md",
        "inbox/..q.md",
        "inbox/...",
        "inbox/CON",
        "inbox/Ünïcode – 日本.md",
    ],
)
def test_confine_accepts_what_stays_inside(tree: Any, path: str) -> None:
    """A path within, relative or absolute, is given back absolute and normalized, also of what is not there."""
    expected = Path(os.path.normpath(tree.root / path))
    assert [expected] * 2 == [tree.confine(path), tree.confine(tree.root / path)]


@pytest.mark.parametrize(
    "path",
    ["..", "../secret.md", "inbox/../../secret.md", "/etc/passwd", "../brain-evil/q.md"],
)
def test_confine_refuses_what_leads_outside(tree: Any, path: str) -> None:
    """`..` and absolute paths do not lead out, not even to a neighbour whose name begins alike."""
    with pytest.raises(ConfinementError, match="leads outside the brain"):
        tree.confine(path)


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\x1b[31mb", "a\x7fb", "a\x85b", "a\u2028b", "a\udce9b"])
def test_confine_refuses_names_that_cannot_be_shown(tree: Any, name: str) -> None:
    """Control characters, line separators and undecodable bytes in a name are refused, and not echoed."""
    with pytest.raises(ConfinementError) as caught:
        tree.confine(f"inbox/{name}.md")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["x" * 252 + ".md", "日" * 84 + ".md"])
def test_confine_accepts_names_a_file_system_holds(tree: Any, name: str) -> None:
    """255 bytes are the limit of a name, in bytes rather than characters."""
    tree.confine(f"inbox/{name}").write_text("fits")
    assert "fits" == (tree.inbox / name).read_text()


@pytest.mark.parametrize("name", ["x" * 253 + ".md", "日" * 85 + ".md"])
def test_confine_refuses_over_long_names(tree: Any, name: str) -> None:
    """A name longer than any file system holds is refused in a sentence instead of failing at the write."""
    with pytest.raises(ConfinementError, match="longer than 255 bytes"):
        tree.confine(f"inbox/{name}")


def test_confine_refuses_links_that_lead_outside(tree: Any, tmp_path: Path) -> None:
    """A symlink out of the brain is refused: file, folder, parent of what is yet to be, chain."""
    os.symlink(tmp_path / "secret.md", tree.inbox / "file.md")
    os.symlink(tmp_path, tree.inbox / "folder")
    os.symlink("folder", tree.inbox / "chain")
    os.symlink("../../nowhere.md", tree.inbox / "dangling.md")
    for path in (
        "inbox/file.md",
        "inbox/folder/secret.md",
        "inbox/folder/new/x.md",
        "inbox/chain/x",
        "inbox/dangling.md",
    ):
        with pytest.raises(ConfinementError, match="leads outside"):
            tree.confine(path)


def test_confine_refuses_dotdot_behind_a_link(tree: Any, tmp_path: Path) -> None:
    """`link/../x` is read as written, never by way of the link's target."""
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere/deep", tree.inbox / "link")
    assert tree.inbox / "x.md" == tree.confine("inbox/link/../x.md")


def test_confine_survives_loops(tree: Any) -> None:
    """A loop of links is no way out and no endless search."""
    os.symlink("b", tree.inbox / "a")
    os.symlink("a", tree.inbox / "b")
    os.symlink(".", tree.inbox / "self")
    assert tree.inbox / "self/self/q.md" == tree.confine("inbox/self/self/q.md")
    assert tree.root in tree.confine("inbox/a/q.md").parents


def test_confine_accepts_links_within(tree: Any) -> None:
    """A link from one place of the brain to another is no way out."""
    os.symlink(tree.memory, tree.inbox / "memories")
    assert tree.inbox / "memories/short_term.md" == tree.confine("inbox/memories/short_term.md")


def test_confine_to_a_narrower_folder(tree: Any) -> None:
    """`inside` keeps a memory's path in long-term memory, against `..` and against links to the rest of the brain."""
    inside = tree.long_term
    assert inside / "concrete/a.md" == tree.confine("memory/long_term/concrete/a.md", inside=inside)
    os.symlink(tree.system, inside / "link")
    for path in ("memory/short_term.md", "memory/long_term/../review.md", "memory/long_term/link/config.yaml"):
        with pytest.raises(ConfinementError, match="leads outside memory/long_term/"):
            tree.confine(path, inside=inside)


def test_a_link_to_a_brain_is_that_brain(root: Path, tmp_path: Path) -> None:
    """The root is resolved once, so a brain reached by a link has the same places."""
    os.symlink(root, tmp_path / "link")
    assert Brain(root).root == Brain(tmp_path / "link").root


@given(st.text(max_size=40))
def test_confine_never_leaves(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever text is named, what comes back lies within the brain, or it is refused."""
    tree = Brain(tmp_path_factory.getbasetemp()).tree
    try:
        found = tree.confine(text)
    except ConfinementError:
        return
    assert tree.root in (found, *found.parents)
    assert tree.root in (real := Path(os.path.realpath(found)), *real.parents)


KINDS = {
    "inbox/q.md": PathKind.PROMPT,
    "inbox/q.txt": PathKind.PROMPT,
    "inbox/trip/q.md": PathKind.PROMPT,
    "inbox/notes/n.md": PathKind.CAPTURE,
    "inbox/notes/deep/n.txt": PathKind.CAPTURE,
    "inbox/notes.md": PathKind.PROMPT,
    "inbox/q.response.md": PathKind.RESPONSE,
    "inbox/q.txt.response.md": PathKind.RESPONSE,
    "inbox/q.response-2.md": PathKind.RESPONSE,
    "inbox/q.error.md": PathKind.ERROR,
    "inbox/response.md": PathKind.PROMPT,
    "inbox/q.pdf": PathKind.FILE,
    "inbox/notes/Scan.HEIC": PathKind.FILE,
    "inbox/q.docx": PathKind.OTHER,
    "memory/short_term.md": PathKind.SHORT_TERM,
    "memory/review.md": PathKind.REVIEW,
    "memory/Today.md": PathKind.TODAY,
    "memory/long_term/concrete/a.md": PathKind.MEMORY,
    "memory/long_term/events/2025/09/16/talk.md": PathKind.MEMORY,
    "memory/long_term/skills/_index.md": PathKind.INDEX_PAGE,
    "memory/long_term/concrete/photo.png": PathKind.OTHER,
    "memory/archive/concrete/a.md": PathKind.ARCHIVED,
    "memory/short_term/old.md": PathKind.OTHER,
    "system/config.yaml": PathKind.CONFIG,
    "system/core_identity.md": PathKind.SYSTEM,
    "system/prompts/answer.md": PathKind.SYSTEM,
    "plugins/daily_note.py": PathKind.PLUGIN,
    "plugins/readme.md": PathKind.OTHER,
    "plugins/__pycache__/daily_note.cpython-311.pyc": PathKind.IGNORED,
    "logs/access.log": PathKind.ACCESS_LOG,
    "logs/journal/laptop-1/2025-09-16.jsonl": PathKind.JOURNAL,
    "logs/other.log": PathKind.OTHER,
    "Notes/deep/Tea.md": PathKind.SOURCE,
    "Notes/Tea.png": PathKind.OTHER,
    "Notes/.trash/Tea.md": PathKind.IGNORED,
    "../vault/Tea.MD": PathKind.SOURCE,
    "../vault/.trash/Tea.md": PathKind.OTHER,
    "../vault-2/Tea.md": PathKind.OTHER,
    "README.md": PathKind.OTHER,
    "inboxes/q.md": PathKind.OTHER,
    "inbox/.q.md": PathKind.IGNORED,
    "inbox/.obsidian/q.md": PathKind.IGNORED,
    "inbox/q.md~": PathKind.IGNORED,
    "inbox/.q.md.swp": PathKind.IGNORED,
    "inbox/q.md.tmp": PathKind.IGNORED,
    "inbox/q.md.part": PathKind.IGNORED,
    "inbox/4913": PathKind.IGNORED,
    "inbox/#q.md#": PathKind.IGNORED,
    "inbox/.#q.md": PathKind.IGNORED,
    "inbox/.brainiac-x1": PathKind.IGNORED,
    "inbox/q.sync-conflict-20250916-153000-ABCDEFG.md": PathKind.IGNORED,
    "inbox/q (Mira's conflicted copy 2025-09-16).md": PathKind.IGNORED,
    "memory/long_term/concrete/a.sync-conflict-20250916-153000-ABCDEFG.md": PathKind.IGNORED,
    "inbox/line\nbreak.md": PathKind.OTHER,
    "inbox/latin-\udce9.md": PathKind.OTHER,
}


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
def test_kind_of_each_place(tree: Any, path: str, kind: PathKind) -> None:
    """What a file is for follows from its path alone.

    Seeds: U2.
    """
    tree.set_sources([tree.root / "Notes", tree.root.parent / "vault"])
    assert kind == tree.kind_of(path)


def test_every_kind_has_a_place() -> None:
    """No kind of path is without an example above."""
    assert set(PathKind) == set(KINDS.values())


def test_configured_layout(root: Path) -> None:
    """Directories may be named otherwise; what files are for follows them.

    Seeds: P7.
    """
    layout = {"inbox": "Eingang", "memory": "notes/brain", "plugins": "ext", "logs": "var/log"}
    for folder in layout.values():
        (root / folder).mkdir(parents=True)
    (root / "system/config.yaml").write_text(f"paths: {json.dumps(layout)}\n")
    tree = Brain(root).tree
    found = {
        path: tree.kind_of(path) for path in ("Eingang/q.md", "inbox/q.md", "notes/brain/short_term.md", "ext/x.py")
    }
    assert {
        "Eingang/q.md": PathKind.PROMPT,
        "inbox/q.md": PathKind.OTHER,
        "notes/brain/short_term.md": PathKind.SHORT_TERM,
        "ext/x.py": PathKind.PLUGIN,
    } == found
    assert PathKind.ACCESS_LOG == tree.kind_of("var/log/access.log")
    assert PathKind.CONFIG == tree.kind_of("system/config.yaml")


def test_tracked_are_the_notes(tree: Any) -> None:
    """The journal keeps the texts of what a person or process writes, not logs, code or foreign files."""
    tracked = {path for path in KINDS if tree.is_tracked(path)}
    assert {"inbox/q.md", "memory/short_term.md", "system/config.yaml"} <= tracked
    assert not tracked & {"logs/access.log", "plugins/daily_note.py", "inbox/q.pdf", "inbox/.q.md"}


def test_relative_keeps_the_spelling_on_disk(tree: Any) -> None:
    """A name in NFD is named in NFD: a file is found again under the very bytes it has."""
    name = unicodedata.normalize("NFD", "Café.md")
    (tree.inbox / name).write_text("x")
    found = [tree.relative(entry.path) for entry in tree.walk(tree.inbox)]
    assert [f"inbox/{name}"] == found
    assert "x" == tree.absolute(found[0]).read_text()
    assert "." == tree.relative(tree.root)


def test_walk_passes_links_and_temporary_names_over(tree: Any, tmp_path: Path) -> None:
    """A walk yields regular files below the folders: no links (in, out, loops), nothing hidden, no pipes."""
    for name in ("q.md", "deep/er/q.md", ".hidden/q.md", "q.md~", "node_modules.tmp/q.md"):
        (tree.inbox / name).parent.mkdir(parents=True, exist_ok=True)
        (tree.inbox / name).write_text("x")
    os.symlink(tmp_path, tree.inbox / "out")
    os.symlink("deep", tree.inbox / "in")
    os.symlink("..", tree.inbox / "deep/loop")
    os.symlink("q.md", tree.inbox / "alias.md")
    os.mkfifo(tree.inbox / "pipe.md")
    found = sorted(tree.relative(entry.path) for entry in tree.walk(tree.inbox, tree.root / "not-there"))
    assert ["inbox/deep/er/q.md", "inbox/q.md"] == found


@pytest.mark.parametrize("name", ["q.md", "4914", "draft~1.md", "a.tmp.md", "con.md", "lock.md", "x.partial.md"])
def test_ordinary_names_are_not_temporary(name: str) -> None:
    """Names that only resemble temporary ones are a person's own."""
    assert not is_temporary(name)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Where I live", "where-i-live"),
        ("Größe & Maß", "größe-maß"),
        ("東京の道", "東京の道"),
        ("हिन्दी किताब", "हिन्दी-किताब"),
        ("Tea \u2615\ufe0f time", "tea-time"),
        ("", "untitled"),
        ("🎉", "untitled"),
        ("../../etc/passwd", "etc-passwd"),
        ("con", "con-note"),
        ("LPT1", "lpt1-note"),
        ("a\0b", "a-b"),
        ("_index", "index"),
    ],
)
def test_slugify(title: str, expected: str) -> None:
    """A title becomes a file stem that people can read in their own script, and every system can hold."""
    assert expected == slugify(title)


def test_slugify_is_the_same_for_nfc_and_nfd() -> None:
    """Two spellings of one name make one slug."""
    assert slugify("Café Zoë") == slugify(unicodedata.normalize("NFD", "Café Zoë"))


def test_slugify_avoids_case_collisions() -> None:
    """A stem that differs from a standing one by case alone gets a number: some file systems hold only one of them."""
    assert "portland-3" == slugify("PORTLAND", {"Portland", "portland-2"})


@given(st.text(max_size=300), st.sets(st.text("abc-0123", max_size=5)))
def test_slugify_holds_its_promises(title: str, taken: set[str]) -> None:
    """Any title gives letters, digits, marks and `-`, at most 80 bytes, not taken, and not read as a temporary name."""
    slug = slugify(title, taken)
    assert all(c.isalnum() or c == "-" or unicodedata.category(c) in ("Mn", "Mc") for c in slug)
    assert is_printable(slug)
    assert 0 < len(slug.encode()) <= 80
    assert slug.casefold() not in {name.casefold() for name in taken}
    assert not is_temporary(slug + ".md")


def test_local_places_are_outside_the_tree_and_apart(root: Path, tmp_path: Path, machine: Path) -> None:
    """Two clones of one brain on a machine share neither locks nor index; both lie in the user's folders.

    Seeds: S1.
    """
    clone = tmp_path / "clone"
    clone.mkdir()
    first, second = Brain(root).places, Brain(clone).places
    assert first.state != second.state
    assert first.cache != second.cache
    for place in (first.state, first.cache, first.config, first.device):
        assert machine in place.parents
        assert root not in place.parents


def test_local_places_follow_the_real_path(root: Path, tmp_path: Path) -> None:
    """A brain reached by a link has the locks of that brain."""
    os.symlink(root, tmp_path / "link")
    assert Brain(root).places.state == Brain(tmp_path / "link").places.state


def test_find_root_looks_upwards(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands work anywhere below a brain; a named folder and BRAINIAC_HOME come first."""
    monkeypatch.chdir(root / "memory/long_term")
    assert root == find_root()
    assert root == find_root(root / "inbox")
    monkeypatch.chdir("/")
    monkeypatch.setenv("BRAINIAC_HOME", str(root))
    assert root == find_root()


def test_find_root_refuses_what_is_no_brain(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No brain is a sentence that says what to do; a mistyped name below a brain does not mean that brain."""
    with pytest.raises(NotABrainError, match="brainiac init"):
        find_root(tmp_path)
    monkeypatch.chdir(root)
    for mistyped in ("../not-there", "not-there"):
        with pytest.raises(NotABrainError, match="is not a folder"):
            find_root(mistyped)


def test_a_folder_is_surveyed_anew_once_it_changed(tree: Any) -> None:
    """One that is as it was is not listed again; what comes, goes or changes its kind in it is seen at once."""
    folder, page = tree.long_term / "concrete", tree.long_term / "concrete/heron.md"

    def found() -> set[str]:
        return {path for each in tree.survey(tree.memory) for path in each.kinds}

    assert set() == found()
    page.write_text("# Heron\n")
    assert {"memory/long_term/concrete/heron.md"} == found()
    time.sleep(2.1)  # until its time tells
    (first,) = [each for each in tree.survey(tree.memory) if each.kinds]
    (second,) = [each for each in tree.survey(tree.memory) if each.kinds]
    assert first is second
    os.utime(folder, (1_000_000_000, 1_000_000_000))  # as a backup does that is put back
    page.unlink()
    assert set() == found()
    folder.joinpath("deeper").mkdir()
    folder.joinpath("deeper/rook.md").symlink_to("../../../secret.md")
    assert set() == found()
    assert ["is a link; links are not followed"] == [
        misfit.what for each in tree.survey(tree.memory) for misfit in each.misfits
    ]
