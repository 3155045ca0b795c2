"""No candidate vanishes: each ends as written, proposed, left or refused, in the journal and in the run's report."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from brainiac_plugins.promotion.run import Outcome, promote
from hypothesis import given
from hypothesis import strategies as st

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import ModelError
from brainiac.formats.page import parse_memory
from brainiac.llm.schemas import (
    ConsolidateRequest,
    Consolidation,
    Evidence,
    Page,
    PageRef,
    Purpose,
    Request,
    Result,
    SynthesizeRequest,
)
from brainiac.storage.statements import text_hash
from tests.support.commands import Shell
from tests.support.examples import examples
from tests.support.promotions import (
    Answered,
    ScriptedEngine,
    later,
    make_brain,
    operations,
    page_with,
    statements,
    tell,
)

ENDS = {"written", "proposed", "refused"}


def by_hand(brain: Brain, path: str, text: str) -> None:
    """Write a page as a person does."""
    file = brain.tree.long_term / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    brain.observed.note_change(brain.tree.relative(file))


def candidates_of(brain: Brain) -> dict[str, str]:
    """Return every candidate that the journal holds, by its id: what it states."""
    found: dict[str, str] = {}
    for event in brain.journal.events(kinds={"events-analyzed"}):
        found |= {f"{event.id}#{n}": one.get("text", "") for n, one in enumerate(event.data["candidates"])}
        found |= {f"{event.id}#r{n}": one["statement"] for n, one in enumerate(event.data["refused"])}
    return found


def ended(brain: Brain) -> dict[str, dict[str, str]]:
    """Return how candidates ended, as the journal tells it: the last word on each."""
    events = brain.journal.events(kinds={"memory-promoted", "candidates-refused"})
    return {name: fate for event in events for name, fate in event.data["candidates"].items()}


def check(brain: Brain, outcome: Outcome, over: set[str]) -> Counter[str]:
    """Compare a run's report with the journal and the tree; return how its candidates ended.

    Args:
        brain: The brain.
        outcome: The report.
        over: The candidates of which earlier runs left nothing to do; those of this run are added.
    """
    assert set(candidates_of(brain)) - over == set(outcome.candidates), "none vanished, none came twice"
    counts = Counter(fate.end for fate in outcome.candidates.values())
    assert len(outcome.candidates) == counts["written"] + counts["proposed"] + counts["left"] + counts["refused"]
    told = ended(brain)
    assert {name: fate.to_json() for name, fate in outcome.candidates.items()} == {
        n: told[n] for n in outcome.candidates
    }
    assert all(fate.reason for fate in outcome.candidates.values() if fate.end in ("left", "refused"))
    records = outcome.event.data["statements"] if outcome.event else []
    # what is held back has a reason, and waits in the review without a record
    ends = outcome.candidates.items()
    carried_out = {name for name, fate in ends if fate.end in ("written", "proposed") and not fate.reason}
    assert carried_out == {record["candidate"] for record in records}
    assert all(is_standing(brain, record) for record in records)
    over |= {name for name, fate in outcome.candidates.items() if fate.end in ENDS}
    return counts


def is_standing(brain: Brain, record: dict[str, Any]) -> bool:
    """Return whether what a record tells stands on its page, or did and was changed by a later one of the run."""
    page = parse_memory(record["path"], brain.read_text(record["path"]) or "")
    named = [record, *record.get("steps", ())]
    blocks = {one.block_id for one in page.statements}
    return all(one["block"] in blocks for one in named if one.get("block"))


def test_what_adds_detail_to_a_persons_own_statement_is_written(tmp_path: Path) -> None:
    """A page by hand, a prompt that says more: both stand, and the candidate is counted as written."""
    brain = make_brain(tmp_path / "b")
    by_hand(brain, "concrete/health.md", "# Health\n\n- User has diagnosis ZZold. ^aaaa\n")
    later(brain)
    tell(brain, "My diagnosis is ZZnew.")
    outcome = promote(brain)
    assert {"written": 1} == check(brain, outcome, set())
    assert any("ZZnew" in text for text in statements(brain))
    assert "- User has diagnosis ZZold. ^aaaa\n" in (brain.tree.long_term / "concrete/health.md").read_text()


@pytest.mark.parametrize("action", ["replace", "end", "same", "new"])
def test_what_a_model_does_to_a_persons_own_statement_ends_on_a_page_or_in_review(tmp_path: Path, action: str) -> None:
    """Whatever it answers about a statement of the person's, that statement stands, and what it states too."""
    engine = ScriptedEngine()
    engine.on("violin", action, "cello", "User plays the cello on Mondays and the violin", page=PageRef(title="Music"))
    brain = make_brain(tmp_path / "b", engine=engine)
    by_hand(brain, "concrete/music.md", "# Music\n\n- User plays the cello on Mondays. ^aaaa\n")
    later(brain)
    tell(brain, "I play the violin.")
    outcome = promote(brain)
    counts = check(brain, outcome, set())
    assert 1 == counts["written"] + counts["proposed"]
    assert "User plays the cello on Mondays." in statements(brain)
    assert (action == "same") != any("violin" in text for text in statements(brain))


