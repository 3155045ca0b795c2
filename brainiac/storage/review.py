"""`memory/review.md`: proposals of processes that need a person's consent, one line each with its id.

A person writes `[x]` to have a proposal done and `[-]` to decline it; a line that is missing decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass

from brainiac.events import Change, ProposalRecord, write
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, decode_text, edited, newline_of, one_line
from brainiac.formats.page import is_private_note
from brainiac.storage.files import read_bytes
from brainiac.storage.versions import Merge
from brainiac.tree import Tree

EMPTY = """\
# Review

What Brainiac would like to do and may not. Put an `x` into a box to have it done, a `-` to decline; save the file.

"""
_MAX_SHOWN = 300  # characters of a text in a line about two
_ID = re.compile(r"<!-- proposal: (\S+) -->")
_LINE = re.compile(r"^[^\n]*<!-- proposal: (?P<id>\S+) -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<mark>[xX -])\][ \t]")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal with what its line in `review.md` needs.

    Attributes:
        record: The proposal as the journal keeps it; what is done is decided by this, not by the line.
        is_private: Whether its line has the private mark.
    """

    record: ProposalRecord
    is_private: bool = False


def proposals_change(tree: Tree, proposals: Iterable[Proposal]) -> list[Change]:
    """Return the change that adds proposals to `review.md`; no change where all of them have a line."""
    proposals = list(proposals)
    return _change(tree, lambda text: with_proposals(text, proposals)) if proposals else []


def with_proposals(text: str, proposals: Iterable[Proposal]) -> str:
    """Return `review.md` with a line added for each proposal that has none yet."""
    present_ids, newline = set(_ID.findall(text)), newline_of(text)
    for proposal in proposals:
        if proposal.record.id not in present_ids:
            text += "" if text.endswith("\n") else newline
            mark = f" {PRIVATE_MARK}" if proposal.is_private else ""
            what = one_line(proposal.record.what).replace("<!--", "<! --")  # words must not pass for an id
            text += f"- [ ] {what}{mark} <!-- proposal: {proposal.record.id} -->{newline}"
    return text


def differences_change(tree: Tree, path: str, merged: Merge, who: str) -> list[Change]:
    """Return the change that adds a line to `review.md` for each two texts that both stand in a merged file, if any.

    The lines are alike on every device that merges the same two versions.

    Args:
        tree: The brain's places.
        path: The merged file; of `review.md` itself nothing is said.
        merged: It. A difference without a `kept` text is a sentence.
        who: Who changed the same.
    """

    def with_differences(text: str) -> str:
        is_private = is_private_note(decode_text(merged.text))
        for difference in merged.differences:
            texts = difference.kept, difference.other
            kept, other = (one_line(PRIVATE.sub("", words))[:_MAX_SHOWN] for words in texts)
            mark = f" {PRIVATE_MARK}" if is_private or any(map(PRIVATE.search, texts)) else ""
            what = f"both stand; keep what holds: `{kept}` or `{other}`" if difference.kept else other
            line = f"- {path}: {who} changed it, and {what}{mark}\n"
            if line not in text:
                text += ("" if text.endswith("\n") else "\n") + line
        return text

    return _change(tree, with_differences) if merged.differences and path != tree.relative(tree.review) else []


def _change(tree: Tree, with_lines: Callable[[str], str]) -> list[Change]:
    """Return the change of `review.md` by a function that adds lines to its text; none where they stand there."""
    content = read_bytes(tree.review)
    before = None if content is None else decode_text(content)
    after = with_lines(EMPTY if before is None or not before.strip() else before)
    return [] if after == before else [write(tree.relative(tree.review), content, after)]


@dataclass(frozen=True, slots=True)
class Tick:
    """The line of a proposal in `review.md`.

    Attributes:
        id: Of the proposal.
        mark: What the person put into the box: `x` to do it, `-` to decline, " " nothing; "" for a broken box.
        start: Offset of the line in the text; `text[start:end]` is the line with its end.
    """

    id: str
    mark: str
    start: int
    end: int


def find_ticks(text: str) -> list[Tick]:
    """Return the lines of all proposals, ticked or not, in order; a line without its whole comment belongs to none."""
    ticks = []
    for line in _LINE.finditer(text):
        box = _BOX.match(line[0])
        mark = box["mark"].lower() if box else ""
        ticks.append(Tick(line["id"], mark, line.start(), line.end()))
    return ticks


def decisions_in(text: str) -> dict[str, bool]:
    """Return whether a person wants each proposal done, by its id.

    Left out are proposals without a mark, and those whose line was copied and has both `x` and `-`.
    """
    marks: dict[str, set[str]] = {}
    for tick in find_ticks(text):
        if tick.mark in ("x", "-"):
            marks.setdefault(tick.id, set()).add(tick.mark)
    return {name: boxes == {"x"} for name, boxes in marks.items() if len(boxes) == 1}


def without_proposals(text: str, ids: Container[str], pages: Collection[str] = ()) -> str:
    """Return `review.md` without the lines of these proposals, and on what differed in these pages; all else stays."""
    text = edited(text, ((tick.start, tick.end, "") for tick in find_ticks(text) if tick.id in ids))
    heads = tuple(f"- {page}: " for page in pages)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(heads)) if heads else text
