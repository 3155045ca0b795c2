"""The keyless engine's answer: what memory holds nearest, quoted as it was said, with day and link (design 8).

One form for whatever was said, since nothing here can tell a question from a statement. It never rewords, joins,
resolves or infers; the only words of its own are the fixed lines below.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo

from brainiac.clock import day_in
from brainiac.formats.links import format_link
from brainiac.llm.schemas import Answer, AnswerRequest
from brainiac.search.excerpt import excerpt
from brainiac.search.hit import Hit
from brainiac.text.tokens import ends_as_question, likeness, pieces

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
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


def answer(request: AnswerRequest) -> Answer:
    """Answer a prompt from what was found for it; equal requests get equal answers."""
    said = request.prompt.said
    is_question = ends_as_question(said)
    is_asked = is_question or (len(said) <= ASKED_CHARACTERS and any(map(ends_as_question, pieces(said))))
    chosen = passages(request.hits, only_near=not is_asked)
    parts = [] if is_question else [NOTED]
    parts += quotations(request.hits, chosen, said, posixpath.dirname(request.prompt.path), request.zone)
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
        if any(" ".join(hits[other].text.split()) == " ".join(hit.text.split()) for other in alike):
            continue  # the statement and the exchange that it was made from
        if len(chosen) < MAX_PASSAGES:
            chosen.insert(_place(hits, chosen, alike, hit), index)
    return chosen


def _place(hits: Sequence[Hit], chosen: Sequence[int], alike: Sequence[int], hit: Hit) -> int:
    """Return where a passage goes among those chosen: before the first that says much the same and is older."""
    older = [chosen.index(other) for other in alike if hits[other].at < hit.at]
    return min(older, default=len(chosen))


def quotations(
    hits: Sequence[Hit], chosen: Sequence[int], asked: str, folder: str, zone: tzinfo | None
) -> Iterator[str]:
    """Yield the paragraphs that show hits: each a block quote of the words as they stand, then day and link.

    Args:
        hits: What was found.
        chosen: Indices of those to show, in order.
        asked: What was asked: a long passage is shown around its words.
        folder: The folder of the prompt, relative: links start there.
        zone: The person's time zone; None for UTC.
    """
    if chosen:
        yield FOUND
    for index in chosen:
        hit = hits[index]
        words = hit.text if len(hit.text) <= QUOTED_CHARACTERS else excerpt(hit.text, asked, QUOTED_CHARACTERS)
        yield "\n".join(f"> {line}".rstrip() for line in _closed(words).split("\n"))
        yield _where(hit, folder, zone)


def _closed(text: str) -> str:
    """Return a text with a line that closes its last fence, where it was cut within one."""
    fences = _FENCE.findall(text)
    return f"{text}\n{fences[-1].strip()}" if len(fences) % 2 else text


def _where(hit: Hit, folder: str, zone: tzinfo | None) -> str:
    """Return the day a passage is of and a link to where it stands."""
    target = posixpath.relpath(hit.path, folder or ".")
    link = format_link(hit.title, target, hit.uuid)
    if hit.kind == "statement" and hit.anchor:
        link = link.replace(".md", f".md#^{hit.anchor}", 1)
    marks = [day_in(zone, hit.at), link, *(["archived"] if hit.is_archived else [])]
    return "— " + ", ".join(filter(None, marks))
