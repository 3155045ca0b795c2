"""Structured logging, configured once: for people on a terminal, JSON lines otherwise."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

from brainiac.terminal import beneath, clean, is_terminal, one_line

_OF_MANY_LINES = ("exception", "stack")


def configure(*, is_verbose: bool = False, is_quiet: bool = False, as_json: bool = False) -> None:
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
    structlog.configure(
        processors=[_drop_shown, _as_sentence] if is_quiet else processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(beneath(sys.stderr) if is_for_person else sys.stderr),
        cache_logger_on_first_use=True,
    )


def logger() -> Any:
    """Return the logger; without `configure` only warnings are shown, so that commands stay quiet."""
    import structlog  # only where something is logged

    if not structlog.is_configured():
        structlog.configure(
            processors=[_as_sentence],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it stands: it may be replaced
        )
    return structlog.get_logger("brainiac")


def _drop_shown(_logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop log lines that `run` shows in another way: successes (but not a prompt's next try) and plugin faults."""
    import structlog  # only where something is logged

    is_retry = event["event"] == "prompt_waits" and event["retry_at"] is not None
    if (method in ("info", "debug") and not is_retry) or event["event"] == "plugin_failed":
        raise structlog.DropEvent
    return event


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
