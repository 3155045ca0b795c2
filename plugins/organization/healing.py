"""Links follow the pages they lead to: the uuid is the truth; without one, what is known to have moved."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from brainiac.brain import Brain
from brainiac.events import Change, Event, LinksHealed, update
from brainiac.formats.frontmatter import split
from brainiac.formats.links import Link, find_links, rewrite_link
from brainiac.search.units import Link as Target

from .catalog import Catalog
from .past import Past


def healed(
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
        places: Path by uuid, of every page, as they stand now.
        is_standing: Tells it of a path to which a link without uuid may lead from a page that itself moved.
    """
    for link in reversed(find_links(text)):
        if link.is_wiki or link.is_external or not link.target or link.target.startswith("/"):
            continue
        led_to = meant_path(link, was)
        leads_to = places.get(link.uuid) or moved.get(led_to, led_to)
        is_known = link.uuid in places or led_to in moved or is_standing(led_to)
        if is_known and (leads_to != led_to or posixpath.dirname(was) != posixpath.dirname(now)):
            text = rewrite_link(text, link, posixpath.relpath(leads_to, posixpath.dirname(now)))
    return text


def meant_path(link: Link, page: str) -> str:
    """Return the path that a link on a page leads to, relative to the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link.target))


def heal_all(brain: Brain, catalog: Catalog, past: Past) -> Event | None:
    """Let every link follow the page its uuid names, in one commit; pages that a person is at are left for later.

    Args:
        brain: The brain.
        catalog: The pages as they stand.
        past: Tells when a person last was at a page.

    Returns:
        The event; None when every link leads where it should.
    """
    now = brain.clock.now()
    changes = []
    for path, before in catalog.texts.items():
        after = healed(before, was=path, now=path, moved={}, places=catalog.place_of)
        if after != before and past.is_resting(path, now):
            changes.append(update(path, before, after))
    return _commit(brain, changes, {})


def heal_move(brain: Brain, old: str, new: str) -> Event | None:
    """Heal the links to a page that a person moved, and its own, as quickly as the index tells who links to it.

    Args:
        brain: The brain.
        old: Where it was.
        new: Where it is.
    """
    text = brain.read_text(new)
    if text is None:
        return None
    graph = brain.recall.links
    uuid = split(text, new)[0].get("uuid")
    moved, places = {old: new}, {str(uuid): new} if uuid else {}
    named = {link.uuid: graph.resolve(Target(link.uuid, "")) for link in find_links(text) if link.uuid}
    own = {name: path for name, path in named.items() if path} | places
    changes = []
    above = posixpath.dirname(old)
    manifests = {f"{above}/_index.md", f"{posixpath.dirname(above)}/_index.md"}  # their links are no part of the graph
    for path in sorted({new, *manifests, *graph.sources_of(str(uuid or ""), new, old)}):
        before = brain.read_text(path)
        if before is None:
            continue
        was, known = (old, own) if path == new else (path, places)
        after = healed(before, was=was, now=path, moved=moved, places=known, is_standing=brain.tree.holds)
        if after != before:
            changes.append(update(path, before, after))
    return _commit(brain, changes, {"moved": moved})


def _commit(brain: Brain, changes: list[Change], data: Mapping[str, object]) -> Event | None:
    return brain.commit(LinksHealed.kind, by="organization", changes=changes, data=data) if changes else None
