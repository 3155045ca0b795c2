"""Budget and tokens: what is cut, in which order, and what never is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac import ModelError
from brainiac.llm.context.assembler import Assembler
from brainiac.llm.context.blocks import Block, Stability, budget_tokens, fit, shortened, tokens_of
from brainiac.search.documents import Hit
from tests.support import promotions
from tests.support.commands import do
from tests.support.examples import examples
from tests.support.models import MODEL, answer_request, hit_of, make_brain, prompt_of, short_term, shown

ORIGINS = {"user": "person", "ai": "assistant"}


def words(text: str) -> int:
    return len(text.split())


def block(name: str, parts: int, order: int | None, **fields: Any) -> Block:
    return Block(name, [f"{name} part {n}" for n in range(parts)], Stability.LONG_TERM, cut_order=order, **fields)


def test_cut_order_takes_whole_parts_of_the_least_needed_first() -> None:
    """Long-term memory goes before background, the event log last, identity never.

    Seeds: C3.
    """
    blocks = [
        block("identity", 2, None),
        block("log", 5, 60, drops="first-quarters"),
        block("hubs", 5, 20),
        block("ltm", 5, 10),
    ]
    left = []
    for limit in (70, 60, 45, 30, 16):
        fitted, _ = fit(blocks, limit, words)
        left.append({b.name: len(b.parts) for b in fitted})
        assert sum(tokens_of(b, words) for b in fitted) <= limit
    assert {"identity": 2, "log": 5, "hubs": 5, "ltm": 5} == left[0]
    assert {"identity": 2, "log": 5, "hubs": 5, "ltm": 3} == left[1]
    assert {"identity": 2, "log": 5, "hubs": 4} == left[2]
    assert {"identity": 2, "log": 5} == left[3]
    assert {"identity", "log"} == set(left[4])


def test_cuts_are_told_with_their_reason() -> None:
    """What was left out is counted, by block."""
    _, cuts = fit([block("identity", 1, None), block("ltm", 5, 10)], 16, words)
    assert [("ltm", 2, "over the budget of all blocks")] == [(cut.block, cut.parts, cut.reason) for cut in cuts]


def test_what_is_never_cut_and_does_not_fit_is_an_error() -> None:
    """The error names the largest block, the sizes and what to do."""
    with pytest.raises(ModelError, match="`prompt` takes 400") as caught:
        fit([block("identity", 1, None), block("prompt", 100, None)], 50, words)
    assert not caught.value.retryable
    assert "Shorten" in caught.value.advice


@examples(200)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=80), st.integers(40, 300))
def test_trimming_by_quarters_keeps_the_front_still(sizes: list[int], room: int) -> None:
    """As a log grows, its front moves only in steps of a quarter, never back, and what is kept always fits."""
    fronts = []
    for upto in range(1, len(sizes) + 1):
        parts = [" ".join([f"{n}"] * sizes[n]) for n in range(upto)]
        log = Block("log", parts, Stability.EVENT_LOG, cut_order=60, drops="first-quarters", share=room / 1000)
        fitted, _ = fit([log], 1000, words)
        kept = fitted[0].parts if fitted else []
        assert sum(words(part) + 1 for part in kept) <= room
        fronts.append(int(kept[0].split()[0]) if kept else upto)
    assert sorted(fronts) == fronts
    total = sum(size + 1 for size in sizes)
    assert len(set(fronts)) <= 2 + total // max(1, room // 4)


def test_event_log_stays_the_prefix_while_it_grows(tmp_path: Path) -> None:
    """With a log far over its share, most turns begin with the turn before, and a trim comes once a quarter.

    Seeds: C3, C4.
    """
    assembler = Assembler(make_brain(tmp_path, {"context": {"budget_tokens": 4000}}))
    previous, shared = "", 0
    for events in range(120, 160):
        memory = assembler.assemble(
            answer_request(short_term=short_term(events, goals=(), facts=(), tasks=())), model=MODEL
        )
        log = memory.text[: memory.text.index("## Relevant Long-Term Memory")].rstrip()
        shared += bool(previous) and log.startswith(previous)
        assert memory.tokens <= 4000
        assert f"Thing {events - 1} happened." in log
        previous = log
    assert shared >= 36


def test_prompt_over_the_window_is_a_clear_error(tmp_path: Path) -> None:
    """Identity and prompt are never cut: a prompt that is too long is said to be."""
    brain = make_brain(tmp_path, {"context": {"budget_tokens": 3000}})
    with pytest.raises(ModelError, match="`user prompt` takes"):
        shown(brain, answer_request(prompt_of("word " * 4000)))


def test_long_term_memory_is_chosen_by_relevance_and_capped(tmp_path: Path) -> None:
    """The best pages go in while there is room, each by whole statements."""
    brain = make_brain(tmp_path, {"context": {"budget_tokens": 4000, "memory_tokens": 700}})
    hits = [
        hit_of(f"Statement {n} is of some length. " * 6, path=f"memory/long_term/concrete/{n}.md", anchor=f"a{n}")
        for n in range(50)
    ]
    memory = shown(brain, answer_request(hits=hits))
    (found,) = [b for b in memory.blocks if b.name == "long-term memory"]
    assert 3 < len(found.parts) < 15
    assert "Statement 0 " in found.parts[0]
    assert memory.block_tokens["long-term memory"] <= 700


def test_tokens_sent_do_not_grow_with_memory(tmp_path: Path) -> None:
    """However much is found, found memories take `memory_tokens`, and near all of them."""
    brain = make_brain(tmp_path)
    limit = brain.settings.context.memory_tokens
    for found in (80, 800):
        hits = [hit_of(f"Statement {n}. " * 5, path=f"memory/long_term/concrete/{n}.md") for n in range(found)]
        tokens = shown(brain, answer_request(hits=hits)).block_tokens["long-term memory"]
        assert 0.9 * limit < tokens <= limit


def test_memory_takes_what_is_worth_most_for_its_tokens(tmp_path: Path) -> None:
    """Many short hits come before a long one that is little better; hits of a page stand in its order, named once."""
    brain = make_brain(tmp_path, {"context": {"memory_tokens": 200}})
    path = "memory/long_term/events/2026/01/09/2026-01-09.md"
    hits = [
        hit_of("long " * 150, path="memory/long_term/concrete/long.md", score=5.0),
        *(
            hit_of(f"Short {n}.", kind="exchange", path=path, score=4.9, speaker="user", position=9 - n)
            for n in range(9)
        ),
    ]
    memory = shown(brain, answer_request(hits=hits))
    (found,) = [block for block in memory.blocks if block.name == "long-term memory"]
    assert "long long" not in found.text
    assert [f"> Short {n}." for n in range(8, -1, -1)] == [line for line in found.text.splitlines() if "Short" in line]
    assert 1 == found.text.count("User:")


def test_a_model_is_shown_what_is_near_and_one_reply(tmp_path: Path) -> None:
    """What is far behind the best hit is left out, however much room there is; of replies the best hit's is shown."""
    page = "memory/long_term/events/2026/01/09/2026-01-09.md"

    def turn(text: str, number: int, score: float, speaker: str = "user") -> Hit:
        fields: dict[str, Any] = {"kind": "exchange", "path": page, "anchor": f"x{number}", "origin": ORIGINS[speaker]}
        return hit_of(text, **fields, score=score, speaker=speaker, position=len(text))

    hits = [
        turn("How do I stretch?", 1, 9.0),
        turn("Slowly, of course.", 1, 9.0, "ai"),
        turn("And for a whole minute.", 1, 9.0, "ai"),
        turn("Should I run?", 2, 8.0),
        turn("Yes, in the morning.", 2, 8.0, "ai"),
        turn("Rest after a run.", 3, 7.5, "ai"),  # found by its own words
        turn("The bus was late.", 4, 1.0),
    ]
    memory = shown(make_brain(tmp_path), answer_request(hits=hits))
    (found,) = [block for block in memory.blocks if block.name == "long-term memory"]
    listed = [
        "How do I stretch?",
        "Slowly, of course.",
        "And for a whole minute.",
        "Should I run?",
        "Rest after a run.",
    ]
    assert sorted(listed) == sorted(line[2:] for line in found.text.splitlines() if line.startswith("> "))


