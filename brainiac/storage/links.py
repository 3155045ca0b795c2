"""Links that the program writes: relative links in a text that moves (docs/format.md, F-LNK), and a page's `mentions`.

While a promotion decides, links to files of the brain are paths from the root, `/memory/…`, so that the same link is
the same text whatever file it comes from; on a page they are relative to the page.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from brainiac.formats.markdown import Link, retarget_links, without_link_targets
from brainiac.formats.page import Memory, is_private_note
from brainiac.formats.short_term import StmEvent
from brainiac.storage.pages import linked_path
from brainiac.storage.store import Store


def with_rooted_links(store: Store, text: str, folders: Sequence[str], places: Mapping[str, str] | None = None) -> str:
    """Return a text in which relative links are replaced by paths from the root (`/memory/…`).

    A link to no existing file stays as it is.

    Args:
        store: Of the brain.
        text: With relative links.
        folders: Folders (from the root) to which its links may be relative; the first one with the file counts.
        places: Paths of pages by uuid; a link with a uuid leads to that page, whatever its path says.
    """

    def target_of(link: Link) -> str:
        """Return the path from the root that a link leads to; "" to leave it as it is."""
        path = (places or {}).get(link.uuid, "")
        if not path and not link.target.startswith("/"):
            candidates = (posixpath.normpath(posixpath.join(folder, link.target)) for folder in folders)
            path = next((path for path in candidates if store.tree.holds(path)), "")
        return f"/{path}" if path else ""

    return retarget_links(text, target_of)


def with_links_from(store: Store, text: str, path: str) -> str:
    """Return a text in which links that are paths from the root (`/memory/…`) are replaced by links for a page.

    Args:
        store: Of the brain.
        text: From `with_rooted_links`.
        path: Of the page, to whose folder the links are made relative.
    """

    def target_of(link: Link) -> str:
        """Return a link's target relative to the page; "" to leave it as it is."""
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
    is_hidden: Callable[[str], bool] = lambda path: False,
) -> str:
    """Return a page's text with links repaired after pages moved, this one or others; all else stays byte for byte.

    Args:
        text: The page's whole text.
        was: Path of the page when its links were written, relative to the root.
        now: Its present or future path.
        moved: Old path to new one, of every file that moved.
        places: Present path by uuid, of every page; a link with a uuid leads to that page, whatever its path says.
        is_standing: Whether there is a file at a path; asked for a link without uuid to a file that did not move.
        is_hidden: Whether a path is private: an open page is not told that it is, and keeps its link as it is.
    """
    is_open = not is_private_note(text)

    def target_of(link: Link) -> str:
        """Return the new target of a link; "" to leave it as it is."""
        if link.target.startswith("/"):  # a person who wrote a path from the root meant it so
            return ""
        old_target = linked_path(link, was)
        target = places.get(link.uuid) or moved.get(old_target, old_target)
        if is_open and is_hidden(target):
            return ""
        if target == old_target and posixpath.dirname(was) == posixpath.dirname(now):
            return ""
        is_known = link.uuid in places or old_target in moved or is_standing(old_target)
        return posixpath.relpath(target, posixpath.dirname(now)) if is_known else ""

    return retarget_links(text, target_of)


class LinkOrigins:
    """Rewrites the links in events; they are relative to the file they were written in: a prompt or short-term memory.

    Args:
        store: Of the brain.
        prompt_of: Returns the path of the prompt of an exchange; "" if unknown.
        places: Paths of pages by uuid.
    """

    def __init__(self, store: Store, prompt_of: Callable[[str], str], places: Mapping[str, str]) -> None:
        self._store, self._prompt_of, self._places = store, prompt_of, places
        self._inbox, self._memory = store.tree.relative(store.tree.inbox), store.tree.relative(store.tree.memory)

    def with_rooted_links(self, event: StmEvent) -> StmEvent:
        """Return an event in which relative links are replaced by paths from the root (`/memory/…`)."""
        if "](" not in event.user and "](" not in event.ai:
            return event
        prompt = self._prompt_of(event.id)
        # a person may have written links into the event itself, which is in short-term memory
        folders = [posixpath.dirname(prompt), self._memory] if prompt else [self._memory, self._inbox]
        user, ai = (with_rooted_links(self._store, text, folders, self._places) for text in (event.user, event.ai))
        return replace(event, user=user, ai=ai)

    def moved(self, event: StmEvent, path: str) -> StmEvent:
        """Return an event with its links made relative to a page, to which the event moves."""
        event = self.with_rooted_links(event)
        return replace(
            event, user=with_links_from(self._store, event.user, path), ai=with_links_from(self._store, event.ai, path)
        )


