"""What a prompt's front matter names, a workflow or notes in focus, and is not there."""

from __future__ import annotations

from pathlib import Path

from brainiac.testing import make_brain, run_once


def test_an_unknown_workflow_or_focus_is_told_by_the_offline_engine_too(tmp_path: Path) -> None:
    """No workflow of that name: an error file that names those there are. No such note in focus: the answer says so."""
    brain = make_brain(tmp_path / "brain")
    (brain.tree.inbox / "w.md").write_text("---\nworkflow: nosuch\n---\nGo through it.\n")
    (brain.tree.inbox / "known.md").write_text(
        "---\nworkflow: weekly-review\nfocus: ['[[w]]', inbox/w.md]\n---\nDo it.\n"
    )
    (brain.tree.inbox / "f.md").write_text("---\nfocus: '[[Nope]]'\n---\nWhat is this?\n")
    assert 2 == run_once(brain).answered
    told = (brain.tree.inbox / "w.error.md").read_text()
    assert "There is no workflow `nosuch`" in told
    assert "integrate, prepare-meeting, weekly-review" in told
    assert (
        "No such note, though the prompt has it in `focus`: [[Nope]]"
        in (brain.tree.inbox / "f.response.md").read_text()
    )
    assert "No such note" not in (brain.tree.inbox / "known.response.md").read_text()
    brain.close()
