"""What is searched and what is found: pages with their units, read from a file's text, and hits (F-FND).

A unit is the smallest thing a search returns: a statement, one speaker's words of an exchange, a paragraph.
Wider scales (neighbours, windows, the whole page) are made from the units of a page when it is ranked.

What has gone to `## History` is never found: it no longer holds. Neither is an index page: it repeats its pages; nor a
command; nor a text of links alone, which is what the offline engine's answers are recorded as.
A file that does not follow its format is still found by its words.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import IntEnum
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import PathKind
from brainiac.formats import markdown
from brainiac.formats.authors import PERSON, THE_PERSON, Author, author_in, author_of_statement
from brainiac.formats.discretion import Audience, is_private_event
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import StmEvent, blocks_of, fence_after, find_events, text_outside_events
from brainiac.formats.page import audience_of, own_date, scalar, tags_of, title_of
from brainiac.formats.prompt import arguments, parse_commands
from brainiac.formats.short_term import document_of
from brainiac.tree import Tree

NO_DAY = -(2**31)  # of what has no date: before every day, which is why a query's fields must rule it out by itself
HitKind = Literal["memory", "statement", "exchange", "note"]
FoundBy = Literal["words", "meaning", "context", "day", "title", "fields"]


@dataclass(frozen=True, slots=True)
class Former:
    """Words of an exchange that no longer hold.

    Attributes:
        words: Which; "" for all of what was said.
        now: The statement that holds instead; "" where none does.
    """

    words: str
    now: str

    def __str__(self) -> str:
        words = f"“{self.words}” " if self.words else ""
        return f"{words}no longer holds" + (f"; now: {self.now}" if self.now else "")


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found.

    Attributes:
        kind: `memory` (a paragraph of a page), `statement` (one list item of it), `exchange` (what one side said in a
            raw exchange of `events/` or of short-term memory; of a long message one block).
        path: Relative path of the file it stands in.
        title: The page's title, for a person.
        text: What matched, whole and as it stands.
        score: A log-likelihood by learned weights, higher is better; of two searches only roughly comparable.
        uuid: The page's identity; "" where the file has none (short-term memory).
        anchor: Block id of a statement (without `^`), id of an exchange, or "".
        at: ISO 8601 moment it was said or last changed; "" if unknown.
        speaker: `user` or `ai` for an exchange's turn, else "".
        name: By which a transcript names who speaks; "" where none does. It is no part of `text`.
        position: Its place among the units of its page.
        found_by: What led to it: its words, their meaning alone, the talk around it, the day, its page's title; or no
            words were asked for.
        is_near: Near what was asked: its words and its meaning come nearer than chance would.
        is_doubted: It is about what was asked, and seems not to answer it.
        is_earlier: A newer telling of the same stands before it.
        is_archived: It lies in `memory/archive/`.
        signals: What the score was made of, by name.
        former: What of its words no longer holds; of an exchange that passed the gate (`search/outdated.py`).
        origin: Whose words it is: `person`, `assistant`, `import` or `tool`.
        by: The name of who said it, where that is not the person; "" where it is unknown.
        is_by_hand: The person wrote or edited the statement themselves; set where a model is shown it.
        content: By which its vector is known; 0 where a plugin found it.
    """

    kind: HitKind
    path: str
    title: str
    text: str
    score: float
    uuid: str = ""
    anchor: str = ""
    at: str = ""
    speaker: str = ""
    name: str = ""
    position: int = 0
    found_by: FoundBy = "words"
    is_near: bool = False
    is_doubted: bool = False
    is_earlier: bool = False
    is_archived: bool = False
    signals: Mapping[str, float] = field(default_factory=dict)
    former: tuple[Former, ...] = ()
    origin: str = PERSON
    by: str = ""
    is_by_hand: bool = False
    content: int = 0

    @property
    def author(self) -> Author:
        """Whose words it is."""
        return Author(self.origin, self.by)

    @property
    def name_in_memory(self) -> str:
        """What a receipt for it names: an exchange, a page, or a statement of it."""
        if self.kind == "exchange":
            return self.anchor
        page = self.uuid or self.path
        return f"{page}#^{self.anchor}" if self.kind == "statement" and self.anchor else page

    @property
    def is_sure(self) -> bool:
        """Whether it is near what was asked, and nothing speaks against its answering it."""
        return self.is_near and not self.is_doubted

    @property
    def said(self) -> str:
        """Its text, in a transcript behind the name of who speaks."""
        return f"{self.name}: {self.text}" if self.name else self.text

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The values that distinguish it from other hits."""
        return self.path, self.anchor, self.speaker, self.position


class UnitKind(IntEnum):
    """What a unit is; stored in the index by number."""

    PARAGRAPH = 0
    STATEMENT = 1
    TURN = 2

    @property
    def hit_kind(self) -> HitKind:
        """The `kind` of a hit on a unit of this kind."""
        kinds: tuple[HitKind, ...] = ("memory", "statement", "exchange")
        return kinds[self]


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that can be found.

    Attributes:
        text: Its words as they stand.
        kind: What it is.
        anchor: Block id of a statement, id of an exchange, or "".
        at: ISO 8601 moment it was said; "" means the page's.
        speaker: Who says it: `user`, `ai`, or the name that labels the words in a transcript.
        side: `user` or `ai`: whose text of the exchange it stands in; else "".
        is_private: It must not leave this machine.
        author: Whose words it is.
        is_answered: Somebody's own words answer it, and not only links to what memory has.
        above: The page's title and the headings that it stands below, where they are not in its text: they say what it
            is about. Of what was said on a day, nothing.
    """

    text: str
    kind: UnitKind = UnitKind.PARAGRAPH
    anchor: str = ""
    at: str = ""
    speaker: str = ""
    side: str = ""
    is_private: bool = False
    author: Author = THE_PERSON
    is_answered: bool = False
    above: str = ""

    @property
    def read(self) -> str:
        """Its text below what stands above it, as it is understood."""
        return f"{self.above}\n{self.text}" if self.above else self.text


