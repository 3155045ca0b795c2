"""Prompts with the commands at their head, responses and error files (docs/format.md, F-PRM, F-RSP, F-ERR)."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from brainiac.errors import FormatError
from brainiac.formats.authors import PERSON, Author, author_in, door_and_name, least_trusted, plain_name
from brainiac.formats.discretion import Audience, front_matter_asks, is_forgotten, is_private_text
from brainiac.formats.frontmatter import render_meta, split
from brainiac.formats.markdown import decode_text, find_links, is_utf16, newline_of

CITED, SHOWN = "cited", "shown"  # how an answer used what its receipt names
SEPARATOR = " · "  # between the parts of a receipt

# --- commands: alike in every language, with every engine, and the person's alone (F-PRM-8) --------------------------

UNRECORDED = frozenset({"off", "forget"})  # nothing of a prompt with one of these is kept
NAMES = ("todo", "done", "tasks", "remember", "forget", "find", "private", "off", "help")
# words behind one of these are the prompt's
WITHOUT_ARGUMENT = frozenset({"tasks", "private", "off", "help"})
# as keyboards write them: in capitals, after blanks, with the wide slash of Japanese, with a full stop
_SLASH_COMMAND = re.compile(
    rf"[ \t\u3000]*[/\uff0f]({'|'.join(NAMES)})(?:[.!\u3002]?|[ \t\u3000]+(\S.*?))[ \t]*", re.IGNORECASE
)
_TODO_OR_DONE = re.compile(r"(todo|done):[ \t]*(\S.*?)[ \t]*", re.IGNORECASE)
_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]+(\S.*?)[ \t]*")


@dataclass(frozen=True, slots=True)
class Command:
    """One command at a prompt's head, such as `/remember`.

    Attributes:
        name: One of `NAMES`.
        argument: The text after the name, as written; "" for none.
    """

    name: str
    argument: str = ""


def parse_commands(text: str) -> tuple[tuple[Command, ...], str]:
    """Split a prompt's text into its commands and the text below them, as written.

    - Commands are on the first lines, one a line, up to the first line that is none. A command further down, in a text
      that may be pasted, does not count.
    - Words behind a command that takes no argument are text, and no command follows them.
    - `todo:` and `done:` without a slash count only on the first line.
    - In a text of nothing but boxes, `- [ ]` is the command `todo` and `- [x]` the command `done`.
    """
    lines = text.split("\n")
    boxes = [_BOX.fullmatch(line) for line in lines if line.strip()]
    if boxes and all(boxes):
        return tuple(Command("todo" if box[1] == " " else "done", box[2]) for box in boxes if box), ""
    commands: list[Command] = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        match = _SLASH_COMMAND.fullmatch(line) or (None if commands else _TODO_OR_DONE.fullmatch(line))
        if match is None:
            # a text without commands keeps the blank lines above it
            return tuple(commands), "\n".join(lines[number:]) if commands else text
        name, argument = match[1].lower(), match[2] or ""
        if name in WITHOUT_ARGUMENT and argument:
            return (*commands, Command(name)), "\n".join([argument, *lines[number + 1 :]])
        commands.append(Command(name, argument))
    return tuple(commands), ""


def arguments(commands: Iterable[Command], name: str) -> list[str]:
    """Return the arguments of all commands with a name; those without an argument are left out."""
    return [command.argument for command in commands if command.name == name and command.argument]


# --- prompts, responses, errors --------------------------------------------------------------------------------------

_SEND = re.compile(r"(?:^|\n)[ \t]*/send\s*\Z")
_ERROR_SECTION = re.compile(r"^\*\*(Why|What to do):\*\* (.*)$", re.MULTILINE)
_OUTPUT = re.compile(r"(.+)\.(?:response(?:-\d+)?|error)\.md")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file as it was read.

    Attributes:
        path: Relative, posix.
        text: The body with `\\n` line ends, without outer blank lines and the `/send` line.
        sha256: Of the normalized body: equal when nothing but line ends, white space at line ends, the BOM,
            the front matter or a `/send` differ.
        at: ISO 8601 UTC, when it arrived.
        model: The model that is to answer; None for that of the settings.
        focus: Links to notes that "this" refers to, as written.
        workflow: Name of a procedure in `system/workflows/`; None for none.
        reply_to: Path of an earlier prompt or response that this one continues; None for none.
        answer: Whether it is to be answered; False: it is only remembered.
        remember: Whether it may be kept; False: off the record, also where that is unclear.
        private: Whether it must never be shown to a remote model, by front matter, command or a mark in the text.
        is_draft: Whether its front matter says `status: draft`: it is not answered yet.
        is_capture: Whether it is in `inbox/notes/`.
        is_send: Whether its last line is `/send`: it is finished.
        id: The identity that it keeps when it moves; "" before it is answered.
        origin: Whose words these are, one of `ORIGINS`; front matter may name a less trusted one than `person`.
        by: The client through which it came, with its door (`mcp:claude`); "" for a file that a person saved.
        device: The only device that may answer it; "" for the one that runs the processes.
        tags: Tags of its front matter, without `#`, for the page that its words come to.
        due: When the task in it is due, as written; "" for none.
        commands: The commands at its head; none where another than the person wrote it.
    """

    path: str
    text: str
    sha256: str
    at: str
    model: str | None = None
    focus: tuple[str, ...] = ()
    workflow: str | None = None
    reply_to: str | None = None
    answer: bool = True
    remember: bool = True
    private: bool = False
    is_draft: bool = False
    is_capture: bool = False
    is_send: bool = False
    id: str = ""
    origin: str = PERSON
    by: str = ""
    device: str = ""
    tags: tuple[str, ...] = ()
    due: str = ""
    commands: tuple[Command, ...] = ()

    @property
    def author(self) -> Author:
        """Whose words they are; by whichever client a person's words came, they are the person's."""
        return Author() if self.origin == PERSON else Author(self.origin, door_and_name(self.by)[1])

    def of_author(self, origin: str, by: str) -> Prompt:
        """Return the prompt with what is recorded of its author: less trusted than its file says, and never more."""
        if origin == PERSON and not by:
            return self
        return replace(self, origin=least_trusted(self.origin, origin), by=by or self.by, commands=())

    @property
    def is_typed(self) -> bool:
        """Whether the person wrote it into a file of theirs: no client at a door, and nobody else."""
        return self.origin == PERSON and not self.by

    @property
    def reader(self) -> Audience:
        """Who is told by an answer to it: a client at a door is anyone, and what is kept is told again."""
        return Audience.ANYONE if self.by else Audience.HERE if self.remember else Audience.NOBODY

    @property
    def said(self) -> str:
        """The text without its command lines, for search and models."""
        return parse_commands(self.text)[1] if self.commands else self.text


