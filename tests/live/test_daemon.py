"""One running brain: start, stop, and what a stop or a crash leaves for the next start."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso
from brainiac.errors import ModelError, UserError
from brainiac.events import content_hash, new_id
from brainiac.formats.prompt import parse_prompt
from brainiac.library import read_prompt
from brainiac.pipeline.daemon import answer_one, run_once
from brainiac.search.search import Recall
from brainiac.storage.database import RunState, StateDatabase, read_run_state
from brainiac.testing import door
from tests.support.living import command, unprivileged
from tests.support.pipeline import CONFIG, Scripted, advance_until, answer, eventually, make_folder, opened, running

PAID = CONFIG + "llm: {model: openai/gpt-5}\n"
FEW = CONFIG.replace("{settle_ms", "{backlog_limit: 3, settle_ms")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "brain")


def drop(root: Path, *names: str) -> None:
    for name in names:
        (root / "inbox" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "inbox" / name).write_text(f"question {name}")


def test_a_door_finds_what_is_still_being_saved(root: Path) -> None:
    """A page is searched as soon as it is heard of, long before it has rested; nor does polling say it is fresh."""
    (root / "system/config.yaml").write_text("inbox: {settle_ms: 60000}\n")
    with running(root) as run:
        assert not door(run.brain, "search", query="heron")["results"]
        page = run.drop("memory/long_term/concrete/birds.md", "# Birds\n\n- The heron is called Ada. ^a1\n")
        eventually(lambda: bool(door(run.brain, "search", query="heron")["results"]), "the page")
        page.write_text("# Birds\n\n- The crane is called Bob. ^a1\n")
        eventually(lambda: not door(run.brain, "search", query="heron")["results"], "the edit")
        (root / "system/config.yaml").write_text("watch: {polling: true, polling_seconds: 60}\n")
        run.daemon.watcher.check()
        run.drop("memory/long_term/concrete/fish.md", "# Fish\n\n- The pike is called Eve. ^a1\n")
        assert door(run.brain, "search", query="pike")["results"]


def test_what_was_dropped_while_no_daemon_ran_is_answered_at_the_start(root: Path) -> None:
    """Seeds: U3."""
    drop(root, "a.md", "deep/b.txt", "notes/n.md")
    with running(root) as run:
        run.wait_for("inbox/a.response.md")
        run.wait_for("inbox/deep/b.txt.response.md")
        eventually(lambda: len(run.plugin.exchanges) == 3)


def test_a_restart_asks_and_tells_nothing_twice(root: Path) -> None:
    drop(root, "a.md", "notes/n.md")
    plugin = Scripted()
    with running(root, plugin):
        eventually(lambda: len(plugin.exchanges) == 2)
    with running(root, plugin) as run:
        run.wait_idle()
    assert (1, 2) == (len(plugin.prompts), len(plugin.exchanges))


def test_nothing_is_told_twice_where_no_plugin_reflects(root: Path) -> None:
    """Where Reflection is disabled, the kernel notes that nothing followed."""
    drop(root, "a.md")
    plugin = Scripted()

    def note_and_give_up(exchange: object) -> None:
        plugin.heard.append(("told", exchange))
        raise ModelError("not today")  # so that the scripted plugin records nothing

    plugin.on_exchange = note_and_give_up
    for _ in range(2):
        with running(root, plugin) as run:
            run.wait_for("inbox/a.response.md")
            run.wait_idle()
    assert 1 == len(plugin.of("told"))


def test_what_is_saved_while_the_daemon_starts_is_journaled(root: Path) -> None:
    """A plugin saves a page between the look at the tree and the begin of watching, as a person may at any moment."""
    page = "memory/long_term/concrete/otter.md"
    (root / page).write_text("- The otter is called Ada. ^a1\n")

    class Saving(Scripted):
        @hookimpl
        def startup(self) -> None:
            (root / page).write_text("- The otter is called Bea. ^a1\n")
            (root / page).with_name("heron.md").write_text("- The heron is called Eve. ^a1\n")

    with running(root, Saving()) as run:
        expected = {
            page: (root / page).read_bytes(),
            page.replace("otter", "heron"): b"- The heron is called Eve. ^a1\n",
        }
        hashes = {path: content_hash(content) for path, content in expected.items()}
        eventually(lambda: hashes.items() <= run.brain.journal.fold().items(), "both saves in the journal")


def test_an_answer_that_was_not_reflected_is_reflected_by_the_next_run(root: Path) -> None:
    drop(root, "a.md")
    plugin = Scripted()
    brain = opened(root, plugin)
    prompt = read_prompt(brain, "inbox/a.md")
    assert prompt is not None
    brain.plugins.call("prompt_arrived", brain=brain, prompt=replace(prompt, id=new_id()))
    brain.close()  # here the process ended
    with running(root, plugin) as run:
        eventually(lambda: len(plugin.exchanges) == 1)
        run.wait_idle()
        assert 1 == len(plugin.prompts)


def test_an_exchange_that_another_process_left_is_reflected_although_later_ones_were(root: Path) -> None:
    """`ask` was killed before it reflected, beside a daemon that went on: the next start hands its exchange out."""
    plugin = Scripted()
    with running(root, plugin) as run:
        other = opened(root, Scripted())
        drop(root, "notes/kept.md")  # taken in without an answer, so that only the other process answers a.md
        (root / "inbox/.a.md").write_text("left by another")
        answer_of_another(other, "inbox/.a.md", "inbox/a.md")
        other.close()
        run.drop("inbox/b.md", "later")
        eventually(lambda: "later" in [each.prompt.text for each in plugin.exchanges])
    assert "left by another" not in [each.prompt.text for each in plugin.exchanges]
    with running(root, plugin) as run:
        eventually(lambda: "left by another" in [each.prompt.text for each in plugin.exchanges])
        run.wait_idle()
    assert 3 == len(plugin.exchanges)


def answer_of_another(brain: Brain, hidden: str, path: str) -> None:
    """Answer a prompt and let it appear already answered, as when `ask` is quicker than the daemon."""
    raw = (brain.root / hidden).read_bytes()
    prompt = parse_prompt(path, raw, at=iso(brain.clock.now()))
    (brain.root / hidden).rename(brain.root / path)
    answer(brain, replace(prompt, id=new_id()), raw)


def test_an_exchange_that_a_plugin_failed_at_is_handed_out_by_the_next_start(root: Path) -> None:
    drop(root, "a.md")
    plugin, heard = Scripted(), []

    def fail_once(exchange: object) -> None:
        heard.append(exchange)
        if len(heard) == 1:
            raise RuntimeError("a bug, mended by the next start")

    plugin.on_exchange = fail_once
    for _ in range(3):
        with running(root, plugin) as run:
            run.wait_for("inbox/a.response.md")
            run.wait_idle()
    assert (2, 1) == (len(heard), len(plugin.exchanges))


def test_prompts_moved_while_no_daemon_ran_are_followed(root: Path) -> None:
    drop(root, "trip/a.md", "b.md")
    plugin = Scripted()
    with running(root, plugin):
        eventually(lambda: len(plugin.exchanges) == 2)
    (root / "inbox/trip").rename(root / "inbox/holiday")
    (root / "inbox/b.md").rename(root / "inbox/c.md")
    with running(root, plugin) as run:
        run.wait_for("inbox/c.response.md")
        run.wait_idle()
    assert (2, 2) == (len(plugin.prompts), len(plugin.exchanges))
    assert not (root / "inbox/b.response.md").exists()


def test_a_response_saved_by_hand_while_no_daemon_ran_is_reflected(root: Path) -> None:
    drop(root, "a.md")
    (root / "inbox/a.response.md").write_text("by hand")
    with running(root) as run:
        eventually(lambda: len(run.plugin.exchanges) == 1)
        assert [] == run.plugin.prompts


# --- backlog --------------------------------------------------------------------------------------------


def test_a_backlog_goes_to_no_paid_model_until_a_person_says_so(root: Path) -> None:
    (root / "system/config.yaml").write_text(FEW.replace("plugins:", "llm: {model: openai/gpt-5}\nplugins:"))
    drop(root, *(f"{number}.md" for number in range(4)))
    plugin = Scripted()
    with running(root, plugin) as run:
        run.wait_idle()
        assert [] == plugin.prompts
        assert 4 == len(run.daemon.bus.inbox.pending)
        assert "--answer-backlog" in run.daemon.bus.inbox.pending[0].reason
        run.drop("inbox/new.md", "a new one is answered")
        run.wait_for("inbox/new.response.md")
    with running(root, plugin, is_backlog_answered=True) as run:
        eventually(lambda: len(plugin.prompts) == 5)
        eventually(lambda: not run.daemon.bus.inbox.pending)


def is_given(plugin: Scripted, count: int) -> bool:
    return len(plugin.prompts) == count


def test_a_few_go_to_a_paid_model_and_any_number_to_the_free_engine(root: Path) -> None:
    for config, count in ((PAID, 4), (FEW, 9)):
        (root / "system/config.yaml").write_text(config)
        drop(root, *(f"{count}/{number}.md" for number in range(count)))
        with running(root) as run:
            eventually(partial(is_given, run.plugin, count))


# --- state ----------------------------------------------------------------------------------------------


def test_the_state_file_tells_status_what_waits_and_why(root: Path) -> None:
    plugin = Scripted()

    def refuse(prompt: object) -> None:
        raise ModelError("the provider is down", retryable=True)

    plugin.before_answer = refuse
    with running(root, plugin) as run:
        drop(root, "a.md")

        def state() -> RunState:
            return read_run_state(run.brain.database)

        eventually(
            lambda: [("inbox/a.md", "the provider is down")] == [(p["prompt"], p["reason"]) for p in state().pending]
        )
        assert state().pid > 0
        assert "events" == state().watch["mode"]
        (root / "system/config.yaml").write_text("plugins: 3\n")
        eventually(lambda: "plugins" in state().problem)
    assert 0 == read_run_state(StateDatabase(run.brain.places)).pid


def test_another_device_that_runs_the_processes_is_left_to_answer(root: Path) -> None:
    (root / "system/config.yaml").write_text(CONFIG + "active_device: laptop-123\n")
    drop(root, "a.md", "notes/n.md")
    with running(root) as run:
        eventually(lambda: len(run.daemon.bus.inbox.pending) == 2)
        assert "laptop-123" in run.daemon.bus.inbox.pending[0].reason
        assert ([], []) == (run.plugin.prompts, run.plugin.exchanges)


def test_a_folder_that_vanishes_and_returns_is_served_again(root: Path) -> None:
    with running(root) as run:
        drop(root, "a.md")
        run.wait_for("inbox/a.response.md")
        (root / "inbox").rename(root.parent / "away")
        eventually(lambda: run.daemon.watcher.health().missing == ("inbox",))
        (root.parent / "away").rename(root / "inbox")
        eventually(lambda: run.daemon.watcher.health().missing == ())
        drop(root, "b.md")
        run.wait_for("inbox/b.response.md")
        run.wait_idle()
        assert 2 == len(run.plugin.prompts)


@pytest.mark.parametrize("table", ["pages", "pages_by_path", "passages_by_page", "terms_data", "grams_data", "words"])
def test_a_search_index_with_a_damaged_page_is_made_anew_and_keeps_nobody_waiting(root: Path, table: str) -> None:
    """A page of zeros in the middle of the database: prompts are answered, and memory is found again."""
    (root / "memory/long_term/concrete/boat.md").write_text("# Boat\n\n- The boat is called Nerissa.\n")
    brain = opened(root, Scripted())
    brain.recall.reindex()
    file = brain.places.cache / "index/pages.db"
    brain.close()
    with closing(sqlite3.connect(file)) as database:
        database.execute("pragma wal_checkpoint(truncate)")
        size = database.execute("pragma page_size").fetchone()[0]
        query = "select rootpage from sqlite_master where name = ?"
        number = database.execute(query, (table,)).fetchone()[0] - 1
    raw = bytearray(file.read_bytes())
    raw[number * size : (number + 1) * size] = bytes(size)
    file.write_bytes(raw)
    with running(root) as run:
        drop(root, "a.md")
        run.wait_for("inbox/a.response.md")
        assert "Nerissa" in run.brain.recall.search("What is the boat called?")[0].text


def test_a_file_whose_first_handling_failed_is_found_by_the_rescan(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk refuses once what is done between a file's rest and its answer: it is taken up again."""
    refusals = ["inbox/a.md"]
    note_change = Recall.note_change

    def note_or_refuse(recall: Recall, path: str) -> None:
        if path in refusals:
            refusals.remove(path)
            raise OSError(errno.EIO, "Input/output error", path)
        note_change(recall, path)

    monkeypatch.setattr(Recall, "note_change", note_or_refuse)
    with running(root) as run:
        drop(root, "a.md")
        eventually(lambda: not refusals)
        run.wait_idle()
        run.daemon.bus.rescan()
        run.wait_for("inbox/a.response.md")


