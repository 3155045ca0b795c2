"""`forget WORDS --purge`: a function of the words that were named, whatever became of the texts that had them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import promote

from benchmarks.purge_stories import tell_story
from brainiac.testing import World
from tests.support.exports import chatgpt, write_json
from tests.support.promotions import ScriptedEngine, set_model, with_model
from tests.support.said import holding

pytestmark = pytest.mark.slow

SECRET = "My neighbour hides emeralds under the old willow."
PAGE = "memory/long_term/concrete/garden.md"
STM = "memory/short_term.md"
HOUR = 3600


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.save("system/config.yaml", "\nrecall: {embedder: none}\n", "append")
    world.drop("tea.md", "I prefer tea over coffee.\n")
    world.run()
    return world


def later(world: World) -> None:
    """Let the brain take notice, and an hour pass."""
    world.run()
    world.clock.advance(HOUR)


def meet(first: World, second: World) -> None:
    """Sync two devices until neither has anything to tell the other, each running in turn."""
    first.sync(second)
    for device in (first, second, first, second):
        later(device)
        first.sync(second)


def left(world: World, word: str = "emeralds") -> list[str]:
    """Return every file of brain, state and cache, and every text of the journal, that has a word."""
    with world.opened() as brain:
        texts = [digest for digest in brain.journal.blobs.digests() if word.encode() in brain.journal.blobs.get(digest)]
    return [path for _, path in holding([word], world.root, world.home)] + texts


def purged(world: World, *named: str) -> None:
    """Purge words, and find nothing of them in files, commands and a new index; `doctor` has no complaint."""
    assert left(world)
    moments = [f"2025-09-15T{hour:02}:30:00Z" for hour in range(9, 24)]
    done = world.cli("forget", *(named or ("emeralds",)), "--purge", "--yes")
    assert 0 == done.code, done.err
    assert [] == left(world)
    said = [world.cli("log", "--all", "-n", "999"), world.cli("why", PAGE), world.cli("search", "neighbour willow")]
    said += [world.cli("diff", "--since", moment) for moment in moments]
    said += [world.cli("show", path, "--at", moment) for path in (PAGE, STM) for moment in moments]
    assert [] == [each for each in said if "emerald" in each.out + each.err or "bug" in each.err]
    assert 0 == world.cli("reindex").code
    world.run()
    assert [] == left(world)
    problems = world.cli("doctor", "--json").json["problems"]
    assert [] == [problem for problem in problems if "lacks" not in problem["what"]]


# --- one for each way in which words stay ----------------------------------------------------------------------------


def reworded(world: World) -> None:
    world.save(PAGE, f"# Garden\n\n- {SECRET}\n- The cat sleeps.\n")
    later(world)
    text = (world.root / PAGE).read_text()
    world.save(PAGE, text.replace(SECRET, "It is nothing."))
    later(world)


def reworded_with_the_word(world: World) -> None:
    world.save(PAGE, f"# Garden\n\n- {SECRET}\n")
    later(world)
    world.save(PAGE, (world.root / PAGE).read_text().replace(SECRET, "There are emeralds somewhere."))


def revised(world: World) -> None:
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    world.drop("secret.md", "Never mind what I said.\n")
    later(world)


def task_reworded(world: World) -> None:
    world.drop("task.md", "/todo sell the emeralds of my neighbour\n")
    later(world)
    text = (world.root / STM).read_text()
    world.save(STM, text.replace("- [ ] sell the emeralds of my neighbour", "- [x] water the flowers"))
    later(world)
    (world.root / "inbox/task.md").unlink()
    later(world)


def retitled_and_moved(world: World) -> None:
    world.save("memory/long_term/concrete/emeralds.md", "# The emeralds\n\n- They are green.\n")
    later(world)
    world.save("memory/long_term/concrete/emeralds.md", "# Stones\n\n- They are green.\n")
    later(world)
    (world.root / "memory/long_term/concrete/emeralds.md").rename(world.root / PAGE)
    later(world)


def front_matter(world: World) -> None:
    world.save(PAGE, "---\ntags: [emeralds, green]\nplace: 'where the emeralds are'\n---\n\n# Garden\n\n- Green.\n")
    later(world)
    world.save(PAGE, (world.root / PAGE).read_text().replace("[emeralds, green]", "[green]"))


def heading_comment_and_summary(world: World) -> None:
    world.save(PAGE, "# Garden\n\n## On emeralds\n\n<!-- ask about the emeralds -->\n\n- The cat sleeps.\n")
    world.save(STM, (world.root / STM).read_text().replace("## Summary\n", f"## Summary\n{SECRET}\n\n", 1))
    later(world)


def corrected(world: World) -> None:
    world.drop("secret.md", f"/remember {SECRET}\n")
    later(world)
    world.cli("promote")
    assert 0 == world.cli("correct", SECRET, "--to", "It was all invented.").code
    later(world)


def imported(world: World) -> None:
    turns = [(SECRET, "So there are emeralds."), ("What is a ferry?", "A boat.")]
    export = write_json(world.folder / "chats.json", [chatgpt("c", turns, title="Emeralds in the garden")])
    assert 0 == world.cli("import", str(export)).code
    later(world)


def undone(world: World) -> None:
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    with world.opened() as brain:
        answered = [event.id for event in brain.journal.events(kinds={"prompt-answered"})]
    assert 0 == world.cli("undo", answered[-1]).code
    (world.root / "inbox/secret.md").unlink()
    later(world)


def deleted(world: World) -> None:
    world.save(PAGE, f"# Garden\n\n- {SECRET}\n")
    later(world)
    (world.root / PAGE).unlink()


def forgotten(world: World) -> None:
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    assert 0 == world.cli("forget", "emeralds", "--yes").code


def said_by_a_model(world: World) -> None:
    engine = ScriptedEngine()
    engine.on("emeralds", "new", "", text="There may be emeralds in the garden.", subject="emeralds")
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    set_model(world.root)
    with world.opened() as brain:
        promote(with_model(brain, engine))
    config = (world.root / "system/config.yaml").read_text()
    world.save("system/config.yaml", config.replace("scripted", "offline"))
    later(world)


def told_by_an_assistant(world: World) -> None:
    """Named exchanges, statements and files of its own; another of its notes stands beside them."""
    for name, text in (("secret", SECRET), ("tulips", "The tulips are planted in November.")):
        world.save(f"inbox/notes/{name}.md", f"---\norigin: assistant\nby: lovelace\n---\n{text}\n")
    later(world)
    assert "**assistant (lovelace):**" in (world.root / STM).read_text()
    world.cli("promote", "--yes")
    later(world)


def left_by_a_crash(world: World) -> None:
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    world.save("inbox/.brainiac-0123-secret.md", SECRET)


def in_utf16(world: World) -> None:
    world.drop("secret.md", SECRET.encode("utf-16"))
    world.drop("named-emeralds.md", "What is the time?\n")
    later(world)


WAYS = (
    reworded, reworded_with_the_word, revised, task_reworded, retitled_and_moved, front_matter,
    heading_comment_and_summary, corrected, imported, undone, deleted, forgotten, said_by_a_model, told_by_an_assistant,
    left_by_a_crash, in_utf16,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_word_is_left(world: World, way: Callable[[World], None]) -> None:
    """Whatever became of the words, in files, events or the journal alone: they are gone, and all else stands."""
    way(world)
    purged(world)
    assert "I prefer tea over coffee." in (world.root / STM).read_text() + "".join(world.tree().values())


# --- what else it does, and does not ---------------------------------------------------------------------------------


def test_all_words_must_meet_in_one_unit(world: World) -> None:
    """A text that has one of two words, or both in different statements, keeps its history."""
    world.save(PAGE, "# Garden\n\n- The emeralds are green.\n- The willow is old.\n")
    later(world)
    world.save(PAGE, "# Garden\n\n- Nothing.\n")
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    assert 0 == world.cli("forget", "emeralds willow", "--purge", "--yes").code
    assert not [path for path in left(world, "neighbour") if "blobs" in path]
    assert "The emeralds are green." in world.cli("show", PAGE, "--at", "2025-09-15T09:30:00Z").out


def test_whose_words_they_are_is_among_the_words(world: World) -> None:
    """All that is taken out is listed before: what an assistant wrote, where its name was named; nothing where not."""
    told_by_an_assistant(world)
    page = next((world.root / "memory/long_term/events").rglob("2025-09-15.md"))
    for name in ("secret", "tulips"):
        (world.root / f"inbox/notes/{name}.md").unlink()
    later(world)
    asked = world.cli("forget", "lovelace", "--purge")
    assert f"{page.relative_to(world.root)}, 2025-09-15: “The tulips are planted in November.”" in asked.out
    purged(world)
    assert '**assistant (lovelace):** "The tulips are planted in November."' in page.read_text()
    assert "- The tulips are planted in November. (assistant: lovelace)" in "".join(world.tree().values())
    assert 0 == world.cli("forget", "lovelace", "--purge", "--yes").code
    assert [] == left(world, "lovelace")
    assert "tea over coffee" in page.read_text()


def test_what_we_write_around_their_words_is_not_theirs(world: World) -> None:
    """Labels, stamps and kinds of authors name nothing: no exchange goes for `user`, `AI` or a year."""
    world.save("inbox/notes/tulips.md", "---\norigin: assistant\nby: lovelace\n---\nThe tulips are red.\n")
    later(world)
    before = (world.root / STM).read_text()
    assert ("**User:**" in before, "### 2025-09-15T" in before, "**assistant (" in before) == (True, True, True)
    for word in ("user", "AI", "2025", "assistant", "event"):
        assert "names no exchange" in world.cli("forget", word, "--purge", "--yes").err, word
    assert before == (world.root / STM).read_text()


def test_what_is_forgotten_is_purged_later_and_then_gone(world: World) -> None:
    """`forget`, then `forget` again says what can still be done; after the purge nothing has the name any more."""
    forgotten(world)
    again = world.cli("forget", "emeralds", "--yes")
    assert (1, True) == (again.code, "only the journal still has 'emeralds'" in again.err)
    purged(world)
    assert "names no exchange" in world.cli("forget", "emeralds", "--purge", "--yes").err


def test_it_says_before_it_asks_where_the_words_stand(world: World) -> None:
    """How many texts, former versions and events; the JSON has the numbers of what was destroyed."""
    reworded(world)
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    asked = world.cli("forget", "emeralds", "--purge")
    assert 2 == asked.code
    assert "The journal has it in 4 texts, 1 of them former versions, and in 0 events." in asked.out
    assert left(world)
    done = world.cli("forget", "emeralds", "--purge", "--yes", "--json").json
    assert (4, 0) == (done["texts"], done["lines"])


def test_a_purge_is_not_taken_back(world: World) -> None:
    """`show` says when the text was purged; `undo` of the purge, and of what it destroyed, is refused in a sentence."""
    world.save(PAGE, f"# Garden\n\n- {SECRET}\n- The cat sleeps.\n")
    later(world)
    purged(world)
    assert "was purged on 2025-09-15" in world.cli("show", PAGE, "--at", "2025-09-15T09:30:00Z").err
    with world.opened() as brain:
        events = list(brain.journal.events(kinds={"texts-purged", "exchange-forgotten"}))
    for event in events:
        done = world.cli("undo", event.id)
        assert 1 == done.code
        assert "bug" not in done.err
    assert [] == left(world)


def test_a_page_goes_with_its_former_wordings(world: World) -> None:
    """Named by its path, also when it is gone from the tree: all that it ever said goes; what others said stays."""
    reworded(world)
    (world.root / PAGE).unlink()
    later(world)
    assert 0 == world.cli("forget", PAGE, "--purge", "--yes").code
    assert [] == left(world)
    assert "tea" in world.cli("show", "inbox/tea.md", "--at", "2025-09-15T09:30:00Z").out


def test_an_exchange_goes_with_its_revisions(world: World) -> None:
    """Named by its prompt: what the prompt said before is destroyed too."""
    revised(world)
    assert 0 == world.cli("forget", "inbox/secret.md", "--purge", "--yes").code
    assert [] == left(world)


def test_an_index_that_is_open_elsewhere_keeps_no_word(world: World) -> None:
    """Another process has the index open: the one that it makes anew has the words of the files, no other."""
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    with world.opened() as brain:
        brain.recall.search("emeralds")
        brain.recall.flush()
        assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
        assert brain.recall.search("tea")
        brain.recall.flush()
    assert [] == left(world)
    assert "coffee" in world.cli("search", "tea").out


# --- cut short, and on other devices ---------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(2))
def test_a_purge_that_is_killed_is_carried_on(tmp_path: Path, part: int) -> None:
    """Killed at any moment, with words in statements, items, former versions: the next start ends it, or all stands."""
    world = World(tmp_path / "world")
    world.save("system/config.yaml", "\nrecall: {embedder: none}\n", "append")
    world.save(PAGE, f"# Garden\n\n- {SECRET}\n- The cat sleeps.\n")
    later(world)
    world.save(PAGE, "# Garden\n\n- By the willow there are emeralds.\n- The cat sleeps.\n")
    world.drop("todo.md", "/todo polish the emeralds\n")
    later(world)
    template = shutil.copytree(world.folder, tmp_path / "template")
    before, outcomes = world.tree(), []
    for at in range(8 + 11 * part, 1000, 22):
        shutil.rmtree(world.folder)
        shutil.copytree(template, world.folder)
        is_killed = world.kill(at, "before", "forget", "emeralds", "--purge", "--yes")
        world.run()
        after = {path: text for path, text in world.tree().items() if path.startswith(("memory/", "inbox/"))}
        is_whole = after != {path: before.get(path) for path in after}
        assert not (is_whole and left(world)), at
        assert "The cat sleeps." in after[PAGE]
        outcomes.append(is_whole)
        if not is_killed:
            break
    assert outcomes[-1]
    assert sorted(outcomes) == outcomes


def test_what_was_written_offline_elsewhere_goes_too(world: World) -> None:
    """Gone there, and here if it came here before; what another says within the same item stays where it was said."""
    world.save(PAGE, f"# Garden\n\n- I prefer tea over coffee.\n{SECRET}\n- The cat sleeps.\n")
    later(world)
    desk = world.device("desk")
    desk.run()
    desk.save(PAGE, "# Garden\n\n- Under the willow, emeralds wait.\n- The cat sleeps.\n- It purrs.\n")
    desk.save("inbox/notes/walk.md", "# Walk\n\nMore emeralds by the brook.\n\nIt rained all day.\n")
    desk.drop("asked.md", "Who hid the emeralds?\n")
    later(desk)
    assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
    assert [] == left(world)
    meet(world, desk)
    assert ([], []) == (left(world), left(desk))
    for device in (world, desk):
        assert "It purrs." in (device.root / PAGE).read_text()
        assert "tea over coffee" in (device.root / "inbox/tea.md").read_text()


def test_a_page_that_was_called_so_is_not_kept_by_an_edit_elsewhere(world: World) -> None:
    """Edited where nobody knew of the purge and nothing ran: the words of its name alone are reason for it to go."""
    path = "memory/long_term/concrete/emeralds-of-mine.md"
    world.save(path, f"# Things\n\n- {SECRET}\n- The cat sleeps.\n")
    later(world)
    desk = world.device("desk")
    desk.run()
    desk.save(path, "# Things\n\n- It is nothing.\n- The cat sleeps.\n")
    assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
    meet(world, desk)
    assert ([], []) == (left(world), left(desk))
    assert "tea over coffee" in (world.root / "inbox/tea.md").read_text()
    assert (world.root / "inbox/tea.md").read_text() == (desk.root / "inbox/tea.md").read_text()


def test_an_answer_elsewhere_that_names_a_page_by_the_words_goes_too(world: World) -> None:
    """It is noted as links alone, among them the title that was purged."""
    page = "memory/long_term/concrete/stones.md"
    world.save(page, "# The emeralds\n\n- My neighbour hides something in the garden.\n")
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    desk = world.device("desk")
    desk.run()
    desk.drop("asked.md", "What does my neighbour hide in the garden?\n")
    later(desk)
    assert "[The emeralds](" in (desk.root / STM).read_text()
    assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
    meet(desk, world)
    assert ([], []) == (left(world), left(desk))


def test_a_version_that_a_sync_brings_back_unreadable_is_no_way_back(world: World) -> None:
    """Another device noted something below the words; the text that its version was kept by is destroyed here."""
    world.save(STM, (world.root / STM).read_text().replace("## Summary\n", f"## Summary\n{SECRET}\n\n", 1))
    world.drop("secret.md", "The emeralds are green.\n")
    later(world)
    desk = world.device("desk")
    desk.run()
    desk.drop("sun.md", "The sun shines today in Rome.\n")
    later(desk)
    assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
    world.drop("rain.md", "It rains today in Paris.\n")
    later(world)
    meet(world, desk)
    assert ([], []) == (left(world), left(desk))
    for device in (world, desk):
        assert all(each in (device.root / STM).read_text() for each in ("Rome", "Paris", "tea over coffee"))


def test_what_is_typed_anew_after_a_purge_stays_and_is_named(world: World) -> None:
    """It is the person's, on each device, also on one that hears of the purge and of it at once; `doctor` names it."""
    world.drop("secret.md", f"{SECRET}\n")
    later(world)
    desk = world.device("desk")
    desk.run()
    assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
    later(world)
    world.save(PAGE, "# Garden\n\n- My ring has two emeralds.\n")
    later(world)
    world.sync(desk)
    third = world.device("third")
    for device in (desk, third, world):
        later(device)
        assert "My ring has two emeralds." in (device.root / PAGE).read_text()
        assert [] == left(device, "willow")
    named = [each for each in world.cli("doctor", "--json").json["problems"] if "purged" in each["what"]]
    assert [(PAGE, True)] == [(each["path"], "typed or brought here" in each["what"]) for each in named]


