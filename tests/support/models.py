"""A brain, requests and a model on loopback for tests of the gateway and of working memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from brainiac import Brain, Exchange, Prompt, Response
from brainiac.clock import ManualClock
from brainiac.formats.markdown import StmEvent
from brainiac.formats.prompt import parse_prompt
from brainiac.formats.short_term import Item, ShortTermMemory
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import (
    Answer,
    AnswerRequest,
    Claim,
    ConsolidateRequest,
    Existing,
    OrganizeRequest,
    PageName,
    Purpose,
    QueriesRequest,
    Quoted,
    ReflectRequest,
    Request,
    Said,
    SummarizeRequest,
    SynthesizeRequest,
    VerifyRequest,
)
from brainiac.search.documents import Hit
from tests.support.openai_server import ChatServer

NOW = datetime(2025, 9, 16, 15, 30, tzinfo=UTC)
MODEL = "openai/test-model"
UUID = "0199aaaa-0000-7000-8000-00000000000"


def make_brain(folder: Path, settings: dict[str, Any] | None = None, *, clock: ManualClock | None = None) -> Brain:
    """Make a brain with an identity and two linked memories."""
    for name in ("inbox", "memory/long_term/concrete", "memory/long_term/events", "system/prompts", "plugins", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "system/core_identity.md").write_text("# Core Identity\n\nBe brief and kind.\n")
    write_settings(folder, {"recall": {"embedder": "none"}, **(settings or {})})
    write_memory(folder, "concrete/portland.md", "Portland", 1, "User lives in Portland, since 2020. ^f3k9")
    link = f'- [Portland](portland.md "uuid:{UUID}1")'
    write_memory(
        folder, "concrete/mara.md", "Mara", 2, "Mara is User's sister. ^m1", f"\n## Related Memories\n\n{link}\n"
    )
    return Brain(folder, clock=clock or ManualClock(NOW))


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write `system/config.yaml`."""
    (folder / "system/config.yaml").write_text(yaml.safe_dump(settings))


def set_sections(folder: Path, sections: str) -> None:
    """Put sections in place of those that `system/config.yaml` has."""
    path = folder / "system/config.yaml"
    write_settings(folder, (yaml.safe_load(path.read_text()) or {}) | (yaml.safe_load(sections) or {}))


def write_memory(folder: Path, path: str, title: str, number: int, statement: str, tail: str = "") -> None:
    """Write a memory page with one statement."""
    file = folder / "memory/long_term" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    meta = f"uuid: {UUID}{number}\ncreated_at: 2025-01-01T00:00:00Z\nupdated_at: 2025-01-0{number}T00:00:00Z\n"
    file.write_text(
        f"---\n{meta}tags: []\nemotion: ''\nreinforcement_count: 0\n---\n# {title}\n\n- {statement}\n{tail}"
    )


def model_brain(folder: Path, server: ChatServer, model: str = MODEL, **llm: Any) -> Brain:
    """Make a brain whose model is served on loopback, as this machine's own config says."""
    brain = make_brain(folder, {"llm": {"model": model, "timeout_seconds": 10, **llm}})
    provider = model.partition("/")[0]
    base = server.url.removesuffix("/v1") if provider == "anthropic" else server.url
    write_machine(brain, {"api_bases": {provider: base}})
    return brain


def write_machine(brain: Brain, machine: dict[str, Any]) -> None:
    """Write this machine's own config."""
    brain.places.config.parent.mkdir(parents=True, exist_ok=True)
    brain.places.config.write_text(yaml.safe_dump(machine))


def prompt_of(text: str = "Where do I live?", meta: str = "", path: str = "inbox/q.md") -> Prompt:
    """Parse a prompt."""
    head = f"---\n{meta}\n---\n" if meta else ""
    return parse_prompt(path, (head + text).encode(), at="2025-09-16T15:30:00Z")


def hit_of(text: str = "User lives in Portland, since 2020.", *, number: int = 1, **fields: Any) -> Hit:
    """Make a hit on a memory page."""
    values: dict[str, Any] = {
        "kind": "statement",
        "path": "memory/long_term/concrete/portland.md",
        "title": "Portland",
        "text": text,
        "score": 1.0,
        "uuid": f"{UUID}{number}",
        "anchor": "f3k9",
        "at": "2025-01-01T00:00:00Z",
    }
    return Hit(**{**values, **fields})


