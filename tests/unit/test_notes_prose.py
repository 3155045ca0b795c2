from __future__ import annotations

import pytest
from hypothesis import given

from brainiac.formats.markdown import (
    escape,
    find_line,
    newline_of,
    one_line,
    parse_prose,
    render_prose,
    splice,
    unescape,
)
from tests.support.notes_texts import BIG, FRAGMENTS, texts


@given(texts)
def test_escaping_is_undone_exactly(text: str) -> None:
    """F-TXT-1: whatever the text, unescape(escape(x)) == x, and what is written is UTF-8 without control characters."""
    written = escape(text)
    assert text == unescape(written)
    assert not [c for c in written if (ord(c) < 32 and c not in "\t\n") or c in "\x7f\x85\u2028\u2029"]
    written.encode("utf-8")


@pytest.mark.parametrize("text", ["&#65;", "&amp;", "&lt;", "&#99999999;", "&amp;#65;", "a & b"])
def test_references_that_are_not_ours_read_as_they_stand(text: str) -> None:
    """F-TXT-1: only what `escape` writes is undone: a person's `&amp;` stays."""
    assert text.replace("&amp;#", "&#") == unescape(text)


@given(texts)
def test_prose_reads_back_and_forges_nothing(text: str) -> None:
    """F-TXT-5: parse(render(x)) is x without outer white space; no line begins a section, a rule or a fence."""
    written = render_prose(text)
    assert text.strip() == parse_prose(written)
    assert not [line for line in written.split("\n") if line.startswith(("#", "---", "<!--", "```", "~~~"))]


@given(texts)
def test_one_line_is_one_line_and_settles(text: str) -> None:
    """F-TXT-6: folding gives one line that reads back as the folded text."""
    written = one_line(text)
    assert "\n" not in written
    assert " ".join(text.split()) == unescape(written)


def test_a_line_is_found_only_whole() -> None:
    """A heading is a line by itself, white space at its end aside; a longer line is another."""
    text = "# A b\n# A\r\n# A"
    assert (6, 11) == find_line(text, "# A")
    assert (0, 3) == find_line("# A", "# A")
    assert find_line("# Ab\nx # A", "# A") is None
    assert find_line("", "# A") is None


def test_new_lines_take_the_line_ends_of_the_file() -> None:
    """F-ALL-1: a splice into CRLF text is CRLF; a missing line end before it is supplied."""
    assert "a\r\nb\r\nc\r\n" == splice("a\r\nb", 4, "c\n")
    assert ("\n", "\r\n", "\n") == (newline_of("a"), newline_of("a\r\nb\n"), newline_of("a\nb\r\n"))


@pytest.mark.slow
def test_ten_megabytes_and_every_fragment() -> None:
    """F-TXT-1: size and odd fragments change nothing."""
    assert BIG == unescape(escape(BIG))
    assert all(fragment == unescape(escape(fragment)) for fragment in FRAGMENTS)
