"""The keyless engine: it records, finds and quotes, without key, network, model or any knowledge of a language.

Design 8. It serves the purposes from a request's values alone, and the same request gets the same result. What a person
said is quoted or kept, never reworded, joined, resolved or inferred; its only words of its own are the lines below.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from brainiac.clock import day_in
from brainiac.formats.markdown import format_link
from brainiac.llm.schemas import (
    Answer,
    AnswerRequest,
    ConsolidateRequest,
    Consolidation,
    Evidence,
    Marked,
    Operation,
    OrganizeRequest,
    Page,
    PageName,
    PageRef,
    Proposal,
    Proposals,
    Queries,
    QueriesRequest,
    Reflection,
    ReflectRequest,
    Request,
    Result,
    SummarizeRequest,
    Summary,
    SynthesizeRequest,
)
from brainiac.search.documents import Hit
from brainiac.search.query import excerpt
from brainiac.text.tokens import ends_as_question, likeness, pieces, words

NOTED = "Noted."
FOUND = "In memory:"
NOTHING = "Nothing in memory on that."
ABSENT = "Nowhere in memory: {words}."
FIRST = (
    "*Without a model I record what you write, find it and quote it; I do not reason. `/help` lists what I know, "
    "`brainiac context --copy` takes your memory to a chat of yours, and `llm.model` in system/config.yaml names a "
    "model.*"
)
FIXED = (NOTED, FOUND, NOTHING, FIRST)  # nobody's words: they stand in any answer
MAX_PASSAGES = 3
QUOTED_CHARACTERS = 600  # a longer passage is shown around what was asked
ASKED_CHARACTERS = 1_000  # a question mark within a longer text is seldom the writer's
SAME = 0.6  # of their runs of signs: so much alike, the newer of two passages goes first
NOTES = "notes"  # the folder of what names no page, a page a month
MIN_DEPTH_TO_LIFT = 5  # memory/long_term/concrete/topic/page.md stays where it is
MAX_PATHS = 400  # of one proposal
MAX_PROPOSALS = 100
_MIN_NAME = 3  # characters: a shorter title is named by chance
_TITLE_CHARACTERS = 60
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t#]*$", re.MULTILINE)
_STEP = re.compile(r"^ {0,3}\d{1,3}[.)][ \t]+\S", re.MULTILINE)
_MARKS = re.compile(r"[#*_`>\[\]|]+")
_MONTH = re.compile(r"(?:.*/)?events/(?:\d{4}/\d\d(?=/))?")

Rows = Iterable[Mapping[str, Any]]


class OfflineEngine:
    """Serves every purpose from a request's values."""

    name = "offline"
    is_remote = False

    def run(self, request: Request) -> Result:
        """Serve one request.

        Raises:
            TypeError: It serves no such purpose.
        """
        match request:
            case QueriesRequest():
                return Queries()  # the prompt itself is searched for
            case AnswerRequest():
                result = answer(request)
                if request.on_text is not None:
                    request.on_text(result.text)
                return result
            case ReflectRequest():
                return Reflection()  # what a person marked is noted whoever answers
            case ConsolidateRequest():  # what was marked is kept; nothing else is judged
                zone = request.now.tzinfo or UTC
                return Consolidation(operations=[keep(marked, request.pages, zone) for marked in request.marked])
            case SynthesizeRequest():
                return Page(kind=request.kind, title=request.title or NOTES, folder=NOTES, steps=list(request.steps))
            case SummarizeRequest():
                return Summary(text=summarize(request))
            case OrganizeRequest():
                return organize(request)
        raise TypeError(f"the keyless engine serves no {type(request).__name__}")


# --- answer: what memory holds nearest, quoted ---------------------------------------------------------------------


