"""All errors of the program, in one class tree; each says what happened, where, and what a person can do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_ADVICE = {
    errno.EROFS: "make it writable",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "give yourself the right to it"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOMEM), "end what uses so much"),
    errno.ENAMETOOLONG: "shorten the names",
    errno.ELOOP: "it is a link that leads to itself; remove it",
}
_TROUBLE = frozenset(
    {*_ADVICE, errno.EFBIG, errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EAGAIN, errno.ENOTCONN}
)


class BrainiacError(Exception):
    """Base of every error this package raises on purpose."""


class UserError(BrainiacError):
    """Something a person can put right; shown as a list, never with a traceback.

    Args:
        problems: One sentence for each: what, where, what was expected, what to do next.
    """

    def __init__(self, *problems: str) -> None:
        self.problems: Sequence[str] = problems
        super().__init__("\n".join(problems))


class NotABrainError(UserError):
    """There is no brain at or above a folder."""


class SettingsError(UserError):
    """`system/config.yaml` or this machine's own config does not validate."""


class ConfinementError(UserError):
    """A path given by a model, prompt, link or note is outside the brain."""


class FormatError(UserError):
    """A file does not follow its format.

    Args:
        path: The file, relative to the root; may be "" for text without a file.
        problem: What is wrong, what was expected, what to do.
        line: 1-based line number, which stands before the problem; None where it is unknown.
    """

    def __init__(self, path: str, problem: str, line: int | None = None) -> None:
        self.path, self.problem = path, f"line {line}: {problem}" if line else problem
        super().__init__(f"{path}: {self.problem}" if path else self.problem)


class ConflictError(BrainiacError):
    """A commit found files other than it expected; nothing was changed.

    Args:
        paths: Relative paths of files that changed since the decision was made.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        super().__init__("changed meanwhile: " + ", ".join(self.paths))


class StorageError(BrainiacError):
    """The disk or the system refuses an operation: full, read-only, unmounted, no permission, out of file handles.

    The operation was not done, or will be finished by the next commit; it may succeed later.

    Args:
        problem: One sentence for a person.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)

    @classmethod
    def of(cls, error: OSError | sqlite3.Error) -> StorageError | None:
        """Return a system error as a `StorageError`; None where its cause is a bug and not the disk or the system."""
        number = error.errno if isinstance(error, OSError) else None
        if number not in _TROUBLE and not isinstance(error, sqlite3.OperationalError):
            return None
        where = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        what = (error.strerror if isinstance(error, OSError) else str(error)) or "trouble"
        advice = _ADVICE.get(number or 0, "see to it")
        return cls(f"The disk or the system refuses: {what}{where}; {advice}. A running daemon tries again by itself.")


@contextmanager
def storage_trouble() -> Iterator[None]:
    """Within this context, raise an error of the disk or the system as a `StorageError`, any other error unchanged."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if (trouble := StorageError.of(error)) is None:
            raise
        raise trouble from error


class LockedError(UserError):
    """Another process holds a lock, and the time to wait for it is over."""


class BlobError(UserError):
    """A text of the journal is missing or damaged."""


class PluginError(BrainiacError):
    """A plugin could not be loaded or broke a rule of the hooks."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin, self.problem = plugin, problem
        super().__init__(f"plugin {plugin}: {problem}")


class ModelError(BrainiacError):
    """A model call failed.

    Args:
        problem: One sentence for a person.
        retryable: Whether the same call may succeed later.
        retry_after_seconds: What the provider asked for, if it did.
        advice: What a person can do about it.
    """

    def __init__(
        self,
        problem: str,
        *,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
        advice: str = "",
    ) -> None:
        self.problem, self.retryable = problem, retryable
        self.retry_after_seconds, self.advice = retry_after_seconds, advice
        super().__init__(problem)


class WindowError(ModelError):
    """A request is longer than the model's window, and nothing of it can be left out."""


class InvalidAnswerError(ModelError):
    """A model gave no valid answer, also when it was asked again."""


class BudgetError(ModelError):
    """A call is not made, since at its highest possible cost it would exceed today's budget."""
