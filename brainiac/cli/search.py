"""`brainiac search` and `brainiac reindex`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brainiac.cli.session import JsonOption, console, opened_brain, print_json, print_table
from brainiac.errors import UserError

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.recall import Hit

_SHOWN_CHARACTERS = 300
_SHOWN_SIGNALS = 8


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("search")(search)
    app.command("reindex")(reindex)


def search(
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY...",
            help="Words; narrowed by tag:NAME type:concrete|events|skills|short-term|index after:2024-05 before:DATE "
            'path:PART "exact words" -word (after `--` where a shell or an option could take it).',
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many hits.")] = 8,
    archive: Annotated[bool, typer.Option("--archive", help="Also what was put to rest in memory/archive/.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find statements, exchanges and pages; what was written a moment ago is found too."""
    from brainiac.recall.query import misfits

    text = " ".join(query)
    with opened_brain(is_reading=True) as brain:
        if problems := misfits(text, brain.now(), _folders(brain)):
            raise UserError(*problems)
        start = time.perf_counter()
        hits = brain.recall.search(text, limit=limit, include_archive=archive, now=brain.now())
        took_ms = round((time.perf_counter() - start) * 1000, 1)
        status, days = brain.recall.status(), [brain.shown_day(hit.at) for hit in hits]
    if as_json:
        print_json({"query": text, "took_ms": took_ms, **_about(status), "hits": [asdict(hit) for hit in hits]})
        return
    for place, hit in enumerate(hits, 1):
        _print_hit(place, hit, days[place - 1])
    if explain:
        print_table(("hit", "score", "signal", "value", "weight", "adds"), _explained(hits))
    _print_remarks(hits, status)


def reindex() -> None:
    """Build the search index anew; searches go on meanwhile."""
    from rich.progress import Progress

    with opened_brain() as brain, Progress(console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("Reading memories", total=None)
        start = time.perf_counter()
        count = brain.recall.reindex(lambda done, total: progress.update(task, completed=done, total=total))
        status = brain.recall.status()
    took = time.perf_counter() - start
    typer.echo(f"Indexed {count} files in {took:.1f} s ({status['engine']}, {status['bytes'] / 1e6:.1f} MB).")


def _folders(brain: Brain) -> list[str]:
    top = brain.tree.long_term
    return [each.name for each in top.iterdir() if each.is_dir()] if top.is_dir() else []


def _about(status: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("engine", "freshness", "pages", "not_yet_indexed", "not_yet_embedded", "problem", "embedder")
    return {key: status[key] for key in keys if key in status}


def _print_hit(place: int, hit: Hit, day: str) -> None:
    text = " ".join(hit.text.split())
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    who = f"{hit.speaker}: " if hit.speaker else ""
    anchor = f"#^{hit.anchor}" if hit.kind == "statement" and hit.anchor else ""
    typer.echo(f"{place}. {who}{shown}")
    typer.echo(f"   {hit.title} · {day or 'undated'} · {hit.path}{anchor}")


def _explained(hits: Sequence[Hit]) -> list[tuple[str, ...]]:
    from brainiac.recall.rank import contributions

    rows: list[tuple[str, ...]] = []
    for place, hit in enumerate(hits, 1):
        parts = sorted(contributions(hit.signals).items(), key=lambda part: -abs(part[1][2]))[:_SHOWN_SIGNALS]
        for name, (value, weight, adds) in parts:
            rows.append((str(place), f"{hit.score:.2f}", name, f"{value:.3f}", f"{weight:+.2f}", f"{adds:+.2f}"))
    return rows


def _print_remarks(hits: Sequence[Hit], status: Mapping[str, Any]) -> None:
    to = console(stderr=True)
    if not hits:
        to.print("Nothing in memory fits. Fewer words may find more; --archive looks into what was put to rest.")
    if status["freshness"] != "fresh":
        to.print(f"The index is being built ({status['not_yet_indexed']} files to go): these were scanned.")
    problem = status["problem"] or status["embedder"].get("problem")
    if problem:
        to.print(f"By words alone: {problem}" if not status["problem"] else f"Without an index: {problem}")
