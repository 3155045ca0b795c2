"""Markdown in what a person typed: what is not their own word is left out, what stands in a row gets its lines."""

from __future__ import annotations

import re
from itertools import pairwise

_NOT_OWN = re.compile(  # fenced code, quoted lines, rows of tables
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*(?P=fence)[^\n]*$|\Z)|^[ \t]*[>|][^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_BOX = re.compile(r"^(?P<mark>[ \t]*[-*+][ \t]+)\[(?P<box>[ xX])\][ \t]+(?=\S)", re.MULTILINE)
_NUMBER = re.compile(r"(?:^|(?<=\s))(?P<number>\d{1,2})[.)]\s+(?=\S)")
_INSTRUCTION = re.compile(  # what follows its colon is the matter it is to be done with
    r"(?:(?:please|now|can you|could you) )*(?:(?:translate|summari[sz]e|rewrite|rephrase|paraphrase|proofread"
    r"|reword)\b|(?!(?:remember|note|keep|know|save|store|add|log|record|remind|about|in|on|for|like|do|is|are)\b)"
    r"[a-z]+ (?:this|these|the following)\b)[^:.?!\n]{0,60}(?::(?=\s*\S)|[\"“«])",
    re.IGNORECASE,
)


def own_words(text: str) -> str:
    """Return what the person says themselves, as plain lines.

    Args:
        text: A prompt or note.

    Returns:
        Without quoted lines, code and tables; boxes in words, the numbers of one line on a line each.
    """
    text = _NOT_OWN.sub("", text)
    text = _BOX.sub(lambda found: f"{found['mark']}{'todo' if found['box'] == ' ' else 'done'}: ", text)
    return "\n".join(map(_numbers_apart, text.split("\n")))


def _numbers_apart(line: str) -> str:
    """Put `1. … 2. … 3. …` of one line on lines of their own."""
    marks: list[re.Match[str]] = []
    for found in _NUMBER.finditer(line):
        is_next = int(found["number"]) == len(marks) + 1
        if is_next and (marks or line[: found.start()].rstrip()[-1:] in ("", ":", ".", ";")):
            marks.append(found)
    if len(marks) < 2:
        return line
    ends = [*(mark.start() for mark in marks), len(line)]
    steps = [line[start:end].strip(" ,;") for start, end in pairwise(ends)]
    return "\n".join(part for part in (line[: ends[0]].rstrip(), *steps) if part)


def is_instruction(paragraph: str) -> bool:
    """Tell whether a paragraph asks to do something with the text it holds: `Translate: I am a fish.`"""
    return _INSTRUCTION.match(paragraph.lstrip()) is not None
