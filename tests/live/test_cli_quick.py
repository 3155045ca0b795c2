"""`search`, `status` and `ask` by a running daemon: at once, and byte for byte as without it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from brainiac.testing import make_brain
from tests.support.living import CONFIG, Living, living, living_brain, places_of
from tests.support.pipeline import eventually

REPOSITORY = Path(__file__).parent.parent.parent
# the program as it is called; it notes whether the full command line was imported
QUICK = (
    "import atexit, sys; from brainiac.__main__ import main\n"
    "atexit.register(lambda: open(NOTE, 'w').write('full' if 'typer' in sys.modules else 'quick'))\nmain()"
)
FULL = "from brainiac.cli.app import main; main()"
STREAMS = "stdin", "stdout", "stderr"
PLAIN = (
    ("search", "Portland"),
    ("search", "Portland", "rain", "--limit=1"),
    ("search", "-n", "2", "Portland", "--json"),
    ("search", "Portland", "--explain"),
    ("search", "zebra"),
    ("search", "zebra", "--json"),
    ("search", "type:nothing"),
    ("search", "type:nothing", "--json"),
    ("search", "\x1b[31mPortland\u202e", "--json"),
    ("search", "[bold]Portland[/bold]"),
    ("status",),
    ("status", "--json"),
)
UNUSUAL = (
    ("search",),
    ("search", "Portland", "--limit", "many"),
    ("search", "Portland", "--limit", "0"),
    ("search", "--", "-Portland"),
    ("search", "--help"),
    ("status", "now"),
    ("status", "--nonsense"),
    ("ask", "-", "--again"),
    ("ask", "Hello", "--in"),
    ("status", "--brain", "/nowhere"),
)


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the machine of all tests of this module keeps what is its own, and its terminal."""
    places = tmp_path_factory.mktemp("places")
    return {f"XDG_{name}_HOME": str(places / name) for name in ("STATE", "CACHE", "CONFIG")} | {
        "HOME": str(places),
        "TERM": "xterm",
    }


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Iterator[Living]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        root = living_brain(tmp_path_factory.mktemp("brain"))
        with living(root) as served:
            served.answer("a.md", "I moved to Portland in June, where the rain is warm.")
            served.answer("b.md", "[bold]Portland[/bold] has roses, and \x1b[31mbridges\x1b[0m too.")
            eventually(lambda: not served.status["pending"], "rest", 30)
            yield served


@pytest.fixture
def daemon(serving: Living, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Living:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return serving


def called(
    script: str,
    root: Path,
    *words: str,
    cwd: Path | None = None,
    is_terminal: bool = False,
    env: Mapping[str, str] = {},
) -> tuple[int, str, str, str]:
    """Run a command line; return exit code, what it printed, and `quick` or `full`.

    On a terminal standard output and error are one.
    """
    note = root.parent / f"note-{os.getpid()}"
    note.unlink(missing_ok=True)
    command = [sys.executable, "-c", script.replace("NOTE", repr(str(note))), *words]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **env}
    if not is_terminal:
        done = subprocess.run(command, cwd=cwd or root, env=environment, capture_output=True, text=True, timeout=120)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command, cwd=cwd or root, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        raw = b""
        with suppress(OSError):  # the other end was closed
            while piece := os.read(ours, 65_536):
                raw += piece
        os.close(ours)
        code, out, err = process.wait(60), raw.decode(), ""
    return code, out, err, note.read_text() if note.is_file() else ""


def steady(printed: str) -> str:
    """Return what was printed without what differs from call to call."""
    return re.sub(r'"took_ms": [0-9.]+', "", printed)


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
@pytest.mark.parametrize("is_terminal", [False, True], ids=["piped", "terminal"])
def test_a_daemon_prints_what_the_full_command_prints(
    daemon: Living, words: tuple[str, ...], is_terminal: bool
) -> None:
    """Same bytes, same exit code, with colours and width on a terminal too; and nothing heavy is imported."""
    full = called(FULL, daemon.root, *words, is_terminal=is_terminal)
    quick = called(QUICK, daemon.root, *words, is_terminal=is_terminal)
    assert "quick" == quick[3]
    assert [full[0], *map(steady, full[1:3])] == [quick[0], *map(steady, quick[1:3])]
    assert quick[1] or quick[2]


@pytest.mark.parametrize("words", UNUSUAL, ids=" ".join)
def test_what_is_unusual_is_left_to_the_full_command(daemon: Living, words: tuple[str, ...]) -> None:
    """Wrong use, help, a brain that is none: what is printed and the exit code are the full command line's."""
    full, quick = called(FULL, daemon.root, *words), called(QUICK, daemon.root, *words)
    assert "full" == quick[3]
    assert full[:3] == quick[:3]


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"COLUMNS": "44"}, {"TERM": "dumb"}, {"FORCE_COLOR": "1"}], ids=str)
def test_what_the_callers_terminal_can_show_counts(daemon: Living, env: Mapping[str, str]) -> None:
    """Colours and width are those of the one who calls, not the daemon's."""
    words = ("search", "Portland", "--explain")
    for is_terminal in (False, True):
        full, quick = (
            called(script, daemon.root, *words, is_terminal=is_terminal, env=env) for script in (FULL, QUICK)
        )
        assert full[:3] == quick[:3]


def test_the_brain_is_found_as_ever(daemon: Living, tmp_path: Path) -> None:
    """By `--brain`, by `BRAINIAC_HOME`, and from a folder inside."""
    for words, cwd, env in (
        (("--brain", str(daemon.root)), tmp_path, {}),
        ((f"--brain={daemon.root}",), tmp_path, {}),
        ((), tmp_path, {"BRAINIAC_HOME": str(daemon.root)}),
        ((), daemon.root / "memory", {}),
    ):
        code, out, _, how = called(QUICK, daemon.root, "search", "Portland", *words, cwd=cwd, env=env)
        assert (0, "quick") == (code, how)
        assert "Portland" in out


