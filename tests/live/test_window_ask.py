"""Ask, Status and what a phone needs of the window, in a real browser."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.browser import NARROW, visiting, window_of, windowed, with_and_without_script
from tests.support.living import Living, events_of, living_brain, model_machine
from tests.support.models import write_memory
from tests.support.openai_server import ChatServer, say


@with_and_without_script
def test_a_conversation_is_its_folder(browser: Any, daemon: Living, script: bool) -> None:
    """What is asked stands in one folder, each answer with the words it rests on, which can be put right; a new
    conversation has another folder, and the former one is a link.
    """
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/ask")
        visitor.send("Where do I live?")
        visitor.await_text("It rests on", reloads=not script)
        visitor.send("Since when do I live in Portland?")
        visitor.await_text("Since when", reloads=not script)
        folders = [path for path in (daemon.root / "inbox").iterdir() if path.is_dir() and path.name != "notes"]
        assert 1 == len(folders)
        assert 2 == len([path for path in folders[0].glob("*.md") if ".response" not in path.name])
        rests = visitor.page.locator("aside").first
        assert "User lives in Portland, since 2020." in rests.inner_text()
        assert ["why", "wrong", "forget"] == rests.get_by_role("link").all_inner_texts()[:3]
        visitor.page.get_by_role("link", name="a new conversation").click()
        assert "A new conversation" in visitor.text()
        assert not visitor.page.locator(".turn").count()
        visitor.page.get_by_role("link", name="Where do I live?").click()
        visitor.await_text("Since when")
        assert "Where do I live?" in visitor.text()
    assert 2 == len(events_of(daemon.root, "prompt-answered"))


@with_and_without_script
def test_status_shows_the_pipeline_the_models_and_what_one_saw(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: bool
) -> None:
    """Calls, tokens and money by purpose, the blocks of the last prompt, this device, and what waits."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with ChatServer() as model:
        model.default = lambda exchange: say(
            '{"queries": []}' if "JSON only" in exchange.request.text else "In Portland."
        )(exchange)
        model_machine(model.url)
        root = living_brain(
            tmp_path / "brain", "inbox: {settle_ms: 20}\nllm: {model: openai/m, prices: {openai/m: [50, 100]}}\n"
        )
        write_memory(root, "concrete/portland.md", "Portland", 1, "User lives in Portland, since 2020. ^f3k9")
        with windowed(root) as daemon, visiting(browser, root, java_script_enabled=script) as visitor:
            daemon.answer("one.md", "Where do I live?")
            daemon.wait_for_event("exchange-reflected")  # no row comes into the table while it is read
            visitor.go("/status")
            row = visitor.page.get_by_role("row").filter(has=visitor.page.get_by_role("rowheader", name="answer"))
            calls, tokens, usd = row.get_by_role("cell").all_inner_texts()
            assert 1 == int(calls)
            assert int(tokens) > 0
            assert float(usd) > 0
            assert 1 == visitor.page.locator("svg.days rect").count()
            total = visitor.page.get_by_role("row").filter(has=visitor.page.get_by_role("rowheader", name="total"))
            assert int(total.get_by_role("cell").first.inner_text()) >= 1
            month = f"{datetime.now(UTC):%Y-%m}"
            visitor.page.get_by_label("a month").fill(month)
            visitor.page.locator("#models").get_by_role("button", name="Show").click()
            assert month == visitor.page.get_by_label("a month").input_value()
            assert "Nothing waits." in visitor.text()
            assert "(this one) last heard of" in visitor.text()
            visitor.page.get_by_role("link", name="What a model sees").click()
            assert "Where do I live?" in visitor.text()
            visitor.page.get_by_text("long-term memory ·").click()
            assert "User lives in Portland, since 2020." in visitor.text()


@with_and_without_script
def test_what_another_app_shares_waits_for_a_button(browser: Any, daemon: Living, script: bool) -> None:
    """A phone finds the share target in the manifest; what is shared is kept only when the person says so, as a note
    or as a prompt; a page says what HTTPS needs.
    """
    with visiting(browser, daemon.root, java_script_enabled=script, viewport=NARROW) as visitor:
        visitor.go("/status")
        visitor.page.get_by_role("link", name="On a phone").click()
        assert "HTTPS" in visitor.text()
        assert window_of(daemon.root) in visitor.text()
        place = visitor.page.locator("link[rel=manifest]").get_attribute("href")
        target = visitor.page.request.get(window_of(daemon.root) + place).json()["share_target"]
        assert "GET" == target["method"]
        query = urlencode({target["params"]["title"]: "Herons", target["params"]["text"]: "Herons nest in March."})
        for button in ("Only remember it", "Send"):
            visitor.go(f"{target['action']}?{query}")
            assert "Herons\nHerons nest in March." == visitor.page.get_by_label("Say or ask anything").input_value()
            assert not events_of(daemon.root, "prompt-answered")
            visitor.page.get_by_role("button", name=button).click()
            visitor.await_text("Noted." if button != "Send" else "Herons nest in March.")
        daemon.wait_for_event("prompt-answered")
    assert 1 == len(list((daemon.root / "inbox/notes").glob("*.md")))
