"""Exports of other programs, made after real ones: what each service is known to send, and what it leaves out."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START = 1_715_000_000.25  # 6 May 2024, 12:53:20 UTC


def chatgpt(
    name: str, turns: Sequence[tuple[str, str]], *, title: str | None = "Lisbon", **keys: Any
) -> dict[str, Any]:
    """Return a conversation of ChatGPT's: a system message, then each turn a node below the one before."""
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    parent = "root"
    for number, turn in enumerate(turns):
        for role, text in zip(("user", "assistant"), turn, strict=True):
            key = f"{name}-{role[0]}{number}"
            nodes[key] = chatgpt_node(key, parent, role, text, START + 60 * number)
            parent = key
    return {
        "id": name,
        "conversation_id": name,
        "title": title,
        "create_time": START,
        "update_time": START + 3600,
        "mapping": nodes,
        "current_node": parent,
        **keys,
    }


def chatgpt_node(key: str, parent: str, role: str, text: str, at: float | None, **message: Any) -> dict[str, Any]:
    """Return a node of a conversation of ChatGPT's."""
    content = {"content_type": "text", "parts": [text]}
    said = {"id": key, "author": {"role": role}, "create_time": at, "content": content, "recipient": "all", **message}
    return {"id": key, "message": said, "parent": parent, "children": []}


def claude(name: str, turns: Sequence[tuple[str, str]], **keys: Any) -> dict[str, Any]:
    """Return a conversation of Claude's."""
    messages = []
    for number, turn in enumerate(turns):
        for sender, text in zip(("human", "assistant"), turn, strict=True):
            messages.append(claude_message(f"{name}-{sender[0]}{number}", sender, text, number))
    return {
        "uuid": name,
        "name": "Porto",
        "created_at": "2024-05-06T12:00:00.123456Z",
        "updated_at": "2024-05-06T13:00:00Z",
        "account": {"uuid": "a"},
        "chat_messages": messages,
        **keys,
    }


def claude_message(name: str, sender: str, text: str, minute: int, **keys: Any) -> dict[str, Any]:
    """Return a message of Claude's."""
    return {
        "uuid": name,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "created_at": f"2024-05-06T12:{minute:02}:00.5Z",
        "attachments": [],
        "files": [],
        **keys,
    }


def write_json(path: Path, value: Any) -> Path:
    """Write a value as a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def write_zip(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write an archive of files with their contents."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path
