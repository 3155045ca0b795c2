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
COMMANDS = """
import json, sys
from brainiac.cli.app import run
for line in json.loads(sys.argv[1]):
    assert 0 == run(line), line
"""


@pytest.fixture(params=["promotion", "organization", "reflection.py"])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy the program without one of its processes."""
    root = tmp_path / "checkout"
    for name in ("brainiac", "plugins", "system"):
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


def commands(checkout: Path, brain: Path, *lines: list[str]) -> str:
    """Run command lines on a brain, one after the other in one process, and return what they print."""
    return run(checkout, "-c", COMMANDS, json.dumps([[*words, "--brain", str(brain)] for words in lines]))


def test_everything_else_goes_on(checkout: Path, tmp_path: Path) -> None:
    """All modules import; a brain is made, asked, told, looked over and searched."""
    run(checkout, "-c", IMPORT_ALL, str(checkout))
    brain = tmp_path / "brain"
    run(checkout, "-m", "brainiac", "init", str(brain))
    commands(checkout, brain, ["ask", "/remember My locker is 118."], ["run", "--once"])
    names = {plugin["name"] for plugin in json.loads(commands(checkout, brain, ["status", "--json"]))["plugins"]}
    assert {"core_loop"} < names < {"core_loop", "reflection", "promotion", "organization"}
    processes = [[word] for word in ("promote", "organize") if word.startswith(tuple(name[:6] for name in names))]
    assert "Nothing is wrong." in commands(checkout, brain, *processes, ["doctor"])
    (brain / "memory/long_term/concrete/gym.md").write_text("# Gym\n\n- My locker is 118.\n")
    assert "locker" in commands(checkout, brain, ["search", "locker"])
