"""`_index.md`: what a long-term folder is about, what it holds, what it relates to (docs/format.md, F-IDX)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from brainiac.formats import markdown
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import check_markers
from brainiac.formats.page import PageDocument, first_keys, title_of

MANIFEST, RELATED = "Manifest", "Related Memories"
SAYS_NOTHING = "What was said and what happened "  # on a day or in a month: what older versions wrote

_TITLE = re.compile(r"^# [^\n]*(?:\n|\Z)", re.MULTILINE)
_ENTRY = re.compile(r"^- (\[[^\n]*?\)\s*?)(?: — ([^\n]*?))?[ \t]*\r?(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A file or subfolder in the manifest.

    Attributes:
        path: Relative to the folder; of a subfolder its `_index.md`.
        summary: One line; may be empty.
    """

    title: str
    path: str
    uuid: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class IndexPage:
    """An `_index.md`.

    Attributes:
        path: Relative, posix.
        summary: The text between the title and the first section.
        manifest: Entries in the order of the page.
        related: Links under Related Memories.
        meta: The front matter as it was read.
    """

    path: str
    uuid: str
    title: str
    summary: str
    manifest: tuple[IndexEntry, ...]
    related: tuple[markdown.Link, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """What the folder is about: its summary, or what its entries quote where it has none or says only the day."""
        if self.summary and not self.summary.startswith(SAYS_NOTHING):
            return self.summary
        return " ".join(entry.summary for entry in self.manifest if entry.summary)


def parse_index(path: str, text: str) -> IndexPage:
    """Read an index page.

    Raises:
        FormatError: The front matter is broken.
    """
    return IndexDocument(text, path).page


class IndexDocument(PageDocument):
    """An index page that operations change section by section.

    Args:
        text: The present file.
        path: Relative, posix.

    Raises:
        FormatError: The front matter is broken, or the page has conflict markers.
    """

    def __init__(self, text: str, path: str = "") -> None:
        check_markers(path, text)
        super().__init__(text, path)

    @cached_property
    def page(self) -> IndexPage:
        """The page, parsed."""
        manifest, related = (
            self._text[slice(*section)] if (section := self._section(name)) else "" for name in (MANIFEST, RELATED)
        )
        entries = []
        for match in _ENTRY.finditer(manifest):  # other lines are a person's
            links = markdown.find_links(match[1])
            if links and not links[0].is_wiki:
                entries.append(
                    IndexEntry(links[0].text, links[0].target, links[0].uuid, markdown.unescape(match[2] or ""))
                )
        return IndexPage(
            path=self._path,
            uuid=str(self._meta.get("uuid") or ""),
            title=title_of(self._meta, self._text, self._offset, self._path),
            summary=markdown.parse_prose(self._text[slice(*self._summary)]),
            manifest=tuple(entries),
            related=tuple(markdown.find_links(related)),
            meta=self._meta,
        )

    @property
    def _summary(self) -> tuple[int, int]:
        """Start and end of the summary: from the title to the first section."""
        title = _TITLE.search(self._text, self._offset)
        start = title.end() if title else self._offset
        return start, self._section_end(start)

    def with_manifest(self, entries: Iterable[IndexEntry]) -> IndexDocument:
        """Replace the manifest's entries; they are sorted, and lines that a person added to the section stay."""
        lines = ""
        for entry in sorted(entries, key=lambda entry: (entry.path, entry.uuid)):
            summary = markdown.one_line(entry.summary)
            lines += (
                f"- {markdown.format_link(entry.title, entry.path, entry.uuid)}{f' — {summary}' if summary else ''}\n"
            )
        section = self._section(MANIFEST)
        if section is None:
            return self._in_section(MANIFEST, lines, before=RELATED)
        start, end = section
        # lines that are no entries are a person's remarks: they stay, below the entries
        remarks = _ENTRY.sub("", self._text[start:end]).replace("\r\n", "\n").strip("\n")
        content = lines + (f"\n{remarks}\n" if remarks.strip() else "")
        gap = "\n" if end < len(self._text) else ""
        return self._with(markdown.splice(self._text, start, content + gap, end))

    def with_summary(self, summary: str) -> IndexDocument:
        """Replace the text between the title and the first section."""
        start, end = self._summary
        # unchanged bytes, so that no commit is made for the same summary
        if markdown.parse_prose(self._text[start:end]) == summary.strip():
            return self
        gap = "\n" if end < len(self._text) else ""
        return self._with(markdown.splice(self._text, start, f"\n{markdown.render_prose(summary)}\n{gap}", end))

    def with_related(self, title: str, path: str, uuid: str, reason: str = "") -> IndexDocument:
        """Add a link under Related Memories; a uuid that is linked there already is not added again."""
        if any(link.uuid == uuid for link in self.page.related):
            return self
        line = f"- {markdown.format_link(title, path, uuid)}{f' — {markdown.one_line(reason)}' if reason else ''}\n"
        return self._in_section(RELATED, line)


def new_index(title: str, *, uuid: str, now: str, summary: str = "") -> str:
    """Return the text of a new index page with an empty manifest.

    Args:
        title: Becomes the heading.
        uuid: A new one.
        now: ISO 8601 UTC.
        summary: What the folder is about.
    """
    meta = {"type": "index"} | first_keys(uuid, now)
    prose = markdown.render_prose(summary)
    paragraph = f"\n{prose}\n" if prose else ""
    return f"{render_meta(meta)}\n# {markdown.one_line(title)}\n{paragraph}\n## {MANIFEST}\n\n## {RELATED}\n"
