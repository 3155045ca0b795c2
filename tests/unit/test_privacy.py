"""What is off the record is kept nowhere, what is private reaches no remote model, keys stand in no file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from brainiac import Brain, Exchange, Response
from brainiac.clock import ManualClock, iso
from brainiac.formats.markdown import StmEvent
from brainiac.formats.page import shareable_text
from brainiac.formats.prompt import parse_prompt
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import Answer, OrganizeRequest, ReflectRequest
from brainiac.testing import World
from tests.support.commands import do, quiet
from tests.support.living import living, living_brain, places_of
from tests.support.models import (
    NOW,
    UUID,
    answer_request,
    make_brain,
    model_brain,
    prompt_of,
    set_sections,
    write_machine,
    write_settings,
)
from tests.support.notes_texts import stm_text
from tests.support.openai_server import (
    Behaviour,
    Captured,
    ChatServer,
    by_request,
    call_tools,
    raw,
    say,
    say_json,
    status,
)
from tests.support.pipeline import eventually
from tests.support.promotions import later, page_with, pages, tell
from tests.support.promotions import make_brain as make_promoting
from tests.support.remote import elsewhere, remote_brain, sent, told_by_us, write_private
from tests.support.said import holding, say_to

# so long that no hash or id holds them by chance: four digits stand in one run of forty
CANARIES = ("zanzibar", "quillwort", "847219563301")


def drop(path: Path, text: str) -> None:
    aside = path.parent / f".{path.name}"
    aside.write_text(text)
    aside.rename(path)


PLAIN_YES = ("true", "yes", "on", '"true"', "'yes'", "1", "y", "maybe", "[a]")
PLAIN_NO = ("false", "no", "off", "'false'", '"No"', "null", "~", "", "''", "0", "[]")


def test_anything_but_a_plain_no_is_private(tmp_path: Path) -> None:
    """In every reader alike, the border, the search index and the page set; what says false, no, off, null, 0 or
    nothing, with quotes or without, is shown."""
    brain = make_brain(tmp_path)
    texts = {}
    for number, value in enumerate((*PLAIN_YES, *PLAIN_NO)):
        path = f"memory/long_term/concrete/a{number}.md"
        texts[path] = f"---\nprivate: {value}\n---\n# A\n\n- The quillwort is blue. ^a1\n"
        (tmp_path / path).write_text(texts[path])
    private, shown = list(texts)[: len(PLAIN_YES)], set(list(texts)[len(PLAIN_YES) :])
    assert private == [path for path, text in texts.items() if shareable_text(text) is None]
    assert all(shareable_text(texts[path].replace("private", "Private")) is None for path in private)
    assert private == [path for path in texts if brain.pages().memories[path].is_private]
    hits = brain.recall.search("quillwort", limit=30)
    assert set(texts) == {hit.path for hit in hits}
    assert shown == {hit.path for hit in Gate(brain).hits(hits)}
    brain.close()


@pytest.mark.parametrize(
    "marked",
    [
        "- It has a quillwort\n  end <!-- private -->",
        "- The quillwort <!--Private-->  ^a1",
        "The quillwort <!-- private -->\nand more quillwort.",
        "The quillwort.\n\n<!-- private -->",
        "## Health <!-- private -->\n\nQuillwort.",
        "```\nA quillwort <!-- private -->\n```",
    ],
)
def test_a_mark_keeps_the_whole_note(marked: str, tmp_path: Path) -> None:
    """Wherever in it a person put the mark, but in an exchange: nothing is shown, and `doctor` names the note."""
    text = f'# Title\n\n- Before.\n\n{marked}\n\n### 2026-01-02T00:00:00Z\n<!-- event: e2 -->\n**User:** "After."\n'
    assert shareable_text(text) is None
    world = World(tmp_path)
    for path in ("memory/long_term/concrete/a.md", "system/prompts/answer.md"):
        world.save(path, text)
        (line,) = (line for line in world.cli("doctor").out.splitlines() if line.startswith(f"{path}: has a mark"))
        assert "all of it is private" in line
        (world.root / path).unlink()
    world.save("memory/review.md", "- [ ] So. <!-- private --> <!-- proposal: p1 -->\n")  # a mark of ours
    assert "has a mark" not in world.cli("doctor").out


@pytest.mark.parametrize(
    "marked",
    [
        '### 2026-01-01T00:00:00Z\n<!-- event: e1 -->\n**User:** "quillwort" <!-- private -->',
        '### 2026-01-01T00:00:00Z <!-- private -->\n<!-- event: e1 -->\n**User:** "quillwort"',
        "### 2026-01-01T00:00:00Z\n<!-- event: e1 --> <!-- private -->\n**User:**\n> a\n> quillwort",
        '### 2026-01-01T00:00:00Z\n<!-- event: e1 -->\n**User:** "quillwort"\n**AI:** "A."\n<!-- private -->',
    ],
)
def test_an_exchange_that_bears_a_mark_is_cut_whole(marked: str) -> None:
    """Wherever in it a person put the mark; what stands beside it is open."""
    text = f'# Title\n\n- Before.\n\n{marked}\n\n### 2026-01-02T00:00:00Z\n<!-- event: e2 -->\n**User:** "After."\n'
    left = shareable_text(text) or ""
    assert [False, True, True] == [word in left for word in ("quillwort", "Before.", "After.")]


def remember(brain: Brain, *events: StmEvent) -> None:
    """Write short-term memory with these events."""
    (brain.root / "memory/short_term.md").write_text(stm_text(*events))


@pytest.mark.slow
def test_a_private_page_is_named_to_no_remote_model(tmp_path: Path) -> None:
    """Not by an index page that is read or focused, a list of files, nor a folder that holds nothing else."""
    index = "memory/long_term/concrete/_index.md"
    asked = ("memory/long_term/concrete", "memory/long_term/concrete/health")
    reads = [("read_memory", {"id": name}) for name in (index, "Mara")]
    calls = [*reads, *(("list_directory", {"path": path}) for path in asked)]
    with ChatServer() as server:
        brain = remote_brain(tmp_path, server)
        write_private(tmp_path, "concrete/quillwort.md", "Quillwort", "User has quillwort. ^h1")
        write_private(tmp_path, "concrete/zanzibar/trip.md", "Trip", "User hides there. ^h2")
        (tmp_path / "memory/long_term/concrete/health").mkdir()
        for name in ("quillwort", "zanzibar/trip"):
            brain.plugins.call("memory_created", brain=brain, path=f"memory/long_term/concrete/{name}.md")
        quiet(brain)
        text = (tmp_path / index).read_text()
        (tmp_path / index).write_text(text.replace("## Related", "- [Zanzibar](gone.md) — it moved away\n\n## Related"))
        assert [True, False] == ["[Quillwort](quillwort.md" in text, "User has quillwort" in text]
        server.script(call_tools(*calls), say("Some pages."), say_json({}))
        hits = list(brain.recall.search("what is known about zanzibar", limit=5))
        request = answer_request(prompt_of(f"What is in [[{index}]]?"), hits=hits)
        brain.models.run(request)
        structure = {"memory/long_term/concrete/zanzibar": 1, "memory/long_term/concrete": 4}
        brain.models.run(OrganizeRequest(now=NOW, patterns={}, structure=structure, goals=[]))
        brain.close()
    bodies = [told_by_us(json.dumps(body).lower()) for body in server.bodies]
    assert 3 == len(bodies)
    assert 3 == bodies[1].count("user lives in portland")  # focused: its beginning and the whole; then read
    assert [] == [word for word in CANARIES for body in bodies if word in body]


def test_where_a_private_page_moves_to_is_written_into_no_open_page(tmp_path: Path) -> None:
    """The open page keeps its link as it was written, a private one is healed."""
    world = World(tmp_path)
    top = "memory/long_term/concrete"
    link = f'See [it](it.md "uuid:{UUID}1").\n'
    private = "---\nprivate: true\n---\n"
    world.save(f"{top}/it.md", f"---\nuuid: {UUID}1\nprivate: true\n---\n# It\n\nOf zanzibar.\n")
    world.save(f"{top}/open.md", f"# Open\n\n{link}")
    world.save(f"{top}/mine.md", f"{private}# Mine\n\n{link}")
    world.run()
    (world.root / top / "quillwort").mkdir()
    (world.root / top / "it.md").rename(world.root / top / "quillwort/it.md")
    world.run()
    world.tick(3600)
    tree = world.tree()
    assert "](it.md" in tree[f"{top}/open.md"]
    assert "](quillwort/it.md" in tree[f"{top}/mine.md"]


def told_in_trip(brain: Brain, server: ChatServer) -> str:
    """Ask once more in a conversation that held a secret, by a curious model; return what it was sent."""
    (brain.root / "inbox/trip").mkdir(exist_ok=True)
    told = "My wifi password: quillwort42\nI fly to Oslo in May."
    (brain.root / "inbox/trip/a.md").write_text(told)
    (brain.root / "inbox/trip/a.response.md").write_text("Noted, the flight.\npassword: quillwort42")
    prompt = prompt_of("password: zanzibar42\nWhen do I fly?", "focus: ../trip/a.md", "inbox/trip/b.md")
    server.script(call_tools(("read_memory", {"id": "inbox/trip/a.md"})), say("In May."), say_json({}))
    request = answer_request(prompt, hits=[], conversation=brain.conversation(prompt))
    answer = brain.models.run(request)
    assert isinstance(answer, Answer)
    exchange = Exchange("x1", prompt, Response("", text=answer.text), prompt.at)
    brain.models.run(ReflectRequest(now=NOW, exchange=exchange, short_term=request.short_term))
    return sent(server)


def test_no_secret_of_an_earlier_turn_reaches_a_remote_model(tmp_path: Path) -> None:
    """Not by the conversation, a tool, a focused prompt or Reflection; the prompt itself is sent as it was written."""
    with ChatServer() as server:
        brain = remote_brain(tmp_path, server)
        text = told_in_trip(brain, server)
        assert 7 == text.count("i fly to oslo in may")  # three times in each of two requests, once by the tool
        assert "quillwort42" not in text
        assert [True, True, False] == ["zanzibar42" in request.text for request in server.requests]
        write_settings(tmp_path, {**brain.settings.model_dump(mode="json"), "reflection": {"redact_secrets": False}})
        assert "quillwort42" in told_in_trip(brain, server)
        brain.close()


def test_a_public_request_to_forget_shows_no_private_statement(tmp_path: Path) -> None:
    """What may be meant stands on a private page: no model elsewhere is shown it, nor is it touched."""
    wish = "Please forget that I am allergic to penicillin."

    def consolidated(captured: Captured) -> Behaviour:
        if "## New Exchanges" in captured.text:
            evidence = [{"exchange": "e1", "quote": "forget that I am allergic to penicillin"}]
            return say_json({"operations": [{"action": "forget", "ids": ["s1"], "evidence": evidence}]})
        return say_json({})

    with ChatServer() as server:
        server.default = by_request(consolidated)
        brain = remote_brain(tmp_path, server)
        write_private(tmp_path, "concrete/hidden.md", "Hidden", "User is allergic to penicillin and has quillwort. ^h1")
        remember(brain, StmEvent("e1", "2025-09-15T10:00:00Z", wish))
        do(brain, "promote")
        brain.close()
    assert "allergic to penicillin" in sent(server)
    assert "quillwort" not in sent(server)
    assert "has quillwort. ^h1" in (tmp_path / "memory/long_term/concrete/hidden.md").read_text()


def test_a_summary_of_what_is_left_holds_nothing_private(tmp_path: Path) -> None:
    """The summary bears no mark and goes to every model: private events that stay for the next run are left out."""
    brain = make_promoting(tmp_path)
    tell(brain, "My sister Ruth lives in Bristol.", private=True)
    do(brain, "promote")
    later(brain)
    page = page_with(brain, "Ruth").path
    tell(brain, "Ruth has quillwort.", private=True)
    tell(brain, "My brother Tom lives in Oslo.")
    (tmp_path / page).write_text((brain.read_text(page) or "") + "\nA note of mine.\n")
    brain.observed.note_change(page)
    assert 1 == len(do(brain, "promote", "--json").json["left"])
    memory = brain.short_term().memory
    assert ["Ruth has quillwort."] == [event.user for event in memory.events]
    assert "quillwort" not in memory.summary
    brain.close()


def test_a_private_fact_that_a_person_edits_stays_private(tmp_path: Path) -> None:
    """Its words are theirs, its mark stands: Promotion files it on a private page."""
    brain = make_promoting(tmp_path)
    tell(brain, "Moss.", private=True)
    file = brain.tree.short_term
    line = "- We grow quillwort at home <!-- private -->\n"
    file.write_text(file.read_text().replace("### Key Facts & Decisions\n", f"### Key Facts & Decisions\n{line}"))
    do(brain, "promote")
    holds = [page.meta.get("private") for page in pages(brain).values() if "quillwort" in page.text]
    assert [True, True] == holds  # the statement, and what was said that day
    brain.close()


@pytest.mark.slow
def test_keys_stand_in_no_file_whether_a_call_succeeds_or_fails(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is sent, and nothing else keeps it: not the tree, the state, the cache or the log."""
    key = "sk-live-quillwort847219563301zanzibar"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    llm = "{model: openai/test-model, timeout_seconds: 5, prices: {openai/test-model: [0.1, 0.1]}}"
    root = living_brain(tmp_path / "brain", f"inbox: {{settle_ms: 20}}\nllm: {llm}\n")
    with ChatServer() as server:
        server.default = say_json({"queries": []})
        config = machine / "xdg_config_home/brainiac/config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"api_bases: {{openai: {elsewhere(server)}}}\n")
        with living(root, "--verbose") as one:
            one.answer("good.md", "What is new?")
            server.default = status(401, f"Incorrect API key provided: {key}")
            one.drop("bad.md", "What else is new?")
            eventually((root / "inbox/bad.error.md").exists, "the error file", 30)
            one.terminate()
    assert any(key in request.headers.get("Authorization", "") for request in server.requests)
    assert [] == holding((key.lower(),), tmp_path, machine)


