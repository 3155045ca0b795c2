"""ChatGPT's export: trees of messages, one JSON object a conversation; an array of them, or shards of such arrays.

The conversation that the person sees leads from `current_node` up by `parent`. Newer exports leave child links out.
"""

from __future__ import annotations

from typing import Any

from brainiac.imports.records import Aside, Conversation, Dialogue, joined, mapping, moment_of, sequence, text_of

_SPEAKERS = {"user": "User", "assistant": "AI"}


def recognizes(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a conversation of ChatGPT's."""
    return isinstance(record.get("mapping"), dict)


def conversation(record: dict[str, Any], file_at: str) -> Conversation:
    """Return the conversation of a JSON object.

    Args:
        record: The object.
        file_at: ISO 8601 moment of the export, for a conversation without any date.
    """
    name = text_of(record.get("conversation_id")) or text_of(record.get("id"))
    title = text_of(record.get("title"))
    if not name:
        return Conversation("", title, problem="has no id, so that a second import could not know it")
    if record.get("is_do_not_remember") is True:
        return Conversation(name, title, problem="is marked as not to be remembered")
    nodes = {key: mapping(node) for key, node in mapping(record.get("mapping")).items()}
    path = _path(nodes, text_of(record.get("current_node")))
    dialogue = Dialogue()
    for key in path:
        if (message := _message(nodes[key])) and (text := _text(message)):
            message_id = text_of(message.get("id")) or key
            dialogue.add(message_id, moment_of(message.get("create_time")), text, is_person=_role(message) == "user")
    began_at = moment_of(record.get("create_time"))
    return dialogue.conversation(name, title, began_at, file_at, _branches(nodes, set(path)))


def _path(nodes: dict[str, dict[str, Any]], leaf: str) -> list[str]:
    """Return the keys of the messages from the first to a leaf; without a leaf, to the latest message."""
    if leaf not in nodes:
        times = {key: moment_of(mapping(node.get("message")).get("create_time")) for key, node in nodes.items()}
        # of messages without a time, or with the same, `max` takes the first: that is the last in the file
        leaf = max(reversed(nodes), key=times.__getitem__, default="")
    path: dict[str, None] = {}  # in order, and each once: parents of a damaged export may form a circle
    while leaf in nodes and leaf not in path:
        path[leaf] = None
        leaf = text_of(nodes[leaf].get("parent"))
    return [*path][::-1]


def _branches(nodes: dict[str, dict[str, Any]], path: set[str]) -> tuple[Aside, ...]:
    """Return the messages that the person no longer sees: former answers, prompts before they were edited."""
    # kept beside the conversation, since the person may look for an answer that they once saw
    asides = []
    for key, node in nodes.items():
        if key not in path and (message := _message(node)) and (text := _text(message)):
            at = moment_of(message.get("create_time"))
            asides.append(Aside("branch", _SPEAKERS[_role(message)], text, at))
    return tuple(asides)


def _role(message: dict[str, Any]) -> str:
    """Return the role of a message's author; "" for none."""
    return text_of(mapping(message.get("author")).get("role"))


def _message(node: dict[str, Any]) -> dict[str, Any] | None:
    """Return a node's message if the person or the assistant wrote it and the person saw it; None for any other.

    The profile that every conversation begins with (`user_editable_context`) was not written in the conversation.
    """
    message = mapping(node.get("message"))
    content, metadata = mapping(message.get("content")), mapping(message.get("metadata"))
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message")
    is_profile = content.get("content_type") == "user_editable_context"
    is_for_tool = text_of(message.get("recipient")) not in ("", "all")
    return None if is_hidden or is_profile or is_for_tool or _role(message) not in _SPEAKERS else message


def _text(message: dict[str, Any]) -> str:
    """Return what a message shows: its text, code as code, and a mark for each picture or recording."""
    content = mapping(message.get("content"))
    match text_of(content.get("content_type")):
        case "text" | "multimodal_text" | "":
            return joined([_part(part) for part in sequence(content.get("parts"))])
        case "code":
            language = text_of(content.get("language")).replace("unknown", "")
            code = text_of(content.get("text"))
            return f"```{language}\n{code}\n```" if code.strip() else ""
    return ""  # thoughts, what tools gave back, citations of pages


def _part(part: Any) -> str:
    """Return one part of a message as text; of a picture `[image]`, since its type is `image_asset_pointer`."""
    if isinstance(part, str):
        return part
    kind, transcript = (text_of(mapping(part).get(key)) for key in ("content_type", "text"))
    return transcript or (f"[{kind.split('_')[0]}]" if kind else "")
