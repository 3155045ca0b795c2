"""Whatever a person writes into short-term memory survives promotion: in its place, or on a page, and they are told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import Outcome, promote
from hypothesis import given
from hypothesis import strategies as st

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import FormatError
from brainiac.formats.markdown import unescape
from brainiac.formats.page import parse_exchanges, shareable_text
from brainiac.llm.schemas import Purpose, Reflection
from tests.support.commands import Shell
from tests.support.examples import examples
from tests.support.living import places_of
from tests.support.promotions import START, ScriptedEngine, later, make_brain, open_brain, pages, tell

STM = "memory/short_term.md"
LISTS = {
    "### Goals\n": "- [ ] learn the piano\n* [x] see Gotland\n",
    "### Key Facts & Decisions\n": "- The beds go along the south wall\n  - and the tomatoes too\n",
    "### Tasks\n": "- [ ] buy milk\n- [x] order seeds\n",
}


def rewrite(brain: Brain, change: Callable[[str], str]) -> str:
    """Change short-term memory as a person does, and return it as it stands then."""
    file = brain.tree.short_term
    text = change(file.read_bytes().decode("utf-8", "surrogateescape"))
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    brain.observed.note_change(STM)
    return text


def standing(brain: Brain) -> str:
    """Return all that stands in memory, each text as it is and with its escapes undone."""
    files = [entry.path for entry in brain.tree.walk(brain.tree.memory)]
    texts = [Path(file).read_bytes().decode("utf-8", "surrogateescape") for file in files]
    said = [f"{event.user}\n{event.ai}" for text in texts for event in parse_exchanges(text)]
    return "\n".join([*texts, *map(unescape, texts), *said])


def promoted(brain: Brain) -> Outcome:
    """Promote and return what was done; there was something to do."""
    outcome = promote(brain)
    assert outcome.event is not None
    return outcome


def in_the_journal(outcome: Outcome) -> str:
    """Return what the journal tells of a person's own lines."""
    assert outcome.event is not None
    return "\n".join(each["text"] for key in ("kept", "filed") for each in outcome.event.data[key])


def test_a_line_at_the_end_of_the_file_stays_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """F-STM-7: `echo "Call the plumber" >> memory/short_term.md`, then `brainiac promote`: the line stands where it was
    written, the command and the journal name it, and search finds it."""
    brain = make_brain(tmp_path / "b", keyless=True)
    tell(brain, "My sister Ruth is a GP in Bristol.", answer="Two things:\n- one\n- two")
    rewrite(brain, lambda text: text + "Call the plumber\n")
    brain.close()
    shell = Shell(capsys, str(tmp_path / "b"))
    done = shell("promote")
    assert 0 == done.code
    assert "kept" in done.out
    assert "Call the plumber" in done.out
    brain = open_brain(tmp_path / "b")
    assert (brain.read_text(STM) or "").endswith("## Event Log\nCall the plumber\n")
    assert () == brain.short_term().memory.events
    event = next(brain.journal.events(kinds={"memory-promoted"}))
    assert [{"text": "Call the plumber\n"}] == event.data["kept"]
    assert "Call the plumber" in shell("search", "plumber").out
    tell(brain, "hello there")
    promoted(brain)
    assert 1 == (brain.read_text(STM) or "").count("Call the plumber")


LIST = "Two things:\n- one\n- two"


