"""Microsoft Copilot's export: one table `Conversation,Time,Author,Message`, newest first, without zone and ids."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import tzinfo
from typing import BinaryIO, NamedTuple

from brainiac.imports.records import Dialogue, Item, moment_of

COLUMNS = ("Conversation", "Time", "Author", "Message")
_ANSWERS = "AI"  # the author that Copilot's own messages have


class _Row(NamedTuple):
    """A message of the table."""

    conversation: str
    time: str
    author: str
    text: str


def recognizes(head: str) -> bool:
    """Return whether the beginning of a file is that of Copilot's table."""
    return tuple(next(csv.reader([head.split("\n", 1)[0]]), ())) == COLUMNS


def conversations(opened: BinaryIO, zone: tzinfo, file_at: str) -> Iterator[Item]:
    """Yield the conversations of a table.

    Args:
        opened: The file.
        zone: The person's time zone, in which its times are.
        file_at: ISO 8601 moment of the file, for messages without a time.
    """
    # an answer may be longer than the 131,072 characters that `csv` allows by default
    csv.field_size_limit(100_000_000)
    rows = [
        _Row(*(row + [""] * 4)[:4])  # a row may be too short or too long
        for row in csv.reader(io.TextIOWrapper(opened, "utf-8-sig", "replace", newline=""))
        if row and tuple(row) != COLUMNS
    ]
    rows_by_title: dict[str, list[_Row]] = defaultdict(list)
    # reversed, not sorted by time: many have the same second as their neighbour
    for row in reversed(rows):
        rows_by_title[row.conversation].append(row)
    person = _person(rows_by_title.values())
    for title, messages in rows_by_title.items():
        dialogue = Dialogue()
        for row, key in zip(messages, _keys(messages), strict=True):
            dialogue.add(key, moment_of(row.time, zone), row.text, is_person=row.author == person)
        # the title is the only name of a conversation, and the table does not say when it began
        yield dialogue.conversation(name=title, title=title, began_at="", file_at=file_at)


def _keys(rows: Iterable[_Row]) -> Iterator[str]:
    """Yield the key of each row of a conversation: a hash, and a number since a person may write the same twice."""
    counts = Counter[str]()
    for row in rows:
        digest = hashlib.sha256("\0".join(row).encode("utf-8", "replace")).hexdigest()[:16]
        counts[digest] += 1
        yield f"{digest}-{counts[digest]}"


def _person(conversations: Collection[list[_Row]]) -> str:
    """Return the author who is the person: the most frequent one beside `AI`, else who begins most conversations."""
    authors = Counter(row.author for rows in conversations for row in rows)
    others = [author for author, _ in authors.most_common() if author != _ANSWERS]
    # the person's own name is in the table, and nothing says which author that is
    if _ANSWERS in authors and others:
        return others[0]
    return Counter(rows[0].author for rows in conversations).most_common(1)[0][0] if authors else ""
