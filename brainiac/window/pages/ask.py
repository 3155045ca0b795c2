"""Ask: a conversation, which is its folder in the inbox, with the passages that each answer rests on beside it."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BrainiacError
from brainiac.formats.prompt import conversation_of, parse_prompt
from brainiac.library import read_prompt
from brainiac.window.frame import LiveAnswer, Page, Visit
from brainiac.window.pages.today import shown_answer

MAX_CONVERSATIONS, MAX_LOOKED_AT, MAX_OPENING = 20, 400, 200
_LATEST = "SELECT prompt, max(at) FROM exchanges WHERE is_kept AND response != '' GROUP BY 1 ORDER BY max(event) DESC"


def conversation(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page: the conversation that is named, else a new one."""
    brain, inbox = visit.brain, visit.brain.tree.layout.inbox
    new, live = f"{visit.now:%Y-%m-%d-%H%M%S}", list(visit.desk.answers.values())
    brain.projection.follow()
    latest = [(answer.prompt, "") for answer in reversed(live)]
    latest += brain.projection.query(f"{_LATEST} LIMIT {MAX_LOOKED_AT}")
    folders: dict[str, tuple[str, str]] = {}  # when something was said there last, and the first prompt
    for prompt, at in latest:
        if (folder := conversation_of(prompt, inbox=inbox)) != prompt:
            key = posixpath.relpath(folder, inbox)
            folders[key] = folders.get(key, (at, ""))[0], prompt
    others = [(key, at, _opening(brain, first)) for key, (at, first) in islice(folders.items(), MAX_CONVERSATIONS)]
    name, is_new = visit.given.get("in") or new, not visit.given.get("in")
    folder = brain.tree.relative(brain.tree.confine(posixpath.join(inbox, name), inside=brain.tree.inbox))
    # without those off the record
    exchanges = brain.conversation(parse_prompt(f"{folder}/{new}.md", b"", at=iso(brain.now())))
    paths = [exchange.prompt.path for exchange in exchanges]
    live_here = {answer.prompt: answer for answer in live if posixpath.dirname(answer.prompt) == folder}
    turns = [live_here[path] if path in live_here else _answered(path) for path in paths]
    turns += [answer for path, answer in live_here.items() if path not in paths]
    values = {"key": secrets.token_urlsafe(12), "folder": name, "is_new": is_new, "others": others}
    return values | {"turns": [shown_answer(brain, answer) for answer in turns]}


def _opening(brain: Brain, prompt: str) -> str:
    """Return the first words of a prompt; "" where they cannot be read."""
    with suppress(BrainiacError):
        if said := read_prompt(brain, prompt):
            return " ".join(said.text.split())[:MAX_OPENING]
    return ""


def _answered(prompt: str) -> LiveAnswer:
    """Return an answer that is in its file."""
    answer = LiveAnswer(prompt, "")
    answer.done.set()
    return answer


PAGES = (Page("/ask", "Ask", conversation, is_live=True),)
