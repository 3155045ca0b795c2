"""Text as Markdown: lines, links, blocks, and what was said word for word (docs/format.md, F-TXT, F-LNK)."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from brainiac.clock import parse_iso

# --- lines, and how a text is kept from being taken for structure (F-TXT) --------------------------------------------

# What editors, git or other readers of lines would change or stumble over; tab and newline are not among them.
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_TO_ESCAPE = re.compile(rf"[{_CONTROL}]|&(?=(?:amp;)*#[0-9]+;)")
_ESCAPED = re.compile(r"&#([0-9]{1,7});|&amp;(?=(?:amp;)*#[0-9]+;)")
_IS_CONTROL = re.compile(rf"[{_CONTROL}]")

_FORGES_PROSE = r"#|---|<!--|```|~~~"  # what would begin a section, a rule, a comment or a fence
_PROSE_LINE = re.compile(rf"^(?=\\*(?:{_FORGES_PROSE}))", re.MULTILINE)
_ESCAPED_PROSE_LINE = re.compile(rf"^\\(?=\\*(?:{_FORGES_PROSE}))", re.MULTILINE)


def escape(text: str) -> str:
    """Return text of which every control character but tab and newline stands as `&#N;`."""
    return _TO_ESCAPE.sub(lambda found: "&amp;" if found[0] == "&" else f"&#{ord(found[0])};", text)


def unescape(text: str) -> str:
    """Undo `escape`; other character references stay as they are."""
    return _ESCAPED.sub(_unescaped, text) if "&" in text else text


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return "&"
    number = int(found[1])
    is_ours = number < 0x110000 and _IS_CONTROL.match(chr(number))
    return chr(number) if is_ours else found[0]


def one_line(text: str) -> str:
    """Return text with every run of white space as one space, for what stands in a list or a heading."""
    return escape(" ".join(text.split()))


def render_prose(text: str) -> str:
    """Return paragraphs for a section, outer white space removed; a line that looks like structure gets a backslash."""
    return _PROSE_LINE.sub(r"\\", escape(text.strip()))


def parse_prose(text: str) -> str:
    """Undo `render_prose`."""
    return unescape(_ESCAPED_PROSE_LINE.sub("", text.replace("\r\n", "\n").strip()))


def percent_escaped(found: re.Match[str]) -> str:
    """Return a matched character of a path as `%XX`; one that no path can hold (a stray surrogate) as `%3F`."""
    errors = "surrogateescape" if "\udc80" <= found[0] <= "\udcff" else "replace"
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", errors))


def newline_of(text: str) -> str:
    """Return the line end a text uses, by its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def find_line(text: str, line: str) -> tuple[int, int] | None:
    """Return where the first line stands that is `line`, white space at its end aside.

    Returns:
        The offset of its start, and that of the line after it (the end of the text where there is none).
    """
    at = 0 if text.startswith(line) else text.find("\n" + line) + 1
    while at or text.startswith(line):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if not text[at + len(line) : end].strip():
            return at, min(end + 1, len(text))
        at = text.find("\n" + line, end) + 1
        if not at:
            return None
    return None


def end_of_content(text: str, start: int, end: int) -> int:
    """Return the offset after the last line between two offsets that is not blank (`start` when all are)."""
    content = start + len(text[start:end].rstrip())
    if content == start:
        return start
    line_end = text.find("\n", content, end)
    return end if line_end < 0 else line_end + 1


def splice(text: str, at: int, added: str, end: int | None = None) -> str:
    """Return the text with whole lines put in, in its own line ends, in place of those up to `end`."""
    newline = newline_of(text)
    before = text[:at]
    if before and not before.endswith("\n"):
        before += newline
    return before + (added.replace("\n", newline) if newline != "\n" else added) + text[at if end is None else end :]


def is_utf16(content: bytes) -> bool:
    """Return whether a file says by its byte-order mark that it is UTF-16; that of UTF-32 begins alike."""
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return content.startswith(marks) and not content.startswith(codecs.BOM_UTF32_LE)


def decode_text(content: bytes) -> str:
    """Return a file's text: UTF-16 where a byte-order mark says so, else UTF-8; other bytes are kept as surrogates."""
    if is_utf16(content):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            pass  # it is neither
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
        """It leads out of the tree: `https://…`, `mailto:…`."""
        return not self.is_wiki and _EXTERNAL.match(self.target) is not None


def find_links(text: str) -> list[Link]:
    """Return the links of a text in order, those in code left out."""
    if "](" not in text and "[[" not in text:
        return []
    return [_link(found) for found in _LINK.finditer(text) if found["skip"] is None]


def _link(found: re.Match[str]) -> Link:
    group = next(name for name in ("wiki", "angle", "path") if found[name] is not None)
    written, _, fragment = found[group].partition("#")
    span = (found.start(group), found.start(group) + len(written))
    if group == "wiki":
        shown = found["alias"] or found["wiki"]
        return Link(shown.strip(), written.strip(), "", *found.span(), True, fragment.strip(), span)
    title = found["title"] or ""
    uuid = title[5:].strip() if title.startswith("uuid:") else ""
    target = unquote(written, errors="surrogateescape")
    shown = unescape(_BACKSLASHED.sub(r"\1", found["text"]))
    return Link(shown, target, uuid, *found.span(), False, unquote(fragment), span)


def without_link_targets(text: str) -> str:
    """Return a text with what is shown of its links in their place: where they lead is no part of what it says."""
    for link in reversed(find_links(text)):
        text = text[: link.start] + link.text + text[link.end :]
    return text


