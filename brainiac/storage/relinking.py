"""Rewrites relative links when a text moves from one file to another (docs/format.md, F-LNK).

While a promotion decides, links to files of the brain are paths from the root, `/memory/…`, so that the same link is
the same text whatever file it comes from; on a page they are relative to the page.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from brainiac.formats.markdown import Link, retarget_links
from brainiac.formats.short_term import StmEvent
from brainiac.storage.pages import linked_path
from brainiac.storage.store import Store


def with_rooted_links(store: Store, text: str, folders: Sequence[str], places: Mapping[str, str] | None = None) -> str:
    """Return a text with its links as paths from the root; a link to no existing file stays as it is.

    Args:
        store: Whose tree.
        text: With relative links.
        folders: Folders (from the root) to which its links may be relative; the first one with the file counts.
        places: Paths of pages by uuid; a link with a uuid means that page, whatever its path says.
    """

    def target_of(link: Link) -> str:
        path = (places or {}).get(link.uuid, "")
        if not path and not link.target.startswith("/"):
            candidates = (posixpath.normpath(posixpath.join(folder, link.target)) for folder in folders)
            path = next((path for path in candidates if store.tree.holds(path)), "")
        return f"/{path}" if path else ""

    return retarget_links(text, target_of)


def with_links_from(store: Store, text: str, path: str) -> str:
    """Return a text whose links are paths from the root with the links made relative to a page at `path`."""

    def target_of(link: Link) -> str:
        target = link.target.removeprefix("/")
        if target == link.target or not store.tree.holds(target):
            return ""
        return posixpath.relpath(target, posixpath.dirname(path))

    return retarget_links(text, target_of)


def with_repaired_links(
    text: str,
    *,
    was: str,
    now: str,
    moved: Mapping[str, str],
    places: Mapping[str, str],
    is_standing: Callable[[str], bool] = lambda path: False,
) -> str:
    """Return a page's text with links to moved pages repaired; everything else stays byte for byte.

    Args:
        text: The page's whole text.
        was: Where the page stood when its links were written, relative to the root.
        now: Where it stands, or will.
        moved: Old path to new one, of every file that moved.
        places: Present path by uuid, of every page; a link with a uuid means that page, whatever its path says.
        is_standing: Whether there is a file at a path; asked for a link without uuid on a page that itself moved.
    """

    def target_of(link: Link) -> str:
        old_target = linked_path(link, was)
        target = places.get(link.uuid) or moved.get(old_target, old_target)
        is_known = link.uuid in places or old_target in moved or is_standing(old_target)
        is_stale = target != old_target or posixpath.dirname(was) != posixpath.dirname(now)
        # a person who wrote a path from the root meant it so
        if link.target.startswith("/") or not is_known or not is_stale:
            return ""
        return posixpath.relpath(target, posixpath.dirname(now))

    return retarget_links(text, target_of)


class LinkOrigins:
    """Rewrites the links of events, which are relative to the prompt or to short-term memory they were written in.

    Args:
        store: The brain.
        prompt_of: Returns the path of the prompt of an exchange; "" if unknown.
        places: Paths of pages by uuid.
    """

    def __init__(self, store: Store, prompt_of: Callable[[str], str], places: Mapping[str, str]) -> None:
        self._store, self._prompt_of, self._places = store, prompt_of, places
        self._inbox, self._memory = (store.tree.relative(each) for each in (store.tree.inbox, store.tree.memory))

    def with_rooted_links(self, event: StmEvent) -> StmEvent:
        """Return an event with its links as paths from the root."""
        if "](" not in event.user and "](" not in event.ai:
            return event
        prompt = self._prompt_of(event.id)
        folders = [posixpath.dirname(prompt), self._memory] if prompt else [self._memory, self._inbox]
        user, ai = (with_rooted_links(self._store, text, folders, self._places) for text in (event.user, event.ai))
        return replace(event, user=user, ai=ai)

    def moved(self, event: StmEvent, path: str) -> StmEvent:
        """Return an event with its links made relative to the page at `path`, to which it moves."""
        event = self.with_rooted_links(event)
        return replace(
            event, user=with_links_from(self._store, event.user, path), ai=with_links_from(self._store, event.ai, path)
        )
