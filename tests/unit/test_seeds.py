"""Every requirement of the founding documents is named by a test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent
PAGE = FOLDER.parent / "docs/requirements.md"
COUNTS = {"S": 15, "C": 4, "P": 8, "R": 11, "I": 9, "U": 4, "H": 4}
PENDING: set[str] = set()


def required() -> list[str]:
    return re.findall(r"^\| ([A-Z]\d+) \| \S.* \|$", PAGE.read_text("utf-8"), re.MULTILINE)


@cache
def named() -> dict[str, list[str]]:
    """Return the tests that name each id, by `Seeds: S4, S5.` on a line of their docstring."""
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and "test" in node.name.lower():
                line = re.search(r"Seeds: ([A-Z]\d+(?:, [A-Z]\d+)*)\.", ast.get_docstring(node) or "")
                for name in line[1].split(", ") if line else ():
                    found.setdefault(name, []).append(f"{path.name}::{node.name}")
    return found


def test_the_list_is_whole() -> None:
    """The page names every requirement once, in order."""
    assert [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)] == required()


def test_every_requirement_has_a_test() -> None:
    """No requirement is without a test that names it; what is pending is listed, and the list only shrinks."""
    missing = set(required()) - set(named())
    assert PENDING == missing, (
        f"without a test: {sorted(missing - PENDING)}; pending no more: {sorted(PENDING - missing)}"
    )


def test_tests_name_only_requirements_that_exist() -> None:
    """A mistyped id covers nothing."""
    assert set() == set(named()) - set(required())
