"""Front matter: read by python-frontmatter, written by ruamel.yaml without touching what is not changed.

docs/format.md, F-FM. Reading is strict: a key that is there twice, deep nesting and many aliases are refused. Its cost
at a start is in docs/decisions/front-matter.md.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from brainiac.errors import FormatError

MAX_DEPTH = 100
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
_OPENERS = ("[", "{", "-", ":", "?")  # each level of nesting needs one of these
MERGE = "tag:yaml.org,2002:merge"
TIMESTAMP = "tag:yaml.org,2002:timestamp"

_OPENING_FENCE = re.compile(r"\ufeff?---[ \t\r]*\n")
_CLOSING_FENCE = re.compile(r"\n---[ \t\r]*(?:\n|\Z)")

# words that YAML 1.1 reads as truth values or null; as texts they need quotes
_WORDS = frozenset(
    spelling
    for word in ("yes", "no", "on", "off", "true", "false", "null")
    for spelling in (word, word.capitalize(), word.upper())
)
_NAME = re.compile(r"[^\W\d_](?:[\w ./-]*[\w./-])?")  # starts with a letter: no number, date or indicator
_PLAIN = re.compile(
    r"[^\W\d_](?:[\w ,./()'+%-]*[\w./()'+%-])?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}))?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[0-9a-f]*[ac-f])[0-9a-f]{64}"  # a hash; without such a letter it could be a number
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# line ends to YAML, but not to `split("\n")`
_STRANGE_LINE_END = re.compile("\r(?!\n)|[\x85\u2028\u2029]")

# besides its own errors, PyYAML raises these for values that do not fit their tags (`!!int x`, `0b_`)
_MISFIT = (ValueError, LookupError, AttributeError, TypeError, OverflowError)
_BROKEN = (yaml.YAMLError, RecursionError, *_MISFIT)


# --- reading -------------------------------------------------------------------------------------------------------


def split(text: str, path: str = "") -> tuple[dict[str, Any], int]:
    """Return the front matter and the offset where the body begins: `({}, 0)` when there is none.

    Dates stay texts. A `---` without a closing one is body.

    Args:
        text: A whole file; a byte-order mark may precede the front matter.
        path: For the error's message.

    Raises:
        FormatError: The front matter is no YAML mapping, or has a key twice, too many aliases or levels.
    """
    bounds = _bounds(text)
    if bounds is None:
        return {}, 0
    start, end, body = bounds
    return _load(text[start:end], path), body


def _bounds(text: str) -> tuple[int, int, int] | None:
    """Return three offsets: start and end of the lines between the fences (`---`), and the start of the body.

    None for a text without front matter.
    """
    opening = _OPENING_FENCE.match(text)
    # the closing fence may be the next line: its newline before it is that of the opening one
    closing = _CLOSING_FENCE.search(text, opening.end() - 1) if opening else None
    return (opening.end(), closing.start() + 1, closing.end()) if opening and closing else None


class UniqueKeys(yaml.constructor.SafeConstructor):
    """Makes a loader of PyYAML, as its first base class, refuse a mapping that has a key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; a key that is there twice is an error, since one of its values would be lost."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"`{key}` stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


class _StrictLoader(UniqueKeys, yaml.CSafeLoader):
    """Refuses duplicate keys; dates stay texts."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's stubs declare it of the instance
        first: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return a node's value; the error for a value that does not fit its tag names the line."""
        try:
            return super().construct_object(node, deep=deep)
        except _MISFIT as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error


_StrictLoader.add_constructor(TIMESTAMP, lambda loader, node: node.value)


def _load(block: str, path: str = "") -> dict[str, Any]:
    """Return the keys and values of the block between the fences; see `split` for the errors."""
    block = block.replace("\r\n", "\n")
    try:
        if ("&" in block and "*" in block) or sum(map(block.count, _OPENERS)) > MAX_DEPTH:
            _check_size(block)
        meta = YAMLHandler().load(block, Loader=_StrictLoader)
    except _BROKEN as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
        if "nesting depth" in problem:  # newer releases of libyaml have a bound of their own, which may come first
            problem = _TOO_DEEP
        todo = "mend it here or a line above (quote values with special signs)"
        what = f"the front matter is no valid YAML: {problem}; {todo}"
        raise FormatError(path, what, mark.line + 2 if mark else 2) from error
    if meta is None:
        return {}
    if not isinstance(meta, dict):
        raise FormatError(
            path,
            f"the front matter must be `key: value` lines, found a {type(meta).__name__}; "
            "mend it, or leave the first line empty if no front matter is meant",
            line=2,
        )
    return meta


