"""`why`: from a statement over every change of it to the very sentence that was typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Evidence, Purpose, Result
from brainiac.testing import command, make_brain
from tests.support.commands import do
from tests.support.promotions import ScriptedEngine, set_model, with_model
from tests.support.said import tell

pytestmark = pytest.mark.slow


@pytest.fixture
def engine() -> ScriptedEngine:
    """A model that says one thing in words of its own, and all else word for word."""
    engine = ScriptedEngine()

    def consolidate(request: ConsolidateRequest) -> Result:
        own = [
            engine.operation("User lives in Portland since 2020", said, request).model_copy(
                update={"evidence": [Evidence(exchange=said.id, quote="I live in Portland since 2020")]}
            )
            for said in request.said
            if "live in Portland" in said.event.user and not request.refused
        ]
        kept = engine.verbatim(request)
        assert isinstance(kept, Consolidation)
        return Consolidation(operations=[*own, *kept.operations])

    engine.answers[Purpose.CONSOLIDATE] = consolidate
    engine.on("moved to Seattle", "replace", "Portland")
    return engine


@pytest.fixture
def brain(tmp_path: Path, engine: ScriptedEngine) -> Iterator[Brain]:
    brain = with_model(make_brain(tmp_path / "brain"), engine)
    set_model(brain.root)
    tell(brain, "first", "Some small talk first. I live in Portland since 2020. What a day!")
    tell(brain, "second", "My sister Anna works at Google.")
    do(brain, "promote")
    yield brain
    brain.close()


def chains(brain: Brain, named: str) -> list[dict[str, Any]]:
    """Return what `why` tells a script of each statement."""
    told: list[dict[str, Any]] = do(brain, "why", named, "--json").json["chains"]
    return told


def page_of(brain: Brain, words: str) -> str:
    """The page on which words stand."""
    tops = brain.tree.walk(brain.tree.long_term / "concrete")
    paths = [brain.tree.relative(entry.path) for entry in tops]
    return next(p for p in paths if not p.endswith("_index.md") and words in (brain.read_text(p) or ""))


def test_a_statement_leads_to_the_sentence_typed(brain: Brain) -> None:
    """Operation, who found and decided it, the exchange, its prompt file and the one sentence of it, word for word.

    Seeds: S1, S15.
    """
    done = do(brain, "why", "User lives in Portland since 2020")
    assert "in inbox/first.md: “I live in Portland since 2020.”" in done.out
    assert "answered by scripted ($0.0000)" in done.out
    (chain,) = chains(brain, "User lives in Portland since 2020")
    (step,) = chain["steps"]
    (said,) = step["sources"]
    assert ("NEW", "promotion", "scripted") == (step["operation"], step["by"], step["found_by"])
    assert ("inbox/first.md", "inbox/first.md", "scripted", 0.0) == (
        said["prompt"],
        said["read_from"],
        said["model"],
        said["cost_usd"],
    )


def test_words_survive_the_file(brain: Brain) -> None:
    """With the prompt gone the journal's text is quoted, and without that the page of the day."""
    (brain.root / "inbox/first.md").unlink()
    brain.observed.note_change("inbox/first.md")
    (chain,) = chains(brain, "User lives in Portland since 2020")
    assert ["journal"] == [said["read_from"] for said in chain["steps"][0]["sources"]]
    event = next(e for e in brain.journal.events(kinds={"prompt-answered"}) if e.data["prompt"] == "inbox/first.md")
    brain.committer.check_displaced()
    for change in event.changes:
        if change.path == "inbox/first.md" and change.after:
            brain.journal.blobs.delete(change.after)
    (chain,) = chains(brain, "User lives in Portland since 2020")
    (said,) = chain["steps"][0]["sources"]
    assert "memory/long_term/events/" == said["read_from"][:24]
    assert "“I live in Portland since 2020.”" in do(brain, "why", "User lives in Portland since 2020").out


def test_every_change_is_told(brain: Brain) -> None:
    """A merge tells from what to what, and rests on its own exchange; what it replaced leads to the first one."""
    tell(brain, "third", "I moved to Seattle last week.")
    do(brain, "promote")
    page = page_of(brain, "Seattle")
    (current,) = [chain for chain in chains(brain, page) if not chain["is_history"]]
    assert ["NEW", "UPDATE"] == [step["operation"] for step in current["steps"]]
    update = current["steps"][1]
    assert ("User lives in Portland since 2020", current["text"]) == (update["before"], update["after"])
    assert ["inbox/third.md"] == [said["prompt"] for said in update["sources"]]
    (retired,) = [chain for chain in chains(brain, page) if chain["is_history"]]
    assert "inbox/first.md" in [said["prompt"] for step in retired["steps"] for said in step["sources"]]


