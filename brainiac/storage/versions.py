"""`merge`: two versions of one of our files become one, by what things are; for conflict copies, git and its markers.

A file is read as units with keys: events, statements and proposals by their ids, list items and lines by their text,
front matter by its keys. What one side added stands; what one side removed and the other left alone goes; of what both
changed, both texts stand. The result depends on the two texts and the base alone, not on which of them is "ours", so
that two devices that merge at once write the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Any

from brainiac.errors import FormatError
from brainiac.events import PathKind
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.index_page import MANIFEST, RELATED
from brainiac.formats.markdown import PRIVATE, PRIVATE_MARK, find_events, find_links, is_timestamp
from brainiac.formats.page import find_statements, new_block_id
from brainiac.formats.short_term import FACTS, GOALS, TASKS
from brainiac.storage.merge import with_all_lines

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_META_KEY = re.compile(r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s#:\-\[{][^:\n]*):(?:\s|$)")
_PROPOSAL = re.compile(r"<!-- proposal: (\S+) -->[ \t]*$", re.MULTILINE)
_BOX = re.compile(r"^([ \t]*[-*+][ \t]+)\[([ xX-])\](?=[ \t\n]|$)")
_BLOCK_END = re.compile(r"(?:[ \t]\^[A-Za-z0-9-]+)?[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LISTS = frozenset(heading.removeprefix("### ") for heading in (GOALS, FACTS, TASKS))  # of short-term memory
_EARLIEST = frozenset({"uuid", "created_at", "brain_id"})  # of two values of these keys the smaller one counts
_LATEST = frozenset({"updated_at"})
_COUNTED = frozenset({"reinforcement_count"})

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A statement or an entry of front matter that both versions changed; both texts stand in the merged file.

    Attributes:
        kept: The text that has the place or the block id.
        other: The text that stands beside it.
    """

    kept: str
    other: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What two versions merge to.

    Attributes:
        text: The whole file.
        differences: What a person may want to decide.
    """

    text: bytes
    differences: tuple[Difference, ...] = ()


def merge(
    kind: PathKind,
    base: bytes | None,
    ours: bytes,
    theirs: bytes,
    was_removed: Callable[[str], bool] = lambda text: False,
) -> Merge:
    """Merge two versions of a file.

    Args:
        kind: What the file is for.
        base: The version that both grew from; None where it is not known: then nothing counts as removed.
        ours: The one version.
        theirs: The other version; exchanging the two gives the same result.
        was_removed: Without a base, whether a process removed a text before, so that it must not come back.
    """
    if ours == theirs or base == theirs:
        return Merge(ours)
    if base == ours:
        return Merge(theirs)
    if kind in (PathKind.RESPONSE, PathKind.ERROR) and _answer_id(ours) != _answer_id(theirs):
        return Merge(_earlier_answer(ours, theirs))
    first, second = sorted((_Version(kind, ours), _Version(kind, theirs)), key=lambda version: version.raw)
    former = None if base is None else _Version(kind, base)
    return _Merging(kind, former, *_framed(former, first, second), was_removed).result()


def _answer_id(raw: bytes) -> str:
    """Return the id of the prompt that a response names; "" for none."""
    with suppress(FormatError):
        return str(split(raw.decode("utf-8", "surrogateescape"))[0].get("prompt_id") or "")
    return ""


def _earlier_answer(ours: bytes, theirs: bytes) -> bytes:
    """Return the response that was written first: of two answers to one prompt one counts, alike on all devices."""

    def age(raw: bytes) -> tuple[str, bytes]:
        with suppress(FormatError):
            return str(split(raw.decode("utf-8", "surrogateescape"))[0].get("created_at") or "~"), raw
        return "~", raw

    return min(ours, theirs, key=age)


# --- units ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Unit:
    """A part of a file that is added, changed and removed as a whole.

    Attributes:
        key: What identifies it within its file: its kind, an id or a text, and which of several equal ones it is.
        text: Its lines.
        gap: The blank lines below it.
        own_end: Of a statement with a block id, where its words end in the text.
        at: Of an event, its time.
    """

    key: Key
    text: str
    gap: str = ""
    own_end: int = 0
    at: str = ""


class _Version:
    """A version of a file as units in order."""

    def __init__(self, kind: PathKind, raw: bytes) -> None:
        self.raw = raw
        text = raw.decode("utf-8", "surrogateescape")
        self.is_crlf = "\r\n" in text
        text = text.replace("\r\n", "\n")
        self.is_ended = not text or text.endswith("\n")
        self.text = text if self.is_ended else text + "\n"
        self.units = {unit.key: unit for unit in _with_gaps(_numbered(_units(kind, self.text)))}

    @property
    def keys(self) -> list[Key]:
        """The keys in the order of the file."""
        return list(self.units)


def _units(kind: PathKind, text: str) -> Iterator[_Unit]:
    """Yield the units of a text, blank lines as units of their own."""
    if kind is PathKind.CONFIG:
        yield from _meta_units(text)
        return
    body = 0
    with suppress(FormatError):
        body = split(text)[1]
    if body:
        bom = 1 if text.startswith("\ufeff") else 0
        start, end = text.index("\n") + 1, text.rindex("---", 0, body)
        yield _Unit(("fence", "top"), text[bom:start])
        yield from _meta_units(text[start:end])
        yield _Unit(("fence", "bottom"), text[end:body])
    at = body
    for span in _spans(kind, text, body):
        if span[0] >= at:
            yield from _line_units(text[at : span[0]])
            yield span[2]
            at = span[1]
    yield from _line_units(text[at:])


def _spans(kind: PathKind, text: str, body: int) -> list[tuple[int, int, _Unit]]:
    """Return the events and statements of a text with their offsets, in order; none lies within an earlier one."""
    spans = [
        (
            placed.start,
            placed.end,
            _Unit(("event", placed.event.id), text[placed.start : placed.end], at=placed.event.at),
        )
        for placed in find_events(text, body)
        if is_timestamp(placed.event.at)
    ]
    for item in find_statements(text, body):
        if any(start <= item.start < end for start, end, _ in spans[-1:]) and kind is not PathKind.SHORT_TERM:
            continue
        lines = text[item.start : item.end]
        own_end = item.text_span[1] - item.start
        proposal = _PROPOSAL.search(lines)
        if kind is PathKind.INDEX_PAGE and item.section in (MANIFEST, RELATED) and (links := find_links(lines)):
            key: Key = ("entry", item.section, links[0].uuid or links[0].target)
        elif proposal:
            key = ("proposal", proposal[1])
        elif item.block_id:
            key = ("block", item.block_id)
        else:
            key = ("item", item.section if item.section in _LISTS else "", _bare(item.text))
        spans.append((item.start, item.end, _Unit(key, lines, own_end=own_end if item.block_id else 0)))
    return sorted(_outermost(spans), key=lambda span: span[0])


def _outermost(spans: Iterable[tuple[int, int, _Unit]]) -> Iterator[tuple[int, int, _Unit]]:
    """Yield the spans that begin within no other one."""
    end = -1
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if span[0] >= end:
            yield span
            end = span[1]


def _line_units(text: str) -> Iterator[_Unit]:
    """Yield a unit for each line, and one for each code fence."""
    fenced, fence = "", ""
    for line in _LINE.findall(text):
        opening = _FENCE.match(line)
        if fence:
            fenced += line
            if opening and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                yield _Unit(("line", fenced), fenced)
                fenced = fence = ""
        elif opening:
            fenced, fence = line, opening[1]
        else:
            yield _Unit(("line", line.strip()), line)
    yield from (_Unit(("line", line.strip()), line) for line in _LINE.findall(fenced))  # it is never closed


def _meta_units(block: str) -> Iterator[_Unit]:
    """Yield a unit for each top-level entry of YAML with what is nested in it; comments between are lines."""
    name, entry, between = "", "", ""
    for line in _LINE.findall(block):
        match = _META_KEY.match(line)
        if match:
            yield from _meta_entry(name, entry, between)
            name, entry, between = match[1], line, ""
        elif name and (line.strip() == "" or line.startswith("#")):
            between += line
        elif name:
            entry, between = entry + between + line, ""
        else:
            yield _Unit(("line", line.strip()), line)
    yield from _meta_entry(name, entry, between)


def _meta_entry(name: str, entry: str, between: str) -> Iterator[_Unit]:
    if name:
        yield _Unit(("meta", name), entry)
        yield from _line_units(between)


def _numbered(units: Iterable[_Unit]) -> Iterator[_Unit]:
    """Yield the units with keys that occur once: the second of two equal ones has its number in its key."""
    seen: Counter[Key] = Counter()
    for unit in units:
        if unit.key == ("line", ""):
            yield unit
            continue
        seen[unit.key] += 1
        yield unit if seen[unit.key] == 1 else replace(unit, key=(*unit.key, str(seen[unit.key])))


def _with_gaps(units: Iterable[_Unit]) -> Iterator[_Unit]:
    """Yield the units that are not blank, each with the blank lines below it."""
    last = _Unit(("top",), "")
    for unit in units:
        if unit.key == ("line", ""):
            last = replace(last, gap=last.gap + unit.text)
            continue
        yield last
        body = unit.text.rstrip("\n \t")
        end = unit.text.find("\n", len(body)) + 1
        last = replace(unit, text=unit.text[:end], gap=unit.text[end:])
    yield last


def _bare(text: str) -> str:
    """Return the words of an item without its box, its private mark and extra white space."""
    words = PRIVATE.sub(" ", _BOX.sub(r"\1", f"- {text}")[2:])
    return " ".join(words.split())


# --- the merge -----------------------------------------------------------------------------------------------------


def _framed(base: _Version | None, first: _Version, second: _Version) -> tuple[_Version, _Version]:
    """Return the two versions, the one whose order of units the result is to have first."""
    if base is None:
        return first, second
    common = first.units.keys() & second.units.keys() & base.units.keys()
    order, former = [key for key in first.keys if key in common], [key for key in base.keys if key in common]
    return (second, first) if order == former else (first, second)


class _Merging:
    """One merge: `first` gives the order, `second` what is put between."""

    def __init__(
        self,
        kind: PathKind,
        base: _Version | None,
        first: _Version,
        second: _Version,
        was_removed: Callable[[str], bool],
    ) -> None:
        self._kind, self._base, self._first, self._second = kind, base, first, second
        self._former: Mapping[Key, _Unit] = base.units if base else {}
        self._was_removed = was_removed
        self._differences: list[Difference] = []
        self._meta: dict[str, Any] = {}  # values that neither side has as they are

    def result(self) -> Merge:
        """Return the merged text and what both changed."""
        units = [unit for unit in self._ordered() if unit.text or unit.gap]
        if self._kind in (PathKind.SHORT_TERM, PathKind.MEMORY, PathKind.ARCHIVED):
            units = self._with_events_in_order(units)
        text = "".join(unit.text + unit.gap for unit in self._spaced(units))
        text = self._with_sound_meta(text)
        versions = [version for version in (self._base, self._first, self._second) if version]
        if not all(version.is_ended for version in versions[-2:]):
            text = text.removesuffix("\n")
        if all(version.is_crlf for version in versions[-2:]):
            text = text.replace("\n", "\r\n")
        return Merge(text.encode("utf-8", "surrogateescape"), tuple(self._differences))

    def _spaced(self, units: Sequence[_Unit]) -> Iterator[_Unit]:
        """Yield the units, with a blank line where a text would else become part of a list item or event above it."""
        neighbours = {pair for side in (self._first, self._second) for pair in pairwise(side.keys)}
        for unit, following in zip_longest(units, units[1:]):
            is_new = following is not None and (unit.key, following.key) not in neighbours
            if following and is_new and unit.text and not unit.gap and _would_join(unit, following):
                unit = replace(unit, gap="\n")
            yield unit

    def _ordered(self) -> list[_Unit]:
        """Return the units that stand: those of `first` in its order, each other one below what it stood below."""
        standing = {key: self._standing(key) for key in dict.fromkeys((*self._first.keys, *self._second.keys))}
        order: dict[Key, list[Key]] = {}  # by the key of the unit above
        above: Key = ("top",)
        for key in self._second.keys:
            if key in self._first.units:
                above = key
            elif standing[key]:
                order.setdefault(above, []).append(key)
        result = []
        for key in self._first.keys:
            result += standing[key]
            for added in order.get(key, ()):
                result += standing[added]
        return self._without_repeated(result)

    def _standing(self, key: Key) -> list[_Unit]:
        """Return what stands of a unit: nothing, one text, or the texts of both sides."""
        base, first, second = (units.get(key) for units in (self._former, self._first.units, self._second.units))
        if first and second:
            gap = _chosen_gap(base, first, second)
            return [replace(unit, gap=gap) for unit in self._of_both(base, first, second)]
        unit = first or second
        assert unit is not None
        if base is not None:
            return [] if base.text == unit.text else [unit]  # an edit counts more than a removal
        if self._base is None and self._is_removed(unit):
            return []
        return [unit]

    def _is_removed(self, unit: _Unit) -> bool:
        """Return whether a process removed an event or item that one side lacks."""
        if unit.key[0] == "event":
            return self._was_removed(f"<!-- event: {unit.key[1]} -->")
        if unit.key[0] == "item":
            return self._was_removed(unit.key[2])
        return unit.key[0] in ("block", "line") and self._was_removed(unit.text.strip() or "\0")

    def _of_both(self, base: _Unit | None, first: _Unit, second: _Unit) -> list[_Unit]:
        """Return what stands of a unit that both sides have."""
        if first.text == second.text or (base and base.text == second.text):
            return [first]
        if base and base.text == first.text:
            return [second]
        first, second = sorted((first, second), key=lambda unit: unit.text)
        match first.key[0]:
            case "meta":
                return self._meta_of_both(base, first, second)
            case "entry":
                return [second]
            case "proposal":
                return _decided(first, second)
            case "block" | "item" if _words(first) == _words(second):
                return [_marked(first, second)]
            case "block" if _words(first.text[: first.own_end]) != _words(second.text[: second.own_end]):
                return self._both_statements(first, second)
        return [replace(first, text=_joined_lines(base, first, second))]

    def _both_statements(self, first: _Unit, second: _Unit) -> list[_Unit]:
        """Return both texts of a statement, the second with a block id that is made from its words."""
        first, second = sorted((first, second), key=lambda unit: ("~~" in unit.text, unit.text))
        words = _bare(second.text[: second.own_end].lstrip("-*+ \t"))
        taken = {key[1] for version in (self._first, self._second) for key in version.units if key[0] == "block"}
        own = {
            key[1]
            for version in (self._first, self._second)
            for key, unit in version.units.items()
            if key[0] == "block" and _bare(unit.text[: unit.own_end].lstrip("-*+ \t")) == words
        } - {first.key[1]}
        block_id = min(own) if own else new_block_id(words, taken)
        text = second.text[: second.own_end] + f" ^{block_id}"
        text += second.text[second.own_end :].lstrip(" \t").removeprefix(f"^{second.key[1]}")
        self._differences.append(Difference(first.text.strip(), second.text.strip()))
        return [first, replace(second, key=("block", block_id), text=text)]

    @staticmethod
    def _without_repeated(units: list[_Unit]) -> list[_Unit]:
        """Return the units without a statement whose block id stood before with the same words."""
        seen: dict[Key, str] = {}
        result = []
        for unit in units:
            if unit.key[0] == "block" and seen.get(unit.key) == _words(unit):
                continue
            seen[unit.key] = _words(unit)
            result.append(unit)
        return result

    # front matter

    def _meta_of_both(self, base: _Unit | None, first: _Unit, second: _Unit) -> list[_Unit]:
        """Return one entry of front matter, and the other as a comment where nothing says which counts."""
        name = first.key[1]
        values = [_value(unit) for unit in (base, first, second)]
        former, one, other = values
        if name in _EARLIEST:
            return [first]
        if name in _LATEST:
            return [second]
        if name in _COUNTED and isinstance(one, int) and isinstance(other, int):
            count = one + other - former if isinstance(former, int) else max(one, other)
            return [replace(first, text=f"{name}: {count}\n")]
        if isinstance(one, list) and isinstance(other, list):
            both = _merged_list(former if isinstance(former, list) else [], one, other)
            if self._kind is not PathKind.CONFIG:
                self._meta[name] = both
                return [first]
            with suppress(FormatError):  # a setting whose list is too intricate is a difference like any other
                return [replace(first, text=_with_value(first.text, name, both))]
        if isinstance(one, bool) and isinstance(other, bool):  # the more discreet one
            return [first if one is (name == "private") else second]
        if self._kind is PathKind.CONFIG and isinstance(one, dict) and isinstance(other, dict):
            joined = replace(first, text=_joined_lines(base, first, second))
            if isinstance(_value(joined), dict):
                return [joined]
        self._differences.append(Difference(second.text.strip(), first.text.strip()))
        comment = "".join(f"# {line}\n" for line in first.text.splitlines())
        return [second, _Unit(("line", comment.strip()), comment)]

    def _with_sound_meta(self, text: str) -> str:
        """Return the text with the merged values of front matter; with that of one side where it cannot be read."""
        if self._kind is PathKind.CONFIG:
            versions = [side for side in (self._first, self._second) if isinstance(_loaded(side.text), dict)]
            if isinstance(_loaded(text), dict) or not versions:
                return text
            lines = set(versions[0].text.splitlines())
            others = [line for line in text.splitlines() if lines.isdisjoint((line, f"# {line}"))]
            return versions[0].text + "".join(f"# {line}\n" for line in others)
        try:
            return edit_meta(text, **self._meta) if self._meta and split(text)[1] else text
        except FormatError:
            return self._with_readable_meta(text)

    def _with_readable_meta(self, text: str) -> str:
        """Return the text with the front matter of one side, and what else stood there as comments below it."""
        for side in (self._first, self._second):
            with suppress(FormatError):
                end = split(side.text)[1]
                at = text.find("\n---\n", 3)
                if end and at >= 0:
                    meta = side.text[:end]
                    others = [line for line in text[:at].splitlines() if line not in meta.splitlines()]
                    start = meta.rindex("---")
                    return meta[:start] + "".join(f"# {line}\n" for line in others) + meta[start:] + text[at + 5 :]
        return text

    def _with_events_in_order(self, units: list[_Unit]) -> list[_Unit]:
        """Return the units with the events by their time: newest first in short-term memory, last on a page."""
        places = [place for place, unit in enumerate(units) if unit.key[0] == "event"]
        is_newest_first = self._kind is PathKind.SHORT_TERM
        events = sorted((units[place] for place in places), key=lambda unit: unit.key)
        events.sort(key=lambda unit: unit.at, reverse=is_newest_first)
        result = list(units)
        for place, unit in zip(places, events, strict=True):
            result[place] = unit if unit.gap or place == len(units) - 1 else replace(unit, gap="\n")
        return result


def _would_join(unit: _Unit, following: _Unit) -> bool:
    """Return whether Markdown reads a unit's text as more of the one above it."""
    is_text = following.key[0] == "line" and not following.text.startswith("#")
    return is_text and (unit.key[0] != "line" or following.text.startswith(("---", "===")))


