"""The reference pages follow the code, and what the plugin page promises a newcomer works."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from brainiac.events import KINDS
from brainiac.settings import MachineSettings, Settings
from tests.support import exports

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
    names = {name: '"' + '", "'.join(name.split()) + '"' for name, _ in GENERATOR.commands()}
    calls = ("shell(", ".cli(", "command(brain, ", "do(brain, ")
    assert [] == [name for name, words in names.items() if not any(f"{call}{words}" in texts for call in calls)]


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link in README and docs is a file."""
    broken = []
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#|mailto:)<?([^)#>\s]+)", text):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert [] == broken


def blocks(kind: str, page: Path = DOCS / "plugins.md") -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def run_as_typed(script: str, folder: Path, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run lines as a newcomer would, with `brainiac` on the path, in a home of their own.

    Args:
        script: For the shell.
        folder: Home, and where it is run.
        typed: What the person types where they are asked.
    """
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "brainiac").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m brainiac "$@"\n')
    (tools / "brainiac").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    path = f"{tools}:{os.environ['PATH']}"
    environment = {**kept, "HOME": str(folder), "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
    )


def shell(script: str, folder: Path) -> str:
    """Run a block that must do what it says, without a question and without a warning."""
    done = run_as_typed(script, folder)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


# --- examples: what is printed on a page is what happens --------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
# what is of the machine, or ends only with it; `test_service.py` and `test_server_rest.py` try these
NOT_RUN = ("make ", "brainiac run  ", "brainiac service ", "curl ", "     -d ")
# what differs from one day, machine and brain to another
VARYING = {r"\d{4}-\d\d-\d\d": r"\\d{4}-\\d\\d-\\d\\d", "…": ".*"}


def matches_shown(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed: `…` stands for anything, alone on a line for any lines."""
    pattern = ""
    for line in shown.rstrip("\n").split("\n"):
        each = re.escape(line)
        for varying, instead in VARYING.items():
            each = re.sub(varying.replace("-", r"\\?-"), instead, each)
        pattern += r"(?:.*\n)*?" if line == "…" else rf"{each}[ \t]*\n"
    return re.fullmatch(pattern, f"{printed.rstrip()}\n") is not None


def lived_in(home: Path, page: Path) -> Path:
    """Make a home in which the examples of a page make sense: a brain, a vault, an export, a disk."""
    home.mkdir()
    if page.name != "README.md":
        shell("brainiac init first; brainiac ask 'My locker is 23.'", home)
    (home / "vault").mkdir()
    (home / "vault/quince.md").write_text("The quince flowers in May.\n")
    (home / "Downloads").mkdir()
    talk = exports.chatgpt("talk", [("Where shall I stay?", "In Alfama.")])
    exports.write_zip(home / "Downloads/chatgpt-export.zip", {"conversations.json": json.dumps([talk])})
    return home


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "plugins.md"], ids=lambda page: page.stem)
def test_examples_do_what_they_show(page: Path, tmp_path: Path) -> None:
    """Every command in a block of a page runs as printed, in order, and prints what stands below it.

    Seeds: U4.
    """
    examples = re.findall(r"^```(sh|console)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    home = lived_in(tmp_path / "home", page) if examples else tmp_path
    folder = ""  # where the commands before led
    for kind, block in examples:
        steps = (
            re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if kind == "console" else block.splitlines(keepends=True)
        )
        for step in steps:
            command, _, shown = step.partition("\n")
            if command.startswith(NOT_RUN):
                continue
            command = command.replace("/mnt/disk", str(tmp_path / "disk"))
            done = run_as_typed(f"{folder}{command}", home, typed="y\n")
            if "add --yes" in done.stderr:  # it asks on a terminal only
                done = run_as_typed(f"{folder}{command.partition('#')[0]} --yes", home)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            assert kind == "sh" or matches_shown(shown, done.stdout), (command, done.stdout)
            if command.startswith("cd "):
                folder = f"{command}\n"


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands of brainiac that a text names in code, in a line or in a block."""
    yield from re.findall(r"`(brainiac [^`]+)`", text)
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^(?:\$ )?(brainiac .*)", block, re.MULTILINE)


def problem_of(command: str) -> str:
    """Return why a command cannot be what a person types; "" where it can. Values are not looked at."""
    words = shlex.split(re.split(r" [|>;&]|\$\(| / ", command)[0], comments=True)[1:]
    each = GENERATOR.root()
    options = options_of(each) | {"--help", "-h"}
    for word in words:
        if word.startswith("-"):
            if word.partition("=")[0] not in options | options_of(each):
                return f"no option {word}"
        elif word in getattr(each, "commands", {}):
            each = each.commands[word]
        elif each.name is None or (hasattr(each, "commands") and word.islower()):
            return f"no command {word}"
    return ""


def options_of(command: Any) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}


@pytest.mark.parametrize("page", [*PAGES, None], ids=lambda page: page.stem if page else "help")
def test_every_command_that_is_named_exists(page: Path | None) -> None:
    """Pages and help texts name no command and no option that is not there."""
    helps = [command.help for _, command in GENERATOR.commands()]
    options = [getattr(each, "help", "") or "" for _, command in GENERATOR.commands() for each in command.params]
    text = page.read_text("utf-8") if page else "\n".join([*helps, *options])
    problems = {command: problem for command in commands_in(text) if (problem := problem_of(command))}
    assert {} == problems


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


# --- walks.md ---------------------------------------------------------------------------------------------------------

WALKS = re.split(r"^## ", (DOCS / "walks.md").read_text("utf-8"), flags=re.MULTILINE)[1:]


def names_in(file: Path) -> set[str]:
    """Return what a module defines: functions and classes, and the methods of these as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            body = node.body if isinstance(node, ast.ClassDef) else []
            names |= {f"{node.name}.{each.name}" for each in body if isinstance(each, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("walk", WALKS, ids=[walk.partition("\n")[0] for walk in WALKS])
def test_walks_lead_through_files_and_names_that_exist(walk: str) -> None:
    """A walk has at most five files, and every name that it tells stands in one of them, or is an event or a hook."""
    quoted = re.findall(r"`([^`]+)`", walk)
    files = {ROOT / each for each in quoted if re.fullmatch(r"(brainiac|plugins)/\S+\.py", each)}
    assert len(files) <= 5
    known = set().union(*map(names_in, files))
    known |= names_in(ROOT / "brainiac/events.py") | names_in(ROOT / "brainiac/host/hookspecs.py")
    named = [each for each in quoted if re.fullmatch(r"[A-Za-z_]+(\.[a-z_]+)?", each)]
    assert named
    assert [] == [each for each in named if each not in known]
