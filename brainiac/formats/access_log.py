"""The access log: one line for each long-term memory that was read or cited (docs/format.md, F-LOG)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from brainiac.formats.markdown import percent_escaped

_ENTRY = re.compile(r"(\d{4}-\d\d-\d\d[T ]\S+) \| ([A-Z][A-Z_-]*) \| (\S.*?)[ \t\r]*")
_TO_ESCAPE = re.compile(r"[%|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^\s|\s$")
_IDENTITY = r"(?:.*/)?{}/((?:long_term|archive)/.+)"


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One line of the log.

    Attributes:
        at: ISO 8601 UTC.
        action: `READ`, or `CITE` when an answer cites it.
        path: Absolute, of the machine that wrote the line.
    """

    at: str
    action: str
    path: str


@dataclass(frozen=True, slots=True)
class AccessLog:
    """A log that was read.

    Attributes:
        entries: In the order of the log.
        garbage: Numbers, from 1, of the lines that are no entries; blank lines are not counted among them.
    """

    entries: tuple[AccessEntry, ...]
    garbage: tuple[int, ...]


def parse_access_log(text: str) -> AccessLog:
    """Read a log; lines that are no entries are passed over and named."""
    entries, garbage = [], []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if found := _ENTRY.fullmatch(line):
            entries.append(AccessEntry(found[1], found[2], unquote(found[3], errors="surrogateescape")))
        elif line.strip():
            garbage.append(number)
    return AccessLog(tuple(entries), tuple(garbage))


def format_entry(entry: AccessEntry) -> str:
    """Return an entry's line with its line end; what would break the line is percent-escaped in the path."""
    return f"{entry.at} | {entry.action} | {_TO_ESCAPE.sub(percent_escaped, entry.path)}\n"


def identity_of(path: str, *, memory: str = "memory") -> str:
    """Return what follows `memory/` in a path, posix: the same on every machine; "" when nothing does.

    Args:
        path: Absolute or relative, of any system.
        memory: Name of the memory folder, as `paths.memory`.
    """
    if "/" not in path or re.match(r"[A-Za-z]:\\", path):
        path = path.replace("\\", "/")
    found = re.fullmatch(_IDENTITY.format(re.escape(memory)), path, re.DOTALL)
    if found:
        return found[1]
    _, inside, rest = f"/{path}".rpartition(f"/{memory}/")
    return rest if inside else ""
