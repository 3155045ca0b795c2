"""What a note asks to be kept to itself: `private` (never to a remote model) and `remember: false` (kept nowhere).

Both are decided the careful way (docs/format.md, F-PRM-6, F-STM-8): whatever is unclear counts as asked for. What a
person typed where no YAML reader would look is looked at too, since they cannot see what a reader sees.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from brainiac.errors import FormatError
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, PlacedEvent, StmEvent, find_events

_NOT_PRIVATE = frozenset(("", "false", "no", "off", "null", "~", "0"))
_REMEMBERED = frozenset(("true", "yes", "on", "y", "1"))
_FENCE = re.compile(r"^[ ]{0,3}(?:[-*+>][ \t]+)*(`{3,}|~{3,})")
# the mark itself, headings and rules: what is left of a paragraph is what the mark is about
_NO_WORDS = re.compile(
    rf"{PRIVATE.pattern}|^[ ]{{0,3}}(?:#{{1,6}}[ \t].*|[-=*_]{{3,}}[ \t\r]*)$", re.MULTILINE | re.IGNORECASE
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_END = re.compile(r"^(?:---|\.\.\.)[ \t\r]*$", re.MULTILINE)


# --- front matter --------------------------------------------------------------------------------------------------


def is_private(meta: Mapping[str, Any]) -> bool:
    """Return whether front matter keeps its note on this machine: any `private` does that is no plain no."""
    return any(bool(value) and _word(value) not in _NOT_PRIVATE for value in _values(meta, "private"))


def is_forgotten(meta: Mapping[str, Any]) -> bool:
    """Return whether front matter asks that nothing of its note is kept: any `remember` does that is no plain yes."""
    return any(_word(value) not in _REMEMBERED for value in _values(meta, "remember"))


def _values(meta: Mapping[str, Any], key: str) -> Iterator[Any]:
    return (value for each, value in meta.items() if each == key or _plain(str(each)) == key)


def _plain(text: str) -> str:
    """Return a text as a person reads it: no capitals, no wide forms, nothing invisible."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")


def _word(value: Any) -> str:
    return str(value).strip().casefold()


def asks_to_be_forgotten(content: bytes) -> bool:
    """Return whether front matter, or what was meant as such, asks that nothing of a file is kept."""
    return _asks(content, "remember", is_forgotten)


def asks_for_privacy(text: str) -> bool:
    """Return whether front matter, or what was meant as such, keeps a note on this machine."""
    return _begins(text[:64].encode("utf-8", "surrogateescape")) and _asks(
        text.encode("utf-8", "surrogateescape"), "private", is_private
    )


def _begins(start: bytes) -> bool:
    """Return whether a file begins as front matter does, whatever stands unseen before it, in UTF-8 or UTF-16."""
    return start.replace(b"\0", b"").lstrip(b"\xff\xfe\xef\xbb\xbf\xe2\x80\x8b \t\r\n\x0b\x0c").startswith(b"---")


def _asks(content: bytes, key: str, is_asked: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return whether a file asks for something in its front matter, or may.

    Args:
        content: The file.
        key: What is asked for.
        is_asked: Decides by front matter that could be read.
    """
    if not _begins(content[:64]):
        return False
    head = content.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    head = head[head.index("---") :]
    end = _END.search(head, 3)
    block = _ESCAPE.sub(_unescaped, head[3 : end.start() if end else len(head)])
    if key not in _plain(block):
        return False
    try:
        meta, offset = split(head)
    except FormatError:
        return True
    # without an end it may be a rule above a text: there only a line counts that can be nothing but a key
    return is_asked(meta) if offset else any(is_asked({key: found}) for found in _values_in(block, key))


def _values_in(block: str, key: str) -> list[str]:
    """Return what stands behind a key in lines that hold one word more at most; a sentence with the word is no key."""
    line = rf"^[^\w\n]*{key}[^\w\n]*?[:=][ \t]*[\"']?([^\s\"'#]*)[\"']?[ \t]*(?:#.*)?$"
    return re.findall(line, _plain(block).replace("\r", ""), re.MULTILINE)


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2] or found[3], 16)
    return chr(number) if number < 0x110000 else found[0]


# --- marks ---------------------------------------------------------------------------------------------------------


def without_private_paragraphs(text: str) -> str | None:
    """Return prose without its marked paragraphs, a fence being part of one; None where a mark stands alone."""
    if not PRIVATE.search(text):
        return text
    parts = _paragraphs(text)
    marked = [part for part in parts if PRIVATE.search(part)]
    if any(not _NO_WORDS.sub("", part).strip() for part in marked):
        return None
    return "".join(part for part in parts if part not in marked)


def is_private_event(event: StmEvent) -> bool:
    """Return whether an exchange is private: as a whole, or by a mark in what was said."""
    return event.is_private or any(PRIVATE.search(said) for said in (event.user, event.ai, event.thoughts))


def mark_events_private(text: str, is_meant: Callable[[PlacedEvent], bool]) -> str:
    """Return a text in which exchanges are marked private that were not."""
    for placed in reversed(list(find_events(text))):
        if not is_private_event(placed.event) and is_meant(placed):
            comment = re.compile(rf"^<!-- (?:event|exchange): {re.escape(placed.event.id)} -->[^\n]*\n?", re.MULTILINE)
            found = comment.search(text, placed.start, placed.end)
            end = found.end() if found else text.find("\n", placed.start, placed.end) + 1 or placed.end
            newline = "\r\n" if text[max(0, end - 2) : end] == "\r\n" else "\n"
            gap = "" if text[:end].endswith("\n") else newline
            text = f"{text[:end]}{gap}{PRIVATE_MARK}{newline}{text[end:]}"
    return text


def _paragraphs(text: str) -> list[str]:
    """Return paragraphs and the gaps between them, in order; joined they are the text."""
    parts, fence, was_blank = [""], "", False
    for line in text.splitlines(keepends=True):
        is_blank = not fence and not line.strip()
        if is_blank != was_blank:
            parts.append("")
        parts[-1] += line
        was_blank = is_blank
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
    return parts
