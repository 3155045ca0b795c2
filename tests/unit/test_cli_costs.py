"""`brainiac costs`: what calls of models came to."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.testing import make_brain
from tests.support.commands import Shell


def test_costs_add_up_the_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls are added up by day, process and model, and today's sum stands beside the budget."""
    brain = make_brain(tmp_path / "brain")
    shell = Shell(capsys, str(brain.root))
    call = {"purpose": "answer", "model": "openai/x", "input_tokens": 100, "cached_tokens": 0, "output_tokens": 10}
    for cost in (0.25, 0.125):
        brain.record("model-called", by="core_loop", data={**call, "cost_usd": cost})
    brain.close()
    found = shell("costs", "--json").json
    assert (0.375, 2, 200) == (found["total_usd"], found["rows"][0]["calls"], found["rows"][0]["input_tokens"])
    assert "Today: $0.3750 of $1.00." in shell("costs").out
    assert 0.375 == shell("status", "--json").json["spent_today_usd"]
