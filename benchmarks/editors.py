"""Real editors and tools, each saving prompts and editing memories in its own way, at the settings that people have.

    python benchmarks/editors.py

For each: how many answers and events of short-term memory its prompt cost (one each), and which of its edits were lost.
Tools that are not installed are named. The suite (tests/live/test_editors.py) runs the same with shorter waits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from tests.support.living import Living, events_of, living, living_brain, unfolded
from tests.support.pipeline import eventually

PAGE = "memory/long_term/concrete/portland.md"
STM = "memory/short_term.md"
TEXT = "# Portland\n\n- User lives in Portland.\n"
Edit = Callable[[Path, str], None]


@dataclass(frozen=True)
class Pace:
    """How long things take: `PEOPLE` at the product's default settings, `SUITE` with shorter ones.

    Attributes:
        config: The brain's settings.
        autosave_seconds: Between two saves of an editor that saves by itself.
        pause_seconds: That somebody thinks in the middle of a prompt.
        wait_seconds: For an answer, at most.
    """

    config: str
    autosave_seconds: float
    pause_seconds: float
    wait_seconds: float = 60.0


PEOPLE = Pace("", autosave_seconds=2.0, pause_seconds=12.0)
SUITE = Pace("inbox: {settle_ms: 20, typing_seconds: 1}\nwatch: {rescan_seconds: 1}\n", 0.25, 0.6)


@dataclass(frozen=True)
class Row:
    """What a tool's prompt and edits came to."""

    tool: str
    answers: int
    events: int
    lost: tuple[str, ...] = ()
    expected: int = 1

    @property
    def is_right(self) -> bool:
        return self.answers == self.events == self.expected and not self.lost


Scenario = Callable[[Living, Pace], Iterator[Row]]


def _run(*command: str, **options: object) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30, **options)  # type: ignore[call-overload]


def _keys(program: str, typed: tuple[str, ...]) -> Edit:
    """Open a file in a terminal program and press keys; `TEXT` stands for the line to type."""

    def edit(path: Path, text: str) -> None:
        name = f"brainiac-{os.getpid()}-{time.monotonic_ns()}"
        _run("tmux", "-L", name, "new-session", "-d", "-x", "100", "-y", "30", f"{program} '{path}'")
        try:
            time.sleep(0.8)
            for key in typed:
                literal = ("-l", "--", text) if key == "TEXT" else (key,)
                _run("tmux", "-L", name, "send-keys", *literal)
                time.sleep(0.15)
            eventually(lambda: subprocess.run(["tmux", "-L", name, "has-session"], capture_output=True).returncode != 0)
        finally:
            subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, check=False)

    return edit


def _emacs(path: Path, text: str) -> None:
    quoted = '"' + text.replace('"', '\\"') + '"'
    _run(
        "emacs",
        "--batch",
        str(path),
        "--eval",
        f'(progn (goto-char (point-max)) (insert {quoted} "\\n") (save-buffer))',
    )


