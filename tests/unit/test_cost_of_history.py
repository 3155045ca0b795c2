"""What an answer costs does not grow with what was ever said: files that are opened and bytes that are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from brainiac import Brain, Exchange, Prompt, Response
from brainiac.clock import iso
from brainiac.events import Event, append, create, new_id, observe
from brainiac.history.copies import settle_versions
from brainiac.history.forget import find_target, plan_forget
from brainiac.history.undo import possible_targets
from brainiac.history.why import why
from brainiac.pipeline.daemon import answer_one
from brainiac.storage.journal import lines_back
from tests.support.commands import do
from tests.support.kernel import make_root, open_kernel
from tests.support.models import model_brain
from tests.support.openai_server import ChatServer, say, say_json
from tests.support.promotions import later, make_brain

MAX_TURNS = 20  # of a conversation, that a model is shown
_opened: list[str] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        _opened.append(os.fspath(arguments[0]))


sys.addaudithook(_hear)  # hears every file that Python opens, in all threads; it cannot be taken out again


@contextmanager
def opened() -> Iterator[list[str]]:
    """Collect the paths of the files that are opened meanwhile."""
    found: list[str] = []
    _opened.clear()
    yield found
    found += _opened


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    """A brain whose model costs money, so that the budget is looked at before each call."""
    with ChatServer() as server:
        server.default = lambda each: (say("Yes.") if each.request.body.get("tools") else say_json({}))(each)
        brain = model_brain(tmp_path / "b", server, prices={"openai/test-model": [1.0, 1.0]})
        yield brain
        brain.close()


def ask(brain: Brain, path: str) -> None:
    file = brain.root / "inbox" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"What about {file.stem}?\n")
    do(brain, "ask", "--again", f"inbox/{path}")


def exchanges(brain: Brain, folder: str, count: int) -> None:
    """Put answered prompts into a conversation, as a commit of the Core Loop does."""
    for number in range(count):
        path = brain.root / f"inbox/{folder}/{number:03d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Question {number}.\n")
        response = f"inbox/{folder}/{number:03d}.response.md"
        text = f"---\nin_reply_to: {number:03d}.md\n---\nAnswer {number}.\n"
        prompt = f"inbox/{folder}/{number:03d}.md"
        data = {"prompt": prompt, "prompt_id": new_id(), "prompt_sha256": f"{number}", "response": response}
        changes = [observe(prompt, path.read_bytes()), create(response, text)]
        brain.commit("prompt-answered", by="core_loop", changes=changes, data=data)


def test_answer_reads_no_other_conversation_and_of_its_own_the_last_turns(brain: Brain) -> None:
    """An answer opens the last turns of its own conversation."""
    exchanges(brain, "bikes", 30)
    exchanges(brain, "boats", 3)
    ask(brain, "bikes/first.md")
    with opened() as found:
        ask(brain, "bikes/zz.md")
    inbox = {path for path in map(str, found) if f"{os.sep}inbox{os.sep}" in path and path.endswith(".md")}
    assert [] == [path for path in inbox if "boats" in path]
    turns = {Path(path).name[:3] for path in inbox if Path(path).name[:3].isdigit()}
    assert {f"{number:03d}" for number in range(30 - MAX_TURNS, 30)} >= turns
    assert len(turns) >= MAX_TURNS - 1


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts the bytes that a process reads")
def test_answer_reads_no_byte_of_what_the_journal_held_before(brain: Brain) -> None:
    """With money counted before each of three calls, an answer reads less than the journal of the day."""
    ask(brain, "one.md")
    for _ in range(400):
        brain.journal.record(Event(0, new_id(), "2025-09-16T15:30:00Z", "noted", "t", data={"text": "x" * 10_000}))
    ask(brain, "two.md")  # takes in what is new to it, once
    before = read_bytes()
    ask(brain, "three.md")
    assert read_bytes() - before < 1_000_000


def read_bytes() -> int:
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def test_what_is_new_is_read_without_what_is_old(tmp_path: Path) -> None:
    """Broken old lines are neither parsed nor warned of when only later events are asked for, in either direction."""
    journal = open_kernel(make_root(tmp_path / "b")).journal
    for _ in range(9):
        journal.record(Event(0, new_id(), "2025-09-16T15:30:00Z", "noted", "t"))
    path = journal.folder / "2025-09-16.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b'{"seq":1,"broken\n', *lines[1:]]))
    assert [7, 8, 9] == [event.seq for event in journal.events(since_seq=6)]
    assert [9, 8, 7] == [event.seq for event in journal.events(since_seq=6, reverse=True)]
    assert 9 == next(journal.events(reverse=True)).seq
    assert [] == journal.warnings
    assert 8 == len(list(journal.events()))
    assert 1 == len(journal.warnings)


def test_last_lines_of_a_file_are_read_alone(tmp_path: Path) -> None:
    """The last lines of a file of 4 GB come without it being read; a torn one is left out, as is an empty file."""
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"first\n")
    os.truncate(path, 4_000_000_000)
    with path.open("ab") as file:
        file.write(b"\n" + b"y" * 200_000 + b"\nlast\ntorn")
    lines = lines_back(path)
    assert [b"last", b"y" * 200_000] == [next(lines), next(lines)]
    for text in (b"", b"torn"):
        path.write_bytes(text)
        assert [] == list(lines_back(path))
    path.write_bytes(b"a\n\nb\n")
    assert [b"b", b"", b"a"] == list(lines_back(path))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts the bytes that a process reads")
def test_line_is_added_to_the_access_log_without_reading_it(tmp_path: Path) -> None:
    """Of a log of 5 MB only the last byte is looked at: a line that somebody left unfinished is ended first."""
    kernel = open_kernel(make_root(tmp_path / "b"))
    log = kernel.tree.access_log
    log.write_text("x" * 5_000_000)
    before = read_bytes()
    for line in ("one\n", "two\n"):
        kernel.committer.commit("noted", by="t", changes=[append("logs/access.log", line)])
    assert read_bytes() - before < 1_000_000
    assert log.read_text().endswith("x\none\ntwo\n")


def test_a_conflict_copy_that_waits_has_no_earlier_day_read(brain: Brain) -> None:
    """However long a person takes to decide, looking over reads what was recorded since, not the whole journal."""
    page = "memory/long_term/concrete/garden.md"
    brain.record("noted", by="x")
    (today,) = brain.journal.folder.glob("*.jsonl")
    earlier = today.with_name("2020-01-01.jsonl")
    today.rename(earlier)
    copy = brain.root / page.replace(".md", ".sync-conflict-20250916-153000-ABCDEFG.md")
    copy.write_text("# Garden\n\n- Zinnias. ^bbbb\n")
    assert 1 == len(settle_versions(brain))
    brain.record("noted", by="x")
    settle_versions(brain)
    with opened() as files:
        assert [] == settle_versions(brain)
    assert [] == [path for path in files if path == str(earlier)]


def test_a_start_has_no_earlier_day_read(brain: Brain) -> None:
    """What was answered and what was spent is known to a new process without the history being read again."""
    ask(brain, "one.md")
    (today,) = brain.journal.folder.glob("*.jsonl")
    earlier = today.with_name("2020-01-01.jsonl")
    today.rename(earlier)
    brain.record("noted", by="x")
    brain.close()
    with opened() as files:
        again = Brain(brain.root)
        assert again.answered.of("inbox/one.md")
        do(again, "costs", "--days", "1")
        again.close()
    assert [] == [path for path in files if path == str(earlier)]


def costs(brain: Brain, number: int) -> tuple[float, float, float]:
    """Say so many things; return files opened, bytes read and bytes of journal added by each, reflection and filing."""
    before = read_bytes(), journal_bytes(brain)
    with opened() as files:
        for _ in range(number):
            reflected(brain, f"What about item {new_id()}?")
    opens = len([path for path in files if str(brain.root.parent) in path])
    return opens / number, (read_bytes() - before[0]) / number, (journal_bytes(brain) - before[1]) / number


def reflected(brain: Brain, text: str) -> None:
    """Say something and have it reflected, and what short-term memory cannot hold filed."""
    later(brain, 1)
    at, exchange = iso(brain.clock.now()), new_id()
    prompt, response = Prompt(f"inbox/{exchange}.md", text, "", at), Response("", "It is as it was. " * 40)
    brain.plugins.call("response_arrived", brain=brain, exchange=Exchange(exchange, prompt, response, at))


def journal_bytes(brain: Brain) -> int:
    return sum(path.stat().st_size for path in brain.tree.journal.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts the bytes that a process reads")
def test_an_exchange_costs_the_same_after_hundreds_of_one_day(tmp_path: Path) -> None:
    """With the log filed forty times and eight of the day's pages full, reflecting and filing an exchange opens
    as many files, reads as many bytes and adds as many to the journal as in the beginning."""
    brain = make_brain(tmp_path / "b", "promotion: {max_tokens: 1000}\n")
    costs(brain, 40)
    early = costs(brain, 70)
    costs(brain, 140)
    late = costs(brain, 70)
    day = brain.root / "memory/long_term/events/2026/03/02"
    assert len(list(day.glob("2026-03-02*.md"))) >= 7
    # a file that was written in the last milliseconds is read once more, so that bytes vary with the machine's speed
    most = zip(early, (1.25, 2, 1.25), strict=True)
    assert all(cost < share * before for cost, (before, share) in zip(late, most, strict=True)), (early, late)
    brain.close()


def test_what_is_named_by_its_id_is_found_without_all_the_rest(tmp_path: Path) -> None:
    """Of a statement what `why`, `wrong` and the plan of `forget` show, and of an exchange the first two."""
    made = make_brain(tmp_path / "b")
    (made.root / "memory/long_term/concrete").mkdir(parents=True, exist_ok=True)
    for number in range(30):
        text = f"# Page {number}\n\n- Key {number} hangs by door {number}. ^k{number:03d}\n"
        (made.root / f"memory/long_term/concrete/p{number}.md").write_text(text)
    (made.root / "inbox/key.md").write_text("The spare key hangs behind the blue door.\n")
    answer_one(made, "inbox/key.md")
    exchange = next(made.journal.events(kinds={"prompt-answered"})).id
    made.observed.adopt()
    made.close()
    statement = "concrete/p7.md#^k007"
    acts: dict[str, Callable[[Brain], object]] = {
        "why": lambda brain: why(brain, statement),
        "wrong": lambda brain: possible_targets(brain, statement),
        "forget": lambda brain: plan_forget(brain, find_target(brain, statement)).effects(),
        "why it was said": lambda brain: why(brain, exchange),
        "wrong, it was said": lambda brain: possible_targets(brain, exchange),
    }
    for name, act in acts.items():
        with closing(Brain(tmp_path / "b")) as brain, opened() as found:
            assert act(brain), name
        pages = {Path(path).name for path in found if f"{os.sep}concrete{os.sep}p" in path}
        assert pages <= {"p7.md"}, name
