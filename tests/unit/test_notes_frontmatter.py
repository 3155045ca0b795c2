from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import FormatError
from brainiac.formats.frontmatter import edit_meta, render_meta, split
from tests.support.notes_texts import FRAGMENTS, texts

PAGE = "---\nuuid: 01991234-89ab-7cde-8f01-23456789abcd\ntags: [a, b c]\nn: 3\n---\nbody\n"

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.sampled_from(
        ["yes", "No", "null", "~", "2025-01-01", "2025-01-01T00:00:00Z", "12:30", "1e5", "0x1f", ".5", "="]
    ),
    st.lists(st.one_of(st.text(max_size=8), st.sampled_from(["yes", "a b", "x, y", "[[l]]"])), max_size=4),
)
keys = st.one_of(
    st.sampled_from(["uuid", "tags", "created_at", "n"]), st.from_regex(r"[a-zA-Z][a-z_]{0,8}", fullmatch=True)
)
words = {
    w for word in ("yes", "no", "on", "off", "true", "false", "null") for w in (word, word.capitalize(), word.upper())
}
metas = st.dictionaries(keys.filter(lambda key: key not in words), values, max_size=6)

# lines of values that YAML takes for something else than a text, and that it does not
near_plain = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["a", "b", "b-c", "yes", "_x", "d e", "  - ", "- ", "  "]),
        st.sampled_from([":", ": ", ":  ", " : ", ""]),
        st.one_of(
            st.text(st.sampled_from("ab1 -:,.#'\"[]{}()%&*!|>@`~?/+\té²0_"), max_size=10),
            st.sampled_from(
                ["[a, b]", "[no]", "[]", "no", "true", "TRUE", "'x'", '"y"', "10", "010", "1.5", "2025-01-01"]
            ),
            st.from_regex(r"(0b[01]{62}|[0-9]{64}|[0-9a-f]{64}|[0-9]e[0-9]{62})", fullmatch=True),
        ),
    ),
    max_size=5,
).map("\n".join)


def test_a_page_reads_as_its_keys_and_the_offset_of_its_body() -> None:
    """Plain keys are read with their types, dates as texts. Seeds: S7."""
    text = "---\nat: 2025-01-02\nn: 3\nf: 0.5\nok: true\nnil:\nt: [a, b]\nl:\n  - x\n  - 'y z'\n---\nbody"
    meta, offset = split(text)
    expected = {"at": "2025-01-02", "n": 3, "f": 0.5, "ok": True, "nil": None, "t": ["a", "b"], "l": ["x", "y z"]}
    assert (expected, "body") == (meta, text[offset:])


@pytest.mark.parametrize("text", ["---\nfoo: 1\n", "----\nfoo: 1\n----\n", "text\n---\n---\n", "", "---", "---\n--- x"])
def test_without_a_closing_fence_all_is_body(text: str) -> None:
    """F-FM-1: an unclosed or other fence is no front matter."""
    assert ({}, 0) == split(text)


def test_a_bom_and_crlf_are_accepted() -> None:
    """F-FM-1: a BOM may precede front matter; CRLF ends its lines as well."""
    text = "\ufeff---\r\na: b\r\n---\r\nbody"
    meta, offset = split(text)
    assert ({"a": "b"}, "body") == (meta, text[offset:])


