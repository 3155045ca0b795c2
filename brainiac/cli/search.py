"""`brainiac search`, `reindex` and `context`: what search finds, and what a model would be shown for a prompt."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.cli import session
from brainiac.search.documents import Hit
from brainiac.search.query import FIELDS_HELP, nothing_found
from brainiac.search.shown import ShownHit, reasons, shown_hit
from brainiac.search.text import Analyzer
from brainiac.terminal import one_line, say, show
from brainiac.text.tokens import as_sentence

# of the index's status, what `--json` shows
_INDEX_STATE = ("engine", "freshness", "pages", "not_yet_indexed", "not_yet_embedded", "problem", "embedder")


@session.command(is_reading=True, is_timed=True)
def search(
    brain: Brain,
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY...",
            help=f'Words; narrowed by {FIELDS_HELP} "exact words" -word (after `--` where a shell or an option could '
            "take it). The day of `before:` is not included.",
        ),
    ],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1)] = 8,
    explain: bool = False,
) -> Iterator[Any]:
    """Find statements, exchanges and pages; what was written a moment ago, or put to rest, is found too.

    Args:
        limit: At most so many hits.
        explain: Show what each score is made of.
    """
    text, start = " ".join(query), time.perf_counter()
    found = verbs.search(brain, text, limit=limit)
    hits = [match.hit for match in found.matches]
    took_ms = round((time.perf_counter() - start) * 1000, 1)
    status = brain.recall.status()
    analyzer = Analyzer(brain.settings.recall.language, brain.zone)
    shown = [shown_hit(hit, text, analyzer, brain.zone) for hit in hits]
    hits_as_json = [asdict(one.hit) | {"archive": one.hit.is_archived, "excerpt": one.text} for one in shown]
    state = {key: status[key] for key in _INDEX_STATE if key in status}
    yield found, {"query": text, "took_ms": took_ms, **state, "hits": hits_as_json}
    for place, one in enumerate(shown, 1):
        _print_hit(brain, place, one)
    if explain:
        rows = [(str(place), f"{hit.score:.2f}", *row) for place, hit in enumerate(hits, 1) for row in reasons(hit)]
        session.print_table(("hit", "score", "signal", "value", "weight", "adds"), rows)
        ranked = brain.recall.rank(text)
        if ranked:
            n_pages = len(ranked.units.pages)
            say(f"Ranked: {ranked.units.n:,} paragraphs, statements or turns of {n_pages:,} pages.")
    _print_remarks(text, hits, status)


@session.command(is_shared=True)
def reindex(brain: Brain) -> None:
    """Build the search index anew; searches go on meanwhile."""
    with session.styling().bar("Reading memories") as progress:
        start = time.perf_counter()
        count = brain.recall.reindex(progress)
        status = brain.recall.status()
    took = time.perf_counter() - start
    say(f"Indexed {count} files in {took:.1f} s ({status['engine']}, {status['bytes'] / 1e6:.1f} MB).")


def _print_hit(brain: Brain, place: int, one: ShownHit) -> None:
    """Print a hit for a person: the words around the match, on a terminal bold, the page, and how it was found."""
    styled = session.styling().Text
    text = styled(one.text)  # never as markup: what was said may look like it
    for start, end in one.places:
        text.stylize("bold", start, end)
    session.print_styled(styled(f"{place}. {f'{one.who}: ' if one.who else ''}").append_text(text))
    session.print_path(one.link, brain.tree.absolute(one.hit.path), before=f"   {' · '.join(one.about)} · ")
    for former in one.hit.former:
        session.print_styled(styled(f"   {as_sentence(former)}"))


def _print_remarks(query: str, hits: Sequence[Hit], status: Mapping[str, Any]) -> None:
    """Print to standard error that nothing was found, or that the index is incomplete."""
    lines = [] if hits else [nothing_found(query)]
    if status["freshness"] != "fresh":
        lines.append(
            f"The index is being built ({status['not_yet_indexed']} files to go): hits may be missing until then."
        )
    if problem := status["problem"] or status["embedder"].get("problem"):
        lines.append(("Without an index: " if status["problem"] else "By words alone: ") + one_line(problem))
    for line in lines:
        session.print_styled(line, stderr=True)


@session.command(is_reading=True, is_timed=True)
def context(brain: Brain, prompt: str, *, copy: bool = False) -> Iterator[Any]:
    """Show the working memory that a prompt would get, without asking any model.

    With --copy it can be pasted into a chat, and nothing private is in it; save the reply as NAME.response.md beside
    the prompt to have it remembered.

    Args:
        prompt: The prompt, or `-` to read it from standard input.
        copy: Put the whole text on the clipboard, or print it.
    """
    result = verbs.briefing(brain, sys.stdin.read() if prompt == "-" else prompt, is_copied=copy)
    memory = result.memory
    yield result, result.to_json()
    if copy:
        _copy(memory.text)
        return
    rows = []
    for block in memory.blocks:
        show(block.text + "\n")
        cached = "yes" if block.name in memory.cached else "no"
        rows.append((block.name, memory.block_tokens[block.name], cached, block.owner))
    session.print_table(("block", "tokens", "begins the next request too", "owner"), rows)
    for cut in memory.cuts:
        say(f"left out of {cut.block}: {cut.parts} parts, {cut.tokens} tokens, {cut.reason}")
    stable = sum(memory.block_tokens[name] for name in memory.cached)
    say(f"{memory.tokens:,} of {memory.budget_tokens:,} tokens; a provider's cache can hold {stable:,} of them.")


def _copy(text: str) -> None:
    """Put text on the clipboard by the system's own tool; without one, print it."""
    tools = (["wl-copy"], ["xclip", "-selection", "clipboard"], ["xsel", "-ib"], ["pbcopy"], ["clip.exe"])
    for command in tools:
        if shutil.which(command[0]):
            tool = subprocess.run(command, input=text.encode(), check=False, stderr=subprocess.DEVNULL, timeout=10)
            if tool.returncode == 0:
                say("Copied. Paste it into a chat.", to_stderr=True)
                return
    show(text)
