"""`brainiac ask` and `brainiac chat`: through the same inbox as any other prompt, with a daemon or without one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import typer

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.cli import session
from brainiac.cli.session import command, print_list, print_path, print_problems, problems_of
from brainiac.errors import BrainiacError, UserError
from brainiac.formats.markdown import Link, LinkStream, retarget_links
from brainiac.formats.prompt import CITED
from brainiac.llm.schemas import OFFLINE
from brainiac.storage.serving import is_running
from brainiac.terminal import beneath, clean, current_folder, is_terminal, opening, output, say
from brainiac.tree import Tree
from brainiac.verbs import Asked, Caller
from brainiac.verbs.push import words_of

_EXAMPLES = {
    "brainiac ask 'I moved to Portland in June.'": "it is kept",
    "brainiac ask 'Where do I live?'": "it is found",
    "brainiac ask /help": "what a prompt can hold",
    "brainiac chat": "a conversation",
}
_CHAT = Caller("chat")  # nothing private is said unasked


@command(is_shared=True, is_timed=True)
def ask(
    brain: Brain,
    text: list[str] | None = None,
    *,
    conversation: str = "",
    again: str = "",
    model: str = "",
    is_private: bool = False,
    is_off_record: bool = False,
) -> Iterator[Any]:
    """Ask, or tell something worth remembering; the exchange is a pair of files in inbox/.

    Args:
        text: The prompt; `-` or nothing reads standard input.
        conversation (--in NAME): The conversation: a subfolder of inbox/.
        again (--again PROMPT): Answer this prompt file once more.
        model: Another model for this one.
        is_private (--private): Never to a remote model; its file is named by an id.
        is_off_record (--off-record): Keep nothing of it; its file is named by an id.
    """
    is_then = brain.present is not brain
    if again and is_then:
        raise typer.BadParameter("--again answers a prompt of now; with --at give the question itself")
    path = _prompt_path(brain, again) if again else ""
    stream = _Stream(brain.tree, path or f"{brain.tree.layout.inbox}/{conversation}/prompt.md")
    said = "" if again else _text_of(brain, text)
    options: dict[str, Any] = {"model": model, "is_private": is_private, "is_off_record": is_off_record}
    with ExitStack() as waiting:
        waiting.enter_context(_waiting(brain))
        stream.on_begin = waiting.close
        if again:
            asked = verbs.answer(brain, path, is_again=True, stream=stream)
        else:
            asked = verbs.ask(brain, said, conversation=conversation, stream=stream, on_wait=_tell_wait, **options)
    yield asked, asked.to_json()
    _show(asked, stream, brain, has_place=not is_then)
    if asked.response and not is_then:
        _say_not_in_memory(asked.waits)


@command(is_shared=True)
def chat(brain: Brain, name: str = "") -> None:
    """Hold a conversation in the terminal; it goes on where the folder of its name ends. Ctrl-D ends it.

    Args:
        name ([NAME]): The conversation: a subfolder of inbox/; by itself one of today.
    """
    conversation = name or f"chat-{brain.now():%Y-%m-%d}"
    if is_terminal(sys.stdin):
        say(f"inbox/{conversation}/ (Ctrl-D or an empty line ends; /help tells what can be said)")
    _say_not_in_memory(brain.waits_for)
    if is_terminal(output()):
        waits = verbs.push(brain, session=f"{brain.tree.layout.inbox}/{conversation}", kind="waiting", caller=_CHAT)
        print_list("Waits", list(map(str, waits.lines)))
    while text := _line():
        stream = _Stream(brain.tree, f"{brain.tree.layout.inbox}/{conversation}/prompt.md")
        try:
            with _waiting(brain):
                asked = verbs.ask(brain, text, conversation=conversation, stream=stream, on_wait=_tell_wait)
            _show(asked, stream, brain, has_place=False)
            if is_terminal(output()) and asked.response:
                first = verbs.push_beside(brain, asked.prompt, [asked.response.text], _CHAT)
                print_list("Memory (`brainiac why ID`)", list(map(str, first.lines)))
        except BrainiacError as error:  # told, and the conversation goes on
            print_problems(problems_of(error))
        say()


def _line() -> str:
    """Return the next line of the conversation, stripped; "" for an empty line or the end of input: both end it."""
    try:
        return (input("> ") if is_terminal(sys.stdin) else sys.stdin.readline()).strip()
    except EOFError:
        say()
        return ""


def _text_of(brain: Brain, words: list[str] | None) -> str:
    """Return what is asked: the words, else what is piped in.

    Raises:
        Exit: There is nothing; what can be asked was shown, and which engine would answer.
    """
    is_piped = words == ["-"] or (not words and not is_terminal(sys.stdin))
    text = sys.stdin.read() if is_piped else " ".join(words or ())
    if text.strip():
        return text
    model = brain.settings.llm.model
    engine = f"`{model}` answers from what this brain holds; `llm.model` in system/config.yaml names another."
    if model == OFFLINE:
        engine = "Without a model the answer quotes what you wrote; `llm.model` in system/config.yaml names a model."
    say("There is nothing to ask. For example:", to_stderr=True)
    for command_line, what in _EXAMPLES.items():
        say(f"  {command_line:47}  {what}", to_stderr=True)
    say(engine, to_stderr=True)
    raise typer.Exit(2)


def _prompt_path(brain: Brain, prompt: str) -> str:
    """Return the path of a prompt that a person named from the brain's folder, its inbox or the current folder.

    Raises:
        UserError: There is none.
    """
    tree = brain.tree
    for folder in (tree.root, tree.inbox, current_folder()):
        if (folder / prompt).is_file():
            return tree.relative(tree.confine(folder / prompt, inside=tree.inbox))
    raise UserError(f"{prompt}: there is no such prompt; name a file of {tree.relative(tree.inbox)}/")


class _Stream:
    """Shows an answer's text as it comes, with links that lead from where it is shown.

    Args:
        tree: The brain's places.
        prompt: Its path, to which links are relative; any name does where it is not known yet.

    Attributes:
        links: Converts the text.
        has_begun: Whether anything was printed.
        on_begin: Called before the first piece is printed.
    """

    def __init__(self, tree: Tree, prompt: str) -> None:
        self._tree, self._folder = tree, tree.absolute(prompt).parent
        self._out, self._here = output(), current_folder()  # pieces come in another thread where a daemon runs this
        self.links = LinkStream(self._on_terminal if is_terminal(self._out) else self._in_pipe, clean)
        self.has_begun = False
        self.on_begin: Callable[[], None] = lambda: None

    def __call__(self, piece: str) -> None:
        """Print a piece of the answer at once."""
        if not self.has_begun:
            self.on_begin()
        self.has_begun = True
        self._write(self.links.feed(piece))

    def end(self, text: str) -> None:
        """Print the rest of an answer, or all of it where nothing came in pieces."""
        self._write(("" if self.has_begun else self.links.feed(text)) + self.links.rest() + "\n")

    def _write(self, text: str) -> None:
        """Write cleaned text past the guard, which would take our links for what it cleans away."""
        stream = beneath(self._out)
        stream.write(text)
        stream.flush()

    def _on_terminal(self, link: Link, written: str) -> str:
        """Return a link's words and, since they may name another place, where it leads; a file can be opened there."""
        if link.is_external:
            return clean(f"{link.text} ({link.target})")
        path = Path(os.path.normpath(self._folder / link.target))
        return f"{clean(link.text)} ({opening(self._from_here(path), path if self._is_ours(path) else None)})"

    def _in_pipe(self, link: Link, written: str) -> str:
        """Return a link as Markdown whose path leads from the current folder."""
        if link.is_external or not link.target:
            return clean(written)
        path = self._from_here(Path(os.path.normpath(self._folder / link.target)))
        return clean(retarget_links(written, lambda _: path))

    def _from_here(self, path: Path) -> str:
        """Return a path relative to the current folder if it lies below that."""
        return str(path.relative_to(self._here) if path.is_relative_to(self._here) else path)

    def _is_ours(self, path: Path) -> bool:
        """Return whether a file that exists in the brain or in one of its sources is at a path."""
        try:
            return self._tree.readable(path).exists()
        except (UserError, OSError):  # another place, which the answer of a model may name
            return False


