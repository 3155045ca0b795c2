"""What the offline engine answers, from memory alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import pytest

from brainiac.clock import parse_iso
from brainiac.events import content_hash
from brainiac.llm.offline import OfflineEngine
from brainiac.llm.offline.answering import LONG
from brainiac.llm.offline.telling import PUT_ASIDE
from brainiac.llm.schemas import Answer, AnswerRequest, Queries, QueriesRequest
from brainiac.notes.prompt import Exchange, Prompt
from brainiac.notes.short_term import Item, ShortTermMemory, StmEvent
from brainiac.recall.hit import Hit

NOW = parse_iso("2026-05-01T10:00:00Z")  # a Friday
TOLD = (
    ("2026-03-02T09:00:00Z", "I moved to Portland in June 2020."),
    ("2026-03-02T09:05:00Z", "I work as a developer at Northwind Freight."),
    ("2026-03-03T09:00:00Z", "My sister Elena lives in Madrid with her husband Pablo."),
    ("2026-03-04T09:00:00Z", "We decided to use Postgres for the Harbor project because the team knows it."),
    ("2026-03-04T09:30:00Z", "For Harbor's queue we picked Redis over RabbitMQ."),
    ("2026-03-05T09:00:00Z", "remind me to call the landlord about the leaking tap"),
    ("2026-03-05T09:01:00Z", "todo: send Denise the benefits forms"),
    ("2026-03-09T09:00:00Z", "The Harbor beta has 34 users."),
    ("2026-03-16T09:00:00Z", "Last Friday we shipped the Harbor beta."),
    ("2026-03-17T09:00:00Z", "Elena's birthday is May 23."),
    ("2026-03-18T09:00:00Z", "Called the landlord, the tap is fixed. So that one's done."),
    ("2026-03-19T09:00:00Z", "To restart staging: ssh into stg-2, run systemctl restart harbor, check the page."),
    ("2026-03-31T09:00:00Z", "Correction: Elena's birthday is May 25, not the 23rd."),
    ("2026-04-08T09:00:00Z", "Before Portland I lived in Tucson for six years."),
    ("2026-04-10T09:00:00Z", "I can't stand cilantro."),
    ("2026-04-16T09:00:00Z", "The Harbor beta is up to 112 users now."),
    ("2026-04-23T09:00:00Z", "Biscuit ate a stick of butter on Tuesday."),
)


def prompt(text: str) -> Prompt:
    return Prompt(path="inbox/q.md", text=text, sha256=content_hash(text.encode()), at="2026-05-01T10:00:00Z")


def memory(told: Sequence[tuple[str, str]] = TOLD, **lists: tuple[Item, ...]) -> ShortTermMemory:
    events = [StmEvent(f"e{i}", at, text, ai="Noted: nothing of this counts.") for i, (at, text) in enumerate(told)]
    return ShortTermMemory(events=tuple(reversed(events)), **lists)


def ask(text: str, stm: ShortTermMemory | None = None, *, now: datetime = NOW, **more: object) -> Answer:
    request = AnswerRequest(now=now, prompt=prompt(text), short_term=stm or memory(), **more)  # type: ignore[arg-type]
    result = OfflineEngine().run(request)
    assert isinstance(result, Answer)
    return result


def first_line(text: str, stm: ShortTermMemory | None = None) -> str:
    return ask(text, stm).text.splitlines()[0]


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("Where do I live?", "Portland"),
        ("where do i live", "Portland"),
        ("Where did I live before Portland?", "Tucson"),
        ("I live in Portland now. Where did I live before that?", "Tucson"),
        ("Where does Elena live?", "Madrid"),
        ("Who is Elena's husband?", "Pablo"),
        ("When is Elena's birthday?", "May 25"),
        ("When did we ship the Harbor beta?", "13 March 2026"),
        ("When did Biscuit eat the butter?", "21 April 2026"),
        ("How many users does the Harbor beta have?", "112"),
        ("Why did we choose Postgres?", "because the team knows it"),
        ("What database did we decide on for Harbor?", "Postgres"),
        ("Which herb do I hate?", "cilantro"),
        ("How do I restart staging?", "systemctl restart harbor"),
        ("What did Biscuit eat last week?", "butter"),
    ],
)
def test_the_first_line_holds_the_answer(question: str, held: str) -> None:
    """The answering statement is quoted at once, what was said last before what it replaced."""
    assert held in first_line(question)


def test_answers_are_dated_quotes() -> None:
    """A quote says when it was told, in the person's own words."""
    assert "You said on 2 March 2026: “I moved to Portland in June 2020.”" == first_line("Where do I live?")


