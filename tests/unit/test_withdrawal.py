"""`private: true` added after the answer: the exchange and all that came of it are taken back, and it is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.events import ExchangeMadePrivate
from brainiac.llm.gate import Gate
from brainiac.pipeline.daemon import Daemon
from brainiac.storage.files import locked
from brainiac.testing import run_once
from tests.support.commands import do
from tests.support.living import CONFIG, living, living_brain, model_machine
from tests.support.models import make_brain, write_machine
from tests.support.openai_server import ChatServer, by_request
from tests.support.pipeline import eventually
from tests.support.remote import Curious, elsewhere, read_twice

MODEL = "openai/test-model"
SECRET = "I have a quillwort in Zanzibar."
PRIVATE = "---\nprivate: true\n---\n"


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    """A brain whose offline engine answers, reflects and promotes."""
    make_brain(tmp_path / "brain", {"inbox": {"settle_ms": 1}, "recall": {"embedder": "none"}}).close()
    brain = Brain(tmp_path / "brain")
    yield brain
    brain.close()


def say_to(brain: Brain, name: str, text: str) -> str:
    """Say something and return the exchange's id."""
    path = f"inbox/{name}"
    (brain.root / path).parent.mkdir(parents=True, exist_ok=True)
    (brain.root / path).write_text(text)
    do(brain, "ask", "--again", path)
    answer = brain.answered.of(path)
    assert answer is not None
    return answer.exchange


def ask_for(brain: Brain, name: str, meta: str = PRIVATE, text: str | None = None) -> None:
    """Put front matter above a prompt while no daemon runs, then run one to its end."""
    file = brain.root / "inbox" / name
    file.write_text(meta + (file.read_text() if text is None else text))
    run_once(brain)


def shown(brain: Brain) -> dict[str, str]:
    """Return what a remote model may see of each page of memory that it may know of."""
    gate = Gate(brain)
    found = {}
    for entry in brain.tree.walk(brain.tree.memory):
        path = brain.tree.relative(entry.path)
        if (text := gate.read_note(path, tops=("memory",))) is not None:
            found[path] = text
    return found


def telling(brain: Brain, word: str = "quillwort") -> list[str]:
    """Return the pages of memory of which a remote model may see a word, or which are named by it."""
    return [path for path, text in shown(brain).items() if word in text.lower() or word in path]


def made_private(brain: Brain) -> list[dict[str, Any]]:
    return [dict(event.data) for event in brain.journal.events(kinds={ExchangeMadePrivate})]


def test_of_short_term_memory_the_exchange_alone_is_left(brain: Brain) -> None:
    """Its event is marked, the lists lose what came of it, `/tasks` reads it there; what was said besides stays."""
    exchange = say_to(brain, "a.md", "/todo water the quillwort\n/remember I decided on a quillwort.\n")
    say_to(brain, "b.md", "/todo buy moss\n")
    assert telling(brain)
    ask_for(brain, "a.md")
    memory = brain.short_term().memory
    assert {exchange: True} == {event.id: event.is_private for event in memory.events if "quillwort" in event.user}
    assert ["buy moss"] == [item.text for item in (*memory.goals, *memory.facts, *memory.tasks)]
    assert [] == telling(brain)
    assert ["inbox/a.md"] == [each["prompt"] for each in made_private(brain)]
    say_to(brain, "c.md", "/tasks\n")
    answer = (brain.root / "inbox/c.response.md").read_text()
    assert all(words in answer for words in ("private: true", "- [ ] buy moss", "- [ ] water the quillwort"))


def test_what_was_promoted_moves_to_a_private_page(brain: Brain) -> None:
    """Its statements do, the day's words are marked; a page that rests on it alone is private with name and title."""
    say_to(brain, "a.md", f"/remember {SECRET}\n/remember My sister lives in Oslo, #quilla\n")
    say_to(brain, "b.md", "/remember I have a bicycle in Bremen.\n")
    do(brain, "promote")
    run_once(brain)
    assert [path for path in telling(brain) if "/concrete/" in path]
    assert [path for path in telling(brain, "quilla") if path.endswith("/quilla.md")]
    ask_for(brain, "a.md")
    assert [] == telling(brain)
    assert [] == telling(brain, "quilla")
    assert telling(brain, "bicycle")
    (moved,) = (file for file in brain.tree.long_term.rglob("private/*.md") if file.name != "_index.md")
    assert all(words in moved.read_text() for words in ("I have a quillwort in Zanzibar", "\nprivate: true\n"))
    indexes = [path.read_text() for path in brain.tree.long_term.rglob("_index.md")]
    assert not any("quillwort in" in text.lower() for text in indexes)
    brain.observed.adopt()
    run_once(brain)
    assert 1 == len(made_private(brain))


