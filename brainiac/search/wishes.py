"""What a message asks of memory or gives away, by meaning and in any language, as the local embedder has it.

`benchmarks/wishes.py` learned a direction for each kind from examples; the packaged file holds them. It only says which
line is added to an answer: nothing is ever kept, changed, hidden or masked by it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from brainiac.formats.markdown import without_quotes
from brainiac.text.tokens import pieces

# numpy is heavy, and most commands compare nothing
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# that something be forgotten or not kept; a password, a PIN
WISH, SECRET = "wish", "secret"
PRIVATE, CORRECT, REMEMBER, REMIND, TASKS, HELP, ABOUT_ME, WHO = (
    "private", "correct", "remember", "remind", "tasks", "help", "about_me", "who"
)  # fmt: skip
WISHES = (WISH, PRIVATE, CORRECT, REMEMBER, REMIND, TASKS, HELP, ABOUT_ME, WHO)
LIST = "list"  # several things
ANSWERS = "answers"  # a question, by the products of both vectors
NOW = "now"  # that something holds from now on; no wish, but learned alike (`benchmarks/newest.py`)
FILE = "wishes.json"
_MOST = 3  # sentences at the beginning, and at the end, of a long message


@cache
def directions() -> dict[str, Any]:
    """Return the packaged file: the `embedder` it is for, and by kind the parts of its direction, its offset last."""
    directions: dict[str, Any] = json.loads((resources.files("brainiac.search") / FILE).read_text("utf-8"))
    return directions


def own_sentences(text: str) -> list[str]:
    """Return the sentences of a message that are compared: the first and last of the writer's own words."""
    sentences = [sentence for sentence in pieces(without_quotes(text)) if sentence.strip()]
    return list(dict.fromkeys([*sentences[:_MOST], *sentences[-_MOST:]]))


def kinds_near(vectors: Sequence[NDArray[np.float32]]) -> set[str]:
    """Return what some sentences come near to: of the kinds in `WISHES` at most the nearest; `SECRET`, `LIST` beside.

    Args:
        vectors: Of the sentences, as what is asked, by the embedder that the packaged file is for.
    """
    scores = {
        kind: max((float(vector @ w) + offset for vector in vectors), default=0.0)
        for kind, (*w, offset) in directions().items()
        if kind in (*WISHES, SECRET, LIST)
    }
    nearest = max(WISHES, key=lambda kind: scores.get(kind, 0.0))
    return {kind for kind in (nearest, SECRET, LIST) if scores.get(kind, 0.0) > 0}