@dataclass(frozen=True, slots=True)
class Receipt:
    """One thing that an answer rested on.

    Attributes:
        id: By which `wrong`, `forget` and `why` know it; the same in every answer.
        use: `CITED`, or `SHOWN` where the model was shown it and the answer does not name it.
        day: The person's day it was said on; "" if unknown.
        who: Whose words it is: `User`, or such as `assistant (claude)`; "" for a whole page.
        link: To its page.
        is_outdated: Whether something newer was known then.
    """

    id: str
    use: str
    day: str
    who: str
    link: str
    is_outdated: bool = False

    def __str__(self) -> str:
        use = f"{self.use}, outdated" if self.is_outdated else self.use
        return SEPARATOR.join((self.id, use, self.day or "-", self.who or "-", self.link))

    @classmethod
    def parse(cls, line: str) -> Receipt | None:
        """Return the receipt that a line of front matter is; None where it is none, as somebody edited it."""
        parts = line.split(SEPARATOR, 4)
        if len(parts) < 5:
            return None
        use, _, outdated = parts[1].partition(", ")
        day, who = ("" if part == "-" else part for part in parts[2:4])
        return cls(parts[0], use, day, who, parts[4], bool(outdated))

    def to_json(self, folder: str) -> dict[str, Any]:
        """Return the fields as plain values for JSON.

        Args:
            folder: Of the response, which the link is relative to.
        """
        values = {"id": self.id, "use": self.use, "day": self.day, "who": self.who, "outdated": self.is_outdated}
        for link in find_links(self.link):
            path = posixpath.normpath(posixpath.join(folder, link.target))
            values |= {"title": link.text, "path": path, "block": link.fragment.removeprefix("^")}
        return values


