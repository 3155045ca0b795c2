"""The daemon's report in the state database, written for `status` and for the daemon's next start.

It has the last valid settings too, which reading commands use while `system/config.yaml` is broken.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from brainiac.settings import Settings, take_retired
from brainiac.storage.database import REPORT, StateDatabase
from brainiac.tree import LocalPlaces

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


def read_run_state(database: StateDatabase) -> RunState:
    """Return what a brain's daemon wrote last; an empty state where there is nothing, or it cannot be read."""
    try:
        values = json.loads(database.kept(REPORT)[""])
        return RunState(**{name: value for name, value in values.items() if name in RunState.__dataclass_fields__})
    except (OSError, sqlite3.Error, LookupError, ValueError, TypeError, AttributeError):
        return RunState()


def write_run_state(database: StateDatabase, run: RunState) -> None:
    """Replace the daemon's report."""
    database.keep(REPORT, "", json.dumps(asdict(run)))


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
    with closing(StateDatabase(LocalPlaces.of(root, brain_id))) as database:
        settings = {**read_run_state(database).settings, "brain_id": brain_id}
    take_retired(settings, Settings)
    try:
        return Settings.model_validate_json(json.dumps(settings))
    except ValidationError:  # of a newer version
        return Settings(brain_id=brain_id)
