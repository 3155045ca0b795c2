"""`brainiac costs` and `brainiac context`: what is sent to a model, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.testing import make_brain
from tests.support.commands import Shell


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    brain = make_brain(tmp_path / "brain")
    yield brain
    brain.close()


@pytest.fixture
def shell(brain: Brain, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys, str(brain.root))


def test_costs_add_up_the_journal(shell: Shell, brain: Brain) -> None:
    """Calls are added up by day, process and model, and today's sum stands beside the budget."""
    call = {"purpose": "answer", "model": "openai/x", "input_tokens": 100, "cached_tokens": 0, "output_tokens": 10}
    for cost in (0.25, 0.125):
        brain.record("model-called", by="core_loop", data={**call, "cost_usd": cost})
    found = shell("costs", "--json").json
    assert (0.375, 2, 200) == (found["total_usd"], found["rows"][0]["calls"], found["rows"][0]["input_tokens"])
    assert "Today: $0.3750 of $1.00." in shell("costs").out
    assert 0.375 == shell("status", "--json").json["spent_today_usd"]


def test_costs_of_a_brain_without_a_model(shell: Shell) -> None:
    """The offline engine costs nothing."""
    shell("ask", "I live in Portland.")
    assert 0 == shell("costs", "--json").json["total_usd"]


def test_context_shows_what_a_model_would_see(shell: Shell) -> None:
    """The working memory of a prompt, in order, with its tokens, without asking any model.

    Seeds: C1.
    """
    shell("ask", "I live in Portland.")
    done = shell("context", "Where do I live?")
    assert 0 == done.code
    headings = ("## Core Identity", "## Short-Term Memory", "## User Prompt")
    places = [done.out.index(heading) for heading in headings]
    assert sorted(places) == places
    assert "Portland" in done.out
    found = shell("context", "--json", "Where do I live?").json
    assert found["tokens"] <= found["budget_tokens"]
