"""What holds for the code as a whole: who may write, who may import what, and how large things are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRODUCT = sorted([*(ROOT / "brainiac").rglob("*.py"), *(ROOT / "plugins").glob("*.py")])

# Who writes files by themselves, and why that is no change of the tree that a commit would have to carry.
WRITERS = {
    "brainiac/storage/files.py": "the one place that writes the tree",
    "brainiac/storage/journal.py": "the device id, in the state folder",
    "brainiac/storage/file_state.py": "removes a damaged table from the state folder",
    "brainiac/storage/heartbeat.py": "a daemon's heartbeat, which is no note and is told from one by its name",
    "brainiac/storage/runstate.py": "the daemon's report, in the state folder",
    "brainiac/llm/costs.py": "what calls in flight may cost, in the state folder",
    "brainiac/host/trust.py": "trust, in the state folder",
    "brainiac/history/purge.py": "throws the index away, in the cache",
    "brainiac/search/engine.py": "the search index, in the cache",
    "brainiac/search/vectors.py": "vectors, in the cache",
    "brainiac/cli/ask.py": "drops a prompt as a person does",
    "brainiac/testing.py": "puts a plugin where a person would",
}
WRITING = {
    "write_text", "write_bytes", "touch", "rename", "renames", "unlink", "remove", "rmtree", "copy", "copyfile",
    "copy2", "move", "symlink", "symlink_to", "truncate", "link",
}  # fmt: skip


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of functions of a module or object, by name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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


def test_notes_and_language_do_no_io() -> None:
    """What parses and renders is text in, text out."""
    files = [path for folder in ("notes", "language") for path in (ROOT / "brainiac" / folder).glob("*.py")]
    with_io = {"os", "pathlib", "shutil", "socket", "subprocess", "tempfile"}
    assert {} == {path.name: found for path in files if (found := with_io & imported(path.read_text("utf-8")))}


def imported(source: str) -> set[str]:
    """Name the modules that a source imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


BELOW = {
    "notes": ("plugins", "cli", "commit", "journal", "brain", "context", "recall", "llm", "integration", "bus"),
    "language": ("plugins", "cli", "commit", "journal", "brain", "context", "recall", "llm", "integration", "bus"),
    "recall": ("cli", "bus", "daemon", "context", "integration"),
    "context": ("cli", "bus", "daemon"),
    "integration": ("cli", "bus", "daemon"),
}


@pytest.mark.parametrize("folder", BELOW)
def test_dependencies_point_one_way(folder: str) -> None:
    """A part imports nothing that stands above it; for types alone it may."""
    wrong = []
    for path in (ROOT / "brainiac" / folder).rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for block in [node for node in ast.walk(tree) if isinstance(node, ast.If)]:
            if isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
                block.body = [ast.Pass()]
        for module in imported(ast.unparse(tree)):
            if module.startswith(tuple(f"brainiac.{above}" for above in BELOW[folder])):
                wrong.append(f"{path.name} imports {module}")
    assert [] == wrong