@dataclass(slots=True)  # not frozen: a hundred are made for each query, in half the time
class Page:
    """A file as it is searched.

    Attributes:
        path: Relative, posix.
        title: For a person.
        units: In the order of the page.
        uuid: "" where the file has none.
        at: ISO 8601 moment of its last change; "" if unknown.
        tags: As they stand.
        links: Where it leads.
        is_archived: It lies in `memory/archive/`: found behind all else, and marked.
        aliases: Other names of it.
    """

    path: str
    title: str
    units: tuple[Unit, ...]
    uuid: str = ""
    at: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    is_archived: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a query may mean it."""
        return self.title, *self.aliases


# --- from a file to its page ------------------------------------------------------------------------------------

_LOG_HEADING = "## Conversation"  # of a day's page
COUNTED = re.compile(r"\d+ exchanges? since \d{4}-\d\d-\d\d\.")  # the offline engine's summary: only a count
WHOLE_CHARACTERS = 1_000  # a message up to this length is found as a whole
IMPORTED = "/events/imported/"  # below long-term memory: what was said elsewhere, and to somebody else
SEARCHED = frozenset({PathKind.MEMORY, PathKind.INDEX_PAGE, PathKind.ARCHIVED, PathKind.SHORT_TERM, PathKind.SOURCE})

_HISTORY_OR_MANIFEST = re.compile(r"^## (?:History|Manifest)[ \t]*\r?\n(?:(?!#{1,2} ).*(?:\n|\Z))*", re.MULTILINE)
_RELATED_MEMORIES = re.compile(r"^## Related Memories[ \t]*\r?\n(?:(?!#{1,2} ).*(?:\n|\Z))*", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_BLOCK_ID = re.compile(r"[ \t]\^([A-Za-z0-9-]+)[ \t\r]*$")
_HEADING = re.compile(r"^#{1,6} +")
_LINK = re.compile(r'(?<!!)\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+"(?:uuid:([^"]+)|[^"]*)")?\)')
_WIKI_LINK = re.compile(r"\[\[([^\[\]|#\n]{1,300})")
_LINKS_ALONE = re.compile(rf"(?:\s*(?:[-*+][ \t]+)?{_LINK.pattern}[\s,;·]*)+\Z")
# ` ([2026-11-22](../events/2026/11/22/2026-11-22.md "uuid:…"))` at the end of a statement: the day it was said
_SAID_ON = re.compile(r'[ \t]+\(\[(\d{4}-\d\d-\d\d)\]\([^()\s]*(?:[ \t]+"[^"\n]*")?\)\)[ \t]*\Z')
_META_FENCE = re.compile(r"^\ufeff?---[ \t\r]*$", re.MULTILINE)  # above and below front matter
_EXCHANGE = "\n### "
# `Caroline: …` at the start of a line labels who speaks in a transcript, or heads a note: see `_is_dialogue`
_SPEAKER = re.compile(r"^([A-Z][\w.'’-]{0,30}(?: [A-Z][\w.'’-]{0,30}){0,2}): (?=\S)", re.MULTILINE)


def page_of(path: str, text: str, kind: PathKind, zone: tzinfo = UTC, written: str = "") -> Page:
    """Return a file as a page with the units that are searched.

    Args:
        path: Relative, posix.
        text: The whole file.
        kind: What the path is for; one of `SEARCHED`.
        zone: The person's time zone: the day that stands behind a statement is theirs.
        written: ISO 8601 moment of the file's last change, for a note of a source that names no date of its own.
    """
    if markdown.has_markers(text):  # both versions are merged soon; until then nobody can tell which lines hold
        return Page(path, posixpath.basename(path).removesuffix(".md"), ())
    is_private = audience_of(text) > Audience.ANYONE
    if kind is PathKind.SHORT_TERM:
        units = tuple(replace(unit, is_private=unit.is_private or is_private) for unit in _short_term_units(text, zone))
        return Page(path, "Short-term memory", units)
    try:
        meta, start = split(text, path)
    except FormatError:
        # a person's slip in the front matter must not hide the page: its lines are searched as a paragraph
        meta, start, text = {}, 0, _META_FENCE.sub("", text, count=2)
    title = title_of(meta, text, start, path)
    # an index page repeats its pages: only its links count
    read = () if kind is PathKind.INDEX_PAGE else _units(text[start:], zone, title, is_imported=IMPORTED in path)
    units = tuple(read)
    # the page stays findable here; its units are kept from embedders elsewhere
    if is_private:
        units = tuple(replace(unit, is_private=True) for unit in units)
    if (author := author_in(meta)).origin != PERSON:
        units = tuple(_of_page(unit, author) for unit in units)
    return Page(
        path=path,
        title=title,
        units=units,
        uuid=scalar(meta, "uuid"),
        at=own_date(meta, path) or (written if kind is PathKind.SOURCE else ""),
        tags=tags_of(meta),
        links=tuple(links_of(path, text)),  # those in properties too
        is_archived=kind is PathKind.ARCHIVED,
        aliases=(*_names(meta, "aliases"), *_names(meta, "alias")),
    )


def waiting_page(path: str, event: StmEvent) -> Page:
    """Return a prompt that waits as a page: what short-term memory will have of it once it is answered."""
    return Page(path, posixpath.basename(path), tuple(_turns(event, is_dialogue=False)), at=event.at)


def _of_page(unit: Unit, page: Author) -> Unit:
    """Return a unit of a page by others with its author; what the person said in a conversation stays theirs."""
    if unit.kind is UnitKind.TURN:
        is_answer = unit.author.origin == "assistant" and not unit.author.by
        return replace(unit, author=Author("assistant", page.by)) if is_answer else unit
    return replace(unit, author=page) if unit.author.origin == PERSON else unit


def links_of(path: str, text: str) -> Iterator[Link]:
    """Yield the links of a page's text to other files of the tree, wiki links among them, manifests left out."""
    # most pages have no links, and taking sections out costs more than looking
    if "](" not in text and "[[" not in text:
        return
    folder, text = posixpath.dirname(path), _HISTORY_OR_MANIFEST.sub("", text)
    for name in _WIKI_LINK.findall(text):
        yield Link("", wiki_name(name))
    for target, uuid in _LINK.findall(text):
        if not re.match(r"[a-z][a-z0-9+.-]+:|#|/", target, re.IGNORECASE):
            yield Link(uuid, posixpath.normpath(posixpath.join(folder, unquote(target.partition("#")[0]))))


