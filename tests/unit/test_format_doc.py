from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from brainiac.formats.access_log import AccessLog, format_entry, parse_access_log
from brainiac.formats.index_page import parse_index
from brainiac.formats.page import parse_exchanges, parse_memory, render_exchange
from brainiac.formats.prompt import parse_prompt, parse_response, render_response
from brainiac.formats.short_term import EMPTY, Item, ShortTermDocument, document_of
from brainiac.storage.journal import from_line, to_line

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "format.md").read_text(encoding="utf-8")
RULES = re.findall(r"^- \*\*(F-[A-Z]+-\d+)\*\*", PAGE, re.MULTILINE)
EXAMPLES = dict(re.findall(r"^```\w+ ([a-z-]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
DOCSTRINGS = re.compile(r'def test_\w+\(.*?"""(.*?)"""', re.DOTALL)


def check_prompt(text: str) -> None:
    prompt = parse_prompt("inbox/q.md", text.encode(), at="")
    assert ("What did I decide about the garden?", ("[[Portland]]",), True, True) == (
        prompt.text,
        prompt.focus,
        prompt.private,
        prompt.is_send,
    )


def check_response(text: str) -> None:
    assert text == render_response(parse_response("inbox/q.response.md", text.encode()))


def check_short_term(text: str) -> None:
    memory = document_of(text).memory
    assert (Item("Plant tomatoes before May"),) == memory.goals
    assert (Item("Order seeds", is_done=True),) == memory.tasks
    document = ShortTermDocument(EMPTY).with_summary(memory.summary).with_items(
        goals=[item.text for item in memory.goals],
        facts=[item.text for item in memory.facts],
        tasks=[item.text for item in memory.tasks],
    )  # fmt: skip
    assert text == str(document.with_done(["order seeds"]).with_event(memory.events[0]))


def check_memory(text: str) -> None:
    memory = parse_memory("x.md", text)
    assert ("User's work", 2, ("Leave at eight.", "Take the river path.")) == (
        memory.title,
        memory.reinforcement_count,
        memory.steps,
    )
    assert ["ab12", "", "k2k2", "m0d4", "f3k9"] == [each.block_id for each in memory.statements]
    assert ("User works at Google.", "ab12") == (memory.statements[-1].text, memory.statements[-1].replaced_by)


def check_exchanges(text: str) -> None:
    assert [text] == [render_exchange(event) for event in parse_exchanges(text)]


def check_index(text: str) -> None:
    page = parse_index("_index.md", text)
    assert ("What the user builds, and with what.", 2, 1) == (page.summary, len(page.manifest), len(page.related))


def check_access_log(text: str) -> None:
    log = parse_access_log(text)
    assert text == "".join(map(format_entry, log.entries))
    assert log == AccessLog(log.entries, ())
    assert log.entries[1].path.endswith("a | b.md")


def check_journal(text: str) -> None:
    event = from_line(text.encode())
    assert (7, "create", None) == (event.seq, event.changes[0].op, event.changes[0].before)
    assert event == from_line(to_line(event))


CHECKS: dict[str, Callable[[str], None]] = {
    "prompt": check_prompt,
    "response": check_response,
    "short-term": check_short_term,
    "memory": check_memory,
    "exchanges": check_exchanges,
    "index": check_index,
    "access-log": check_access_log,
    "journal": check_journal,
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_examples_are_what_the_parsers_read(name: str) -> None:
    """Each example of docs/format.md is read, and written again where we write it; F-JRN-1 for the journal line."""
    CHECKS[name](EXAMPLES[name])


def test_no_example_goes_unread() -> None:
    """An example that is added to the page needs a check here."""
    assert sorted(CHECKS) == sorted(EXAMPLES)


def test_times_in_the_examples_are_iso_utc_to_the_second() -> None:
    """F-ALL-4: every moment on the page has the one form."""
    moments = re.findall(r"\d{4}-\d\d-\d\dT[^\s\"\[]*", "".join(EXAMPLES.values()))
    assert moments
    assert [] == [moment for moment in moments if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment)]


def test_every_rule_has_a_test_that_names_it() -> None:
    """A rule that no test's docstring names is a promise that nobody keeps."""
    docstrings = "\n".join(
        docstring
        for path in TESTS.rglob("test_*.py")
        for docstring in DOCSTRINGS.findall(path.read_text(encoding="utf-8"))
    )
    assert [] == [rule for rule in RULES if not re.search(rf"\b{rule}\b", docstrings)]


def test_rules_are_numbered_without_repetition() -> None:
    """A rule's id names one rule."""
    assert sorted(set(RULES)) == sorted(RULES)
    assert len(RULES) > 30
