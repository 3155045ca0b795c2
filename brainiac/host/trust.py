"""Trust: which of a brain's own plugins may run on this machine (design: trust).

A brain is synced, so its code may come from elsewhere. Recorded are the hashes of the plugin's bytes, exactly as they
are run, and of every module of the brain that it imports.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path

from brainiac.errors import UserError
from brainiac.events import content_hash
from brainiac.storage.files import read_bytes, set_aside_non_file


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

    def verified(self, name: str) -> dict[str, bytes] | None:
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

    def renew(self) -> None:
        """Write the record once more, so that its stamp changes and a running daemon loads the plugins anew."""
        self._write(self._read())

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
    """Return the names of the top-level modules that a source imports; none where it does not parse."""
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
