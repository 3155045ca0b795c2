"""`brainiac ask`: through the same inbox as any other prompt, with a daemon or without one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from brainiac.cli.session import JsonOption, console, opened_brain, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from brainiac.brain import Brain

WAIT_SECONDS = 600
LOOK_EVERY_SECONDS = 0.02


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(ask)


def ask(
    text: Annotated[list[str] | None, typer.Argument(help="The prompt; `-` or nothing reads standard input.")] = None,
    conversation: Annotated[
        str, typer.Option("--in", metavar="NAME", help="The conversation: a subfolder of inbox/.")
    ] = "",
    again: Annotated[str, typer.Option("--again", metavar="PROMPT", help="Answer this prompt file once more.")] = "",
    model: Annotated[str, typer.Option(help="Another model for this one.")] = "",
    private: Annotated[bool, typer.Option("--private", help="Never to a remote model.")] = False,
    off_record: Annotated[bool, typer.Option("--off-record", help="Keep nothing of it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask, or tell something worth remembering; the exchange is a pair of files in inbox/."""
    from brainiac.history.devices import waiting
    from brainiac.pipeline.reconcile import is_active

    with opened_brain() as brain:
        if again:
            path = brain.tree.relative(brain.tree.confine(again, inside=brain.tree.inbox))
        else:
            meta = {"model": model or None, "private": private or None, "remember": False if off_record else None}
            path = _drop(brain, _text_of(text), conversation, {key: v for key, v in meta.items() if v is not None})
        if not again and not is_active(brain):
            typer.echo(f"{path} waits: {waiting(brain)}")
            return
        _answer(brain, path, is_again=bool(again), as_json=as_json)


def _text_of(words: list[str] | None) -> str:
    text = sys.stdin.read() if not words or words == ["-"] else " ".join(words)
    if not text.strip():
        raise typer.BadParameter("nothing to ask: give a text, or pipe one in")
    return text


def _drop(brain: Brain, text: str, conversation: str, meta: dict[str, object]) -> str:
    """Save the prompt as a new file and return its path."""
    from pathlib import Path

    from brainiac.kernel.exchange import Disk, temporary_beside
    from brainiac.notes.frontmatter import render_meta
    from brainiac.redaction import redact
    from brainiac.tree import slugify

    folder = brain.tree.confine(brain.tree.inbox / conversation, inside=brain.tree.inbox)
    folder.mkdir(parents=True, exist_ok=True)
    head = f"{render_meta(meta)}\n" if meta else ""
    stamp = brain.now().strftime("%Y-%m-%d-%H%M%S")
    stem = f"{stamp}-{slugify(' '.join(redact(brain, text).split()[:8]))}"[:80].rstrip("-")
    # written aside and moved in whole, so that no half of it can be taken for the prompt
    aside = Path(temporary_beside(str(folder / stem)))
    aside.write_text(f"{head}{text.rstrip()}\n", encoding="utf-8")
    number, path = 1, folder / f"{stem}.md"
    while True:
        try:
            Disk().rename_new(aside, path)
            return brain.tree.relative(path)
        except FileExistsError:  # somebody else asks the same in this second
            number += 1
            path = folder / f"{stem}-{number}.md"


def _answer(brain: Brain, path: str, *, is_again: bool, as_json: bool) -> None:
    from brainiac.notes.prompt import parse_response
    from brainiac.pipeline.daemon import answer_one, is_running

    streamed = False

    def show(piece: str) -> None:
        nonlocal streamed
        streamed = True
        sys.stdout.write(piece)
        sys.stdout.flush()

    if is_running(brain) and not is_again:
        target = _wait(brain, path)
    else:
        brain.stream_to = None if as_json else show
        target = answer_one(brain, path, is_again=is_again)
    response = parse_response(brain.tree.relative(target), target.read_bytes())
    if as_json:
        fields = ("model", "memories", "tokens", "cost_usd", "took_ms", "created_at", "prompt_id")
        shown = {name: getattr(response, name) for name in fields}
        print_json({"prompt": path, "response": response.path, "text": response.text, **shown})
        return
    if streamed:
        sys.stdout.write("\n")
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        console().print(Markdown(response.text))
    else:
        typer.echo(response.text)
    if sys.stdout.isatty():
        console(stderr=True).print(f"[dim]{response.path}[/]")


def _wait(brain: Brain, path: str) -> Path:
    """Wait for the daemon's answer, or tell what keeps it."""
    import time

    from brainiac.errors import UserError
    from brainiac.notes.prompt import error_path, response_path

    answer, error = brain.tree.absolute(response_path(path)), brain.tree.absolute(error_path(path))
    deadline = brain.clock.monotonic() + WAIT_SECONDS
    with console(stderr=True).status("waiting for the answer…") if sys.stderr.isatty() else _Silent():
        while brain.clock.monotonic() < deadline:
            if answer.is_file():
                return answer
            if error.is_file():
                raise UserError(error.read_text(encoding="utf-8").split("---\n", 2)[-1].strip())
            time.sleep(LOOK_EVERY_SECONDS)
    raise UserError(f"{path}: no answer yet; it comes to {response_path(path)}, and `brainiac status` tells what waits")


class _Silent:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
