"""The blocks of a Markdown text: paragraphs, whole lists, tables and fences; and the marks of a person in them."""

from __future__ import annotations

import re

from brainiac.formats.links import find_links

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
