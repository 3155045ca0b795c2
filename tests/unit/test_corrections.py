"""What a person puts right holds, wherever it was said before; and the digest tells what became of memory."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.clock import ManualClock
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Evidence, PageRef, Purpose
from brainiac.server.app import serving
from brainiac.testing import command
from brainiac.testing import make_brain as make_empty_brain
from tests.support.commands import Shell, do
from tests.support.promotions import ScriptedEngine, later, make_brain, operations, page_with, statements, tell
from tests.support.served import Served, free_port

OLD, NEW = "I pay 640 euros rent in Graz.", "I pay 700 euros rent in Graz."
HOME = PageRef(title="Home", folder="home")


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    engine = ScriptedEngine({Purpose.CONSOLIDATE: operations({"text": OLD, "page": HOME})})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, OLD)
    do(brain, "promote")
    brain.__dict__["engine"] = engine
    later(brain)
    return brain


def decide(brain: Brain, *made: dict[str, Any]) -> None:
    brain.__dict__["engine"].answers[Purpose.CONSOLIDATE] = operations(*made)


def put_right(brain: Brain) -> None:
    do(brain, "correct", "640 euros rent", "--to", NEW)
    later(brain)


def digest(brain: Brain) -> list[dict[str, Any]]:
    """Return the lines of the digest, as it tells them to a script."""
    lines: list[dict[str, Any]] = do(brain, "digest", "--since", "2026", "--json").json["lines"]
    return lines


def digest_text(brain: Brain) -> str:
    return (brain.tree.logs / "digest.md").read_text()


def test_a_correction_stands_in_place_and_the_former_wording_under_history(brain: Brain) -> None:
    """One commit, which `undo --last` takes back, and not the promotion before it."""
    do(brain, "correct", "rent is 640 euros", "--to", NEW)
    assert ([NEW], [OLD]) == (statements(brain), statements(brain, history=True))
    do(brain, "undo", "--last")
    assert ([OLD], []) == (statements(brain), statements(brain, history=True))


def test_an_editor_that_shows_the_former_wording_takes_no_correction_back(brain: Brain) -> None:
    """Also of a page that nobody but the person has written."""
    file, shown = brain.tree.long_term / "concrete/bike.md", "# Bike\n\n- My bike is red. ^b1\n- It has a bell. ^b2\n"
    file.parent.mkdir(exist_ok=True)
    file.write_text(shown)
    do(brain, "correct", "My bike is red.", "--to", "My bike is green.")
    file.write_text(shown.replace("a bell", "two bells"))
    brain.observed.note_change(brain.tree.relative(file))
    assert "- My bike is green. ^b1\n- It has two bells. ^b2\n" in file.read_text()


def test_an_exchange_is_found_with_what_holds_instead(brain: Brain) -> None:
    """What was typed stays as it is; whoever finds it is told that it no longer holds, and what does."""
    put_right(brain)
    hits = Gate(brain).hits(brain.recall.search("rent in Graz", now=brain.now()))
    (said,) = [hit for hit in hits if hit.kind == "exchange" and "640" in hit.text]
    assert [f"“{OLD}” no longer holds; now: {NEW}"] == list(map(str, said.former))
    tell(brain, "What is the rent?")
    assert [[]] == [list(hit.former) for hit in hits if hit.kind == "statement"]


def test_that_words_no_longer_hold_is_said_wherever_they_are_shown(
    brain: Brain, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `ask`, by `search` and by the model `brainiac/recall` of a chat program, each as one sentence with one end."""
    put_right(brain)
    told, port = f"no longer holds; now: {NEW}\n", free_port()
    with serving(brain, print, port=port):
        asked = {"model": "brainiac/recall", "messages": [{"role": "user", "content": "rent in Graz"}]}
        reply = Served(brain, port).send("POST", "/v1/chat/completions", asked)
    assert told in reply.json["choices"][0]["message"]["content"] + "\n"
    shell = Shell(capsys, str(brain.root))
    brain.tree.config.write_text("")  # without a model
    assert told in shell("ask", "How much rent do I pay in Graz?").out
    assert told in shell("search", "rent in Graz").out