def format_link(text: str, path: str, uuid: str, block_id: str = "") -> str:
    """Return a Markdown link with the identity in its title; `find_links` reads the same values back.

    Args:
        text: Shown; folded to one line.
        path: Relative to the file that the link stands in.
        uuid: Of the note it leads to; "" where it has none.
        block_id: Of the statement it leads to; "" for the whole note.
    """
    shown = re.sub(r"([\\\[\]`*_<>])", r"\\\1", one_line(text))
    title = f' "uuid:{uuid}"' if uuid else ""
    fragment = f"#^{block_id}" if block_id else ""
    return f"[{shown}]({_quoted(path)}{fragment}{title})"


def _quoted(path: str) -> str:
    return _UNSAFE_IN_PATH.sub(percent_escaped, path)


def retarget_links(text: str, target_of: Callable[[Link], str]) -> str:
    """Return a text whose relative links lead elsewhere; all else stays byte for byte.

    Args:
        text: Of a note.
        target_of: Gives a link's new target, "" to leave it as it is.
    """
    for link in reversed(find_links(text)):
        if link.is_wiki or link.is_external or not link.target:
            continue
        target = target_of(link)
        if target and target != link.target:
            text = rewrite_link(text, link, target)
    return text


def rewrite_link(text: str, link: Link, target: str) -> str:
    """Return the text in which a link found in it leads elsewhere; its title, alias and fragment stay.

    Args:
        text: What `find_links` was given; rewrite the last link first when there are several.
        link: One of its links.
        target: The new path, or for a wiki link the new title or path.
    """
    start, end = link.span
    return text[:start] + (target if link.is_wiki else _quoted(target)) + text[end:]


# --- blocks: paragraphs, whole lists, tables and fences; and the marks of a person in them ---------------------------

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_TAG = re.compile(r"(?<!\S)#((?=[\w/-]*[^\W\d_])[\w/-]+)")


def blocks_of(text: str) -> list[str]:
    """Return the blocks of a text in order, each as it stands: what no blank line parts, a fence and a list whole."""
    lines = text.split("\n")
    blocks: list[tuple[int, int]] = []  # first line, and the one after the last
    fence, is_open = "", False
    for number, line in enumerate(lines):
        opening = _FENCE.match(line)
        is_of_last = bool(fence) or (not opening and (is_open or (bool(blocks) and _goes_on(lines, blocks[-1], line))))
        if fence:
            if opening and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif not line.strip():
            is_open = False
            continue
        elif opening:
            fence = opening[1]
        is_open = not fence and not opening
        blocks.append((blocks.pop()[0] if is_of_last else number, number + 1))
    return ["\n".join(lines[start:end]) for start, end in blocks]


def _goes_on(lines: list[str], block: tuple[int, int], line: str) -> bool:
    """Return whether a line behind a blank one belongs to the list before it."""
    is_list = _ITEM.match(lines[block[0]]) is not None
    return is_list and (_ITEM.match(line) is not None or line[:1] in (" ", "\t"))


def tags_in(text: str) -> list[str]:
    """Return the `#tags` of a text, code left out."""
    if _FENCE.match(text):
        return []
    return list(dict.fromkeys(tag.strip("/") for tag in _TAG.findall(_CODE.sub(" ", text))))


def wiki_links_in(text: str) -> list[str]:
    """Return the targets of the `[[links]]` of a text, code left out."""
    return list(dict.fromkeys(link.target for link in find_links(text) if link.is_wiki and link.target))


# --- what was said, word for word: the form that the Event Log and episodic pages share ------------------------------

# A text of one line stands in quotes behind its label; any other stands as a block quote below it, so that no
# line of it can be taken for a heading, a label or a comment of the page (F-TXT).

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
class PlacedEvent:
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


def find_events(text: str, start: int = 0, end: int | None = None) -> Iterator[PlacedEvent]:
    """Yield the events between two offsets, in the order of the file, with their places."""
    end = len(text) if end is None else end
    found = EVENT_HEADING.search(text, start, end)
    while found:
        body = min(found.end() + 1, end)
        stop = _END.search(text, body, end)
        upto = stop.start() if stop else end
        read = _read_again if upto - body <= _REMEMBERED_LENGTH else _read
        yield PlacedEvent(read(found[1], text[body:upto]), found.start(), upto)
        found = EVENT_HEADING.search(text, upto, end)


def text_outside_events(text: str, events: Iterable[PlacedEvent]) -> str:
    """Return a text without events: what stands around them, and the remarks within them."""
    kept, at = [], 0
    for placed in events:
        kept += [text[at : placed.start], remarks_of(text, placed)]
        at = placed.end
    return "".join(kept) + text[at:]


def remarks_of(text: str, placed: PlacedEvent) -> str:
    """Return what remains of an event that is taken out: its remarks, with a blank line after them."""
    remarks = placed.event.remarks
    if not remarks or placed.end == len(text):
        return remarks
    newline = newline_of(text)
    return remarks + ("" if remarks.endswith("\n") else newline) + newline


@lru_cache(maxsize=4096)
def is_timestamp(at: str) -> bool:
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
    kept = with_private_marks("".join(remarks)) if is_private else "".join(remarks)
    return StmEvent(event_id, at, texts["User"], texts["AI"], texts["Thoughts"], is_private, _without_blank_ends(kept))


def _at(heading: str) -> tuple[str, str]:
    """Return the time that a heading begins with, and the words behind it; twice all of it where that is no moment."""
    found = _TIME.match(heading)
    if found and is_timestamp(found[0]):
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


def with_private_marks(text: str) -> str:
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
