"""What short-term memory cannot hold is filed word for word, quiet or not, and consolidated later."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from brainiac_plugins.organization.run import derive_manifests
from brainiac_plugins.promotion.draft import PAGE_CHARACTERS
from brainiac_plugins.promotion.filing import file_overflow
from brainiac_plugins.promotion.run import is_due, promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import ModelError
from brainiac.events import ExchangesFiled
from brainiac.formats.markdown import StmEvent
from brainiac.formats.page import parse_exchanges
from brainiac.formats.prompt import Exchange, Prompt, Response
from brainiac.health.doctor import examine
from brainiac.history.undo import undo
from brainiac.llm.catalog import count
from brainiac.llm.schemas import Purpose, Reflection, ReflectRequest, Request, Result
from brainiac.storage.commit import Committer
from brainiac.storage.journal import Journal
from brainiac.storage.said import MAX_WAITING, FiledExchanges
from brainiac.tree import LocalPlaces
from tests.support.kernel import CountingDisk, Crash, PowerDisk
from tests.support.promotions import START, ScriptedEngine, later, make_brain, open_brain, pages, statements, tell

LIMIT = 400
CONFIG = f"promotion: {{max_tokens: {LIMIT}}}\n"
STM = "memory/short_term.md"
NAMES = ("Ruth", "Tom", "Nadia", "Owen", "Beth", "Ivo", "Mara", "Piet", "Una", "Lars")


def log(brain: Brain) -> list[StmEvent]:
    """What stands in the event log, oldest first."""
    return list(reversed(brain.short_term().memory.events))


def on_pages(brain: Brain) -> list[StmEvent]:
    """What stands on the pages of days, each with the order of its page."""
    return [event for _, page in sorted(pages(brain).items()) for event in parse_exchanges(page.text)]


def talk(brain: Brain, number: int) -> list[str]:
    """Say so many things and return what was said."""
    said = [f"My friend {NAMES[n % 10]} number {n} lives in Oslo." for n in range(number)]
    for text in said:
        tell(brain, text)
    return said


def versions(brain: Brain) -> list[str]:
    """Every version of short-term memory that a commit left."""
    changes = [change for event in brain.journal.events() for change in event.changes if change.path == STM]
    return [brain.committer.text_of(change.after).decode() for change in changes if change.after]


@pytest.mark.slow
def test_short_term_memory_stays_small_however_busy_it_is(tmp_path: Path) -> None:
    """After no commit it holds more than three times its limit and one exchange; each exchange stands once, in order,
    word for word, and what was noted of those that went is not listed any more."""
    brain = make_brain(tmp_path / "b", CONFIG)
    said = talk(brain, 60)
    largest = max(count(text) for text in versions(brain))
    assert LIMIT < largest <= 3 * LIMIT + count(said[-1]) + 100  # what an event has besides its words
    assert said == [event.user for event in (*on_pages(brain), *log(brain))]
    assert len(log(brain)) < 12
    assert {item.text for item in brain.short_term().memory.facts} == {event.user for event in log(brain)}
    assert 3 <= len(list(brain.journal.events(kinds={ExchangesFiled}))) < 20
    assert [] == [problem.what for problem in examine(brain)]


def test_what_is_open_and_what_a_person_wrote_stays(tmp_path: Path) -> None:
    """Goals, tasks, a person's facts and summary, and an exchange with a remark of theirs below it are not filed."""
    engine = ScriptedEngine()
    brain = make_brain(tmp_path / "b", CONFIG, engine)
    engine.answers[Purpose.REFLECT] = Reflection(goals=["learn the cello"])
    tell(brain, "/todo call the landlord about the tap\n\nI want to learn the cello!")
    del engine.answers[Purpose.REFLECT]
    marked = tell(brain, "My boat is blue.")
    file = brain.tree.short_term
    file.write_text(
        file.read_text()
        .replace('"My boat is blue."\n', '"My boat is blue."\nIt is green by now, I think.\n')
        .replace("### Key Facts & Decisions\n", "### Key Facts & Decisions\n- The spare key hangs in the shed.\n")
        .replace("## Summary\n", "## Summary\nA summary by hand.\n")
    )
    talk(brain, 40)
    memory = brain.short_term().memory
    assert ["learn the cello"] == [item.text for item in memory.goals]
    assert ["call the landlord about the tap"] == [item.text for item in memory.tasks]
    assert "The spare key hangs in the shed." in [item.text for item in memory.facts]
    assert "A summary by hand." == memory.summary
    assert marked == log(brain)[0].id
    assert "It is green by now, I think." in file.read_text()
    assert marked not in [event.id for event in on_pages(brain)]