def test_what_holds_on_a_private_page_is_told_to_no_remote_model(brain: Brain) -> None:
    """That it no longer holds is told, and what holds is not."""
    put_right(brain)
    page = page_with(brain, "700")
    file = brain.tree.absolute(page.path)
    file.write_text(page.text.replace("---\n", "---\nprivate: true\n", 1))
    hits = Gate(brain).hits(brain.recall.search("rent in Graz", now=brain.now()))
    assert not any("700" in str(former) for hit in hits for former in hit.former)


def test_what_was_put_right_comes_back_from_no_earlier_exchange(brain: Brain) -> None:
    """A model that reads an old transcript again and proposes the former wording is refused."""
    put_right(brain)
    decide(brain, {"text": OLD, "page": HOME})
    tell(brain, OLD, minutes=-300)
    outcome = do(brain, "promote", "--json").json
    assert [NEW] == statements(brain)
    assert any("put it right" in row["reason"] for row in outcome["refused"])


def test_what_was_put_right_comes_back_from_no_later_answer(brain: Brain) -> None:
    """An assistant that still says it, after the correction, changes nothing, and states nothing beside."""
    put_right(brain)
    quote = "You pay 640 euros rent in Graz"
    decide(brain, {"text": OLD, "page": HOME, "evidence": [Evidence(exchange="e1", quote=quote)]})
    tell(brain, "What did I say of rent?", answer=f"{quote}.")
    outcome = do(brain, "promote", "--json").json
    assert [NEW] == statements(brain)
    assert any("put it right" in row["reason"] for row in outcome["refused"])


def test_what_was_forgotten_is_stated_by_no_answer(brain: Brain) -> None:
    """The same of what a person had taken out."""
    do(brain, "forget", "640 euros", "--yes")
    later(brain)
    quote = "You pay 640 euros rent in Graz"
    decide(brain, {"text": OLD, "page": HOME, "evidence": [Evidence(exchange="e1", quote=quote)]})
    tell(brain, "And the rent?", answer=f"{quote}.")
    do(brain, "promote")
    assert not any("640" in text for text in statements(brain))


# --- the digest ----------------------------------------------------------------------------------------------------


def test_the_digest_tells_both_wordings_with_the_way_back(brain: Brain) -> None:
    """Learned, changed and refused, newest first; what is taken back is not told."""
    put_right(brain)
    lines = digest(brain)
    told = [(line["what"], line["text"], line["before"]) for line in lines]
    assert [("changed", NEW, OLD), ("learned", OLD, "")] == told
    # the first wording has changed since: only the whole run can be taken back
    assert [f"brainiac undo {lines[0]['event']}", ""] == [line["undo"] for line in lines]
    assert f"all of this run: `brainiac undo {lines[1]['event']}`" in digest_text(brain)
    assert f"“{OLD}” → “{NEW}”" in digest_text(brain)
    do(brain, "undo", lines[0]["event"])
    assert ["learned"] == [line["what"] for line in digest(brain)]
    assert NEW not in digest_text(brain)


def test_what_a_person_rewords_in_the_page_stays_in_the_digest(brain: Brain) -> None:
    """In its present words, which its undo ends."""
    page = brain.tree.absolute(digest(brain)[0]["path"])
    page.write_text(page.read_text().replace(OLD, NEW))
    (line,) = digest(brain)
    assert ("learned", NEW, "edited by hand since") == (line["what"], line["text"], line["reason"])
    do(brain, "undo", line["statement"])
    assert [NEW] == statements(brain, history=True)


def test_the_digest_forgets(brain: Brain) -> None:
    """What is forgotten goes from the file at once."""
    assert "640" in digest_text(brain)
    do(brain, "forget", "640 euros", "--yes")
    assert "640" not in digest_text(brain)


def test_the_digest_tells_nothing_private(brain: Brain) -> None:
    """It counts it."""
    decide(brain, {"text": "I owe Tom 50 euros.", "page": PageRef(title="Debts")})
    tell(brain, "I owe Tom 50 euros.", private=True)
    do(brain, "promote")
    assert "Tom" not in digest_text(brain)
    assert 1 == do(brain, "digest", "--since", "2026", "--json").json["private"]


def test_words_that_ended_on_a_private_page_too_are_not_in_the_digest(brain: Brain) -> None:
    """It does not matter in which order the pages are read."""
    for name in ("aa.md", "zz.md"):
        page = brain.tree.long_term / "concrete" / name
        page.write_text(f"---\nprivate: true\n---\n\n# A {name}\n\n## History\n\n- {OLD} ^past\n")
        assert {"lines": [], "private": 1} == do(brain, "digest", "--since", "2026", "--json").json
        page.unlink()