@pytest.mark.slow
def test_what_is_written_is_readable_by_whom_it_was_before(tmp_path: Path) -> None:
    """A file keeps its mode through our writes; what we make new follows the umask; state is the person's alone."""
    old = os.umask(0o077)
    try:
        root = living_brain(tmp_path / "brain")
        os.chmod(root / "memory/short_term.md", 0o640)
        with living(root, prefix=["env"]) as one:  # a child of this process, with its umask
            one.answer("a.md")
            one.wait_for_event("exchange-reflected")
            one.terminate()
        assert 0o640 == (root / "memory/short_term.md").stat().st_mode & 0o777
        assert 0o600 == (root / "inbox/a.response.md").stat().st_mode & 0o777
    finally:
        os.umask(old)


@pytest.mark.slow
def test_blobs_and_state_are_for_their_owner_alone(tmp_path: Path, machine: Path) -> None:
    """Whatever the umask: the journal's texts, the write-ahead file and the run state are not for others to read."""
    root = living_brain(tmp_path / "brain")
    with living(root) as one:
        one.answer("a.md")
        one.wait_for_event("exchange-reflected")
        one.terminate()
    state = places_of(root).state
    files = [*(root / "logs/journal").rglob("*"), *state.rglob("*"), *(machine / "xdg_cache_home").rglob("*")]
    private = [path for path in files if path.is_file() and path.name != "sessions"]
    exposed = {str(path) for path in private if path.stat().st_mode & 0o077 and not is_shielded(path, machine)}
    assert set() == exposed


