"""Brains of the first version (tests/data/first_version) are taken up by the present code: nothing of a person is lost.

Judged by what the person typed (words.json) and by a reader of our own; nothing here knows how Brainiac words things.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.first_version import OldBrain, unpacked
from tests.support.openai_server import ChatServer, by_request, say, say_json
from tests.support.plain_reader import (
    Blobs,
    decoded,
    exchanges,
    front_matter,
    holding,
    is_response,
    is_temporary,
    journal,
    texts,
)

STAGES = ("started", "started again", "promoted", "mended")


def take_up(old: OldBrain) -> None:
    """Start the present code on an old brain, let it do all that it does, and keep the tree after each step."""
    old.note("packed")

    def is_taken_up() -> bool:
        pages = "\n".join(decoded(text) for path, text in texts(old.root, old.memory).items() if not is_temporary(path))
        return all(line in pages for line in waiting(old.words))

    old.run_until(is_taken_up, "what waited is answered and remembered")
    old.note("started")
    put_back(old)
    assert 0 == (done := old.command("run", "--once")).returncode, done.stderr
    old.note("started again")
    for command in ("promote", "organize"):
        assert 0 == (done := old.command(command)).returncode, f"{command}: {done.stdout}{done.stderr}"
    old.note("promoted")
    old.command("doctor", "--fix")
    old.note("mended")


def put_back(old: OldBrain) -> None:
    """Take back what was archived at a tick, as a person who thinks again."""
    for found in (old.root / old.memory / "archive").rglob("leuchtfeuer.md"):
        place = old.root / old.memory / "long_term/concrete/see/leuchtfeuer.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        found.rename(place)


def waiting(words: dict[str, Any]) -> tuple[str, ...]:
    """Return the lines of what was not yet taken in when the brain was packed."""
    return tuple(line for name in ("unanswered", "untaken") if name in words for line in words[name]["lines"])


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> OldBrain:
    """The brain of a month, killed in the middle of a promotion."""
    old = unpacked("month", tmp_path_factory.mktemp("month"))
    take_up(old)
    return old


@pytest.fixture(scope="module")
def every_setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldBrain]:
    """The brain in which every setting of the first version is set, its model served on loopback."""
    folder = tmp_path_factory.mktemp("every_setting")
    old = unpacked("every_setting", folder, inbox="post", memory="mind", logs="records")
    with ChatServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        server.default = by_request(
            lambda captured: say("By the model.") if captured.body.get("tools") else say_json({})
        )
        config = old.home / "config/brainiac/config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        take_up(old)
        yield old


@pytest.fixture(params=["month", "every_setting"])
def old(request: pytest.FixtureRequest) -> OldBrain:
    """Each of the brains."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, OldBrain)
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_every_exchange_is_remembered_word_for_word(old: OldBrain, stage: str) -> None:
    """Each line of each prompt and note stands in memory as it was typed, whatever ran over it."""
    said = old.text(stage, old.memory)
    lines = [line for one in old.words["exchanges"] for line in one["lines"]] + [*waiting(old.words)]
    assert [] == [line for line in lines if line not in said]


@pytest.mark.parametrize("stage", STAGES)
def test_every_line_written_by_hand_stands(old: OldBrain, stage: str) -> None:
    """What a person wrote on pages, in short-term memory, answers and system files stands in the tree, and so does
    the save that the first version had kept aside."""
    tree = old.text(stage)
    lines = [one["line"] for one in old.words["hand"]] + old.words.get("kept_aside", [])
    assert [] == [line for line in lines if line not in tree]


@pytest.mark.parametrize("stage", STAGES)
def test_no_exchange_stands_twice(old: OldBrain, stage: str) -> None:
    """Each exchange has one place in memory: the event log, a day's page, or the archive."""
    pages = old.files(stage, old.memory).items()
    found = Counter(said.id for path, text in pages if ".sync-conflict" not in path for said in exchanges(path, text))
    assert {} == {name: count for name, count in found.items() if count > 1}


