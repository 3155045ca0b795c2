"""All output to a terminal, the log too, so that text from a file, a model or a plugin cannot control it.

Every control character is printed as its escape, `\\u001b`, which JSON reads back as the same character. `guard` makes
standard output and error do this. Styled output (rich, the log's colours) is cleaned first and bypasses the guard.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, cast

# control characters (but newline, tab and the carriage return of a line's end), line and paragraph separators,
# characters that change the direction of writing, and bytes that are no UTF-8
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)
_LAYOUT = re.compile("[\t\n\r]")


def clean(text: str) -> str:
    """Return text with control characters as escapes; newlines and tabs stay."""
    return _CONTROL.sub(_escape, text)


def one_line(text: object) -> str:
    """Return text on one line: with control characters, newlines and tabs as escapes."""
    return _LAYOUT.sub(_escape, clean(str(text)))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def few(names: Sequence[str], number: int = 10) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:number]) + (f" and {len(names) - number} more" if len(names) > number else "")


def opening(shown: str, file: Path | None) -> str:
    """Return a cleaned text that opens a file in a terminal that can (OSC 8); the text says which file.

    Args:
        shown: The file's path, as a person reads it.
        file: Its absolute path; None for no file to open.
    """
    text = one_line(shown)
    return f"\x1b]8;;{file.as_uri()}\x1b\\{text}\x1b]8;;\x1b\\" if file else text


def say(line: str = "", *, to_stderr: bool = False) -> None:
    """Print one line."""
    show(one_line(line), to_stderr=to_stderr)


def show(text: str, *, to_stderr: bool = False) -> None:
    """Print text of any number of lines."""
    stream = output(to_stderr=to_stderr)
    stream.write(clean(text) + "\n")
    stream.flush()


class Guard:
    """A stream that writes control characters as escapes.

    It says that it is no terminal, so that plugins and libraries write plain text without styles.
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


class Nowhere(io.StringIO):
    """A stream that keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)


def guard() -> None:
    """Wrap standard output and error so that all text printed from now on passes `clean`; called once at the start."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO | None) -> TextIO:
    """Return a stream that cleans all that is written to it."""
    if isinstance(stream, Guard):
        return stream
    if stream is None:  # without a console, on Windows
        return Nowhere()
    if reconfigure := getattr(stream, "reconfigure", None):
        reconfigure(errors="backslashreplace")  # an old terminal's encoding may lack characters
    return cast(TextIO, Guard(stream))


def beneath(stream: TextIO) -> TextIO:
    """Return the real stream below the guard, for styled output whose text is clean already."""
    return stream.beneath if isinstance(stream, Guard) else stream


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal, seen through the guard."""
    return beneath(stream).isatty()


# --- where a command prints, which a daemon runs for another process ---------------------------------------


@dataclass(frozen=True, slots=True)
class Client:
    """The process for which a daemon runs a command.

    Attributes:
        stdout: Its standard output.
        stderr: Its standard error.
        environment: Of its variables those that say what its terminal can show.
        folder: Its current folder.
    """

    stdout: TextIO
    stderr: TextIO
    environment: Mapping[str, str]
    folder: Path


_client: ContextVar[Client | None] = ContextVar("client", default=None)


@contextmanager
def printing_to(client: Client) -> Iterator[None]:
    """Within this context, and in this thread alone, what is printed goes to a client."""
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


@contextmanager
def silenced(*, is_stderr_too: bool = False) -> Iterator[None]:
    """Within this context, nothing is printed to standard output."""
    if client := _client.get():
        stderr = Nowhere() if is_stderr_too else client.stderr
        with printing_to(replace(client, stdout=Nowhere(), stderr=stderr)):
            yield
        return
    with redirect_stdout(Nowhere()), redirect_stderr(Nowhere()) if is_stderr_too else nullcontext():
        yield


def output(*, to_stderr: bool = False) -> TextIO:
    """Return standard output or error: this process's, or those of the client for which it runs a command."""
    streams = _client.get() or sys
    return streams.stderr if to_stderr else streams.stdout


def environment() -> Mapping[str, str]:
    """Return the variables that say what the terminal can show."""
    client = _client.get()
    return client.environment if client else os.environ


def current_folder() -> Path:
    """Return the folder in which the command was called; one to which no path is relative where it is gone."""
    client = _client.get()
    try:
        return client.folder if client else Path.cwd()
    except FileNotFoundError:
        return Path()


# --- the log: for people on a terminal, JSON lines otherwise ---------------------------------------------------------

_OF_MANY_LINES = ("exception", "stack")


def configure_log(*, is_verbose: bool = False, is_quiet: bool = False, as_json: bool = False) -> None:
    """Send log lines to standard error; called once by commands that run for long.

    Args:
        is_verbose: Whether debug lines are shown too.
        is_quiet: Whether only warnings, errors and waiting prompts are shown; the command prints the rest itself.
        as_json: Whether a terminal gets JSON lines too.
    """
    import structlog  # only where something is logged

    level = logging.DEBUG if is_verbose else logging.INFO
    is_for_person = is_terminal(sys.stderr) and not as_json
    for_people = structlog.dev.ConsoleRenderer(colors=True, exception_formatter=structlog.dev.plain_traceback)
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        *([_clean_event, for_people] if is_for_person else [structlog.processors.JSONRenderer()]),
    ]

    def drop_shown(_logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Drop what `run` shows in another way: successes (but not a prompt's next try) and plugin faults."""
        is_retry = event["event"] == "prompt_waits" and event["retry_at"] is not None
        if (method in ("info", "debug") and not is_retry) or event["event"] == "plugin_failed":
            raise structlog.DropEvent
        return event

    structlog.configure(
        processors=[drop_shown, _as_sentence] if is_quiet else processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(beneath(sys.stderr) if is_for_person else sys.stderr),
        cache_logger_on_first_use=True,
    )


def logger() -> Any:
    """Return the logger; without `configure_log` only warnings are shown, so that commands stay quiet."""
    import structlog  # only where something is logged

    if not structlog.is_configured():
        structlog.configure(
            processors=[_as_sentence],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it stands: it may be replaced
        )
    return structlog.get_logger("brainiac")


def _as_sentence(_logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    """Return a log line as one line for the person at a command: what happened, to what, and why."""
    what = event.pop("event").replace("_", " ")
    why = event.pop("problem", "") or event.pop("error", "") or event.pop("reason", "")
    event.pop("exc_info", None)  # `run --verbose` shows where in the code
    about = ", ".join(f"{key} {value}" for key, value in event.items())
    sign = "" if method == "info" else f"{method}: "
    return one_line(f"{sign}{what}{f' ({about})' if about else ''}{f': {why}' if why else ''}")


def _clean_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Return a log line's values with control characters as escapes, before colours are added."""
    return {one_line(key): (clean if key in _OF_MANY_LINES else one_line)(str(value)) for key, value in event.items()}