def test_a_note_that_has_a_page_of_its_own_is_private_with_it(brain: Brain) -> None:
    """Its words stand there without being a statement of the page."""
    (brain.root / "inbox/notes").mkdir(exist_ok=True)
    (brain.root / "inbox/notes/a.md").write_text("Things\n\nA quillwort in Zanzibar,\nand moss.\n")
    run_once(brain)
    do(brain, "promote")
    assert [path for path in telling(brain) if "/concrete/" in path]
    ask_for(brain, "notes/a.md")
    assert [] == telling(brain)
    assert any("quillwort" in path.read_text() for path in (brain.tree.long_term / "concrete").rglob("*.md"))


def test_what_was_said_openly_elsewhere_stays_open(brain: Brain) -> None:
    """A statement that another exchange speaks for too is no secret of this one."""
    say_to(brain, "a.md", "/remember I have a bicycle in Bremen.\n")
    do(brain, "promote")
    say_to(brain, "b.md", "/remember I have a bicycle in Bremen.\n")
    do(brain, "promote")
    ask_for(brain, "b.md")
    assert [path for path in telling(brain, "bicycle") if "/concrete/" in path]


def test_an_answer_that_repeated_it_is_marked(brain: Brain) -> None:
    """Asked in the open what had been said, the engine told it word for word: that exchange is private now too."""
    say_to(brain, "a.md", "My locker code word is quillwort giraffe moss.\n")
    say_to(brain, "b.md", "What is my locker code word?\n")
    assert "quillwort giraffe moss" in (brain.root / "inbox/b.response.md").read_text()
    ask_for(brain, "a.md")
    assert [] == telling(brain)
    gate = Gate(brain)
    assert [None] * 4 == [
        gate.read_note(f"inbox/{name}") for name in ("a.md", "a.response.md", "b.md", "b.response.md")
    ]
    assert "quillwort giraffe moss" in (brain.root / "inbox/b.response.md").read_text()
    do(brain, "promote")
    assert [] == telling(brain)


def test_a_summary_made_in_sight_of_it_goes(brain: Brain) -> None:
    """All that the program wrote of it, since nobody can tell which words tell of it; the person's own words stay,
    and where they say it too, `review.md` names the file."""
    say_to(brain, "a.md", f"/remember {SECRET}\n")
    do(brain, "promote")
    written = brain.short_term().memory.summary
    assert written
    file = brain.tree.short_term
    file.write_text(file.read_text().replace("## Summary\n", f"## Summary\nMine: {SECRET}\n\n"))
    ask_for(brain, "a.md")
    assert f"Mine: {SECRET}" == brain.short_term().memory.summary
    assert "memory/short_term.md says it too, openly" in brain.tree.review.read_text()


def test_remember_false_later_is_taken_back_and_told(brain: Brain) -> None:
    """What was kept is private at once; `review.md` says that it stays until it is purged, and how."""
    say_to(brain, "a.md", f"/remember {SECRET}\n")
    do(brain, "promote")
    ask_for(brain, "a.md", "---\nremember: n\n---\n")
    assert [] == telling(brain)
    review = brain.tree.review.read_text()
    assert "brainiac forget --purge inbox/a.md" in review
    assert "<!-- private -->" in review
    do(brain, "forget", "inbox/a.md", "--yes")
    standing = [path for path in brain.tree.memory.rglob("*.md") if "quillwort" in path.read_text().lower()]
    assert [] == [path for path in standing if path != brain.tree.review]


def test_an_answer_made_private_takes_its_exchange_along(brain: Brain) -> None:
    """`private: true` in the response counts as in the prompt."""
    say_to(brain, "a.md", f"{SECRET}\n")
    response = brain.root / "inbox/a.response.md"
    response.write_text(response.read_text().replace("---\n", "---\nprivate: true\n", 1))
    run_once(brain)
    assert [] == telling(brain)
    assert 1 == len(made_private(brain))


def test_a_revision_that_is_private_takes_the_former_one_along(brain: Brain) -> None:
    """Text and front matter changed at once: what came of the open wording is private as well."""
    say_to(brain, "a.md", f"/remember {SECRET}\n")
    do(brain, "promote")
    ask_for(brain, "a.md", PRIVATE, "I have two quillworts.\n")
    assert [] == telling(brain)


@pytest.mark.slow
def test_while_a_promotion_runs_it_is_done_now_and_once_more(brain: Brain) -> None:
    """The run may still write what it took in before: the last word is not said until it is over."""
    say_to(brain, "a.md", f"{SECRET}\n")
    file = brain.root / "inbox/a.md"
    file.write_text(PRIVATE + file.read_text())
    daemon = Daemon(brain)
    with locked(brain.places.state / "promotion.lock"):
        daemon.start()
        eventually(lambda: brain.short_term().memory.events[0].is_private, "the mark")
        eventually(lambda: bool(made_private(brain)), "its event")
        assert [] == telling(brain)
        assert [None] == [each.get("exchanges") for each in made_private(brain)]
    eventually(lambda: any(each.get("exchanges") for each in made_private(brain)), "the last word", 20)
    daemon.stop()


