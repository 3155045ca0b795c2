"""Canaries: a word in each shape in which something can be private, and not one of them on the wire.

A brain is filled with them and taken through a month of its life: asked, reflected, promoted, organized and embedded,
all by a model that is a remote one as far as it can tell and that asks for everything it can name. The bytes that
came are searched. A second brain, in which nothing is marked, shows that each of them would have been sent.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from brainiac_plugins.organization.run import organize
from brainiac_plugins.promotion.run import promote

from brainiac import hookimpl, verbs
from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import BrainiacError
from brainiac.events import NoteCaptured, PromptAnswered
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.gateway import MAX_CALLS
from brainiac.pipeline.daemon import answer_one
from brainiac.search.documents import Hit
from tests.support.models import NOW, make_brain, write_machine
from tests.support.openai_server import ChatServer, by_request
from tests.support.remote import Curious, elsewhere, purpose_of, read_twice

MODEL, EMBEDDER = "openai/test-model", "openai/test-embedder"
PURPOSES = ("queries", "answer", "reflect", "consolidate", "verify", "synthesize", "organize", "embed")
FOLDER = "memory/long_term/concrete"
EVENT = "### 2025-09-1{day}T10:00:00Z{heading}\n<!-- event: e{number:02d} -->\n{below}{said}"


@dataclass(frozen=True)
class Shape:
    """One way to be private.

    Attributes:
        files: By path; `{c}` is the canary, `{t}` a word by which it can be asked for, `{m}` the mark, `{y}` what says
            yes in front matter, `{n}` the number.
        short_term: What it adds to a part of short-term memory, by `summary`, `goals`, `facts`, `tasks`, `events`.
        asked: Front matter of the prompt that asks for it.
        calls: Tools that the model calls for it.
        text: Of the prompt, besides the word.
    """

    files: Mapping[str, str | bytes] = field(default_factory=dict)
    short_term: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    text: str = ""
    path: str = "ask/{t}.md"


UUID = "0199bbbb-0000-7000-8000-0000000000{n:02d}"
HEAD = f"uuid: {UUID}\ncreated_at: 2025-01-01T00:00:00Z\nupdated_at: 2025-01-02T00:00:00Z\ntags: []\n"


def page(body: str, meta: str = "", *, title: str = "Page {n}", path: str = FOLDER + "/{t}.md", **more: Any) -> Shape:
    """Return a memory page with something private in it, which the model reads and searches for."""
    text = f"---\n{HEAD}{meta}---\n# {title}\n\n- The {{t}} shed is open. ^o1\n\n{body}\n"
    calls = [("read_memory", {"id": UUID}), ("search_memories", {"query": "{t}"})]
    return Shape({path: text}, calls=[*calls, ("list_directory", {"path": FOLDER})], **more)


def whole(meta: str, **more: Any) -> Shape:
    """Return a page that is private by its front matter."""
    return page("- The {t} shed holds {c}. ^c1", meta, **more)


def event(day: int, *, heading: str = "", below: str = "", said: str = "") -> dict[str, str]:
    """Return an event of short-term memory."""
    said = said or '**User:** "The {t} {c}."\n**AI:** "Noted."\n'
    return {
        "events": EVENT.format(day=day, heading=heading, below=below, said=said, number=0).replace("e00", "e{n:02d}")
    }


def linked(link: str, body: str = "- The {t} shed is by {link}. ^l1", **more: Any) -> Shape:
    """Return an open page with a link, written in the open, to a private one whose title is the canary."""
    hidden = f"---\n{HEAD}private: {{y}}\n---\n# {{c}} {{t}}\n\n- It is so. ^h1\n".replace("7000-8000", "7000-9000")
    shape = page(body.replace("{link}", link), **more)
    return Shape({**shape.files, FOLDER + "/hidden/{t}x.md": hidden}, calls=shape.calls)


IDENTITY = '- [{c}](hidden/{t}x.md "uuid:' + UUID.replace("7000-8000", "7000-9000") + '")'
SHAPES: dict[str, Shape] = {
    # front matter
    "private: true": whole("private: {y}\n"),
    "private: yes, quoted": whole('"private": "{y}"\n'),
    "capitals": whole("PRIVATE: {y}\n"),
    "a number": whole("private: {b}\n"),
    "a word that is no plain no": whole("private: {w}\n"),
    "an escaped key": whole('"priv\\x61te": {y}\n'),
    "a no and a yes": whole("private: false\nPrivate: {y}\n"),
    "wide letters": whole("ｐｒｉｖａｔｅ: {y}\n"),
    "an invisible letter": whole("priv\u200bate: {y}\n"),
    "a long front matter": whole("filler: '" + "lorem ipsum " * 7000 + "'\nprivate: {y}\n"),
    # in a page
    "paragraph": page("The {c} is\nhidden. {m}\n\nThe rest is open."),
    "mark in the middle of a paragraph": page("The {m} {c} is hidden."),
    "capital mark": page("The {c} is hidden. {M}"),
    "mark over lines": page("The {c} is hidden. {l}"),
    "list item": page("- The {c} is hidden {m}\n- Open."),
    "statement": page("- The {c} is hidden {m} ^c1\n- Open. ^c2"),
    "wrapped list item": page("- The {c}\nis hidden {m}\n- Open."),
    "nested list": page("- Of it\n  - the {c} {m}\n  - and more\n\n- Open."),
    "nested below": page("- The {c}\n  - is hidden {m}\n\n- Open."),
    "second paragraph of a numbered item": page("1. The {c}\n\n   is hidden {m}\n\n2. Open."),
    "table": page("| a | b |\n|---|---|\n| {c} | {m} |\n| open | open |"),
    "quote": page("> The {c}\n> is hidden. {m}\n\nOpen."),
    "fence": page("```\nThe {c}\n\nis hidden\n\n{m}\n```\n\nOpen."),
    "fence with the mark below": page("```\nThe {c}\n\nis hidden\n```\n{m}\n\nOpen."),
    "heading": page("## Health {m}\n\nThe {c} is hidden.\n\nAnd more."),
    "underlined heading": page("Health {m}\n------\n\nThe {c} is hidden."),
    "title": page("It is so.", title="{c} {m}"),
    "mark below a heading": page("## Health\n{m}\n\nThe {c} is hidden.\n\nOpen."),
    "mark alone": page("The {c} is hidden.\n\n{m}\n\nOpen."),
    "history": page("## History\n- ~~The {c} is hidden {m}~~ (until 2025-01-01) ^c1"),
    "day with an event": page(
        '## Conversation\n### 2025-02-0{d}T10:00:00Z\n<!-- exchange: x{n} -->\n{m}\n**User:** "The {t} {c}."\n\n'
        '### 2025-02-0{d}T11:00:00Z\n<!-- exchange: y{n} -->\n**User:** "The {t} is open."\n',
        path="memory/long_term/events/2025/02/0{d}/2025-02-0{d}.md",
    ),
    "archived page": whole("private: {y}\n", path="memory/archive/concrete/{t}.md"),
    # names
    "file name": page("It is so.", "private: {y}\n", path=FOLDER + "/{c}.md"),
    "folder name": Shape(
        {FOLDER + "/{c}/{t}.md": f"---\n{HEAD}private: {{y}}\n---\n# Page\n\n- The {{t}} is so. ^a1\n"},
        calls=[("list_directory", {"path": FOLDER}), ("list_directory", {"path": "memory"})],
    ),
    # links to a private page whose title tells
    "link with an identity": linked("", IDENTITY),
    "link by hand": linked("[{c}](hidden/{t}x.md)"),
    "link from the root": linked("[{c}](/" + FOLDER + "/hidden/{t}x.md)"),
    "link over two lines": linked("[the\n  {c}](hidden/{t}x.md)"),
    "wiki link": linked("[[{c} {t}]]"),
    "wiki link by its file": linked("[[{t}x|the {c}]]"),
    "related memories": linked("", "## Related Memories\n\n" + IDENTITY),
    # index pages
    "index summary": Shape(
        {
            FOLDER + "/{t}/_index.md": f"---\n{HEAD}---\n# Folder\n\nThe {{t}} {{c}}. {{m}}\n\nOpen.\n\n## Manifest\n",
            FOLDER + "/{t}/a.md": "# A\n\n- The {t} is open. ^a1\n",
        },
        asked="focus: '" + FOLDER + "/{t}/_index.md'",
        calls=[("read_memory", {"id": FOLDER + "/{t}/_index.md"})],
    ),
    "manifest": Shape(
        {
            FOLDER + "/{t}/_index.md": f"---\n{HEAD}---\n# Folder\n\n## Manifest\n- [{{c}}](b.md) — so\n- [A](a.md)\n",
            FOLDER + "/{t}/a.md": "# A\n\n- The {t} is open. ^a1\n",
            FOLDER + "/{t}/b.md": "---\nprivate: {y}\n---\n# {c}\n\n- The {t} is so. ^a1\n",
        },
        asked="focus: '" + FOLDER + "/{t}/_index.md'",
    ),
    # short-term memory
    "summary": Shape(short_term={"summary": "The {t} {c} is\nhidden. {m}\n\n"}),
    "goal": Shape(short_term={"goals": "- [ ] Hide the {c} {m}\n"}),
    "key fact": Shape(short_term={"facts": "- The {c} is hidden {m}\n"}),
    "decision over two lines": Shape(short_term={"facts": "- The {c}\n  is {m} hidden\n"}),
    "task that is done": Shape(short_term={"tasks": "- [x] Hide the {c} {m}\n"}),
    "event": Shape(short_term=event(1, below="{m}\n")),
    "event by its heading": Shape(short_term=event(2, heading=" {m}")),
    "event by its last line": Shape(short_term=event(3, said='**User:** "The {t} {c}."\n**AI:** "Noted."\n{m}\n')),
    "mark within what was said": Shape(short_term=event(4, said='**User:** "The {t} {c}. {m}"\n**AI:** "Noted."\n')),
    "mark within an answer": Shape(short_term=event(5, said='**User:** "The {t}?"\n**AI:**\n> The {c}.\n> {m}\n')),
    "line below an event": Shape(
        short_term=event(6, said='**User:** "The {t}?"\n**AI:** "Noted."\nThe {m} {c} is hidden.\n')
    ),
    # the inbox
    "earlier turn": Shape(
        {
            "inbox/{t}/a.md": "---\nprivate: {y}\n---\nThe {c}.\n",
            "inbox/{t}/a.response.md": "Noted: the {c}.\n",
        },
        path="{t}/b.md",
        calls=[("read_memory", {"id": "inbox/{t}/a.md"}), ("read_memory", {"id": "inbox/{t}/a.response.md"})],
    ),
    "earlier turn with a mark": Shape(
        {"inbox/{t}/a.md": "The {c}. {m}\n", "inbox/{t}/a.response.md": "Noted: the {c}.\n"},
        path="{t}/b.md",
        calls=[("read_memory", {"id": "inbox/{t}/a.md"})],
    ),
    "answer that is private": Shape(
        {"inbox/{t}/a.md": "The {c}.\n", "inbox/{t}/a.response.md": "---\nprivate: {y}\n---\n\nNoted.\n"},
        path="{t}/b.md",
        asked="focus: a.md",
        calls=[("read_memory", {"id": "inbox/{t}/a.md"})],
    ),
    "answer of a private prompt in focus": Shape(
        {"inbox/{t}/a.md": "---\nprivate: {y}\n---\nSo.\n", "inbox/{t}/a.response.md": "Noted: the {c}.\n"},
        asked="focus: ../{t}/a.response.md",
    ),
    "prompt that another replies to": Shape(
        {"inbox/{t}.md": "---\nprivate: {y}\n---\nThe {c}.\n", "inbox/{t}.response.md": "Noted.\n"},
        asked="reply_to: ../{t}.md",
    ),
    "prompt that is refused": Shape(
        {"inbox/{t}/a.md": "\n---\nprivate: {y}\n---\nThe {c}.\n", "inbox/{t}/a.response.md": "Noted.\n"},
        path="{t}/b.md",
    ),
    # what is focused
    "focus": Shape(whole("private: {y}\n").files, asked="focus: '[[Page {n}]]'"),
    "link in a prompt": Shape(whole("private: {y}\n").files, text="See [it](../../" + FOLDER + "/{t}.md)."),
    "review": Shape(
        {"memory/review.md": "# Review\n\n- [ ] Replace the {c} {m} <!-- proposal: p1 -->\n- [ ] Open.\n"},
        asked="focus: memory/review.md",
    ),
    "note beside memory": Shape({"memory/{t}.md": "The {c}. {m}\n\nOpen.\n"}, asked="focus: memory/{t}.md"),
    # system
    "identity": Shape({"system/core_identity.md": "# Core Identity\n\nBe brief.\n\nThe {t} {c}. {m}\n"}),
    "workflow": Shape(
        {"system/workflows/a.md": "---\nname: a\ndescription: The {c}\nprivate: {y}\n---\nDo the {c}.\n"}
    ),
    "paragraph of a workflow": Shape(
        {"system/workflows/b.md": "---\nname: b\ndescription: The {c}\n---\n\nDo it.\n\nSo. {m}\n"}
    ),
    "template": Shape(
        {"system/prompts/synthesize.md": "---\nprivate: {y}\n---\nThe {c}. Answer by {{{{ schema }}}}.\n"}
    ),
    "paragraph of a template": Shape({"system/prompts/organize.md": "By {{{{ schema }}}}.\n\nThe {c}. {m}\n"}),
    # what plugins bring
    "block of a plugin": Shape(),
    "hit of a plugin": Shape({"memory/{t}.md": "---\nprivate: {y}\n---\nThe {c}.\n"}),
}
# what stands in the open is open, a link to a private page and its words too
OPEN = {name for name in SHAPES if "link" in name and name != "link in a prompt"} | {"related memories"}
NUMBERS = {name: number for number, name in enumerate(SHAPES)}
PRIVATE_PROMPTS = ("private: true", "Private: yes", '"priv\\x61te": on', f"private: true\nmodel: {MODEL}")


def canary(name: str) -> str:
    return f"kanarie{NUMBERS[name]:02d}qz"


def filled(name: str, text: str, *, is_private: bool) -> str:
    """Return a text of a shape with its words, private or open."""
    number = NUMBERS[name]
    marks = {"m": "<!-- private -->", "M": "<!--PRIVATE-->", "l": "<!--\nprivate\n-->", "y": "true", "b": "1"}
    marks = {**marks, "w": "maybe"} if is_private else {"m": "", "M": "", "l": "", "y": "false", "b": "0", "w": "no"}
    day = 1 + number % 9
    return text.format(c=canary(name), t=f"topic{number:02d}", n=number, d=day, **marks)


class Meddler:
    """A plugin that adds what is private to working memory and to what was found."""

    def __init__(self, *, is_private: bool) -> None:
        self.is_private = is_private

    @hookimpl
    def context_blocks(self, brain: Brain, request: object) -> list[Block]:
        text = filled("block of a plugin", "Open.\n\nThe {c}. {m}", is_private=self.is_private)
        return [Block("meddler", [text], Stability.LONG_TERM, "## Meddler")]

    @hookimpl
    def retrieve(self, brain: Brain, query: str, limit: int) -> list[Hit]:
        name = "hit of a plugin"
        path, said = (filled(name, each, is_private=self.is_private) for each in ("memory/{t}.md", "The {c}."))
        return [Hit("note", path, "A note", said, 9.0)]


@dataclass
class Life:
    """What a brain's model was sent.

    Attributes:
        sent: By purpose, the bytes of each request, and what their JSON says.
        during_private: How many requests came while private prompts were dealt with.
    """

    sent: dict[str, list[str]]
    during_private: int

    def purposes_with(self, word: str) -> list[str]:
        """Return the purposes for which a word was sent."""
        return [name for name, texts in self.sent.items() if any(word in text for text in texts)]


def short_term(*, is_private: bool) -> str:
    """Return short-term memory with what the shapes add to it."""
    parts = dict.fromkeys(("summary", "goals", "facts", "tasks", "events"), "")
    for name, shape in SHAPES.items():
        for part, text in shape.short_term.items():
            parts[part] += filled(name, text, is_private=is_private) + ("\n" if part == "events" else "")
    return (
        f"# Short-Term Memory Scratchpad\n\n## Summary\n{parts['summary']}Open.\n\n---\n## Structured Data\n"
        f"### Goals\n{parts['goals']}- [ ] Open\n\n### Key Facts & Decisions\n{parts['facts']}- Open\n\n"
        f"### Tasks\n{parts['tasks']}- [ ] Open\n\n---\n## Event Log\n{parts['events']}"
    )


def make(root: Path, server: ChatServer, *, is_private: bool) -> Brain:
    """Make a brain that holds every shape."""
    llm = {"model": MODEL, "daily_budget_usd": 1000.0, "prices": {MODEL: [0.1, 0.1], EMBEDDER: [0.1, 0.0]}}
    settings = {
        "llm": {**llm, "timeout_seconds": 20},
        "recall": {"embedder": EMBEDDER},
        "context": {"background": True, "tool_rounds": 1, "memory_tokens": 3000},
        "organization": {"min_entries": 1, "max_entries": 20},
        "promotion": {"idle_seconds": 0, "min_events": 1},
    }
    make_brain(root).close()
    (root / "system/config.yaml").write_text(yaml.safe_dump(settings))
    for name, shape in SHAPES.items():
        for path, text in shape.files.items():
            file = root / filled(name, path, is_private=is_private)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(filled(name, str(text), is_private=is_private))
    (root / "memory/short_term.md").write_text(short_term(is_private=is_private))
    brain = Brain(root, clock=ManualClock(NOW))
    write_machine(brain, {"api_bases": {"openai": elsewhere(server)}})
    brain.plugins.register(Meddler(is_private=is_private), "meddler")
    return brain


def live(root: Path, *, is_private: bool) -> Life:
    """Let a brain live: asked about every shape, told things, promoted and organized."""
    model = Curious()
    with ChatServer() as server:
        server.default = by_request(model)
        brain = make(root, server, is_private=is_private)
        brain.observed.adopt()
        brain.recall.reindex()
        for number, colour in enumerate(
            ("red", "blue", "white", "black", "grey", "green")
        ):  # so many have a page named
            say_to(brain, f"told/{number}.md", f"I have a {colour} bicycle.")
        for names in asked_together():
            model.calls = calls_for(names, is_private=is_private)
            shape = SHAPES[names[0]]
            asked, path, text = (
                filled(names[0], each, is_private=is_private) for each in (shape.asked, shape.path, shape.text)
            )
            head = f"---\n{asked}\n---\n" if asked else ""
            questions = " ".join(f"What of topic{NUMBERS[name]:02d}?" for name in names)
            say_to(brain, path, f"{head}{questions} {text}\n")
        for number, name in enumerate(NUMBERS):  # nothing sure is found: `queries` is shown what is
            words = "Which quartz sundial did the zeppelin captain polish, unlike"
            say_to(brain, f"vague/{number}.md", f"{words} topic{NUMBERS[name]:02d}?\n")
        before = len(server.requests)
        for number, meta in enumerate(PRIVATE_PROMPTS if is_private else ()):
            say_to(brain, f"private/{number}.md", f"---\n{meta}\n---\nI hide kanarie99qz in topic99.\n")
        during = len(server.requests) - before
        for step in range(2):
            assert isinstance(brain.clock, ManualClock)
            brain.clock.advance(timedelta(hours=20).total_seconds())
            promote(brain)
            say_to(brain, f"later/{step}.md", f"I have a topic{step:02d} bicycle. What of topic99?")
        promote(brain)
        organize(brain)
        brain.recall.reindex()
        brain.close()
        sent: dict[str, list[str]] = {}
        for captured in server.requests:
            sent.setdefault(purpose_of(captured), []).append(read_twice(captured))
    return Life(sent, during)


def asked_together() -> Iterator[list[str]]:
    """Yield the shapes that one prompt asks about: as many as a round of tools has room for."""
    names: list[str] = []
    for name, shape in SHAPES.items():
        if shape.asked or shape.text or shape.path != Shape.path:
            yield [name]
        elif len(names) == 4 or len(calls_for([*names, name], is_private=True)) > MAX_CALLS:
            yield names
            names = [name]
        else:
            names.append(name)
    yield names


def calls_for(names: Sequence[str], *, is_private: bool) -> list[tuple[str, dict[str, Any]]]:
    """Return the tools that the model calls for some shapes, each call once."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for name in names:
        for tool, given in SHAPES[name].calls:
            call = (tool, {key: filled(name, str(value), is_private=is_private) for key, value in given.items()})
            calls += [call] if call not in calls else []
    return calls


