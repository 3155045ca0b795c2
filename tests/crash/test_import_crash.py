"""An import is interrupted at its disk operations, or killed, and run again: nothing twice, nothing missing."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.events import ExchangesImported
from brainiac.testing import command, make_brain
from tests.support.exports import chatgpt, write_json
from tests.support.kernel import CountingDisk, Crash, PowerDisk, on_disk
from tests.support.plain_reader import exchanges
from tests.support.program import Program, run_program

N = 5


def export(tmp_path: Path) -> Path:
    talks = [chatgpt(f"c{n}", [(f"question {n}", f"answer {n}"), (f"and {n}", f"so {n}")]) for n in range(N)]
    return write_json(tmp_path / "conversations.json", talks)


def opened(root: Path, disk: CountingDisk | None = None) -> Brain:
    return on_disk(Brain(root), disk) if disk else Brain(root)


def said(root: Path) -> list[str]:
    pages = (root / "memory/long_term/events/imported").rglob("*.md")
    return sorted(one.user for page in pages for one in exchanges(page.name, page.read_bytes()))


EXPECTED = sorted(f"{word} {n}" for n in range(N) for word in ("question", "and"))


@pytest.mark.parametrize(("kind", "how"), [(CountingDisk, "before"), (CountingDisk, "torn"), (PowerDisk, "after")])
def test_an_import_interrupted_anywhere_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[CountingDisk], how: str
) -> None:
    """Wherever it ends, whole conversations are in; run again it brings the rest, and one undo takes each run back."""
    monkeypatch.setattr("brainiac.imports.intake.BATCH_ITEMS", 2)
    path, root, kept = export(tmp_path), tmp_path / "brain", tmp_path / "kept"
    made = make_brain(root)
    made.observed.adopt()
    made.close()
    shutil.copytree(root, kept / "root")
    shutil.copytree(state := made.places.device, kept / "state")
    disk = CountingDisk()
    whole = opened(root, disk)
    command(whole, "import", str(path))
    whole.close()
    middles = 0
    for number in range(1, len(disk.done) + 1, 13):
        for name, folder in (("root", root), ("state", state)):
            shutil.rmtree(folder)
            shutil.copytree(kept / name, folder)
        failing = kind(number, how)
        broken = opened(root, failing)
        with suppress(Crash):
            command(broken, "import", str(path))
        broken.committer.database.close()
        if isinstance(failing, PowerDisk):
            failing.fail()
        brain = opened(root)
        if number % 2:  # else the import itself finds what is left to be finished
            brain.committer.recover()
        assert set(said(root)) <= set(EXPECTED)
        middles += 0 < len(said(root)) < len(EXPECTED)
        command(brain, "import", str(path))
        assert EXPECTED == said(root)
        assert [] == brain.observed.adopt()
        if number % 3 == 1:
            while list(brain.journal.events(kinds={ExchangesImported})) and said(root):
                command(brain, "undo", "--last")
            assert [] == said(root)
        brain.close()
    assert middles


@pytest.mark.slow
def test_an_import_that_is_killed_is_gone_on_with(tmp_path: Path) -> None:
    """A command killed by SIGKILL, several times, and then left alone brings every exchange once."""
    talks = [chatgpt(f"c{n}", [(f"question {n}", "answer " * 900)] * 3, title=f"Talk {n}") for n in range(250)]
    path = write_json(tmp_path / "conversations.json", talks)
    root = tmp_path / "brain"
    make_brain(root).close()
    line = ("--brain", str(root), "import", str(path))
    for so_many in (1, 300):
        with (tmp_path / "log").open("wb") as log:
            program = Program(*line, out=log)
        while program.poll() is None and len(said(root)) < so_many:
            time.sleep(0.1)
        program.kill()
        program.wait()
    assert 0 < len(said(root)) < 750
    run_program(*line).check_returncode()
    assert sorted(f"question {n}" for n in range(250) for _ in range(3)) == said(root)
