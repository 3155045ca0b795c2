"""Links between notes: Markdown links with the identity in their title, and wiki links (docs/format.md, F-LNK)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from brainiac.formats.prose import one_line, percent_escaped, unescape

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
    return [_read(found) for found in _LINK.finditer(text) if found["skip"] is None]


def _read(found: re.Match[str]) -> Link:
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


def shown(text: str) -> str:
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


def relinked(text: str, target_of: Callable[[Link], str]) -> str:
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
