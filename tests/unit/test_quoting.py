"""What the keyless engine answers (design 8): quotes with day and link, nothing of its own but fixed lines."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from brainiac import Hit, Prompt
from brainiac.formats.markdown import StmEvent
from brainiac.formats.short_term import ShortTermMemory
from brainiac.llm.offline import FIRST, FOUND, NOTED, NOTHING, PERHAPS, OfflineEngine
from brainiac.llm.schemas import Answer, AnswerRequest
from brainiac.text.tokens import ends_as_question, likeness

AT = "2026-05-01T10:00:00Z"
NOW = datetime.fromisoformat(AT)


def hit(text: str, *, at: str = AT, path: str = "memory/long_term/concrete/gym.md", **more: Any) -> Hit:
    """Return something found."""
    fields: dict[str, Any] = {"kind": "exchange", "title": "Gym", "score": 1.0, "is_near": True, **more}
    return Hit(path=path, text=text, at=at, **fields)


def answered(text: str, *hits: Hit, **more: Any) -> Answer:
    """Ask the engine."""
    prompt = Prompt(path="inbox/talk/q.md", text=text, sha256="", at=AT)
    fields: dict[str, Any] = {"now": NOW, "prompt": prompt, "short_term": ShortTermMemory(), "hits": hits, **more}
    request = AnswerRequest(**fields)
    result = OfflineEngine().run(request)
    assert isinstance(result, Answer)
    return result


def test_a_question_is_answered_by_quotes_as_they_were_said() -> None:
    """F-RSP-5: a passage is a block quote, word for word, line ends included, with day and link."""
    said = "My locker at the gym has the code 4711.\nsecond  line"
    answer = answered("What is the code?", hit(said, uuid="u-1"))
    quoted = "> My locker at the gym has the code 4711.\n> second  line"
    where = '— 2026-05-01, [Gym](../../memory/long_term/concrete/gym.md "uuid:u-1")'
    assert f"{FOUND}\n\n{quoted}\n\n{where}" == answer.text
    assert ([0], [0]) == (answer.cited, answer.led)


def test_what_is_told_is_noted_and_shown_only_with_what_is_clearly_near() -> None:
    """Without a question mark the first line is `Noted.`, and what merely shares a word is not shown."""
    near, far = hit("The gym closes at ten."), hit("The gymnastics club has a choir.", is_near=False)
    answer = answered("The gym closes at nine now.", near, far)
    assert answer.text.startswith(f"{NOTED}\n\n{FOUND}\n\n> The gym closes at ten.")
    assert [0] == answer.cited
    assert NOTED == answered("The gym closes at nine now.", far).text
    assert NOTED == answered("Danke schön").text


def test_nothing_is_said_only_where_nothing_was_found() -> None:
    """A question that finds nothing is told so, and which of its words stand nowhere."""
    answer = answered("Wo ist mein Reisepass?", absent=["Reisepass"])
    assert f"{NOTHING}\n\nNowhere in memory: “Reisepass”." == answer.text
    assert [] == answer.led


def test_what_is_closest_is_shown_as_a_guess_where_it_is_not_near() -> None:
    """Asked, one passage no nearer than chance stands under `Perhaps:`, with the words that stand nowhere."""
    first, second = (hit(text, is_near=False) for text in ("The pool is closed.", "The choir sings."))
    answer = answered("Which code has my locker?", first, second, absent=["locker"])
    assert answer.text.startswith(f"{PERHAPS}\n\n> The pool is closed.")
    assert answer.text.endswith("Nowhere in memory: “locker”.")
    assert [0] == answer.cited


def test_what_says_the_same_words_stands_once() -> None:
    """A statement and the exchange it was made from are one passage; what only has the prompt's words is none."""
    said, other = hit("My locker has the code 4711."), hit("The pool is closed on Mondays.")
    asked = hit("Which code?")
    assert [1, 2] == answered("Which code?", asked, said, other, hit(said.text, kind="statement")).cited


def test_at_most_three_passages_are_shown() -> None:
    """More than a person reads is no answer."""
    names = ("alpha lake", "beta mountain", "gamma river", "delta forest")
    assert [0, 1, 2] == answered("Where?", *(hit(name) for name in names)).cited


def test_the_first_answer_of_a_conversation_says_what_the_engine_does() -> None:
    """One fixed line, once."""
    assert answered("Hello.", is_first=True).text.endswith(FIRST)
    assert FIRST not in answered("Hello.").text


def test_the_day_is_the_persons() -> None:
    """A moment late in the day of UTC is the next day in Auckland; what is archived says so."""
    found = hit("Ferry at nine.", at="2026-05-01T20:00:00Z", is_archived=True)
    answer = answered(
        "When is the ferry?", found, now=datetime.fromisoformat(AT).astimezone(ZoneInfo("Pacific/Auckland"))
    )
    assert "— 2026-05-02, [Gym](../../memory/long_term/concrete/gym.md), archived" in answer.text


@pytest.mark.parametrize("sign", ["?", "？", "؟", "՞", "\u037e", "⁇", "?”", "?)", "? \n"])
def test_a_question_mark_of_any_script_ends_a_question(sign: str) -> None:
    """Also behind it may stand what closes a quotation."""
    assert ends_as_question(f"Wo{sign}")
    assert not ends_as_question(f"Wo{sign} there.")


def test_likeness_is_that_of_signs_in_any_language() -> None:
    """Nearly the same words are near one, other words near none."""
    assert likeness("The gym opens at six.", "the gym opens at six") == 1.0
    assert likeness("ジムは六時に開きます", "ジムは六時に開く") > 0.4
    assert likeness("The gym opens at six.", "Meine Tante wohnt in Kiel.") < 0.1
    assert likeness("", "a") == 0.0


def test_a_question_within_what_is_told_is_asked_too() -> None:
    """What was found is shown although more is told behind the question mark."""
    asked = "Which grey was it in the hall? The boy has drawn on it."
    assert "> Tern Grey" in answered(asked, hit("Tern Grey, number 03.", is_near=False)).text


def test_what_is_said_to_be_later_is_cited_too() -> None:
    """F-RSP-4: by what an answer cites it is known whether it tells of anything private, beyond the passages too."""
    passages = [hit(f"The code of locker {number} is 47{number}1.") for number in range(4)]
    event = StmEvent("e1", "2026-05-02T10:00:00Z", "The code of the lockers is new.", "")
    told = hit(event.user, at=event.at, path="memory/short_term.md", anchor="e1", speaker="user", score=0.5)
    answer = answered("What is the code?", *passages, told, short_term=ShortTermMemory(events=(event,)))
    assert "(later, 2026-05-02: “The code of the lockers is new.”)" in answer.text
    assert [[0, 1, 2, 4], [0]] == [answer.cited, answer.led]
