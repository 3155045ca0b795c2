"""The offline engine: it records, finds and quotes, without key, network, model or any knowledge of a language.

Design 8. It serves every purpose from the request alone, and the same request always gets the same result. It quotes or
keeps a person's words as they are; the only words of its own are the lines below.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from brainiac.clock import day_in
from brainiac.formats.markdown import Link, format_link, one_line, relative_link, retarget_links
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
from brainiac.text.tokens import as_sentence, ends_as_question, likeness, pieces, words

NOTED = "Noted."
FOUND = "In memory:"
NOTHING = "Nothing in memory on that."
ABSENT = "Nowhere in memory: {words}."
FIRST = (
    "*Without a model I record what you write, find it and quote it; I do not reason. `/help` lists what I know, "
    "`brainiac context --copy` takes your memory to a chat of yours, and `llm.model` in system/config.yaml names a "
    "model.*"
)
# said above an answer where the message seems to ask for it, or to hold a secret; nothing is done
WISH = (
    "Nothing was forgotten: if you want that, `/forget WORDS` does it; `/off` as the first line of a message keeps "
    "nothing of it, `/private` keeps it from models elsewhere."
)
SECRET = (
    "This is kept as you wrote it. If it is a secret, send it with `/off` as the first line, which keeps nothing of "
    "the message, or `/private`, which keeps it from models elsewhere; `/forget WORDS` takes out what stands there."
)
FIXED = (NOTED, FOUND, NOTHING, FIRST, WISH, SECRET)  # lines of any answer, which quote nobody
MAX_PASSAGES = 3
QUOTED_CHARACTERS = 600  # of a longer passage the part around the words of the prompt is shown
ASKED_CHARACTERS = 1_000  # a question mark within a longer text is seldom a question to the memory
SAME = 0.6  # two passages that share so many of their character trigrams say much the same
NOTES = "notes"  # the folder for words that name no page; it has a page for each month
MIN_DEPTH_TO_LIFT = 5  # memory/long_term/concrete/topic/page.md stays where it is
MAX_PATHS = 400  # of one proposal
MAX_PROPOSALS = 100
_MIN_NAME, _MIN_FOREIGN_NAME = 3, 2  # characters: a shorter title stands in a text by chance
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
                return Reflection()  # Reflection notes the marked words with every engine
            case ConsolidateRequest():  # marked words are kept; nothing else is judged
                zone = request.now.tzinfo or UTC
                return Consolidation(operations=[keep(marked, request.pages, zone) for marked in request.marked])
            case SynthesizeRequest():
                return Page(kind=request.kind, title=request.title or NOTES, folder=NOTES, steps=list(request.steps))
            case SummarizeRequest():
                return Summary(text=summarize(request))
            case OrganizeRequest():
                return organize(request)
        raise TypeError(f"the offline engine serves no {type(request).__name__}")


# --- answer: the nearest passages of memory, quoted ----------------------------------------------------------------


def answer(request: AnswerRequest) -> Answer:
    """Return the answer to a prompt: passages from its hits, and the words of the prompt that memory does not have.

    Only question marks are looked at: a prompt that ends in one is a question, and any other is also acknowledged
    ("Noted."), unless it is off the record. Where no sentence of it ends in one, only near passages are quoted.
    """
    prompt = request.prompt.said
    is_question = ends_as_question(prompt)
    has_question = is_question or (len(prompt) <= ASKED_CHARACTERS and any(map(ends_as_question, pieces(prompt))))
    chosen = passages(request.hits, only_near=not has_question)
    parts = [] if is_question or request.off_record else [NOTED]
    parts += quotations(request.hits, chosen, prompt, posixpath.dirname(request.prompt.path), request.zone)
    if request.absent and (has_question or chosen):
        parts.append(ABSENT.format(words=", ".join(f"“{word}”" for word in request.absent)))
    if is_question and not chosen:
        parts.insert(0, NOTHING)
    if request.is_first:
        parts.append(FIRST)
    return Answer(text="\n\n".join(parts), cited=chosen, led=chosen[:1])


def passages(hits: Sequence[Hit], *, only_near: bool = False) -> list[int]:
    """Return the indices of the hits to be shown, best first; of hits that say much the same, the newest first.

    Args:
        hits: The hits, best first.
        only_near: Whether to leave out hits that are not near (`Hit.is_near`).
    """
    chosen: list[int] = []
    for index, hit in enumerate(hits):
        # an earlier question says nothing about what the person states now
        if only_near and (not hit.is_near or ends_as_question(hit.text)):
            continue
        if hit.kind == "index-page":  # its words are derived from other pages
            continue
        alike = [other for other in chosen if likeness(hits[other].text, hit.text) >= SAME]
        if any(hits[other].text.split() == hit.text.split() for other in alike):
            continue  # the same words, such as a statement and the exchange that it was made from
        if len(chosen) < MAX_PASSAGES:
            places_of_older = [chosen.index(other) for other in alike if hits[other].at < hit.at]
            chosen.insert(min(places_of_older, default=len(chosen)), index)
    return chosen


def quotations(
    hits: Sequence[Hit], chosen: Sequence[int], query: str, folder: str, zone: tzinfo | None
) -> Iterator[str]:
    """Yield the paragraphs that quote hits: for each a block quote of its text, then a line with day and link.

    Args:
        hits: The hits.
        chosen: Indices of the hits to quote, in order.
        query: The prompt; of a long passage the part around its words is quoted.
        folder: The folder of the prompt, which links are relative to.
        zone: The person's time zone; None for UTC.
    """
    if chosen:
        yield FOUND
    for hit in (hits[index] for index in chosen):
        text = hit.text if len(hit.text) <= QUOTED_CHARACTERS else excerpt(hit.text, query, QUOTED_CHARACTERS)
        text = _with_links_from(text, posixpath.dirname(hit.path), folder)
        fences = _FENCE.findall(text)
        if len(fences) % 2:  # the excerpt ends within a code fence, which has to be closed
            text += f"\n{fences[-1].strip()}"
        yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        yield _source(hit, folder, zone) + "".join(f"\n{one_line(as_sentence(former))}" for former in hit.former)


def _with_links_from(text: str, page_folder: str, folder: str) -> str:
    """Return a text of a page with its relative links made relative to another folder."""

    def target_of(link: Link) -> str:
        """Return a link's new target; "" to leave a path from the root as it is."""
        target = posixpath.normpath(posixpath.join(page_folder, link.target))
        return "" if link.target.startswith("/") else relative_link(target, folder)

    return retarget_links(text, target_of)


