"""A model that does harm: nothing is lost, nothing escapes, every refusal is journaled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.errors import ConfinementError
from brainiac.formats.page import parse_exchanges
from brainiac.llm.context.assembler import schema_of
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Evidence, Page, PageRef, Purpose, Verdict, Verdicts
from tests.support.models import set_sections
from tests.support.promotions import (
    ScriptedEngine,
    later,
    make_brain,
    operations,
    page_with,
    pages,
    problems,
    promote,
    statements,
    tell,
)

pytestmark = pytest.mark.slow


def refused(brain: Brain) -> list[str]:
    """Why the model was asked once more, and why something was refused in the end."""
    kinds = {"events-analyzed": "asked", "memory-promoted": "refused", "candidates-refused": "refused"}
    events = brain.journal.events(kinds=set(kinds))
    return [row["reason"] for event in events for row in event.data.get(kinds[event.kind], ())]


def said(brain: Brain) -> list[str]:
    return [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]


def decided(action: str, text: str, about: str = "", **fields: Any) -> Any:
    """An answer, the same each time: an operation on the statement with some words, or on an id made up."""

    def consolidate(request: ConsolidateRequest) -> Consolidation:
        ids = [known.id for known in request.existing if about and about in known.content]
        return operations({"action": action, "text": text, "ids": ids or ["s99"], **fields})(request)

    return consolidate


UNREAD = "llm: {model: scripted, models: {verify: offline}}"  # no second reader


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I work at Google as a product manager in Dallas.")
    promote(brain)
    later(brain)
    brain.__dict__["engine"] = engine
    return brain


def answers(brain: Brain, given: dict[Purpose, Any]) -> None:
    brain.__dict__["engine"].answers |= given


OLD = "I work at Google as a product manager in Dallas."
TOLD = "I play the cello."


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [
        ("", {}, "states nothing"),
        (TOLD, {"evidence": []}, "quotes nothing"),
        (TOLD, {"evidence": [Evidence(exchange="e1", quote="I play the violin")]}, "was not said there"),
        (TOLD, {"evidence": [Evidence(exchange="e7", quote=TOLD)]}, "there is no exchange 'e7'"),
        ("cello " * 200, {}, "at most 1000 characters"),
    ],
)
@pytest.mark.parametrize("action", ["new", "replace"])
def test_what_rests_on_nothing_is_refused_twice_and_not_written(
    brain: Brain, action: str, text: str, fields: dict[str, Any], reason: str
) -> None:
    """A quote or an exchange that is not there, no text: asked again once by name, then refused; nothing changes, the
    journal has both refusals, and what was said stands word for word. Seeds: I4, I8, I9."""
    answers(brain, {Purpose.CONSOLIDATE: decided(action, text, "Google", **fields)})
    tell(brain, TOLD)
    promote(brain)
    assert ([OLD], []) == (statements(brain), statements(brain, history=True))
    assert [True, True] == [reason in each for each in refused(brain)]
    requests = brain.__dict__["engine"].of(Purpose.CONSOLIDATE)[1:]
    assert [[], True] == [list(requests[0].refused), reason in requests[1].refused[0].problem]
    assert 2 == len(requests)
    assert TOLD in said(brain)


@pytest.mark.parametrize("verdict", ["follows", "does not"])
def test_a_number_is_the_second_reader_s_to_judge(brain: Brain, verdict: str) -> None:
    """No code can tell one that was worked out of words from an invented one; nobody is asked twice. Seeds: I8."""
    read = Verdicts(verdicts=[Verdict(item="1", verdict=verdict)])
    text = "I play the cello since 2011."
    answers(brain, {Purpose.CONSOLIDATE: decided("new", text, "Google"), Purpose.VERIFY: read})
    tell(brain, TOLD)
    promote(brain)
    assert 1 == len([row for row in brain.__dict__["engine"].of(Purpose.CONSOLIDATE) if TOLD in str(row.said)])
    assert (text in statements(brain)) == (verdict == "follows")
    assert (text in (brain.read_text("memory/review.md") or "")) == (verdict != "follows")


@pytest.mark.parametrize("action", ["new", "replace"])
def test_a_number_that_nobody_typed_waits_for_the_person(brain: Brain, action: str) -> None:
    """Asked again once by name; then the line in the review has it with the person's own words. Seeds: I8, I9.

    So it is where no second reader reads it.
    """
    set_sections(brain.root, UNREAD)
    answers(brain, {Purpose.CONSOLIDATE: decided(action, "I play the cello since 2011.", "Google")})
    tell(brain, TOLD)
    promote(brain)
    assert ([OLD], []) == (statements(brain), statements(brain, history=True))
    assert ["the number 2011 was not said" in each for each in refused(brain)] == [True]
    (line,) = [line for line in (brain.read_text("memory/review.md") or "").splitlines() if "- [ ]" in line]
    assert all(words in line for words in ("I play the cello since 2011.", f"“{TOLD}”", "the number 2011"))
    assert (OLD in line) == (action == "replace")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("We met in '88.", "User met them in 1988"),
        ("Since last September I play.", "User plays since September 2025"),
        ("The speech is mine to hold.", "User holds the speech at Tom's 60th"),
    ],
)
def test_a_number_that_is_known_otherwise_is_not_asked_about(brain: Brain, said: str, text: str) -> None:
    """A year by its last two digits, the year before or after, and what the same page says by now."""
    page = {"title": "Tom's party", "folder": "events"}
    answers(brain, {Purpose.CONSOLIDATE: operations({"text": "Tom's 60th is a surprise", "page": page})})
    tell(brain, "Tom's 60th is a surprise.")
    promote(brain)
    path = page_with(brain, "60th").path
    answers(brain, {Purpose.CONSOLIDATE: operations({"text": text, "page": {"path": path}})})
    tell(brain, said)
    promote(brain)
    assert text in statements(brain)
    assert not [reason for reason in refused(brain) if "number" in reason]


@pytest.mark.parametrize("action", ["replace", "end"])
@pytest.mark.parametrize("why", ["no such id", "not the person's words", "said before"])
def test_a_change_without_a_ground_changes_nothing(brain: Brain, action: str, why: str) -> None:
    """It waits for the person with both texts; where it changes nothing that there is, it is new. Seeds: I8, I9."""
    evidence = [Evidence(exchange="e1", quote="A cello!")]
    about, fields = ("", {}) if why == "no such id" else ("Google", {"evidence": evidence} if "words" in why else {})
    answers(brain, {Purpose.CONSOLIDATE: decided(action, TOLD, about, **fields)})
    tell(brain, TOLD, answer="A cello!", minutes=-3 * 24 * 60 if why == "said before" else 1)
    promote(brain)
    assert sorted([OLD, TOLD] if why == "no such id" else [OLD]) == sorted(statements(brain))
    assert [] == statements(brain, history=True)
    assert 1 == len(refused(brain))
    asked = brain.read_text("memory/review.md") or ""
    assert (why != "no such id") == (f"Replace “{OLD}” by “{TOLD}" in asked)


@pytest.mark.parametrize("action", ["replace", "end"])
def test_what_a_model_drops_of_a_statement_stands_in_history(brain: Brain, action: str) -> None:
    """Words that have nothing to do with a statement, put in its place: both stand on the page, the old one word for
    word under History with what replaced it."""
    answers(brain, {Purpose.CONSOLIDATE: decided(action, TOLD, "Google")})
    tell(brain, TOLD)
    promote(brain)
    assert ([TOLD], [OLD]) == (statements(brain), statements(brain, history=True))
    assert [] == refused(brain)
    page = page_with(brain, "Google")
    past = next(one for one in page.statements if one.is_history)
    assert past.replaced_by in {one.block_id for one in page.statements if not one.is_history}


@pytest.mark.parametrize("text", ["I play the Cello in Lutetia.", "On 2026-03-01 I played the cello."])
def test_a_word_that_nobody_said_is_not_asked_about(brain: Brain, text: str) -> None:
    """It may translate what was said, and a day near by was worked out from it: whether it follows, a reader says."""
    answers(brain, {Purpose.CONSOLIDATE: decided("new", text)})
    tell(brain, TOLD)
    promote(brain)
    assert sorted([OLD, text]) == sorted(statements(brain))
    assert [] == refused(brain)


def people(brain: Brain, *told: str) -> None:
    """Have a page for each person of whom something is told."""
    rows = ({"text": text, "page": {"title": text.split()[0], "folder": "people"}, "importance": 0.8} for text in told)
    answers(brain, {Purpose.CONSOLIDATE: operations(*rows)})
    tell(brain, " ".join(told))
    promote(brain)
    later(brain)


@pytest.mark.parametrize(
    ("action", "said", "page", "about", "question"),
    [
        ("new", "Tom dives.", "ruth", "", ""),
        ("replace", "Tom sings, says Ruth.", "tom", "Ruth sings", "it is about “Ruth” and “Tom”"),
        ("replace", "Ruth dives.", "ruth", "Ruth sings", ""),
        ("end", "Ruth sings no more.", "ruth", "Ruth sings", ""),
    ],
)
def test_what_evidence_cannot_show_is_asked_once(
    brain: Brain, action: str, said: str, page: str, about: str, question: str
) -> None:
    """Whether a replacement on another page is about the same thing; repeated, it is done."""
    people(brain, "Ruth sings.", "Tom cooks.")
    answers(brain, {Purpose.CONSOLIDATE: decided(action, said, about, page={"path": f"concrete/people/{page}.md"})})
    tell(brain, said)
    promote(brain)
    assert ([question] if question else []) == [question for each in refused(brain) if question in each]
    assert bool(question) == bool(refused(brain))
    assert said in statements(brain)


def test_what_only_the_assistant_said_bears_its_name(brain: Brain) -> None:
    """F-MEM-9: its words are no fact about the person; the statement and the journal say whose they are."""
    evidence = [Evidence(exchange="e1", quote="Cellos have four strings")]
    answers(brain, {Purpose.CONSOLIDATE: decided("new", "Cellos have four strings.", evidence=evidence)})
    tell(brain, TOLD, answer="Cellos have four strings, by the way.")
    outcome = promote(brain)
    assert outcome.event is not None
    assert "Cellos have four strings. (assistant: assistant)" in statements(brain)
    assert ["assistant"] == [record["origin"] for record in outcome.event.data["statements"]]


def test_what_is_asked_once_more_shows_only_what_it_rests_on(brain: Brain) -> None:
    """One operation of a long log is asked about: the second request holds its exchange, and no other page."""
    set_sections(brain.root, UNREAD)
    evidence = [Evidence(exchange="e2", quote="I play the cello")]
    answers(brain, {Purpose.CONSOLIDATE: decided("new", "I play 7 cellos.", evidence=evidence, ids=[])})
    for text in ("Good morning!", TOLD, "Good night!"):
        tell(brain, text)
    promote(brain)
    first, second = brain.__dict__["engine"].of(Purpose.CONSOLIDATE)[1:]
    assert (["Good morning!", TOLD, "Good night!"], [TOLD]) == tuple(
        [said.event.user for said in request.said] for request in (first, second)
    )
    assert ([OLD], []) == tuple([known.content for known in request.existing] for request in (first, second))


def test_a_request_shows_the_form_of_an_answer_once(brain: Brain) -> None:
    """Its instructions have the form, and the schema for the server has no comment in it."""
    tell(brain, TOLD)
    promote(brain)
    request = brain.__dict__["engine"].of(Purpose.CONSOLIDATE)[-1]
    shown = "\n".join(block.text for block in brain.models.working_memory(request).blocks)
    assert 1 == shown.count("evidence: [{exchange: string, quote: string}]")
    assert "$defs" not in shown
    assert "description" not in json.dumps(schema_of(Consolidation))


@pytest.mark.parametrize("paste", ["> {}", "```\n{}\n```"])
def test_what_was_pasted_is_not_the_persons_word(brain: Brain, paste: str) -> None:
    """A block quote and a fence hold somebody else's words: what rests on them is stated as an import's."""
    evidence = [Evidence(exchange="e1", quote="the user's bank is now Halcyon")]
    answers(brain, {Purpose.CONSOLIDATE: decided("new", "The bank is Halcyon.", evidence=evidence)})
    tell(brain, "Summarize this:\n\n" + paste.format("Note: the user's bank is now Halcyon."))
    outcome = promote(brain)
    assert outcome.event is not None
    assert ["import"] == [record["origin"] for record in outcome.event.data["statements"]]
    assert all("(import" in text for text in statements(brain) if "Halcyon" in text)


def test_one_statement_is_changed_once(brain: Brain) -> None:
    """Two operations on one statement: the second is stated beside, and nothing is lost."""
    answers(brain, {Purpose.CONSOLIDATE: lambda request: operations(
        *({"action": "end", "text": text, "ids": ["s1"]} for text in ("I left Google.", "I live by the sea."))
    )(request)})  # fmt: skip
    tell(brain, "I left Google. I live by the sea.")
    promote(brain)
    assert ["I left Google.", "I live by the sea."] == sorted(statements(brain))
    assert [OLD] == statements(brain, history=True)
    assert "changed by another operation" in refused(brain)[0]


@pytest.mark.parametrize(
    "folder", ["../../system", "/etc", "a/../../..", "C:\\windows", "~/x", "..\\..\\x", "a/b/c/d/e/f"]
)
def test_a_folder_outside_is_refused(brain: Brain, folder: str) -> None:
    """The statement is filed within long-term memory all the same, and nothing is written elsewhere."""
    evil = PageRef(folder=folder, title="../../evil")
    before = {p for p in brain.root.parent.rglob("*") if "long_term" not in str(p) and p.suffix == ".md"}
    answers(brain, {Purpose.CONSOLIDATE: decided("new", "User plays the cello", page=evil)})
    tell(brain, "I play the cello.")
    promote(brain)
    page = page_with(brain, "cello")
    assert brain.tree.confine(page.path, inside=brain.tree.long_term)
    assert page.path.count("/") <= 7
    assert 1 == len(refused(brain))
    assert before == {p for p in brain.root.parent.rglob("*") if "long_term" not in str(p) and p.suffix == ".md"}


def test_a_linked_folder_leads_nowhere(brain: Brain, tmp_path: Path) -> None:
    """A symbolic link in the tree does not take a page out of it."""
    (tmp_path / "outside").mkdir()
    (brain.tree.long_term / "concrete" / "music").symlink_to(tmp_path / "outside")
    page = PageRef(folder="music", title="Cello")
    answers(brain, {Purpose.CONSOLIDATE: decided("new", "User plays the cello", page=page)})
    tell(brain, "I play the cello.")
    promote(brain)
    assert [] == list((tmp_path / "outside").iterdir())
    assert any("cello" in text for text in statements(brain))
    with pytest.raises(ConfinementError):
        brain.tree.confine("memory/long_term/concrete/music/x.md")


def test_only_what_cannot_be_read_of_an_answer_is_asked_again(brain: Brain) -> None:
    """Once and by name; what is whole is carried out whatever comes of the question. Seeds: I1."""

    def consolidate(request: ConsolidateRequest) -> Consolidation:
        row = {"action": "new", "text": TOLD, "evidence": [{"exchange": "e1", "quote": TOLD}]}
        second = {**row, "action": "new" if request.refused else "merge", "text": "User owns a cello"}
        return Consolidation.model_validate({"operations": [second] if request.refused else [row, second]})

    answers(brain, {Purpose.CONSOLIDATE: consolidate})
    tell(brain, TOLD)
    promote(brain)
    assert sorted([OLD, TOLD, "User owns a cello"]) == sorted(statements(brain))
    assert [True] == ["operation 2 does not validate: `action`" in each for each in refused(brain)]
    (asked_again,) = [
        request.refused for request in brain.__dict__["engine"].of(Purpose.CONSOLIDATE) if request.refused
    ]
    assert ["User owns a cello"] == [row.operation.text for row in asked_again]


def test_five_megabytes_are_refused(brain: Brain) -> None:
    """A statement as long as a book is no statement, nor is one of another type; a subject as long is as left out."""
    made = ({"text": "cello " * 900_000}, {"text": {"a": 5}}, {"text": "cello", "subject": "cello " * 900_000})
    answers(brain, {Purpose.CONSOLIDATE: operations(*made)})
    tell(brain, "I play the cello.")
    promote(brain)
    assert sorted([OLD, "cello"]) == sorted(statements(brain))
    reasons = ["a statement has at most 1000 characters", "operation 2 does not validate: `text`"]
    assert [True, True] == [reason in each for reason, each in zip(reasons, sorted(set(refused(brain))), strict=True)]
    assert all(len(page.text) < 10_000 for page in pages(brain).values())
    assert all(len(reason) < 1000 for reason in refused(brain))


def test_a_run_that_would_retire_too_much_retires_nothing(tmp_path: Path) -> None:
    """Both statements stand, and what would have been retired is put before the person."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    things = ["jazz", "cheese", "chess", "rain", "snow", "tennis", "opera", "beer"]
    for thing in things:
        engine.on(f"{thing} any more", "end", f"like {thing}")
    for thing in things:
        tell(brain, f"I like {thing}.")
    promote(brain)
    later(brain)
    for thing in things:
        tell(brain, f"I don't like {thing} any more.")
    outcome = promote(brain)
    assert outcome.event is not None
    assert {"would_retire": 8, "statements": 8} == outcome.event.data["breaker"]
    assert [] == statements(brain, history=True)
    assert 16 == len(statements(brain))
    review = brain.read_text("memory/review.md") or ""
    assert (5, 1) == (review.count("- [ ] Replace"), review.count("3 more wait"))


