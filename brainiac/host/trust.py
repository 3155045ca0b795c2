"""Which of a brain's own plugins may run on this machine (design: trust).

A brain is synced, so its code may have been written elsewhere. What is recorded is the hash of the very
bytes that are executed and of every module of the brain that they import.
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
        """Return file name to content hash for a plugin and all brain-local modules it imports.

        Raises:
            UserError: There is no such file, or it is not readable.
        """
        return {path.name: content_hash(content) for path, content in self._sources(name)}

    def verified(self, name: str) -> dict[str, bytes] | None:
        """Return the trusted sources by module name, read once so that what was judged is what runs.

        Returns:
            None when the plugin, or a module of the brain that it imports, is not what was trusted.
        """
        recorded = self._read().get(name)
        if recorded is None:
            return None
        try:
            sources = dict(self._sources(name))
        except UserError:
            return None
        if recorded != {path.name: content_hash(content) for path, content in sources.items()}:
            return None
        return {path.stem: content for path, content in sources.items()}

    def is_known(self, name: str) -> bool:
        """Return whether a plugin was trusted, as it stands or as it stood once."""
        return bool(self._read().get(name))

    def renew(self) -> None:
        """Let a daemon, which looks at the record now and then, look the plugins over."""
        self._write(self._read())

    def stamp(self) -> object:
        """Return a value that changes when the record or a file of the folder was written."""
        files = (self._path, *sorted(self._folder.glob("*.py")))
        return [(path.name, path.stat().st_mtime_ns) for path in files if path.is_file()]

    def trust(self, name: str, fingerprint: dict[str, str] | None = None) -> dict[str, str]:
        """Record a plugin and return what was recorded.

        Args:
            name: The plugin.
            fingerprint: What a person was shown; without it, the files as they stand.
        """
        fingerprint = fingerprint or self.fingerprint(name)
        self._write({**self._read(), name: fingerprint})
        return fingerprint

    def distrust(self, name: str) -> bool:
        """Forget a plugin; return whether it was known."""
        known = self._read()
        found = known.pop(name, None) is not None
        self._write(known)
        return found

    def _sources(self, name: str) -> Iterator[tuple[Path, bytes]]:
        if name != os.path.basename(name) or not (self._folder / f"{name}.py").is_file():
            raise UserError(f"no plugin {name!r} in {self._folder}; `brainiac plugins list` names those there are")
        waiting, seen = [name], {name}
        while waiting:
            path = self._folder / f"{waiting.pop()}.py"
            try:
                content = read_bytes(path) or b""
            except OSError as error:
                raise UserError(f"plugins/{path.name}: cannot be read: {error.strerror}") from error
            yield path, content
            for module in _imported(content):
                if module not in seen and (self._folder / f"{module}.py").is_file():
                    seen.add(module)
                    waiting.append(module)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            found = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        set_aside_non_file(self._path)
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(temporary, self._path)


def _imported(source: bytes) -> set[str]:
    """Name the top-level modules that a source imports; none when it does not parse (it will not run either)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
            names.update(alias.name for alias in node.names)  # `from . import helper`
    return {part for name in names for part in name.replace("brainiac_plugins.", "").split(".")[:1]}
