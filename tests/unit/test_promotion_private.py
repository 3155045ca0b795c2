"""A page that begins private is private whatever becomes of the step that began it; private facts land on no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brainiac_plugins.organization.upkeep import settle_reviews
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.formats.discretion import is_private
from brainiac.formats.markdown import PRIVATE_MARK
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import PageRef, Purpose, Request, Result
from tests.support.models import write_settings
from tests.support.openai_server import ChatServer, by_request
from tests.support.promotions import LTM, ScriptedEngine, later, make_brain, operations, pages, statements, tell
from tests.support.remote import remote_brain, reply, told_by_us, write_private
from tests.support.said import say_to

TOLD = [
    "My diagnosis is PRVprompt.",
    "I decided to leave PRVdecision.",
    "My goal is to reach PRVgoal.",
    "My sister Ruth has PRVillness.",
    "How I hide:\n1. take PRVstep\n2. wait",
    "Remind me to call PRVtask.",
    "Yesterday I met PRVevent in Rome.",
    "See [it](../memory/long_term/concrete/hidden.md) at PRVlink.",
]


def hidden(brain: Brain, text: str = "User has diagnosis PRVstmt.") -> str:
    """Put a private page of the person's into long-term memory."""
    path = f"{LTM}concrete/hidden.md"
    brain.tree.absolute(path).write_text(f"---\nprivate: true\n---\n# Hidden\n\n- {text} ^aaaa\n")
    brain.observed.note_change(path)
    later(brain)
    return path


def exposed(brain: Brain) -> list[str]:
    """Return the pages that are not private and hold a private word; of index pages what a remote model may see."""
    gate = Gate(brain)
    paths = [brain.tree.relative(entry.path) for entry in brain.tree.walk(brain.tree.memory)]
    found = [path for path in paths if "PRV" in (gate.read_note(path, tops=("memory",)) or "")]
    return found + [path for path, page in pages(brain).items() if "PRV" in page.text and not is_private(page.meta)]


@pytest.mark.parametrize("is_remote", [False, True])
def test_private_facts_stand_on_private_pages_whatever_a_person_wrote_before(tmp_path: Path, is_remote: bool) -> None:
    """A private page by hand, private prompts about the same and about all else, offline and beside a remote model."""
    brain = make_brain(tmp_path / "b", engine=ScriptedEngine({}, is_remote=is_remote))
    hidden(brain)
    for text in TOLD:
        tell(brain, text, private=True)
    tell(brain, "I like tea.")
    assert promote(brain).event is not None
    assert [] == exposed(brain)
    later(brain)
    for text in TOLD:
        tell(brain, text.replace("PRV", "PRVmore"), private=True)
    assert promote(brain).event is not None
    assert [] == exposed(brain)
    texts = "".join(page.text for page in pages(brain).values())
    assert [] == [word for word in ("PRVprompt", "PRVdecision", "PRVgoal", "PRVmoregoal") if word not in texts]


def test_a_page_begun_private_is_private_whatever_becomes_of_the_step_that_began_it(tmp_path: Path) -> None:
    """A person saves the page that the first step merges while a model names the new one: the first waits, and the
    second begins the page anew."""

    def save(request: Request) -> Result:
        file = brain.tree.absolute(LTM + ruth)
        file.write_text(file.read_text() + "\nMore.\n")
        return engine.verbatim(request)

    brain = make_brain(tmp_path / "b", engine=(engine := ScriptedEngine()))
    tell(brain, "My sister Ruth has PRVillness.", private=True)
    promote(brain)
    later(brain)
    (ruth,) = (path for path in pages(brain) if path.startswith("concrete/"))
    vera = {"subject": "Vera", "page": PageRef(title="Vera")}
    merging = vera | {"page": PageRef(title="Vera", merge=[ruth])}
    engine.answers[Purpose.CONSOLIDATE] = operations(
        {"text": "Vera has PRVone.", **merging},
        *({"text": f"Vera has PRV{name}.", **vera} for name in ("two", "four", "five", "six", "seven")),
        {"text": "User has PRVthree.", "subject": "User", "page": PageRef()},
    )
    engine.answers[Purpose.SYNTHESIZE] = save
    tell(brain, "Vera has PRVone and PRVtwo, I have PRVthree.", private=True)
    outcome = promote(brain)
    assert ["left", *["written"] * 6] == [end.end for _, end in sorted(outcome.candidates.items())]
    assert {"Vera has PRVtwo.", "User has PRVthree."} <= set(statements(brain))
    assert [] == exposed(brain)