def _units(body: str, zone: tzinfo, title: str = "", *, is_imported: bool = False) -> Iterator[Unit]:
    """Yield the units of a page's body: the turns of its exchanges, then its statements and paragraphs.

    Args:
        body: Without front matter.
        zone: The person's time zone.
        title: Of the page.
        is_imported: Whether its exchanges are a conversation with a title of its own, not what was said on a day.
    """
    exchanges = list(find_events(body)) if _EXCHANGE in f"\n{body}" else []
    if exchanges:
        is_dialogue = _is_dialogue([exchange.event for exchange in exchanges])
        above = title if is_imported else ""
        for exchange in exchanges:
            yield from (replace(turn, above=above) for turn in _turns(exchange.event, is_dialogue))
        body = text_outside_events(body, exchanges)
    for unit in _prose_units(body, zone, title):
        if not _is_links(unit.text) and unit.text.strip() != _LOG_HEADING:
            yield unit


def _is_links(text: str) -> bool:
    """Return whether a text is nothing but links into the tree; an address that somebody kept is worth finding."""
    return "](" in text and "://" not in text and _LINKS_ALONE.match(text) is not None


def _prose_units(body: str, zone: tzinfo, title: str = "") -> Iterator[Unit]:
    """Yield the paragraphs and statements of a text without exchanges, in order, each with what stands above it.

    An item without a block id is text, and begins a paragraph. The page's own title (`# …`) is left out, and so are
    comments and the sections History, Manifest and Related Memories.
    """
    paragraph: list[str] = []
    headings = [title]  # those above the line, one a level
    above = title  # of the paragraph
    # a paragraph of headings alone goes before the text below them
    has_text, fence = False, ""
    # most texts have no section that is left out, and looking for a heading first is cheaper than the patterns
    if "\n## " in body or body.startswith("## "):
        body = _RELATED_MEMORIES.sub("", _HISTORY_OR_MANIFEST.sub("", body))
    for line in (_COMMENT.sub("", body) if "<!--" in body else body).split("\n"):
        bare = line.strip()
        if fence:  # inside a code block: `#` is no heading there, and `-` no item
            paragraph.append(line)
            fence = fence_after(fence, markdown.INDENTED_FENCE.match(line))
            continue
        is_heading = bare.startswith("#") and _HEADING.match(bare) is not None
        item = None if is_heading else _ITEM.match(line)
        ends_paragraph = item or is_heading or not bare
        if has_text and ends_paragraph:
            yield Unit("\n".join(paragraph), above=above)
            paragraph, has_text = [], False
        is_title = line.startswith("# ")
        if is_heading and not is_title:
            level = len(bare) - len(bare.lstrip("#"))
            headings = [*headings[: level - 1], *[""] * (level - 1 - len(headings)), bare.lstrip("# ")]
        at = line.rfind("^") if item else -1
        block_id = _BLOCK_ID.match(line, at - 1) if at > 0 else None
        if item and block_id:
            yield replace(_statement(line[item.end() : block_id.start()], block_id[1], zone), above=_above(headings))
        elif bare and not is_title:
            if not paragraph:
                above = _above(headings[:-1] if is_heading else headings)
            paragraph.append(line.rstrip())
            has_text |= not is_heading
            fence = fence_after(fence, markdown.INDENTED_FENCE.match(line))
    if paragraph:
        yield Unit("\n".join(paragraph), above=above)


