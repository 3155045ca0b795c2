"""`brainiac ask` and `brainiac chat`: through the same inbox as any other prompt, with a daemon or without one."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from brainiac.brain import Brain
from brainiac.cli.session import JsonOption, console, local_time, opened_brain, print_json, print_problems, problems_of
from brainiac.errors import BrainiacError, ModelError, UserError
from brainiac.events import new_id
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import find_links
from brainiac.formats.prompt import error_path, parse_response, reason_of_error, response_path
from brainiac.history.devices import waiting_message
from brainiac.llm.redaction import redact
from brainiac.pipeline.daemon import answer_one, is_running
from brainiac.storage.files import Disk, temporary_beside
from brainiac.storage.runstate import read_run_state
from brainiac.terminal import clean, is_terminal, one_line, say, show
from brainiac.tree import Tree, slugify

WAIT_SECONDS = 600
LOOK_EVERY_SECONDS = 0.02
_OPEN_LINK = re.compile(r"\[(?:\\.|[^\]\\\n])*(?:\\|\](?:\([^)\n]*)?)?\Z")  # at the end, its last sign not come yet


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
    with opened_brain(is_shared=True) as brain:
        if again:
            path = _named(brain, again)
        else:
            meta = {"model": model or None, "private": private or None, "remember": False if off_record else None}
            path = _drop(
                brain, _text_of(brain, text), conversation, {key: v for key, v in meta.items() if v is not None}
            )
        if not again and not brain.is_active:
            say(f"{path} waits: {waiting_message(brain)}")
            return
        _answer(brain, path, is_again=bool(again), as_json=as_json)


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
            path = _drop(brain, text, conversation, {})
            if not brain.is_active:
                say(f"{path} waits: {waiting_message(brain)}")
                continue
            try:
                _answer(brain, path, is_again=False, as_json=False, has_place=False)
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


def _text_of(brain: Brain, words: list[str] | None) -> str:
    """Return what is asked: the words, else what is piped in.

    Raises:
        Exit: There is nothing; what can be asked was shown.
    """
    is_piped = words == ["-"] or (not words and not is_terminal(sys.stdin))
    text = sys.stdin.read() if is_piped else " ".join(words or ())
    if not text.strip():
        for line in _beginning(brain.settings.llm.model):
            say(line, to_stderr=True)
        raise typer.Exit(2)
    return text


def _beginning(model: str) -> list[str]:
    """Return what gets a person going who asked nothing, by the engine that would answer."""
    told = "brainiac ask 'I moved to Portland in June.'"
    asked = "brainiac ask 'Where do I live?'"
    if model == "offline":
        engine = "Without a model the answer quotes what you wrote; `llm.model` in system/config.yaml names a model."
    else:
        engine = f"`{model}` answers from what this brain holds; `llm.model` in system/config.yaml names another."
    return [
        "There is nothing to ask. For example:",
        f"  {told}       it is kept",
        f"  {asked}                  it is found",
        "  brainiac ask /help                              what a prompt can hold",
        "  brainiac chat                                   a conversation",
        engine,
    ]


def _named(brain: Brain, prompt: str) -> str:
    """Return the path of a prompt that a person named from the brain's folder, from its inbox or from their own."""
    tree = brain.tree
    places = (tree.root / prompt, tree.inbox / prompt, Path.cwd() / prompt)
    named = next((place for place in places if place.is_file()), places[0])
    if not named.is_file():
        raise UserError(f"{prompt}: there is no such prompt; name a file of {tree.relative(tree.inbox)}/")
    return tree.relative(tree.confine(named, inside=tree.inbox))


def _drop(brain: Brain, text: str, conversation: str, meta: dict[str, object]) -> str:
    """Save the prompt as a new file and return its path."""
    folder = brain.tree.confine(brain.tree.inbox / conversation, inside=brain.tree.inbox)
    folder.mkdir(parents=True, exist_ok=True)
    head = f"{render_meta(meta)}\n" if meta else ""
    stamp = brain.now().strftime("%Y-%m-%d-%H%M%S")
    is_open = not meta.get("private") and meta.get("remember", True)
    # a name is read where the text is not: in the journal, by `status`, by whoever syncs the folder
    name = slugify(" ".join(redact(brain, text).split()[:8])) if is_open else new_id()[-12:]
    stem = f"{stamp}-{name}"[:80].rstrip("-")
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


