"""Trust: which of a brain's own plugins may run on this machine, and their import (design: trust, loading).

A brain is synced, so its code may come from elsewhere. Recorded are the hashes of the plugin's bytes and of every
module of the brain that it imports; exactly the bytes that were checked are run.

Modules are named `brainiac_plugins.<name>`: a top-level package named `plugins` would be shadowed by any checkout on
`sys.path`. The bundled ones, files or packages, are imported from where they were installed, as any other code of ours.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from brainiac.errors import UserError
from brainiac.events import content_hash
from brainiac.storage.files import read_bytes, set_aside_non_file
from brainiac.tree import is_temporary


class TrustStore:
    """The record of trusted plugins in this machine's state folder.

    Args:
        path: The JSON file; made on the first `trust`.
        folder: The brain's `plugins/`.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self._path, self._folder = path, folder

    def fingerprint(self, name: str) -> dict[str, str]:
        """Return the content hashes of a plugin and of the modules of the brain that it imports, by file name.

        Raises:
            UserError: There is no such file, or it is not readable.
        """
        return {path.name: content_hash(content) for path, content in self._sources(name)}

    def verified_sources(self, name: str) -> dict[str, bytes] | None:
        """Return the sources of a trusted plugin by module name, read once, so that the checked bytes are run.

        Returns:
            None where the plugin is not trusted, or it or a module that it imports has changed since.
        """
        recorded = self._read().get(name)
        if recorded is None:
            return None
        try:
            sources = dict(self._sources(name))
        except UserError:
            return None
        # the bytes that are compared are those that run: a file read twice could change in between
        if recorded != {path.name: content_hash(content) for path, content in sources.items()}:
            return None
        return {path.stem: content for path, content in sources.items()}

    def is_known(self, name: str) -> bool:
        """Return whether a plugin was trusted in its present or an earlier version."""
        return bool(self._read().get(name))

    def stamp(self) -> object:
        """Return a value that changes when the record or a file of the folder was written."""
        files = (self._path, *sorted(self._folder.glob("*.py")))
        return [(path.name, path.stat().st_mtime_ns) for path in files if path.is_file()]

    def trust(self, name: str, fingerprint: dict[str, str] | None = None) -> dict[str, str]:
        """Record a plugin and return what was recorded.

        Args:
            name: The plugin.
            fingerprint: The hashes that a person was shown; None for those of the present files.
        """
        fingerprint = fingerprint or self.fingerprint(name)
        self._write({**self._read(), name: fingerprint})
        return fingerprint

    def distrust(self, name: str) -> bool:
        """Remove a plugin from the record; return whether it was trusted."""
        trusted = self._read()
        was_trusted = trusted.pop(name, None) is not None
        self._write(trusted)
        return was_trusted

    def _sources(self, name: str) -> Iterator[tuple[Path, bytes]]:
        """Yield the files of a plugin and of the modules of the brain that it imports, each with its bytes.

        Raises:
            UserError: There is no such plugin, or a file cannot be read.
        """
        if name != os.path.basename(name) or not (self._folder / f"{name}.py").is_file():
            raise UserError(f"no plugin {name!r} in {self._folder}; `brainiac plugins list` names those there are")
        to_read, seen = [name], {name}
        while to_read:
            path = self._folder / f"{to_read.pop()}.py"
            try:
                content = read_bytes(path) or b""
            except OSError as error:
                raise UserError(f"plugins/{path.name}: cannot be read: {error.strerror}") from error
            yield path, content
            # a trusted plugin that imports a changed neighbour would run strange code
            for module in _imported(content):
                if module not in seen and (self._folder / f"{module}.py").is_file():
                    seen.add(module)
                    to_read.append(module)

    def _read(self) -> dict[str, dict[str, str]]:
        """Return the record, hashes by file name by plugin; empty where it is missing or damaged."""
        try:
            record = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def _write(self, record: dict[str, dict[str, str]]) -> None:
        """Replace the record, in one step and readable by the person alone."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        set_aside_non_file(self._path)
        # half a record would read as none, and every plugin would lose its trust
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(temporary, self._path)


def _imported(source: bytes) -> set[str]:
    """Return the modules that a source imports, by the first part of their names; none where it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    # imports inside functions and conditions count too: they run later
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
            names.update(alias.name for alias in node.names)  # `from . import helper`
    return {name.removeprefix("brainiac_plugins.").split(".")[0] for name in names}


# --- from a plugin's file to its module ------------------------------------------------------------------------------

