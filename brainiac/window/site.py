"""The server's side of the window: who may visit, the pages and actions of the table, and the stream of what happens.

Checked are, in this order: `Host` (against DNS rebinding), where a request comes from (`Sec-Fetch-Site`, `Origin`), the
session, and of a form its token. A token of the doors opens nothing here, and a session opens no door. Every form is
POST, 303, whole page, with script and without.
"""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainiac.brain import Brain
from brainiac.errors import BrainiacError
from brainiac.server import guard
from brainiac.server.rest import STREAM_HEADERS, in_thread
from brainiac.window.frame import FOLDER, Action, Desk, Done, Page, Visit, templates
from brainiac.window.pages import ACTIONS, PAGES
from brainiac.window.sessions import SESSION_SECONDS
from brainiac.window.words import titled

MAX_FORM_BYTES = 4_000_000  # a prompt of a million characters, each of them escaped
LOOK_SECONDS = 0.1
KEEP_ALIVE_SECONDS = 15.0
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with `no-referrer` a browser sends forms with `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_OPEN_PATHS = ("/login", "/static/", "/vendored/")  # without a session


def window(brain: Brain, is_stopping: Callable[[], bool], hosts: Collection[str]) -> ASGIApp:
    """Return the window as an application.

    Args:
        brain: The daemon's.
        is_stopping: Returns whether the server is to end, and with it its streams.
        hosts: Names and addresses under which it is reached, without port.
    """
    site = _Site(brain, is_stopping)
    routes = [
        Route("/login", site.login, methods=["GET", "POST"]),
        Route("/logout", site.logout, methods=["POST"]),
        Route("/live", site.live),
        Route("/do/{name}", site.act, methods=["POST"]),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
        Mount("/vendored", StaticFiles(directory=FOLDER / "vendored")),
        *(Route(page.path, site.endpoint(page)) for page in PAGES),
    ]
    handlers: dict[Any, Any] = dict.fromkeys((404, 405, Exception, BrainiacError, guard.TooLargeError), site.on_error)
    app = GZipMiddleware(Starlette(routes=routes, exception_handlers=handlers), minimum_size=1_000)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        headers, is_open = Headers(scope=scope), scope["path"].startswith(_OPEN_PATHS)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = {"Cache-Control": "no-cache" if scope["path"].startswith(_OPEN_PATHS[1:]) else "no-store"}
                extra = [(name.lower().encode(), value.encode()) for name, value in (HEADERS | kept).items()]
                had = {name for name, _ in extra}
                message = {**message, "headers": [*(row for row in message["headers"] if row[0] not in had), *extra]}
            await send(message)

        session = Request(scope).cookies.get(site.desk.sessions.cookie, "")
        if guard.host_name(headers.get("host", "")) not in hosts:
            refused: Response | None = Response("This server is not called that.", 421)
        elif problem := _foreign(scope["method"], headers):
            refused = site.notice(problem, 403)
        elif not is_open and not await in_thread(site.desk.sessions.has, session):
            refused = site.notice("", 401)
        else:
            refused = None
            if not is_open and (admit := scope.get(guard.ADMIT)):
                admit()
        await (refused or app)({**scope, "brainiac.session": session}, receive, sending)

    return serve


def _foreign(method: str, headers: Headers) -> str:
    """Return why a request does not come from a page of this server, or from the person's own hand; "" where it does.

    What only reads may also follow a link of another page: it changes nothing, and no other page sees it.
    """
    site, origin = headers.get("sec-fetch-site", ""), headers.get("origin", "")
    host = headers.get("host", "")
    is_own = origin in (f"http://{host}", f"https://{host}")
    if len(headers.getlist("origin")) > 1 or (origin and not is_own):
        return "This comes from another page."
    if method in ("GET", "HEAD"):
        is_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        return "" if site in ("", "none", "same-origin") or is_link else "This comes from another page."
    if site not in ("", "same-origin") or not (site or is_own):
        return "This form is not one of this window."
    return ""


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        TooLargeError: It is too large.
    """
    raw = b""
    async for piece in request.stream():
        raw += piece
        if len(raw) > MAX_FORM_BYTES:
            raise guard.TooLargeError
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        return {}
    # a browser ends lines of a text field by two characters
    text = raw.decode("ascii", "replace")
    pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=100)
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


class _Site:
    """The endpoints.

    Args:
        brain: The daemon's.
        is_stopping: See `window`.
    """

    def __init__(self, brain: Brain, is_stopping: Callable[[], bool]) -> None:
        self.desk, self._is_stopping, self._templates = Desk(brain), is_stopping, templates()
        self._brain, self._listed = brain, [page for page in PAGES if page.is_listed]
        self._paths = {page.path for page in PAGES}

    def endpoint(self, page: Page) -> Callable[[Request], Any]:
        """Return the endpoint of a page."""

        async def serve(request: Request) -> Response:
            visit = self._visit(request, page.path, dict(request.query_params))
            response: Response = await in_thread(self._show, page, visit)
            return response

        return serve

    def _visit(self, request: Request, path: str, given: Mapping[str, str]) -> Visit:
        has_script = "hx-request" in request.headers
        return Visit(self._brain, self.desk, path, given, request.scope["brainiac.session"], has_script)

    def _show(self, page: Page, visit: Visit) -> Response:
        said = self.desk.message(visit.given.get("said", ""))
        # asked for before the page is read: what happens meanwhile is told by the stream
        after = self._brain.journal.last()[0]
        return self._html(page.template, visit, 200, said=said, page=page, after=after, **page.values(visit))

    def _html(self, template: str, visit: Visit, status: int, **values: Any) -> Response:
        query = {name: value for name, value in visit.given.items() if name != "said"}
        here = visit.path + (f"?{urlencode(query)}" if query else "")
        given: dict[str, Any] = {"here": here, "listed": self._listed, "now": visit.now}
        given["brain_name"], given["reading"] = self._brain.root.name, self._reading()
        # the page that a form stood on before it asked more
        came_from = visit.given.get("from", "")
        given["came_from"] = came_from if urlsplit(came_from).path in self._paths and came_from[1:2] != "/" else ""
        given["titled"] = partial(titled, title_of=self._title_of)
        given["token"] = self.desk.sessions.form_token(visit.session)
        return HTMLResponse(self._templates.get_template(template).render(given | values), status)

    def _reading(self) -> int:
        """Return how many files search has still to read, as at a first start; -1 while the daemon starts."""
        return (self._brain.recall.n_unread or 0) if self._brain.is_watched else -1

    def _title_of(self, path: str) -> str:
        page = self._brain.recall.heads([path]).get(path)
        return page.title or posixpath.basename(path) if page else ""

    def notice(self, problem: str, status: int, code: str = "") -> Response:
        """Return a page for somebody who is not logged in, or whose request was refused.

        Args:
            problem: What is wrong; "" for nothing but that.
            status: Of HTTP.
            code: Of a link that is still to be used.
        """
        values = {"problem": problem, "code": code, "is_login": status < 400, "is_closed": status in (401, 403)}
        return HTMLResponse(self._templates.get_template("notice.html").render(values), status)

    async def on_error(self, request: Request, error: Exception) -> Response:
        """Return the page for an error."""
        if (status := getattr(error, "status_code", 0)) in (404, 405):
            return self.notice("There is no such page.", status)
        message, status = guard.message_and_status(error)
        if status == 500:
            self._brain.log.error("request_failed", path=request.url.path, exc_info=error)
        return self.notice(message, status)

    async def login(self, request: Request) -> Response:
        """Begin a session by a link that works once.

        A program that only looks at a link must not use it up: that takes a press of a button, unless the person opened
        it by hand, as `brainiac open` does.
        """
        headers, is_form = request.headers, request.method == "POST"
        code = (await _form(request) if is_form else request.query_params).get("code", "")
        is_by_hand = headers.get("sec-fetch-site") == "none" and headers.get("sec-fetch-mode") == "navigate"
        is_ahead = "sec-purpose" in headers or "purpose" in headers
        if not (is_form or (request.method == "GET" and is_by_hand and not is_ahead)):
            return self.notice("", 200, code)
        session = await in_thread(self.desk.sessions.begin, code)
        if not session:
            return self.notice("This link was used already, or has run out.", 403)
        response = RedirectResponse("/", 303)
        # `lax`: a link on another page opens the window; what changes something is refused from there all the same
        response.set_cookie(
            self.desk.sessions.cookie, session, int(SESSION_SECONDS), httponly=True, samesite="lax", path="/"
        )
        return response

    async def _given(self, request: Request) -> dict[str, str] | None:
        """Return the fields of a form of this session; None for a form without its token."""
        given, token = await _form(request), self.desk.sessions.form_token(request.scope["brainiac.session"])
        return given if guard.is_same(given.pop("token", ""), token) else None

    async def logout(self, request: Request) -> Response:
        """End the session."""
        if await self._given(request) is None:
            return self.notice("This form has no valid token; reload the page.", 403)
        await in_thread(self.desk.sessions.end, request.scope["brainiac.session"])
        response = RedirectResponse("/", 303)
        response.delete_cookie(self.desk.sessions.cookie)
        return response

    async def act(self, request: Request) -> Response:
        """Carry out an action, and lead back to the page of its form."""
        given, action = await self._given(request), ACTIONS.get(request.path_params["name"])
        if given is None or action is None:
            return self.notice("This form has no valid token; reload the page.", 403)
        back = urlsplit(given.pop("back", "/"))
        path = back.path if back.path in self._paths else "/"  # never to another site
        anchor = f"#{quote(given.pop('anchor', ''))}".rstrip("#")  # where on the page the form stood
        done = await in_thread(self._carry_out, action, self._visit(request, path, given))
        query = dict(parse_qsl(back.query)) if path == back.path else {}
        to = urlsplit(done.to or ("" if done.is_problem else given.get("from", "")))
        if to.path in self._paths:
            path, query, anchor = to.path, dict(parse_qsl(to.query)), ""
        if done.message:
            query["said"] = self.desk.keep(done)
        return RedirectResponse(path + (f"?{urlencode(query)}" if query else "") + anchor, 303)

    def _carry_out(self, action: Action, visit: Visit) -> Done:
        try:
            return action(visit)
        except BrainiacError as error:
            return Done(guard.message_and_status(error)[0], is_problem=True, draft=visit.given)

    async def live(self, request: Request) -> Response:
        """Return the stream of what happens: that something changed, never what; and an answer as it comes."""
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else None
        seq = self._brain.journal.last()[0] if number is None else number
        session = request.scope["brainiac.session"]
        return StreamingResponse(self._happening(seq, session), 200, STREAM_HEADERS, "text/event-stream")

    async def _happening(self, seq: int, session: str) -> AsyncIterator[str]:
        yield "retry: 500\n\n"
        sent: dict[str, tuple[int, bool]] = {}
        silent_seconds, was_reading = 0.0, bool(self._reading())
        while not self._is_stopping() and await in_thread(self.desk.sessions.has, session):
            pieces = []
            for answer in list(self.desk.answers.values()):
                state = len(answer.text), answer.done.is_set()
                if state != sent.setdefault(answer.prompt, (0, state[1])):
                    sent[answer.prompt] = state
                    data = json.dumps({"prompt": answer.prompt, "text": answer.text})
                    pieces.append(f"event: answer\ndata: {data}\n\n")
                    if state[1]:  # a problem is in no journal
                        pieces.append(f"event: changed\ndata: {seq}\n\n")
            last, is_reading = (await in_thread(self._brain.journal.last))[0], bool(self._reading())
            if (last, is_reading) != (seq, was_reading):
                seq, was_reading = last, is_reading
                pieces.append(f"id: {seq}\nevent: changed\ndata: {seq}\n\n")
            for piece in pieces:
                yield piece
            silent_seconds = 0.0 if pieces else silent_seconds + LOOK_SECONDS
            if silent_seconds > KEEP_ALIVE_SECONDS:
                silent_seconds = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(LOOK_SECONDS)
