"""Relative links lead on to where they led when the text moves: from a prompt to a page, from a page to the archive."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

import pytest
from brainiac_plugins.organization.upkeep import Upkeep

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.formats.markdown import find_links
from brainiac.formats.page import new_memory, parse_exchanges
from brainiac.formats.prompt import Exchange, Prompt, Response
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Purpose
from brainiac.testing import command
from tests.support.organized import make_scene
from tests.support.promotions import (
    LTM,
    START,
    Promoted,
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

PORTO = f"{LTM}concrete/porto.md"
UUID = "0199aaaa-0000-7000-8000-000000000001"


def with_porto(folder: Path, engine: ScriptedEngine | None = None) -> Brain:
    """Make a brain with a page to link to."""
    brain = make_brain(folder, engine=engine)
    text = new_memory("Porto", uuid=UUID, now=iso(START), statements=["Porto lies on the Douro."])
    (brain.root / PORTO).write_text(text)
    brain.observed.adopt()
    later(brain)
    return brain


def say(brain: Brain, path: str, text: str, answer: str = "Noted.") -> None:
    """Say something in a file of the inbox, and have it reflected."""
    later(brain, 60)
    at = iso(brain.clock.now())
    exchange = Exchange(f"0199-{at}", Prompt(path, text, sha256="", at=at), Response("", text=answer), at)
    brain.plugins.call("response_arrived", brain=brain, exchange=exchange)


def promoted(brain: Brain) -> Promoted:
    """Promote with success."""
    outcome = promote(brain)
    assert outcome.event is not None
    return outcome


def targets(brain: Brain, path: str) -> list[str]:
    """Return where the relative links of a page lead, each from the root."""
    text = brain.read_text(path) or ""
    links = (link for link in find_links(text) if not link.is_external and not link.is_wiki)
    return [posixpath.normpath(posixpath.join(posixpath.dirname(path), link.target)) for link in links]


def dead(brain: Brain) -> list[str]:
    """Return the links of all pages, the days' too, that lead to nothing."""
    found = []
    for entry in brain.tree.walk(brain.tree.long_term, brain.tree.archive):
        path = brain.tree.relative(entry.path)
        found += [f"{path} -> {target}" for target in targets(brain, path) if not brain.tree.holds(target)]
    return found


@pytest.mark.parametrize(
    ("prompt", "link"),
    [
        ("inbox/q.md", "../memory/long_term/concrete/porto.md"),
        ("inbox/trip/q.md", "../../memory/long_term/concrete/porto.md"),
        ("inbox/notes/q.md", "../../memory/long_term/concrete/porto.md#douro"),
        ("inbox/q.md", "./../memory/long_term/concrete/%70orto.md"),
        ("inbox/q.md", f'../memory/long_term/moved/porto.md "uuid:{UUID}"'),
    ],
)
def test_a_link_typed_in_a_prompt_leads_on_from_every_page(tmp_path: Path, prompt: str, link: str) -> None:
    """From the statement's page, the manifest that quotes it, and the page of the day; doctor is clean, and the same
    sentence said again is the same statement."""
    brain = with_porto(tmp_path / "b")
    say(brain, prompt, f"I live in [Porto]({link}).", answer=f"Nice: [Porto]({link}).")
    promoted(brain)
    page = page_with(brain, "I live in [Porto]").path
    assert [PORTO] == targets(brain, page)
    assert 2 == targets(brain, f"{LTM}events/2026/03/02/2026-03-02.md").count(PORTO)
    assert {} == problems(brain)
    assert [] == dead(brain)
    later(brain)
    say(brain, prompt, f"I live in [Porto]({link}).")
    assert {"REINFORCE": 1} == promoted(brain).statements
    assert 1 == sum("I live in [Porto]" in text for text in statements(brain))


def test_a_day_keeps_the_words_and_what_led_nowhere(tmp_path: Path) -> None:
    """F-LNK-4: on the page of the day only the path of a link that leads somewhere is another; title, fragment, all
    other links and all words stand as they were typed."""
    brain = with_porto(tmp_path / "b")
    others = "[a](nowhere.md) [b](https://x.org/y.md) [[Porto]] [c](#here) `[d](../memory/long_term/concrete/porto.md)`"
    said = f'I like  [*Porto*](../memory/long_term/concrete/porto.md#x "Mine"), {others}.'
    say(brain, "inbox/q.md", said)
    promoted(brain)
    (event,) = parse_exchanges(pages(brain)["events/2026/03/02/2026-03-02.md"].text)
    path = "../memory/long_term/concrete/porto.md#x"
    assert said.replace(path, "../../../../concrete/porto.md#x", 1) == event.user


