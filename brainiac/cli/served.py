"""A daemon's side of fast commands: it runs `search`, `status` and `ask` for a process that has imported no more than
`brainiac.cli.quick`, by the very functions that run without it.

A request is one JSON line: the command line, the program that asks, and what its terminal can show. The daemon says
that it is ready; only when the client then says `go`, it runs the command: a client that has waited too long, and has
gone on by itself, never has something done twice. What the command prints comes as JSON lines, the last with its exit
code. A daemon that cannot do it just as the client would closes the connection, and the client does it.
"""

from __future__ import annotations

import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

from brainiac.brain import Brain
from brainiac.cli import quick
from brainiac.cli.app import run_lent
from brainiac.cli.session import lending
from brainiac.errors import SettingsError
from brainiac.server.address import read_address
from brainiac.terminal import Client, Guard, printing_to

MAX_REQUEST_BYTES = 1_000_000
STALL_SECONDS = 5.0  # within which a client must go on
STOP_SECONDS = 1.0
MAX_COMMANDS = 32  # at once; further clients run theirs by themselves


@contextmanager
def serving_commands(brain: Brain) -> Iterator[None]:
    """Run commands of this user's other processes with a daemon's brain while the block runs."""
    with ExitStack() as resources:
        with suppress(OSError):  # commands are slower without
            _listen(brain, resources)
        yield


def _listen(brain: Brain, resources: ExitStack) -> None:
    """Open a socket beside the server's, in a folder that only this user may enter, and serve; `resources` end it."""
    address = read_address(brain.places.state)
    if address is None or not address.socket:
        return
    path = quick.beside(address.socket)
    listener = resources.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(MAX_COMMANDS)
    connections: dict[socket.socket, threading.Thread] = {}
    is_stopping = threading.Event()

    def serve(connection: socket.socket) -> None:
        try:
            with connection:
                _Request(brain, connection, is_stopping).serve()
        except (OSError, ValueError, LookupError, TypeError) as error:  # the client is gone, or no client of ours
            brain.log.debug("command_dropped", problem=str(error))
        finally:
            del connections[connection]

    def accept() -> None:
        while not is_stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if len(connections) >= MAX_COMMANDS:
                connection.close()
                continue
            connections[connection] = threading.Thread(target=serve, args=(connection,), daemon=True)
            connections[connection].start()

    def stop() -> None:
        is_stopping.set()
        for each in (listener, *list(connections)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes what waits for it; each client sees at once that it ended
        for thread in list(connections.values()):
            thread.join(STOP_SECONDS)

    threading.Thread(target=accept, name="commands", daemon=True).start()
    resources.callback(stop)


class _Request:
    """One command of a client.

    Args:
        brain: The daemon's.
        connection: To the client.
        is_stopping: Set when the daemon ends: what fails then is no answer.
    """

    def __init__(self, brain: Brain, connection: socket.socket, is_stopping: threading.Event) -> None:
        self._brain, self._connection, self._is_stopping = brain, connection, is_stopping
        self._mutex, self._is_gone = threading.Lock(), False

    def serve(self) -> None:
        """Run it, if it is to be run here; raises OSError, ValueError, LookupError or TypeError for another's."""
        self._connection.settimeout(STALL_SECONDS)
        lines = self._connection.makefile("r", encoding="utf-8")
        request = json.loads(lines.readline(MAX_REQUEST_BYTES))
        if not self._is_ours(request):
            return
        out, err = (_Stream(self, name, request["terminals"][name]).guarded() for name in ("out", "err"))
        client = Client(out, err, dict(request["environment"]), Path(request["folder"]))
        self.send(ready=True)
        if lines.readline(MAX_REQUEST_BYTES) != quick.GO:
            return
        with printing_to(client), lending(self._brain):
            try:
                code = run_lent(request["words"])
            except Exception:  # a bug; the client meets it too, and names it
                self._brain.log.error("command_failed", command=request["words"][0], exc_info=True)
                return
        self.send(code=code)

    def _is_ours(self, request: dict[str, Any]) -> bool:
        """Return whether the client is this very program on this brain, and its settings are in order."""
        try:
            self._brain.check_settings()
        except SettingsError:
            return False
        return bool(
            request["program"] == quick.program()
            and request["words"][0] in quick.OPTIONS
            and os.path.samefile(request["root"], self._brain.root)
        )

    def send(self, **message: Any) -> None:
        """Send one message, unless the client is gone or does not read: an answer must not wait for that."""
        with self._mutex:
            try:
                if not (self._is_gone or self._is_stopping.is_set()):
                    self._connection.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                self._is_gone = True


class _Stream(io.StringIO):
    """A stream of a client; what is written after it has gone goes nowhere.

    Args:
        request: Of the client.
        name: `out` or `err`.
        is_terminal: Whether it is one.
    """

    def __init__(self, request: _Request, name: str, is_terminal: bool) -> None:
        super().__init__()
        self._request, self._name, self._is_terminal = request, name, is_terminal

    def write(self, text: str) -> int:
        self._request.send(**{self._name: text})
        return len(text)

    def isatty(self) -> bool:
        return self._is_terminal

    def guarded(self) -> TextIO:
        """Return it as commands get it."""
        return cast(TextIO, Guard(cast(TextIO, self)))
