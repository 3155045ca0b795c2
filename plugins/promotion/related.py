"""The statements a candidate is compared with: those that share its words, and its subject's page."""

from __future__ import annotations

from dataclasses import dataclass

from brainiac.formats.dialogue import PRIVATE
from brainiac.formats.memory import Statement
from brainiac.llm.schemas import Existing
from brainiac.storage.statements import StatementLog, text_hash

from .draft import Draft, PageInfo
from .finding import Found
from .lookup import Lookup

MAX_RELATED = 24
LOOKED_UP = 40


@dataclass(frozen=True, slots=True)
class Known:
    """A statement that stands in memory.

    Attributes:
        id: `<page uuid>#<block id>`, or `<page uuid>#~<hash>` where a person wrote it without a block id.
        path: Of its page.
        page: The page's uuid, or its path for want of one.
        statement: As it stands by now.
        is_ours: A process wrote it so.
        is_private: It must not leave this machine.
        text: What it says, its links by their paths from the root (`relinking`).
        since: The date it was said, if a journal tells.
    """

    id: str
    path: str
    page: str
    title: str
    statement: Statement
    is_ours: bool
    is_private: bool
    text: str
    since: str = ""

    @property
    def existing(self) -> Existing:
        """As a model is shown it."""
        return Existing(self.id, self.text, self.title, self.since)


def related(lookup: Lookup, draft: Draft, past: StatementLog, found: Found) -> list[Known]:
    """Return the statements that may have to do with a candidate, nearest first.

    A private candidate is compared with private pages, any other with the others; a private wish to forget with all.
    """
    catalogue, candidate = draft.catalogue, found.candidate
    near: dict[tuple[str, str], int] = {}
    for path, text in lookup.nearest(candidate.statement, LOOKED_UP):
        near.setdefault((path, text), len(near))
    paths = dict.fromkeys(path for path, _ in near)
    if page := catalogue.of_subject(candidate.subject, is_private=found.is_private):
        paths.setdefault(page.path)  # all that is known of it
    pages = (catalogue.by_path.get(path) for path in paths)
    known = [
        statement
        for info in pages
        if info and (info.is_private == found.is_private or (found.is_private and candidate.is_forget))
        for statement in statements_of(draft, past, info)
        if statement.statement.section != "Steps"  # a how-to changes as a whole
        and ((info.path, statement.statement.text) in near or (page and info.path == page.path))
    ]
    return sorted(known, key=lambda one: near.get((one.path, one.statement.text), LOOKED_UP))[:MAX_RELATED]


def statements_of(draft: Draft, past: StatementLog, info: PageInfo) -> list[Known]:
    """Return the statements of a page that hold."""
    page = info.uuid or info.path
    return [
        Known(
            id=f"{page}#{one.block_id or '~' + text_hash(one.text)[:8]}",
            path=info.path,
            page=page,
            title=info.title,
            statement=one,
            is_ours=past.is_ours(page, one),
            is_private=info.is_private or PRIVATE.search(one.text) is not None,
            text=draft.rooted(one.text, info.path),
            since=past.since_of(page, one),
        )
        for one in draft.current(info.path)
    ]
