"""`brainiac ask` and `brainiac run`: through the same inbox, with a daemon or without one."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.storage.serving import is_running
from tests.support.commands import Shell
from tests.support.living import model_machine
from tests.support.openai_server import ChatServer, say


def test_ask_answers_from_what_was_told(shell: Shell, brain: Brain) -> None:
    """Without daemon, key or network: what was told is recalled, and both stand as files in the inbox.

    Seeds: U3.
    """
    assert 0 == shell("ask", "I live in Portland.").code
    done = shell("ask", "Where do I live?", "--json")
    assert 0 == done.code
    assert "Portland" in done.json["text"]
    assert (brain.root / done.json["prompt"]).read_text() == "Where do I live?\n"
    assert done.json["text"] in (brain.root / done.json["response"]).read_text()
    assert 2 == brain.tree.short_term.read_text().count("<!-- event: ")


def test_ask_goes_through_a_running_daemon(shell: Shell, brain: Brain) -> None:
    """With a daemon, ask drops its file and shows the daemon's answer: one answer, not two."""
    command = [sys.executable, "-m", "brainiac", "--brain", str(brain.root), "run"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert daemon.stdout is not None
        assert daemon.stdout.readline().startswith("Watching")
        while not is_running(brain):
            assert daemon.poll() is None
        done = shell("ask", "I live in Portland.", "--json")
    finally:
        daemon.terminate()
        daemon.wait(30)
    assert 0 == done.code
    assert 1 == len(list(brain.journal.events(kinds={"prompt-answered"})))


def test_ask_in_a_conversation_and_again(shell: Shell, brain: Brain) -> None:
    """`--in` names the conversation's folder; `--again` answers a prompt once more."""
    first = shell("ask", "--in", "trip", "I fly to Oslo on Monday.", "--json").json
    assert first["prompt"].startswith("inbox/trip/")
    again = shell("ask", "--again", first["prompt"], "--json")
    assert (0, first["prompt"]) == (again.code, again.json["prompt"])
    assert 2 == len(list(brain.journal.events(kinds={"prompt-answered"})))


def chatting(brain: Brain) -> tuple[subprocess.Popen[bytes], int]:
    """Begin the conversation `boat` on a terminal; return its process and our side of the terminal."""
    ours, theirs = pty.openpty()
    chat = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
         # a shell's background job ignores Ctrl-C, and hands that on
         "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
         "from brainiac.__main__ import main; main()", "--brain", str(brain.root), "chat", "boat"],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
    )  # fmt: skip
    os.close(theirs)
    return chat, ours


def test_memory_speaks_first_in_a_conversation(shell: Shell, brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the answer does not say is said below it, once; what is due at the beginning.

    Seeds: H1.
    """
    shell("ask", "The espresso machine from Rancilio needs descaling with citric acid every March.")
    shell("ask", "/todo oil the tandem 2020-01-01")
    with ChatServer() as model:
        model.default = say("I see.")
        model_machine(model.url)
        (brain.root / "system/config.yaml").write_text("llm: {model: openai/m}\n")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        chat, ours = chatting(brain)

        def said(line: bytes) -> str:
            os.write(ours, line)
            seen = b""
            while b"\n> " not in seen:
                seen += os.read(ours, 65_536)
            return " ".join(seen.decode().split())

        assert "Waits: due: oil the tandem 2020-01-01" in said(b"")
        first = said(b"Descaling the Rancilio espresso machine took me all evening.\n")
        assert "Memory (`brainiac why ID`): " in first
        assert "citric acid every March. [r" in first
        assert "Memory (" not in said(b"The Rancilio espresso machine is fine after its descaling.\n")
        os.write(ours, b"\n")
        chat.wait(30)
        os.close(ours)


def test_ctrl_c_ends_a_conversation_at_once(brain: Brain) -> None:
    """No Enter is needed; the line that was entered is kept and answered, what stands half typed is not."""
    chat, ours = chatting(brain)
    seen = b""

    def read_until(words: bytes) -> None:
        nonlocal seen
        while words not in seen:
            seen += os.read(ours, 65_536)

    read_until(b"> ")
    os.write(ours, b"My boat is called Nerissa.\n")
    read_until(b"Noted.")
    seen = b""
    read_until(b"> ")
    os.write(ours, b"half a li\x03")
    try:
        code = chat.wait(5)
    except subprocess.TimeoutExpired:  # it came between the prompt and the reading: the next key brings it
        os.write(ours, b"\n")
        code = chat.wait(30)
    assert 130 == code
    os.close(ours)
    said = [path.read_text() for path in (brain.root / "inbox/boat").glob("*.md") if ".response" not in path.name]
    assert ["My boat is called Nerissa.\n"] == said


def test_prompts_that_begin_alike_stand_side_by_side(brain: Brain) -> None:
    """Of several that ask at once, each in a process of its own, every one has a file with its own words."""
    words = "Please remember that my good old friend number"
    folder = brain.root / "inbox" / "alike"
    script = (
        "import sys; from brainiac.brain import Brain; from brainiac.verbs.writing import _stem, _write_new\n"
        "from brainiac.clock import ManualClock; from datetime import UTC, datetime\n"
        "brain = Brain(sys.argv[1], clock=ManualClock(datetime(2025, 9, 16, tzinfo=UTC)))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for number in range(20):\n"
        f"    text = f'{words} {{sys.argv[2]}}-{{number}}'\n"
        "    _write_new(brain.tree.inbox / 'alike', _stem(brain, text, is_named=True), {}, text)\n"
    )
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(brain.root), str(who)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for who in range(2)
    ]
    for each in asking:
        assert each.stdout
        assert b"ready\n" == each.stdout.readline()
    for each in asking:
        assert each.stdin
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in asking:
        each.communicate()
    assert [0, 0] == [each.returncode for each in asking]
    expected = sorted(f"{words} {who}-{number}\n" for who in range(2) for number in range(20))
    assert expected == sorted(path.read_text() for path in folder.iterdir())


def test_ask_off_the_record(shell: Shell, brain: Brain) -> None:
    """What is off the record leaves nothing in short-term memory."""
    assert 0 == shell("ask", "--off-record", "I like jazz.").code
    assert "jazz" not in brain.tree.short_term.read_text()


def test_ask_reads_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text can be piped in; nothing at all is wrong use."""
    monkeypatch.setattr("sys.stdin", io.StringIO("I live in\nPortland.\n"))
    assert 0 == shell("ask").code
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    assert 2 == shell("ask", "-").code


@pytest.mark.parametrize("folder", ["..", "/tmp", "../../etc"])
def test_ask_stays_in_the_inbox(shell: Shell, brain: Brain, folder: str) -> None:
    """A conversation is a folder of the inbox and nothing else."""
    done = shell("ask", "--in", folder, "hello")
    assert (1, True) == (done.code, "leads outside" in done.err)


def test_run_once_answers_what_is_there(shell: Shell, brain: Brain) -> None:
    """`run --once` deals with the inbox and ends; a second time there is nothing to do.

    Seeds: P8.
    """
    for number in range(3):
        (brain.tree.inbox / f"{number}.md").write_text(f"I have {number} cats.\n")
    assert "answered 3, reflected 3, waiting 0\n" == shell("run", "--once").out
    assert "answered 0, reflected 0, waiting 0\n" == shell("run", "--once").out
