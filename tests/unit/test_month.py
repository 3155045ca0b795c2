"""A fortnight of talk by a fresh writer, and a reader's operations for it, through checks, pages, History and digest.

The recording (`tests/data/month`) holds operations, not requests: what each is about is named by its words, so that it
is replayed whatever a run's limits are. `benchmarks/consolidation.py` made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Evidence, Operation, PageRef, Purpose
from tests.support.commands import do, problems_of
from tests.support.plain_reader import exchanges
from tests.support.promotions import LTM, ScriptedEngine, later, make_brain, pages, statements, tell

MONTH = json.loads((Path(__file__).parent.parent / "data/month/month.json").read_text("utf-8"))
pytestmark = pytest.mark.slow
NIGHT_SECONDS = 6 * 3600
Recorded = Mapping[str, Any]


class Recording(ScriptedEngine):
    """Gives each recorded operation once the last that it rests on is said, and again where it is asked about."""

    def __init__(self) -> None:
        super().__init__({Purpose.CONSOLIDATE: self._consolidate})
        self.messages: dict[str, str] = {}  # by exchange
        self.waiting: list[Recorded] = list(MONTH["operations"])

    def _consolidate(self, request: ConsolidateRequest) -> Consolidation:
        if request.refused:
            return Consolidation(operations=[row.operation for row in request.refused])
        short = {self.messages[said.event.id]: said.id for said in request.said}
        due = [row for row in self.waiting if max(quoted["message"] for quoted in row["evidence"]) in short]
        self.waiting = [row for row in self.waiting if row not in due]
        return Consolidation(operations=[_operation(row, short, request) for row in due])


def _operation(row: Recorded, short: Mapping[str, str], request: ConsolidateRequest) -> Operation:
    page = dict(row["page"])
    if path := page.get("path"):
        known = {name.path.removeprefix(LTM): name.path for name in request.pages}
        page["path"] = known.get(path, "")
    return Operation(
        action=row["action"],
        ids=[_id_of(request, text) for text in row["about"]],
        text=row["text"],
        evidence=[
            Evidence(exchange=short[quoted["message"]], quote=quoted["quote"])
            for quoted in row["evidence"]
            if quoted["message"] in short  # the others were read in an earlier run
        ],
        page=PageRef(**page),
        subject=row.get("subject", ""),
        steps=row.get("steps", []),
    )


def _id_of(request: ConsolidateRequest, text: str) -> str:
    return next((known.id for known in request.existing if known.content.startswith(text)), f"“{text}”")


def live(brain: Brain, engine: Recording) -> Iterator[dict[str, Any]]:
    """Say everything at its moment, and promote each night."""
    messages = MONTH["messages"]
    for number, message in enumerate(messages):
        minutes = (datetime.fromisoformat(message["at"]) - brain.clock.now()).total_seconds() / 60
        engine.messages[tell(brain, message["text"], minutes=minutes, answer=message["answer"])] = message["id"]
        following = messages[number + 1]["at"] if number + 1 < len(messages) else "2027-01-01T00:00:00Z"
        if (datetime.fromisoformat(following) - brain.clock.now()).total_seconds() > NIGHT_SECONDS:
            later(brain, 1000)
            yield do(brain, "promote", "--json").json


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Brain, list[dict[str, Any]]]:
    engine = Recording()
    brain = make_brain(tmp_path_factory.mktemp("month") / "b", engine=engine)
    outcomes = list(live(brain, engine))
    assert not engine.waiting
    return brain, outcomes


def test_nothing_good_is_refused(lived: tuple[Brain, list[dict[str, Any]]]) -> None:
    """Of 149 operations that a reader gave, none is refused in the end, and none is left."""
    _, outcomes = lived
    assert [] == [row for outcome in outcomes for row in outcome["refused"]]
    assert [] == [text for outcome in outcomes for text in outcome["left"]]


def test_memory_is_what_the_operations_say(lived: tuple[Brain, list[dict[str, Any]]]) -> None:
    """Each statement that was given stands, unless a later operation changed or ended it; that one is past."""
    brain, _ = lived
    holding: dict[str, None] = {}
    past: set[str] = set()
    for row in MONTH["operations"]:
        if row["action"] in ("replace", "end", "forget"):
            past.update(text for text in row["about"] if text in holding)
            holding = {text: None for text in holding if text not in row["about"]}
        if row["text"] and row["action"] in ("new", "replace", "end") and not row.get("steps"):
            holding[row["text"]] = None
    standing, former = set(map(_own, statements(brain))), set(map(_own, statements(brain, history=True)))
    assert [] == sorted(set(holding) - standing)
    assert [] == sorted(past - former)


def _own(text: str) -> str:
    """Return a statement without the words that say whose it is."""
    return text.partition(" (assistant:")[0]


def test_what_was_said_stands_word_for_word(lived: tuple[Brain, list[dict[str, Any]]]) -> None:
    """Every message, once, on the page of its day."""
    brain, _ = lived
    said = [one.user for page in pages(brain).values() for one in exchanges(page.path, page.text.encode())]
    assert sorted(message["text"] for message in MONTH["messages"]) == sorted(said)
    assert [] == problems_of(brain)


def test_the_digest_tells_every_change_with_both_wordings(lived: tuple[Brain, list[dict[str, Any]]]) -> None:
    """What was replaced is told as it was and as it is, as far as the new wording stands by now."""
    brain, _ = lived
    lines = do(brain, "digest", "--since", "2026", "--json").json["lines"]
    told = {(line["before"], line["text"]) for line in lines if line["what"] == "changed"}
    replaced = [row for row in MONTH["operations"] if row["action"] == "replace"]
    assert len(replaced) > 10
    assert [] == [row["text"] for row in replaced if (row["about"][0], row["text"]) not in told]