def _chosen_gap(base: _Unit | None, first: _Unit, second: _Unit) -> str:
    """Return the blank lines below a unit that both sides have."""
    if base and base.gap == first.gap:
        return second.gap
    return first.gap if base and base.gap == second.gap else max(first.gap, second.gap)


def _joined_lines(base: _Unit | None, first: _Unit, second: _Unit) -> str:
    """Return the lines of both sides, merged with those of the base."""
    texts = [unit.text.encode("utf-8", "surrogateescape") for unit in (first, second)]
    former = base.text.encode("utf-8", "surrogateescape") if base else None
    return with_all_lines(former, *texts).decode("utf-8", "surrogateescape")


def _words(unit: _Unit | str) -> str:
    """Return a statement's or item's text without its box and private mark."""
    return _bare(_BOX.sub(r"\1", unit if isinstance(unit, str) else unit.text))


def _marked(first: _Unit, second: _Unit) -> _Unit:
    """Return an item of two that differ in marks alone: done where one is done, private where one is private."""
    text, others = first.text, second.text
    done = any((box := _BOX.match(each)) and box[2] in "xX" for each in (text, others))
    if done:
        text = _BOX.sub(r"\1[x]", text)
    if PRIVATE.search(others) and not PRIVATE.search(text):
        line, newline, rest = text.partition("\n")
        at = _BLOCK_END.search(line)
        place = at.start() if at else len(line)
        text = f"{line[:place]} {PRIVATE_MARK}{line[place:]}{newline}{rest}"
    return replace(first, text=text)


