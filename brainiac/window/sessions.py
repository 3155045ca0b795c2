"""Who is logged in to a brain's window: links that work once, and the sessions of browsers, in the state folder.

Each is an empty file named by a hash, so that what is read there opens nothing, a link is used once however many try,
and sessions outlive a restart. Only the standard library is imported: `brainiac open` makes a link without a server.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

CODE_SECONDS = 600.0
SESSION_SECONDS = 30 * 86_400.0  # since the last visit
RENEW_SECONDS = 3_600.0  # how exactly that is known
_SECONDS = {"code": CODE_SECONDS, "session": SESSION_SECONDS}


class Sessions:
    """The links and sessions of one brain; thread-safe, and so are several processes.

    Args:
        state: The brain's state folder.

    Attributes:
        cookie: The name of the cookie: a browser sends cookies to all ports of a machine, and so to other brains.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / "window"
        self.cookie = "brainiac_" + hashlib.sha256(os.fsencode(state)).hexdigest()[:12]

    def new_code(self) -> str:
        """Return a new code for a link, which works once within `CODE_SECONDS`; what has run out is removed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for kind in _SECONDS:
            for file in self._folder.glob(f"{kind}-*"):
                if not self._is_valid(file, kind):
                    file.unlink(missing_ok=True)
        return self._new("code")

    def begin(self, code: str) -> str:
        """Return a new session for a code; "" for one that was used, has run out, or never was."""
        file = self._file("code", code)
        if not self._is_valid(file, "code"):
            return ""
        try:
            file.unlink()  # of several that try at once, one succeeds
        except FileNotFoundError:
            return ""
        return self._new("session")

    def has(self, session: str) -> bool:
        """Return whether a session is open; a visit renews it."""
        file = self._file("session", session)
        if not session or not self._is_valid(file, "session"):
            return False
        with suppress(FileNotFoundError):  # it was ended this moment
            if time.time() - file.stat().st_mtime > RENEW_SECONDS:
                os.utime(file)
        return True

    def end(self, session: str) -> None:
        """End a session."""
        self._file("session", session).unlink(missing_ok=True)

    def form_token(self, session: str) -> str:
        """Return what a form of this session carries: another page can send the cookie along, but not know this."""
        return hmac.new(session.encode("utf-8", "replace"), b"form", "sha256").hexdigest()[:32]

    def remember(self, name: str, value: str) -> None:
        """Keep a value for later runs, such as the port or what was looked at last."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._folder / f".{name}-{secrets.token_hex(8)}"
        aside.write_text(value, "utf-8")
        os.replace(aside, self._folder / name)

    def remembered(self, name: str) -> str:
        """Return a value that was kept; "" for none."""
        try:
            return (self._folder / name).read_text("utf-8")
        except (OSError, ValueError):
            return ""

    def _new(self, kind: str) -> str:
        secret = secrets.token_urlsafe(32)
        os.close(os.open(self._file(kind, secret), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return secret

    def _file(self, kind: str, secret: str) -> Path:
        return self._folder / f"{kind}-{hashlib.sha256(secret.encode('utf-8', 'replace')).hexdigest()}"

    def _is_valid(self, file: Path, kind: str) -> bool:
        try:
            return time.time() - file.stat().st_mtime < _SECONDS[kind]
        except FileNotFoundError:
            return False
