"""The brain of tests/data/month_brain is taken up: opened, asked, explained, taken back, by files and commands alone.

Every later version is held to it; its README tells what stands in it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from brainiac.events import FORMER_KINDS, KINDS, kinds_of
from brainiac.testing import World
from tests.support.month_brain import unpacked

pytestmark = pytest.mark.slow

EXPECTED: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data/month_brain/expected.json").read_text("utf-8")
)
CONCRETE = "memory/long_term/concrete"


@pytest.fixture(scope="module", params=["as packed", "cloned"])
def taken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The brain after the first run of the present program, on its own machine, and on one that never saw it."""
    world = unpacked(tmp_path_factory.mktemp("month"), has_state=request.param == "as packed")
    if request.param == "cloned":
        done = world.cli("takeover")
        assert done.code == 0, done
    world.run()
    return world


def test_what_the_machine_keeps_lies_in_one_file(taken: World) -> None:
    """What a former version kept in files of its own is taken over, and the files are gone."""
    names = {path.name for path in taken.home.rglob("*")}
    assert "state.db" in names
    assert set() == names & {"observed.sqlite", "observed.sqlite-wal", "write_ahead.jsonl", "daemon.json"}


def is_clone(world: World) -> bool:
    """Return whether this is the machine that never saw the brain."""
    return "(device clone-" in world.cli("status").out


@pytest.fixture
def month(tmp_path: Path) -> World:
    """The brain as packed, taken up, for a test that changes it."""
    world = unpacked(tmp_path)
    world.run()
    return world


def test_every_kind_of_event_is_in_it_and_read(taken: World) -> None:
    """`log` lists each kind that the program knew when it was packed, as the kind it is known by today."""
    assert kinds_of(*EXPECTED["kinds"]) <= KINDS.keys()
    assert FORMER_KINDS.keys() <= set(EXPECTED["kinds"])
    devices = {path.split("/")[2] for path in taken.tree() if path.startswith("logs/journal/") and ".jsonl" in path}
    assert {"laptop-0a1b2c", "tablet-0a1b2c"} <= devices
    lines = [line for path, text in taken.tree().items() if path.endswith(".jsonl") for line in text.splitlines()]
    assert set(EXPECTED["kinds"]) <= {json.loads(line)["kind"] for line in lines}


def test_log_shows_each_kind(month: World) -> None:
    """Of its own machine every kind is shown by `log --kind`, with what happened."""
    journal = [
        text for path, text in month.tree().items() if path.startswith("logs/journal/laptop") and "jsonl" in path
    ]
    own = {json.loads(line)["kind"] for text in journal for line in text.splitlines()}
    every = [word for kind in sorted(own) for word in ("--kind", kind)]
    shown = month.cli("log", "-n", "1000", "--json", *every).json
    assert kinds_of(*own) == {event["kind"] for event in shown}
    assert month.cli("log", "-n", "1000").out
    assert month.cli("log", "-n", "1000", "--memory").out


def test_what_waited_is_taken_up_once(taken: World) -> None:
    """A prompt is answered, a note and an edit are kept, and each stands in memory once.

    So does the exchange whose commit a crash cut short, where that machine's own state is there to finish it.
    """
    tree = taken.tree()
    assert "inbox/open.response.md" in tree
    memory = "\n".join(text for path, text in tree.items() if path.startswith("memory/") and "/." not in path)
    lines = [*EXPECTED["waited"], *([] if is_clone(taken) else EXPECTED["in_flight"])]
    assert dict.fromkeys(lines, 1) == {line: memory.count(line) for line in lines}
    assert [] == [path for path in tree if path.startswith("inbox/") and "response-2" in path]


def test_what_was_answered_is_not_answered_again(taken: World) -> None:
    """Of all prompts only those that waited get an answer; the other answers stay byte for byte."""
    world = unpacked(taken.folder / "fresh")
    before = {path: text for path, text in world.tree().items() if ".response" in path}
    after = {path: text for path, text in taken.tree().items() if ".response" in path}
    assert {} == {path: text for path, text in before.items() if after.get(path) != text}
    assert {"inbox/open.response.md"} >= after.keys() - before.keys() - {"inbox/crash.response.md"}


@pytest.mark.parametrize("question", EXPECTED["answers"])
def test_it_answers(taken: World, question: str) -> None:
    """Questions in three languages are answered from what stands in it, whatever its origin."""
    asked = taken.drop(f"asked/{list(EXPECTED['answers']).index(question)}.md", question)
    taken.run()
    assert EXPECTED["answers"][question] in (asked.answer or ""), asked.error


