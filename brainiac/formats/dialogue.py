"""What was said, word for word, as Markdown: the form that the Event Log and the episodic pages share.

A text of one line stands in quotes behind its label; any other stands as a block quote below it, so that no
line of it can be taken for a heading, a label or a comment of the page (docs/format.md, F-TXT).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from brainiac.clock import parse_iso
from brainiac.formats.prose import escape, newline_of, unescape

EVENT_HEADING = re.compile(r"^### (\d{4}-\d\d-\d\d[T ][^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T| \d\d:)\S+")  # of a heading; a person may have added words behind it
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BLANK = " \t\r\n"
_END = re.compile(r"^(?:#{1,3} |---[ \t]*\r?$)", re.MULTILINE)
_COMMENT = re.compile(r"<!-- (?:event|exchange): (.*?) -->\s*")
PRIVATE_MARK = "<!-- private -->"
PRIVATE = re.compile(r"<!--\s*private\s*-->", re.IGNORECASE)  # the mark as persons write it
_ENDS_PRIVATE = re.compile(rf"(?!>).*?({PRIVATE.pattern})\s*", re.IGNORECASE | re.DOTALL)
_REMEMBERED_LENGTH = 8192  # so that the cache stays small whatever people paste
_LABEL = re.compile(r"\*\*(User|AI|Thoughts):\*\*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StmEvent:
    """One exchange as it was said.

    Attributes:
        id: The exchange's id; `hand-` and a hash of the text where a person wrote the event without one.
        at: ISO 8601 UTC.
        user: What the person wrote.
        ai: The answer; empty for a note that was only captured.
        thoughts: What Reflection made of it; may be empty.
        is_private: Never to be shown to a remote model (`private: true` of its prompt).
        remarks: What else a person wrote into it: whole lines that are no part of what was said.
    """

    id: str
    at: str
    user: str
    ai: str = ""
    thoughts: str = ""
    is_private: bool = False
    remarks: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Placed:
    """An event with its place in a text: `text[start:end]` is all that belongs to it."""

    event: StmEvent
    start: int
    end: int


def render_event(event: StmEvent, *, word: str = "event") -> str:
    """Return an event's heading, comment and texts, ending with a newline.

    Args:
        event: What was said.
        word: What the comment calls it: `event` in short-term memory, `exchange` on an episodic page.
    """
    texts = [_labelled("User", event.user, '"')]
    if event.ai:
        texts.append(_labelled("AI", event.ai, '"'))
    if event.thoughts:
        texts.append(_labelled("Thoughts", event.thoughts, ""))
    # a line right below a block quote would be read as part of it: the quote ends with a blank line of its own
    mark = f"{PRIVATE_MARK}\n" if event.is_private else ""
    return f"### {event.at}\n<!-- {word}: {event.id} -->\n{mark}" + "".join(texts).rstrip("\n") + "\n"


def _labelled(label: str, text: str, quote: str) -> str:
    text = escape(text)
    if "\n" not in text and (quote or text == text.strip()):
        return f"**{label}:** {quote}{text}{quote}\n"
    quoted = text.replace("\n", "\n> ")
    return f"**{label}:**\n> {quoted}\n\n"


def find_events(text: str, start: int = 0, end: int | None = None) -> Iterator[Placed]:
    """Yield the events between two offsets, in the order of the file, with their places."""
    end = len(text) if end is None else end
    found = EVENT_HEADING.search(text, start, end)
    while found:
        body = min(found.end() + 1, end)
        stop = _END.search(text, body, end)
        upto = stop.start() if stop else end
        read = _read_again if upto - body <= _REMEMBERED_LENGTH else _read
        yield Placed(read(found[1], text[body:upto]), found.start(), upto)
        found = EVENT_HEADING.search(text, upto, end)


def outside(text: str, events: Iterable[Placed]) -> str:
    """Return a text without events: what stands around them, and the remarks within them."""
    kept, at = [], 0
    for placed in events:
        kept += [text[at : placed.start], remaining(text, placed)]
        at = placed.end
    return "".join(kept) + text[at:]


def remaining(text: str, placed: Placed) -> str:
    """Return what remains of an event that is taken out: its remarks, with a blank line after them."""
    remarks = placed.event.remarks
    if not remarks or placed.end == len(text):
        return remarks
    newline = newline_of(text)
    return remarks + ("" if remarks.endswith("\n") else newline) + newline


@lru_cache(maxsize=4096)
def is_moment(at: str) -> bool:
    """Return whether an event has a time, without which nobody can tell its day."""
    try:
        parse_iso(at)
    except (ValueError, OverflowError):
        return False
    return True


def _read(heading: str, body: str) -> StmEvent:
    event_id, is_private = "", PRIVATE.search(heading) is not None
    at, words = _at(PRIVATE.sub("", heading).strip())
    parts = [_Part("")]
    for raw in _LINE.findall(body):
        line = raw.rstrip("\n").removesuffix("\r")
        if "<!--" in line and (hidden := _ENDS_PRIVATE.fullmatch(line)):  # what was said stands in quotes
            is_private, line = True, line[: hidden.start(1)].rstrip()
            if not line:
                continue
        if not event_id and (comment := _COMMENT.fullmatch(line)):
            event_id = comment[1]
        elif label := _LABEL.match(line):
            parts.append(_Part(label[1], label[2]))
        else:
            parts[-1].lines.append((line, raw))
    texts, remarks = _said(parts)
    if words:
        remarks.insert(0, words + newline_of(body))
    event_id = event_id or id_by_hand(f"{heading}\n{body}")
    kept = marked("".join(remarks)) if is_private else "".join(remarks)
    return StmEvent(event_id, at, texts["User"], texts["AI"], texts["Thoughts"], is_private, _without_blank_ends(kept))


def _at(heading: str) -> tuple[str, str]:
    """Return the time that a heading begins with, and the words behind it; twice all of it where that is no moment."""
    found = _TIME.match(heading)
    if found and is_moment(found[0]):
        return found[0], heading[found.end() :].strip()
    return heading, heading


def id_by_hand(text: str) -> str:
    """Return the id of an event that a person wrote: it changes when the text does."""
    return "hand-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


# the same log is read after each append: what stood there before need not be read again
_read_again = lru_cache(maxsize=4096)(_read)


@dataclass(slots=True)
class _Part:
    """A label with all below it, down to the next one; the first part has none.

    Attributes:
        first: What stands behind the label.
        lines: Each as it is read, and as it stands.
    """

    label: str
    first: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)

    def read(self) -> tuple[str, list[str]]:
        """Return what was said, and the lines that are no part of it."""
        first, below = self.first.strip(), [raw for _, raw in self.lines]
        if not first and any(line.startswith(">") for line, _ in self.lines):
            quoted = [line[2:] if line.startswith("> ") else line[1:] for line, _ in self.lines if line.startswith(">")]
            return unescape("\n".join(quoted)), [raw for line, raw in self.lines if not line.startswith(">")]
        if first and self.label == "Thoughts":
            return unescape(self.first.removeprefix(" ")), below
        if len(first) > 1 and first[0] == first[-1] == '"' and self.label != "Thoughts":
            return unescape(first[1:-1]), below
        return unescape("\n".join([self.first.removeprefix(" "), *(line for line, _ in self.lines)]).strip()), []


def _said(parts: Sequence[_Part]) -> tuple[dict[str, str], list[str]]:
    """Return what each side said, and what stands there besides; without any label the person said all of it."""
    if len(parts) == 1:
        return {"User": parts[0].read()[0], "AI": "", "Thoughts": ""}, []
    said: dict[str, list[str]] = {"User": [], "AI": [], "Thoughts": []}
    remarks = [raw for _, raw in parts[0].lines]
    for part in parts[1:]:
        text, rest = part.read()
        said[part.label].append(text)
        remarks += rest
    return {label: "\n".join(texts) for label, texts in said.items()}, remarks


def _without_blank_ends(text: str) -> str:
    """Return lines without the blank ones above the first and below the last that is not."""
    content = text.rstrip(_BLANK)
    if not content:
        return ""
    start = text.rfind("\n", 0, len(text) - len(text.lstrip(_BLANK))) + 1
    end = text.find("\n", len(content))
    return text[start : end + 1 if end >= 0 else len(text)]


def marked(text: str) -> str:
    """Return remarks with the mark at the end of each paragraph that lacks it: what was private stays so by itself."""
    return re.sub(r"\S[^\n]*(?:\n[ \t]*\S[^\n]*)*", _with_mark, text)


def _with_mark(found: re.Match[str]) -> str:
    text = found[0]
    if PRIVATE.search(text):
        return text
    end = len(text.rstrip())
    return f"{text[:end]} {PRIVATE_MARK}{text[end:]}"


def render_exchange(event: StmEvent) -> str:
    """Return an exchange as it stands on an episodic page, word for word."""
    return render_event(event, word="exchange")


def parse_exchanges(text: str) -> tuple[StmEvent, ...]:
    """Return the exchanges of an episodic page, in the order of the page."""
    return tuple(placed.event for placed in find_events(text))
