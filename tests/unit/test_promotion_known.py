"""What a consolidating call is shown: near statements first, the other pages in a line, the answer replied to."""

from __future__ import annotations

from pathlib import Path

import pytest
from brainiac_plugins.promotion.known import MAX_BRIEF, MAX_SHOWN
from brainiac_plugins.promotion.over import end_what_is_over
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.llm.schemas import Answer, ConsolidateRequest, Consolidation, Purpose
from brainiac.storage.statements import StatementLog
from tests.support.promotions import ScriptedEngine, later, make_brain, operations, page_with, statements, tell
from tests.support.said import say_to

LTM = "memory/long_term/"
NAMES = (
    "Ada Bea Cem Dov Eli Fay Gus Hal Ida Jon Kai Lea Mia Ned Oda Pia Quy Ray Sia Tom Una Viv Wim Xia Yan Zoe".split()
)


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def brain(tmp_path: Path, engine: ScriptedEngine) -> Brain:
    """A memory with twice the statements that one call shows."""
    brain = make_brain(tmp_path / "b", engine=engine)
    written = {
        f"people/{name.lower()}": [f"{name} has been in the rowing club for {years} years." for years in range(2, 10)]
        for name in NAMES
    }
    written["travel/texel"] = ["The ferry to Texel leaves at half past nine.", "The crossing takes twenty minutes."]
    written["people/kenta"] = ["健太は木曜日に将棋を指す。"]
    written["home/cat"] = ["The cat gets the blue tablets since 2026-02-01."]
    for path, lines in written.items():
        file = brain.tree.absolute(f"{LTM}concrete/{path}.md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {path.partition('/')[2].capitalize()}\n\n" + "".join(f"- {line}\n" for line in lines))
    brain.observed.adopt()
    return brain


def consolidation_of(brain: Brain, engine: ScriptedEngine) -> ConsolidateRequest:
    promote(brain)
    request: ConsolidateRequest = engine.of(Purpose.CONSOLIDATE)[-1]
    return request


def test_what_was_said_brings_the_statements_near_to_it(brain: Brain, engine: ScriptedEngine) -> None:
    """Of a large memory each message brings its own, in a script without spaces too, beside one that says much else;
    the other pages stand in a line each, and can be named by their title."""
    tell(brain, f"{', '.join(NAMES)} were all in the rowing club today, some for two years, some for nine!")
    tell(brain, "The Texel ferry was late!")
    tell(brain, "健太の将棋は金曜日になった")
    request = consolidation_of(brain, engine)
    shown = [statement.content for statement in request.existing]
    assert MAX_SHOWN == len(shown)
    assert {"The ferry to Texel leaves at half past nine.", "The crossing takes twenty minutes."} <= set(shown)
    assert "健太は木曜日に将棋を指す。" in shown
    (cat,) = (page for page in request.pages if page.path.endswith("cat.md"))
    assert not cat.is_near
    assert len(cat.about) <= MAX_BRIEF
    text = brain.models.working_memory(request).text
    assert "> concrete/home/: Cat (The cat gets the blue tablets since 2026-02-01.)" in text


def test_a_page_that_is_only_listed_is_named_by_its_title(brain: Brain, engine: ScriptedEngine) -> None:
    """A new statement goes to the page of that title, not to a second one."""
    page = {"title": "Cat", "kind": "concrete", "folder": "animals"}
    engine.answers[Purpose.CONSOLIDATE] = operations({"text": "The vet is Mr Aalto", "subject": "Cat", "page": page})
    tell(brain, f"The vet is Mr Aalto. {', '.join(NAMES)} row.")
    promote(brain)
    assert f"{LTM}concrete/home/cat.md" == page_with(brain, "Mr Aalto").path


def test_a_reply_is_shown_with_the_answer_before_it(tmp_path: Path, engine: ScriptedEngine) -> None:
    """ "Yes, that one" means what the AI asked in the same conversation, which an earlier run has consolidated; what
    was private or in another conversation is not shown, nor what the same request shows already."""
    brain = make_brain(tmp_path / "b", "promotion: {min_events: 1}\n", engine)
    prompts = {
        "inbox/trip/1.md": ("Which ferry?", "Do you mean the one to Texel at half past nine?"),
        "inbox/other/1.md": ("---\nprivate: true\n---\nMy pin?", "Is it 4711?"),
        "inbox/third/1.md": ("What is up?", "Is it the boiler?"),
    }
    replies = {"inbox/trip/2.md": "Yes, that one.", "inbox/trip/3.md": "Book it.", "inbox/other/2.md": "Yes, that one."}

    def say(path: str, text: str, answer: str) -> None:
        later(brain, 60)
        engine.answers[Purpose.ANSWER] = Answer(text=answer)
        say_to(brain, path.removeprefix("inbox/"), text)

    for path, (text, answer) in prompts.items():
        say(path, text, answer)
    promote(brain)
    for path, text in replies.items():
        say(path, text, "Good.")
    engine.is_remote = True
    request = consolidation_of(brain, engine)
    shown = [said.before.response.text if said.before and said.before.response else "" for said in request.said]
    assert ["Do you mean the one to Texel at half past nine?", ""] == shown
    text = brain.models.working_memory(request).text
    assert "half past nine?\n\n#### Monday 2026-03-02" in text
    assert "boiler" not in text
    assert "4711" not in text