def test_a_digest_that_a_person_changed_is_moved_aside(brain: Brain) -> None:
    """Its first line says so; no word of theirs is lost."""
    file = brain.tree.logs / "digest.md"
    file.write_text(file.read_text() + "\nMine.\n")
    put_right(brain)
    assert "Mine." not in digest_text(brain)
    assert ["Mine."] == [path.read_text().split("\n")[-2] for path in brain.tree.logs.glob("digest-edited-*.md")]


def test_both_as_commands(brain: Brain) -> None:
    """`correct WORDS --to TEXT` says what it did and how to take it back; `digest` tells of it; what nobody said is
    no statement."""
    assert f"“{OLD}” → “{NEW}”" in do(brain, "correct", "640 euros rent", "--to", NEW).out
    assert f"changed: “{OLD}” → “{NEW}”" in do(brain, "digest", "--since", "2026-03-01").out
    assert command(brain, "correct", "zebra crossing", "--to", "x").code == 1


# --- taking back one statement -------------------------------------------------------------------------------------

FLAT, GARDEN = "I live in a flat in Graz.", "I have no garden."


def undo_of(brain: Brain, what: str, text: str) -> str:
    """The statement that the digest names to take back what it tells of a text."""
    told = [line for line in digest(brain) if line["what"] == what and text in (line["text"], line["before"])]
    return str(told[0]["statement"])


def test_one_line_of_a_run_is_taken_back_and_the_others_stand(brain: Brain) -> None:
    """What was learned goes to History; a change gives way to the former wording; what ended holds again. Each can be
    taken back itself, and is no run's to state again from what was said before."""
    decide(brain, {"text": FLAT, "page": HOME}, {"text": GARDEN, "page": HOME})
    tell(brain, f"{FLAT} {GARDEN}")
    do(brain, "promote")
    later(brain)

    def decision(request: ConsolidateRequest) -> Consolidation:
        ids = {row.content: row.id for row in request.existing}
        changed = {"action": "replace", "ids": [ids[OLD]], "text": NEW, "page": HOME}
        ended = {"action": "end", "ids": [ids[GARDEN]], "text": "", "page": HOME}
        return operations(changed, ended, {"text": "I have a cat.", "page": HOME})(request)

    brain.__dict__["engine"].answers[Purpose.CONSOLIDATE] = decision
    tell(brain, f"{NEW} I have a cat. I have a garden now.")
    do(brain, "promote")
    later(brain)
    assert ([NEW, FLAT, "I have a cat."], {OLD, GARDEN}) == (statements(brain), set(statements(brain, history=True)))
    assert "all of this run" in digest_text(brain)
    # the lines of the run on one page are one, each with its own way back
    (told,) = [line for line in digest_text(brain).splitlines() if "I have a cat." in line]
    signs = f"~ “{OLD}” → “{NEW}”", f"- “{GARDEN}”", "+ “I have a cat.”"
    assert [1, 1, 1] == [told.count(words) for words in signs]

    event = do(brain, "undo", undo_of(brain, "changed", NEW), "--json").json["event"]
    assert [OLD, FLAT, "I have a cat."] == statements(brain)
    do(brain, "undo", event)
    assert [NEW, FLAT, "I have a cat."] == statements(brain)
    do(brain, "undo", undo_of(brain, "changed", NEW))
    do(brain, "undo", undo_of(brain, "ended", GARDEN))
    do(brain, "undo", undo_of(brain, "learned", "I have a cat."))
    assert ({OLD, FLAT, GARDEN}, {NEW, "I have a cat."}) == (
        set(statements(brain)),
        set(statements(brain, history=True)),
    )
    lines = digest(brain)
    assert ["restored", "learned"] == [line["what"] for line in lines if line["text"] == GARDEN]
    assert not any(line["statement"] for line in lines if line["text"] == "I have a cat.")

    later(brain)
    decide(brain, {"text": "I have a cat.", "page": HOME})
    tell(brain, "I have a cat.", minutes=-300)
    assert "put it right" in str(do(brain, "promote", "--json").json["refused"])


