"""Claude's export: conversations as lists of messages, what Claude noted about the person, and projects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from brainiac.imports.records import (
    Aside,
    Conversation,
    Dialogue,
    Note,
    joined,
    mapping,
    moment_of,
    sequence,
    text_of,
)

_SPEAKERS = {"human": "User", "assistant": "AI"}


def recognizes(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a conversation of Claude's; its messages have another key in older exports."""
    messages = record.get("chat_messages", record.get("messages"))
    return isinstance(messages, list) and "uuid" in record


def recognizes_notes(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is what Claude noted about the person, or a project of theirs."""
    return "conversations_memory" in record or ("prompt_template" in record and "docs" in record)


def conversation(record: dict[str, Any], file_at: str) -> Conversation:
    """Return the conversation of a JSON object.

    Args:
        record: The object.
        file_at: ISO 8601 moment of the export, for a conversation without any date.
    """
    name, title = text_of(record.get("uuid")), text_of(record.get("name"))
    if not name:
        return Conversation("", title, problem="has no id, so that a second import could not know it")
    messages = [mapping(message) for message in sequence(record.get("chat_messages", record.get("messages")))]
    shown_places = _shown_places(messages)
    dialogue, asides = Dialogue(), list[Aside]()
    for number, message in enumerate(messages):
        speaker, at = _SPEAKERS.get(text_of(message.get("sender"))), moment_of(message.get("created_at"))
        if speaker is None:
            continue
        # also of a message on a branch: the person gave that file to Claude
        asides += _files(message, at)
        key = text_of(message.get("uuid")) or str(number)
        if number in shown_places:
            dialogue.add(key, at, _text(message), is_person=speaker == "User")
        elif text := _text(message):
            asides.append(Aside("branch", speaker, text, at))
    return dialogue.conversation(name, title, moment_of(record.get("created_at")), file_at, asides)


def _shown_places(messages: list[dict[str, Any]]) -> set[int]:
    """Return the places in the list of the messages that the person sees: the last, its parent, and so on.

    Where a message other than the first has no parent in the list, these are all messages.
    """
    places = {text_of(message.get("uuid")): number for number, message in enumerate(messages)}
    parents = [text_of(message.get("parent_message_uuid")) for message in messages]
    # some exports have no parents: then nothing says which messages the person left
    if sum(parent in places for parent in parents) < len(messages) - 1:
        return set(range(len(messages)))
    branch: set[int] = set()
    number: int | None = len(messages) - 1 if messages else None
    while number is not None and number not in branch:
        branch.add(number)
        number = places.get(parents[number])
    return branch


def _text(message: dict[str, Any]) -> str:
    """Return the text of a message, with the names of its files.

    It is taken from `content`: `text` lacks parts of it, or repeats what tools gave back.
    """
    blocks = [mapping(block) for block in sequence(message.get("content"))]
    text = joined([text_of(block.get("text")) for block in blocks if block.get("type") in ("text", "voice_note")])
    files = [*sequence(message.get("attachments")), *sequence(message.get("files"))]
    names = dict.fromkeys(text_of(mapping(file).get("file_name")) for file in files)
    return joined([text or text_of(message.get("text")), *(f"[{name}]" for name in names if name)])


def _files(message: dict[str, Any], at: str) -> Iterator[Aside]:
    """Yield the text of each file that is attached to a message."""
    for file in map(mapping, sequence(message.get("attachments"))):
        if text := text_of(file.get("extracted_content")).strip():
            yield Aside("file", text_of(file.get("file_name")) or "attachment", text, at)


def notes(record: dict[str, Any], file_at: str) -> Iterator[Note]:
    """Yield what Claude noted about the person, and a project's texts, as notes.

    Args:
        record: The object of `memories.json`, or a project.
        file_at: ISO 8601 moment of the export.
    """
    if text := text_of(record.get("conversations_memory")):
        yield Note("conversations_memory", "What Claude noted", text, file_at)
    for project, text in mapping(record.get("project_memories")).items():
        if isinstance(text, str):
            yield Note(f"project_memory:{project}", f"What Claude noted in project {project[:8]}", text, file_at)
    for file in map(mapping, sequence(record.get("memory_files"))):
        name, text = text_of(file.get("path") or file.get("name")), text_of(file.get("content"))
        yield Note(f"memory_file:{name}", name or "Memory file", text, moment_of(file.get("updated_at")) or file_at)
    if "prompt_template" in record:
        yield from _project(record, file_at)


def _project(record: dict[str, Any], file_at: str) -> Iterator[Note]:
    """Yield a project's description and instructions as one note, and each of its documents."""
    key, name = text_of(record.get("uuid")), text_of(record.get("name"))
    at = moment_of(record.get("created_at")) or file_at
    if about := joined([text_of(record.get("description")), text_of(record.get("prompt_template"))]):
        yield Note(f"project:{key}", f"Project {name}", about, at)
    for number, document in enumerate(map(mapping, sequence(record.get("docs")))):
        title = text_of(document.get("filename")) or f"Document {number + 1}"
        document_key = text_of(document.get("uuid")) or str(number)
        text = text_of(document.get("content"))
        yield Note(f"document:{key}:{document_key}", title, text, moment_of(document.get("created_at")) or at)
