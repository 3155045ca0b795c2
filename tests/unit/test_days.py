"""Days in a question: what was said on them comes first, and a question for a day alone is answered by a list of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brainiac.testing import World

DAY = 24 * 3600
SAID = {  # from Monday, 15 September 2025 on
    0: ["I bought the green kayak from Tom.", "I had lunch with Mira at the station."],
    1: ["Slept badly, worked on the shed roof until late."],
    2: ["I sold the blue kayak. It was too short."],
    5: ["I painted the fence.", "---\nprivate: true\n---\nI paid the doctor 300 euros."],
    6: ["I walked to the lake, and it rained."],
    9: ["I repaired the piano stool."],
    17: ["The boiler was mended."],
}
PRIVATE = "I paid the doctor 300 euros."


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A brain in which something was said on several days; now it is Friday, 3 October 2025."""
    world = World(tmp_path_factory.mktemp("days"))
    for day in range(18):
        for number, text in enumerate(SAID.get(day, ())):
            world.drop(f"{day}-{number}.md", text)
            world.tick(3600)
        world.tick(DAY - 3600 * len(SAID.get(day, ())))
    return world


def said_on(*days: int) -> list[str]:
    return [text.rpartition("---\n")[2] for day in days for text in SAID[day]]


def listed(answer: str) -> list[str]:
    return re.findall(r"^- (.*?) — ", answer, re.MULTILINE)


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ("What did I do on 15 September?", [0]),
        ("What did I do on the fifteenth of September?", [0]),
        ("What happened on 2025-09-15?", [0]),
        ("15 September 2025", [0]),
        ("What did I do on Wednesday last week?", [9]),
        ("What did I do yesterday?", [17]),
        ("What did I do last week?", [9]),
        ("What did I do two weeks ago on Saturday?", [5]),
        ("What did I do between 15 and 17 September?", [0, 1, 2]),
        ("What happened in September?", [0, 1, 2, 5, 6, 9]),
        ("Was habe ich am 15. September gemacht?", [0]),
        ("Was habe ich vor zwei Wochen am Samstag gemacht?", [5]),
        ("Was habe ich vom 15. bis 17. September gemacht?", [0, 1, 2]),
        ("¿Qué hice el quince de septiembre?", [0]),
        ("Was war gestern?", [17]),
        ("Qu'est-ce que j'ai fait hier ?", [17]),
        ("¿Qué hice el 15 de septiembre?", [0]),
        ("Cosa ho fatto ieri?", [17]),
        ("Что я делал 15 сентября?", [0]),
    ],
)
def test_asked_for_a_day_alone_the_answer_lists_it(told: World, asked: str, days: list[int]) -> None:
    """In order of time, in English and in the language of the question; a span is listed as a day is."""
    answer = told.cli("ask", "--off-record", asked).out
    assert said_on(*days) == listed(answer)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("Which kayak did I have to do with on Wednesday, 17 September?", "I sold the blue kayak. It was too short."),
        ("Which kayak was it on 15 September, Tom's?", "I bought the green kayak from Tom."),
        ("What rained or leaked two weeks ago on Sunday?", "I walked to the lake, and it rained."),
    ],
)
def test_days_beside_other_words_lift_what_was_said_on_them(told: World, asked: str, first: str) -> None:
    """What was said on the day comes first among what has the words."""
    assert first == told.cli("search", asked, "--json").json["hits"][0]["text"]
    answer = told.cli("ask", "--off-record", asked).out
    assert first == re.findall(r"^[>-] (.*?)(?: — |$)", answer, re.MULTILINE)[0]


@pytest.mark.parametrize(
    "asked",
    [
        "Where does my friend May live?",
        "Who won the second march?",
        "Wer kümmert sich um die Heizung?",
        "Do I have choir on Tuesday?",
        "I was out yesterday.",
    ],
)
def test_what_names_no_day_lists_none(told: World, asked: str) -> None:
    """Nor does what is told of a day: only a question is answered by a list."""
    assert [] == listed(told.cli("ask", "--off-record", asked).out)


