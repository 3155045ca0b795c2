"""What waits in the inbox is found before it is answered: without secrets, only where it may be seen, and once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from brainiac.pipeline.daemon import Daemon
from brainiac.testing import World
from tests.support.pipeline import eventually


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give a new brain."""
    return World(tmp_path)


def found(world: World, words: str) -> list[tuple[str, str]]:
    """Return the paths and texts that a search lists."""
    hits = world.cli("search", words, "--json").json["hits"]
    return [(hit["path"], hit["text"]) for hit in hits]


@pytest.mark.parametrize("names", [("a.md", "b.md"), ("b.md", "a.md")])
def test_a_question_is_answered_by_what_was_dropped_with_it(world: World, names: tuple[str, str]) -> None:
    """In whatever order their names come; a question's own file is no answer to it."""
    fact, question = names
    world.drop(fact, "The stopcock is behind the washing machine.")
    asked = world.drop(question, "Where is the stopcock?")
    world.run()
    assert asked.answer
    assert "> The stopcock is behind the washing machine." in asked.answer
    assert "> Where is the stopcock?" not in asked.answer
    assert f"]({question}" not in asked.answer


def test_what_waits_is_found_until_it_was_taken_in(world: World) -> None:
    """A search without a daemon finds a prompt in the inbox, and later the exchange alone; what was deleted is gone."""
    world.drop("boat.md", "The boat is moored at Cawsand.")
    world.drop("gone.md", "The boat needs varnish.")
    assert {"inbox/boat.md", "inbox/gone.md"} == {path for path, _ in found(world, "boat")}
    (world.root / "inbox/gone.md").unlink()
    assert [("inbox/boat.md", "The boat is moored at Cawsand.")] == found(world, "boat")
    world.run()
    assert [("memory/short_term.md", "The boat is moored at Cawsand.")] == found(world, "boat")


def test_what_waits_is_found_as_memory_will_have_it(world: World) -> None:
    """No secret of one prompt stands in the answer to another, and nothing that is off the record is found."""
    world.drop("a-login.md", "router password: hunter2")
    world.drop("b-off.md", "/off\nThe router is hidden in the attic.")
    asked = world.drop("c.md", "Where is the router, and what is its password?")
    assert all("hunter2" not in text and "attic" not in text for _, text in found(world, "router"))
    world.run()
    assert asked.answer
    assert "hunter2" not in asked.answer
    assert "attic" not in asked.answer


def test_what_is_private_is_not_found_while_it_waits(world: World) -> None:
    """Nothing marks yet who may see it; once it was taken in, an answer that quotes it is private."""
    world.drop("a.md", "/private\nGrandma's diagnosis is gout.")
    assert [] == found(world, "diagnosis")
    world.run()
    world.drop("b.md", "What is Grandma's diagnosis?")
    world.run()
    response = (world.root / "inbox/b.response.md").read_text("utf-8")
    assert "> Grandma's diagnosis is gout." in response
    assert "private: true" in response.split("---")[1]


def test_what_is_too_large_for_an_answer_is_not_read_by_a_search_either(world: World) -> None:
    """A file of gigabytes in the inbox costs each search one look at its size, and never memory."""
    world.drop("log.md", "The heron came back. " + "x " * 500_000)
    world.drop("note.md", "The heron left.")
    assert [("inbox/note.md", "The heron left.")] == found(world, "heron")
    world.run()
    assert "memory/short_term.md" in {path for path, _ in found(world, "heron")}
    assert "inbox/log.md" not in {path for path, _ in found(world, "heron")}


def test_several_things_are_listed(world: World) -> None:
    """What asks for several things gets more than the three passages that any answer has; one thing is still quoted."""
    for number, name in enumerate(("Fay", "Albie", "Rhys", "Oona", "Bram")):
        world.drop(f"{number}.md", f"My cousin {name} came by and stayed for tea.")
    world.drop("6.md", "The gas man came.")
    world.run()
    listed = world.cli("ask", "Which cousins do I have?").out
    assert 5 == sum(f"- My cousin {name} came by" in listed for name in ("Fay", "Albie", "Rhys", "Oona", "Bram"))
    assert "- My cousin" not in world.cli("ask", "When did cousin Fay come by?").out