@pytest.mark.parametrize(
    "question",
    [
        "Which bank holds my mortgage?",
        "How old is Biscuit?",
        "What is Elena's last name?",
        "When is Pablo's birthday?",
        "Where does Denise live?",
        "What is my salary at Northwind?",
        "Which programming language is Harbor written in?",
        "Who is my husband?",
    ],
)
def test_what_memory_cannot_know_is_refused(question: str) -> None:
    """A topic that was never told, and an attribute of a known thing that was never told, get a plain nothing."""
    assert "Nothing in memory on that." == first_line(question)


def test_a_miss_names_the_nearest() -> None:
    """Behind a plain nothing stand at most three things that memory does hold."""
    lines = ask("How old is Elena?").text.splitlines()
    items = [line for line in lines if line.startswith("- ")]
    assert 1 <= len(items) <= 3
    assert any("Elena" in item for item in items)


def test_open_tasks_leave_out_what_is_done() -> None:
    """Tasks that were reported done, or ticked by hand, are not listed."""
    text = ask("What are my open tasks?").text
    assert ("benefits forms" in text, "landlord" in text) == (True, False)
    ticked = memory(tasks=(Item("send Denise the benefits forms", is_done=True),))
    assert "Nothing in memory on that." == first_line("What are my open tasks?", ticked)


def test_decisions_on_a_topic() -> None:
    """A list holds each decision on the topic."""
    text = ask("Which decisions have we made about Harbor?").text
    assert text.startswith("2 decisions in memory:")
    assert "Postgres" in text
    assert "Redis" in text


def test_a_list_is_limited_to_the_days_asked_for() -> None:
    """Last week is the calendar week before this one."""
    assert ["Biscuit ate a stick of butter on Tuesday"] == [
        line.split("“")[1].split(" (")[0] for line in ask("What happened last week?").text.splitlines()
    ]


def test_ai_text_is_no_evidence() -> None:
    """What the engine itself answered before is never quoted back as memory."""
    stm = ShortTermMemory(events=(StmEvent("e", "2026-03-02T09:00:00Z", "What is my shoe size?", ai="Shoe size 44."),))
    assert "Nothing in memory on that." == first_line("What is my shoe size?", stm)


def test_hits_are_quoted_linked_and_cited() -> None:
    """A memory page's statement is quoted with a link from the prompt's folder, and the hit is cited."""
    hits = [
        Hit(
            "statement",
            "memory/long_term/concrete/home.md",
            "Home",
            "User lives in Oslo since 2021. ^ab12",
            1.0,
            "u1",
            "ab12",
        ),
        Hit(
            "exchange",
            "memory/long_term/events/2026/01/01.md",
            "1 January",
            '**User:** "hi"\n**AI:** "You live in Rome"',
            0.5,
        ),
    ]
    answer = ask("Where do I live?", ShortTermMemory(), hits=hits)
    assert (
        'Memory holds: “User lives in Oslo since 2021.” ([Home](../memory/long_term/concrete/home.md "uuid:u1"))'
        == answer.text
    )
    assert [0] == answer.cited


def test_history_is_past() -> None:
    """What stands under History does not answer what holds now."""
    page = "# Home\n\n- User lives in Oslo. ^a1\n\n## History\n\n- User lives in Bergen. ^b2\n"
    hit = Hit("memory", "memory/long_term/concrete/home.md", "Home", page, 1.0, "u1", at="2026-01-01T00:00:00Z")
    assert "Oslo" in ask("Where do I live?", ShortTermMemory(), hits=[hit]).text.splitlines()[0]


