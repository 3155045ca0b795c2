"""Hooks of hosts: our entries in the person's own settings file of each, put in and taken out as text.

Everything else in such a file stays byte for byte, whatever its layout. What was put in is known to this machine's
database, so that it is taken out exactly; where the person edited it meanwhile, only our entries go. A repository's
settings are never touched, and a command names no token: it is a small script in the state folder, always at the same
path, since some hosts ask for trust anew whenever a command changes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import UserError
from brainiac.hooks import client
from brainiac.server.clients import Edit, read_text
from brainiac.storage.files import Disk

OWNER = "hook files"  # of what the database keeps
SCRIPT = "hook"  # in the state folder
_SECONDS = 3
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_NEW = ("{}\n", '{\n  "version": 1\n}\n')  # an empty settings file, and Cursor's


@dataclass(frozen=True, slots=True)
class HookFile:
    """Where a host has its hooks.

    Attributes:
        host: As the command names it.
        file: Of this user, for all projects.
        events: At which it runs us.
        next_step: What the person has to do then.
    """

    host: str
    file: Path
    events: tuple[str, ...]
    next_step: str

    def entry(self, command: str) -> dict[str, Any]:
        """Return the entry of an event."""
        if self.host == "cursor":
            return {"command": shlex.quote(command)}
        # with `args` Claude Code starts no shell, whose own files may print
        exact = {"command": command, "args": []} if self.host == "claude-code" else {"command": shlex.quote(command)}
        return {"hooks": [{"type": "command", **exact, "timeout": _SECONDS}]}


def hook_file(host: str) -> HookFile:
    """Return where a host has its hooks.

    Raises:
        UserError: There is no such host.
    """
    home, events = Path.home(), (*client.EVENTS,)
    files = {
        "claude-code": (Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json", events[:3]),
        "codex": (Path(os.environ.get("CODEX_HOME") or home / ".codex") / "hooks.json", events[:3]),
        "cursor": (home / ".cursor/hooks.json", events[3:]),
    }
    steps = {"codex": "say there `/hooks` and trust it: Codex runs no hook before"}
    if host not in files:
        raise UserError(f"{host!r} is no host whose hooks are known; there are {', '.join(files)}")
    return HookFile(host, *files[host], steps.get(host, "start a new session there"))


def script_of(brain: Brain) -> Path:
    """Return the script that hosts run."""
    return brain.places.state / SCRIPT


def write_script(brain: Brain) -> None:
    """Write the script that hosts run: this interpreter, without site packages, with our client."""
    python, own, state = (shlex.quote(str(path)) for path in (sys.executable, client.__file__, brain.places.state))
    # a program that was removed must not be an error at each prompt
    text = f'#!/bin/sh\n[ -x {python} ] && [ -r {own} ] && exec {python} -I -S {own} {state} "$@"\nexit 0\n'
    aside = script_of(brain).with_suffix(".new")
    aside.unlink(missing_ok=True)
    Disk().write(aside, text.encode(), 0o700)
    os.replace(aside, script_of(brain))


# --- JSON as text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a JSON text, and where it stands.

    Attributes:
        start: Of the value; `end` behind it.
        value: As Python has it.
        parts: Of an object or list, by key or number: where each begins, with its key, and its value.
    """

    start: int
    end: int
    value: Any
    parts: dict[str | int, tuple[int, _Value]]


def _parsed(text: str, at: int) -> _Value:
    """Return the value at a place of a valid JSON text."""
    at = _after_blank(text, at)
    value, end = _DECODER.raw_decode(text, at)
    parts: dict[str | int, tuple[int, _Value]] = {}
    place = _after_blank(text, at + 1)
    while isinstance(value, dict | list) and value and place < end:
        start, key = place, len(parts)
        if isinstance(value, dict):
            key, place = _DECODER.raw_decode(text, place)
            place = _after_blank(text, place) + 1  # behind the colon
        part = _parsed(text, place)
        parts[key] = start, part
        place = _after_blank(text, _after_blank(text, part.end) + 1)  # behind the comma, or at the end
    return _Value(at, end, value, parts)


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _added(text: str, inside: _Value, item: str, depth: int) -> tuple[int, str]:
    """Return where an item goes at the end of an object or list, and the text to be put there, in the file's layout."""
    if not inside.parts:
        return inside.start + 1, f"\n{'  ' * (depth + 1)}{item}\n{'  ' * depth}"
    *others, (start, last) = inside.parts.values()
    blank = text[others[-1][1].end : start].partition(",")[2] if others else text[inside.start + 1 : start]
    return last.end, f",{blank}{item}"


def with_entries(text: str, entries: dict[str, dict[str, Any]]) -> tuple[str, list[str]]:
    """Return a settings file's text with an entry at the end of each event's list, and what was put in, in order.

    Args:
        text: Valid JSON.
        entries: By event.
    """
    put: list[str] = []
    for event, entry in entries.items():
        whole = _parsed(text, 0)
        hooks = whole.parts.get("hooks")
        events = hooks[1].parts.get(event) if hooks else None
        if events:
            place, added = _added(text, events[1], json.dumps(entry), 3)
        elif hooks:
            place, added = _added(text, hooks[1], f'"{event}": [{json.dumps(entry)}]', 1)
        else:
            place, added = _added(text, whole, f'"hooks": {{\n    "{event}": [{json.dumps(entry)}]\n  }}', 0)
        text = text[:place] + added + text[place:]
        put.append(added)
    return text, put


