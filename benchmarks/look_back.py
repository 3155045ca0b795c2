"""What looking back costs at size: time and memory of commands on a brain of 100,000 exchanges.

    python benchmarks/look_back.py [--exchanges 100000] [--folder DIR] [--only status]

The brain is written as the processes leave it, with the program's own journal and blobs: 40 exchanges a day in
conversations, each noted in short-term memory, eight at a time put on the page of their day with three statements on
pages of ten folders. With `--folder` it is made there once and kept, and measured again from then on. Each command runs
in a process of its own: seconds by the clock, CPU seconds, and peak memory; `status` first without any derived file,
then as always. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from io import BufferedWriter
from itertools import accumulate
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.recall_scale import vocabulary
from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso
from brainiac.events import (
    Event,
    EventData,
    EvidenceRecord,
    ExchangeReflected,
    MemoryPromoted,
    PromptAnswered,
    RecordedChange,
    StatementRecord,
    content_hash,
    new_id,
)
from brainiac.formats.markdown import StmEvent, render_exchange
from brainiac.formats.page import MemoryDocument, new_memory
from brainiac.formats.short_term import EMPTY
from brainiac.skeleton import create_brain
from brainiac.storage.journal import BlobStore, to_line
from brainiac.storage.statements import text_hash

A_DAY, A_RUN, STATEMENTS, PAGES = 40, 8, 3, 1000
START = datetime(2019, 1, 1, 8, tzinfo=UTC)
STM = "memory/short_term.md"


class Texts(BlobStore):
    """The journal's texts, written without looking up what was written a moment ago."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._recent: dict[str, tuple[bytes, int]] = {}  # text and depth by hash

    def put(self, content: bytes, *, base: str | None = None, is_verified: bool = False) -> str:
        digest = super().put(content, base=base)
        depth = super()._depth(digest) if base else 0
        self._recent[digest] = content, depth
        if len(self._recent) > 20_000:
            for old in list(self._recent)[:10_000]:
                del self._recent[old]
        return digest

    def get(self, digest: str) -> bytes:
        return self._recent[digest][0] if digest in self._recent else super().get(digest)

    def _depth(self, digest: str) -> int:
        return self._recent[digest][1] if digest in self._recent else super()._depth(digest)

    def _write_file(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)


class Writer:
    """Writes a brain's files and its journal, without the waits that make a commit safe."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock(START)
        create_brain(root, clock=self.clock)
        self.brain = Brain(root, clock=self.clock)
        self.brain.observed.adopt()
        self.blobs = Texts(self.brain.journal.blobs.folder)
        for number in range(256):
            (self.blobs.folder / f"{number:02x}").mkdir(parents=True, exist_ok=True)
        self.seq, self.journal = self.brain.journal.last()[0], self.brain.journal.folder
        self.random = random.Random(5)
        self.words, weights = vocabulary(self.random)
        self.weights = list(accumulate(weights))
        self.texts: dict[str, str] = {STM: (root / STM).read_text("utf-8")}
        self.noted: list[StmEvent] = []
        self.lines: BufferedWriter | None = None

    def write(self, count: int) -> None:
        """Write so many exchanges."""
        for number in range(count):
            self.clock.advance(86_400 - 180 * (A_DAY - 1) if number % A_DAY == 0 and number else 180)
            self.answer(number)
            if len(self.noted) == A_RUN:
                self.promote(number)
        for path, text in self.texts.items():
            self.place(path, text)
        if self.lines:
            self.lines.close()
        self.brain.close()

    def sentence(self, length: int) -> str:
        """Return a sentence of made-up words."""
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=length)).capitalize() + "."

    def answer(self, number: int) -> None:
        """Write a prompt and its answer, and note them."""
        at, said, told = iso(self.clock.now()), self.sentence(25), self.sentence(60)
        stem = f"inbox/talk-{number // 20:05d}/{number:06d}"
        prompt, response = f"{stem}.md", f"{stem}.response.md"
        answer = f"---\nin_reply_to: {number:06d}.md\nprompt_id: {new_id()}\ncreated_at: {at}\n---\n{told}\n"
        self.place(prompt, said + "\n")
        self.place(response, answer)
        changes = [self.kept("observe", prompt, None, said + "\n"), self.kept("create", response, None, answer)]
        event = self.record(
            PromptAnswered(
                prompt=prompt,
                prompt_id=new_id(),
                prompt_sha256=content_hash(said.encode()),
                response=response,
                model="m",
            ),
            changes,
        )
        self.noted.append(StmEvent(event.id, at, said, told))
        self.note(ExchangeReflected(exchange=event.id, prompt=prompt))

    def note(self, what: EventData) -> None:
        """Write short-term memory anew with what is noted."""
        text = EMPTY + "\n" + "\n".join(render_exchange(event) for event in reversed(self.noted))
        self.record(what, [self.kept("update", STM, self.texts[STM], text)])
        self.texts[STM] = text

    def promote(self, number: int) -> None:
        """Put what is noted on its day's page, and three statements of it on others."""
        at = iso(self.clock.now())
        day = self.brain.day_of(at)
        path = f"memory/long_term/events/{day.replace('-', '/')}/{day}.md"
        former = self.texts.get(path) or new_memory(day, uuid=new_id(), now=at)
        text = former.rstrip("\n") + "\n\n" + "\n".join(map(render_exchange, self.noted)) + "\n"
        changes, rows = [self.kept("update" if path in self.texts else "create", path, self.texts.get(path), text)], []
        self.texts[path] = text
        for event in self.random.sample(self.noted, STATEMENTS):
            change, row = self.state(event, at, day)
            changes += [change] if change.path not in {each.path for each in changes} else []
            rows.append(row)
        self.noted = [] if number % A_DAY == A_DAY - 1 else self.noted[-1:]
        ids = tuple(row.sources[0] for row in rows)
        empty = {"left": {}, "proposals": (), "refused": (), "candidates": {}, "kept": (), "filed": ()}
        what = MemoryPromoted(exchanges=ids, statements=tuple(rows), episodes={path: ids}, **empty)
        self.record(what, changes)
        self.note(ExchangeReflected(exchange=rows[0].sources[0], prompt=""))

    def state(self, event: StmEvent, at: str, day: str) -> tuple[RecordedChange, StatementRecord]:
        """Put a statement on a page; return the change and its record."""
        page = min(int(self.random.expovariate(4 / PAGES)), PAGES - 1)
        path = f"memory/long_term/concrete/f{page % 10}/p{page:04d}.md"
        former = self.texts.get(path)
        document = MemoryDocument(former or new_memory(f"Page {page}", uuid=new_id(), now=at), path)
        statement = event.user.rstrip(".") + f", said on {day}."
        block = document.block_id_for(statement)
        after = str(document.add_statement(statement, block))
        change = self.kept("create" if former is None else "update", path, former, after)
        self.texts[path] = after
        row = StatementRecord(
            candidate=f"{event.id}#0",
            operation="NEW",
            path=path,
            page=document.memory.uuid,
            block=block,
            hash=text_hash(statement),
            since=day,
            sources=(event.id,),
            evidence=(EvidenceRecord(exchange=event.id, quote=event.user),),
            origin="person",
            model="m",
        )
        return change, row

    def kept(self, op: str, path: str, before: str | None, after: str) -> RecordedChange:
        """Keep a text and return the change to it."""
        near = None if before is None else content_hash(before.encode())
        digest = self.blobs.put(after.encode(), base=near)
        return RecordedChange(op, path, near, digest)  # type: ignore[arg-type]

    def place(self, path: str, text: str) -> None:
        """Write a file."""
        file = self.brain.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def record(self, what: EventData, changes: list[RecordedChange]) -> Event:
        """Write a line of the journal."""
        self.seq += 1
        at = iso(self.clock.now())
        event = Event(self.seq, new_id(), at, what.kind, "benchmark", None, what.to_json(), tuple(changes))
        file = self.journal / f"{at[:10]}.jsonl"
        if self.lines is None or self.lines.name != str(file):
            if self.lines:
                self.lines.close()
            self.lines = file.open("ab")
        self.lines.write(to_line(event))
        return event


