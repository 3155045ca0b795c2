"""`brainiac diff`, `show` and `digest`: what memory held at another time, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from brainiac.cli.session import JsonOption, local_time, moment_named, opened_brain, print_json
from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.history.digest import digest_since
from brainiac.history.past import Comparison, Difference, at_moment, compare, present
from brainiac.storage.past import PagesAt, first_moment, pages_at, present_pages
from brainiac.storage.store import Store
from brainiac.terminal import say
from brainiac.terminal import show as print_text
from brainiac.tree import find_root

DAYS = 7
_KINDS = {
    "page": ("page", "pages"),
    "statement": ("statement", "statements"),
    "exchange": ("exchange", "exchanges"),
    "line": ("other line", "other lines"),
    "property": ("property", "properties"),
}
_WIDEST = 200  # characters of an exchange or another line that are shown of it; --json has all


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(diff)
    app.command()(show)
    app.command()(digest)


def diff(
    first: Annotated[Path | None, typer.Argument(metavar="[A]", help="A brain's folder.")] = None,
    second: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Another; without it this brain against A.")
    ] = None,
    since: Annotated[
        str,
        typer.Option(help="This brain at two times: from a day (2026-03-01), a moment, or so many days back; seven."),
    ] = "",
    until: Annotated[str, typer.Option(help="To the end of a day, or a moment; now without it.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Compare the long-term memory of two brains, or of one at two times, statement by statement."""
    if first is not None and (since or until):
        raise typer.BadParameter("give two brains, or --since and --until for one brain at two times")
    with ExitStack() as opened:
        sides = opened.enter_context(_two_times(since, until) if first is None else _two_brains(first, second))
        names = [name for name, _ in sides]
        result = compare(sides[0][1], sides[1][1])
    if as_json:
        devices = [side.device for _, side in sides]
        print_json({"first": names[0], "second": names[1], "devices": devices} | asdict(result))
        return
    say(f"{names[0]} → {names[1]}")
    for _, side in sides:
        if side.device:
            say(f"As {side.device} saw it: this device's journal begins later.")
    _print_differences(result)


def show(
    named: Annotated[list[str], typer.Argument(metavar="PAGE", help="A page's path, title or uuid; or a file's path.")],
    at: Annotated[
        str, typer.Option(help="As it stood at the end of a day (2026-03-01), at a moment, or so many days ago.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Print a page, or another file of the brain, as it stands or as it stood; the page may be gone or moved since."""
    with opened_brain(is_reading=True) as brain:
        moment = _moment_then(brain, at) if at else ""
        page = at_moment(brain, " ".join(named), moment) if at else present(brain, " ".join(named))
        then = local_time(moment) if at else "now"
    if as_json:
        print_json(asdict(page) | {"at": moment})
        return
    version = page.version
    since = f", unchanged since {local_time(version.at)} (event {version.event})" if version else ""
    seen = f", as {page.device} saw it" if page.device else ""
    say(f"{page.path}: {then}{since}{seen}", to_stderr=True)  # so that the page alone can go into a file
    print_text(page.text.removesuffix("\n"))


def _moment_then(brain: Store, at: str) -> str:
    """Return the moment that a person names for a look back: of a day its end, of today the present."""
    now = iso(brain.clock.now())
    moment = moment_named(brain, at, is_end=True)
    if moment > now and brain.day_of(moment) != brain.day_of(now):
        raise typer.BadParameter(f"{at} is still to come")
    return min(moment, now)


@contextmanager
def _two_times(since: str, until: str) -> Iterator[list[tuple[str, PagesAt]]]:
    """Yield this brain's pages at two moments, each with the moment as a person reads it."""
    with opened_brain(is_reading=True) as brain:
        at = moment_named(brain, since) if since else max(moment_named(brain, str(DAYS)), first_moment(brain))
        end = _moment_then(brain, until) if until else iso(brain.clock.now())
        if end < at:
            raise typer.BadParameter("--until lies before --since")
        second = pages_at(brain, end) if until else present_pages(brain)
        yield [(local_time(at), pages_at(brain, at)), (local_time(end) if until else "now", second)]


@contextmanager
def _two_brains(first: Path, second: Path | None) -> Iterator[list[tuple[str, PagesAt]]]:
    """Yield the present pages of two brains, each with its folder; without a second one the first is this brain."""
    with ExitStack() as opened:
        if second is None:
            stores: list[Store] = [opened.enter_context(opened_brain(is_reading=True))]
            folders = [first]
        else:
            stores, folders = [], [first, second]
        for folder in folders:
            stores.append(opened.enter_context(closing(Store(find_root(folder), is_reading=True))))
        if stores[0].root == stores[1].root:
            raise UserError(f"{stores[0].root} is both; `brainiac diff --since DAY` compares one brain at two times")
        yield [(str(store.root), present_pages(store)) for store in stores]


def _print_differences(result: Comparison) -> None:
    """Print the differences below the page that each is on, and how many there are."""
    path = ""
    for difference in result.differences:
        if difference.path != path:
            path = difference.path
            say(f"{path} ({difference.title})")
        say(f"  {_sentence(difference)}")
    for problem in result.unreadable:
        say(f"not compared: {problem}")
    counts = [f"{count} {_KINDS[kind][count != 1]} {what}" for (kind, what), count in sorted(result.counts().items())]
    same = "1 page holds" if result.equal == 1 else f"{result.equal} pages hold"
    say((", ".join(counts) or "Nothing differs") + f"; {same} the same.")


def _sentence(difference: Difference) -> str:
    """Return a difference as a line below its page."""
    words = " → ".join(f"“{_shortened(part)}”" for part in _sides(difference))
    kind = "" if difference.kind == "statement" else f" ({_KINDS[difference.kind][0]})"
    history = ", under History" if difference.is_history else ""
    origin = f", from {difference.former_path}" if difference.former_path else ""
    return f"{difference.what}{kind}{history}{origin}" + (f": {words}" if words else "")


def _sides(difference: Difference) -> list[str]:
    """Return the texts of a difference: two where they differ, else the one."""
    return list(dict.fromkeys(text for text in (difference.before, difference.text) if text))


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def digest(
    since: Annotated[
        str, typer.Option(help="A day (2026-03-01), or how many days back; the last seven without it.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Tell what memory learned, changed, ended, moved, refused and asked, each with the command that takes it back."""
    with opened_brain(is_reading=True) as brain:
        changes = digest_since(brain, moment_named(brain, since or str(DAYS)))
        if as_json:
            print_json(
                {"lines": [asdict(line) | {"undo": line.undo} for line in changes.lines], "private": changes.withheld}
            )
            return
        day = ""
        for lines, undo_all in changes.runs():
            if (on := brain.day_of(lines[0].at)) != day:
                day = on
                say(day)
            for line in lines:
                say(f"  {line.sentence()}" + (f"  {line.path}" if line.path else ""))
                if line.undo:
                    say(f"      {line.undo}")
            if undo_all:
                say("  all of this run:")
                say(f"      {undo_all}")
    if changes.withheld:
        say(f"{changes.withheld} private changes are not listed.")
    if not changes.lines:
        say("Nothing became of memory since then.")