def test_what_cannot_be_taken_back_is_said(brain: Brain) -> None:
    """A statement that is not there, and a page named by half its name; the command says what holds."""
    named = undo_of(brain, "learned", OLD)
    assert "stands nowhere" in command(brain, "undo", "home.md#^zzzz").err
    assert "stands nowhere" in command(brain, "undo", f"ome.md#^{named.partition('#^')[2]}").err
    assert f"no longer holds: “{OLD}”" in do(brain, "undo", named).out
    assert f"holds again: “{OLD}”" in do(brain, "undo", named).out


def test_a_doubt_is_told_as_asked(brain: Brain) -> None:
    """What only the AI said of a change changes nothing: the person is asked, with both texts."""

    def decision(request: ConsolidateRequest) -> Consolidation:
        evidence = [Evidence(exchange=request.said[0].id, quote="You pay 700 euros")]
        fields = {"text": "The rent is 700 euros", "evidence": evidence, "page": HOME}
        return operations({"action": "replace", "ids": [request.existing[0].id], **fields})(request)

    brain.__dict__["engine"].answers[Purpose.CONSOLIDATE] = decision
    tell(brain, "What do I pay?", answer="You pay 700 euros.")
    outcome = do(brain, "promote", "--json").json
    assert [OLD] == statements(brain)
    assert {} == outcome["statements"]
    (line,) = (line for line in digest(brain) if line["what"] == "asked")
    assert all(text in line["text"] for text in (OLD, "The rent is 700 euros (assistant: assistant)"))


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Return the commands of a new brain without a model, in which a few things were said a moment ago."""
    make_empty_brain(tmp_path / "new").close()
    shell = Shell(capsys, str(tmp_path / "new"))
    moved = "I moved to Portland in June. Ruth plays the cello."
    for text in (moved, "/remember Anna lives in Ghent.", "/todo Buy tea"):
        assert 0 == shell("ask", text).code
    time.sleep(1.1)  # stamps have seconds, and what is corrected was said before
    return shell


def test_what_was_just_said_can_be_put_right(said: Shell, tmp_path: Path) -> None:
    """The correction is a statement, the former words stand under History and stay as typed; `why` leads to them."""
    done = said("correct", "moved to Portland", "--to", "I moved to Salem in June.")
    assert "“I moved to Portland in June.” → “I moved to Salem in June.”" in done.out
    asked = said("ask", "Where did I move in June?").out
    assert "> I moved to Salem in June." in asked
    assert "“I moved to Portland in June.” no longer holds; now: I moved to Salem in June.\n" in asked
    chain = said("why", "I moved to Salem in June.").out
    assert "from: I moved to Portland in June." in chain
    assert "you typed" in chain
    assert "I moved to Portland in June. Ruth plays" in (tmp_path / "new/memory/short_term.md").read_text()
    assert 1 == said("correct", "moved to Portland", "--to", "I moved to Bend.").code  # that is put right by now
    assert ["changed"] == [line["what"] for line in said("digest", "--json").json["lines"]]
    assert 0 == said("undo", said("log", "--kind", "statement-corrected", "--json").json[-1]["id"]).code
    assert "no longer holds" not in said("ask", "Where did I move in June?").out


def test_promotion_does_not_bring_back_what_was_put_right_before_it(said: Shell, tmp_path: Path) -> None:
    """Words marked to be remembered are not, once they were put right; a task only gets other words."""
    assert 0 == said("correct", "Anna lives in Ghent", "--to", "Anna lives in Mons.").code
    assert 0 == said("correct", "buy tea", "--to", "Buy oolong").code
    short_term = (tmp_path / "new/memory/short_term.md").read_text()
    assert ("- [ ] Buy oolong" in short_term, "- [ ] Buy tea" in short_term) == (True, False)
    brain = Brain(tmp_path / "new", clock=ManualClock(datetime.now(UTC) + timedelta(hours=1)))
    outcome = do(brain, "promote", "--json").json
    assert [["Anna lives in Mons."], ["Anna lives in Ghent."]] == [statements(brain), statements(brain, history=True)]
    assert "by hand after it was said" in str(outcome["refused"])
    brain.close()


def test_a_private_sentence_is_put_right_on_a_private_page(said: Shell, tmp_path: Path) -> None:
    """Nothing of it comes to an open page, nor to its folder's index."""
    assert 0 == said("ask", "--private", "My therapist sits in Bonn.").code
    assert 0 == said("correct", "My therapist sits in Bonn.", "--to", "My therapist sits in Trier.").code
    holding = [path for path in (tmp_path / "new/memory/long_term").rglob("*.md") if "Trier" in path.read_text()]
    assert [True] == ["\nprivate: true\n" in path.read_text() for path in holding]