@dataclass(frozen=True, slots=True)
class Response:
    """A response file; one that a person saved may lack all but the text.

    Attributes:
        in_reply_to: The prompt's file name; it is in the same folder.
        prompt_id: The prompt's identity.
        prompt_sha256: Hash of the prompt's normalized text that was answered.
        memories: Links to the memories that the answer cites.
        receipts: What it rested on, what it cites first.
        remember: Whether it may be kept; False: off the record, as its prompt.
        private: Whether it must never be shown to a remote model, as its prompt.
    """

    path: str
    text: str
    in_reply_to: str = ""
    prompt_id: str = ""
    prompt_sha256: str = ""
    created_at: str = ""
    model: str = ""
    memories: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    tokens: int = 0
    cost_usd: float = 0.0
    took_ms: int = 0
    remember: bool = True
    private: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt and its answer.

    Attributes:
        id: Of the event that records it.
        response: None for a note that is captured, not answered.
        at: When it was recorded, ISO 8601 UTC.
        supersedes: The id of the exchange that this one revises; None for none.
    """

    id: str
    prompt: Prompt
    response: Response | None
    at: str
    supersedes: str | None = None

    @property
    def is_private(self) -> bool:
        """Whether its prompt or its response is private, so that no remote model may see it."""
        return self.prompt.private or (self.response is not None and self.response.private)


def parse_prompt(path: str, raw: bytes, *, at: str, inbox: str = "inbox") -> Prompt:
    """Read a prompt file, in UTF-8, or in UTF-16 with its byte-order mark.

    Args:
        path: Relative, posix.
        raw: Its bytes.
        at: ISO 8601 UTC, when it arrived.
        inbox: Where the inbox is, relative to the root.

    Raises:
        FormatError: It has another encoding, its front matter is broken, or a key has a value of the wrong type.
    """
    content = _decode(path, raw)
    meta, offset = split(content, path)
    meta = in_lower_case(meta)
    body = content[offset:].removeprefix("\ufeff").replace("\r\n", "\n")
    unsent = _SEND.sub("", body)
    text = unsent.strip("\n").rstrip()
    normalized = "\n".join(line.rstrip() for line in text.replace("\r", "\n").split("\n")).strip("\n")
    origin = author_in(meta).origin
    commands = parse_commands(text)[0] if _may_command(meta) else ()
    return Prompt(
        path=path,
        text=text,
        sha256=hashlib.sha256(normalized.encode("utf-8")).hexdigest(),
        at=at,
        model=_text(path, meta, "model"),
        focus=_links(path, meta, "focus"),
        workflow=_text(path, meta, "workflow"),
        reply_to=_text(path, meta, "reply_to"),
        answer=_flag(path, meta, "answer", default=True),
        remember=not is_off_record(raw),
        private=_is_private(path, meta, content) or any(command.name == "private" for command in commands),
        is_draft=str(meta.get("status", "")).strip().lower() == "draft",
        is_capture=path.startswith(f"{inbox}/notes/"),
        is_send=unsent != body,
        origin=origin,
        by=_client(meta),
        device=_text(path, meta, "device") or "",
        tags=_tags(path, meta),
        due=_text(path, meta, "due") or "",
        commands=commands,
    )


def client_of(content: bytes) -> str:
    """Return the client that wrote a file of the inbox through a door; "" where none did, or it cannot be read."""
    if b"origin" not in content:
        return ""
    try:
        meta, _ = split(content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n"))
    except FormatError:
        return ""
    return _client(in_lower_case(meta))


# searched for first: most files have no such command and need no parsing
_UNRECORDED_COMMAND = re.compile(f"[/\uff0f](?:{'|'.join(sorted(UNRECORDED))})", re.IGNORECASE)
_BYTE_ORDER_MARKS = "\ufeff\udcff\udcfe"  # the last two as `decode_text` gives them where UTF-16 is broken


def is_off_record(content: bytes | None) -> bool:
    """Return whether a file is off the record, by front matter or a command; in any encoding and however broken.

    The commands `/off` and `/forget` count only in a file that a person saved, also where broken front matter hides
    whether a person did.

    Args:
        content: The file's bytes; None for no file.
    """
    if content is None or front_matter_asks(content, "remember", is_forgotten):
        return content is not None
    # UTF-16 without a byte-order mark, or with a broken end, is read as UTF-8: it is legible without its zeros
    text = decode_text(content).lstrip(_BYTE_ORDER_MARKS).replace("\0", "").replace("\r\n", "\n")
    if not _UNRECORDED_COMMAND.search(text):
        return False
    try:
        meta, start = split(text)
    except FormatError:
        return True
    commands = parse_commands(text[start:])[0] if _may_command(in_lower_case(meta)) else ()
    return any(command.name in UNRECORDED for command in commands)


def _may_command(meta: Mapping[str, Any]) -> bool:
    """Return whether commands in a file count, by its front matter: it is no import and came through no door."""
    return author_in(meta).origin == PERSON and not _client(meta)


def _client(meta: Mapping[str, Any]) -> str:
    """Return the client that wrote a file through a door; "" where none did.

    A door writes both `origin` and `by`. A person may write `by` alone into a note, such as a quotation.
    """
    return plain_name(meta.get("by") or "") if meta.get("origin") is not None else ""


def in_lower_case(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return front matter with its keys in lower case too; of `Private` and `private` the latter's value counts."""
    return {str(key).casefold(): value for key, value in meta.items()} | dict(meta)