def is_shielded(path: Path, top: Path) -> bool:
    """Tell whether a folder above keeps others out."""
    return any(top in each.parents and not each.stat().st_mode & 0o077 for each in path.parents)


@pytest.mark.parametrize("is_promoted", [False, True])
def test_an_answer_that_tells_of_what_is_private_is_private_itself(tmp_path: Path, is_promoted: bool) -> None:
    """F-RSP-4: asked in public of a private fact, the offline engine tells it; exchange and pages stay here."""
    clock = ManualClock(NOW)
    brain = make_brain(tmp_path / "brain", clock=clock)
    say_to(brain, "a.md", "---\nprivate: true\n---\nMy locker code word is giraffe.\n")
    say_to(brain, "b.md", "I like tea.\n")
    if is_promoted:
        clock.advance(3600)
        do(brain, "promote")
    say_to(brain, "c.md", "What is my locker code word?\n")
    say_to(brain, "d.md", "What do I like?\n")
    answers = {name: (brain.root / f"inbox/{name}.response.md").read_text() for name in "bcd"}
    assert "giraffe" in answers["c"]
    assert "tea" in answers["d"]
    assert "private: true" in answers["c"]
    for text in answers.values():  # whichever quotes it
        assert ("giraffe" in text) == ("private: true" in text)
    clock.advance(3600)
    do(brain, "promote")
    for path in brain.tree.memory.rglob("*.md"):
        assert "giraffe" not in (shareable_text(path.read_text()) or "")
    brain.close()


