"""`brainiac init`: a new brain, and nothing lost where something stands already."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.commands import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_makes_a_whole_brain(shell: Shell, tmp_path: Path) -> None:
    """A new brain has every place and page it needs, in plain text, and nothing is wrong with it.

    Seeds: S1, S2, S4, S6, S8, U2.
    """
    done = shell("init", str(tmp_path / "my brain"))
    assert (0, "") == (done.code, done.err)
    assert "What next" in done.out
    root = tmp_path / "my brain"
    assert str(root) == shell("status", "--json", "--brain", str(root / "memory")).json["brain"]
    made = files(root)
    assert {
        "system/core_identity.md", "system/config.yaml", "memory/short_term.md", "memory/long_term/_index.md",
        "memory/long_term/concrete/_index.md", "memory/long_term/events/_index.md",
        "memory/long_term/skills/_index.md", ".gitignore", ".gitattributes", ".stignore",
    } <= set(made)  # fmt: skip
    assert all(content.decode("utf-8") for content in made.values())
    assert [] == list((root / "plugins").iterdir())
    assert all((root / folder).is_dir() for folder in ("inbox/notes", "logs", "memory/archive"))
    assert "Nothing is wrong." in shell("doctor", "--brain", str(root)).out


def test_each_brain_has_an_id_of_its_own(shell: Shell, tmp_path: Path) -> None:
    """The id is made at init, in a config.yaml whose comments are the shipped ones."""
    for name in ("one", "two"):
        shell("init", str(tmp_path / name))
    configs = [tmp_path / name / "system/config.yaml" for name in ("one", "two")]
    ids = {str(UUID(re.findall("(?m)^brain_id: (.*)$", config.read_text())[0])) for config in configs}
    assert 2 == len(ids)
    first, second = (re.sub("brain_id:.*", "", config.read_text()) for config in configs)
    assert first == second
    assert "# Settings of this brain" in first


def test_init_refuses_a_folder_with_other_files(shell: Shell, tmp_path: Path) -> None:
    """A folder that holds something else is refused with what to do, and stays as it is."""
    (tmp_path / "thesis.md").write_text("mine")
    done = shell("init", str(tmp_path))
    assert 1 == done.code
    assert "--here" in done.err
    assert {"thesis.md": b"mine"} == files(tmp_path)
    assert 1 == shell("init", str(tmp_path / "thesis.md")).code


def test_init_refuses_a_folder_of_a_brain(shell: Shell, tmp_path: Path) -> None:
    """A brain within a brain would be made by mistake only: nothing is made, not even with --here."""
    shell("init", str(tmp_path / "brain"))
    inner = tmp_path / "brain" / "brain"
    done = shell("init", str(inner), "--here", "--yes")
    assert (1, False, True) == (done.code, inner.exists(), f"lies in the brain {inner.parent}" in done.err)


def test_init_here_adds_only_what_is_missing(shell: Shell, tmp_path: Path) -> None:
    """With --here a brain is put beside what stands there, which stays byte for byte."""
    (tmp_path / "system").mkdir()
    mine = {"thesis.md": "mine", ".gitignore": "*.pdf\n", "system/config.yaml": "# mine\npaths: {inbox: drop}\n"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    assert "say drop/hello.md" in shell("init", str(tmp_path), "--here", "--yes").out
    made = files(tmp_path)
    assert mine == {name: made[name].decode() for name in mine}
    assert (tmp_path / "drop/notes").is_dir()
    assert not (tmp_path / "inbox").exists()


def test_init_in_a_vault_says_what_it_will_touch_and_asks(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is made before the person agreed; their folders are not taken over, and their notes are read only."""
    for path in ("Inbox/Mail.md", "Tea.md", ".obsidian/app.json", "memory/old.md", "img/a.png"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("Assam, says Mira")
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    refused = shell("init", "--here")
    assert 1 == refused.code
    assert before == files(tmp_path)
    for words in ("3 notes and 1 other files", "Brainiac/inbox/", "Brainiac/memory/", "never changed", "sources: [.]"):
        assert words in refused.out
    assert 0 == shell("init", "--here", "--yes").code
    hits = shell("search", "assam", "--json", "--brain", str(tmp_path)).json["hits"]
    assert {"Inbox/Mail.md", "Tea.md", "memory/old.md"} == {hit["path"] for hit in hits}
    assert before == {path: text for path, text in files(tmp_path).items() if path in before}
    assert 2 == shell("init").code


def test_init_twice_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    """A second init finds nothing to do; one after a lost file puts that one back."""
    shell("init", str(tmp_path / "b"))
    before = files(tmp_path / "b")
    assert "lacks nothing" in shell("init", str(tmp_path / "b")).out
    assert before == files(tmp_path / "b")
    (tmp_path / "b/memory/short_term.md").unlink()
    assert "Made 1 files" in shell("init", str(tmp_path / "b")).out
    assert before == files(tmp_path / "b")


def test_init_leaves_links_alone(shell: Shell, tmp_path: Path) -> None:
    """A dangling link where a file would go is not written through."""
    shell("init", str(tmp_path / "b"))
    (tmp_path / "b/.stignore").unlink()
    (tmp_path / "b/.stignore").symlink_to(tmp_path / "elsewhere")
    assert 0 == shell("init", str(tmp_path / "b")).code
    assert not (tmp_path / "elsewhere").exists()
