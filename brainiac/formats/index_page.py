"""`_index.md`: what a long-term folder is about, what it holds, what it relates to (docs/format.md, F-IDX)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from brainiac.formats.frontmatter import edit_meta, render_meta, split
from brainiac.formats.markdown import (
    Link,
    end_of_content,
    find_links,
    format_link,
    one_line,
    parse_prose,
    render_prose,
    splice,
    unescape,
)
from brainiac.formats.markers import check_markers
from brainiac.formats.page import first_keys, title_of

MANIFEST, RELATED = "Manifest", "Related Memories"
SAYS_NOTHING = "What was said and what happened "  # on a day or in a month: what older versions wrote

_HEADING = re.compile(r"^#{1,2} ", re.MULTILINE)
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
    related: tuple[Link, ...]
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


class IndexDocument:
    """An index page as a text that operations change section by section; immutable, `str(document)` is the file.

    Args:
        text: The present file.
        path: Relative, posix.

    Raises:
        FormatError: The front matter is broken.
    """

    def __init__(self, text: str, path: str = "") -> None:
        check_markers(path, text)
        self._text, self._path = text, path
        self._meta, self._offset = split(text, path)

    def __str__(self) -> str:
        return self._text

    def _with_text(self, text: str) -> IndexDocument:
        return IndexDocument(text, self._path)

    @cached_property
    def page(self) -> IndexPage:
        """The page, parsed."""
        return IndexPage(
            path=self._path,
            uuid=str(self._meta.get("uuid") or ""),
            title=title_of(self._meta, self._text, self._offset, self._path),
            summary=parse_prose(self._text[slice(*self._summary_span())]),
            manifest=tuple(_entries(self._section(MANIFEST))),
            related=tuple(find_links(self._section(RELATED))),
            meta=self._meta,
        )

    def _section(self, name: str) -> str:
        """Return the content of a `##` section; "" where there is no such section."""
        span = self._section_span(name)
        return self._text[slice(*span)] if span else ""

    def _section_span(self, name: str) -> tuple[int, int] | None:
        """Return start and end of a `##` section's content; None where there is no such section."""
        heading = self._heading(name)
        return (heading.end(), self._end(heading.end())) if heading else None

    def _heading(self, name: str) -> re.Match[str] | None:
        """Return the match of a `##` section's heading with its line end; None where there is no such section."""
        return re.compile(rf"^## +{name}[ \t]*\r?(?:\n|\Z)", re.MULTILINE).search(self._text, self._offset)

    def _summary_span(self) -> tuple[int, int]:
        """Return start and end of the summary: from the title to the first section."""
        title = _TITLE.search(self._text, self._offset)
        start = title.end() if title else self._offset
        return start, self._end(start)

    def _end(self, start: int) -> int:
        """Return the offset of the next `#` or `##` heading, or the end of the text."""
        match = _HEADING.search(self._text, start)
        return match.start() if match else len(self._text)

    def with_manifest(self, entries: Iterable[IndexEntry]) -> IndexDocument:
        """Replace the manifest's entries; they are sorted, and lines that a person added to the section stay."""
        lines = [_entry_line(entry) for entry in sorted(entries, key=lambda entry: (entry.path, entry.uuid))]
        section = self._section_span(MANIFEST)
        if section is None:
            return self._with_text(self._with_new_section(MANIFEST, "".join(lines)))
        start, end = section
        # lines that are no entries are a person's remarks: they stay, below the entries
        remarks = _ENTRY.sub("", self._text[start:end]).replace("\r\n", "\n").strip("\n")
        content = "".join(lines) + (f"\n{remarks}\n" if remarks.strip() else "")
        gap = "\n" if end < len(self._text) else ""
        return self._with_text(splice(self._text, start, content + gap, end))

    def _with_new_section(self, name: str, lines: str) -> str:
        """Return the text with a new section at the end; a new manifest goes above Related Memories."""
        related = self._heading(RELATED) if name == MANIFEST else None
        end = related.start() if related else len(self._text)
        at = end_of_content(self._text, self._offset, end)
        blank_line = "\n" if related and at == end else ""
        return splice(self._text, at, f"\n## {name}\n{lines}{blank_line}")

    def with_summary(self, summary: str) -> IndexDocument:
        """Replace the text between the title and the first section."""
        start, end = self._summary_span()
        # unchanged bytes, so that no commit is made for the same summary
        if parse_prose(self._text[start:end]) == summary.strip():
            return self
        gap = "\n" if end < len(self._text) else ""
        return self._with_text(splice(self._text, start, f"\n{render_prose(summary)}\n{gap}", end))

    def with_related(self, title: str, path: str, uuid: str, reason: str = "") -> IndexDocument:
        """Add a link under Related Memories; a uuid that is linked there already is not added again."""
        if any(link.uuid == uuid for link in self.page.related):
            return self
        line = f"- {format_link(title, path, uuid)}{f' — {one_line(reason)}' if reason else ''}\n"
        section = self._section_span(RELATED)
        if section is None:
            return self._with_text(self._with_new_section(RELATED, line))
        start, end = section
        at = end_of_content(self._text, start, end)
        blank_line = "\n" if at == end and end < len(self._text) else ""
        return self._with_text(splice(self._text, at, line + blank_line))

    def set_meta(self, **keys: Any) -> IndexDocument:
        """Set front-matter keys; all other entries stay byte for byte."""
        return self._with_text(edit_meta(self._text, **keys))


def _entries(section: str) -> Iterable[IndexEntry]:
    """Yield the entries of a manifest: list items that begin with a Markdown link. Other lines are a person's."""
    for match in _ENTRY.finditer(section):
        links = find_links(match[1])
        if links and not links[0].is_wiki:
            yield IndexEntry(links[0].text, links[0].target, links[0].uuid, unescape(match[2] or ""))


def _entry_line(entry: IndexEntry) -> str:
    summary = one_line(entry.summary)
    return f"- {format_link(entry.title, entry.path, entry.uuid)}{f' — {summary}' if summary else ''}\n"


def new_index(title: str, *, uuid: str, now: str, summary: str = "", tags: Iterable[str] = ()) -> str:
    """Return the text of a new index page with an empty manifest.

    Args:
        title: Becomes the heading.
        uuid: A new one.
        now: ISO 8601 UTC.
        summary: What the folder is about.
        tags: Keywords.
    """
    meta = {"type": "index"} | first_keys(uuid, now, tags)
    prose = render_prose(summary)
    paragraph = f"\n{prose}\n" if prose else ""
    return f"{render_meta(meta)}\n# {one_line(title)}\n{paragraph}\n## {MANIFEST}\n\n## {RELATED}\n"
