"""What pages are made of: a table of pages and actions, the visit that they get, and the templates."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from brainiac import verbs
from brainiac.brain import Brain
from brainiac.errors import BrainiacError, UserError
from brainiac.server.guard import message_and_status
from brainiac.window import words
from brainiac.window.sessions import Sessions

FOLDER = Path(__file__).parent
MAX_KEPT = 100  # messages, keys of forms and answers that this process remembers
QUICK_SECONDS = 1.0  # for which a browser without JavaScript waits for an answer


@dataclass(frozen=True, slots=True)
class Done:
    """What an action did, for the page that is shown next.

    Attributes:
        message: A sentence.
        undo: What takes it back: an event's id or `path#^block`; "" for nothing.
        undo_word: The word for that.
        is_problem: Whether it was not done.
        to: The path of another page than the one that the form stood on, with its query.
        draft: The fields of a form whose wish was not done, so that nobody has to write them again.
    """

    message: str = ""
    undo: str = ""
    undo_word: str = "undo"
    is_problem: bool = False
    to: str = ""
    draft: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LiveAnswer:
    """An answer that this process waits for, for whom the window shows it as it comes.

    Attributes:
        prompt: The prompt's path.
        asked: Its words.
        text: The answer so far.
        problem: Why there is none.
        done: Set once nothing more comes.
    """

    prompt: str
    asked: str
    text: str = ""
    problem: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class Desk:
    """What the window keeps between two requests, in this process alone; thread-safe.

    Args:
        brain: The daemon's.

    Attributes:
        sessions: Who is logged in.
        answers: By the prompt's path, oldest first.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain, self.sessions = brain, Sessions(brain.places.state)
        self.answers: dict[str, LiveAnswer] = {}
        self._messages: dict[str, Done] = {}
        self._keys: dict[str, str] = {}
        self._mutex = threading.Lock()

    def keep(self, done: Done) -> str:
        """Keep a message for the page that is shown next, and return the name by which that one knows it."""
        name = secrets.token_urlsafe(8)
        self._put(self._messages, name, done)
        return name

    def message(self, name: str) -> Done:
        """Return a message, once."""
        return self._messages.pop(name, Done())

    def ask(self, text: str, key: str, conversation: str = "") -> LiveAnswer:
        """Drop a prompt into the inbox, and have it answered; a form that comes twice asks once.

        Args:
            text: The prompt.
            key: Of the form.
            conversation: Its folder in the inbox.

        Raises:
            UserError: There is no text, or it cannot be asked there.
        """
        with self._mutex:
            if answer := self.answers.get(self._keys.get(key, "")):
                return answer
            path = verbs.save_prompt(self.brain, text, conversation=conversation)
            if key:
                self._keys[key] = path
            return self._follow(path, text, is_again=False)

    def ask_again(self, path: str) -> LiveAnswer:
        """Have a prompt of the inbox answered once more."""
        with self._mutex:
            text = self.brain.read_text(self.brain.tree.confine(path, inside=self.brain.tree.inbox)) or ""
            return self._follow(path, text, is_again=True)

    def _follow(self, path: str, text: str, *, is_again: bool) -> LiveAnswer:
        answer = LiveAnswer(path, text)
        self._put(self.answers, path, answer)

        def stream(piece: str) -> None:
            answer.text += piece

        def wait() -> None:
            try:
                asked = verbs.answer(self.brain, path, is_again=is_again, stream=stream)
                answer.problem = asked.waits if asked.response is None else ""
            except BrainiacError as error:
                answer.problem = message_and_status(error)[0]
            except Exception as error:
                self.brain.log.error("answer_not_followed", prompt=path, exc_info=error)
                answer.problem = message_and_status(error)[0]
            finally:
                answer.done.set()

        threading.Thread(target=wait, name="window-answer", daemon=True).start()
        return answer

    def _put(self, table: dict[str, Any], name: str, value: Any) -> None:
        table[name] = value
        while len(table) > MAX_KEPT:
            table.pop(next(iter(table)))


@dataclass(frozen=True)
class Visit:
    """One request for a page or an action.

    Attributes:
        brain: The daemon's.
        desk: What the window keeps.
        path: Of the page; of an action that of the page with its form.
        given: The fields of the query or the form; a missing one is "".
        session: The visitor's.
        has_script: Whether the browser runs our script, as far as the request shows it.
    """

    brain: Brain
    desk: Desk
    path: str
    given: Mapping[str, str]
    session: str = ""
    has_script: bool = False

    def need(self, name: str) -> str:
        """Return a field that must be there.

        Raises:
            UserError: It is not.
        """
        if not (value := self.given.get(name, "")):
            raise UserError(f"this needs `{name}`; go back and try again")
        return value

    @cached_property
    def now(self) -> Any:
        """The person's present moment."""
        return self.brain.now().astimezone(self.brain.zone)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the window.

    Attributes:
        path: Such as `/status`; its template has that name.
        title: Also in the navigation.
        values: Returns what the template is filled with; it only reads.
        is_listed: Whether the navigation has it.
        is_live: Whether it is drawn anew as things happen.
    """

    path: str
    title: str
    values: Callable[[Visit], Mapping[str, Any]]
    is_listed: bool = True
    is_live: bool = False

    @property
    def template(self) -> str:
        """The name of its template."""
        return f"{self.path.strip('/') or 'today'}.html"


Action = Callable[[Visit], Done]


def _field(value: object) -> Markup:
    """Return a value for a form's field, as it is: unseen characters must come back as they went."""
    return Markup(escape(value))


def templates() -> Environment:
    """Return the environment of all templates."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=words.shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"words": words.memory_html, "day": words.relative_day, "field": _field}
    for each in (words.who, words.below_properties, words.differing, words.changed_lines, words.in_place):
        environment.filters[each.__name__] = each
    return environment
