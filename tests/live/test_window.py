"""The window in a real browser before a running daemon: with JavaScript and without, wide and narrow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.events import StatementCorrected
from brainiac.testing import door
from tests.support.browser import (
    NARROW,
    PATHS,
    SECONDS,
    WIDE,
    login_link,
    visiting,
    window_of,
    windowed,
    with_and_without_script,
)
from tests.support.commands import Shell
from tests.support.living import Living, events_of, living, living_brain, model_machine, places_of
from tests.support.models import write_memory
from tests.support.openai_server import ChatServer, say, status
from tests.support.pipeline import eventually

PORTLAND = "memory/long_term/concrete/portland.md"


def is_in_sight(place: Any) -> bool:
    """Return whether something stands where a person sees it without scrolling."""
    box, size = place.bounding_box(), place.page.viewport_size
    return bool(0 <= box["y"] <= size["height"] - box["height"])


@with_and_without_script
def test_what_is_written_is_a_prompt_like_any_other(browser: Any, daemon: Living, script: bool) -> None:
    """It is a file in the inbox; the answer comes to the page with what it rests on, each with why, wrong, forget."""
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go()
        visitor.send("Where do I live?")
        visitor.await_text("It rests on", reloads=not script)
        prompts = [path for path in (daemon.root / "inbox").glob("*.md") if ".response" not in path.name]
        assert ["Where do I live?\n"] == [path.read_text() for path in prompts]
        assert "Where do I live?" in visitor.text()
        assert "" == visitor.page.get_by_label("Say or ask anything").input_value()
        visitor.page.get_by_text("It rests on").click()
        receipt = visitor.page.locator("article .rows").first
        assert ["why", "wrong", "forget"] == receipt.get_by_role("link").all_inner_texts()
        receipt.get_by_role("link", name="why").click()
        assert "User lives in Portland, since 2020." in visitor.text()
        visitor.go("/")
        visitor.page.reload()  # a form that is sent twice asks once
    assert 1 == len(events_of(daemon.root, "prompt-answered"))


@with_and_without_script
def test_what_happened_can_be_taken_back_and_back_again(browser: Any, daemon: Living, script: bool) -> None:
    """A wrong statement is put right on the page; the change stands under what happened; undo, and undo of that."""
    text, (first, second) = daemon.root / PORTLAND, ("in Portland", "in Oslo")
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/wrong?name=memory/long_term/concrete/portland.md%23%5Ef3k9")
        visitor.page.get_by_label("What is so instead").fill("User lives in Oslo.")
        visitor.page.get_by_role("button", name="Put right").click()
        visitor.await_text("“User lives in Portland, since 2020.” → “User lives in Oslo.”")
        assert second in text.read_text().partition("## History")[0]
        row = visitor.page.locator(".rows li.changed")
        assert "User lives in Oslo." in row.inner_text()
        row.get_by_role("button", name="undo").click()
        visitor.await_text("Taken back: Portland → put right by you: “User lives in Portland, since 2020.” →")
        assert visitor.page.url.endswith("#h-happened") or script
        assert is_in_sight(visitor.page.locator(".told"))
        assert first in text.read_text().partition("## History")[0]
        visitor.page.get_by_role("button", name="bring it back: that").click()
        visitor.await_text("Brought back: Portland → put right by you")
        eventually(lambda: second in text.read_text().partition("## History")[0], "the undo undone", SECONDS)
    kinds = [event.kind for event in events_of(daemon.root, StatementCorrected.kind, "event-undone")]
    assert ["statement-corrected", "event-undone", "event-undone"] == kinds


@with_and_without_script
def test_forgetting_shows_its_plan_first(browser: Any, daemon: Living, script: bool) -> None:
    """Nothing is gone until the button is pressed; it stands then among what waits, with its undo."""
    page = daemon.root / PORTLAND
    ended = "- ~~User lived in Salem.~~ (2019-01-01 – 2020-01-01; replaced by ^f3k9) ^s1s1\n"
    page.write_text(f"{page.read_text()}\n## History\n{ended}")
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/forget?name=memory/long_term/concrete/portland.md")
        assert "User lived in Salem." in visitor.text()
        assert "replaced by" not in visitor.text()
        assert "User lives in Portland, since 2020. Portland" in visitor.text()
        assert (daemon.root / PORTLAND).exists()
        visitor.page.get_by_role("button", name="Take it out").click()
        visitor.await_text("Forgotten.")
        assert not (daemon.root / PORTLAND).exists()
        visitor.page.locator(".waiting").get_by_role("button", name="undo").click()
        eventually((daemon.root / PORTLAND).exists, "the page", SECONDS)


@with_and_without_script
def test_a_task_can_be_ticked_and_forgotten(browser: Any, daemon: Living, script: bool) -> None:
    """It has no name but its words; one that is overdue says so, and stands before the one that has no day."""
    short_term = daemon.root / "memory/short_term.md"
    daemon.answer("one.md", "/todo buy stamps")
    daemon.answer("two.md", "/todo call the dentist by 2020-01-01")
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        eventually(lambda: "dentist" in short_term.read_text(), "the task", SECONDS)
        visitor.go()
        late, other = (
            visitor.page.locator("section", has=visitor.page.get_by_role("heading", name=name))
            for name in ("Overdue", "Some day")
        )
        assert "dentist" in late.inner_text()
        assert 0 == late.get_by_role("link", name="wrong").count()
        other.get_by_role("button", name="done: buy stamps").click()
        visitor.await_text("Done: “buy stamps”")
        assert is_in_sight(visitor.page.locator(".told"))
        assert "[x] buy stamps" in short_term.read_text()
        visitor.go("/timeline")
        assert "edited by you in the window" in visitor.text()
        visitor.go("/")
        late.get_by_role("link", name="forget: call the dentist").click()
        visitor.page.get_by_role("button", name="Take it out").click()
        visitor.await_text("Forgotten.")
    assert "dentist" not in short_term.read_text()


@with_and_without_script
@pytest.mark.parametrize("answer", ["yes", "no"])
def test_what_waits_is_decided_on_the_page(browser: Any, daemon: Living, script: bool, answer: str) -> None:
    """As by a tick in `memory/review.md`: done once, or left, and asked no more."""
    brain = Brain(daemon.root)
    door(brain, "suggest", id=f"{PORTLAND}#^f3k9", change="replace", text="User lives in Oslo.")
    brain.close()
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go()
        assert "Replace “User lives in Portland, since 2020.” by “User lives in Oslo.”" in visitor.text()
        said = {"yes": "yes, write it", "no": "no, leave it"}[answer]
        visitor.page.locator(".waiting").get_by_role("button", name=said).click()
        visitor.await_text("Done." if answer == "yes" else "Left as it is.")
        assert 0 == visitor.page.locator(".waiting").count()
    decided = daemon.wait_for_event("proposal-decided")
    assert ("applied" if answer == "yes" else "declined") == decided.data["how"]
    assert (answer == "yes") == ("in Oslo" in (daemon.root / PORTLAND).read_text())


def test_what_waits_stands_above_the_answers_of_the_day(browser: Any, daemon: Living) -> None:
    """Only what was answered a moment ago stands above it; on a phone every page can be reached at once."""
    for number in range(2):
        daemon.answer(f"{number}.md", f"I saw heron number {number}.")
    brain = Brain(daemon.root)
    door(brain, "suggest", id=f"{PORTLAND}#^f3k9", change="replace", text="User lives in Oslo.")
    brain.close()
    with visiting(browser, daemon.root, viewport=NARROW) as visitor:
        visitor.go()
        heads = visitor.page.locator("h2").all_inner_texts()
        assert ["Answer", "Waits for you 1", "Answers"] == heads[:3]
        place = visitor.page.get_by_role("link", name="Status").bounding_box()
        assert place["x"] + place["width"] <= NARROW["width"]


def test_a_first_start_on_many_pages_is_shown_at_once(browser: Any, tmp_path: Path) -> None:
    """Pages say that memory is still being read, and cease to by themselves; then all is found."""
    root = living_brain(tmp_path / "many")
    folder = root / "memory/long_term/concrete"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(3000):
        (folder / f"{number}.md").write_text(f"# Heron {number}\n\n- User saw heron number {number}. ^h{number:04}\n")
    with living(root, is_awaited=False):
        eventually(lambda: bool(window_of(root)), "the window's address", SECONDS)
        with visiting(browser, root) as visitor:
            told = visitor.page.locator(".told")
            assert told.filter(has_text=re.compile("has just started|is being read")).count() == 1
            for path in ("/status", "/pages", "/search?q=heron"):
                assert 200 == visitor.go(path).status
            visitor.go()
            eventually(lambda: visitor.page.wait_for_timeout(20) or not told.count(), "the end of it", 60)
            visitor.go("/search?q=heron+2999")
            visitor.await_text("User saw heron number 2999.")


def test_what_was_seen_is_told_no_more(browser: Any, daemon: Living) -> None:
    """After a press of a button, never by a look alone; what comes later is told."""
    daemon.answer("one.md", "I have a heron.")
    with visiting(browser, daemon.root) as visitor:
        for _ in range(2):
            visitor.go()
            assert "I have a heron." in visitor.page.locator("section", has_text="These days").inner_text()
        visitor.page.get_by_role("button", name="I have seen all this").click()
        visitor.await_text("Nothing new.")
        daemon.answer("two.md", "I have a boat.")
        since = visitor.page.locator("section", has_text="Since you looked")
        since.get_by_text("I have a boat.").wait_for()  # without a reload
        assert "heron" not in since.inner_text()


def test_an_answer_streams_in_and_half_typed_words_stay(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Piece by piece while the model writes, in two tabs; a second question that is being typed stays as it is."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    goes_on = threading.Event()

    def slowly(exchange: Any) -> None:
        if "JSON only" in exchange.request.text:
            say('{"queries": []}')(exchange)
            return
        exchange.start()
        exchange.chunk({"role": "assistant", "content": "Your heron "})
        goes_on.wait(SECONDS)
        exchange.chunk({"content": "is called <b>Ada</b>."})
        exchange.chunk({}, "stop")
        exchange.usage((10, 10))
        exchange.done()

    with ChatServer() as model:
        model.default = slowly
        model_machine(model.url)
        root = living_brain(tmp_path / "brain", "inbox: {settle_ms: 20}\nllm: {model: openai/m}\n")
        with windowed(root), visiting(browser, root) as visitor:
            visitor.go()
            other = visitor.page.context.new_page()
            other.goto(f"{window_of(root)}/")
            visitor.send("What is my heron called?")
            visitor.page.locator(".coming", has_text="Your heron").wait_for()
            other.locator(".coming", has_text="Your heron").wait_for()
            visitor.page.get_by_label("Say or ask anything").fill("And my b")
            goes_on.set()
            visitor.await_text("Your heron is called <b>Ada</b>.")
            other.get_by_text("is called <b>Ada</b>.").wait_for()
            assert "And my b" == visitor.page.get_by_label("Say or ask anything").input_value()
            visitor.page.get_by_label("Say or ask anything").press("Control+Enter")
            visitor.await_text("And my b\n")


def test_a_model_that_fails_is_told_with_a_way_on(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason stands beside the question, among what waits too, and a button asks again."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with ChatServer() as model:
        model.default = status(401, "wrong key")
        model_machine(model.url)
        root = living_brain(tmp_path / "brain", "inbox: {settle_ms: 20}\nllm: {model: openai/m}\n")
        with windowed(root), visiting(browser, root) as visitor:
            visitor.go()
            visitor.send("What is my heron called?")
            visitor.page.locator(".problem").wait_for()
            model.default = lambda exchange: say(
                '{"queries": []}' if "JSON only" in exchange.request.text else "Your heron is called Ada."
            )(exchange)
            visitor.page.locator("article").get_by_role("button", name="ask again").click()
            visitor.page.locator("article").get_by_text("Your heron is called Ada.").wait_for()


# --- every page ----------------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>document.title='owned'</script><img src=http://evil.example/a.png onerror=\"document.title='owned'\">"
    " [click](javascript:document.title='owned') [x](data:text/html,<script>1</script>) <javascript:alert(1)>"
    " ![p](http://evil.example/p.png) </textarea></title></script> \u202egnp.exe {{ 7 * 7 }} {% raw %}"
    ' " onfocus="document.title=\'owned\'" autofocus="'
)
NAMED = ("/why?name={}", "/wrong?name={}", "/forget?name={}")
OF_PAGES = ("/page?name={}", "/page?edit=all&name={}", "/near?name={}")


@with_and_without_script
def test_a_hostile_memory_does_nothing_on_any_page(browser: Any, tmp_path: Path, script: bool) -> None:
    """Script, links of other schemes, a picture from elsewhere, an end of what it stands in, reversed text, a line
    of a megabyte: as title, statement, task, question of the review and prompt it is text.
    """
    root = living_brain(tmp_path / "brain")
    long = "heron " * 170_000
    write_memory(root, "concrete/evil.md", HOSTILE, 1, f"{HOSTILE} ^e1", f"- {long}^e2\n")
    stm = root / "memory/short_term.md"
    stm.write_text(stm.read_text().replace("### Tasks\n", f"### Tasks\n\n- [ ] {HOSTILE} by 2020-01-01\n"))
    (root / "memory/review.md").write_text(f"# Review\n\n- {HOSTILE}\n- [ ] {HOSTILE} <!-- proposal: x -->\n")
    (root / f"inbox/{'<img src=x>'.replace('/', '')}.md").write_text(HOSTILE)
    with windowed(root) as daemon, visiting(browser, root, java_script_enabled=script) as visitor:
        daemon.wait_for_answer("<img src=x>.md")
        visitor.page.on("dialog", lambda dialog: visitor.troubles.append(dialog.message))
        visitor.allowed.append("status of 400")  # no page as a whole is put right
        page = "memory/long_term/concrete/evil.md"
        names = [page, f"{page}%23%5Ee1", f"{page}%23%5Ee2"]
        paths = [*PATHS, *(path.format(name) for path in NAMED for name in names)]
        paths += [*(path.format(page) for path in OF_PAGES), f"/page?edit=e1&name={page}"]
        visitor.go("/timeline?all=1")
        runs = [link.get_attribute("href") for link in visitor.page.locator("a.run").all()]
        assert runs
        for path in (*paths, *runs):
            visitor.go(path)
            if script:
                assert "owned" != visitor.page.evaluate("document.title")
                assert 0 == visitor.page.locator("main img, main script, [onerror], [onfocus], [autofocus]").count()
                links = visitor.page.locator("main a:not(svg a)").evaluate_all(
                    "all => all.map((each) => each.protocol)"
                )
                assert {"http:"} >= set(links)
        visitor.go("/")
        words = visitor.text()
        assert "[U+202E]gnp.exe" in words
        assert "\u202e" not in words
        assert "{{ 7 * 7 }}" in words
        assert "[picture, not loaded: p]" in words


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_page_can_be_read_by_everybody(browser: Any, daemon: Living, scheme: str, size: dict[str, int]) -> None:
    """No serious finding of axe-core, nothing wider than the screen, and the keyboard alone is enough."""
    daemon.answer("one.md", "I live in Portland.")
    name = "memory/long_term/concrete/portland.md%23%5Ef3k9"
    with visiting(browser, daemon.root, viewport=size, color_scheme=scheme) as visitor:
        for path in (*PATHS, *(path.format(name) for path in (*NAMED, *OF_PAGES))):
            visitor.go(path)
            visitor.check_access()
        visitor.go()
        visitor.page.keyboard.press("Tab")
        assert "Skip to the page" == visitor.page.evaluate("document.activeElement.innerText")
        visitor.page.keyboard.press("Enter")
        visitor.page.keyboard.press("Tab")
        visitor.page.keyboard.type("I have a heron.")
        visitor.page.keyboard.press("Tab")
        visitor.page.keyboard.press("Enter")
        visitor.await_text("I have a heron.")


@with_and_without_script
def test_the_window_is_closed_to_who_is_not_logged_in(browser: Any, daemon: Living, script: bool) -> None:
    """A page says how to open it; a link works once; after logging out it is closed again."""
    link = login_link(daemon.root)
    with visiting(browser, daemon.root, is_logged_in=False, java_script_enabled=script) as visitor:
        visitor.allowed.append("401")
        visitor.allowed.append("403")
        assert 401 == visitor.go().status
        assert "brainiac open" in visitor.text()
        visitor.page.goto(link)
        assert "Today" in visitor.text()
        assert visitor.page.url == f"{window_of(daemon.root)}/"  # the link is in no history
        visitor.page.goto(link)
        assert "used already" in visitor.text()
        visitor.go("/status")
        visitor.page.get_by_role("button", name="Log out").click()
        assert "brainiac open" in visitor.text()
        assert 401 == visitor.go("/status").status


def test_a_tab_goes_on_after_a_restart(browser: Any, daemon: Living) -> None:
    """The daemon is killed and started anew: the open tab is logged in, and sees what happens."""
    with visiting(browser, daemon.root) as visitor:
        visitor.allowed.append("ERR_")  # while nobody serves
        visitor.go()
        daemon.kill()
        with living(daemon.root) as again:
            again.answer("one.md", "I have a heron.")
            visitor.await_text("I have a heron.")


# --- `brainiac open` -------------------------------------------------------------------------------------------------


def test_open_prints_a_link_to_the_running_daemon(daemon: Living, capsys: pytest.CaptureFixture[str]) -> None:
    """`status` has the address; where this machine has no window, `open` says so."""
    shell = Shell(capsys, str(daemon.root))
    done = shell("open", "--no-browser")
    assert done.out.startswith(f"{window_of(daemon.root)}/login?code=")
    assert window_of(daemon.root) in shell("status").out
    assert window_of(daemon.root) == shell("status", "--json").json["window"]


def test_open_is_a_daemon_where_none_runs(tmp_path: Path) -> None:
    """It opens the browser of this machine, and ends by Ctrl-C."""
    root, seen = living_brain(tmp_path / "brain"), tmp_path / "seen"
    (tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    (tmp_path / "browser").chmod(0o755)
    line = [sys.executable, "-m", "brainiac", "--brain", str(root), "open"]
    environment = {**os.environ, "BROWSER": f"{tmp_path}/browser %s"}
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        eventually(lambda: seen.exists() and "\n" in seen.read_text(), "a browser", 60)
        assert seen.read_text().startswith(f"{window_of(root)}/login?code=")
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert "No daemon runs here" in out
    assert 0 == process.returncode


def test_open_says_why_there_is_no_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a setting of this machine."""
    root = living_brain(tmp_path / "brain")
    config = places_of(root).config
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("window: false\n")
    with living(root):
        done = Shell(capsys, str(root))("open", "--no-browser")
    assert 1 == done.code
    assert "window: false" in done.err