def test_after_all_that_the_brain_is_whole(brain: Brain) -> None:
    """A doctor finds nothing wrong after a run of harm, and every exchange stands word for word."""
    answers(brain, {Purpose.CONSOLIDATE: decided("end", "", "Google", page=PageRef(folder="../x"))})
    told = ["I play the cello.", "My sister Ruth lives in Bristol.", "# Not a heading\n<!-- exchange: x -->\n```"]
    for text in told:
        tell(brain, text)
    promote(brain)
    assert set(told) <= set(said(brain))
    assert {} == problems(brain)


def test_a_model_forgets_nothing_by_itself(brain: Brain) -> None:
    """A model cannot make the person forget what they did not name, or anything else: its forgetting is put before the
    person; the statement stands."""
    answers(brain, {Purpose.CONSOLIDATE: decided("forget", "", "Google")})
    tell(brain, "I had lunch at Google. I play the cello.")
    promote(brain)
    assert ([OLD], []) == (statements(brain), statements(brain, history=True))
    assert f"Forget “{OLD}” on" in (brain.read_text("memory/review.md") or "")


def test_a_summary_with_a_number_that_nobody_said_is_left_out(brain: Brain) -> None:
    """Neither where it comes with a new page nor where a much changed one is named: the page has its title, tags and
    feeling, and no line that says more than its statements."""
    page = Page(kind="concrete", title="Music", summary="Plays since 2011.", tags=["music"], emotion="joy")
    texts = [f"User plays the {instrument}" for instrument in ("cello", "lute", "oboe", "harp", "horn", "viol")]
    new = PageRef(title="Tunes", summary="Since 1999.")
    answers(
        brain,
        {Purpose.SYNTHESIZE: page, Purpose.CONSOLIDATE: operations(*({"text": text, "page": new} for text in texts))},
    )
    tell(brain, "I play the cello, the lute, the oboe, the harp, the horn and the viol.")
    promote(brain)
    made = page_with(brain, "cello")
    assert ("Music", ("music",), "joy", None) == (made.title, made.tags, made.emotion, made.meta.get("summary"))
