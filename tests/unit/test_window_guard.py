"""Who may look through the window: each attempt on its own port of loopback, sent over real HTTP."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

import brainiac.window
from brainiac.server.address import read_address
from brainiac.server.app import serving
from brainiac.window.sessions import CODE_SECONDS, SESSION_SECONDS, Sessions
from tests.support.models import make_brain
from tests.support.served import Reply, Served, served

EVIL = "http://evil.example"
NAMED = ("/run?event=x", "/why?name=Portland", "/wrong?name=Portland", "/forget?name=Portland")
PATHS = ("/", "/review", "/timeline", "/status", *NAMED, "/live", "/nothing")
BY_HAND = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@dataclass
class Caller:
    """Somebody who sends requests to the window of a served brain, with the cookies that they were given."""

    server: Served
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        address = read_address(self.server.brain.places.state)
        assert address is not None
        return urlsplit(address.window).netloc

    def send(self, method: str, path: str, form: Mapping[str, str] | bytes | None = None, /, **headers: str) -> Reply:
        """Send one request; `Host` and the headers in the place of a form's own can be given, with `_` for `-`."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = form if isinstance(form, bytes) or form is None else urlencode(form).encode()
        if form is not None:
            given.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        is_stream = "event-stream" in (answer.getheader("content-type") or "")
        reply = Reply(
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            b"" if is_stream else answer.read(),
        )
        connection.close()
        return reply

    def own(self) -> dict[str, str]:
        """Return the header of a form of the window's own pages."""
        return {"Origin": f"http://{self.address}"}

    def log_in(self) -> Caller:
        """Follow a link as `brainiac open` has it opened."""
        code = self.sessions.new_code()
        headers = {name.replace("-", "_"): value for name, value in BY_HAND.items()}
        assert 303 == self.send("GET", f"/login?code={code}", **headers).status
        return self

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.server.brain.places.state)

    def token(self) -> str:
        """Return the token of this session's forms, from a page."""
        found = re.search(rb'name="token" value="([0-9a-f]+)"', self.send("GET", "/").raw)
        assert found
        return found[1].decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all attempts: none of them changes anything."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(tmp_path_factory.mktemp("machine")))
        with served(tmp_path_factory.mktemp("served")) as server:
            yield server


@pytest.fixture
def stranger(server: Served) -> Caller:
    return Caller(server)


@pytest.fixture
def visitor(server: Served) -> Caller:
    return Caller(server).log_in()


@pytest.mark.parametrize("path", PATHS)
def test_without_a_login_there_is_a_page_that_says_how(stranger: Caller, path: str) -> None:
    """Whatever is asked for, nothing of the brain is on it, also with a token of the doors."""
    doors = {"Authorization": f"Bearer {stranger.server.token}"}
    mine = stranger.server.mine
    guessed = {"Cookie": f"{stranger.sessions.cookie}=guessed"}
    for headers in ({}, doors, mine, guessed):
        reply = stranger.send("GET", path, **headers)
        assert (401, "text/html; charset=utf-8") == (reply.status, reply.headers["content-type"])
        assert b"brainiac open" in reply.raw
        assert b"Portland" not in reply.raw
        assert stranger.server.brain.root.name.encode() not in reply.raw


def test_every_answer_has_a_strict_policy(stranger: Caller, visitor: Caller) -> None:
    """Pages, refusals and files: nothing from elsewhere, no script in a page, no frame, no form to another place."""
    for caller, path in ((stranger, "/"), (visitor, "/"), (visitor, "/nothing"), (stranger, "/static/window.css")):
        headers = caller.send("GET", path).headers
        policy = headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'"):
            assert part in policy
        assert "unsafe" not in policy
        assert ("same-origin", "nosniff") == (headers["referrer-policy"], headers["x-content-type-options"])
        assert "access-control-allow-origin" not in headers


def test_a_name_that_was_rebound_to_this_machine_is_refused(visitor: Caller) -> None:
    """Also with a session, and on a file that needs none."""
    port = visitor.address.rpartition(":")[2]
    for host in (f"evil.example:{port}", "127.0.0.1.evil.example", f"evil.example@127.0.0.1:{port}", ""):
        for path in ("/", "/login?code=x", "/static/window.css"):
            assert 421 == visitor.send("GET", path, Host=host).status
    assert 200 == visitor.send("GET", "/", Host=f"localhost:{port}").status