def test_a_how_to_is_whole_where_it_is_asked_for(tmp_path: Path) -> None:
    """All that was found of the how-to with the best hit is shown; of another one the line that is nearest."""
    bread, soup = ("memory/long_term/skills/bread.md", "memory/long_term/skills/soup.md")
    lines = [("Bread", bread, 9.0), ("Pan", soup, 8.0), ("Pot", soup, 8.0), ("Mix", bread, 1.0), ("Bus", "a.md", 1.0)]
    hits = [hit_of(f"{text}.", path=path, score=score, anchor=text) for text, path, score in lines]
    memory = shown(make_brain(tmp_path), answer_request(hits=hits))
    (found,) = [block for block in memory.blocks if block.name == "long-term memory"]
    assert ["Bread", "Pan", "Mix"] == [text for text, _, _ in lines if f"- {text}." in found.text]


def test_what_a_statement_says_is_not_shown_raw_too(tmp_path: Path) -> None:
    """A raw exchange is left out where a statement that is shown rests on all of its words, and stands where not."""
    brain = promotions.make_brain(tmp_path / "b", engine=promotions.ScriptedEngine())
    promotions.tell(brain, "My locker at the gym has the code 4711.")
    promotions.tell(brain, "The gym shows its timetable.\n\nIts sauna opens at nine on Mondays, and the gym at six.")
    promotions.later(brain)
    do(brain, "promote")
    page = promotions.page_with(brain, "sauna")
    said = brain.read_text(page.path) or ""
    (brain.root / page.path).write_text(said.replace("opens at nine", "opens at eleven"))  # the person's from now on
    brain.observed.adopt()
    hits = brain.recall.search("When does the gym open, and which code has my locker there?", limit=64, now=brain.now())
    raw = {hit.text for hit in hits if hit.kind == "exchange"}
    assert any("4711" in text for text in raw)
    memory = shown(brain, answer_request(hits=hits, short_term=short_term([])))
    (found,) = [block for block in memory.blocks if block.name == "long-term memory"]
    assert 1 == found.text.count("4711")
    assert "opens at eleven" in found.text
    assert "opens at nine" in found.text


