"""Commands that a running daemon runs for us, so that this process imports next to nothing; see `brainiac.cli.served`.

Whatever is unusual is left to the full command line.
"""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import sys

import brainiac
from brainiac.errors import NotABrainError
from brainiac.places import LocalPlaces, find_root, id_in

GO = "go\n"
READY_SECONDS = 0.5  # a daemon that hangs costs no more
DONE_SECONDS = 5.0  # what only reads is then done here
ANSWER_SECONDS = 660.0  # longer than `ask` waits
# the commands, and of their options those that may be given, with whether a value follows
OPTIONS = {
    "search": {"--json": False, "--explain": False, "--limit": True, "-n": True, "--at": True},
    "status": {"--json": False},
    "ask": {"--json": False, "--in": True, "--model": True, "--private": False, "--off-record": False, "--at": True},
}
# variables by which rich decides on colours and width
_TERMINAL = ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES")
# variables that must be the daemon's, since they say what a command reads
_SAME = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
_UNUSUAL = ("_BRAINIAC_COMPLETE", "BRAINIAC_TRACEBACK", "JUPYTER_COLUMNS", "JUPYTER_LINES", "UNICODE_VERSION")


def beside(server: str) -> str:
    """Return the socket of commands: in the folder of the one that the daemon's server has."""
    return os.path.join(os.path.dirname(server), "c")


def program() -> list[str | None]:
    """Return what must be the same in client and daemon: the program's version and place, and where both read."""
    return [brainiac.__version__, os.path.dirname(brainiac.__file__), *map(os.environ.get, _SAME)]


def run(arguments: list[str]) -> int | None:
    """Run a command by the daemon and return its exit code; None where it has to be run here, and nothing was done."""
    split, streams = _split(arguments), (sys.stdout, sys.stderr)
    if split is None or not all(isinstance(each, io.TextIOWrapper) and each.encoding == "utf-8" for each in streams):
        return None
    if any(map(os.environ.get, _UNUSUAL)):
        return None
    words, named = split
    terminals = {"out": sys.stdout.isatty(), "err": sys.stderr.isatty()}
    if any(terminals.values()) and os.environ.get("TERM", "dumb").strip().lower() in ("dumb", "unknown", ""):
        return None
    environment = _size() | {name: os.environ[name] for name in _TERMINAL if name in os.environ}
    if not (environment["COLUMNS"].isdigit() and environment["LINES"].isdigit()):
        return None
    request: dict[str, object]
    request = {"program": program(), "words": words, "terminals": terminals, "environment": environment}
    try:
        root = find_root(named)
        state = LocalPlaces.of(root, id_in(root / "system" / "config.yaml")).state
        path = beside(json.loads((state / "server.json").read_bytes())["socket"])
        folder = os.lstat(os.path.dirname(path))
        # where the system was started anew, somebody else could have made a folder of that name
        if folder.st_uid != os.getuid() or stat.S_IMODE(folder.st_mode) != 0o700:
            return None
        request |= {"root": str(root), "folder": os.getcwd()}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(READY_SECONDS)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            messages = connection.makefile("r", encoding="utf-8")
            if not messages.readline():
                return None
            connection.sendall(GO.encode())
            if words[0] == "ask":
                connection.settimeout(ANSWER_SECONDS)
                return _follow(messages)
            connection.settimeout(DONE_SECONDS)
            printed = [json.loads(line) for line in messages]
    # no daemon, one that hangs, or no Unix sockets
    except (NotABrainError, OSError, AttributeError, ValueError, LookupError, TypeError):
        return None
    if not printed or printed[-1].get("code") is None:
        return None
    for message in printed:
        _print(message)
    return int(printed[-1]["code"])


def _split(arguments: list[str]) -> tuple[list[str], str] | None:
    """Return a command line without `--brain DIR`, and that folder or ""; None where it is no plain one of ours."""
    words, named = arguments[:1], ""
    options = OPTIONS.get(words[0]) if words else None
    if options is None:
        return None
    rest, n_texts = iter(arguments[1:]), 0
    for word in rest:
        name, sign, value = word.partition("=")
        if not word.startswith("-"):
            n_texts += 1
            words.append(word)
            continue
        has_value = name == "--brain" or options.get(name)
        if has_value is None or (sign and not (has_value and name.startswith("--"))):
            return None
        given = value if sign else next(rest, None) if has_value else ""
        if given is None:
            return None
        if name == "--brain":
            named = given
        else:
            words += [name, given] if has_value else [name]
    if bool(n_texts) == (words[0] == "status"):
        return None
    return words, named


def _size() -> dict[str, str]:
    """Return the columns and lines of the window, as rich finds them, as variables."""
    columns = lines = 0
    for number in (0, 1, 2):
        try:
            columns, lines = os.get_terminal_size(number)
            break
        except OSError:
            continue
    return {"COLUMNS": str(columns or 80), "LINES": str(lines or 25)}


def _follow(messages: io.TextIOWrapper) -> int | None:
    """Print what comes of an answer as it comes, and return the exit code; None where nothing was done."""
    is_waiting = True
    try:
        for line in messages:
            message = json.loads(line)
            if "code" in message:
                return None if message["code"] is None else int(message["code"])
            is_waiting = is_waiting and "out" not in message
            _print(message)
        problem = "the daemon broke off"
    except (OSError, ValueError):  # it hangs, or was killed in the middle of a line
        problem = "the daemon does not go on"
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # the line of the sign that turns, and the cursor
            sys.stderr.write("\r\x1b[2K\x1b[?25h\n" if is_waiting else "\n")
        return 130
    advice = "`brainiac status` tells whether your prompt waits in the inbox"
    sys.stderr.write(f"error: {problem}, and this is all that came of the answer; {advice}\n")
    return 1


def _print(message: dict[str, str]) -> None:
    """Print what a message has; ends the process where nobody reads it, as with `| head`."""
    for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
        if name in message:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # `run` looked at its class
            try:
                stream.write(message[name])
                stream.flush()
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left is written at the end
                sys.exit(1)
