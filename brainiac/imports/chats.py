"""Exports of chat programs: ChatGPT, Claude and Gemini, as JSON; transcripts of coding assistants.

Of each export, a function recognizes a JSON object, and another reads all of them: `READERS`.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from html.parser import HTMLParser
from itertools import chain, groupby, islice
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from brainiac.clock import day_in
from brainiac.imports import records
from brainiac.imports.records import Conversation, Item, Note, PastExchange, joined, mapping, moment_of, text_of

_NAMES = ("gemini", "bard")  # the product's name in every language
_LOOKED_AT = 200  # first records, by which Google's word before each prompt is known
_SHARE = 0.95  # of the records that must begin with the same word for it to be Google's and not the person's
_BLOCKS = frozenset("p div li ul ol table tr h1 h2 h3 h4 h5 h6 pre blockquote".split())


def _above(leaf: str, parents: Mapping[str, str]) -> dict[str, None]:
    """Return the key of a message and of those above it, the last first: what a person sees of a tree of messages."""
    path: dict[str, None] = {}  # each once: parents of a damaged export may form a circle
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return path


# --- ChatGPT -------------------------------------------------------------------------------------------------------
# Trees of messages, one JSON object a conversation; an array of them, or shards of such arrays. The conversation that
# the person sees leads from `current_node` up by `parent`. Newer exports leave child links out.


def is_chatgpt(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a conversation of ChatGPT's."""
    return isinstance(record.get("mapping"), dict)


def _read_chatgpt(record: dict[str, Any], file_at: str) -> Iterator[Conversation]:
    """Yield the conversation of a JSON object.

    Args:
        record: The object.
        file_at: ISO 8601 moment of the export, for a conversation without any date.
    """
    name = text_of(record.get("conversation_id")) or text_of(record.get("id"))
    title = text_of(record.get("title"))
    if not name:
        yield Conversation("", title, problem="has no id, so that a second import could not know it")
        return
    if record.get("is_do_not_remember") is True:
        yield Conversation(name, title, problem="is marked as not to be remembered")
        return
    nodes = {key: mapping(node) for key, node in mapping(record.get("mapping")).items()}
    messages = {key: message for key, node in nodes.items() if (message := _shown_message(node))}
    leaf, exchanges = text_of(record.get("current_node")), list[PastExchange]()
    if leaf not in nodes:  # it ends with the latest message
        times = {key: moment_of(mapping(node.get("message")).get("create_time")) for key, node in nodes.items()}
        # of messages without a time, or with the same, `max` takes the first: that is the last in the file
        leaf = max(reversed(nodes), key=times.__getitem__, default="")
    path = _above(leaf, {key: text_of(node.get("parent")) for key, node in nodes.items()})
    for key in reversed(path):
        if (message := messages.get(key)) and (text := _text_of_chatgpt(message)):
            message_id = text_of(message.get("id")) or key
            at = moment_of(message.get("create_time"))
            records.add_message(exchanges, message_id, at, text, is_person=_role(message) == "user")
    began_at, n_aside = moment_of(record.get("create_time")), len(messages.keys() - path.keys())
    yield records.conversation_of(exchanges, name, title, began_at, file_at, n_aside)


def _role(message: dict[str, Any]) -> str:
    """Return the role of a message's author; "" for none."""
    return text_of(mapping(message.get("author")).get("role"))


def _shown_message(node: dict[str, Any]) -> dict[str, Any] | None:
    """Return a node's message if the person or the assistant wrote it and the person saw it; None for any other.

    The profile that every conversation begins with (`user_editable_context`) was not written in the conversation.
    """
    message = mapping(node.get("message"))
    content, metadata = mapping(message.get("content")), mapping(message.get("metadata"))
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message")
    is_profile = content.get("content_type") == "user_editable_context"
    is_for_tool = text_of(message.get("recipient")) not in ("", "all")
    return None if is_hidden or is_profile or is_for_tool or _role(message) not in ("user", "assistant") else message