def test_what_waited_is_answered_once_and_nothing_else(old: OldBrain) -> None:
    """Of all prompts only the one without an answer gets one; those that stood stay the answers they were."""
    before, after = (answers(old, stage) for stage in ("packed", "mended"))
    prompt = old.words["unanswered"]["prompt"].removesuffix(".md")
    allowed = {old.words["unserved"]["prompt"].removesuffix(".md")} if "unserved" in old.words else set()
    assert {prompt} == {path.partition(".response")[0] for path in after.keys() - before.keys()} - allowed
    assert 1 == sum(path.startswith(f"{prompt}.response") for path in after)
    assert [] == [path for path in before.keys() & after.keys() if before[path] != after[path]]


def answers(old: OldBrain, stage: str) -> dict[str, list[str | None]]:
    """Return what tells one answer from another, of every response that stands beside its prompt."""
    files = {path: text for path, text in old.files(stage, old.inbox).items() if is_response(path)}
    keys = ("prompt_id", "prompt_sha256", "created_at")
    return {path: [front_matter(text).get(key) for key in keys] for path, text in files.items()}


def test_a_commit_in_flight_is_finished(month: OldBrain) -> None:
    """The promotion that a kill cut in two is whole: what it had begun to file stands on the day's pages alone."""
    filed, logged = Counter[str](), Counter[str]()
    for path, text in month.files("started", "memory").items():
        for said in exchanges(path, text):
            (logged if path == "memory/short_term.md" else filed)[said.user] += 1
    said_last = [one["lines"][0] for one in month.words["exchanges"] if "last-" in one["prompt"]]
    assert 6 == len(said_last)
    assert dict.fromkeys(said_last, 1) == {line: filed[line] for line in said_last}
    assert dict.fromkeys(said_last, 0) == {line: logged[line] for line in said_last}
    assert month.words["kept_aside_file"] in month.stages["packed"]
    assert month.words["kept_aside_file"] not in month.stages["started"]


def test_a_tick_is_obeyed_once(month: OldBrain) -> None:
    """What was ticked before the upgrade is done at the start; undone by hand it is not done again, though the line
    may still stand there."""
    started, again = month.stages["started"], month.stages["started again"]
    assert [] == [path for path in started if path.startswith("memory/long_term/") and path.endswith("/leuchtfeuer.md")]
    assert 1 == sum(path.startswith("memory/archive/") and path.endswith("/leuchtfeuer.md") for path in started)
    assert "memory/long_term/concrete/see/leuchtfeuer.md" in again
    copies = [path for path in started if path.startswith("memory/long_term/concrete/knots.sync-conflict")]
    assert [] == copies
    assert "- Tablet: the bowline jams in the wet." in decoded(started["memory/long_term/concrete/knots.md"])


def test_what_was_not_ticked_is_not_done(month: OldBrain) -> None:
    """A proposal that was declined is not carried out."""
    declined = [what for mark, _, what in month.words["pending"] if mark == "-"]
    assert 1 == len(declined)
    path = re.search(r"`(memory/\S+)`", declined[0])
    assert path
    assert path[1] in month.stages["started"]


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_forgotten_stays_forgotten(month: OldBrain, stage: str) -> None:
    """Neither what was forgotten nor what was deleted by hand comes back to inbox and memory."""
    tree = month.text(stage, "inbox", "memory")
    assert [] == [word for word in (*month.words["gone"], *month.words["deleted"]) if word in tree]


def test_what_was_purged_is_nowhere(month: OldBrain) -> None:
    """No file of tree, state or cache holds a word of it, texts that the journal keeps included."""
    blobs = month.root / "logs/journal/blobs"
    assert 100 < len(Blobs(blobs).all())
    found = {word: holding(word, month.root, month.home, blobs=blobs) for word in month.words["purged"]}
    assert {} == {word: files for word, files in found.items() if files}


def test_off_the_record_stays_so(old: OldBrain) -> None:
    """What a person said off the record stands in its own prompt and answer at most."""
    blobs = old.root / old.logs / "journal/blobs"
    for one in old.words["off_record"]:
        prompt = f"brain/{one['prompt']}"
        found = set(holding(one["word"], old.root, old.home, blobs=blobs))
        assert prompt in found
        assert found <= {prompt, prompt.replace(".md", ".response.md")}