def _decode(path: str, raw: bytes) -> str:
    """Return a file's text, which must be UTF-8 or UTF-16; a `FormatError` names the first wrong byte."""
    try:
        return raw.decode("utf-16") if is_utf16(raw) else raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            path, f"not UTF-8 at byte {error.start} (0x{raw[error.start]:02x}); save it as UTF-8 text"
        ) from error


def _text(path: str, meta: Mapping[str, Any], key: str) -> str | None:
    """Return a front-matter value as a text, None where it is missing; `FormatError` for a list or a truth value."""
    value = meta.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise _wrong_type(path, key, "a text", value)


def _is_private(path: str, meta: Mapping[str, Any], content: str) -> bool:
    """Return whether a prompt or response is private, by its front matter or a mark in its body.

    Raises:
        FormatError: The key `private` has a value other than true and false.
    """
    # the key `Private`, and other ways to write it, count too
    return _flag(path, meta, "private", default=False) or is_private_text(content)


def _flag(path: str, meta: Mapping[str, Any], key: str, *, default: bool) -> bool:
    """Return a truth value of front matter, the default where it is missing; `FormatError` for anything else."""
    value = meta.get(key)
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    raise _wrong_type(path, key, "true or false", value)


def _links(path: str, meta: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the links of a front-matter key, one or a list of them; `FormatError` for anything else."""
    value = meta.get(key)
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    # `focus: [[Page]]` without quotes is a list in a list to YAML and a link to everybody else
    links = tuple(f"[[{item[0]}]]" if isinstance(item, list) and len(item) == 1 else item for item in values)
    if not all(isinstance(link, str) for link in links):
        raise _wrong_type(path, key, "a link or a list of links", value)
    return links


def _tags(path: str, meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags of front matter, a list or words between commas; `FormatError` for anything else."""
    value = meta.get("tags") or ()
    tags = value.split(",") if isinstance(value, str) else value
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str | int) for tag in tags):
        raise _wrong_type(path, "tags", "a list of tags", value)
    return tuple(tag for tag in (str(tag).strip().lstrip("#") for tag in tags) if tag)


def _wrong_type(path: str, key: str, expected: str, value: object) -> FormatError:
    return FormatError(path, f"`{key}` in the front matter must be {expected}; found {value!r:.80}")