def _text_of_chatgpt(message: dict[str, Any]) -> str:
    """Return what a message shows: its text, code as code, and a mark for each picture or recording."""
    content = mapping(message.get("content"))
    match text_of(content.get("content_type")):
        case "text" | "multimodal_text" | "":
            texts = []
            for part in records.sequence(content.get("parts")):
                kind, transcript = (text_of(mapping(part).get(key)) for key in ("content_type", "text"))
                # of a picture `[image]`, since its type is `image_asset_pointer`
                mark = transcript or (f"[{kind.split('_')[0]}]" if kind else "")
                texts.append(part if isinstance(part, str) else mark)
            return joined(texts)
        case "code":
            language = text_of(content.get("language")).replace("unknown", "")
            code = text_of(content.get("text"))
            return f"```{language}\n{code}\n```" if code.strip() else ""
    return ""  # thoughts, what tools gave back, citations of pages


# --- Claude --------------------------------------------------------------------------------------------------------
# Conversations as lists of messages, what Claude noted about the person, and projects.


def is_claude(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a conversation of Claude's, what it noted about the person, or a project."""
    messages = record.get("chat_messages", record.get("messages"))  # the second in older exports
    return (isinstance(messages, list) and "uuid" in record) or _has_notes(record)


def _has_notes(record: dict[str, Any]) -> bool:
    return "conversations_memory" in record or ("prompt_template" in record and "docs" in record)


def _read_claude(record: dict[str, Any], file_at: str) -> Iterator[Item]:
    """Yield the conversation of a JSON object, or its texts as notes.

    Args:
        record: The object.
        file_at: ISO 8601 moment of the export, for what has no date.
    """
    if _has_notes(record):
        yield from _notes_of_claude(record, file_at)
        return
    name, title = text_of(record.get("uuid")), text_of(record.get("name"))
    if not name:
        yield Conversation("", title, problem="has no id, so that a second import could not know it")
        return
    messages = [mapping(message) for message in records.sequence(record.get("chat_messages", record.get("messages")))]
    parents = {text_of(message.get("uuid")): text_of(message.get("parent_message_uuid")) for message in messages}
    shown = _above(text_of(messages[-1].get("uuid")) if messages else "", parents)
    # some exports have no parents: then nothing says which messages the person left
    if sum(parent in parents for parent in parents.values()) < len(messages) - 1:
        shown = dict.fromkeys(parents)
    exchanges = list[PastExchange]()
    for number, message in enumerate(messages):
        key, at = text_of(message.get("uuid")) or str(number), moment_of(message.get("created_at"))
        role = text_of(message.get("sender"))
        if role not in ("human", "assistant"):
            continue
        # also of a message on a branch: the person gave that file to Claude
        for file in map(mapping, records.sequence(message.get("attachments"))):
            if text := text_of(file.get("extracted_content")).strip():
                file_name = text_of(file.get("file_name")) or "attachment"
                yield Note(f"attachment:{key}:{file_name}", file_name, text, at or file_at)
        if text_of(message.get("uuid")) in shown:
            records.add_message(exchanges, key, at, _text_of_claude(message), is_person=role == "human")
    n_aside = sum(text_of(message.get("uuid")) not in shown for message in messages)
    yield records.conversation_of(exchanges, name, title, moment_of(record.get("created_at")), file_at, n_aside)


def _text_of_claude(message: dict[str, Any]) -> str:
    """Return the text of a message, with the names of its files.

    It is taken from `content`: `text` lacks parts of it, or repeats what tools gave back.
    """
    blocks = [mapping(block) for block in records.sequence(message.get("content"))]
    text = joined([text_of(block.get("text")) for block in blocks if block.get("type") in ("text", "voice_note")])
    files = [*records.sequence(message.get("attachments")), *records.sequence(message.get("files"))]
    names = dict.fromkeys(text_of(mapping(file).get("file_name")) for file in files)
    return joined([text or text_of(message.get("text")), *(f"[{name}]" for name in names if name)])


def _notes_of_claude(record: dict[str, Any], file_at: str) -> Iterator[Note]:
    """Yield what Claude noted about the person (`memories.json`), and a project's texts, as notes."""
    if text := text_of(record.get("conversations_memory")):
        yield Note("conversations_memory", "What Claude noted", text, file_at)
    for project, text in mapping(record.get("project_memories")).items():
        if isinstance(text, str):
            yield Note(f"project_memory:{project}", f"What Claude noted in project {project[:8]}", text, file_at)
    for file in map(mapping, records.sequence(record.get("memory_files"))):
        name, text = text_of(file.get("path") or file.get("name")), text_of(file.get("content"))
        yield Note(f"memory_file:{name}", name or "Memory file", text, moment_of(file.get("updated_at")) or file_at)
    if "prompt_template" not in record:
        return
    # a project's description and instructions as one note, and each of its documents
    key, name = text_of(record.get("uuid")), text_of(record.get("name"))
    at = moment_of(record.get("created_at")) or file_at
    if about := joined([text_of(record.get("description")), text_of(record.get("prompt_template"))]):
        yield Note(f"project:{key}", f"Project {name}", about, at)
    for number, document in enumerate(map(mapping, records.sequence(record.get("docs")))):
        title = text_of(document.get("filename")) or f"Document {number + 1}"
        document_key = text_of(document.get("uuid")) or str(number)
        text = text_of(document.get("content"))
        yield Note(f"document:{key}:{document_key}", title, text, moment_of(document.get("created_at")) or at)


# --- Gemini --------------------------------------------------------------------------------------------------------
# Google's Takeout ("My Activity"): one record an exchange. There are no conversations in it: those of a day make one.
# What Google writes around a prompt is in the account's language, so nothing here rests on the words of one.


def is_gemini(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a record of My Activity about Gemini."""
    product = f"{text_of(record.get('header'))} {records.sequence(record.get('products'))}".casefold()
    is_activity = isinstance(record.get("title"), str) and isinstance(record.get("time"), str)
    return is_activity and any(name in product for name in _NAMES)


def _read_gemini(zone: tzinfo, rows: Iterator[Any], file_at: str) -> Iterator[Item]:
    """Yield a conversation for each day of the records of a JSON file, which are in order of time, newest first.

    Args:
        zone: The person's time zone, for its days.
        rows: JSON objects.
        file_at: ISO 8601 moment of the export; each record has its own.
    """
    # prompts as Google writes them, with a word of its own before; each with its moment and its answer
    exchanges = map(_exchange_of, filter(is_gemini, map(mapping, rows)))
    first = list(islice(exchanges, _LOOKED_AT))
    # The word that Google puts before prompts: the one with which nearly all that have an answer begin, else English
    # `Prompted`. A word of Google's that stays in a prompt does no harm; taking out a word of the person's would.
    words = Counter(each.user.split(" ", 1)[0] for each in first if each.ai and " " in each.user)
    word, count = words.most_common(1)[0] if words else ("", 0)
    prefix = f"{word if count >= max(20, _SHARE * sum(words.values())) else 'Prompted'} "
    for day, group in groupby(chain(first, exchanges), lambda exchange: day_in(zone, exchange.at)):
        of_day = []
        for exchange in group:
            prompt = exchange.user.removeprefix(prefix)
            # two prompts may have the same second
            digest = hashlib.sha256(" ".join(prompt.split()).encode("utf-8", "replace")).hexdigest()[:12]
            of_day.append(replace(exchange, key=f"{exchange.at} {digest}", user=prompt.strip()))
        if not day:
            yield Conversation("", "Gemini", problem=f"{len(of_day)} records have no date that can be read")
            continue
        of_day.sort(key=lambda exchange: exchange.at)  # stable: of one second they keep their order
        yield Conversation(day, day, tuple(of_day))


def _exchange_of(record: dict[str, Any]) -> PastExchange:
    """Return the exchange in a JSON object as Google writes it, without a key, its answer as text."""
    parts = (mapping(item).get("html") for item in records.sequence(record.get("safeHtmlItem")))
    answer = "\n\n".join(as_text(text_of(html)) for html in parts)
    return PastExchange("", moment_of(record.get("time")), text_of(record.get("title")), answer.strip())


class _Text(HTMLParser):
    """Turns HTML into text: lines where it has blocks and breaks, `-` before the items of lists."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line where a block or a list item begins."""
        if tag == "br" or tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        """Begin a line where a block ends."""
        if tag in _BLOCKS and tag != "li":
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Add text; a line break in HTML is no more than a space."""
        self.parts.append(re.sub(r"[ \t\r\n]+", " ", data))


def as_text(html: str) -> str:
    """Return a piece of HTML as text."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = (line.rstrip(" \t") for line in "".join(parser.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _each(
    read: Callable[[dict[str, Any], str], Iterable[Item]], zone: tzinfo, rows: Iterator[Any], file_at: str
) -> Iterator[Item]:
    """Yield what `read` makes of each record; a bad one does not keep the others out."""
    for number, record in enumerate(map(mapping, rows), 1):
        try:
            yield from read(record, file_at)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            title = text_of(record.get("title")) or text_of(record.get("name")) or f"record {number}"
            problem = f"has a form that is not known ({type(error).__name__}: {error})"
            yield Conversation("", title, problem=problem)


# by service: whether an object is of its export, and what yields all that the objects of a file hold, in the person's
# time zone and with the moment of the export for what has none
READERS: dict[str, tuple[Callable[[dict[str, Any]], bool], Callable[[tzinfo, Iterator[Any], str], Iterator[Item]]]] = {
    "chatgpt": (is_chatgpt, partial(_each, _read_chatgpt)),
    "claude": (is_claude, partial(_each, _read_claude)),
    "gemini": (is_gemini, _read_gemini),
}


# --- transcripts of coding assistants ------------------------------------------------------------------------------
# What Claude Code and Codex keep on this machine, one JSON object a line. A session is a conversation. What the person
# typed and what was answered is taken; what tools did is not.

MAX_LINE_BYTES = 20_000_000
_TEXTS = ("text", "input_text", "output_text")
# what the program puts in between: elements whose names are no words of HTML, and the line where the person stopped it
_ADDED = re.compile(
    r"\s*(?:(?:<([a-z]+[-_][\w-]*)\b[^>]*>.*?</\1>\s*)+|\[Request interrupted by user[^\]\n]*\]\s*)\Z", re.DOTALL
)
_INSTRUCTIONS = re.compile(r"\s*(?:# AGENTS\.md instructions[^\n]*\s*<INSTRUCTIONS>|<skill>.*</skill>\s*\Z)", re.DOTALL)
_MACHINES = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")  # who wrote such a line


def assistant_of(record: dict[str, Any]) -> str:
    """Return the assistant whose transcript has a line: `claude-code`, `codex`, or "" for none."""
    if "sessionId" in record or (record.get("type") == "summary" and "leafUuid" in record):
        return "claude-code"
    is_codex = record.get("type") == "session_meta" and "payload" in record
    is_older = {"id", "timestamp"} <= record.keys() and "instructions" in record
    return "codex" if is_codex or is_older else ""


def transcript_lines(opened: BinaryIO) -> Iterator[dict[str, Any]]:
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
    number: int = 0  # of exchanges before it
    exchanges: list[PastExchange] = field(default_factory=list)
    typed: set[str] = field(default_factory=set)  # keys of the exchanges that Codex says the person typed


def read_transcript(service: str, rows: Iterable[dict[str, Any]], name: str, file_at: str) -> Conversation:
    """Return the conversation of a transcript, without what machines said in the person's role.

    Where Codex says what the person typed, all else in their role is dropped. What followed a dropped message belongs
    to the exchange before.

    Args:
        service: The assistant that wrote it.
        rows: Its lines.
        name: The file's name, which is the id of the session where no line has one.
        file_at: ISO 8601 moment of the file, for messages without one.
    """
    session = _Session()
    for record in rows:
        _ADD[service](record, session)
    exchanges = _typed(session)
    title = session.title or title_of(exchanges)
    session_id = session.id or PurePosixPath(name).stem
    if session.is_of_sub_agent or "subagents" in PurePosixPath(name).parts:
        return Conversation(session_id, title, problem="is what a helper of the assistant's was told, not you")
    return records.conversation_of(exchanges, session_id, title, "", file_at)


def _typed(session: _Session) -> list[PastExchange]:
    """Return the exchanges of a session that a person began; what followed another's belongs to the one before."""
    exchanges = list[PastExchange]()
    for exchange in session.exchanges:
        if exchange.user and (not session.typed or exchange.key in session.typed):
            exchanges.append(exchange)
        elif exchange.ai and exchanges:
            exchanges[-1].ai = joined([exchanges[-1].ai, exchange.ai])
        elif exchange.ai:
            exchanges.append(replace(exchange, user=""))
    return exchanges


def title_of(exchanges: Iterable[PastExchange]) -> str:
    """Return a conversation's title: the first line that the person typed, cut after a word."""
    title = next((exchange.user for exchange in exchanges if exchange.user), "").strip().split("\n", 1)[0]
    return title if len(title) <= 60 else title[:60].rsplit(" ", 1)[0] + "…"


class Told(NamedTuple):
    """An exchange in a transcript.

    Attributes:
        exchange: What was said.
        prompt: The host's id of the prompt; "" where the transcript has none.
        folder: In which it was typed; "" where that is not told.
        is_typed: Whether a person typed it, as far as the transcript says.
    """

    exchange: PastExchange
    prompt: str
    folder: str
    is_typed: bool


class Point(NamedTuple):
    """How far a transcript was read: its last exchange, which may go on.

    Attributes:
        offset: Where that begins, in bytes.
        number: How many are before it; less than 0 for a transcript of which nothing is to be taken.
        folder: In which it was typed.
        session: The host's id of the session.
    """

    offset: int = 0
    number: int = 0
    folder: str = ""
    session: str = ""


def read_on(service: str, opened: BinaryIO, point: Point) -> tuple[list[Told], Point]:
    """Return the exchanges of a transcript from a point on, as an import has them, and where the last begins."""
    session, began, folder = _Session(point.session, number=point.number), list[Told](), point.folder
    places: list[int] = []
    place = opened.seek(point.offset)
    while (line := opened.readline(MAX_LINE_BYTES)) and point.number >= 0:
        for record in transcript_lines(io.BytesIO(line)):
            _ADD[service](record, session)
            folder = text_of((mapping(record.get("payload")) | record).get("cwd")) or folder
            if len(session.exchanges) > len(began):
                source = text_of(record.get("promptSource"))
                prompt = text_of(record.get("promptId"))
                began.append(Told(session.exchanges[-1], prompt, folder, source in ("", "typed")))
                places.append(place)
        place = opened.tell()
    if session.is_of_sub_agent:
        return [], Point(number=-1)
    of_key = {each.exchange.key: (number, each) for number, each in enumerate(began)}
    told = [of_key[exchange.key][1]._replace(exchange=exchange) for exchange in _typed(session) if exchange.user]
    if not told:
        return [], point
    last, _ = of_key[told[-1].exchange.key]
    return told, Point(places[last], point.number + last, told[-1].folder, session.id)


def _add_claude_code(record: dict[str, Any], session: _Session) -> None:
    """Add a line of Claude Code's to a session: a message, or the title; those of its machines are left out."""
    session.id = session.id or text_of(record.get("sessionId"))
    if record.get("type") == "summary":
        session.title = text_of(record.get("summary"))
    if record.get("type") not in ("user", "assistant") or any(record.get(name) for name in _MACHINES):
        return
    is_person = record["type"] == "user"
    text = _text_of_transcript(mapping(record.get("message")).get("content"), is_person=is_person)
    key, at = text_of(record.get("uuid")), moment_of(record.get("timestamp"))
    records.add_message(session.exchanges, key, at, text, is_person=is_person)


def _add_codex(record: dict[str, Any], session: _Session) -> None:
    """Add a line of Codex's to a session: a message, or the id; newer versions wrap both in a payload.

    In the role of the user stand instructions and summaries too: newer versions say in an event what was typed.
    """
    payload, exchanges = mapping(record.get("payload")) or record, session.exchanges
    at = moment_of(record.get("timestamp"))
    if record.get("type") == "session_meta" or "instructions" in payload:
        session.id = session.id or text_of(payload.get("id"))
        session.is_of_sub_agent |= "subagent" in mapping(payload.get("source"))
    if record.get("type") == "event_msg" and payload.get("type") == "user_message":
        # some versions announced their own insertions in the same way, with another kind
        text = text_of(payload.get("message")) if payload.get("kind") in (None, "plain") else ""
        # the message itself stands right before, and has the key that former imports know
        if text.strip():
            last = exchanges[-1] if exchanges else None
            if last is None or last.ai or not last.user or last.key in session.typed:
                records.add_message(exchanges, str(session.number + len(exchanges)), at, text, is_person=True)
            exchanges[-1].user = text
            session.typed.add(exchanges[-1].key)
    if payload.get("type") != "message" or payload.get("role") not in ("user", "assistant"):
        return
    is_person = payload["role"] == "user"
    text = _text_of_transcript(payload.get("content"), is_person=is_person)
    # a transcript only grows: the number of an exchange is the same in every import
    records.add_message(exchanges, str(session.number + len(exchanges)), at, text, is_person=is_person)
    if is_person and _INSTRUCTIONS.match(text):
        exchanges[-1].user = ""  # it keeps its number


def _text_of_transcript(content: Any, *, is_person: bool) -> str:
    """Return the text of a message; of the person's messages without what the program added to them."""
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, records.sequence(content))
    )
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") in _TEXTS]
    return joined([text for text in texts if not (is_person and _ADDED.match(text))])


_ADD = {"claude-code": _add_claude_code, "codex": _add_codex}