def test_it_looks_further_when_hits_do_not_answer() -> None:
    """A search function is asked once more before memory is said to hold nothing."""
    hit = Hit("statement", "memory/long_term/concrete/home.md", "Home", "User lives in Oslo.", 1.0, "u1")
    answer = ask("Where do I live?", ShortTermMemory(), search=lambda query, limit: [hit])
    assert "Oslo" in answer.text.splitlines()[0]


def test_what_is_told_is_confirmed_with_its_date_and_what_it_replaces() -> None:
    """A confirmation names the statement, the day its words mean, and the older statement."""
    text = ask("I left Northwind Freight for Cedar Health last month.").text
    assert "Noted: you left Northwind Freight for Cedar Health last month (April 2026)." == text.splitlines()[0]
    assert "This replaces: “I work as a developer at Northwind Freight.” (said on 2 March 2026)" in text


WORK = (
    ("2026-11-01T09:00:00Z", "I moved to Portland in June 2020."),
    ("2026-11-01T09:01:00Z", "I work at Google as a data engineer."),
    ("2026-11-01T09:02:00Z", "My sister Mira is a botanist in Oslo."),
    ("2026-11-01T09:03:00Z", "todo: send the tax form to Priya by Friday"),
    ("2026-11-01T09:04:00Z", "I left Google for Microsoft last month."),
)


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("Where do I work?", "Microsoft last month (October 2026)"),
        ("Where do I work, and where before that?", "Microsoft"),
        ("who is my employer?", "Microsoft"),
        ("Where did I work before?", "Google"),
        ("what should I send to Priya?", "tax form"),
        ("how old is my sister?", "Nothing in memory on that."),
        ("what do you know about Mira?", "botanist"),
    ],
)
def test_a_change_answers_what_it_changed(question: str, held: str) -> None:
    """After "I left A for B" the work is at B, and A is what was before; tasks are found by their words."""
    assert held in first_line(question, memory(WORK))


def test_what_was_before_is_told_with_what_is_now() -> None:
    """The statement that a change leaves behind follows the change."""
    assert "Before that, you said on 1 November 2026: “I work at Google as a data engineer.”" in (
        ask("Where do I work?", memory(WORK)).text
    )


def test_what_is_known_of_oneself_is_listed_without_tasks() -> None:
    """Asked for everything about oneself, the main facts are listed, newest first."""
    lines = ask("what do you know about me?", memory(WORK)).text.splitlines()
    assert ("4 things in memory:", "- 1 November 2026: I left Google") == (lines[0], lines[2][:32])


def test_a_task_is_shown_as_what_is_to_be_done() -> None:
    """A task is neither quoted with its command word nor dated twice."""
    assert "On your list since 1 November 2026: send the tax form to Priya by Friday (6 November 2026)" == (
        first_line("what are my open tasks?", memory(WORK))
    )


def test_a_name_carries_what_it_stands_for() -> None:
    """After "a cat named Luna", what is said of Luna is said of the cat."""
    told = (("2026-11-01T09:00:00Z", "I adopted a cat named Luna"), ("2026-11-01T09:01:00Z", "Luna is 3 years old"))
    assert "Luna is 3 years old" in first_line("how old is my cat?", memory(told))


@pytest.mark.parametrize("kind", ["statement", "memory"])
def test_a_newer_page_wins_over_an_older_exchange(kind: Literal["statement", "memory"]) -> None:
    """A page says what holds now when it is newer than the exchange that says otherwise; both are cited."""
    path, now, then = "memory/long_term/concrete/coffee.md", "2026-04-01T09:00:00Z", "2026-01-01T09:00:00Z"
    statement = "User drinks three cups of coffee a day."
    hits = [
        Hit(
            "exchange",
            "memory/long_term/events/2026/01/01.md",
            "1",
            '**User:** "I drink two cups a day of coffee."',
            2.0,
            at=then,
        ),
        Hit(
            kind,
            path,
            "Coffee",
            statement if kind == "statement" else f"# Coffee\n\n- {statement} ^ab12\n",
            1.0,
            "u1",
            at=now,
        ),
    ]
    answer = ask("How many cups of coffee do I drink now?", ShortTermMemory(), hits=hits)
    assert ("three cups" in answer.text.splitlines()[0], [0, 1]) == (True, answer.cited)


