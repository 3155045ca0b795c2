"""The one way to a terminal: what was read from a file, a model or a plugin cannot steer it.

Every control character is shown as its escape, `\\u001b`, which JSON reads back as the character it was. What styles
(rich, the log's colours) styles text that is clean and writes beneath the guard; all else passes through it.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO, cast

# C0 but newline, tab and the carriage return of a line's end, DEL, C1, line and paragraph separators, what turns the
# direction of writing, and bytes that are no UTF-8
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)
_LAYOUT = re.compile("[\t\n\r]")


def clean(text: str) -> str:
    """Return text with its control characters visible; newlines and tabs stay."""
    return _CONTROL.sub(_escape, text)


def one_line(text: object) -> str:
    """Return text for a place where it must not begin a line of its own: newlines and tabs are made visible too."""
    return _LAYOUT.sub(_escape, clean(str(text)))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def say(line: str = "", *, to_stderr: bool = False) -> None:
    """Print one line."""
    show(one_line(line), to_stderr=to_stderr)


def show(text: str, *, to_stderr: bool = False) -> None:
    """Print text of any number of lines."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(clean(text) + "\n")
    stream.flush()


class _Guard:
    """A stream that cleans what is written to it.

    It says that it is no terminal: whoever else would style its output (a plugin, a library) writes plain text then.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        self.beneath.write(clean(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


def guard() -> None:
    """Let all that this process prints from now on pass `clean`; called once, before anything is printed."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    if stream is None or isinstance(stream, _Guard):  # without a console, on Windows, there is no stream
        return stream
    if reconfigure := getattr(stream, "reconfigure", None):
        reconfigure(errors="backslashreplace")  # what an old terminal's encoding lacks is no reason to fail
    return cast(TextIO, _Guard(stream))


def beneath(stream: TextIO) -> TextIO:
    """Return the real stream, for what writes text that is clean with styles of its own."""
    return stream.beneath if isinstance(stream, _Guard) else stream


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person reads along on this stream."""
    return beneath(stream).isatty()
