"""`brainiac context`: what a prompt would get, shown without asking any model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import Shell
from tests.support.models import make_brain


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_brain(tmp_path).close()
    return tmp_path


@pytest.fixture
def shell(root: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys, str(root))


def test_a_model_would_see_blocks_in_order_with_their_tokens(shell: Shell) -> None:
    """Every block with its tokens, and which of them begin the next request too.

    Seeds: C1.
    """
    shown = shell("context", "Where do I live?").out
    headings = ("## Core Identity", "## Short-Term Memory", "## User Prompt", "user prompt\t")
    places = [shown.find(heading) for heading in headings]
    assert [0, *sorted(places[1:])] == places
    assert "a provider's cache can hold" in shown


def test_json_adds_up(shell: Shell) -> None:
    """--json gives blocks, tokens and cuts; the blocks' tokens are the whole's, and within the budget."""
    shown = shell("context", "Where do I live?", "--json").json
    assert shown["budget_tokens"] >= shown["tokens"] == sum(block["tokens"] for block in shown["blocks"])
    assert [True, False] == [shown["blocks"][0]["is_cached"], shown["blocks"][-1]["is_cached"]]
    assert [] == shown["cuts"]


def test_cuts_are_shown_with_their_reason(shell: Shell, root: Path) -> None:
    """What was left out is named."""
    (root / "system/config.yaml").write_text("context: {budget_tokens: 900}\n")
    notes = "".join(
        f"- Portland has a street number {n} with a long name that fills the page. ^s{n}\n" for n in range(80)
    )
    for page in range(9):
        (root / f"memory/long_term/concrete/streets{page}.md").write_text(f"# Streets {page} of Portland\n\n{notes}")
    asked = "Tell me about [[Portland]] and the streets of Portland, and " + "more words " * 60
    assert "left out of" in shell("context", asked).out


def test_copy_without_a_clipboard_prints_the_whole(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """--copy falls back to standard output, so that it can be piped."""
    monkeypatch.setenv("PATH", "")
    shown = shell("context", "Where do I live?", "--copy").out
    assert shown.startswith("## Core Identity")
    assert shown.rstrip().endswith("Where do I live?")


def test_a_template_that_does_not_work_is_no_bug(shell: Shell, root: Path) -> None:
    """The command names the file and what to do, and exits 1."""
    (root / "system/prompts/base.md").write_text("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
    done = shell("context", "Where do I live?")
    assert (1, "") == (done.code, done.out)
    told = " ".join(done.err.split())
    assert "error: The template system/prompts/base.md does not work: it has a statement (`{%`)" in told
    assert "Mend it" in told
