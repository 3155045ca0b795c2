"""The offline engine: it records, finds and quotes, without key, network, model or any knowledge of a language.

Design 8. It serves every purpose from the request alone, and the same request always gets the same result. It quotes or
keeps a person's words as they are; the only words of its own are the lines below.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import tzinfo
from typing import Literal

from brainiac.clock import day_in
from brainiac.formats import markdown
from brainiac.formats.authors import PERSON
from brainiac.formats.prompt import parse_commands
from brainiac.llm import schemas
from brainiac.search import wishes
from brainiac.search.documents import Hit
from brainiac.search.query import excerpt
from brainiac.storage.statements import LINE
from brainiac.text.tokens import as_sentence, ends_as_question, pieces, words

NOTED = "Noted."
FOUND = "In memory:"
PERHAPS = "Perhaps:"
NOTHING = "Nothing in memory on that."
ABSENT = "Nowhere in memory: {words}."
LATER = "(later, {day}: “{words}”)"
FIRST = (
    "*Without a model I record what you write, find it and quote it; I do not reason. `/help` lists what I know, "
    "`brainiac context --copy` takes your memory to a chat of yours, and `llm.model` in system/config.yaml names a "
    "model.*"
)
# said above an answer where the message seems to ask for it, or to hold a secret; nothing is done
FORGET = (
    "Nothing was forgotten: if you want that, `/forget WORDS` does it, and in the window (`brainiac open`) *forget* "
    "beside what Search finds; `/off` as the first line of a message keeps nothing of it, `/private` keeps it from "
    "models elsewhere."
)
WISHES = {
    wishes.WISH: FORGET,
    wishes.PRIVATE: FORGET,
    wishes.CORRECT: "No page was changed: `brainiac correct WORDS --to WORDS` puts right what memory holds, "
    "and so does an edit of its file.",
    wishes.REMEMBER: "This is kept as you wrote it; `/remember TEXT` also puts it into long-term memory.",
    wishes.REMIND: "Nothing will remind you: `/todo TEXT` adds a task, which `/tasks` lists until `/done WORDS`.",
    wishes.TASKS: "Your open tasks, as `/tasks` lists them:",
    wishes.HELP: "Write anything, and it is kept. As the first line: `/remember TEXT`, `/find WORDS`, `/todo TEXT`, "
    "`/done WORDS`, `/tasks`, `/forget WORDS`, `/private`, `/off`; `/help` says what each does.",
    wishes.ABOUT_ME: "About you, without what is private; `brainiac context` shows all that a model would be given:",
    wishes.WHO: "I am Brainiac, the memory of this folder: I record what you write, find it and quote it.",
}
SECRET = (
    "This is kept as you wrote it. If it is a secret, send it with `/off` as the first line, which keeps nothing of "
    "the message, or `/private`, which keeps it from models elsewhere; `/forget WORDS` takes out what stands there."
)
FIXED = (NOTED, FOUND, PERHAPS, NOTHING, FIRST, *WISHES.values(), SECRET)  # lines of any answer, which quote nobody
MAX_PASSAGES = 3
MAX_LISTED = 12  # lines of what was said on the days asked about, or of the things
LISTED_BEHIND = 2.0  # in the logarithm of the odds: what is seven times less likely than the best is left out
LISTED_CHARACTERS = 160  # of the first line of each
MAX_LAST_SAID, LAST_SAID_CHARACTERS = 5, 240  # messages that the summary quotes, and of each so much
QUOTED_CHARACTERS = 600  # of a longer passage the part around the words of the prompt is shown
NOTES = "notes"  # the folder for words that name no page; it has a page for each month
MIN_DEPTH_TO_LIFT = 5  # memory/long_term/concrete/topic/page.md stays where it is
MAX_PATHS = 400  # of one proposal
MAX_PROPOSALS = 100
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
_MONTH = re.compile(r"(?:.*/)?events/(?:\d{4}/\d\d(?=/))?")


class OfflineEngine:
    """Serves every purpose from a request's values."""

    name = "offline"
    is_remote = False

    def run(self, request: schemas.Request) -> schemas.Result:
        """Serve one request.

        Raises:
            TypeError: It serves no such purpose.
        """
        match request:
            # the prompt itself is searched for, and marked words are kept with every engine: nothing else is judged
            case schemas.QueriesRequest() | schemas.ReflectRequest() | schemas.ConsolidateRequest():
                return request.result()
            case schemas.VerifyRequest(claims=claims):  # it judges nothing
                return schemas.Verdicts(
                    verdicts=[schemas.Verdict(item=claim.id, verdict="follows") for claim in claims]
                )
            case schemas.AnswerRequest():
                result = answer(request)
                if request.on_text is not None:
                    request.on_text(result.text)
                return result
            case schemas.SynthesizeRequest():
                return schemas.Page(kind=request.kind, title=request.title or NOTES, folder=NOTES)
            case schemas.SummarizeRequest():
                return schemas.Summary(text=summarize(request))
            case schemas.OrganizeRequest():
                return organize(request)
        raise TypeError(f"the offline engine serves no {type(request).__name__}")


