"""Real editors and tools, each saving prompts and editing memories in its own way; skipped where one is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from living import events_of, living, living_brain, unfolded
from pipeline import eventually

PAGE = "memory/long_term/concrete/portland.md"
TEXT = "# Portland\n\n- User lives in Portland.\n"
LINE = "- Added by a person."


def run(*command: str, **options: object) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30, **options)  # type: ignore[call-overload]


def keys(program: str, typed: tuple[str, ...]) -> Callable[[Path, str], None]:
    """Open a file in a terminal program and press keys; `TEXT` stands for the line to type."""

    def edit(path: Path, text: str) -> None:
        name = f"brainiac-{os.getpid()}-{time.monotonic_ns()}"
        run("tmux", "-L", name, "new-session", "-d", "-x", "100", "-y", "30", f"{program} '{path}'")
        try:
            time.sleep(0.8)
            for key in typed:
                literal = ("-l", "--", text) if key == "TEXT" else (key,)
                run("tmux", "-L", name, "send-keys", *literal)
                time.sleep(0.15)
            eventually(lambda: subprocess.run(["tmux", "-L", name, "has-session"], capture_output=True).returncode != 0)
        finally:
            subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, check=False)

    return edit


def emacs(path: Path, text: str) -> None:
    insert = f'(progn (goto-char (point-max)) (insert {quoted(text)} "\\n") (save-buffer))'
    run("emacs", "--batch", str(path), "--eval", insert)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def sed(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text("\n")
    run("sed", "-i", f"$ a\\{text}", str(path))


def through_copy(*command: str) -> Callable[[Path, str], None]:
    """Edit a copy outside the tree and bring it back by a command."""

    def edit(path: Path, text: str) -> None:
        aside = path.parents[3 if "memory" in str(path) else 1].parent / "aside" / path.name
        aside.parent.mkdir(exist_ok=True)
        aside.write_text((path.read_text() if path.exists() else "") + text + "\n")
        run(*command, str(aside), str(path))

    return edit


def unison(path: Path, text: str) -> None:
    aside = path.parent.parent / f".aside-{path.name}"
    aside.write_text((path.read_text() if path.exists() else "") + text + "\n")
    run("unison", "-batch", "-silent", "-prefer", str(aside), str(aside), str(path))


TOOLS: dict[str, tuple[tuple[str, ...], Callable[[Path, str], None]]] = {
    "vim": (("vim", "tmux"), keys("vim -u NONE", ("G", "o", "TEXT", "Escape", ":wq", "Enter"))),
    "vim with backups": (
        ("vim", "tmux"),
        keys("vim -u NONE -c 'set backup writebackup backupcopy=no'", ("G", "o", "TEXT", "Escape", ":wq", "Enter")),
    ),
    "nano": (("nano", "tmux"), keys("nano -I", ("M-/", "TEXT", "Enter", "C-o", "Enter", "C-x"))),
    "micro": (("micro", "tmux"), keys("micro", ("C-End", "TEXT", "Enter", "C-s", "C-q"))),
    "emacs": (("emacs",), emacs),
    "sed": (("sed",), sed),
    "cp": (("cp",), through_copy("cp")),
    "mv": (("mv",), through_copy("mv")),
    "rsync": (("rsync",), through_copy("rsync", "-t")),
    "unison": (("unison",), unison),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = living_brain(tmp_path / "brain")
    (root / PAGE).write_text(TEXT)
    return root


def present() -> Iterator[str]:
    for name, (programs, _) in TOOLS.items():
        missing = [program for program in programs if not shutil.which(program)]
        if missing:
            print(f"skipped {name}: {', '.join(missing)} is missing")
        else:
            yield name


def test_each_editor_s_prompt_is_answered_once_with_its_final_text(root: Path):
    """And each editor's line in a memory stands in the tree and in the journal's fold; no edit is lost."""
    tools = list(present())
    if len(tools) < len(TOOLS):
        pytest.skip(f"Debian's editors are missing: {sorted(TOOLS.keys() - set(tools))}")
    with living(root) as one:
        for number, name in enumerate(tools):
            _, edit = TOOLS[name]
            prompt = f"I live in town number {number}."
            edit(root / f"inbox/e{number}.md", prompt)
            edit(root / PAGE, f"{LINE[:-1]} with {name}.")
            one.wait_for_answer(f"e{number}.md", 30)
            one.wait_for_event("exchange-reflected", prompt=f"inbox/e{number}.md")
        time.sleep(1.5)
        assert 0 == one.terminate()
    answered = [event.data["prompt"] for event in events_of(root, "prompt-answered")]
    assert sorted(f"inbox/e{number}.md" for number in range(len(tools))) == sorted(answered)
    noted = (root / "memory/short_term.md").read_text()
    assert all(noted.count(f'**User:** "I live in town number {number}."') == 1 for number in range(len(tools)))
    page = (root / PAGE).read_text()
    assert [] == [name for name in tools if f"with {name}." not in page]
    assert [] == unfolded(root)


def test_an_editor_that_autosaves_and_renames_costs_one_answer(root: Path):
    """As Obsidian does: empty first, saved as one types, renamed in the middle, a pause; one answer, one event."""
    with living(root) as one:
        note = root / "inbox/Untitled.md"
        note.touch()
        time.sleep(0.4)
        for part in ("Where ", "do I "):
            with note.open("a") as file:
                file.write(part)
            time.sleep(0.5)
        note = note.rename(root / "inbox/Home.md")
        time.sleep(0.6)
        with note.open("a") as file:
            file.write("live?\n")
        one.wait_for_answer("Home.md")
        one.wait_for_event("exchange-reflected", prompt="inbox/Home.md")
        moved = note.rename(root / "inbox/Where is home.md")
        eventually((root / "inbox/Where is home.response.md").exists, "the answer moves along", 30)
        assert moved.read_text() == "Where do I live?\n"
        time.sleep(1)
    assert 1 == len(events_of(root, "prompt-answered"))
    assert 1 == (root / "memory/short_term.md").read_text().count("<!-- event:")


def test_git_may_take_the_inbox_and_memories_back_and_forth(root: Path):
    """Checkout, stash and rebase in a brain kept in git: nothing is answered twice, what git restores stands."""
    if not shutil.which("git"):
        pytest.skip("git is missing")

    def git(*arguments: str) -> None:
        run("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments, cwd=root)

    (root / ".gitignore").write_text("logs/\n.*\n")
    git("init", "-q", "-b", "main")
    with living(root) as one:
        one.answer("a.md")
        one.wait_for_event("exchange-reflected", prompt="inbox/a.md")
        git("add", "-A")
        git("commit", "-qm", "one")
        git("checkout", "-qb", "side")
        (root / PAGE).write_text(TEXT + "- Side.\n")
        git("commit", "-qam", "side")
        git("checkout", "-q", "main")
        one.answer("b.md", "Mara is my sister.")
        one.wait_for_event("exchange-reflected", prompt="inbox/b.md")
        git("add", "-A")
        git("commit", "-qm", "two")
        git("rebase", "-q", "main", "side")
        (root / PAGE).write_text(TEXT + "- Side.\n- Stashed.\n")
        git("stash", "-q")
        one.answer("c.md", "I like tea.")
        git("stash", "pop", "-q")
        time.sleep(2)
        assert 0 == one.terminate()
    assert "- Stashed." in (root / PAGE).read_text()
    answered = [event.data["prompt"] for event in events_of(root, "prompt-answered")]
    assert ["inbox/a.md", "inbox/b.md", "inbox/c.md"] == sorted(answered)
    assert [] == unfolded(root)