def answer(request: AnswerRequest) -> Answer:
    """Answer a prompt from what was found for it, in one form: a question is not told from a statement here."""
    prompt = request.prompt.said
    is_question = ends_as_question(prompt)
    is_asked = is_question or (len(prompt) <= ASKED_CHARACTERS and any(map(ends_as_question, pieces(prompt))))
    chosen = passages(request.hits, only_near=not is_asked)
    # what ends in a question mark asks for an answer and nothing else; anything else was also told
    parts = [] if is_question else [NOTED]
    parts += quotations(request.hits, chosen, prompt, posixpath.dirname(request.prompt.path), request.zone)
    if request.absent and (is_asked or chosen):
        parts.append(ABSENT.format(words=", ".join(f"“{word}”" for word in request.absent)))
    if is_question and not chosen:
        parts.insert(0, NOTHING)
    if request.is_first:
        parts.append(FIRST)
    return Answer(text="\n\n".join(parts), cited=chosen, led=chosen[:1])


def passages(hits: Sequence[Hit], *, only_near: bool = False) -> list[int]:
    """Return the indices of the hits to be shown, best first; of those that say much the same the newest goes first.

    Args:
        hits: Best first.
        only_near: Leave out what has little to do with what was said.
    """
    chosen: list[int] = []
    for index, hit in enumerate(hits):
        if (only_near and not hit.is_near) or hit.kind == "index-page":
            continue  # an index page tells of other pages in nobody's words
        alike = [other for other in chosen if likeness(hits[other].text, hit.text) >= SAME]
        if any(hits[other].text.split() == hit.text.split() for other in alike):
            continue  # the statement and the exchange that it was made from
        if len(chosen) < MAX_PASSAGES:
            older = [chosen.index(other) for other in alike if hits[other].at < hit.at]
            chosen.insert(min(older, default=len(chosen)), index)
    return chosen


def quotations(
    hits: Sequence[Hit], chosen: Sequence[int], query: str, folder: str, zone: tzinfo | None
) -> Iterator[str]:
    """Yield the paragraphs that show hits: each a block quote of the words as they stand, then day and link.

    Args:
        hits: What was found.
        chosen: Indices of those to show, in order.
        query: What was asked: a long passage is shown around its words.
        folder: The folder of the prompt, relative: links start there.
        zone: The person's time zone; None for UTC.
    """
    if chosen:
        yield FOUND
    for hit in (hits[index] for index in chosen):
        text = hit.text if len(hit.text) <= QUOTED_CHARACTERS else excerpt(hit.text, query, QUOTED_CHARACTERS)
        fences = _FENCE.findall(text)
        if len(fences) % 2:  # it was cut within a fence, which would take in what follows
            text += f"\n{fences[-1].strip()}"
        yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        yield _source(hit, folder, zone)


def _source(hit: Hit, folder: str, zone: tzinfo | None) -> str:
    """Return the day a passage is of and a link to where it stands."""
    block_id = hit.anchor if hit.kind == "statement" else ""
    link = format_link(hit.title, posixpath.relpath(hit.path, folder or "."), hit.uuid, block_id)
    return "— " + ", ".join(filter(None, [day_in(zone, hit.at), link, "archived" if hit.is_archived else ""]))


# --- consolidate: marked words, whole and as written, on the page that they name -----------------------------------


def keep(marked: Marked, pages: Sequence[PageName], zone: tzinfo) -> Operation:
    """Return what becomes of marked words: `same` where they stand already, else `new`.

    Args:
        marked: The words.
        pages: Those that they may go to.
        zone: The person's time zone.
    """
    evidence = [Evidence(exchange=marked.exchange, quote=marked.text)]
    if marked.same:
        return Operation(action="same", ids=list(marked.same), text=marked.text, evidence=evidence, marked_by=marked.by)
    return Operation(
        action="new",
        text=marked.text,
        page=_page_for(marked, pages, zone),
        evidence=evidence,
        marked_by=marked.by,
        tags=list(dict.fromkeys([*marked.tags, *filter(None, [marked.conversation])])),
    )


def _page_for(marked: Marked, pages: Sequence[PageName], zone: tzinfo) -> PageRef:
    """Return the page of words: of their link or tag, the one they name, their conversation's, else their month's."""
    # a link says where, a tag only what about
    name = next(iter((*marked.links, *marked.tags)), "")
    # several lines are a note of their own, whatever they are about
    if "\n" in marked.text.strip():
        return _own_page(marked, name)
    if name:
        return _page_called(name, pages)
    if path := _named_in(marked.text, pages):
        return PageRef(path=path)
    if marked.conversation:
        return _page_called(marked.conversation, pages)
    return _page_called(day_in(zone, marked.at)[:7], pages, folder=NOTES)


