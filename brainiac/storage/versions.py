"""`merge`: two versions of one of our files become one, by what things are.

For saves made without seeing our last writes, conflict copies, moved pages, git and its markers, and undo. A file is
read as units with keys: events, statements and proposals by their ids, list items and lines by their text, front
matter by its keys. What one side added stands; what one side removed and the other left alone goes; an edit outlives a
removal; of what both changed, both texts stand. Of two devices the result depends on the texts alone, so that two that
merge at once write the same bytes; of a save or an undo, one side is preferred: its text has the place.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Literal

from merge3 import Merge3

from brainiac.errors import FormatError
from brainiac.events import Change, PathKind, write
from brainiac.formats import markdown
from brainiac.formats.discretion import Audience
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.index_page import MANIFEST, RELATED
from brainiac.formats.page import Statement, audience_of, new_block_id, read_units
from brainiac.formats.short_term import FACTS, GOALS, TASKS
from brainiac.storage.files import read_bytes
from brainiac.tree import Tree

_META_KEY = re.compile(r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s#:\-\[{][^:\n]*):(?:\s|$)")
_PROPOSAL = re.compile(r"<!-- proposals?: (\S[^\n]*?) -->[ \t]*$", re.MULTILINE)
_BOX = re.compile(r"^([ \t]*[-*+][ \t]+)\[([ xX-])\](?=[ \t\n]|$)")
_BLOCK_END = re.compile(r"(?:[ \t]\^[A-Za-z0-9-]+)?[ \t]*$", re.MULTILINE)
_LISTS = frozenset(heading.removeprefix("### ") for heading in (GOALS, FACTS, TASKS))  # of short-term memory
_EARLIEST = frozenset({"uuid", "created_at", "brain_id"})  # of two values of these keys the smaller one counts
_LATEST = frozenset({"updated_at"})
_COUNTED = frozenset({"reinforcement_count"})
_AFTER_ALL_DATES = "~"
_WITHOUT_ID = frozenset({"line", "item"})  # units that are known by their text: a changed one is another one
_MAX_COMPARED = 2_000_000  # characters of one unit; comparing its lines takes seconds beyond this
_MAX_SHOWN = 300  # characters of a text in a line about two
# as `differences_change` writes it
_DIFFERS = re.compile(
    r"^- (?!\[)(?P<path>\S[^\n]*?): [^\n]*?(?: changed it, and )"
    r"(?:both stand; keep what holds: `(?P<kept>[^\n]*?)` or `(?P<other>[^\n]*)`)?[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)
EMPTY_REVIEW = """\
# Review

What Brainiac would like to do and may not. Put an `x` into a box to have it done, a `-` to decline; save the file.

"""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What both versions changed; both texts stand in the merged file.

    Between devices these are statements and entries of front matter; where one side is preferred, lines too.

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
        outlived: Texts that one side changed and the other removed; they stand.
    """

    text: bytes
    differences: tuple[Difference, ...] = ()
    outlived: tuple[str, ...] = ()


def merge(
    kind: PathKind,
    base: bytes | None,
    ours: bytes,
    theirs: bytes,
    was_removed: Callable[[str], bool] = lambda text: False,
    prefer: Literal["ours", "theirs"] | None = None,
    *,
    keeps_other: bool = True,
) -> Merge:
    """Merge two versions of a file.

    Args:
        kind: What the file is for.
        base: The version that both grew from; None where it is not known: then nothing counts as removed.
        ours: The one version.
        theirs: The other version.
        was_removed: Without a base, whether a process removed a text before, so that it must not come back.
        prefer: The side whose text has the place where both changed the same, the other stands below it; None where
            nobody knows who wrote last: then exchanging the two gives the same result.
        keeps_other: Whether the text of the other side stands there too; else it is only among the differences.
    """
    if ours == theirs or base == theirs:
        return Merge(ours)
    if base == ours:
        return Merge(theirs)
    if kind in (PathKind.RESPONSE, PathKind.ERROR) and _meta_of(ours, "prompt_id") != _meta_of(theirs, "prompt_id"):
        # two devices answered one prompt: only the earlier answer counts, and all devices must choose the same
        return Merge(min(ours, theirs, key=lambda raw: (_meta_of(raw, "created_at") or _AFTER_ALL_DATES, raw)))
    sides = _Version(kind, ours), _Version(kind, theirs)
    if prefer == "theirs" or (prefer is None and theirs < ours):
        sides = (sides[1], sides[0])
    former, is_preferred = None if base is None else _Version(kind, base), prefer is not None
    return _Merging(kind, former, *sides, was_removed, is_preferred=is_preferred, keeps_other=keeps_other).result()