def test_another_page_reads_nothing(visitor: Caller) -> None:
    """Its scripts, frames and pictures are refused; a link that a person follows there opens the window."""
    foreign = {"Sec_Fetch_Site": "cross-site"}
    for mode, destination in (("cors", "empty"), ("no-cors", "image"), ("navigate", "iframe")):
        reply = visitor.send("GET", "/", **foreign, Sec_Fetch_Mode=mode, Sec_Fetch_Dest=destination)
        assert 403 == reply.status
    assert 403 == visitor.send("GET", "/", Origin=EVIL).status
    assert 403 == visitor.send("GET", "/live", Origin="null").status
    assert 200 == visitor.send("GET", "/", **foreign, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document").status


def test_another_page_changes_nothing(visitor: Caller) -> None:
    """A form from elsewhere is refused even with the right token; one from here without it; and one that is no form."""
    brain, token = visitor.server.brain, visitor.token()
    before, inbox = brain.journal.last(), sorted(os.listdir(brain.tree.inbox))
    other = Caller(visitor.server).log_in().token()
    form = {"text": "I live in Oslo.", "token": token}
    own, site = visitor.own(), {"Sec_Fetch_Site": "same-origin"}
    attempts: list[tuple[dict[str, str] | bytes, dict[str, str]]] = [
        (form, {}),  # from no page
        (form, {"Origin": EVIL}),
        (form, {"Origin": "null"}),
        (form, {"Origin": EVIL, **site}),
        (form, {"Origin": "http://127.0.0.1:1"}),
        (form, {**own, "Sec_Fetch_Site": "cross-site"}),
        (form, {**own, "Sec_Fetch_Site": "same-site"}),
        (form, {"Sec_Fetch_Site": "none"}),
        (form | {"token": ""}, own),
        (form | {"token": other}, own),
        (form | {"token": "é"}, own),
        (urlencode(form).encode(), {**own, "Content_Type": "text/plain"}),
        (b'{"text": "I live in Oslo."}', {**own, "Content_Type": "application/json"}),
    ]
    for body, headers in attempts:
        for name in ("ask", "undo", "forget", "nothing"):
            assert 403 == visitor.send("POST", f"/do/{name}", body, **headers).status, headers
    assert 403 == visitor.send("POST", "/logout", {"token": other}, **own).status
    assert 401 == Caller(visitor.server).send("POST", "/do/ask", form, **own).status
    assert 405 == visitor.send("GET", "/do/ask?text=I+live+in+Oslo").status
    assert (before, inbox) == (brain.journal.last(), sorted(os.listdir(brain.tree.inbox)))
    assert 200 == visitor.send("GET", "/").status


def test_a_form_that_is_too_large_is_not_read(visitor: Caller) -> None:
    """And the server goes on."""
    body = b"text=" + b"x" * 4_100_000
    with suppress(OSError):  # it was closed while it was sent
        assert 413 == visitor.send("POST", "/do/ask", body, **visitor.own()).status
    assert 200 == visitor.send("GET", "/").status


def test_a_form_leads_back_to_a_page_of_the_window_alone(visitor: Caller) -> None:
    """Wherever it says that it stood, and with what was given there."""
    form = {"token": visitor.token(), "what": "nothing-of-that-name"}
    for back, place in (
        ("//evil.example/", "/"),
        (f"{EVIL}/status", "/status"),
        ("/status?a=b", "/status"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/login?code=x", "/"),
    ):
        reply = visitor.send("POST", "/do/undo", form | {"back": back}, **visitor.own())
        assert (303, place) == (reply.status, reply.headers["location"].partition("?")[0])


def test_a_link_works_once_and_not_for_one_who_only_looks(stranger: Caller) -> None:
    """A prefetcher, a program that previews links, and a link on another page get a button; it is not used up."""
    path = f"/login?code={stranger.sessions.new_code()}"
    by_hand = {name.replace("-", "_"): value for name, value in BY_HAND.items()}
    looking = [
        {},
        {"Sec_Purpose": "prefetch;prerender", **by_hand},
        {"Purpose": "prefetch", **by_hand},
        {**by_hand, "Sec_Fetch_Site": "cross-site"},
    ]
    for headers in looking:
        reply = stranger.send("GET", path, **headers)
        assert (200, False) == (reply.status, "set-cookie" in reply.headers)
        assert b"Log in here" in reply.raw
    assert 200 == stranger.send("HEAD", path, **by_hand).status
    code = {"code": path.partition("=")[2]}
    assert 403 == stranger.send("POST", "/login", code, Origin=EVIL).status
    assert {} == stranger.cookies
    reply = stranger.send("POST", "/login", code, **stranger.own())
    assert (303, "/") == (reply.status, reply.headers["location"])
    assert all(part in reply.headers["set-cookie"].lower() for part in ("httponly", "samesite=lax", "path=/"))
    assert 200 == stranger.send("GET", "/").status
    for other in (Caller(stranger.server).send("GET", path, **by_hand), stranger.send("GET", path, **by_hand)):
        assert 403 == other.status
        assert b"used already" in other.raw
    assert 403 == stranger.send("GET", "/login", **by_hand).status


def test_links_and_sessions_run_out(stranger: Caller) -> None:
    """A link after ten minutes, a session after thirty days without a visit; a visit renews it."""
    sessions, folder = stranger.sessions, stranger.server.brain.places.state / "window"

    def age(kind: str, seconds: float) -> None:
        for file in folder.glob(f"{kind}-*"):
            os.utime(file, (file.stat().st_atime - seconds, file.stat().st_mtime - seconds))

    code = sessions.new_code()
    age("code", CODE_SECONDS + 1)
    assert "" == sessions.begin(code)
    stranger.log_in()
    age("session", SESSION_SECONDS - 60)
    assert 200 == stranger.send("GET", "/").status
    age("session", SESSION_SECONDS - 60)
    assert 200 == stranger.send("GET", "/").status
    age("session", SESSION_SECONDS + 60)
    assert 401 == stranger.send("GET", "/").status
    sessions.new_code()
    assert [] == list(folder.glob("session-*"))


def test_what_the_state_folder_keeps_opens_nothing(visitor: Caller) -> None:
    """Hashes in files of this user alone: not the link, not the cookie."""
    code, folder = visitor.sessions.new_code(), visitor.server.brain.places.state / "window"
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    kept = "\n".join(f"{file.name} {file.read_text()}" for file in folder.iterdir())
    secrets = [code, *visitor.cookies.values()]
    assert not any(secret in kept for secret in secrets)
    names = [file.name.partition("-")[2] for file in folder.glob("session-*")]
    for name in names:
        assert 401 == Caller(visitor.server, {visitor.sessions.cookie: name}).send("GET", "/").status


def test_logging_out_ends_this_session_alone(visitor: Caller) -> None:
    """The cookie is of no use any more, whoever kept it."""
    other, kept = Caller(visitor.server).log_in(), dict(visitor.cookies)
    reply = visitor.send("POST", "/logout", {"token": visitor.token()}, **visitor.own())
    assert 303 == reply.status
    assert 401 == Caller(visitor.server, kept).send("GET", "/").status
    assert 200 == other.send("GET", "/").status


def test_window_and_doors_keep_apart(visitor: Caller) -> None:
    """The window's port has no door, also with the token; a session opens no door."""
    server = visitor.server
    token = {"Authorization": f"Bearer {server.token}"}
    for path in ("/api/status", "/api/search", "/mcp", "/v1/models"):
        assert 401 == Caller(server).send("GET", path, **token).status
        assert 404 == visitor.send("GET", path, **token).status
    cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())}
    assert 401 == server.send("GET", "/api/status", headers=cookies, is_authorized=False).status
    assert 404 == server.send("GET", "/status").status


