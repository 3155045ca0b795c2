"""Transcripts that coding assistants keep on this machine: Claude Code's and Codex's, one JSON object a line.

A session is a conversation. What the person typed and what was answered is taken; what tools did is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from brainiac.imports.records import Conversation, Dialogue, Turn, joined, mapping, moment_of, sequence, text_of

MAX_LINE_BYTES = 20_000_000
_TEXTS = ("text", "input_text", "output_text")
# what the program puts in between: elements whose names are no words of HTML, and the line where the person stopped it
_ADDED = re.compile(
    r"\s*(?:(?:<([a-z]+[-_][\w-]*)\b[^>]*>.*?</\1>\s*)+|\[Request interrupted by user[^\]\n]*\]\s*)\Z", re.DOTALL
)
_INSTRUCTIONS = re.compile(r"\s*(?:# AGENTS\.md instructions[^\n]*\s*<INSTRUCTIONS>|<skill>.*</skill>\s*\Z)", re.DOTALL)
_MACHINES = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")  # who wrote such a line


def service_of(record: dict[str, Any]) -> str:
    """Return the assistant whose transcript has a line: `claude-code`, `codex`, or "" for none."""
    if "sessionId" in record or (record.get("type") == "summary" and "leafUuid" in record):
        return "claude-code"
    is_codex = record.get("type") == "session_meta" and "payload" in record
    is_older = {"id", "timestamp"} <= record.keys() and "instructions" in record
    return "codex" if is_codex or is_older else ""


def lines(opened: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file's lines; a line that is none, such as one that is being written, is left out."""
    while line := opened.readline(MAX_LINE_BYTES):
        if not line.startswith(b"{"):
            continue  # a list, which may be large, is not read to be left out
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        yield record


@dataclass(slots=True)
class _Session:
    """A session as far as it was read."""

    id: str = ""
    title: str = ""
    is_of_sub_agent: bool = False
    dialogue: Dialogue = field(default_factory=Dialogue)
    typed: set[str] = field(default_factory=set)  # keys of the turns that Codex says the person typed

    def without_machines(self) -> Dialogue:
        """Return the dialogue without what machines said in the person's role.

        Where Codex says what the person typed, all else in their role is dropped. What followed a dropped turn belongs
        to the one before.
        """
        turns: list[Turn] = []
        for turn in self.dialogue.turns:
            if turn.user and (not self.typed or turn.key in self.typed):
                turns.append(turn)
            elif turn.ai and turns:
                turns[-1].ai.extend(turn.ai)
            elif turn.ai:
                turns.append(replace(turn, user=[]))
        return replace(self.dialogue, turns=turns)


def conversation(service: str, records: Iterable[dict[str, Any]], name: str, file_at: str) -> Conversation:
    """Return the conversation of a transcript.

    Args:
        service: The assistant that wrote it.
        records: Its lines.
        name: The file's name, which is the id of the session where no line has one.
        file_at: ISO 8601 moment of the file, for messages without one.
    """
    add = _add_claude_code if service == "claude-code" else _add_codex
    session = _Session()
    for record in records:
        add(record, session)
    dialogue = session.without_machines()
    title = session.title or _first_line(next((text for turn in dialogue.turns for text in turn.user), ""))
    session_id = session.id or PurePosixPath(name).stem
    if session.is_of_sub_agent or "subagents" in PurePosixPath(name).parts:
        return Conversation(session_id, title, problem="is what a helper of the assistant's was told, not you")
    return dialogue.conversation(session_id, title, "", file_at)


def _first_line(text: str) -> str:
    """Return the first line of a text as a title, cut after a word."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 60 else line[:60].rsplit(" ", 1)[0] + "…"


def _add_claude_code(record: dict[str, Any], session: _Session) -> None:
    """Add a line of Claude Code's to a session: a message, or the title; those of its machines are left out."""
    session.id = session.id or text_of(record.get("sessionId"))
    if record.get("type") == "summary":
        session.title = text_of(record.get("summary"))
    if record.get("type") not in ("user", "assistant") or any(record.get(name) for name in _MACHINES):
        return
    is_person = record["type"] == "user"
    text = _shown(mapping(record.get("message")).get("content"), is_person=is_person)
    session.dialogue.add(text_of(record.get("uuid")), moment_of(record.get("timestamp")), text, is_person=is_person)


def _add_codex(record: dict[str, Any], session: _Session) -> None:
    """Add a line of Codex's to a session: a message, or the id; newer versions wrap both in a payload.

    In the role of the user stand instructions and summaries too: newer versions say in an event what was typed.
    """
    payload, turns = mapping(record.get("payload")) or record, session.dialogue.turns
    if record.get("type") == "session_meta" or "instructions" in payload:
        session.id = session.id or text_of(payload.get("id"))
        session.is_of_sub_agent |= "subagent" in mapping(payload.get("source"))
    if record.get("type") == "event_msg" and payload.get("type") == "user_message":
        # some versions announced their own insertions in the same way, with another kind
        text = text_of(payload.get("message")) if payload.get("kind") in (None, "plain") else ""
        # the message itself stands right before, and has the key that former imports know
        if text.strip():
            if not turns or turns[-1].ai or not turns[-1].user or turns[-1].key in session.typed:
                session.dialogue.add(str(len(turns)), moment_of(record.get("timestamp")), text, is_person=True)
            turns[-1].user[:] = [text]
            session.typed.add(turns[-1].key)
    if payload.get("type") != "message" or payload.get("role") not in ("user", "assistant"):
        return
    is_person = payload["role"] == "user"
    text = _shown(payload.get("content"), is_person=is_person)
    # a transcript only grows: the number of a turn is the same in every import
    key = str(len(turns))
    session.dialogue.add(key, moment_of(record.get("timestamp")), text, is_person=is_person)
    if is_person and text.strip():
        turns[-1].user[:] = [block for block in turns[-1].user if not _INSTRUCTIONS.match(block)]  # it keeps its number


def _shown(content: Any, *, is_person: bool) -> str:
    """Return the text of a message; of the person's messages without what the program added to them."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, sequence(content))
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") in _TEXTS]
    return joined([text for text in texts if not (is_person and _ADDED.match(text))])
