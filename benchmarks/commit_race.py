"""A person's editor saves as fast as it can while a process commits to the same files: how many saves are lost?

    python benchmarks/commit_race.py [--commits 1000] [--mode in-place|replace]

A writer process reads a file, adds a line of its own and saves it, in place (truncate and write) or by rename,
without any lock. This process commits additions to the same files and looks at them as the daemon does. At the end
every line that the writer ever saved must stand in the tree; the lines of ours are counted too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from brainiac.clock import ManualClock, parse_iso
from brainiac.errors import ConflictError
from brainiac.events import Change, append, content_hash, update
from brainiac.storage.commit import Committer
from brainiac.storage.external_edits import NotRestedError
from brainiac.storage.journal import Journal
from brainiac.tree import LocalPlaces, Tree

FILES = ("memory/long_term/concrete/a.md", "memory/long_term/concrete/b.md", "memory/short_term.md")
HEADINGS = "## Summary\n### Goals\n### Key Facts & Decisions\n### Tasks\n## Event Log\n"
MODES = ("in-place", "replace")
_WRITER = """
import os, sys, time
root, mode, *files = sys.argv[1:]
number = 0
print("ready", flush=True)
while not os.path.exists(root + "/stop"):
    path = os.path.join(root, files[number % len(files)])
    text = open(path, "rb").read()
    if not text:  # our own reading fell into nothing: an editor would not save that
        continue
    number += 1
    text += b"person %d.\\n" % number
    if mode == "replace":
        open(path + "~", "wb").write(text)
        os.replace(path + "~", path)
    else:
        open(path, "wb").write(text)
    time.sleep(PAUSE)
print(number, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Result:
    """What a race came to.

    Attributes:
        commits: How many of ours were made.
        conflicts: How many tries were refused because a save came first.
        saves: How many the writer made.
        lost: Lines of the writer that are in no file of the tree.
        lost_anywhere: Those of them that are in no blob either.
        ours_lost: Lines of ours that are in no file of the tree.
        merges: Saves that were merged or put back.
        is_fold_equal: Whether the journal's fold is the tree at the end.
    """

    commits: int
    conflicts: int
    saves: int
    lost: int
    lost_anywhere: int
    ours_lost: int
    merges: int
    is_fold_equal: bool
    seconds: float


class Race:
    """A brain in which a process and a writer race.

    Args:
        root: An empty folder.
        pause_seconds: How long the writer rests between saves.
    """

    def __init__(self, root: Path, pause_seconds: float) -> None:
        for path in FILES:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(HEADINGS)
        (root / "system").mkdir()
        self.root, self._pause_seconds = root, pause_seconds
        tree, places = Tree(root), LocalPlaces.of(root, "race")
        self.clock = ManualClock(parse_iso("2025-09-16T15:30:00Z"))  # so that ten seconds need not be waited for
        self.journal = Journal(tree, places)
        self.committer = Committer(tree, places, self.journal, self.clock)
        self.observed = self.committer.edits
        self.committer.recover()
        self.observed.adopt()

    def run(self, commits: int, mode: str) -> Result:
        """Race for so many commits."""
        command = [sys.executable, "-c", _WRITER.replace("PAUSE", str(self._pause_seconds)), str(self.root), mode]
        writer = subprocess.Popen([*command, *FILES], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        writer.stdout.readline()
        started, conflicts = time.monotonic(), 0
        for number in range(commits):
            conflicts += self._commit(number)
        seconds = time.monotonic() - started
        (self.root / "stop").touch()
        saves = int(writer.stdout.read())
        writer.wait()
        self._look()
        for _ in range(2):
            self.clock.advance(11)
            self.committer.check_displaced()
            self._look()
        return self._result(commits, conflicts, saves, seconds)

    def _commit(self, number: int) -> int:
        for tries in range(10_000):
            try:
                self.committer.commit("raced", by="race", changes=self._changes(number))
            except ConflictError:
                continue
            if number % 5 == 0:
                self._look()
            return tries
        raise SystemExit("10,000 tries did not get in between two saves")

    def _changes(self, number: int) -> list[Change]:
        path = FILES[number % len(FILES)]
        text = (self.root / path).read_bytes()
        return [update(path, text, text + b"process %d.\n" % number), append("logs/access.log", f"{number}\n")]

    def _look(self) -> None:
        for path in FILES:
            try:
                self.observed.note_change(path)
            except NotRestedError:
                continue  # caught between truncating and writing

    def _result(self, commits: int, conflicts: int, saves: int, seconds: float) -> Result:
        tree = b"".join((self.root / path).read_bytes() for path in FILES)
        lines = set(tree.splitlines())
        lost = [line for n in range(1, saves + 1) if (line := b"person %d." % n) not in lines]
        kept = self._kept() if lost else b""
        fold = self.journal.fold()
        return Result(
            commits,
            conflicts,
            saves,
            len(lost),
            sum(line not in kept for line in lost),
            sum(b"process %d." % n not in lines for n in range(commits)),
            sum(1 for _ in self.journal.events(kinds={"note-merged"})),
            all(content_hash((self.root / path).read_bytes()) == fold[path] for path in FILES),
            seconds,
        )

    def _kept(self) -> bytes:
        folder = self.journal.blobs.folder
        names = (path.parent.name + path.name.removesuffix(".splice") for path in folder.glob("??/*"))
        return b"".join(self.journal.blobs.get(name) for name in names)


def main(arguments: Sequence[str] | None = None) -> None:
    """Race in each mode and print what came of it; exit 1 when a save was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--pause-seconds", type=float, default=0.0, help="rest of the writer between saves")
    options = parser.parse_args(arguments)
    is_lost = False
    for mode in options.mode or MODES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = f"{folder}/state"
            (Path(folder) / "brain").mkdir()
            result = Race(Path(folder) / "brain", options.pause_seconds).run(options.commits, mode)
            print(f"{mode}: {result}")
            is_lost |= bool(result.lost) or not result.is_fold_equal
    sys.exit(is_lost)


if __name__ == "__main__":
    main()
