"""The blocks of a text, and a person's marks in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brainiac.formats.markdown import blocks_of, tags_in, wiki_links_in

TEXT = """First paragraph
on two lines.

- one
- two

- three

| a | b |
|---|---|

```sh
# no tag

echo "#none"
```
Last."""


def test_lists_tables_and_fences_stay_whole() -> None:
    """A blank line parts paragraphs; it parts neither a list nor a fence."""
    expected = [
        "First paragraph\non two lines.",
        "- one\n- two\n\n- three",
        "| a | b |\n|---|---|",
        '```sh\n# no tag\n\necho "#none"\n```',
        "Last.",
    ]
    assert expected == blocks_of(TEXT)


@given(st.text(alphabet="ab \n-*`#|1.\t~", max_size=80))
def test_no_line_is_lost(text: str) -> None:
    """Every line with something on it stands in one block, in order."""
    blocks = blocks_of(text)
    assert all(block in text for block in blocks)
    kept = [line for block in blocks for line in block.split("\n") if line.strip()]
    assert [line for line in text.split("\n") if line.strip()] == kept


def test_tags_and_links_are_those_of_the_text_alone() -> None:
    """Numbers, headings, addresses and code are no tags."""
    text = "# Heading\n#garten and #2026/ernte, not #1 nor a#b nor `#code` https://x/#y [[Apfelbaum|tree]] `[[no]]`"
    assert ["garten", "2026/ernte"] == tags_in(text)
    assert ["Apfelbaum"] == wiki_links_in(text)
    assert ["rain"] == tags_in("```\n#include\n\n#define\n```\n\nIt is #rain.")
