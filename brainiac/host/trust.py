"""Trust: which of a brain's own plugins may run on this machine, and their import (design: trust, loading).

A brain is synced, so its code may come from elsewhere. Recorded is the hash of a plugin's one file; exactly the bytes
that were checked are run. Another file of the brain cannot be imported: a plugin of several files is a package.

Modules are named `brainiac_plugins.<name>`: a top-level package named `plugins` would be shadowed by any checkout on
`sys.path`. The bundled ones, files or packages, are imported from where they were installed, as any other code of ours.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

from brainiac.errors import UserError
from brainiac.events import content_hash
from brainiac.places import bundled_path
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
        """Return the content hash of a plugin, by its file name.

        Raises:
            UserError: There is no such file, or it is not readable.
        """
        return {f"{name}.py": content_hash(self._source(name))}

    def verified_source(self, name: str) -> bytes | None:
        """Return the source of a trusted plugin, read once, so that the checked bytes are run.

        Returns:
            None where the plugin is not trusted, or has changed since.
        """
        recorded = self._read().get(name)
        try:
            # the bytes that are compared are those that run: a file read twice could change in between
            source = self._source(name) if recorded else b""
        except UserError:
            return None
        return source if recorded == {f"{name}.py": content_hash(source)} else None

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

    def _source(self, name: str) -> bytes:
        """Return the source of a plugin.

        Raises:
            UserError: There is no such plugin, or its file cannot be read.
        """
        path = self._folder / f"{name}.py"
        if name != os.path.basename(name) or not path.is_file():
            raise UserError(f"no plugin {name!r} in {self._folder}; `brainiac plugins list` names those there are")
        try:
            return read_bytes(path) or b""
        except OSError as error:
            raise UserError(f"plugins/{path.name}: cannot be read: {error.strerror}") from error

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


# --- from a plugin's file to its module ------------------------------------------------------------------------------

NAMESPACE = "brainiac_plugins"


def plugin_files(folder: Path) -> list[Path]:
    """Return the files of the plugins in a folder; one with a leading underscore is none."""
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


def syntax_problem(name: str, code: bytes) -> str:
    """Return in which line a plugin has a syntax error; "" where it has none."""
    try:
        compile(code, f"{name}.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{type(error).__name__} in {name}.py{line}: {getattr(error, 'msg', error)}; mend and trust it again"
    return ""


def open_namespace() -> None:
    """Make `brainiac_plugins.<name>` importable: the module of a brain that is loaded, else the bundled one."""
    if NAMESPACE not in sys.modules:
        sys.modules[NAMESPACE] = ModuleType(NAMESPACE)
        sys.modules[NAMESPACE].__path__ = [str(bundled_path("plugins"))]


def load_bundled(path: Path) -> ModuleType:
    """Import a plugin that ships with the program from disk, by its file or folder."""
    open_namespace()
    name = path.stem
    module = sys.modules.get(f"{NAMESPACE}.{name}")
    # another brain in this process may have a plugin of that name, whose module would be found first
    if module is not None and module.__file__ not in (str(path), str(path / "__init__.py")):
        sys.modules.pop(module.__name__)
        vars(sys.modules[NAMESPACE]).pop(name, None)
    # a test may have bundled plugins in another folder, which import the program's
    sys.modules[NAMESPACE].__path__ = [str(path.parent), str(bundled_path("plugins"))]
    importlib.invalidate_caches()
    return importlib.import_module(f"{NAMESPACE}.{name}")


def bundled_commands() -> list[ModuleType]:
    """Import the modules with the commands of bundled plugins: `commands.py` in their folders."""
    packages = [path for path in bundled_plugins(bundled_path("plugins")) if (path / "commands.py").is_file()]
    return [importlib.import_module(f"{load_bundled(path).__name__}.commands") for path in packages]


def load_source(path: Path, code: bytes) -> ModuleType:
    """Execute a brain's own plugin as `brainiac_plugins.<name>` and return the module.

    Args:
        path: Its file.
        code: Its bytes as they were checked: the file may have changed since, and a synced `__pycache__` is not used.
    """
    open_namespace()
    module = ModuleType(f"{NAMESPACE}.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look there
    # dont_inherit: this file's `from __future__ import annotations` is not the plugin's
    exec(compile(code, str(path), "exec", dont_inherit=True), module.__dict__)
    return module