def test_what_was_filed_is_consolidated_by_the_next_promotion_and_only_once(tmp_path: Path) -> None:
    """Every exchange is analyzed in the order it was said, with the log that is left; then nothing is due any more."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", CONFIG, engine)
    said = talk(brain, 30)
    assert [] == statements(brain)
    later(brain, 301)
    assert is_due(brain, 301.0)
    outcome = promote(brain)
    analyzed = [said.event.user for request in engine.of(Purpose.CONSOLIDATE) for said in request.said]
    assert said == analyzed
    assert (30, 30) == (outcome.exchanges, len(statements(brain)))
    assert (said, []) == ([event.user for event in on_pages(brain)], log(brain))
    assert not is_due(brain, 9999.0)
    assert promote(brain).event is None
    assert said == [said.event.user for request in engine.of(Purpose.CONSOLIDATE) for said in request.said]


@pytest.mark.slow
def test_more_than_a_run_takes_is_consolidated_in_runs_oldest_first(tmp_path: Path) -> None:
    """What was said last is decided last: the log waits while older exchanges do."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", CONFIG, engine)
    for number in range(MAX_WAITING + 30):
        tell(brain, f"hm {number}?")
    promote(brain)
    analyzed = [said.event.user for request in engine.of(Purpose.CONSOLIDATE) for said in request.said]
    assert [f"hm {number}?" for number in range(MAX_WAITING + 30)] == analyzed
    runs = [event.data["exchanges"] for event in brain.journal.events(kinds={"memory-promoted"})]
    assert [MAX_WAITING, 30] == [len(run) for run in runs]


@pytest.mark.slow
def test_a_day_when_no_model_serves_loses_nothing(tmp_path: Path) -> None:
    """Exchanges are noted bare and filed; when the model is back their tasks are listed, once, and they are
    consolidated, although the log does not hold them any more."""
    is_down = [True]

    def answer(request: Request) -> Result:
        if is_down:
            raise ModelError("down", retryable=True)
        result = engine.verbatim(request)
        if isinstance(request, ReflectRequest) and "landlord" in request.exchange.prompt.text:
            return result.model_copy(update={"tasks": ["call the landlord about the tap"]})
        return result

    engine = ScriptedEngine(dict.fromkeys((Purpose.REFLECT, Purpose.CONSOLIDATE), answer))
    brain = make_brain(tmp_path / "b", CONFIG, engine)
    tell(brain, "The tap in the kitchen of my flat in Lund drips, said the landlord.")
    said = talk(brain, 30)
    assert len(log(brain)) < 20
    with pytest.raises(ModelError):
        promote(brain)
    is_down.clear()
    for _ in range(2):
        brain.plugins.call("quiet", brain=brain, idle_seconds=60.0)
    memory = brain.short_term().memory
    assert ["call the landlord about the tap"] == [item.text for item in memory.tasks]
    assert len(memory.facts) == len(memory.events)
    assert 31 == len(engine.of(Purpose.REFLECT)) - 31
    assert said == [event.user for event in (*on_pages(brain), *log(brain))][1:]
    promote(brain)
    assert 31 == len(statements(brain))


def test_a_run_that_finds_nothing_to_remember_still_ends_the_wait(tmp_path: Path) -> None:
    """Small talk that was filed is looked at once; then it waits no longer."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", CONFIG, engine)
    for number in range(20):
        tell(brain, f"hm {number}?")
    assert FiledExchanges(brain).waiting
    promote(brain)
    asked = len(engine.of(Purpose.CONSOLIDATE))
    later(brain, 301)
    assert not is_due(brain, 9999.0)
    promote(brain)
    assert asked == len(engine.of(Purpose.CONSOLIDATE))


def test_private_exchanges_are_filed_and_consolidated_as_private(tmp_path: Path) -> None:
    """They go to the day's private page, and a page that a person makes private later makes all on it private."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", CONFIG, engine)
    tell(brain, "Ruth lost her job at the clinic.", private=True)
    talk(brain, 20)
    (private,) = (page for page in pages(brain).values() if "lost her job" in page.text)
    assert private.meta["private"] is True
    assert ["Ruth lost her job at the clinic."] == [event.user for event in parse_exchanges(private.text)]
    day = brain.root / private.path.replace("-private", "")
    day.write_text(day.read_text().replace("---\n", "---\nprivate: true\n", 1))
    brain.observed.note_change(private.path.replace("-private", ""))
    on_page = {event.id for event in on_pages(brain)}
    promote(brain)
    asked = [(request.is_private, said.event) for request in engine.of(Purpose.CONSOLIDATE) for said in request.said]
    assert all(is_private is event.is_private for is_private, event in asked)
    users = {event.user for event in on_pages(brain) if event.id in on_page}
    assert users < {event.user for _, event in asked}
    assert users <= {event.user for is_private, event in asked if is_private}


