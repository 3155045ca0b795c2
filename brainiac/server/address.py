"""The address and token of a daemon's server, in the state folder, and calls of it by our own clients.

Only the standard library is imported, so that a client starts fast.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from brainiac.errors import BrainiacError, UserError

FILE = "server.json"
TOKEN = "token"
MINE = "mine"  # the kind of the token for the person's own tools
TOKEN_VARIABLE = "BRAINIAC_SERVER_TOKEN"
MIN_TOKEN_CHARACTERS = 24
CONNECT_SECONDS = 2.0
CALL_SECONDS = 660.0  # longer than `ask` waits


class UnreachableError(BrainiacError):
    """No server of a daemon can be reached; whoever calls may go on without one."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Attributes:
        socket: A Unix socket; "" for none.
        url: Its address on the network of this machine, such as `http://127.0.0.1:4747`; "" for none.
        pid: Its process.
        window: The address of the window; "" for none.
    """

    socket: str = ""
    url: str = ""
    pid: int = 0
    window: str = ""


def tokens_of(state: Path) -> dict[str, str]:
    """Return whose words come with each token of a brain, by token: the person's or an assistant's.

    Raises:
        UserError: The one in the environment is too short to protect anything.
    """
    # a client of ours may lack what the daemon has in its environment
    return {own_token(state): "assistant", token_of(state): "assistant", own_token(state, MINE): "person"}


def token_of(state: Path) -> str:
    """Return the bearer token of a brain for programs of others, whose words are an assistant's.

    It is `BRAINIAC_SERVER_TOKEN` of the environment, else the one in the state folder.

    Raises:
        UserError: The one in the environment is too short to protect anything.
    """
    if token := os.environ.get(TOKEN_VARIABLE, ""):
        if len(token) < MIN_TOKEN_CHARACTERS:
            raise UserError(f"{TOKEN_VARIABLE} has {len(token)} characters; at least {MIN_TOKEN_CHARACTERS} are needed")
        return token
    return own_token(state)


def own_token(state: Path, kind: str = "") -> str:
    """Return a token in the state folder: that of our own clients, or with `MINE` that of the person's own tools.

    The first call makes both, readable by this user alone.
    """
    path = state / TOKEN
    tokens = _tokens_in(path)
    if kind not in tokens:
        _make_tokens(path, tokens)
        tokens = _tokens_in(path)
    return tokens[kind]


def _tokens_in(path: Path) -> dict[str, str]:
    """Return the tokens of a file by kind: a line each, before which all but the first kind has its name."""
    try:
        lines = [line.split() for line in path.read_text("ascii").splitlines() if line.strip()]
    except FileNotFoundError:
        return {}
    return {" ".join(kind): token for *kind, token in lines}


def _make_tokens(path: Path, present: Mapping[str, str]) -> None:
    """Write the tokens that a file lacks; those of a process that makes the file at the same moment stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tokens = {kind: present.get(kind) or secrets.token_urlsafe(32) for kind in ("", MINE)}
    # written aside first, so that nobody reads half of it
    aside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"{kind} {token}".lstrip() + "\n" for kind, token in tokens.items())
    try:
        if path.is_file() and MINE not in _tokens_in(path):
            os.replace(aside, path)  # of a former version, or a crash left it empty
        else:
            with suppress(FileExistsError):  # `link`, unlike `replace`, leaves a file that is there
                os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_address(state: Path, address: Address) -> None:
    """Record where this process's server listens."""
    aside = state / f"{FILE}.{os.getpid()}"
    aside.write_text(json.dumps(asdict(address)))
    os.replace(aside, state / FILE)


def read_address(state: Path) -> Address | None:
    """Return where the last server of a brain listened, which may have ended; None where there was none."""
    try:
        values = json.loads((state / FILE).read_text("utf-8"))
        # an older daemon's file says nothing of a window
        window = str(values.get("window", ""))
        return Address(str(values["socket"]), str(values["url"]), int(values["pid"]), window)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def remove_address(state: Path) -> None:
    """Remove the recorded address, unless it is another process's."""
    address = read_address(state)
    if address is not None and address.pid == os.getpid():
        (state / FILE).unlink(missing_ok=True)


class _SocketConnection(http.client.HTTPConnection):
    """HTTP through a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_SECONDS)
        self.sock.connect(self._path)
        self.sock.settimeout(self.timeout)


def call(state: Path, path: str, body: Any, *, client: str) -> dict[str, Any]:
    """Call the server of a brain's daemon and return its answer.

    Args:
        state: The brain's state folder.
        path: Such as `/api/search`.
        body: Plain values.
        client: Who asks, such as `mcp:claude-desktop`.

    Raises:
        UnreachableError: No server was reached, so that nothing was done.
        UserError: It refused, or the connection broke after the call was sent.
    """
    connection = _connect(state)
    headers = {"Authorization": f"Bearer {own_token(state)}", "Content-Type": "application/json"}
    name = client.encode("ascii", "replace").decode()
    try:
        connection.request("POST", path, json.dumps(body), headers | {"X-Brainiac-Client": name})
        response = connection.getresponse()
        status, values = response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        # it may have done its work: doing that again is for the person to decide
        what = f"the daemon ended before it answered ({type(error).__name__})"
        raise UserError(f"{what}; look before asking again") from error
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        raise UserError(str(values.get("error", {}).get("message", f"the daemon answered with {status}")))
    return dict(values)


def _connect(state: Path) -> http.client.HTTPConnection:
    """Return a connection to the daemon by its Unix socket; on a port another program could pose as the daemon.

    Raises:
        UnreachableError: There is no daemon, or it cannot be reached.
    """
    address = read_address(state)
    if address is None or not address.socket:
        raise UnreachableError("no daemon of this brain serves")
    connection = _SocketConnection(address.socket, CALL_SECONDS)
    try:
        if os.stat(os.path.dirname(address.socket)).st_uid != os.getuid():
            raise UnreachableError("the folder of the daemon's socket belongs to somebody else")
        connection.connect()
    except OSError as error:
        raise UnreachableError(f"the daemon of this brain cannot be reached: {error}") from error
    return connection
