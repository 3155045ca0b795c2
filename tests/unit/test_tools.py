"""Tools of the Core Loop, alone and through a real server that plays a model using them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac.brain import Brain
from brainiac.errors import ModelError
from brainiac.formats.markdown import render_exchange
from brainiac.llm.context.blocks import TOOL_TOKENS
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import Answer
from brainiac.llm.tools import Toolbox
from tests.support.models import (
    UUID,
    answer_request,
    event_of,
    hit_of,
    make_brain,
    model_brain,
    prompt_of,
    run_answer,
    short_term,
    write_memory,
    write_settings,
)
from tests.support.openai_server import ChatServer, call_tools, say, status

PORTLAND = "memory/long_term/concrete/portland.md"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    return make_brain(tmp_path)


def box(brain: Brain, *, is_remote: bool = True, **fields: Any) -> Toolbox:
    return Toolbox(brain, answer_request(**fields), Gate(brain, is_remote=is_remote))


def call(tools: Toolbox, name: str, **arguments: object) -> str:
    return tools.call(name, json.dumps(arguments))


def test_tools_are_defined_with_typed_parameters(brain: Brain) -> None:
    """Five tools, each with a description and a schema of its parameters.

    Seeds: R3, R8.
    """
    defined = {tool["function"]["name"]: tool["function"] for tool in box(brain).definitions()}
    assert {"search_memories", "read_memory", "list_directory", "follow_links", "read_exchange"} == set(defined)
    assert ["query"] == defined["search_memories"]["parameters"]["required"]
    assert all(tool["description"] for tool in defined.values())


@pytest.mark.parametrize("name", [f"{UUID}1", PORTLAND, "Portland", "[[Portland]]", f'[x](y.md "uuid:{UUID}1")'])
def test_memory_is_read_by_uuid_link_or_path(brain: Brain, name: str) -> None:
    """Whole, as data, and noted for the access log.

    Seeds: R8, S10.
    """
    tools = box(brain)
    assert "> - User lives in Portland, since 2020. ^f3k9" in call(tools, "read_memory", id=name)
    assert [PORTLAND] == tools.read


def test_search_gives_statements_with_their_links(brain: Brain) -> None:
    """What a search shows counts as read, once."""
    tools = Toolbox(brain, answer_request(), Gate(brain, is_remote=True))
    for _ in range(2):
        assert f'### [Portland]({PORTLAND} "uuid:{UUID}1")' in call(
            tools, "search_memories", query="User lives in Portland"
        )
    assert len(set(tools.read)) == len(tools.read)
    assert PORTLAND in tools.read


def test_folder_is_listed_without_hidden_names_and_links(brain: Brain, tmp_path: Path) -> None:
    """Names only, folders marked, nothing hidden or temporary, no symlinks."""
    concrete = brain.tree.long_term / "concrete"
    (concrete / ".secret.md").write_text("x")
    (concrete / "people").mkdir()
    (concrete / "out").symlink_to(tmp_path)
    listed = call(box(brain), "list_directory", path="memory/long_term/concrete")
    assert ["> - mara.md", "> - people/", "> - portland.md"] == listed.splitlines()


def test_links_are_followed_both_ways(brain: Brain) -> None:
    """Who is linked to, and who links here."""
    there = call(box(brain), "follow_links", id="Mara")
    back = call(box(brain), "follow_links", id="Portland")
    assert "Links to:\n- [Portland]" in there
    assert "Linked from:\n- [Mara]" in back


def test_exchange_is_read_from_log_inbox_and_events(brain: Brain) -> None:
    """Word for word, wherever it stands by now."""
    (brain.root / "inbox/old.md").write_text("How tall is it?")
    (brain.root / "inbox/old.response.md").write_text("Ten metres.")
    page = brain.tree.long_term / "events/2025-09-01.md"
    page.write_text("# 1 September\n\n" + render_exchange(event_of(3, "I sold the boat.")))
    hit = hit_of("I sold the boat.", kind="exchange", path="memory/long_term/events/2025-09-01.md", anchor="e3")
    tools = box(brain, hits=[hit])
    assert "> Thing 1 happened." in call(tools, "read_exchange", id="e1")
    assert "> Ten metres." in call(tools, "read_exchange", id="inbox/old.response.md")
    assert "> I sold the boat." in call(tools, "read_exchange", id="e3")
    assert ["memory/long_term/events/2025-09-01.md"] == tools.read


def test_private_and_off_the_record_exchanges_are_not_given_out(brain: Brain) -> None:
    """A remote model cannot fetch what the assembler leaves out; a model on this machine may read the private ones."""
    (brain.root / "inbox/p.md").write_text("---\nprivate: true\n---\nMy diagnosis.")
    (brain.root / "inbox/o.md").write_text("---\nremember: false\n---\nMy secret.")
    log = short_term(events=[event_of(1, "My diagnosis.", is_private=True)])
    ids = ("inbox/p.md", "inbox/o.md", "e1")
    found = [
        ["Error" not in call(box(brain, is_remote=remote, short_term=log), "read_exchange", id=name) for name in ids]
        for remote in (True, False)
    ]
    assert [[False, False, False], [True, False, True]] == found


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_memory", {"id": "../../etc/passwd"}),
        ("read_memory", {"id": "/etc/passwd"}),
        ("read_memory", {"id": "system/config.yaml"}),
        ("read_memory", {"id": "memory/long_term/../../system/core_identity.md"}),
        ("read_memory", {"id": "memory/long_term/concrete/leak.md"}),
        ("read_memory", {"id": "x\x00.md"}),
        ("list_directory", {"path": "../.."}),
        ("list_directory", {"path": "/"}),
        ("list_directory", {"path": "system"}),
        ("list_directory", {"path": "memory/long_term/out"}),
        ("list_directory", {"path": "memory/long_term/concrete/portland.md"}),
        ("read_exchange", {"id": "inbox/../system/core_identity.md"}),
        ("read_exchange", {"id": "/etc/hostname"}),
        ("follow_links", {"id": "../secret.md"}),
    ],
)
def test_no_tool_leaves_memory_and_inbox(
    brain: Brain, tmp_path_factory: pytest.TempPathFactory, tool: str, arguments: dict[str, str]
) -> None:
    """Neither by `..`, nor absolute, nor through a symlink, nor to the brain's own settings."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "leak.md").write_text("root:x:0:0 secret")
    (brain.tree.long_term / "out").symlink_to(outside)
    (brain.tree.long_term / "concrete/leak.md").symlink_to(outside / "leak.md")
    tools = box(brain)
    result = call(tools, tool, **arguments)
    assert result.startswith("Error")
    assert "root:" not in result
    assert [] == tools.read


