"""From the file system to the hooks, with a real daemon over a real folder."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from brainiac import hookimpl
from brainiac.clock import ManualClock
from brainiac.errors import ModelError, StorageError
from brainiac.events import Event
from brainiac.formats.prompt import Prompt
from tests.support.pipeline import CONFIG, Running, Scripted, advance_until, eventually, make_folder, running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "brain")


@pytest.mark.parametrize("name", ["q.txt", "deep/er/q.md", "with space é.md", "UPPER.md"])
def test_prompts_of_every_read_type_and_depth_are_answered(root: Path, name: str) -> None:
    with running(root) as run:
        run.drop(f"inbox/{name}", "hello")
        run.wait_for(f"inbox/{name.removesuffix('.md')}.response.md")
        run.wait_idle()
        assert ["hello"] == run.plugin.texts()


@pytest.mark.parametrize("how", ["rename", "link", "slow write", "empty first, sent"])
def test_files_arrive_in_every_way_programs_write_them(root: Path, how: str) -> None:
    with running(root) as run:
        target, aside = root / "inbox/q.md", root.parent / "aside.md"
        if how == "rename":
            aside.write_text("hello")
            aside.rename(target)
        elif how == "link":
            aside.write_text("hello")
            os.link(aside, target)
        elif how == "slow write":
            with target.open("w") as file:
                for piece in ("h", "el", "lo"):
                    file.write(piece)
                    file.flush()
                    time.sleep(0.005)
        else:
            target.touch()
            run.wait_idle()
            target.write_text("hello\n/send\n")
        run.wait_for("inbox/q.response.md")
        run.wait_idle()
        assert ["hello"] == run.plugin.texts()


def test_a_prompt_that_is_typed_is_answered_once_at_its_end(root: Path) -> None:
    """Saves while one types are not answered one by one."""
    with running(root) as run:
        target = run.drop("inbox/q.md", "")
        run.wait_idle()
        for text in ("What", "What is", "What is new", "What is new?"):
            target.write_text(text)
            time.sleep(0.1)
        run.wait_for("inbox/q.response.md")
        assert ["What is new?"] == run.plugin.texts()


def test_temporary_hidden_conflicting_and_foreign_files_are_passed_over(root: Path) -> None:
    temporary = [".q.md", "q.md~", ".q.md.swp", "q.md.tmp", "4913", "#q.md#", "q.part", ".hidden/q.md"]
    copies = ["q.sync-conflict-20250916-153000-ABCDEFG.md", "q (Ann's conflicted copy 2025-09-16).md"]
    with running(root) as run:
        for name in [*temporary, *copies, "sheet.docx"]:
            run.drop(f"inbox/{name}", "not a prompt")
        run.wait_idle()
        assert [] == run.plugin.prompts
        assert "`.docx` is no text" in (root / "inbox/sheet.docx.error.md").read_text()


@pytest.mark.parametrize("text", ["", "  \n\t\n", "---\nstatus: draft\n---\nnot yet\n"])
def test_blank_files_and_drafts_wait_without_a_word(root: Path, text: str) -> None:
    with running(root) as run:
        target = run.drop("inbox/q.md", text)
        run.wait_idle()
        assert ([], []) == (run.plugin.prompts, run.daemon.bus.inbox.pending)
        target.write_text("now\n/send\n")
        run.wait_for("inbox/q.response.md")


def test_a_conversation_is_answered_in_order_and_others_side_by_side(root: Path) -> None:
    """Seeds: S9."""
    release, plugin = threading.Event(), Scripted()

    def hold_the_first(prompt: Prompt) -> None:
        if prompt.path == "inbox/slow/1.md":
            assert release.wait(10)

    plugin.before_answer = hold_the_first
    with running(root, plugin) as run:
        run.drop("inbox/slow/1.md", "one")
        eventually(lambda: plugin.texts() == ["one"])
        run.drop("inbox/slow/2.md", "two")
        for name in ("inbox/other/1.md", "inbox/top.md"):
            run.drop(name, "aside")
        run.wait_for("inbox/other/1.response.md")
        run.wait_for("inbox/top.response.md")
        assert "two" not in plugin.texts()
        release.set()
        run.wait_for("inbox/slow/2.response.md")
        assert ["one", "two"] == [text for text in plugin.texts() if text != "aside"]


def test_reflection_never_blocks_the_next_prompt_and_goes_in_order(root: Path) -> None:
    """Seeds: S9."""
    release, plugin = threading.Event(), Scripted()

    def hold(exchange: object) -> None:
        assert release.wait(10)

    plugin.on_exchange = hold
    with running(root, plugin) as run:
        for name in ("a", "b", "c"):
            run.drop(f"inbox/{name}.md", name)
            run.wait_for(f"inbox/{name}.response.md")
        assert [] == plugin.exchanges
        release.set()
        eventually(lambda: len(plugin.exchanges) == 3)
        assert ["a", "b", "c"] == [exchange.prompt.text for exchange in plugin.exchanges]


# --- revisions, moves, deletions ------------------------------------------------------------------------


def answered_one(run: Running, path: str = "inbox/q.md", text: str = "first") -> None:
    run.drop(path, text)
    run.wait_for(path.removesuffix(".md") + ".response.md")
    run.wait_idle()


def test_a_prompt_saved_again_is_answered_again_and_supersedes(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        run.drop("inbox/q.md", "second\n/send")
        run.wait_for("inbox/q.response.md", "Answer to: second")
        run.wait_idle()
        first, second = run.plugin.exchanges
        assert first.id == second.supersedes
        assert run.plugin.prompts[0].id == run.plugin.prompts[1].id
        assert ["q.md", "q.response.md"] == sorted(path.name for path in (root / "inbox").glob("*.md"))


def test_saving_the_same_text_again_asks_nothing(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        run.drop("inbox/q.md", "first  \r\n\n/send\n")
        run.wait_idle()
        assert ["first"] == run.plugin.texts()


def test_going_back_to_an_answered_text_asks_nothing(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        run.drop("inbox/q.md", "second\n/send")
        run.wait_for("inbox/q.response.md", "second")
        run.drop("inbox/q.md", "first\n/send")
        run.wait_idle()
        assert ["first", "second"] == run.plugin.texts()


def test_a_response_that_a_person_edited_is_kept_and_reflected_as_it_stands(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        edited = (run.text("inbox/q.response.md") or "") + "My own remark.\n"
        run.drop("inbox/q.response.md", edited)
        eventually(lambda: len(run.plugin.exchanges) == 2)
        assert run.plugin.exchanges[0].id == run.plugin.exchanges[1].supersedes
        run.drop("inbox/q.md", "second\n/send")
        run.wait_for("inbox/q.response-2.md", "Answer to: second")
        assert edited == run.text("inbox/q.response.md")


def test_an_edit_of_the_answer_to_a_former_text_makes_no_exchange_with_the_new_one(root: Path) -> None:
    """A person's remark on the first answer is not what was said to the second text."""
    with running(root) as run:
        answered_one(run)
        edited = (run.text("inbox/q.response.md") or "") + "My own remark.\n"
        run.drop("inbox/q.response.md", edited)
        run.drop("inbox/q.md", "second\n/send")
        run.wait_for("inbox/q.response-2.md", "Answer to: second")
        run.wait_idle()
        told = len(run.plugin.exchanges)
        run.drop("inbox/q.response.md", edited + "And another.\n")
        run.wait_idle()
        time.sleep(0.3)
        run.wait_idle()
        assert told == len(run.plugin.exchanges)
        said = [(each.prompt.text, each.response.text) for each in run.plugin.exchanges if each.response]
        assert all(question in answer for question, answer in said)


