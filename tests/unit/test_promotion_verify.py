"""A second reader: what does not follow from the words it rests on is not written, and waits for the person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from brainiac_plugins.organization.upkeep import settle_reviews, tidy_review
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.errors import ModelError
from brainiac.events import CandidatesVerified, MemoryPromoted
from brainiac.formats.markdown import PRIVATE_MARK
from brainiac.history.digest import digest_since
from brainiac.history.forget import find_target, forget
from brainiac.history.why import why
from brainiac.llm.schemas import (
    ConsolidateRequest,
    Consolidation,
    Evidence,
    Operation,
    PageRef,
    Purpose,
    Verdict,
    Verdicts,
    VerifyRequest,
)
from brainiac.verbs import Caller, suggest
from tests.support.models import set_sections, write_machine
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json
from tests.support.promotions import ScriptedEngine, later, make_brain, page_with, pages, statements, tell
from tests.support.remote import purpose_of

OLD, NEW = "I work at Google.", "I work at Microsoft."


def reading(verdicts: Mapping[str, str]) -> Any:
    """A second reader with a verdict on each text that holds some words; all else follows."""

    def verify(request: VerifyRequest) -> Verdicts:
        rows = []
        for claim in request.claims:
            shown = claim.text or claim.former[0].content
            said = next((verdict for words, verdict in verdicts.items() if words in shown), "follows")
            rows.append(Verdict(item=claim.id, verdict=said, reason="so it reads"))
        return Verdicts(verdicts=rows)

    return verify


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def brain(tmp_path: Path, engine: ScriptedEngine) -> Brain:
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, OLD)
    promote(brain)
    later(brain)
    engine.asked.clear()
    return brain


def review(brain: Brain) -> str:
    return brain.read_text("memory/review.md") or ""


def tick(brain: Brain) -> None:
    """Put a tick into every box of the review, and have it carried out."""
    file = brain.tree.review
    file.write_text(file.read_text().replace("- [ ]", "- [x]"))
    brain.observed.note_change("memory/review.md")
    settle_reviews(brain)


@pytest.mark.parametrize("verdict", ["does not", "cannot tell"])
@pytest.mark.parametrize("action", ["new", "replace", "end"])
def test_what_does_not_follow_waits_with_both_texts(
    brain: Brain, engine: ScriptedEngine, action: str, verdict: str
) -> None:
    """What stood stands; the line has the statement, its quote and the reason; ticked, it is done. Seeds: I8."""
    engine.on("Microsoft", action, "Google", page=PageRef(title="Work", folder="work"))
    engine.answers[Purpose.VERIFY] = reading({"Microsoft": verdict})
    tell(brain, "Once I joked: I work at Microsoft.")
    promote(brain)
    assert ([OLD], []) == (statements(brain), statements(brain, history=True))
    (line,) = [line for line in review(brain).splitlines() if line.startswith("- [ ]")]
    text = "Once I joked: I work at Microsoft."
    assert line.count(f"“{text}”") == 2
    assert "so it reads" in line
    assert (f"“{OLD}”" in line) == (action != "new")
    tick(brain)
    expected = [OLD, text] if action == "new" else [text]
    assert sorted(expected) == sorted(statements(brain))
    assert ([] if action == "new" else [OLD]) == statements(brain, history=True)
    (chain,) = why(brain, text).chains
    assert "so it reads" in chain.steps[-1].reasoning
    assert "I work at Microsoft." in chain.steps[-1].sources[0].user


def test_what_waits_goes_with_the_exchange_that_it_quotes(brain: Brain, engine: ScriptedEngine) -> None:
    """Forgetting it takes the line out of the review."""
    engine.answers[Purpose.VERIFY] = reading({"rum": "does not"})
    exchange = tell(brain, "I like rum.")
    promote(brain)
    assert "I like rum." in review(brain)
    forget(brain, find_target(brain, exchange), by="person")
    assert "I like rum." not in review(brain)


def test_what_lapsed_is_told_until_its_words_are_forgotten(brain: Brain, engine: ScriptedEngine) -> None:
    """F-REV-6: The digest quotes what nobody decided on as long as the exchange that it quotes stands."""
    engine.answers[Purpose.VERIFY] = reading({"rum": "does not"})
    exchange = tell(brain, "I like rum.")
    promote(brain)
    later(brain, 30 * 86400)
    tidy_review(brain)
    promote(brain)
    assert "I like rum." not in review(brain)
    assert ["lapsed"] == [line.what for line in digest_since(brain, "2020").lines if "I like rum." in line.text]
    forget(brain, find_target(brain, exchange), by="person")
    assert "rum" not in (brain.tree.logs / "digest.md").read_text()
    assert not any("rum" in line.text for line in digest_since(brain, "2020").lines)


def test_what_a_second_reader_held_back_has_its_line_first(brain: Brain, engine: ScriptedEngine) -> None:
    """F-REV-7: Though it was asked last."""
    set_sections(brain.root, "\nreview: {max_new: 1}\n")
    helper = Caller("mcp:helper", "assistant")
    suggest(brain, OLD, "end", caller=helper)
    suggest(brain, OLD, "replace", "I work at Apple.", caller=helper)
    engine.answers[Purpose.VERIFY] = reading({"rum": "does not"})
    tell(brain, "I like rum.")
    promote(brain)
    assert [True, False, False] == [words in review(brain) for words in ("Retire", "Apple", "I like rum.")]
    brain.tree.review.write_text(review(brain).replace("- [ ]", "- [-]"))
    brain.observed.note_change("memory/review.md")
    settle_reviews(brain)
    later(brain, 120)
    tidy_review(brain)
    (line,) = [line for line in review(brain).splitlines() if line.startswith("- [ ]")]
    assert "I like rum." in line


def test_what_waits_for_room_goes_with_the_exchange_that_it_quotes(brain: Brain, engine: ScriptedEngine) -> None:
    """F-REV-7: Forgotten before it had its line, it never gets one."""
    set_sections(brain.root, "\nreview: {max_new: 1}\n")
    suggest(brain, OLD, "end", caller=Caller("mcp:helper", "assistant"))
    engine.answers[Purpose.VERIFY] = reading({"rum": "does not"})
    exchange = tell(brain, "I like rum.")
    promote(brain)
    forget(brain, find_target(brain, exchange), by="person")
    later(brain, 8 * 86400)
    tidy_review(brain)
    assert [True, False] == [words in review(brain) for words in ("Retire", "I like rum.")]


def test_the_request_marks_the_persons_lines_and_tells_no_day_and_no_history_twice(
    brain: Brain, engine: ScriptedEngine
) -> None:
    """A statement with its day has it once, and what it said before is not shown beside what it says."""
    engine.on("Microsoft", "replace", "Google", page=PageRef(title="Work", folder="work"))
    tell(brain, "I work at Microsoft since 2026-03-01.")
    promote(brain)
    page = brain.tree.absolute(page_with(brain, "Microsoft").path)
    page.write_text(page.read_text().replace("## History", "- I work from home. ^home\n\n## History"))
    brain.observed.note_change(brain.tree.relative(page))
    later(brain)
    engine.asked.clear()
    tell(brain, "At work all is well.")
    promote(brain)
    request = next(each for each in engine.asked if isinstance(each, ConsolidateRequest))
    text = brain.models.working_memory(request).text
    lines = [line for line in text.splitlines() if line.startswith("> [s")]
    assert [1, 1] == [sum(words in line for line in lines) for words in ("Microsoft", "from home")]
    assert ["(by hand)" in line or "by hand" in line for line in lines if "from home" in line] == [True]
    assert not any("by hand" in line for line in lines if "Microsoft" in line)
    assert "Google" not in text
    assert all(len(days) == len(set(days)) for days in (re.findall(r"\d{4}-\d\d-\d\d", line) for line in lines))


def test_what_waits_is_proposed_once(brain: Brain, engine: ScriptedEngine) -> None:
    """Its exchange stays in the log where another of its statements could not be written now."""
    rows = [("I work at Microsoft", "replace", "rum"), ("rum", "new", "rum"), ("tea", "new", "tea")]
    engine.answers[Purpose.CONSOLIDATE] = lambda request: Consolidation(
        operations=[
            Operation(
                action="replace" if action == "replace" else "new",
                ids=[known.id for known in request.existing if action == "replace"],
                text=text,
                evidence=[Evidence(exchange="e2" if quote == "tea" else "e1", quote=quote)],
                page=PageRef(title="Rum"),
            )
            for text, action, quote in rows
        ]
    )
    engine.answers[Purpose.VERIFY] = reading({"rum": "does not"})
    tell(brain, "I work at Microsoft, and I like rum.")
    tell(brain, "And I like tea.")
    page = page_with(brain, "Google")
    brain.tree.absolute(page.path).write_text(page.text + "\nA line by hand.\n")
    brain.observed.note_change(page.path)
    for _ in range(2):
        promote(brain)
        later(brain)
    assert ["I work at Microsoft", "tea"] == sorted(statements(brain))
    assert 1 == len(engine.of(Purpose.CONSOLIDATE))
    assert 1 == review(brain).count("- [ ]")


def test_an_end_that_does_not_follow_ends_nothing(brain: Brain, engine: ScriptedEngine) -> None:
    """Where nothing would be stated instead, the line asks whether what stands has ended."""
    engine.on("coffee", "end", "Google", text="")
    engine.answers[Purpose.VERIFY] = reading({"Google": "does not"})
    tell(brain, "I like coffee.")
    promote(brain)
    assert [OLD] == statements(brain)
    tick(brain)
    assert ([], [OLD]) == (statements(brain), statements(brain, history=True))


def test_a_new_page_is_made_when_its_statement_is_ticked(brain: Brain, engine: ScriptedEngine) -> None:
    """Until then neither the page nor its name is anywhere."""
    engine.on("sister", "new", "Google", page=PageRef(title="Mara", folder="people"))
    engine.answers[Purpose.VERIFY] = reading({"sister": "does not"})
    tell(brain, "My sister Mara dives.")
    promote(brain)
    assert not any("mara" in path for path in pages(brain))
    tick(brain)
    assert "concrete/people/mara.md" == page_with(brain, "dives").path.removeprefix("memory/long_term/")


def test_one_call_reads_nothing_but_texts_and_words(brain: Brain, engine: ScriptedEngine) -> None:
    """Each with who said the words and on what day, and what it replaces; what is only said again is not read."""
    engine.on("Microsoft", "replace", "Google")
    tell(brain, NEW)
    tell(brain, "I like tea.")
    tell(brain, OLD)
    promote(brain)
    (request,) = engine.of(Purpose.VERIFY)
    assert [NEW, "I like tea."] == [claim.text for claim in request.claims]
    assert [OLD] == [former.content for former in request.claims[0].former]
    shown = brain.models.working_memory(request).text
    assert f"User, Monday 2026-03-02:\n> {NEW}" in shown
    assert "## Short-Term Memory" not in shown
    assert "## Existing" not in shown


def test_what_was_said_is_shown_around_its_quote(brain: Brain, engine: ScriptedEngine) -> None:
    """A quote alone may lack the "not" before it."""
    engine.on(
        "surely", "new", "Google", evidence=[{"exchange": "e1", "quote": "I live in Rome"}], text="User is in Rome"
    )
    tell(brain, "It is surely not so that I live in Rome.")
    promote(brain)
    (request,) = engine.of(Purpose.VERIFY)
    assert ["It is surely not so that I live in Rome."] == [words.passage for words in request.claims[0].quotes]


@pytest.mark.parametrize(
    ("said", "quote", "by"),
    [
        ("Look:\n\n> I am a spy.", "I am a spy", "a text that User pasted"),
        ("Who am I?", "You may be a spy", "AI"),
        ("I am a spy.", "I am a spy", "User"),
    ],
)
def test_who_said_the_words_is_told(brain: Brain, engine: ScriptedEngine, said: str, quote: str, by: str) -> None:
    """A pasted text and an answer are not the person's words."""
    evidence = [Evidence(exchange="e1", quote=quote)]
    row = Operation(action="new", text="User is a spy", evidence=evidence, page=PageRef(title="Spies"))
    engine.answers[Purpose.CONSOLIDATE] = Consolidation(operations=[row])
    tell(brain, said, answer="You may be a spy.")
    promote(brain)
    (request,) = engine.of(Purpose.VERIFY)
    assert [(by, True)] == [(words.by, quote in words.passage) for words in request.claims[0].quotes]