@pytest.mark.parametrize("frame", ["{}", "- {}", "  - {}", "> {}", "**Note:** {}", "#### {}", "1. {}"])
@pytest.mark.parametrize(
    ("place", "answer"),
    [("below the newer", LIST), ("below the older", "Noted."), ("within the answer", LIST), ("above its words", "So.")],
)
def test_a_line_between_events_stays(tmp_path: Path, frame: str, answer: str, place: str) -> None:
    """A paragraph, bullet, quote, label or heading, below an event, between two, or in the middle of one: it stands
    word for word, and what was said is filed as it was said, without it."""
    line = frame.format("Call the plumber")
    brain = make_brain(tmp_path / "b")
    tell(brain, "My sister Ruth is a GP in Bristol.", answer=answer)
    tell(brain, "My brother Tom lives in Oslo.", answer=answer)
    text = brain.read_text(STM) or ""
    older = text.rindex("\n### ") + 1
    within = text.index("\n", text.index("**AI:**")) + 1
    at = {"below the newer": older, "below the older": len(text), "within the answer": within,
          "above its words": text.index("**User:**")}[place]  # fmt: skip
    rewrite(brain, lambda text: text[:at] + f"{line}\n\n" + text[at:])
    outcome = promoted(brain)
    assert line in standing(brain)
    said = [event for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert ["My sister Ruth is a GP in Bristol.", "My brother Tom lives in Oslo."] == [e.user for e in said if e.user]
    if not line.startswith(">"):  # a quote may belong to what was said above it
        assert {answer} == {event.ai for event in said if event.user}
        assert line in in_the_journal(outcome)
        assert line in "".join(outcome.kept)


def test_what_stands_in_no_section_of_ours_stays_byte_for_byte(tmp_path: Path) -> None:
    """Above the title, in sections of the person's own, under headings, between rules; promoted twice."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    mine = ["mine  above\t\n\n", "A word about goals.\n", "\n## Shopping\n- [x] not a task\n", "---\nafter a rule\n"]
    rewrite(brain, lambda text: mine[0] + text.replace("### Goals\n", f"### Goals\n{mine[1]}") + mine[2] + mine[3])
    promoted(brain)
    tell(brain, "hello there")
    promoted(brain)
    text = brain.read_text(STM) or ""
    assert [1, 1, 1, 1] == [text.count(each) for each in mine]


def test_a_task_ticked_by_hand_is_filed_word_for_word_with_its_day(tmp_path: Path) -> None:
    """It leaves the list for the page of the day, bullet, box, spaces and the lines below it included, as the
    person's words, whether they wrote it into the list or in a prompt; what is open stays."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "/todo call the landlord about the tap")
    mine = "*  [X] buy\tmilk  today\n   - the whole one"
    rewrite(brain, lambda text: text.replace("- [ ] call", "- [x] call").replace("### Tasks\n", f"### Tasks\n{mine}\n"))
    later(brain)
    outcome = promoted(brain)
    assert () == brain.short_term().memory.tasks
    said = [event for page in pages(brain).values() for event in parse_exchanges(page.text)]
    boxed = [event.user for event in said if "]" in event.user]
    assert sorted([mine, "- [x] call the landlord about the tap"]) == sorted(boxed)
    assert {"", "Noted."} == {event.ai for event in said}
    assert "2026-03-02.md" in next(path for path, page in pages(brain).items() if "buy\tmilk  today" in page.text)
    assert [mine, "- [x] call the landlord about the tap"] == list(outcome.filed)
    assert mine in in_the_journal(outcome)


def test_open_items_that_are_not_carried_over_are_filed(tmp_path: Path) -> None:
    """With `promotion.carry_open_items: false` goals and tasks leave the lists, and none is lost."""
    brain = make_brain(tmp_path / "b", "promotion: {carry_open_items: false}\n")
    tell(brain, "hello there")
    rewrite(brain, lambda text: text.replace("### Goals\n", "### Goals\n- [ ] learn the  piano\n"))
    promoted(brain)
    assert () == brain.short_term().memory.goals
    assert "- [ ] learn the  piano" in standing(brain)


def test_a_private_item_and_remark_stay_private(tmp_path: Path) -> None:
    """A ticked task with the mark goes to the private page of the day; a remark within a private event keeps the mark
    by itself."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My locker code word is giraffe.", private=True)
    rewrite(
        brain,
        lambda text: (
            text.replace("### Tasks\n", "### Tasks\n- [x] hide the quillwort <!-- private -->\nbehind moss\n")
            + "It hangs behind the zanzibar.\n\nTwice.\n"
        ),
    )
    promoted(brain)
    for word in ("quillwort", "moss", "zanzibar", "giraffe", "Twice"):
        assert word in standing(brain)
        shown = (shareable_text(path.read_text()) or "" for path in brain.tree.memory.rglob("*.md"))
        assert not any(word in text for text in shown), word


def test_a_paragraph_of_the_summary_stays_and_only_ours_is_replaced(tmp_path: Path) -> None:
    """Promotion replaces what it wrote itself, and nothing else: a person's paragraph, and one of ours that they
    changed, stand byte for byte below the new summary, run after run."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "hello there")
    promoted(brain)
    first = brain.short_term().memory.summary
    mine = "Mine,  with\ttwo\nlines. <!-- note -->"
    rewrite(brain, lambda text: text.replace(first, f"{mine}\n\n{first}"))
    tell(brain, "My friend Ruth lives in Oslo.")
    outcome = promoted(brain)
    second = "1 exchange since 2026-03-02. Pages: Ruth. Last said: “My friend Ruth lives in Oslo.”"
    assert f"## Summary\n{second}\n\n{mine}\n\n---\n" in (brain.read_text(STM) or "")
    assert [mine] == list(outcome.kept)
    assert mine in in_the_journal(outcome)
    rewrite(brain, lambda text: text.replace(second, f"{second} I think."))
    tell(brain, "hi again")
    promoted(brain)
    expected = f"## Summary\n{first.replace('hello there', 'hi again')}\n\n{second} I think.\n\n{mine}\n\n---\n"
    assert expected in (brain.read_text(STM) or "")


def test_thoughts_that_a_person_changed_are_filed(tmp_path: Path) -> None:
    """What Reflection thought leaves with its event; as soon as a person has changed it, it is filed word for word."""
    reflected = Reflection(thoughts="Asks about sowing.")
    engine = ScriptedEngine({Purpose.REFLECT: lambda request: reflected})
    brain = make_brain(tmp_path / "b", engine=engine)
    tell(brain, "How do I time it?")
    tell(brain, "And the beans?")
    rewrite(brain, lambda text: text.replace("sowing.", "sowing. Seeds are in the cellar!", 1))
    outcome = promoted(brain)
    assert ["Asks about sowing. Seeds are in the cellar!"] == list(outcome.filed)
    said = [event for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert ["Asks about sowing. Seeds are in the cellar!"] == [event.ai for event in said if not event.user]
    assert "sowing" not in (brain.read_text(STM) or "")


def test_an_event_that_a_person_wrote_is_filed_however_they_wrote_it(tmp_path: Path) -> None:
    """Without labels all of it is what they said; a heading that is no moment is a section of their own."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "hello there")
    own = "\n### 2026-03-01 08:00\nBought a boat.\n\nIt is red.\n\n### 2026-03-01 my diary\nDear diary.\n"
    odd = "\n### 2026-03-01T77:00:00Z\nNever o'clock.\n\n### 0001-01-01T00:00:00+14:00\nBefore time.\n"
    rewrite(brain, lambda text: text + own + odd)
    promoted(brain)
    said = [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert "Bought a boat.\n\nIt is red." in said
    text = brain.read_text(STM) or ""
    assert "### 2026-03-01 my diary\nDear diary.\n" in text
    assert odd in text


def test_a_copy_of_an_event_is_an_event_of_its_own(tmp_path: Path) -> None:
    """A person who copies an event and changes the copy finds both filed, and the next run finds nothing to do."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    rewrite(brain, lambda text: text + "\n" + text[text.index("\n### 2026") + 1 :].replace("Ruth", "Nora"))
    promoted(brain)
    said = [event.user for page in pages(brain).values() for event in parse_exchanges(page.text)]
    assert ["My sister Nora is a GP in Bristol.", "My sister Ruth is a GP in Bristol."] == sorted(said)
    assert None is promote(brain).event


def test_a_line_below_an_item_is_no_part_of_it(tmp_path: Path) -> None:
    """It stays when the item leaves, and what is added to the list does not come between."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "hello there")
    rewrite(brain, lambda text: text.replace("### Tasks\n", "### Tasks\n- [x] buy milk\nCall the plumber\n"))
    tell(brain, "/todo call Ruth")
    assert "- [x] buy milk\nCall the plumber\n- [ ] call Ruth" in (brain.read_text(STM) or "")
    outcome = promoted(brain)
    assert "\nCall the plumber\n- [ ] call Ruth" in (brain.read_text(STM) or "")
    assert ["Call the plumber\n"] == list(outcome.kept)


def with_items(text: str, *, heading: str, items: str) -> str:
    return text.replace(heading, f"{heading}{items}")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A brain with pages, lists and an event log in every form, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(folder / variable.lower()))
        brain = make_brain(folder / "brain")
        tell(brain, "My sister Ruth lives in Bristol.")
        promote(brain)
        tell(brain, "I work at Google as a product manager.", answer="Two things:\n\n- one\n\n> three")
        tell(brain, "What's a neap tide?\n\n> with a quote", private=True)
        tell(brain, "/todo call the landlord about the tap")
        for heading, items in LISTS.items():
            rewrite(brain, partial(with_items, heading=heading, items=items))
        own = "\n### 2026-03-01T08:00:00Z\n**User:** I bought a boat.\nIt is red.\n\n## Notes\nmine\n"
        rewrite(brain, lambda text: text.replace("## Summary\n", "## Summary\nMine.\n") + own)
        brain.close()
    return folder


def copied(template: Path, folder: Path) -> Brain:
    """Put a copy of the template in a folder, with an empty state: as a clone on a new machine."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template / "brain", folder)
    shutil.rmtree(places_of(folder).device, ignore_errors=True)
    brain = open_brain(folder, clock=ManualClock(START))
    later(brain, 7200)
    return brain


WORDS = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12)
FRAMES = ["{}", "- {}", "* [ ] {}", "- [x] {}", "  - {}", "    {}", "\t{}", "> {}", "1. {}", "# {}", "## {}", "### {}",
          "#### {}", "### 2026-03-01T08:00:00Z {}", "**User:** {}", '**AI:** "{}"', "**Thoughts:** {}", "**Note:** {}",
          "<!-- {} -->", "{} <!-- private -->", "```{}", "[{}](x.md)", "--- {}", "{}  ", "|{}|",
          "\ufeff{}"]  # fmt: skip


@pytest.mark.slow
@examples(25)
@given(words=st.tuples(WORDS, WORDS), frame=st.sampled_from(FRAMES), place=st.floats(0, 1), is_within=st.booleans(),
       newline=st.sampled_from(["\n", "\n\n", "\r\n"]))  # fmt: skip
def test_a_persons_line_stands_somewhere_after_promotion(
    template: Path, tmp_path_factory: pytest.TempPathFactory, words: tuple[str, str], frame: str, place: float,
    is_within: bool, newline: str,
) -> None:  # fmt: skip
    """Any line, at any position of short-term memory, or typed into the middle of a line: promoted, it stands in the
    tree word for word, in short-term memory, on a page, or on the page of a day."""
    token = f"{words[0]}zq{words[1]}plumber".strip()
    line = frame.format(token)
    brain = copied(template, tmp_path_factory.getbasetemp() / "copy")
    text = brain.read_text(STM) or ""
    ends = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    at = int(place * len(text)) if is_within else ends[int(place * (len(ends) - 1))]
    typed = line if is_within else line + newline
    text = text[:at] + typed + text[at:]
    text = text.replace("\r\n", "\n").replace("\n", "\r\n") if newline == "\r\n" else text
    brain.tree.short_term.write_bytes(text.encode("utf-8", "surrogateescape"))
    with suppress(FormatError):  # a heading of ours was typed into
        promote(brain)
    whole = standing(brain)
    assert token in whole, (at, typed)
    brain.close()
