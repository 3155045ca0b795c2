"""Words that are kept as written, without a model's judgement: those that the person has marked or said again.

Marked: by `/remember`, as a note in `inbox/notes/`, as a line under Key Facts, by a `#tag` or `[[link]]` in a block.
Said again: on another day, in nearly the same words. What the words mean decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Event, NoteCaptured, PathKind
from brainiac.formats.authors import PERSON
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import blocks_of, decode_text, tags_in, wiki_links_in
from brainiac.formats.prompt import arguments, parse_commands
from brainiac.formats.short_term import StmEvent
from brainiac.history.exchanges import Exchanges
from brainiac.llm.offline import NOTES
from brainiac.llm.schemas import OFFLINE, Operation, PageRef
from brainiac.search.documents import Hit
from brainiac.storage.links import LinkOrigins
from brainiac.storage.statements import text_hash
from brainiac.text.tokens import likeness, words

from .apply import Candidate
from .draft import MemoryDraft
from .filing import conversation_of
from .known import names_in, near_hits

REPEATED = 0.8  # two texts that share so many of their character trigrams say the same
MIN_WORDS = 4  # of a repeated block: shorter ones ("good morning to you") repeat by chance
_TITLE_CHARACTERS = 60
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t#]*$", re.MULTILINE)
_STEP = re.compile(r"^ {0,3}\d{1,3}[.)][ \t]+\S", re.MULTILINE)
_MARKS = re.compile(r"[#*_`>\[\]|]+")


def marked_candidates(
    brain: Brain, draft: MemoryDraft, events: Sequence[StmEvent], lines: Mapping[str, str], origins: LinkOrigins
) -> list[Candidate]:
    """Return a candidate for all marked words of events that no earlier run has decided on, oldest first.

    Args:
        brain: The brain.
        draft: The pages that the run changes.
        events: Events of short-term memory, a person's own lines under Key Facts among them.
        lines: The texts of these lines, by event id.
        origins: Resolves the links in an event's text.
    """
    by_id: dict[str, Candidate] = {}
    exchanges = Exchanges(brain)
    for event in events:
        for candidate in _marked_in(brain, draft, event, lines.get(event.id), exchanges, origins):
            # its decision in the journal: the same words of the same exchange are decided once, and a person who took
            # out what was written from them must not get it again
            if not draft.log.is_decided(candidate.id):
                by_id.setdefault(candidate.id, candidate)
    return sorted(by_id.values(), key=lambda candidate: (candidate.at, candidate.id))


def _marked_in(
    brain: Brain, draft: MemoryDraft, event: StmEvent, line: str | None, exchanges: Exchanges, origins: LinkOrigins
) -> Iterator[Candidate]:
    """Yield the marked words of one exchange: by `/remember`, as a note, or a block by a tag, a link or repetition.

    Of several marks on a text the first of these counts. Of others' words only a note is kept: all else marks what the
    person holds dear. A person's own line under Key Facts is marked whole.
    """
    recorded, exchange = exchanges.event(event.id), exchanges.texts_of(event.id)
    if exchange is not None and event.origin == PERSON:  # the log may be older than its labels
        event = replace(event, origin=exchange.prompt.author.origin, by=exchange.prompt.author.by)
    tags = exchange.prompt.tags if exchange else ()
    is_note = recorded is not None and recorded.kind == NoteCaptured.kind
    conversation = conversation_of(brain, str(recorded.data.get("prompt") or "")) if recorded and not is_note else ""

    def marked(text: str, by: str, *same: str) -> Candidate:
        operation = Operation(
            action="same" if same else "new",
            ids=list(same),
            # its links are relative to the file of its event
            text=origins.with_rooted_links(replace(event, user=text, ai="")).user,
            page=_page_for(brain, draft, text, event, tags, conversation),
            marked_by=by,
            tags=list(dict.fromkeys(filter(None, [*tags_in(text), *tags, conversation]))),
        )
        return Candidate(f"{event.id}:{text_hash(text)}", operation, (event,), OFFLINE, event.origin)

    if line is not None:
        yield marked(line, "key-fact")
        return
    # what looks like commands in a text from another program is none
    may_command = event.origin == PERSON and (exchange is None or bool(exchange.prompt.commands))
    commands, body = parse_commands(event.user) if may_command else ((), event.user)
    for text in arguments(commands, "remember"):
        yield marked(text, "command")
    if recorded is not None and is_note:
        yield marked(_as_saved(brain, recorded, body), "note")
        return
    day = brain.day_of(event.at)
    for block in blocks_of(body) if event.origin == PERSON else ():
        # a mark is about its block: a tag in one paragraph does not keep the whole message
        has_tag = tags_in(block) or tags  # those of front matter are about all of it
        if has_tag or wiki_links_in(block):
            yield marked(block, "tag" if has_tag else "link")
        elif len(set(words(block))) >= MIN_WORDS:  # said or stated on another day, with the statement that says it
            told = (hit for hit in other_tellings(brain, block, event.id) if brain.day_of(hit.at) != day)
            if repetitions := [hit for hit in told if likeness(hit.text, block) >= REPEATED]:
                statements = [hit for hit in repetitions if hit.kind == "statement" and hit.anchor]
                yield marked(block, "repetition", *(f"{hit.uuid or hit.path}#{hit.anchor}" for hit in statements[:1]))


def _as_saved(brain: Brain, recorded: Event, noted: str) -> str:
    """Return a note's body byte for byte as it was saved.

    Return `noted`, the body in short-term memory, where the file's text is not kept, or has secrets that are masked
    there.
    """
    for change in recorded.changes:
        if change.path == recorded.data.get("prompt") and change.after:
            with suppress(BlobError, FormatError):
                text = decode_text(brain.committer.text_of(change.after))
                body = text[split(text)[1] :].removeprefix("\ufeff")
                if body.replace("\r\n", "\n").strip() == noted.strip():
                    return body
    return noted


def other_tellings(brain: Brain, text: str, exchange: str) -> list[Hit]:
    """Return what the person has said or written that is nearest to a text, apart from the exchange it is from."""
    return [
        hit
        for hit in near_hits(brain, text, {"exchange", "statement"})
        if hit.origin == PERSON
        and (hit.kind == "statement" or hit.speaker == "user")
        and hit.anchor != exchange
        and brain.tree.kind_of(hit.path) is not PathKind.SOURCE  # a note outside of this brain
    ]


# --- the page of marked words --------------------------------------------------------------------------------------


def _page_for(
    brain: Brain, draft: MemoryDraft, text: str, event: StmEvent, tags: Sequence[str], conversation: str
) -> PageRef:
    """Return the page for marked words.

    Several lines get a page of their own; a heading with numbered steps below it becomes a skill. A single line goes to
    the page of its link or tag, else to the page whose name it holds, else to that of its conversation, else to that of
    its month.
    """
    # a link comes before a tag: it names the page, the tag only the topic
    name = next(iter((*wiki_links_in(text), *tags_in(text), *tags)), "")
    if "\n" in text.strip():
        heading = _HEADING.search(text)
        is_skill = heading is not None and len(_STEP.findall(text, heading.end())) > 1
        first_line = next(line for line in text.split("\n") if line.strip())
        title = " ".join(_MARKS.sub(" ", heading[1] if heading else first_line).split())
        if len(title) > _TITLE_CHARACTERS:
            title = title[:_TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"
        # a skill stands right in `skills/`, which has no folders of topics
        folder = "" if is_skill else name or conversation or NOTES
        kind: Literal["skill", "concrete"] = "skill" if is_skill else "concrete"
        return PageRef(kind=kind, folder=folder, title=title or name, is_whole=True)
    if name:
        return PageRef(title=name)
    pages = draft.memories(is_private=event.is_private)
    names = names_in((page for page in pages if draft.pages.kind_of(page.path) != "events"), [text])
    if path := max(names, key=lambda path: len(names[path]), default=""):
        return PageRef(path=path)
    if conversation:
        return PageRef(title=conversation)
    return PageRef(folder=NOTES, title=brain.day_of(event.at)[:7])
