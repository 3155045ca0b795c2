"""The hooks: each is documented, and each is named by a test."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from brainiac.host import hookspecs

HOOKS = {name: each for name, each in vars(hookspecs).items() if hasattr(each, "brainiac_spec")}
DESIGNED = {
    "startup", "shutdown", "prompt_arrived", "response_arrived", "quiet", "quiet_on_any_device",
    "memory_created", "memory_modified", "memory_moved", "memory_deleted", "file_changed", "event_recorded",
    "plugin_failed", "register_models", "register_commands", "retrieve", "rerank",
    "context_blocks", "redact",
}  # fmt: skip


def test_no_hook_is_missing() -> None:
    """A hook goes only with its whole mechanism, which the changelog tells: plugins of others rest on these names."""
    assert DESIGNED <= set(HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_says_what_it_is(hook: str) -> None:
    """Every hook has a docstring in one sentence or more, and typed arguments."""
    function = HOOKS[hook]
    assert (inspect.getdoc(function) or "").endswith(".")
    assert all(
        each.annotation is not inspect.Parameter.empty for each in inspect.signature(function).parameters.values()
    )


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_is_named_by_a_test(hook: str) -> None:
    """Completeness is a test: a hook that no test implements or calls is a promise nobody checks."""
    this, word = Path(__file__), re.compile(rf"\b{hook}\b")
    naming = [path.name for path in this.parent.parent.rglob("*.py") if path != this and word.search(path.read_text())]
    assert naming


def test_names_follow_one_pattern() -> None:
    """A hook is an event in the past tense, a `register_` of a plural, or one of the few that ask for a result."""
    odd = {name for name in HOOKS if not re.fullmatch(r"register_\w+s|\w+_\w+(ed|ew)", name)}
    assert {
        "startup",
        "shutdown",
        "quiet",
        "quiet_on_any_device",
        "retrieve",
        "rerank",
        "context_blocks",
        "redact",
    } == odd
