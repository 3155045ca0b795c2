"""How an overgrown folder is divided: by subject, by tag, by date, by first letter, or at last by name in runs."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import ceil

from brainiac.formats.memory import Memory
from brainiac.tree import slugify

MIN_GROUP = 5  # fewer pages of a kind stay where they are: a folder for two of them is no order
_MAX_NAME = 40

Key = Callable[[Memory], str]


def divide(
    pages: Sequence[Memory], standing: int, limit: int, day_of: Callable[[str], str] | None = None
) -> dict[str, list[str]]:
    """Return the pages to move, by the name of their subfolder; {} when no division brings the folder under the limit.

    Args:
        pages: Those that may move, of one folder.
        standing: How many further entries the folder has.
        limit: The most entries of a folder (`organization.max_entries`).
        day_of: Returns the person's day of a stamp; for a folder in `events/`, where the date comes first.
    """
    ordered = sorted(pages, key=lambda page: page.path)
    keys: list[Key] = [_subject, _tag, _letter]
    for key in [*_dates(day_of), *keys] if day_of else keys:
        groups = _grouped(ordered, key)
        if _is_division(groups, len(pages) + standing, limit):
            return groups
    groups = dict(_runs(ordered, limit)) if ordered else {}
    return groups if _is_division(groups, len(pages) + standing, limit) else {}


def _is_division(groups: dict[str, list[str]], entries: int, limit: int) -> bool:
    """Tell whether groups leave the folder and each subfolder within the limit, with more than one way to go."""
    left = entries - sum(map(len, groups.values())) + len(groups)
    is_apart = len(groups) > 1 or left > len(groups)
    return bool(groups) and is_apart and left <= limit and all(len(paths) <= limit for paths in groups.values())


def _grouped(pages: Sequence[Memory], key: Key) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        if name := key(page):
            groups[name].append(page.path)
    return {name: paths for name, paths in sorted(groups.items()) if len(paths) >= MIN_GROUP}


def _subject(page: Memory) -> str:
    subject = page.meta.get("subject")
    return slugify(subject)[:_MAX_NAME].strip("-") if isinstance(subject, str) and subject != "User" else ""


def _tag(page: Memory) -> str:
    return slugify(page.tags[0])[:_MAX_NAME].strip("-") if page.tags else ""


def _letter(page: Memory) -> str:
    found = re.search(r"[^\W_]", posixpath.basename(page.path))
    return slugify(found[0]) if found else ""


def _dates(day_of: Callable[[str], str]) -> list[Key]:
    """Return the keys by month and by day."""

    def day(page: Memory) -> str:
        found = re.match(r"\d{4}-\d\d-\d\d", day_of(page.created_at))
        return found[0] if found else ""

    return [lambda page: day(page)[:7], day]


def _runs(pages: Sequence[Memory], limit: int) -> Iterator[tuple[str, list[str]]]:
    """Yield equal runs in the order of their names, each named by its first and last page."""
    count = max(2, ceil(len(pages) / max(1, limit // 2)))
    size = ceil(len(pages) / count)
    for start in range(0, len(pages), size):
        run = [page.path for page in pages[start : start + size]]
        first, last = (posixpath.splitext(posixpath.basename(path))[0] for path in (run[0], run[-1]))
        yield f"{slugify(first)[:_MAX_NAME].strip('-')}-to-{slugify(last)[:_MAX_NAME].strip('-')}", run
