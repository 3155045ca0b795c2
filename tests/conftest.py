"""What every test shares: machine-local folders of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.host.sources import open_namespace

open_namespace()  # `brainiac_plugins`, before any test imports from it


@pytest.fixture(autouse=True)
def machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test state, cache and config folders of its own, for itself and its subprocesses."""
    home = tmp_path_factory.mktemp("machine")
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(home / variable.lower()))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TZ", "UTC")  # `init` takes the time zone of the machine
    monkeypatch.delenv("BRAINIAC_HOME", raising=False)
    return home
