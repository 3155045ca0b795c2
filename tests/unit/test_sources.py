"""Sources: folders of a person's own notes that are searched and cited and never written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, SettingsError, UserError
from brainiac.events import NoteMended, update
from brainiac.formats.discretion import Audience
from brainiac.llm.gate import Gate
from brainiac.server.app import serving
from brainiac.testing import make_brain
from tests.support.commands import Shell
from tests.support.models import set_sections
from tests.support.said import say_to
from tests.support.served import Served, free_port
from tests.support.vault import make_vault


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Return a person's vault outside of the brain: notes, an attachment, Obsidian's own folder."""
    vault = tmp_path / "vault"
    notes = {
        "Garden.md": "---\ncreated: 2019-04-05\ntags: [plot]\n---\nThe quince tree stands by the well. See [[Well]].\n",
        "deep/Well.md": "---\nprivate: true\n---\nThe well is forty metres deep.\n",
        "2021-02-03 Walk.md": "We saw a kingfisher at the weir.\n",
        ".obsidian/plugins/x.md": "quince of the plugin\n",
        "picture.png": "quince",
    }
    for path, text in notes.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text)
    return vault


def brain_with(root: Path, *sources: str) -> Brain:
    """Return a brain that names sources."""
    brain = make_brain(root)
    brain.close()
    config = root / "system/config.yaml"
    config.write_text(config.read_text() + f"\nsources: [{', '.join(sources)}]\n")
    return Brain(root)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    return Shell(capsys, str(tmp_path / "brain"))


def allowed(shell: Shell, root: Path, vault: Path) -> Brain:
    """Return a brain whose person allowed the vault on this machine."""
    brain_with(root, str(vault)).close()
    assert 0 == shell("sources", "allow", str(vault), "--yes").code
    return Brain(root)


def test_a_folder_outside_is_read_only_where_this_machine_allows_it(shell: Shell, tmp_path: Path, vault: Path) -> None:
    """Settings come with a synced folder: they alone make no machine read another folder of it."""
    brain = brain_with(tmp_path / "brain", str(vault))
    assert [] == brain.recall.search("quince")
    brain.close()
    assert "not allowed on this machine" in shell("status").out
    assert 1 == shell("sources", "allow", str(vault)).code  # nobody is there to ask
    assert "3 notes" in shell("sources", "allow", str(vault), "--yes").out
    assert ["Garden"] == [hit["title"] for hit in shell("search", "quince", "--json").json["hits"]]
    assert 0 == shell("sources", "refuse", str(vault)).code
    assert [] == shell("search", "quince", "--json").json["hits"]


def test_status_counts_the_notes_of_sources(shell: Shell, tmp_path: Path, vault: Path) -> None:
    """A vault is no empty brain; what cannot be read there is not counted, nor is a private note for a door."""
    brain_with(tmp_path / "brain", str(vault)).close()
    assert "nothing yet" in shell("status").out
    assert 0 == shell("sources", "allow", str(vault), "--yes").code
    assert "3 notes in your own folders" in shell("status").out
    assert 3 == shell("status", "--json").json["counts"]["source_notes"]
    brain = Brain(tmp_path / "brain")
    with serving(brain, print, port=(port := free_port())):
        counts = Served(brain, port).send("GET", "/api/status").json["counts"]
    brain.close()
    assert 2 == counts["source_notes"]


def test_a_note_with_broken_front_matter_is_quoted_without_it(tmp_path: Path) -> None:
    """It is a paragraph of its own: found by its words, and no part of what the note says."""
    brain = brain_with(tmp_path / "brain", ".")
    (brain.root / "animals.md").write_text("---\ntags: [burrow\n---\nThe wombat sleeps in the barn.\n")
    assert ["The wombat sleeps in the barn."] == [hit.text for hit in brain.recall.search("wombat sleeps")]
    assert ["tags: [burrow"] == [hit.text for hit in brain.recall.search("burrow")]
    brain.close()


def test_notes_are_dated_by_their_own_dates(shell: Shell, tmp_path: Path, vault: Path) -> None:
    """By front matter, else by the file's name, else by the file's time; never by when they were read."""
    os.utime(vault / "deep/Well.md", (1_000_000_000, 1_000_000_000))
    brain = allowed(shell, tmp_path / "brain", vault)
    days = [brain.recall.search(words)[0].at[:10] for words in ("quince", "kingfisher", "forty metres")]
    assert ["2019-04-05", "2021-02-03", "2001-09-09"] == days
    brain.close()


