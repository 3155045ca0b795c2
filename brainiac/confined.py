"""Reads PDF files in a child process with limits: a stranger's file may ask for all memory, or never end.

The child process runs this file as a script, by its path and without the package. It writes each result as a line of
JSON, so that what was done before a limit was reached is kept.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

# a hundred pages take one to ten seconds of computing; killed later than that, for a busy machine
SECONDS, WALL_SECONDS, MEGABYTES = 120, 300, 1024


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of a PDF file.

    Attributes:
        pages: The text of each page that was read; "" for a page without text.
        n_pages: How many pages the file has.
        problem: Why not all pages were read, in words for a person; "" where all were.
    """

    pages: list[str]
    n_pages: int
    problem: str


def pdf_text(content: bytes) -> PdfText:
    """Return the text of a PDF file, as far as it could be read within the limits."""
    # -P: without this file's folder on the import path, so that it imports nothing of the package
    command = [sys.executable, "-P", __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        clock = threading.Timer(WALL_SECONDS, process.kill)
        clock.start()
        try:
            # it may end before it has read everything; then its exit code says why
            with suppress(BrokenPipeError):
                process.stdin.write(content)
                process.stdin.close()
            results = [json.loads(line) for line in process.stdout if line.endswith(b"\n")]
            code = process.wait()
        finally:
            clock.cancel()
    found: dict[str, Any] = {}
    for result in results:
        found |= result
    problem = found.get("problem", "")
    if not problem and (code or not results):
        problem = f"it ended the process that reads it (code {code})"
        if code in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0)):
            problem = f"it takes more than {SECONDS} seconds"
    pages = [result["text"] for result in results if "text" in result]
    return PdfText(pages, found.get("pages", 0), problem)


# --- in the child process --------------------------------------------------------------------------------------------


def _limit_this_process() -> None:
    try:
        import resource  # in the child process only
    except ImportError:  # Windows: only the wall time is limited there
        return
    n_bytes = MEGABYTES * 1024**2
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _results(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield how many pages a file has, then the text of each, and last what went wrong, if anything did."""
    from pypdf import PdfReader  # in the child process only

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            yield {"problem": "is locked with a password"}
            return
        n_pages = len(reader.pages)
        yield {"pages": n_pages}
        for number in range(n_pages):
            try:
                text = str(reader.pages[number].extract_text())
            except (MemoryError, RecursionError):
                raise
            except Exception:  # noqa: BLE001 - one broken page keeps no other out; it counts as without text
                text = ""
            yield {"text": text}
    except MemoryError:
        yield {"problem": f"it needs more than {MEGABYTES} MB of memory"}
    except Exception as error:  # noqa: BLE001 - a stranger's file may raise anything; the person is told what
        yield {"problem": f"cannot be read ({type(error).__name__}: {error})"}


if __name__ == "__main__":
    _limit_this_process()
    for result in _results(sys.stdin.buffer.read()):
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