def test_a_task_on_the_list_is_refused_once_and_told(tmp_path: Path) -> None:
    """It stays on its list; the report and the journal say so, and every candidate is counted."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "/todo call the landlord about the tap\n\nI must call the landlord about the tap.")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    over: set[str] = set()
    outcome = promote(brain)
    assert {"written": 1, "refused": 1} == check(brain, outcome, over)
    assert any("list of tasks" in fate.reason for fate in outcome.candidates.values())
    assert None is promote(brain).event


def test_what_was_marked_is_counted_like_candidates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a model `promote --json` tells how each of the marked words ended, and the journal tells the same."""
    brain = make_brain(tmp_path / "b", keyless=True)
    tell(brain, "/remember My sister Ruth is a GP in Bristol.\n/remember The spare key hangs in the shed.")
    brain.close()
    report = Shell(capsys, str(tmp_path / "b"))("promote", "--json").json
    assert ["written", "written"] == [fate["end"] for fate in report["candidates"].values()]
    assert report["candidates"] == ended(Brain(tmp_path / "b", clock=ManualClock(brain.clock.now())))


def test_a_candidate_whose_event_a_person_edits_is_told(tmp_path: Path) -> None:
    """Left by one run, then its event is edited: the next run refuses it by name, and reads what stands now."""
    failing = [True]

    def fail(request: Request) -> Result:
        if failing[0]:
            raise ModelError("down", retryable=True)
        return engine.verbatim(request)

    engine = ScriptedEngine({Purpose.VERIFY: fail})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I live in Portland.")
    tell(brain, "I play the cello.")
    over: set[str] = set()
    assert {"left": 2} == check(brain, promote(brain), over)
    failing[0] = False
    file = brain.tree.short_term
    file.write_text(file.read_text().replace('"I live in Portland', '"I live in Boston'))
    assert {"written": 2, "refused": 1} == check(brain, promote(brain), over)
    assert "Boston" in page_with(brain, "live in").text


SAID = [
    "I live in Portland.", "I like coffee.", "I don't like coffee any more.", "My sister Ruth is a GP in Bristol.",
    "Ruth moved to Bath.", "Remind me to call the landlord.", "How I deploy:\n1. run the tests\n2. fly deploy",
    "Please forget that I like coffee.", "I work at Google.", "I work at Acme now.", "hi", "My code is 4471.",
    "I decided to leave.", "My diagnosis is ZZnew.", "See [Porto](../memory/long_term/concrete/a.md).",
]  # fmt: skip
MADE: list[dict[str, object]] = [
    {"text": "User lives in Portland"},
    {"text": "User likes coffee"},
    {"text": " "},
    {"text": "User plays the theremin in Ulan Bator"},
    {"text": "User likes coffee", "evidence": []},
    {"text": "User likes coffee", "evidence": [Evidence(exchange="e1", quote="coffee")]},
    {"text": "User works at Google", "subject": "Acme"},
    {"text": "User works at Acme now", "page": PageRef(kind="event")},
    {"text": "x" * 500},
    {"text": "How to deploy", "steps": ["run the tests", "fly deploy"], "page": PageRef(kind="skill", title="Deploy")},
    {"text": "coffee " * 9000},
    {"text": "User has diagnosis ZZnew", "valid_from": "soon", "valid_until": "2026-02-30"},
    {"text": "Ruth moved to Bath", "subject": "Ruth", "page": PageRef(title="Ruth", aliases=["sister", ""])},
    {"text": "I live in 7 towns"},
]
ACTIONS = ["new", "replace", "end", "same", "forget"]


