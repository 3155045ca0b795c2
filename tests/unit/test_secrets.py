"""What holds a secret is told of at once, and its file is the only one that holds it (design 3, 1.10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import Shell
from tests.support.living import Living, events_of, living, living_brain, unfolded
from tests.support.pipeline import eventually
from tests.support.said import holding

SECRET = "quillwort847219563301"
TOLD = "Not kept beyond this file: it looks like a password (`reflection.redact_secrets`)."


def prompts(root: Path) -> tuple[Path, ...]:
    """Return the person's own files."""
    return tuple(path for path in root.glob("inbox/**/*.md") if ".response" not in path.name)


def reflected(one: Living, prompt: str) -> dict[str, object]:
    return dict(one.wait_for_event("exchange-reflected", prompt=f"inbox/{prompt}").data)


@pytest.mark.slow
def test_a_secret_stands_in_its_own_file_alone(tmp_path: Path, machine: Path) -> None:
    """Told at once; what stands beside it is remembered; no answer, journal, blob, state, cache or log holds it.

    That goes for commands, notes, a revision and a question of it, to the end of the daemon. F-SEC-2.
    """
    root = living_brain(tmp_path / "brain")
    with living(root, "--verbose") as one:
        one.drop("a.md", f"Netflix\npassword: {SECRET}\nMy cat is called Tilda.")
        assert one.wait_for_answer("a.md").split("---\n\n")[1].startswith(f"{TOLD}\n\nNoted.")
        assert reflected(one, "a.md")["is_redacted"] is True
        assert TOLD in one.answer("b.md", f"/remember router password: {SECRET}\n/todo change password: {SECRET}")
        assert TOLD in one.answer("c.md", f"password: {SECRET}?")
        one.drop("notes/d.md", f"# Bank\n\npassphrase: {SECRET}\n")
        assert reflected(one, "notes/d.md")["is_redacted"] is True
        (root / "inbox/a.md").write_text(f"Netflix\npassword: {SECRET}\nMy cat is called Tildissima.\n/send\n")
        one.wait_for_event("exchange-reflected", supersedes=events_of(root, "prompt-answered")[0].id)
        assert [] == list(root.glob("inbox/a.response-2.md"))  # our own answer, untouched, was replaced
        assert "Tildissima" in (root / "memory/short_term.md").read_text()
        assert 0 == one.terminate()
    assert 4 == len([path for path in prompts(root) if SECRET in path.read_text()])
    assert [] == holding((SECRET,), tmp_path, machine, but=prompts(root))
    assert sorted(path.relative_to(root).as_posix() for path in prompts(root)) == sorted(unfolded(root))


@pytest.mark.slow
def test_a_secret_is_kept_by_no_crash(tmp_path: Path, machine: Path) -> None:
    """Killed right after the answer, started again: reflected with the mask, and nothing else holds it."""
    root = living_brain(tmp_path / "brain")
    with living(root) as one:
        one.drop("a.md", f"password: {SECRET}\nMy cat is called Tilda.")
        one.wait_for_answer("a.md")
        one.kill()
    with living(root) as one:
        reflected(one, "a.md")
        assert 0 == one.terminate()
    assert "> password: [redacted password]\n> My cat is called Tilda." in (root / "memory/short_term.md").read_text()
    assert 1 == len(events_of(root, "exchange-reflected"))
    assert [] == holding((SECRET,), tmp_path, machine, but=prompts(root))


@pytest.mark.slow
def test_without_its_secret_a_file_is_on_the_record_again(tmp_path: Path) -> None:
    """The journal keeps the text from then on; what was answered once is not reflected twice by it."""
    root = living_brain(tmp_path / "brain")
    with living(root) as one:
        one.answer("a.md", f"password: {SECRET}\nMy cat is called Tilda.")
        reflected(one, "a.md")
        (root / "inbox/a.md").write_text("My cat is called Tildissima.\n/send\n")
        eventually(lambda: len(events_of(root, "exchange-reflected")) == 2, "the revision")
        assert 0 == one.terminate()
    first, second = (dict(event.data) for event in events_of(root, "exchange-reflected"))
    assert ["is_redacted" in first, "is_redacted" in second] == [True, False]
    assert [] == unfolded(root)


@pytest.mark.slow
def test_where_the_settings_keep_secrets_nothing_is_told(tmp_path: Path) -> None:
    """With `redact_secrets: false` it is a text like any other (F-SEC-3)."""
    root = living_brain(tmp_path / "brain", "reflection: {redact_secrets: false}\n")
    with living(root) as one:
        assert "Not kept" not in one.answer("a.md", f"password: {SECRET}")
        assert "is_redacted" not in reflected(one, "a.md")
        assert 0 == one.terminate()
    assert SECRET in (root / "memory/short_term.md").read_text()
    assert [] == unfolded(root)


def test_a_file_that_ask_makes_is_not_named_by_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name is told to the journal and to links."""
    root = living_brain(tmp_path / "brain")
    assert 0 == Shell(capsys, str(root))("ask", f"password: {SECRET}").code
    assert 1 == len(prompts(root))
    assert not any(SECRET in path.name for path in root.rglob("*"))
