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


def gemini(turns: Sequence[tuple[str, str]], *, verb: str = "Prompted ", **keys: Any) -> list[dict[str, Any]]:
    """Return records of My Activity about Gemini, newest first."""
    records = [
        {
            "header": "Gemini Apps",
            "title": f"{verb}{prompt}",
            "time": f"2024-05-06T12:{minute:02}:10.123Z",
            "products": ["Gemini Apps"],
            "safeHtmlItem": [{"html": f"<p>{answer}</p>"}],
            **keys,
        }
        for minute, (prompt, answer) in enumerate(turns)
    ]
    return records[::-1]


def json_lines(records: Sequence[Any]) -> str:
    """Return values as lines of JSON."""
    return "".join(json.dumps(record) + "\n" for record in records)


def claude_code(turns: Sequence[tuple[str, str]]) -> str:
    """Return a transcript of Claude Code's, with what its tools and the program itself said in between."""

    def line(kind: str, number: int, content: Any, **keys: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content}
        at = f"2024-05-06T12:{number:02}:00.000Z"
        return {"type": kind, "uuid": f"{kind}{number}", "sessionId": "s1", "timestamp": at, "message": message, **keys}

    records: list[Any] = [{"type": "summary", "summary": "A journey", "leafUuid": "x"}]
    for number, (user, ai) in enumerate(turns):
        records += [
            line("user", number, "Caveat: none of this was typed", isMeta=True),
            line("user", number, "<command-name>/clear</command-name>\n<command-args></command-args>"),
            line("user", number, user),
            line("assistant", number, [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "input": {}}]),
            line("user", number, [{"type": "tool_result", "content": "14 files"}]),
            line("assistant", number, "of a helper", isSidechain=True),
            line("assistant", number, [{"type": "text", "text": ai}]),
        ]
    return json_lines(records) + '{"type": "assis'  # it is being written


def codex(turns: Sequence[tuple[str, str]]) -> str:
    """Return a transcript of Codex's."""
    records: list[Any] = [
        {"timestamp": "2024-05-06T12:00:00.000Z", "type": "session_meta", "payload": {"id": "x1", "cwd": "/"}}
    ]

    def line(number: int, role: str, kind: str, text: str) -> dict[str, Any]:
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"timestamp": f"2024-05-06T12:{number:02}:00.000Z", "type": "response_item", "payload": payload}

    for number, (user, ai) in enumerate(turns):
        records += [
            line(number, "user", "input_text", "<environment_context>\n<cwd>/</cwd>\n</environment_context>"),
            line(number, "user", "input_text", user),
            {"timestamp": "", "type": "event_msg", "payload": {"type": "user_message", "message": user}},
            line(number, "assistant", "output_text", ai),
        ]
    return json_lines(records)


def pdf(texts: Sequence[str]) -> bytes:
    """Return a PDF file with a page for each text; a page of "" has a line drawn on it and no text."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for text in texts:
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else "0 0 m 9 9 l S"
        objects.append(f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream")
        page = f"/Resources<</Font<</F1 3 0 R>>>>/Contents {len(objects)} 0 R"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]{page}>>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    out, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    start = f"trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF\n"
    return f"{out}xref\n0 {size}\n0000000000 65535 f \n{table}{start}".encode()
