from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import FormatError
from brainiac.formats.index_page import IndexDocument, IndexEntry, new_index, parse_index
from tests.support.notes_texts import BIG, file_names, ids, texts, words

UUID = "01995b2e-7c00-7000-8000-000000000004"
NOW = "2025-09-16T15:30:00Z"
entries = st.builds(IndexEntry, title=words, path=file_names, uuid=ids, summary=st.one_of(st.just(""), words))

BY_HAND = """\
# Mine

About it.

## Ideas
- [[x]]

## Related Memories

- [y](../y.md "uuid:u-y")

## Last
no line end"""


def test_a_new_index_has_summary_manifest_and_relations() -> None:
    """F-IDX-1: front matter, summary, `## Manifest`, `## Related Memories`. Seeds: S8."""
    text = new_index("Python", uuid=UUID, now=NOW, summary="About it.")
    found = parse_index("a/_index.md", text)
    assert ("index", UUID, "Python", "About it.", (), ()) == (
        found.meta["type"],
        found.uuid,
        found.title,
        found.summary,
        found.manifest,
        found.related,
    )
    assert "\n## Manifest\n\n## Related Memories\n" in text


@given(words, texts, st.lists(entries, max_size=4), st.lists(st.tuples(words, file_names, ids), max_size=2))
def test_an_index_reads_back(
    title: str, summary: str, manifest: list[IndexEntry], related: list[tuple[str, str, str]]
) -> None:
    """F-IDX-1, F-IDX-2: any titles, file_names and summaries. Seeds: S8."""
    document = IndexDocument(new_index(title, uuid=UUID, now=NOW)).with_manifest(manifest).with_summary(summary)
    for link in related:
        document = document.with_related(*link)
    found = document.page
    assert (title, summary.strip()) == (found.title, found.summary)
    assert tuple(sorted(manifest, key=lambda entry: (entry.path, entry.uuid))) == found.manifest
    assert [*dict.fromkeys(link[2] for link in related)] == [link.uuid for link in found.related]


@given(st.lists(entries, max_size=4), st.randoms(use_true_random=False))
def test_equal_entries_give_equal_bytes(manifest: list[IndexEntry], random: Random) -> None:
    """F-IDX-2: whatever their order, and however often it is derived."""
    document = IndexDocument(BY_HAND)
    once = document.with_manifest(manifest)
    random.shuffle(manifest)
    assert str(once) == str(document.with_manifest(manifest)) == str(once.with_manifest(manifest))


def test_edits_touch_their_section_alone() -> None:
    """F-ALL-2: a page made by hand keeps its sections, line ends and last line."""
    entry = IndexEntry("T", "t.md", "u-t", "s")
    added = '## Manifest\n- [T](t.md "uuid:u-t") — s\n\n'
    assert BY_HAND.replace("## Related", f"{added}## Related") == str(IndexDocument(BY_HAND).with_manifest([entry]))
    related = BY_HAND.replace('u-y")\n', 'u-y")\n- [Z](z.md "uuid:u-z") — used together\n')
    assert related == str(IndexDocument(BY_HAND).with_related("Z", "z.md", "u-z", "used together"))
    summary = BY_HAND.replace("About it.", "New.")
    assert summary == str(IndexDocument(BY_HAND).with_summary("New."))
    crlf = BY_HAND.replace("\n", "\r\n")
    after = str(IndexDocument(crlf).with_manifest([entry]).with_related("Z", "z.md", "u-z").with_summary("a\nb"))
    assert "\n" not in after.replace("\r\n", "")


def test_lines_that_are_no_entries_stay_in_the_manifest() -> None:
    """F-IDX-2: what a person wrote into the derived section is kept below it."""
    text = '# T\n\n## Manifest\nmine\n- [Old](old.md "uuid:u")\n- a note\n'
    after = str(IndexDocument(text).with_manifest([IndexEntry("New", "new.md", "u2")]))
    assert '# T\n\n## Manifest\n- [New](new.md "uuid:u2")\n\nmine\n- a note\n' == after


def test_a_relation_is_stated_once() -> None:
    """F-IDX-3: the uuid counts, not path or title."""
    assert BY_HAND == str(IndexDocument(BY_HAND).with_related("Other", "moved/y.md", "u-y"))


def test_a_section_that_is_missing_is_made() -> None:
    """F-IDX-1: a bare page becomes a whole one."""
    document = IndexDocument("# T").with_related("Z", "z.md", "u").with_manifest([]).with_summary("S")
    assert '# T\n\nS\n\n## Manifest\n\n## Related Memories\n- [Z](z.md "uuid:u")\n' == str(document)


@given(texts, st.integers(0, len(BY_HAND)))
def test_any_page_is_read_or_refused(text: str, at: int) -> None:
    """F-ALL-3: no text raises anything but FormatError."""
    for whole in (text, BY_HAND[:at] + text + BY_HAND[at:]):
        try:
            document = IndexDocument(whole).with_manifest([IndexEntry("T", "t.md", "u")]).with_summary("s")
            assert "s" == document.page.summary
        except FormatError:
            pass


@pytest.mark.slow
def test_ten_megabytes_and_five_thousand_entries() -> None:
    """F-IDX-2: a large folder and a large page are read and written."""
    many = [IndexEntry(f"T{n}", f"t{n:05}.md", f"u{n}") for n in range(5000)]
    assert tuple(many) == IndexDocument(BY_HAND).with_manifest(reversed(many)).page.manifest
    assert BIG.strip() == IndexDocument("# T\n").with_summary(BIG).page.summary
