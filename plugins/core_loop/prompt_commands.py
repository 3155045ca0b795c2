"""The replies to the commands of a prompt, with every engine and without a model call (docs/format.md).

This file only writes the replies: Reflection changes the lists of short-term memory, and `history/forget.py` makes the
plan of a `/forget`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import chain

from brainiac.brain import Brain
from brainiac.formats.discretion import is_private_event
from brainiac.formats.markdown import format_link, relative_link
from brainiac.formats.prompt import Command, arguments, parse_commands
from brainiac.formats.short_term import Item, ShortTermMemory, matching
from brainiac.llm.context.memory import ShownPages
from brainiac.llm.gate import Gate
from brainiac.llm.offline import NOTHING, SECRET, WISHES, passages, quotations
from brainiac.llm.redaction import kinds_of, redact
from brainiac.llm.schemas import OFFLINE, AnswerRequest

MAX_PINNED, MAX_PAGES = 8, 8  # of what is shown about the person
MODEL = "commands"  # the `model` of a response that no engine wrote
_UNKNOWN = re.compile(r"/[a-z]+(?=\s|\Z)")  # not a path such as /usr/bin
HELP = """\
{engine}

As the first lines of a prompt:

| line | what it does |
|---|---|
| `/remember TEXT` | keeps TEXT in long-term memory, as written |
| `/find WORDS` | quotes what memory holds on them, without a model |
| `/todo TEXT`, `/done WORDS`, `/tasks` | adds, ticks and lists tasks |
| `/forget WORDS` | lists what holds these words; what you tick in memory/review.md is forgotten |
| `/private` | this prompt goes to no model that is not on this machine |
| `/off` | nothing of this prompt is kept |

