"""The text of PDF files, read in a process of its own with limits: a file may need all memory, or never end.

`note` starts the process and takes its pages as they come; the process runs this file as a script, without the package,
so that what was read before a limit is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from brainiac.imports.records import Note

MAX_SECONDS = 120  # of computing; a hundred pages take one to ten
MAX_BYTES = 1024**3  # of the process's memory
MAX_FILE_BYTES = 100_000_000
MAX_CHARACTERS = 3_000_000  # of a page in memory; larger ones are not watched for changes
_WALL_SECONDS = 300  # longer than the limit of computing time, for a busy machine


def note(opened: BinaryIO, path: str, written: str) -> Note:
    """Return a document as a note of its text, page by page, that says which pages have none.

    Args:
        opened: The file.
        path: Where it lies among the others.
        written: ISO 8601 moment of the file.
    """
    from brainiac.formats.markdown import escape  # both not in the process of its own, which has no package
    from brainiac.imports.records import Note

    content = opened.read(MAX_FILE_BYTES + 1)
    name = path.rpartition("/")[2]
    if len(content) > MAX_FILE_BYTES:
        return Note(path, name, problem="is larger than 100 MB")
    texts, n_pages, problem = _pages(content)
    if problem and not texts:
        return Note(path, name, problem=problem)
    remark = _remark(texts, n_pages, problem)
    parts = [f"# {name} (Documents)\n\n[{name}](<{name}>): {_count(n_pages)}. {remark}".rstrip()]
    for number, text in enumerate(texts, 1):
        if text.strip():
            parts.append(f"## Page {number}\n\n> " + escape(text.strip()).replace("\n", "\n> "))
    whole = "\n\n".join(parts)
    if len(whole) > MAX_CHARACTERS:
        whole, remark = whole[:MAX_CHARACTERS], f"{remark} The text is cut after 3 million characters.".strip()
    return Note(path, name, f"{whole}\n", path=f"{path}.md", written=written, original=content, remark=remark)


def _remark(texts: list[str], n_pages: int, problem: str) -> str:
    """Return a sentence about what is missing of a document's text; "" where nothing is."""
    empty = [number for number, text in enumerate(texts, 1) if not text.strip()]
    remarks = []
    if texts and len(empty) == len(texts):
        remarks.append("No page has text: they are pictures.")
    elif empty:
        remarks.append(f"No text on {'page' if len(empty) == 1 else 'pages'} {_ranges(empty)}.")
    if len(texts) < n_pages:
        remarks.append(f"From page {len(texts) + 1} on it was not read: {problem or 'it ended its reader'}.")
    return " ".join(remarks)


def _ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers with runs as ranges: `3–7, 9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in runs)


def _count(n_pages: int) -> str:
    return f"{n_pages} page{'' if n_pages == 1 else 's'}"


def _pages(content: bytes) -> tuple[list[str], int, str]:
    """Return the texts of the pages that could be read in time, how many pages there are, and what went wrong."""
    # -P: without its folder on the import path, so that it imports nothing but the standard library and pypdf
    command = [sys.executable, "-P", __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        clock = threading.Timer(_WALL_SECONDS, process.kill)
        clock.start()
        try:
            try:
                process.stdin.write(content)
                process.stdin.close()
            except BrokenPipeError:
                pass  # it ended early, and its exit says why
            lines = [json.loads(line) for line in process.stdout if line.endswith(b"\n")]
            code = process.wait()
        finally:
            clock.cancel()
    texts = [line["text"] for line in lines if "text" in line]
    n_pages = next((line["pages"] for line in lines if "pages" in line), 0)
    problem = next((line["problem"] for line in lines if "problem" in line), "")
    return texts, n_pages, problem or (_cause_of_end(code) if code else "")


def _cause_of_end(code: int) -> str:
    """Return why the process ended early, by its exit code."""
    import signal  # in this case only

    is_slow = code in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0))
    return (
        f"it takes more than {MAX_SECONDS} seconds" if is_slow else f"it ended the program that reads it (code {code})"
    )


# --- the process of its own ------------------------------------------------------------------------------------------


def _limit() -> None:
    """Limit memory and computing time of this process."""
    try:
        import resource  # in the child process only
    except ImportError:  # Windows: the time alone is limited there
        return
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield how many pages a file has, then the text of each, and last what went wrong, if anything did."""
    from io import BytesIO  # in the child process only

    from pypdf import PdfReader  # in the child process only

    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            yield {"problem": "is locked with a password"}
            return
        n_pages = len(reader.pages)
        yield {"pages": n_pages}
        for number in range(n_pages):
            yield {"text": _text_of(reader, number)}
    except MemoryError:
        yield {"problem": f"it needs more than {MAX_BYTES // 1024**2} MB of memory"}
    except Exception as error:  # noqa: BLE001 - whatever a broken file raises is told of it
        yield {"problem": f"cannot be read ({type(error).__name__}: {error})"}


def _text_of(reader: Any, number: int) -> str:
    """Return the text of a page; "" where this page is broken."""
    try:
        return str(reader.pages[number].extract_text())
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - one broken page keeps no other out; it counts as without text
        return ""


if __name__ == "__main__":
    _limit()
    for line in _read(sys.stdin.buffer.read()):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
