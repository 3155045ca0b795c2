"""From a plugin's file to its module: exactly the bytes that were checked are run (design: trust, loading).

Modules are named `brainiac_plugins.<name>`: a top-level package named `plugins` would be shadowed by any checkout on
`sys.path`. The bundled ones, files or packages, are imported from where they were installed, as any other code of ours.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from brainiac.tree import is_temporary

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
        self.files: dict[str, tuple[Path, bytes]] = {}

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
    if _SOURCES not in sys.meta_path:
        sys.meta_path.insert(0, _SOURCES)
        sys.modules[NAMESPACE] = ModuleType(NAMESPACE)
        sys.modules[NAMESPACE].__path__ = [str(bundled("plugins"))]


def load_bundled(path: Path) -> ModuleType:
    """Import a plugin that ships with the program, by its file or folder."""
    open_namespace()
    name = path.stem
    module = sys.modules.get(f"{NAMESPACE}.{name}")
    _SOURCES.files.pop(f"{NAMESPACE}.{name}", None)
    if module is not None and module.__file__ not in (str(path), str(path / "__init__.py")):
        _unload(name)  # another brain in this process has a plugin of that name
    sys.modules[NAMESPACE].__path__[:] = dict.fromkeys([str(path.parent), str(bundled("plugins"))])
    importlib.invalidate_caches()
    return importlib.import_module(f"{NAMESPACE}.{name}")


def bundled_commands() -> list[ModuleType]:
    """Import the modules with the commands of bundled plugins: `commands.py` in their folders."""
    packages = [path for path in bundled_plugins(bundled("plugins")) if (path / "commands.py").is_file()]
    return [importlib.import_module(f"{load_bundled(path).__name__}.commands") for path in packages]


def _unload(name: str) -> None:
    """Remove a module from `sys.modules` and from its package, so that it is imported anew."""
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


def bundled(name: str) -> Path:
    """Return a file or folder that ships with the program: in the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent.parent / "_bundled"
    return (packaged if packaged.is_dir() else Path(__file__).parent.parent.parent) / name