def test_an_answer_cites_a_note_and_nothing_of_it_is_changed(shell: Shell, tmp_path: Path, vault: Path) -> None:
    """The answer links to the note where it lies; no commit may write it, and the journal keeps nothing of it."""
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in vault.rglob("*") if path.is_file()}
    brain = allowed(shell, tmp_path / "brain", vault)
    say_to(brain, "deep/q.md", "Where is the quince tree?")
    response = (brain.root / "inbox/deep/q.response.md").read_text()
    assert "(../../../vault/Garden.md" in response
    assert (brain.root / "inbox/deep/../../../vault/Garden.md").exists()
    with pytest.raises(ConfinementError):
        brain.commit(NoteMended(), by="x", changes=[update("../vault/Garden.md", "a", "b")])
    brain.close()
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in vault.rglob("*") if path.is_file()}


def test_a_source_within_the_brain_is_never_written(tmp_path: Path) -> None:
    """`.` stands for all of a person's folders beside the brain's own; a commit into them is refused."""
    root = tmp_path / "brain"
    brain = brain_with(root, ".")
    (root / "Notes").mkdir()
    (root / "Notes/Tea.md").write_text("Assam in the morning.")
    (root / "top.md").write_text("Assam at the top.")
    (root / "inbox/Chai.response.md").write_text("Assam in the inbox")
    brain.recall.rescan()
    assert {"Notes/Tea.md", "top.md"} == {hit.path for hit in brain.recall.search("assam")}
    with pytest.raises(UserError, match="only read"):
        brain.commit(NoteMended(), by="x", changes=[update("Notes/Tea.md", "Assam in the morning.", "b")])
    assert "Assam in the morning." == (root / "Notes/Tea.md").read_text()
    brain.close()


def test_no_link_leads_out_of_a_source(shell: Shell, tmp_path: Path, vault: Path) -> None:
    """Neither a linked file nor a linked folder is searched or read; a relative source that is a link is refused."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/keys.md").write_text("quince of the keys")
    (vault / "linked").symlink_to(tmp_path / "secret")
    (vault / "keys.md").symlink_to(tmp_path / "secret/keys.md")
    brain = allowed(shell, tmp_path / "brain", vault)
    assert ["../vault/Garden.md"] == [hit.path for hit in brain.recall.search("quince")]
    for path in ("../vault/linked/keys.md", "../vault/keys.md", "../secret/keys.md"):
        with pytest.raises(ConfinementError):
            brain.read(path)
        assert Gate(brain, Audience.NOBODY).read_note(path) is None
    brain.close()
    (tmp_path / "brain/Vault").symlink_to(vault)
    config = tmp_path / "brain/system/config.yaml"
    config.write_text(config.read_text().replace(f"sources: [{vault}]", "sources: [Vault]"))
    shell("sources", "refuse", str(vault))
    assert "through a link" in shell("sources", "list").out


def test_a_private_note_stays_here(shell: Shell, tmp_path: Path, vault: Path) -> None:
    """What front matter calls private is found on this machine and passes no gate; what is open beside it does."""
    brain = allowed(shell, tmp_path / "brain", vault)
    hits = brain.recall.search("well quince")
    assert {"../vault/deep/Well.md", "../vault/Garden.md"} == {hit.path for hit in hits}
    gate = Gate(brain)
    assert ["../vault/Garden.md"] == [hit.path for hit in gate.hits(hits)]  # with its link, which was written openly
    assert gate.read_note("../vault/deep/Well.md") is None
    assert "forty" in (Gate(brain, Audience.NOBODY).read_note("../vault/deep/Well.md") or "")
    brain.close()


@pytest.mark.parametrize("source", ["../vault", "memory/long_term", "''"])
def test_a_source_is_a_folder_of_the_persons_own(tmp_path: Path, source: str) -> None:
    """A relative path out of the brain, the brain's own folders and an empty name are refused with the sentence why."""
    with pytest.raises(SettingsError, match="sources"):
        brain_with(tmp_path / "brain", source)


@pytest.mark.slow
def test_foreign_notes_of_many_shapes_stay_as_they_are(shell: Shell, tmp_path: Path) -> None:
    """A brain in a vault searches, answers, promotes, organizes, repairs: not one byte of the person's changes."""
    root = tmp_path / "brain"
    notes = make_vault(root, 90)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}
    assert 0 == Shell(shell.capsys)("init", "--here", "--yes", str(root)).code
    set_sections(root, "recall: {embedder: none}")  # meanings of so many notes take most of a minute
    for number in (3, 7, 79):  # Latin-1 and broken properties too are found by their words
        hits = shell("search", f"marker{number}x", "--json").json["hits"]
        assert notes[number] == root / hits[0]["path"]
    assert "Note%207.md" in shell("ask", "Where is marker7x?").out
    for command in (["promote"], ["organize"], ["doctor", "--fix"], ["reindex"]):
        assert 0 == shell(*command).code, command
    brain = Brain(root)
    graph = brain.recall.links
    assert [brain.tree.relative(notes[other]) for other in (8, 4, 6)] == graph.forward(brain.tree.relative(notes[1]))
    assert brain.tree.relative(notes[1]) in graph.back(brain.tree.relative(notes[8]))
    brain.close()
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before}