# --- answer: the nearest passages of memory, quoted ----------------------------------------------------------------


def answer(request: schemas.AnswerRequest) -> schemas.Answer:
    """Return the answer to a prompt: passages from its hits, and how sure it is that they are about it.

    One form for whatever was said. Where a mark of question stands in the prompt, what comes closest is shown in any
    case, as `PERHAPS` where it comes no closer than chance would; without a mark only what is clearly near is.
    """
    later: int | None = None  # what a passage is marked with: the answer rests on it as well
    prompt, hits, zone = request.prompt.said, request.hits, request.now.tzinfo
    asks = request.wants_list or any(map(ends_as_question, pieces(prompt)))
    folder, logged = posixpath.dirname(request.prompt.path), {event.id for event in request.short_term.events}
    parts = [] if ends_as_question(prompt) or not request.prompt.remember else [NOTED]
    # What people said on the days asked about, in order of time: of more than are shown the best, and each text once,
    # at the time of its message, as a statement bears only a day; of one second the earlier message has the smaller id.
    said = [(index, hit) for index, hit in enumerate(hits) if hit.found_by == "fields" and hit.speaker != "ai"]
    by_text = {hit.text: index for index, hit in reversed(said)}
    times = {hit.text: (hit.at, hit.anchor) for _, hit in said if hit.kind != "statement"}
    chosen = sorted(by_text.values())[:MAX_LISTED]
    if chosen := sorted(chosen, key=lambda index: times.get(hits[index].text, (hits[index].at, ""))):
        parts += [FOUND, listing(hits, chosen, folder, zone)]
    else:
        chosen = passages(hits, prompt)
        is_near = bool(chosen) and hits[chosen[0]].is_near
        is_sure = bool(chosen) and hits[chosen[0]].is_sure
        several = passages(hits, prompt, MAX_LISTED, LISTED_BEHIND) if request.wants_list else []
        chosen = chosen if asks or is_near else []
        if chosen and len(several) > len(chosen):
            chosen = several
            parts += [FOUND if is_sure else PERHAPS, listing(hits, chosen, folder, zone)]
        elif chosen:
            later = last_told(hits, chosen, logged)
            parts += [FOUND if is_sure else PERHAPS]
            parts += quotations(hits, chosen, prompt, folder, zone, None if later is None else hits[later])
        elif asks:
            parts.append(NOTHING)
        if request.absent and asks and not is_sure:
            parts.append(ABSENT.format(words=", ".join(f"“{word}”" for word in request.absent)))
    if request.is_first:
        parts.append(FIRST)
    cited = chosen if later is None or later in chosen else [*chosen, later]
    return schemas.Answer(text="\n\n".join(parts), cited=cited, led=chosen[:1])