def _decided(first: _Unit, second: _Unit) -> list[_Unit]:
    """Return the line of a proposal that has a mark; both lines where their marks contradict each other."""
    marks = [box[2].strip() if (box := _BOX.match(unit.text)) else "" for unit in (first, second)]
    if marks[0] and marks[1] and marks[0].lower() != marks[1].lower():
        return [first, second]
    return [first if marks[0] else second]


def _value(unit: _Unit | None) -> Any:
    """Return the value of an entry of front matter; None where it cannot be read."""
    values = _loaded(unit.text) if unit else None
    return next(iter(values.values()), None) if isinstance(values, dict) else None


def _loaded(block: str) -> Any:
    try:
        return split(f"---\n{block}---\n")[0]
    except FormatError:
        return None


def _with_value(entry: str, name: str, value: Sequence[Any]) -> str:
    """Return an entry of YAML with another value.

    Raises:
        FormatError: It is written so that the value cannot be set safely.
    """
    return edit_meta(f"---\n{entry}---\n", **{name: value}).removeprefix("---\n").removesuffix("---\n")


def _merged_list(base: Sequence[Any], first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Return the entries of both lists, once each, without those that one side removed."""
    kept = [entry for entry in first if entry in second or entry not in base]
    return kept + [entry for entry in second if entry not in first and entry not in base]
