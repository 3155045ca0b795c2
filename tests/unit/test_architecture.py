"""What holds for the code as a whole: who may write, who may import what, how large things are, how tests speak."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import brainiac
from brainiac.events import KINDS
from docs import public

ROOT = Path(__file__).parent.parent.parent
PRODUCT = sorted([*(ROOT / "brainiac").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")])

# Who writes files by themselves, and why that is no change of the tree that a commit would have to carry.
WRITERS = {
    "brainiac/storage/files.py": "the one place that writes the tree",
    "brainiac/storage/journal.py": "the device id, in the state folder",
    "brainiac/storage/database.py": "removes a damaged database from the state folder, and files of former versions",
    "brainiac/storage/serving.py": "removes a link in the place of a daemon's lock file",
    "brainiac/host/trust.py": "trust, in the state folder",
    "brainiac/storage/pages.py": "which folders outside may be read, in the state folder",
    "brainiac/history/digest.py": "a derived file of the logs, which no commit carries",
    "brainiac/history/purge.py": "throws the index away, in the cache",
    "brainiac/history/as_of.py": "brains of former moments, in the cache",
    "brainiac/history/forget.py": "throws brains of former moments away, in the cache",
    "brainiac/search/index.py": "the search index, in the cache",
    "brainiac/search/embed.py": "vectors, in the cache",
    "brainiac/cli/brains.py": "git's temporary file, and the lines that .gitattributes lacks",
    "brainiac/verbs/writing.py": "drops a prompt or a note as a person does",
    "brainiac/server/address.py": "the token and where the server listens, in the state folder",
    "brainiac/server/app.py": "the folder of its socket, among the system's temporary files",
    "brainiac/hooks/files.py": "the script that hosts run, in the state folder; removes a settings file that it made",
    "brainiac/server/clients.py": "an assistant's own settings and the service's file, when the person says so",
    "brainiac/window/sessions.py": "who is logged in to the window, in the state folder",
    "brainiac/places.py": "which brain is the default, in the state folder",
    "brainiac/imports/reading.py": "an archive within an archive, among the system's temporary files while it is read",
    "brainiac/history/backup.py": "removes an interrupted backup, writes restored brains, renames this machine's state",
    "brainiac/history/rebuild.py": "makes a new brain beside its place, before anybody can open it",
    "brainiac/testing.py": "puts a plugin where a person would",
}
WRITING = {
    "write_text", "write_bytes", "touch", "rename", "renames", "unlink", "remove", "rmtree", "copy", "copyfile",
    "copy2", "move", "symlink", "symlink_to", "truncate", "link",
}  # fmt: skip


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all that a source says, read once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of functions of a module or object, by name."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                owner = function.value.id if isinstance(function.value, ast.Name) else ""
                yield f"{owner}.{function.attr}", node
            elif isinstance(function, ast.Name):
                yield function.id, node


def is_writing(name: str, call: ast.Call) -> bool:
    owner, _, function = name.rpartition(".")
    if name in ("open", "os.open"):
        modes = [each.value for each in call.args[1:2] if isinstance(each, ast.Constant)]
        return any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)
    if function in ("write_text", "write_bytes", "touch", "symlink_to"):
        return True
    return owner in ("os", "shutil") and function in WRITING | {"replace"}


def test_only_commits_write_the_tree() -> None:
    """Files are written in one place; each exception writes outside of the tree, or stands for a person.

    Seeds: P2.
    """
    found = {path.relative_to(ROOT).as_posix() for path in PRODUCT if any(is_writing(*each) for each in calls(path))}
    assert set() == found - set(WRITERS)


def test_only_one_module_prints() -> None:
    """What is shown to a person passes the gate of `terminal.py`; rich's tables and trees pass `cli/styling.py`."""
    printing = {"print", "typer.echo", "typer.secho", "click.echo", "rich.print"}
    found = {path.relative_to(ROOT).as_posix() for path in PRODUCT if any(name in printing for name, _ in calls(path))}
    assert set() == found


def test_formats_and_text_do_no_io() -> None:
    """What parses and renders is text in, text out."""
    files = [path for folder in ("formats", "text") for path in (ROOT / "brainiac" / folder).glob("*.py")]
    assert files
    with_io = {"os", "pathlib", "shutil", "socket", "subprocess", "tempfile"}
    assert {} == {path.name: names for path in files if (names := with_io & imported(path))}


