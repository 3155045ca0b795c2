"""The access log: one line for each long-term memory that was read or cited (docs/format.md, F-LOG)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from brainiac.formats.markdown import percent_escaped

_ENTRY = re.compile(r"(\d{4}-\d\d-\d\d[T ]\S+) \| ([A-Z][A-Z_-]*) \| (\S.*?)[ \t\r]*")
# characters that would break the line, or be lost where a reader strips white space
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
    """A parsed access log.

    Attributes:
        entries: In the order of the log.
        unreadable: Line numbers, from 1, of the lines that are neither blank nor an entry.
    """

    entries: tuple[AccessEntry, ...]
    unreadable: tuple[int, ...]


def parse_access_log(text: str) -> AccessLog:
    """Parse an access log, however damaged."""
    entries, unreadable = [], []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if match := _ENTRY.fullmatch(line):
            entries.append(AccessEntry(match[1], match[2], unquote(match[3], errors="surrogateescape")))
        elif line.strip():
            unreadable.append(number)
    return AccessLog(tuple(entries), tuple(unreadable))


def format_entry(entry: AccessEntry) -> str:
    """Return an entry's line with its line end; characters of the path that would break the line become `%XX`."""
    return f"{entry.at} | {entry.action} | {_TO_ESCAPE.sub(percent_escaped, entry.path)}\n"


def identity_of(path: str, *, memory: str = "memory") -> str:
    """Return the part of a path after `memory/`, which is the same on every machine; "" for a path outside it.

    Args:
        path: Absolute or relative, of any system.
        memory: Name of the memory folder, as `paths.memory`.
    """
    if "/" not in path or re.match(r"[A-Za-z]:\\", path):
        path = path.replace("\\", "/")
    # first: a folder within long-term memory may be named as the memory folder is
    match = re.fullmatch(_IDENTITY.format(re.escape(memory)), path, re.DOTALL)
    if match:
        return match[1]
    _, inside, identity = f"/{path}".rpartition(f"/{memory}/")
    return identity if inside else ""
