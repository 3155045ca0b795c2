"""`promote --past` and `rebuild` on the command line, with a model served on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from tests.support.commands import Shell
from tests.support.models import set_sections, write_machine
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say_json
from tests.support.promotions import make_brain, statements, tell
from tests.support.remote import all_follow, purpose_of

MODEL = "openai/gpt-4.1-mini"


def answer(request: Captured) -> Behaviour:
    """Answer with a statement for each exchange: the very words of it, which follow."""
    if purpose_of(request) == "verify":
        return say_json(all_follow(request.text))
    said = re.findall(r"\(id (e\d+)\).*?\nUser:\n> (.*?)\n", request.text, re.DOTALL)
    page = {"title": "Ruth", "kind": "concrete", "folder": "people"}
    operations = [
        {
            "action": "new",
            "text": text,
            "evidence": [{"exchange": name, "quote": text}],
            "page": page,
            "subject": "Ruth",
        }
        for name, text in said
    ]
    return say_json({"operations": operations})


@pytest.fixture
def served() -> Iterator[ChatServer]:
    with ChatServer() as server:
        server.default = by_request(answer)
        yield server


@pytest.fixture
def brain(tmp_path: Path, served: ChatServer) -> Brain:
    brain = make_brain(tmp_path / "a", "promotion: {min_events: 1}\n", keyless=True)
    assert isinstance(brain.clock, ManualClock)
    for text in ("My sister Ruth lives in Bristol.", "Ruth plays the cello."):
        tell(brain, text, minutes=1440)
        promote(brain)
    write_machine(brain, {"api_bases": {"openai": served.url}})
    return brain


def test_what_it_costs_is_told_first(brain: Brain, served: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a model it names the option; nobody to ask is wrong use; no call is made before the answer."""
    shell = Shell(capsys, str(brain.root))
    without = shell("promote", "--past")
    assert (1, True) == (without.code, "--model" in without.err)
    new = brain.root.parent / "new"
    refused = shell("rebuild", "--into", str(new), "--yes")
    assert (1, True, False) == (refused.code, "--model" in refused.err, new.exists())
    asked = shell("promote", "--past", "--model", MODEL)
    assert (2, True, True) == (asked.code, "2 exchanges" in asked.out, "--yes" in asked.err)
    assert f"{MODEL} would read them in 2 calls: about " in asked.out
    assert (2, 2) == (shell("promote", "--from", "2026-03-01").code, shell("promote", "--past", "--from", "soon").code)
    assert [] == served.requests


@pytest.mark.slow
def test_it_reads_undoes_and_makes_again(brain: Brain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was read stands, one undo takes all of it back, and a rebuild holds the same."""
    shell = Shell(capsys, str(brain.root))
    read = shell("promote", "--past", "--model", MODEL, "--yes", "--json")
    said = ["My sister Ruth lives in Bristol.", "Ruth plays the cello."]
    assert (0, 2, said) == (read.code, read.json["plan"]["exchanges"], sorted(statements(brain)))
    assert "nothing waits" in shell("promote", "--past", "--model", MODEL).out
    new = tmp_path / "new"
    assert 0 == shell("rebuild", "--into", str(new), "--model", MODEL, "--yes").code
    assert [] == shell("diff", str(brain.root), str(new), "--json").json["differences"]
    assert 0 == shell("rebuild", "--into", str(new), "--model", MODEL, "--yes").code  # nothing is left to be read
    assert 1 == shell("rebuild", "--into", str(brain.root / "inbox"), "--model", MODEL, "--yes").code
    assert (0, []) == (shell("undo", read.json["undo"]).code, statements(brain))


@pytest.mark.slow
def test_it_keeps_to_the_daily_budget(brain: Brain, capsys: pytest.CaptureFixture[str]) -> None:
    """A call that may pass the budget is not made; the rest waits, and goes on with a higher one."""
    shell = Shell(capsys, str(brain.root))
    set_sections(brain.root, f"llm: {{prices: {{{MODEL}: [50, 50]}}, daily_budget_usd: 0.2}}\n")
    stopped = shell("promote", "--past", "--model", MODEL, "--yes")
    assert (1, True) == (stopped.code, "daily_budget_usd" in stopped.out)
    assert "the same command goes on where it was" in stopped.out
    set_sections(brain.root, f"llm: {{prices: {{{MODEL}: [50, 50]}}, daily_budget_usd: 20}}\n")
    assert 0 == shell("promote", "--past", "--model", MODEL, "--yes").code
    assert 2 == len(statements(brain))
