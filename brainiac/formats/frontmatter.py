"""Front matter: read fast, written without touching what is not changed (docs/format.md, F-FM).

Most front matter is plain `key: value` lines and is read here in microseconds; anything else is read by the YAML
loader behind `yaml_handler.Handler`, with which the fast reader agrees on all it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from brainiac.errors import FormatError

# Words that YAML 1.1 takes for truth values or null; as keys and texts they need quotes.
_WORDS = frozenset(
    spelling
    for word in ("yes", "no", "on", "off", "true", "false", "null")
    for spelling in (word, word.capitalize(), word.upper())
)
_UNPRINTABLE = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_NAME = r"[^\W\d_](?:[\w ./-]*[\w./-])?"  # starts with a letter: no number, date or indicator
_PLAIN = (
    r"[^\W\d_](?:[\w ,./()'+%-]*[\w./()'+%-])?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}))?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[0-9a-f]*[ac-f])[0-9a-f]{64}"  # a hash; without such a letter it could be a number
)
_QUOTED = rf"""'[^'{_UNPRINTABLE}]*'|"[^"\\{_UNPRINTABLE}]*\""""
_NO_WORD = r"(?!(?i:yes|no|on|off|true|false|null)[,\]])"
_INTEGER = r"0|[1-9][0-9]{0,17}"
_FLOAT = r"(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}"
_FLOW = rf"\[(?:{_NO_WORD}{_NAME}(?:, {_NO_WORD}{_NAME})*)?\]"
_LINE = re.compile(rf"({_NAME}|_\w*):(?: (?:({_PLAIN})|({_INTEGER})|({_QUOTED})|({_FLOW})|({_FLOAT})))?")
_ITEM = re.compile(rf"  - (?:({_PLAIN})|({_QUOTED}))")
_IS_PLAIN = re.compile(_PLAIN)
_IS_NAME = re.compile(_NAME)
_KEY_GROUP, _PLAIN_GROUP = 1, 2
_CONVERT: dict[int, Callable[[str], Any]] = {
    3: int,
    4: lambda quoted: quoted[1:-1],
    5: lambda names: names[1:-1].split(", ") if names != "[]" else [],
    6: float,
}
_TRUTH = {"true": True, "false": False}
_STRANGE_LINE_END = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


def split(text: str, path: str = "") -> tuple[dict[str, Any], int]:
    """Return the front matter and the offset where the body begins: `({}, 0)` when there is none.

    Dates stay the texts they are. A `---` without a closing one is body.

    Args:
        text: A whole file; a BOM may precede the front matter.
        path: For the message.

    Raises:
        FormatError: The block is no YAML mapping, or repeats a key.
    """
    found = _bounds(text)
    if found is None:
        return {}, 0
    start, end, body = found
    return _load(text[start:end], path), body


def _bounds(text: str) -> tuple[int, int, int] | None:
    """Return where the block between the fences starts and ends, and where the body starts."""
    fence = 1 if text.startswith("\ufeff") else 0
    if not text.startswith("---", fence):
        return None
    line_end = text.find("\n", fence)
    if line_end < 0 or text[fence + 3 : line_end].strip(" \t\r"):
        return None
    at = line_end
    while (at := text.find("\n---", at)) >= 0:
        end = text.find("\n", at + 4)
        end = len(text) if end < 0 else end
        if not text[at + 4 : end].strip(" \t\r"):
            return line_end + 1, at + 1, min(end + 1, len(text))
        at = end
        if at == len(text):
            break
    return None


def _load(block: str, path: str) -> dict[str, Any]:
    block = block.replace("\r\n", "\n")
    meta = _read_plain(block)
    if meta is None:
        from brainiac.formats.yaml_handler import Handler

        meta = Handler(path).load(block)
    return meta


def _read_plain(block: str) -> dict[str, Any] | None:
    """Read lines of the plain subset; None when there is anything else."""
    meta: dict[str, Any] = {}
    entries = 0
    items: list[str] | None = None  # of a list whose items may stand below its key
    for line in block.split("\n"):
        if found := _LINE.fullmatch(line):
            entries += 1
            kind = found.lastindex
            if kind == _PLAIN_GROUP:
                key, word = found.group(1, 2)
                meta[key] = word if word not in _WORDS else _TRUTH.get(word)
                if meta[key] is None:
                    return None
                items = None
            elif kind == _KEY_GROUP:
                key, items = found[1], []
                meta[key] = None
            else:
                meta[found[1]] = _CONVERT[kind or 0](found[kind or 0])
                items = None
        elif line:
            item = _ITEM.fullmatch(line)
            if not item or items is None or item[1] in _WORDS:
                return None
            items.append(item[1] or item[2][1:-1])
            meta[key] = items
    return meta if entries == len(meta) and _WORDS.isdisjoint(meta) else None