def test_an_operation_brings_a_page_its_new_line(tmp_path: Path, engine: ScriptedEngine) -> None:
    """The line about a page changes with the statement that makes it untrue, without a further call; one with a number
    that nobody said is not taken, nor one that comes with the AI's words, nor where the person wrote on the page. Where
    none is taken the old one stays, and the next call is told that it is old."""
    brain = make_brain(tmp_path / "b", engine=engine)
    assert isinstance(brain.clock, ManualClock)
    engine.answers[Purpose.CONSOLIDATE] = operations(
        {"text": "Amy is Daniel's girlfriend", "page": {"title": "Amy", "summary": "Daniel's girlfriend"}}
    )
    tell(brain, "Amy is Daniel's girlfriend.")
    promote(brain)
    path = page_with(brain, "Amy").path

    def ended(summary: str, said: str = "Daniel and Amy split up.") -> str:
        def consolidate(request: ConsolidateRequest) -> Consolidation:
            page = {"path": path, "summary": summary}
            known = next(row for row in request.existing if "Daniel" in row.content)
            return operations({"action": "end", "ids": [known.id], "text": f"{said[:-1]} for good", "page": page})(
                request
            )

        engine.answers[Purpose.CONSOLIDATE] = consolidate
        brain.clock.advance(3600)  # type: ignore[attr-defined]
        tell(brain, said)
        promote(brain)
        return str(page_with(brain, "Amy").meta.get("summary"))

    assert "Daniel's girlfriend" == ended("Split up 12 weeks ago")
    assert "Daniel's former girlfriend" == ended("Daniel's former girlfriend", "Daniel and Amy parted.")
    shown = brain.models.working_memory(engine.of(Purpose.CONSOLIDATE)[-1]).text
    assert "Amy. Daniel's girlfriend (old?)" in shown
    file = brain.tree.absolute(path)
    file.write_text(file.read_text().replace("# Amy\n", "# Amy\n\n- She still comes on Sundays.\n", 1))
    brain.observed.note_change(path)
    brain.clock.advance(3600)
    assert "Daniel's former girlfriend" == ended("A ghost", "Daniel and Amy are friends.")
    assert "(old?)" not in brain.models.working_memory(engine.of(Purpose.CONSOLIDATE)[-1]).text
    assert [] == engine.of(Purpose.SYNTHESIZE)


def test_what_is_called_otherwise_is_renamed_everywhere(tmp_path: Path, engine: ScriptedEngine) -> None:
    """One operation: each statement shown that has the name gets the new one, the former wording under History; the
    page gets it as its title, with the former one as an alias; a person's own line, and a longer word, stay."""
    brain = make_brain(tmp_path / "b", engine=engine)
    page = {"title": "Falcon", "folder": "work", "summary": "A project"}
    told = ("Falcon starts in May.", "Ruth leads Falcon.", "Falconry is User's hobby.")
    engine.answers[Purpose.CONSOLIDATE] = operations(
        {"text": told[0], "page": page}, {"text": told[1], "page": {"title": "Ruth", "folder": "people"}},
        {"text": told[2], "page": {"title": "Hobbies", "folder": "home"}},
    )  # fmt: skip
    tell(brain, " ".join(told))
    promote(brain)
    file = brain.tree.absolute(page_with(brain, "Falcon starts").path)
    file.write_text(file.read_text().replace("# Falcon\n", "# Falcon\n\n- Falcon is fun. ^mine1\n", 1))
    brain.observed.note_change(brain.tree.relative(file))
    brain.clock.advance(3600)  # type: ignore[attr-defined]
    engine.answers[Purpose.CONSOLIDATE] = operations({"action": "rename", "former": "Falcon", "text": "Heron"})
    tell(brain, "Project Falcon is called Heron from today on.")
    promote(brain)
    expected = {"Heron starts in May.", "Ruth leads Heron.", told[2], "Falcon is fun."}
    assert (expected, set(told[:2])) == (set(statements(brain)), set(statements(brain, history=True)))
    renamed = page_with(brain, "Heron starts")
    assert "Falcon" in (renamed.title, *renamed.aliases)
    engine.answers[Purpose.CONSOLIDATE] = operations({"action": "rename", "former": "Osprey", "text": "Kite"})
    brain.clock.advance(3600)  # type: ignore[attr-defined]
    tell(brain, "Osprey is Kite now.")
    promote(brain)
    assert any("no statement shown has the name" in row.problem for row in engine.of(Purpose.CONSOLIDATE)[-1].refused)


