"""What processes ask a person: proposals in the journals, each with a line and its id in `memory/review.md`.

A person writes `[x]` to have a proposal done and `[-]` to decline it; a line that is missing decides nothing. They
stand below a heading of their kind, where several have a box for all of them, which names them. So that the file stays
short, only so many get a line in a week; the others wait in the journal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from brainiac import events
from brainiac.clock import iso
from brainiac.events import ProposalRecord as Record
from brainiac.formats.markdown import PRIVATE_MARK, edited, newline_of, one_line
from brainiac.storage.store import Store
from brainiac.storage.versions import review_change

Records = tuple[Record, ...]
# the kinds of proposals, as commands name them, with their headings
SECTIONS = {
    "replace": "To be written", "retire": "To be ended", "forget": "To be forgotten",
    "organize": "To be moved or archived", "take-copy": "From another device",
}  # fmt: skip
_ID = re.compile(r"<!-- proposal: (\S+) -->")
_LINE = re.compile(r"^[^\n]*<!-- proposal: (?P<id>\S+) -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_ALL = re.compile(r"^[^\n]*<!-- proposals: (?P<id>\S[^\n]*?) -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<mark>[xX -])\][ \t]")
_SECTION = re.compile(
    rf"^## (?P<title>{'|'.join(SECTIONS.values())})[ \t]*\r?(?:\n|\Z)"
    r"(?P<body>(?:(?!#{1,6} )[^\n]*\n|[^#\n][^\n]*\Z)*)",
    re.MULTILINE,
)
# with the blank line above it
_WAITING = re.compile(r"(?:(?<=\n)\r?\n)?^[^\n]*<!-- waiting -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)


def kind_of(proposal: Record) -> str:
    """Return the kind of a proposal, a key of `SECTIONS`."""
    return getattr(proposal, "operation", "organize")


def with_proposals(text: str, proposals: Iterable[Record] = (), n_waiting: int = 0) -> str:
    """Return `review.md` with a line added for each proposal that has none, its boxes, and how many others wait."""
    present_ids, newline = set(_ID.findall(text)), newline_of(text)
    text = _WAITING.sub("", text)
    for proposal in proposals:
        if proposal.id not in present_ids:
            mark = f" {PRIVATE_MARK}" if proposal.is_private else ""
            what = one_line(proposal.what).replace("<!--", "<! --")  # words must not pass for an id
            line = f"- [ ] {what}{mark} <!-- proposal: {proposal.id} -->{newline}"
            text = _with_line(text, line, SECTIONS[kind_of(proposal)], newline)
    text = _SECTION.sub(lambda section: _with_box(section, newline), text)
    if n_waiting:
        wait = f"{n_waiting} more wait{'s' if n_waiting == 1 else ''}: `brainiac review --waiting`"
        return f"{text}{newline}{wait} <!-- waiting -->{newline}"
    return text


def _with_line(text: str, line: str, title: str, newline: str) -> str:
    """Return `review.md` with a line behind the last of its section, which is begun where there is none."""
    text += "" if text.endswith("\n") or not text else newline
    section = next((each for each in _SECTION.finditer(text) if each["title"] == title), None)
    if section is None:
        gap = "" if not text or text.endswith(("\n\n", "\n\r\n")) else newline
        return f"{text}{gap}## {title}{newline}{newline}{line}"
    ends = [tick.end for tick in find_ticks(section["body"])]
    at = section.start("body") + max(ends, default=0)
    return text[:at] + ("" if ends else newline) + line + text[at:]


def _with_box(section: re.Match[str], newline: str) -> str:
    """Return a section with a box for all its undecided lines, where there are several; "" for an empty section."""
    body = section["body"]
    ticks, boxes = find_ticks(body), list(_ticks(_ALL, body))
    in_use = {name for box in boxes if box.mark != " " for name in box.id.split()}
    names = " ".join(tick.id for tick in ticks if tick.mark == " " and tick.id not in in_use)
    names = names if " " in names else ""
    edits = [(box.start, box.end, "") for box in boxes if box.mark == " " and box.id != names]
    if names and not any(box.id == names for box in boxes):
        edits.append((ticks[0].start, ticks[0].start, f"- [ ] all of these <!-- proposals: {names} -->{newline}"))
    body = edited(body, sorted(edits))
    return section[0][: section.start("body") - section.start()] + body if body.strip() else ""


# --- what a person decided -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """The line of a proposal in `review.md`, or the box for several.

    Attributes:
        id: Of the proposal; of several with spaces between.
        mark: What the person put into the box: `x` to do it, `-` to decline, " " nothing; "" for a broken box.
        start: Offset of the line in the text; `text[start:end]` is the line with its end.
    """

    id: str
    mark: str
    start: int
    end: int


def find_ticks(text: str) -> list[Tick]:
    """Return the lines of all proposals, ticked or not, in order; a line without its whole comment belongs to none."""
    return list(_ticks(_LINE, text))


def _ticks(pattern: re.Pattern[str], text: str) -> Iterator[Tick]:
    """Yield the lines that a pattern finds: those of proposals, or the boxes for several."""
    for line in pattern.finditer(text):
        box = _BOX.match(line[0])
        yield Tick(line["id"], box["mark"].lower() if box else "", line.start(), line.end())


def decisions_in(text: str, lapsed: Collection[str] = ()) -> dict[str, bool]:
    """Return whether a person wants each proposal done, by its id.

    A mark at a line wins over one at the box that names it. Left out are proposals without a mark, and those whose line
    was copied and has both `x` and `-`. A box decides only on lines that stand there untouched.

    Args:
        text: The file's text.
        lapsed: Ids of proposals whose lines we took out: a box that still names them is of before, and counts.
    """
    marks: dict[str, set[str]] = {}
    for tick in find_ticks(text):
        marks.setdefault(tick.id, set()).add(tick.mark)
    boxed: dict[str, set[str]] = {}
    for box in _ticks(_ALL, text):
        for name in box.id.split() if box.mark in ("x", "-") else ():
            if marks.get(name) == {" "} or (name in lapsed and name not in marks):
                boxed.setdefault(name, set()).add(box.mark)
    decided = {name: marks.get(name, set()) & {"x", "-"} or boxed.get(name, set()) for name in marks.keys() | boxed}
    return {name: found == {"x"} for name, found in sorted(decided.items()) if len(found) == 1}


def without_proposals(text: str, ids: Container[str], pages: Collection[str] = ()) -> str:
    """Return `review.md` without the lines of these proposals, and on what differed in these pages; all else stays.

    A box goes with the last line that it names.
    """
    left = {tick.id for tick in find_ticks(text) if tick.id not in ids}
    gone = [tick for tick in find_ticks(text) if tick.id in ids]
    gone += [box for box in _ticks(_ALL, text) if left.isdisjoint(box.id.split())]
    text = edited(text, sorted((tick.start, tick.end, "") for tick in gone))
    heads = tuple(f"- {page}: " for page in pages)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(heads)) if heads else text


# --- as the journals have it ---------------------------------------------------------------------------------------

# what was decided; a no that was taken back is none, while a yes was done once, whatever became of it
DECISIONS = "(SELECT * FROM decisions WHERE how != 'declined' OR event NOT IN (SELECT event FROM undone))"


@dataclass(frozen=True)
class Asked:
    """A proposal as the journals have it.

    Attributes:
        data: Its record as JSON, which is read only where somebody looks at it: one may name hundreds of pages.
        by: The process that made it.
        at: When it was made, or got its line after it had waited; ISO 8601.
        how: How it was decided (see `ProposalDecided`), or `undone` with the event that made it; "" for undecided.
    """

    data: str
    by: str
    at: str
    how: str

    @cached_property
    def record(self) -> Record:
        """What is done is decided by this, not by the line in `review.md`."""
        return Record.from_json(json.loads(self.data))


def asked_before(store: Store) -> dict[str, Asked]:
    """Return every proposal that the journals of all devices have, by id, oldest first."""
    store.projection.follow()
    asked: dict[str, Asked] = {}
    # what a person decided holds, also where another device noted later that nobody did
    rows = store.projection.query(
        f"""SELECT id, at, by, data, coalesce(
            (SELECT how FROM {DECISIONS} WHERE proposal = id ORDER BY how = 'lapsed', event DESC LIMIT 1),
            CASE WHEN event IN (SELECT event FROM undone) THEN 'undone' ELSE '' END) FROM proposals ORDER BY event"""
    )
    for name, at, by, data, how in rows:
        by = asked[name].by if name in asked else by
        asked[name] = Asked(data, by, at, how)
    return asked


def lapses(proposal: Record) -> bool:
    """Return whether a line that nobody decides goes in time, with nothing done.

    What is hidden until a person decides stays hidden then. Another wish of theirs waits for them, and so does another
    device's version, which is nowhere else.
    """
    if isinstance(proposal, events.ForgetProposal):
        return bool(proposal.is_hiding or proposal.deleted)
    return _is_limited(proposal)


def asking(store: Store, proposals: Iterable[Record]) -> tuple[Records, list[events.Change]]:
    """Return proposals as the journal is to have them, with the change that gives each its line in `review.md`.

    Of those that no person asked for only so many get one that `review.max_new` undecided ones are new within seven
    days: first what a second reader held back, then what would destroy, then the others in their order. The rest waits.
    """
    if not (proposals := list(proposals)):
        return (), []
    asked = asked_before(store)
    limited = sorted(filter(_is_limited, proposals), key=lambda each: (not each.reason, kind_of(each) != "forget"))
    late = {each.id for each in limited[room_for(store, asked) :]}
    records = tuple(replace(each, waits=each.id in late) for each in proposals)
    shown = [each for each in records if not each.waits]
    left = {name for name, each in asked.items() if not each.how and each.record.waits} | late
    n_waiting = len(left.difference(each.id for each in shown))
    return records, review_change(store.tree, lambda text: with_proposals(text, shown, n_waiting))


def room_for(store: Store, asked: dict[str, Asked]) -> int:
    """Return how many further proposals may get their line now."""
    since = iso(store.clock.now() - timedelta(days=7))
    recent = [each.record for each in asked.values() if not each.how and each.at > since and not each.record.waits]
    return max(0, store.settings.review.max_new - len(list(filter(_is_limited, recent))))


def _is_limited(proposal: Record) -> bool:
    """Return whether a proposal may have to wait: no person asked for it, and all it is about stands elsewhere."""
    return not proposal.is_wish and not isinstance(proposal, events.CopyProposal)
