"""Which prompts have been answered."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from brainiac.llm.schemas import Answer, Purpose, Request
from brainiac.pipeline.daemon import answer_one
from brainiac.testing import World
from tests.support.promotions import ScriptedEngine, make_brain, open_brain

ASKED = "Where is the ladder?\n"


@pytest.fixture
def asked(world: World) -> World:
    """A world in which a prompt was answered."""
    world.drop("q.md", ASKED)
    assert 1 == world.run().answered
    return world


def answers(world: World) -> list[str]:
    return sorted(path.name for path in (world.root / "inbox").glob("*.response*"))


def test_what_was_answered_is_known_after_a_restart_and_by_another_device(asked: World) -> None:
    """Though the response is gone: from this device's journal, a damaged line of it or not, and from a foreign one."""
    (asked.root / "inbox/q.response.md").unlink()
    assert 0 == asked.run().answered
    (journal,) = (asked.root / "logs/journal/laptop-0a1b2c").glob("*.jsonl")
    with journal.open("ab") as file:
        file.write(b'{"seq": 99}\n')
    assert 0 == asked.run().answered
    tablet = asked.device("tablet")
    assert 0 == tablet.run().answered
    assert [] == answers(asked) + answers(tablet)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Just an answer.\n", True),
        ("---\nprompt_sha256: {sha}\n---\nok\n", True),
        ("---\nprompt_sha256: ff\n---\nok\n", False),
        ("  \n", False),
    ],
)
def test_a_response_that_stands_answers_the_text_it_names_or_by_hand_any(
    world: World, response: str, expected: bool
) -> None:
    """What a person, or a device whose journal is not here, put beside a prompt."""
    sha = "a8f0db044af3a75ebaefc552e8752b67f3ff35c7e860e00148ba58af96d35827"
    world.save("inbox/q.response.md", response.replace("{sha}", sha))
    world.drop("q.md", ASKED)
    assert expected == (world.run().answered == 0)


def test_our_untouched_answer_is_replaced_and_a_person_s_is_kept(asked: World) -> None:
    """A revision is answered, also where the answer before was written by hand."""
    first = asked.tree()["inbox/q.response.md"]
    asked.drop("q.md", "Where is the hammer?\n")
    assert (1, ["q.response.md"]) == (asked.run().answered, answers(asked))
    assert first != asked.tree()["inbox/q.response.md"]
    asked.save("inbox/q.response.md", "By hand.\n")
    assert 0 == asked.run().answered
    for text in ("Where is the saw?\n", "Where is the drill?\n"):
        asked.drop("q.md", text)
        assert (1, ["q.response-2.md", "q.response.md"]) == (asked.run().answered, answers(asked))
    assert "By hand.\n" == asked.tree()["inbox/q.response.md"]


def test_a_prompt_that_moved_is_not_answered_again_and_a_copy_is(asked: World) -> None:
    """A text that turns up elsewhere has moved only when it is gone where it stood."""
    (asked.root / "inbox/q.md").rename(asked.root / "inbox/moved.md")
    assert 0 == asked.run().answered
    asked.drop("copy.md", ASKED)
    assert 1 == asked.run().answered
    assert "copy.response.md" in answers(asked)


def test_a_deleted_prompt_is_forgotten(asked: World) -> None:
    """Dropped again, the same words are asked again, and once."""
    for name in ("q.md", "q.response.md"):
        (asked.root / "inbox" / name).unlink()
    asked.run()
    asked.drop("q.md", ASKED)
    assert [1, 0] == [asked.run().answered, asked.run().answered]


def test_a_stale_error_file_goes(world: World) -> None:
    """Once the prompt can be read it is answered, and nothing says otherwise any more."""
    broken = world.drop("q.md", b"\xff\xfe\xff")
    world.run()
    assert broken.error
    asked = world.drop("q.md", ASKED)
    world.run()
    assert asked.answer
    assert asked.error is None


def test_of_two_processes_that_answer_at_once_the_second_gives_way(tmp_path: Path) -> None:
    """`ask` beside a daemon that starts: the text is answered once, and both know the answer."""
    quicker: list[Path] = []

    def second(request: Request) -> Answer:
        if not quicker:
            with closing(open_brain(tmp_path / "b")) as other:
                quicker.append(answer_one(other, "inbox/q.md"))
        return Answer(text="Second.")

    brain = make_brain(tmp_path / "b", engine=ScriptedEngine({Purpose.ANSWER: second}))
    (brain.root / "inbox/q.md").write_text(ASKED)
    given = answer_one(brain, "inbox/q.md")
    assert quicker == [given]
    assert ["q.response.md"] == [path.name for path in (brain.root / "inbox").glob("q.response*")]
    assert "Second." not in (brain.root / "inbox/q.response.md").read_text()
    assert 1 == len(list(brain.journal.events(kinds={"prompt-answered"})))
    brain.close()