def test_short_term_memory_is_cited_by_its_path() -> None:
    """An answer from short-term memory names the file, so that it can be linked."""
    assert ["memory/short_term.md"] == ask("Where do I live?").cited_paths
    assert [] == ask("How old is Biscuit?").cited_paths


def test_commands() -> None:
    """Tasks are added, what is done is ticked, and what is to be forgotten is shown."""
    tasks = memory(tasks=(Item("send Denise the benefits forms"),))
    assert "Added to your tasks: buy milk" == ask("todo: buy milk").text
    assert "Ticked off: send Denise the benefits forms" in ask("I've sent Denise the benefits forms.", tasks).text
    assert ask("forget what I said about cilantro").text.startswith("Will be forgotten: cilantro")


def test_every_sentence_of_a_longer_prompt_is_handled() -> None:
    """Questions are answered first, and what was told beside them is noted."""
    text = ask("I bought a kayak yesterday. Where does Elena live?").text
    assert "Madrid" in text.splitlines()[0]
    assert "Noted: you bought a kayak yesterday (30 April 2026)" in text


def test_an_elliptic_question_rests_on_the_last_one() -> None:
    """ "What about Elena?" asks the last question of someone else; "and before that?" asks for what was."""
    last = Exchange("x", prompt("Where do I live?"), None, "2026-05-01T09:59:00Z")
    assert "Madrid" in ask("And what about Elena?", conversation=[last]).text.splitlines()[0]
    assert "Tucson" in ask("And before that?", conversation=[last]).text.splitlines()[0]


def test_the_same_request_gets_the_same_answer() -> None:
    """Answers are deterministic, and streamed to whoever listens."""
    heard: list[str] = []
    assert ask("Where do I live?").text == ask("Where do I live?", on_text=heard.append).text == "".join(heard)


def test_queries_come_from_the_prompt_and_the_last_turn() -> None:
    """Words with content are searched for; small talk is not. Seeds: S10."""
    last = Exchange("x", prompt("Where does Elena live?"), None, "2026-05-01T09:59:00Z")

    def queries(text: str) -> list[str]:
        request = QueriesRequest(now=NOW, prompt=prompt(text), short_term=ShortTermMemory(), conversation=[last])
        result = OfflineEngine().run(request)
        assert isinstance(result, Queries)
        return result.queries

    asked, in_other_words = queries("When is the birthday of Marcus?")
    assert ("birthday marcus", True) == (asked, "born" in in_other_words.split())
    assert "elena live" == queries("and before that?")[0]
    assert [] == queries("thanks!")


def test_a_question_in_other_words_finds_the_note_by_nearness_in_meaning() -> None:
    """Words that no list of synonyms holds are near one another by their vectors: hens are chickens."""
    told = (
        ("2026-04-08T09:00:00Z", "Wren is lobbying hard for chickens. I said not before spring."),
        ("2026-04-09T09:00:00Z", "Ordered two pounds of garlic from Filaree."),
    )
    assert "lobbying hard for chickens" in first_line("What did I say to Wren about hens?", memory(told))


@pytest.mark.parametrize(
    "text",
    ["The Harbor beta, how many users does it have", "talk me through how many users the Harbor beta has"],
)
def test_a_question_is_seen_wherever_it_stands(text: str) -> None:
    """What is asked may follow what it is about, or an invitation to tell; nothing of it is noted as a fact."""
    assert "112 users" in first_line(text)


def test_the_days_of_a_question_weigh_without_hiding_the_only_answer() -> None:
    """A note told on another day still answers when nothing else does."""
    told = (("2026-04-08T09:00:00Z", "Haddad will only raise our rent to 850 pounds."),)
    assert "850 pounds" in first_line("How much rent will we be paying Haddad in October?", memory(told))


def test_a_very_long_prompt_is_answered_at_its_ends_and_says_so() -> None:
    """A megabyte is not read sentence by sentence for an answer; that its middle was not is told."""
    told = ask("Where do I live? " + "The page goes on and on. " * 40_000 + "When is Elena's birthday?").text
    assert ("Portland", True) == (told[told.index("Portland") :][:8], "May 25" in told)
    assert LONG == told.rpartition("\n\n")[2]