def _meta_of(raw: bytes, name: str) -> str:
    """Return a value of a file's front matter; "" where it has none, and where it cannot be parsed."""
    with suppress(FormatError):
        return str(split(raw.decode("utf-8", "surrogateescape"))[0].get(name) or "")
    return ""


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

    @property
    def kind(self) -> str:
        """The first part of its key, such as `event`, `block`, `item`, `meta`, `line`."""
        return self.key[0]

    @property
    def name(self) -> str:
        """The second part of its key, such as an id, or the name of an entry of front matter."""
        return self.key[1]


class _Version:
    """A version of a file as units in order."""

    def __init__(self, kind: PathKind, raw: bytes) -> None:
        text = raw.decode("utf-8", "surrogateescape")
        self.is_crlf = "\r\n" in text
        text = text.replace("\r\n", "\n")
        self.ends_with_newline = not text or text.endswith("\n")
        self.text = text if self.ends_with_newline else text + "\n"
        self.units: dict[Key, _Unit] = {}  # in the order of the file
        seen, last = Counter[Key](), _Unit(("top",), "")  # each version begins with this unit
        for unit in _units(kind, self.text):
            if unit.key == ("line", ""):  # blank lines become the gap of what stands above them
                last = replace(last, gap=last.gap + unit.text)
                continue
            self.units[last.key] = last
            seen[unit.key] += 1
            last, end = unit, unit.text.find("\n", len(unit.text.rstrip("\n \t"))) + 1
            if seen[unit.key] > 1:  # equal units get different keys, so that none is lost
                last = replace(last, key=(*unit.key, str(seen[unit.key])))
            if end < len(unit.text):
                last = replace(last, text=unit.text[:end], gap=unit.text[end:])
        self.units[last.key] = last


def _units(kind: PathKind, text: str) -> Iterator[_Unit]:
    """Yield the units of a text, blank lines as units of their own."""
    if kind is PathKind.CONFIG:
        yield from _meta_units(text)
        return
    end = 0
    with suppress(FormatError):
        end = split(text)[1]
    if end:
        start, bottom = text.index("\n") + 1, text.rindex("---", 0, end)
        yield _Unit(("fence", "top"), text[:start].removeprefix("\ufeff"))  # without its byte-order mark
        yield from _meta_units(text[start:bottom])
        yield _Unit(("fence", "bottom"), text[bottom:end])
    for unit in read_units(text, end, only_dated=True):
        lines = text[unit.start : unit.end]
        match unit.part:
            case None:
                yield from _line_units(lines)
            case markdown.PlacedEvent(event):
                yield _Unit(("event", event.id), lines, at=event.at)
            case item:
                own_end = item.own[1] - item.start if item.block_id else 0
                yield _Unit(_key_of(kind, item, lines), lines, own_end=own_end)


def _key_of(kind: PathKind, item: Statement, lines: str) -> Key:
    """Return the key of a list item with these lines."""
    if kind is PathKind.INDEX_PAGE and item.section in (MANIFEST, RELATED) and (links := markdown.find_links(lines)):
        return "entry", item.section, links[0].uuid or links[0].target
    if proposal := _PROPOSAL.search(lines):
        return "proposal", proposal[1]
    if item.block_id:
        return "block", item.block_id
    return "item", item.section if item.section in _LISTS else "", _bare(item.text)


def _line_units(text: str) -> Iterator[_Unit]:
    """Yield a unit for each line, and one for each code fence."""
    fenced, fence = "", ""
    for line in markdown.LINE.findall(text):
        was_open, fence = bool(fence), markdown.fence_after(fence, markdown.INDENTED_FENCE.match(line))
        if not was_open and not fence:
            yield _Unit(("line", line.strip()), line)
            continue
        fenced += line
        if not fence:
            yield _Unit(("line", fenced), fenced)
            fenced = ""
    # what a fence opens that is never closed is ordinary lines
    yield from (_Unit(("line", line.strip()), line) for line in markdown.LINE.findall(fenced))


