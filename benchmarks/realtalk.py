"""Evidence recall on real chats of real people, through the product's own formats and search.

    python benchmarks/realtalk.py DATA.json

The data (a JSON list of `{"name", "turns": [{"id", "session", "at", "speaker", "text"}], "questions": [{"question",
"evidence": [ids], "category"}]}`) is read from the path and never part of the project. No weight is learned from it:
it shows what the ranking is worth on talk of another kind than that which it was learned from.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.locomo import Conversation, Question, Turn, run
from brainiac.clock import parse_iso
from brainiac.search.query import searches


def read(path: Path) -> list[Conversation]:
    """Read the data set."""
    return [_conversation(chat) for chat in json.loads(path.read_text("utf-8"))]


def _conversation(chat: dict) -> Conversation:
    turns = [
        Turn(turn["id"], turn["session"], parse_iso(turn["at"]), f"{turn['speaker']}: {turn['text']}")
        for turn in chat["turns"]
    ]
    known = {turn.id for turn in turns}
    questions = [
        Question(searches(asked["question"], ())[0], evidence, asked["category"])
        for asked in chat["questions"]
        if (evidence := frozenset(asked["evidence"]) & known)
    ]
    return Conversation(chat["name"], turns, questions)


if __name__ == "__main__":
    run(__doc__, read)