def last_told(hits: Sequence[Hit], chosen: Sequence[int], logged: Collection[str]) -> int | None:
    """Return the index of what was told last on the matter where a chosen passage is older than it, else None.

    Args:
        hits: The hits.
        chosen: Indices of the passages.
        logged: The exchanges of short-term memory.
    """
    told = (at for at, hit in enumerate(hits) if hit.is_near and hit.speaker == "user" and hit.anchor in logged)
    own = [at for at in told if not ends_as_question(hits[at].text)]
    last = max(own, key=lambda at: hits[at].at, default=None)
    return last if last is not None and any(_is_older(hits[at], hits[last]) for at in chosen) else None


def _is_older(hit: Hit, later: Hit) -> bool:
    """Return whether a passage of another page is older than what was told last."""
    return hit.path != later.path and "" < hit.at < later.at


def passages(hits: Sequence[Hit], prompt: str, most: int = MAX_PASSAGES, behind: float = 0) -> list[int]:
    """Return the indices of the hits to be shown, best first; where none is near, that of the closest alone.

    Args:
        hits: The hits, best first.
        prompt: What has its words and no others tells nothing.
        most: So many of them.
        behind: What is not near counts too where its score lies no further than this behind the best.
    """
    chosen: list[int] = []
    asked = words(prompt)
    for index, hit in enumerate(hits):
        is_behind = bool(chosen) and not hit.is_near and hit.score <= hits[chosen[0]].score - behind
        # but a statement with the words of a question answers it
        is_repeat = words(hit.text) == asked and (ends_as_question(hit.text) or not ends_as_question(prompt))
        if is_repeat or is_behind:
            continue
        # the same words, such as a statement and the exchange that it was made from
        if len(chosen) < most and all(hits[other].text.split() != hit.text.split() for other in chosen):
            chosen.append(index)
    return chosen


def quotations(
    hits: Sequence[Hit],
    chosen: Sequence[int],
    query: str,
    folder: str,
    zone: tzinfo | None,
    later: Hit | None = None,
) -> Iterator[str]:
    """Yield the paragraphs that quote hits: for each a block quote of its text, then a line with day and link.

    Args:
        hits: The hits.
        chosen: Indices of the hits to quote, in order.
        query: The prompt; of a long passage the part around its words is quoted.
        folder: The folder of the prompt, which links are relative to.
        zone: The person's time zone; None for UTC.
        later: What was told last, in short-term memory: an older passage is marked with it, as no process has compared
            the two yet.
    """
    for hit in (hits[index] for index in chosen):
        text = hit.text if len(hit.text) <= QUOTED_CHARACTERS else excerpt(hit.text, query, QUOTED_CHARACTERS)
        text = _with_links_from(text, posixpath.dirname(hit.path), folder)
        fences = _FENCE.findall(text)
        if len(fences) % 2:  # the excerpt ends within a code fence, which has to be closed
            text += f"\n{fences[-1].strip()}"
        yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        yield _source(hit, folder, zone) + "".join(
            f"\n{markdown.one_line(as_sentence(former))}" for former in hit.former
        )
        if later and _is_older(hit, later):
            told = markdown.one_line(markdown.without_link_targets(excerpt(later.text, query, LISTED_CHARACTERS)))
            yield LATER.format(day=day_in(zone, later.at), words=told)


def listing(hits: Sequence[Hit], chosen: Sequence[int], folder: str, zone: tzinfo | None) -> str:
    """Return a list of what was said: the first line of each text, its day, and a link.

    Args:
        hits: The hits.
        chosen: Indices of those to list, in order.
        folder: The folder that links are relative to.
        zone: The person's time zone; None for UTC.
    """
    rows = []
    for hit in (hits[index] for index in chosen):
        first = excerpt(hit.text.strip().split("\n")[0], "", LISTED_CHARACTERS)
        rows.append(f"- {_with_links_from(first, posixpath.dirname(hit.path), folder)} {_source(hit, folder, zone)}")
    return "\n".join(rows)


def _with_links_from(text: str, page_folder: str, folder: str) -> str:
    """Return a text of a page with its relative links made relative to another folder."""

    def target_of(link: markdown.Link) -> str:
        """Return a link's new target; "" to leave a path from the root as it is."""
        target = posixpath.normpath(posixpath.join(page_folder, link.target))
        return "" if link.target.startswith("/") else markdown.relative_link(target, folder)

    return markdown.retarget_links(text, target_of)


