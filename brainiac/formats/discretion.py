"""Who may see a note: it may be `private` (here alone) or off the record (`remember: false`, kept nowhere).

Where that is unclear, the answer is yes (docs/format.md, F-PRM-6, F-STM-8). Keys that a YAML reader would miss
(capitals, wide letters, invisible characters, a missing end) are read too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any

from brainiac.errors import FormatError
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, PlacedEvent, StmEvent, find_events

_NOT_PRIVATE = frozenset(("", "false", "no", "off", "null", "~", "0"))
_REMEMBERED = frozenset(("true", "yes", "on", "y", "1"))
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_END = re.compile(r"^(?:---|\.\.\.)[ \t\r]*$", re.MULTILINE)
_START = 64  # length of a file's start that is looked at for `---`


class Audience(IntEnum):
    """Who may see a note; also what a reader is, who sees what is not greater. Of two that meet, the greater counts."""

    ANYONE = 0  # every model and door
    HERE = 1  # private: the person, and models on this machine
    NOBODY = 2  # off the record: the person, and a model on this machine whose answer is off the record itself


# --- front matter --------------------------------------------------------------------------------------------------


def is_private(meta: Mapping[str, Any]) -> bool:
    """Return whether front matter makes its note private: by any value of `private` but a plain no."""
    return any(bool(value) and _normalized(value) not in _NOT_PRIVATE for value in _values(meta, "private"))


def is_forgotten(meta: Mapping[str, Any]) -> bool:
    """Return whether front matter puts its note off the record: by any value of `remember` but a plain yes."""
    return any(_normalized(value) not in _REMEMBERED for value in _values(meta, "remember"))


def _values(meta: Mapping[str, Any], key: str) -> Iterator[Any]:
    """Return the values of all keys that look like a key to a person, such as `Private` or `ＰＲＩＶＡＴＥ`."""
    return (value for name, value in meta.items() if name == key or _simplified(str(name)) == key)


def _simplified(text: str) -> str:
    """Return a text in lower case, with wide letters as plain ones and without invisible characters."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")


def _normalized(value: Any) -> str:
    return str(value).strip().casefold()


def asks_for_privacy(text: str) -> bool:
    """Return whether the front matter of a note, broken or not, makes it private."""
    # most notes are decided by their start, and need not be encoded
    start = encoded(text[:_START])
    return _may_have_front_matter(start) and front_matter_asks(encoded(text), "private", is_private)


def encoded(text: str) -> bytes:
    """Return a text as the bytes of its file; half of a pair of surrogates, which comes from no file, as it may be."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def is_private_text(text: str) -> bool:
    """Return whether a file of an exchange is private: by its front matter, or by a mark anywhere in it."""
    return asks_for_privacy(text) or PRIVATE.search(text) is not None


def _may_have_front_matter(start: bytes) -> bool:
    """Return whether a file begins with `---`, in UTF-8 or UTF-16, byte-order marks and white space aside."""
    return start.replace(b"\0", b"").lstrip(b"\xff\xfe\xef\xbb\xbf\xe2\x80\x8b \t\r\n\x0b\x0c").startswith(b"---")


def front_matter_asks(content: bytes, key: str, is_asked: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return whether a file's front matter asks for something; where it cannot be parsed and has the key, True.

    Args:
        content: The file.
        key: `private` or `remember`.
        is_asked: Returns whether parsed front matter asks for it.
    """
    if not _may_have_front_matter(content[:_START]):
        return False
    # without its zero bytes, UTF-16 can be read as UTF-8 wherever it is ASCII
    text = content.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    text = text[text.index("---") :]
    end = _END.search(text, 3)
    block = _ESCAPE.sub(_unescaped, text[3 : end.start() if end else len(text)])
    if key not in _simplified(block):
        return False
    try:
        meta, offset = split(text)
    except FormatError:
        return True
    if offset:
        return is_asked(meta)
    # without a closing `---` the first one may be a rule above a text: only lines `key: value` count
    # (`private: yes`, `- "Private" = 'yes'  # mine`); one with more than a word after the key is a sentence
    line = rf"^[^\w\n]*{key}[^\w\n]*?[:=][ \t]*[\"']?([^\s\"'#]*)[\"']?[ \t]*(?:#.*)?$"
    values = re.findall(line, _simplified(block).replace("\r", ""), re.MULTILINE)
    return any(is_asked({key: value}) for value in values)


def _unescaped(match: re.Match[str]) -> str:
    r"""Return the character that a YAML escape such as `\x70` stands for."""
    number = int(match[1] or match[2] or match[3], 16)
    return chr(number) if number < 0x110000 else match[0]


# --- marks ---------------------------------------------------------------------------------------------------------


def is_private_event(event: StmEvent) -> bool:
    """Return whether an exchange is private: as a whole, or by a mark in one of its texts."""
    return event.is_private or any(PRIVATE.search(text) for text in (event.user, event.ai, event.thoughts))


def mark_events_private(text: str, is_to_mark: Callable[[PlacedEvent], bool]) -> str:
    """Return a text in which some exchanges have the private mark, below the comment with their id.

    Args:
        text: A page or short-term memory.
        is_to_mark: Returns whether an exchange is to be marked; called only for those that are not private yet.
    """
    for placed in reversed(list(find_events(text))):
        if not is_private_event(placed.event) and is_to_mark(placed):
            comment = rf"^<!-- (?:event|exchange): {re.escape(placed.event.id)} -->[^\n]*\n?"
            match = re.compile(comment, re.MULTILINE).search(text, placed.start, placed.end)
            heading_end = text.find("\n", placed.start, placed.end)  # where it has no comment
            at = match.end() if match else placed.end if heading_end < 0 else heading_end + 1
            newline = "\r\n" if text.endswith("\r\n", 0, at) else "\n"
            gap = "" if text.endswith("\n", 0, at) else newline
            text = f"{text[:at]}{gap}{PRIVATE_MARK}{newline}{text[at:]}"
    return text
