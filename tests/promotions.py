"""A real brain whose event log Reflection fills, and engines that answer by script, for tests of promotion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso
from brainiac.formats.commands import arguments, parse_commands
from brainiac.formats.memory import Memory, parse_memory
from brainiac.formats.prompt import Exchange, Prompt, Response
from brainiac.llm.offline import OfflineEngine
from brainiac.llm.schemas import (
    AnalyzeRequest,
    Candidate,
    Candidates,
    Decision,
    Decisions,
    IntegrateRequest,
    Page,
    Purpose,
    Reflection,
    ReflectRequest,
    Request,
    Result,
    SynthesizeRequest,
)
from brainiac.skeleton import create_brain
from brainiac.storage.statements import LINE
from tests.models import set_sections

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LTM = "memory/long_term/"
_NAME = re.compile(r"\b[A-Z][A-Za-z0-9]+\b")
_STEP = re.compile(r"^\d+\. (.*)$", re.MULTILINE)


class ScriptedEngine:
    """A model that keeps what was said word for word, and answers otherwise where a test says so.

    What it does by itself is a convention of these tests: a message that ends with a full stop is one candidate, word
    for word; one with numbered lines is a how-to with these steps; anything else is talk. What begins with "I" is about
    the user, all else about the first word with a capital that is not the first of the text, or whose page there is.

    Args:
        answers: By purpose: a result, or a function of the request.
        is_remote: Whether it says that what it is asked leaves the machine.
    """

    name = "scripted"

    def __init__(self, answers: Mapping[Purpose, Any] | None = None, *, is_remote: bool = False) -> None:
        self.answers, self.is_remote = dict(answers or {}), is_remote
        self.asked: list[Request] = []
        self._decisions: list[tuple[str, str, str, str]] = []

    def run(self, request: Request) -> Result:
        self.asked.append(request)
        answer = self.answers.get(request.purpose)
        if answer is None:
            return self.verbatim(request)
        return answer(request) if callable(answer) else answer

    def of(self, purpose: Purpose) -> list[Any]:
        """The requests of one purpose."""
        return [request for request in self.asked if request.purpose is purpose]

    def on(self, words: str, verb: str, about: str, content: str = "") -> None:
        """Decide candidates with some words by a verb on the statement with other words, if there is one.

        Args:
            words: Of the candidate.
            verb: UPDATE, DELETE or REINFORCE.
            about: Of the statement.
            content: What is to stand; by itself what the candidate states.
        """
        self._decisions.append((words, verb, about, content))

    def verbatim(self, request: Request) -> Result:
        """Answer as it does by itself."""
        match request:
            case ReflectRequest():
                told = _told(request.exchange.prompt.text)
                return Reflection(facts=[text for text in told if "\n" not in text and len(text) <= 1000])
            case AnalyzeRequest():
                return Candidates(candidates=[_candidate(text, event.id, request.subjects)
                                              for event in request.events
                                              for text in _told(event.user, event.id)])  # fmt: skip
            case IntegrateRequest():
                return Decisions(operations=[self._decision(request)])
            case SynthesizeRequest(candidate=candidate):
                folder = "people" if candidate.subject not in ("", "User") else "notes"
                title = candidate.statement if candidate.kind == "skill" else candidate.subject
                return Page(kind=candidate.kind, title=title if title != "User" else "Notes", folder=folder)
        return OfflineEngine().run(request)

    def _decision(self, request: IntegrateRequest) -> Decision:
        statement = request.candidate.statement
        for words, verb, about, content in self._decisions:
            known = next((one for one in request.existing if about in one.content), None)
            if words in statement and known:
                return Decision(operation=verb, id=known.id, content=content or statement)  # type: ignore[arg-type]
        same = next((one for one in request.existing if one.content == statement), None)
        return Decision(operation="REINFORCE" if same else "NEW", id=same.id if same else "", content=statement)


def _told(text: str, exchange: str = "") -> list[str]:
    """What a message states, by the convention of these tests; a line that a person wrote into a list always does."""
    if exchange.startswith(LINE):
        return [text]
    commands, said = parse_commands(text)
    is_statement = said.rstrip().endswith(".") or _STEP.search(said)
    return [*arguments(commands, "remember"), *([said.strip()] if is_statement else [])]


def _candidate(text: str, exchange: str, known: Sequence[str]) -> Candidate:
    if steps := _STEP.findall(text):
        title = text.partition("\n")[0].rstrip(":")
        return Candidate(statement=title, kind="skill", steps=steps, subject=title, events=[exchange])
    names = [found[0] for found in _NAME.finditer(text) if found.start() or found[0] in known]
    subject = names[0] if names and not text.startswith("I ") else "User"
    return Candidate(statement=text[:1000], subject=subject, subject_type="person", events=[exchange])


class _Models:
    def __init__(self, engine: ScriptedEngine) -> None:
        self._engine = engine

    @hookimpl
    def register_models(self, register: Callable[[str, Any], None]) -> None:
        register("scripted", lambda brain: self._engine)


def make_brain(root: Path, config: str = "", engine: ScriptedEngine | None = None, *, keyless: bool = False) -> Brain:
    """Make a brain as `brainiac init` does, with a clock moved by hand, and a model unless it is to have none."""
    clock = ManualClock(START)
    create_brain(root, clock=clock)
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


def tell(brain: Brain, text: str, *, minutes: float = 1, private: bool = False, answer: str = "Noted.") -> str:
    """Let time pass, say something, have it reflected, and return the exchange's id."""
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(minutes * 60)
    at = iso(brain.clock.now())
    number = len(list(brain.journal.events(kinds={"exchange-reflected"}))) + 1
    commands, _ = parse_commands(text)
    prompt = Prompt(path=f"inbox/{number}.md", text=text, sha256="", at=at, private=private, commands=commands)
    exchange = Exchange(f"0199-{number:04d}", prompt, Response(path="", text=answer), at, None)
    brain.plugins.call("response_arrived", brain=brain, exchange=exchange)
    return exchange.id


def pages(brain: Brain) -> dict[str, Memory]:
    """Every memory page by its path below `long_term/`."""
    found = {}
    for entry in brain.tree.walk(brain.tree.long_term):
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