def test_budget_follows_the_window_and_the_setting(tmp_path: Path) -> None:
    """A published window bounds the setting; a model no list knows takes the setting as its window.

    Seeds: R11.
    """
    contexts: tuple[dict[str, int], ...] = ({}, {"budget_tokens": 3000}, {"budget_tokens": 10**6})
    settings = [make_brain(tmp_path / f"{n}", {"context": given}).settings for n, given in enumerate(contexts)]
    assert [32_000, 3000, 128_000 - 4096] == [budget_tokens(given, "openai/gpt-4o") for given in settings]
    assert [8192 - 2048, 3000, 10**6] == [budget_tokens(given, "openai/own") for given in settings]


def test_shortening_keeps_whole_sentences() -> None:
    """Nothing ends mid-sentence; an ellipsis says that there is more."""
    text = "One is here. Two is there. Three is gone.\nFour stays."
    assert text == shortened(text, 50, words)
    assert "One is here.\nTwo is there.\n…" == shortened(text, 10, words)
    assert "…" == shortened("a " * 100, 10, words)


def test_lists_are_right_however_much_is_cut(tmp_path: Path) -> None:
    """Lists above the log and the changes told in it add up to what stands, through trims, ticks and removals."""
    import re

    from brainiac.formats.short_term import Item

    assembler = Assembler(make_brain(tmp_path, {"context": {"budget_tokens": 2500}}))
    for turn in range(1, 90):
        tasks = tuple(Item(f"Task {n}", is_done=n % 3 == turn % 2) for n in range(turn // 4, turn // 2))
        text = assembler.assemble(
            answer_request(short_term=short_term(turn, goals=(), facts=(), tasks=tasks)), model=MODEL
        ).text
        text = text[text.index("## Short-Term Memory") : text.index("## User Prompt")]
        shown = set(re.findall(r"^> - (\[[x ]\] Task \d+)$", text, re.MULTILINE))
        for change, line in re.findall(r"^> - (now in|no longer in) Tasks: (.*)$", text, re.MULTILINE):
            shown = shown | {line} if change == "now in" else shown - {line}
        assert {f"[{'x' if item.is_done else ' '}] {item.text}" for item in tasks} == shown
