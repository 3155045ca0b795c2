"""Each process can be taken out: everything else imports, runs and says what is missing."""

from __future__ import annotations

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
from contextlib import redirect_stdout
from io import StringIO
from brainiac.cli.app import run
def said(*words):
    with redirect_stdout(StringIO()) as out:
        assert 0 == run([*words, "--brain", sys.argv[1]]), words
    return out.getvalue()
assert 0 == run(["init", sys.argv[1]])
said("ask", "/remember My locker is 118.")
said("run", "--once")
names = {plugin["name"] for plugin in json.loads(said("status", "--json"))["plugins"]}
assert {"core_loop"} < names < {"core_loop", "reflection", "promotion", "organization"}
for process, command in (("promotion", "promote"), ("organization", "organize")):
    if process in names:
        said(command)
assert "Nothing is wrong." in said("doctor")
with open(sys.argv[1] + "/memory/long_term/concrete/gym.md", "w") as page:
    page.write("# Gym\\n\\n- My locker is 118.\\n")
assert "locker" in said("search", "locker")
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


def test_everything_else_goes_on(checkout: Path, tmp_path: Path) -> None:
    """All modules import; a brain is made, asked, told, looked over and searched."""
    for program, argument in ((IMPORT_ALL, checkout), (COMMANDS, tmp_path / "brain")):
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        command = [sys.executable, "-c", program, str(argument)]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
