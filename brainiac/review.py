"""`memory/review.md`: what a process would like to do and may not, one line a proposal with its id.

A person ticks `[x]` to have the journaled proposal done, `[-]` to decline; absence means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from brainiac.notes.prose import one_line

EMPTY = """\
# Review

What Brainiac would like to do and may not. Put an `x` into a box to have it done, a `-` to decline; save the file.

"""
_ID = re.compile(r"<!-- proposal: (\S+) -->")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something put before a person.

    Attributes:
        id: Its identity; the line only shows it, the journal says what is done.
        what: One sentence.
        data: The operation, plain JSON values, journaled.
    """

    id: str
    what: str
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return what the journal keeps."""
        return {"id": self.id, "what": self.what, **self.data}


def with_proposals(text: str | None, proposals: Iterable[Proposal]) -> str:
    """Return `review.md` with lines for proposals below what stands there; one whose id stands there is left alone.

    Args:
        text: The file as it stands; None where there is none.
        proposals: What to add.
    """
    text = EMPTY if text is None or not text.strip() else text
    known = set(_ID.findall(text))
    newline = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
    for proposal in proposals:
        if proposal.id not in known:
            text += "" if text.endswith("\n") else newline
            text += f"- [ ] {one_line(proposal.what)} <!-- proposal: {proposal.id} -->{newline}"
    return text