def told(*texts: str) -> ShortTermMemory:
    """Return a memory of these, told a day apart."""
    return memory([(f"2026-03-{day:02}T09:00:00Z", text) for day, text in enumerate(texts, start=2)])


@pytest.mark.parametrize(
    ("question", "texts", "answer"),
    [
        ("Where do I live?", ["I live in Lisbon with my wife.", "If I lived in Paris I would work as a painter."], 0),
        ("Where do I live?", ["I live in Lisbon with my wife.", "I might live in Berlin next year."], 0),
        ("Where do I live?", ["I live in Lisbon.", "I live in Cascais with my wife Ana."], 1),
        ("Where do I work?", ["I work at Google as a data engineer.", "I work at Microsoft with Bob on databases."], 1),
    ],
)
def test_what_holds_is_answered_first(question: str, texts: list[str], answer: int) -> None:
    """What is comes before what may be, and of two that exclude each other the newer, whatever else it says."""
    assert texts[answer] in first_line(question, told(*texts))


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("Where do I live?", ["If I lived in Paris I would work as a painter.", "I live in Lisbon with my wife."]),
        ("When is the rent due?", ["The rent is due on the 8th.", "The rent of the studio is due on Friday the 8th."]),
        ("Who is my landlord?", ["My landlord has a boat.", "My landlord is Mr. Costa."]),
    ],
)
def test_only_what_was_left_behind_was_before(question: str, texts: list[str]) -> None:
    """A supposition, the same again, and something else of the same thing are not what held before."""
    assert "Before that" not in ask(question, told(*texts)).text


def test_what_was_left_behind_is_told_with_what_stands() -> None:
    """The statement that the newest one ended is told as what held before it."""
    text = ask("Where do I live?", told("I live in Lisbon.", "I live in Cascais with my wife Ana.")).text
    assert "Before that, you said on 2 March 2026: “I live in Lisbon.”" in text


def test_only_what_is_ended_is_said_to_be_replaced() -> None:
    """Where flights leave from is no other place to live; another place to live is."""
    lives = told("I live in Lisbon.")
    assert "replaces" not in ask("Flights must leave from Porto, not Lisbon.", lives).text
    assert "This replaces: “I live in Lisbon.”" in ask("I no longer live in Lisbon.", lives).text


def test_what_forgetting_does_is_told_plainly() -> None:
    """The words stay on record after a request to forget; who asks is told so, and what takes them out."""
    assert PUT_ASIDE == ask("Forget what I said about cilantro.").text.splitlines()[-1]
    assert PUT_ASIDE not in ask("Forget what I said about unicorns.").text


def test_the_blurb_of_a_folder_is_nothing_that_was_told() -> None:
    """What a folder's page says of itself is quoted as nobody's statement."""
    at = "2026-05-01T09:00:00Z"
    blurb = "Episodic memory: what was said and what happened, by date."
    hits = [
        Hit("memory", "memory/long_term/events/_index.md", "Events", blurb, 1.0, "u1", at=at),
        Hit("exchange", "memory/long_term/events/2026/05/01.md", "1 May", '**User:** "I like jam."', 0.5, at=at),
    ]
    text = ask("What did I tell you today?", ShortTermMemory(), hits=hits).text
    assert ("jam" in text, "Episodic" in text) == (True, False)


def test_what_would_be_is_no_answer_to_what_is() -> None:
    """A condition contrary to fact is shown as the nearest there is, and answers what is asked about it."""
    supposed = told("If I lived in Paris I would work as a painter.")
    assert ask("Where do I work?", supposed).text.startswith("Nothing in memory on that.")
    assert "painter" in first_line("What would I work as if I lived in Paris?", supposed)


def test_what_was_told_today_is_told_by_the_day_of_telling() -> None:
    """A plan for next year that was told today is among what was told today."""
    plans = memory([("2026-05-01T09:00:00Z", "We plan a trip to Japan in April 2027.")])
    assert "Japan" in ask("What did I tell you today?", plans).text
