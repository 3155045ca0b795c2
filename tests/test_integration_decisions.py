"""Deciding how a new statement joins what is known, rule by rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.integration import decide
from brainiac.integration.operations import band
from brainiac.integration.preservation import check, contradictions
from brainiac.integration.relevance import score
from brainiac.language.entities import find_mentions, pale_verbs
from brainiac.llm.schemas import Candidate, Existing, IntegrateRequest, Operation, Operations

DATA = Path(__file__).parents[1] / "benchmarks" / "data"
DOCUMENT = json.loads((DATA / "integration_examples.json").read_text("utf-8"))
EXAMPLES: list[dict[str, Any]] = DOCUMENT["examples"] + DOCUMENT["anti_examples"]
UPDATES = [example for example in EXAMPLES if example["operation"] == "UPDATE"]


def request(statement: str, *known: str, **fields: Any) -> IntegrateRequest:
    existing = [Existing(f"m{number}", content) for number, content in enumerate(known)]
    candidate = Candidate(statement=statement, **fields)
    return IntegrateRequest(
        now=datetime(2026, 3, 1, tzinfo=UTC), message=statement, candidate=candidate, existing=existing
    )


def decided(statement: str, *known: str, **fields: Any) -> Operation:
    (operation,) = decide(request(statement, *known, **fields)).operations
    return operation


@pytest.mark.parametrize("example", EXAMPLES, ids=[example["id"] for example in EXAMPLES])
def test_the_documents_examples(example: dict[str, Any]) -> None:
    """Operation, target, band and the words to keep are those of the document. Seeds: I9."""
    chosen = decided(example["candidate"], *[one["content"] for one in example["existing"]])
    assert example["operation"] == chosen.operation
    assert (example["target"] is not None) == bool(chosen.id)
    assert example["band"] == band(chosen.relevance)
    kept = example.get("ours", {}).get("must_keep", [])
    assert [] == [word for word in kept if word not in chosen.content]


@pytest.mark.parametrize("example", UPDATES, ids=[example["id"] for example in UPDATES])
def test_an_answer_that_damages_an_example_is_refused(example: dict[str, Any]) -> None:
    """Each content word taken out of our merge, or a place put in, is caught. Seeds: I9, I4, I8."""
    old, new = example["existing"][0]["content"], example["candidate"]
    gone = contradictions(old, new)
    whole = decided(new, old).content
    assert [] == check(old, new, whole, gone)
    for word in [*example.get("ours", {}).get("must_keep", []), whole.split()[-1]]:
        assert [] != check(old, new, whole.replace(word, ""), gone)
    assert [] != check(old, new, whole + " in Reykjavik", gone)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example["id"] for example in EXAMPLES])
def test_a_damaged_statement_is_refused_in_every_example(example: dict[str, Any]) -> None:
    """Whatever the operation, the new statement without one of its words does not pass. Seeds: I9, I4."""
    new = example["candidate"]
    told = [m for m in find_mentions(new) if m.kind in ("name", "place", "other") and not m.values & pale_verbs()]
    assert [] == check("", new, new)
    assert [] != check("", new, new[: told[-1].start] + new[told[-1].end :])


def test_the_first_anti_example_is_refused_by_the_check() -> None:
    """The girlfriend alone, without the city, does not pass. Seeds: I9, I4."""
    case = DOCUMENT["anti_examples"][0]
    losses = check(case["existing"][0]["content"], case["candidate"], case["wrong"]["result"])
    assert [("place", "LA")] == [(loss.kind, loss.words) for loss in losses]


def test_an_operation_is_typed_and_carries_the_importance() -> None:
    """Content, importance, relevance and reasoning come as values. Seeds: I1."""
    chosen = decided("User lives in Portland for 5 years", "User lives in Portland", importance=0.8)
    assert 0.8 == chosen.importance
    assert chosen.reasoning.startswith("HIGH relevance (0.8 = ")


def test_nothing_to_forget_is_no_operation() -> None:
    """[] when nothing is to be done. Seeds: I1."""
    assert Operations() == decide(request("Forget the alarm code", "User lives in Porto"))


@given(st.text(max_size=60), st.text(max_size=60))
def test_relevance_is_the_sum_of_three_parts(candidate: str, existing: str) -> None:
    """Each part is 0 to 0.3, the sum at most 0.9, for any text. Seeds: I2."""
    found = score(candidate, existing)
    assert all(0 <= part <= 0.3 for part in (found.type, found.topic, found.semantic))
    assert found.score <= 0.9


def test_only_the_nearest_is_updated() -> None:
    """Of several related statements the most relevant one changes. Seeds: I3."""
    chosen = decided("User's cat Luna is grey", "User likes cats", "User has a cat named Luna", "User lives in Bonn")
    assert ("UPDATE", "m1") == (chosen.operation, chosen.id)


def test_a_complete_contradiction_retires_the_old_and_states_the_new() -> None:
    """DELETE carries the new statement. Seeds: I3."""
    chosen = decided("User no longer likes coffee", "User likes coffee")
    assert ("DELETE", "User no longer likes coffee") == (chosen.operation, chosen.content)


def test_a_merge_keeps_relative_dates() -> None:
    """`last month` stands in the result. Seeds: I4."""
    assert "last month" in decided("User left Google last month for Microsoft", "User works at Google").content


def test_only_the_contradicted_part_changes() -> None:
    """The rest of the statement stays, and the change is phrased as one. Seeds: I5."""
    chosen = decided("User moved to Seattle", "User lives in Dallas and works at Google")
    assert "User moved from Dallas to Seattle and works at Google" == chosen.content
    lessons = decided("User goes to yoga on Fridays now", "User goes to yoga on Mondays with Petra")
    assert "User goes to yoga on Fridays (previously on Mondays) with Petra" == lessons.content


@pytest.mark.parametrize(
    ("candidate", "known"),
    [
        ("Remind user to call the bank", "Remind user to call mum"),
        ("User took up pottery", "User plays football"),
        ("User's team got a new manager", "User works at Lidl as a cashier"),
        ("User works as a nurse", "User lives in Bern with their partner"),
        ("User's sister Mia loves skiing", "User's sister Mia works at a bank"),
    ],
)
def test_what_merely_shares_a_person_stays_apart(candidate: str, known: str) -> None:
    """Reminders, hobbies, aspects of work and of life are statements of their own. Seeds: I6."""
    assert "NEW" == decided(candidate, known).operation


@pytest.mark.parametrize(
    ("supposed", "known"),
    [
        ("User might move to Berlin next year", "User lives in Lisbon with their wife Ana and our dog Biscuit"),
        ("If User lived in Paris they would work as a painter", "User lives in Lisbon"),
        ("User is thinking of leaving Google for Microsoft", "User works at Google as a data engineer"),
        ("User plans to switch from Emacs to Zed", "User writes code in Emacs"),
        ("User hopes to live in Cascais", "User lives in Lisbon"),
        ("The rent may go up to 950 euros from June", "The rent is 900 euros"),
        ("User wants to quit Google", "User works at Google"),
        ("User will no longer live in Lisbon", "User lives in Lisbon"),
    ],
)
def test_what_may_come_ends_nothing_that_is(supposed: str, known: str) -> None:
    """A supposition, wish or plan stands beside the fact; the fact that it came true ends the plan. Seeds: I3, I5."""
    assert ("NEW", "") == (decided(supposed, known).operation, decided(supposed, known).id)


def test_a_fact_beside_a_plan_still_ends_a_fact() -> None:
    """Only the clause that supposes is left out of what ends something, and a reason supposes nothing. Seeds: I3."""
    for told in ("and they might buy a flat there", "because Ana wants to be near the sea"):
        assert "m0" == decided(f"User moved to Porto {told}", "User lives in Lisbon").id


@pytest.mark.parametrize(
    ("fact", "plan"),
    [
        ("User lives in Berlin", "User would like to live in Berlin"),
        ("User moved to Berlin last week (9 to 15 November 2026)", "User will move to Berlin in 2027"),
    ],
)
def test_a_fact_is_not_merged_into_a_plan(fact: str, plan: str) -> None:
    """What has come to be is a fact of its own: the words of the plan would say that it is still to come. Seeds: I4."""
    assert ("NEW", fact) == (decided(fact, plan).operation, decided(fact, plan).content)


def test_a_plan_that_is_given_up_is_retired() -> None:
    """A denial ends a plan as it ends a fact. Seeds: I3."""
    assert "DELETE" == decided("User cancelled the trip to Japan", "User plans a trip to Japan in April 2027").operation


def test_living_place_and_company_merge() -> None:
    """Where one lives and with whom is one fact. Seeds: I6."""
    chosen = decided("User lives with their girlfriend Bella", "User lives in LA")
    assert "User lives in LA with their girlfriend Bella" == chosen.content


def test_a_request_to_forget_only_retires() -> None:
    """DELETE without content. Seeds: I6."""
    chosen = decided("the surprise party", "User likes parties", "User plans a surprise party", is_forget=True)
    assert ("DELETE", "m1", "") == (chosen.operation, chosen.id, chosen.content)


@given(st.text(min_size=1, max_size=60))
def test_without_memories_everything_is_new(statement: str) -> None:
    """No existing memories: NEW, or nothing for a request to forget. Seeds: I7."""
    assert {"NEW"} >= {operation.operation for operation in decide(request(statement)).operations}


def test_the_same_in_other_words_reinforces() -> None:
    """A repeated fact leaves the statement as it stands. Seeds: I3."""
    chosen = decided("User is employed by Bayer", "User works for Bayer")
    assert ("REINFORCE", "User works for Bayer") == (chosen.operation, chosen.content)


@given(st.sampled_from(EXAMPLES), st.sampled_from(EXAMPLES))
def test_deciding_is_deterministic_and_lossless(first: dict[str, Any], second: dict[str, Any]) -> None:
    """The same request gets the same answer, and an UPDATE passes the check. Seeds: I8."""
    known = second["candidate"]
    asked = request(first["candidate"], known)
    chosen = decide(asked)
    assert chosen == decide(asked)
    for operation in chosen.operations:
        if operation.operation == "UPDATE":
            gone = contradictions(known, first["candidate"])
            assert [] == check(known, first["candidate"], operation.content, gone)


def test_the_development_cases() -> None:
    """Of the cases written to develop with, nine in ten are right; the held-out ones are scored by the benchmark."""
    cases = json.loads((DATA / "integration_dev.json").read_text("utf-8"))["cases"]
    right = 0
    for case in cases:
        existing = [Existing(one["id"], one["content"]) for one in case["existing"]]
        asked = request(case["candidate"])
        operations = decide(
            IntegrateRequest(now=asked.now, message=case["message"], candidate=asked.candidate, existing=existing)
        ).operations
        found = [(one.operation, one.id or None) for one in operations]
        right += found == [(case["expected_operation"], case["expected_target"])]
    assert 0.9 <= right / len(cases)
