"""Reflection: what was said is noted once, in order, with what follows from it, whoever else writes meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso
from brainiac.errors import ModelError
from brainiac.formats.page import parse_exchanges
from brainiac.formats.prompt import Exchange, Prompt, Response
from brainiac.llm.schemas import Purpose, Reflection, ReflectRequest, Request, Result
from tests.support.promotions import ScriptedEngine, make_brain, open_brain, pages, tell

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.support.promotions import open_brain
from brainiac.formats.prompt import Exchange, Prompt, Response
brain = open_brain(Path(sys.argv[1]))
for number in range(int(sys.argv[4])):
    at = f"2026-03-02T{number // 60:02d}:{number % 60:02d}:00Z"
    name = f"{sys.argv[2]}-{number:03d}"
    prompt = Prompt(path=f"inbox/{name}.md", text=f"Note {name}.", sha256="", at=at)
    exchange = Exchange(name, prompt, Response(path="", text="Noted."), at, None)
    for _ in range(1 + (number % 10 == 0)):  # some handed out twice, as after a crash
        brain.plugins.call("response_arrived", brain=brain, exchange=exchange)
brain.close()
"""


def test_structured_data_is_added_and_ticked(tmp_path: Path) -> None:
    """Facts, decisions, goals and tasks are listed; a task that is reported done is ticked; the summary stands.

    Seeds: S4, S11.
    """
    engine = ScriptedEngine({Purpose.REFLECT: Reflection(goals=["learn the cello"], decisions=["Tidepool: SvelteKit"],
                                                         tasks=["buy moss"])})  # fmt: skip
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(
        brain, "/todo call the landlord about the tap\n/remember The  spare key hangs in the shed\n\nI learn the cello."
    )
    engine.answers[Purpose.REFLECT] = Reflection(done=["buy moss"])
    tell(brain, "/done TAP\n\nI have bought the moss.")
    memory = brain.short_term().memory
    assert ["learn the cello"] == [item.text for item in memory.goals]
    tasks = {item.text: item.is_done for item in memory.tasks}
    assert {"call the landlord about the tap": True, "buy moss": True} == tasks
    assert {"The spare key hangs in the shed", "Tidepool: SvelteKit"} == {
        " ".join(item.text.split()) for item in memory.facts
    }
    assert "" == memory.summary


def test_words_of_the_turn_before_stay_whose_they_were(tmp_path: Path) -> None:
    """What a model lists from the answer before is the assistant's; what the person had said then is the person's."""
    engine = ScriptedEngine({})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "The spare key hangs in the shed.", answer="The lawnmower hangs behind the boiler.")
    engine.answers[Purpose.REFLECT] = Reflection(
        tasks=["See to it: the lawnmower hangs behind the boiler"], goals=["The spare key hangs in the shed"]
    )
    tell(brain, "What else?", answer="The spare key hangs in the shed.")
    memory = brain.short_term().memory
    assert ["See to it: the lawnmower hangs behind the boiler (assistant: assistant)"] == [
        item.text for item in memory.tasks
    ]
    assert ["The spare key hangs in the shed"] == [item.text for item in memory.goals]


def test_nothing_is_asked_where_nothing_could_follow(tmp_path: Path) -> None:
    """A prompt of commands alone costs no call; one that says more costs one, which is shown what it says."""
    engine = ScriptedEngine({Purpose.REFLECT: Reflection()})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "/todo buy moss")
    tell(brain, "/todo buy sand\nI have a garden.")
    assert ["I have a garden."] == [asked.exchange.prompt.said.strip() for asked in engine.of(Purpose.REFLECT)]
    assert ["buy moss", "buy sand"] == [task.text for task in brain.short_term().memory.tasks]


def test_done_ticks_where_one_task_is_meant(tmp_path: Path) -> None:
    """Words that two open tasks hold, or none, tick nothing; without a model nothing else is noted."""
    brain = make_brain(tmp_path / "b", keyless=True)
    tell(brain, "/todo call Bob\n/todo call Ruth\n\nI want to learn the cello. My boat is blue.")
    tell(brain, "/done call\n/done paint")
    memory = brain.short_term().memory
    assert [("call Bob", False), ("call Ruth", False)] == [(item.text, item.is_done) for item in memory.tasks]
    assert ((), ()) == (memory.goals, memory.facts)
    tell(brain, "/done bob call")
    assert [True, False] == [item.is_done for item in brain.short_term().memory.tasks]