@pytest.mark.parametrize(
    ("block", "line", "part"),
    [
        ("a: 1\nb: 2\na: 3", 4, "`a` stands twice"),
        ("a: 1\nb: [", 3, "no valid YAML"),
        ("- x", 2, "found a list"),
        ("just text", 2, "found a str"),
        ("a: 1\nb: \t- x", 3, "no valid YAML"),
        ("a: 1\n\tb: 2", 3, "no valid YAML"),
        ("a: 1\nb: !!int x", 3, "invalid literal"),
        ("a: &a [*a]", 2, "an alias"),
        ("a: " + "[" * 5000, 2, "no valid YAML"),
        ("a: " + "[" * 100_000, 2, "levels deep"),
        ("- " * 50_000, 2, "levels deep"),
        ("a: \x00", 2, "no valid YAML"),
        ("? [a]\n: b", 2, "unhashable"),
        ("a: *x", 2, "undefined alias"),
    ],
)
def test_broken_front_matter_is_refused_with_path_line_and_advice(block: str, line: int, part: str) -> None:
    """F-FM-2, F-ALL-3: what is no mapping or repeats a key is named with its place and what to do."""
    with pytest.raises(FormatError) as caught:
        split(f"---\n{block}\n---\n", "memory/x.md")
    assert "memory/x.md" == caught.value.path
    assert part in caught.value.problem
    number = int(caught.value.problem.removeprefix("line ").partition(":")[0])
    assert abs(number - line) <= 1  # the loader may name the line where it gave up
    assert "mend" in caught.value.problem


def test_a_yaml_bomb_is_refused() -> None:
    """F-FM-3: aliases, of lists or of merged mappings, are not followed."""
    laughs = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    merges = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
    )
    for bomb in (laughs, merges):
        with pytest.raises(FormatError, match="an alias"):
            split(f"---\n{bomb}---\n")


@given(metas)
def test_rendered_front_matter_reads_back(meta: dict[str, object]) -> None:
    """What is written is read back with values and types. Seeds: S7, P1."""
    text = render_meta(meta)
    assert (meta, len(text)) == split(text)


@given(near_plain)
def test_values_are_those_of_yaml(block: str) -> None:
    """F-FM-2: a mapping is read with the values and types of YAML 1.1, days and times aside, which stay texts."""
    text = f"---\n{block}\n---\n"
    try:
        actual = split(text)[0]
    except FormatError:
        return
    if any(line.rstrip(" \t\r") == "---" for line in block.split("\n")):
        return  # the block ends early
    expected = yaml.load(block + "\n", Loader=yaml.CSafeLoader) or {}
    assert {key: repr(value) for key, value in expected.items() if not isinstance(value, date)} == {
        key: repr(value) for key, value in actual.items() if key in expected and not isinstance(expected[key], date)
    }


@given(texts)
def test_any_text_is_read_or_refused(text: str) -> None:
    """F-ALL-3: no text raises anything but FormatError."""
    for whole in (text, f"---\n{text}\n---\n"):
        try:
            split(whole)
            edited = edit_meta(whole, tags=["x"])
            assert ["x"] == split(edited)[0]["tags"]
        except FormatError:
            pass


def test_an_edit_touches_its_entries_alone() -> None:
    """F-FM-4, F-ALL-2: comments, order, quotes, odd spacing, CRLF of all else survive byte for byte."""
    before = (
        "\ufeff---\r\n# mine\r\nzz:    1   # odd\r\ntags: [a,   b]\r\nq: 'x'\r\nupdated_at: 2025-01-01  # when\r\n"
        "list:\r\n  - one\r\n  # why\r\n  - two\r\n# tail\r\n---\r\nbody\r\nno end"
    )
    after = edit_meta(before, updated_at="2026-01-01", n=1)
    expected = before.replace("updated_at: 2025-01-01  # when", "updated_at: 2026-01-01  # when").replace(
        "# tail\r\n", "# tail\r\nn: 1\r\n"
    )
    assert expected == after


def test_a_list_keeps_its_style_and_comments_when_an_item_is_added() -> None:
    """F-FM-4: a list in brackets stays one, and a comment at an item stays with it."""
    before = "---\ntags: [a, b]\nlinks:\n  - x # first\n  - y\n---\n"
    after = "---\ntags: [a, b, c]\nlinks:\n  - x # first\n  - y\n  - z\n---\n"
    assert after == edit_meta(before, tags=["a", "b", "c"], links=["x", "y", "z"])