def event_of(number: int, user: str = "", ai: str = "", **fields: Any) -> StmEvent:
    """Make an event; a higher number is later."""
    at = f"2025-09-{1 + number // 24:02d}T{number % 24:02d}:00:00Z"
    return StmEvent(f"e{number}", at, user or f"Thing {number} happened.", ai or f"Noted {number}.", **fields)


def short_term(events: int | Sequence[StmEvent] = 2, **fields: Any) -> ShortTermMemory:
    """Make short-term memory with so many events, or with these, newest first."""
    values: dict[str, Any] = {
        "summary": "User plans a trip.",
        "goals": (Item("See Gotland"),),
        "facts": (Item("User has a bicycle"),),
        "tasks": (Item("Buy milk"),),
        "events": tuple(map(event_of, reversed(range(events)))) if isinstance(events, int) else tuple(events),
    }
    return ShortTermMemory(**{**values, **fields})


def answer_request(prompt: Prompt | None = None, hits: Sequence[Hit] | None = None, **fields: Any) -> AnswerRequest:
    """Make a request for an answer."""
    values: dict[str, Any] = {"now": NOW, "short_term": short_term(), "hits": [hit_of()] if hits is None else hits}
    return AnswerRequest(prompt=prompt or prompt_of(), **{**values, **fields})


def shown(brain: Brain, request: AnswerRequest, *, model: str = MODEL, gate: Gate | None = None) -> Any:
    """Return the working memory that a model would be sent for a prompt which names it."""
    return brain.models.working_memory(replace(request, prompt=replace(request.prompt, model=model)), gate=gate)


def run_answer(brain: Brain, request: AnswerRequest | None = None) -> Answer:
    """Have a request answered, an ordinary one unless another is given."""
    result = brain.models.run(request or answer_request())
    assert isinstance(result, Answer)
    return result


def queries_request(prompt: Prompt | None = None, **fields: Any) -> QueriesRequest:
    """Make a request for queries."""
    return QueriesRequest(**{"now": NOW, "prompt": prompt or prompt_of(), "short_term": short_term(), **fields})


def exchange_of(number: int, said: str = "Hello", answer: str = "Hi") -> Exchange:
    """Make an answered exchange of a conversation."""
    response = Response(path=f"inbox/trip/{number}.response.md", text=answer)
    at = f"2025-09-16T10:{number:02d}:00Z"
    return Exchange(f"x{number}", prompt_of(said, path=f"inbox/trip/{number}.md"), response, at)


def every_request() -> dict[Purpose, Request]:
    """Make a request of each purpose."""
    existing = [Existing("s1", "User has a dog", "memory/long_term/concrete/pets.md", "Pets", "2025-09-01")]
    pages = [PageName("memory/long_term/concrete/pets.md", ("Pets", "animals"), "What lives with User.")]
    events = [event_of(1), event_of(2)]
    requests = [
        queries_request(),
        answer_request(),
        ReflectRequest(now=NOW, exchange=exchange_of(1), short_term=short_term()),
        ConsolidateRequest(
            now=NOW,
            said=[Said(f"e{number}", event) for number, event in enumerate(events, 1)],
            short_term=short_term(),
            existing=existing,
            pages=pages,
        ),
        VerifyRequest(
            now=NOW,
            claims=[
                Claim(
                    "1",
                    "User has two dogs",
                    [Quoted("User", "Monday 2025-09-01", "two dogs", "I have two dogs.")],
                    existing,
                    events=events,
                )
            ],
        ),
        SynthesizeRequest(
            now=NOW, kind="concrete", title="Pets", candidates=existing, standing=existing, events=events
        ),
        SummarizeRequest(now=NOW, remaining=events, archived=[event_of(0)]),
        OrganizeRequest(
            now=NOW, patterns={"unused": [{"path": "a.md"}]}, structure={"concrete": 3}, goals=["Fewer files"]
        ),
    ]
    return {request.purpose: request for request in requests}
