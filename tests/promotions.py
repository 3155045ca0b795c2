"""A real brain whose event log Reflection fills, and engines that answer by script, for tests of promotion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.clock import ManualClock, iso
from brainiac.llm.offline import OfflineEngine
from brainiac.llm.schemas import Purpose, Request, Result
from brainiac.notes.memory import Memory, parse_memory
from brainiac.notes.prompt import Exchange, Prompt, Response
from brainiac.skeleton import create_brain
from tests.models import set_sections

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LTM = "memory/long_term/"


class ScriptedEngine:
    """An engine that answers some purposes by script and the others as the offline engine does.

    Args:
        answers: By purpose: a result, or a function of the request.
        is_remote: Whether it says that what it is asked leaves the machine.
    """

    name = "scripted"

    def __init__(self, answers: Mapping[Purpose, Any], *, is_remote: bool = False) -> None:
        self.answers, self.is_remote = dict(answers), is_remote
        self.asked: list[Request] = []
        self._offline = OfflineEngine()

    def run(self, request: Request) -> Result:
        self.asked.append(request)
        answer = self.answers.get(request.purpose)
        if answer is None:
            return self._offline.run(request)
        return answer(request) if callable(answer) else answer

    def of(self, purpose: Purpose) -> list[Any]:
        """The requests of one purpose."""
        return [request for request in self.asked if request.purpose is purpose]


class _Models:
    def __init__(self, engine: ScriptedEngine) -> None:
        self._engine = engine

    @hookimpl
    def register_models(self, register: Callable[[str, Any], None]) -> None:
        register("scripted", lambda brain: self._engine)


def make_brain(root: Path, config: str = "", engine: ScriptedEngine | None = None) -> Brain:
    """Make a brain as `brainiac init` does, with a clock moved by hand."""
    clock = ManualClock(START)
    create_brain(root, clock=clock)
    set_sections(root, "recall: {embedder: none}\n" + config)
    if engine:
        text = (root / "system/config.yaml").read_text().replace("  model: offline", "  model: scripted")
        (root / "system/config.yaml").write_text(text)
    return open_brain(root, engine, clock)


def open_brain(root: Path, engine: ScriptedEngine | None = None, clock: ManualClock | None = None) -> Brain:
    """Open a brain as a fresh process does."""
    brain = Brain(root, clock=clock or ManualClock(START))
    if engine:
        brain.plugins.register(_Models(engine), "scripted_models")
    brain.committer.recover()
    brain.observed.adopt()
    return brain


def tell(brain: Brain, text: str, *, minutes: float = 1, private: bool = False, answer: str = "Noted.") -> str:
    """Let time pass, say something, have it reflected, and return the exchange's id."""
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(minutes * 60)
    at = iso(brain.clock.now())
    number = len(list(brain.journal.events(kinds={"exchange-reflected"}))) + 1
    prompt = Prompt(path=f"inbox/{number}.md", text=text, sha256="", at=at, private=private)
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
