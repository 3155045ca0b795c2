"""`memory/review.md`: proposals of processes that need a person's consent, one line each with its id.

A person writes `[x]` to have a proposal done and `[-]` to decline it; a line that is missing decides nothing. They
stand below a heading of their kind, where several have a box for all of them, which names them. So that the file stays
short, only so many get a line in a week; the others wait in the journal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass

from brainiac import events
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, decode_text, edited, newline_of, one_line
from brainiac.formats.page import audience_of
from brainiac.storage.files import read_bytes
from brainiac.storage.versions import Merge
from brainiac.tree import Tree

EMPTY = """\
# Review

What Brainiac would like to do and may not. Put an `x` into a box to have it done, a `-` to decline; save the file.

"""
# the kinds of proposals, as commands name them, with their headings
SECTIONS = {
    "replace": "To be written", "retire": "To be ended", "forget": "To be forgotten",
    "organize": "To be moved or archived", "take-copy": "From another device",
}  # fmt: skip
_MAX_SHOWN = 300  # characters of a text in a line about two
_ID = re.compile(r"<!-- proposal: (\S+) -->")
_LINE = re.compile(r"^[^\n]*<!-- proposal: (?P<id>\S+) -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_ALL = re.compile(r"^[^\n]*<!-- proposals: (?P<id>\S[^\n]*?) -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[(?P<mark>[xX -])\][ \t]")
# as `differences_change` writes it
_DIFFERS = re.compile(
    r"^- (?!\[)(?P<path>\S[^\n]*?): [^\n]*?(?: changed it, and )"
    r"(?:both stand; keep what holds: `(?P<kept>[^\n]*?)` or `(?P<other>[^\n]*)`)?[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)
_SECTION = re.compile(
    rf"^## (?P<title>{'|'.join(SECTIONS.values())})[ \t]*\r?(?:\n|\Z)"
    r"(?P<body>(?:(?!#{1,6} )[^\n]*\n|[^#\n][^\n]*\Z)*)",
    re.MULTILINE,
)
# with the blank line above it
_WAITING = re.compile(r"(?:(?<=\n)\r?\n)?^[^\n]*<!-- waiting -->[ \t]*\r?(?:\n|\Z)", re.MULTILINE)


def kind_of(proposal: events.ProposalRecord) -> str:
    """Return the kind of a proposal, a key of `SECTIONS`."""
    return getattr(proposal, "operation", "organize")


def with_proposals(text: str, proposals: Iterable[events.ProposalRecord] = (), n_waiting: int = 0) -> str:
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


def differences_change(tree: Tree, path: str, merged: Merge, who: str) -> list[events.Change]:
    """Return the change that adds a line to `review.md` for each two texts that both stand in a merged file, if any.

    The lines are alike on every device that merges the same two versions.

    Args:
        tree: The brain's places.
        path: The merged file; of `review.md` itself nothing is said.
        merged: It. A difference without a `kept` text is a sentence.
        who: Who changed the same.
    """

    def with_differences(text: str) -> str:
        is_private = audience_of(decode_text(merged.text)) > Audience.ANYONE
        for difference in merged.differences:
            texts = difference.kept, difference.other
            kept, other = (one_line(PRIVATE.sub("", words))[:_MAX_SHOWN] for words in texts)
            mark = f" {PRIVATE_MARK}" if is_private or any(map(PRIVATE.search, texts)) else ""
            what = f"both stand; keep what holds: `{kept}` or `{other}`" if difference.kept else other
            line = f"- {path}: {who} changed it, and {what}{mark}\n"
            if line not in text:
                text += ("" if text.endswith("\n") else "\n") + line
        return text

    return review_change(tree, with_differences) if merged.differences and path != tree.relative(tree.review) else []


def review_change(tree: Tree, with_lines: Callable[[str], str]) -> list[events.Change]:
    """Return the change of `review.md` by a function that adds lines to its text; none where they stand there."""
    content = read_bytes(tree.review)
    before = None if content is None else decode_text(content)
    after = with_lines(EMPTY if before is None or not before.strip() else before)
    return [] if after == before else [events.write(tree.relative(tree.review), content, after)]


@dataclass(frozen=True, slots=True)
class Standing:
    """A line in `review.md` on two texts that both stand in a file.

    Attributes:
        path: The file.
        texts: The two, on one line each and cut where they are long; none for a sentence.
        start: Offset of the line in the text; `text[start:end]` is the line with its end.
        end: See `start`.
    """

    path: str
    texts: tuple[str, ...]
    start: int
    end: int

    def is_of(self, number: int, line: str) -> bool:
        """Return whether a line of the file is one of the texts."""
        return one_line(PRIVATE.sub("", line.strip()))[:_MAX_SHOWN] == self.texts[number]


def find_differences(text: str) -> list[Standing]:
    """Return the lines of `review.md` on what differs between two versions, in order."""
    lines = _DIFFERS.finditer(text)
    found = ((line, tuple(filter(None, (line["kept"], line["other"])))) for line in lines)
    return [Standing(line["path"], texts, line.start(), line.end()) for line, texts in found]


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
