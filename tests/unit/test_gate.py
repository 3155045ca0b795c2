"""The gate: what a request elsewhere is shown, and that there is no other way to a model or an embedder."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.cli import search as command
from brainiac.cli.session import name_brain
from brainiac.errors import ModelError
from brainiac.events import PathKind
from brainiac.formats.discretion import Audience
from brainiac.formats.short_term import EMPTY, Item, document_of
from brainiac.llm.catalog import endpoint_of
from brainiac.llm.completion import Completion, embed
from brainiac.llm.context.assembler import Assembler
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.gate import Gate, Released, released_texts
from brainiac.llm.gateway import LiteLLMEngine
from brainiac.llm.schemas import Answer, AnswerRequest, Engine, Purpose, Request, Result, Summary
from brainiac.search.documents import page_of
from brainiac.settings import MachineSettings
from tests.support.models import (
    MODEL,
    NOW,
    answer_request,
    event_of,
    every_request,
    hit_of,
    make_brain,
    model_brain,
    prompt_of,
    run_answer,
    short_term,
    write_machine,
    write_memory,
)
from tests.support.openai_server import ChatServer, say
from tests.support.remote import elsewhere, remote_brain

ROOT = Path(__file__).parent.parent.parent
PRODUCT = sorted([*(ROOT / "brainiac").rglob("*.py"), *(ROOT / "plugins").glob("*.py")])
CLIENTS = {"httpx", "requests", "urllib.request", "http.client", "aiohttp", "openai", "anthropic", "websockets"}
CALLS = ("completion", "acompletion", "text_completion", "embedding", "aembedding", "responses", "moderation")
REMOTE = MachineSettings(api_bases={"openai": "https://example.com/v1"})


def nodes(path: Path) -> Sequence[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@pytest.mark.slow
def test_only_one_module_calls_models_and_takes_only_what_was_released() -> None:
    """litellm is called in completion.py alone, with what `for_endpoint` gave; only the gate makes a `Released`."""
    calling, making, importing = set(), set(), set()
    for path in PRODUCT:
        name = path.relative_to(ROOT).as_posix()
        for node in nodes(path):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                owner = getattr(getattr(node.func, "value", None), "id", "")
                if owner in ("library", "litellm") and called in CALLS:
                    calling.add(name)
                if called == "Released":
                    making.add(name)
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            if CLIENTS & set(modules):
                importing.add(name)
    assert {"brainiac/llm/completion.py"} == calling
    assert {"brainiac/llm/gate.py"} == making
    assert importing <= {
        "brainiac/llm/completion.py",
        "brainiac/server/address.py",  # asks this brain's own daemon, on this machine
    }
    source = (ROOT / "brainiac/llm/completion.py").read_text("utf-8")
    assert 2 == source.count(".for_endpoint(endpoint)")
    assert "messages=content," in source
    assert "input=content," in source


def test_what_was_released_for_this_machine_goes_nowhere_else() -> None:
    """Texts released for an endpoint here are refused by one elsewhere, messages and texts alike."""
    here, there = endpoint_of("ollama/x", REMOTE, {}), endpoint_of(MODEL, REMOTE, {})
    released = released_texts(["private"], here)
    assert ["private"] == released.for_endpoint(here)
    with pytest.raises(ModelError, match="nothing was sent"):
        released.for_endpoint(there)
    with pytest.raises(ModelError, match="nothing was sent"):
        embed(there, released, 5, Completion())
    assert ["(private)", "open"] == released_texts(["a <!-- PRIVATE -->", "open"], there).for_endpoint(there)


def private_requests() -> list[Request]:
    """Return a request of each purpose that is private."""
    return [replace(request, is_private=True) for request in every_request().values()]


def test_a_private_request_of_any_purpose_is_sent_nowhere(tmp_path: Path) -> None:
    """The gateway serves it here; the engine itself, asked directly, refuses it."""
    with ChatServer() as server:
        brain = remote_brain(tmp_path, server)
        for request in private_requests():
            assert "offline" == brain.models.engine_for(request).name
            if request.purpose is not Purpose.ORGANIZE:  # its rows are none that the offline engine reads
                brain.models.run(request)
            with pytest.raises(ModelError, match="private"):
                LiteLLMEngine(brain, MODEL, brain.models.ledger).run(request)
        asked = [answer_request(prompt_of(meta="private: true")), answer_request(prompt_of("So <!-- private -->"))]
        for request in asked:  # although nobody set `is_private`
            with pytest.raises(ModelError, match="private"):
                LiteLLMEngine(brain, MODEL, brain.models.ledger).run(request)
        assert [] == server.requests
        brain.close()


def test_an_endpoint_that_turns_remote_meanwhile_is_sent_nothing(tmp_path: Path) -> None:
    """The place is read again for each call: what was put together for this machine is not sent to another."""
    with ChatServer() as server:
        brain = model_brain(tmp_path, server, prices={MODEL: [0.1, 0.1]})

        class Mover:
            @hookimpl
            def context_blocks(self, brain: Brain, request: object) -> list[Block]:
                write_machine(brain, {"api_bases": {"openai": elsewhere(server)}})
                return []

        brain.plugins.register(Mover(), "mover")
        with pytest.raises(ModelError, match="nothing was sent"):
            brain.models.run(answer_request(is_private=True))
        assert [] == server.requests
        brain.close()


@dataclass(frozen=True, kw_only=True)
class Unheard(Request):
    """A request of a kind that the gate does not know."""

    purpose: ClassVar[Purpose] = Purpose.SUMMARIZE
    result: ClassVar[type[Result]] = Summary
    text: str = ""


def test_a_request_that_the_gate_does_not_know_is_refused(tmp_path: Path) -> None:
    """Nobody can tell what is private in it."""
    brain = make_brain(tmp_path)
    with pytest.raises(ModelError, match="Unheard"):
        Gate(brain).admit(Unheard(now=NOW, text="x"))
    assert "x" == Gate(brain, Audience.NOBODY).admit(Unheard(now=NOW, text="x")).text
    brain.close()


def test_an_engine_of_a_plugin_is_shown_what_the_gate_admits(tmp_path: Path) -> None:
    """One that is remote gets requests without what is private; what it cites are the caller's hits all the same."""
    brain = make_brain(tmp_path)
    write_memory(tmp_path, "concrete/hidden.md", "Hidden", 3, "User has quillwort. ^h1")
    hidden = tmp_path / "memory/long_term/concrete/hidden.md"
    hidden.write_text(hidden.read_text().replace("tags: []", "tags: []\nprivate: true"))
    seen: list[AnswerRequest] = []

    class Far:
        name, is_remote = "far", True

        def run(self, request: Request) -> Answer:
            assert isinstance(request, AnswerRequest)
            seen.append(request)
            return Answer(text="So.", cited=[0, 1])

    class Plugin:
        @hookimpl
        def register_models(self, register: Callable[[str, Callable[[Brain], Engine]], None]) -> None:
            register("far", lambda brain: Far())

    brain.plugins.register(Plugin(), "far")
    quiet = hit_of("User has quillwort.", path="memory/long_term/concrete/hidden.md", number=3, anchor="h1")
    memory = short_term(events=[event_of(1), event_of(2, "Quillwort.", is_private=True)])
    request = answer_request(prompt_of("Hi", "model: far"), [quiet, hit_of(), hit_of("Other.")], short_term=memory)
    answer = run_answer(brain, request)
    assert "quillwort" not in repr(seen[0]).lower()
    assert [1, 2] == answer.cited or [1] == answer.cited
    assert 0 not in answer.cited
    brain.close()