@pytest.mark.parametrize(
    "arguments", ["{broken", "[]", "null", '{"limit": 5}', '{"query": 7}', '{"query": "x", "limit": 99}', ""]
)
def test_broken_arguments_are_answered_with_what_is_wanted(brain: Brain, arguments: str) -> None:
    """The model is told, nothing is raised."""
    assert box(brain).call("search_memories", arguments).startswith("Error: ")


def test_unknown_tool_is_answered_with_those_there_are(brain: Brain) -> None:
    """So is a name that is none."""
    assert "there are search_memories" in call(box(brain), "delete_everything", path="/")


@pytest.mark.slow
def test_tools_give_out_a_bounded_amount(brain: Brain) -> None:
    """One result and all together are bounded; nothing is noted as read that was not given out."""
    sentence = "User keeps a very long list of things that never ends. "
    for number in range(3, 10):
        write_memory(brain.root, f"concrete/long{number}.md", f"Long {number}", number, sentence * 2000)
    tools = box(brain)
    results = [call(tools, "read_memory", id=f"Long {number}") for number in range(3, 10)]
    assert sum(map(len, results)) < TOOL_TOKENS * 8
    assert "given out all" in results[-1]
    assert len(tools.read) == sum(not result.startswith("Error") for result in results)


def test_model_reads_by_tools_and_then_answers(tmp_path: Path, server: ChatServer) -> None:
    """Two rounds of tools, each result fenced, then the answer; what was read is reported.

    Seeds: R3, R8, S10.
    """
    brain = model_brain(tmp_path, server)
    server.script(
        call_tools(("list_directory", {}), ("read_memory", {"id": f"{UUID}2"})),
        call_tools(("follow_links", {"id": f"{UUID}2"})),
        say(f'Mara is your sister ([Mara](memory/long_term/concrete/mara.md "uuid:{UUID}2")).'),
    )
    answer = brain.models.run(answer_request(prompt_of("Who is Mara?"), hits=[]))
    assert isinstance(answer, Answer)
    assert ["memory/long_term/concrete/mara.md"] == answer.read == answer.cited_paths
    assert "(../memory/long_term/concrete/mara.md " in answer.text
    assert 3 == len(server.requests)
    results = [message["content"] for message in server.bodies[2]["messages"] if message["role"] == "tool"]
    assert [True, True, True] == [
        any(line.startswith(">") for line in r.splitlines()) or "links" in r.lower() for r in results
    ]
    assert server.requests[0].body["tools"]


def test_model_that_keeps_asking_for_tools_is_stopped(tmp_path: Path, server: ChatServer) -> None:
    """Rounds are bounded by the setting; the last ones forbid tools, then it is an error."""
    brain = model_brain(tmp_path, server)
    write_settings(brain.root, {"llm": {"model": "openai/test-model"}, "context": {"tool_rounds": 2}})
    server.default = call_tools(("list_directory", {}))
    with pytest.raises(ModelError, match="kept asking for tools"):
        brain.models.run(answer_request())
    assert ["auto", "auto", "none", "none"] == [body["tool_choice"] for body in server.bodies]


def test_model_without_tools_is_served_without(tmp_path: Path, server: ChatServer) -> None:
    """A server that refuses tools is asked without them, from then on; retrieval alone serves."""
    brain = model_brain(tmp_path, server)
    server.script(status(400, "this model does not support tools"), say("Portland."), say("Portland."))
    for _ in range(2):
        assert "Portland." == run_answer(brain).text
    assert [True, False, False] == ["tools" in body for body in server.bodies]
    assert [True, False, False] == ["tool_choice" in body for body in server.bodies]


def test_broken_calls_through_the_protocol_do_no_harm(tmp_path: Path, server: ChatServer) -> None:
    """Unknown tools, arguments that are no JSON and paths outside are answered with errors, and the answer comes."""
    brain = model_brain(tmp_path, server)
    server.script(
        call_tools(("no_such_tool", {}), ("read_memory", "{broken"), ("read_memory", {"id": "/etc/passwd"}), ("", "")),
        say("Nothing there."),
    )
    answer = run_answer(brain)
    assert ("Nothing there.", []) == (answer.text, answer.read)
    results = [message["content"] for message in server.bodies[1]["messages"] if message["role"] == "tool"]
    assert [True] * len(results) == [result.startswith("Error") for result in results]


def test_tools_are_off_where_the_setting_says_so(tmp_path: Path, server: ChatServer) -> None:
    """`context.tool_rounds: 0` offers none."""
    brain = model_brain(tmp_path, server)
    write_settings(brain.root, {"llm": {"model": "openai/test-model"}, "context": {"tool_rounds": 0}})
    brain.models.run(answer_request())
    assert "tools" not in server.bodies[0]
    assert "## Tools" not in server.requests[0].text