@pytest.mark.parametrize("in_two_steps", [False, True])
def test_a_page_that_was_moved_elsewhere_stands_once(world: World, in_two_steps: bool) -> None:
    """The text that it had when it was moved there is destroyed; the move still says that both are one page, or what
    stood there before and since does."""
    known = "uuid: 0199d1a0-0000-7000-8000-000000000001\nupdated_at: 2025-09-14T09:00:00Z"
    world.save(PAGE, f"---\n{known}\n---\n# Garden\n\n- {SECRET}\n- The roses are red.\n")
    later(world)
    desk, there = world.device("desk"), "memory/long_term/concrete/roses.md"
    desk.run()
    (desk.root / PAGE).rename(elsewhere := desk.root.with_name("page.md"))
    if in_two_steps:
        later(desk)
    elsewhere.rename(desk.root / there)
    later(desk)
    assert 0 == world.cli("forget", "emeralds", "--purge", "--yes").code
    meet(desk, world)
    assert [False, True] * 2 == [(one.root / path).exists() for one in (world, desk) for path in (PAGE, there)]


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_stories(tmp_path: Path, seed: int) -> None:
    """A brain lives a while with two words in it; after the purge none is found, and what others said stands."""
    result = tell_story(tmp_path, seed)
    assert ([], [], []) == (result.found, result.complaints, result.lost)


def test_only_what_has_the_words_is_said_to_stand_elsewhere(world: World) -> None:
    """Sentences that stood beside the words, and that other files have too, are nobody's concern."""
    beside = "Priya had food poisoning on Friday."
    world.drop("one.md", f"The two-factor codes are in the blue tin. {beside}")
    world.drop("two.md", f"{beside} She is well again.")
    world.run()
    done = world.cli("forget", "two-factor", "--purge", "--yes", "--json")
    assert {} == done.json["still"]
