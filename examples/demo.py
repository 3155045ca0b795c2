"""The main job, for real: a daemon on a scratch brain, and every line below read back from disk.

Run by `make demo`. A step whose outcome is missing ends the demo with exit code 1.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

CONSOLE = Console(highlight=False, soft_wrap=True)
PATIENCE_SECONDS = 120

TOLD = {
    "01-gym.md": "My locker at the gym has the code 4711.",
    "02-work.md": "My locker at work has the code 0815.",
    "03-termin.md": "Der Zahnarzttermin ist am 12. März um 9 Uhr.",
    "04-task.md": "/todo send the tax form to Priya by Friday",
    "05-keep.md": "/remember I left Google for Microsoft in June.",
}
KEPT = TOLD["05-keep.md"].removeprefix("/remember ")
MEMORY = "memory/long_term/concrete/coffee.md"


class Demo:
    """One scratch brain and the daemon that serves it."""

    def __init__(self, folder: Path) -> None:
        self.brain = folder / "brain"
        self.environment = {
            **os.environ,
            **{f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG")},
        }
        self.environment.pop("BRAINIAC_HOME", None)
        self.log = folder / "daemon.log"
        self.daemon: subprocess.Popen[bytes] | None = None

    def cli(self, *arguments: str) -> str:
        """Run one command and return what it printed."""
        command = [sys.executable, "-m", "brainiac", *arguments]
        done = subprocess.run(command, env=self.environment, cwd=self.brain.parent, capture_output=True, text=True)
        expect(done.returncode == 0, f"`brainiac {' '.join(arguments)}` failed: {done.stderr}")
        return done.stdout

    def start(self) -> None:
        """Start the daemon as anybody would."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "brainiac", "--brain", str(self.brain), "run"]
            self.daemon = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill the daemon without warning."""
        assert self.daemon is not None
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()

    def stop(self) -> None:
        """Ask the daemon to stop."""
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            self.daemon.wait(PATIENCE_SECONDS)

    def drop(self, name: str, text: str) -> None:
        """Save a prompt file, as an editor or a script does."""
        (self.brain / "inbox" / name).write_text(text + "\n")

    def answer_to(self, name: str) -> str:
        """Wait for the response beside a prompt and return its body."""
        path = self.brain / "inbox" / name.replace(".md", ".response.md")
        self.wait(path.is_file, f"no answer appeared at inbox/{path.name}")
        return re.sub(r"\A---\n.*?\n---\n", "", path.read_text(), flags=re.DOTALL).strip()

    def ask(self, name: str, text: str) -> str:
        """Drop a question, wait, show both, and return the answer."""
        self.drop(name, text)
        answer = self.answer_to(name)
        CONSOLE.print(f"[bold]inbox/{name}[/]  {escape(text)}")
        CONSOLE.print(f"[green]inbox/{name.replace('.md', '.response.md')}[/]")
        CONSOLE.print(*("  " + escape(line) for line in answer.splitlines()), sep="\n")
        return answer

    def wait(self, is_done: object, failure: str) -> None:
        """Wait until something holds, or end the demo."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_done():  # type: ignore[operator]
            expect(self.daemon is None or self.daemon.poll() is None, "the daemon ended: " + self.tail())
            expect(time.monotonic() < deadline, f"{failure} within {PATIENCE_SECONDS} s\n{self.tail()}")
            time.sleep(0.02)

    def set_quiet(self, seconds: int) -> None:
        """Change how long it must be quiet; settings count at once."""
        config = self.brain / "system" / "config.yaml"
        line = f"  idle_seconds: {seconds}"
        text = re.sub(r"^  (?:# )?idle_seconds:[ ]\d+", line, config.read_text(), count=1, flags=re.MULTILINE)
        config.write_text(text)
        expect(line in text, "promotion.idle_seconds in system/config.yaml")

    def short_term(self) -> str:
        """Read short-term memory."""
        return (self.brain / "memory" / "short_term.md").read_text()

    def tail(self) -> str:
        """The end of the daemon's log."""
        return self.log.read_text()[-2000:] if self.log.exists() else ""


def expect(holds: bool, failure: str) -> None:
    """End the demo when something does not hold."""
    if not holds:
        CONSOLE.print(f"[bold red]missing:[/] {escape(failure)}")
        raise SystemExit(1)


def step(title: str) -> None:
    """Head the next step."""
    CONSOLE.print()
    CONSOLE.print(Rule(title, align="left"))


def tell(demo: Demo) -> None:
    step("You tell it things: files dropped in inbox/, answered beside themselves")
    for name, text in TOLD.items():
        demo.drop(name, text)
        reply = demo.answer_to(name).splitlines()[0]
        CONSOLE.print(f"[bold]inbox/{name}[/]  {escape(text)}\n  [green]→[/] {escape(reply)}")


def ask(demo: Demo) -> None:
    step("You ask: your own words come back, each with its day and a link to where it stands")
    answer = demo.ask("10-locker.md", "What is the code of my locker at the gym?")
    expect(first_quote(answer) == TOLD["01-gym.md"], "the words as they were said, first")
    expect("short_term.md" in answer, "a link to where they stand")
    expect(re.search(r"\b20\d\d-\d\d-\d\d\b", answer) is not None, "the day")
    answer = demo.ask("11-spind.md", "Wann ist der Zahnarzttermin?")
    expect(first_quote(answer) == TOLD["03-termin.md"], "the words in another language, first")