def test_edits_by_hand_stand_between(brain: Brain) -> None:
    """What a person changed is told with both wordings, and that it was a person."""
    page = page_of(brain, "Portland")
    path = brain.tree.absolute(page)
    path.write_text(path.read_text().replace("in Portland", "in Portland, Oregon,"))
    brain.observed.note_change(page)
    (chain,) = [chain for chain in chains(brain, page) if "Oregon" in chain["text"]]
    edit = chain["steps"][-1]
    assert ("person", "edited", "User lives in Portland since 2020", chain["text"]) == (
        edit["by"],
        edit["operation"],
        edit["before"],
        edit["after"],
    )


def test_a_moved_page_keeps_its_chain(brain: Brain) -> None:
    """Where a page stands says nothing about where it comes from."""
    page = page_of(brain, "Anna")
    target = brain.tree.long_term / "concrete/sisters/anna.md"
    target.parent.mkdir()
    brain.tree.absolute(page).rename(target)
    brain.observed.adopt()
    (chain,) = chains(brain, "Anna")
    assert ["NEW"] == [step["operation"] for step in chain["steps"]]


def test_what_is_meant_is_found(brain: Brain) -> None:
    """Path, title, uuid, block id, exact text, and with other words the nearest; nothing near is said so."""
    page = page_of(brain, "Anna")
    (chain,) = chains(brain, page)
    for named in ("anna", chain["page"], chain["block"], f"^{chain['block']}", chain["text"].upper()):
        assert chain == chains(brain, named)[0]
    assert chain == chains(brain, "Anna is working at Google")[0]
    assert "the nearest:" in do(brain, "why", "Anna is working at Google").out
    done = command(brain, "why", "bananas are blue")
    assert (1, True) == (done.code, "no memory and no statement is called 'bananas are blue'" in done.err)


def test_an_empty_name_names_nothing(brain: Brain) -> None:
    """Pages without a uuid and statements without a block id do not have it."""
    (brain.tree.long_term / "concrete/hand.md").write_text("# By hand\n\n- A line without a block id.\n")
    assert 0 == command(brain, "why", "hand").code
    assert "By hand" not in command(brain, "why", "").out
    assert [1, 1] == [command(brain, "why", named).code for named in ("^", "hand#^")]


def test_two_of_a_name_are_told_apart(brain: Brain) -> None:
    """A title that two pages bear is not guessed."""
    for folder in ("a", "b"):
        path = brain.tree.long_term / f"concrete/{folder}/twin.md"
        path.parent.mkdir()
        path.write_text("# Twin\n\n- Says this. ^abcd\n")
    assert "2 pages are called" in command(brain, "why", "Twin").err
    assert "stands 2 times" in command(brain, "why", "^abcd").err


def test_lines_of_short_term_memory_have_an_origin(brain: Brain) -> None:
    """A task leads to the exchange whose reflection wrote it."""
    tell(brain, "fourth", "/todo call Bob")
    (task,) = [item.text for item in brain.short_term().memory.tasks]
    (chain,) = chains(brain, task)
    assert [("reflection", "/todo call Bob")] == [
        (step["by"], said["user"].strip()) for step in chain["steps"] for said in step["sources"]
    ]


def test_an_episodic_page_tells_who_answered(brain: Brain) -> None:
    """Its exchanges are listed with model and cost."""
    page = next(p for p in (brain.tree.relative(e.path) for e in brain.tree.walk(brain.tree.long_term / "events"))
                if not p.endswith("_index.md"))  # fmt: skip
    assert ["scripted", "scripted"] == [said["model"] for said in do(brain, "why", page, "--json").json["said"]]


def test_another_device_sees_the_chain(brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign journals are provenance: the same brain opened on another machine explains as well, and says where."""
    device = brain.journal.device
    brain.close()
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "other" / variable))
    other = Brain(brain.root)
    other.observed.adopt()
    (chain,) = chains(other, "User lives in Portland since 2020")
    assert [(device, device)] == [
        (step["device"], said["device"]) for step in chain["steps"] for said in step["sources"]
    ]
    other.close()


def test_what_was_marked_says_so(tmp_path: Path) -> None:
    """Without a model a statement leads to the line it was marked by, and the journal tells what marked it."""
    brain = make_brain(tmp_path / "brain")
    tell(brain, "first", "/remember Der Schlüssel liegt unter dem Stein\n\nWie geht es dir?")
    do(brain, "promote")
    (chain,) = chains(brain, "Der Schlüssel liegt unter dem Stein")
    (step,) = chain["steps"]
    assert ("NEW", "promotion", "offline") == (step["operation"], step["by"], step["found_by"])
    assert ["inbox/first.md"] == [said["prompt"] for said in step["sources"]]
    (event,) = brain.journal.events(kinds={"memory-promoted"})
    assert ["command"] == [one["marked_by"] for one in event.data["statements"]]
    brain.close()