def imported(path: Path) -> set[str]:
    """Name the modules that a source imports."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


# The floors, lowest first. A module stands on the floor of its own name, else of the package it is in; it imports from
# floors below and from its own, and no imports go round in a circle: not for types and not inside a function either.
FLOORS = (
    "brainiac.errors brainiac.clock brainiac.records brainiac.confined brainiac.terminal",
    "brainiac.events brainiac.places brainiac.tree brainiac.text",
    "brainiac.formats",
    "brainiac.storage.files",
    "brainiac.settings",
    "brainiac.storage brainiac.search.documents",
    "brainiac.search",
    "brainiac.library",
    "brainiac.llm",
    "brainiac.host brainiac.skeleton",
    "brainiac.brain",
    "brainiac.history brainiac.pipeline brainiac.health brainiac.imports",
    "brainiac.verbs brainiac",
    "brainiac.window.sessions",
    "brainiac.server brainiac.window brainiac.hooks",
    "plugins.core_loop plugins.reflection plugins.promotion plugins.organization",
    "brainiac.cli.session brainiac.cli.styling",
    "plugins.promotion.commands plugins.organization.commands brainiac.cli",
    "brainiac.testing brainiac.__main__",
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names.split()}


def module_name(path: Path) -> str:
    """Return the dotted name of a module of the product."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PRODUCT}


def place(module: str) -> str:
    """Return the entry of `FLOORS` that a module stands by."""
    while module not in FLOOR:
        module = module.rpartition(".")[0]
        assert module, "every module has a floor"
    return module


def imports_of(module: str) -> set[str]:
    """Name the modules of the product that one imports, wherever in its source it does."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = ".".join(filter(None, (package if node.level else "", node.module)))
            source = source.replace("brainiac_plugins", "plugins")
            names.add(source)
            names.update(f"{source}.{alias.name}" for alias in node.names)
    return {name for name in names if name in MODULES and name != module and not module.startswith(f"{name}.")}


@cache
def imports() -> dict[str, set[str]]:
    """Name the modules that each module imports."""
    return {module: imports_of(module) for module in MODULES}


def test_imports_point_down() -> None:
    """Nothing imports what stands above it."""
    upward = {
        f"{module} imports {name}"
        for module, names in imports().items()
        for name in names
        if FLOOR[place(name)] > FLOOR[place(module)]
    }
    assert set() == upward


def test_no_imports_go_round_in_a_circle() -> None:
    """Every module can be understood without one that needs it."""
    left = {module: set(names) for module, names in imports().items()}
    while free := [module for module, names in left.items() if not names & left.keys()]:
        for module in free:  # it needs nobody who is left
            del left[module]
    while unneeded := left.keys() - {name for names in left.values() for name in names}:
        for module in unneeded:  # nobody who is left needs it
            del left[module]
    assert {} == left


def test_nobody_imports_a_plugin() -> None:
    """A process can be taken out: neither the program nor another process knows it."""
    known = {
        f"{module} imports {name}"
        for module, names in imports().items()
        for name in names
        if name.startswith("plugins.") and module.split(".")[:2] != name.split(".")[:2]
    }
    assert set() == known


def test_plugins_import_public_names_alone() -> None:
    """The examples, and the plugins that the pages show, import what anybody's plugin may; about a hundred names."""
    groups = public.NAMES.values()
    known = {f"{module}.{name}" for group in groups for module, names in group.items() for name in names.split()}
    known |= {"brainiac.events", *(f"brainiac.{name}" for name in brainiac.__all__)}
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    shown = [block for page in pages for block in re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text("utf-8"))]
    sources = [*shown, *(path.read_text("utf-8") for path in (ROOT / "examples/plugins").rglob("*.py"))]
    imported = {
        f"{node.module}.{alias.name}"
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "brainiac"
        for alias in node.names
    }
    assert set() == imported - known
    assert len(imported) > 5
    assert len(known) <= 120


def test_kinds_of_events_are_classes() -> None:
    """No kind of ours stands as a text but in its class, so that whoever writes or reads one can be found."""
    texts = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in PRODUCT
        if path.relative_to(ROOT).as_posix() != "brainiac/events.py"
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in KINDS
    }
    assert set() == texts


