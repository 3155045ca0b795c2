"""Markdown text: escaping, lines, links, blocks, and exchanges word for word (docs/format.md, F-TXT, F-LNK)."""

from __future__ import annotations

import codecs
import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from brainiac.clock import parse_iso
from brainiac.errors import FormatError
from brainiac.formats.authors import LABEL, PERSON, Author, author_of_label

# --- lines, and escaping text that Markdown would read as structure (F-TXT) ------------------------------------------

# Control characters that editors or git would change or take for line ends; tab and newline are not among them.
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_TO_ESCAPE = re.compile(rf"[{_CONTROL}]|&(?=(?:amp;)*#[0-9]+;)")
_ESCAPED = re.compile(r"&#([0-9]{1,7});|&amp;(?=(?:amp;)*#[0-9]+;)")
_IS_CONTROL = re.compile(rf"[{_CONTROL}]")

_FORGES_PROSE = r"#|---|<!--|```|~~~"  # what would begin a section, a rule, a comment or a fence
_PROSE_LINE = re.compile(rf"^(?=\\*(?:{_FORGES_PROSE}))", re.MULTILINE)
_ESCAPED_PROSE_LINE = re.compile(rf"^\\(?=\\*(?:{_FORGES_PROSE}))", re.MULTILINE)


def escape(text: str) -> str:
    """Return text with every control character but tab and newline written as `&#N;`."""
    return _TO_ESCAPE.sub(lambda match: "&amp;" if match[0] == "&" else f"&#{ord(match[0])};", text)


def unescape(text: str) -> str:
    """Undo `escape`; other character references stay as they are."""
    return _ESCAPED.sub(_unescaped, text) if "&" in text else text


def _unescaped(match: re.Match[str]) -> str:
    """Return `&` for `&amp;`, and the control character of a `&#N;`; any other reference stays as it is."""
    if match[1] is None:
        return "&"
    number = int(match[1])
    is_control = number < 0x110000 and _IS_CONTROL.match(chr(number))
    return chr(number) if is_control else match[0]


def one_line(text: str) -> str:
    """Return text on one line for a list or a heading: runs of white space as one space, control characters escaped."""
    return escape(" ".join(text.split()))


def render_prose(text: str) -> str:
    """Return paragraphs for a section, outer white space removed; a line that looks like structure gets a backslash."""
    return _PROSE_LINE.sub(r"\\", escape(text.strip()))


def parse_prose(text: str) -> str:
    """Undo `render_prose`."""
    return unescape(_ESCAPED_PROSE_LINE.sub("", text.replace("\r\n", "\n").strip()))


def percent_escaped(match: re.Match[str]) -> str:
    """Return a matched character of a path as `%XX`; one that no path can hold (a stray surrogate) as `%3F`."""
    errors = "surrogateescape" if "\udc80" <= match[0] <= "\udcff" else "replace"
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", errors))


def newline_of(text: str) -> str:
    """Return the line end a text uses, by its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def find_line(text: str, line: str) -> tuple[int, int] | None:
    """Return the offsets of the first line that equals `line`; white space at its end does not count.

    Returns:
        The offset of its start, and that of the line after it (the end of the text where there is none).
    """
    # a pattern that begins with literal characters is searched fast: a newline before the text makes it so
    match = re.search(rf"\n{re.escape(line)}[^\S\n]*(?:\n|\Z)", f"\n{text}")
    # the added newline moves all offsets by one, but the match begins one character before the line
    return (match.start(), match.end() - 1) if match else None


def end_of_content(text: str, start: int, end: int) -> int:
    """Return the offset after the last line that is not blank between two offsets; `start` if all are blank."""
    content = start + len(text[start:end].rstrip())
    if content == start:
        return start
    line_end = text.find("\n", content, end)
    return end if line_end < 0 else line_end + 1


def splice(text: str, at: int, added: str, end: int | None = None) -> str:
    """Return the text with whole lines inserted at an offset, in the text's own line ends.

    Args:
        text: The text.
        at: Where to insert; a missing line end before it is added.
        added: The lines, with `\\n` ends.
        end: Offset up to which the text is replaced; None to replace nothing.
    """
    newline = newline_of(text)
    before = text[:at]
    if before and not before.endswith("\n"):
        before += newline
    return before + (added.replace("\n", newline) if newline != "\n" else added) + text[at if end is None else end :]


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other parts in the place of some of its own; all else stays byte for byte.

    Args:
        text: The text.
        edits: Start and end of each part, and what stands there then ("" removes it); in order, none over another.
    """
    parts, at = list[str](), 0
    for start, end, part in edits:
        parts += [text[at:start], part]
        at = end
    return "".join(parts) + text[at:]


