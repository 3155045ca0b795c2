"""Names, places, relations, dates, quantities, negations and preferences of a sentence."""

from __future__ import annotations

import pytest
from brainiac_plugins.promotion.entities import facets, find_mentions, find_names, means_same
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User lives in Porto", [("Porto", "place")]),
        ("User's cat Minka is 3", [("Minka", "name"), ("3", "quantity")]),
        ("User's wife works", [("wife", "relation")]),
        ("User moved in May 2020", [("May", "date"), ("2020", "date")]),
        ("User swam for five years", [("five", "duration"), ("years", "duration")]),
        ("User doesn't drink", [("doesn't", "negation")]),
        ("User can't stand crowds", [("can't stand", "preference")]),
        ("User pays £1,295 a month", [("£", "quantity"), ("1,295", "quantity"), ("month", "date")]),
    ],
)
def test_facets_have_a_kind(text: str, expected: list[tuple[str, str]]) -> None:
    """Every protected kind of detail is found as written."""
    assert expected == [(facet.text, facet.kind) for facet in facets(text)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("two", "2"),
        ("twice", "2"),
        ("wife", "spouse"),
        ("hates", "can't stand"),
        ("km", "kilometres"),
        ("1,150", "1150"),
    ],
)
def test_equal_words_have_a_common_value(first: str, second: str) -> None:
    """Number words, units and words of one meaning are normalised."""
    one, other = find_mentions(first)[0], find_mentions(second)[0]
    assert means_same(one.values, other.values)


@pytest.mark.parametrize(
    ("first", "second"), [("wife", "husband"), ("two", "3"), ("vegan", "pescatarian"), ("March", "May")]
)
def test_different_words_have_none(first: str, second: str) -> None:
    """What is near but not the same stays apart."""
    one, other = find_mentions("the " + first)[0], find_mentions("the " + second)[0]
    assert not means_same(one.values, other.values)


def test_tens_and_units_are_one_number() -> None:
    """`thirty-five` is 35."""
    assert [frozenset({"35"})] == [mention.values for mention in find_mentions("thirty-five")]


def test_names_are_joined_and_without_clitics() -> None:
    """Neighbouring capitalised words are one name."""
    assert ["Ana", "Leeds General Infirmary"] == find_names("We met Ana's friend at Leeds General Infirmary.")


@given(st.text(max_size=80))
def test_offsets_point_at_the_text(text: str) -> None:
    """For any text the mentions lie in order and quote it."""
    mentions = find_mentions(text)
    assert all(text[mention.start : mention.end] == mention.text for mention in mentions)
    assert sorted(mention.start for mention in mentions) == [mention.start for mention in mentions]
