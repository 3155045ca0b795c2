"""`brainiac context`: what a prompt would get, shown without asking any model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brainiac.cli import search as command
from brainiac.cli.session import name_brain
from tests.support.commands import Shell
from tests.support.models import make_brain


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_brain(tmp_path).close()
    name_brain(str(tmp_path))
    return tmp_path


def test_blocks_are_shown_with_tokens_and_what_is_cached(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every block with its tokens, and which of them begin the next request too."""
    command.context("Where do I live?")
    shown = capsys.readouterr().out
    assert shown.startswith("## Core Identity")
    assert "user prompt\t" in shown
    assert "a provider's cache can hold" in shown


def test_json_adds_up(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json gives blocks, tokens and cuts; the blocks' tokens are the whole's."""
    command.context("Where do I live?", as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["tokens"] == sum(block["tokens"] for block in shown["blocks"])
    assert [True, False] == [shown["blocks"][0]["is_cached"], shown["blocks"][-1]["is_cached"]]
    assert [] == shown["cuts"]


def test_cuts_are_shown_with_their_reason(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was left out is named."""
    (root / "system/config.yaml").write_text("context: {budget_tokens: 900}\n")
    notes = "".join(
        f"- Portland has a street number {n} with a long name that fills the page. ^s{n}\n" for n in range(80)
    )
    for page in range(9):
        (root / f"memory/long_term/concrete/streets{page}.md").write_text(f"# Streets {page} of Portland\n\n{notes}")
    command.context("Tell me about [[Portland]] and the streets of Portland, and " + "more words " * 60)
    assert "left out of" in capsys.readouterr().out


def test_copy_without_a_clipboard_prints_the_whole(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--copy falls back to standard output, so that it can be piped."""
    monkeypatch.setenv("PATH", "")
    command.context("Where do I live?", copy=True)
    shown = capsys.readouterr().out
    assert shown.startswith("## Core Identity")
    assert shown.rstrip().endswith("Where do I live?")


def test_a_template_that_does_not_work_is_no_bug(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command names the file and what to do, and exits 1."""
    (root / "system/prompts").mkdir(exist_ok=True)
    (root / "system/prompts/base.md").write_text("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
    done = Shell(capsys, str(root))("context", "Where do I live?")
    assert (1, "") == (done.code, done.out)
    told = " ".join(done.err.split())
    assert "error: The template system/prompts/base.md does not work: it has a statement (`{%`)" in told
    assert "Mend it" in told
