"""The links between pages that name each other, in the front matter of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.formats.page import parse_memory
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Evidence, Operation, PageRef, Purpose
from tests.support.commands import do, quiet
from tests.support.promotions import ScriptedEngine, later, make_brain, pages, tell


def consolidate(request: ConsolidateRequest) -> Consolidation:
    """Give each exchange `TITLE: TEXT` a statement on the page of that title."""
    operations = []
    for said in request.said:
        title = said.event.user.partition(":")[0]
        page = PageRef(title=title, folder="things")
        evidence = [Evidence(exchange=said.id, quote=said.event.user)]
        operations.append(Operation(action="new", text=said.event.user, page=page, subject=title, evidence=evidence))
    return Consolidation(operations=operations)


def mentions(brain: Brain) -> dict[str, object]:
    """Return the `mentions` of each page by its title, but those of the pages of days."""
    things = (page for page in pages(brain).values() if "/concrete/" in page.path)
    return {page.title: page.meta.get("mentions") for page in things if "mentions" in page.meta}


def test_pages_link_to_the_pages_that_they_name(tmp_path: Path) -> None:
    """At once where the page is written, in the next quiet where the named page came later; a private page is left
    out, and a name goes with the statement that had it."""
    brain = make_brain(tmp_path, engine=ScriptedEngine({Purpose.CONSOLIDATE: consolidate}))
    tell(brain, "Rowing club: meets at Lake Zug on Mondays.")
    do(brain, "promote")
    assert {} == mentions(brain)
    day = next(page for page in pages(brain).values() if "/events/" in page.path)
    assert ["[[rowing-club|Rowing club]]"] == day.meta["mentions"]
    tell(brain, "Lake Zug: is cold, says the Rowing club.")
    do(brain, "promote")
    assert {"Lake Zug": ["[[rowing-club|Rowing club]]"]} == mentions(brain)
    lake = next(page.path for page in pages(brain).values() if page.title == "Lake Zug")
    brain.plugins.call("memory_created", brain=brain, path=lake)
    later(brain)
    quiet(brain)
    quiet(brain)
    assert {"Lake Zug": ["[[rowing-club|Rowing club]]"], "Rowing club": ["[[lake-zug|Lake Zug]]"]} == mentions(brain)
    event = next(iter(parse_memory(lake, brain.read_text(lake) or "").meta["sources"]))
    do(brain, "forget", str(event), "--yes")
    assert brain.read(lake) is None
    brain.plugins.call("memory_deleted", brain=brain, path=lake)
    quiet(brain)
    assert {"Rowing club": []} == mentions(brain)
    brain.close()


@pytest.mark.parametrize("own", ["mentions: Lake Zug\n", "mentions: [Ann, '[[Bob]]']\n", "mentions: {a: 1}\n"])
def test_what_a_person_put_there_stays(tmp_path: Path, own: str) -> None:
    """A value that is no list is left alone; of a list only our links are renewed."""
    brain = make_brain(tmp_path, engine=ScriptedEngine({Purpose.CONSOLIDATE: consolidate}))
    tell(brain, "Lake Zug: is cold.")
    do(brain, "promote")
    path = next(page.path for page in pages(brain).values() if page.title == "Lake Zug")
    own_page = brain.tree.absolute(path).with_name("own.md")
    own_page.write_text(f"---\nuuid: 0199\n{own}---\n# Own\n\nWe swam in Lake Zug.\n")
    os.utime(own_page, (1e9, 1e9))
    brain.observed.adopt()
    later(brain)
    quiet(brain)
    brain.plugins.call("memory_created", brain=brain, path=brain.tree.relative(own_page))
    quiet(brain)
    links = ["Ann", "[[Bob]]", "[[lake-zug|Lake Zug]]"]
    before = {"mentions: Lake Zug\n": "Lake Zug", "mentions: {a: 1}\n": {"a": 1}}
    assert before.get(own, links) == mentions(brain)["Own"]
    brain.close()
