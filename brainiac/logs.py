"""Structured logging, configured once: for people on a terminal, JSON lines otherwise."""

from __future__ import annotations

import sys
from typing import Any


def configure(*, is_verbose: bool = False) -> None:
    """Send log lines to standard error; called once by what runs for long.

    Args:
        is_verbose: Whether debug lines are shown too.
    """
    import logging

    import structlog

    shown: Any = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            shown,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if is_verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def logger() -> Any:
    """Return the logger; without `configure` only warnings are shown, so that commands stay quiet."""
    import structlog

    if not structlog.is_configured():
        import logging

        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it stands: it may be replaced
        )
    return structlog.get_logger("brainiac")
