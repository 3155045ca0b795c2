"""What every reader of an export returns: conversations with their exchanges, and notes; plain values of any format."""

from __future__ import annotations

import hashlib
import posixpath
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brainiac.clock import iso, parse_iso
from brainiac.formats.markdown import escape
from brainiac.tree import is_printable, slugify

_IDS = uuid.UUID("6f0a5a5e-3f5c-5c0c-9d3a-2f4a4b1f7f10")  # the ids of notes are derived within it
_MAX_SECONDS = 100_000_000_000  # a larger number of a moment counts milliseconds


@dataclass(slots=True)
class PastExchange:
    """What a person wrote and what they were answered.

    Attributes:
        key: Its name within its conversation, the same in every export.
        at: ISO 8601 UTC moment, its own or that of the exchange before; "" where the export has none.
        user: What the person wrote; "" where the other side began.
        ai: The answer; "" where there is none.
        is_private: Whether no model elsewhere may see it.
    """

    key: str
    at: str
    user: str = ""
    ai: str = ""
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of an export.

    Attributes:
        id: The service's own; the same in every export.
        title: As the person sees it; "" for none.
        exchanges: In the order in which they were said.
        file_at: ISO 8601 UTC moment of the export, for exchanges without one.
        problem: Why nothing of it can be imported, in words for a person; "" where it can.
        n_aside: How many of its messages the person does not see there any more; they stay in the export.
    """

    id: str
    title: str
    exchanges: tuple[PastExchange, ...] = ()
    file_at: str = ""
    problem: str = ""
    n_aside: int = 0

    @property
    def began_at(self) -> str:
        """The moment of its first exchange."""
        return min((exchange.at for exchange in self.exchanges if exchange.at), default=self.file_at)

    @property
    def ended_at(self) -> str:
        """The moment of its last exchange."""
        return max((exchange.at for exchange in self.exchanges), default="") or self.file_at


@dataclass(frozen=True, slots=True)
class Note:
    """A text that becomes a page: a note of the person's, a mail, a document, what a service noted about the person.

    Attributes:
        key: Its name, the same in every export.
        title: For a person.
        text: Its text; of a note of the person's Markdown, with front matter.
        at: ISO 8601 moment or day that the text itself has; "" where it has none.
        path: Of a note of the person's or a document: its path below the imported folder; "" for other texts.
        file_at: ISO 8601 moment of its file, for a text without a date.
        original: The file that the text was taken from, to be kept beside the page; empty where the text is all.
        remark: What is missing of the text, in words for a person; "" for nothing.
        problem: Why it cannot be imported, in words for a person; "" where it can.
    """

    key: str
    title: str
    text: str = ""
    at: str = ""
    path: str = ""
    file_at: str = ""
    original: bytes = b""
    remark: str = ""
    problem: str = ""


Item = Conversation | Note


def add_message(exchanges: list[PastExchange], key: str, at: str, text: str, *, is_person: bool) -> None:
    """Add a message of a conversation to its exchanges, unless it has no text; each of the person begins one."""
    if not text.strip():
        return
    if is_person or not exchanges:
        exchanges.append(PastExchange(key, at))
    exchange = exchanges[-1]
    if is_person:
        exchange.user = text
    else:
        exchange.ai = joined([exchange.ai, text])


def conversation_of(
    exchanges: Sequence[PastExchange], name: str, title: str, began_at: str, file_at: str, n_aside: int = 0
) -> Conversation:
    """Return the conversation of some exchanges.

    Args:
        exchanges: In the order in which they were said.
        name: The service's id of the conversation.
        title: As the person sees it.
        began_at: ISO 8601 moment at which it began, by the export; "" where it has none.
        file_at: ISO 8601 moment of the export.
        n_aside: See `Conversation`.
    """
    at = began_at
    for exchange in exchanges:
        exchange.at = at = exchange.at or at
    problem = "" if exchanges else "holds no message with text"
    return Conversation(name, title, tuple(exchanges), file_at, problem, n_aside)


def exchange_id(service: str, conversation: str, exchange: PastExchange) -> str:
    """Return the id of an exchange in the brain: the same whatever export the exchange comes from.

    It is a UUIDv7 of the moment of the exchange, since ids ascend in time. Its random bits are taken from a hash.

    Args:
        service: What the export comes from.
        conversation: The service's id of the conversation.
        exchange: The exchange.
    """
    digest = hashlib.sha256(f"{service}:{conversation}:{exchange.key}".encode("utf-8", "replace")).digest()
    milliseconds = int(parse_iso(exchange.at).timestamp() * 1000) if exchange.at else 0
    # all bits but those of version and variant
    random_bits = int.from_bytes(digest[:10], "big") & ~(0xF << 76 | 0b11 << 62)
    return str(uuid.UUID(int=max(milliseconds, 0) << 80 | 7 << 76 | 0b10 << 62 | random_bits))


def note_id(service: str, key: str) -> str:
    """Return the uuid of a note's page, the same in every import."""
    # a file's name may have bytes that are no UTF-8
    return str(uuid.uuid5(_IDS, f"{service}:{key}".encode("utf-8", "backslashreplace").decode()))


# --- names -----------------------------------------------------------------------------------------------------------

MAX_NAME_BYTES = 200
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # a name with one reads as another


def page_path(path: str) -> str:
    """Return the path of the page for a path of an export: without parts such as `..`, and with no unusable names."""
    path = _DIRECTION.sub("", posixpath.splitext(path.replace("\\", "/"))[0])
    parts = [part for part in path.split("/") if part.strip(". ")] or ["note"]
    if not all(is_printable(part) and len(part.encode()) < MAX_NAME_BYTES for part in parts):
        parts = [slugify(part) for part in parts]
    name = "index-page" if parts[-1] == "_index" else parts[-1]  # `_index.md` is the page about a folder
    return "/".join([*parts[:-1], f"{name}.md"])


# --- values of JSON that nobody documents: what has another type than expected counts as missing --------------------


def mapping(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return a value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return a value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def moment_of(value: Any) -> str:
    """Return a moment as ISO 8601 UTC; "" for what is none.

    Args:
        value: Seconds or milliseconds since 1970, or an ISO 8601 moment, of UTC where it names no zone.
    """
    # what a service writes as a date is in no documentation: anything may come
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            seconds = value / 1000 if value > _MAX_SECONDS else value
            return iso(datetime.fromtimestamp(seconds, UTC))
        return iso(parse_iso(text_of(value)))
    except (ValueError, OverflowError, OSError):
        return ""


def quoted(text: str) -> str:
    """Return a text as a block quote, in which no line is read as structure of the page."""
    return "> " + escape(text.replace("\r\n", "\n").strip()).replace("\n", "\n> ")


def joined(parts: Sequence[str]) -> str:
    """Return the parts that hold text, a blank line between them."""
    return "\n\n".join(part for part in parts if part.strip())