def test_what_only_shares_the_words_is_said_to_be_perhaps(world: World) -> None:
    """A note about what was asked that does not answer it is shown with less certainty than one that does."""
    world.drop("a.md", "My son's outgrown all his trousers again.")
    world.drop("b.md", "Netball's at the sports hall in Fenton.")
    world.run()
    assert "In memory:" in world.cli("ask", "Where's netball?").out
    assert "Perhaps:" in world.cli("ask", "How tall is my son?").out


PAGE = "memory/long_term/concrete/house.md"
OLD = "The stopcock is behind the washing machine."


def move_it(world: World) -> None:
    world.save(PAGE, "# House\n\n- The stopcock is under the sink now.\n")


def delete_it(world: World) -> None:
    (world.root / PAGE).unlink()


def ask_otherwise(world: World) -> None:
    world.save("inbox/q.md", "Where is the fuse box?\n")


def leave_it(world: World) -> None:
    pass


@pytest.mark.parametrize(
    ("meanwhile", "quoted"),
    [(leave_it, OLD), (move_it, "under the sink now"), (delete_it, ""), (ask_otherwise, "behind the stairs")],
)
def test_an_answer_says_what_stands_when_the_prompt_has_rested(
    world: World, meanwhile: Callable[[World], None], quoted: str
) -> None:
    """Memory is searched while the prompt's file rests; a page or prompt saved after that is what is answered with."""
    world.save(PAGE, f"# House\n\n- {OLD}\n")
    world.save("memory/long_term/concrete/stairs.md", "# Stairs\n\n- The fuse box is behind the stairs.\n")
    with world.opened() as brain:
        daemon = Daemon(brain)
        daemon.start()
        daemon.bus.wait_idle()
        try:
            asked = world.drop("q.md", "Where is the stopcock?")
            bus = daemon.bus
            eventually(lambda: "inbox/q.md" in bus.settler.waiting_paths and not bus.foreground.pending, "a search")
            assert asked.answer is None
            meanwhile(world)
            eventually(lambda: meanwhile is leave_it or len(bus.unsettled) > (meanwhile is not ask_otherwise), "save")
            bus.wait_idle()
        finally:
            daemon.stop()
    assert asked.answer
    assert quoted in asked.answer
    assert (OLD in asked.answer) == (meanwhile is leave_it)


def test_what_has_an_answer_or_is_none_does_not_wait(world: World) -> None:
    """Of a full inbox the prompts are answered that nothing stands beside; what cannot be read has an error file."""
    texts = {"open.md": "Hello.", "notes/n.md": "A note.", "by_hand.md": "Hello.", "empty.md": "", "blank.md": " \n\n"}
    texts |= {"draft.md": "---\nstatus: draft\n---\nlater", "big.md": "x" * 1_000_001}
    for name, text in texts.items():
        world.drop(name, text)
    broken = world.drop("broken.md", b"\xff")
    world.save("inbox/by_hand.response.md", "An answer from elsewhere.")
    world.run()
    inbox = {path.removeprefix("inbox/") for path in world.tree() if path.startswith("inbox/") and "/." not in path}
    assert {"open.response.md", "big.error.md", "broken.error.md"} == inbox - {
        *texts,
        "by_hand.response.md",
        "broken.md",
    }
    assert "larger than 1,000,000 bytes" in world.tree()["inbox/big.error.md"]
    assert broken.error
    (world.root / "inbox/link.md").symlink_to(world.root / "inbox/open.md")
    world.save("inbox/.hidden/q.md", "Hello.")
    assert 0 == world.run().answered


def test_a_missing_folder_deletes_nothing(world: World) -> None:
    """A drive that is not mounted is not a person who deletes."""
    page = world.save("memory/long_term/concrete/m.md", "# M\n\n- It is so.\n")
    world.run()
    away = world.folder / "away"
    (world.root / "memory").rename(away)
    world.run()
    if (world.root / "memory").exists():
        (world.root / "memory").rename(world.folder / "made")
    away.rename(world.root / "memory")
    world.run()
    assert page.exists()
    assert "deleted" not in world.cli("log", "--all").out
