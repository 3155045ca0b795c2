"""Money: the budget before each call, the journal after it, and `brainiac costs`."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain, ModelError
from brainiac.clock import ManualClock
from brainiac.errors import BudgetError
from brainiac.events import ModelCalled
from brainiac.llm.catalog import Endpoint, Ledger, Price
from brainiac.llm.schemas import Purpose
from tests.support.commands import do
from tests.support.models import (
    NOW,
    answer_request,
    make_brain,
    model_brain,
    queries_request,
    run_answer,
    write_settings,
)
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, cut, hang, say, status


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def paid(tmp_path: Path, server: ChatServer) -> Brain:
    """A brain whose local model costs $10 and $20 a million tokens."""
    return model_brain(tmp_path, server, prices={"openai/test-model": [10.0, 20.0]})


def calls(brain: Brain) -> list[dict[str, Any]]:
    return [dict(event.data) for event in brain.journal.events(kinds={ModelCalled})]


def test_call_is_journaled_with_numbers_only(paid: Brain, server: ChatServer) -> None:
    """The event holds purpose, model, tokens and cost, its cause, and no text."""
    server.script(say("Portland.", tokens=(1000, 50)))
    answer = run_answer(paid, answer_request(cause="0199-cause"))
    (event,) = paid.journal.events(kinds={ModelCalled})
    assert "0199-cause" == event.cause
    assert "core_loop" == event.by
    data = dict(event.data)
    assert data.pop("took_ms") >= 0
    assert {
        "purpose": "answer",
        "model": "openai/test-model",
        "is_remote": False,
        "input_tokens": 1000,
        "cached_tokens": 0,
        "output_tokens": 50,
        "cost_usd": 0.011,
    } == data
    assert 0.011 == answer.cost_usd


def test_worst_case_is_checked_before_the_call(paid: Brain, server: ChatServer) -> None:
    """A call whose worst case does not fit is not made; where no day is long enough, waiting does not help."""
    write_settings(paid.root, {"llm": {**_llm(paid), "daily_budget_usd": 0.05}})
    with pytest.raises(BudgetError, match="daily_budget_usd") as caught:
        paid.models.run(answer_request())
    assert (False, []) == (caught.value.retryable, server.requests)
    write_settings(paid.root, {"llm": {**_llm(paid), "daily_budget_usd": 0.05, "max_output_tokens": 50}})
    paid.models.run(answer_request())
    assert 1 == len(server.requests)


def _llm(brain: Brain) -> dict[str, object]:
    return {"model": "openai/test-model", "prices": {"openai/test-model": [10.0, 20.0]}}


def test_spent_budget_survives_a_restart_and_ends_at_midnight(tmp_path: Path) -> None:
    """Another process reads today's spend from the journal; tomorrow starts anew."""
    clock = ManualClock(NOW)
    brain = make_brain(tmp_path, {"llm": {"daily_budget_usd": 1.0}}, clock=clock)
    call = ModelCalled(
        purpose="answer",
        model="m",
        is_remote=True,
        input_tokens=10,
        cached_tokens=0,
        output_tokens=10,
        cost_usd=0.95,
        took_ms=5,
    )
    Ledger(brain).record(call)
    brain.close()
    ledger = Ledger(make_brain(tmp_path, {"llm": {"daily_budget_usd": 1.0}}, clock=clock))
    with pytest.raises(BudgetError) as caught, ledger.reserved(Purpose.ANSWER, 0.1):
        pass
    assert (True, 8.5 * 3600) == (caught.value.retryable, caught.value.retry_after_seconds)
    clock.advance(9 * 3600)
    with ledger.reserved(Purpose.ANSWER, 0.1):
        assert (0.0, 0.0) == ledger.spent_today()


def test_calls_side_by_side_cannot_pass_the_budget_together(tmp_path: Path) -> None:
    """What calls in flight may cost is set aside: of ten that would fit alone, three fit together."""
    ledger = Ledger(make_brain(tmp_path, {"llm": {"daily_budget_usd": 1.0}}))
    gate, made, refused = threading.Event(), [], []

    def one() -> None:
        try:
            with ledger.reserved(Purpose.ANSWER, 0.3):
                made.append(1)
                gate.wait(5)
        except BudgetError:
            refused.append(1)
        if len(made) + len(refused) == 10:
            gate.set()

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (3, 7) == (len(made), len(refused))


def test_models_share_one_budget(tmp_path: Path, server: ChatServer) -> None:
    """What a call to one model may cost is set aside for a call to another too."""
    prices = {name: [10.0, 20.0] for name in ("openai/test-model", "openai/other")}
    models = {"answer": "openai/test-model", "queries": "openai/other"}
    brain = model_brain(tmp_path, server, prices=prices, models=models, daily_budget_usd=0.1, max_output_tokens=4000)
    refused = []

    def while_the_first_runs(request: Captured) -> Behaviour:
        with pytest.raises(BudgetError, match="daily_budget_usd"):
            brain.models.run(queries_request())
        refused.append(request.body["model"])
        return say("Portland.")

    server.script(by_request(while_the_first_runs))
    brain.models.run(answer_request())
    assert (["test-model"], 1) == (refused, len(server.requests))