LONE = {
    "summary": EMPTY.replace("## Summary\n", "## Summary\nI hide quillwort.\n\n<!-- private -->\n"),
    "item": EMPTY.replace("### Goals\n", "### Goals\n- [ ] Plant moss <!-- private -->\n- [ ] Hide quillwort\n"),
    "title": EMPTY.replace("## Summary\n", "<!-- private -->\n\n## Summary\nI hide quillwort.\n"),
    "lists": EMPTY.replace("### Goals\n", "<!-- private -->\n\n### Goals\n- [ ] Hide quillwort\n"),
    "own section": EMPTY.replace("### Goals\n", "### Goals\n- [ ] Hide quillwort\n").replace(
        "---\n## Event Log", "## Mine\n\n<!-- private -->\n\nSo.\n\n---\n## Event Log"
    ),
}


@pytest.mark.parametrize("where", LONE)
def test_a_mark_in_no_exchange_keeps_all_of_short_term_memory(where: str, tmp_path: Path) -> None:
    """F-STM-8: all of short-term memory, for models and embedder; a note as a whole."""
    brain = make_brain(tmp_path)
    memory = document_of(LONE[where]).memory
    shown = Gate(brain).short_term(memory)
    assert "quillwort" not in repr(shown)
    assert "quillwort" in repr(Gate(brain, Audience.NOBODY).short_term(memory))
    units = page_of("memory/short_term.md", LONE[where], PathKind.SHORT_TERM).units
    assert [True] == [unit.is_private for unit in units if "quillwort" in unit.text]
    brain.close()


