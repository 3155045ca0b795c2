"""`brainiac hooks install` and `off`: a host's own settings get our entries and lose them, and keep all else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brainiac.testing import World

FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "cursor": ".cursor/hooks.json"}
HAND_MADE = {
    "inline": '{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say ü"}]}]}}',
    "tabs": '{\n\t"hooks" : {\n\t\t"UserPromptSubmit" : [\n\t\t\t{"hooks": [{"type": "command", "command": "mine"}]}\n'
    "\t\t],\n"
    '\t\t"sessionStart": [ ]\n\t},\n\t"env": {"KEY": "a\\"}b"}\n}',
    "crlf": '{\r\n    "hooks": {},\r\n    "permissions": {"allow": ["Bash(ls:*)", "[x]"]}\r\n}\r\n',
    "empty lists": '{"hooks": {"UserPromptSubmit": [], "SessionStart": [ ], '
    '"beforeSubmitPrompt": [], "sessionStart": []}}',
    "nothing": "{ }",
    "blank": "\n",
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def commands(values: dict[str, Any]) -> list[str]:
    """Return the commands of all hooks, by whatever form."""
    entries = [entry for listed in values["hooks"].values() for entry in listed]
    return [one["command"] for entry in entries for one in entry.get("hooks", [entry])]


@pytest.mark.parametrize("host", FILES)
def test_a_host_without_a_file_gets_one_and_loses_it(world: World, host: str) -> None:
    """In the form of each host, byte for byte; the command is one script, the same each time, and names no token."""
    file = world.home / FILES[host]
    done = world.cli("hooks", "install", host, "--yes")
    assert (0, "") == (done.code, done.err)
    text = file.read_text()
    (script,) = set(commands(json.loads(text)))
    assert os.access(script, os.X_OK)
    assert Path(script).is_relative_to(world.home)
    inner = {
        "claude-code": '"command": "%s", "args": [], "timeout": 3',
        "codex": '"command": "%s", "timeout": 3',
        "cursor": '"command": "%s"',
    }[host] % script
    events = {"cursor": ("beforeSubmitPrompt", "sessionStart", "afterAgentResponse", "stop")}.get(
        host, ("UserPromptSubmit", "SessionStart", "Stop")
    )
    entry = f"{{{inner}}}" if host == "cursor" else f'{{"hooks": [{{"type": "command", {inner}}}]}}'
    entries = ",\n    ".join(f'"{event}": [{entry}]' for event in events)
    assert f'"hooks": {{\n    {entries}\n  }}' in text
    assert ('"version": 1' in text) == (host == "cursor")
    assert text.splitlines() == [line[1:] for line in done.out.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    assert "already" in world.cli("hooks", "install", host).out
    assert text == file.read_text()
    assert 0 == world.cli("hooks", "off", host, "--yes").code
    assert not file.exists()


@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("form", HAND_MADE)
def test_what_a_person_wrote_stays_byte_for_byte(world: World, host: str, form: str) -> None:
    """Other hooks and settings of any layout stay while we are there, and the file is what it was when we are not."""
    file, before = world.home / FILES[host], HAND_MADE[form].encode()
    file.parent.mkdir(parents=True)
    file.write_bytes(before)
    assert 0 == world.cli("hooks", "install", host, "--yes").code
    values = json.loads(file.read_bytes())
    assert (4 if host == "cursor" else 3) == sum("/hook" in each for each in commands(values))
    if before.strip():
        former = json.loads(before)
        assert set(commands(former) if former.get("hooks") else ()) <= set(commands(values))
        assert [former[key] for key in former if key != "hooks"] == [values[key] for key in former if key != "hooks"]
    assert 0 == world.cli("hooks", "off", host, "--yes").code
    assert before == file.read_bytes()


@pytest.mark.parametrize("host", FILES)
def test_what_was_edited_since_stays(world: World, host: str) -> None:
    """A host may lay the file out anew, and the person may add hooks beside ours: only ours go."""
    file = world.home / FILES[host]
    file.parent.mkdir(parents=True)
    file.write_text('{"theme": "dark"}')
    world.cli("hooks", "install", host, "--yes")
    values = json.loads(file.read_text())
    laid_out = json.dumps(values, indent=8)
    file.write_text(laid_out)
    assert 0 == world.cli("hooks", "off", host, "--yes").code
    assert {"theme": "dark"} == json.loads(file.read_text())
    world.cli("hooks", "install", host, "--yes")
    values = json.loads(file.read_text())
    event = next(iter(values["hooks"]))
    mine = {"command": "mine"} if host == "cursor" else {"hooks": [{"type": "command", "command": "mine"}]}
    values["hooks"][event].insert(0, mine)
    file.write_text(json.dumps(values, indent=2))
    assert 0 == world.cli("hooks", "off", host, "--yes").code
    assert ["mine"] == commands(json.loads(file.read_text()))


@pytest.mark.parametrize("text", ['{"hooks": ', "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "{\n// mine\n}"])
def test_a_broken_file_is_refused(world: World, text: str) -> None:
    """It is said which it is, and it stays as it is, for both commands."""
    file = world.home / FILES["claude-code"]
    file.parent.mkdir(parents=True)
    file.write_text(text)
    for word in ("install", "off"):
        done = world.cli("hooks", word, "claude-code", "--yes")
        assert (1, text) == (done.code, file.read_text())
        assert str(file) in done.err
    assert 1 == world.cli("hooks", "install", "emacs").code


@pytest.mark.parametrize("host", FILES)
def test_what_a_former_version_put_in_is_completed(world: World, host: str) -> None:
    """Where one of our entries is missing it is put in by another `install`, and `off` takes all out."""
    file = world.home / FILES[host]
    file.parent.mkdir(parents=True)
    file.write_text('{"theme": "dark"}')
    world.cli("hooks", "install", host, "--yes")
    whole = file.read_text()
    values = json.loads(whole)
    event = [*values["hooks"]][-1]
    del values["hooks"][event]
    file.write_text(json.dumps(values))
    assert "Done" in world.cli("hooks", "install", host, "--yes").out
    assert commands(json.loads(whole)) == commands(json.loads(file.read_text()))
    assert 0 == world.cli("hooks", "off", host, "--yes").code
    assert {"theme": "dark"} == json.loads(file.read_text())


def test_nothing_is_written_unasked(world: World) -> None:
    """Who does not agree has no file."""
    assert world.cli("hooks", "install", "codex", typed="n\n").code
    assert not (world.home / FILES["codex"]).exists()


def test_the_script_is_silent_without_its_program(world: World) -> None:
    """A program that was moved away is no error at each prompt."""
    world.cli("hooks", "install", "claude-code", "--yes")
    script = Path(commands(json.loads((world.home / FILES["claude-code"]).read_text()))[0])
    script.write_text(script.read_text().replace(sys.executable, "/nowhere/python"))
    ran = subprocess.run([script], input=b"{}", capture_output=True, timeout=10, check=False)
    assert (0, b"", b"") == (ran.returncode, ran.stdout, ran.stderr)
