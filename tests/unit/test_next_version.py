"""A device with a newer version of the program beside this one: what it writes is kept, and nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brainiac.events import ExchangeReflected, PromptAnswered
from brainiac.testing import make_brain
from tests.support.commands import do, problems_of
from tests.support.devices import Device, Syncthing

pytestmark = pytest.mark.slow

NEW = "from_the_next_version"
PROMPTS = [f"inbox/p{number}.md" for number in range(4)]


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Device, Device]:
    """A desk that has answered and remembered, as the next version would have written it down, and a laptop."""
    desk, laptop = (Device(tmp_path / f"{name}-home", tmp_path / name, monkeypatch) for name in ("desk", "laptop"))
    desk.enter()
    make_brain(desk.root).close()
    for number, path in enumerate(PROMPTS):
        desk.drop(path, f"/remember My locker is number 7{number}.\n")
    desk.run()
    desk.promote()
    with desk.opened() as brain:
        do(brain, "takeover")
        files = sorted(brain.journal.folder.glob("*.jsonl"))
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(next_version(line) for line in lines) + unknown_event(lines[-1]))
    Syncthing().begin((desk, laptop))
    (laptop.root / "inbox/notes").mkdir()  # the sync takes no empty folder along
    return desk, laptop


def next_version(line: dict[str, Any]) -> str:
    """Return a journal line with fields that this version does not know, wherever it has records."""
    records = [each for value in line["data"].values() if isinstance(value, list) for each in value]
    for each in (line["data"], *line["changes"], *records, line):
        if isinstance(each, dict):
            each[NEW] = {"word": "unheard-of"}
    return json.dumps(line, separators=(",", ":")) + "\n"


def unknown_event(last: dict[str, Any]) -> str:
    data = {"exchange": last["id"], "moods": ["calm"]}
    line = last | {"seq": last["seq"] + 1, "id": last["id"][:-4] + "ffff", "kind": "mood-noted", "data": data}
    return json.dumps(line | {"changes": []}, separators=(",", ":")) + "\n"


def answers(device: Device) -> list[str]:
    """Return the prompts that were answered and noted, by the journals that this version reads."""
    with device.opened() as brain:
        events = [event for _, event in brain.journal.all_events(kinds={PromptAnswered, ExchangeReflected})]
        assert [] == brain.journal.warnings
        return sorted(f"{event.kind} {event.data['prompt']}" for event in events)


def journals(device: Device) -> dict[str, bytes]:
    return {path: raw for path, raw in device.files().items() if path.endswith(".jsonl")}


@pytest.mark.parametrize("reader", ["desk", "laptop"])
def test_nothing_is_done_twice(pair: tuple[Device, Device], reader: str) -> None:
    """Neither on the device itself, gone back to this version, nor on another one that takes over: no prompt is
    answered or noted again, every line stays byte for byte, and nothing is wrong."""
    desk, laptop = pair
    device, before, files = (desk if reader == "desk" else laptop), answers(desk), journals(desk)
    assert 2 * len(PROMPTS) == len(before)
    with device.opened() as brain:
        do(brain, "takeover")
    device.run()
    device.promote()
    device.run()
    assert before == answers(device)
    after = journals(device)
    assert [] == [path for path, raw in files.items() if not after[path].startswith(raw)]
    with device.opened() as brain:
        assert [] == problems_of(brain)


def test_a_purge_keeps_what_it_does_not_know(pair: tuple[Device, Device]) -> None:
    """Words are taken out of the lines of the journal; the other fields of these lines stay, and all other lines."""
    desk, _ = pair
    before = [json.loads(line) for line in b"".join(journals(desk).values()).splitlines()]
    with desk.opened() as brain:
        do(brain, "forget", PROMPTS[0], "--purge", "--yes")
        files = sorted(brain.journal.folder.glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    after = {line["id"]: line for line in lines}
    assert [] == [line["id"] for line in before if line.keys() - after[line["id"]].keys()]
    assert [] == [line["id"] for line in before if line["changes"] != after[line["id"]]["changes"]]