def conversation_of(path: str, *, inbox: str = "inbox") -> str:
    """Return the folder of a prompt's conversation; a prompt right in the inbox is its own, named by its path."""
    folder = posixpath.dirname(path)
    return path if folder == inbox else folder


def parse_response(path: str, raw: bytes) -> Response:
    """Read a response file, whoever wrote it.

    Raises:
        FormatError: It is not UTF-8, or its front matter is broken.
    """
    text = _decode(path, raw)
    meta, offset = split(text, path)
    newline = newline_of(text)
    body = text[offset:].removeprefix("\ufeff").removesuffix(newline)
    if offset:  # one blank line below the front matter is not part of the text
        body = body.removeprefix(newline)
    return Response(
        path=path,
        text=body,
        in_reply_to=_text(path, meta, "in_reply_to") or "",
        prompt_id=_text(path, meta, "prompt_id") or "",
        prompt_sha256=_text(path, meta, "prompt_sha256") or "",
        created_at=_text(path, meta, "created_at") or "",
        model=_text(path, meta, "model") or "",
        memories=_links(path, meta, "memories"),
        receipts=tuple(filter(None, map(Receipt.parse, _links(path, meta, "receipts")))),
        tokens=int(_number(meta, "tokens")),
        cost_usd=_number(meta, "cost_usd"),
        took_ms=int(_number(meta, "took_ms")),
        remember=not is_off_record(raw),
        private=_is_private(path, meta, text),
    )


def _number(meta: Mapping[str, Any], key: str) -> float:
    """Return a number of front matter; 0 where there is none."""
    value = meta.get(key)
    return float(value) if isinstance(value, int | float) and abs(value) < float("inf") else 0.0


def render_response(response: Response) -> str:
    """Return the file of a response; `parse_response` gives the same response back."""
    names = "in_reply_to prompt_id prompt_sha256 created_at model memories receipts tokens cost_usd took_ms".split()
    meta = {name: getattr(response, name) for name in names} | {"receipts": [*map(str, response.receipts)]}
    meta |= {} if response.remember else {"remember": False}
    meta |= {"private": True} if response.private else {}
    return f"{render_meta(meta)}\n{response.text}\n"


def render_error(prompt_path: str, what: str, why: str, todo: str, at: str, *, remember: bool = True) -> str:
    """Return the text of an error file, which says why a prompt was not answered.

    Args:
        prompt_path: Relative, posix.
        what: One sentence: what happened.
        why: The cause.
        todo: What the person can do.
        at: ISO 8601 UTC.
        remember: False where the prompt is off the record; so is this file then, since it may quote the prompt.
    """
    keys = {"in_reply_to": posixpath.basename(prompt_path), "created_at": at}
    meta = render_meta(keys if remember else {**keys, "remember": False})
    return f"{meta}\n# Not answered\n\n**What:** {what}\n\n**Why:** {why}\n\n**What to do:** {todo}\n"


def reason_of_error(text: str) -> str:
    """Return, on one line, why a prompt was not answered and what to do, given the text of its error file."""
    sections = dict(_ERROR_SECTION.findall(text))
    return " ".join(filter(None, (sections.get("Why"), sections.get("What to do")))).strip()


def response_path(prompt_path: str, number: int = 1) -> str:
    """Return the path of a prompt's response: `q.response.md` for `q.md`, the second one `q.response-2.md`."""
    return prompt_path.removesuffix(".md") + (".response.md" if number == 1 else f".response-{number}.md")


def error_path(prompt_path: str) -> str:
    """Return the path of a prompt's error file: `q.error.md` for `q.md`."""
    return prompt_path.removesuffix(".md") + ".error.md"


def prompt_path_of(output_path: str) -> tuple[str, ...]:
    """Return the paths of the prompts that a response or error file may belong to, likeliest first; () for neither."""
    match = _OUTPUT.fullmatch(output_path)
    if not match:
        return ()
    # a response's name leaves out only `.md`: `q.response.md` answers `q.md`, `q.txt.response.md` answers `q.txt`
    has_ending = match[1].lower().endswith((".txt", ".md", ".markdown"))
    return (match[1], match[1] + ".md") if has_ending else (match[1] + ".md",)