def _source(hit: Hit, folder: str, zone: tzinfo | None) -> str:
    """Return the line below a quotation: whose words it is where not the person's, its day, a link to its page."""
    block_id = hit.anchor if hit.kind == "statement" else ""
    link = format_link(hit.title, relative_link(hit.path, folder), hit.uuid, block_id)
    archived = "archived" if hit.is_archived else ""
    return "— " + ", ".join(filter(None, [hit.author.named, day_in(zone, hit.at), link, archived]))


# --- consolidate: marked words, whole and as written, on the page that they name -----------------------------------


def keep(marked: Marked, pages: Sequence[PageName], zone: tzinfo) -> Operation:
    """Return the operation for marked words: `same` where a statement has them already, else `new`.

    Args:
        marked: The words.
        pages: The pages that they may go to.
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
    """Return the page for marked words.

    Several lines get a page of their own. A single line goes to the page of its link or tag, else to the page whose
    name it holds, else to that of its conversation, else to that of its month.
    """
    # a link comes before a tag: it names the page, the tag only the topic
    name = next(iter((*marked.links, *marked.tags)), "")
    if "\n" in marked.text.strip():
        return _new_page(marked, name)
    if name:
        return _page_of_name(name, pages)
    if path := _path_named_in(marked.text, pages):
        return PageRef(path=path)
    if marked.conversation:
        return _page_of_name(marked.conversation, pages)
    return _page_of_name(day_in(zone, marked.at)[:7], pages, folder=NOTES)


def _new_page(marked: Marked, name: str) -> PageRef:
    """Return a new page for words of several lines; a heading with numbered steps below it becomes a skill."""
    heading = _HEADING.search(marked.text)
    is_skill = heading is not None and len(_STEP.findall(marked.text, heading.end())) > 1
    first_line = next(line for line in marked.text.split("\n") if line.strip())
    title = " ".join(_MARKS.sub(" ", heading[1] if heading else first_line).split())
    if len(title) > _TITLE_CHARACTERS:
        title = title[:_TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"
    # a skill stands right in `skills/`, which has no folders of topics
    folder = "" if is_skill else name or marked.conversation or NOTES
    return PageRef(kind="skill" if is_skill else "concrete", folder=folder, title=title or name, is_whole=True)


def _page_of_name(name: str, pages: Sequence[PageName], folder: str = "") -> PageRef:
    """Return the page with a name in any case of letters; a new one in the folder where there is none."""
    folded = name.casefold()
    path = next((page.path for page in pages if folded in map(str.casefold, page.names)), "")
    return PageRef(path=path) if path else PageRef(folder=folder, title=name)


def _path_named_in(text: str, pages: Sequence[PageName]) -> str:
    """Return the path of the page with the longest name that stands in a text word for word; "" for none."""
    padded = f" {' '.join(words(text))} "
    longest = path = ""
    for page in pages:
        for title_or_alias in page.names:
            name = " ".join(words(title_or_alias))
            if len(name) > len(longest) and _has_name(padded, name):
                longest, path = name, page.path
    return path


def _has_name(padded: str, name: str) -> bool:
    """Return whether a text has a name; both are words with a space between them, and the text has one at each end."""
    if name.isascii():
        return len(name) >= _MIN_NAME and f" {name} " in padded
    # other scripts may have no spaces between words, and short names
    return len(name) >= _MIN_FOREIGN_NAME and name in padded


# --- summarize, organize: counts and statistics --------------------------------------------------------------------


def summarize(request: SummarizeRequest) -> str:
    """Return a summary of numbers: how many exchanges since which day, and the pages they went to."""
    events = [*request.archived, *request.remaining]
    if not events:
        return ""
    count, since = len(events), day_in(request.now.tzinfo, min(event.at for event in events))
    titles = ", ".join(dict.fromkeys(request.titles))
    return f"{count} exchange{'' if count == 1 else 's'} since {since}." + (f" Pages: {titles}." if titles else "")


def organize(request: OrganizeRequest) -> Proposals:
    """Return proposals by rule: link pages cited together, move used ones up, archive unused ones, split folders."""
    patterns = request.patterns
    proposals = [
        Proposal(action="link", paths=row["paths"], reason=f"cited together {row['cited']} times")
        for row in patterns.get("co_accessed", ())
    ]
    proposals += [*_moves(patterns.get("frequent", ())), *_archivings(patterns.get("unused", ()))]
    proposals += [
        Proposal(action="split", paths=[row["folder"]], reason=f"{row['entries']} entries")
        for row in patterns.get("overgrown", ())
    ]
    return Proposals(proposals=proposals[:MAX_PROPOSALS])


def _moves(rows: Rows) -> Iterator[Proposal]:
    """Yield a move for each page that is cited often: out of a deep folder into the one above."""
    for row in rows:
        path = row["path"]
        if len(path.split("/")) > MIN_DEPTH_TO_LIFT and "/events/" not in f"/{path}":
            target = posixpath.dirname(posixpath.dirname(path))
            yield Proposal(action="move", paths=[path], target=target, reason=f"cited {row['cited']} times")


def _archivings(rows: Rows) -> Iterator[Proposal]:
    """Yield proposals to compress unused days month by month, and to archive every other unused page."""
    paths_by_month: dict[str, list[str]] = defaultdict(list)  # under "" those that are no days
    for row in rows:
        match = _MONTH.match(row["path"])
        paths_by_month[match[0] if match else ""].append(row["path"])
    for month, paths in sorted(paths_by_month.items()):
        for start in range(0, len(paths), MAX_PATHS):
            batch = sorted(paths)[start : start + MAX_PATHS]
            action = "compress" if month and len(batch) > 1 else "archive"
            yield Proposal(action=action, paths=batch, reason="not used for long")
