"""Gemini in Google's Takeout ("My Activity"): one record an exchange, as JSON.

There are no conversations in it: the exchanges of a day make one. What Google writes around a prompt is in the
account's language, so nothing here rests on the words of one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from html.parser import HTMLParser
from itertools import chain, groupby, islice
from typing import Any

from brainiac.clock import day_in
from brainiac.imports.records import Conversation, Item, PastExchange, mapping, moment_of, sequence, text_of

_NAMES = ("gemini", "bard")  # the product's name in every language
_LOOKED_AT = 200  # first records, by which Google's word before each prompt is known
_SHARE = 0.95  # of the records that must begin with the same word for it to be Google's and not the person's
_BLOCKS = frozenset("p div li ul ol table tr h1 h2 h3 h4 h5 h6 pre blockquote".split())


@dataclass(frozen=True, slots=True)
class _Record:
    """A record as it is in the export.

    Attributes:
        title: Google's word before each prompt, such as `Prompted`, and the prompt.
        at: ISO 8601 UTC moment.
        answer: "" where the record has none.
    """

    title: str
    at: str
    answer: str


def recognizes(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a record of My Activity about Gemini."""
    product = f"{text_of(record.get('header'))} {sequence(record.get('products'))}".casefold()
    is_activity = isinstance(record.get("title"), str) and isinstance(record.get("time"), str)
    return is_activity and any(name in product for name in _NAMES)


def recognizes_page(head: str) -> bool:
    """Return whether the beginning of a web page is that of My Activity about Gemini."""
    header = re.search(r'class="header-cell.*?<p[^>]*>(.*?)</p>', head, re.DOTALL)
    return header is not None and any(name in header[1].casefold() for name in _NAMES)


def conversations(records: Iterable[Any], zone: tzinfo) -> Iterator[Item]:
    """Yield a conversation for each day of the records of a JSON file.

    Args:
        records: JSON objects.
        zone: The person's time zone, for its days.
    """
    yield from _by_day(map(_record, filter(recognizes, map(mapping, records))), zone)


def _record(record: dict[str, Any]) -> _Record:
    """Return the record in a JSON object, its answer as text."""
    parts = (mapping(item).get("html") for item in sequence(record.get("safeHtmlItem")))
    answer = "\n\n".join(as_text(text_of(html)) for html in parts)
    return _Record(text_of(record.get("title")), moment_of(record.get("time")), answer)


def _by_day(records: Iterator[_Record], zone: tzinfo) -> Iterator[Item]:
    """Yield a conversation for each day of records, which are in order of time, newest first."""
    first = list(islice(records, _LOOKED_AT))
    googles_word = _word_before_prompts(first)
    for day, group in groupby(chain(first, records), lambda record: day_in(zone, record.at)):
        exchanges = [_exchange(record, googles_word) for record in group]
        if not day:
            yield Conversation("", "Gemini", problem=f"{len(exchanges)} records have no date that can be read")
            continue
        exchanges.sort(key=lambda exchange: exchange.at)  # stable: of one second they keep their order
        yield Conversation(day, day, tuple(exchanges), latest_at=exchanges[-1].at)


def _word_before_prompts(records: list[_Record]) -> str:
    """Return the word that Google puts before prompts: the one with which nearly all records with an answer begin.

    Where there is none, it is the English `Prompted`. A word of Google's that stays in a prompt does no harm; taking
    out a word of the person's would.
    """
    words = Counter(record.title.split(" ", 1)[0] for record in records if record.answer and " " in record.title)
    word, count = words.most_common(1)[0] if words else ("", 0)
    return word if count >= max(20, _SHARE * sum(words.values())) else "Prompted"


def _exchange(record: _Record, googles_word: str) -> PastExchange:
    """Return the exchange of a record, without Google's word before its prompt."""
    prompt = record.title.removeprefix(f"{googles_word} ")
    # two prompts may have the same second
    digest = hashlib.sha256(" ".join(prompt.split()).encode("utf-8", "replace")).hexdigest()[:12]
    return PastExchange(f"{record.at} {digest}", record.at, prompt.strip(), record.answer.strip())


class _Text(HTMLParser):
    """Turns HTML into text: lines where it has blocks and breaks, `-` before the items of lists."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """The text so far, with at most one blank line in a row."""
        lines = (line.rstrip(" \t") for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line where a block or a list item begins."""
        if tag == "br":
            self._parts.append("\n")
        elif tag in _BLOCKS:
            self._parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        """Begin a line where a block ends."""
        if tag in _BLOCKS and tag != "li":
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Add text; a line break in HTML is no more than a space."""
        self._parts.append(re.sub(r"[ \t\r\n]+", " ", data))


def as_text(html: str) -> str:
    """Return a piece of HTML as text."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return parser.text
