"""The document's twenty examples of integration, each through the whole path: call, checks, page, History.

The answers are recorded: what a strong model gives for each. The document's own answers that drop a detail are among
them: whatever a model drops stands in History.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Evidence, Purpose, Relevance
from brainiac.text.tokens import words
from tests.support.promotions import ScriptedEngine, later, make_brain, operations, statements, tell

VERBS = {"new": "NEW", "replace": "UPDATE", "end": "DELETE", "forget": "DELETE"}


@dataclass(frozen=True)
class Example:
    """An example of the document.

    Attributes:
        said: The user's message.
        known: What stood in memory; "" for nothing.
        action: What becomes of it.
        text: What is to stand.
        parts: The three parts of the relevance.
        lost: Words of the known statement that the text lacks, which are asked about once.
    """

    said: str
    known: str
    action: str
    text: str
    parts: tuple[float, float, float]
    lost: bool = False


EXAMPLES = [
    Example("I had an argument with my boss today about pay raises",
            "User works in IT and lives with their girlfriend Austin",
            "new", "User had an argument with boss about pay raises", (0.1, 0.1, 0.0)),
    Example("My company announced layoffs today", "User works as a software engineer at Google",
            "new", "User's company announced layoffs", (0.1, 0.2, 0.0)),
    Example("I'm learning Python for my job", "User works as a marketing manager",
            "new", "User is learning Python for their job", (0.1, 0.1, 0.0)),
    Example("I started painting watercolors", "User enjoys hiking on weekends",
            "new", "User started painting watercolors", (0.1, 0.0, 0.0)),
    Example("I bought a new bicycle", "User commutes by bus", "new", "User bought a new bicycle", (0.1, 0.2, 0.0)),
    Example("I like cumquats", "User enjoys fruits",
            "replace", "User enjoys fruits, particularly cumquats", (0.2, 0.2, 0.1)),
    Example("I went jogging yesterday", "User enjoys exercise",
            "replace", "User enjoys exercise, including jogging", (0.2, 0.1, 0.1)),
    Example("I only like fish fried", "User likes fish",
            "replace", "User only likes fish when it's fried", (0.3, 0.2, 0.1)),
    Example("I like hiking in mountain regions", "User enjoys outdoor activities",
            "replace", "User enjoys outdoor activities, especially hiking in mountain regions", (0.2, 0.2, 0.1)),
    Example("I meditate in the mornings", "User practices meditation",
            "replace", "User practices meditation, especially in the mornings", (0.2, 0.1, 0.1)),
    Example("Actually, I've been living in Portland for 5 years now, not just recently.", "User lives in Portland",
            "replace", "User has lived in Portland for 5 years", (0.3, 0.3, 0.2)),
    Example("I don't like coffee anymore.", "User likes coffee",
            "end", "User doesn't like coffee anymore", (0.3, 0.3, 0.3)),
    Example("I left Google last month for Microsoft", "User works at Google",
            "replace", "User previously worked at Google but left last month and now works at Microsoft",
            (0.3, 0.3, 0.3)),
    Example("My dog Max is a labrador", "User has a dog named Max",
            "replace", "User has a dog named Max who is a labrador", (0.3, 0.3, 0.1)),
    Example("Please delete my reminder about buying milk", "Remind user to buy milk", "forget", "", (0.3, 0.3, 0.3)),
    Example("I live in Seattle", "", "new", "User lives in Seattle", (0.0, 0.0, 0.0)),
    Example("I moved to Seattle", "User lives in Dallas and works at Google",
            "replace", "User moved from Dallas to Seattle and works at Google", (0.3, 0.3, 0.1)),
    Example("Remind me to buy apples", "Remind user to do taxes", "new", "Remind user to buy apples", (0.0, 0.0, 0.0)),
    Example("I live with my girlfriend Bella", "User lives in LA",
            "replace", "User lives in LA with their girlfriend Bella", (0.2, 0.3, 0.1)),
    Example("I started a new job in IT sales", "User lives in Dallas with their girlfriend Austin",
            "new", "User started a new job in IT sales", (0.1, 0.1, 0.1)),
]  # fmt: skip
HARMFUL = [
    Example("I live with my girlfriend Bella", "User lives in LA",
            "replace", "User lives with their girlfriend Bella", (0.2, 0.3, 0.1), lost=True),
    Example("I left Google last month for Microsoft", "User works at Google for 3 years",
            "replace", "User previously worked at Google but now works at Microsoft", (0.3, 0.3, 0.3), lost=True),
    Example("I moved to Seattle", "User lives in Dallas and works at Google",
            "replace", "User lives in Seattle", (0.3, 0.3, 0.1), lost=True),
]  # fmt: skip


def answer(example: Example, request: ConsolidateRequest) -> Consolidation:
    """Return a strong model's answer: what was known is stated first, then what becomes of it."""
    if request.said[0].event.user == "Seed.":
        evidence = [Evidence(exchange="e1", quote="Seed")]
        return operations({"text": example.known, "subject": "User", "evidence": evidence})(request)
    parts = dict(zip(("type", "topic", "semantic"), example.parts, strict=True))
    made = {"action": example.action, "text": example.text, "subject": "User", "relevance": Relevance(**parts)}
    ids = [known.id for known in request.existing if known.content == example.known]
    return operations(made | {"ids": ids if example.action != "new" else []})(request)


