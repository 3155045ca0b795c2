"""The boundary between data and instructions: texts of memory, files and tools are quoted.

Quoted text can be read but cannot pose as a heading, a role, a link or a setting. Every line of data begins with `> `;
everything that a reader might take for a line break is made one first, so that no content stands at the start of a
line. The same content gives the same bytes in every request, as a provider's prefix cache needs it.
"""

from __future__ import annotations

import re
from urllib.parse import quote as percent_encode

QUOTE = "> "
# chat templates recognize these tokens anywhere: a local server would read them as a change of speaker
_CONTROL_TOKENS = re.compile(
    r"<[|\uff5c][^<>\n]{1,60}?[|\uff5c]>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS))\]|"
    r"<</?SYS>>|</?s>|<(?:start|end)_of_turn>|</?(?:tool_call|tool_response|function_calls|think)>",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(\s{0,3})#{1,2}(?=\s|$)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


def clean(text: str) -> str:
    """Return text without control characters, invisible direction and tag characters, and undecodable bytes.

    Line breaks of any kind become newlines; the tokens by which chat templates mark speakers are broken up.
    """
    lines = text.encode("utf-8", "replace").decode("utf-8").splitlines()
    visible = _INVISIBLE.sub("", _CONTROL.sub(" ", "\n".join(lines)))
    return _CONTROL_TOKENS.sub(lambda match: " ".join(match.group()), visible)


def quoted(text: str) -> str:
    """Return text as data: cleaned, every line behind the quote mark."""
    return "\n".join((QUOTE + line).rstrip() for line in clean(text).strip("\n").split("\n"))


def spoken(text: str) -> str:
    """Return a person's text for the model (identity, prompt, steps), with no heading that looks like one of ours.

    Our headings have the first two levels; the person's of these levels become headings of the third.
    """
    return "\n".join(_HEADING.sub(r"\1###", line) for line in clean(text).strip("\n").split("\n"))


def one_line(text: str, max_chars: int = 120) -> str:
    """Return a title, tag or name as one harmless line: no breaks, no brackets or quotes that could end a link."""
    flat = " ".join(clean(text).split())
    flat = flat if len(flat) <= max_chars else flat[: max_chars - 1].rstrip() + "…"
    return re.sub(r'([\[\]"`\\])', r"\\\1", flat)


def reference(title: str, path: str, uuid: str = "") -> str:
    """Return the Markdown link to a memory, with its uuid in the link's title."""
    target = percent_encode(path.encode("utf-8", "surrogateescape"), safe="/-_.~+,@")
    identity = re.sub(r"[^0-9A-Za-z-]", "", uuid)
    return f"[{one_line(title or path)}]({target}" + (f' "uuid:{identity}")' if identity else ")")


def preview(text: str, words: int = 25) -> str:
    """Return the first words of a text on one line."""
    parts = " ".join(clean(text).split()).split(" ", words)
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")