def say_to(brain: Brain, path: str, text: str) -> None:
    """Drop a prompt and have it answered and reflected."""
    file = brain.root / "inbox" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(60)
    answer_one(brain, f"inbox/{path}")


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give what was sent in a life, private or open; each is lived once."""
    patch = pytest.MonkeyPatch()
    home = tmp_path_factory.mktemp("machine")
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        patch.setenv(variable, str(home / variable.lower()))
    patch.setenv("HOME", str(home))
    patch.setenv("OPENAI_API_KEY", "sk-none")

    @cache
    def lived(is_private: bool) -> Life | Exception:
        try:
            return live(tmp_path_factory.mktemp("life"), is_private=is_private)
        except Exception as error:  # noqa: BLE001 - raised by each test that asks, and not lived again for each
            return error

    def life(is_private: bool) -> Life:
        found = lived(is_private)
        if isinstance(found, Exception):
            raise found
        return found

    yield life
    patch.undo()


@pytest.mark.slow
def test_no_private_word_is_sent(lives: Any) -> None:
    """F-STM-8, F-PRM-7: not for any purpose, not to the embedder, though the model asks for it by every tool."""
    assert {} == {
        name: sent for name in SHAPES if name not in OPEN and (sent := lives(True).purposes_with(canary(name)))
    }


@pytest.mark.slow
def test_a_link_that_was_written_in_the_open_is_open(lives: Any) -> None:
    """Its words are the open page's; what it leads to is not sent."""
    assert OPEN == {name for name in OPEN if lives(True).purposes_with(canary(name))}
    assert [] == lives(True).purposes_with("it is so. ^h1")