def _own_page(marked: Marked, name: str) -> PageRef:
    """Return a page of its own for words of several lines; numbered steps below a heading are a skill."""
    heading = _HEADING.search(marked.text)
    is_skill = heading is not None and len(_STEP.findall(marked.text, heading.end())) > 1
    first = next(line for line in marked.text.split("\n") if line.strip())
    title = " ".join(_MARKS.sub(" ", heading[1] if heading else first).split())
    if len(title) > _TITLE_CHARACTERS:
        title = title[:_TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"
    folder = "" if is_skill else name or marked.conversation or NOTES
    return PageRef(kind="skill" if is_skill else "concrete", folder=folder, title=title or name, is_whole=True)


def _page_called(name: str, pages: Sequence[PageName], folder: str = "") -> PageRef:
    wanted = name.casefold()
    path = next((page.path for page in pages if wanted in map(str.casefold, page.names)), "")
    return PageRef(path=path) if path else PageRef(folder=folder, title=name)


def _named_in(text: str, pages: Sequence[PageName]) -> str:
    """Return the path of the page whose name stands in a text, word for word; of several the longest name's."""
    spoken = f" {' '.join(words(text))} "
    longest = path = ""
    for page in pages:
        for name in (" ".join(words(name)) for name in page.names):
            # scripts other than Latin may put no space between words, and say much in few signs
            is_there = f" {name} " in spoken or (not name.isascii() and name in spoken)
            if is_there and len(name) >= (_MIN_NAME if name.isascii() else 2) and len(name) > len(longest):
                longest, path = name, page.path
    return path


# --- summarize, organize: counts and statistics --------------------------------------------------------------------


def summarize(request: SummarizeRequest) -> str:
    """Return how much was said since when, and which pages it went to."""
    events = [*request.archived, *request.remaining]
    if not events:
        return ""
    count, since = len(events), day_in(request.now.tzinfo, min(event.at for event in events))
    titles = ", ".join(dict.fromkeys(request.titles))
    return f"{count} exchange{'' if count == 1 else 's'} since {since}." + (f" Pages: {titles}." if titles else "")


def organize(request: OrganizeRequest) -> Proposals:
    """Return proposals for what the statistics show: link what is cited together, lift what is used, rest the rest."""
    patterns = request.patterns
    proposals = [
        Proposal(action="link", paths=row["paths"], reason=f"cited together {row['cited']} times")
        for row in patterns.get("co_accessed", ())
    ]
    proposals += [*_moves(patterns.get("frequent", ())), *_rests(patterns.get("unused", ()))]
    proposals += [
        Proposal(action="split", paths=[row["folder"]], reason=f"{row['entries']} entries")
        for row in patterns.get("overgrown", ())
    ]
    return Proposals(proposals=proposals[:MAX_PROPOSALS])


def _moves(rows: Rows) -> Iterator[Proposal]:
    """Lift a page that is cited often by one level, out of a deep folder."""
    for row in rows:
        path = row["path"]
        if len(path.split("/")) > MIN_DEPTH_TO_LIFT and "/events/" not in f"/{path}":
            target = posixpath.dirname(posixpath.dirname(path))
            yield Proposal(action="move", paths=[path], target=target, reason=f"cited {row['cited']} times")


def _rests(rows: Rows) -> Iterator[Proposal]:
    """Compress unused days month by month; archive every other page that is not used."""
    months: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        month = _MONTH.match(row["path"])
        months[month[0] if month else ""].append(row["path"])
    for name, paths in sorted(months.items()):
        for start in range(0, len(paths), MAX_PATHS):
            batch = sorted(paths)[start : start + MAX_PATHS]
            action = "compress" if name and len(batch) > 1 else "archive"
            yield Proposal(action=action, paths=batch, reason="not used for long")