def test_a_page_that_a_person_opens_meanwhile_gets_nothing_private(tmp_path: Path) -> None:
    """They take `private: true` out while a run decides: what is private is left, and goes to a private page next."""

    def act(request: Request) -> Result:
        for page in list(pages(brain).values()):
            if "PRV" in page.text:
                file = brain.tree.absolute(page.path)
                file.write_text(page.text.replace("PRV", "OPEN").replace("private: true\n", ""))
        return engine.verbatim(request)

    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I decided to leave PRVdecision.", private=True)
    promote(brain)
    later(brain)
    engine.answers[Purpose.CONSOLIDATE] = act
    tell(brain, "I decided to buy PRVboat.", private=True)
    promote(brain)
    assert [] == exposed(brain)
    later(brain)
    del engine.answers[Purpose.CONSOLIDATE]
    assert promote(brain).event is not None
    assert [] == exposed(brain)
    assert any("PRVboat" in page.text for page in pages(brain).values())
    assert not any("OPEN" in page.text and "PRV" in page.text for page in pages(brain).values())
    days = sorted(path.rpartition("/")[2] for path in pages(brain) if path.startswith("events/"))
    assert ["2026-03-02-private-2.md", "2026-03-02-private.md"] == days


def test_a_private_wish_to_forget_leaves_no_word_on_an_open_page(tmp_path: Path) -> None:
    """What it names may stand on an open page, where it goes to History once the person has ticked it; of the wish
    itself, its tags and its feeling, nothing gets there."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "The code of the bike shed is 4471.")
    promote(brain)
    later(brain)
    wish = {"page": PageRef(aliases=["PRVname"]), "importance": 0.9, "subject": "PRVsubject", "reasoning": "PRVwhy"}
    engine.on("forget the code", "forget", "4471", "PRVtext", **wish)
    tell(brain, "Please forget the code of the bike shed, PRVwhy.", private=True)
    assert promote(brain).event is not None
    assert [] == exposed(brain)
    assert ["The code of the bike shed is 4471."] == statements(brain)
    review = brain.tree.review
    assert PRIVATE_MARK in next(line for line in review.read_text().splitlines() if "4471" in line)
    review.write_text(review.read_text().replace("- [ ] Forget", "- [x] Forget"))
    brain.observed.note_change(brain.tree.relative(review))
    settle_reviews(brain)
    assert ["The code of the bike shed is 4471."] == statements(brain, history=True)
    assert [] == exposed(brain)


def test_a_private_event_whose_heading_is_broken_stays_hidden(tmp_path: Path) -> None:
    """A person mistypes its time: nobody can tell its day, so that it stays where it is, every line of it private."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "I decided to leave PRVdecision.\n\nToday.", private=True, answer="PRVanswer:\n\n- PRVmore\n\nEnd.")
    tell(brain, "I like tea.")
    file = brain.tree.short_term
    file.write_text(file.read_text().replace("T09:01:00Z", "T09:0l:00Z"))
    later(brain)
    assert promote(brain).event is not None
    assert "PRVanswer" in file.read_text()
    assert [] == exposed(brain)
    hits = [hit for hit in brain.recall.search("PRVanswer PRVmore", limit=5) if "PRV" in hit.text]
    assert hits
    assert [] == Gate(brain).hits(hits)


@pytest.mark.slow
@pytest.mark.parametrize("is_offline", [True, False])
def test_no_private_word_reaches_a_remote_model_once_it_was_promoted(tmp_path: Path, is_offline: bool) -> None:
    """Canaries on the wire: a private page by hand, private prompts, promoted offline or beside a remote model; then
    open questions to a model elsewhere, which looks for everything with every tool."""
    with ChatServer() as server:
        server.default = by_request(reply)
        brain = remote_brain(tmp_path, server)
        write_private(tmp_path, "concrete/hidden.md", "Hidden", "User has diagnosis PRVstmt. ^h1")
        settings = brain.settings.model_dump(mode="json")
        if is_offline:
            write_settings(tmp_path, {**settings, "llm": {**settings["llm"], "model": "offline"}})
        later(brain)
        for number, text in enumerate(TOLD):
            say_to(brain, f"p{number}.md", f"---\nprivate: true\n---\n{text}\n")
        later(brain)
        say_to(brain, "open.md", "I like tea.\n")
        assert promote(brain).event is not None
        assert [] == exposed(brain)
        write_settings(tmp_path, settings)
        for number, question in enumerate(
            ("What did I decide?", "What is my diagnosis?", "What is my goal, and Ruth's?")
        ):
            say_to(brain, f"q{number}.md", f"{question}\n")
        later(brain)
        promote(brain)
        brain.close()
    bodies = [told_by_us(json.dumps(body)) for body in server.bodies]
    assert len(bodies) >= 6
    assert any("What is my diagnosis" in body for body in bodies)
    assert [] == [body for body in bodies if "prv" in body.casefold()]
