"""Looking the whole tree over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.library import read_prompt
from brainiac.pipeline.inbox import find_backlog, is_free
from brainiac.pipeline.watch import changed_paths, scan
from brainiac.tree import Tree
from tests.support.pipeline import CONFIG, Scripted, make_folder, opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "brain")


@pytest.fixture
def brain(root: Path) -> Brain:
    return opened(root, Scripted())


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("text")


def test_a_scan_finds_what_is_watched_and_nothing_else(root: Path) -> None:
    write(root, "inbox/a/q.md", "memory/long_term/m.md", "logs/access.log", "logs/journal/dev/2025-01-01.jsonl")
    write(root, "inbox/.hidden/q.md", "inbox/q.md.swp", "elsewhere/x.md", "inbox/.brainiac-1")
    (root / "inbox/link.md").symlink_to(root / "inbox/a/q.md")
    found = set(scan(Tree(root)))
    assert {"inbox/a/q.md", "memory/long_term/m.md", "logs/access.log"} == found - {
        "system/core_identity.md",
        "system/config.yaml",
    }


def test_differences_are_what_is_new_changed_or_gone(root: Path) -> None:
    write(root, "inbox/same.md", "inbox/changed.md", "inbox/gone.md")
    known = scan(Tree(root))
    (root / "inbox/changed.md").write_text("another text")
    (root / "inbox/gone.md").unlink()
    write(root, "inbox/new.md")
    assert {"inbox/changed.md", "inbox/new.md", "inbox/gone.md"} == set(changed_paths(Tree(root), known))


def test_a_missing_folder_deletes_nothing(root: Path) -> None:
    """A drive that is not mounted is not a person who deletes."""
    write(root, "memory/long_term/m.md", "inbox/q.md")
    known = scan(Tree(root))
    shutil.rmtree(root / "memory")
    (root / "inbox/q.md").unlink()
    assert ["inbox/q.md"] == changed_paths(Tree(root), known)


def test_the_backlog_is_what_nothing_stands_beside(brain: Brain, root: Path) -> None:
    write(root, "inbox/open.md", "inbox/by_hand.md", "inbox/notes/n.md")
    (root / "inbox/by_hand.response.md").write_text("An answer from elsewhere.")
    (root / "inbox/empty.md").write_text("")
    (root / "inbox/draft.md").write_text("---\nstatus: draft\n---\nlater")
    (root / "inbox/broken.md").write_bytes(b"\xff")
    assert {"inbox/open.md", "inbox/notes/n.md", "inbox/broken.md"} == set(
        find_backlog(brain, scan(brain.tree)).unanswered
    )


def test_a_prompt_that_is_gone_blank_or_a_draft_reads_as_none(brain: Brain, root: Path) -> None:
    (root / "inbox/blank.md").write_text(" \n\n")
    assert (None, None) == (read_prompt(brain, "inbox/absent.md"), read_prompt(brain, "inbox/blank.md"))


def test_a_prompt_that_is_too_large_is_refused_unread(brain: Brain, root: Path) -> None:
    (root / "inbox/big.md").write_text("x" * 1_000_001)
    with pytest.raises(FormatError, match="larger than 1,000,000 bytes"):
        read_prompt(brain, "inbox/big.md")


@pytest.mark.parametrize(
    ("llm", "expected"),
    [
        ("{}", True),
        ("{model: openai/gpt-5}", False),
        ("{models: {answer: openai/gpt-5}}", False),
        ("{models: {consolidate: openai/gpt-5}}", True),
    ],
)
def test_answering_is_free_where_the_offline_engine_answers(root: Path, llm: str, expected: bool) -> None:
    (root / "system/config.yaml").write_text(f"{CONFIG}llm: {llm}\n")
    assert expected is is_free(Brain(root))