def _show(asked: Asked, stream: _Stream, brain: Brain, *, has_place: bool) -> None:
    """Show an answer, or the rest of one that was streamed, or why a prompt waits."""
    response = asked.response
    if response is None:
        say(f"{asked.prompt} waits: {asked.waits}")
        return
    stream.end(response.text)
    if is_terminal(output()) and has_place:
        print_path(response.path, brain.tree.absolute(response.path), stderr=True)
        rows = [row for row in asked.receipts if row["use"] == CITED]
        if rows:
            say("It rests on (`brainiac why ID`, `wrong ID [TEXT]`, `forget ID`):")
        for row in rows:
            told = words_of(brain, row) or row.get("title", "")
            line = f"  {row['id']}  {row['day']}  {told}"
            session.print_styled(session.styling().Text(line, no_wrap=True, overflow="ellipsis"))


def _say_not_in_memory(reason: str) -> None:
    """Say why no search finds what is said on this device yet; nothing where the reason is ""."""
    if reason:
        say(f"What is said here is not in memory yet, and no search finds it: {reason}", to_stderr=True)


def _tell_wait(path: str, reason: str) -> None:
    say(f"{path} waits: {reason}", to_stderr=True)


def _waiting(brain: Brain) -> AbstractContextManager[object]:
    """Return a context in which a terminal shows that the daemon is answering; elsewhere nothing is shown."""
    if not is_terminal(output(to_stderr=True)) or not is_running(brain):
        return nullcontext()
    sign: AbstractContextManager[object] = session.styling().spinner("waiting for the answer…")
    return sign
