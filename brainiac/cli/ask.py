"""`brainiac ask` and `brainiac chat`: through the same inbox as any other prompt, with a daemon or without one."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, console, opened_brain, print_json, print_problems, problems_of
from brainiac.errors import BrainiacError
from brainiac.pipeline.daemon import is_running
from brainiac.terminal import clean, is_terminal, one_line, say, show
from brainiac.verbs import Asked


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(ask)
    app.command()(chat)


def ask(
    text: Annotated[list[str] | None, typer.Argument(help="The prompt; `-` or nothing reads standard input.")] = None,
    conversation: Annotated[
        str, typer.Option("--in", metavar="NAME", help="The conversation: a subfolder of inbox/.")
    ] = "",
    again: Annotated[str, typer.Option("--again", metavar="PROMPT", help="Answer this prompt file once more.")] = "",
    model: Annotated[str, typer.Option(help="Another model for this one.")] = "",
    private: Annotated[
        bool, typer.Option("--private", help="Never to a remote model; its file is named by an id.")
    ] = False,
    off_record: Annotated[
        bool, typer.Option("--off-record", help="Keep nothing of it; its file is named by an id.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask, or tell something worth remembering; the exchange is a pair of files in inbox/."""
    stream = None if as_json else _Stream()
    with opened_brain(is_shared=True) as brain, _waiting(brain):
        if again:
            path = brain.tree.relative(brain.tree.confine(again, inside=brain.tree.inbox))
            asked = verbs.answer(brain, path, is_again=True, stream=stream)
        else:
            asked = verbs.ask(
                brain,
                _text_of(text),
                conversation=conversation,
                model=model,
                is_private=private,
                is_off_record=off_record,
                stream=stream,
                on_wait=_tell_wait,
            )
    _show(asked, is_streamed=stream is not None and stream.is_used, as_json=as_json)


def chat(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The conversation: a subfolder of inbox/; by itself one of today.")
    ] = "",
) -> None:
    """Hold a conversation in the terminal; it goes on where the folder of its name ends. Ctrl-D ends it."""
    with opened_brain(is_shared=True) as brain:
        conversation = name or f"chat-{brain.now():%Y-%m-%d}"
        if is_terminal(sys.stdin):
            say(f"inbox/{conversation}/ (Ctrl-D or an empty line ends; /help tells what can be said)")
        while text := _line():
            stream = _Stream()
            try:
                with _waiting(brain):
                    asked = verbs.ask(brain, text, conversation=conversation, stream=stream, on_wait=_tell_wait)
                _show(asked, is_streamed=stream.is_used, as_json=False, has_place=False)
            except BrainiacError as error:  # told, and the conversation goes on
                print_problems(problems_of(error))
            say()


def _line() -> str:
    """Return what the person says next; "" where they end."""
    try:
        return (input("> ") if is_terminal(sys.stdin) else sys.stdin.readline()).strip()
    except EOFError:
        say()
        return ""


def _text_of(words: list[str] | None) -> str:
    text = sys.stdin.read() if not words or words == ["-"] else " ".join(words)
    if not text.strip():
        raise typer.BadParameter("nothing to ask: give a text, or pipe one in")
    return text


def _show(asked: Asked, *, is_streamed: bool, as_json: bool, has_place: bool = True) -> None:
    """Show an answer, or why a prompt waits; an answer that was streamed stands there already."""
    response = asked.response
    if as_json:
        print_json(asked.to_json())
    elif response is None:
        say(f"{asked.prompt} waits: {asked.waits}")
    elif is_streamed:
        say()
    elif is_terminal(sys.stdout):
        from rich.markdown import Markdown

        # a link is shown with its address: one whose text names another place deceives
        console().print(Markdown(clean(response.text), hyperlinks=False))
    else:
        show(response.text)
    if response and not as_json and is_terminal(sys.stdout) and has_place:
        console(stderr=True).print(one_line(response.path), style="dim")


class _Stream:
    """Shows an answer's text as it comes."""

    def __init__(self) -> None:
        self.is_used = False

    def __call__(self, piece: str) -> None:
        self.is_used = True
        sys.stdout.write(clean(piece))
        sys.stdout.flush()


def _tell_wait(path: str, reason: str) -> None:
    say(f"{path} waits: {reason}", to_stderr=True)


def _waiting(brain: Brain) -> AbstractContextManager[object]:
    """Show on a terminal that a daemon is at it."""
    if not is_terminal(sys.stderr) or not is_running(brain):
        return nullcontext()
    from brainiac.cli.styling import spinner

    return spinner("waiting for the answer…")
