"""The server of a daemon: all doors on a Unix socket for this user's own programs and, where `run --serve` or this
machine's own settings say so, on a port of this machine; and the window on another port, which has no doors.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from brainiac.brain import Brain
from brainiac.errors import BrainiacError, SettingsError, UserError
from brainiac.server import address, guard
from brainiac.server.rest import THREADS, in_thread, rest_routes
from brainiac.text.tokens import as_sentence
from brainiac.window.sessions import Sessions

SOCKET_PREFIX = "brainiac-"  # of the folder of the socket
STOP_SECONDS = 3.0
START_SECONDS = 30.0
LOOK_SECONDS = 0.01
MAX_CONNECTIONS = 512
MAX_STRANGERS = 256  # of these, connections on which nothing came yet that may call; the rest is for those that may
STRANGER_SECONDS = 10.0  # within which a request that may call has to come
WINDOW_HOST = "127.0.0.1"
WINDOW_PORT = "port"  # under which it is kept: tabs and bookmarks lead to it after a restart too
IDLE_SECONDS = 60  # an assistant thinks between two calls, and need not connect anew for each


@contextmanager
def serving(brain: Brain, tell: Callable[[str], None], *, port: int = 0) -> Iterator[None]:
    """Serve the doors of a daemon's brain while the block runs; where they cannot be served, it runs without them.

    Args:
        brain: The daemon's.
        tell: Called with sentences for the person who started it.
        port: The port; 0 for none.
    """
    with ExitStack() as resources:
        try:
            _serve(brain, port, tell, resources)
        except (OSError, UserError) as error:
            resources.close()
            tell(as_sentence(f"Nothing is served: {error}"))
        yield


def _serve(brain: Brain, port: int, tell: Callable[[str], None], resources: ExitStack) -> None:
    """Open the sockets, start the server, and record where it listens; what is to be closed goes to `resources`.

    Raises:
        OSError, UserError: It cannot be served; `resources` has what was opened.
    """
    settings, state = brain.settings.server, brain.places.state
    former = address.read_address(state)  # of a daemon that was killed, although this one has the lock
    if former is not None and Path(former.socket).parent.name.startswith(SOCKET_PREFIX):
        shutil.rmtree(Path(former.socket).parent, ignore_errors=True)
    sockets: list[socket.socket] = []

    def listen(family: int, where: Any) -> int:
        listener = socket.socket(family, socket.SOCK_STREAM)
        resources.callback(listener.close)
        # without it a daemon that is restarted would have to wait a minute for its port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        sockets.append(listener)
        return 0 if isinstance(where, str) else int(listener.getsockname()[1])

    path = url = ""
    if hasattr(socket, "AF_UNIX"):
        # in the system's temporary folder, since the path of a socket may have only about a hundred characters
        folder = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX))  # only this user may enter it
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        path = str(folder / "s")
        listen(socket.AF_UNIX, path)
    host = settings.host
    try:
        if port and not guard.is_loopback(host) and not os.environ.get(address.TOKEN_VARIABLE):
            what = f"`server.host: {host}` lets other machines in"
            raise UserError(f"{what}; for that a token of your own must stand in {address.TOKEN_VARIABLE}")
        if port:
            listen(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port))
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    except (OSError, UserError) as error:
        tell(as_sentence(f"Port {port} is not served: {error}"))
    window_port = _window_port(brain, listen)
    if not sockets:
        return
    hosts = frozenset({*guard.LOOPBACK_NAMES, *(name.lower() for name in settings.hosts)})
    rules = guard.Guard(address.tokens_of(state), hosts, frozenset({guard.OBSIDIAN, *settings.origins}))
    stopping = threading.Event()
    guarded = guard.guarded(_application(brain, stopping.is_set, has_port=bool(url)), rules)
    _run(_by_port(guarded, _window(brain, stopping.is_set, hosts), window_port), sockets, resources)
    resources.callback(stopping.set)
    window_url = f"http://{WINDOW_HOST}:{window_port}" if window_port else ""
    address.write_address(state, address.Address(path, url, os.getpid(), window_url))
    resources.callback(address.remove_address, state)
    if url:
        doors = "REST under /api, MCP at /mcp, OpenAI's API under /v1"
        tell(f"Serving {url} ({doors}); `brainiac token` prints its token.")


def _window_port(brain: Brain, listen: Callable[[int, Any], int]) -> int:
    """Listen for browsers and return the port: that of the last time where it is free; 0 for no window."""
    try:
        if not brain.machine.window:
            return 0
    except SettingsError:  # they may say that there is to be none; `status` shows the problem
        return 0
    sessions = Sessions(brain.places.state)
    former = sessions.remembered(WINDOW_PORT)
    for port in (int(former) if former.isascii() and former.isdigit() else 0, 0):
        with suppress(OSError, OverflowError):
            port = listen(socket.AF_INET, (WINDOW_HOST, port))
            sessions.remember(WINDOW_PORT, str(port))
            return port
    return 0


def _by_port(doors: ASGIApp, window: ASGIApp, window_port: int) -> ASGIApp:
    """Return an application that is the window at its port, and the doors at any other place."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # by where the connection came in, never by what a header says
        is_window = window_port and scope["type"] == "http" and (scope.get("server") or ("", 0))[1] == window_port
        await (window if is_window else doors)(scope, receive, send)

    return serve


