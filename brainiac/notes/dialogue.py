"""What was said, word for word, as Markdown: the form that the Event Log and the episodic pages share.

A text of one line stands in quotes behind its label; any other stands as a block quote below it, so that no
line of it can be taken for a heading, a label or a comment of the page (docs/format.md, F-TXT).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from brainiac.notes.prose import escape, unescape

EVENT_HEADING = re.compile(r"^### (\d{4}-\d\d-\d\d[T ][^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
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
    """

    id: str
    at: str
    user: str
    ai: str = ""
    thoughts: str = ""
    is_private: bool = False


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


def _read(at: str, body: str) -> StmEvent:
    event_id, is_private = "", PRIVATE.search(at) is not None
    texts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in body.replace("\r\n", "\n").split("\n"):
        if "<!--" in line and (marked := _ENDS_PRIVATE.fullmatch(line)):  # what was said stands in quotes
            is_private, line = True, line[: marked.start(1)].rstrip()
        if not event_id and (comment := _COMMENT.fullmatch(line)):
            event_id = comment[1]
        elif label := _LABEL.match(line):
            lines = texts.setdefault(label[1], [])
            lines.append(label[2])
        else:
            lines.append(line)
    said = {label: _said(label, found) for label, found in texts.items()}
    event_id = event_id or "hand-" + hashlib.sha256(f"{at}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    at = PRIVATE.sub("", at).strip()
    return StmEvent(event_id, at, said.get("User", ""), said.get("AI", ""), said.get("Thoughts", ""), is_private)


# the same log is read after each append: what stood there before need not be read again
_read_again = lru_cache(maxsize=4096)(_read)


def _said(label: str, lines: list[str]) -> str:
    first, rest = lines[0], lines[1:]
    if not first.strip() and any(line.startswith(">") for line in rest):
        quoted = (line[2:] if line.startswith("> ") else line[1:] for line in rest if line.startswith(">"))
        return unescape("\n".join(quoted))
    text = "\n".join([first.removeprefix(" "), *rest])
    if label == "Thoughts" and "\n" not in text:
        return unescape(text)
    text = text.strip()
    if label != "Thoughts" and len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return unescape(text)


def render_exchange(event: StmEvent) -> str:
    """Return an exchange as it stands on an episodic page, word for word."""
    return render_event(event, word="exchange")


def parse_exchanges(text: str) -> tuple[StmEvent, ...]:
    """Return the exchanges of an episodic page, in the order of the page."""
    return tuple(placed.event for placed in find_events(text))