def test_asking_through_the_daemon_answers_once(daemon: Living) -> None:
    """The answer is shown as without it, links lead from the caller's folder, and there is one file of each kind."""
    code, out, err, how = called(QUICK, daemon.root, "ask", "Where did I move in June?", "--in", "quick")
    assert (0, "quick", "") == (code, how, err)
    folder = daemon.root / "inbox/quick"
    assert ["Where did I move in June?\n"] == [
        path.read_text() for path in folder.glob("*.md") if ".response" not in path.name
    ]
    (response,) = folder.glob("*.response.md")
    assert "Portland" in out
    assert "Portland" in response.read_text()
    assert "(memory/" in out or "(inbox/" in out
    code, out, _, how = called(QUICK, daemon.root, "ask", "Where did I move?", "--in", "quick", "--json")
    assert (0, "quick") == (code, how)
    assert (daemon.root / json.loads(out)["response"]).is_file()
    code, out, _, how = called(QUICK, daemon.root, "ask", "Where did I move in June?", is_terminal=True)
    assert (0, "quick") == (code, how)
    assert "\x1b[?25h" in out.rpartition("\x1b[?25l")[2]  # the cursor is seen again
    code, _, err, how = called(QUICK, daemon.root, "ask", "Hello", "--in", "../..")
    assert (1, "quick") == (code, how)
    assert called(FULL, daemon.root, "ask", "Hello", "--in", "../..")[1:3] == ("", err)


def test_commands_run_side_by_side_print_each_their_own(daemon: Living) -> None:
    """What the daemon prints for one caller never reaches another."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    words = ["Portland", "zebra"] * 4
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "brainiac", "search", word, *(["--json"] * (number % 4 > 1))],
            cwd=daemon.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number, word in enumerate(words)
    ]  # fmt: skip
    for number, (word, process) in enumerate(zip(words, running, strict=True)):
        out, _ = process.communicate(timeout=60)
        assert 0 == process.returncode
        if number % 4 > 1:
            assert word == json.loads(out)["query"]
        else:
            assert ("Portland" in out) == (word == "Portland")


def test_only_this_user_reaches_the_socket_and_only_the_same_program_is_served(daemon: Living) -> None:
    """Another version is sent away, nothing is done before the caller says go, and a foreign folder is not entered."""
    path = Path(json.loads((places_of(daemon.root).state / "server.json").read_text())["socket"]).with_name("c")
    assert (0o600, 0o700) == (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode))
    before = sorted((daemon.root / "inbox").rglob("*"))
    for sent in (b'{"program": ["0.0.1"], "words": ["ask", "hi"]}\n', b"nonsense\n", b"[]\n", b"\xff\n", b""):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(path))
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            assert b"" == connection.makefile("rb").read().replace(b'{"ready": true}\n', b"")
    assert before == sorted((daemon.root / "inbox").rglob("*"))
    path.parent.chmod(0o755)
    try:
        assert "full" == called(QUICK, daemon.root, "search", "Portland")[3]
    finally:
        path.parent.chmod(0o700)
    assert "full" == called(QUICK, daemon.root, "search", "Portland", env={"XDG_CONFIG_HOME": "/elsewhere"})[3]
    assert "quick" == called(QUICK, daemon.root, "search", "Portland")[3]


def test_a_daemon_that_hangs_costs_a_moment_and_does_nothing_later(daemon: Living) -> None:
    """While it is stopped the command runs by itself; what was sent to it is not done when it goes on."""
    full = called(FULL, daemon.root, "search", "Portland")
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        start = time.monotonic()
        hung = called(QUICK, daemon.root, "search", "Portland")
        assert time.monotonic() - start < 30
        assert (*full[:3], "full") == hung
        asking = subprocess.Popen(
            [sys.executable, "-m", "brainiac", "ask", "Where do the roses grow?", "--in", "hung", "--json"],
            cwd=daemon.root, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE,
        )  # fmt: skip
        folder = daemon.root / "inbox/hung"
        eventually(lambda: any(folder.glob("*.md")), "the prompt", 30)
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    asking.communicate(timeout=60)
    assert 0 == asking.returncode
    time.sleep(1)
    assert 1 == len([path for path in folder.glob("*.md") if ".response" not in path.name])


def test_a_daemon_that_dies_leaves_the_prompt_and_says_so(tmp_path: Path) -> None:
    """Killed while `ask` waits for it: an error that names the way on, the prompt in the inbox."""
    root = living_brain(tmp_path / "brain", CONFIG.replace("settle_ms: 20", "settle_ms: 20000"))
    with living(root) as served:
        asking = subprocess.Popen(
            [sys.executable, "-m", "brainiac", "ask", "I live in Lisbon.", "--in", "cut"],
            cwd=root, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        eventually(lambda: any((root / "inbox/cut").glob("*.md")), "the prompt", 30)
        served.kill()
        _, err = asking.communicate(timeout=30)
        assert 1 == asking.returncode
        assert "error: the daemon broke off" in err
        assert 1 == len(list((root / "inbox/cut").glob("*.md")))
        code, _, _, how = called(QUICK, root, "status")
        assert (0, "full") == (code, how)


def test_the_version_is_printed_without_any_command(tmp_path: Path) -> None:
    """`--version` prints what the full command line prints, and imports none of it."""
    root = make_brain(tmp_path / "brain").root
    full, quick = called(FULL, root, "--version"), called(QUICK, root, "--version")
    assert (full[:3], "quick") == (quick[:3], quick[3])
