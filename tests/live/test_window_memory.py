"""The window's pages of what memory holds: search, a page with its editor, and what is near; in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.browser import NARROW, SECONDS, visiting, windowed, with_and_without_script
from tests.support.living import Living, events_of, living_brain
from tests.support.models import UUID, write_memory
from tests.support.pipeline import eventually

MARA = "memory/long_term/concrete/mara.md"
PORTLAND = "memory/long_term/concrete/portland.md"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Living]:
    """A daemon of a brain with three pages that know each other."""
    root = living_brain(tmp_path / "brain")
    write_memory(root, "concrete/portland.md", "Portland", 1, "User lives in Portland, since 2020. ^f3k9")
    link = f'[Portland](portland.md "uuid:{UUID}1")'
    tail = "- Her bike is green. ^m2\n\n## Related Memories\n\n- [[heron]]\n"
    write_memory(root, "concrete/mara.md", "Mara", 2, f"Mara moved to {link}. ^m1", tail)
    write_memory(root, "concrete/heron.md", "Heron", 3, "A heron stood at the Willamette. ^h1")
    with windowed(root) as daemon:
        yield daemon


def daemon_day() -> str:
    return datetime.now(UTC).date().isoformat()


def page_of(path: str) -> str:
    return f"/page?name={quote(path)}"


@with_and_without_script
def test_search_shows_why_and_what_is_asked(browser: Any, daemon: Living, script: bool) -> None:
    """While it is typed, or by the button: the words are marked, a half typed filter says what there is, the score is
    folded, and the title leads to the page.
    """
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go("/search")
        box = visitor.page.get_by_label("Words")

        def look_for(words: str) -> None:
            box.fill("")
            box.press_sequentially(words)
            if not script:
                box.press("Enter")

        look_for("herons Willamette")
        visitor.await_text("A heron stood at the Willamette.")
        assert ["heron", "Willamette"] == visitor.page.locator("mark").all_inner_texts()
        assert not visitor.page.get_by_role("table").is_visible()
        visitor.page.get_by_text("explain").first.click()
        assert "weight" in visitor.page.get_by_role("table").inner_text()
        if script:
            visitor.check_access()
        if not script:
            box = visitor.page.get_by_label("Words")
        look_for("bike type:co")
        visitor.await_text("is no type of page; there are concrete")
        look_for("bike type:concrete")
        visitor.await_text("Her bike is green.")
        assert "after:2024-05" in visitor.text()
        visitor.page.get_by_role("link", name="Mara").click()
        visitor.await_text("Mara moved to Portland.")
        visitor.page.go_back()  # to what was found
        visitor.await_text("Her bike is green.")
        assert "bike type:concrete" == visitor.page.get_by_label("Words").input_value()
        visitor.page.get_by_label("Words").fill("bike")
        visitor.page.get_by_label("Kind").select_option("events")
        visitor.page.get_by_role("button", name="Search").click()
        visitor.await_text("Nothing in memory fits")
        visitor.go("/pages")
        visitor.page.get_by_role("link", name="concrete", exact=True).click()
        visitor.page.get_by_role("link", name="Mara").click()
        visitor.await_text("Mara moved to Portland.")


@with_and_without_script
def test_a_page_tells_all_of_itself(browser: Any, daemon: Living, script: bool) -> None:
    """Links in its words and wiki links lead to pages; what links to it; what is near; private; as it was."""
    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        visitor.go(page_of(PORTLAND))
        heads = [visitor.page.locator(name).first.bounding_box() for name in ("div.bar", "main .foot", ".part")]
        tops = [(box["y"], box["y"] + box["height"]) for box in heads]
        assert sorted(sum(tops, ())) == list(sum(tops, ())), "nothing lies over another"
        assert visitor.page.get_by_role("button", name="Show").bounding_box()["y"] < tops[0][1]
        assert "User lives in Portland, since 2020." in visitor.text()
        assert "Linked from" in visitor.text()
        visitor.page.get_by_role("link", name="Mara", exact=True).click()
        assert ["edit", "why", "wrong", "forget"] == visitor.page.locator(".part .can").first.locator(
            "a"
        ).all_inner_texts()
        visitor.page.get_by_role("link", name="heron", exact=True).click()
        assert "A heron stood at the Willamette." in visitor.text()
        visitor.go(page_of(MARA))
        visitor.page.get_by_role("link", name="near").click()
        assert {"Portland", "Heron"} <= set(visitor.page.locator("svg.near a text").all_text_contents())
        listed = visitor.page.locator("main li").all_inner_texts()
        assert ["Heron linked from here", "Portland linked from here"] == sorted(listed)
        if script:
            visitor.check_access()
        visitor.page.set_viewport_size(NARROW)
        assert not visitor.page.locator("svg.near").is_visible()
        assert visitor.page.locator("main li").first.is_visible()
        visitor.go(page_of(MARA))
        visitor.page.get_by_role("button", name="make it private").click()
        visitor.await_text("No model elsewhere sees it, and no door.")
        assert "private: true" in (daemon.root / MARA).read_text()
        visitor.page.get_by_role("button", name="let models see it").click()
        visitor.await_text("Models and doors may see it.")
        assert "private: false" in (daemon.root / MARA).read_text()
        visitor.page.get_by_label("as it was on").fill(daemon_day())
        visitor.page.get_by_role("button", name="Show").click()
        visitor.await_text("as it is now")
        assert "Her bike is green." in visitor.text()


def test_what_is_added_at_the_end_is_not_history(browser: Any, daemon: Living) -> None:
    """The whole text is without properties and History, which are folded beside it: a new last line holds now."""
    file = daemon.root / MARA
    former = "\n## History\n- ~~Mara lived in Salem~~ (2024-01-01 – 2025-01-01) ^m3\n"
    file.write_text(file.read_text() + former)
    before = file.read_text()
    with visiting(browser, daemon.root) as visitor:
        visitor.go(page_of(MARA) + "&edit=all")
        place = visitor.page.get_by_label("The whole text")
        text = place.input_value()
        assert "uuid:" not in text.replace('"uuid:', "")
        assert "Salem" not in text
        place.fill(text.rstrip("\n") + "\n- Mara plays the tuba.")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("Mara plays the tuba.")
        assert file.read_text().index("tuba") < file.read_text().index("## History")
        assert file.read_text().endswith(former[1:])
        assert before.partition("# Mara")[0] == file.read_text().partition("# Mara")[0]


def test_a_line_of_its_own_melts_into_no_statement(browser: Any, daemon: Living) -> None:
    """Typed right below a statement: a paragraph, of which the notice tells; what an editor wrote so before stays."""
    file, bike = daemon.root / MARA, "- Her bike is green. ^m2\n"
    file.write_text(file.read_text().replace(bike, f"{bike}- Her boat is new. ^m4\nIt is red.\n"))
    before = file.read_text()
    eventually(lambda: MARA in str(events_of(daemon.root, "note-edited")), "the edit", SECONDS)
    with visiting(browser, daemon.root) as visitor:
        visitor.go(page_of(MARA) + "&edit=all")
        place = visitor.page.get_by_label("The whole text")
        otto = "Otto got a new brass bell.\nIt rings.\n"
        place.fill(place.input_value().replace(bike, bike + otto))
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("“Otto got a new brass bell.” is a line of its own on the page, no statement")
        assert "It is red.” is" not in visitor.text()
        assert before.replace(bike, f"{bike}\n{otto}") == file.read_text()
        visitor.page.locator(".part", has_text="Her bike is green.").get_by_role("link", name="why").click()
        assert "Otto" not in visitor.text()


@with_and_without_script
def test_what_is_edited_here_and_in_vim_is_merged(browser: Any, daemon: Living, script: bool) -> None:
    """Whoever saves first, the other had loaded the file before: both changes stand, and of one statement that both
    changed both texts, named in the review. What is not edited stays as it is, line ends too, and undo takes back.
    """
    file = daemon.root / MARA

    def has(*parts: str) -> bool:
        return all(part in file.read_text() for part in parts)

    with visiting(browser, daemon.root, java_script_enabled=script) as visitor:
        heron = daemon.root / "memory/long_term/concrete/heron.md"
        heron.write_bytes(heron.read_bytes().replace(b"\n", b"\r\n"))
        loaded, ended = file.read_text(), heron.read_bytes()
        visitor.go("/page?name=heron&edit=all")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("Nothing was changed.")
        visitor.page.get_by_role("link", name="edit: A heron").click()
        visitor.page.get_by_label("This statement").fill("A heron stood there.")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("Saved.")
        assert ended.replace(b"at the Willamette", b"there") == heron.read_bytes()
        visitor.page.get_by_role("button", name="undo").click()
        visitor.await_text("Taken back: ")
        assert ended == heron.read_bytes()
        visitor.go(page_of(MARA))
        visitor.page.get_by_role("link", name="edit: Her bike").click()
        visitor.page.get_by_label("This statement").fill("Her bike is red.")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("Saved.")
        assert has("- Her bike is red. ^m2\n")
        # vim had loaded the file before
        file.write_text(loaded.replace("Mara moved", "Mara Lund moved"))
        eventually(lambda: has("Mara Lund moved", "Her bike is red."), "vim's save is merged with the window's")
        # and now the window did
        visitor.go(page_of(MARA))
        visitor.page.get_by_role("link", name="edit", exact=True).click()
        text = visitor.page.get_by_label("The whole text").input_value()
        assert file.read_text().endswith(text)
        file.write_text(file.read_text().replace("[[heron]]", "[[heron]] by day"))
        visitor.page.get_by_label("The whole text").fill(text.replace("is red", "is blue") + "\nShe rides to work.\n")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("had been changed meanwhile")
        assert has("[[heron]] by day", "Her bike is blue.", "She rides to work.")
        # both change one statement
        visitor.go(page_of(MARA))
        visitor.page.get_by_role("link", name="edit: Her bike").click()
        file.write_text(file.read_text().replace("is blue", "is black"))
        visitor.page.get_by_label("This statement").fill("Her bike is white.")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("had been changed meanwhile")
        assert has("Her bike is white.", "Her bike is black.")
        assert "Her bike is" in (daemon.root / "memory/review.md").read_text()
        # nothing left of it is no save, and what was typed is not lost
        visitor.page.get_by_role("link", name="edit: Mara Lund").click()
        visitor.page.get_by_label("This statement").fill("  ")
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("nothing is left of it")
        assert has("Mara Lund moved")
        # what no program can read can be put right here
        text = file.read_text()
        file.write_text(text.replace("tags: []", "tags: ["))
        visitor.go(page_of(MARA))
        visitor.await_text("front matter")
        visitor.page.get_by_role("link", name="edit", exact=True).click()
        visitor.page.get_by_label("The whole text").fill(text)
        visitor.page.get_by_role("button", name="Save").click()
        visitor.await_text("Saved.")
        assert text == file.read_text()


def test_a_large_folder_is_shown_a_screenful_at_a_time(browser: Any, tmp_path: Path) -> None:
    """Folders have the number of their pages, and links go on; no script."""
    root, names = living_brain(tmp_path / "brain"), [f"Bird {number:03}" for number in range(230)]
    (birds := root / "memory/long_term/concrete/birds").mkdir(parents=True)
    for name in names:
        (birds / f"{name}.md").write_text(f"# {name}\n\n- It sings.\n")
    with windowed(root), visiting(browser, root, java_script_enabled=False) as visitor:
        visitor.go("/pages")
        visitor.await_text("concrete 230", reloads=True)
        visitor.page.get_by_role("link", name="concrete").click()
        visitor.page.get_by_role("link", name="birds").click()
        shown, more = list[str](), visitor.page.get_by_role("link", name=re.compile(r"^\d+ more$"))
        while more.count():
            shown += visitor.page.locator("main li a").all_inner_texts()
            more.click()
        assert names == shown + visitor.page.locator("main li a").all_inner_texts()