def test_of_several_sentences_one_is_named_by_its_words(said: Shell) -> None:
    """Nobody to ask: they are listed, and nothing is changed."""
    assert 0 == said("ask", "Ruth plays the viola.").code
    done = said("correct", "Ruth plays", "--to", "Ruth sings.")
    assert (1, True, True) == (done.code, "the cello." in done.err, "the viola." in done.err)
    assert 0 == said("correct", "Ruth plays the viola.", "--to", "Ruth sings.").code


def told_of(brain: Brain, query: str, words: str) -> list[str]:
    """Return what is said below the exchange that has some words: what of it no longer holds."""
    hits = Gate(brain).hits(brain.recall.search(query, now=brain.now()))
    (said,) = [hit for hit in hits if hit.kind == "exchange" and words in hit.text]
    return list(map(str, said.former))


def test_a_sentence_is_out_of_date_where_all_that_was_made_of_it_has_ended(brain: Brain) -> None:
    """Not where another statement of the same words still holds; what the person puts right is told at once."""
    said = "Ulrike leaves the company. From March my boss is Marc Feldhoff, of the rail side."
    quotes = ["Ulrike leaves the company. From March my boss is Marc Feldhoff", "From March my boss is Marc Feldhoff"]
    evidence = [[Evidence(exchange="e1", quote=quote)] for quote in (*quotes, f"{quotes[1]}, of the rail side")]
    decide(
        brain,
        {"text": "Ulrike is the boss until March.", "page": HOME, "evidence": evidence[0]},
        {"text": "The weekly status goes to Ulrike.", "page": HOME, "evidence": evidence[1]},
        {"text": "Marc Feldhoff is the boss from March.", "page": HOME, "evidence": evidence[2]},
    )
    tell(brain, said)
    do(brain, "promote")
    page = page_with(brain, "weekly status")
    blocks = {each.text: each.block_id for each in page.statements}
    do(brain, "undo", f"{page.path}#^{blocks['The weekly status goes to Ulrike.']}")
    assert told_of(brain, "boss Marc Feldhoff", "rail side") == []
    do(brain, "undo", f"{page.path}#^{blocks['Ulrike is the boss until March.']}")
    assert told_of(brain, "boss Marc Feldhoff", "rail side") == ["“Ulrike leaves the company.” no longer holds"]
    do(brain, "correct", "Marc Feldhoff is the boss from March.", "--to", "Marc Feldmann is the boss from March.")
    told = told_of(brain, "boss Marc Feldhoff", "rail side")
    assert any(line.endswith("now: Marc Feldmann is the boss from March.") for line in told), told


def test_a_corrected_step_is_told_where_the_how_to_was_said(brain: Brain) -> None:
    """In the step's former words; the steps that stand are not told, and `why` names what rests on what was said."""
    said = "So here is my bread: 350 g water, and bake it at 250 with a lid for 20 minutes."
    bread = {"text": "How I make bread", "page": PageRef(kind="skill", title="Bread", folder="kitchen")}
    steps = ["Take 350 g water", "Bake at 250 with a lid for 20 minutes"]
    decide(brain, {**bread, "steps": steps})
    tell(brain, said)
    do(brain, "promote")
    assert told_of(brain, "bread water lid", "here is my bread") == []
    do(brain, "correct", steps[1], "--to", "Bake at 230 with a lid for 25 minutes")
    told = told_of(brain, "bread water lid", "here is my bread")
    assert told == [f"“{steps[1]}” no longer holds; now: Bake at 230 with a lid for 25 minutes"]
    why = do(brain, "why", said).out
    assert "no statement yet" not in why
    assert steps[0] in why


def test_a_forgotten_statement_is_not_an_ended_one(brain: Brain) -> None:
    """Where its words stand still is told, with the command for each; there it is not said that they no longer hold."""
    page = page_with(brain, OLD)
    (statement,) = page.statements
    done = do(brain, "forget", f"{page.path}#^{statement.block_id}", "-y")
    assert "still stand" in done.out
    assert OLD in done.out.partition("still stand")[2]
    assert "brainiac forget 0199-0001" in done.out
    assert told_of(brain, "rent in Graz", "640") == []