def _sed(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text("\n")
    _run("sed", "-i", f"$ a\\{text}", str(path))


def _through_copy(*command: str) -> Edit:
    """Edit a copy outside the tree and bring it back by a command."""

    def edit(path: Path, text: str) -> None:
        aside = path.parents[3 if "memory" in str(path) else 1].parent / "aside" / path.name
        aside.parent.mkdir(exist_ok=True)
        aside.write_text((path.read_text() if path.exists() else "") + text + "\n")
        _run(*command, str(aside), str(path))

    return edit


def _unison(path: Path, text: str) -> None:
    aside = path.parent.parent / f".aside-{path.name}"
    aside.write_text((path.read_text() if path.exists() else "") + text + "\n")
    _run("unison", "-batch", "-silent", "-prefer", str(aside), str(aside), str(path))


_VIM_KEYS = ("G", "o", "TEXT", "Escape", ":wq", "Enter")
TOOLS: dict[str, tuple[tuple[str, ...], Edit]] = {
    "vim": (("vim", "tmux"), _keys("vim -u NONE", _VIM_KEYS)),
    "vim with backups": (
        ("vim", "tmux"),
        _keys("vim -u NONE -c 'set backup writebackup backupcopy=no'", _VIM_KEYS),
    ),
    "nano": (("nano", "tmux"), _keys("nano -I", ("M-/", "TEXT", "Enter", "C-o", "Enter", "C-x"))),
    "micro": (("micro", "tmux"), _keys("micro", ("C-End", "TEXT", "Enter", "C-s", "C-q"))),
    "emacs": (("emacs",), _emacs),
    "sed -i": (("sed",), _sed),
    "cp": (("cp",), _through_copy("cp")),
    "mv": (("mv",), _through_copy("mv")),
    "rsync": (("rsync",), _through_copy("rsync", "-t")),
    "unison": (("unison",), _unison),
}


def missing() -> list[str]:
    """Name the programs that are not installed."""
    wanted = {program for programs, _ in TOOLS.values() for program in programs} | {"git"}
    return sorted(program for program in wanted if not shutil.which(program))


def brain(root: Path, pace: Pace) -> Path:
    """Make a brain with one page of a person's."""
    living_brain(root, pace.config)
    (root / PAGE).write_text(TEXT)
    return root


def tools(one: Living, pace: Pace) -> Iterator[Row]:
    """Let each tool save a prompt and add a line to a memory."""
    said = {}
    for number, (name, (programs, edit)) in enumerate(TOOLS.items()):
        if all(map(shutil.which, programs)):
            said[name] = f"e{number}.md", f"I live in town number {number}."
            edit(one.root / "inbox" / said[name][0], said[name][1])
            edit(one.root / PAGE, f"- Added by a person with {name}.")
            _settled(one, pace, said[name][0])
    time.sleep(1.5)
    page = (one.root / PAGE).read_text()
    for name, (prompt, text) in said.items():
        line = f"- Added by a person with {name}."
        yield Row(name, _answers(one, prompt), _events(one, text), () if line in page else (line,))


def moves(one: Living, pace: Pace) -> Iterator[Row]:
    """Rename and move answered prompts: no answer is asked for again, and the response comes along."""
    text = "I have a bicycle."
    one.drop("plain.md", text)
    _settled(one, pace, "plain.md")
    for name, target in (("rename", "renamed.md"), ("move to a folder", "folder/moved.md")):
        last = one.root / "inbox" / ("plain.md" if name == "rename" else "renamed.md")
        (one.root / "inbox" / target).parent.mkdir(exist_ok=True)
        last.rename(one.root / "inbox" / target)
        eventually(partial(_has_response, one, target), f"{target}'s response", pace.wait_seconds)
        time.sleep(1)
        yield Row(name, _answers(one, target), _events(one, text) - 1, expected=0)


def _has_response(one: Living, name: str) -> bool:
    return one.response(name) is not None


def obsidian(one: Living, pace: Pace) -> Iterator[Row]:
    """Create a note empty, save it as one types, rename it in the middle, pause, and later save stale buffers."""
    note = one.root / "inbox/Untitled.md"
    note.touch()
    for part in ("Where ", "do I "):
        time.sleep(pace.autosave_seconds)
        _append(note, part)
    note = note.rename(one.root / "inbox/Home.md")
    time.sleep(pace.pause_seconds)
    _append(note, "live?\n")
    stale = (one.root / STM).read_text()
    _settled(one, pace, "Home.md")
    yield Row(
        f"autosave, rename, a pause of {pace.pause_seconds:g} s",
        _answers(one, "Home.md"),
        _events(one, "Where do I live?"),
    )
    task = "- [ ] Water the plants"
    (one.root / STM).write_text(stale.replace("### Tasks\n", f"### Tasks\n{task}\n"))
    with suppress(AssertionError):
        eventually(lambda: _events(one, "Where do I live?") == 1, "the event is put back", pace.wait_seconds)
    lost = () if task in (one.root / STM).read_text() else (task,)
    yield Row("a stale buffer saved", _answers(one, "Home.md"), _events(one, "Where do I live?"), lost)


def git(one: Living, pace: Pace) -> Iterator[Row]:
    """Checkout, rebase and stash in a brain kept in git."""

    def do(*arguments: str) -> None:
        _run("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments, cwd=one.root)

    before, page = len(events_of(one.root, "prompt-answered")), one.root / PAGE
    text = page.read_text()
    (one.root / ".gitignore").write_text("logs/\n.*\n")
    do("init", "-q", "-b", "main")
    _commit(one, pace, do, "ga.md", "Mara is my sister.")
    do("checkout", "-qb", "side")
    page.write_text(text + "- Side.\n")
    do("commit", "-qam", "side")
    do("checkout", "-q", "main")
    _commit(one, pace, do, "gb.md", "Tom is my brother.")
    do("rebase", "-q", "main", "side")
    page.write_text(text + "- Side.\n- Stashed.\n")
    do("stash", "-q")
    one.drop("gc.md", "Ines is my aunt.")
    _settled(one, pace, "gc.md")
    do("add", "-A", "inbox")
    do("stash", "pop", "-q")
    time.sleep(2)
    answers = len(events_of(one.root, "prompt-answered")) - before
    noted = sum(_events(one, text) for text in ("Mara is my sister.", "Tom is my brother.", "Ines is my aunt."))
    lost = tuple(line for line in ("- Side.", "- Stashed.") if line not in page.read_text())
    yield Row("git checkout, rebase, stash", answers, noted, lost, expected=3)


def _commit(one: Living, pace: Pace, do: Callable[..., None], name: str, text: str) -> None:
    one.drop(name, text)
    _settled(one, pace, name)
    do("add", "-A")
    do("commit", "-qm", name)


def _settled(one: Living, pace: Pace, prompt: str) -> None:
    one.wait_for_answer(prompt, pace.wait_seconds)
    one.wait_for_event("exchange-reflected", pace.wait_seconds, prompt=f"inbox/{prompt}")


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def _answers(one: Living, prompt: str) -> int:
    return sum(event.data["prompt"] == f"inbox/{prompt}" for event in events_of(one.root, "prompt-answered"))


def _events(one: Living, text: str) -> int:
    return (one.root / STM).read_text().count(f'**User:** "{text}"')


def main(arguments: Sequence[str] | None = None) -> None:
    """Run them all and print the table; exit 1 when one is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    rows: list[Row] = []
    print(f"not installed: {', '.join(missing()) or 'none'}\n{'tool':40}{'answers':>8}{'events':>7}  lost edits")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        root = brain(Path(folder) / "brain", PEOPLE)
        with living(root) as one:
            for scenario in (tools, moves, obsidian, git):
                for row in scenario(one, PEOPLE):
                    rows.append(row)
                    mark = "" if row.is_right else "  WRONG"
                    print(
                        f"{row.tool:40}{row.answers:8}{row.events:7}  {', '.join(row.lost) or 'none'}{mark}", flush=True
                    )
            one.terminate()
        differing = unfolded(root)
    print(f"not as the journal tells: {differing or 'none'}")
    sys.exit(bool(differing) or not all(row.is_right for row in rows))


if __name__ == "__main__":
    main()
