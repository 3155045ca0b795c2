"""Where the keyless engine keeps marked words: whole and as written, on the page that they name (design 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo

from brainiac.clock import day_in
from brainiac.llm.schemas import Evidence, Marked, Operation, PageName, PageRef
from brainiac.text.tokens import words

NOTES = "notes"  # the folder of what names no page, a page a month
_MIN_NAME = 3  # characters: a shorter title is named by chance
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t#]*$", re.MULTILINE)
_STEP = re.compile(r"^ {0,3}\d{1,3}[.)][ \t]+\S", re.MULTILINE)
_MARKS = re.compile(r"[#*_`>\[\]|]+")
_TITLE_CHARACTERS = 60


def keep(marked: Marked, pages: Sequence[PageName], zone: tzinfo) -> Operation:
    """Return what becomes of marked words: `same` where they stand already, else `new`.

    Args:
        marked: The words.
        pages: Those that they may go to.
        zone: The person's time zone.
    """
    evidence = [Evidence(exchange=marked.exchange, quote=marked.text)]
    if marked.same:
        return Operation(action="same", ids=list(marked.same), text=marked.text, evidence=evidence, marked_by=marked.by)
    return Operation(
        action="new",
        text=marked.text,
        page=_page(marked, pages, zone),
        evidence=evidence,
        marked_by=marked.by,
        tags=list(dict.fromkeys([*marked.tags, *filter(None, [marked.conversation])])),
    )


def _page(marked: Marked, pages: Sequence[PageName], zone: tzinfo) -> PageRef:
    """Return the page of words: of their link or tag, the one they name, their conversation's, else their month's."""
    named = next(iter((*marked.links, *marked.tags)), "")
    if "\n" in marked.text.strip():
        return _own_page(marked, named)
    if named:
        return _called(named, pages)
    if path := _named_in(marked.text, pages):
        return PageRef(path=path)
    if marked.conversation:
        return _called(marked.conversation, pages)
    return _called(day_in(zone, marked.at)[:7], pages, folder=NOTES)


def _own_page(marked: Marked, named: str) -> PageRef:
    """Return a page of its own for words of several lines; numbered steps below a heading are a skill."""
    heading = _HEADING.search(marked.text)
    is_skill = heading is not None and len(_STEP.findall(marked.text, heading.end())) > 1
    first = next(line for line in marked.text.split("\n") if line.strip())
    title = " ".join(_MARKS.sub(" ", heading[1] if heading else first).split())
    if len(title) > _TITLE_CHARACTERS:
        title = title[:_TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"
    folder = "" if is_skill else named or marked.conversation or NOTES
    return PageRef(kind="skill" if is_skill else "concrete", folder=folder, title=title or named, is_whole=True)


def _called(name: str, pages: Sequence[PageName], folder: str = "") -> PageRef:
    wanted = name.casefold()
    path = next((page.path for page in pages if wanted in map(str.casefold, page.names)), "")
    return PageRef(path=path) if path else PageRef(folder=folder, title=name)


def _named_in(text: str, pages: Sequence[PageName]) -> str:
    """Return the path of the page whose name stands in a text, word for word; of several the longest name's."""
    said = f" {' '.join(words(text))} "
    best = ("", "")
    for page in pages:
        for name in page.names:
            spoken = " ".join(words(name))
            is_there = f" {spoken} " in said or (not spoken.isascii() and spoken in said)
            if is_there and len(spoken) >= (_MIN_NAME if spoken.isascii() else 2) and len(spoken) > len(best[0]):
                best = spoken, page.path
    return best[1]
