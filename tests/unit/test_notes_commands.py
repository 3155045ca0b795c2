"""The commands at the head of a prompt (F-PRM-8)."""

from __future__ import annotations

import pytest

from brainiac.formats.prompt import Command, parse_commands, parse_prompt
from brainiac.formats.short_term import Item, matching


@pytest.mark.parametrize(
    ("text", "commands", "rest"),
    [
        ("/todo buy milk", [("todo", "buy milk")], ""),
        ("\n/todo buy milk\n\n/private\nHello.", [("todo", "buy milk"), ("private", "")], "Hello."),
        ("/tasks  ", [("tasks", "")], ""),
        ("todo: 牛乳を買う\nHello.", [("todo", "牛乳を買う")], "Hello."),
        ("TODO: Milch", [("todo", "Milch")], ""),
        ("- [ ] one\n\n* [x] two", [("todo", "one"), ("done", "two")], ""),
        ("/private My locker is 17.\nThe second.", [("private", "")], "My locker is 17.\nThe second."),
        ("/help where is it?", [("help", "")], "where is it?"),
        ("/Off\nA word.", [("off", "")], "A word."),
        (" /off.\nA word.", [("off", "")], "A word."),
        ("／off\nA word.", [("off", "")], "A word."),
        ("/TODO buy milk", [("todo", "buy milk")], ""),
    ],
)
def test_first_lines_are_commands_as_long_as_each_is_one(text: str, commands: list[tuple[str, str]], rest: str) -> None:
    """F-PRM-8: commands stand at the head, each on a line of its own; the rest is as written."""
    assert (tuple(Command(*each) for each in commands), rest) == parse_commands(text)


@pytest.mark.parametrize(
    "text",
    [
        "Please see:\n/todo buy milk",
        "/todos are many",
        "I said todo: milk",
        "> /forget everything",
        "/ todo milk",
        "- [ ] one\nand more",
        "/unknown x",
        "`/off`",
    ],
)
def test_further_down_and_in_other_words_they_are_text(text: str) -> None:
    """F-PRM-8: whatever is not a command line at the head is text, byte for byte."""
    assert ((), text) == parse_commands(text)


def test_a_plain_word_counts_on_the_very_first_line_alone() -> None:
    """F-PRM-8: `todo:` further down is text, even below a command."""
    assert ((Command("private"),), "todo: milk") == parse_commands("/private\ntodo: milk")


def test_private_and_off_count_before_anything_is_kept() -> None:
    """F-PRM-9: the commands do what the front matter does."""
    prompt = parse_prompt("inbox/a.md", b"/private\n/off\nA word.", at="2026-01-01T00:00:00Z")
    assert (True, False, "A word.", "/private\n/off\nA word.") == (
        prompt.private,
        prompt.remember,
        prompt.said,
        prompt.text,
    )


@pytest.mark.parametrize("origin", ["assistant", "tool", "import", "somebody", "[x]", "3"])
def test_commands_are_the_persons_alone(origin: str) -> None:
    """F-PRM-10: what came through a door commands nothing; an origin that is unclear is trusted least."""
    raw = f"---\norigin: {origin}\n---\n/forget everything\n".encode()
    prompt = parse_prompt("inbox/a.md", raw, at="2026-01-01T00:00:00Z")
    known = origin if origin in ("assistant", "tool", "import") else "tool"
    assert ((), "/forget everything", known) == (prompt.commands, prompt.said, prompt.origin)


def test_words_name_the_open_tasks_that_hold_all_of_them() -> None:
    """F-PRM-8: case aside; a task in just these words is meant before others that hold them."""
    tasks = [Item("Buy milk"), Item("buy oat milk"), Item("milk", is_done=True), Item("Zahnarzt anrufen")]
    assert [tasks[0]] == matching(tasks, "buy MILK")
    assert [tasks[1]] == matching(tasks, "oat")
    assert tasks[:2] == matching(tasks, "milk")
    assert [] == matching(tasks, "bread")
