"""Days are the person's: what is shown, what is told a model and the folders of days; stamps in files stay UTC."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml
from brainiac_plugins.organization.run import Action, carry_out, divide
from freezegun import freeze_time

from brainiac import Brain, testing
from brainiac.clock import day_in, iso, moment_in
from brainiac.events import ModelCalled
from brainiac.formats.markdown import StmEvent
from brainiac.llm.schemas import AnswerRequest, Consolidation, Evidence, Operation, Page, Purpose
from tests.support.commands import Shell, do
from tests.support.models import hit_of, prompt_of
from tests.support.notes_texts import stm_text
from tests.support.plain_reader import exchanges
from tests.support.program import run_program
from tests.support.promotions import LTM, ScriptedEngine, later, make_brain, pages, tell

ZONE = "Pacific/Auckland"
NIGHT = datetime(2026, 11, 21, 11, 42, tzinfo=UTC)  # there 00:42 of Sunday the 22nd


def in_zone(root: Path, zone: str = ZONE) -> None:
    """Put a brain's person into a time zone."""
    config = root / "system/config.yaml"
    config.write_text(re.sub(r"(?m)^time_zone: .*$", f"time_zone: {zone}", config.read_text()))


def zone_of(root: Path) -> str:
    """Return the time zone that a brain's settings name."""
    return str(yaml.safe_load((root / "system/config.yaml").read_text())["time_zone"])


def auckland(root: Path, engine: ScriptedEngine | None = None) -> Brain:
    """Make a brain in Auckland, some minutes after midnight."""
    brain = make_brain(root, engine=engine)
    in_zone(root)
    later(brain, (NIGHT - brain.clock.now()).total_seconds())
    return brain