def first_quote(answer: str) -> str:
    """Return the first passage that an answer quotes."""
    return next((line[2:] for line in answer.splitlines() if line.startswith("> ")), "")


def reflect(demo: Demo) -> None:
    step("memory/short_term.md: what was said, word for word, and the task")
    demo.wait(lambda: demo.short_term().count("<!-- event:") >= len(TOLD) + 2, "not every exchange was reflected")
    CONSOLE.print(escape("\n".join(demo.short_term().splitlines()[:40])) + "\n[dim]…[/]")
    expect("tax form" in demo.short_term().split("## Event Log")[0], "the task in the structured data")


def edit(demo: Demo) -> None:
    step("You write a memory by hand, then change your mind: your hand wins")
    page = demo.brain / MEMORY
    page.write_text("# Coffee\n\n- I drink two cups of coffee a day.\n")
    CONSOLE.print(f"[bold]{MEMORY}[/]  - I drink two cups of coffee a day.")
    time.sleep(1)
    expect("two cups" in first_quote(demo.ask("20-coffee.md", "How many cups of coffee?")), "the memory as written")
    page.write_text(page.read_text().replace("two cups", "three cups"))
    CONSOLE.print(f"[bold]{MEMORY}[/]  two → [bold]three[/] cups")
    time.sleep(1)
    answer = demo.ask("21-coffee.md", "How many cups of coffee do I drink now?")
    expect("three cups" in first_quote(answer), "the memory as edited")
    expect("two cups" not in answer, "nothing of what was changed")


def crash(demo: Demo) -> None:
    step("kill -9 in the middle of a burst, then start again: nothing is lost, nothing is answered twice")
    names = [f"3{n}-burst.md" for n in range(10)]
    for number, name in enumerate(names):
        demo.drop(name, f"Box {number} holds winter clothes.")
        if number == 5:
            demo.kill()
    demo.start()
    for name in names:
        demo.answer_to(name)
    demo.wait(lambda: all(f"Box {n} holds" in demo.short_term() for n in range(10)), "an exchange was lost")
    responses = sorted(path.name for path in (demo.brain / "inbox").glob("3*-burst.response*.md"))
    expect(len(responses) == len(names), f"one response a prompt, found {len(responses)}")
    expect(demo.short_term().count('**User:** "Box 3 holds') == 1, "each exchange once in short-term memory")
    CONSOLE.print(f"{len(names)} prompts, {len(responses)} responses, each once in short-term memory")


def abstain(demo: Demo) -> None:
    step("You ask what memory cannot know: it names the word that stands nowhere")
    answer = demo.ask("40-unknown.md", "What is the name of my ophthalmologist?")
    expect("Nowhere in memory:" in answer and "ophthalmologist" in answer, "the word that stands nowhere in memory")


def consolidate(demo: Demo) -> Path:
    step("Quiet: what you marked is kept in long-term memory, as you wrote it (five minutes, here two seconds)")
    demo.set_quiet(2)
    pages = demo.brain / "memory" / "long_term" / "concrete"
    found: list[Path] = []

    def is_filed() -> bool:
        found[:] = [page for page in pages.rglob("*.md") if page.name != "_index.md" and KEPT in page.read_text()]
        return bool(found)

    demo.wait(is_filed, "what was to be remembered is on no page")
    demo.set_quiet(300)
    shown = sorted(str(page.relative_to(demo.brain)) for page in (demo.brain / "memory").rglob("*.md"))
    CONSOLE.print(*("  " + path for path in shown if not path.endswith("_index.md")), sep="\n")
    CONSOLE.print(f"[bold]{found[0].relative_to(demo.brain)}[/]\n" + escape(found[0].read_text().strip()))
    expect("sources:" in found[0].read_text(), "the exchanges that the page rests on")
    return found[0]


def explain(demo: Demo) -> None:
    step(f'brainiac why "{KEPT}"')
    chain = demo.cli("--brain", str(demo.brain), "why", KEPT)
    CONSOLE.print(escape(chain.strip()))
    expect(f"inbox/05-keep.md: “{KEPT}”" in chain, "the very words that were typed, and where")


def undo(demo: Demo, page: Path) -> None:
    events = json.loads(demo.cli("--brain", str(demo.brain), "log", "--kind", "memory-promoted", "--json"))
    event = events[0]["id"]
    step(f"brainiac undo {event[:13]}…: the whole of it is taken back")
    CONSOLE.print(escape(demo.cli("--brain", str(demo.brain), "undo", event).strip()))
    expect(not page.exists(), "the page is gone again")
    expect(KEPT in demo.short_term(), "the exchanges are back in short-term memory")


def health(demo: Demo) -> None:
    step("brainiac doctor --fix")
    CONSOLE.print(escape(demo.cli("--brain", str(demo.brain), "doctor", "--fix").strip()))


def main() -> None:
    """Play every step."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="brainiac-demo-") as folder:
        demo = Demo(Path(folder))
        CONSOLE.print(escape(demo.cli("init", str(demo.brain)).strip()))
        demo.start()
        try:
            for play in (tell, ask, reflect, edit, crash, abstain):
                play(demo)
            page = consolidate(demo)
            explain(demo)
            undo(demo, page)
            health(demo)
        finally:
            demo.stop()
    CONSOLE.print(f"\n[bold green]All of it worked[/], in {time.monotonic() - started:.0f} s.")


if __name__ == "__main__":
    main()