def test_a_day_without_a_word_falls_back_to_what_is_near(told: World) -> None:
    """A question for a day on which nothing was said is searched for as any other is."""
    assert [] == listed(told.cli("ask", "--off-record", "What did I do on 18 September?").out)


def test_what_was_said_on_the_day_comes_first_and_shuts_nothing_out(told: World) -> None:
    """A search finds what it finds without a day too, behind what was said on it."""
    texts = [hit["text"] for hit in told.cli("search", "What did I do on 15 September?", "--json").json["hits"]]
    assert sorted(SAID[0]) == sorted(texts[:2])
    assert len(texts) > 2


@pytest.mark.parametrize(("hours", "pause"), [(2, 600), (6, 600), (6, 0.01)])
def test_what_is_kept_of_a_day_stands_where_it_was_said(tmp_path: Path, hours: int, pause: float) -> None:
    """A statement bears only its day: before noon and after it, a list has it at the time of its message.

    So it is with messages of one second.
    """
    world = World(tmp_path)
    world.tick(hours * 3600)
    said = ["The plumber rang.", "I bought a kayak.", "The fence is painted."]
    for number, text in enumerate(said):
        world.drop(f"{number}.md", f"/remember {text}" if number == 1 else text)
        world.run()
        world.clock.advance(pause)
    world.cli("promote")
    answer = world.cli("ask", "What did I do today?").out
    assert said == [line.removeprefix("/remember ") for line in listed(answer)][:3]


def test_index_pages_are_no_hits(told: World) -> None:
    """They repeat what their pages say; a search, an answer and a briefing bring the pages."""
    searched = told.cli("search", "What was said and what happened on 15 September 2025", "--json").json
    assert searched["hits"]
    assert not [hit for hit in searched["hits"] if hit["path"].endswith("/_index.md")]
    assert "_index.md" not in told.cli("context", "What is known about September 2025?").out


def test_an_index_page_quotes_what_its_days_held(told: World) -> None:
    """The first sentences of each day, on its own index page and on that of the month; nothing private."""
    tree = told.tree()
    month = tree["memory/long_term/events/2025/09/_index.md"]
    assert "— I bought the green kayak from Tom. I had lunch with Mira at the station.\n" in month
    assert "— I sold the blue kayak.\n" in month
    assert "— I sold the blue kayak.\n" in tree["memory/long_term/events/2025/09/17/_index.md"]
    assert "I bought the green kayak" in tree["memory/long_term/events/2025/_index.md"]
    indexes = "".join(text for path, text in tree.items() if path.endswith("/_index.md"))
    assert not re.search(r"doctor|300 euros|\d exchange|What was said", indexes)
    assert [PRIVATE in text for path, text in tree.items() if "/events/2025/09/20/2025" in path].count(True) == 1


def test_what_is_forgotten_leaves_the_index_pages_too(tmp_path: Path) -> None:
    """A quote goes with what it quotes: by `forget`, and where a person takes the lines out of the day's page."""
    world = World(tmp_path)
    world.drop("a.md", "My locker at the gym has the code 4711.")
    world.drop("b.md", "The heron came back to the pond.")
    world.tick(2 * DAY)
    month = "memory/long_term/events/2025/09/_index.md"
    assert "code 4711" in world.tree()[month]
    world.cli("forget", "locker at the gym", "--yes")
    world.tick(DAY)
    assert "code 4711" not in "".join(text for path, text in world.tree().items() if path.endswith("/_index.md"))
    day = "memory/long_term/events/2025/09/15/2025-09-15.md"
    world.save(day, world.tree()[day].replace("The heron came back", "The grey heron came back"))
    world.tick(DAY)
    assert "The grey heron came back to the pond." in world.tree()[month]
