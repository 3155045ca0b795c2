"""Texts that formats must survive: what people paste, and what would forge the structure of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from brainiac.formats.markdown import StmEvent

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


EMPTY_STM = """\
# Short-Term Memory Scratchpad

## Summary

---
## Structured Data
### Goals

### Key Facts & Decisions

### Tasks

---
## Event Log
"""


def exchange_text(event: StmEvent, kind: str = "exchange") -> str:
    """Return an exchange as docs/format.md lays it out, on the page of a day; or of short-term memory, an `event`."""
    sides = {"User": event.user, "AI": event.ai}
    quoted = {
        name: "\n" + "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if "\n" in text else f' "{text}"'
        for name, text in sides.items()
    }
    said = [f"**{name}:**{quoted[name]}\n" for name, text in sides.items() if text or name == "User"]
    mark = "<!-- private -->\n" if event.is_private else ""
    return f"### {event.at}\n<!-- {kind}: {event.id} -->\n{mark}{''.join(said)}"


def stm_text(
    *events: StmEvent,
    summary: str = "",
    facts: Sequence[str] = (),
    tasks: Sequence[str] = (),
    done: Sequence[str] = (),
) -> str:
    """Return short-term memory as docs/format.md lays it out.

    Args:
        events: Oldest first.
        summary: One line.
        facts: Of each its text.
        tasks: As facts.
        done: Those of the tasks that are ticked.
    """
    ticked = [f"- [{'x' if task in done else ' '}] {task}\n" for task in tasks]
    text = EMPTY_STM.replace("## Summary\n", f"## Summary\n{summary}\n" if summary else "## Summary\n")
    text = text.replace("Decisions\n", "Decisions\n" + "".join(f"- {fact}\n" for fact in facts))
    logged = [exchange_text(event, "event") for event in reversed(events)]
    return text.replace("### Tasks\n", "### Tasks\n" + "".join(ticked)) + "\n".join(logged)
