"""A real browser before the window of a running daemon: what tests of its pages share.

    def test_a_page(browser: Any, daemon: Living) -> None:  # both of tests/live/conftest.py
        with visiting(browser, daemon.root) as visitor:
            visitor.go("/status")
            assert visitor.page.get_by_text("offline").is_visible()

At the end of each visit nothing may stand in the console, and no request may have gone elsewhere.
Where there is no browser these tests are skipped; with `BRAINIAC_BROWSER=1`, as CI sets it, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from brainiac.server.address import read_address
from brainiac.window.sessions import Sessions
from tests.support.living import CONFIG, Living, living, living_brain, places_of
from tests.support.pipeline import eventually

PATHS = (
    "/",
    "/ask",
    "/review",
    "/timeline",
    "/pages",
    "/search?q=script+heron",
    "/status",
    "/status?seen=1",
    "/share?text=A+heron",
    "/phone",
)  # the pages that need nothing, for the tests of every page
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
CLIENTS = Path(__file__).parent.parent.parent / ".venv/clients/node_modules"  # `make clients` puts them there
REQUIRED = "BRAINIAC_BROWSER"
SECONDS = 15.0
with_and_without_script = pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])


def missing(what: str) -> None:
    """Skip a test for want of something, or fail it where that was to be there."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{what}, and {REQUIRED} says that it is here")
    pytest.skip(f"{what}: the window is not tried")


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser, as Playwright knows it."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    if path is None:
        missing("no Chromium is installed (apt-get install chromium fonts-noto-core)")
    with sync_playwright() as playwright:
        # as root it has no sandbox of its own
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=[*arguments, "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def windowed(root: Path, config: str = CONFIG) -> Iterator[Living]:
    """Run a daemon on a brain, a new one where there is none; it serves its window."""
    if not root.exists():
        living_brain(root, config)
    with living(root) as one:
        eventually(lambda: bool(window_of(root)), "the window's address", SECONDS)
        yield one


def window_of(root: Path) -> str:
    """Return the address of the window of a brain; "" for none."""
    address = read_address(places_of(root).state)
    return address.window if address else ""


def login_link(root: Path) -> str:
    """Return a link that works once, as `brainiac open` makes it."""
    return f"{window_of(root)}/login?code={Sessions(places_of(root).state).new_code()}"


@dataclass
class Visitor:
    """A tab of a browser with a session of its own.

    Attributes:
        root: The brain.
        tab: Playwright's page.
        troubles: Errors of the console, and requests that went elsewhere.
        allowed: Parts of such texts that a test means.
    """

    root: Path
    tab: Any
    troubles: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    @property
    def page(self) -> Any:
        """Playwright's page, whole: after a click, a busy machine sends the next one in parts."""
        self.tab.wait_for_load_state()
        return self.tab

    def go(self, path: str = "/") -> Any:
        """Visit a page of the window."""
        return self.page.goto(window_of(self.root) + path)

    def send(self, text: str) -> None:
        """Write something into the box of Today, and send it."""
        self.page.get_by_label("Say or ask anything").fill(text)
        self.page.get_by_role("button", name="Send", exact=True).click()

    def text(self) -> str:
        """Return all words of the page."""
        return str(self.page.locator("main").inner_text())

    def await_text(self, words: str, *, reloads: bool = False) -> None:
        """Wait until words stand on the page, which a person without JavaScript reloads."""

        def has_come() -> bool:
            if reloads:
                self.page.reload()
            self.tab.wait_for_timeout(20)  # playwright works in this thread alone
            return words in self.text()

        try:
            eventually(has_come, words, SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}; there is {self.text()!r}") from None

    def check_access(self) -> None:
        """Assert that axe-core finds nothing serious, and that nothing is wider than the screen."""
        script = CLIENTS / "axe-core/axe.min.js"
        eventually(lambda: not self.page.locator(".htmx-request").count(), "the page is pale while it asks", SECONDS)
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{self.page.url} is {wide} pixels too wide"
        if not script.is_file():
            missing("axe-core is not installed (make clients)")
        self.page.evaluate(script.read_text("utf-8"))
        found = self.page.evaluate("axe.run().then((result) => result.violations)")
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert not serious, [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious]


@contextmanager
def visiting(browser: Any, root: Path, *, is_logged_in: bool = True, **options: Any) -> Iterator[Visitor]:
    """Open a tab with a session of its own; at its end nothing may have gone wrong in it.

    Args:
        browser: Of `chromium`.
        root: The brain; its daemon runs.
        is_logged_in: Whether it is logged in.
        options: Of Playwright's context: `java_script_enabled`, `viewport`, `color_scheme`.
    """
    with browser.new_context(**{"viewport": WIDE, **options}) as context:
        visitor = Visitor(root, context.new_page())
        visitor.tab.set_default_timeout(SECONDS * 1000)
        own = f"{window_of(root)}/"

        def see_request(request: Any) -> None:
            if not request.url.startswith((own, "data:")):
                visitor.troubles.append(f"a request to {request.url}")

        def see_message(message: Any) -> None:
            if message.type in ("error", "warning"):
                visitor.troubles.append(f"{message.text} ({message.location})")

        visitor.page.on("request", see_request)
        visitor.page.on("console", see_message)
        visitor.page.on("pageerror", lambda error: visitor.troubles.append(str(error)))
        if is_logged_in:
            visitor.page.goto(login_link(root))
        yield visitor
        troubles = [each for each in visitor.troubles if not any(part in each for part in visitor.allowed)]
        assert not troubles, troubles
