"""A page of memory: what it says and whence, what links to it, as it was on a day; its editor; and what is near it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import Any
from urllib.parse import quote

from brainiac.brain import Brain
from brainiac.errors import FormatError, UserError
from brainiac.events import PathKind, content_hash
from brainiac.formats.discretion import asks_for_privacy
from brainiac.formats.frontmatter import edit_meta
from brainiac.formats.markdown import find_events, newline_of
from brainiac.formats.page import HISTORY, Memory, Statement, parse_memory, set_apart
from brainiac.history import past
from brainiac.history.exchanges import Said
from brainiac.history.why import Provenance, Step
from brainiac.search.documents import Link, LinkGraph, wiki_name
from brainiac.storage.causes import moment_named
from brainiac.storage.links import shortened
from brainiac.window.frame import Done, Page, Visit
from brainiac.window.words import who

MAX_NEAR, MAX_BACK = 60, 200
MAX_NAME = 400  # characters of words by which a statement without an id is named in a link
MAX_EDITED = 1_000_000  # characters; a larger file is one for an editor
ROW = 32  # height of one in the picture, in its units
_PAGES = (PathKind.MEMORY, PathKind.ARCHIVED)
_FORMER = re.compile(rf"^## {HISTORY}[ \t]*\r?$", re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page, in its order.

    Attributes:
        kind: `text`, `statement` or `said`.
        text: The words; of an exchange what was said.
        statement: The statement; None for another part.
        name: By which `why`, `wrong` and `forget` know it.
        steps: What became of the statement, newest first.
        origin: Whose words it is, in a few words.
        day: On which it was said or last changed.
        answer: Of an exchange, the answer.
    """

    kind: str
    text: str
    statement: Statement | None = None
    name: str = ""
    steps: tuple[Step, ...] = ()
    origin: str = ""
    day: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A page that is linked with another.

    Attributes:
        path: Where it lies.
        title: Its title.
        is_from: It links here.
        is_to: It is linked from here.
    """

    path: str
    title: str
    is_from: bool
    is_to: bool


# --- the page -------------------------------------------------------------------------------------------


def page(visit: Visit) -> Mapping[str, Any]:
    """Return a page as it stands, or stood at the end of a day, or one of its texts to be edited."""
    brain, at = visit.brain, visit.given.get("at", "")
    named, moment = visit.need("name").partition("#^")[0], ""
    if at:
        moment, event = moment_named(brain, at, is_end=True)
        file = past.at_moment(brain, named, moment, event)
    else:
        file = _present(brain, named)
    is_page, memory, problem = brain.tree.kind_of(file.path) in _PAGES, None, ""
    try:
        memory = parse_memory(file.path, file.text) if is_page else None
    except FormatError as error:  # it can be put right here too
        problem = str(error)
    values = {"problem": problem, "page_path": file.path, "at": at, "moment": moment, "is_page": is_page}
    values |= {"version": file.version}
    values |= {"title": memory.title if memory else file.path, "memory": memory, "edited": None, "base": ""}
    if at or not is_page:
        return values | {"parts": list(_parts(brain, file.path, file.text, memory, is_past=bool(at))), "back": []}
    values |= {"base": _hash(file.text), "is_marked_private": asks_for_privacy(file.text)}
    if edit := visit.given.get("edit", ""):
        return values | {"edited": _edited(memory, file.text, edit), "parts": [], "back": []}
    back = [each for each in neighbours(brain.recall.links, brain, file.path) if each.is_from]
    parts = list(_parts(brain, file.path, file.text, memory))
    return values | {"parts": parts, "back": back[:MAX_BACK]}


def _present(brain: Brain, named: str) -> past.FileAt:
    """Return a page or file as it is now, by its path, uuid, title, or name in a wiki link.

    Raises:
        UserError: There is none, or several pages have the name.
    """
    path = named
    if brain.tree.kind_of(path) not in _PAGES:  # else it is the way of most links, for which no other page is read
        graph = brain.recall.links
        path = graph.path_of(named) or graph.resolve(Link("", wiki_name(named)))
    if brain.tree.kind_of(path) in _PAGES and (text := brain.read_page(path)) is not None:
        return past.FileAt(path, text)
    return past.present(brain, named)


def _hash(text: str) -> str:
    return content_hash(text.encode("utf-8", "surrogateescape"))


def _parts(brain: Brain, path: str, text: str, memory: Memory | None, *, is_past: bool = False) -> Iterator[Part]:
    """Yield the parts of a page below its title: statements and exchanges, and what stands between them."""
    start = memory.offset if memory else 0
    said = list(find_events(text, start))
    provenance = None if memory is None or is_past else Provenance(brain, memory)
    placed: list[tuple[int, int, Part]] = [
        (each.start, each.end, Part("said", each.event.user, None, each.event.id, (), _who(each.event.author.named),
                                    each.event.at, each.event.ai)) for each in said
    ]  # fmt: skip
    for statement in memory.statements if memory else ():
        if any(each.start <= statement.start < each.end for each in said):
            continue
        steps = tuple(reversed(provenance.chain(statement).steps)) if provenance else ()
        name = f"{path}#^{statement.block_id}" if statement.block_id else statement.text[:MAX_NAME]
        moments = [each.at for step in steps[:1] for each in step.sources[-1:]] + [step.at for step in steps[:1]]
        day = statement.said_on or next(iter(moments), "")
        nested = text[statement.own[1] : statement.end].strip().removeprefix(f"^{statement.block_id}").strip("\r\n")
        words = statement.text + (f"\n\n{dedent(nested)}" if nested else "")
        part = Part("statement", words, statement, "" if is_past else name, steps, _origin(steps), day)
        placed.append((statement.start, statement.end, part))
    last = start
    for begin, end, part in sorted(placed, key=lambda each: each[0]):
        if between := _between(text[last:begin], memory):
            yield Part("text", between)
        yield part
        last = max(last, end)
    if rest := _between(text[last:], memory):
        yield Part("text", rest)


def _between(text: str, memory: Memory | None) -> str:
    """Return what stands between statements, without the title, which stands above the page."""
    if memory:
        text = re.sub(rf"\A\s*# +{re.escape(memory.title)}[ \t]*\r?$", "", text, count=1, flags=re.MULTILINE)
    return text.strip()


def _who(named: str) -> str:
    return f"said by {named}" if named else "you said"


def _origin(steps: tuple[Step, ...]) -> str:
    """Return whose words a statement is, by its last change."""
    if not steps:
        return "by hand"
    sources: tuple[Said, ...] = steps[0].sources
    if sources:
        return sources[-1].told
    return "by hand" if steps[0].by == "person" else f"by {steps[0].author or who(steps[0].by)}"


# --- its editor -------------------------------------------------------------------------------------------


def _edited(memory: Memory | None, text: str, edit: str) -> dict[str, Any]:
    """Return the text that the editor begins with, and where it stands on the page.

    Of the whole file properties and History are apart, so that what is added at the end does not stand among these.

    Raises:
        UserError: There is no such statement, or a form cannot carry the text as it is.
    """
    start, end = 0, len(text)
    if edit != "all":
        statements = memory.statements if memory else ()
        found = next((each for each in statements if edit in (str(each.start), each.block_id)), None)
        if found is None:
            raise UserError("this statement is not on the page any more")
        start, end = found.own
    text = text[start:end]
    if len(text) > MAX_EDITED or "\0" in text:
        raise UserError("this text is one for an editor: it is very long, or holds signs that no form can carry")
    values: dict[str, Any] = {"text": text, "start": start, "end": end, "is_all": edit == "all", "head": "", "tail": ""}
    if edit == "all" and memory:
        former = _FORMER.search(text, memory.offset)
        body = former.start() if former else len(text)
        values |= {"head": text[: memory.offset], "text": text[memory.offset : body], "tail": text[body:]}
    return values


def save(visit: Visit) -> Done:
    """Save a page, or one statement of it, as an editor does that loaded the version which the form names."""
    brain, path, base, text = visit.brain, visit.need("path"), visit.need("base"), visit.given.get("text", "")
    brain.tree.confine(path, inside=brain.tree.memory)
    former, own_lines = _version(brain, path, base), list[str]()
    if "head" in visit.given:
        head, tail = visit.given["head"], visit.given.get("tail", "")
        text, own_lines = set_apart(text, former or "")
        gap = "" if not tail or text.endswith("\n") else "\n"
        text = f"{head}{text}{gap}{tail}"
    whole = text.replace("\n", newline_of(former)) if former is not None else text
    if visit.given.get("start"):
        if former is None:
            raise UserError("the page was changed meanwhile, and the text that you had is not kept: nothing was saved")
        start, end = (int(visit.need(name)) if visit.need(name).isdecimal() else 0 for name in ("start", "end"))
        if not text.strip():
            raise UserError("nothing is left of it; “forget” takes a statement out")
        # what follows on further lines belongs to the statement by its indentation
        lines = [text.strip().split("\n")[0], *(f"  {line.strip()}" for line in text.strip().split("\n")[1:])]
        whole = former[:start] + newline_of(former).join(lines) + former[end:]
    done = _save(brain, path, base, whole)
    told = " “{}” is a line of its own on the page, no statement; begin it with “- ” to make it one."
    return replace(done, message=done.message + "".join(told.format(shortened(line, 80)) for line in own_lines))


def _version(brain: Brain, path: str, base: str) -> str | None:
    """Return the text of a version of a page by its hash; None where it is not kept, nor stands there."""
    if not _HASH.fullmatch(base) or brain.tree.kind_of(path) not in _PAGES:
        raise UserError("this form is for another page; go back and try again")
    present = brain.read_text(path)
    return present if present is not None and _hash(present) == base else brain.kept_text(base)


def _save(brain: Brain, path: str, base: str, text: str) -> Done:
    if _hash(text) == base:
        return Done("Nothing was changed.", to=f"/page?name={quote(path)}")
    former = _version(brain, path, base)
    if brain.read(path) is None and former is not None:  # a page that was moved is the same by its uuid
        path = brain.pages().path_by_uuid.get(parse_memory(path, former).uuid, path)
    is_merged = brain.save(path, base, text)
    also = " It had been changed meanwhile: both stand, and where they differ the review asks you." if is_merged else ""
    last = next(brain.journal.events(reverse=True), None)
    undo = last.id if last and any(change.path == path for change in last.changes) else ""
    return Done(f"Saved.{also}", undo, to=f"/page?name={quote(path)}")


def make_private(visit: Visit) -> Done:
    """Say in a page's properties that it must not be shown to a model elsewhere, or that it may."""
    brain, path = visit.brain, visit.need("path")
    text = brain.read_page(path)
    if text is None or brain.tree.kind_of(path) not in _PAGES:
        raise UserError("there is no such page any more")
    is_private = not asks_for_privacy(text)
    done = _save(brain, path, _hash(text), edit_meta(text, private=is_private))
    told = "No model elsewhere sees it, and no door." if is_private else "Models and doors may see it."
    return Done(told, done.undo)


