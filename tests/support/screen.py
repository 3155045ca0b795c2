"""A real terminal: a program runs on a pseudo-terminal, and what comes out of it is looked at byte by byte."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SIZE = (50, 120)
# what rich writes to style and move: colours, a line cleared, the cursor up, hidden and shown
# and where a file opens (OSC 8)
OWN = re.compile(rb"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\x1b\]8;;(?:file://[!-~]*)?\x1b\\")
CONTROLS = frozenset(map(chr, (*range(9), 11, 12, *range(14, 32), *range(0x7F, 0xA0), 0x2028, 0x2029)))
BIDI = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


@dataclass(frozen=True)
class Seen:
    """What a program wrote to its terminal, raw."""

    code: int
    raw: bytes

    @property
    def text(self) -> str:
        """What remains without our own styling."""
        return OWN.sub(b"", self.raw).decode("utf-8", "surrogateescape")

    @property
    def controls(self) -> set[str]:
        """The characters in it that no terminal should have got, by name."""
        return {repr(each) for each in self.text if each in CONTROLS | BIDI or "\ud800" <= each <= "\udfff"}


# runs one command line after the other as the program does
_DRIVER = """
import json, os, signal
from brainiac.cli.app import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores in what it runs in the background
for number, words in enumerate(json.loads(os.environ["COMMAND_LINES"])):
    try:
        main(words)
    except SystemExit as end:
        code = end.code
    os.write(1, f"\\n<<{number} ended: {code}>>\\n".encode())
"""
_ENDED = re.compile(rb"\r\n<<\d+ ended: (-?\d+)>>\r\n")


def on_terminal(
    lines: Sequence[tuple[Sequence[str], float]],
    *,
    env: Mapping[str, str] = {},
    typed: bytes = b"",
    seconds: float = 300.0,
    folder: Path | None = None,
) -> list[Seen]:
    """Run command lines of `brainiac` on a terminal, one after the other, and return what each wrote there.

    Args:
        lines: Each with the seconds of silence after its first words after which it is interrupted, as by Ctrl-C.
        env: More variables.
        typed: What a person types at once.
        seconds: By when all must have ended.
        folder: The current folder; without it that of this process.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, SIZE)
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **env}
    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "COMMAND_LINES": json.dumps([words for words, _ in lines])},
        start_new_session=True,
        cwd=folder,
    )
    os.close(theirs)
    os.write(ours, typed)
    echo, raw, heard = typed.replace(b"\n", b"\r\n"), b"", time.monotonic()
    end = heard + seconds
    try:
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                raw += os.read(ours, 65_536)
                heard = time.monotonic()
                continue
            *ended, words = _ENDED.split(raw.removeprefix(echo))
            if words.strip() and time.monotonic() - heard > lines[len(ended) // 2][1]:
                process.send_signal(signal.SIGINT)
                heard = time.monotonic()
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
        process.kill()
        process.wait(10)
    pieces = _ENDED.split(raw)
    assert len(lines) == len(pieces) // 2, raw.decode(errors="replace")[-3000:]
    return [Seen(int(code), piece) for piece, code in zip(pieces[::2], pieces[1::2], strict=False)]