@pytest.mark.slow
def test_each_would_be_sent_were_it_not_private(lives: Any) -> None:
    """What shows that the test above can fail: without mark and key the same word goes to the model."""
    assert [] == [name for name in SHAPES if not lives(False).purposes_with(canary(name))]


@pytest.mark.slow
def test_every_purpose_is_served_elsewhere(lives: Any) -> None:
    """All purposes and the embedder were asked, in both lives, `summarize` left out, since nothing was left to be
    summarized; private prompts brought no request at all."""
    assert set(PURPOSES) == lives(True).sent.keys() == lives(False).sent.keys()
    assert 0 == lives(True).during_private
    assert [] == lives(True).purposes_with("kanarie99qz")
    assert len(SHAPES) >= 40


def seen_through_a_door(root: Path, *, is_private: bool) -> str:
    """Return all that a client at a door is given by any verb, whatever it asks for."""
    with ChatServer() as server:
        brain = make(root, server, is_private=is_private)
    (root / "system/config.yaml").write_text("llm: {model: offline}\nrecall: {embedder: none}\n")
    brain.observed.adopt()
    for number, meta in enumerate(PRIVATE_PROMPTS if is_private else ()):
        say_to(brain, f"private/{number}.md", f"---\n{meta}\n---\nI hide kanarie99qz in topic99.\n")
    door, seen = verbs.Caller("test:client"), []

    def call(verb: Callable[..., Any], *values: str, **named: Any) -> Any:
        try:
            result = verb(brain, *values, caller=door, **named)
        except BrainiacError as error:
            seen.append(str(error))
            return None
        seen.append(str(result.to_json()))
        return result

    ids = {path.relative_to(root).as_posix() for path in root.rglob("*.md")}
    for folder in {posixpath.dirname(path) for path in ids}:
        if "kanarie" not in folder:  # an error repeats what was asked for
            call(verbs.list_folder, folder)
    topics = [f"topic{number:02d}" for number in (*NUMBERS.values(), 99)]
    for topic in topics:
        found = call(verbs.search, topic, limit=20, max_tokens=9_000)
        ids |= {topic, *(match.id for match in found.matches)}
    for start in range(0, len(topics) if is_private else 0, 3):  # these cost more than a search: three shapes at a time
        some = topics[start : start + 3]
        call(verbs.suggest, some[0], "forget")
        if start % 2:
            call(verbs.ask, " ".join(f"What of {topic}?" for topic in some), conversation="door")
        else:
            call(verbs.briefing, " ".join(f"What of {topic}? [[{topic}]]" for topic in some), max_tokens=20_000)
    ids |= {event.id for event in brain.journal.events(kinds={PromptAnswered, NoteCaptured})}
    for number, name in enumerate(sorted(name for name in ids if "kanarie" not in name)):
        call(verbs.fetch, name, max_tokens=9_000)
        if is_private and number % 3 == 0:
            call(verbs.why, name, max_tokens=9_000)
    brain.close()
    return "\n".join(seen)


