"""The reference pages follow the code, and what the plugin page promises a newcomer works."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from brainiac.events import KINDS
from brainiac.settings import MachineSettings, Settings

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def load_generator() -> Any:
    spec = util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@pytest.mark.slow
@pytest.mark.parametrize("page", GENERATOR.PAGES)
def test_reference_pages_are_not_stale(page: str) -> None:
    """A changed setting, hook or command fails here until `python docs/generate.py` has run."""
    assert GENERATOR.PAGES[page]() == (DOCS / page).read_text("utf-8")


def fields_of(model: type[BaseModel], prefix: str = "") -> dict[str, FieldInfo]:
    found: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= fields_of(field.annotation, f"{prefix}{name}.")
        else:
            found[prefix + name] = field
    return found


@pytest.mark.parametrize("model", [Settings, MachineSettings])
def test_every_setting_is_described(model: type[BaseModel]) -> None:
    """No setting is without a sentence of what it does."""
    assert [] == [name for name, field in fields_of(model).items() if not field.description]


def test_every_event_is_described() -> None:
    """No field of an event, or of a part of one, is without its meaning."""
    assert [] == [
        f"{record.__name__}.{field.name}"
        for record in [*KINDS.values(), *GENERATOR.records()]
        for field in dataclasses.fields(record)
        if field.name not in ("stored", *GENERATOR.meanings_of(record))
    ]


@pytest.mark.slow
def test_every_event_is_committed() -> None:
    """A kind that nothing records any more says so, since older journals hold it."""
    committers = GENERATOR.committers_of_events()
    unused = [event for event in KINDS.values() if not committers[event.__name__]]
    assert [] == [event.__name__ for event in unused if "older journals" not in (event.__doc__ or "").lower()]


def test_every_command_is_described() -> None:
    """No command or option is without help."""
    commands = GENERATOR.commands()
    assert [] == [name for name, command in commands if not command.help]
    undescribed = [
        f"{name} {each.name}" for name, command in commands for each in command.params if not getattr(each, "help", "")
    ]
    assert [] == undescribed


def test_every_command_has_a_test() -> None:
    """Completeness is a test: each command is run by a test."""
    texts = "\n".join(path.read_text() for path in Path(__file__).parent.parent.rglob("test_*.py"))
    calls = {name: 'shell("' + '", "'.join(name.split()) + '"' for name, _ in GENERATOR.commands()}
    assert [] == [name for name, call in calls.items() if call not in texts]


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link in README and docs is a file."""
    broken = []
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#|mailto:)<?([^)#>\s]+)", text):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert [] == broken


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", (DOCS / "plugins.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def shell(script: str, folder: Path) -> str:
    """Run a block as a newcomer would, with `brainiac` on the path."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "brainiac").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m brainiac "$@"\n')
    (tools / "brainiac").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.slow
def test_from_nothing_to_a_working_trigger(tmp_path: Path) -> None:
    """The plugin page's steps, copied and pasted, give the output they promise; the plugin has at most ten lines.

    Seeds: U4.
    """
    make, use = blocks("sh")
    plugin, (promised,) = blocks("python")[0], blocks("text")
    assert len(plugin.strip().splitlines()) <= 10
    shell(make, tmp_path)
    brain = tmp_path / "my-brain"
    (brain / "plugins/whats_new.py").write_text(plugin)
    assert shell(f"cd my-brain\n{use}", tmp_path).endswith(promised)
    shell("cd my-brain; brainiac run --once", tmp_path)
    assert promised == (brain / "whats_new.md").read_text()


@pytest.mark.slow
def test_the_pages_own_test_passes(tmp_path: Path) -> None:
    """The test that the plugin page shows is one that passes."""
    plugin, _, test = blocks("python")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/whats_new.py").write_text(plugin)
    (tmp_path / "test_whats_new.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_whats_new.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "1 passed" in done.stdout, done.stdout


def test_public_names_exist_and_are_lazy() -> None:
    """Each name of `brainiac.__all__` can be imported, and importing the package imports none of what is heavy."""
    code = (
        "import sys, brainiac\n"
        "heavy = {'litellm', 'pydantic', 'yaml', 'brainiac.brain'} & set(sys.modules)\n"
        "print(sorted(heavy), [name for name in brainiac.__all__ if not getattr(brainiac, name, None)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "[] []" == done.stdout.strip()
