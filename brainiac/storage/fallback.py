"""What holds for a command that only reads while `system/config.yaml` is broken."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import ValidationError

from brainiac.settings import Settings, without_retired
from brainiac.storage.runstate import read_run_state
from brainiac.tree import LocalPlaces

_BRAIN_ID = re.compile(rb"""^brain_id:[ \t]*["']?([A-Za-z0-9-]{1,36})\b""", re.MULTILINE)


def last_good(root: Path, config: Path) -> Settings:
    """Return the settings that a daemon of this machine last worked with, else the defaults.

    Args:
        root: The brain's folder.
        config: Its settings file; the brain's id, by which this machine knows it, is taken from its very line.
    """
    try:
        found = _BRAIN_ID.search(config.read_bytes())
    except OSError:
        found = None
    brain_id = found[1].decode() if found else Settings().brain_id
    told = read_run_state(LocalPlaces.of(root, brain_id).state).settings
    try:
        return Settings.model_validate_json(json.dumps(without_retired({**told, "brain_id": brain_id}, Settings)))
    except ValidationError:  # told by a newer version
        return Settings(brain_id=brain_id)