def test_a_memory_that_nobody_may_read_keeps_no_daemon_from_starting(root: Path) -> None:
    locked = root / "memory/long_term/concrete/locked.md"
    locked.write_text("# Locked\n")
    locked.chmod(0)
    drop(root, "a.md")
    (root / "system/config.yaml").write_text("")
    done = subprocess.run(
        [*unprivileged(), *command(root, "--once")], capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "") == (done.returncode, done.stderr if done.returncode else "")
    assert (root / "inbox/a.response.md").exists()


def test_what_is_found_at_once_is_answered_in_the_order_in_which_it_was_written(root: Path) -> None:
    """No event told of it: in whatever order the file system lists a conversation's prompts."""
    (root / "system/config.yaml").write_text(CONFIG + "watch: {polling: true, polling_seconds: 60}\n")
    names = [f"{number * 7 % 12:02d}" for number in range(12)]
    with running(root) as run:
        for name in names:
            run.drop(f"inbox/talk/{name}.md", f"said {name}")
            time.sleep(0.002)
        run.daemon.bus.rescan()
        eventually(lambda: len(run.plugin.prompts) == 12)
        assert [f"said {name}" for name in names] == run.plugin.texts()


def test_a_rescan_finds_what_no_event_told_of(root: Path) -> None:
    clock, plugin = ManualClock(datetime(2025, 9, 16, tzinfo=UTC)), Scripted()
    with running(root, plugin, clock) as run:
        run.daemon.watcher.stop()
        drop(root, "a.md")
        advance_until(clock, lambda: (root / "inbox/a.response.md").exists(), 1.0)
        assert ["question a.md"] == plugin.texts()