def _meta_units(block: str) -> Iterator[_Unit]:
    """Yield a unit for each top-level entry of YAML with what is nested in it; comments between are lines."""
    name, lines = "", list[str]()
    for line in markdown.LINE.findall(block):
        if match := _META_KEY.match(line):
            yield from _entry_units(name, lines)
            name, lines = match[1], []
        lines.append(line)
    yield from _entry_units(name, lines)


def _entry_units(name: str, lines: Sequence[str]) -> Iterator[_Unit]:
    """Yield an entry of YAML, then each comment and blank line below it; with no name all lines singly.

    Args:
        name: The key; "" for the lines above the first key.
        lines: Those from the key to the next key.
    """
    size = len(lines) if name else 0
    while size and (not lines[size - 1].strip() or lines[size - 1].startswith("#")):
        size -= 1
    if size:
        yield _Unit(("meta", name), "".join(lines[:size]))
    yield from (_Unit(("line", line.strip()), line) for line in lines[size:])


def _bare(text: str) -> str:
    """Return the words of an item without its box, its private mark and extra white space."""
    without_box = _BOX.sub(r"\1", f"- {text}").removeprefix("- ")  # `_BOX` matches behind a bullet only
    return " ".join(markdown.PRIVATE.sub(" ", without_box).split())


# --- the merge -----------------------------------------------------------------------------------------------------


