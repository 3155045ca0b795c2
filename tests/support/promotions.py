"""A real brain whose event log Reflection fills, and engines that answer by script, for tests of promotion."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brainiac import Brain, Exchange, Memory, Prompt, Response, hookimpl, testing
from brainiac.clock import ManualClock, iso
from brainiac.events import CandidateEnd, Event, Refused
from brainiac.formats.page import parse_memory
from brainiac.formats.prompt import Command, parse_prompt
from brainiac.llm.schemas import (
    Answer,
    AnswerRequest,
    ConsolidateRequest,
    Consolidation,
    Evidence,
    Operation,
    Page,
    PageRef,
    Purpose,
    Reflection,
    ReflectRequest,
    Request,
    Result,
    Said,
    SummarizeRequest,
    Summary,
    SynthesizeRequest,
    Verdict,
    Verdicts,
    VerifyRequest,
)
from tests.support.models import set_sections

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LTM = "memory/long_term/"
_NAME = re.compile(r"\b[A-Z][A-Za-z0-9]+\b")
_STEP = re.compile(r"^\d+\. (.*)$", re.MULTILINE)


Answered = Result | Callable[[Any], Result]  # of the request that its purpose has


class ScriptedEngine:
    """A model that keeps what was said word for word, and answers otherwise where a test says so.

    What it does by itself is a convention of these tests: a message that ends with a full stop is one statement, word
    for word; one with numbered lines is a how-to with these steps; anything else is talk. What begins with "I" is about
    the user, all else about the first word with a capital that is not the first of the text, or whose page there is.
    What stands in the same words is `same`.

    Args:
        answers: By purpose: a result, or a function of the request.
        is_remote: Whether it says that what it is asked leaves the machine.
    """

    name = "scripted"

    def __init__(self, answers: Mapping[Purpose, Answered] | None = None, *, is_remote: bool = False) -> None:
        self.answers, self.is_remote = dict(answers or {}), is_remote
        self.asked: list[Request] = []
        self._decisions: list[tuple[str, str, str, dict[str, Any]]] = []

    def run(self, request: Request) -> Result:
        self.asked.append(request)
        answer = self.answers.get(request.purpose)
        if answer is None:
            return self.verbatim(request)
        return answer if isinstance(answer, Result) else answer(request)

    def of(self, purpose: Purpose) -> list[Any]:
        """The requests of one purpose."""
        return [request for request in self.asked if request.purpose is purpose]

    def on(self, words: str, action: str, about: str, text: str | None = None, **fields: Any) -> None:
        """Decide what was said with some words by an action on the statement with other words, if there is one.

        Args:
            words: Of what was said.
            action: replace, end, same, forget or new.
            about: Of the statement.
            text: What is to stand; by itself what was said.
            fields: Further ones of the operation.
        """
        self._decisions.append((words, action, about, fields | ({} if text is None else {"text": text})))

    def verbatim(self, request: Request) -> Result:
        """Answer as it does by itself; what was refused it gives again."""
        match request:
            case ReflectRequest():
                told = _told(request.exchange.prompt.text)
                return Reflection(facts=[text for text in told if "\n" not in text and len(text) <= 1000])
            case ConsolidateRequest(refused=refused) if refused:
                return Consolidation.model_construct(operations=[each.operation for each in refused])
            case ConsolidateRequest():
                return Consolidation(operations=[self.operation(text, said, request)
                                                 for said in request.said
                                                 for text in _told(said.event.user, said.event.id)])  # fmt: skip
            case SynthesizeRequest(candidates=candidates):
                folder = "people" if request.kind == "concrete" and request.title else "notes"
                order = [candidate.id for candidate in candidates]
                return Page(kind=request.kind, title=request.title or "Notes", folder=folder, order=order,
                            steps=list(request.steps))  # fmt: skip
            case VerifyRequest(claims=claims):
                return Verdicts(verdicts=[Verdict(item=claim.id, verdict="follows") for claim in claims])
            case AnswerRequest():
                return Answer(text="Noted.")
            case SummarizeRequest(remaining=events):
                return Summary(text=" ".join(event.user for event in events)[:400])
        return request.result()

    def operation(self, text: str, said: Said, request: ConsolidateRequest) -> Operation:
        """Return what becomes of something said."""
        names = {name for page in request.pages for name in page.names}
        fields = _stated(text, said, names)
        for words, action, about, given in self._decisions:
            known = next((one for one in request.existing if about in one.content), None)
            if words in text and known:
                return Operation(**fields | {"action": action, "ids": [known.id]} | given)
        same = next((one for one in request.existing if one.content == text and not fields["steps"]), None)
        return Operation(**fields | ({"action": "same", "ids": [same.id]} if same else {}))


def operations(*made: Mapping[str, Any]) -> Callable[[ConsolidateRequest], Consolidation]:
    """An answer of operations that rest on all that was said, unless they say what they rest on."""

    def consolidate(request: ConsolidateRequest) -> Consolidation:
        evidence = [Evidence(exchange=said.id, quote=said.event.user) for said in request.said]
        fields = [{"action": "new", "evidence": evidence, **each} for each in made]
        return Consolidation.model_construct(operations=[Operation.model_construct(**each) for each in fields])

    return consolidate


def commands_of(text: str) -> tuple[Command, ...]:
    """Return the commands at the head of a message."""
    return parse_prompt("inbox/a.md", text.encode(), at="").commands


def _told(text: str, exchange: str = "") -> list[str]:
    """What a message states, by the convention of these tests; a line that a person wrote into a list always does."""
    if exchange.startswith("line-"):
        return [text]
    said = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("/"))
    is_statement = said.rstrip().endswith(".") or _STEP.search(said)
    return [
        *(each.argument for each in commands_of(text) if each.name == "remember"),
        *([said.strip()] if is_statement else []),
    ]


def _stated(text: str, said: Said, known: Collection[str]) -> dict[str, Any]:
    steps = _STEP.findall(text)
    title = text.partition("\n")[0].rstrip(":")
    names = [found[0] for found in _NAME.finditer(text) if found.start() or found[0] in known]
    subject = title if steps else names[0] if names and not text.startswith("I ") else "User"
    return {
        "action": "new",
        "text": title if steps else text[:1000],
        "subject": subject,
        "subject_type": "workflow" if steps else "person",
        "steps": steps,
        "page": PageRef(
            kind="skill" if steps else "concrete",
            title=title if steps else "",
            folder="notes" if steps or subject == "User" else "people",
        ),
        "evidence": [Evidence(exchange=said.id, quote=text)],
        "importance": 0.5,
    }


class _Models:
    def __init__(self, engine: ScriptedEngine) -> None:
        self._engine = engine

    @hookimpl
    def register_models(self, register: Callable[[str, Any], None]) -> None:
        register("scripted", lambda brain: self._engine)


def make_brain(root: Path, config: str = "", engine: ScriptedEngine | None = None, *, keyless: bool = False) -> Brain:
    """Make a brain as `brainiac init` does, with a clock moved by hand, and a model unless it is to have none."""
    clock = ManualClock(START)
    testing.make_brain(root, clock=clock).close()
    set_sections(root, "recall: {embedder: none}\n" + config)
    if not keyless:
        set_model(root)
    return open_brain(root, engine, clock)


def set_model(root: Path) -> None:
    """Let a brain's settings name the model of these tests."""
    file = root / "system/config.yaml"
    file.write_text(file.read_text().replace("  model: offline", "  model: scripted"))