A file in inbox/notes/ is kept and not answered. `brainiac --help` lists the commands of the terminal."""
WITHOUT_MODEL = (
    "Write anything: it is kept word for word, and what memory holds nearest is quoted. Nothing is reasoned; "
    "`llm.model` in system/config.yaml names a model that does."
)
OFF_RECORD = "Off the record: nothing of this is kept beyond this file."
WITH_MODEL = "Write anything: it is kept word for word, and `{model}` answers from what this brain holds."


@dataclass(slots=True)
class CommandReply:
    """The reply to the commands of a prompt.

    Attributes:
        paragraphs: Its paragraphs, in the order of the commands.
        cited: Indices of the request's hits that it quotes.
        is_private: Whether it says something private, so that the exchange becomes private too.
    """

    paragraphs: list[str] = field(default_factory=list)
    cited: list[int] = field(default_factory=list)
    is_private: bool = False


def reply_to_commands(brain: Brain, request: AnswerRequest, *, n_find_hits: int) -> CommandReply:
    """Return the reply to a prompt's commands.

    Args:
        brain: The brain.
        request: The prompt, short-term memory as it stands, and the hits.
        n_find_hits: How many of the hits, the first ones, are those of `/find`.
    """
    reply = CommandReply()
    for command in request.prompt.commands:
        match command.name:
            case "find":
                continue  # all of them together, below
            # they would leave a trace of an off-the-record prompt in memory
            case "todo" | "done" | "remember" if not request.prompt.remember:
                reply.paragraphs.append(f"Not done, since nothing of this prompt is kept: `/{command.name}`.")
            case "todo" | "done" | "tasks":
                _reply_to_tasks(command, request.short_term, reply)
            case "remember":
                reply.paragraphs.append(_missing_words(command) or f"To be remembered as written: {command.argument}")
            case "help":
                model = request.prompt.model or brain.settings.llm.model
                engine = WITHOUT_MODEL if model == "offline" else WITH_MODEL.format(model=model)
                reply.paragraphs.append(HELP.format(engine=engine))
            case "forget" if command.argument:
                from brainiac.history.forget import propose  # the only command that reads the whole memory

                proposed = propose(brain, command.argument, request.prompt.path)
                reply.is_private |= proposed.is_private
                reply.paragraphs.append(proposed.text)
            case "forget":
                reply.paragraphs.append(_missing_words(command))
    # in a prompt that a program sent through the server, what looks like a command is text (F-PRM-10)
    if not request.prompt.by and (unknown := _UNKNOWN.match(request.prompt.said)):
        reply.paragraphs.append(f"`{unknown[0]}` is no command, so it is read as text; `/help` lists the commands.")
    reply.paragraphs = [redact(brain, paragraph) for paragraph in reply.paragraphs]  # no copy of a secret in the answer
    names = {command.name for command in request.prompt.commands}
    if not request.prompt.remember and "forget" not in names:
        reply.paragraphs.append(OFF_RECORD)
    if "find" in names:
        hits, words = request.hits[:n_find_hits], " ".join(arguments(request.prompt.commands, "find"))
        chosen, folder = passages(hits, words), posixpath.dirname(request.prompt.path)
        reply.paragraphs += quotations(hits, chosen, words, folder, request.now.tzinfo) if chosen else [NOTHING]
        reply.cited += chosen
        # private is what the gate withholds from a model elsewhere
        shareable = Gate(brain).hits(hits[index] for index in chosen)
        reply.is_private |= len(shareable) < len(chosen)
    return reply


def _missing_words(command: Command) -> str:
    """Return the message about a command that lacks its words; "" where it has them."""
    return "" if command.argument else f"`/{command.name}` needs words behind it; `/help` shows how."


def _reply_to_tasks(command: Command, memory: ShortTermMemory, reply: CommandReply) -> None:
    """Add the paragraph for `/todo`, `/done` or `/tasks`; those of private exchanges are in no list."""
    tasks = memory.tasks
    open_tasks = [task for task in tasks if not task.is_done]
    if command.name == "tasks":
        private = [event.user for event in reversed(memory.events) if is_private_event(event)]
        todos = (arguments(parse_commands(user)[0], "todo") for user in private)
        open_tasks += [Item(text, is_private=True) for text in chain.from_iterable(todos)]
        reply.is_private |= any(task.is_private for task in open_tasks)
        reply.paragraphs.append(_listed(open_tasks) or "No open tasks.")
        return
    if command.name == "todo" or not command.argument:
        reply.paragraphs.append(_missing_words(command) or f"Task added: {command.argument}")
        return
    matches = matching(tasks, command.argument)
    reply.is_private |= any(task.is_private for task in matches or open_tasks)
    if len(matches) == 1:
        reply.paragraphs.append(f"Done: {matches[0].text}")
        return
    count = "Several open tasks hold" if matches else "No open task holds"
    heading = f"{count} “{command.argument}”; nothing was ticked."
    reply.paragraphs.append("\n\n".join(filter(None, [heading, _listed(matches or open_tasks)])))


def _listed(tasks: Iterable[Item]) -> str:
    """Return tasks as a Markdown list; "" for none."""
    return "\n".join(f"- [ ] {task.text}" for task in tasks)


def redaction_notice(brain: Brain, text: str) -> str:
    """Return the line about secrets in a prompt that are not kept; "" where it has none."""
    kinds = kinds_of(brain, text)
    if not kinds:
        return ""
    setting = "redact_codes" if kinds == ["code"] else "redact_secrets"
    what = " and ".join(f"{'an' if kind[0] in 'AEIOaeio' or kind.startswith('NPM') else 'a'} {kind}" for kind in kinds)
    return f"Not kept beyond this file: it looks like {what} (`reflection.{setting}`)."


def add_hints(brain: Brain, request: AnswerRequest, near: Collection[str], reply: CommandReply) -> None:
    """Add the lines that name commands where a person's message, by its meaning, seems to want them.

    What such a command only reads is shown below its line; nothing is ever changed.

    Args:
        brain: The brain.
        request: For the answer.
        near: What the message comes near to, see `search/wishes.py`.
        reply: The lines are added to it.
    """
    prompt = request.prompt
    # whatever the words of others seem to ask for, and whatever the person asked for by a command already
    if not (prompt.is_typed and prompt.remember and prompt.said.strip()):
        return
    is_offline = brain.models.engine_for(request).name == OFFLINE
    # a model answers it, or notes it with the exchange, and Reflection hides what it is about
    for kind in WISHES.keys() & near if is_offline else ():
        reply.paragraphs.append(WISHES[kind])
        shown = len(reply.paragraphs)
        if kind == "tasks":
            _reply_to_tasks(Command("tasks"), request.short_term, reply)
        elif kind == "about_me":
            reply.paragraphs.append(_about_person(brain, request) or "Nothing yet.")
        reply.paragraphs[shown:] = [redact(brain, paragraph) for paragraph in reply.paragraphs[shown:]]
    if "secret" in near and not kinds_of(brain, prompt.text):
        reply.paragraphs.append(SECRET)


def _about_person(brain: Brain, request: AnswerRequest) -> str:
    """Return a list of what a person pinned, and of the pages with most links; "" for nothing. Nothing private."""
    gate = Gate(brain)
    pinned = gate.short_term(request.short_term)
    items = [*pinned.goals, *pinned.facts][-MAX_PINNED:]
    folder = posixpath.dirname(request.prompt.path)
    pages = ShownPages(brain, gate).most_linked(MAX_PAGES)
    links = (format_link(page.title, relative_link(page.path, folder), page.uuid) for page, _ in pages)
    return "\n".join(f"- {line}" for line in (*(item.text for item in items), *links))