def test_a_polled_brain_answers_too(root: Path) -> None:
    (root / "system/config.yaml").write_text(CONFIG + "watch: {polling: true, polling_seconds: 0.05}\n")
    with running(root) as run:
        assert "polling" == run.daemon.watcher.health().mode
        drop(root, "a.md")
        run.wait_for("inbox/a.response.md")


# --- without a daemon -----------------------------------------------------------------------------------


def test_one_pass_answers_reflects_and_ends(root: Path) -> None:
    drop(root, "a.md", "b.md", "notes/n.md")
    plugin = Scripted()
    outcome = run_once(opened(root, plugin))
    assert (2, 3, 0) == (outcome.answered, outcome.reflected, outcome.waiting)
    again = run_once(opened(root, plugin))
    assert (0, 0, 0) == (again.answered, again.reflected, again.waiting)


def test_one_pass_does_not_wait_for_a_provider_that_is_down(root: Path) -> None:
    plugin = Scripted()

    def refuse(prompt: object) -> None:
        raise ModelError("down", retryable=True)

    plugin.before_answer = refuse
    drop(root, "a.md")
    assert (0, 1) == ((outcome := run_once(opened(root, plugin))).answered, outcome.waiting)


def test_what_cannot_be_answered_says_why(root: Path) -> None:
    brain = opened(root, plugin := Scripted())
    with pytest.raises(UserError, match="no prompt"):
        answer_one(brain, "inbox/absent.md")

    def refuse(prompt: object) -> None:
        raise ModelError("down", retryable=True)

    plugin.before_answer = refuse
    drop(root, "a.md")
    with pytest.raises(ModelError, match="down"):
        answer_one(brain, "inbox/a.md")


def test_a_daemon_learns_of_an_answer_that_another_process_gave(root: Path) -> None:
    with running(root) as run:
        drop(root, "a.md")
        run.wait_for("inbox/a.response.md")
        run.wait_idle()
        answer_one(opened(root, other := Scripted()), "inbox/a.md", is_again=True)
        run.wait_idle()
        assert (1, 1) == (len(run.plugin.exchanges), len(other.exchanges))