def open_brain(root: Path, engine: ScriptedEngine | None = None, clock: ManualClock | None = None) -> Brain:
    """Open a brain as a fresh process does."""
    brain = with_model(Brain(root, clock=clock or ManualClock(START)), engine)
    brain.committer.recover()
    brain.observed.adopt()
    return brain


def with_model(brain: Brain, engine: ScriptedEngine | None = None) -> Brain:
    """Register an engine in a brain, as a plugin does."""
    brain.plugins.register(_Models(engine or ScriptedEngine()), "scripted_models")
    return brain


def later(brain: Brain, seconds: float = 3600) -> None:
    """Let time pass."""
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(seconds)


def tell(brain: Brain, text: str, *, minutes: float = 1, private: bool = False, answer: str = "Noted.") -> str:
    """Let time pass, say something, have it reflected, and return the exchange's id."""
    later(brain, minutes * 60)
    at = iso(brain.clock.now())
    number = len(list(brain.journal.events(kinds={"exchange-reflected"}))) + 1
    path = f"inbox/{number}.md"
    prompt = Prompt(path=path, text=text, sha256="", at=at, private=private, commands=commands_of(text))
    exchange = Exchange(f"0199-{number:04d}", prompt, Response(path="", text=answer), at, None)
    brain.plugins.call("response_arrived", brain=brain, exchange=exchange)
    return exchange.id


@dataclass(frozen=True)
class Promoted:
    """What `brainiac promote --json` says of a run, and the event that it recorded; None for none."""

    event: Event | None
    exchanges: int
    statements: dict[str, int]
    left: dict[str, str]
    kept: list[str]
    filed: list[str]
    problem: str
    refused: list[Refused]
    candidates: dict[str, CandidateEnd]


def promote(brain: Brain) -> Promoted:
    """Run the command on a brain that is open."""
    said = testing.command(brain, "promote", "--json")
    assert said.out, said.err
    told = said.json
    told["event"] = next((event for event in brain.journal.events(reverse=True) if event.id == told["event"]), None)
    told["refused"] = list(map(Refused.from_json, told["refused"]))
    told["candidates"] = {name: CandidateEnd.from_json(end) for name, end in told["candidates"].items()}
    return Promoted(**told)


def problems(brain: Brain) -> dict[str, str]:
    """Return what `brainiac doctor` finds wrong, by path."""
    return {row["path"]: row["what"] for row in testing.command(brain, "doctor", "--json").json["problems"]}


def pages(brain: Brain) -> dict[str, Memory]:
    """Every memory page by its path below `long_term/`, in the order of the paths."""
    found = {}
    for entry in sorted(brain.tree.walk(brain.tree.long_term), key=lambda entry: entry.path):
        path = brain.tree.relative(entry.path)
        if entry.name != "_index.md":
            found[path.removeprefix(LTM)] = parse_memory(path, brain.read_text(path) or "")
    return found


def statements(brain: Brain, *, history: bool = False) -> list[str]:
    """Every statement that holds (or no longer does), of all pages."""
    return [one.text for page in pages(brain).values() for one in page.statements if one.is_history is history]


def page_with(brain: Brain, text: str) -> Memory:
    """The page on which a text stands as a statement."""
    return next(page for page in pages(brain).values() if any(text in one.text for one in page.statements))
