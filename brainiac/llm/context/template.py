"""Renders a person's own template in a process of its own with limits, since it may ask for all memory, or never end.

`rendered` starts the process; the process runs this file as a script, by its path and without the package.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from typing import Any

MAX_SECONDS = 3  # of computing; rendering takes a few milliseconds
MAX_BYTES = 512 * 1024**2
MAX_CHARACTERS = 1_000_000
_WALL_SECONDS = 20  # longer than the limit of computing time, for a busy machine
_TOO_LONG = f"it takes more than {MAX_SECONDS} seconds; look for a loop that does not end"


@lru_cache(maxsize=64)
def rendered(source: str, values: tuple[tuple[str, Any], ...]) -> tuple[str, str]:
    """Return a template's text and "", or "" and what is wrong with it; results are cached.

    Args:
        source: Jinja2, without front matter.
        values: Plain values by name, sorted.
    """
    # -P: without its folder on the import path, so that it imports nothing but the standard library and jinja2
    command = [sys.executable, "-P", __file__]
    job = json.dumps([source, dict(values)])
    try:
        process = subprocess.run(command, input=job, capture_output=True, text=True, timeout=_WALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "", _TOO_LONG
    try:
        text, problem = json.loads(process.stdout)
    except ValueError:
        return "", _cause_of_end(process.returncode)
    return text, problem


def _cause_of_end(code: int) -> str:
    """Return why the process ended without a result, by its exit code."""
    import signal  # in the child process only

    is_slow = code in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0))
    return _TOO_LONG if is_slow else f"it ended the program that renders it (code {code})"


def _limit() -> None:
    """Limit memory and computing time of this process."""
    try:
        import resource  # in the child process only
    except ImportError:  # Windows: the time alone is limited there
        return
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _render(source: str, values: dict[str, Any]) -> tuple[str, str]:
    """Return what `rendered` returns; this runs in the process of its own."""
    from jinja2.sandbox import SandboxedEnvironment  # in the child process only

    _limit()
    try:
        # a synced template may come from anybody: it is sandboxed and sees nothing but these values
        text = SandboxedEnvironment(autoescape=False).from_string(source).render(values).strip()
    except MemoryError:
        return "", f"it needs more than {MAX_BYTES // 1024**2} MB of memory"
    except RecursionError:
        return "", "it calls itself without end"
    except Exception as error:  # noqa: BLE001 - whatever a template raises is told of it
        return "", str(error) or type(error).__name__
    if len(text) > MAX_CHARACTERS:
        return "", f"it makes more than {MAX_CHARACTERS:,} characters"
    return text, ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_render(*json.load(sys.stdin))))
