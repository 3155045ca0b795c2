"""`brainiac` as a process of its own that costs no imports: a fork of a process that has imported the program.

A test that is about the start itself (what is imported, limits, another user, a preloaded library) uses `subprocess`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from brainiac.llm.completion import litellm

ROOT = Path(__file__).parent.parent.parent
# what commands and the daemon import at their start, or soon after it
PRELOADED = (
    "brainiac.cli.ask", "brainiac.cli.brains", "brainiac.cli.explain", "brainiac.cli.log", "brainiac.cli.run",
    "brainiac.cli.search", "brainiac.cli.status", "brainiac.health.doctor",
    "brainiac.llm.gateway", "brainiac.llm.offline", "brainiac.search.pages",
    "brainiac.search.retrieval", "brainiac.server.rest", "brainiac.server.openai", "ruamel.yaml", "structlog",
    "Stemmer", "uvicorn",
)  # fmt: skip
_TEMPLATE = """
import sys
from brainiac.__main__ import main
from tests.support.program import become_programs
become_programs(int(sys.argv[1]))
main()
"""


class Program:
    """A running `brainiac`.

    Args:
        arguments: Its command line.
        out: Where its standard output goes.
        err: Where its standard error goes; without it, where the standard output goes.
        env: All its variables; without them those of this process.
        cwd: Its current folder; without it that of this process.
    """

    def __init__(
        self,
        *arguments: str,
        out: IO[Any],
        err: IO[Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._status, writing = os.pipe()
        os.umask(umask := os.umask(0))  # it can only be read by setting it
        values = {
            "arguments": arguments,
            "env": dict(env or os.environ),
            "cwd": os.fspath(cwd or Path.cwd()),
            "umask": umask,
        }
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(values).encode())
            request.seek(0)
            files = (out.fileno(), (err or out).fileno(), request.fileno(), writing)
            socket.send_fds(_template(), [b"."], files)
        os.close(writing)
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = self._number()
            os.close(self._status)
        return self.returncode

    def _number(self) -> int:
        """Return the next number that its parent writes: first its process id, then its exit code."""
        number = os.read(self._status, 4)
        assert number, "the process that is forked has ended"
        return int.from_bytes(number, "little", signed=True)

    def wait(self, seconds: float = 60) -> int:
        """Wait until it ends and return its exit code."""
        end = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if (left := end - time.monotonic()) <= 0:
                raise subprocess.TimeoutExpired("brainiac", seconds)
            select.select([self._status], [], [], left)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """End it as a person does."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power failure does."""
        self.send_signal(signal.SIGKILL)


def run_program(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command line of `brainiac` to its end, and return what it printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        program = Program(*arguments, out=out, err=err, env=env, cwd=cwd)
        try:
            code = program.wait(seconds)
        finally:
            program.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read().decode(), err.read().decode())


@cache
def _template() -> socket.socket:
    """Start the process that is forked, once for all tests of this one, and return what speaks with it."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-c", _TEMPLATE, str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def become_programs(connection: int) -> None:
    """Wait for requests; return only in a fork, which has become the program that was asked for."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # a collection in a fork would copy all that was imported
    with socket.socket(fileno=connection) as requests:
        while (received := socket.recv_fds(requests, 1, 4))[0]:
            out, err, request, status = received[1]
            with os.fdopen(request) as file:
                asked = json.load(file)
            if "OPENAI_API_KEY" in asked["env"]:
                litellm()  # it will call a model
            if not os.fork():
                requests.close()
                _become(asked, out, err, status)
                return
            for descriptor in (out, err, status):
                os.close(descriptor)
            _reap()
    _reap()
    os._exit(0)


def _reap() -> None:
    """Take note of forks that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(asked: dict[str, Any], out: int, err: int, status: int) -> None:
    """Return in a fork that is as asked for: files, variables, folder, umask; write its id and exit code."""
    if pid := os.fork():
        os.write(status, pid.to_bytes(4, "little"))
        for descriptor in (out, err):
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(status, code.to_bytes(4, "little", signed=True))
        os._exit(0)
    os.close(status)
    for descriptor, number in ((out, 1), (err, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    os.umask(asked["umask"])
    sys.argv[1:] = asked["arguments"]