def test_beside_a_private_exchange_short_term_memory_is_shown(tmp_path: Path) -> None:
    """A mark within an exchange is about that exchange alone."""
    brain = make_brain(tmp_path)
    memory = replace(short_term(), summary="Open.\n\nMore.")
    memory = replace(memory, events=(*memory.events, event_of(7, "I hide quillwort. <!-- private -->")))
    shown = Gate(brain).short_term(memory)
    assert ["Open.", "More."] == shown.summary.split()
    assert (Item("See Gotland"),) == shown.goals
    assert memory.events[:-1] == shown.events
    brain.close()


def test_an_answer_of_a_local_model_from_a_private_note_in_focus_is_private(tmp_path: Path) -> None:
    """F-RSP-4: only a model on this machine is shown it, and may put it in other words."""
    with ChatServer() as server:
        brain = model_brain(tmp_path, server)
        hidden = tmp_path / "memory/long_term/concrete/portland.md"
        asked = answer_request(prompt_of("What of it?", "focus: '[[Portland]]'"), [])
        assert not brain.models.rests_on_private(asked, Answer(text="So."))
        hidden.write_text(hidden.read_text().replace("tags: []", "tags: []\nprivate: true"))
        assert brain.models.rests_on_private(asked, Answer(text="So."))
        brain.close()


def test_off_the_record_notes_are_shown_where_the_answer_is_off_the_record_too(tmp_path: Path) -> None:
    """A model on this machine might repeat them in an answer that is kept: what is previewed is what it is given."""
    with ChatServer() as server:
        brain = model_brain(tmp_path, server)
        note = tmp_path / "memory/long_term/concrete/portland.md"
        note.write_text(note.read_text().replace("tags: []", "tags: []\nremember: false"))
        kept = answer_request(prompt_of("What of it?", "focus: '[[Portland]]'"), [])
        given = [
            brain.models.working_memory(asked).text
            for asked in (kept, replace(kept, prompt=replace(kept.prompt, remember=False)))
        ]
        assert [True, False] == ["no such note" in text for text in given]
        brain.close()


