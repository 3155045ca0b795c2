"""`daemon.json` in the state folder: the daemon's state, written for `status` and for the daemon's next start.

It has the last valid settings too, which reading commands use while `system/config.yaml` is broken.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
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
        watch: `WatchHealth` as plain JSON values.
        pending: `Pending` prompts as plain JSON values.
        access_log: How far the access log was read: `offset` and `last`; None where it was not.
        settings: The last valid ones, as plain JSON values.
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
    """Return what a brain's daemon wrote last; an empty state where the file is missing or damaged.

    Args:
        state: The brain's state folder.
    """
    try:
        values = json.loads((state / FILE).read_bytes())
        run = RunState(**{name: value for name, value in values.items() if name in RunState.__dataclass_fields__})
    except (OSError, ValueError, TypeError, AttributeError):
        return RunState()
    types = {name: type(value) for name, value in asdict(RunState()).items() if name != "access_log"}
    is_valid = all(isinstance(getattr(run, name), kind) for name, kind in types.items())
    return run if is_valid and _is_log_position(run.access_log) else RunState()


def _is_log_position(value: object) -> bool:
    """Return whether a value has the form of `RunState.access_log`."""
    if value is None:
        return True
    return isinstance(value, dict) and isinstance(value.get("offset"), int) and isinstance(value.get("last"), str)


def write_run_state(state: Path, run: RunState) -> None:
    """Replace the file in a brain's state folder; it is not synced to the disk, since it can be rebuilt."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    set_aside_non_file(state / FILE)
    draft = state / f".{FILE}-{os.getpid()}"
    text = json.dumps(asdict(run), ensure_ascii=False, indent=1)
    draft.write_text(text, encoding="utf-8", errors="surrogateescape")
    os.replace(draft, state / FILE)


def last_valid_settings(root: Path, config: Path) -> Settings:
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