def measure(root: Path, *arguments: object) -> dict[str, float]:
    """Run a command; return seconds by the clock, seconds of CPU and peak memory in MB."""
    words = [sys.executable, "-m", "brainiac", "--brain", str(root), *map(str, arguments)]
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    size = len(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - started
    if status:
        raise SystemExit(f"{arguments}: {status}: {process.stderr.read().decode()[-500:]}")  # type: ignore[union-attr]
    cpu = usage.ru_utime + usage.ru_stime
    return {"s": round(took, 2), "cpu_s": round(cpu, 2), "peak_mb": round(usage.ru_maxrss / 1024), "printed": size}


def runs(root: Path, end: datetime) -> dict[str, tuple[object, ...]]:
    """Return the commands by name."""
    half, week, day = (iso(end - timedelta(days=days)) for days in ((end - START).days // 2, 7, 1))
    page, target = "memory/long_term/concrete/f0/p0000.md", root.parent / "backups"
    return {
        "status, nothing derived": ("status",),
        "status": ("status",),
        "diff, a week": ("diff", "--since", week, "--json"),
        "diff, half of all": ("diff", "--since", half, "--json"),
        "show, half of all ago": ("show", page, "--at", half),
        "show short-term memory, a day ago": ("show", STM, "--at", day),
        "digest, a week": ("digest", "--since", week[:10]),
        "backup": ("backup", target),
    }


def main() -> None:
    """Make the brain where there is none, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exchanges", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="", help="Only commands whose name begins so.")
    parser.add_argument("--make", action="store_true", help="Only make the brain.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        for variable in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{variable}_HOME"] = str(folder / variable.lower())
        root = folder / "brain"
        if given.make:
            Writer(root).write(given.exchanges)
            return
        if not root.exists():  # by a process of its own: a child begins with the memory of its parent
            subprocess.run([*sys.orig_argv, "--folder", str(folder), "--make"], check=True)
        last = max((root / "logs/journal").glob("*/*.jsonl")).stem
        end = datetime.fromisoformat(last).replace(hour=23, tzinfo=UTC)
        figures: dict[str, object] = {"exchanges": given.exchanges}
        for name, words in runs(root, end).items():
            if name.startswith(given.only):
                figures[name] = measure(root, *words)
                print(name, figures[name], file=sys.stderr)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