def test_an_import_inside_a_function_says_why_it_stands_there() -> None:
    """Beside the first of several imports, or on the line above it."""
    assert [] == [f"{path.relative_to(ROOT)}:{line}" for path in PRODUCT for line in unexplained_imports(path)]


def unexplained_imports(path: Path) -> Iterator[int]:
    """Yield the lines of the imports inside functions that have no reason beside them."""
    lines = path.read_text("utf-8").splitlines()
    functions = (node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                first = node.lineno - 1
                while not lines[first - 1].strip() or lines[first - 1].strip().startswith(("import ", "from ")):
                    first -= 1
                if "#" not in lines[first - 1] and "#" not in "".join(lines[first : node.end_lineno]):
                    yield node.lineno


# How the tests speak: as a person does, through files, commands, doors and public names, or by what only we may name.
# The numbers are what there is; they only get better.
TESTS = ROOT / "tests"
MOST_LINES, MOST_BOUND_FILES, LEAST_PLAIN_PERCENT = 39_000, 25, 55
PUBLIC = {
    f"{module}.{name}" for group in public.NAMES.values() for module, names in group.items() for name in names.split()
}
PUBLIC |= {f"{getattr(brainiac, name).__module__}.{name}" for name in brainiac.__all__ if name != "hookimpl"}
PUBLIC |= {"brainiac.cli.app.run"}  # the command line
OURS = ("brainiac.", "plugins.", "brainiac_plugins.")


@cache
def names_in(path: Path) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return where each name that a test's file imports comes from, and what names each of its definitions uses."""
    origins: dict[str, str] = {}
    spoken: dict[str, set[str]] = {}
    for top in ast.parse(path.read_text("utf-8")).body:
        for node in ast.walk(top):
            if isinstance(node, ast.ImportFrom):
                origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                origins |= {alias.asname or alias.name: alias.name for alias in node.names}
        targets = top.targets if isinstance(top, ast.Assign) else [getattr(top, "target", top)]
        for each in (*targets, *(top.body if isinstance(top, ast.ClassDef) else ())):
            within = list(ast.walk(top if each in targets else each))
            used = {node.id for node in within if isinstance(node, ast.Name)}
            used |= {node.arg for node in within if isinstance(node, ast.arg)}
            spoken.setdefault(getattr(each, "name", getattr(each, "id", "")), set()).update(used)
    return origins, spoken


def is_internal(origin: str) -> bool:
    """Return whether a name is one that only we may use; `brainiac.testing` and events are public as a whole."""
    is_public = origin in PUBLIC or origin.startswith(("brainiac.testing", "brainiac.events"))
    return origin.startswith(OURS) and origin.removeprefix("brainiac.") not in brainiac.__all__ and not is_public


def internals(path: Path, name: str) -> set[str]:
    """Return the internal names by which a test speaks, through the helpers and fixtures that it uses too."""
    found, seen, left = set(), set(), [(path, name)]
    while left:
        if (each := left.pop()) not in seen and each[1] in names_in(each[0])[1]:
            seen.add(each)
            origins, spoken = names_in(each[0])
            for used in spoken[each[1]]:
                module, _, there = (origin := origins.get(used, "")).rpartition(".")
                if is_internal(origin):
                    found.add(origin)
                is_support = module.startswith("tests.support.")
                left.append((ROOT / f"{module.replace('.', '/')}.py", there) if is_support else (each[0], used))
    return found


@pytest.mark.slow
def test_tests_speak_as_a_person_does() -> None:
    """More lines, more files that name three internal modules, or fewer functions that name none are a step back."""
    files = sorted(TESTS.rglob("test_*.py"))
    tests = [(path, name) for path in files for name in names_in(path)[1] if name.startswith("test_")]
    plain = [name for path, name in tests if not internals(path, name)]
    named = {path: set(filter(is_internal, names_in(path)[0].values())) for path in files}
    bound = [path.name for path, names in named.items() if len({name.rpartition(".")[0] for name in names}) >= 3]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    print(f"{lines} lines, {len(bound)} files bound, {len(plain)} of {len(tests)} plain")
    assert lines <= MOST_LINES
    assert len(bound) <= MOST_BOUND_FILES, bound
    assert 100 * len(plain) >= LEAST_PLAIN_PERCENT * len(tests)