@pytest.mark.slow
def test_no_private_word_passes_a_door(tmp_path: Path) -> None:
    """By no verb, nor in what an error says; were it not private, most of the very same words would pass."""
    seen = {
        is_private: seen_through_a_door(tmp_path / str(is_private), is_private=is_private)
        for is_private in (True, False)
    }
    assert [] == [name for name in SHAPES if name not in OPEN and canary(name) in seen[True]]
    assert "kanarie99qz" not in seen[True]
    unseen = [name for name in SHAPES if canary(name) not in seen[False]]
    assert len(unseen) < len(SHAPES) / 4, unseen


@pytest.mark.slow
def test_what_was_said_in_private_is_filed_on_no_open_page(tmp_path: Path, machine: Path) -> None:
    """Beside a private page by hand that says something like it, a page begun for it is private and stays so."""
    with ChatServer() as server:
        model = Curious()
        server.default = by_request(model)
        brain = make(tmp_path / "brain", server, is_private=True)
        (brain.root / "memory/short_term.md").unlink()
        page = brain.root / FOLDER / "diagnosis.md"
        page.write_text(
            f"---\n{HEAD.format(n=98)}private: true\n---\n# User\n\n- User has diagnosis kanarie98qz. ^p1\n"
        )
        brain.observed.adopt()
        say_to(brain, "a.md", "---\nprivate: true\n---\nMy diagnosis is kanarie99qz.\n")
        say_to(brain, "b.md", "---\nprivate: true\n---\nI decided to leave kanarie97qz.\n")
        assert isinstance(brain.clock, ManualClock)
        brain.clock.advance(timedelta(hours=20).total_seconds())
        promote(brain)
        say_to(brain, "c.md", "What did I decide to leave? What is my diagnosis?\n")
        promote(brain)
        sent = "\n".join(map(read_twice, server.requests))
        brain.close()
    assert "what did i decide" in sent
    assert [] == [word for word in ("kanarie97qz", "kanarie98qz", "kanarie99qz") if word in sent]