# --- what is near -------------------------------------------------------------------------------------------


def neighbours(graph: LinkGraph, brain: Brain, path: str) -> list[Neighbour]:
    """Return the pages that are linked with a page, latest first; not those that only list a folder."""
    back, forward = set(graph.back(path)), set(graph.forward(path))
    found = [graph.pages[each] for each in (back | forward) - {path} if each in graph.pages]
    found = [each for each in found if brain.tree.kind_of(each.path) is not PathKind.INDEX_PAGE]
    found.sort(key=lambda each: (each.at, each.path), reverse=True)
    return [
        Neighbour(each.path, each.title or posixpath.basename(each.path), each.path in back, each.path in forward)
        for each in found
    ]


def near(visit: Visit) -> Mapping[str, Any]:
    """Return the pages that are linked with one, at most sixty, with their places in a picture."""
    brain = visit.brain
    file = _present(brain, visit.need("name").partition("#^")[0])
    memory = parse_memory(file.path, file.text)
    found = neighbours(brain.recall.links, brain, memory.path)
    shown = found[:MAX_NEAR]
    # what it links to stands on the right, the others on the left
    left = [each for each in shown if not each.is_to]
    right = [each for each in shown if each.is_to]
    height = max(len(left), len(right), 2) * ROW
    columns = []
    for column in (left, right):
        top = (height - len(column) * ROW) // 2 + ROW // 2
        columns.append([(each, top + number * ROW) for number, each in enumerate(column)])
    values = {"title": memory.title, "path": memory.path, "more": len(found) - len(shown)}
    return values | {"left": columns[0], "right": columns[1], "near": shown, "height": height}


PAGES = (
    Page("/page", "Page", page, is_listed=False, is_live=True),
    Page("/near", "Near", near, is_listed=False),
)
ACTIONS = {"save": save, "private": make_private}
