"""Ask: a conversation, which is its folder in the inbox, with the passages that each answer rests on beside it."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Mapping
from typing import Any

from brainiac.clock import iso
from brainiac.formats.prompt import conversation_of, parse_prompt
from brainiac.window.frame import Action, LiveAnswer, Page, Visit
from brainiac.window.pages.today import shown_answer

MAX_CONVERSATIONS, MAX_LOOKED_AT = 20, 400
_LATEST = "SELECT prompt, max(at) FROM exchanges WHERE is_kept AND response != '' GROUP BY prompt ORDER BY 2 DESC"


def conversation(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page: the conversation that is named, else the latest, else a new one."""
    brain, inbox = visit.brain, visit.brain.tree.layout.inbox
    new, live = f"{visit.now:%Y-%m-%d-%H%M%S}", list(visit.desk.answers.values())
    brain.projection.follow()
    latest = [(answer.prompt, "") for answer in reversed(live)]
    latest += brain.projection.query(f"{_LATEST} LIMIT {MAX_LOOKED_AT}")
    folders: dict[str, str] = {}
    for prompt, at in latest:
        if (folder := conversation_of(prompt, inbox=inbox)) != prompt:
            folders.setdefault(posixpath.relpath(folder, inbox), at)
    is_new = not visit.given.get("in") and ("new" in visit.given or not folders)
    name = visit.given.get("in") or (new if is_new else next(iter(folders)))
    folder = brain.tree.relative(brain.tree.confine(posixpath.join(inbox, name), inside=brain.tree.inbox))
    # without those off the record
    exchanges = brain.conversation(parse_prompt(f"{folder}/{new}.md", b"", at=iso(brain.now())))
    paths = [exchange.prompt.path for exchange in exchanges]
    live_here = {answer.prompt: answer for answer in live if posixpath.dirname(answer.prompt) == folder}
    turns = [live_here[path] if path in live_here else _answered(path) for path in paths]
    turns += [answer for path, answer in live_here.items() if path not in paths]
    return {
        "key": secrets.token_urlsafe(12),
        "folder": name,
        "is_new": is_new,
        "others": list(folders.items())[:MAX_CONVERSATIONS],
        "turns": [shown_answer(brain, answer) for answer in turns],
    }


def _answered(prompt: str) -> LiveAnswer:
    """Return an answer that is in its file."""
    answer = LiveAnswer(prompt, "")
    answer.done.set()
    return answer


PAGES = (Page("/ask", "Ask", conversation, is_live=True),)
ACTIONS: dict[str, Action] = {}
