"""Which prompts have been answered."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.events import new_id, remove
from brainiac.formats.prompt import Prompt, parse_prompt
from brainiac.llm.schemas import Answer, Purpose, Request
from brainiac.pipeline.daemon import answer_one
from brainiac.storage.journal import to_line
from brainiac.storage.said import Answered
from tests.support.pipeline import Scripted, answer, make_folder, opened
from tests.support.promotions import ScriptedEngine, open_brain
from tests.support.promotions import make_brain as make_modelled


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    return opened(make_folder(tmp_path / "brain"), Scripted())


def prompt_of(brain: Brain, path: str, prompt_id: str = "") -> Prompt:
    prompt = parse_prompt(path, brain.read(path) or b"", at="2025-09-16T15:30:00Z")
    known = brain.answered.of(path)
    return Prompt(**{**{f: getattr(prompt, f) for f in Prompt.__slots__}, "id": known.prompt_id if known else new_id()})


def ask(brain: Brain, path: str, text: str) -> Prompt:
    (brain.root / path).write_text(text)
    prompt = prompt_of(brain, path)
    answer(brain, prompt, text.encode())
    return prompt


def test_what_the_journal_says_is_known_at_once_and_after_a_restart(brain: Brain) -> None:
    prompt = ask(brain, "inbox/q.md", "first")
    (brain.root / "inbox/q.response.md").unlink()
    for answered in (brain.answered, Answered(brain)):
        assert answered.is_answered(prompt)
        known = answered.of("inbox/q.md")
        assert known is not None
        assert (prompt.id, "inbox/q.response.md") == (known.prompt_id, known.response)
        assert answered.last_exchange_at is not None


def test_another_device_s_journal_counts(brain: Brain) -> None:
    prompt = ask(brain, "inbox/q.md", "first")
    folder = brain.journal.folder
    folder.rename(folder.with_name("another-device"))
    (brain.root / "inbox/q.response.md").unlink()
    assert Answered(Brain(brain.root)).is_answered(prompt)


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
    brain: Brain, response: str, expected: bool
) -> None:
    (brain.root / "inbox/q.md").write_text("first")
    prompt = prompt_of(brain, "inbox/q.md")
    (brain.root / "inbox/q.response.md").write_text(response.replace("{sha}", prompt.sha256))
    assert expected is brain.answered.is_answered(prompt)


def test_a_response_by_hand_does_not_answer_a_revision(brain: Brain) -> None:
    ask(brain, "inbox/q.md", "first")
    (brain.root / "inbox/q.response.md").write_text("by hand\n")
    (brain.root / "inbox/q.md").write_text("second")
    assert not brain.answered.is_answered(prompt_of(brain, "inbox/q.md"))


def test_our_untouched_answer_is_replaced_and_a_person_s_is_kept(brain: Brain) -> None:
    ask(brain, "inbox/q.md", "first")
    prompt = ask(brain, "inbox/q.md", "second")
    assert "inbox/q.response.md" == brain.answered.response_target(prompt).path
    assert brain.answered.response_target(prompt).before is not None
    (brain.root / "inbox/q.response.md").write_text("edited")
    assert ("inbox/q.response-2.md", None) == (
        brain.answered.response_target(prompt).path,
        brain.answered.response_target(prompt).before,
    )
    ask(brain, "inbox/q.md", "third")
    assert "inbox/q.response-2.md" == brain.answered.response_target(prompt).path


def test_a_prompt_whose_text_turns_up_elsewhere_has_moved_only_when_it_is_gone(brain: Brain) -> None:
    ask(brain, "inbox/q.md", "first")
    (brain.root / "inbox/copy.md").write_text("first")
    copy = prompt_of(brain, "inbox/copy.md")
    assert brain.answered.moved_from(copy) is None
    (brain.root / "inbox/q.md").unlink()
    moved = brain.answered.moved_from(copy)
    assert moved is not None
    assert "inbox/q.md" == moved.prompt


def test_a_deleted_prompt_is_forgotten_and_what_came_after_is_not(brain: Brain) -> None:
    """Events of other threads are announced late; they must not undo what is newer."""
    ask(brain, "inbox/q.md", "first")
    brain.commit("note-deleted", by="person", changes=[remove("inbox/q.md", b"first")])
    assert brain.answered.of("inbox/q.md") is None
    prompt = ask(brain, "inbox/q.md", "first")
    brain.projection.follow_own()
    assert brain.answered.is_answered(prompt)
    assert brain.answered.of("inbox/q.md") is not None


def test_exchanges_that_nothing_followed_from_are_handed_out_again(brain: Brain) -> None:
    ask(brain, "inbox/a.md", "first")
    ask(brain, "inbox/b.md", "second")
    first, second = brain.answered.undelivered()
    brain.record("exchange-reflected", by="scripted", data={"exchange": first.id})
    assert [second.id] == [event.id for event in Answered(brain).undelivered()]


def test_events_of_another_process_are_taken_in_by_a_refresh(brain: Brain) -> None:
    """So are those of another device whose journal arrived meanwhile."""
    answered = brain.answered
    other = Brain(brain.root)
    prompt = ask(other, "inbox/q.md", "first")
    theirs = brain.journal.folder.with_name("another-device") / "2025-09-16.jsonl"
    theirs.parent.mkdir()
    theirs.write_bytes(
        b"".join(
            to_line(replace(event, id=new_id(), data={**event.data, "prompt": "inbox/r.md", "prompt_id": "r"}))
            for event in brain.journal.events()
        )
    )
    answered.refresh()
    assert prompt.id == getattr(answered.of("inbox/q.md"), "prompt_id", None)
    assert "r" == getattr(answered.of("inbox/r.md"), "prompt_id", None)


def test_a_fingerprint_tells_a_prompt_s_text_and_nothing_of_what_is_none(brain: Brain) -> None:
    prompt = ask(brain, "inbox/q.md", "first")
    assert prompt.sha256 == brain.answered.fingerprint("inbox/q.md", b"first  \r\n/send\n")
    assert brain.answered.fingerprint("inbox/q.md", b"\xff") is None


def test_a_stale_error_file_is_named_for_removal(brain: Brain) -> None:
    prompt = ask(brain, "inbox/q.md", "first")
    assert [] == brain.answered.error_removal(prompt)
    (brain.root / "inbox/q.error.md").write_text("no")
    assert ["inbox/q.error.md"] == [change.path for change in brain.answered.error_removal(prompt)]


def test_a_journal_line_that_is_damaged_loses_no_other(brain: Brain) -> None:
    ask(brain, "inbox/a.md", "first")
    (journal,) = brain.journal.folder.glob("*.jsonl")
    journal.write_bytes(journal.read_bytes() + json.dumps({"seq": 99}).encode() + b"\n")
    assert Answered(brain).of("inbox/a.md") is not None


def test_a_lost_line_of_the_journal_is_not_looked_for_again_and_again(brain: Brain) -> None:
    """After a gap in the numbers, a refresh reads what is new and no more."""
    for number in range(9):
        brain.record("noted", by="t", data={"number": number})
    path = next(brain.journal.folder.glob("*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\0\0\n", *lines[4:]]))
    answered = Answered(brain)
    prompt = ask(Brain(brain.root), "inbox/q.md", "first")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"\0\0\n", *lines[1:]]))  # would be warned of if it were read
    answered.refresh()
    assert answered.is_answered(prompt)
    assert 1 == len(brain.journal.warnings)


def test_of_two_processes_that_answer_at_once_the_second_gives_way(tmp_path: Path) -> None:
    """`ask` beside a daemon that starts: the text is answered once, and both know the answer."""
    quicker: list[Path] = []

    def second(request: Request) -> Answer:
        if not quicker:
            with closing(open_brain(tmp_path / "b")) as other:
                quicker.append(answer_one(other, "inbox/q.md"))
        return Answer(text="Second.")

    brain = make_modelled(tmp_path / "b", engine=ScriptedEngine({Purpose.ANSWER: second}))
    (brain.root / "inbox/q.md").write_text("Where is the ladder?\n")
    given = answer_one(brain, "inbox/q.md")
    assert quicker == [given]
    assert ["q.response.md"] == [path.name for path in (brain.root / "inbox").glob("q.response*")]
    assert "Second." not in (brain.root / "inbox/q.response.md").read_text()
    assert 1 == len(list(brain.journal.events(kinds={"prompt-answered"})))
    brain.close()
