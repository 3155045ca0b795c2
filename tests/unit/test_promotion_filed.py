"""What a person sees of consolidation, by files and with a model behind an HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.filed import REVIEW, Filed, filed

TOLD, CHANGED = "I pay 640 euros rent in Graz.", "My rent is 700 euros now."
WISH = "Please forget that I live in Karlsruhe."


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Filed]:
    with filed(tmp_path) as one:
        yield one


def tick(brain: Filed) -> None:
    """Put a tick into every box of the review, as a person does, and let a daemon see it."""
    brain.world.save(REVIEW, brain.file(REVIEW).replace("- [ ]", "- [x]"))
    brain.world.run()


def wish(brain: Filed) -> None:
    """Ask to forget where the person lives; the model says which memory that is."""

    def reflect(text: str) -> dict[str, list[str]]:
        if "## Existing Long-Term Memory" not in text:
            return {"forget": ["forget that I live in Karlsruhe"]} if WISH in text.partition("## New Event")[2] else {}
        rows = [line.lstrip("> ") for line in text.splitlines() if line.lstrip("> ").startswith("[m")]
        return {"forget": [row[1:].partition("]")[0] for row in rows if "Kriegsstraße" in row]}

    brain.answers["reflect"] = reflect
    assert "Hidden from models" in brain.tell(WISH, "wish")


@pytest.mark.parametrize("mark", ["x", "-"])
def test_a_wish_to_forget_reaches_what_was_last_said(brain: Filed, mark: str) -> None:
    """The summary is hidden with what it quotes; ticked, that is taken out; declined, it is back. Seeds: I6."""
    brain.tell("I live in Karlsruhe, in the Kriegsstraße.")
    brain.promote()
    assert "Kriegsstraße" in brain.file("memory/short_term.md")
    wish(brain)
    brain.sent.clear()
    brain.tell("Where is my home?", "asked")
    assert not any("Kriegsstraße" in text for texts in brain.sent.values() for text in texts)
    brain.world.save(REVIEW, brain.file(REVIEW).replace("- [ ]", f"- [{mark}]"))
    brain.world.run()
    assert (mark == "-") == ("Kriegsstraße" in brain.file("memory/short_term.md"))
    brain.sent.clear()
    brain.tell("And where is it?", "again")
    assert (mark == "-") == any("Kriegsstraße" in text for text in brain.sent["answer"])


def test_a_wish_to_forget_reaches_the_summary_of_a_model(brain: Filed) -> None:
    """In whatever words it tells it; ticked, that summary is taken out."""
    brain.answers["summarize"] = {"text": "They told of a flat in Baden."}
    brain.tell("Good morning!", "greeting")
    brain.tell("I live in Karlsruhe, in the Kriegsstraße.")
    brain.world.save("memory/long_term/concrete/home.md", "# Home\n\n- The door is green.\n")
    brain.states("User lives in Karlsruhe", "I live in Karlsruhe", exchange="e2", page={"path": "concrete/home.md"})
    assert "was edited a moment ago" in brain.promote()
    assert "a flat in Baden" in brain.file("memory/short_term.md")
    wish(brain)
    brain.sent.clear()
    brain.tell("Where is my home?", "asked")
    assert brain.sent["answer"]
    assert not any("Baden" in text for texts in brain.sent.values() for text in texts)
    tick(brain)
    assert "Baden" not in brain.file("memory/short_term.md")


def test_what_the_person_took_up_is_theirs(brain: Filed) -> None:
    """F-MEM-9: the assistant's quote beside one of the person's own stays as evidence; alone it is the assistant's."""
    brain.answers["answer"] = "The Halcyon in Linden Street bakes rye on Fridays."
    quotes = ["I will buy my bread there on Fridays", "The Halcyon in Linden Street"]
    evidence = [{"exchange": "e1", "quote": quote} for quote in quotes]
    brain.tell("Where is a good bakery? I will buy my bread there on Fridays.")
    brain.states("User buys bread at the Halcyon on Fridays", quotes[0], evidence=evidence)
    brain.promote()
    assert "User buys bread at the Halcyon on Fridays ^" in brain.pages
    (promoted,) = brain.world.cli("log", "--kind", "memory-promoted", "--json").json
    record = promoted["data"]["statements"][0]
    assert ("person", quotes) == (record.get("origin", "person"), [said["quote"] for said in record["evidence"]])
    assert "The Halcyon" in brain.tell("And what else is there?", "else")
    brain.rows.clear()
    brain.states("The Halcyon bakes rye on Fridays", "bakes rye on Fridays")
    brain.promote()
    assert "The Halcyon bakes rye on Fridays (assistant: openai/test-model)" in brain.pages


def test_only_what_was_planned_for_a_day_is_over(brain: Filed) -> None:
    """What recurs from a day on is not asked about when its first day has passed; a plan for that day is. Seeds: I5."""
    plan, recurring = "User flies to Porto on 2025-09-17", "User has choir on Wednesdays at 19:00"
    brain.tell("On Wednesday I fly to Porto. Choir begins next Wednesday, each week at 19:00.")
    brain.states(plan, "I fly to Porto", valid_from="2025-09-17")
    brain.states(recurring, "each week at 19:00", valid_from="2025-09-17")
    brain.promote()
    brain.world.clock.advance(4 * 86400)
    brain.rows.clear()
    brain.tell("Porto was lovely.", "after")
    brain.promote()
    shown = brain.sent["consolidate"][-1]
    assert [True, False] == [
        "over?" in line for text in (plan, recurring) for line in shown.splitlines() if text in line
    ]


