"""Tools of the Core Loop, alone and through a real server that plays a model using them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainiac import Brain, ModelError
from brainiac.llm.schemas import Answer
from tests.support.models import (
    UUID,
    answer_request,
    event_of,
    hit_of,
    model_brain,
    prompt_of,
    run_answer,
    short_term,
    write_machine,
    write_memory,
    write_settings,
)
from tests.support.notes_texts import exchange_text
from tests.support.openai_server import ChatServer, call_tools, say, status
from tests.support.remote import elsewhere, remote_brain

PORTLAND = "memory/long_term/concrete/portland.md"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture
def brain(tmp_path: Path, server: ChatServer) -> Brain:
    """A brain whose model is a remote one, as far as it can tell."""
    return remote_brain(tmp_path, server)


def called(brain: Brain, server: ChatServer, *calls: tuple[str, Any], **fields: Any) -> tuple[list[str], list[str]]:
    """Let the model call tools; return what each gave, and what counts as read."""
    rounds = [calls[at : at + 7] for at in range(0, len(calls), 7)]  # of one answer no more are carried out
    server.script(*(call_tools(*each) for each in rounds), say("So."))
    answer = run_answer(brain, answer_request(**fields))
    return [each["content"] for each in server.bodies[-1]["messages"] if each["role"] == "tool"], list(answer.read)


def test_tools_are_defined_with_typed_parameters(brain: Brain, server: ChatServer) -> None:
    """Three tools, each with a description and a schema of its parameters.

    Seeds: R3, R8.
    """
    called(brain, server, ("list_directory", {}))
    defined = {tool["function"]["name"]: tool["function"] for tool in server.bodies[0]["tools"]}
    assert {"search_memories", "read_memory", "list_directory"} == set(defined)
    assert ["query"] == defined["search_memories"]["parameters"]["required"]
    assert all(tool["description"] for tool in defined.values())


def test_memory_is_read_by_uuid_link_or_path(brain: Brain, server: ChatServer) -> None:
    """Whole, as data, and noted for the access log.

    Seeds: R8, S10.
    """
    names = (f"{UUID}1", PORTLAND, "Portland", "[[Portland]]", f'[x](y.md "uuid:{UUID}1")')
    given, read = called(brain, server, *(("read_memory", {"id": name}) for name in names))
    assert [True] * len(names) == ["> - User lives in Portland, since 2020. ^f3k9" in each for each in given]
    assert [PORTLAND] == read


def test_search_gives_statements_with_their_links(brain: Brain, server: ChatServer) -> None:
    """What a search shows counts as read, once."""
    given, read = called(brain, server, *[("search_memories", {"query": "User lives in Portland"})] * 2)
    assert all(f'### [Portland]({PORTLAND} "uuid:{UUID}1")' in each for each in given)
    assert (1, len(set(read))) == (read.count(PORTLAND), len(read))


def test_folder_is_listed_without_hidden_names_and_links(brain: Brain, server: ChatServer, tmp_path: Path) -> None:
    """Names only, folders marked, nothing hidden or temporary, no symlinks."""
    concrete = brain.tree.long_term / "concrete"
    (concrete / ".secret.md").write_text("x")
    (concrete / "people").mkdir()
    (concrete / "people/ann.md").write_text("# Ann\n")
    (concrete / "out").symlink_to(tmp_path)
    (listed,), _ = called(brain, server, ("list_directory", {"path": "memory/long_term/concrete"}))
    assert ["> - mara.md", "> - people/", "> - portland.md"] == listed.splitlines()


def test_exchange_is_read_from_log_inbox_and_events(brain: Brain, server: ChatServer) -> None:
    """Word for word, wherever it stands by now."""
    (brain.root / "inbox/old.md").write_text("How tall is it?")
    (brain.root / "inbox/old.response.md").write_text("Ten metres.")
    page = brain.tree.long_term / "events/2025-09-01.md"
    page.write_text("# 1 September\n\n" + exchange_text(event_of(3, "I sold the boat.")))
    hit = hit_of("I sold the boat.", kind="exchange", path="memory/long_term/events/2025-09-01.md", anchor="e3")
    ids = ("e1", "inbox/old.response.md", "e3")
    given, read = called(brain, server, *(("read_memory", {"id": name}) for name in ids), hits=[hit])
    expected = ("> Thing 1 happened.", "> Ten metres.", "> I sold the boat.")
    assert [True] * 3 == [text in each for text, each in zip(expected, given, strict=True)]
    assert ["memory/long_term/events/2025-09-01.md"] == read


def test_private_and_off_the_record_exchanges_are_not_given_out(brain: Brain, server: ChatServer) -> None:
    """A remote model cannot fetch what the assembler leaves out; a model on this machine may read the private ones."""
    (brain.root / "inbox/p.md").write_text("---\nprivate: true\n---\nMy diagnosis.")
    (brain.root / "inbox/o.md").write_text("---\nremember: false\n---\nMy secret.")
    log = short_term(events=[event_of(1, "My diagnosis.", is_private=True)])
    calls = [("read_memory", {"id": name}) for name in ("inbox/p.md", "inbox/o.md", "e1")]
    found = []
    for url in (elsewhere(server), server.url):
        write_machine(brain, {"api_bases": {"openai": url}})
        given, _ = called(brain, server, *calls, short_term=log)
        found.append(["Error" not in each for each in given])
    assert [[False, False, False], [True, False, True]] == found


OUTSIDE = [
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
    ("read_memory", {"id": "inbox/../system/core_identity.md"}),
    ("read_memory", {"id": "/etc/hostname"}),
    ("read_memory", {"id": "../secret.md"}),
]
BROKEN = ["{broken", "[]", "null", '{"limit": 5}', '{"query": 7}', '{"query": "x", "limit": 99}', ""]


def test_no_tool_leaves_memory_and_inbox(
    brain: Brain, server: ChatServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither by `..`, nor absolute, nor through a symlink, nor to the brain's own settings."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "leak.md").write_text("root:x:0:0 secret")
    (brain.tree.long_term / "out").symlink_to(outside)
    (brain.tree.long_term / "concrete/leak.md").symlink_to(outside / "leak.md")
    given, read = called(brain, server, *OUTSIDE)
    assert [] == [call for call, each in zip(OUTSIDE, given, strict=True) if not each.startswith("Error")]
    assert "root:" not in str(given)
    assert [] == read


def test_broken_calls_are_answered_with_what_is_wanted(brain: Brain, server: ChatServer) -> None:
    """Arguments that are none and tools that there are not: the model is told, and the answer comes."""
    calls = [*(("search_memories", arguments) for arguments in BROKEN), ("delete_everything", {"path": "/"}), ("", "")]
    given, read = called(brain, server, *calls)
    assert [] == [call for call, each in zip(calls, given, strict=True) if not each.startswith("Error: ")]
    assert "there are search_memories" in given[-2]
    assert [] == read


@pytest.mark.slow
def test_tools_give_out_a_bounded_amount(brain: Brain, server: ChatServer) -> None:
    """One result and all together are bounded; nothing is noted as read that was not given out."""
    sentence = "User keeps a very long list of things that never ends. "
    for number in range(3, 10):
        write_memory(brain.root, f"concrete/long{number}.md", f"Long {number}", number, sentence * 2000)
    given, read = called(brain, server, *(("read_memory", {"id": f"Long {number}"}) for number in range(3, 10)))
    assert sum(map(len, given)) < 8_000 * 8
    assert "given out all" in given[-1]
    assert len(read) == sum(not result.startswith("Error") for result in given)


def test_model_reads_by_tools_and_then_answers(tmp_path: Path, server: ChatServer) -> None:
    """Two rounds of tools, each result fenced, then the answer; what was read is reported.

    Seeds: R3, R8, S10.
    """
    brain = model_brain(tmp_path, server)
    server.script(
        call_tools(("list_directory", {}), ("read_memory", {"id": f"{UUID}2"})),
        call_tools(("list_directory", {"path": "memory/long_term"})),
        say(f'Mara is your sister ([Mara](memory/long_term/concrete/mara.md "uuid:{UUID}2")).'),
    )
    answer = brain.models.run(answer_request(prompt_of("Who is Mara?"), hits=[]))
    assert isinstance(answer, Answer)
    assert ["memory/long_term/concrete/mara.md"] == answer.read == answer.cited_paths
    assert "(../memory/long_term/concrete/mara.md " in answer.text
    assert 3 == len(server.requests)
    results = [message["content"] for message in server.bodies[2]["messages"] if message["role"] == "tool"]
    assert [True, True, True] == [any(line.startswith(">") for line in r.splitlines()) for r in results]
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


def test_tools_are_off_where_the_setting_says_so(tmp_path: Path, server: ChatServer) -> None:
    """`context.tool_rounds: 0` offers none."""
    brain = model_brain(tmp_path, server)
    write_settings(brain.root, {"llm": {"model": "openai/test-model"}, "context": {"tool_rounds": 0}})
    brain.models.run(answer_request())
    assert "tools" not in server.bodies[0]
    assert "## Tools" not in server.requests[0].text
