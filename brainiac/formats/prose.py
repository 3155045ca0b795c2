"""Lines of Markdown: where they lie, and how a text is kept from being taken for structure (docs/format.md, F-TXT)."""

from __future__ import annotations

import codecs
import re

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


def decoded(content: bytes) -> str:
    """Return a file's text: UTF-16 where a byte-order mark says so, else UTF-8; other bytes are kept as surrogates."""
    if is_utf16(content):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            pass  # it is neither
    return content.decode("utf-8", "surrogateescape")
