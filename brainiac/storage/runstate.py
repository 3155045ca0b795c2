"""`daemon.json` in the state folder: the daemon writes it for `status` and for its own next start.

It has the last valid settings too, which reading commands use while `system/config.yaml` is broken.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from brainiac.settings import Settings, without_retired
from brainiac.storage.files import set_aside_non_file
from brainiac.tree import LocalPlaces

FILE = "daemon.json"
LOCK = "daemon.lock"
_BRAIN_ID = re.compile(rb"""^brain_id:[ \t]*["']?([A-Za-z0-9-]{1,36})\b""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a daemon.

    Attributes:
        pid: Its process; 0 once it stopped.
        since: ISO 8601 UTC when it started.
        watch: `WatchHealth` as plain values.
        pending: `Pending` prompts as plain values.
        access_log: How far the access log was read.
        settings: The last good ones, as plain values, for commands that read while the file is broken.
        problem: Why the daemon does no work at present; "" when it works.
    """

    pid: int = 0
    since: str = ""
    watch: dict[str, Any] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)
    access_log: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def read_run_state(state: Path) -> RunState:
    """Return what the last or running daemon of this brain wrote; an empty state where that is missing or damaged."""
    try:
        values = json.loads((state / FILE).read_bytes())
        run = RunState(**{name: value for name, value in values.items() if name in RunState.__dataclass_fields__})
    except (OSError, ValueError, TypeError, AttributeError):
        return RunState()
    kinds = [(name, type(value)) for name, value in _fields(RunState()) if name != "access_log"]
    is_sound = all(isinstance(getattr(run, name), kind) for name, kind in kinds) and _is_log_position(run.access_log)
    return run if is_sound else RunState()


def _fields(run: RunState) -> list[tuple[str, Any]]:
    return [(name, getattr(run, name)) for name in RunState.__dataclass_fields__]


def _is_log_position(mark: object) -> bool:
    """Return whether a value has the form of `RunState.access_log`."""
    if mark is None:
        return True
    return isinstance(mark, dict) and isinstance(mark.get("offset"), int) and isinstance(mark.get("last"), str)


def write_run_state(state: Path, run: RunState) -> None:
    """Replace the file; it is not synced to the disk, since it can be rebuilt."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    values = dict(_fields(run))
    set_aside_non_file(state / FILE)
    temporary = state / f".{FILE}-{os.getpid()}"
    temporary.write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8", errors="surrogateescape")
    os.replace(temporary, state / FILE)


def last_good_settings(root: Path, config: Path) -> Settings:
    """Return the last valid settings that a daemon of this machine used, else the defaults.

    Args:
        root: The brain's folder.
        config: Its broken settings file; only the line with the brain's id is read from it.
    """
    try:
        line = _BRAIN_ID.search(config.read_bytes())
    except OSError:
        line = None
    brain_id = line[1].decode() if line else Settings().brain_id
    settings = read_run_state(LocalPlaces.of(root, brain_id).state).settings
    try:
        return Settings.model_validate_json(json.dumps(without_retired({**settings, "brain_id": brain_id}, Settings)))
    except ValidationError:  # of a newer version
        return Settings(brain_id=brain_id)