def _source(hit: Hit, folder: str, zone: tzinfo | None) -> str:
    """Return the line below a quotation: whose words it is where not the person's, its day, a link to its page."""
    block_id = hit.anchor if hit.kind == "statement" else ""
    link = markdown.format_link(hit.title, markdown.relative_link(hit.path, folder), hit.uuid, block_id)
    marks = [mark for mark, holds in (("earlier", hit.is_earlier), ("archived", hit.is_archived)) if holds]
    return "— " + ", ".join(filter(None, [hit.author.named, day_in(zone, hit.at), link, *marks]))


# --- summarize, organize: counts and statistics --------------------------------------------------------------------


def summarize(request: schemas.SummarizeRequest) -> str:
    """Return one paragraph: how many exchanges since which day, the pages they went to, and what was last said.

    That are the first sentences of each of the person's last messages, word for word, the newest last. By the count at
    its beginning search knows that the paragraph only repeats what stands elsewhere.
    """
    events = [*request.archived, *request.remaining]
    if not events:
        return ""
    count, since = len(events), day_in(request.now.tzinfo, min(event.at for event in events))
    own = [event for event in events if event.origin == PERSON and not event.id.startswith(LINE)]
    quoted = []
    for event in sorted(own, key=lambda event: (event.at, event.id)):
        # the sentences that it begins with, commands left out, of its first block: a too long one is not cut
        first_block = next(iter(markdown.blocks_of(parse_commands(event.user)[1])), "")
        sentences = list(map(markdown.one_line, pieces(markdown.without_link_targets(first_block))))
        beginnings = (" ".join(sentences[:count]) for count in range(len(sentences), 0, -1))
        quoted += [text for text in beginnings if 0 < len(text) <= LAST_SAID_CHARACTERS][:1]
    quotes = " ".join(f"“{text}”" for text in quoted[-MAX_LAST_SAID:])
    pages = f" Pages: {', '.join(dict.fromkeys(request.titles))}." if request.titles else ""
    return (
        f"{count} exchange{'' if count == 1 else 's'} since {since}.{pages}{f' Last said: {quotes}' if quotes else ''}"
    )


def organize(request: schemas.OrganizeRequest) -> schemas.Proposals:
    """Return proposals by rule: link pages cited together, move used ones up, archive unused ones, split folders.

    Unused days are compressed month by month.
    """
    patterns = request.patterns
    proposals = [
        schemas.Proposal(action="link", paths=row["paths"], reason=f"cited together {row['cited']} times")
        for row in patterns.get("co_accessed", ())
    ]
    for row in patterns.get("frequent", ()):  # cited often: out of a deep folder into the one above
        path = row["path"]
        if len(path.split("/")) > MIN_DEPTH_TO_LIFT and "/events/" not in f"/{path}":
            target, reason = posixpath.dirname(posixpath.dirname(path)), f"cited {row['cited']} times"
            proposals.append(schemas.Proposal(action="move", paths=[path], target=target, reason=reason))
    unused_by_month: dict[str, list[str]] = defaultdict(list)  # under "" those that are no days
    for row in patterns.get("unused", ()):
        month = _MONTH.match(row["path"])
        unused_by_month[month[0] if month else ""].append(row["path"])
    for name, paths in sorted(unused_by_month.items()):
        for start in range(0, len(paths), MAX_PATHS):
            batch = sorted(paths)[start : start + MAX_PATHS]
            action: Literal["compress", "archive"] = "compress" if name and len(batch) > 1 else "archive"
            proposals.append(schemas.Proposal(action=action, paths=batch, reason="not used for long"))
    proposals += [
        schemas.Proposal(action="split", paths=[row["folder"]], reason=f"{row['entries']} entries")
        for row in patterns.get("overgrown", ())
    ]
    return schemas.Proposals(proposals=proposals[:MAX_PROPOSALS])
