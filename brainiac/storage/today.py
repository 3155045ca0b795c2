"""`memory/Today.md`: what is due, what waits and what changed lately, for a reader without a window.

Written where the setting `today` asks for it. Which of its lines are ours says its last line, by their hashes: what a
person writes beside them stays, and what they take out of it does not come back. A tick in it counts as one in
`memory/review.md`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from brainiac import events
from brainiac.errors import FormatError
from brainiac.events import PathKind, TreeTidied, content_hash
from brainiac.formats.markdown import PRIVATE, decode_text, format_link, newline_of, one_line
from brainiac.storage.causes import paths_now
from brainiac.storage.review import asked_before, decisions_in, find_ticks
from brainiac.storage.store import Store
from brainiac.storage.versions import merge
from brainiac.text.dates import dates_in

DAYS = 7  # that what is due lies ahead, and that it tells of
MAX_LINES = 30  # of a section of the file
_TOP = """\
# Today

What is due, what waits for you, and what changed lately. It is written anew as that changes; lines of your own stay.
"""
_ASKED = "Put an `x` into a box to have it done, a `-` to decline; save the file."
_REMARKS = re.compile(r"\s*<!--.*?-->|\s*%%.*?%%")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BOX = re.compile(r"^([-*+] )\[.\] ")
_OURS = re.compile(r"<!-- ours: ([0-9a-f ]*) -->\s*$")
_ENDS = """
SELECT DISTINCT page, block, json_extract(data, '$.valid_until'), json_extract(data, '$.path') FROM statements
WHERE json_extract(data, '$.valid_until') > '' AND json_extract(data, '$.valid_until') BETWEEN ? AND ? ORDER BY 3"""


@dataclass(frozen=True, slots=True)
class Due:
    """An open task, or a statement that holds for the last time in these days.

    Attributes:
        text: Its words.
        what: `task` or `last day`.
        day: The first date in a task, or the last day; "" for a task without one.
        path: Of its page; "" for a task.
        block: Its id on that page.
        title: Of that page.
        is_private: Whether it is for this machine alone.
    """

    text: str
    what: str
    day: str
    path: str = ""
    block: str = ""
    title: str = ""
    is_private: bool = False


def find_due(store: Store) -> list[Due]:
    """Return open tasks and what holds for the last time within `DAYS` days, by day, those without one last."""
    today, last = store.clock.now().astimezone(store.zone).date(), store.midnight(DAYS).date().isoformat()
    due = []
    with suppress(FormatError):  # which `doctor` names
        memory = store.short_term().memory
        for item in memory.tasks:
            if not item.is_done:
                day = min((day.isoformat() for day, _ in dates_in(item.text)), default="")
                due.append(Due(item.text, "task", day, is_private=memory.is_private or item.is_private))
    store.projection.follow()
    ends = store.projection.query(_ENDS, today.isoformat(), last)
    if ends:  # they are all looked at
        pages = store.pages(paths_now(store, filter(None, (path for *_, path in ends))))
        for uuid, block, until in dict.fromkeys(row[:3] for row in ends):
            statement = pages.statement(uuid, block)
            if statement is not None and not statement.is_history:
                page = pages.pages[pages.path_by_uuid[uuid]]
                due.append(Due(statement.text, "last day", until, page.path, block, page.title, page.is_private))
    return sorted(due, key=lambda each: (each.day or last, each.what))


@dataclass(frozen=True, slots=True)
class Question:
    """A line of `memory/review.md` that waits for the person.

    Attributes:
        text: Its words.
        id: Of its proposal; "" for two texts of which both stand.
        line: As it stands there, without its end.
    """

    text: str
    id: str
    line: str


def find_questions(store: Store) -> Iterator[Question]:
    """Yield what waits in `memory/review.md`, in its order; what is decided there already is left out."""
    text = store.read_text(store.tree.review) or ""
    decided, ticks, start = decisions_in(text), {tick.start: tick for tick in find_ticks(text)}, 0
    for line in _LINE.findall(text):
        words, tick = _REMARKS.sub("", line).strip(), ticks.get(start)
        if tick is not None and tick.id not in decided:
            yield Question(_BOX.sub("", words), tick.id, line.rstrip())
        elif tick is None and words.startswith("- ") and "<!-- proposals:" not in line:
            yield Question(words[2:], "", line.rstrip())
        start += len(line)


# --- the file --------------------------------------------------------------------------------------------------------


def write_today(store: Store, lately: Sequence[str]) -> None:
    """Bring `Today.md` up to date in a commit, where the settings want it and its content changed.

    What is ticked in it and not carried out yet has to be settled first: until then it stays as it is.

    Args:
        store: The brain.
        lately: What was learned and changed in these days, a line each without its bullet.

    Raises:
        ConflictError: A person saved it meanwhile.
    """
    if not store.settings.today or not store.is_active:
        return
    path = store.tree.relative(store.tree.today)
    present, asked = store.read_text(path), asked_before(store)
    ticked = (asked.get(tick.id) for tick in find_ticks(present or "") if tick.mark != " ")
    if any(each is not None and each.how in ("", "lapsed") for each in ticked):
        return
    after = renewed(present or "", _rendered(store, lately))
    if after != present:
        store.commit(TreeTidied(what="today"), by="kernel", changes=[events.write(path, present, after)])


def _rendered(store: Store, lately: Sequence[str]) -> str:
    """Return the file as it would be without a person's lines."""
    questions = [each.line for each in find_questions(store) if not PRIVATE.search(each.line)]
    sections = {
        "Due": [f"- {_due_line(store, each)}" for each in find_due(store) if not each.is_private],
        "Waits for you": questions,
        "Lately": [f"- {_safe(line)}" for line in lately],
    }
    text = _TOP
    for title, lines in sections.items():
        if lines:
            lead = f"{_ASKED}\n\n" if lines is questions else ""
            more = [f"- {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
            text += f"\n## {title}\n\n{lead}" + "\n".join([*lines[:MAX_LINES], *more, ""])
    return text if any(sections.values()) else f"{text}\nNothing is due, and nothing waits.\n"


def _due_line(store: Store, due: Due) -> str:
    """Return what is due as a line without its bullet, with the day before it and the page behind."""
    day = f"{due.day}: " if due.what == "task" and due.day else f"{due.day}, {due.what}: " if due.day else ""
    folder = store.tree.relative(store.tree.memory)
    link = format_link(due.title, posixpath.relpath(due.path, folder), "", due.block) if due.path else ""
    return _safe(f"{day}{one_line(due.text)} {link}".rstrip())


def _safe(line: str) -> str:
    """Return a line of which no words can pass for the id of a proposal, or for our mark."""
    return line.replace("<!--", "<! --")


def renewed(present: str, fresh: str) -> str:
    """Return the file as it stands with our lines as they are now: a merge of which the base is what is ours in it.

    Args:
        present: Its text; "" where there is none.
        fresh: What it would be without a person's lines.
    """
    listed, base = _ours_in(present)
    taken_out = listed.difference(map(_hash, _LINE.findall(present)))  # by the person
    hashes = dict.fromkeys(_hash(line) for line in _LINE.findall(fresh) if line.strip())
    kept = "".join(line for line in _LINE.findall(fresh) if _hash(line) not in taken_out)
    text = f"{kept}\n<!-- ours: {' '.join(hashes)} -->\n".replace("\n", newline_of(present))
    was, now, to_be = (each.encode("utf-8", "surrogateescape") for each in (base, present, text))
    return decode_text(merge(PathKind.TODAY, was, now, to_be, prefer="theirs").text)


def without_ours(text: str) -> str:
    """Return the file without our lines: "" where a person wrote nothing in it."""
    ours, left, is_theirs = set(_LINE.findall(_ours_in(text)[1])), "", False
    for line in _LINE.findall(text):
        is_theirs = line not in ours if line.strip() else is_theirs  # a blank line goes with what is above it
        left += line * is_theirs
    return left


def _ours_in(text: str) -> tuple[set[str], str]:
    """Return the hashes of the lines that we wrote, and the text without what a person wrote in it."""
    lines = _LINE.findall(text)
    listed = {name for line in lines if (mark := _OURS.match(line)) for name in mark[1].split()}
    ours = (line for line in lines if not line.strip() or _OURS.match(line) or _hash(line) in listed)
    return listed, "".join(ours)


def _hash(line: str) -> str:
    """Return by what a line is known, whatever stands in its box."""
    return content_hash(_BOX.sub(r"\1[ ] ", line.strip()).encode("utf-8", "surrogateescape"))[:8]
