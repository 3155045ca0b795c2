"""What a person tries in the first hour: a default brain, a version, a conversation, a daemon that tells."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from brainiac_plugins.promotion.filing import tidy_inbox

import brainiac
from brainiac.brain import Brain
from brainiac.formats.markdown import find_links
from brainiac.testing import World, make_brain
from tests.support.commands import Shell
from tests.support.program import run_program
from tests.support.screen import on_terminal


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_the_first_brain_is_meant_from_any_folder(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init` makes the default brain; a second one does not take its place unless it is told to."""
    monkeypatch.chdir(tmp_path)
    assert 0 == shell("init", "first").code
    assert 0 == shell("init", "second").code
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert str(tmp_path / "first") == shell("status", "--json").json["brain"]
    monkeypatch.chdir(tmp_path / "second/memory")
    assert str(tmp_path / "second") == shell("status", "--json").json["brain"]
    assert 0 == shell("init", str(tmp_path / "second"), "--default").code
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert str(tmp_path / "second") == shell("status", "--json").json["brain"]


def test_a_named_folder_that_is_no_brain_is_not_replaced_by_the_default(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names a folder means that one: a mistyped name must not write elsewhere."""
    shell("init", str(tmp_path / "first"))
    named = shell("status", "--brain", str(tmp_path))
    assert (1, True) == (named.code, "brainiac init" in named.err)
    monkeypatch.setenv("BRAINIAC_HOME", str(tmp_path))
    assert 1 == shell("status").code


def test_a_brain_whose_identity_was_deleted_is_one(tmp_path: Path, shell: Shell) -> None:
    """Deleting `system/core_identity.md` loses the identity, not the brain."""
    brain = make_brain(tmp_path / "brain")
    brain.tree.core_identity.unlink()
    assert 0 == shell("ask", "I live in Portland.", "--brain", str(brain.root)).code


def test_the_version_and_help_are_no_mistakes(shell: Shell) -> None:
    """`--version` prints it, and `brainiac` alone shows the commands."""
    assert (0, f"brainiac {brainiac.__version__}\n") == ((done := shell("--version")).code, done.out)
    done = shell()
    assert 0 == done.code
    assert "promote" in done.out


@pytest.mark.parametrize("name", ["a.MD", "b.markdown", "c.Markdown"])
def test_other_spellings_of_markdown_are_read(world: World, name: str) -> None:
    """The answer stands beside the whole name."""
    world.save(f"inbox/{name}", "I live in Portland.")
    world.run()
    assert f"inbox/{name}.response.md" in world.tree()
    assert f"inbox/{name} → answered" in world.cli("log").out


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be"])
def test_a_prompt_in_utf_16_is_read(world: World, codec: str) -> None:
    """An editor of Windows saves so; what such a file asks for in its front matter holds too."""
    mark = b"" if codec == "utf-16" else b"\xfe\xff"
    world.drop("a.md", mark + "---\nprivate: true\n---\nGrüße aus Zürich.\n".encode(codec))
    world.run()
    assert '<!-- private -->\n**User:** "Grüße aus Zürich."\n' in world.tree()["memory/short_term.md"]
    assert "\nprivate: true\n" in world.tree()["inbox/a.response.md"]


def test_a_conversation_goes_on_after_what_cannot_be_answered(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn is a file of its folder; what keeps one from its answer is told; an empty line ends it."""
    brain = make_brain(tmp_path / "brain")
    config = brain.tree.config.read_text()
    brain.tree.config.write_text(config.replace("model: offline", "model: openai/gpt-5-nano"))
    brain.close()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello?\n/todo Buy tea\n\nnot read\n"))
    done = shell("chat", "gym", "--brain", str(brain.root))
    assert 0 == done.code
    assert "OPENAI_API_KEY" in done.err
    assert 2 == len(
        [
            path
            for path in (brain.root / "inbox/gym").iterdir()
            if "response" not in path.name and "error" not in path.name
        ]
    )


def test_a_new_brain_lists_its_folders_and_its_log_accuses_nobody(shell: Shell, tmp_path: Path) -> None:
    """The index pages list what stands below from the start, and no file made by `init` counts as a person's edit."""
    root = tmp_path / "brain"
    shell("init", str(root))
    manifest = (root / "memory/long_term/_index.md").read_text().partition("## Manifest")[2]
    assert ["Concrete", "Events", "Skills"] == [link.text for link in find_links(manifest)]
    assert 0 == shell("ask", "I live in Portland.", "--brain", str(root)).code
    assert "by hand" not in shell("log", "--brain", str(root)).out
    explained = shell("why", "i live in portland.", "--brain", str(root))
    assert (0, True) == (explained.code, "you typed" in explained.out)
    uuid = re.findall(r"^uuid: (.*)$", (root / "memory/long_term/skills/_index.md").read_text(), re.MULTILINE)
    assert uuid == [link.uuid for link in find_links(manifest) if link.text == "Skills"]


@pytest.mark.parametrize(
    ("model", "said"), [("offline", "Without a model"), ("openai/gpt-5-mini", "`openai/gpt-5-mini` answers")]
)
def test_who_asks_nothing_is_told_what_to_ask(shell: Shell, tmp_path: Path, model: str, said: str) -> None:
    """An empty `ask` and `/help` get a person going in the engine that is set."""
    brain = make_brain(tmp_path / "brain")
    config = brain.tree.config
    config.write_text(config.read_text().replace("model: offline", f"model: {model}"))
    done = shell("ask", "", "--brain", str(brain.root))
    assert (2, True) == (done.code, said in done.err)
    helped = shell("ask", "/help", "--brain", str(brain.root))
    assert (0, model != "offline") == (helped.code, f"`{model}`" in helped.out)


@pytest.mark.parametrize(("text", "is_told"), [("/remeber it all", True), ("/usr/bin is full", False)])
def test_a_mistyped_command_is_told_and_kept_as_text(shell: Shell, tmp_path: Path, text: str, is_told: bool) -> None:
    """Who mistypes a command learns so in the answer."""
    brain = make_brain(tmp_path / "brain")
    done = shell("ask", text, "--brain", str(brain.root))
    assert (0, is_told) == (done.code, "`/remeber` is no command" in done.out)
    assert text in brain.tree.short_term.read_text()


def test_links_of_an_answer_open_on_a_terminal(tmp_path: Path) -> None:
    """From any folder: the words, then a path that leads from there and opens the file; whoever pipes gets Markdown."""
    brain = make_brain(tmp_path / "my brain")
    brain.close()
    (brain.root / "memory/long_term/concrete/boat.md").write_text("# Boat\n\n- My boat is called Nerissa. ^b1\n")
    uri = (brain.root / "memory/long_term/concrete/boat.md").as_uri()
    asked = ["--brain", str(brain.root), "ask", "--in", "sea", "What is my boat called?"]
    found = ["--brain", str(brain.root), "search", "Nerissa"]
    for folder, path in ((tmp_path, "my brain/memory/long_term/concrete/boat.md"), (brain.root / "inbox", "")):
        path = path or str(brain.root / "memory/long_term/concrete/boat.md")
        seen, hits = on_terminal([(asked, 9e9), (found, 9e9)], folder=folder)
        assert f"Boat (\x1b]8;;{uri}\x1b\\{path}\x1b]8;;\x1b\\)".encode() in seen.raw
        assert f"\x1b]8;;{uri}\x1b\\memory/long_term/concrete/boat.md#^b1\x1b]8;;\x1b\\".encode() in hits.raw
        piped = run_program(*asked, cwd=folder)
        (link,) = [link for link in find_links(piped.stdout) if link.text == "Boat"]
        assert (folder / link.target).resolve() == brain.root / "memory/long_term/concrete/boat.md"
        assert "\x1b" not in piped.stdout


def test_links_open_where_an_answer_stands(shell: Shell, tmp_path: Path) -> None:
    """In the response of a conversation, in short-term memory, and on the page of the day."""
    root = make_brain(tmp_path / "brain").root
    (root / "memory/long_term/concrete/boat.md").write_text("# Boat\n\n- My boat is called Nerissa. ^b1\n")
    assert 0 == shell("ask", "--in", "sea", "What is my boat called?", "--brain", str(root)).code

    def places() -> set[str]:
        linked = [path for path in root.rglob("*.md") if "boat.md" in path.read_text() and "_index" not in path.name]
        for path in linked:
            targets = [path.parent / link.target for link in find_links(path.read_text()) if not link.is_wiki]
            assert targets
            assert all(target.is_file() for target in targets), path
        return {path.relative_to(root).parts[1] for path in linked}

    assert {"sea", "short_term.md"} == places()
    assert 0 == shell("promote", "--brain", str(root)).code
    assert {"sea", "long_term"} == places()


def test_tags_and_days_of_front_matter_are_kept(shell: Shell, tmp_path: Path) -> None:
    """Tags come to the page, of a note and of a prompt; a task gets its day, and a note that is due is a task."""
    root = make_brain(tmp_path / "brain").root
    files = {
        "notes/boat.md": '---\ntags: [boats, "#harbour"]\n---\n# Nerissa\n\nShe is long.\nHer berth is 118.\n',
        "tree.md": "---\ntags: garden, plot\n---\nThe quince tree stands by the well.\n\nWhere is the plum?\n",
        "pass.md": "---\ndue: 2026-12-01\n---\n/todo Renew the passport\n",
        "notes/bank.md": "---\ndue: next Friday\n---\nCall the bank about the loan.\n",
    }
    for name, text in files.items():
        (root / "inbox" / name).write_text(text)
    (root / "inbox/odd.md").write_text("---\ntags: {a: b}\n---\nHello.\n")
    assert 0 == shell("run", "--once", "--brain", str(root)).code
    assert "must be a list of tags" in (root / "inbox/odd.error.md").read_text()
    tasks = shell("ask", "/tasks", "--brain", str(root)).out
    assert [
        "- [ ] Call the bank about the loan. (due next Friday)",
        "- [ ] Renew the passport (due 2026-12-01)",
    ] == sorted(line for line in tasks.splitlines() if line.startswith("- [ ]"))
    assert 0 == shell("promote", "--brain", str(root)).code
    pages = {page.title: page for page in Brain(root).pages().memories.values() if "/concrete/" in page.path}
    assert ["boats", "harbour"] == list(pages["Nerissa"].tags)
    assert ["garden", "plot"] == list(pages["garden"].tags)
    assert {"The quince tree stands by the well.", "Where is the plum?"} == {
        statement.text.partition(" (")[0] for statement in pages["garden"].statements
    }


def test_answered_prompts_leave_the_inbox_once_they_are_kept_whole(shell: Shell, tmp_path: Path) -> None:
    """After `inbox.keep_days`; what was a secret, edited, not filed yet or put back stays."""
    brain = make_brain(tmp_path / "brain")
    root = str(brain.root)
    brain.tree.config.write_text(brain.tree.config.read_text().replace("  # keep_days: 30", "  keep_days: 0"))
    (brain.tree.inbox / "secret.md").write_text("My key is sk-proj-AbCdEf0123456789AbCdEf0123456789AbCdEf01.\n")
    (brain.tree.inbox / "edited.md").write_text("We meet on Monday.\n")
    (brain.tree.inbox / "plain.md").write_text("I live in Portland.\n")
    shell("run", "--once", "--brain", root)
    assert None is tidy_inbox(Brain(brain.root))  # nothing is filed yet
    shell("promote", "--brain", root)
    (brain.tree.inbox / "edited.md").write_text("We meet on Thursday.\n")
    tidied = tidy_inbox(brain)
    assert tidied is not None
    left = {"secret.md", "secret.response.md", "edited.md", "edited.response.md"}
    assert left == {path.name for path in brain.tree.inbox.glob("[!.]*.md")}
    assert "I live in Portland." in shell("why", "I live in Portland.", "--brain", root).out
    assert 0 == shell("undo", tidied.id, "--brain", root).code
    assert ("I live in Portland.\n", None) == ((brain.tree.inbox / "plain.md").read_text(), tidy_inbox(brain))
