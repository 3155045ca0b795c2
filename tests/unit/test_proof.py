"""`prove forgotten`: whatever this machine has of a brain is looked through, and what holds the words is named."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from brainiac.storage.journal import BlobStore
from brainiac.testing import World

WORD = "zanzibar"
TOLD = f"The key of the cellar lies in {WORD}."


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.drop("a.md", TOLD)
    world.drop("b.md", "Tea is better than coffee.")
    world.run()
    return world


def proof(world: World, *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and what was found by place."""
    said = world.cli("prove", "forgotten", WORD, "--json", *options)
    found: dict[str, Any] = {}
    for each in said.json["found"]:
        found.setdefault(each["place"], []).append(each["where"])
    return said.code, found


def purge(world: World) -> None:
    assert world.cli("forget", WORD, "--purge", "-y").code == 0


def test_what_was_told_is_found_and_after_a_purge_it_is_not(world: World) -> None:
    """Told: in files, journal's texts, state, index and the working memory. Forgotten: the journal still has it."""
    code, found = proof(world)
    assert (1, True) == (code, {"files", "former versions", "index", "working memory"} <= found.keys())
    assert world.cli("forget", WORD, "-y").code == 0
    world.tick(60)
    code, found = proof(world)
    assert (1, True, True) == (code, "former versions" in found, "files" not in found), found
    purge(world)
    world.run()
    assert proof(world) == (0, {})
    said = world.cli("prove", "forgotten", WORD)
    assert (0, True) == (said.code, f"No text here has “{WORD}”." in said.out)


PLACES = "files key comment folder name utf-16 utf-16-be escaped journal torn device former_versions splice state freed"


@pytest.mark.parametrize("place", [*PLACES.split(), "index", "log"])
def test_a_word_planted_anywhere_is_found(world: World, place: str) -> None:
    """Each place that it says it has looked through, also names, another device's journal and freed rows."""
    purge(world)
    journal = next((world.root / "logs/journal").glob("*/*.jsonl"))
    state = next((world.home / "state/brainiac/brains").glob("*/state.db"))
    match place:
        case "files":
            world.save("memory/long_term/concrete/x.md", f"# X\n\n- In {WORD}. ^ab12\n")
        case "name":
            world.save(f"memory/long_term/concrete/in_{WORD}.md", "# X\n")
        case "key" | "comment":
            sign = "# " if place == "comment" else ""
            world.save("memory/long_term/concrete/x.md", f"---\n{sign}{WORD}: 1\n---\n# X\n")
        case "folder":
            world.save("memory/long_term/concrete/x.md", f"# X\n\n- See [it](in_{WORD}/y.md).\n")
        case "utf-16" | "utf-16-be":
            world.save("inbox/x.bin", TOLD.encode(place))
        case "escaped":
            world.save("inbox/x.json", json.dumps({"a": TOLD}).replace("z", "\\u007a"))
        case "log":
            (world.root / "logs/x.log").write_text(f'{{"event": "in {WORD}"}}\n')
        case "journal":
            event = json.loads(journal.read_text().splitlines()[-1]) | {"data": {"note": TOLD}}
            journal.write_text(journal.read_text() + json.dumps(event) + "\n")
        case "torn":
            journal.write_text(journal.read_text() + f'{{"seq": 9, "data": "{WORD}')
        case "device":
            other = journal.parent.parent / "phone-1a2b3c/2025-09-16.jsonl"
            other.parent.mkdir()
            other.write_text(json.dumps({"seq": 1, "id": "x", "data": {"prompt": f"inbox/{WORD}.md"}}) + "\n")
        case "former_versions":
            BlobStore(world.root / "logs/journal/blobs").put(TOLD.encode())
        case "splice":  # what it is spliced on is gone, its own bytes are there
            blobs, text = world.root / "logs/journal/blobs", b"Tea. " * 200
            base = BlobStore(blobs).put(text)
            BlobStore(blobs).put(text + TOLD.encode(), base=base)
            (blobs / base[:2] / base[2:]).unlink()
        case "state" | "freed":
            with sqlite3.connect(state) as connection:
                connection.execute("PRAGMA secure_delete = OFF")
                connection.execute("CREATE TABLE x(text)")
                connection.execute("INSERT INTO x VALUES (?)", (TOLD,))
                connection.execute("INSERT INTO x VALUES ('y')")
                if place == "freed":
                    connection.execute("DELETE FROM x WHERE text != 'y'")
        case "index":
            world.cli("search", "tea")
            pages = next((world.home / "cache").rglob("pages.db"))
            with sqlite3.connect(pages) as connection:
                connection.execute("CREATE TABLE x AS SELECT ? AS text", (TOLD,))
    code, found = proof(world)
    assert code == 1
    of_files = dict.fromkeys("key comment folder name utf-16 utf-16-be escaped log".split(), "files")
    places = of_files | {"torn": "journal", "device": "journal", "freed": "state", "splice": "former_versions"}
    assert places.get(place, place).replace("_", " ") in found, found