@pytest.mark.slow
def test_processes_share_one_budget(tmp_path: Path) -> None:
    """What a call of another process may cost is set aside too, until its call would be over if it was killed."""
    settings = {"llm": {"daily_budget_usd": 1.0, "timeout_seconds": 0.5}}
    brain = make_brain(tmp_path, settings)
    script = (
        "import sys, time; from brainiac.brain import Brain; brain = Brain(sys.argv[1])\n"
        "with brain.models.ledger.reserved('answer', 0.9): print('in', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert "in\n" == other.stdout.readline()
        with pytest.raises(BudgetError, match="daily_budget_usd"), brain.models.ledger.reserved("answer", 0.2):
            pass
        other.kill()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(BudgetError), brain.models.ledger.reserved("answer", 0.2):
            return
        time.sleep(0.1)
    raise AssertionError("the claim of a killed process stands for ever")


@pytest.mark.parametrize(("model", "output"), [("openai/test-model", 0), ("openai/gpt-5-mini", 4096)])
def test_call_without_an_answer_in_time_is_paid_for(
    tmp_path: Path, server: ChatServer, model: str, output: int
) -> None:
    """Its input counts, and for a reasoning model all that it may have thought, or the budget would not be one."""
    prices = {model: [10.0, 20.0]}
    brain = model_brain(tmp_path, server, model, prices=prices, timeout_seconds=0.3, daily_budget_usd=0.15)
    server.default = hang(20)
    with pytest.raises(ModelError, match="no answer in time"):
        brain.models.run(answer_request())
    (call,) = calls(brain)
    assert (True, output) == (call["input_tokens"] > 100, call["output_tokens"])
    if output:
        with pytest.raises(BudgetError, match="daily_budget_usd"):
            brain.models.run(answer_request())
        assert 1 == len(server.requests)


def test_server_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    """A call that reached no server is not journaled."""
    with ChatServer() as server:
        brain = model_brain(tmp_path, server, prices={"openai/test-model": [10.0, 20.0]})
    with pytest.raises(ModelError):
        brain.models.run(answer_request())
    assert [] == calls(brain)


def test_background_work_has_a_cap_of_its_own(tmp_path: Path) -> None:
    """Background work over its cap waits while answers go on."""
    brain = make_brain(tmp_path, {"llm": {"daily_budget_usd": 1.0, "background_budget_usd": 0.1}})
    ledger = Ledger(brain)
    with pytest.raises(BudgetError, match="background_budget_usd"), ledger.reserved(Purpose.CONSOLIDATE, 0.2):
        pass
    with ledger.reserved(Purpose.ANSWER, 0.2):
        pass


def test_unknown_price_is_refused_until_it_is_set(tmp_path: Path) -> None:
    """A remote model of unknown price costs nobody can bound; on this machine it is free."""
    ledger = Ledger(make_brain(tmp_path / "one"))
    here, elsewhere = (Endpoint("openai/own", "openai", None, None, is_local) for is_local in (True, False))
    with pytest.raises(BudgetError, match="price") as caught:
        ledger.price_of(elsewhere)
    assert "prices" in caught.value.advice
    assert 0.0 == ledger.price_of(here).worst(10**6, 10**6)
    set_price = Ledger(make_brain(tmp_path / "two", {"llm": {"prices": {"openai/own": [1.0, 4.0]}}}))
    assert 5.0 == set_price.price_of(elsewhere).worst(10**6, 10**6)


def test_cached_tokens_cost_their_own_price() -> None:
    """What the provider read from its cache costs less, what it wrote costs more."""
    price = Price(fresh=1.0, output=5.0, cached=0.1, cache_write=1.25)
    assert pytest.approx(100 * 1.0 + 800 * 0.1 + 100 * 1.25 + 10 * 5.0) == price.cost(1000, 10, 800, 100)
    assert 1000 * 1.25 + 50.0 == price.worst(1000, 10)


def test_answer_that_breaks_off_is_paid_for(paid: Brain, server: ChatServer) -> None:
    """Tokens of a call that broke off are estimated and journaled; a call that was refused costs nothing."""
    server.script(cut("You live in Portland and"), status(500, "oops"))
    for _ in range(2):
        with pytest.raises(Exception, match="test-model"):
            paid.models.run(answer_request())
    (call,) = calls(paid)
    assert call["cost_usd"] > 0


def test_costs_are_shown_by_day_process_and_model(paid: Brain, server: ChatServer) -> None:
    """`brainiac costs` adds up the journal; --json gives the same to scripts."""
    server.script(say('{"queries": []}', tokens=(100, 10)), say("a", tokens=(1000, 50)), say("b", tokens=(1000, 50)))
    paid.models.run(queries_request())
    paid.models.run(answer_request())
    paid.models.run(answer_request())
    shown = do(paid, "costs", "--days", "3650", "--json").json
    assert [("answer", 2, 2000, 100, 0.022), ("queries", 1, 100, 10, 0.0012)] == [
        (row["purpose"], row["calls"], row["input_tokens"], row["output_tokens"], row["cost_usd"])
        for row in shown["rows"]
    ]
    assert (0.0232, "core_loop") == (shown["total_usd"], shown["rows"][0]["process"])
    assert "3650 days: $0.0232. Today: $0.0232 of $1.00." in do(paid, "costs", "--days", "3650").out
    assert 0.0232 == do(paid, "status", "--json").json["spent_today_usd"]
