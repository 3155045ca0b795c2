"""`promote --past` and `rebuild` on the command line, with a model served on loopback: one thing, in two places."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from brainiac.testing import Said, World
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say_json
from tests.support.openai_server import Exchange as Call
from tests.support.program import Program
from tests.support.remote import all_follow, purpose_of
from tests.unit.test_word import Model

MODEL = "openai/gpt-4.1-mini"
CONFIG = "promotion: {min_events: 1}\nrecall: {embedder: none}\n"
SAID = ("I live in Ghent.", "My sister Ruth plays the cello.", "I must call Anna tomorrow.", "I live in Bruges.")
PAGE = "memory/long_term/concrete/people/things.md"
STATED = ["I live in Bruges.", "My sister Ruth plays the cello.", "~~I live in Ghent.~~ (2025-09-15 – 2025-09-18)"]
WAYS = ("past", "rebuild")
USED = (4000, 1000)  # tokens of a call
LIMITED = f"{CONFIG}llm: {{prices: {{{MODEL}: [20, 20]}}, daily_budget_usd: 0.5}}\n"  # some calls a day


def answer(request: Captured) -> Behaviour:
    """Answer with a statement for each exchange, in its words; where one lives is replaced, and a call is a task."""
    if purpose_of(request) == "verify":
        return say_json(all_follow(request.text), tokens=USED)
    _, _, shown = request.text.rpartition("## Existing Long-Term Memory")
    home = re.search(r"\[(s\d+)\] I live in", shown)
    operations = []
    for name, text in re.findall(r"\(id (e\d+)\)\nUser:\n> (.*?)\n", shown):
        action = "open" if "call" in text else "replace" if home and "I live" in text else "new"
        page = {"title": "Things", "kind": "concrete", "folder": "people"}
        operation = {"action": action, "text": text, "evidence": [{"exchange": name, "quote": text}], "page": page}
        operations.append(operation | ({"ids": [home[1]]} if home and action == "replace" else {}))
    return say_json({"operations": operations}, tokens=USED)


@pytest.fixture
def served() -> Iterator[ChatServer]:
    with ChatServer() as server:
        server.default = by_request(answer)
        yield server


@pytest.fixture
def world(tmp_path: Path, served: ChatServer) -> World:
    """A brain that lived four days without a model."""
    world = World(tmp_path)
    world.save("system/config.yaml", CONFIG)
    for number, text in enumerate(SAID):
        world.drop(f"{number}.md", text)
        world.run()
        world.tick(86400)
    machine = world.home / "config/brainiac/config.yaml"
    machine.parent.mkdir(parents=True, exist_ok=True)
    machine.write_text(yaml.safe_dump({"api_bases": {"openai": served.url}}))
    return world


def words(world: World, way: str) -> tuple[str, ...]:
    """The command that has the past read in one way."""
    line = ("promote", "--past") if way == "past" else ("rebuild", "--into", str(world.folder / "new"))
    return (*line, "--model", MODEL, "--yes")


def at(world: World, way: str) -> World:
    """The brain in which it is done, on the same machine."""
    there = copy(world)
    there.root = world.root if way == "past" else world.folder / "new"
    return there


def stated(world: World, way: str) -> list[str]:
    """What the page holds that the model made, History too."""
    text = (at(world, way).root / PAGE).read_text()
    return [re.sub(r" \^\w+$|; replaced by \^\w+", "", line[2:]) for line in text.splitlines() if line.startswith("- ")]


def asked(served: ChatServer) -> Counter[tuple[str, str]]:
    """How often each request was sent."""
    return Counter((purpose_of(request), request.text) for request in served.requests)


def test_what_it_costs_is_told_first(world: World, served: ChatServer) -> None:
    """Without a model it names the option; nobody to ask is wrong use; no call is made before the answer."""
    new = world.folder / "new"
    for without in (world.cli("promote", "--past", "--yes"), world.cli("rebuild", "--into", str(new), "--yes")):
        assert (1, True, False) == (without.code, "--model" in without.err, new.exists())
    for way in WAYS:
        told = world.cli(*words(world, way)[:-1])
        assert (2, True, True) == (told.code, "4 exchanges" in told.out, "--yes" in told.err)
        assert f"{MODEL} would read them in 4 calls: about " in told.out
        assert 1 == world.cli(*words(world, way), "--from", "soon").code
    assert 2 == world.cli("promote", "--from", "2026-03-01").code
    assert [] == served.requests


@pytest.mark.slow
def test_both_ways_come_to_the_same(world: World, served: ChatServer) -> None:
    """The same statements with the days on which they were said, no task of long ago, one line to undo it."""
    done: dict[str, Said] = {}
    for way in reversed(WAYS):
        before = len(served.requests)
        done[way] = world.cli(*words(world, way), "--json")
        assert (0, 4, STATED) == (done[way].code, done[way].json["plan"]["exchanges"], stated(world, way))
        assert 8 == len(served.requests) - before, "a task is asked about once more; what is read twice has a reader"
    assert done["past"].json.keys() | {"raw"} == done["rebuild"].json.keys()
    assert [] == world.cli("diff", str(world.root), str(world.folder / "new"), "--json").json["differences"]
    for each, way in ((at(world, way), way) for way in WAYS):
        assert "Anna" not in each.cli("ask", "/tasks").out
        assert "nothing waits" in world.cli(*words(world, way)).out
        assert 0 == each.cli("undo", done[way].json["undo"]).code
        assert not (each.root / PAGE).exists()
    assert 1 == world.cli("rebuild", "--into", str(world.root / "inbox"), "--model", MODEL, "--yes").code


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_kill_pays_nothing_twice(world: World, served: ChatServer, way: str) -> None:
    """Killed at every second call, it goes on: no call that was answered is made again, and all is as without kills.

    Seeds: R10.
    """
    world.clock.advance((datetime.now(UTC) - world.clock.now()).total_seconds())  # a process has the machine's time
    xdg = {f"XDG_{name.upper()}_HOME": str(world.home / name) for name in ("state", "cache", "config")}
    environment = os.environ | xdg | {"HOME": str(world.home), "OPENAI_API_KEY": "none"}
    answered: list[Captured] = []
    programs: list[Program] = []
    reply: Callable[[Call], None] = by_request(answer)

    def answer_or_kill(call: Call) -> None:
        if len(served.requests) % 2 == 0:
            programs[-1].kill()
        else:
            answered.append(call.request)
            reply(call)

    served.default = answer_or_kill
    with tempfile.TemporaryFile() as out:
        while not programs or programs[-1].wait() != 0:
            assert len(programs) < 12
            programs.append(
                Program("--brain", str(world.root), *words(world, way), out=out, env=environment, cwd=world.folder)
            )
    assert len(programs) > 3
    assert {1} == set(Counter((purpose_of(request), request.text) for request in answered).values())
    assert STATED == stated(world, way)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_keeps_to_the_daily_budget(world: World, served: ChatServer, way: str) -> None:
    """A call that may pass the budget is not made, and it is told; the next day goes on where it was."""
    world.save("system/config.yaml", LIMITED)
    counts = []
    for _ in range(2):  # the same day: no call more
        stopped = world.cli(*words(world, way))
        assert (1, True) == (stopped.code, "daily_budget_usd" in stopped.out)
        assert "the same command goes on where it was" in stopped.out
        counts.append(len(served.requests))
    assert 0 < counts[0] == counts[1]
    days = 1
    while world.cli(*words(world, way)).code:
        world.clock.advance(86400)
        days += 1
    assert (True, {1}, STATED) == (days > 1, set(asked(served).values()), stated(world, way))


def test_what_the_first_brain_spent_counts_in_the_new_one(world: World, served: ChatServer) -> None:
    """The budget is of the person's day: used up in one brain, a brain made from it that day has nothing left."""
    world.save("system/config.yaml", LIMITED)
    assert 1 == world.cli(*words(world, "past")).code
    n_requests = len(served.requests)
    assert "daily_budget_usd" in world.cli(*words(world, "rebuild")).out
    assert 0 < n_requests == len(served.requests)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_is_to_be_forgotten_is_not_read(world: World, served: ChatServer, way: str) -> None:
    """What the person asked to have forgotten stays hidden, in a new brain too; declined, it is read like the rest."""
    world.save("system/config.yaml", f"{CONFIG}llm: {{models: {{reflect: {MODEL}}}}}\n")
    model = Model(served)
    model.wishes, model.means = {"forget": ["my sister Ruth plays the cello"]}, ["cello"]
    world.drop("wish.md", "Please forget that my sister Ruth plays the cello.")
    world.run()
    served.requests.clear()
    served.default = by_request(answer)
    world.save("system/config.yaml", CONFIG)
    assert 0 == world.cli(*words(world, way)).code
    made = at(world, way)
    assert "cello" not in "".join(request.text for request in served.requests)
    assert [STATED[0], STATED[2]] == stated(world, way)
    assert "cello" not in made.cli("search", "cello").out
    review = made.root / "memory/review.md"
    assert 1 == review.read_text().count("- [ ] ")
    made.save("memory/review.md", review.read_text().replace("- [ ] ", "- [-] "))
    made.run()
    read = world.cli(*words(world, way))
    assert (0, True) == (read.code, "1 exchange of 2025-09-16 was kept without a model" in read.out)
    assert STATED[1] in stated(world, way)
