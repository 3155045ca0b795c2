"""What a person says to a brain without a daemon, and where its words stand afterwards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from brainiac import Brain
from brainiac.testing import run_once
from tests.support.commands import do


def tell(brain: Brain, name: str, text: str) -> str:
    """Drop a prompt, have it answered and reflected, and return the exchange's id."""
    path = brain.root / f"inbox/{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    run_once(brain)
    return str(next(brain.journal.events(kinds={"prompt-answered"}, reverse=True)).id)


def say_to(brain: Brain, name: str, text: str) -> str:
    """Drop a prompt, have it alone answered and reflected, and return the text of its response."""
    (brain.root / "inbox" / name).parent.mkdir(parents=True, exist_ok=True)
    (brain.root / "inbox" / name).write_text(text)
    do(brain, "ask", "--again", f"inbox/{name}")
    answered = max(brain.journal.events(kinds={"prompt-answered"}), key=lambda event: event.seq)
    return (brain.root / str(answered.data["response"])).read_text()


def texts(brain: Brain) -> dict[str, str]:
    """Return every note that stands, by path."""
    found = (brain.tree.relative(each.path) for each in brain.tree.walk(brain.tree.memory, brain.tree.inbox))
    return {path: brain.read_text(path) or "" for path in found}


def standing(brain: Brain, words: str) -> list[str]:
    """Return the notes that hold words."""
    return sorted(path for path, text in texts(brain).items() if words.casefold() in text.casefold())


def holding(words: Sequence[str], *folders: Path, but: Sequence[Path] = ()) -> list[tuple[str, str]]:
    """Return each of the words, given in lower case, with each file below the folders whose bytes or name hold it."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and path not in but:
                content = path.read_bytes().lower() + os.fsencode(path.name).lower()
                found += [(word, str(path)) for word in words if word.encode() in content]
    return found