class _Merging:
    """One merge of units.

    Args:
        kind: What the file is for.
        base: The version that both grew from, if it is known.
        first: The one version; where one is preferred, that one.
        second: The other version.
        was_removed: Without a base, whether a process removed a text before.
        is_preferred: Whether the first one's text has the place where both changed the same.
        keeps_other: Whether the other one's stands there too.
    """

    def __init__(
        self,
        kind: PathKind,
        base: _Version | None,
        first: _Version,
        second: _Version,
        was_removed: Callable[[str], bool],
        *,
        is_preferred: bool,
        keeps_other: bool,
    ) -> None:
        self._kind, self._was_removed = kind, was_removed
        self._is_preferred, self._keeps_other = is_preferred, keeps_other
        self._base: Mapping[Key, _Unit] | None = base.units if base else None
        self._first, self._second = self._sides = first, second
        # the side whose order the result has, and the one whose further units are put between
        # of a preferred side the other may only have changed the order; else the same side is chosen on all devices
        self._leading, self._following = first, second
        if base:
            common = first.units.keys() & second.units.keys() & base.units.keys()
            mine, others, former = ([key for key in side.units if key in common] for side in (first, second, base))
            if mine == former and (others != former or not is_preferred):
                self._leading, self._following = second, first
        self._differences: list[Difference] = []
        self._outlived: list[str] = []
        self._meta: dict[str, Any] = {}  # merged lists of front matter, to be written over those of the first side

    def result(self) -> Merge:
        """Return the merged text and what both changed."""
        units = [unit for unit in self._ordered() if unit.text or unit.gap]
        if self._kind in (PathKind.SHORT_TERM, PathKind.MEMORY, PathKind.ARCHIVED):
            units = self._with_events_in_order(units)
        text = "".join(unit.text + unit.gap for unit in self._spaced(units))
        text = self._with_sound_meta(text)
        if not all(side.ends_with_newline for side in self._sides):
            text = text.removesuffix("\n")
        if self._first.is_crlf if self._is_preferred else all(side.is_crlf for side in self._sides):
            text = text.replace("\n", "\r\n")
        return Merge(text.encode("utf-8", "surrogateescape"), tuple(self._differences), tuple(self._outlived))

    def _spaced(self, units: Sequence[_Unit]) -> Iterator[_Unit]:
        """Yield the units, with a blank line where a text would else become part of a list item or event above it."""
        neighbours = {pair for side in self._sides for pair in pairwise(side.units)}
        for unit, following in pairwise((*units, _Unit(("bottom",), ""))):
            is_new_pair = (unit.key, following.key) not in neighbours
            is_text = following.kind == "line" and not following.text.startswith("#")
            # Markdown would read it as more of the item or event, or as underlining a heading
            would_join = is_text and (unit.kind != "line" or following.text.startswith(("---", "===")))
            if is_new_pair and unit.text and not unit.gap and would_join:
                unit = replace(unit, gap="\n")
            yield unit

    def _ordered(self) -> list[_Unit]:
        """Return the units that stand: those of the leading side, each other one below what it stood below."""
        keys = dict.fromkeys((*self._leading.units, *self._following.units))
        standing = {key: self._standing(key) for key in keys}
        places = self._places_of_replaced(standing)
        added_below: dict[Key, list[_Unit]] = defaultdict(list)
        above: Key = ("top",)  # each version begins with this unit
        for key in self._following.units:
            if key in self._leading.units:
                above = key
            else:  # the following side has it alone
                added_below[places.get(key, above)] += standing[key]
        units = (unit for key in self._leading.units for unit in (*standing[key], *added_below[key]))
        return self._without_repeated(units)

    def _places_of_replaced(self, standing: dict[Key, list[_Unit]]) -> dict[Key, Key]:
        """Return below which units of the leading side others are put, where both sides replaced the same lines.

        Lines without id that both replaced between the same two neighbours count as one unit that both changed.

        Args:
            standing: What stands of each key; those of the other side may be taken out.
        """
        if self._base is None or not self._is_preferred:
            return {}
        mine, others = (side.units for side in self._sides)
        common = self._base.keys() & mine.keys() & others.keys()
        former, first, second = (_between(units, common) for units in (self._base, mine, others))
        places: dict[Key, Key] = {}
        for neighbours, keys in former.items():
            is_replaced = any(key not in mine and key not in others for key in keys)
            kept = [key for key in first.get(neighbours, ()) if key not in self._base and key not in others]
            added = [key for key in second.get(neighbours, ()) if key not in self._base and key not in mine]
            if is_replaced and kept and added:
                texts = "".join(mine[key].text for key in kept), "".join(others[key].text for key in added)
                if not self._differ(*texts):
                    standing.update({key: [] for key in added})
                places |= dict.fromkeys(added, kept[-1]) if self._leading is self._first else {}
        return places

    def _differ(self, kept: str, other: str) -> bool:
        """Note what both changed; return whether the other text stands too."""
        self._differences.append(Difference(kept.strip(), other.strip()))
        return self._keeps_other

    def _standing(self, key: Key) -> list[_Unit]:
        """Return the units that a key has in the result: none where it was removed, two where both texts stand."""
        base = self._base.get(key) if self._base else None
        first, second = self._first.units.get(key), self._second.units.get(key)
        if first and second:
            gap = _chosen_gap(base, first, second)
            units = self._of_both(base, first, second)
            return [unit if unit.gap == gap else replace(unit, gap=gap) for unit in units]
        unit = first or second
        assert unit is not None
        if base is not None:
            if base.text == unit.text:
                return []
            self._outlived.append(unit.text)
            return [unit]
        if self._base is not None:
            return [unit]  # this side added it
        match unit.key:  # the journals tell whether a process removed it
            case ("event", event_id, *_):
                was_removed = self._was_removed(f"<!-- event: {event_id} -->")
            case ("item", _, words, *_):
                was_removed = self._was_removed(words)
            case _:
                was_removed = unit.kind in ("block", "line") and self._was_removed(unit.text.strip())
        return [] if was_removed else [unit]

    def _of_both(self, base: _Unit | None, first: _Unit, second: _Unit) -> list[_Unit]:
        """Return what stands of a unit that both sides have."""
        if first.text == second.text or (base and base.text == second.text):
            return [first]
        if base and base.text == first.text:
            return [second]
        if not self._is_preferred:
            first, second = sorted((first, second), key=lambda unit: unit.text)  # alike on all devices
        match first.kind:
            case "meta":
                return self._meta_of_both(base, first, second)
            case "entry":  # of an index page: its entries are made from the pages again
                return [second]
            case "proposal":
                mark, other_mark = _box_of(first), _box_of(second)
                if mark and other_mark and mark != other_mark:
                    return [first, second]
                return [first if mark else second]
            case "block" | "item" if _words(first.text) == _words(second.text):
                return [_marked(first, second)]
            case "block" if _words(first.text[: first.own_end]) != _words(second.text[: second.own_end]):
                return self._both_statements(first, second)
        # an event, a line, or an item that differs only in what stands below its words
        return [replace(first, text=self._joined_lines(base, first, second))]

    def _both_statements(self, first: _Unit, second: _Unit) -> list[_Unit]:
        """Return both texts of a statement, the second with another block id; one of History is the second."""
        first, second = sorted((first, second), key=lambda unit: "~~" in unit.text)
        # the id that a side has for these words already, else a new one
        words = _statement_words(second)
        blocks = [unit for side in self._sides for unit in side.units.values() if unit.kind == "block"]
        ids = {unit.name for unit in blocks if _statement_words(unit) == words} - {first.name}
        block_id = min(ids) if ids else new_block_id(words, {unit.name for unit in blocks})
        text = second.text[: second.own_end] + f" ^{block_id}"
        text += second.text[second.own_end :].lstrip(" \t").removeprefix(f"^{second.name}")
        is_kept = self._differ(first.text, text)
        return [first, replace(second, key=("block", block_id), text=text)] if is_kept else [first]

    @staticmethod
    def _without_repeated(units: Iterable[_Unit]) -> list[_Unit]:
        """Return the units without a statement whose block id stood before with the same words."""
        seen: dict[Key, str] = {}
        result = []
        for unit in units:
            if unit.kind == "block":
                words = _words(unit.text)
                if seen.get(unit.key) == words:
                    continue
                seen[unit.key] = words
            result.append(unit)
        return result

    # front matter

    def _meta_of_both(self, base: _Unit | None, first: _Unit, second: _Unit) -> list[_Unit]:
        """Return one entry of front matter, and the other as a comment where nothing says which counts.

        Args:
            base: The entry in the base.
            first: The preferred one, else the one whose text is smaller.
            second: The other one.
        """
        name, former, size = first.name, _value(base), len(self._differences)
        match _value(first), _value(second):
            case _ if name in _EARLIEST:
                return [min(first, second, key=lambda unit: str(_value(unit) or _AFTER_ALL_DATES))]
            case _ if name in _LATEST:
                return [max(first, second, key=lambda unit: str(_value(unit) or ""))]
            case int(count), int(other) if name in _COUNTED:
                total = count + other - former if isinstance(former, int) else 0
                return [replace(first, text=f"{name}: {max(count, other, total)}\n")]
            case bool(value), bool():  # the more discreet one: private rather than not, anything else rather not
                return [first if value is (name == "private") else second]
            case list(entries), list(others):
                # the entries of both, once each, without those that one side removed
                old = former if isinstance(former, list) else []
                both = [entry for entry in entries if entry in others or entry not in old]
                both += [entry for entry in others if entry not in entries and entry not in old]
                if self._kind is not PathKind.CONFIG:
                    self._meta[name] = both
                    return [first]
                with suppress(FormatError):  # a setting whose list is too intricate is a difference like any other
                    edited = edit_meta(f"---\n{first.text}---\n", **{name: both})
                    return [replace(first, text=edited.removeprefix("---\n").removesuffix("---\n"))]
            case dict(), dict() if self._kind is PathKind.CONFIG:
                joined = replace(first, text=self._joined_lines(base, first, second))
                if isinstance(_value(joined), dict):
                    return [joined]
        del self._differences[size:]  # of lines that could not be joined
        kept, other_entry = (first, second) if self._is_preferred else (second, first)
        comment = _commented(other_entry.text.splitlines())
        is_kept = self._differ(kept.text, other_entry.text)
        return [kept, _Unit(("line", comment.strip()), comment)] if is_kept else [kept]

    # lines

    def _joined_lines(self, base: _Unit | None, first: _Unit, second: _Unit) -> str:
        """Return the lines of both texts of a unit, where both changed the same those of the first above the other's.

        Args:
            base: The unit in the base; without one no line counts as removed.
            first: The one text.
            second: The other text.
        """
        lines, others = markdown.LINE.findall(first.text), markdown.LINE.findall(second.text)
        if max(len(first.text), len(second.text)) > _MAX_COMPARED:
            present = set(lines)
            return "".join([*lines, *(line for line in others if line not in present)])
        former = markdown.LINE.findall(base.text) if base else _common(lines, others)
        joined: list[str] = []
        for kind, *groups in Merge3(former, lines, others).merge_groups():
            if kind != "conflict":
                joined += groups[0]
                continue
            replaced, kept, other = groups
            if _has_all(kept, other) or _has_all(other, kept):
                joined += kept if _has_all(kept, other) else other
                continue
            is_difference = replaced and self._is_preferred
            is_kept = not is_difference or self._differ("".join(kept), "".join(other))
            joined += _united(kept, other) if is_kept else kept
        return "".join(joined)

    def _with_sound_meta(self, text: str) -> str:
        """Return the text with the merged lists of front matter; with that of one side where it cannot be parsed.

        Of settings all other lines stand below as comments then.
        """
        if self._kind is not PathKind.CONFIG:
            try:
                return edit_meta(text, **self._meta) if self._meta and split(text)[1] else text
            except FormatError:
                return self._with_readable_meta(text)
        sound = next((side.text for side in self._sides if _parsed(side.text) is not None), None)
        if sound is None or _parsed(text) is not None:
            return text
        lines = set(sound.splitlines())
        return sound + _commented(line for line in text.splitlines() if lines.isdisjoint((line, f"# {line}")))

    def _with_readable_meta(self, text: str) -> str:
        """Return the text with the front matter of one side, and what else stood there as comments below it."""
        before, end, body = text.partition("\n---\n")
        for side in self._sides:
            with suppress(FormatError):
                meta = side.text[: split(side.text)[1]]
                if end and meta:
                    others = [line for line in before.splitlines() if line not in meta.splitlines()]
                    start = meta.rindex("---")
                    return meta[:start] + _commented(others) + meta[start:] + body
        return text

    def _with_events_in_order(self, units: Sequence[_Unit]) -> list[_Unit]:
        """Return the units with the events by their time: in short-term memory newest first, on a page newest last."""
        places = [place for place, unit in enumerate(units) if unit.kind == "event"]
        is_newest_first = self._kind is PathKind.SHORT_TERM
        # of one time by their ids, which grow
        events = sorted(
            (units[place] for place in places), key=lambda unit: (unit.at, unit.key), reverse=is_newest_first
        )
        result = list(units)
        for place, unit in zip(places, events, strict=True):
            is_last = place == len(units) - 1
            result[place] = unit if unit.gap or is_last else replace(unit, gap="\n")
        return result