def without_entries(text: str, command: str, put: list[str]) -> str:
    """Return a settings file's text without our entries: exactly what was put in, or where it was edited each entry.

    Args:
        text: Valid JSON.
        command: Ours.
        put: What was put in, in order.
    """
    exact = text
    for added in dict.fromkeys(reversed(put)):
        if exact.count(added) == put.count(added):
            exact = exact.replace(added, "")
    if exact != text and _is_json(exact) and not list(_ours(_parsed(exact, 0), command)):
        return exact
    while ours := list(_ours(_parsed(text, 0), command)):
        text = _without_part(text, *ours[-1])
    # a host may have laid the file out anew: lists that are empty now, and were made for ours, go too
    for name in (*(event for event in client.EVENTS if any(f'"{event}"' in added for added in put)), "hooks"):
        whole = _parsed(text, 0)
        inside = whole if name == "hooks" else whole.parts["hooks"][1] if "hooks" in whole.parts else whole
        is_made = name != "hooks" or any('"hooks": {' in added for added in put)
        if is_made and name in inside.parts and not inside.parts[name][1].value:
            text = _without_part(text, inside, list(inside.parts).index(name))
    return text


def _ours(whole: _Value, command: str) -> Iterator[tuple[_Value, int]]:
    """Yield our entries: the list in which each stands, and its number there."""
    names = {command, shlex.quote(command)}
    hooks = whole.parts.get("hooks")
    for _, listed in hooks[1].parts.values() if hooks else ():
        for number, (_, part) in enumerate(listed.parts.values()):
            inner = part.parts.get("hooks")
            commands = [one.value for _, one in inner[1].parts.values()] if inner else [part.value]
            found = [at for at, one in enumerate(commands) if isinstance(one, dict) and one.get("command") in names]
            if found and inner and len(commands) > 1:  # the person's own hooks in the same entry stay
                yield inner[1], found[0]
            elif found:
                yield listed, number


def _without_part(text: str, inside: _Value, number: int) -> str:
    """Return a text without a part of a list, and the comma and blanks that it had to itself."""
    places = [(start, part.end) for start, part in inside.parts.values()]
    start, end = places[number]
    if number:
        start = places[number - 1][1]
    elif len(places) > 1:
        end = places[1][0]
    else:
        start, end = inside.start + 1, inside.end - 1
    return text[:start] + text[end:]


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# --- putting in and taking out ----------------------------------------------------------------------------------------


def install_edit(brain: Brain, target: HookFile) -> tuple[Edit, list[str]]:
    """Return the change of a host's file that has it run us, and what is put in; no change where it does already.

    Raises:
        UserError: The file is no JSON that hosts read; it is left as it is.
    """
    before = read_text(target.file)
    text = before if before and before.strip() else _NEW[target.host == "cursor"]
    _check(target, text)
    command = str(script_of(brain))
    hooks = json.loads(text).get("hooks", {})
    # of a former version some are missing
    missing = [event for event in target.events if json.dumps(command)[1:-1] not in json.dumps(hooks.get(event, []))]
    after, put = with_entries(text, dict.fromkeys(missing, target.entry(command)))
    return Edit(target.file, before, after if missing else before or ""), put


def _check(target: HookFile, text: str) -> None:
    """Raise UserError where a file is no object with lists of hooks."""
    hooks = json.loads(text).get("hooks", {}) if _is_json(text) else None
    if not isinstance(hooks, dict) or not all(isinstance(listed, list) for listed in hooks.values()):
        raise UserError(f"{target.file} is no JSON as {target.host} reads it (comments?); nothing was changed")


def install(brain: Brain, target: HookFile, edit: Edit, put: list[str]) -> None:
    """Make the change, and keep what it takes to undo it."""
    write_script(brain)
    if put:
        is_blank = not (edit.before or "").strip()
        former = {} if is_blank else json.loads(brain.database.kept(OWNER).get(str(target.file), "{}"))
        kept = {"blank": (edit.before or "") if is_blank else None, "is_new": edit.before is None} | former
        kept["put"] = [*former.get("put", []), *put]
        brain.database.keep(OWNER, str(target.file), json.dumps(kept), is_synced=True)
        edit.make()


def removal_edit(brain: Brain, target: HookFile) -> Edit:
    """Return the change that takes us out of a host's file; `after` is "" for a file that only we made.

    Raises:
        UserError: The file is no JSON that hosts read; it is left as it is.
    """
    before = read_text(target.file)
    if before is None or not before.strip():
        return Edit(target.file, before, before or "")
    _check(target, before)
    kept = json.loads(brain.database.kept(OWNER).get(str(target.file), "{}"))
    after = without_entries(before, str(script_of(brain)), kept.get("put", []))
    if after in _NEW and kept.get("blank") is not None:
        after = kept["blank"]
    return Edit(target.file, before, after)


def remove(brain: Brain, target: HookFile, edit: Edit) -> None:
    """Make the change; a file that only we made goes."""
    kept = json.loads(brain.database.kept(OWNER).get(str(target.file), "{}"))
    edit.make()
    if not edit.after and kept.get("is_new"):
        target.file.unlink()
    brain.database.drop(OWNER, str(target.file))
