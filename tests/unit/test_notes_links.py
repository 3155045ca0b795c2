from __future__ import annotations

import pytest
from hypothesis import given

from brainiac.formats.markdown import Link, find_links, format_link, retarget_links
from tests.support.notes_texts import file_names, ids, texts, words

UUID = "01995b2e-7c00-7000-8000-000000000002"


def test_a_link_carries_path_and_identity() -> None:
    """F-LNK-1: the form of the specification, identity in the title. Seeds: S8."""
    text = f'[Refactoring](../../skills/refactoring.md "uuid:{UUID}")'
    assert text == format_link("Refactoring", "../../skills/refactoring.md", UUID)
    (link,) = find_links(f"see {text}.")
    assert ("Refactoring", "../../skills/refactoring.md", UUID, 4, 4 + len(text)) == (
        link.text,
        link.target,
        link.uuid,
        link.start,
        link.end,
    )


@given(words, file_names, ids)
def test_any_title_and_path_read_back(title: str, path: str, uuid: str) -> None:
    """F-LNK-2: brackets, quotes, backslashes, newlines, percent signs. Seeds: S8."""
    links = find_links(f"- {format_link(title, path, uuid)} — [more](y.md)")
    assert [(title, path, uuid), ("more", "y.md", "")] == [(link.text, link.target, link.uuid) for link in links]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[Page]]", ("Page", "Page", "")),
        ("![[a/b c|shown]]", ("shown", "a/b c", "")),
        ("[[Page#Part]]", ("Page#Part", "Page", "Part")),
        ("[x](a%20b.md#p-q)", ("x", "a b.md", "p-q")),
        ('[x](<a b.md> "title")', ("x", "a b.md", "")),
        ("[x](a_(b).md)", ("x", "a_(b).md", "")),
        (r"[\[x\]](y)", ("[x]", "y", "")),
    ],
)
def test_what_people_and_obsidian_write_is_read(text: str, expected: tuple[str, str, str]) -> None:
    """F-LNK-3: wiki links with alias and heading, embeds, angle brackets, fragments."""
    (link,) = find_links(f"a {text} b")
    assert expected == (link.text, link.target, link.fragment)
    assert link.is_wiki == ("[[" in text)


@pytest.mark.parametrize(
    "text", ["`[[x]]`", "``a ` [x](y)``", "```\n[[x]]\n```\n", "~~~ md\n[[x]]", r"\[[x]]", "[x] (y)", "[[]]"]
)
def test_what_is_no_link(text: str) -> None:
    """F-LNK-3: code and escaped brackets hold no links; what follows them does."""
    assert ["z"] == [link.target for link in find_links(f"[[z]]\n{text}")]


def test_a_path_that_cannot_be_is_written_all_the_same() -> None:
    """F-ALL-3: a stray surrogate, which no file name holds, raises nothing."""
    assert '[x](a%3F.md "uuid:u")' == format_link("x", "a\ud800.md", "u")


def test_addresses_are_external() -> None:
    """A link out of the tree is told apart, so that it is never healed."""
    assert [True, True, False, False] == [
        link.is_external for link in find_links("[a](https://x.y) [b](mailto:a@b) [c](d.md) [[e: f]]")
    ]


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (f'[A](old.md#p "uuid:{UUID}")', "new (1).md", f'[A](new%20%281%29.md#p "uuid:{UUID}")'),
        ("[[old|A]]", "new", "[[old|A]]"),
        ("[A](<old x.md>)", "new.md", "[A](<new.md>)"),
    ],
)
def test_healing_changes_the_target_alone(before: str, target: str, after: str) -> None:
    """F-LNK-1: title, alias, fragment, identity and all around stay byte for byte."""
    text = f"a\r\n{before} z"
    assert f"a\r\n{after} z" == retarget_links(text, lambda link: target)


@given(texts, texts)
def test_any_text_is_searched(before: str, after: str) -> None:
    """F-ALL-3: no text raises; a link found lies where it says."""
    text = f"{before}[[{after}](x.md){before}"
    for link in find_links(text):
        assert isinstance(link, Link)
        assert "[" == text[link.start]
        assert link.start < link.span[0] <= link.span[1] < link.end


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "`", "` `` ", "[[a", "[x]( ", "```\n", "\\", "[x](y "])
def test_megabytes_take_linear_time(piece: str) -> None:
    """No text makes the search quadratic: 2 MB of what begins links and never ends them, which would take hours."""
    assert [] == find_links(piece * (2_000_000 // len(piece)) + "](")