NAMESPACE = "brainiac_plugins"


def plugin_files(folder: Path) -> list[Path]:
    """Return the files of the plugins in a folder; a leading underscore marks a module that plugins import."""
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.glob("*.py")
        if not path.name.startswith("_") and not is_temporary(path.name) and path.is_file()
    )


def bundled_plugins(folder: Path) -> list[Path]:
    """Return the plugins that ship with the program: files, and folders that are packages."""
    packages = (path.parent for path in folder.glob("*/__init__.py"))
    return sorted([*plugin_files(folder), *packages], key=lambda path: path.stem)


def syntax_problem(sources: Mapping[str, bytes]) -> str:
    """Return in which file and line a plugin has a syntax error; "" where it has none.

    Args:
        sources: The source of each module, by the module's name.
    """
    for stem, code in sources.items():
        try:
            compile(code, f"{stem}.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            return f"{type(error).__name__} in {stem}.py{line}: {getattr(error, 'msg', error)}; mend and trust it again"
    return ""


class _Sources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports `brainiac_plugins.*` from the bytes that were checked, never from disk or a synced `__pycache__`."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[Path, bytes]] = {}  # path and checked bytes, by the full name of the module

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a plugin's module; None for any other module."""
        if fullname not in self.files:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self.files[fullname][0]))

    def exec_module(self, module: ModuleType) -> None:
        """Run the code that was checked when it was read: the file may have changed since."""
        path, code = self.files[module.__name__]
        module.__file__ = str(path)
        # dont_inherit: this file's `from __future__ import annotations` is not the plugin's
        exec(compile(code, str(path), "exec", dont_inherit=True), module.__dict__)


_SOURCES = _Sources()


def open_namespace() -> None:
    """Make `brainiac_plugins.<name>` importable: the module of a brain that is loaded, else the bundled one."""
    if _SOURCES in sys.meta_path:
        return  # done already
    # asked before the finder of files, which looks in the package's path
    sys.meta_path.insert(0, _SOURCES)
    sys.modules[NAMESPACE] = ModuleType(NAMESPACE)
    sys.modules[NAMESPACE].__path__ = [str(bundled_path("plugins"))]


def load_bundled(path: Path) -> ModuleType:
    """Import a plugin that ships with the program from disk, by its file or folder."""
    open_namespace()
    name = path.stem
    # another brain in this process may have a plugin of that name, whose bytes and module would be found first
    _SOURCES.files.pop(f"{NAMESPACE}.{name}", None)
    module = sys.modules.get(f"{NAMESPACE}.{name}")
    if module is not None and module.__file__ not in (str(path), str(path / "__init__.py")):
        _unload(name)
    # a test may have bundled plugins in another folder, which import the program's
    sys.modules[NAMESPACE].__path__ = [str(path.parent), str(bundled_path("plugins"))]
    importlib.invalidate_caches()
    return importlib.import_module(f"{NAMESPACE}.{name}")


def bundled_commands() -> list[ModuleType]:
    """Import the modules with the commands of bundled plugins: `commands.py` in their folders."""
    packages = [path for path in bundled_plugins(bundled_path("plugins")) if (path / "commands.py").is_file()]
    return [importlib.import_module(f"{load_bundled(path).__name__}.commands") for path in packages]


def _unload(name: str) -> None:
    """Remove a plugin's module from `sys.modules` and from its package, so that it is imported anew."""
    sys.modules.pop(f"{NAMESPACE}.{name}", None)
    vars(sys.modules[NAMESPACE]).pop(name, None)


def load_module(name: str, folder: Path, sources: dict[str, bytes]) -> ModuleType:
    """Execute a plugin as `brainiac_plugins.<name>` and return the module.

    Args:
        name: The plugin's name, its file's stem.
        folder: The folder of its files.
        sources: The bytes of the plugin and of the modules of the brain that it imports, by module name.
    """
    open_namespace()
    for stem, code in sources.items():
        _SOURCES.files[f"{NAMESPACE}.{stem}"] = (folder / f"{stem}.py", code)
        # another brain in this process may have loaded one of that name, which `from . import x` would find first
        _unload(stem)
    return importlib.import_module(f"{NAMESPACE}.{name}")


def bundled_path(name: str) -> Path:
    """Return a file or folder that ships with the program: in the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent.parent / "_bundled"
    return (packaged if packaged.is_dir() else Path(__file__).parent.parent.parent) / name
