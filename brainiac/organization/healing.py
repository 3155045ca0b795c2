"""Links follow the pages they lead to: the uuid is the truth, a path without one follows what is known to have moved."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Mapping

from brainiac.notes.links import Link, find_links, rewrite_link


def healed(
    text: str, *, was: str, now: str, moved: Mapping[str, str], places: Mapping[str, str], standing: Container[str] = ()
) -> str:
    """Return a page's text with its links leading where the pages they mean are now; all else stays byte for byte.

    Args:
        text: The page's whole text.
        was: Where the page stood when its links were written, relative to the root.
        now: Where it stands, or will.
        moved: Old path to new one, of every file that moved.
        places: Path by uuid, of every page, as they stand now.
        standing: Paths of other files, to which a link without uuid may lead from a page that itself moved.
    """
    for link in reversed(find_links(text)):
        if link.is_wiki or link.is_external or not link.target or link.target.startswith("/"):
            continue
        led_to = meant_path(link, was)
        leads_to = places.get(link.uuid) or moved.get(led_to, led_to)
        is_known = link.uuid in places or led_to in moved or led_to in standing
        if is_known and (leads_to != led_to or posixpath.dirname(was) != posixpath.dirname(now)):
            text = rewrite_link(text, link, posixpath.relpath(leads_to, posixpath.dirname(now)))
    return text


def meant_path(link: Link, page: str) -> str:
    """Return the path that a link on a page leads to, relative to the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link.target))