def test_a_line_of_short_term_memory_links_from_where_it_stands(tmp_path: Path) -> None:
    """A fact typed by hand has its links relative to short-term memory, a ticked task too."""
    brain = with_porto(tmp_path / "b")
    tell(brain, "hello there")
    file = brain.tree.short_term
    text = file.read_text().replace("Decisions\n", "Decisions\n- I live in [Porto](long_term/concrete/porto.md)\n")
    file.write_text(text.replace("### Tasks\n", "### Tasks\n- [x] see [Porto](long_term/concrete/porto.md)\n"))
    promoted(brain)
    assert [PORTO] == targets(brain, page_with(brain, "[Porto]").path)
    assert [] == dead(brain)
    assert {} == problems(brain)


def test_the_steps_of_a_how_to_lead_on(tmp_path: Path) -> None:
    """And told again they are the same steps."""
    brain = with_porto(tmp_path / "b")
    steps = "How I travel:\n1. read [Porto](../memory/long_term/concrete/porto.md)\n2. pack the bag"
    say(brain, "inbox/q.md", steps)
    promoted(brain)
    skill = next(path for path in pages(brain) if path.startswith("skills/"))
    assert [PORTO] == targets(brain, LTM + skill)
    later(brain)
    say(brain, "inbox/q.md", steps)
    assert {"REINFORCE": 1} == promoted(brain).statements
    assert [] == dead(brain)


@pytest.mark.parametrize("action", ["replace", "end"])
def test_what_a_model_makes_of_two_statements_keeps_the_links_of_both(tmp_path: Path, action: str) -> None:
    """One comes from a page, the other from a prompt: merged or replaced, both lead on from the page, also from its
    History and from the proposal in review.md."""
    link = "[Porto](../memory/long_term/concrete/porto.md)"

    def consolidate(request: ConsolidateRequest) -> Consolidation:
        known = next((each for each in request.existing if "boat in" in each.content), None)
        if known is None or request.refused:
            verbatim = engine.verbatim(request)
            assert isinstance(verbatim, Consolidation)
            return verbatim
        text = request.said[0].event.user
        text = f"{known.content}; {text}" if action == "replace" else text
        return operations({"action": action, "text": text, "ids": [known.id]})(request)

    engine = ScriptedEngine({Purpose.CONSOLIDATE: consolidate})
    brain = with_porto(tmp_path / "b", engine)
    say(brain, "inbox/q.md", f"I have a boat in {link}.")
    promoted(brain)
    later(brain)
    say(brain, "inbox/trip/q.md", f"I have no boat in {link.replace('../', '../../', 1)} any more.")
    promoted(brain)
    page = page_with(brain, "boat").path
    assert 2 <= len(targets(brain, page))
    assert {PORTO} == set(targets(brain, page))
    assert [] == dead(brain)
    assert {} == problems(brain)


def test_a_correction_of_a_statement_with_a_link_sticks(tmp_path: Path) -> None:
    """What a person took out is not restated from what was said before, although the link's path is another there."""
    brain = with_porto(tmp_path / "b")
    text = "I live in [Porto](../memory/long_term/concrete/porto.md)."
    say(brain, "inbox/q.md", text)
    promoted(brain)
    page = brain.root / page_with(brain, "[Porto]").path
    say(brain, "inbox/q.md", text)
    later(brain, 60)
    page.write_text("".join(line for line in page.read_text().splitlines(keepends=True) if "[Porto]" not in line))
    os.utime(page, (brain.clock.now().timestamp(),) * 2)  # the clock of these tests is not the system's
    brain.observed.note_change(brain.tree.relative(page))
    later(brain)
    outcome = promoted(brain)
    assert not any("[Porto]" in each for each in statements(brain))
    assert any("by hand" in fate.reason for fate in outcome.candidates.values())


def test_links_of_a_page_that_is_moved_or_archived_lead_on(tmp_path: Path) -> None:
    """With and without uuid, to pages, prompts and other files: moved up, split off or put into the archive."""
    scene = make_scene(tmp_path / "b")
    root = scene.brain.root
    (root / "inbox/q.md").write_text("hello")
    (root / "memory/map.png").write_bytes(b"x")
    for number in range(12):
        scene.page(f"concrete/people/p{number}")
    links = "[a](../people/p1.md) [b](../../../../inbox/q.md) ![c](../../../map.png) [d](gone.md) [e](/etc/passwd)"
    old = scene.page("concrete/past/thing", days_ago=400, body=links)
    Upkeep(scene.brain).tend()
    command(scene.brain, "organize")
    path = scene.pages()[old]
    assert path.startswith("memory/archive/")
    leading = [f"{LTM}concrete/people/p1.md", "inbox/q.md", "memory/map.png"]
    assert leading == [target for target in targets(scene.brain, path) if scene.brain.tree.holds(target)]
    assert "[d](gone.md) [e](/etc/passwd)" in (scene.brain.read_text(path) or "")
