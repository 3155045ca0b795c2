"""The statements a candidate is compared with: those that share its words, and its subject's page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from brainiac.integration.relevance import MODERATE, score
from brainiac.language.sentences import content_stems
from brainiac.llm.schemas import Existing
from brainiac.notes.dialogue import PRIVATE
from brainiac.promotion.past import text_hash

if TYPE_CHECKING:
    from brainiac.notes.memory import Statement
    from brainiac.promotion.draft import Draft, PageInfo
    from brainiac.promotion.finding import Found
    from brainiac.promotion.lookup import Lookup
    from brainiac.promotion.past import Past

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


def related(lookup: Lookup, draft: Draft, past: Past, found: Found) -> list[Known]:
    """Return the statements that may have to do with a candidate, nearest first.

    A private candidate is compared with private pages, any other with the others; a request to forget also with what
    it names on the other side.
    """
    catalogue, candidate = draft.catalogue, found.candidate
    wanted: dict[str, set[str] | None] = {}
    for path, text in lookup.nearest(candidate.statement, LOOKED_UP):
        wanted.setdefault(path, set()).add(text)  # type: ignore[union-attr]  # no path has None yet
    if page := catalogue.of_subject(candidate.subject, is_private=found.is_private):
        wanted[page.path] = None  # all that is known of it
    known = []
    for path, texts in wanted.items():
        info = catalogue.by_path.get(path)
        if info and (candidate.is_forget or info.is_private == found.is_private):
            near = [one for one in statements_of(draft, past, info) if texts is None or one.statement.text in texts]
            known += [one for one in near if info.is_private == found.is_private or is_named(found, one)]
    known = [one for one in known if one.statement.section != "Steps"]  # a how-to changes as a whole
    return _nearest(candidate.statement, known)[:MAX_RELATED]


def is_named(found: Found, known: Known) -> bool:
    """Tell whether a request to forget has a word of a statement or of its page's title."""
    asked = content_stems(f"{found.candidate.statement}\n{found.message}")
    return not set(asked).isdisjoint(content_stems(f"{known.statement.text} {known.title}"))


def _nearest(candidate: str, known: Sequence[Known]) -> list[Known]:
    """Order statements by relevance; what merely shares a person comes after what shares rare words."""
    wanted = _stems(candidate)
    frequency = Counter(stem for one in known for stem in _stems(one.text))

    def nearness(one: Known) -> tuple[float, float]:
        relevance = score(candidate, one.text).score
        shared = sum(1 / frequency[stem] for stem in wanted & _stems(one.text))
        return (relevance if relevance >= MODERATE else 0.0), shared + relevance

    return sorted(known, key=nearness, reverse=True)


@lru_cache(maxsize=8192)
def _stems(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))


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
            is_private=info.is_private or PRIVATE.search(one.text) is not None,
            text=draft.rooted(one.text, info.path),
            since=past.since_of(page, one),
        )
        for one in draft.current(info.path)
    ]