# --- the `mentions` in a page's front matter ------------------------------------------------------------------------

# Links to the pages whose titles appear in a page's text, for Obsidian's graph. They are derived: made anew from the
# text and from the titles of all pages whenever a page is written.

MENTIONS = "mentions"
MAX_MENTIONS = 12
_WORD = re.compile(r"\w+")
_OURS = re.compile(r"\[\[[^|\]]+\|(?P<title>[^\]]+)\]\]")  # the form that the program writes, `[[page|title]]`
_FOLDERS = ("concrete", "skills")  # the titles of event pages are days, which most texts name


class Mentions:
    """Finds the pages whose titles appear in another page's text.

    Args:
        pages: All pages that may be mentioned; a private one is mentioned by private pages only.
        root: The folder of long-term memory, relative.
    """

    def __init__(self, pages: Iterable[Memory], root: str) -> None:
        folders = tuple(f"{root}/{folder}/" for folder in _FOLDERS)
        targets = [page for page in pages if page.path.startswith(folders)]
        file_names = Counter(posixpath.basename(page.path).casefold() for page in targets)
        # the pages with a title, and the links to them, by the title's words
        self._targets: dict[tuple[str, ...], list[tuple[Memory, str]]] = defaultdict(list)
        # how many words the titles have that begin with a word
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for page in targets:
            words = tuple(_WORD.findall(page.title))
            if words and len(page.title) > 1 and "|" not in page.title and "]" not in page.title:
                name = page.path.removesuffix(".md")
                is_unique = file_names[posixpath.basename(page.path).casefold()] == 1
                link = f"[[{posixpath.basename(name) if is_unique else name}|{page.title}]]"
                self._targets[words].append((page, link))
                self._lengths[words[0]].add(len(words))

    def of(self, page: Memory) -> list[str]:
        """Return wiki links to the pages whose titles appear in a page's text, in the order of the text, at most 12."""
        return list(dict.fromkeys(link for _, link in self.in_text(page, page.body)))[:MAX_MENTIONS]

    def in_text(self, page: Memory, text: str) -> Iterator[tuple[Memory, str]]:
        """Yield the pages whose titles appear in a text of a page, and the wiki links to them, in its order."""
        words = _WORD.findall(without_link_targets(text))
        for position, word in enumerate(words):
            for length in sorted(self._lengths.get(word, ())):
                for target, link in self._targets.get(tuple(words[position : position + length]), ()):
                    is_too_private = target.is_off_record or (target.is_private and not page.is_private)
                    if target.path != page.path and not is_too_private:
                        yield target, link

    def renewed(self, page: Memory) -> list[str] | None:
        """Return the list to write as a page's `mentions`; None where the page has it already.

        Links that a person added to the list stay in it. A value that is no list is a person's: None too.
        """
        present = page.meta.get(MENTIONS, [])
        if not isinstance(present, list):
            return None
        by_person = [link for link in map(str, present) if not _OURS.fullmatch(link)]
        links = [*by_person, *self.of(page)]
        return links if links != present else None


def still_named(page: Memory) -> list[str]:
    """Return a page's `mentions` without the links `[[page|title]]` of the program whose title is not in the text.

    Args:
        page: A page whose `mentions` are a list.
    """
    body = without_link_targets(page.body)
    links = map(str, page.meta[MENTIONS])
    return [link for link in links if not (match := _OURS.fullmatch(link)) or match["title"] in body]