def is_utf16(content: bytes) -> bool:
    """Return whether a file begins with the byte-order mark of UTF-16; that of UTF-32 begins with the same bytes."""
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return content.startswith(marks) and not content.startswith(codecs.BOM_UTF32_LE)


def decode_text(content: bytes) -> str:
    """Return a file's text: UTF-16 where a byte-order mark says so, else UTF-8; other bytes are kept as surrogates."""
    if is_utf16(content):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            pass  # the mark was chance
    return content.decode("utf-8", "surrogateescape")


# --- links: Markdown ones with the identity in their title, and wiki links (F-LNK) -----------------------------------

_LINK = re.compile(
    r"""(?P<skip>^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*\n(?:.*?^[ \t]*(?P=fence)[`~]*[ \t]*\r?$|.*\Z)
        |(?<!`)(?P<tick>`++)[^\n]{1,1000}?(?<!`)(?P=tick)(?!`)  # code within a line; bounded against quadratic time
        |\\[\[\\`])
    |\[\[(?P<wiki>[^\[\]|\n]+)(?:\|(?P<alias>[^\[\]\n]*))?\]\]
    |\[(?P<text>[^\[\]\\\n]*(?:\\.[^\[\]\\\n]*)*)\]
     \([ ]*(?:<(?P<angle>[^<>\n]*)>|(?P<path>[^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*))
     (?:[ \t]+"(?P<title>[^"\n]*)")?[ ]*\)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_UNSAFE_IN_PATH = re.compile(r"""[\s%()<>"'\\\[\]#?|\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]""")
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_BACKSLASHED = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a text.

    Attributes:
        text: What is shown; for a wiki link without alias, its target.
        target: The path or address without `#fragment`, escapes undone; for a wiki link a title or path.
        uuid: From the title `uuid:…`; "" when there is none.
        start: Offset in the text; `text[start:end]` is the link.
        is_wiki: `[[…]]`.
        fragment: What follows `#`.
        span: Offsets of the target as it is written, without fragment.
    """

    text: str
    target: str
    uuid: str
    start: int
    end: int
    is_wiki: bool
    fragment: str = ""
    span: tuple[int, int] = (0, 0)

    @property
    def is_external(self) -> bool:
        """Whether it leads out of the tree: `https://…`, `mailto:…`."""
        return not self.is_wiki and _EXTERNAL.match(self.target) is not None


def find_links(text: str) -> list[Link]:
    """Return the links of a text in order, those in code left out."""
    if "](" not in text and "[[" not in text:
        return []
    return [_link(match) for match in _LINK.finditer(text) if match["skip"] is None]


def _link(match: re.Match[str]) -> Link:
    """Return the link of a match of `_LINK`; the group that matched is the form of its target."""
    group = next(name for name in ("wiki", "angle", "path") if match[name] is not None)
    written, _, fragment = match[group].partition("#")
    is_wiki, title = group == "wiki", match["title"] or ""
    return Link(
        text=(match["alias"] or match["wiki"]).strip() if is_wiki else unescape(_BACKSLASHED.sub(r"\1", match["text"])),
        target=written.strip() if is_wiki else unquote(written, errors="surrogateescape"),
        uuid=title.removeprefix("uuid:").strip() if title.startswith("uuid:") else "",
        start=match.start(),
        end=match.end(),
        is_wiki=is_wiki,
        fragment=fragment.strip() if is_wiki else unquote(fragment),
        span=(match.start(group), match.start(group) + len(written)),
    )


def relative_link(path: str, folder: str) -> str:
    """Return a path relative to a folder; both are given relative to the root, and may begin with `../`.

    Args:
        path: Of a file.
        folder: "" or "." for the root.
    """
    # `relpath` would take the working directory as root: this one is deep enough for every `..`
    root = "/" + "_/" * path.count("../")
    return posixpath.relpath(root + path, root + folder)


def without_link_targets(text: str) -> str:
    """Return a text with each link replaced by its shown text."""
    return edited(text, ((link.start, link.end, link.text) for link in find_links(text)))


def format_link(text: str, path: str, uuid: str, block_id: str = "") -> str:
    """Return a Markdown link with the identity in its title; `find_links` reads the same values back.

    Args:
        text: Shown; folded to one line.
        path: Relative to the file with the link.
        uuid: Of the note it leads to; "" where it has none.
        block_id: Of the statement it leads to; "" for the whole note.
    """
    shown = re.sub(r"([\\\[\]`*_<>])", r"\\\1", one_line(text))
    title = f' "uuid:{uuid}"' if uuid else ""
    fragment = f"#^{block_id}" if block_id else ""
    return f"[{shown}]({_UNSAFE_IN_PATH.sub(percent_escaped, path)}{fragment}{title})"


def retarget_links(text: str, target_of: Callable[[Link], str]) -> str:
    """Return a text with new targets in its relative Markdown links; everything else stays byte for byte.

    Args:
        text: Of a note.
        target_of: Returns a link's new target, "" to leave it as it is.
    """
    links = (link for link in find_links(text) if link.target and not (link.is_wiki or link.is_external))
    targets = ((link, target_of(link)) for link in links)
    changed = ((link.span, target) for link, target in targets if target not in ("", link.target))
    return edited(text, ((*span, _UNSAFE_IN_PATH.sub(percent_escaped, target)) for span, target in changed))


_OPEN_LINK = re.compile(r"\[(?:\\.|[^\]\\\n])*(?:\\|\](?:\([^)\n]*)?)?\Z")  # at the end, its last sign not come yet


class LinkStream:
    """Shows the links of a text that comes in pieces in another form; wiki links stay.

    Args:
        shown: Returns what is to stand in place of a link, given how it is written.
        clean: Called with the text between links.
    """

    def __init__(self, shown: Callable[[Link, str], str], clean: Callable[[str], str] = str) -> None:
        self._shown, self._clean = shown, clean
        self._pending = ""  # the end of the text so far, where it may be the beginning of a link

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that can be shown now; what may begin a link has to wait."""
        text = self._pending + piece
        open_link = _OPEN_LINK.search(text)
        end = open_link.start() if open_link else len(text)
        self._pending = text[end:]
        return self._converted(text[:end])

    def rest(self) -> str:
        """Return the text that is still pending, at the end."""
        text, self._pending = self._pending, ""
        return self._converted(text)

    def _converted(self, text: str) -> str:
        shown, end = "", 0
        for link in find_links(text):
            if not link.is_wiki:
                shown += self._clean(text[end : link.start]) + self._shown(link, text[link.start : link.end])
                end = link.end
        return shown + self._clean(text[end:])


# --- blocks: paragraphs, whole lists, tables and fences; and the marks of a person in them ---------------------------

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
INDENTED_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_TAG = re.compile(r"(?<!\S)#((?=[\w/-]*[^\W\d_])[\w/-]+)")


def fence_after(fence: str, fence_line: re.Match[str] | None) -> str:
    """Return the marks (such as three backticks) of the code fence that is open after a line; "" for none.

    Args:
        fence: The marks of the fence that is open before the line; "" for none.
        fence_line: The match of three or more marks at the line's start, the marks as its first group; None for none.
    """
    if not fence_line:
        return fence
    if not fence:
        return fence_line[1]
    # a fence is closed by as many marks or more, alone on their line
    is_closed = fence_line[1].startswith(fence) and not fence_line.string[fence_line.end() :].strip()
    return "" if is_closed else fence


def blocks_of(text: str) -> list[str]:
    """Split a text into blocks at blank lines; a code fence or a list with blank lines in it stays one block."""
    lines = text.split("\n")
    blocks: list[tuple[int, int]] = []  # numbers of the first line, and of the one after the last
    fence, is_paragraph_open = "", False
    for number, line in enumerate(lines):
        fence_line = _FENCE.match(line)
        if not fence and not line.strip():
            is_paragraph_open = False
            continue
        # after a blank line: an item of the list in the block before, or indented below an item
        is_more = _ITEM.match(line) is not None or line[:1] in (" ", "\t")
        continues_block = is_paragraph_open or (is_more and bool(blocks) and bool(_ITEM.match(lines[blocks[-1][0]])))
        belongs_to_last = bool(fence) or (not fence_line and continues_block)
        fence = fence_after(fence, fence_line)
        is_paragraph_open = not fence and not fence_line
        start = blocks.pop()[0] if belongs_to_last else number
        blocks.append((start, number + 1))
    return ["\n".join(lines[start:end]) for start, end in blocks]


def without_quotes(text: str) -> str:
    """Return a text without its block quotes and code fences: only the author's own words."""
    lines: list[str] = []
    for block in blocks_of(text):
        if not _FENCE.match(block):
            lines += [line for line in block.split("\n") if not line.lstrip(" ").startswith(">")]
            lines.append("")
    return "\n".join(lines[:-1])


def tags_in(text: str) -> list[str]:
    """Return the `#tags` of a text, code left out."""
    blocks = (_CODE.sub(" ", block) for block in blocks_of(text) if not _FENCE.match(block))
    return list(dict.fromkeys(tag.strip("/") for block in blocks for tag in _TAG.findall(block)))


def wiki_links_in(text: str) -> list[str]:
    """Return the targets of the `[[links]]` of a text, code left out."""
    return list(dict.fromkeys(link.target for link in find_links(text) if link.is_wiki and link.target))


# --- exchanges word for word: the form that the Event Log and episodic pages share -----------------------------------

# A text of one line is in quotes after its label. A longer one is a block quote below the label, so that none of its
# lines is read as a heading, a label or a comment of the page (F-TXT).

EVENT_HEADING = re.compile(r"^### (\d{4}-\d\d-\d\d[T ][^\r\n]*?)[ \t]*\r?$", re.MULTILINE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T| \d\d:)\S+")  # of a heading; a person may have added words after it
LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BLANK = " \t\r\n"
_END = re.compile(r"^(?:#{1,3} |---[ \t]*\r?$)", re.MULTILINE)
_COMMENT = re.compile(r"<!-- (?:event|exchange): (.*?) -->\s*")
PRIVATE_MARK = "<!-- private -->"
PRIVATE = re.compile(r"<!--\s*private\s*-->", re.IGNORECASE)  # the mark as persons write it
_ENDS_PRIVATE = re.compile(rf"(?!>).*?({PRIVATE.pattern})\s*", re.IGNORECASE | re.DOTALL)
_CACHED_LENGTH = 8192  # so that the cache stays small whatever people paste
_LABEL = re.compile(rf"\*\*(User|AI|Thoughts|(?P<author>{LABEL})):\*\*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StmEvent:
    """One exchange, word for word.

    Attributes:
        id: The exchange's id; `hand-` and a hash of the text where a person wrote the event without one.
        at: ISO 8601 UTC.
        user: What was said: the person's words, or those of the author whom `origin` and `by` name.
        ai: The answer; empty for a note that was only captured.
        thoughts: Reflection's remarks; may be empty.
        is_private: Whether it must never be shown to a remote model (`private: true` of its prompt).
        remarks: Whole lines that a person added to it later and that belong to none of its texts.
        origin: Whose words `user` holds, one of `ORIGINS`.
        by: The author's name; "" for the person.
    """

    id: str
    at: str
    user: str
    ai: str = ""
    thoughts: str = ""
    is_private: bool = False
    remarks: str = field(default="", compare=False)
    origin: str = PERSON
    by: str = ""

    @property
    def author(self) -> Author:
        """Whose words `user` holds."""
        return Author(self.origin, self.by)


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event and its offsets in a text: `text[start:end]` is its heading and all below it."""

    event: StmEvent
    start: int
    end: int


def render_event(event: StmEvent, *, word: str = "event") -> str:
    """Return an event as Markdown, ending with a newline: a heading with its time, a comment with its id, its texts.

    Args:
        event: The exchange.
        word: The comment's first word: `event` in short-term memory, `exchange` on an episodic page.
    """
    texts = [_labelled(event.author.label, event.user, '"')]
    if event.ai:
        texts.append(_labelled("AI", event.ai, '"'))
    if event.thoughts:
        texts.append(_labelled("Thoughts", event.thoughts, ""))
    mark = f"{PRIVATE_MARK}\n" if event.is_private else ""
    return f"### {event.at}\n<!-- {word}: {event.id} -->\n{mark}" + "".join(texts).rstrip("\n") + "\n"


def _labelled(label: str, text: str, quote: str) -> str:
    """Return a text after its bold label: on the same line, or below it as a block quote.

    A block quote keeps several lines, and the spaces around a text without quotation marks.

    Args:
        label: The author's, `AI` or `Thoughts`.
        text: As it was written.
        quote: The quotation mark around a text of one line; "" for none.
    """
    text = escape(text)
    if "\n" not in text and (quote or text == text.strip()):
        return f"**{label}:** {quote}{text}{quote}\n"
    quoted = text.replace("\n", "\n> ")
    # Markdown would read a line right below a block quote as part of it: a blank line ends it
    return f"**{label}:**\n> {quoted}\n\n"


def find_events(text: str, start: int = 0, end: int | None = None) -> Iterator[PlacedEvent]:
    """Yield the events between two offsets of a page or of short-term memory, in the order of the file."""
    end = len(text) if end is None else end
    match = EVENT_HEADING.search(text, start, end)
    while match:
        body = min(match.end() + 1, end)
        next_section = _END.search(text, body, end)
        event_end = next_section.start() if next_section else end
        parse = _cached_event if event_end - body <= _CACHED_LENGTH else _event_from
        yield PlacedEvent(parse(match[1], text[body:event_end]), match.start(), event_end)
        match = EVENT_HEADING.search(text, event_end, end)


def text_outside_events(text: str, events: Iterable[PlacedEvent]) -> str:
    """Return a text without its events; a person's remarks within them stay."""
    return edited(text, ((placed.start, placed.end, remarks_of(text, placed)) for placed in events))


def remarks_of(text: str, placed: PlacedEvent) -> str:
    """Return the text that stays when an event is removed: a person's remarks within it, with a blank line after them.

    Args:
        text: The file.
        placed: An event of it.
    """
    remarks = placed.event.remarks
    if not remarks or placed.end == len(text):
        return remarks
    newline = newline_of(text)
    return remarks + ("" if remarks.endswith("\n") else newline) + newline


@lru_cache(maxsize=4096)
def is_timestamp(at: str) -> bool:
    """Return whether a text is an ISO 8601 time."""
    try:
        parse_iso(at)
    except (ValueError, OverflowError):
        return False
    return True


def _event_from(heading: str, body: str) -> StmEvent:
    """Return the event that a heading begins.

    Args:
        heading: Its text, without `###`.
        body: The lines below it: a comment with the id, texts with labels such as `**User:**`, and remarks.
    """
    event_id, is_private, author = "", PRIVATE.search(heading) is not None, Author()
    at = words = PRIVATE.sub("", heading).strip()  # without a time it is both, so that nothing is lost with the event
    if (time := _TIME.match(at)) and is_timestamp(time[0]):
        at, words = time[0], at[time.end() :].strip()
    parts = [_Part("")]
    for raw in LINE.findall(body):
        line = raw.rstrip("\n").removesuffix("\r")
        # a mark in a quoted text was said by somebody and does not count
        if "<!--" in line and (mark := _ENDS_PRIVATE.fullmatch(line)):
            is_private, line = True, line[: mark.start(1)].rstrip()
            if not line:
                continue
        if not event_id and (comment := _COMMENT.fullmatch(line)):
            event_id = comment[1]
        # an author stands before all else that was said: further down it is words that a person wrote
        elif (label := _LABEL.match(line)) and (label["author"] is None or len(parts) == 1):
            author = author_of_label(label[1]) if label["author"] else author
            parts.append(_Part("User" if label["author"] else label[1], label[3]))
        else:
            parts[-1].lines.append((line, raw))
    texts: dict[str, list[str]] = {"User": [], "AI": [], "Thoughts": []}
    above, *labelled = parts
    remark_lines = [raw for _, raw in above.lines]
    if not labelled:  # without labels all lines are what was said
        texts["User"], remark_lines = [above.read()[0]], []
    for part in labelled:
        text, part_remarks = part.read()
        texts[part.label].append(text)
        remark_lines += part_remarks
    remarks = _without_blank_ends((words + newline_of(body) if words else "") + "".join(remark_lines))
    return StmEvent(
        id=event_id or id_by_hand(f"{heading}\n{body}"),
        at=at,
        user="\n".join(texts["User"]),
        ai="\n".join(texts["AI"]),
        thoughts="\n".join(texts["Thoughts"]),
        is_private=is_private,
        remarks=marked(remarks) if is_private else remarks,  # they may outlast the event
        origin=author.origin,
        by=author.by,
    )


def id_by_hand(text: str) -> str:
    """Return the id of an event that a person wrote by hand: `hand-` and a hash of its text."""
    return "hand-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


# the log is parsed after each append: its former events come from the cache
_cached_event = lru_cache(maxsize=4096)(_event_from)


@dataclass(slots=True)
class _Part:
    """The lines of an event from one label (`**User:**`) to the next.

    Attributes:
        label: `User` (whoever's words they are), `AI` or `Thoughts`; "" for the lines above the first label.
        first: The text after the label on its line.
        lines: The lines below: each twice, without line end and private mark, and as written.
    """

    label: str
    first: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)

    def read(self) -> tuple[str, list[str]]:
        """Return the labelled text, and a person's remarks: the lines that are no part of it.

        `_labelled` wrote the text as a block quote below the label, or after it on one line: in quotation marks, or
        without them for thoughts. In any other form a person wrote it, and all lines are the text.
        """
        first, below = self.first.strip(), [raw for _, raw in self.lines]
        if not first and any(line.startswith(">") for line, _ in self.lines):
            quoted = [line[1:].removeprefix(" ") for line, _ in self.lines if line.startswith(">")]
            return unescape("\n".join(quoted)), [raw for line, raw in self.lines if not line.startswith(">")]
        if first and self.label == "Thoughts":
            return unescape(self.first.removeprefix(" ")), below
        if self.label != "Thoughts" and len(first) > 1 and first[0] == first[-1] == '"':
            return unescape(first[1:-1]), below
        return unescape("\n".join([self.first.removeprefix(" "), *(line for line, _ in self.lines)]).strip()), []


def marked(text: str) -> str:
    """Return lines with the private mark above them; none, or lines that have it, as they are."""
    return text if not text or PRIVATE.search(text) else f"{PRIVATE_MARK}{newline_of(text)}{text}"


def _without_blank_ends(text: str) -> str:
    """Return lines without the blank lines at the beginning and at the end."""
    content = text.rstrip(_BLANK)
    if not content:
        return ""
    first_word = len(text) - len(text.lstrip(_BLANK))
    start = text.rfind("\n", 0, first_word) + 1  # with the indentation of its line
    end = text.find("\n", len(content))
    return text[start : end + 1 if end >= 0 else len(text)]


def render_exchange(event: StmEvent) -> str:
    """Return an exchange as Markdown for an episodic page, word for word."""
    return render_event(event, word="exchange")


def parse_exchanges(text: str) -> tuple[StmEvent, ...]:
    """Return the exchanges of an episodic page, in the order of the page."""
    return tuple(placed.event for placed in find_events(text))


# --- conflict markers, which git writes into a file where it could not merge two versions of it -----------------------

CONFLICT = b"<<<<<<<"  # a text without these bytes has no conflict markers

# the lines of one version, up to the next marker
_SIDE = r"(?:(?!(?:<{7}|\|{7}|={7}|>{7})(?: [^\n]*)?\r?$)[^\n]*\n)*"
_CONFLICT_BLOCK = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*(?:\n(?:[^\n]*\n)*?[ \t]*(?P=fence)[`~]*[ \t]*\r?$|(?s:.*)\Z)"
    rf"|^<{{7}}(?: [^\n]*)?\r?\n(?P<ours>{_SIDE})(?:\|{{7}}(?: [^\n]*)?\r?\n(?P<base>{_SIDE}))?"
    rf"={{7}}(?: [^\n]*)?\r?\n(?P<theirs>{_SIDE})>{{7}}(?: [^\n]*)?\r?(?:\n|\Z)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Sides:
    """The versions in a file with conflict markers, each a whole file.

    Attributes:
        ours: The version of the branch that was checked out.
        theirs: The version that was merged into it.
        base: The version that both were made from; None where git did not write it.
    """

    ours: str
    theirs: str
    base: str | None


def has_markers(text: str) -> bool:
    """Return whether a text has at least one whole block of conflict markers outside of code fences."""
    return CONFLICT.decode() in text and split_markers(text) is not None


def check_markers(path: str, text: str) -> None:
    """Refuse a text with conflict markers, since it is unknown which of its lines count.

    Raises:
        FormatError: It has conflict markers.
    """
    if has_markers(text):
        raise FormatError(path, "holds conflict markers of git; keep the lines that hold and remove the markers")


def split_markers(text: str) -> Sides | None:
    """Return the versions in a text with conflict markers; None for a text without a whole block of them.

    A block inside a code fence is part of the text: a person writes about git.
    """
    blocks = [match for match in _CONFLICT_BLOCK.finditer(text) if match["fence"] is None]
    if not blocks:
        return None
    sides = {
        side: edited(text, ((block.start(), block.end(), block[side] or "") for block in blocks))
        for side in ("ours", "theirs", "base")
    }
    has_base = any(block["base"] is not None for block in blocks)  # its marker: the base itself may be empty
    return Sides(sides["ours"], sides["theirs"], sides["base"] if has_base else None)