@pytest.mark.parametrize("path", ["/static/../sessions.py", "/static/%2e%2e/sessions.py", "/vendored//etc/passwd"])
def test_only_the_files_of_the_window_are_given_out(stranger: Caller, path: str) -> None:
    """Nothing above their folders."""
    assert 404 == stranger.send("GET", path).status


def test_what_others_wrote_is_what_was_published() -> None:
    """Each vendored file has its licence and the hash that stands beside it."""
    folder = Path(brainiac.window.__file__).parent / "vendored"
    told = (folder / "README.md").read_text()
    files = [file for file in folder.iterdir() if file.suffix == ".js"]
    assert files
    for file in files:
        assert f"| `{file.name}` |" in told
        assert hashlib.sha256(file.read_bytes()).hexdigest() in told
        assert (folder / f"{file.name.partition('-')[0]}.LICENSE").is_file()
    own = (folder.parent / "static").glob("*.js")
    assert sum(file.stat().st_size for file in own) <= 10_000


def test_a_session_and_the_address_outlive_a_restart(tmp_path: Path) -> None:
    """The same port, the same cookie; and two brains of one machine do not log each other out."""
    brain, other = make_brain(tmp_path / "one"), make_brain(tmp_path / "two")
    one = Caller(Served(brain, 0))
    two = Caller(Served(other, 0))
    with serving(brain, print), serving(other, print):
        one.log_in()
        two.cookies |= one.cookies
        two.log_in()
        one.cookies |= two.cookies
        addresses = one.address, two.address
        assert (200, 200) == (one.send("GET", "/").status, two.send("GET", "/").status)
    with serving(brain, print), serving(other, print):
        assert addresses == (one.address, two.address)
        assert (200, 200) == (one.send("GET", "/").status, two.send("GET", "/").status)
    brain.close()
    other.close()


def test_a_machine_can_have_no_window(tmp_path: Path) -> None:
    """By `window: false` in its own settings, and where those cannot be read; a port that is taken is another one."""
    brain = make_brain(tmp_path / "brain")
    config = brain.places.config
    config.parent.mkdir(parents=True, exist_ok=True)
    for text, has_window in (("window: false\n", False), ("window: [\n", False), ("window: true\n", True)):
        config.write_text(text)
        with serving(brain, print):
            address = read_address(brain.places.state)
            assert address is not None
            assert has_window == bool(address.window)
    brain.close()
