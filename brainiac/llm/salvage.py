"""Reading a typed result in the text of a model: what is whole counts, whatever stands around it (design 8)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape
from typing import Any, TypeVar, get_args, get_origin

from brainiac.llm.schemas import MAX_TEXT, Result

R = TypeVar("R", bound=Result)

# small models put line breaks into strings, and capitals into names
_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=lambda pairs: {name.lower(): value for name, value in pairs}
)
_QUOTES = str.maketrans("“”„", '"""')
_START = re.compile(r"[{\[]")
_COMMENT = re.compile(
    r'("(?:\\.|[^"\\])*+(?:"|\\?\Z))|//[^\n]*|/\*.*?\*/', re.DOTALL
)  # beside strings, which may have the signs
SKIPPED = 500  # characters of what is nested without end
BROKEN = "it is no valid JSON, or was cut off; give it again, and what was to follow it"


def read_result(text: str, result: type[R]) -> R:
    """Return the result that stands in a model's answer.

    There may be thoughts, prose or a fence around it, and an object around it; it need not be
    strict JSON. Of a result that is a list of rows all rows count, wherever they stand; of those in broken JSON the
    ones that are whole, and the others are told in its `unread` where it has one. Of any other the last one counts.

    Args:
        text: The answer.
        result: Its class.

    Raises:
        ValidationError: It does not validate.
    """
    try:
        return _read(text.rpartition("</think>")[2], result)
    except RecursionError:  # nested so deep that it is no answer
        return result.model_validate(text[:MAX_TEXT])


def _read(text: str, result: type[R]) -> R:
    """Return the result that stands in an answer without its thoughts."""
    name, key = _rows_of(result)
    # thoughts that were not ended: a row in them is a draft, the whole form an answer
    text, _, thoughts = text.partition("<think>")
    text += thoughts if any(_of_fields(value, result) is not None for value, *_ in _values(thoughts)) else ""
    values = list(_values(text))
    if not any(_rows_in(value, name, key) or _of_fields(value, result) for value, *_ in values):
        text = unescape(text).translate(_QUOTES)
        values = list(_values(text)) or values
    if not any(_rows_in(value, name, key) or _of_fields(value, result) for value, *_ in values):
        values = [*_as_yaml(text), *values]
    told = [value for value in values if _of_fields(value[0], result) is not None]
    values = [value for value in values if value not in told[:-1]]  # the others were drafts
    rows = [(many, start, end) for value, start, end in values if (many := _rows_in(value, name, key))]
    whole = [found for value, *_ in values if (found := _of_fields(value, result)) is not None]
    if not rows or not name:
        start = _START.search(text)
        # nothing to tell, where an empty object or list is not a part of something broken
        is_empty = start is not None and bool(values) and values[0][1] == start.start() and values[0][0] in ({}, [])
        return result.model_validate(whole[-1] if whole else {} if is_empty else text[:MAX_TEXT])
    ends, starts = [0, *(end for *_, end in rows)], [*(start for _, start, _ in rows), len(text)]
    gaps = [text[end:start].strip(" \n,")[:MAX_TEXT] for end, start in zip(ends, starts, strict=True)]
    broken = [gap for gap in gaps if re.search(rf"\b{key}\W?\s*:", gap)] or [
        gap for gap in gaps[-1:] if "{" in gap and not whole
    ]
    unread = [{"text": gap, "problem": BROKEN} for gap in broken]
    given: list[Any] = []
    for many, *_ in rows:  # a list that is given twice counts once
        given += [row for row in many if row not in given]
    return result.model_validate({name: given, "unread": unread})


def _values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the outermost objects and lists that are whole, with their places; of a broken one, those within it."""
    at = 0
    while start := _START.search(text, at):
        try:
            value, at = _DECODER.raw_decode(text, start.start())
            yield value, start.start(), at
        except ValueError:
            at = start.end()
        except RecursionError:  # a model that did not stop: each start would be tried as deep
            at = start.end() + SKIPPED


def _as_yaml(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield what a text holds, with its place, if it is JSON but for other quotes, surplus commas and comments."""
    start, end = _START.search(text), max(text.rfind("}"), text.rfind("]")) + 1
    if start and "&" not in text:  # an anchor could make a short text a very long one
        import ruamel.yaml as ruamel  # rarely needed

        with suppress(ruamel.error.YAMLError, ValueError, RecursionError):
            bare = _COMMENT.sub(lambda found: found[1] or "", text[start.start() : end])
            yield ruamel.YAML(typ="safe", pure=True).load(bare), start.start(), end


def _of_fields(value: Any, result: type[Result]) -> Mapping[str, Any] | None:
    """Return the object with fields of a result that a value is, or that it has within; None where there is none."""
    if not isinstance(value, Mapping):
        return None
    if not result.model_fields.keys().isdisjoint(value):
        return value
    return next((found for inner in value.values() if (found := _of_fields(inner, result)) is not None), None)


def _rows_of(result: type[Result]) -> tuple[str, str]:
    """Return the field of a result that has its rows, and a field that each row must have; "" where it has no rows.

    A result with another field that must be there is more than its rows: it is read as a whole.
    """
    for name, field in result.model_fields.items():
        if any(other.is_required() for key, other in result.model_fields.items() if key != name):
            continue
        (row,) = get_args(field.annotation) if get_origin(field.annotation) is list else (None,)
        if isinstance(row, type) and issubclass(row, Result):
            return name, next(key for key, of_row in row.model_fields.items() if of_row.is_required())
    return "", ""


def _rows_in(value: Any, name: str, key: str) -> list[Any]:
    """Return the rows within a value: what has the field `key`, and what stands in the list `name`."""
    if isinstance(value, list):
        return [row for item in value for row in _rows_in(item, name, key)]
    if not isinstance(value, Mapping) or not name:
        return []
    if key in value:
        return [value]
    rows: list[Any] = []
    for field, inner in value.items():
        if field == name and isinstance(inner, str):  # JSON in a string
            rows += [row for found, *_ in _values(inner) for row in _rows_in(found, name, key)]
            continue
        items = inner if field == name and isinstance(inner, list) else [inner]
        rows += [row for item in items for row in _rows_in(item, name, key) or ([item] if items is inner else [])]
    return rows
