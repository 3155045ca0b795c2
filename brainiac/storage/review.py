"""`memory/review.md`: what a process would like to do and may not, one line a proposal with its id.

A person ticks `[x]` to have the journaled proposal done, `[-]` to decline; absence means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

from brainiac.events import Change, ProposalRecord, create, update
from brainiac.formats.markdown import PRIVATE_MARK, one_line
from brainiac.storage.store import Store

EMPTY = """\
# Review

What Brainiac would like to do and may not. Put an `x` into a box to have it done, a `-` to decline; save the file.

"""
_ID = re.compile(r"<!-- proposal: (\S+) -->")
_LINE = re.compile(r"^[^\n]*<!-- proposal: (\S+) -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[([xX -])\][ \t]")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something put before a person.

    Attributes:
        record: What the journal keeps of it, which says what is done; its line in `review.md` only shows it.
        is_private: It tells of what must not leave this machine; its line is marked.
    """

    record: ProposalRecord
    is_private: bool = False


def with_proposals(text: str | None, proposals: Iterable[Proposal]) -> str:
    """Return `review.md` with lines for proposals below what stands there; one whose id stands there is left alone.

    Args:
        text: The file as it stands; None where there is none.
        proposals: What to add.
    """
    text = EMPTY if text is None or not text.strip() else text
    shown = set(_ID.findall(text))
    newline = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
    for proposal in proposals:
        if proposal.record.id not in shown:
            text += "" if text.endswith("\n") else newline
            mark = f" {PRIVATE_MARK}" if proposal.is_private else ""
            text += f"- [ ] {one_line(proposal.record.what)}{mark} <!-- proposal: {proposal.record.id} -->{newline}"
    return text


def review_change(store: Store, proposals: Iterable[Proposal]) -> list[Change]:
    """Return the change of `review.md` that shows proposals; none where all of them stand there."""
    proposals = list(proposals)
    if not proposals:
        return []
    path = store.tree.relative(store.tree.review)
    before = store.read_text(path)
    text = with_proposals(before, proposals)
    if text == before:
        return []
    return [create(path, text) if before is None else update(path, before, text)]


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of `review.md` that shows a proposal.

    Attributes:
        id: Of the proposal.
        mark: `x` done, `-` declined, " " nothing said, "" where the box is not whole.
        start: Offset of the line in the text; `text[start:end]` is the line with its end.
    """

    id: str
    mark: str
    start: int
    end: int


def find_ticks(text: str) -> list[Tick]:
    """Return the lines that show a proposal, in order; a line cut short in its comment shows none."""
    ticks = []
    for line in _LINE.finditer(text):
        box = _BOX.match(line[0])
        ticks.append(Tick(line[1], box[1].lower() if box else "", line.start(), line.end()))
    return ticks


def decisions_in(text: str) -> dict[str, bool]:
    """Return what a person decided, by proposal id, True to have it done; one that is marked both ways is undecided."""
    marks: dict[str, set[str]] = {}
    for tick in find_ticks(text):
        if tick.mark in ("x", "-"):
            marks.setdefault(tick.id, set()).add(tick.mark)
    return {name: boxes == {"x"} for name, boxes in marks.items() if len(boxes) == 1}


def without_proposals(text: str, ids: Container[str]) -> str:
    """Return `review.md` without the lines of these proposals; all else stays byte for byte."""
    for tick in reversed(find_ticks(text)):
        if tick.id in ids:
            text = text[: tick.start] + text[tick.end :]
    return text
