"""The earlier exchanges of a conversation: the answered prompts of its folder, and those that a prompt replies to."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from brainiac.clock import iso
from brainiac.errors import ConfinementError, FormatError
from brainiac.formats.prompt import (
    Exchange,
    Prompt,
    Response,
    conversation_of,
    parse_prompt,
    parse_response,
    prompt_path_of,
    response_path,
)
from brainiac.storage.answered import Answered
from brainiac.storage.store import Store

MAX_TURNS = 20


def earlier_exchanges(store: Store, answered: Answered, prompt: Prompt) -> list[Exchange]:
    """Return the earlier exchanges of a prompt's conversation, oldest first, at most 20.

    A prompt in a subfolder of the inbox is in one conversation with the others there; `reply_to` adds further ones.
    Exchanges off the record are returned only for a prompt that is off the record too: another answer would be kept,
    and might repeat them.
    """
    inbox = store.tree.relative(store.tree.inbox)
    folder = conversation_of(prompt.path, inbox=inbox)
    turns: dict[str, Exchange] = {}
    for turn in _of_folder(store, answered, folder) if folder != prompt.path else ():
        turns.setdefault(turn.prompt.path, turn)
        if len(turns) > MAX_TURNS:  # one of them may be the prompt itself
            break
    for turn in _replied_to(store, prompt):
        turns[turn.prompt.path] = turn
    turns.pop(prompt.path, None)
    # an answer that is kept might repeat what must be kept nowhere
    shareable = [turn for turn in turns.values() if turn.prompt.remember or not prompt.remember]
    shareable.sort(key=lambda turn: (turn.at, turn.prompt.path))
    return shareable[-MAX_TURNS:]


def _of_folder(store: Store, answered: Answered, folder: str) -> Iterator[Exchange]:
    """Yield the exchanges of a folder, newest first; files whose time the journal knows are read only when reached."""
    responses: list[tuple[str, bool, str, str]] = []
    for path in store.tree.absolute(folder).glob("*.response*.md"):
        file = f"{folder}/{path.name}"
        for prompt_path in prompt_path_of(file):
            if answer := answered.of(prompt_path):
                # of two responses to one prompt the recorded one sorts last, and so comes first below
                responses.append((answer.at, answer.response == file, prompt_path, file))
                break
            if turn := _exchange(store, prompt_path, file):
                responses.append((turn.at, True, prompt_path, file))
                break
    for *_, prompt_path, file in sorted(responses, reverse=True):
        if turn := _exchange(store, prompt_path, file):
            yield turn


def _replied_to(store: Store, prompt: Prompt) -> Iterator[Exchange]:
    """Yield the exchange that `reply_to` names, the one which that exchange replies to, and so on."""
    seen: set[str] = set()
    named, base = prompt.reply_to, prompt.path
    while named and len(seen) < MAX_TURNS:
        turn = _named_exchange(store, named, base)
        # two prompts may name each other
        if turn is None or turn.prompt.path in seen:
            return
        seen.add(turn.prompt.path)
        yield turn
        named, base = turn.prompt.reply_to, turn.prompt.path


def _named_exchange(store: Store, named: str, base: str) -> Exchange | None:
    """Return the exchange of a prompt or response, named relative to the file `base` or to the root."""
    for candidate in (posixpath.normpath(posixpath.join(posixpath.dirname(base), named)), named):
        try:
            path = store.tree.relative(store.tree.confine(candidate, inside=store.tree.inbox))
        except ConfinementError:
            continue
        for prompt_path in (*prompt_path_of(path), path):
            if turn := _exchange(store, prompt_path, response_path(prompt_path)):
                return turn
    return None


def _exchange(store: Store, prompt_path: str, response_file: str) -> Exchange | None:
    """Return the exchange of two files; None where one is missing or cannot be parsed."""
    raw_prompt, raw_response = store.read(prompt_path), store.read(response_file)
    if raw_prompt is None or raw_response is None:
        return None
    try:
        response: Response = parse_response(response_file, raw_response)
        at = response.created_at or iso(store.clock.now())
        prompt = parse_prompt(prompt_path, raw_prompt, at=at, inbox=store.tree.relative(store.tree.inbox))
    except FormatError:
        return None  # the person is told when the file itself is processed
    return Exchange(response.prompt_id or prompt.sha256, prompt, response, at)