def test_a_verdict_is_journaled_and_told(brain: Brain, engine: ScriptedEngine) -> None:
    """`why` names who read it a second time."""
    tell(brain, "I like tea.")
    promote(brain)
    (chain,) = why(brain, "I like tea.").chains
    assert "scripted" == chain.steps[-1].verified_by
    events = list(brain.journal.events(kinds={CandidatesVerified}))
    assert isinstance(events[-1].what, CandidatesVerified)
    assert ["follows"] == [row.verdict for row in events[-1].what.verdicts.values()]


def test_verdicts_survive_a_crash_and_are_paid_for_once(
    brain: Brain, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends before its commit is gone on with: neither reader is asked again, and the doubt holds."""
    engine.answers[Purpose.VERIFY] = reading({"Microsoft": "does not"})
    tell(brain, NEW)
    tell(brain, "I like tea.")
    commit = type(brain).commit

    def crash(self: Brain, what: Any, **fields: Any) -> Any:
        if isinstance(what, MemoryPromoted):
            raise KeyboardInterrupt
        return commit(self, what, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(type(brain), "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            promote(brain)
    engine.asked.clear()
    promote(brain)
    assert ([], []) == (engine.of(Purpose.CONSOLIDATE), engine.of(Purpose.VERIFY))
    assert sorted([OLD, "I like tea."]) == sorted(statements(brain))
    assert 1 == review(brain).count("- [ ]")


def test_without_the_second_reader_nothing_is_written_and_the_first_is_not_asked_again(
    brain: Brain, engine: ScriptedEngine
) -> None:
    """It has no money left today, say: what was decided waits for it, whatever day that is."""

    def fail(request: VerifyRequest) -> Verdicts:
        raise ModelError("the budget is spent", retryable=True)

    engine.answers[Purpose.VERIFY] = fail
    tell(brain, NEW)
    outcome = promote(brain)
    assert ("the budget is spent", [OLD]) == (outcome.problem, statements(brain))
    later(brain, 24 * 3600)
    engine.answers[Purpose.VERIFY] = reading({})
    promote(brain)
    assert 1 == len(engine.of(Purpose.CONSOLIDATE))
    assert sorted([OLD, NEW]) == sorted(statements(brain))


def test_what_it_says_nothing_of_is_asked_about_once_more(brain: Brain, engine: ScriptedEngine) -> None:
    """And then waits like what it cannot tell."""
    engine.answers[Purpose.VERIFY] = lambda request: Verdicts(
        verdicts=[Verdict(item=request.claims[0].id, verdict="follows")]
    )
    for said in ("I like tea.", "I like milk.", "I like rum."):
        tell(brain, said)
    promote(brain)
    assert [3, 2] == [len(request.claims) for request in engine.of(Purpose.VERIFY)]
    assert sorted([OLD, "I like tea.", "I like milk."]) == sorted(statements(brain))
    assert ["I like rum." in line for line in review(brain).splitlines() if line.startswith("- [ ]")] == [True]


def test_of_two_verdicts_on_one_text_the_doubt_counts(brain: Brain, engine: ScriptedEngine) -> None:
    """Whichever comes last."""
    engine.answers[Purpose.VERIFY] = lambda request: Verdicts(
        verdicts=[Verdict(item=request.claims[0].id, verdict=verdict) for verdict in ("does not", "follows")]
    )
    tell(brain, "I like rum.")
    promote(brain)
    assert [OLD] == statements(brain)
    assert "I like rum." in review(brain)


def test_it_is_switched_off_like_any_purpose(brain: Brain, engine: ScriptedEngine) -> None:
    """`llm.models: {verify: offline}` asks nobody."""
    set_sections(brain.root, "llm: {model: scripted, models: {verify: offline}}")
    tell(brain, NEW)
    promote(brain)
    assert [] == engine.of(Purpose.VERIFY)
    assert sorted([OLD, NEW]) == sorted(statements(brain))
    assert "" == why(brain, NEW).chains[0].steps[-1].verified_by


def test_private_words_are_read_apart_and_wait_in_a_private_line(brain: Brain, engine: ScriptedEngine) -> None:
    """By a model on this machine only; ticked, they come onto a private page."""
    engine.answers[Purpose.VERIFY] = reading({"PRV": "does not"})
    tell(brain, "I like tea.")
    tell(brain, "I like PRVrum.", private=True)
    promote(brain)
    assert [False, True] == [request.is_private for request in engine.of(Purpose.VERIFY)]
    (line,) = [line for line in review(brain).splitlines() if "PRV" in line]
    assert PRIVATE_MARK in line
    tick(brain)
    assert page_with(brain, "PRVrum").is_private
    engine.asked.clear()
    engine.is_remote = True
    tell(brain, "I like PRVgin.", private=True)
    promote(brain)
    assert [] == [request for request in engine.of(Purpose.VERIFY) if request.is_private]


def test_another_model_reads_over_the_wire(tmp_path: Path) -> None:
    """`llm.models.verify` names it; it is sent the words and the text, and its doubt keeps the text out. Seeds: R2."""
    row = {
        "action": "new", "ids": [], "text": "User moved to Rome", "evidence": [{"exchange": "e1", "quote": "Rome"}],
        "page": {"title": "Home"}, "valid_until": "", "steps": [],
    }  # fmt: skip
    read: list[Captured] = []

    def serve(captured: Captured) -> Behaviour:
        match purpose_of(captured):
            case "consolidate":
                return say_json({"operations": [row]})
            case "verify":
                read.append(captured)
                return say_json([{"item": 1, "verdict": "Does not", "reason": "she only dreams of it"}])
        return say("Noted.")

    with ChatServer() as server:
        server.default = by_request(serve)
        brain = make_brain(tmp_path / "b")
        llm = {"model": "openai/a", "models": {"verify": "openai/b", "reflect": "offline", "queries": "offline"}}
        set_sections(brain.root, json.dumps({"llm": llm}))
        write_machine(brain, {"api_bases": {"openai": server.url}})
        tell(brain, "I dream of Rome.")
        promote(brain)
        assert [] == statements(brain)
        assert ["b"] == [request.body["model"] for request in read]
        assert "I dream of Rome." in read[0].text
        assert "she only dreams of it" in review(brain)
        brain.close()


@pytest.mark.parametrize("is_doubted_again", [True, False])
def test_what_was_said_again_and_stands_by_now_is_not_written_twice(
    brain: Brain, engine: ScriptedEngine, is_doubted_again: bool
) -> None:
    """Whether by a second line in the review, or by a second exchange that left no doubt."""
    engine.answers[Purpose.VERIFY] = reading({"rum": "does not"})
    tell(brain, "I like rum.")
    promote(brain)
    later(brain)
    if not is_doubted_again:
        del engine.answers[Purpose.VERIFY]
    tell(brain, "I like rum.")
    promote(brain)
    tick(brain)
    assert sorted([OLD, "I like rum."]) == sorted(statements(brain))


def test_what_waits_for_a_page_that_was_moved_comes_onto_it(brain: Brain, engine: ScriptedEngine) -> None:
    """No second page is begun where it was."""
    page = page_with(brain, OLD)
    engine.on("tea", "new", "Google", page=PageRef(path=page.path))
    engine.answers[Purpose.VERIFY] = reading({"tea": "does not"})
    tell(brain, "They have tea.")
    promote(brain)
    file = brain.tree.absolute(page.path)
    file.rename(file.with_name("moved.md"))
    brain.observed.adopt()
    later(brain)
    tick(brain)
    assert page_with(brain, "They have tea.").path == page_with(brain, OLD).path
