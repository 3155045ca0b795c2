"""Styled output by rich; what it styles is cleaned first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress import Progress
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from brainiac.terminal import beneath, clean, environment, is_terminal, one_line, output

__all__ = ["CleanConsole", "Table", "Text", "bar", "spinner"]
# other output is not redirected through rich, which would interpret escape sequences in it
_ALONE: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}


class CleanConsole(Console):
    """A console on which no text is taken for markup, hides a link, or steers the terminal; only rich itself does."""

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        stream = output(to_stderr=stderr)
        is_wrapped = is_terminal(stream)
        # the stream below the guard, which would clean away rich's own codes; `render` cleans the texts
        options |= {"file": beneath(stream), "_environ": environment()}
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=not is_wrapped, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, cleaned."""
        return map(_cleaned, super().render(renderable, options))


def _cleaned(segment: Segment) -> Segment:
    """Return a segment with cleaned text and without a hidden link."""
    if segment.control:
        return segment
    style = segment.style.update_link(None) if segment.style and segment.style.link else segment.style
    return Segment(clean(segment.text), style)


@contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None]]:
    """Show a turning sign beside a text while the block runs; yield a function that changes the text."""
    turning = Spinner("dots", Text(text))
    with Live(turning, console=CleanConsole(stderr=True), refresh_per_second=12.5, **_ALONE):
        yield lambda now: turning.update(text=Text(one_line(now)))


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while the block runs; yield a function that takes the amount done and the total.

    Only on a terminal: in a script's or a timer's log nobody watches it.
    """
    if not is_terminal(output(to_stderr=True)):
        yield lambda done, total: None
        return
    with Progress(console=CleanConsole(stderr=True), **_ALONE) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=max(total, 1))
