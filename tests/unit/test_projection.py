"""The projection: whatever happens to journals, processes and its own file, it equals one that is built anew."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from brainiac.brain import Brain
from brainiac.events import (
    Event,
    StatementRecord,
    StatementRef,
    StatingEvent,
    content_hash,
    create,
    move,
    new_id,
    observe,
    remove,
    update,
)
from brainiac.storage.causes import undone_events
from brainiac.storage.database import FILE, StateDatabase
from brainiac.storage.journal import to_line
from brainiac.storage.projection import TABLES, Projection
from brainiac.storage.statements import StatementLog
from tests.support.examples import examples
from tests.support.kernel import make_root

AT = "2025-09-16T15:30:00Z"
PROMPTS = [f"inbox/{name}.md" for name in ("a", "b", "deep/c")]
PAGES = ["memory/long_term/concrete/p.md", "memory/archive/q.md", "memory/review.md"]
prompts, pages = st.sampled_from(PROMPTS), st.sampled_from(PAGES)
indices = st.integers(0, 50)


def tables(projection: Projection) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows."""
    projection.follow()
    return {name: sorted(projection.query(f"SELECT * FROM {name}"), key=repr) for name in TABLES}


def rebuilt(brain: Brain) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a projection that is made anew."""
    places = replace(brain.places, state=brain.places.state / new_id())
    with closing(StateDatabase(places)) as database:
        return tables(Projection(database, brain.tree, brain.journal))


OWNING = "memory-promoted", "memory-organized", "proposal-decided"


class ProjectionMachine(RuleBasedStateMachine):
    """Two processes of one device on a brain, two other devices whose journals arrive, and what befalls files."""

    def __init__(self) -> None:
        super().__init__()
        in_memory = Path("/dev/shm")  # thousands of commits, each waiting for the disk
        self.folder = Path(tempfile.mkdtemp(dir=in_memory if in_memory.is_dir() else None))
        self.ids = [new_id() for _ in range(20)]  # of events of other devices that arrive when there are later ones
        self.number = 0

    @initialize()
    def start(self) -> None:
        root = make_root(self.folder / "brain")
        self.brains = [Brain(root), Brain(root)]
        self.exchanges: list[str] = []
        for brain in self.brains:
            assert brain.answered.last_exchange_at is None

    def teardown(self) -> None:
        for brain in self.brains:
            brain.close()
        shutil.rmtree(self.folder)

    def brain(self) -> Brain:
        """Return one of the two processes, in turn."""
        self.number += 1
        return self.brains[self.number % 2]

    def exchange(self, index: int) -> str:
        return self.exchanges[index % len(self.exchanges)] if self.exchanges else "none"

    def event(self, index: int) -> Event | None:
        events = list(self.brains[0].journal.events())
        return events[index % len(events)] if events else None

    # what processes do

    @rule(path=prompts, text=st.sampled_from("xyz"), is_off_record=st.booleans())
    def answered(self, path: str, text: str, is_off_record: bool) -> None:
        brain = self.brain()
        brain.tree.absolute(path).parent.mkdir(parents=True, exist_ok=True)
        brain.tree.absolute(path).write_text(text)
        known = brain.answered.of(path)
        data = {
            "prompt": path,
            "prompt_id": known.prompt_id if known else new_id(),
            "prompt_sha256": content_hash(text.encode()),
            "response": path.replace(".md", ".response.md"),
        }
        changes = [] if is_off_record else [observe(path, text.encode())]
        self.exchanges.append(brain.commit("prompt-answered", by="core_loop", changes=changes, data=data).id)
        answer = brain.answered.of(path)
        assert answer is not None
        assert (self.exchanges[-1], known.exchange if known else None) == (
            answer.exchange,
            brain.answered.previous_version(answer.exchange),
        )

    @rule(index=indices, is_extracted=st.sampled_from([True, False, None]), revised=st.none() | indices)
    def followed(self, index: int, is_extracted: bool | None, revised: int | None) -> None:
        exchange, brain = self.exchange(index), self.brain()
        data: dict[str, Any] = {"exchange": exchange}
        if is_extracted is None:
            brain.record("exchange-off-record", by="x", data=data)
        else:
            data |= {"is_extracted": is_extracted, "items": ["i"], "thoughts": "t"}
            data |= {"supersedes": self.exchange(revised)} if revised else {}
            brain.record("exchange-reflected", by="x", data=data)
        assert not brain.answered.undelivered(exchange=exchange)

    @rule(kind=st.sampled_from(["exchanges-filed", "memory-promoted"]), index=indices, page=pages)
    def filed(self, kind: str, index: int, page: str) -> None:
        exchange = self.exchange(index)
        self.brain().record(kind, by="promotion", data={"exchanges": [exchange], "episodes": {page: [exchange]}})

    @rule(index=indices, is_deleted=st.booleans())
    def proposed(self, index: int, is_deleted: bool) -> None:
        more = {"operation": "forget", "deleted": "u", "path": PAGES[0], "exchanges": ["x"]} if is_deleted else {}
        data = {"proposals": [{"id": str(index), "what": "Do it", **more}]}
        self.brain().record("proposal-made", by="x", data=data)

    @rule(index=indices, how=st.sampled_from(["applied", "declined", "expired", "lapsed"]))
    def decided(self, index: int, how: str) -> None:
        self.brain().record("proposal-decided", by="person", data={"proposal": str(index), "how": how})

    @rule(index=indices, kind=st.sampled_from([*OWNING, "statement-corrected"]))
    def stated(self, index: int, kind: str) -> None:
        data: dict[str, Any]
        data = {"statements": [statement(str(index)), statement("how-to") | {"steps": [{"block": "s", "hash": "h"}]}]}
        data |= {"proposal": "p", "how": "applied"} if kind == "proposal-decided" else {"summary": [str(index)]}
        self.brain().record(kind, by="x", data=data)

    @rule(index=indices)
    def analyzed(self, index: int) -> None:
        data = {"events": {self.exchange(index): "hash"}, "model": "m"}
        self.brain().record("events-analyzed", by="promotion", data=data, cause=str(index))

    @rule(usd=st.floats(0, 1))
    def called(self, usd: float) -> None:
        data = {"purpose": "answer", "model": "m", "input_tokens": 1, "output_tokens": 2, "cost_usd": usd}
        self.brain().record("model-called", by="core_loop", data=data)

    @rule(times=st.integers(1, 9), action=st.sampled_from(["link", "move"]))
    def organized(self, times: int, action: str) -> None:
        data = {
            "used": {"u": ["2025-09-16", times]},
            "together": [["u", "v", times]],
            "asked": str(times),
            "done": [{"action": action, "uuids": ["u", "v"], "from": [], "to": [], "reason": ""}],
        }
        self.brain().record("memory-organized", by="organization", data=data)

    @rule(index=indices)
    def undone(self, index: int) -> None:
        if event := self.event(index):
            brain = self.brain()
            changes = [
                create(change.path, brain.committer.text_of(change.before))
                for change in event.changes
                if change.op == "remove" and change.before and brain.read(change.path) is None
            ]
            brain.commit("event-undone", by="person", changes=changes, data={"undone": event.id, "kind": event.kind})

    @rule(index=indices)
    def made_private(self, index: int) -> None:
        self.brain().record("exchange-made-private", by="x", data={"exchanges": [self.exchange(index)]})

    @rule(index=indices)
    def purged(self, index: int) -> None:
        """Lines lose their words, and then it is recorded that they did."""
        brain = self.brain()
        brain.journal.rewrite(lambda event: replace(event, cause=None, data={}))
        brain.record("purge-honoured", by="kernel", data={"tombstone": "t"})

    # what becomes of files

    @rule(path=prompts | pages, by=st.sampled_from(["person", "x"]))
    def removed(self, path: str, by: str) -> None:
        brain = self.brain()
        if (raw := brain.read(path)) is not None:
            brain.commit("note-deleted", by=by, changes=[remove(path, raw)])
            assert brain.answered.of(path) is None

    @rule(source=prompts | pages, path=prompts | pages, is_told=st.booleans())
    def moved(self, source: str, path: str, is_told: bool) -> None:
        brain = self.brain()
        raw = brain.read(source)
        if raw is None or brain.read(path) is not None:
            return
        known = brain.answered.of(source)
        brain.tree.absolute(path).parent.mkdir(parents=True, exist_ok=True)
        brain.commit("note-moved", by="person", changes=[move(source, path, raw)])
        if is_told and known:
            data = {"prompt": path, "prompt_id": known.prompt_id, "prompt_sha256": known.prompt_sha256}
            brain.record("prompt-moved", by="bus", data={**data, "response": None, "moved_from": source})
        if known:
            answer = brain.answered.of(path)
            assert (known.exchange, path) == (answer.exchange, answer.prompt) if answer else None

    @rule(path=pages, by=st.sampled_from(["person", "x"]))
    def written(self, path: str, by: str) -> None:
        brain, text = self.brain(), f"# P\n\n{self.number}\n"
        before = brain.read(path)
        brain.tree.absolute(path).parent.mkdir(parents=True, exist_ok=True)
        change = create(path, text) if before is None else update(path, before, text)
        brain.commit("note-written", by=by, changes=[change])

    # what befalls processes, journals and the file

    @rule(is_closed=st.booleans(), which=st.integers(0, 1))
    def restarted(self, is_closed: bool, which: int) -> None:
        """A killed process closes nothing."""
        if is_closed:
            self.brains[which].close()
        self.brains[which] = Brain(self.brains[which].root)
        _ = self.brains[which].answered

    @rule(index=indices)
    def killed_before_it_announced(self, index: int) -> None:
        event = Event(0, new_id(), AT, "exchange-reflected", "x", data={"exchange": self.exchange(index)})
        self.brain().journal.record(event)

    @rule(path=prompts, device=st.sampled_from(["laptop-1", "phone-2"]), is_late=st.booleans(), cut=st.integers(0, 40))
    def arrived(self, path: str, device: str, is_late: bool, cut: int) -> None:
        """Another device's events are synced, the last line perhaps not whole yet, and perhaps days late."""
        name = self.ids.pop() if is_late and self.ids else new_id()
        data = {"prompt": path, "prompt_id": name, "prompt_sha256": name, "response": None}
        exchange = self.exchange(cut) if cut % 3 else "\ud800"
        events = [
            Event(1, name, AT, "note-captured", "bus", data=data),
            Event(2, new_id(), AT, "exchange-reflected", "x", data={"exchange": exchange}),
            Event(3, new_id(), AT, "memory-promoted", "x", data={"statements": [statement(device)]}),
        ]
        file = self.brains[0].tree.journal / device / "2025-09-16.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        former = file.read_bytes() if file.exists() else b""
        whole = former[: former.rfind(b"\n") + 1] + b"".join(map(to_line, events))
        file.write_bytes(whole[: len(whole) - cut])

    @rule(device=st.sampled_from(["laptop-1", "phone-2"]), is_kept=st.booleans())
    def purged_elsewhere(self, device: str, is_kept: bool) -> None:
        file = self.brains[0].tree.journal / device / "2025-09-16.jsonl"
        if file.exists() and is_kept:
            file.write_bytes(file.read_bytes().replace(b"inbox/", b"gone/"))
        elif file.exists():
            file.unlink()

    @rule(lines=st.integers(1, 5))
    def taken_back_by_git(self, lines: int) -> None:
        for file in self.brains[0].journal.folder.glob("*.jsonl"):
            left = file.read_bytes().splitlines(keepends=True)[:-lines]
            file.write_bytes(b"".join(left))

    @rule(how=st.sampled_from(["deleted", "emptied", "random", "half"]))
    def spoiled(self, how: str) -> None:
        for ending in ("", "-wal", "-shm"):
            file = self.brains[0].places.state / (FILE + ending)
            if how == "deleted":
                file.unlink(missing_ok=True)
            elif file.exists() and ending != "-shm":  # that is shared memory: nothing but a process writes it
                size = file.stat().st_size
                file.write_bytes({"emptied": b"", "random": os.urandom(size)}.get(how, file.read_bytes()[: size // 2]))

    @invariant()
    def rebuilt_equals_incremental(self) -> None:
        for brain in getattr(self, "brains", ()):
            assert rebuilt(brain) == tables(brain.projection)

    @invariant()
    def statements_are_those_of_the_journals(self) -> None:
        for brain in getattr(self, "brains", ()):
            log, undone = StatementLog(brain), undone_events(brain)
            events = [event for _, event in brain.journal.all_events() if isinstance(event.what, StatingEvent)]
            recorded = sorted((event.id, row.hash) for event in events for row in rows_of(event))
            assert recorded == sorted((change.event.id, change.hash) for change in log.history_of("page"))
            owning = (event for event in events if event.kind != "statement-corrected" and event.id not in undone)
            ours = {row.block for event in owning for row in rows_of(event)}
            assert ours == {block for block, _ in log._our_statements("page")}


def statement(text: str) -> dict[str, Any]:
    """Return the record of a statement."""
    return {"page": "page", "block": f"b{text}", "hash": f"h{text}", "candidate": text, "sources": ["x"]}


def rows_of(event: Event) -> list[StatementRecord | StatementRef]:
    """Return the statements that an event states, steps too."""
    assert isinstance(event.what, StatingEvent)
    rows: list[StatementRecord | StatementRef] = []
    for record in event.what.statements:
        rows += [record, *record.steps]
    return rows


TestProjection = ProjectionMachine.TestCase
TestProjection.settings = examples(15, stateful_step_count=25)
TestProjection.pytestmark = [pytest.mark.slow]  # type: ignore[attr-defined]