def test_deleting_a_response_is_not_a_request(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        (root / "inbox/q.response.md").unlink()
        run.wait_idle()
        assert ["first"] == run.plugin.texts()
        assert not (root / "inbox/q.response.md").exists()
    with running(root, run.plugin) as again:
        again.wait_idle()
        assert ["first"] == run.plugin.texts()


def test_a_response_with_broken_front_matter_is_moved_along_as_it_is(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        broken = "---\n[: {\n---\nMine."
        run.drop("inbox/q.response.md", broken)
        run.wait_idle()
        (root / "inbox/q.md").rename(root / "inbox/better.md")
        run.wait_for("inbox/better.response.md", broken)


def test_renaming_an_answered_prompt_moves_its_response_along(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        (root / "inbox/q.md").rename(root / "inbox/better name.md")
        moved = run.wait_for("inbox/better name.response.md", "Answer to: first")
        run.wait_idle()
        assert "in_reply_to: better name.md" in moved
        assert not (root / "inbox/q.response.md").exists()
        assert ["first"] == run.plugin.texts()
        assert 1 == len(run.plugin.exchanges)


def test_moving_a_whole_conversation_answers_nothing(root: Path) -> None:
    with running(root) as run:
        for number in range(3):
            answered_one(run, f"inbox/trip/{number}.md", f"question {number}")
        (root / "inbox/trip").rename(root / "inbox/holiday")
        run.wait_idle()
        assert 3 == len(run.plugin.prompts) == len(run.plugin.exchanges)
        (root / "inbox/holiday/0.response.md").unlink()
        run.drop("inbox/holiday/0.md", "question 0\n")
        run.wait_idle()
        assert 3 == len(run.plugin.prompts)


def test_a_copy_of_an_answered_prompt_is_a_new_question(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        run.drop("inbox/copy.md", "first")
        run.wait_for("inbox/copy.response.md")
        assert ["first", "first"] == run.plugin.texts()


def test_a_deleted_prompt_s_name_may_serve_for_another_question(root: Path) -> None:
    """A script that always drops the same file gets each one answered and remembered."""
    with running(root) as run:
        for _ in range(2):
            answered_one(run, "inbox/today.md", "What is on today?")
            for path in (root / "inbox").glob("today*"):
                path.unlink()
            run.wait_idle()
        assert 2 == len(run.plugin.exchanges)
        assert [None, None] == [exchange.supersedes for exchange in run.plugin.exchanges]


def test_a_prompt_changed_while_it_is_answered_gets_the_answer_to_its_new_text(root: Path) -> None:
    plugin = Scripted()

    def change(prompt: Prompt) -> None:
        if prompt.text == "first":
            (root / prompt.path).write_text("second\n/send")

    plugin.before_answer = change
    with running(root, plugin) as run:
        run.drop("inbox/q.md", "first")
        run.wait_for("inbox/q.response.md", "Answer to: second")
        run.wait_idle()
        assert ["Answer to: second"] == [e.response.text for e in plugin.exchanges if e.response]


def test_a_prompt_deleted_while_it_is_answered_leaves_nothing(root: Path) -> None:
    plugin = Scripted()
    plugin.before_answer = lambda prompt: (root / prompt.path).unlink()
    with running(root, plugin) as run:
        run.drop("inbox/q.md", "first")
        eventually(lambda: plugin.texts() == ["first"])
        run.wait_idle()
        assert [] == [path.name for path in (root / "inbox").glob("*.md")]
        assert ([], []) == (plugin.exchanges, run.daemon.bus.inbox.pending)


# --- what others write ----------------------------------------------------------------------------------


def test_a_response_dropped_by_hand_is_reflected_and_not_written_over(root: Path) -> None:
    with running(root) as run:
        run.drop("inbox/q.response.md", "Forty-two, says my other chat.\n")
        run.wait_idle()
        run.drop("inbox/q.md", "What is the answer?")
        run.drop("inbox/q.response.md", "Forty-two, says another chat.\n")
        eventually(lambda: len(run.plugin.exchanges) == 1)
        run.wait_idle()
        (exchange,) = run.plugin.exchanges
        assert exchange.response is not None
        assert ("What is the answer?", "Forty-two, says another chat.") == (
            exchange.prompt.text,
            exchange.response.text,
        )
        assert [] == run.plugin.prompts


def test_a_response_that_cannot_be_recorded_at_the_moment_is_recorded_later(root: Path) -> None:
    with running(root) as run:
        answered_one(run)
        eventually(lambda: len(run.plugin.exchanges) == 1)
        commit = run.brain.commit

        def refuse_once(*args: Any, **values: Any) -> Event:
            if not values.get("changes"):
                return commit(*args, **values)
            vars(run.brain).pop("commit")
            raise StorageError("The disk is full.")

        vars(run.brain)["commit"] = refuse_once
        run.drop("inbox/q.response.md", f"{run.text('inbox/q.response.md')}My own remark.\n")
        eventually(lambda: len(run.plugin.exchanges) == 2)
        assert "commit" not in vars(run.brain)


@pytest.mark.parametrize("path", ["inbox/notes/thought.md", "inbox/later.md"])
def test_captured_notes_go_straight_to_reflection(root: Path, path: str) -> None:
    """Seeds: U3."""
    with running(root) as run:
        head = "" if "notes" in path else "---\nanswer: false\n---\n"
        run.drop(path, f"{head}The key is under the mat.")
        eventually(lambda: len(run.plugin.exchanges) == 1)
        run.drop(path, f"{head}The key is in the shed.\n/send")
        eventually(lambda: len(run.plugin.exchanges) == 2)
        first, second = run.plugin.exchanges
        assert (None, first.id) == (second.response, second.supersedes)
        assert [] == run.plugin.prompts


def test_memories_edited_by_hand_are_told_to_plugins(root: Path) -> None:
    """Seeds: U4."""
    note = "---\nuuid: 0199\n---\n- Lives in Portland ^a1b2\n"
    with running(root) as run:
        run.drop("memory/long_term/concrete/home.md", note)
        eventually(lambda: ("memory_created", "memory/long_term/concrete/home.md") in run.plugin.heard)
        run.drop("memory/long_term/concrete/home.md", note.replace("Portland", "Seattle"))
        eventually(lambda: bool(run.plugin.of("memory_modified")))
        (root / "memory/long_term/concrete/home.md").rename(root / "memory/long_term/concrete/house.md")
        eventually(lambda: bool(run.plugin.of("memory_moved")))
        (root / "memory/long_term/concrete/house.md").unlink()
        eventually(lambda: bool(run.plugin.of("memory_deleted")))


ONLOOKER = """
import brainiac
@brainiac.hookimpl
def file_changed(brain, change):
    if change.action != "moved" and not change.path.startswith(("system", "plugins")):
        with open(brain.root / ".changes", "a") as file:
            file.write(f"{change.action} {change.path}\\n")
"""


def test_lines_added_to_the_access_log_are_told_to_plugins(root: Path) -> None:
    """Seeds: U3."""
    line = "2025-09-16T15:30:00Z | READ | /elsewhere/memory/long_term/concrete/home.md\n"
    (root / "plugins/onlooker.py").write_text(ONLOOKER)
    with running(root) as run:
        run.brain.plugins.trust.trust("onlooker")
        eventually(lambda: run.brain.plugins.has_foreign("file_changed"))
        with (root / "logs/access.log").open("a") as log:
            log.write(line)
        eventually(lambda: (root / ".changes").exists() and "ed logs/access.log\n" in (root / ".changes").read_text())


# --- what goes wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe broken", "UTF-8"),
        (b"---\nfocus: [a\n---\nhello", "front matter"),
        (b"x" * 2000, "larger than"),
        (b"---\nanswer: maybe\n---\nhello", "answer"),
    ],
)
def test_what_cannot_be_read_gets_an_error_file_until_it_is_mended(root: Path, content: bytes, why: str) -> None:
    (root / "system/config.yaml").write_text(CONFIG.replace("{settle_ms", "{max_bytes: 1000, settle_ms"))
    with running(root) as run:
        (root / "inbox/q.md").write_bytes(content)
        assert why in run.wait_for("inbox/q.error.md")
        assert content == (root / "inbox/q.md").read_bytes()
        run.drop("inbox/q.md", "hello\n/send")
        run.wait_for("inbox/q.response.md")
        eventually(lambda: not (root / "inbox/q.error.md").exists())
        run.wait_idle()
        assert ["hello"] == run.plugin.texts()


def test_an_error_file_with_broken_front_matter_is_written_over(root: Path) -> None:
    with running(root) as run:
        run.drop("inbox/q.error.md", "---\n[: {\n---\nmine")
        run.drop("inbox/q.md", "---\nanswer: maybe\n---\nhello")
        run.wait_for("inbox/q.error.md", "answer")


def test_a_prompt_that_was_refused_and_then_deleted_waits_no_longer(root: Path) -> None:
    """Its error file goes with it, and a file that was passed over is forgotten likewise."""
    with running(root) as run:
        (root / "inbox/q.md").write_bytes(b"\xff\xfe broken")
        (root / "inbox/sheet.docx").write_bytes(b"x")
        run.wait_for("inbox/q.error.md")
        eventually((root / "inbox/sheet.docx.error.md").exists)
        (root / "inbox/q.md").unlink()
        (root / "inbox/sheet.docx").unlink()
        eventually(lambda: not list((root / "inbox").glob("*.error.md")))
        assert [] == run.daemon.bus.inbox.pending


def test_folders_pipes_and_links_named_like_prompts_stop_nothing(root: Path) -> None:
    with running(root) as run:
        (root / "inbox/folder.md").mkdir()
        os.mkfifo(root / "inbox/pipe.md")
        (root / "secret.md").write_text("outside the inbox")
        (root / "inbox/link.md").symlink_to(root / "secret.md")
        (root / "inbox/loop").symlink_to(root / "inbox")
        run.drop("inbox/q.md", "hello")
        run.wait_for("inbox/q.response.md")
        run.wait_idle()
        assert ["hello"] == run.plugin.texts()


def test_a_provider_that_is_down_is_asked_again_ever_more_rarely(root: Path) -> None:
    clock, plugin, asked = ManualClock(datetime(2025, 9, 16, tzinfo=UTC)), Scripted(), []

    def fail_twice(prompt: Prompt) -> None:
        asked.append(clock.monotonic())
        if len(asked) < 3:
            raise ModelError(
                "the provider is down", retryable=True, retry_after_seconds=60 if len(asked) == 2 else None
            )

    plugin.before_answer = fail_twice
    with running(root, plugin, clock) as run:
        run.drop("inbox/q.md", "hello")
        advance_until(clock, lambda: len(asked) == 1)
        eventually(lambda: bool(run.daemon.bus.inbox.pending))
        (pending,) = run.daemon.bus.inbox.pending
        assert ("the provider is down", 1) == (pending.reason, pending.attempts)
        advance_until(clock, lambda: (root / "inbox/q.response.md").exists())
        assert asked[1] - asked[0] >= 1
        assert asked[2] - asked[1] >= 60
        advance_until(clock, lambda: not run.daemon.bus.inbox.pending)
        assert 1 == len({prompt.id for prompt in plugin.prompts})


def test_what_no_retry_mends_is_told_in_an_error_file_and_tried_again_when_settings_change(root: Path) -> None:
    plugin, is_broken = Scripted(), [True]

    def refuse(prompt: Prompt) -> None:
        if is_broken[0]:
            raise ModelError("the model `x` does not exist", advice="Set llm.model in system/config.yaml.")

    plugin.before_answer = refuse
    with running(root, plugin) as run:
        run.drop("inbox/q.md", "hello")
        told = run.wait_for("inbox/q.error.md")
        assert "the model `x` does not exist" in told
        assert "Set llm.model" in told
        is_broken[0] = False
        (root / "system/config.yaml").write_text(CONFIG + "# mended\n")
        run.wait_for("inbox/q.response.md")
        eventually(lambda: not (root / "inbox/q.error.md").exists())


def test_deleting_an_error_file_asks_again(root: Path) -> None:
    plugin, is_broken = Scripted(), [True]

    def refuse(prompt: Prompt) -> None:
        if is_broken[0]:
            raise ModelError("no")

    plugin.before_answer = refuse
    with running(root, plugin) as run:
        run.drop("inbox/q.md", "hello")
        run.wait_for("inbox/q.error.md")
        run.wait_idle()
        is_broken[0] = False
        (root / "inbox/q.error.md").unlink()
        run.wait_for("inbox/q.response.md")


def test_a_plugin_that_breaks_leaves_the_prompt_pending_and_everybody_else_working(root: Path) -> None:
    plugin = Scripted()

    def break_once(prompt: Prompt) -> None:
        if prompt.text == "bad":
            raise RuntimeError("a bug")

    plugin.before_answer = break_once
    with running(root, plugin) as run:
        run.drop("inbox/a.md", "bad")
        run.drop("inbox/b.md", "good")
        run.wait_for("inbox/b.response.md")
        eventually(lambda: ["inbox/a.md"] == [pending.prompt for pending in run.daemon.bus.inbox.pending])
        assert ["plugin-failed"] == [e.kind for e in run.brain.journal.events() if e.kind == "plugin-failed"]


def test_reflection_that_fails_is_tried_again(root: Path) -> None:
    plugin, fails = Scripted(), [ModelError("down", retryable=True)]

    def fail_once(exchange: object) -> None:
        if fails:
            raise fails.pop()

    plugin.on_exchange = fail_once
    with running(root, plugin) as run:
        run.drop("inbox/q.md", "hello")
        eventually(lambda: len(plugin.exchanges) == 1)


@pytest.mark.parametrize("name", ["inbox/fresh.md", "inbox/another/fresh.md"])
def test_a_fresh_prompt_waits_for_no_backlog(root: Path, name: str) -> None:
    """Behind a hundred and fifty conversations that wait and one that has fifty prompts, one that comes fresh is among
    the next ten answered; so are the oldest of those that wait."""
    plugin, release = Scripted(), threading.Event()

    def hold_up(prompt: object) -> None:
        release.wait(120)

    plugin.before_answer = hold_up
    with running(root, plugin) as run:
        for number in range(50):
            run.drop(f"inbox/long/{number:03d}.md", f"long {number}")
        for number in range(150):
            run.drop(f"inbox/q{number:03d}.md", f"waits {number}")
        bus = run.daemon.bus
        eventually(lambda: bus.foreground.pending == 200 and not bus.settler.waiting_paths, "taken in")
        begun = run.plugin.texts()
        run.drop(name, "fresh")
        eventually(lambda: run.daemon.bus.foreground.pending == 201, "taken in")
        release.set()
        run.wait_for(name.replace(".md", ".response.md"))
        eventually(lambda: len(plugin.prompts) == 201, "all", 60)
        texts = [text for text in plugin.texts() if text not in begun]
        assert "fresh" in texts[:10]
        assert 3 <= sum(text in texts[:20] for text in (f"waits {number}" for number in range(12)))
        assert 201 == len(set(plugin.texts()))


class Echo:
    """A plugin that breaks at every event it hears of."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    @hookimpl
    def event_recorded(self, event: Event) -> None:
        self.kinds.append(event.kind)
        raise RuntimeError("always")


def test_a_plugin_that_breaks_at_every_event_does_not_feed_itself(root: Path) -> None:
    with running(root) as run:
        echo = Echo()
        run.brain.plugins.register(echo, "echo")
        run.drop("inbox/q.md", "hello")
        run.wait_for("inbox/q.response.md")
        run.wait_idle()
        assert "prompt-answered" in echo.kinds
        assert "plugin-failed" not in echo.kinds


# --- time -----------------------------------------------------------------------------------------------


def test_quiet_counts_from_the_last_exchange_over_restarts_and_edits_do_not_reset_it(root: Path) -> None:
    """Seeds: S9, U3."""
    clock, plugin = ManualClock(datetime(2025, 9, 16, 12, tzinfo=UTC)), Scripted()
    with running(root, plugin, clock) as run:
        run.drop("inbox/q.md", "hello")
        advance_until(clock, lambda: len(plugin.exchanges) == 1)
    clock.advance(200)
    with running(root, plugin, clock) as run:
        run.drop("memory/long_term/concrete/a.md", "- edited ^a\n")
        advance_until(clock, lambda: len(plugin.of("quiet")) >= 2, 10)
    told = cast("list[float]", plugin.of("quiet"))
    assert told == sorted(told)
    assert told[0] >= 200


def test_a_plugin_hears_of_every_folder_and_what_is_new_is_called_so(root: Path) -> None:
    """Also of the person's own folders, made before or meanwhile; what stood there before is not told of."""
    (root / "diary").mkdir()
    (root / "diary/old.md").write_text("old\n")
    (root / "plugins/onlooker.py").write_text(ONLOOKER)
    with running(root) as run:
        assert str(root / "diary") not in run.daemon.watcher._watches  # it costs nothing while nobody listens
        run.brain.plugins.trust.trust("onlooker")  # taken in without a restart
        eventually(
            lambda: run.brain.plugins.has_foreign("file_changed") and str(root / "diary") in run.daemon.watcher._watches
        )
        (root / "diary/new.md").write_text("new\n")
        (root / "letters").mkdir()
        (root / "letters/first.md").write_text("first\n")
        run.drop("inbox/q.md", "hello")
        told = {"created diary/new.md", "created letters/first.md", "created inbox/q.md"}
        eventually(lambda: (root / ".changes").exists() and told <= set((root / ".changes").read_text().splitlines()))
        (root / "diary/new.md").write_text("newer\n")
        eventually(lambda: "modified diary/new.md" in (root / ".changes").read_text())
        assert "old.md" not in (root / ".changes").read_text()
        assert "modified inbox/q.md" not in (root / ".changes").read_text()
