"""Transcripts that coding assistants keep on this machine: Claude Code's and Codex's, one JSON object a line.

A session is a conversation. What the person typed and what was answered is taken; what tools did is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from brainiac.imports.records import Conversation, Dialogue, joined, mapping, moment_of, sequence, text_of

MAX_LINE_BYTES = 20_000_000
_TEXTS = ("text", "input_text", "output_text")
# what the program puts in between, as elements whose names are no words of HTML
_ADDED = re.compile(r"\s*(?:<([a-z]+[-_][\w-]*)\b[^>]*>.*?</\1>\s*)+\Z", re.DOTALL)


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
    dialogue: Dialogue = field(default_factory=Dialogue)


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
    prompts = (text for turn in session.dialogue.turns for text in turn.user)
    title = session.title or _first_line(next(prompts, ""))
    return session.dialogue.conversation(session.id or PurePosixPath(name).stem, title, "", file_at)


def _first_line(text: str) -> str:
    """Return the first line of a text as a title, cut after a word."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 60 else line[:60].rsplit(" ", 1)[0] + "…"


def _add_claude_code(record: dict[str, Any], session: _Session) -> None:
    """Add a line of Claude Code's to a session: a message, or the title; messages of its sub-agents are left out."""
    session.id = session.id or text_of(record.get("sessionId"))
    if record.get("type") == "summary":
        session.title = text_of(record.get("summary"))
    if record.get("type") not in ("user", "assistant") or record.get("isMeta") or record.get("isSidechain"):
        return
    is_person = record["type"] == "user"
    text = _shown(mapping(record.get("message")).get("content"), is_person=is_person)
    session.dialogue.add(text_of(record.get("uuid")), moment_of(record.get("timestamp")), text, is_person=is_person)


def _add_codex(record: dict[str, Any], session: _Session) -> None:
    """Add a line of Codex's to a session: a message, or the id; newer versions wrap both in a payload."""
    payload = mapping(record.get("payload")) or record
    if record.get("type") == "session_meta" or "instructions" in payload:
        session.id = session.id or text_of(payload.get("id"))
    if payload.get("type") != "message" or payload.get("role") not in ("user", "assistant"):
        return
    is_person = payload["role"] == "user"
    text = _shown(payload.get("content"), is_person=is_person)
    # a transcript only grows: the number of a turn is the same in every import
    key = str(len(session.dialogue.turns))
    session.dialogue.add(key, moment_of(record.get("timestamp")), text, is_person=is_person)


def _shown(content: Any, *, is_person: bool) -> str:
    """Return the text of a message; of the person's messages without what the program added to them."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, sequence(content))
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") in _TEXTS]
    return joined([text for text in texts if not (is_person and _ADDED.match(text))])