def _answer(brain: Brain, path: str, *, is_again: bool, as_json: bool, has_place: bool = True) -> None:
    links = ShownLinks(brain.tree, path) if is_terminal(sys.stdout) else None
    streamed = False

    def stream(piece: str) -> None:
        nonlocal streamed
        streamed = True
        sys.stdout.write(clean(links.feed(piece) if links else piece))
        sys.stdout.flush()

    if is_running(brain) and not is_again:
        target = _wait(brain, path)
    else:
        brain.stream_to = None if as_json else stream
        try:
            target = answer_one(brain, path, is_again=is_again)
        except ModelError as error:
            raise UserError(f"{problems_of(error)[0]} {_stands(path, error)}") from error
    response = parse_response(brain.tree.relative(target), target.read_bytes())
    if as_json:
        fields = ("model", "memories", "tokens", "cost_usd", "took_ms", "created_at", "prompt_id")
        shown = {name: getattr(response, name) for name in fields}
        print_json({"prompt": path, "response": response.path, "text": response.text, **shown})
        return
    if streamed:
        show(links.rest() if links else "")
    elif links:
        from rich.markdown import Markdown

        # a link is shown with its address: one whose text names another place deceives
        text = links.feed(response.text) + links.rest()
        console().print(Markdown(clean(text), hyperlinks=False))
    else:
        show(response.text)
    if is_terminal(sys.stdout) and has_place:
        console(stderr=True).print(one_line(response.path), style="dim")


class ShownLinks:
    """Makes the links of an answer, which comes in pieces, into paths that a terminal opens.

    Args:
        tree: The brain's places.
        path: The prompt: links start at its folder.
    """

    def __init__(self, tree: Tree, path: str) -> None:
        self._tree, self._folder = tree, tree.absolute(path).parent
        self._held = ""  # what may be the beginning of a link

    def feed(self, piece: str) -> str:
        """Return what can be shown by now."""
        text = self._held + piece
        opened = _OPEN_LINK.search(text)
        end = opened.start() if opened else len(text)
        self._held = text[end:]
        return self._plain(text[:end])

    def rest(self) -> str:
        """Return what was held back, when the answer ends."""
        text, self._held = self._held, ""
        return self._plain(text)

    def _plain(self, text: str) -> str:
        for link in reversed(find_links(text)):
            if not link.is_wiki:
                place = link.target if link.is_external else self._place(link.target)
                text = f"{text[: link.start]}{link.text} ({place}){text[link.end :]}"
        return text

    def _place(self, target: str) -> str:
        """Return where a link leads, from the current folder if it lies below that."""
        path = Path(os.path.normpath(self._folder / target))
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _stands(path: str, error: ModelError) -> str:
    """Return what becomes of a prompt that no model answered and that no daemon tries again."""
    by_itself = ", and a running `brainiac run` by itself" if error.retryable else ""
    return f"Your prompt stands in {path}: `brainiac ask --again {shlex.quote(path)}` asks it again{by_itself}."


def _wait(brain: Brain, path: str) -> Path:
    """Wait for the daemon's answer, or tell what keeps it."""
    answer, error = brain.tree.absolute(response_path(path)), brain.tree.absolute(error_path(path))
    deadline = brain.clock.monotonic() + WAIT_SECONDS
    reason = ""
    with _waiting():
        while brain.clock.monotonic() < deadline:
            if answer.is_file():
                return answer
            if error.is_file():
                raise UserError(f"{path} was not answered. {reason_of_error(error.read_text(encoding='utf-8'))}")
            if (waits := _reason(brain, path)) != reason:
                reason = waits
                if reason:
                    say(f"{path} waits: {reason}", to_stderr=True)
            time.sleep(LOOK_EVERY_SECONDS)
    raise UserError(f"{path}: no answer yet; it comes to {response_path(path)}, and `brainiac status` tells what waits")


def _reason(brain: Brain, path: str) -> str:
    """Return why the daemon has not answered a prompt yet, as far as it told; "" where nothing keeps it."""
    for pending in read_run_state(brain.places.state).pending:
        if pending.get("prompt") == path:
            again = pending.get("retry_at")
            return f"{pending.get('reason')} It is tried again at {local_time(str(again))}." if again else ""
    return ""  # what is not tried again is told by its error file


def _waiting() -> AbstractContextManager[object]:
    if not is_terminal(sys.stderr):
        return nullcontext()
    from brainiac.cli.styling import spinner

    return spinner("waiting for the answer…")