class Chaos:
    """A model that answers anything, fails now and then, and during which a person edits pages.

    Args:
        random: What it draws from.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.brain: Brain | None = None
        purposes: dict[Purpose, Answered] = {
            Purpose.CONSOLIDATE: self.consolidate,
            Purpose.SYNTHESIZE: self.name,
            Purpose.SUMMARIZE: self.act,
        }
        self.engine = ScriptedEngine(purposes)

    def act(self, request: Request) -> Result:
        """Let a person edit a page, or fail, now and then; else answer as the offline engine."""
        if self.random.random() < 0.15:
            raise ModelError("down", retryable=True)
        if self.brain and self.random.random() < 0.2:
            pages = sorted(path for path in self.brain.tree.long_term.rglob("*.md") if path.name != "_index.md")
            if pages:
                page = self.random.choice(pages)
                page.write_text(page.read_text() + "\nA remark.\n")
        return self.engine.verbatim(request)

    def consolidate(self, request: ConsolidateRequest) -> Consolidation:
        found, choose = self.act(request), self.random.choice
        assert isinstance(found, Consolidation)
        if not request.said or self.random.random() < 0.2:
            return found
        ids = ["made-up", "", *(known.id for known in request.existing)]
        made = [
            {
                "action": choose(ACTIONS),
                "ids": self.random.sample(ids, self.random.randint(0, min(2, len(ids)))),
                **each,
            }
            for each in self.random.sample(MADE, self.random.randint(0, 6))
        ]
        own = [operation.model_copy(update={"action": choose(ACTIONS), "ids": [choose(ids)]})
               for operation in found.operations if self.random.random() < 0.4]  # fmt: skip
        more = [{"text": f"User likes coffee {n}"} for n in range(450)] if self.random.random() < 0.03 else []
        flood = operations(*made, *more)(request)
        return Consolidation.model_construct(operations=[*found.operations, *own, *flood.operations])

    def name(self, request: SynthesizeRequest) -> Page:
        self.act(request)
        folder = self.random.choice(["x", "../x", "/etc", "a/b/c/d/e", "people", "con", "\x00", "a" * 300, ""])
        names = [statement.id for statement in (*request.candidates, *request.standing)]
        return Page.model_construct(
            kind=self.random.choice(["concrete", "event", "skill"]),
            folder=folder,
            title=self.random.choice(["X", "Coffee", "../../evil", "_index", "a" * 120, "#", request.title]),
            summary=self.random.choice(["", "So.", "In 1999."]),
            tags=["x"],
            emotion="joy",
            order=self.random.sample(names, len(names)),
            steps=self.random.sample(list(request.steps), len(request.steps)),
        )


def is_abandoned(calls: list[bool]) -> bool:
    return bool(calls) and calls.pop()


@pytest.mark.slow
@examples(3)
@given(seed=st.integers(0, 2**32))
def test_every_candidate_of_every_run_ends_in_one_way(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Models that harm, flood and fail, a person who edits pages and events, comes back, and writes pages of their own:
    run after run, candidates = written + proposed + left + refused, the journal says the same, and it is so."""
    random = Random(seed)
    chaos = Chaos(random)
    brain = chaos.brain = make_brain(tmp_path_factory.mktemp("chaos") / "b", engine=chaos.engine)
    by_hand(brain, "concrete/health.md", "# Health\n\n- User has diagnosis ZZold. ^aaaa\n- User likes coffee\n")
    over: set[str] = set()
    for _ in range(4):
        for text in random.sample(SAID, random.randint(1, 5)):
            tell(brain, text, private=random.random() < 0.2)
        if random.random() < 0.3:
            file = brain.tree.short_term
            file.write_text(file.read_text().replace("coffee", "tea", 1))
        later(brain, random.choice([30, 3600]))
        calls = [random.random() < 0.04 for _ in range(400)]
        abandon = partial(is_abandoned, calls)
        before = set(ended(brain))
        try:
            outcome = promote(brain, abandon=abandon)
        except ModelError:
            assert before == set(ended(brain))
            continue
        if outcome.event or outcome.candidates:
            check(brain, outcome, over)
    brain.close()


def test_hashes_of_records_are_of_what_stands(tmp_path: Path) -> None:
    """The text of a written record is that of its statement, links as they stand there."""
    brain = make_brain(tmp_path / "b")
    by_hand(brain, "concrete/porto.md", "# Porto\n\nA town.\n")
    later(brain)
    tell(brain, "I live in [Porto](../memory/long_term/concrete/porto.md).")
    outcome = promote(brain)
    assert outcome.event is not None
    (record,) = outcome.event.data["statements"]
    page = parse_memory(record["path"], brain.read_text(record["path"]) or "")
    assert record["hash"] == text_hash(next(one.text for one in page.statements if one.block_id == record["block"]))
