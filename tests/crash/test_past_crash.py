"""`promote --past` is killed again and again: nothing twice, nothing missing, no answer paid twice that had arrived."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from brainiac_plugins.promotion.past import CatchUp

from brainiac.clock import ManualClock, iso, parse_iso
from brainiac.formats.page import parse_exchanges
from brainiac.history.undo import undo
from brainiac.llm.schemas import ConsolidateRequest, Purpose, Request, Result, SynthesizeRequest, VerifyRequest
from brainiac.storage.causes import commits_of
from brainiac.storage.said import FiledExchanges
from tests.support.promotions import ScriptedEngine, make_brain, open_brain, pages, set_model, statements
from tests.unit.test_month import MONTH, Recording, live
from tests.unit.test_past import NIGHTLY, files_of

KILLS = 8


class Meter(Recording):
    """The recording, for any process: it notes each call when it is begun and when its answer has arrived."""

    def __init__(self, messages: Mapping[str, str], log: Path) -> None:
        super().__init__()
        self.messages, self._log = dict(messages), log

    def run(self, request: Request) -> Result:
        said = sorted(each.event.id for each in request.said) if isinstance(request, ConsolidateRequest) else []
        refused = len(request.refused) if isinstance(request, ConsolidateRequest) else 0
        named = [each.content for each in request.candidates] if isinstance(request, SynthesizeRequest) else []
        named += [claim.text for claim in request.claims] if isinstance(request, VerifyRequest) else []
        name = json.dumps([request.purpose, said, refused, named])
        self._note("begun", name)
        self.waiting = list(MONTH["operations"])
        result = super().run(request)
        time.sleep(0.03)  # on its way
        self._note("paid", name)
        return result

    def _note(self, what: str, name: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{what} {name}\n")


def read_past(root: Path, at: str, messages: Mapping[str, str], log: Path) -> None:
    """Catch up in a process of its own."""
    brain = open_brain(root, Meter(messages, log), ManualClock(parse_iso(at)))
    CatchUp(brain).run()
    os._exit(0)


def lines_of(log: Path) -> list[str]:
    return log.read_text("utf-8").splitlines() if log.exists() else []


def test_a_catch_up_killed_eight_times_ends_as_if_it_never_was(tmp_path: Path) -> None:
    """What stands in the end is what a model that was there from the start made; each call was paid once.

    Only a call that was in flight at a kill may be made again.
    """
    first, engine, log = make_brain(tmp_path / "a", engine=(other := Recording())), Recording(), tmp_path / "calls"
    list(live(first, other))
    keyless = make_brain(tmp_path / "b", NIGHTLY, keyless=True)
    list(live(keyless, engine))
    assert isinstance(keyless.clock, ManualClock)
    keyless.clock.advance(3600)
    before, at, chance = files_of(keyless), iso(keyless.clock.now()), random.Random(7)
    keyless.close()
    set_model(keyless.root)

    fork = multiprocessing.get_context("fork")
    in_flight: Counter[str] = Counter()
    kills = 0
    while True:
        process = fork.Process(target=read_past, args=(keyless.root, at, engine.messages, log))
        n_lines = len(lines_of(log)) + chance.randrange(1, 4)
        process.start()
        while process.is_alive() and (kills >= KILLS or len(lines_of(log)) < n_lines):
            time.sleep(0.005)
        time.sleep(chance.random() * 0.1)
        if process.is_alive() and process.pid:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        if process.exitcode == 0:
            break
        in_flight[lines_of(log)[-1].partition(" ")[2]] += 1
    assert kills == KILLS

    paid = Counter(line.partition(" ")[2] for line in lines_of(log) if line.startswith("paid"))
    assert {} == {name: count for name, count in paid.items() if count > 1 + in_flight[name]}
    assert sum(paid.values()) - len(paid) <= 1  # a kill between an answer's arrival and its first byte on the disk
    brain = open_brain(keyless.root, ScriptedEngine(), ManualClock(parse_iso(at)))
    assert Counter(statements(first)) == Counter(statements(brain))
    assert Counter(statements(first, history=True)) == Counter(statements(brain, history=True))
    said = [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert sorted(message["text"] for message in MONTH["messages"]) == sorted(said)
    assert [] == FiledExchanges(brain).without_model
    calls = {name for name in paid if json.loads(name)[0] == Purpose.CONSOLIDATE}
    read = [exchange for name in calls for exchange in json.loads(name)[1] if not json.loads(name)[2]]
    assert len(read) == len(set(read)) == len(MONTH["messages"])
    (started,) = brain.journal.events(kinds={"catch-up-started"})
    for commit in commits_of(brain, started):
        undo(brain, commit)
    assert before == files_of(brain)
