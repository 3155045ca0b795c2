"""Prompts with names of every length from 1 to 255 bytes in four scripts, and what is no file: answered, or named.

    python benchmarks/names.py [--step N]

Once they lie in the inbox when `brainiac run --once` starts, once they are dropped beside a running daemon. Each must
be answered or be named in `status`, and the ordinary prompts among them must all be answered. Prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from tests.support.living import living, living_brain
from tests.support.program import run_program

TEXT = b"I live in Portland.\n"
# a character of the script, and a sign of one byte that fills a name up to its length and no other script uses
SCRIPTS = {"Latin": ("l", "l"), "Cyrillic": ("ж", "z"), "CJK": ("漢", "k"), "emoji": ("🌵", "e")}
ORDINARY = 40
SECONDS = 600.0


def long_names(step: int = 1) -> Iterator[bytes]:
    """Yield a name of every length (or every `step`-th, the limits among them) in each script; `.md` where it fits."""
    for character, filler in SCRIPTS.values():
        sign = character.encode()
        for length in range(1, 256):
            if length % step == 0 or length < 6 or length > 242:
                room, ending = (length - 3, b".md") if length > 3 else (length, b"")
                yield (filler.encode() * (room % len(sign))) + sign * (room // len(sign)) + ending


def odd_names() -> Iterator[bytes]:
    """Yield names that some tool cannot show, and twins that other systems take for one name."""
    yield from (b"byte\x80.md", b"latin\xe9.md", b"cut\xc3.md", b"new\nline.md", b"esc\x1b[31m.md", b"c1\xc2\x85.md")
    yield from (b"dots...md", b"dots.md...md", b" lead.md", b"trail .md", b"-rf.md", b"\xe2\x80\xaefdp.md", b"NUL.md")
    yield from ("caf\u00e9.md".encode(), "cafe\u0301.md".encode(), b"Case.md", b"case.md", b"twin.md", b"twin.markdown")


def no_files(folder: Path) -> Iterator[bytes]:
    """Make what is no file, or stands where an answer is to go, below a folder; yield the names."""
    os.mkfifo(folder / "pipe.md")
    handle = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as end:  # by this way, since the path of a socket must be short
        end.bind(f"/proc/self/fd/{handle}/socket.md")
    os.close(handle)
    (folder / "link.md").symlink_to("nowhere.md")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "folder.md").mkdir()
    for name in ("pipe", "socket", "link", "loop", "folder"):
        yield f"{name}.md".encode()
    os.mkfifo(folder / "beside-pipe.response.md")
    (folder / "beside-folder.response.md").mkdir()
    (folder / "beside-link.response.md").symlink_to("nowhere.md")
    for name in ("beside-pipe", "beside-folder", "beside-link"):
        (folder / f"{name}.md").write_bytes(TEXT)
        yield f"{name}.md".encode()


def make(root: Path, step: int) -> tuple[list[bytes], list[str]]:
    """Put all of it into an inbox; return the names, and those of the ordinary prompts among them."""
    inbox = root / "inbox"
    names = [*long_names(step), *odd_names()]
    ordinary = [f"ordinary-{number}.md" for number in range(ORDINARY)]
    for number, name in enumerate(names):
        if number % max(len(names) // ORDINARY, 1) == 0 and number // max(len(names) // ORDINARY, 1) < ORDINARY:
            (inbox / ordinary[number // max(len(names) // ORDINARY, 1)]).write_bytes(TEXT)
        with open(os.path.join(os.fsencode(inbox), name), "xb") as file:
            file.write(TEXT)
    return [*names, *no_files(inbox)], [name for name in ordinary if (inbox / name).is_file()]


def is_answered(inbox: bytes, name: bytes) -> bool:
    """Return whether a response to a prompt stands beside it as a file."""
    stem = name.removesuffix(b".md")
    return any(
        os.path.isfile(os.path.join(inbox, stem + ending))
        for ending in (b".response.md", b".response-2.md", b".md.response.md")
        if len(stem + ending) < 256
    )


def status(root: Path) -> dict[str, Any]:
    """Return what `status` says."""
    done = run_program("--brain", str(root), "status", "--json", cwd=root.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def result(root: Path, names: Sequence[bytes], ordinary: Sequence[str]) -> dict[str, Any]:
    """Return the counts, with the names of what is neither answered nor named."""
    inbox, state = os.fsencode(root / "inbox"), status(root)
    lines = [str(line) for key in ("problems", "unread") for line in state[key]]
    lines += [f"{prompt['prompt']}: {prompt['reason']}" for prompt in state["pending"]]
    answered = [name for name in names if is_answered(inbox, name)]
    others = [name for name in names if name not in answered]

    def is_named(name: bytes) -> bool:
        path = f"inbox/{os.fsdecode(name)}"
        return any(line.startswith((f"{path}:", f"{repr(path)[1:-1]}:")) for line in lines)

    named = [name for name in others if is_named(name)]
    neither = [name for name in others if name not in named]
    unanswered = [name for name in ordinary if not is_answered(inbox, name.encode())]
    return {
        "made": len(names),
        "answered": len(answered),
        "named": len(named),
        "neither": len(neither),
        "others": len(ordinary),
        "others_unanswered": len(unanswered),
        "which": [repr(name)[:60] for name in neither[:20]],
    }


def at_start(root: Path, step: int) -> dict[str, Any]:
    """Make the files, then start."""
    living_brain(root)
    names, ordinary = make(root, step)
    began = time.monotonic()
    done = run_program("--brain", str(root), "run", "--once", cwd=root.parent, seconds=SECONDS)
    seconds = round(time.monotonic() - began, 1)
    return {"exit": done.returncode, "seconds": seconds, "error": done.stderr[-300:]} | result(root, names, ordinary)


def under_daemon(root: Path, step: int) -> dict[str, Any]:
    """Start a daemon, then make the files."""
    living_brain(root)
    with living(root) as one:
        names, ordinary = make(root, step)
        began, last, since = time.monotonic(), -1, time.monotonic()
        while time.monotonic() - began < SECONDS and time.monotonic() - since < 10:  # ten seconds without an answer
            if (count := len(list((root / "inbox").glob("*.response*.md")))) != last:
                last, since = count, time.monotonic()
            time.sleep(0.5)
        return {"is_alive": one.is_alive, "seconds": round(since - began, 1)} | result(root, names, ordinary)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both counts; exit 1 when a file is neither answered nor named, or an ordinary prompt is not answered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1, help="only every N-th length")
    step = parser.parse_args(arguments).step
    with tempfile.TemporaryDirectory() as folder:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        os.environ["HOME"] = folder
        counts = {"at_start": at_start(Path(folder) / "a", step), "daemon": under_daemon(Path(folder) / "b", step)}
    print(json.dumps(counts, ensure_ascii=False))
    sys.exit(any(count["neither"] or count["others_unanswered"] for count in counts.values()))


if __name__ == "__main__":
    main()
