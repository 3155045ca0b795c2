"""A pipe, socket or device where a file should be, and links that lead outside: named, never waited for or followed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.names import at_start, under_daemon
from brainiac.brain import Brain
from brainiac.storage.files import read_bytes
from brainiac.testing import make_brain
from tests.support.living import living_brain, unprivileged
from tests.support.program import run_program

SECONDS = 120  # a command that waits for a pipe waits for ever


def pipe(path: Path) -> None:
    """Make a pipe that nobody writes to."""
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    """Make a socket; its name must be short, wherever the test runs."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def folder(path: Path) -> None:
    """Make a folder."""
    path.mkdir()


KINDS = [pipe, bound_socket, folder]


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own, which must end."""
    return run_program("--brain", str(root), *arguments, cwd=root.parent, seconds=SECONDS)


@pytest.mark.parametrize("make", KINDS)
def test_what_is_no_file_reads_as_nothing(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """It is opened without waiting; a regular file is read whole."""
    make(tmp_path / "x")
    assert read_bytes(tmp_path / "x") is None
    (tmp_path / "y").write_bytes(b"z" * 70_000)
    assert b"z" * 70_000 == read_bytes(tmp_path / "y")
    assert read_bytes(tmp_path / "none") is None


def test_no_command_waits_for_what_is_no_page(tmp_path: Path) -> None:
    """`ask` with it in focus is answered; promote, organize, forget, search, status end; doctor names it."""
    root = tmp_path / "brain"
    make_brain(root).close()
    concrete, prompts = root / "memory/long_term/concrete", root / "system/prompts"
    prompts.mkdir(exist_ok=True)
    for make, purpose in zip(KINDS, ("answer", "queries", "consolidate"), strict=True):
        name = make.__name__
        make(concrete / f"{name}.md")
        make(prompts / f"{purpose}.md")
        make(root / f"plugins/{name}.py")
        prompt = f"---\nfocus: ../memory/long_term/concrete/{name}.md\n---\nMy boat is called Ada.\n"
        (root / f"inbox/{name}.md").write_text(prompt)
    assert command(root, "run", "--once").returncode == 0
    assert all((root / f"inbox/{make.__name__}.response.md").is_file() for make in KINDS)
    for arguments in (("promote",), ("organize",), ("search", "Ada"), ("status",), ("forget", "Ada", "--yes")):
        assert command(root, *arguments).returncode in (0, 1), arguments
    examined = command(root, "doctor")
    assert examined.returncode in (0, 1)
    assert [] == [make for make in KINDS if f"concrete/{make.__name__}.md: is " not in examined.stdout]


@pytest.mark.parametrize("name", ["logs/journal", "logs/journal/blobs", "logs"])
def test_nothing_is_written_through_a_link_of_the_logs(tmp_path: Path, name: str) -> None:
    """A brain whose journal or texts are a link that leads outside is not opened; nothing is written there."""
    root, outside = tmp_path / "brain", tmp_path / "outside"
    make_brain(root).close()
    outside.mkdir()
    place = root / name
    if place.exists():
        place.rename(tmp_path / "aside")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    done = command(root, "ask", "My boat is called Ada.")
    assert done.returncode == 1
    assert "leads outside" in done.stderr
    assert [] == list(outside.iterdir())


def test_a_link_among_the_texts_is_refused(tmp_path: Path) -> None:
    """Also one of the 256 folders of texts may be a link that git carries: nothing is written through it."""
    root, outside = tmp_path / "brain", tmp_path / "outside"
    brain = make_brain(root)
    outside.mkdir()
    for number in range(256):
        (brain.journal.blobs.folder / f"{number:02x}").parent.mkdir(parents=True, exist_ok=True)
        if not (brain.journal.blobs.folder / f"{number:02x}").exists():
            (brain.journal.blobs.folder / f"{number:02x}").symlink_to(outside)
    brain.close()
    text = "\n".join(f"A line of its own, the {number}th of many." for number in range(200))
    (root / "inbox/long.md").write_text(text)
    command(root, "run", "--once")
    assert [] == list(outside.iterdir())
    Brain(root).close()


@pytest.mark.parametrize("run", [at_start, under_daemon])
def test_every_name_is_answered_or_named(tmp_path: Path, run: Callable[[Path, int], dict[str, object]]) -> None:
    """Names of many lengths in four scripts, names no tool can show, twins, and what is no file: answered or named.

    `benchmarks/names.py` takes every length.
    """
    counts = run(tmp_path / "brain", 60)
    assert (0, 0, []) == (counts["neither"], counts["others_unanswered"], counts["which"])


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv, to be one to whom permissions apply")
def test_a_path_that_the_system_refuses_stops_nothing_else(tmp_path: Path) -> None:
    """Responses that cannot be read or are links, folders that nobody may enter or write to: named, and all else done.

    What could not be written is not tried again before every other commit.
    """
    root = living_brain(tmp_path / "brain")
    inbox, concrete = root / "inbox", root / "memory/long_term/concrete"
    for name in ("read-only", "unsearchable", "locked", "talk"):
        (inbox / name).mkdir()
        (inbox / name / "x.md").write_text("My boat is called Ada.\n")
    (inbox / "talk/x.response.md").write_text("Ada, then.\n")
    (inbox / "talk/by\udcffte.response.md").write_text("Ada.\n")
    for name in ("unread", "loop", "outside"):
        (inbox / f"{name}.md").write_text("I live in Portland.\n")
    (inbox / "unread.response.md").write_text("Mine.\n")
    (inbox / "loop.response.md").symlink_to("loop.response.md")
    (inbox / "outside.response.md").symlink_to("/etc/passwd")
    for name in ("unsearchable", "locked"):
        (concrete / name).mkdir(parents=True)
        (concrete / name / "page.md").write_text("- The key hangs in the hall. ^aaaa\n")
    (concrete / "by\udcffte.md").write_text("- The key hangs in the hall. ^bbbb\n")
    (concrete / "new\nline.md").write_text("- The key hangs in the hall. ^cccc\n")
    for name in ("other", "another"):
        (root / "logs/journal" / name).mkdir(parents=True)
        (root / "logs/journal" / name / "2025-01-01.jsonl").write_text("{}\n")
    refused = [
        root / "logs/journal/other",
        root / "logs/journal/another/2025-01-01.jsonl",
        inbox / "unread.response.md",
        inbox / "talk/x.response.md",
        *inbox.glob("locked"),
        *concrete.glob("lock*"),
    ]
    for path in refused:
        path.chmod(0)
    for path in (inbox / "unsearchable", concrete / "unsearchable"):
        path.chmod(0o600)
    (inbox / "read-only").chmod(0o555)
    (inbox / "ordinary.md").write_text("Where does the key hang?\n")
    (inbox / "talk/ordinary.md").write_text("What is my boat called?\n")
    try:
        line = [*unprivileged(), sys.executable, "-m", "brainiac", "--brain", str(root)]
        for arguments in (
            ("run", "--once"),
            ("search", "boat"),
            ("ask", "Where do I live?"),
            ("doctor",),
            ("run", "--once"),
        ):
            done = subprocess.run([*line, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
            assert "error" not in done.stderr, arguments
            assert done.returncode == 0 or arguments == ("doctor",), done.stderr
        state = json.loads(subprocess.check_output([*line, "status", "--json"], timeout=SECONDS))
    finally:
        for path in (*refused, inbox / "unsearchable", concrete / "unsearchable", inbox / "read-only"):
            path.chmod(0o700)
    for name in ("ordinary.response.md", "talk/ordinary.response.md", "loop.response-2.md", "outside.response-2.md"):
        assert (inbox / name).is_file(), name
    waiting = {prompt["prompt"] for prompt in state["pending"]}
    assert {"inbox/read-only/x.md"} == waiting
    named = {line.partition(": ")[0] for line in state["unread"]}
    folder = "memory/long_term/concrete"
    assert {"inbox/locked", f"{folder}/locked", "inbox/unsearchable/x.md", f"{folder}/unsearchable/page.md"} <= named
    assert {f"{folder}/by\\udcffte.md", f"{folder}/new\\nline.md", "inbox/loop.response.md"} <= named
    assert {"logs/journal/other", "logs/journal/another/2025-01-01.jsonl"} <= named
    assert {"inbox/unread.response.md", "inbox/talk/x.response.md"} <= named
