"""`brainiac search` and `brainiac reindex` from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from brainiac.llm.schemas import PageRef, Purpose
from brainiac.testing import World, make_brain
from tests.support.commands import Shell, do
from tests.support.models import set_sections
from tests.support.promotions import ScriptedEngine, operations, set_model, tell, with_model


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    brain = make_brain(tmp_path / "brain")
    (brain.tree.long_term / "concrete/mira.md").write_text("# Mira\n\n- Mira is a botanist in Oslo.\n")
    brain.close()
    return Shell(capsys, str(tmp_path / "brain"))


def test_search_finds_what_was_written_a_moment_ago(shell: Shell) -> None:
    """A page saved by hand is found at once, with its path."""
    found = shell("search", "botanist", "--json").json
    assert "memory/long_term/concrete/mira.md" == found["hits"][0]["path"]
    assert "botanist in Oslo" in shell("search", "who", "is", "Mira").out


def test_search_that_finds_nothing_says_so(shell: Shell) -> None:
    """A miss is told, and is no error."""
    done = shell("search", "xylophone")
    assert 0 == done.code
    assert (done.out + done.err).strip()


def test_reindex_keeps_what_is_found(shell: Shell) -> None:
    """The index is derived: built anew, it finds the same page first."""
    before = shell("search", "botanist", "--json").json["hits"][0]
    assert 0 == shell("reindex").code
    after = shell("search", "botanist", "--json").json["hits"][0]
    assert (before["path"], before["text"]) == (after["path"], after["text"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["botanist", "after:2027-13"], "after:2027-13 is no time; give a day (2026-03-01)"),
        (["botanist", "before:2026-02-30"], "before:2026-02-30 is no time"),
        (["botanist", 'after:"no day"'], 'after:"no day" is no time'),
        (
            ["botanist", "type:banana"],
            "there are concrete, events, skills, short-term, archive",
        ),
        ([""], "there is nothing to look for; give words"),
        (["botanist", "type:banana", "after:soon"], "after:soon"),
    ],
)
def test_a_field_that_cannot_be_read_is_refused(shell: Shell, words: list[str], told: str) -> None:
    """Nothing is shown as if a filter had counted that did not."""
    done = shell("search", *words)
    assert (1, "", True) == (done.code, done.out, told in done.err)


def test_fields_that_can_be_read_narrow(shell: Shell, tmp_path: Path) -> None:
    """Days in words, folders of one's own as types, and words left out behind `--`."""
    folder = tmp_path / "brain/memory/long_term/Plants"
    folder.mkdir()
    (folder / "fern.md").write_text("---\ncreated_at: 2020-01-01T00:00:00Z\n---\n# Fern\n\n- A botanist loves ferns.\n")
    assert "ferns" in shell("search", "botanist", "type:Plants").out
    assert "Oslo" not in shell("search", "botanist", "type:plants").out
    for field in (
        "after:yesterday",
        'after:"last week"',
        "after:7d",
        "after:22/11/2026",
        "type:concrete",
        "type:event",
    ):
        assert "ferns" not in shell("search", "botanist", field).out
    assert "ferns" in shell("search", "botanist", "before:yesterday").out
    done = shell("search", "botanist", "--brain", str(tmp_path / "brain"), "--", "-Oslo")
    assert (True, False) == ("ferns" in done.out, "Oslo" in done.out)


def test_what_is_quoted_must_stand_so(shell: Shell) -> None:
    """Where nothing has the quoted words of a pasted error, the advice is to search without the quotes."""
    quoted = shell("search", 'botanist: could not open "plants.db"').err
    assert "without the quotes more may be found" in quoted
    assert "Fewer words" not in quoted
    without = shell("search", "xylophone", "type:skills").err
    assert ("Fewer words" in without, "quotes" in without) == (True, False)


def days_and_texts(world: World, query: str) -> set[tuple[str, str]]:
    """Return the statements and paragraphs that a command finds, each with the day that it shows."""
    hits = json.loads(world.cli("search", f"{query} type:concrete", "--json", "-n", "20").out)["hits"]
    return {(hit["at"][:10], hit["text"]) for hit in hits}


RABBIT, CELLO, MEAT = "Lotte has a rabbit.", "Lotte plays the cello.", "Lotte eats no meat."


@pytest.fixture
def told(tmp_path: Path) -> World:
    """A page with statements of three days, the fifteenth, the eighteenth and the twenty-first."""
    world = World(tmp_path)
    set_sections(world.root, "recall: {embedder: none}\n")
    set_model(world.root)
    for text in (RABBIT, CELLO, MEAT):
        with world.opened() as brain:
            operation = {"text": text, "page": PageRef(title="Lotte", folder="people")}
            with_model(brain, ScriptedEngine({Purpose.CONSOLIDATE: operations(operation)}))
            tell(brain, text)
            do(brain, "promote")
        world.clock.advance(3 * 86400)
    return world


def test_days_narrow_by_the_day_that_a_hit_shows(told: World) -> None:
    """F-FND-4: a statement's is the day on which it was said, not that of the last change of its page.

    So through a door, and so in an index that is made anew.
    """
    assert days_and_texts(told, "Lotte") == {("2025-09-15", RABBIT), ("2025-09-18", CELLO), ("2025-09-21", MEAT)}
    for _ in range(2):
        assert days_and_texts(told, "Lotte after:2025-09-21") == {("2025-09-21", MEAT)}
        assert days_and_texts(told, "Lotte before:2025-09-18") == {("2025-09-15", RABBIT)}
        assert days_and_texts(told, "after:2025-09-18 before:2025-09-21") == {("2025-09-18", CELLO)}
        assert days_and_texts(told, "Lotte after:2025-09-22") == set()
        assert 0 == told.cli("reindex").code
    found = told.door("search", query="Lotte type:concrete after:2025-09-16 before:2025-09-21")["results"]
    assert ["2025-09-18"] == [result["date"] for result in found]
    (page,) = (
        path
        for path, text in told.tree().items()
        if "/concrete/" in path and f"- {RABBIT}" in text and f"- {MEAT}" in text
    )
    text = told.tree()[page].replace("updated_at: 2025-09-21", "updated_at: 2025-09-23")
    told.save(page, text.replace(f"- {CELLO}", f"- Lotte sings.\n- {CELLO}"))
    assert days_and_texts(told, "Lotte after:2025-09-22") == {("2025-09-23", "- Lotte sings.")}
    assert days_and_texts(told, "Lotte before:2025-09-18") == {("2025-09-15", RABBIT)}


def test_a_day_that_a_sync_brings_later_counts_once_it_is_there(told: World, tmp_path: Path) -> None:
    """A page may arrive before the journal that says when its statements were said."""
    other = World(tmp_path / "desk", name="desk", like=told)
    shutil.copytree(told.root / "memory", other.root / "memory", dirs_exist_ok=True)
    assert days_and_texts(other, "Lotte") == {("2025-09-21", text) for text in (RABBIT, CELLO, MEAT)}
    shutil.copytree(told.root / "logs/journal", other.root / "logs/journal", dirs_exist_ok=True)
    assert ("2025-09-15", RABBIT) in days_and_texts(other, "Lotte")
    assert days_and_texts(other, "Lotte before:2025-09-18") == {("2025-09-15", RABBIT)}