def test_a_name_reaches_the_whole_page_and_changes_no_day(tmp_path: Path, engine: ScriptedEngine) -> None:
    """All statements of the page so named, those too that were not shown, hold since their own day and until it; one of
    another page that was not shown keeps the name, and that is said."""
    brain = make_brain(tmp_path / "b", engine=engine)
    page, until = {"title": "Falcon", "folder": "work"}, "2027-01-01"
    parts = [f"Part {number} of Falcon holds until {until}." for number in range(1, MAX_SHOWN + 11)]
    other = "Ruth, who came from Graz with a bicycle, two cats and a friend, has had a say in Falcon ever since."
    engine.answers[Purpose.CONSOLIDATE] = operations(
        *({"text": text, "page": page, "valid_until": until} for text in parts),
        {"text": other, "page": {"title": "Ruth", "folder": "people"}},
    )
    tell(brain, " ".join((*parts, other)))
    promote(brain)
    brain.clock.advance(5 * 86400)  # type: ignore[attr-defined]
    engine.answers[Purpose.CONSOLIDATE] = operations({"action": "rename", "former": "Falcon", "text": "Heron"})
    tell(brain, "From today on part 1 of Falcon is part 1 of Heron.")
    outcome = promote(brain)
    renamed = [text.replace("Falcon", "Heron") for text in parts]
    assert ({*renamed, other}, set(parts)) == (set(statements(brain)), set(statements(brain, history=True)))
    assert [True] == ["people/ruth.md" in row.reason for row in outcome.refused]
    memory, log = page_with(brain, renamed[0]), StatementLog(brain)
    assert {"2026-03-02"} == {log.since_of(memory.uuid, each) for each in memory.current_statements}
    assert len(parts) == memory.text.count("(2026-03-02 – 2026-03-07; replaced by ")
    brain.clock.advance(400 * 86400)  # type: ignore[attr-defined]
    assert len(parts) == end_what_is_over(brain)


def test_a_how_to_keeps_its_text_beside_its_steps(tmp_path: Path, engine: ScriptedEngine) -> None:
    """What it says besides its steps stands above them; in the words of the title it is not said twice."""
    brain = make_brain(tmp_path / "b", engine=engine)
    text, steps = "Sourdough takes 24 hours and keeps for three days.", ["Feed the starter.", "Bake it."]
    skill = {"kind": "skill", "title": "Sourdough", "folder": "kitchen"}
    other = {"kind": "skill", "title": "Oil a chain", "folder": "bikes"}
    engine.answers[Purpose.CONSOLIDATE] = operations(
        {"text": text, "page": skill, "steps": steps}, {"text": "Oil a chain", "page": other, "steps": ["Wipe it."]}
    )
    tell(brain, f"{text} Feed the starter. Bake it. Oil a chain: Wipe it.")
    promote(brain)
    assert {text, *steps, "Wipe it."} == set(statements(brain))
    page = page_with(brain, text)
    assert page.text.index(text) < page.text.index("## Steps") < page.text.index(steps[0])


@pytest.mark.parametrize(
    ("told", "names", "renamed"),
    [
        ("Ruth leads Falcon.", {"Falcon": "Heron", "Ruth": "Rahel"}, "Rahel leads Heron."),
        ("Tea and Rye swap.", {"Tea": "Rye", "Rye": "Tea"}, "Rye and Tea swap."),
        ("We use acme, see https://x.org/acme", {"acme": "bolt"}, "We use bolt, see https://x.org/acme"),
        ("We use acme, ask me@acme.org.", {"acme": "bolt"}, "We use bolt, ask me@acme.org."),
        ("See [acme](https://x.org/acme) there.", {"acme": "bolt"}, "See [bolt](https://x.org/acme) there."),
        ("User writes C++ (daily).", {"C++": r"\1"}, r"User writes \1 (daily)."),
    ],
)
def test_names_change_at_once_and_no_address_does(
    tmp_path: Path, engine: ScriptedEngine, told: str, names: dict[str, str], renamed: str
) -> None:
    """Two names of one statement change together; where a name is a part of an address it stays."""
    brain = make_brain(tmp_path / "b", engine=engine)
    engine.answers[Purpose.CONSOLIDATE] = operations({"text": told, "page": {"title": "Things", "folder": "work"}})
    tell(brain, told)
    promote(brain)
    brain.clock.advance(3600)  # type: ignore[attr-defined]
    engine.answers[Purpose.CONSOLIDATE] = operations(
        *({"action": "rename", "former": former, "text": name} for former, name in names.items())
    )
    tell(brain, ", ".join(f"{former} is {name} now" for former, name in names.items()))
    promote(brain)
    assert ([renamed], [told]) == (statements(brain), statements(brain, history=True))


def test_a_name_does_not_change_what_another_operation_words_anew(tmp_path: Path, engine: ScriptedEngine) -> None:
    """Whichever comes first."""
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "Ruth leads Falcon.")
    promote(brain)
    brain.clock.advance(3600)  # type: ignore[attr-defined]
    new = "Ruth and Tom lead Heron, once Falcon."
    engine.answers[Purpose.CONSOLIDATE] = lambda request: operations(
        {"action": "rename", "former": "Falcon", "text": "Heron"},
        {"action": "replace", "ids": [request.existing[0].id], "text": new},
    )(request)
    tell(brain, "Falcon is Heron now, and Tom leads it with Ruth.")
    promote(brain)
    assert [new] == statements(brain)