def test_what_no_model_could_extract_is_extracted_later(tmp_path: Path) -> None:
    """The bare exchange is noted at once; the lists follow when the model is back, and nothing is noted twice."""
    is_down = [True]

    def answer(request: Request) -> Result:
        if is_down:
            raise ModelError("down", retryable=True)
        return Reflection(tasks=["call the landlord about the tap"])

    engine = ScriptedEngine({Purpose.REFLECT: answer})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "The tap drips.")
    assert ((), 1) == (brain.short_term().memory.tasks, len(brain.short_term().memory.events))
    brain.close()
    is_down.clear()
    assert isinstance(brain.clock, ManualClock)
    brain = open_brain(tmp_path / "b", engine, brain.clock)
    brain.plugins.call("quiet", brain=brain, idle_seconds=60.0)
    brain.plugins.call("quiet", brain=brain, idle_seconds=90.0)
    assert ["call the landlord about the tap"] == [item.text for item in brain.short_term().memory.tasks]
    assert 1 == len(brain.short_term().memory.events)
    assert 2 == len(engine.of(Purpose.REFLECT))


def test_a_revision_takes_back_what_its_first_wording_gave(tmp_path: Path) -> None:
    """The items of the superseded exchange go, those that the revision repeats and those a person changed stay.

    Seeds: S4, S11.
    """
    engine = ScriptedEngine({Purpose.REFLECT: by_line})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "I like jazz.")
    first = tell(brain, "My car is a red Volvo.\nMy boat is blue.\nI own a shed.\nTodo: wash it\nTodo: call Bob")
    short_term = brain.tree.short_term
    edited = (
        short_term.read_text("utf-8")
        .replace("- I own a shed.", "- I own two sheds.")
        .replace("[ ] call Bob", "[x] call Bob")
    )
    short_term.write_text(edited, "utf-8")
    second = revise(brain, first, "My car is a green Saab.\nMy boat is blue.")
    memory = brain.short_term().memory
    kept = ["I like jazz.", "I own two sheds.", "My car is a green Saab.", "My boat is blue."]
    assert kept == [item.text for item in memory.facts]
    assert [("call Bob", True)] == [(item.text, item.is_done) for item in memory.tasks]
    assert [second] == [event.id for event in memory.events][:1]
    revise(brain, second, "My car is a Saab.")
    assert [*kept[:2], "My car is a Saab."] == [item.text for item in brain.short_term().memory.facts]


def by_line(request: ReflectRequest) -> Reflection:
    """Take each line for a fact, or for a task where it says so."""
    lines = request.exchange.prompt.text.splitlines()
    tasks = [line.removeprefix("Todo: ") for line in lines if line.startswith("Todo: ")]
    return Reflection(facts=[line for line in lines if not line.startswith("Todo: ")], tasks=tasks)


def revise(brain: Brain, superseded: str, text: str) -> str:
    """Have another wording of an exchange reflected, and return its id."""
    at = iso(brain.clock.now())
    exchange = Exchange(
        f"{superseded}-again", Prompt("inbox/b.md", text, "", at), Response(path="", text="Noted."), at, superseded
    )
    brain.plugins.call("response_arrived", brain=brain, exchange=exchange)
    return exchange.id


@pytest.mark.slow
def test_four_processes_append_at_once(tmp_path: Path) -> None:
    """All are in the log or filed, once, in order, although some were handed out twice. Seeds: S5, S11."""
    brain = make_brain(tmp_path / "b")
    brain.close()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "b"), str(n), str(Path(__file__).parent.parent.parent), "15"]
        )
        for n in range(4)
    ]
    assert [0] * 4 == [process.wait(300) for process in processes]
    brain = open_brain(tmp_path / "b")
    log = brain.short_term().memory.events
    filed = [event for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert 60 == len(log) + len(filed) == len({event.id for event in (*log, *filed)})
    for page in pages(brain).values():
        times = [event.at for event in parse_exchanges(page.text)]
        assert sorted(times) == times
    times = [event.at for event in log]
    assert sorted(times, reverse=True) == times


def test_an_exchange_is_noted_although_a_stale_save_is_merged_at_that_moment(tmp_path: Path) -> None:
    """The commit meets a buffer of a version before, merges it and is tried again: nothing said is left out."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "The kettle is green.")
    file = brain.tree.short_term
    buffer = file.read_text()
    tell(brain, "The ladder is blue.")
    file.write_text(buffer.replace("### Goals\n", "### Goals\n- by hand\n"))
    tell(brain, "The lamp is red.")
    text = file.read_text()
    assert [] == [word for word in ("kettle", "ladder", "lamp", "by hand") if word not in text]
    brain.close()