def test_what_a_person_takes_from_a_page_is_not_consolidated_and_not_waited_for(tmp_path: Path) -> None:
    """An exchange that was deleted from its page is gone; one whose page was moved is found there."""
    brain = make_brain(tmp_path / "b", CONFIG)
    talk(brain, 20)
    (path,) = {page.path for page in pages(brain).values()}
    text = brain.tree.absolute(path).read_text()
    start, end = text.index("### 2026"), text.index("### 2026", text.index("### 2026") + 1)
    moved = brain.tree.absolute(path.replace("2026-03-02.md", "talk.md"))
    moved.write_text(text[:start] + text[end:])
    brain.tree.absolute(path).unlink()
    brain.observed.adopt()
    promote(brain)
    assert 19 == len(statements(brain))
    assert not any("Ruth number 0 " in each for each in statements(brain))
    assert 19 == len(on_pages(brain)) == len({event.id for event in on_pages(brain)})
    later(brain, 301)
    assert not is_due(brain, 9999.0)


def test_only_the_last_wording_of_a_revised_exchange_is_consolidated(tmp_path: Path) -> None:
    """A prompt that is saved anew after its exchange was filed gives one statement, that of its last text."""
    brain = make_brain(tmp_path / "b", CONFIG)
    first = tell(brain, "My car is a red Volvo.")
    talk(brain, 20)
    assert first in FiledExchanges(brain).waiting
    prompt = Prompt("inbox/1.md", "My car is a green Saab.", "", "2026-03-02T12:00:00Z")
    exchange = Exchange("0199-9999", prompt, Response(path="", text="Noted."), "2026-03-02T12:00:00Z", first)
    brain.plugins.call("response_arrived", brain=brain, exchange=exchange)
    promote(brain)
    assert ["My car is a green Saab."] == [each for each in statements(brain, history=False) if "car" in each]
    assert not any("Volvo" in each for each in statements(brain, history=True))


@pytest.mark.slow
def test_an_exchange_that_comes_back_into_the_log_is_not_filed_twice(tmp_path: Path) -> None:
    """Where a person puts an old version of the log back, what stands on a page already only leaves the log."""
    brain = make_brain(tmp_path / "b", CONFIG)
    talk(brain, 8)
    before = brain.tree.short_term.read_text()
    later(brain, 100)
    talk(brain, 30)
    text = brain.tree.short_term.read_text()
    old = before[before.index("## Event Log\n") + len("## Event Log\n") :]
    brain.tree.short_term.write_text(text.rstrip() + "\n\n" + old)
    brain.observed.note_change(STM)
    talk(brain, 10)
    everything = [event.id for event in (*on_pages(brain), *log(brain))]
    assert 48 == len(everything) == len(set(everything))


def test_an_exchange_that_comes_back_in_other_words_is_not_taken_away(tmp_path: Path) -> None:
    """What a person put right in the log, in an exchange that was filed meanwhile, stays there beside the page's."""
    brain = make_brain(tmp_path / "b", CONFIG)
    talk(brain, 4)
    old = brain.tree.short_term.read_text().split("## Event Log\n")[1].replace("Ruth number 0", "Ruth, number 0,")
    later(brain, 100)
    talk(brain, 30)
    brain.tree.short_term.write_text(brain.tree.short_term.read_text().rstrip() + "\n\n" + old)
    brain.observed.note_change(STM)
    talk(brain, 20)
    assert ["My friend Ruth, number 0, lives in Oslo."] == [event.user for event in log(brain) if "," in event.user]
    users = [event.user for event in on_pages(brain)]
    assert 3 == users.count("My friend Ruth number 0 lives in Oslo.")
    assert 55 == len(users) + len(log(brain))