def test_an_archive_that_is_named_is_looked_through(world: World, tmp_path: Path) -> None:
    """A backup from before the purge still has it, whole or as a plain copy of the folder; one that is not told of,
    and what was sent to a model, are named as not reached."""
    assert world.cli("backup", str(tmp_path / "backups")).code == 0
    shutil.copytree(world.root, tmp_path / "copy")
    purge(world)
    world.run()
    assert proof(world) == (0, {})
    (backup,) = (tmp_path / "backups").iterdir()
    for archive in (backup, tmp_path / "copy"):
        code, found = proof(world, "--archive", str(archive))
        assert code == 1
        assert {f"{archive}: files", f"{archive}: former versions"} == found.keys()
    assert any("archives" in line for line in world.cli("prove", "forgotten", WORD, "--json").json["beyond"])


def test_words_must_meet_and_others_are_not_found(world: World) -> None:
    """Two words of two messages are no find; nor is any word that nobody said."""
    assert world.cli("prove", "forgotten", WORD, "coffee").code == 0
    assert world.cli("prove", "forgotten", WORD, "cellar").code == 1
    for word in ("zirconium", "Käsespätzle", "東京", "cellars"):
        assert world.cli("prove", "forgotten", word).code == 0, word


def test_it_changes_nothing(world: World) -> None:
    before = world.tree()
    proof(world)
    assert world.tree() == before


@pytest.mark.parametrize(
    ("words", "archive", "error"),
    [
        ("!!!", "", "has no word"),
        (WORD, "nowhere", "is not there"),
        pytest.param(
            WORD,
            "/proc/self/mem",
            "cannot be read",
            marks=pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that nobody can read"),
        ),
    ],
)
def test_what_was_not_looked_through_is_no_proof(world: World, words: str, archive: str, error: str) -> None:
    """No word, a mistyped archive, a file that cannot be read: it is said, not that nothing has the words."""
    said = world.cli("prove", "forgotten", words, *(["--archive", archive] if archive else []))
    assert (said.code, "No text here" in said.out) == (1, False)
    assert error in said.err


def test_an_archive_is_named_from_where_one_stands(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a database in it, links that lead nowhere, and a pipe."""
    purge(world)
    (tmp_path / "old").mkdir()
    (tmp_path / "old/loop").symlink_to("loop")
    os.mkfifo(tmp_path / "old/pipe")
    with sqlite3.connect(tmp_path / "old/x.db") as connection:
        connection.execute("CREATE TABLE x AS SELECT ? AS text", (TOLD,))
    monkeypatch.chdir(tmp_path)
    code, found = proof(world, "--archive", "old")
    assert (code, [str(tmp_path / "old/x.db")]) == (1, found[f"{tmp_path / 'old'}: files"])