def _check_size(block: str) -> None:
    """Refuse a block before it is built: a few lines of aliases can expand to gigabytes, and libyaml would overrun the
    stack of deeply nested lists.
    """
    depth = 0
    for event in yaml.parse(block, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("an alias (`*name`); write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)


# --- writing -------------------------------------------------------------------------------------------------------


def render_meta(meta: Mapping[str, Any]) -> str:
    """Return front matter with its fences; `split` reads the same values back.

    Args:
        meta: Texts, numbers, truth values, None, and lists of texts. A lone surrogate, which no UTF-8 file can
            hold, becomes U+FFFD.
    """
    return f"---\n{_entries(meta)}---\n"


def _entries(meta: Mapping[str, Any]) -> str:
    """Return front-matter lines without the fences; "" for no keys."""
    return _dump({key: _styled(value) for key, value in meta.items()}) if meta else ""


def edit_meta(text: str, /, **keys: Any) -> str:
    """Return the text with front-matter keys set; everything but the entries that change stays byte for byte.

    Args:
        text: A whole file, with or without front matter.
        keys: Texts, numbers, truth values, None, lists of texts.

    Raises:
        FormatError: The front matter there is broken, or written so that the keys cannot be set safely.
    """
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in keys.items()}
    bounds = _bounds(text)
    if bounds is None:
        bom = "\ufeff" if text.startswith("\ufeff") else ""
        newline = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
        return bom + render_meta(values).replace("\n", newline) + text[len(bom) :]
    start, end, _ = bounds
    block = text[start:end]
    old = _load(block)
    changed = {key: value for key, value in values.items() if key not in old or not _is_same(old[key], value)}
    if not changed:
        return text
    newline = "\r\n" if text.endswith("\r\n", 0, start) else "\n"
    replaced = {key: value for key, value in changed.items() if key in old}
    added = _entries({key: value for key, value in changed.items() if key not in old}).replace("\n", newline)
    with suppress(FormatError):
        edited = _edit_entries(block, replaced, newline) + added
        # only what reads back as wanted: it does not where a mapping is in braces; and where YAML finds line ends that
        # `split("\n")` does not, its numbers of lines are others
        if not _STRANGE_LINE_END.search(block) and _load(edited) == {**old, **changed}:
            return text[:start] + edited + text[end:]
    problem = f"the front matter is written so that {', '.join(changed)} cannot be set; write it as `key: value` lines"
    raise FormatError("", problem, line=2)


def _is_same(old: Any, new: Any) -> bool:
    """Return whether two values are equal and of one type: to Python 1, 1.0 and True are equal."""
    return type(old) is type(new) and bool(old == new)


def _edit_entries(block: str, replaced: Mapping[str, Any], newline: str) -> str:
    """Return the block with these entries rewritten one by one; all other lines stay byte for byte."""
    if not replaced:
        return block
    lines = block.split("\n")  # the last one is empty, and a `\r` stays at the end of each other
    mapping = yaml.compose(block.replace("\r\n", "\n"), Loader=yaml.CSafeLoader)
    starts = {key.value: key.start_mark.line for key, _ in mapping.value} if mapping else {}
    # from the last entry up, so that the line numbers of the others hold
    for key in sorted(replaced, key=starts.__getitem__, reverse=True):
        start = starts[key]
        end = min((other for other in starts.values() if other > start), default=len(lines) - 1)
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
            end -= 1  # comments and blank lines above the next entry belong to that entry
        entry = "".join(line.removesuffix("\r") + "\n" for line in lines[start:end])
        edited = _edit_entry(entry, {key: replaced[key]}).removesuffix("\n").split("\n")
        lines[start:end] = [line + newline.removesuffix("\n") for line in edited]
    return "\n".join(lines)


def _edit_entry(entry: str, values: Mapping[str, Any]) -> str:
    """Return lines of front matter with values set; comments, order, quotes and list styles stay.

    Args:
        entry: One entry, or all lines.
        values: The new values by key.

    Raises:
        FormatError: ruamel.yaml cannot read the lines. It names no file: `edit_meta` is given none.
    """
    # only a write needs it, and it takes longer to import than a start may
    import ruamel.yaml as ruamel

    try:
        data = _round_trip().load(entry)
    except (ruamel.error.YAMLError, *_BROKEN) as error:
        # an entry alone: its lines have other numbers than in the file
        raise FormatError("", "the front matter cannot be edited; write it as `key: value` lines") from error
    if not isinstance(data, ruamel.comments.CommentedMap):
        raise FormatError("", "the front matter must be `key: value` lines", line=2)
    for key, value in values.items():
        items = data.get(key)
        if not (isinstance(items, list) and isinstance(value, list)):
            data[key] = _styled(value)
            continue
        # the list is changed in place, so that its style and the comments at its items stay
        styled = [_styled(item) for item in value]
        if value[: len(items)] == list(items):  # items are only added: fast for a day's page with a thousand sources
            items.extend(styled[len(items) :])
            continue
        for position in reversed(range(len(items))):
            if items[position] not in value:
                del items[position]
        items.extend(item for item in styled if item not in items)
        if list(items) != value:
            data[key] = styled
    return _dump(data)


def _styled(value: Any) -> Any:
    """Return a value for ruamel.yaml to write: a text in quotes where YAML could read it as another type.

    A list of plain names is written on one line, any other list with one line for each item.
    """
    from ruamel.yaml import comments, scalarstring  # needed for writing; reading is enough for most commands

    if isinstance(value, list | tuple):
        items = comments.CommentedSeq(_styled(item) for item in value)
        if all(_NAME.fullmatch(item) and item not in _WORDS for item in value):
            items.fa.set_flow_style()
        return items
    needs_quotes = isinstance(value, str) and (not _PLAIN.fullmatch(value) or value in _WORDS)
    if not needs_quotes:
        return value
    text = _SURROGATE.sub("\ufffd", value)
    is_printable = text == value and not _UNPRINTABLE.search(text)
    quoted = scalarstring.SingleQuotedScalarString if is_printable else scalarstring.DoubleQuotedScalarString
    return quoted(text)


def _dump(data: Mapping[str, Any]) -> str:
    """Return data as YAML."""
    stream = io.StringIO()
    _round_trip().dump(data, stream)
    return stream.getvalue()


def _round_trip() -> Any:
    """Return ruamel.yaml's reader and writer, which keeps comments, quotes and order; types are read as by `split`."""
    import ruamel.yaml as ruamel  # needed for writing; reading is enough for most commands

    class Resolver(ruamel.resolver.VersionedResolver):
        """Decides what is a number or a truth value as the reader does, so that `no` as a text gets its quotes."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            is_plain = kind is ruamel.nodes.ScalarNode and implicit[0]  # a scalar without a tag and without quotes
            if not is_plain:
                return super().resolve(kind, value, implicit)
            for tag, pattern in _StrictLoader.yaml_implicit_resolvers.get(value[:1], []):
                if pattern.match(value):
                    return ruamel.tag.Tag(suffix=tag)
            return ruamel.tag.Tag(suffix="tag:yaml.org,2002:str")

    class Representer(ruamel.representer.RoundTripRepresenter):
        """Writes a number so that YAML 1.1, which takes `1e-05` for a text, reads one."""

    Representer.add_representer(
        float, lambda representer, value: representer.represent_scalar("tag:yaml.org,2002:float", _decimal(value))
    )
    yaml_ = ruamel.YAML()
    yaml_.Resolver = Resolver
    yaml_.Representer = Representer
    yaml_.preserve_quotes = True
    yaml_.allow_unicode = True
    yaml_.indent(mapping=2, sequence=4, offset=2)  # as Obsidian writes lists
    yaml_.width = 1_000_000  # a line that was one line stays one
    return yaml_


def _decimal(value: float) -> str:
    """Return a float as YAML 1.1 reads it: with a point, infinity as `.inf`."""
    text = repr(value)
    if text[-1] in "fn":  # inf, nan
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if "." in text else text.replace("e", ".0e")