def _chosen_gap(base: _Unit | None, first: _Unit, second: _Unit) -> str:
    """Return the blank lines below a unit that both sides have: those of the side that changed them, else the more."""
    if first.key == ("top",):  # a gap there was mostly one below a unit that one side removed
        return min(first.gap, second.gap)
    if base and base.gap == first.gap:
        return second.gap
    if base and base.gap == second.gap:
        return first.gap
    return max(first.gap, second.gap)


def _between(units: Iterable[Key], common: Collection[Key]) -> dict[tuple[Key, Key], list[Key]]:
    """Return the keys of the lines and items without id that stand between two neighbouring common units, by these."""
    runs: dict[tuple[Key, Key], list[Key]] = {}
    above: Key = ("top",)
    run: list[Key] = []
    for key in (*units, ("bottom",)):
        if key in common or key == ("bottom",):
            runs[above, key] = run
            above, run = key, []
        elif key[0] in _WITHOUT_ID:
            run.append(key)
    return runs


def _common(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the lines that two texts share, in order."""
    blocks = SequenceMatcher(None, lines, others, autojunk=False).get_matching_blocks()
    return [line for block in blocks for line in lines[block.a : block.a + block.size]]


def _united(lines: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Yield the lines of two texts, those that they share once, and between these those of the first above the other's.

    Both may have added the same words and some of their own: a base that was caught half saved lacks them.
    """
    for kind, *groups in Merge3(_common(lines, others), lines, others).merge_groups():
        yield from (*groups[1], *groups[2]) if kind == "conflict" else groups[0]


def _has_all(lines: Sequence[str], others: Iterable[str]) -> bool:
    """Return whether all lines of another text stand in a text, in order."""
    remaining = iter(lines)
    return all(line in remaining for line in others)  # `in` consumes the iterator


def _words(lines: str) -> str:
    """Return the lines of an item without its box, its private mark and extra white space."""
    return _bare(_BOX.sub(r"\1", lines))


def _statement_words(unit: _Unit) -> str:
    """Return the words of a statement with a block id, without bullet, box and private mark."""
    return _bare(unit.text[: unit.own_end].lstrip("-*+ \t"))


def _marked(first: _Unit, second: _Unit) -> _Unit:
    """Return an item of two that differ in marks alone: done where one is done, private where one is private."""
    text = first.text
    if "x" in (_box_of(first), _box_of(second)):
        text = _BOX.sub(r"\1[x]", text)
    if markdown.PRIVATE.search(second.text) and not markdown.PRIVATE.search(text):
        # at the end of the first line, before a block id
        text = _BLOCK_END.sub(rf" {markdown.PRIVATE_MARK}\g<0>", text, count=1)
    return replace(first, text=text)


def _box_of(unit: _Unit) -> str:
    """Return what stands in the box of an item: "x", "-", or "" for an empty box and for none."""
    box = _BOX.match(unit.text)
    return box[2].strip().lower() if box else ""


def _value(unit: _Unit | None) -> Any:
    """Return the value of an entry of front matter; None where it cannot be read."""
    values = _parsed(unit.text) if unit else None
    return next(iter(values.values()), None) if values else None


def _parsed(block: str) -> dict[str, Any] | None:
    """Return what a block of YAML says; None where it is no mapping or cannot be parsed."""
    try:
        return split(f"---\n{block}---\n")[0]
    except FormatError:
        return None


def _commented(lines: Iterable[str]) -> str:
    """Return lines as comments of YAML."""
    return "".join(f"# {line}\n" for line in lines)


# --- what a person may want to decide, in `memory/review.md` -------------------------------------------------------


def differences_change(tree: Tree, path: str, merged: Merge, who: str) -> list[Change]:
    """Return the change that adds a line to `review.md` for each two texts that both stand in a merged file, if any.

    The lines are alike on every device that merges the same two versions.

    Args:
        tree: The brain's places.
        path: The merged file; of `review.md` itself nothing is said.
        merged: It. A difference without a `kept` text is a sentence.
        who: Who changed the same.
    """

    def with_differences(text: str) -> str:
        is_private = audience_of(markdown.decode_text(merged.text)) > Audience.ANYONE
        for difference in merged.differences:
            texts = difference.kept, difference.other
            kept, other = (markdown.one_line(markdown.PRIVATE.sub("", words))[:_MAX_SHOWN] for words in texts)
            mark = f" {markdown.PRIVATE_MARK}" if is_private or any(map(markdown.PRIVATE.search, texts)) else ""
            what = f"both stand; keep what holds: `{kept}` or `{other}`" if difference.kept else other
            line = f"- {path}: {who} changed it, and {what}{mark}\n"
            if line not in text:
                text += ("" if text.endswith("\n") else "\n") + line
        return text

    return review_change(tree, with_differences) if merged.differences and path != tree.relative(tree.review) else []


def review_change(tree: Tree, with_lines: Callable[[str], str]) -> list[Change]:
    """Return the change of `review.md` by a function that adds lines to its text; none where they stand there."""
    content = read_bytes(tree.review)
    before = None if content is None else markdown.decode_text(content)
    after = with_lines(EMPTY_REVIEW if before is None or not before.strip() else before)
    return [] if after == before else [write(tree.relative(tree.review), content, after)]


@dataclass(frozen=True, slots=True)
class Standing:
    """A line in `review.md` on two texts that both stand in a file.

    Attributes:
        path: The file.
        texts: The two, on one line each and cut where they are long; none for a sentence.
        start: Offset of the line in the text; `text[start:end]` is the line with its end.
        end: See `start`.
    """

    path: str
    texts: tuple[str, ...]
    start: int
    end: int

    def is_of(self, number: int, line: str) -> bool:
        """Return whether a line of the file is one of the texts."""
        return markdown.one_line(markdown.PRIVATE.sub("", line.strip()))[:_MAX_SHOWN] == self.texts[number]


def find_differences(text: str) -> list[Standing]:
    """Return the lines of `review.md` on what differs between two versions, in order."""
    lines = _DIFFERS.finditer(text)
    found = ((line, tuple(filter(None, (line["kept"], line["other"])))) for line in lines)
    return [Standing(line["path"], texts, line.start(), line.end()) for line, texts in found]
