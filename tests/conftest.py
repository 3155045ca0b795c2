"""What every test shares: machine-local folders of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.host.trust import open_namespace
from brainiac.testing import World, make_brain
from tests.support import examples  # noqa: F401 - its profiles
from tests.support.commands import Shell

open_namespace()  # `brainiac_plugins`, before any test imports from it


MEMORY_DISK = Path("/dev/shm")
NUMBERS = count()
NEEDED_BYTES = 3 << 30  # what the whole suite leaves until its end, and as much again


def pytest_configure() -> None:
    """Put the tests' folders into memory where there is room: thousands of fsyncs wait for every other program's.

    `TMPDIR=/tmp make test` has them on a disk. Processes of tests may keep what they compile: there are hundreds.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "TMPDIR" not in os.environ and MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > NEEDED_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY_DISK)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes `-n auto` starts: two a core where live tests run too, which wait half the time."""
    return (os.cpu_count() or 1) * (1 if config.option.markexpr else 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long first, so that no process is left with it at the end."""
    items.sort(key=lambda item: "unit" in item.path.parts and item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test state, cache and config folders of its own, for itself and its subprocesses."""
    home = tmp_path_factory.getbasetemp() / "machines" / str(next(NUMBERS))  # `mktemp` would look at all before
    home.mkdir(parents=True)
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(home / variable.lower()))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TZ", "UTC")  # `init` takes the time zone of the machine
    monkeypatch.delenv("BRAINIAC_HOME", raising=False)
    return home


# files with another `brain` have a fixture of their own of that name, which `shell` then runs its commands on


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    """Give a new brain as `brainiac init` makes it."""
    with closing(make_brain(tmp_path / "brain")) as brain:
        yield brain


@pytest.fixture
def shell(brain: Brain, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run commands on the brain."""
    return Shell(capsys, str(brain.root))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give a new brain on a machine of its own, whose clock stands still."""
    return World(tmp_path)