def test_it_can_be_explained_forgotten_and_undone(brain: Brain) -> None:
    """A statement that moved keeps its sources: `why` tells them, `forget` finds it; `undo` opens it again."""
    say_to(brain, "a.md", f"/remember {SECRET}\n")
    say_to(brain, "b.md", "I have a bicycle in Bremen.\n")
    do(brain, "promote")
    ask_for(brain, "a.md")
    (chain,) = do(brain, "why", "I have a quillwort in Zanzibar", "--json").json["chains"]
    assert any("quillwort" in said["user"] for step in chain["steps"] for said in step["sources"])
    event = next(brain.journal.events(kinds={ExchangeMadePrivate}))
    do(brain, "undo", event.id)
    assert telling(brain)
    do(brain, "forget", "inbox/a.md", "--yes")
    assert not any("have a quillwort" in path.read_text() for path in brain.tree.long_term.rglob("*.md"))


def remote(root: Path, server: ChatServer) -> Brain:
    """Make a brain whose model is a remote one, as far as it can tell."""
    llm = {"model": MODEL, "prices": {MODEL: [0.1, 0.1]}, "timeout_seconds": 20}
    settings = {"inbox": {"settle_ms": 1}, "recall": {"embedder": "none"}, "llm": llm}
    make_brain(root, settings).close()
    brain = Brain(root)
    write_machine(brain, {"api_bases": {"openai": elsewhere(server)}})
    return brain


@pytest.mark.slow
def test_what_had_been_sent_and_to_whom_is_told(tmp_path: Path) -> None:
    """Model, purposes, times: of the calls about it apart from those since, in the journal and in `review.md`."""
    with ChatServer() as server:
        server.default = by_request(Curious())
        brain = remote(tmp_path / "brain", server)
        say_to(brain, "a.md", f"{SECRET}\n")
        say_to(brain, "b.md", "What is new?\n")
        run_once(brain)
        before = len(server.requests)
        ask_for(brain, "a.md")
        (event,) = made_private(brain)
        own, later = event["sent"]
        assert (MODEL, True, {"queries", "answer", "reflect"}) == (own["model"], own["is_own"], set(own["purposes"]))
        assert (MODEL, False) == (later["model"], later["is_own"])
        assert 3 == own["calls"] == later["calls"]
        assert before == len(server.requests)
        say_to(brain, "c.md", "What of my things in Zanzibar?\n")
        do(brain, "promote")
        brain.close()
        assert [] == [each for each in server.requests[before:] if "quillwort" in read_twice(each)]
    line = next(line for line in (tmp_path / "brain/memory/review.md").read_text().splitlines() if "a.md" in line)
    assert all(word in line for word in (MODEL, "answer", own["first"], "nothing can take back", "<!-- private -->"))


def test_what_was_answered_here_is_told_to_have_been_sent_nowhere(brain: Brain) -> None:
    """No call, no line in `review.md`."""
    say_to(brain, "a.md", f"{SECRET}\n")
    ask_for(brain, "a.md")
    assert [[]] == [each["sent"] for each in made_private(brain)]
    assert not brain.tree.review.exists()


@pytest.mark.slow
def test_the_gate_heeds_a_prompt_before_anybody_has_dealt_with_it(tmp_path: Path) -> None:
    """No daemon runs, nothing is marked yet: its event and the day's words are shown to nobody elsewhere."""
    with ChatServer() as server:
        server.default = by_request(Curious())
        brain = remote(tmp_path / "brain", server)
        say_to(brain, "a.md", "quillwort one\n")
        brain.models.ledger  # noqa: B018 - opened
        do(brain, "promote")
        say_to(brain, "b.md", "quillwort two\n")
        for name in ("a.md", "b.md"):
            file = brain.root / "inbox" / name
            file.write_text(PRIVATE + file.read_text())
        before = len(server.requests)
        say_to(brain, "c.md", "What is new?\n")
        sent = "\n".join(map(read_twice, server.requests[before:]))
        brain.close()
    assert "what is new?" in sent
    assert "quillwort" not in sent


@pytest.mark.slow
def test_a_running_daemon_takes_it_back_by_itself(tmp_path: Path, machine: Path) -> None:
    """Saved in an editor: within moments the event is marked, and the next question is asked without it."""
    with ChatServer() as server:
        server.default = by_request(Curious())
        llm = f"llm: {{model: {MODEL}, prices: {{{MODEL}: [0.1, 0.1]}}, timeout_seconds: 20}}\n"
        root = living_brain(tmp_path / "brain", CONFIG + llm)
        model_machine(elsewhere(server))
        with living(root) as one:
            one.answer("a.md", f"{SECRET}\n")
            one.wait_for_event("exchange-reflected")
            (root / "inbox/a.md").write_text(f"{PRIVATE}{SECRET}\n")
            one.wait_for_event(ExchangeMadePrivate.kind)
            before = len(server.requests)
            one.answer("b.md", "What is new?\n")
            assert 0 == one.terminate()
        assert "<!-- private -->" in (root / "memory/short_term.md").read_text()
        later = server.requests[before:]
    assert later
    assert [] == [each for each in later if "quillwort" in read_twice(each)]
