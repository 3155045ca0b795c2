"""Each process can be taken out: everything else imports, runs and says what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
IMPORT_ALL = """
import pkgutil, sys
from importlib import import_module
from brainiac.host.trust import open_namespace
open_namespace()
import brainiac, brainiac_plugins
for package in (brainiac, brainiac_plugins):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "brainiac.__main__":
            import_module(module.name)
assert sys.argv[1] in brainiac.__file__
"""
# Tests of what stands below and beside the processes, none of which is about the one that is missing.
TESTS = ("test_commit.py", "test_answered.py", "test_settings.py")


@pytest.fixture(params=["promotion", "organization", "reflection.py"])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy the program without one of its processes."""
    root = tmp_path / "checkout"
    for name in ("brainiac", "plugins", "system", "tests"):
        shutil.copytree(ROOT / name, root / name)
    for name in (".gitignore", ".gitattributes", ".stignore", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    gone = root / "plugins" / request.param
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    return root


def run(checkout: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, *command], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_everything_else_goes_on(checkout: Path, tmp_path: Path) -> None:
    """All modules import; a brain is made, asked, looked over and explained; other parts' own tests pass."""
    run(checkout, "-c", IMPORT_ALL, str(checkout))
    brain = str(tmp_path / "brain")
    run(checkout, "-m", "brainiac", "init", brain)
    run(checkout, "-m", "brainiac", "ask", "/remember My locker is 118.", "--brain", brain)
    run(checkout, "-m", "brainiac", "run", "--once", "--brain", brain)
    names = {
        plugin["name"]
        for plugin in json.loads(run(checkout, "-m", "brainiac", "status", "--json", "--brain", brain))["plugins"]
    }
    assert {"core_loop"} < names < {"core_loop", "reflection", "promotion", "organization"}
    for command in ("promote", "organize"):
        if command.startswith(tuple(name[:6] for name in names)):
            run(checkout, "-m", "brainiac", command, "--brain", brain)
    assert "Nothing is wrong." in run(checkout, "-m", "brainiac", "doctor", "--brain", brain)
    (Path(brain) / "memory/long_term/concrete/gym.md").write_text("# Gym\n\n- My locker is 118.\n")
    assert "locker" in run(checkout, "-m", "brainiac", "search", "locker", "--brain", brain)
    tests = [str(checkout / "tests/unit" / name) for name in TESTS]
    run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", *tests)
