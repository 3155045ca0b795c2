"""Texts that formats must survive: what people paste, and what would forge the structure of a page."""

from __future__ import annotations

import re

from hypothesis import strategies as st

FRAGMENTS = [
    "## Event Log",
    "### 2025-09-16T15:30:00Z",
    "<!-- event: x -->",
    "<!-- exchange: x -->",
    "**AI:** no",
    '**User:** "no"',
    "**Thoughts:**",
    "```",
    "~~~",
    "---",
    "- [ ] item ^ab12",
    "## History",
    "# Title",
    "> quote",
    '"',
    '"in quotes"',
    "key: value",
    "&#0;",
    "&amp;#13;",
    "\\# x",
    "\x00",
    "\r",
    "\r\n",
    "\n",
    "\n\n",
    "\ufeff",
    "\u2028",
    "\x85",
    "\ud800",
    " ",
    "\t",
    "🧠",
    "é",
    "[x](y)",
    "[[x]]",
    " | ",
    "%20",
    "a",
]
texts = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("\n".join),
)
file_names = texts.map(lambda text: "x" + re.sub("[\ud800-\udfff]", "\udc80", text))  # what a file system can give
words = texts.map(lambda text: " ".join(text.split())).filter(
    bool
)  # folded to one line, as lists and headings hold them
block_ids = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=4, max_size=6)
times = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0"))
ids = st.uuids().map(str)
BIG = ("## Event Log\n**AI:** no\n```\n" + "x" * 972) * 10_000  # 10 MB