def _above(headings: Sequence[str]) -> str:
    return "\n".join(filter(None, headings))


def _statement(text: str, block_id: str, zone: tzinfo) -> Unit:
    """Return the unit of a list item with a block id; a link to a day at its end becomes the moment it was said."""
    said_on = _SAID_ON.search(text)
    if said_on is None:
        return Unit(text, UnitKind.STATEMENT, block_id, author=author_of_statement(text))
    words, at = text[: said_on.start()], noon(said_on[1], zone)
    return Unit(words, UnitKind.STATEMENT, block_id, at, author=author_of_statement(words))


@lru_cache(maxsize=1024)
def noon(day: str, zone: tzinfo) -> str:
    """Return noon of a day in a time zone as an ISO 8601 moment; "" for no date.

    Noon, because most other time zones have the same date then.
    """
    try:
        return iso(datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=zone))
    except (ValueError, OverflowError):
        return ""


def _short_term_units(text: str, zone: tzinfo) -> Iterator[Unit]:
    """Yield the units of short-term memory: its summary, its structured data, a person's remarks, its exchanges."""
    try:
        document = document_of(text)
    except FormatError:
        # half written or edited by hand: what stands there is still found
        yield from _units(text, zone)
        return
    memory = document.memory
    items = (*memory.goals, *memory.facts, *memory.tasks)
    for paragraph in memory.summary.split("\n\n"):
        if paragraph.strip() and not COUNTED.match(paragraph.strip()):
            yield Unit(paragraph.strip())
    for item in items:
        yield Unit(item.text, UnitKind.STATEMENT, author=author_of_statement(item.text))
    yield from _prose_units(document.remarks, zone)
    is_dialogue = _is_dialogue(memory.events)
    # oldest first, so that a unit's neighbours are what was said right before and after it
    for event in reversed(memory.events):
        yield from _turns(event, is_dialogue)


