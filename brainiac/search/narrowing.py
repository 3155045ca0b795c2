"""What a query's fields let in: parts of memory, tags and days, alike for pages in the index and out of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from brainiac.search.encode import EncodedPage


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The fields of a query that hold for a page as a whole; each must fit.

    Attributes:
        long_term: Where long-term memory lies, relative: a type is a folder below it.
        paths: Parts of a path, any of which it must hold; likewise types: any of them it must be of.
        tags: All of which it must have.
        after: The first day, as an ordinal; before: the first day that is too late.
    """

    long_term: str = ""
    paths: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    after: int | None = None
    before: int | None = None

    def __bool__(self) -> bool:
        return bool(self.paths or self.types or self.tags) or self.after is not None or self.before is not None

    def allows(self, encoded: EncodedPage) -> bool:
        """Return whether a page may hold what is looked for."""
        page = encoded.page
        return self.allows_page(page.path, page.tags, *encoded.days, is_archived=page.is_archived)

    def allows_page(self, path: str, tags: Iterable[str], first: int, last: int, *, is_archived: bool) -> bool:
        """Return likewise, given what is known of a page without reading it.

        Args:
            path: Relative.
            tags: As they stand.
            first: The earliest day of its units; `last`: the latest one.
            is_archived: It was put to rest.
        """
        if self.paths and not any(part.casefold() in path.casefold() for part in self.paths):
            return False
        if self.types and not any(self._is_type(kind, path, is_archived=is_archived) for kind in self.types):
            return False
        if self.tags and not set(self.tags) <= {tag.casefold() for tag in tags}:
            return False
        return (self.after is None or last >= self.after) and (self.before is None or first < self.before)

    def _is_type(self, kind: str, path: str, *, is_archived: bool) -> bool:
        if kind in ("index", "index-page"):
            return path.endswith("/_index.md")
        if kind in ("archive", "archived"):
            return is_archived
        if kind in ("stm", "short-term"):
            return path.endswith("/short_term.md")
        kind = {"event": "events", "skill": "skills"}.get(kind, kind)
        return path.casefold().startswith(f"{self.long_term}/{kind}/".casefold())
