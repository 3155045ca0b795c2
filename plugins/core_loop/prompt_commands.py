"""What the commands of a prompt do and say, with every engine and without a call (design 3, F-PRM-8).

The lists of short-term memory are Reflection's to change, and the plan of a `/forget` is `history.forget`'s to make;
here stands what the person is told at once.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from brainiac.brain import Brain
from brainiac.formats.prompt import Command, Prompt, arguments
from brainiac.formats.short_term import Item, matching
from brainiac.llm.gate import Gate
from brainiac.llm.offline import MAX_PASSAGES, NOTHING, passages, quotations
from brainiac.llm.redaction import kinds_of, redact
from brainiac.llm.schemas import AnswerRequest
from brainiac.search.documents import Hit

MODEL = "commands"  # what a response names when no engine was asked
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
WITH_MODEL = "Write anything: it is kept word for word, and `{model}` answers from what this brain holds."


@dataclass(slots=True)
class Told:
    """What the commands of a prompt have to say.

    Attributes:
        paragraphs: In the order of the commands.
        cited: Indices of the request's hits that are quoted.
        is_private: Something private is told, so that the exchange is private too.
    """

    paragraphs: list[str] = field(default_factory=list)
    cited: list[int] = field(default_factory=list)
    is_private: bool = False


def found(brain: Brain, prompt: Prompt) -> list[Hit]:
    """Return what the `/find` of a prompt find, best first."""
    hits: list[Hit] = []
    for words in arguments(prompt.commands, "find"):
        hits += brain.recall.search(words, limit=2 * MAX_PASSAGES, now=brain.now(), is_private=prompt.private)
    return hits


def tell(brain: Brain, request: AnswerRequest, n_found: int) -> Told:
    """Say what becomes of each command.

    Args:
        brain: The brain.
        request: The prompt, short-term memory as it stands, and the hits.
        n_found: How many hits, the first ones, are what `/find` found.
    """
    told = Told()
    for command in request.prompt.commands:
        match command.name:
            case "find":
                continue  # all of them together, below
            case "todo" | "done" | "remember" if not request.prompt.remember:
                told.paragraphs.append(f"Not done, since nothing of this prompt is kept: `/{command.name}`.")
            case "todo" | "done" | "tasks":
                _tell_of_tasks(command, request.short_term.tasks, told)
            case "remember":
                told.paragraphs.append(_needs(command) or f"To be remembered as written: {command.argument}")
            case "off":
                told.paragraphs.append("Off the record: nothing of this is kept beyond this file.")
            case "help":
                told.paragraphs.append(HELP.format(engine=_engine(request.prompt.model or brain.settings.llm.model)))
            case "forget":
                _tell_of_forgetting(brain, command, request, told)
    told.paragraphs = [redact(brain, paragraph) for paragraph in told.paragraphs]  # no copy of a secret in the answer
    if any(command.name == "find" for command in request.prompt.commands):
        _tell_found(brain, request, n_found, told)
    return told


def _engine(model: str) -> str:
    """Return what the engine that is set does with a prompt."""
    return WITHOUT_MODEL if model == "offline" else WITH_MODEL.format(model=model)


def _needs(command: Command) -> str:
    return "" if command.argument else f"`/{command.name}` needs words behind it; `/help` shows how."


def _tell_of_tasks(command: Command, tasks: Sequence[Item], told: Told) -> None:
    open_tasks = [task for task in tasks if not task.is_done]
    if command.name == "tasks":
        told.is_private |= any(task.is_private for task in open_tasks)
        told.paragraphs.append(_listed(open_tasks) or "No open tasks.")
        return
    if problem := _needs(command):
        told.paragraphs.append(problem)
        return
    if command.name == "todo":
        told.paragraphs.append(f"Task added: {command.argument}")
        return
    matches = matching(tasks, command.argument)
    told.is_private |= any(task.is_private for task in matches or open_tasks)
    if len(matches) == 1:
        told.paragraphs.append(f"Done: {matches[0].text}")
        return
    count = "Several open tasks hold" if matches else "No open task holds"
    heading = f"{count} “{command.argument}”; nothing was ticked."
    told.paragraphs.append("\n\n".join(filter(None, [heading, _listed(matches or open_tasks)])))


def _listed(tasks: Iterable[Item]) -> str:
    return "\n".join(f"- [ ] {task.text}" for task in tasks)


def _tell_found(brain: Brain, request: AnswerRequest, n_found: int, told: Told) -> None:
    """Quote what `/find` found."""
    hits = request.hits[:n_found]
    chosen = passages(hits)
    words = " ".join(arguments(request.prompt.commands, "find"))
    folder = posixpath.dirname(request.prompt.path)
    told.paragraphs += quotations(hits, chosen, words, folder, request.zone) if chosen else [NOTHING]
    told.cited += chosen
    told.is_private |= len(Gate(brain, is_remote=True).hits([hits[index] for index in chosen])) < len(chosen)


def _tell_of_forgetting(brain: Brain, command: Command, request: AnswerRequest, told: Told) -> None:
    from brainiac.history.forget import propose  # the only command that reads the whole memory

    if problem := _needs(command):
        told.paragraphs.append(problem)
        return
    proposed = propose(brain, command.argument, request.prompt.path)
    told.is_private |= proposed.is_private
    told.paragraphs.append(proposed.text)


def secrets_told(brain: Brain, text: str) -> str:
    """Return the line that tells what of a prompt is not kept; "" where all of it is."""
    kinds = kinds_of(brain, text)
    if not kinds:
        return ""
    setting = "redact_codes" if kinds == ["code"] else "redact_secrets"
    what = " and ".join(map(_with_article, kinds))
    return f"Not kept beyond this file: it looks like {what} (`reflection.{setting}`)."


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIOaeio' or kind.startswith('NPM') else 'a'} {kind}"