def test_filing_is_taken_back_by_undo(tmp_path: Path) -> None:
    """The exchanges stand in the log again, nothing waits, and the next filing takes them once more."""
    brain = make_brain(tmp_path / "b", CONFIG)
    said = talk(brain, 12)
    event = next(brain.journal.events(kinds={ExchangesFiled}, reverse=True))
    undo(brain, event)
    assert not FiledExchanges(brain).waiting
    assert (said, []) == ([each.user for each in log(brain)], on_pages(brain))
    said.append("I live in Lund.")
    tell(brain, said[-1])
    assert said == [each.user for each in (*on_pages(brain), *log(brain))]
    assert on_pages(brain)


@pytest.mark.slow
def test_a_busy_day_has_several_pages(tmp_path: Path) -> None:
    """A page that is full is continued by the next, with its own title; quiet time lists all in the day's index."""
    brain = make_brain(tmp_path / "b", CONFIG)
    answer = "wordy " * 400
    for number in range(60):
        tell(brain, f"Question {number}?", answer=answer)
    found = {path.rsplit("/")[-1]: page for path, page in pages(brain).items()}
    assert ["2026-03-02-2.md", "2026-03-02-3.md", "2026-03-02-4.md"] == sorted(found)[:3]
    assert "2026-03-02.md" in found
    assert all(len(page.text) < PAGE_CHARACTERS + 3000 for page in found.values())
    assert "2 March 2026 (2)" == found["2026-03-02-2.md"].title
    index = (brain.root / "memory/long_term/events/2026/03/02/_index.md").read_text()
    assert "](2026-03-02.md " in index
    questions = [event.user for event in (*on_pages(brain), *log(brain))]
    assert {f"Question {number}?" for number in range(60)} == set(questions)
    assert 60 == len(questions)
    promote(brain)
    assert 60 == len(on_pages(brain))
    derive_manifests(brain, ["memory/long_term/events/2026/03/02"])
    index = (brain.root / "memory/long_term/events/2026/03/02/_index.md").read_text()
    assert all(f"]({name} " in index for name in found)


def prepared(tmp_path: Path) -> Path:
    """Put a brain in place, a copy each time, whose log is to be filed."""
    root, kept = tmp_path / "brain", tmp_path / "kept"
    state = LocalPlaces.of(tmp_path, "x").device
    if kept.exists():
        for name, folder in (("root", root), ("state", state)):
            shutil.rmtree(folder)
            shutil.copytree(kept / name, folder)
        return root
    brain = make_brain(root, "promotion: {max_tokens: 100000}\n")
    talk(brain, 12)
    brain.close()
    config = root / "system/config.yaml"
    config.write_text(config.read_text().replace("max_tokens: 100000", f"max_tokens: {LIMIT}"))
    open_brain(root).close()
    shutil.copytree(root, kept / "root")
    shutil.copytree(state, kept / "state")
    return root


def opened(root: Path, disk: CountingDisk | None = None) -> Brain:
    brain = Brain(root, clock=ManualClock(START))
    later(brain, 7200)
    if disk:
        brain.__dict__["journal"] = Journal(brain.tree, brain.places, disk)
        brain.__dict__["committer"] = Committer(brain.tree, brain.places, brain.journal, brain.clock, disk)
    return brain


def operations(tmp_path: Path) -> int:
    disk = CountingDisk()
    brain = opened(prepared(tmp_path), disk)
    file_overflow(brain)
    brain.committer.database.close()
    return len(disk.done)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "how"), [(CountingDisk, "before"), (CountingDisk, "torn"), (PowerDisk, "before")])
def test_a_filing_interrupted_anywhere_is_whole_or_not_at_all(
    tmp_path: Path, kind: Callable[[int, str], CountingDisk], how: str
) -> None:
    """After recovery every exchange stands once, in the log or on a page that exists, and a new filing ends it."""
    outcomes = set()
    total = operations(tmp_path)
    for number in range(1, total + 1, 2):
        root = prepared(tmp_path)
        disk = kind(number, how)
        broken = opened(root, disk)
        try:
            file_overflow(broken)
        except Crash:
            pass
        else:
            assert len(disk.done) < number
            continue
        broken.committer.database.close()
        if isinstance(disk, PowerDisk):
            disk.fail()
        brain = opened(root)
        brain.committer.recover()
        outcomes.add(bool(on_pages(brain)))
        for _ in range(2):
            users = [event.user for event in (*on_pages(brain), *log(brain))]
            assert [f"My friend {NAMES[n % 10]} number {n} lives in Oslo." for n in range(12)] == users
            assert not [each for each in brain.observed.adopt() if each.path.startswith("memory/")]
            file_overflow(brain)
        assert on_pages(brain)
        brain.committer.database.close()
    assert {True, False} == outcomes