def render_meta(meta: Mapping[str, Any]) -> str:
    """Return front matter with its fences; `split` reads the same values back.

    Args:
        meta: Texts, numbers, truth values, None, and lists of texts. A lone surrogate, which no UTF-8 file can
            hold, becomes U+FFFD.
    """
    return f"---\n{_entries(meta)}---\n"


def _entries(meta: Mapping[str, Any]) -> str:
    return "".join(f"{key}:{_value(value)}\n" for key, value in meta.items())


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        if all(_IS_NAME.fullmatch(item) and item not in _WORDS for item in value):
            return f" [{', '.join(value)}]"
        return "".join(f"\n  - {_text(item)}" for item in value)
    if isinstance(value, bool):
        return f" {str(value).lower()}"
    if isinstance(value, float):
        return " " + _decimal(value)
    return f" {value}" if isinstance(value, int) else f" {_text(value)}"


def _decimal(value: float) -> str:
    text = repr(value)
    if text[-1] in "fn":  # inf, nan
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 takes `1e-05` for a text


def _text(text: str) -> str:
    if _IS_PLAIN.fullmatch(text) and text not in _WORDS:
        return text
    if not re.search(f"[{_UNPRINTABLE}]", text):
        return "'" + text.replace("'", "''") + "'"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(f"[{_UNPRINTABLE}]", _escaped, quoted) + '"'


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def edit_meta(text: str, /, **keys: Any) -> str:
    """Return the text with front-matter keys set; all but the entries that change stays byte for byte.

    Args:
        text: A whole file, with or without front matter.
        keys: Texts, numbers, truth values, None, lists of texts.

    Raises:
        FormatError: The front matter there is broken, or written so that the keys cannot be set safely.
    """
    wanted = {key: list(value) if isinstance(value, tuple) else value for key, value in keys.items()}
    found = _bounds(text)
    if found is None:
        bom = "\ufeff" if text.startswith("\ufeff") else ""
        newline = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
        return bom + render_meta(wanted).replace("\n", newline) + text[len(bom) :]
    start, end, _ = found
    block = text[start:end]
    old = _load(block, "")
    changed = {key: value for key, value in wanted.items() if key not in old or not _is_same(old[key], value)}
    if not changed:
        return text
    newline = "\r\n" if text[start - 2] == "\r" else "\n"
    return text[:start] + _edit_block(block, old, changed, newline) + text[end:]


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _edit_block(block: str, old: Mapping[str, Any], changed: Mapping[str, Any], newline: str) -> str:
    """Change old entries and append new ones, by the gentlest way that reads back as expected."""
    for edited in _edits(block, old, changed, newline):
        with suppress(FormatError):  # an entry that leans on another (an anchor), a mapping in braces: the next way
            if _load(edited, "") == {**old, **changed}:
                return edited
    raise FormatError(
        "", f"the front matter is written so that {', '.join(changed)} cannot be set; write it as `key: value` lines", 2
    )


def _edit_plain(block: str, old: Mapping[str, Any], replaced: Mapping[str, Any], newline: str) -> str | None:
    """Return the block with entries rewritten that stand as they are written here; None where one stands otherwise."""
    for key, value in replaced.items():
        if not (_is_writable(old[key]) and _is_writable(value)):
            return None
        before, after = (_entries({key: each}).replace("\n", newline) for each in (old[key], value))
        at = f"\n{block}".find(f"\n{before}")
        is_kept = before.startswith(f"{key}:{newline}") == after.startswith(f"{key}:{newline}")  # a list's style
        if at < 0 or not is_kept:
            return None
        block = block[:at] + after + block[at + len(before) :]
    return block


def _is_writable(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


def _edits(block: str, old: Mapping[str, Any], changed: Mapping[str, Any], newline: str) -> Iterator[str]:
    replaced = {key: value for key, value in changed.items() if key in old}
    added = _entries({key: value for key, value in changed.items() if key not in old}).replace("\n", newline)
    if (plain := _edit_plain(block, old, replaced, newline)) is not None:
        yield plain + added
    from brainiac.formats.yaml_handler import edit_entries, edit_whole

    if not _STRANGE_LINE_END.search(block):
        with suppress(FormatError):
            yield edit_entries(block, replaced, newline) + added
    yield edit_whole(block, changed, newline)
