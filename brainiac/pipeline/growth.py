"""What was added to `logs/access.log` since it was last read, whoever wrote it and however it was cut or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from brainiac.formats.access_log import AccessEntry, parse_access_log


class AccessLogTail:
    """Reads a growing log; one thread at a time.

    Args:
        path: The log.
        mark: What `mark` was when the log was last read, perhaps in another run; None: begin at its present end.
    """

    def __init__(self, path: Path, mark: dict[str, Any] | None) -> None:
        self._path = path
        self._offset, self._last = (int(mark["offset"]), str(mark["last"])) if mark else (0, "")
        if mark is None:
            self.read()

    @property
    def mark(self) -> dict[str, Any]:
        """How far it was read, and the last line read, by which the place is found again in a log that was cut."""
        return {"offset": self._offset, "last": self._last}

    def read(self) -> Sequence[AccessEntry]:
        """Return what the whole lines say that were added since the last call."""
        try:
            with open(self._path, "rb") as log:
                start = self._find(log)
                added = log.read()
        except FileNotFoundError:
            self._offset, self._last = 0, ""
            return []
        whole = added[: added.rfind(b"\n") + 1].decode("utf-8", "replace")
        self._offset = start + added.rfind(b"\n") + 1
        self._last = whole.splitlines()[-1] if whole else self._last
        return parse_access_log(whole).entries

    def _find(self, log: BinaryIO) -> int:
        """Seek to where the last read ended, also where earlier lines were taken away meanwhile; return the place."""
        line = self._last.encode() + b"\n"
        start = self._offset
        log.seek(max(0, start - len(line)))
        if start and log.read(len(line)) != line:
            log.seek(0)
            content = log.read()
            found = content.rfind(line)
            start = found + len(line) if found >= 0 else 0
        return log.seek(start)
