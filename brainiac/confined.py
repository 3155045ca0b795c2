"""Renders templates and reads PDF files in a child process with limits: either may ask for all memory, or never end.

The child process runs this file as a script, by its path and without the package. It writes each result as a line of
JSON, so that what was done before a limit was reached is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_TEMPLATE_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a child process may use.

    Attributes:
        seconds: Of computing.
        wall_seconds: Until it is killed; longer, for a busy machine.
        megabytes: Of memory.
    """

    seconds: int
    wall_seconds: int
    megabytes: int


# rendering takes a few milliseconds, a hundred pages one to ten seconds
_LIMITS = {"template": _Limits(3, 20, 512), "pdf": _Limits(120, 300, 1024)}


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


@dataclass(frozen=True, slots=True)
class TemplateText:
    """The text that a template renders to.

    Attributes:
        text: The text; "" where there is a problem.
        problem: What is wrong with the template, in words for a person; "" for nothing.
    """

    text: str
    problem: str


@lru_cache(maxsize=64)
def render_template(source: str, values: tuple[tuple[str, Any], ...]) -> TemplateText:
    """Render a template; results are cached.

    Args:
        source: Jinja2, without front matter.
        values: Plain values by name, sorted.
    """
    results, problem = _results_of_child("template", json.dumps([source, dict(values)]).encode())
    return TemplateText("" if problem else results[0]["text"], problem)


def pdf_text(content: bytes) -> PdfText:
    """Return the text of a PDF file, as far as it could be read within the limits."""
    results, problem = _results_of_child("pdf", content)
    n_pages = next((result["pages"] for result in results if "pages" in result), 0)
    return PdfText([result["text"] for result in results if "text" in result], n_pages, problem)


def _results_of_child(task: str, content: bytes) -> tuple[list[dict[str, Any]], str]:
    """Have a child process do a task; return the lines that it wrote, and what went wrong, "" for nothing."""
    # -P: without this file's folder on the import path, so that it imports nothing of the package
    command = [sys.executable, "-P", __file__, task]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        clock = threading.Timer(_LIMITS[task].wall_seconds, process.kill)
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
    problem = next((result["problem"] for result in results if "problem" in result), "")
    return results, problem or (_cause_of_end(task, code) if code or not results else "")


def _cause_of_end(task: str, code: int) -> str:
    """Return why a child process ended early, by its exit code."""
    import signal  # in this case only

    if code in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0)):
        hint = "; look for a loop that does not end" if task == "template" else ""
        return f"it takes more than {_LIMITS[task].seconds} seconds{hint}"
    return f"it ended the process that reads it (code {code})"


# --- in the child process --------------------------------------------------------------------------------------------


def _limit_this_process(limits: _Limits) -> None:
    try:
        import resource  # in the child process only
    except ImportError:  # Windows: only the wall time is limited there
        return
    n_bytes = limits.megabytes * 1024**2
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _template_results(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the text of a template."""
    from jinja2.sandbox import SandboxedEnvironment  # in the child process only

    source, values = json.loads(content)
    try:
        # a synced template may come from anybody: it is sandboxed and sees nothing but these values
        text = SandboxedEnvironment(autoescape=False).from_string(source).render(values).strip()
    except RecursionError:
        yield {"problem": "it calls itself without end"}
        return
    if len(text) > MAX_TEMPLATE_CHARACTERS:
        yield {"problem": f"it makes more than {MAX_TEMPLATE_CHARACTERS:,} characters"}
        return
    yield {"text": text}


def _pdf_results(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield how many pages a file has, then the text of each."""
    from io import BytesIO  # in the child process only

    from pypdf import PdfReader  # in the child process only

    reader = PdfReader(BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        yield {"problem": "is locked with a password"}
        return
    n_pages = len(reader.pages)
    yield {"pages": n_pages}
    for number in range(n_pages):
        yield {"text": _page_text(reader, number)}


def _page_text(reader: Any, number: int) -> str:
    """Return the text of a page; "" where this page is broken."""
    try:
        return str(reader.pages[number].extract_text())
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - one broken page keeps no other out; it counts as without text
        return ""


def _results(task: str, content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the results of a task, and last what went wrong, if anything did."""
    try:
        yield from (_template_results if task == "template" else _pdf_results)(content)
    except MemoryError:
        yield {"problem": f"it needs more than {_LIMITS[task].megabytes} MB of memory"}
    except Exception as error:  # noqa: BLE001 - a stranger's file may raise anything; the person is told what
        what = str(error) or type(error).__name__
        yield {"problem": what if task == "template" else f"cannot be read ({type(error).__name__}: {error})"}


if __name__ == "__main__":
    _limit_this_process(_LIMITS[sys.argv[1]])
    for result in _results(sys.argv[1], sys.stdin.buffer.read()):
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
