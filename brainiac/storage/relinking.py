"""Relative links of what was said, led on to where they led when the text moves to a page (docs/format.md, F-LNK).

While a promotion decides, a link that leads to a file of the brain has its path from the root, `/memory/…`, so that
the same link is the same text from whatever file it comes; on a page it has its path from there.
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
    """Return a text whose links have their paths from the root; one that leads nowhere stays as it is.

    Args:
        store: Whose tree.
        text: As it was written.
        folders: Where the file may stand that it was written in, relative to the root; the first that fits counts.
        places: Paths of pages by uuid, which is the truth of a link that has one.
    """

    def target_of(link: Link) -> str:
        path = (places or {}).get(link.uuid, "")
        if not path and not link.target.startswith("/"):
            named = (posixpath.normpath(posixpath.join(folder, link.target)) for folder in folders)
            path = next((each for each in named if store.tree.holds(each)), "")
        return f"/{path}" if path else ""

    return retarget_links(text, target_of)


def with_links_from(store: Store, text: str, path: str) -> str:
    """Return a rooted text as it stands on a page."""

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
    """Return a page's text with its links leading where the pages they mean are now; all else stays byte for byte.

    Args:
        text: The page's whole text.
        was: Where the page stood when its links were written, relative to the root.
        now: Where it stands, or will.
        moved: Old path to new one, of every file that moved.
        places: Path by uuid, of every page, as they stand now: the uuid is the truth of a link that has one.
        is_standing: Whether a path is there to which a link without uuid may lead from a page that itself moved.
    """

    def target_of(link: Link) -> str:
        led_to = linked_path(link, was)
        leads_to = places.get(link.uuid) or moved.get(led_to, led_to)
        is_known = link.uuid in places or led_to in moved or is_standing(led_to)
        is_stale = leads_to != led_to or posixpath.dirname(was) != posixpath.dirname(now)
        # A path from the root is not ours to turn into a relative one.
        if link.target.startswith("/") or not is_known or not is_stale:
            return ""
        return posixpath.relpath(leads_to, posixpath.dirname(now))

    return retarget_links(text, target_of)


class LinkOrigins:
    """Where the texts of events were written.

    Args:
        store: The brain.
        prompt_of: Returns the path of the prompt of an exchange; "" if unknown.
        places: Paths of pages by uuid.
    """

    def __init__(self, store: Store, prompt_of: Callable[[str], str], places: Mapping[str, str]) -> None:
        self._store, self._prompt_of, self._places = store, prompt_of, places
        self._inbox, self._memory = (store.tree.relative(each) for each in (store.tree.inbox, store.tree.memory))

    def with_rooted_links(self, event: StmEvent) -> StmEvent:
        """Return an event whose links have their paths from the root."""
        if "](" not in event.user and "](" not in event.ai:
            return event
        prompt = self._prompt_of(event.id)
        folders = [posixpath.dirname(prompt), self._memory] if prompt else [self._memory, self._inbox]
        user, ai = (with_rooted_links(self._store, text, folders, self._places) for text in (event.user, event.ai))
        return replace(event, user=user, ai=ai)

    def moved(self, event: StmEvent, path: str) -> StmEvent:
        """Return an event whose links lead from a page to where they led; nothing else of it changes."""
        event = self.with_rooted_links(event)
        return replace(
            event, user=with_links_from(self._store, event.user, path), ai=with_links_from(self._store, event.ai, path)
        )