def test_a_second_reader_without_a_valid_answer_holds_nothing_up(brain: Filed) -> None:
    """What it was to read stands as it was and waits in review, told as an error of that purpose; the run ends."""
    brain.answers["verify"] = "I would rather not."
    brain.tell(TOLD)
    brain.states("User pays 640 euros rent in Graz", "640 euros rent")
    printed = brain.promote()
    assert "1 exchange filed" in printed
    assert 2 == len(brain.sent["verify"])
    assert "640" not in brain.pages
    (line,) = [line for line in brain.file(REVIEW).splitlines() if line.startswith("- [ ]")]
    assert "User pays 640 euros rent in Graz" in line
    assert "it gave no valid answer" in line
    status = brain.world.cli("status").out
    assert "promotion in verify: `openai/test-model` gave no valid answer for `verify`, twice" in status
    assert "it gave no valid answer" in brain.world.cli("digest").out
    assert "failed in verify" in brain.world.cli("log").out
    brain.promote()
    assert 2 == len(brain.sent["verify"])
    tick(brain)
    assert "User pays 640 euros rent in Graz ^" in brain.pages


def test_what_is_ticked_later_carries_the_day_on_which_it_was_said(brain: Filed) -> None:
    """Not that of the tick: in History and as the day from which the new statement is known."""
    brain.tell(TOLD)
    brain.states("User pays 640 euros rent in Graz", "640 euros rent")
    brain.promote()
    brain.world.clock.advance(2 * 86400)  # 2025-09-17
    brain.tell(CHANGED, "changed")
    brain.answers["verify"] = lambda text: {"verdicts": [{"item": "1", "verdict": "cannot tell", "reason": "unclear"}]}
    brain.rows.clear()
    brain.states("User pays 700 euros rent in Graz", "700 euros", "replace", ids=["s1"])
    brain.promote()
    brain.world.clock.advance(9 * 86400)
    tick(brain)
    assert "User pays 700 euros rent in Graz ^" in brain.pages
    assert "~~User pays 640 euros rent in Graz" in brain.pages
    assert "until 2025-09-17; replaced by" in brain.pages
    del brain.answers["verify"]
    brain.tell("So much for the rent.", "after")
    brain.rows.clear()
    brain.promote()
    assert "User pays 700 euros rent in Graz (2025-09-17" in brain.sent["consolidate"][-1]


def test_what_was_told_since_the_last_run_is_seen_beside_what_stands(brain: Filed) -> None:
    """A model is shown the newer words first, with their day; without one the older are marked with them."""
    brain.tell(TOLD)
    brain.states(TOLD, "640 euros rent")
    brain.promote()
    brain.world.clock.advance(4 * 86400)
    brain.tell(CHANGED, "changed")
    brain.tell("How much rent do I pay?", "asked")
    shown = brain.sent["answer"][-1]
    assert -1 < shown.index(CHANGED) < shown.index("## Relevant Long-Term Memory") < shown.rindex(TOLD)
    assert "Short-term memory counts as much as long-term memory and is newer" in shown
    brain.world.save("system/config.yaml", "recall: {embedder: none}\nllm: {model: offline}\n")
    answer = brain.tell("How much rent do I pay in all?", "keyless")
    assert answer.index(TOLD) < answer.index(f"(later, 2025-09-19: “{CHANGED}”)")


def test_a_changed_step_of_a_how_to_keeps_the_other_numbers(brain: Filed) -> None:
    """All steps are given again: the numbers of those that stay are known, whether it is stated anew or replaced."""
    said = "My bread: 450 g flour, 350 g water, 40 minutes of rest, bake at 250."
    steps = ["Mix 450 g flour and 350 g water", "Rest 40 minutes", "Bake at 250"]
    brain.tell(said)
    bread = {"title": "Bread", "kind": "skill", "folder": "kitchen"}
    brain.states("How User bakes bread", "My bread", page=bread, steps=steps)
    brain.promote()
    (path,) = (path for path in brain.world.tree() if path.endswith("kitchen/bread.md"))
    for name, (temperature, former) in {"new": (230, 250), "replace": (220, 230)}.items():
        brain.rows.clear()
        brain.sent.clear()
        brain.tell(f"The bread burns, I start at {temperature} now.", name)
        changed = [*steps[:2], f"Bake at {temperature}"]
        page = {"path": "skills/kitchen/bread.md", "kind": "skill"}
        ids = ["s1"] if name == "replace" else []
        brain.states("How User bakes bread", f"I start at {temperature}", name, page=page, steps=changed, ids=ids)
        brain.promote()
        assert 1 == len(brain.sent["consolidate"]), brain.sent["consolidate"][-1]
        holds, _, history = brain.file(path).partition("## History")
        assert (True, False) == (f"Bake at {temperature}" in holds, f"Bake at {former}" in holds)
        assert f"~~Bake at {former}~~" in history
        assert 1 == holds.count("How User bakes bread")
        assert "450 g flour and 350 g water" in holds
