"""Whose words a text holds: the person's, or those of an assistant, an import or a tool, and what that is called.

The person's words bear no mark. All others say whose they are wherever they stand: an exchange in its first label
(`**assistant (claude):**`), a statement at its end (`(assistant: claude)`), a file in its front matter (F-WHO).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

ORIGINS = ("person", "assistant", "import", "tool")  # the most trusted first
PERSON = ORIGINS[0]
MAX_NAME = 80
# what conversations and notes are imported from, as `by` of their pages names it
SERVICES = {
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "gemini": "Gemini",
    "copilot": "Copilot",  # no longer read, but brains have pages of it
    "claude-code": "Claude Code",
    "codex": "Codex",
    "cursor": "Cursor",
    "notes": "Notes",
    "mail": "Mail",
    "documents": "Documents",
    "files": "files in the inbox",
}
LABEL = r"(?:assistant|import|tool)(?: \([^()*\n]*\))?"  # what stands in place of `User`
_DOORS = {"mcp": "MCP", "api": "REST", "v1": "OpenAI's API"}
# what a client must not be called, since the program means itself or the person by it
_OURS = frozenset("person user you ai cli kernel brainiac core_loop reflection promotion organization".split())
_STRUCTURE = re.compile(r'[()\[\]{}<>*`"|\\^~#]+')
_MARK = re.compile(
    r"\s\((?P<origin>assistant|import|tool): (?:\[(?P<linked>(?:[^\]\\\n]|\\.)*)\]\([^()\n]*\)|(?P<by>[^()\n]*))\)"
    r"(?:\s*<!--\s*private\s*-->)?\s*\Z",
    re.IGNORECASE,
)


class Author(NamedTuple):
    """Whose words a text holds.

    Attributes:
        origin: One of `ORIGINS`.
        by: The name of who wrote it; "" for the person, or where it is unknown.
    """

    origin: str = PERSON
    by: str = ""

    def mark(self, source: str = "") -> str:
        """Return what stands behind a statement of the author's, with a blank before it; "" for the person's.

        Args:
            source: A link to what the words stand in, in place of the name.
        """
        return "" if self.origin == PERSON else f" ({self.origin}: {source or self.by or self.origin})"

    @property
    def named(self) -> str:
        """The label; "" for the person, whose words need none."""
        return "" if self.origin == PERSON else self.label

    @property
    def label(self) -> str:
        """What stands before the words: `User`, or such as `assistant (claude)`."""
        if self.origin == PERSON:
            return "User"
        return f"{self.origin} ({self.by})" if self.by else self.origin


THE_PERSON = Author()


def least_trusted(*origins: str) -> str:
    """Return the least trusted of some origins; `tool` for one that is unknown, the person where there are none."""
    known = [origin if origin in ORIGINS else ORIGINS[-1] for origin in origins if origin]
    return max(known, key=ORIGINS.index, default=PERSON)


def plain_name(name: object) -> str:
    """Return a name on one line, without unprintable signs and those by which Markdown and this program read lines."""
    printable = "".join(sign if sign.isprintable() else " " for sign in str(name))
    return " ".join(_STRUCTURE.sub(" ", printable).split())[:MAX_NAME].strip()


def client_label(door: str, name: str) -> str:
    """Return what a client is called: its door and the name that it gives itself, which is a label and nothing more.

    Args:
        door: `mcp`, `api` or `v1`.
        name: As the client says; it cannot pose as the person, another door or a process.
    """
    plain = plain_name(name.replace(":", " "))[:60].strip()
    return f"{door}:{'unknown' if plain.casefold() in {'', *_OURS} else plain}"


def door_and_name(by: str) -> tuple[str, str]:
    """Return the door of a client for a person to read, "" where it has none, and its name."""
    door, sign, name = by.partition(":")
    return (_DOORS[door], name) if sign and door in _DOORS else ("", by)


def author_in(meta: Mapping[str, Any]) -> Author:
    """Return the author that a page's front matter names; the person where it names none.

    A value of `origin` that is unknown counts as the least trusted; `by` alone may be a person's, about a quotation.
    """
    if meta.get("origin") is None:
        return Author()
    origin, by = least_trusted(str(meta["origin"])), plain_name(meta.get("by") or "")
    return Author(origin, SERVICES.get(by, by) if origin == "import" else "" if origin == PERSON else by)


def author_of_label(label: str) -> Author:
    """Return the author that the label of an exchange's first text names."""
    origin, _, by = label.partition(" (")
    return Author(origin, by.removesuffix(")")) if origin in ORIGINS else Author()


def without_mark(text: str) -> str:
    """Return a statement without what it names at its end as its author."""
    match = _MARK.search(text)
    return text[: match.start()] if match else text


def author_of_statement(text: str) -> Author:
    """Return the author that a statement names at its end; the person where it names none."""
    match = _MARK.search(text) if text.endswith((")", ">")) else None
    if match is None:
        return Author()
    origin, by = match["origin"].lower(), plain_name(match["linked"] or match["by"] or "")
    return Author(origin, "" if by == origin else by)
