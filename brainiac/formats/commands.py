"""Commands at the head of a prompt: alike in every language, with every engine, and the person's alone (F-PRM-8)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

UNRECORDED = frozenset({"off", "forget"})  # nothing of a prompt with one of these is kept
NAMES = ("todo", "done", "tasks", "remember", "forget", "find", "private", "off", "help")
ALONE = frozenset({"tasks", "private", "off", "help"})  # what stands behind one of these is text
# as keyboards make them: in capitals, behind blanks, with the wide slash of Japanese, with a full stop
_LINE = re.compile(rf"[ \t\u3000]*[/\uff0f]({'|'.join(NAMES)})(?:[.!\u3002]?|[ \t\u3000]+(\S.*?))[ \t]*", re.IGNORECASE)
_PLAIN = re.compile(r"(todo|done):[ \t]*(\S.*?)[ \t]*", re.IGNORECASE)
_BOX = re.compile(r"[ \t]*[-*+][ \t]+\[([ xX])\][ \t]+(\S.*?)[ \t]*")


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: One of `NAMES`.
        argument: What stands behind it, as written; "" for none.
    """

    name: str
    argument: str = ""


def parse_commands(text: str) -> tuple[tuple[Command, ...], str]:
    """Split a prompt's text into its commands and the rest, which is as written.

    Commands are the first lines as long as each is one; `todo:` and `done:` count on the very first line alone. A text
    of nothing but boxes (`- [ ]`, `- [x]`) is a list of tasks. Whatever stands further down is text: what is pasted
    below a line of a person's own commands nothing.
    """
    lines = text.split("\n")
    boxes = [_BOX.fullmatch(line) for line in lines if line.strip()]
    if boxes and all(boxes):
        return tuple(_of_box(box) for box in boxes if box), ""
    commands: list[Command] = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line) or (None if commands else _PLAIN.fullmatch(line))
        if found is None:
            return tuple(commands), "\n".join(lines[number:]) if commands else text
        name, argument = found[1].lower(), found[2] or ""
        if name in ALONE and argument:
            return (*commands, Command(name)), "\n".join([argument, *lines[number + 1 :]])
        commands.append(Command(name, argument))
    return tuple(commands), ""


def _of_box(box: re.Match[str]) -> Command:
    return Command("todo" if box[1] == " " else "done", box[2])


def arguments(commands: Iterable[Command], name: str) -> list[str]:
    """Return what stands behind each command of a name, where anything does."""
    return [command.argument for command in commands if command.name == name and command.argument]
