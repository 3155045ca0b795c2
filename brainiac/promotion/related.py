"""The statements a candidate is compared with: what recall finds, its subject's page, what this run wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainiac.integration.relevance import score
from brainiac.llm.schemas import Existing
from brainiac.promotion.past import text_hash
from brainiac.recall.hit import HitKind

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.notes.memory import Statement
    from brainiac.promotion.draft import Draft, PageInfo
    from brainiac.promotion.finding import Found
    from brainiac.promotion.past import Past

MAX_RELATED = 24
HITS = 16
_STATEMENTS: tuple[HitKind, ...] = ("statement",)


@dataclass(frozen=True, slots=True)
class Known:
    """A statement that stands in memory.

    Attributes:
        id: `<page uuid>#<block id>`, or `<page uuid>#~<hash>` where a person wrote it without a block id.
        path: Of its page.
        page: The page's uuid, or its path for want of one.
        statement: As it stands by now.
        is_ours: A process wrote it so.
        since: The date it was said, if a journal tells.
    """

    id: str
    path: str
    page: str
    title: str
    statement: Statement
    is_ours: bool
    since: str = ""

    @property
    def existing(self) -> Existing:
        """As a model is shown it."""
        return Existing(self.id, self.statement.text, self.title, self.since)


def related(brain: Brain, draft: Draft, past: Past, found: Found) -> list[Known]:
    """Return the statements that may have to do with a candidate, nearest first.

    A private candidate is compared with private pages, any other with the others; a request to forget with all.
    """
    catalogue, candidate = draft.catalogue, found.candidate
    paths: dict[str, None] = {}
    for hit in brain.recall.search(candidate.statement, limit=HITS, kinds=_STATEMENTS, now=brain.clock.now()):
        paths[hit.path] = None
    if page := catalogue.of_subject(candidate.subject, is_private=found.is_private):
        paths[page.path] = None
    paths.update(dict.fromkeys(draft.pages))
    pages = [info for path in paths if (info := catalogue.by_path.get(path))]
    allowed = [info for info in pages if candidate.is_forget or info.is_private == found.is_private]
    known = [one for info in allowed for one in statements_of(draft, past, info)]
    if candidate.kind == "skill":
        known = [one for one in known if one.statement.section != "Steps"]
    ranked = sorted(known, key=lambda one: -_nearness(candidate.statement, one.statement.text))
    return ranked[:MAX_RELATED]


def statements_of(draft: Draft, past: Past, info: PageInfo) -> list[Known]:
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
            since=past.since_of(page, one),
        )
        for one in draft.current(info.path)
    ]


def _nearness(candidate: str, existing: str) -> float:
    relevance = score(candidate, existing)
    return relevance.score