def test_what_is_off_the_record_is_told_to_no_turn_that_is_remembered(tmp_path: Path) -> None:
    """In one conversation: a remembered question after it is not shown it, one off the record is."""
    brain = make_brain(tmp_path / "brain")
    say_to(brain, "trip/1.md", "---\nremember: false\n---\nThe zanzibar tickets are in the drawer.\n")
    say_to(brain, "trip/2.md", "Where are the tickets?\n")
    shown = {}
    for name, meta in (("3.md", ""), ("4.md", "---\nremember: false\n---\n")):
        (brain.root / "inbox/trip" / name).write_text(f"{meta}And the passports?\n")
        raw = (brain.root / "inbox/trip" / name).read_bytes()
        prompt = parse_prompt(f"inbox/trip/{name}", raw, at=iso(brain.clock.now()))
        shown[name] = [turn.prompt.path for turn in brain.conversation(prompt)]
    assert {"3.md": ["inbox/trip/2.md"], "4.md": ["inbox/trip/1.md", "inbox/trip/2.md"]} == shown
    brain.close()


def test_what_a_model_here_looks_for_is_asked_of_no_embedder_elsewhere(tmp_path: Path) -> None:
    """A model on this machine is shown what is private and may repeat it; the prompt's own words alone may go, and of
    the pages those that are open: none that is off the record."""
    embedder, embedded = "openai/test-embedder", []

    def behave(captured: Captured) -> Behaviour:
        if captured.path.endswith("/embeddings"):
            embedded.extend(captured.body["input"])
            data = [
                {"object": "embedding", "index": i, "embedding": [1.0, 0.5]}
                for i, _ in enumerate(captured.body["input"])
            ]
            return raw(json.dumps({"object": "list", "model": "e", "data": data}), "application/json")
        if "search_memories" not in json.dumps(captured.body.get("tools")):
            return say_json({"queries": ["quillwort"]})
        is_new = not any(message["role"] == "tool" for message in captured.body["messages"])
        return call_tools(("search_memories", {"query": "zanzibar"})) if is_new else say("So.")

    with ChatServer() as server:
        server.default = by_request(behave)
        model_brain(tmp_path, server, prices={embedder: [0.1, 0.0]}).close()
        set_sections(tmp_path, f"recall: {{embedder: {embedder}}}")
        (tmp_path / "inbox/q.md").write_text("Where does Mara live?")
        for name, head in (("off", "remember: false"), ("open", "remember: true")):
            page = tmp_path / f"memory/long_term/concrete/{name}.md"
            page.write_text(f"---\n{head}\n---\n# Shed\n\n- The key of {name} is in the shed. ^a1\n")
        brain = Brain(tmp_path)
        write_machine(brain, {"api_bases": {"openai": server.url, embedder: elsewhere(server)}})
        brain.recall.reindex()
        do(brain, "ask", "--again", "inbox/q.md")
        brain.close()
    assert "Where does Mara live?" in embedded
    assert [False, True] == [f"key of {name}" in repr(embedded) for name in ("off", "open")]
    assert [] == [text for text in embedded if text in CANARIES]