def _is_dialogue(events: Sequence[StmEvent]) -> bool:
    """Return whether the messages are a transcript: most begin with a label (`Ann: …`), and the same few labels recur.

    A word that heads a note (`Dentist: 3 pm`) seldom recurs.
    """
    messages = [event.user for event in events if event.user.strip()]
    labels = [label[1] for message in messages if (label := _SPEAKER.match(message))]
    most_have_one, they_recur = len(labels) > len(messages) / 2, len(labels) >= 2 * len(set(labels))
    return most_have_one and they_recur


def _turns(event: StmEvent, is_dialogue: bool) -> Iterator[Unit]:
    """Yield a unit for each text of an exchange: the person's message, then the answer, split by speaker and length."""
    is_private, is_person = is_private_event(event), event.origin == PERSON
    messages: tuple[str, ...] = (event.user,)
    if is_person:  # each text that a `/remember` names is searched, and what follows the commands
        commands, rest = parse_commands(event.user)
        messages = (*arguments(commands, "remember"), rest)
    said = ("user" if is_person else "ai", event.author, messages)
    answer = ("ai", Author("assistant"), (event.ai,))
    is_answered = bool(_pieces(event.ai))
    for side, author, messages in (said, answer):
        of_all = partial(Unit, kind=UnitKind.TURN, anchor=event.id, at=event.at, side=side, is_private=is_private)
        for message in messages:
            for speaker, turn in _by_speaker(message, is_dialogue):
                for text in _pieces(turn):
                    yield of_all(text, speaker=speaker or side, author=author, is_answered=is_answered)


def _pieces(text: str) -> list[str]:
    """Return a text, or the blocks of a long one, without blocks that hold nothing but links."""
    pieces = [text] if len(text) <= WHOLE_CHARACTERS else blocks_of(text)
    return [piece for piece in pieces if piece.strip() and not _is_links(piece)]


def _by_speaker(text: str, is_dialogue: bool) -> Iterator[tuple[str, str]]:
    """Yield the turns of a message as speaker and text; a message that is no transcript is one turn with speaker "".

    Args:
        text: The message.
        is_dialogue: Whether the conversation is a transcript (`_is_dialogue`), so that one label is enough.
    """
    labels = list(_SPEAKER.finditer(text)) if _SPEAKER.match(text) else []
    # one label on one message may head a note; two speakers in one message are a transcript whatever stands around it
    is_transcript = (is_dialogue and bool(labels)) or len({label[1] for label in labels}) >= 2
    if not is_transcript:
        yield "", text
        return
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        turn = text[label.end() : following.start() if following else None].strip()
        if turn:
            yield label[1], turn


