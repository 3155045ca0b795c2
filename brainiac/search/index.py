"""The one interface behind which an index works; ranking knows nothing of the engine.

An index keeps encoded pages by path and answers with those that are worth ranking. The embedded one is the
default; any other that passes `brainiac.search.conformance` can be registered by the hook `register_indexes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from brainiac.errors import BrainiacError
from brainiac.search.encode import EncodedPage
from brainiac.search.narrowing import Narrowing
from brainiac.search.units import Link


class UnusableIndexError(BrainiacError):
    """The index is damaged, of another version, or made for another language: it must be built anew."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an index is asked for.

    Attributes:
        terms: Stems, and marks such as `#tag`, `@2023-05`, `=title`: any of them must stand in a passage.
        limit: Look at most at so many passages.
        required: Terms and marks that must stand in the passage, all of them.
        variants: Other terms that may stand in the stead of one: which one, and how like it they are, 0 to 1.
        narrowing: Which pages are looked at; None for all.
    """

    terms: Sequence[str]
    limit: int
    required: Sequence[str] = ()
    variants: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    narrowing: Narrowing | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an index answers.

    Attributes:
        pages: Worth ranking, most promising first.
        frequencies: In how many passages each asked term stands.
        n_passages: How many passages there are.
    """

    pages: Sequence[EncodedPage]
    frequencies: Mapping[str, int] = field(default_factory=dict)
    n_passages: int = 0


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """A page as the link graph sees it."""

    path: str
    uuid: str
    title: str
    at: str
    links: tuple[Link, ...]


@runtime_checkable
class Index(Protocol):
    """Keep encoded pages and find candidates.

    One thread at a time reads, and one at a time writes; they may do so at once. Any method may raise
    `UnusableIndexError`: the index is then thrown away and built anew.
    """

    def is_writable(self) -> bool:
        """Tell whether this process may write; another one may be doing so."""

    def replace(self, pages: Iterable[EncodedPage]) -> None:
        """Add pages, each in place of what stood under its path; seen by queries after `commit`."""

    def remove(self, paths: Iterable[str]) -> None:
        """Take pages out; an unknown path is no error; seen by queries after `commit`."""

    def commit(self) -> None:
        """Make what was given durable, whole or not at all, and visible."""

    def query(self, asked: Asked) -> Candidates:
        """Return the pages that are worth ranking; where no terms are asked for, the newest that are allowed."""

    def add_words(self, words: Iterable[tuple[str, str]]) -> None:
        """Keep words of the pages with their stems; those that are kept already are passed over."""

    def words(self) -> Iterable[tuple[str, str]]:
        """Yield every word that is kept, with its stem."""

    def pages(self, targets: Iterable[str]) -> list[EncodedPage]:
        """Return pages by path or uuid; unknown ones are left out."""

    def stamps(self) -> Mapping[str, tuple[int, int]]:
        """Return modification time and size of every page as it was when indexed, by path."""

    def contents(self) -> Iterable[tuple[str, bytes]]:
        """Yield the path of every page with its units' content hashes."""

    def inbound(self, targets: Sequence[str]) -> Mapping[str, int]:
        """Return how many links lead to each uuid or path; those without any may be left out."""

    def linked(self) -> Iterable[LinkedPage]:
        """Yield every page with its links, for the link graph."""

    def status(self) -> dict[str, Any]:
        """Return `engine`, `pages`, `bytes` and what else is worth knowing, as plain values."""

    def close(self) -> None:
        """Let go of files; what was not committed is dropped."""


class FormerIndex:
    """A registered index of the first interface: `query(terms, limit, *, required=())`, no words of its own.

    It serves as before; compounds and slips of the pen are met in what is new since the start alone.
    """

    def __init__(self, index: Any) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def query(self, asked: Asked) -> Candidates:
        """Return the pages that are worth ranking; whoever asks leaves out those that the fields forbid."""
        found: Candidates = self._index.query([*asked.terms, *asked.variants], asked.limit, required=asked.required)
        return found

    def add_words(self, words: Iterable[tuple[str, str]]) -> None:
        """Keep nothing."""

    def words(self) -> Iterable[tuple[str, str]]:
        """Return nothing."""
        return ()


def as_index(index: Any) -> Index:
    """Return a registered index as the present interface has it."""
    return index if hasattr(index, "add_words") else FormerIndex(index)