def test_what_is_put_on_the_clipboard_leaves_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`context --copy` is pasted into a chat elsewhere: nothing private is in it, though the offline engine serves."""
    make_brain(tmp_path).close()
    name_brain(str(tmp_path))
    monkeypatch.setenv("PATH", "")
    (tmp_path / "memory/short_term.md").write_text(
        EMPTY.replace("### Goals\n", "### Goals\n- [ ] Plant moss\n")
        + '### 2025-09-15T08:00:00Z\n<!-- event: e1 -->\n<!-- private -->\n**User:** "I hide quillwort."\n'
    )
    command.context("What are my goals?")
    assert "quillwort" in capsys.readouterr().out
    command.context("What are my goals?", copy=True)
    copied = capsys.readouterr().out
    assert [False, True] == [word in copied for word in ("quillwort", "Plant moss")]
    with pytest.raises(ModelError, match="private"):
        command.context("---\nprivate: true\n---\nWhat?", copy=True)


def test_a_private_workflow_is_started_on_this_machine_alone(tmp_path: Path) -> None:
    """A remote model is not told that there is one; starting it says what to do."""
    with ChatServer() as server:
        server.default = say("So.")
        brain = remote_brain(tmp_path, server)
        (tmp_path / "system/workflows").mkdir()
        text = "---\nname: rounds\nprivate: true\n---\nTake the quillwort.\n"
        (tmp_path / "system/workflows/rounds.md").write_text(text)
        with pytest.raises(ModelError, match="rounds") as raised:
            brain.models.run(answer_request(prompt_of("Go", "workflow: rounds")))
        assert "private: true" in raised.value.advice
        assert [] == server.requests
        gate = Gate(brain, Audience.NOBODY)
        request = answer_request(prompt_of("Go", "workflow: rounds"))
        assert "Take the quillwort." in Assembler(brain).assemble(request, model=MODEL, gate=gate).text
        brain.close()


def test_a_private_template_gives_way_to_the_built_in_one(tmp_path: Path) -> None:
    """Elsewhere the built-in instructions serve; here the brain's own."""
    brain = make_brain(tmp_path)
    (tmp_path / "system/prompts/answer.md").write_text("---\nprivate: true\n---\nSpeak of quillwort.\n")
    texts = [
        Assembler(brain)
        .assemble(answer_request(), model=MODEL, gate=Gate(brain, Audience.ANYONE if remote else Audience.HERE))
        .text
        for remote in (True, False)
    ]
    assert [False, True] == ["quillwort" in text for text in texts]
    brain.close()


def test_the_last_check_is_made_for_a_door_with_a_model_on_this_machine_too(tmp_path: Path) -> None:
    """Of a private paragraph among the instructions, and the client's own private words are answered all the same."""
    with ChatServer() as server:
        server.default = say("So.")
        brain = model_brain(tmp_path, server)

        class Meddler:
            @hookimpl
            def context_blocks(self, brain: Brain, request: object) -> list[Block]:
                texts = ["Speak of moss.\n\nSpeak of quillwort. <!-- private -->"]
                return [Block("meddler", texts, Stability.LONG_TERM, "## Meddler")]

        brain.plugins.register(Meddler(), "meddler")
        prompt = prompt_of("I grow sundew. <!-- private -->\n\nWhat do I grow?")
        shown = []
        for by in ("", "a client"):
            run_answer(brain, answer_request(replace(prompt, by=by)))
            shown.append(repr(server.requests[-1].body["messages"]))
        brain.close()
    words = ("moss", "sundew", "quillwort")
    assert [[True, True, True], [True, True, False]] == [[word in text for word in words] for text in shown]
    missed = {"role": "user", "content": "I have quillwort. <!-- private -->\n\nI have moss."}
    for gate in (Gate(brain), Gate(brain, model=Audience.HERE)):
        assert ["(private)\n\nI have moss."] == [message["content"] for message in gate.release([missed]).content]
    assert [missed] == Gate(brain, Audience.NOBODY).release([missed]).content


def test_of_a_page_with_a_mark_no_statement_is_compared_elsewhere(tmp_path: Path) -> None:
    """Wherever on it the mark stands: all of the page is private."""
    from brainiac.llm.schemas import ConsolidateRequest, Existing

    brain = make_brain(tmp_path)
    write_memory(tmp_path, "concrete/a.md", "A", 3, "User has quillwort.\n  - it is so <!-- private -->\n- Open. ^o1")
    write_memory(tmp_path, "concrete/b.md", "B", 4, "Open. ^o2")
    path = "memory/long_term/concrete/a.md"
    existing = [Existing("s1", "User has quillwort.", path), Existing("s2", "Open.", path)]
    existing.append(Existing("s3", "Open.", "memory/long_term/concrete/b.md"))
    request = ConsolidateRequest(now=NOW, said=[], short_term=short_term(), existing=existing)
    assert [existing[2]] == Gate(brain).admit(request).existing
    brain.close()


def test_released_is_immutable() -> None:
    """What was let through cannot be changed after it was looked at."""
    released = Released(["a"], Audience.ANYONE)
    with pytest.raises(AttributeError):
        released.reader = Audience.ANYONE  # type: ignore[misc]  # what must fail
    content = released.for_endpoint(endpoint_of("ollama/x", REMOTE, {}))
    content.append("b")
    assert ["a"] == list(released.content)