def test_a_secret_does_not_reach_memory(month: OldBrain) -> None:
    """The password of a prompt is in that prompt and in no page."""
    [secret] = month.words["secret"]
    for stage in STAGES:
        assert secret["word"] in decoded(month.stages[stage][secret["path"]])
        assert secret["word"] not in month.text(stage, "memory")


def test_a_trusted_plugin_runs_and_no_other(month: OldBrain) -> None:
    """Trust given to the first version holds, hooks and commands; who had none, or is disabled, does not run."""
    diary = decoded(month.stages["mended"]["diary.md"]).split("\n")
    for name in ("unanswered", "untaken"):
        assert 1 == diary.count(f"- {month.words[name]['prompt']}")
    assert "Good morning from the diary\n" == month.command("greet").stdout
    assert "stranger-was-here.txt" not in month.stages["mended"]


def test_a_disabled_plugin_does_not_run(every_setting: OldBrain) -> None:
    """A plugin in `plugins.disabled` does not run, though it is trusted."""
    assert "moth-was-here.txt" not in every_setting.stages["mended"]


def test_settings_hold(every_setting: OldBrain) -> None:
    """The configured model answers, from the configured folders, and the file is as it was."""
    response = every_setting.stages["mended"]["post/offen.response.md"]
    assert "By the model." in decoded(response)
    assert not any(path.startswith(("inbox/", "memory/", "logs/")) for path in every_setting.stages["mended"])
    packed, mended = (every_setting.stages[stage]["system/config.yaml"] for stage in ("packed", "mended"))
    assert packed == mended


def test_comments_and_line_ends_of_a_page_stand(month: OldBrain) -> None:
    """A page with keys of its own, comments and CRLF keeps all of them, in the order in which they stood."""
    [path] = [path for path in month.stages["mended"] if path.endswith("/boat.md")]
    text = month.stages["mended"][path]
    signs = [
        b"my_key: [oak, larch]  # planks",
        b"hull: {length_m: 6.4",
        b"<!-- measured twice",
        b"| halyard | 17 |\r\n",
    ]
    places = [text.find(sign) for sign in signs]
    assert -1 not in places
    assert sorted(places) == places
    lone = re.findall(rb"(?<!\r)\n", text)
    assert len(lone) <= text.count(b"\r\n") / 10  # what was added since may not have looked


def test_doctor_finds_nothing_wrong(old: OldBrain) -> None:
    """After `doctor --fix` nothing is left to mend but settings that are no more."""
    done = old.command("doctor", "--json")
    problems = json.loads(done.stdout)["problems"]
    assert [] == [problem for problem in problems if problem["path"] != "system/config.yaml"]
    if old.memory == "memory":
        assert 0 == done.returncode, done.stdout


def test_status_works(old: OldBrain) -> None:
    """`status` tells how the brain stands, with its device."""
    done = old.command("status", "--json")
    assert 0 == done.returncode, done.stderr
    assert json.loads(done.stdout)["device"] in ("laptop-a1b2c3", "desk-0f1e2d")


SEARCHES = {"Gotland": "Nynäshamn", "金沢": "祖母", "Kettenschaltung": "Fahrrad", "зелёной бочкой": "Селигер"}


@pytest.mark.parametrize("query", SEARCHES)
def test_search_finds_the_old_month(month: OldBrain, query: str) -> None:
    """What was said in that month is found, in its language, whatever was archived since."""
    done = month.command("search", query, "-n", "30", "--json")
    assert SEARCHES[query] in done.stdout, done.stderr


def test_search_does_not_find_what_was_forgotten(month: OldBrain) -> None:
    """Words of a forgotten exchange lead to nothing of it."""
    assert "accordion" not in month.command("search", "Cornelius", "--json").stdout


def test_the_journals_go_on(old: OldBrain) -> None:
    """This device goes on with its own journal, without a gap; another device's stays as it was."""
    for device, lines in journal(old.root, old.logs).items():
        numbers = [line["seq"] for line in lines]
        assert list(range(1, len(numbers) + 1)) == numbers, device
    foreign = [path for path in old.stages["packed"] if "/journal/tablet-" in path]
    assert all(old.stages["packed"][path] == old.stages["mended"][path] for path in foreign)