def be_in(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Take this process to a time zone; `monkeypatch` brings the variable back, and the next test its own zone."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()


@pytest.fixture(autouse=True)
def home_again() -> Iterator[None]:
    """Come back to UTC, where tests run."""
    yield
    os.environ["TZ"] = "UTC"
    time.tzset()


@pytest.mark.parametrize(
    ("machine", "expected"),
    [(ZONE, ZONE), ("Europe/Lisbon", "Europe/Lisbon"), ("UTC", "UTC"), ("No/Where", "")],
)
def test_init_takes_the_time_zone_from_the_machine(tmp_path: Path, machine: str, expected: str) -> None:
    """By its IANA name; one that there is none of is not taken. A second init elsewhere changes nothing."""
    root = tmp_path / "brain"
    run_program("init", str(root), env={**os.environ, "TZ": machine}).check_returncode()
    zone = zone_of(root)
    assert zone == expected or not expected
    run_program("init", str(root), env={**os.environ, "TZ": "Asia/Tokyo"}).check_returncode()
    assert zone == zone_of(root)


def test_at_night_in_auckland_commands_say_the_right_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's name, the answer's, `log`, `search`, a fault in `status`, a sentence that `why` dates.

    By a machine that travelled to another zone. The journal's file and the stamps are UTC.
    """
    root = tmp_path / "brain"
    testing.make_brain(root).close()
    in_zone(root)
    shell = Shell(capsys, str(root))
    be_in(monkeypatch, "America/Los_Angeles")
    with freeze_time(NIGHT, tick=True):
        assert 0 == shell("ask", "The cat is called Tilda.").code
        (prompt,) = (path for path in root.glob("inbox/*.md") if ".response" not in path.name)
        assert re.fullmatch(r"2026-11-22-0042\d\d-the-cat-is-called-tilda\.md", prompt.name)
        assert 0 == shell("ask", "--in", "b", "What is the cat called?").code
        (response,) = root.glob("inbox/b/*.response.md")
        assert "— 2026-11-22, [" in response.read_text()
        assert "created_at: 2026-11-21T11:4" in response.read_text()
        assert "### 2026-11-21T11:4" in (root / "memory/short_term.md").read_text()
        assert {"2026-11-21.jsonl"} == {path.name for path in root.glob("logs/journal/*/*.jsonl")}
        assert {"2026-11-22 00:42"} == {line[:16] for line in shell("log", "--all").out.splitlines()}
        assert "· 2026-11-22 ·" in shell("search", "Tilda").out
        brain = Brain(root)
        brain.record("plugin-failed", by="toy", data={"hook": "quiet", "error": "Oops"})
        brain.close()
        assert "  2026-11-22 00:42:0" in shell("status").out
        brain = Brain(root)
        brain.observed.adopt()
        page = f"{LTM}concrete/tilda.md"
        brain.tree.absolute(page).write_text("# Tilda\n\n- The cat is called Tilda. ^a1b2\n")
        brain.observed.adopt()
        brain.close()
        assert "2026-11-22 00:42:0" in shell("why", page).out


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", ZONE])
def test_what_was_said_goes_to_the_persons_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Folder, file name and title of the day's page, whatever zone the machine has; the page's stamps are UTC.

    A page of the same moment under the UTC day, from before, stays as it is. F-ALL-5, F-MEM-7.
    """
    evidence = [Evidence(exchange="e1", quote="I have a cat")]
    cat = Operation(action="new", text="User has a cat", subject="Pets", evidence=evidence)
    page = Page(kind="concrete", folder="concrete/pets", title="Pets")
    answers = {Purpose.CONSOLIDATE: Consolidation(operations=[cat]), Purpose.SYNTHESIZE: page}
    be_in(monkeypatch, zone)
    brain = auckland(tmp_path / "brain", ScriptedEngine(answers))
    in_zone(brain.root)
    former = brain.tree.absolute(f"{LTM}events/2026/11/21/2026-11-21.md")
    former.parent.mkdir(parents=True)
    former.write_text("# Yesterday in UTC\n\n## Conversation\n")
    brain.observed.adopt()
    tell(brain, "I have a cat.")
    tell(brain, "I had lunch.", minutes=24 * 60)
    do(brain, "promote")
    (promoted,) = brain.journal.events(kinds={"memory-promoted"})
    assert ["2026-11-22"] == [record["since"] for record in promoted.data["statements"]]
    days = {path: page for path, page in pages(brain).items() if path.startswith("events/")}
    first, second = "events/2026/11/22/2026-11-22.md", "events/2026/11/23/2026-11-23.md"
    assert [first.replace("22", "21"), first, second] == sorted(days)
    assert "# Yesterday in UTC\n\n## Conversation\n" == former.read_text().split("---\n")[-1].lstrip("\n")
    assert ["I have a cat."] == [one.user for one in exchanges(first, days[first].text.encode())]
    assert 1 == days[first].text.count("### 2026-11-21T11:43:00Z\n")
    assert "22 November 2026" in days[first].title


def test_without_a_time_zone_days_are_those_of_utc(tmp_path: Path) -> None:
    """A config from before there was the setting means what it meant."""
    brain = make_brain(tmp_path / "brain")
    later(brain, (datetime(2026, 11, 21, 23, 58, tzinfo=UTC) - brain.clock.now()).total_seconds())
    tell(brain, "I have a cat.", private=True)
    assert "2026-11-21" == brain.day_of("2026-11-21T23:59:00Z")
    do(brain, "promote")
    assert "events/2026/11/21/2026-11-21-private.md" in pages(brain)


def test_a_model_is_told_the_persons_time(tmp_path: Path) -> None:
    """Now, the event log, the conversation and what was found bear the same clock; a day is that day."""
    brain = auckland(tmp_path / "brain")
    tell(brain, "I have a cat.")
    hits = [replace(hit_of(), at="2026-11-20T20:00:00Z"), replace(hit_of(path="memory/x.md"), at="2024-05-31")]
    request = AnswerRequest(
        now=brain.now(), prompt=prompt_of("What day is it?"), short_term=brain.short_term().memory, hits=hits
    )
    shown = brain.models.working_memory(request).text
    assert f"(It is Sunday, 2026-11-22 00:43 {ZONE}.)" in shown
    assert "#### 2026-11-22T00:43:00+13:00" in shown
    assert ", 2026-11-21\n" in shown
    assert ", 2024-05-31\n" in shown


def test_days_of_a_query_are_the_persons(tmp_path: Path) -> None:
    """Of `yesterday`, `2d` and "today"."""
    brain = auckland(tmp_path / "brain")
    days = [datetime(2026, 11, day, 11, 30, tzinfo=UTC) for day in (19, 20)]  # there the 20th and the 21st
    events = [StmEvent(f"e{at.day}", iso(at), f"The cat slept, {at.day}.") for at in days]
    brain.tree.short_term.write_text(stm_text(*events, StmEvent("e21", iso(NIGHT), "The cat slept, now.")))
    asked = ("cat after:yesterday", "cat before:2d", "cat after:2d before:yesterday", "cat after:today")
    found = [sorted(hit.anchor for hit in brain.recall.search(query)) for query in asked]
    assert [["e20", "e21"], [], ["e19"], ["e21"]] == found


def test_the_budget_begins_anew_at_the_persons_midnight(tmp_path: Path) -> None:
    """What was spent before it counts no more, and `costs` has it on the day before."""
    brain = auckland(tmp_path / "brain")
    call = {"purpose": "answer", "model": "m", "cost_usd": 0.5}
    spent = []
    for seconds, has_spent in ((-43 * 60, True), (120, False), (1, True)):  # 23:59, 00:01
        later(brain, seconds)
        if has_spent:
            brain.record(ModelCalled.kind, by="core_loop", data=call)
        spent.append(do(brain, "costs", "--json").json["today"]["answers_usd"])
    assert [0.5, 0.0, 0.5] == spent
    rows = do(brain, "costs", "--json").json["rows"]
    assert [("2026-11-22", 1), ("2026-11-21", 1)] == [(row["day"], row["calls"]) for row in rows]
    assert ["2026-11-22"] == [row["day"] for row in do(brain, "costs", "--days", "1", "--json").json["rows"]]


def test_a_digest_and_the_parts_of_a_folder_bear_the_persons_days(tmp_path: Path) -> None:
    """A line of the digest names the day on which it was said there; a page of that night lies in that day's part."""
    brain = auckland(tmp_path / "brain", ScriptedEngine({Purpose.CONSOLIDATE: Consolidation()}))
    tell(brain, "I have a cat.")
    do(brain, "promote")
    (day,) = (page for path, page in pages(brain).items() if path.startswith("events/"))
    compress = Action("compress", (day.path,), f"{LTM}events/2026/11")
    draft, statements = carry_out(brain, brain.pages(), [compress], lambda path: True)
    assert ["2026-11-22"] == [record.since for record in statements]
    assert "- 2026-11-22: “I have a cat.”" in (draft.read(f"{LTM}events/2026/11/digest.md") or "")
    night = [replace(day, path=f"{LTM}events/{n}.md", created_at="2026-10-31T11:30:00Z") for n in range(6)]
    noon = [replace(day, path=f"{LTM}events/{n}.md", created_at="2026-10-30T01:00:00Z") for n in range(6, 12)]
    assert {"2026-10", "2026-11"} == set(divide([*night, *noon], 0, 8, brain.day_of))


@pytest.mark.parametrize(
    ("at", "day"),
    [("2026-11-21T11:42:00Z", "2026-11-22"), ("2026-11-21", "2026-11-21"), ("", ""), ("last Monday at", "last Monda")],
)
def test_a_day_without_an_hour_is_nobodys_to_move(tmp_path: Path, at: str, day: str) -> None:
    """What a person wrote as a date stays that date in every zone; what is no moment stays as it is."""
    brain = auckland(tmp_path / "brain")
    assert day == brain.day_of(at) == day_in(brain.zone, at)


def test_a_moment_bears_its_offset() -> None:
    """So that no reader takes it for UTC; in UTC it is written as in the files."""
    assert "2026-11-22T00:42:00+13:00" == moment_in(ZoneInfo(ZONE), "2026-11-21T11:42:00Z")
    assert "2026-11-21" == moment_in(ZoneInfo(ZONE), "2026-11-21")
    assert "2026-11-21T11:42:00Z" == moment_in(UTC, "2026-11-21T11:42:00Z")
    assert "Last Monday" == moment_in(UTC, "Last Monday")


def test_no_moment_is_shown_in_the_zone_of_the_machine() -> None:
    """`astimezone()` without a zone takes the machine's; nothing in the program does."""
    top = Path(__file__).parent.parent.parent
    sources = [*(top / "brainiac").rglob("*.py"), *(top / "plugins").rglob("*.py")]
    assert [] == [path.name for path in sources if ".astimezone()" in path.read_text(encoding="utf-8")]