@pytest.mark.parametrize("query", EXPECTED["searches"])
def test_search_finds(taken: World, query: str) -> None:
    """`search` finds statements, pages by hand, imported chats, what is archived, and what another device wrote."""
    assert EXPECTED["searches"][query] in taken.cli("search", query, "-n", "30").out


@pytest.mark.parametrize("name", EXPECTED["why"])
def test_why_explains(month: World, name: str) -> None:
    """Each kind of origin is told: a model's statement down to what was typed, hand-written, imported, corrected."""
    done = month.cli("why", name)
    assert done.code == 0, done.err
    assert [] == [words for words in EXPECTED["why"][name] if words not in done.out], done.out


def test_the_past_can_be_read(month: World) -> None:
    """`show --at` prints a page as it stood, also one that is gone; `diff --since` tells what changed."""
    for page, day, words in EXPECTED["shown"]:
        done = month.cli("show", page, "--at", day)
        assert words in done.out, done
    assert "Ruth, User's sister, lives in York" in month.cli("diff", "--since", "2025-09-19").out


def test_an_event_of_the_month_is_taken_back_and_brought_again(month: World) -> None:
    """`undo` takes an answer of the month out with what followed from it; undoing that brings it back."""
    said = month.cli("log", "-n", "1000", "--json", "--kind", "prompt-answered").json
    answered = next(event for event in said if event["data"]["prompt"] == "inbox/refused.md")
    assert 0 == month.cli("undo", answered["id"]).code
    assert "inbox/refused.response.md" not in month.tree()
    undone = month.cli("log", "-n", "1000", "--json", "--kind", "event-undone").json
    # what was last undone first, as `undo` says itself
    for event in reversed([event for event in undone if event["at"] >= "2025-09-29"]):
        assert 0 == month.cli("undo", event["id"]).code
    assert "inbox/refused.response.md" in month.tree()


def test_doctor_finds_only_what_a_person_is_asked(taken: World) -> None:
    """Nothing is broken; another device's version of a deleted page waits for a person, as it did."""
    problems = taken.cli("doctor", "--json").json["problems"]
    assert [] == [problem for problem in problems if "sync-conflict" not in problem["path"]]


def test_what_is_gone_stays_gone(taken: World) -> None:
    """What was forgotten is neither in inbox nor in memory; what was purged is in no file at all."""
    tree = "\n".join(text for path, text in taken.tree().items() if path.startswith(("inbox/", "memory/")))
    assert [] == [word for word in EXPECTED["forgotten"] if word in tree]
    files = [path for path in taken.folder.rglob("*") if path.is_file() and "fresh" not in path.parts]
    assert [] == [path for path in files for word in EXPECTED["purged"] if word.encode() in path.read_bytes()]
    for word in EXPECTED["purged"]:
        found = taken.cli("search", word).out.replace("No word", "")
        assert word not in found


def test_discretion_holds(taken: World) -> None:
    """What is off the record stands in its own prompt alone; what is private only on private pages."""
    tree = taken.tree()
    for word, prompt in EXPECTED["off_record"].items():
        assert {prompt} == {path for path, text in tree.items() if word in text}
    pages = {path for path, text in tree.items() if path.startswith("memory/") and EXPECTED["private"] in text}
    assert pages
    assert all("private" in path for path in pages)


def test_trust_holds_where_it_was_given(taken: World) -> None:
    """The trusted plugin runs on its machine; a stranger's never does, and neither does on a machine that is new."""
    states = {line.split("\t")[0]: line for line in taken.cli("plugins", "list").out.splitlines()}
    assert ("untrusted" in states["diary"]) == is_clone(taken)
    assert "untrusted" in states["stranger"]


def test_search_and_memory_are_made_anew_alike(month: World) -> None:
    """Without the cache (the index) the same is found and told."""
    questions = [("search", query) for query in EXPECTED["searches"]] + [("why", "Ruth, User's sister, lives in York")]
    before = [month.cli(*words).out for words in questions]
    shutil.rmtree(month.home / "cache")
    assert before == [month.cli(*words).out for words in questions]


def test_the_next_month_begins(month: World) -> None:
    """It goes on: something new is filed after two days, journals go on without a gap, files of old answers stay."""
    month.drop("new.md", "The greenhouse is painted green.\n")
    month.run()
    month.tick(3 * 86400)
    tree = month.tree()
    assert any("greenhouse is painted" in text for path, text in tree.items() if path.startswith("memory/long_term/"))
    for device in ("laptop-0a1b2c", "tablet-0a1b2c"):
        days = sorted(path for path in tree if path.startswith(f"logs/journal/{device}/") and path.endswith(".jsonl"))
        numbers = [json.loads(line)["seq"] for path in days for line in tree[path].splitlines()]
        assert list(range(1, len(numbers) + 1)) == numbers