def _window(brain: Brain, is_stopping: Callable[[], bool], hosts: frozenset[str]) -> ASGIApp:
    """Return the window, which is made when somebody first visits it."""
    made: list[ASGIApp] = []

    def make() -> ASGIApp:
        from brainiac.window.site import window  # with it come templates and Markdown, 10 MB that few daemons need

        made[:] = [window(brain, is_stopping, hosts)]
        return made[0]

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await (made[0] if made else await in_thread(make))(scope, receive, send)

    return serve


def _application(brain: Brain, is_stopping: Callable[[], bool], *, has_port: bool) -> ASGIApp:
    """Return all doors as one application; without a port REST alone."""

    async def on_error(request: Request, error: Exception) -> Response:
        message, status = guard.message_and_status(error)
        if status == 500:
            brain.log.error("request_failed", path=request.url.path, exc_info=error)
        return JSONResponse(guard.error_body(message, status), status)

    async def on_unknown_path(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        message = f"{request.method} {request.url.path[:200]}: there is no such thing"
        return JSONResponse(guard.error_body(message, status), status)

    doors = {"brainiac": "/api/openapi.json", "mcp": "/mcp", "openai": "/v1"}
    routes = [Route("/", lambda request: JSONResponse(doors)), *rest_routes(brain, is_stopping)]
    sessions = None
    # clients at the socket speak REST; without a port the daemon is spared the 40 MB that the other doors take
    if has_port:
        from brainiac.server.mcp import session_manager  # see above
        from brainiac.server.openai import openai_routes

        sessions = session_manager(brain)
        routes += [Route("/mcp", _Endpoint(sessions.handle_request)), *openai_routes(brain, is_stopping)]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        async with sessions.run() if sessions else nullcontext():
            yield

    handlers: dict[Any, Any] = dict.fromkeys((Exception, BrainiacError, guard.TooLargeError), on_error)
    handlers |= {404: on_unknown_path, 405: on_unknown_path}
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


class _Endpoint:
    """An application as the endpoint of a route, for all methods."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _run(app: ASGIApp, sockets: list[socket.socket], resources: ExitStack) -> None:
    """Run a server in a thread until the resources are closed.

    Raises:
        UserError: It did not start.
    """
    # it logs a traceback for each client whose stream ends with the daemon; our own handler logs what is a bug
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    # who calls is what the connection says, not what a header claims
    options: dict[str, Any] = {"http": _protocol(), "proxy_headers": False, "lifespan": "on", "ws": "none"}
    options |= {"log_config": None, "access_log": False, "server_header": False, "limit_concurrency": MAX_CONNECTIONS}
    config = uvicorn.Config(app, timeout_graceful_shutdown=1, timeout_keep_alive=IDLE_SECONDS, **options)
    server = uvicorn.Server(config)

    def serve() -> None:
        with suppress(SystemExit):  # raised by uvicorn after it has logged why it cannot start
            server.run(sockets)

    thread = threading.Thread(target=serve, name="server", daemon=True)
    thread.start()
    # called in reverse: the server is told to end, then its thread is waited for
    resources.callback(thread.join, STOP_SECONDS)
    resources.callback(setattr, server, "should_exit", True)
    deadline = time.monotonic() + START_SECONDS
    while not server.started:  # uvicorn says in no other way that it listens
        if not thread.is_alive() or time.monotonic() > deadline:
            raise UserError("the server did not start; the log tells more")
        time.sleep(LOOK_SECONDS)


def _protocol() -> Any:
    """Return uvicorn's protocol with bounds for strangers, the connections on which no request came yet that may call.

    Without them, connections that begin a request and never end it would keep everybody else out.
    """
    base: Any = AutoHTTPProtocol
    strangers: dict[Any, None] = {}  # in the order in which they came

    class Bounded(base):  # type: ignore[misc]  # which class it is depends on the packages that are installed
        app: Any  # what answers a request: `base` sets it

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            app: ASGIApp = self.app

            async def serve(scope: Scope, receive: Receive, send: Send) -> None:
                await app({**scope, guard.ADMIT: lambda: strangers.pop(self, None)}, receive, send)

            self.app = serve
            strangers[self] = None
            self.loop.call_later(STRANGER_SECONDS, self.end_stranger)
            if len(strangers) > MAX_STRANGERS:
                next(iter(strangers)).end_stranger()

        def connection_lost(self, error: Exception | None) -> None:
            strangers.pop(self, None)
            super().connection_lost(error)

        def end_stranger(self) -> None:
            if self in strangers:
                del strangers[self]
                self.transport.close()

    return Bounded