def test_an_edit_that_changes_nothing_gives_the_same_bytes() -> None:
    """F-FM-4: the same values leave the text as it is."""
    assert PAGE == edit_meta(PAGE, n=3, tags=["a", "b c"])


@pytest.mark.parametrize("block", ["a: |\n  text\n  # no comment\n\nb: 2\n", ""])
def test_unusual_yaml_is_edited(block: str) -> None:
    """Block scalars and an empty block take a new value and keep the others."""
    before = f"---\n{block}---\nbody"
    after = edit_meta(before, a=5, c="no")
    meta, offset = split(after)
    assert {**split(before)[0], "a": 5, "c": "no"} == meta
    assert "body" == after[offset:]


@pytest.mark.parametrize("block", ["{a: 1, b: 2}\n", "a: 1\u2028b: 2\n"])
def test_yaml_that_is_no_lines_is_not_edited(block: str) -> None:
    """Braces and strange line ends are left as they are, and what to do is told."""
    with pytest.raises(FormatError, match="write it as `key: value` lines"):
        edit_meta(f"---\n{block}---\nbody", a=5, c="no")


@given(metas, metas, st.sampled_from(["\n", "\r\n"]), texts)
def test_edited_values_read_back_and_other_bytes_stay(
    meta: dict[str, object], keys: dict[str, object], newline: str, body: str
) -> None:
    """F-FM-4, F-ALL-2: after an edit each key reads as set, each other line and the body is the same."""
    before = render_meta(meta).replace("\n", newline) + body
    after = edit_meta(before, **keys)
    parsed, offset = split(after)
    assert {**meta, **keys} == parsed
    assert body == after[offset:]
    kept = [key for key in meta if key not in keys]
    assert all(render_meta({key: meta[key]})[4:-4].replace("\n", newline) in after for key in kept)


def test_a_page_without_front_matter_gets_some_above_its_text() -> None:
    """F-ALL-1, F-ALL-2: the body stays; new lines take the line ends of the page."""
    assert "---\r\na: b\r\n---\r\nx\r\ny" == edit_meta("x\r\ny", a="b")
    assert "\ufeff---\na: b\n---\nx" == edit_meta("\ufeffx", a="b")


@pytest.mark.slow
def test_ten_megabytes_of_body_cost_nothing() -> None:
    """A body of 10 MB, fences in it, is neither read nor changed by the front matter."""
    body = "---x\n" * 2_000_000
    after = edit_meta(PAGE + body, n=4)
    assert PAGE.replace("n: 3", "n: 4") + body == after


def test_what_stands_as_we_write_it_is_edited_in_place() -> None:
    """A list of a thousand sources grows, and dates change, with all other bytes as they were."""
    sources = [f"0199{number:04x}-89ab-7cde-8f01-23456789abcd" for number in range(1000)]
    page = render_meta({"updated_at": "2025-09-16T15:30:00Z", "sources": sources, "tags": ["a"]}) + "body\n"
    after = edit_meta(page, updated_at="2025-09-17T15:30:00Z", sources=[*sources, "last"], tags=["a", "b"])
    expected = page.replace("-16T", "-17T").replace("tags: [a]", "tags: [a, b]")
    assert expected.replace("\ntags:", "\n  - last\ntags:") == after


def test_reading_imports_no_writer() -> None:
    """What only a write needs is not imported to read."""
    code = (
        "import sys; from brainiac.formats.frontmatter import split\n"
        f"split({PAGE!r})\n"
        "print('ruamel.yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == done.stdout.strip()


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_hostile_text_is_a_value(fragment: str) -> None:
    """Whatever text becomes a value is read back; a lone surrogate alone becomes U+FFFD."""
    assert fragment.replace("\ud800", "\ufffd") == split(render_meta({"a": fragment}))[0]["a"]
    if fragment != "\ud800":
        assert ["b", fragment] == split(edit_meta(PAGE, tags=["b", fragment]))[0]["tags"]
