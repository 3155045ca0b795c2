"""Gemini in Google's Takeout ("My Activity"): one record an exchange, as JSON or, by default, as a web page.

There are no conversations in it: the exchanges of a day make one. What Google writes around a prompt is in the
account's language, so nothing here rests on the words of one.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from html.parser import HTMLParser
from itertools import chain, groupby, islice
from typing import Any, BinaryIO

from brainiac.clock import day_in, iso
from brainiac.imports.records import Conversation, Item, PastExchange, mapping, moment_of, sequence, text_of

_NAMES = ("gemini", "bard")  # the product's name in every language
_LOOKED_AT = 200  # first records, by which Google's word before each prompt and the order of dates are known
_SHARE = 0.95  # of the records that must begin with the same word for it to be Google's and not the person's
_MAX_WORD = 40  # characters of Google's word
_CHUNK = 65_536
_HAS_DATE = re.compile(r"(?=.*\d{4})(?=.*\d{1,2}[:.]\d\d)")
_NUMERIC = re.compile(r"\s*(\d{1,2})([./-])(\d{1,2})[./-]\d{4}")
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
    # in web pages a no-break space follows Google's word; one further behind is the person's
    before, space, after = record.title.partition("\xa0")
    prompt = after if space and len(before) < _MAX_WORD else record.title.removeprefix(f"{googles_word} ")
    # two prompts may have the same second; spaces differ between the formats of the export
    digest = hashlib.sha256(" ".join(prompt.split()).encode("utf-8", "replace")).hexdigest()[:12]
    return PastExchange(f"{record.at} {digest}", record.at, prompt.strip(), record.answer.strip())


# --- web pages -------------------------------------------------------------------------------------------------------


def conversations_of_page(opened: BinaryIO, zone: tzinfo) -> Iterator[Item]:
    """Yield a conversation for each day of a web page of My Activity, which is read in pieces.

    Args:
        opened: The page.
        zone: The person's time zone, for its days.
    """
    cells = _cells(opened)
    first = list(islice(cells, _LOOKED_AT))
    dates = _Dates(chain.from_iterable(first), zone)
    yield from _by_day((_record_of(cell, dates) for cell in chain(first, cells)), zone)


def _record_of(cell: list[str], dates: _Dates) -> _Record:
    """Return the record in a cell's lines: the prompt with names of attached files, a line with the date, the answer.

    Where no line is a date, all are the prompt, and the moment is "".
    """
    # not the first line, which is the prompt's even where it looks like a date
    for number, line in enumerate(cell[1:], 1):
        if at := dates.moment(line):
            title = "\n".join(cell[:number]).strip()
            return _Record(title, at, "\n".join(cell[number + 1 :]).strip())
    return _Record("\n".join(cell).strip(), at="", answer="")


def _cells(opened: BinaryIO) -> Iterator[list[str]]:
    """Yield the lines of the text of each record about Gemini."""
    parser, decode = _Page(), codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := opened.read(_CHUNK):
        parser.feed(decode.decode(chunk))
        yield from parser.take_records()
    parser.close()
    yield from parser.take_records()


class _Dates:
    """Reads dates as Google writes them in any language.

    Args:
        lines: Lines of the page, some of which are dates: they show whether days or months come first.
        zone: Of a date that names no zone.
    """

    def __init__(self, lines: Iterable[str], zone: tzinfo) -> None:
        from dateparser.date import DateDataParser  # 25 MB, and a second

        order = _order(line for line in lines if _HAS_DATE.match(line))
        settings = {"RETURN_AS_TIMEZONE_AWARE": True, "TIMEZONE": str(zone), **({"DATE_ORDER": order} if order else {})}
        self._parser = DateDataParser(settings=settings)

    def moment(self, line: str) -> str:
        """Return the moment of a line as ISO 8601 UTC; "" where it is no date."""
        if len(line) > 80 or not _HAS_DATE.match(line):
            return ""
        text = " ".join(line.split())  # some languages have narrow spaces before AM and PM
        without_last_word = text.rpartition(" ")[0]  # which may be a zone that the parser does not know
        for attempt in filter(None, (text, without_last_word)):
            if moment := self._parser.get_date_data(attempt).date_obj:
                return iso(moment)
        return ""


def _order(dates: Iterable[str]) -> str:
    """Return "DMY" or "MDY": whether dates of digits begin with day or month; "" where no date is of digits."""
    matches = [match for date in dates if (match := _NUMERIC.match(date))]
    if any(int(match[1]) > 12 for match in matches):
        return "DMY"
    if any(int(match[3]) > 12 for match in matches):
        return "MDY"
    return "DMY" if matches else ""  # more countries write days first


class _Page(HTMLParser):
    """Collects the text of the first content cell of each record of My Activity.

    A record is a `div` of class `outer-cell`. In it are one of class `header-cell`, which names the product, and some
    of class `content-cell`, the first of which has the exchange.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._depth = 0  # of nested `div`s; the record's own is 1
        self._header, self._content = _Text(), _Text()
        self._target: _Text | None = None  # takes the text of the present cell; None where that is not needed
        self._target_depth = 0  # depth of the cell's own `div`
        self._n_cells = 0  # content cells of the record so far
        self._records: list[list[str]] = []

    def take_records(self) -> list[list[str]]:
        """Return the records since the last call, each as lines; they are returned once."""
        records, self._records = self._records, []
        return records

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a record at an outer cell, and collect the text of its header and of its first content cell."""
        classes = (dict(attrs).get("class") or "").split()
        if "outer-cell" in classes:
            self._depth, self._n_cells = 0, 0
            self._header, self._content, self._target = _Text(), _Text(), None
        if tag == "div":
            self._depth += 1
            if "header-cell" in classes:
                self._target, self._target_depth = self._header, self._depth
            elif "content-cell" in classes:
                self._n_cells += 1
                self._target = self._content if self._n_cells == 1 else None
                self._target_depth = self._depth
        if self._target is not None:
            self._target.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """End a cell, or a record, which is kept where its header names Gemini."""
        if self._target is not None:
            self._target.handle_endtag(tag)
        if tag != "div":
            return
        if self._depth == self._target_depth:
            self._target = None
        self._depth -= 1
        if self._depth == 0 and self._n_cells:  # the record's own `div`
            self._n_cells = 0
            if any(name in self._header.text.casefold() for name in _NAMES):
                self._records.append(self._content.text.split("\n"))

    def handle_data(self, data: str) -> None:
        """Add text to the cell that is collected."""
        if self._target is not None:
            self._target.handle_data(data)


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
