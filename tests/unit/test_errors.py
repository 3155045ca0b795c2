"""What errors carry, and how they read."""

from __future__ import annotations

from brainiac.errors import BudgetError, ConflictError, FormatError, ModelError, PluginError, UserError


def test_user_error_keeps_every_problem_apart() -> None:
    """A UserError lists its problems one by one, so that all are shown at once."""
    error = UserError("first: is wrong", "second: is wrong too")
    assert ("first: is wrong", "second: is wrong too") == error.problems
    assert "first: is wrong\nsecond: is wrong too" == str(error)


def test_format_error_says_where() -> None:
    """A FormatError names file and line when they are known, and only then."""
    assert "inbox/q.md: line 3: no closing fence" == str(FormatError("inbox/q.md", "no closing fence", 3))
    assert "inbox/q.md: no closing fence" == str(FormatError("inbox/q.md", "no closing fence"))
    assert "no closing fence" == str(FormatError("", "no closing fence"))


def test_errors_carry_data() -> None:
    """Callers decide by attributes, never by a message's words."""
    assert ("a.md", "b.md") == ConflictError(["a.md", "b.md"]).paths
    error = ModelError("Too many requests.", retryable=True, retry_after_seconds=2.5, advice="Wait.")
    assert (True, 2.5, "Wait.") == (error.retryable, error.retry_after_seconds, error.advice)
    assert "plugin daily_note: no such hook" == str(PluginError("daily_note", "no such hook"))
    assert not BudgetError("Today's budget is spent.").retryable
