"""The full YAML of front matter, as a python-frontmatter handler: strict to read, round-trip to write.

Apart from `frontmatter.py` because python-frontmatter and ruamel.yaml cost more to import than most reads need.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from brainiac.errors import FormatError

MAX_ALIASES = 20  # n aliases can multiply a document by no more than 3^(n/3)
MAX_DEPTH = 100
_OPENERS = ("[", "{", "-", ":", "?")  # without more of these than that, nothing nests so deep
MERGE = "tag:yaml.org,2002:merge"
TIMESTAMP = "tag:yaml.org,2002:timestamp"

_LINE_END = re.compile("[\r\x85\u2028\u2029]")

# What PyYAML's constructors raise for values that belie their tags (`!!int x`, `!!bool x`, `0b_`), besides its own.
_MISFIT = (ValueError, LookupError, AttributeError, TypeError, OverflowError)
_BROKEN = (yaml.YAMLError, RecursionError, *_MISFIT)


class _StrictLoader(yaml.CSafeLoader):
    """Refuses duplicate keys; dates stay the texts they are."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's stubs declare it of the instance
        first: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except _MISFIT as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"`{key}` stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_StrictLoader.add_constructor(TIMESTAMP, lambda loader, node: node.value)


class Handler(YAMLHandler):
    """Reads and writes the block between the fences, with `\n` line ends.

    Args:
        path: Of the file, for the message.
    """

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self._path = path

    def load(self, fm: str, **kwargs: object) -> dict[Any, Any]:
        """Read a block.

        Raises:
            FormatError: It is no YAML mapping, or one that repeats a key or grows without bound; lines count
                from the opening fence.
        """
        try:
            if "&" in fm and "*" in fm:
                _check_aliases(fm)
            if sum(map(fm.count, _OPENERS)) > MAX_DEPTH:
                _check_nesting(fm)
            value = yaml.load(fm, Loader=_StrictLoader)
            _check_depth(value)
        except _BROKEN as error:
            raise self._explained(error) from error
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise FormatError(
                self._path,
                f"the front matter must be `key: value` lines, found a {type(value).__name__}; "
                "mend it, or leave the first line empty if no front matter is meant",
                2,
            )
        return value

    def load_round_trip(self, fm: str) -> Any:
        """Read a block as a mapping that remembers its comments, order, quotes and lines (`.lc`).

        Raises:
            FormatError: It is no mapping, or ruamel.yaml cannot read it.
        """
        from ruamel.yaml.comments import CommentedMap
        from ruamel.yaml.error import YAMLError

        try:
            value = _round_trip().load(fm)
        except (YAMLError, *_BROKEN) as error:
            raise self._explained(error) from error
        if not isinstance(value, CommentedMap):
            raise FormatError(self._path, "the front matter must be `key: value` lines", 2)
        return value

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        """Write a mapping that `load_round_trip` gave, comments, order and quotes as they were."""
        stream = io.StringIO()
        _round_trip().dump(metadata, stream)
        return stream.getvalue()

    def _explained(self, error: Exception) -> FormatError:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
        return FormatError(
            self._path,
            f"the front matter is no valid YAML: {problem}; mend this line (quote a value with special characters)",
            mark.line + 2 if mark else 2,
        )


def edit_entries(block: str, replaced: Mapping[str, Any], newline: str) -> str:
    """Return the block with the entries of these keys rewritten, each by itself; all other lines stay.

    Raises:
        FormatError: An entry cannot be read by itself.
    """
    handler = Handler()
    lines = block.split("\n")
    starts = {key: place[0] for key, place in handler.load_round_trip(block.replace("\r\n", "\n")).lc.data.items()}
    for key in sorted(replaced, key=starts.__getitem__, reverse=True):
        start = starts[key]
        end = min((other for other in starts.values() if other > start), default=len(lines) - 1)
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
            end -= 1  # comments and blank lines before the next entry are not this one's
        entry = handler.load_round_trip("".join(line.removesuffix("\r") + "\n" for line in lines[start:end]))
        _set(entry, key, replaced[key])
        written = handler.export(entry).removesuffix("\n").split("\n")
        lines[start:end] = [line + newline[:-1] for line in written]
    return "\n".join(lines)


def edit_whole(block: str, changed: Mapping[str, Any], newline: str) -> str:
    """Return the block read and written as a whole, for YAML of which no part stands by itself.

    Raises:
        FormatError: ruamel.yaml cannot read it.
    """
    handler = Handler()
    data = handler.load_round_trip(block.replace("\r\n", "\n"))
    for key, value in changed.items():
        _set(data, key, value)
    return handler.export(data).replace("\n", newline)


def _set(data: Any, key: str, value: Any) -> None:
    """Set a value; a list is edited in place, so that its style and the comments at its items stay."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    def quoted(item: Any) -> Any:  # ruamel.yaml writes line ends other than newline as they are, in all other styles
        return DoubleQuotedScalarString(item) if isinstance(item, str) and _LINE_END.search(item) else item

    value = [quoted(item) for item in value] if isinstance(value, list) else quoted(value)
    old = data.get(key)
    if not (isinstance(old, list) and isinstance(value, list)):
        data[key] = value
        return
    if value[: len(old)] == list(old):  # it only grows: a day's page names a thousand sources
        old.extend(value[len(old) :])
        return
    for position in reversed(range(len(old))):
        if old[position] not in value:
            del old[position]
    old.extend(item for item in value if item not in old)
    if list(old) != value:
        data[key] = value


def _check_aliases(fm: str) -> None:
    aliases = (event for event in yaml.parse(fm, Loader=yaml.CSafeLoader) if isinstance(event, yaml.AliasEvent))
    if sum(1 for _ in aliases) > MAX_ALIASES:
        raise ValueError(f"more than {MAX_ALIASES} aliases (`*name`); write the values out")


def _check_nesting(fm: str) -> None:
    """Refuse deep nesting by its events, since libyaml's composer overruns the stack and ends the process."""
    depth = 0
    for event in yaml.parse(fm, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def _check_depth(value: object, depth: int = 0) -> None:
    """Refuse a value that holds itself by an alias."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        for item in value.values():
            _check_depth(item, depth + 1)
    elif isinstance(value, list | set):
        for item in value:
            _check_depth(item, depth + 1)


def _round_trip() -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import ScalarNode
    from ruamel.yaml.resolver import VersionedResolver
    from ruamel.yaml.tag import Tag

    class Resolver(VersionedResolver):
        """Decides what is a number or a truth value as the reader does, so that `no` as a text gets its quotes."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            if kind is not ScalarNode or not implicit[0]:
                return super().resolve(kind, value, implicit)
            for tag, pattern in _StrictLoader.yaml_implicit_resolvers.get(value[:1], []):
                if pattern.match(value):
                    return Tag(suffix=tag)
            return Tag(suffix="tag:yaml.org,2002:str")

    yaml_ = YAML()
    yaml_.Resolver = Resolver
    yaml_.preserve_quotes = True
    yaml_.allow_unicode = True
    yaml_.indent(mapping=2, sequence=4, offset=2)  # as Obsidian writes lists
    yaml_.width = 1_000_000  # a line that was one line stays one
    return yaml_