def integrate(example: Example, folder: Path) -> tuple[list[str], list[str], dict[str, object], str]:
    """Return what holds after an example, what is in History, the record of it, and `review.md`."""
    engine = ScriptedEngine({Purpose.CONSOLIDATE: lambda request: answer(example, request)})
    brain = make_brain(folder, engine=engine)
    if example.known:
        # nobody said it here: what a check would ask about is stated all the same when it is given again
        tell(brain, "Seed.", answer=example.known)
        promote(brain)
    later(brain, 86_400)
    tell(brain, example.said)
    outcome = promote(brain)
    assert outcome.event is not None
    (record,) = outcome.event.data["statements"]
    review = brain.read_text("memory/review.md") or ""
    return statements(brain), statements(brain, history=True), record, review


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.said[:30] for example in EXAMPLES])
def test_an_example_ends_as_the_document_says(tmp_path: Path, example: Example) -> None:
    """The expected operation, what stands then, and the former wording in History with what replaced it.

    Seeds: I1, I2, I3, I4, I5, I6, I7, I9.
    """
    current, history, record, review = integrate(example, tmp_path / "b")
    assert VERBS[example.action] == record["operation"]
    assert round(sum(example.parts), 1) == record.get("relevance", 0.0)
    if example.action == "forget":
        assert ([example.known], []) == (current, history)
        assert f"- [ ] Forget “{example.known}”" in review
        return
    kept = [example.known] if example.action == "new" and example.known else []
    assert sorted([*kept, example.text]) == sorted(current)
    assert ([] if example.action == "new" else [example.known]) == history


@pytest.mark.parametrize("example", HARMFUL, ids=[example.said[:30] for example in HARMFUL])
def test_what_an_answer_drops_stands_in_history(tmp_path: Path, example: Example) -> None:
    """The model is asked once about the words that are gone; what it insists on stands, and nothing is lost: every word
    of the former statement is on the page. Seeds: I4, I9."""
    engine_answers = integrate(example, tmp_path / "b")
    current, history, _, _ = engine_answers
    assert ([example.text], [example.known]) == (current, history)
    assert set(words(example.known)) <= set(words(" ".join([*current, *history])))


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.said[:30] for example in EXAMPLES])
def test_without_a_model_both_statements_stand(tmp_path: Path, example: Example) -> None:
    """The keyless engine decides no integration: what the person marks is kept beside what is known. Seeds: I9."""
    brain = make_brain(tmp_path / "b", keyless=True)
    if example.known:
        tell(brain, f"/remember {example.known}")
        promote(brain)
    later(brain, 86_400)
    tell(brain, f"/remember {example.said}")
    promote(brain)
    assert {example.said, *filter(None, [example.known])} == set(statements(brain))
    assert [] == statements(brain, history=True)