def _names(meta: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the entries of a list in the front matter; a text instead of a list is split at its commas."""
    values = meta.get(key)
    if isinstance(values, str):
        values = values.split(",")
    for value in values if isinstance(values, list) else ():
        if value is not None and (name := str(value).strip()):
            yield name


class Link(NamedTuple):
    """A link found on a page: the identity it names, if any, and the path it leads to, relative to the root.

    A wiki link has no path but a name, which stands in `path` as `wiki_name` gives it.
    """

    uuid: str
    path: str

    @property
    def target(self) -> str:
        """What it is looked up by: the uuid is the truth."""
        return self.uuid or self.path


def wiki_name(name: str) -> str:
    """Return the form in which a wiki link's name is compared: `[[folder/name]]`, without capitals and `.md`."""
    return f"[[{name.strip().strip('/').casefold().removesuffix('.md')}]]"


class LinkGraph:
    """The links of a brain at one moment.

    Args:
        pages: Every page with its links.
        tree: The brain's places.

    Attributes:
        pages: Every page by its path.
    """

    def __init__(self, pages: Iterable[Page], tree: Tree) -> None:
        self._tree = tree
        self.pages = {page.path: page for page in pages}
        self._path_of = {page.uuid: page.path for page in self.pages.values() if page.uuid}

    def path_of(self, uuid: str) -> str:
        """Return the path of the page with a uuid; "" when there is none."""
        return self._path_of.get(uuid, "")

    def resolve(self, link: Link) -> str:
        """Return the path a link means; "" when there is no such page or file."""
        if link.path.startswith("[["):
            return self._path_by_name.get(link.path, "")
        # a page that was moved keeps its uuid; the path in the link may be its old one
        if link.uuid in self._path_of:
            return self._path_of[link.uuid]
        if link.path in self.pages or (not link.uuid and self._tree.holds(link.path)):
            return link.path
        return ""

    @cached_property
    def _path_by_name(self) -> Mapping[str, str]:
        """Path by the name of a wiki link; of several pages the one with the shortest path, as Obsidian has it."""
        paths: dict[str, str] = {}
        titles: dict[str, str] = {}
        for page in sorted(self.pages.values(), key=lambda page: (page.path.count("/"), page.path)):
            parts = page.path.split("/")
            for start in range(len(parts)):  # its file's name, with any of the folders above it
                paths.setdefault(wiki_name("/".join(parts[start:])), page.path)
            titles.setdefault(wiki_name(page.title), page.path)
        return titles | paths  # a file's name comes before another's title

    def forward(self, name: str) -> list[str]:
        """Return the paths that a page, named by path or uuid, links to."""
        page = self.pages.get(self._path_of.get(name, name))
        return list(dict.fromkeys(filter(None, map(self.resolve, page.links)))) if page else []

    def back(self, name: str) -> list[str]:
        """Return the paths of the pages that link to a page, named by path or uuid."""
        return sorted(self._back.get(self._path_of.get(name, name), ()))

    @cached_property
    def _back(self) -> dict[str, set[str]]:
        """The paths of the pages that link to each path."""
        back: dict[str, set[str]] = defaultdict(set)
        for source, target in self._edges():
            back[target].add(source)
        return back

    def _edges(self) -> Iterator[tuple[str, str]]:
        """Yield each link between two pages as source and target; links that lead nowhere are left out."""
        for page in self.pages.values():
            for link in page.links:
                target = self.resolve(link)
                if target and target != page.path:
                    yield page.path, target

    def hubs(self) -> list[tuple[Page, int]]:
        """Return memories with the number of their connections, most first, ties by the latest change."""
        memories = set(self._memories())
        edges: Counter[str] = Counter()
        # a pair of pages is one connection, whichever way and however often they link
        for pair in {tuple(sorted(pair)) for pair in self._edges()}:
            if memories.issuperset(pair):
                edges.update(pair)
        ranked = sorted(edges, key=lambda path: (edges[path], self.pages[path].at, path), reverse=True)
        return [(self.pages[path], edges[path]) for path in ranked]

    def _memories(self) -> Iterator[str]:
        return (path for path in self.pages if self._tree.kind_of(path) is PathKind.MEMORY)
