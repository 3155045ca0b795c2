"""Imports of what nobody means well: each gives a sentence, takes little memory, and nothing comes in by halves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from brainiac.testing import Said, make_brain
from tests.support.commands import Shell
from tests.support.exports import chatgpt, chatgpt_node, write_json

TURNS = [("I fly to Lisbon on Friday.", "Enjoy it.")]
LIMIT_MB = 50
# the peak of an import in a process of its own, over that of one that imports a small file
MEASURED = """
import resource, sys
from pathlib import Path
from zoneinfo import ZoneInfo
from brainiac.imports.reading import opened_exports
def read(path):
    with opened_exports(Path(path), ZoneInfo("UTC")) as (exports, others):
        return [item.problem for export in exports for item in export.read(lambda count: None)], others
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024
read(sys.argv[1])
before = peak()
problems, others = read(sys.argv[2])
print(peak() - before, len(others), *problems, sep="\\n")
"""


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    make_brain(tmp_path / "brain").close()
    return Shell(capsys, str(tmp_path / "brain"))


def imported(root: Path) -> dict[str, str]:
    """Return the imported pages by their path below the folder of imports, index pages left out."""
    top = root / "brain/memory/long_term/events/imported"
    files = sorted(top.rglob("*.md"))
    return {file.relative_to(top).as_posix(): file.read_text("utf-8") for file in files if file.name != "_index.md"}


def counts(done: Said) -> tuple[int, int, int]:
    """Return how many conversations and notes an import took, knew and skipped."""
    assert done.code == 0, done.err
    states = [item["state"] for item in done.json["items"]]
    return states.count("taken"), states.count("known"), states.count("skipped")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@pytest.mark.parametrize(
    "names",
    [
        ("plan.md", "plan.markdown"),
        ("_index.md", "index-page.md"),
        ("Plan.md", "plan.md"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("pla\u202en.md", "plan.md"),
        ("by\udc80te.md", "by\udc81te.md"),
        ("x" * 230 + "1.md", "x" * 230 + "2.md"),
    ],
    ids=ascii,
)
def test_notes_whose_names_fold_to_one_path_all_come_in(shell: Shell, tmp_path: Path, names: tuple[str, str]) -> None:
    """A note is known by its own name in the export, not by its page's path: both come in, and again adds nothing.

    Undone, both are gone; imported once more, both are there; and an archive of them says the same.
    """
    for number, name in enumerate(names):
        write(tmp_path / "vault" / name, f"# Note\nThe number is {number}.\n")
    assert (2, 0, 0) == counts(shell("import", str(tmp_path / "vault"), "--json", "--dry-run"))
    first = shell("import", str(tmp_path / "vault"), "--json")
    assert (2, 0, 0) == counts(first)
    pages = imported(tmp_path)
    assert ["The number is 0.", "The number is 1."] == sorted(text.splitlines()[-1] for text in pages.values())
    assert not any(sign in path for path in pages for sign in "\u202e\udc80\udc81")
    assert (0, 2, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))
    assert pages == imported(tmp_path)
    assert shell("undo", first.json["import"]).code == 0
    assert {} == imported(tmp_path)
    assert (2, 0, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))
    assert pages.keys() == imported(tmp_path).keys()


def test_the_note_that_keeps_its_name_is_the_one_that_links_mean(shell: Shell, tmp_path: Path) -> None:
    """Of `plan.md` and `plan.markdown` the first keeps its path, so that links between notes lead where they led."""
    write(tmp_path / "vault/plan.markdown", "The other plan.\n")
    write(tmp_path / "vault/plan.md", "The plan.\n")
    write(tmp_path / "vault/start.md", "See [the plan](plan.md).\n")
    assert (3, 0, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))
    assert imported(tmp_path)["notes/vault/plan.md"].endswith("The plan.\n")


def test_a_twin_that_an_older_version_left_out_comes_in_now(shell: Shell, tmp_path: Path) -> None:
    """What was imported before notes had ids is known by its path, and its twin, which was lost then, is taken."""
    write(tmp_path / "vault/plan.md", "The plan.\n")
    assert (1, 0, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))
    (journal,) = (tmp_path / "brain/logs/journal").glob("*/2*.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        line["data"].pop("notes", None)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    write(tmp_path / "vault/plan.markdown", "The other plan.\n")
    assert (1, 1, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))
    assert 2 == len(imported(tmp_path))
    assert (0, 2, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))


CONVERSATION = json.dumps(chatgpt("c", TURNS))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads its peak from /proc")
@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_480,
        "[" * 40_960,
        '{"a":' * 8_192,
        '{"a":[' * 6_000,
        "[" * 20_000 + "]" * 20_000,
        f"[{CONVERSATION}," + " " * 70_000 + "[" * 40_960,
        f"[{CONVERSATION}," + '{"x":' * 7_000 + "1" + "}" * 7_000 + "]",
        '{"conversations": [' + CONVERSATION + ', {"mapping": ' + "[" * 40_960,
        '{"sessionId": "s", "a": ' + "[" * 40_960,
        '[{"mapping": {"a\\\\": "\\"' + "[" * 300 + '"}, "b": ' + "[" * 40_960,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_json_of_any_depth_takes_little_memory(tmp_path: Path, text: str) -> None:
    """Brackets are counted before the parser sees them: its memory grows with the square of the depth."""
    write_json(tmp_path / "small.json", [chatgpt("c", TURNS)])
    (tmp_path / "deep.json").write_text(text)
    paths = (str(tmp_path / "small.json"), str(tmp_path / "deep.json"))
    done = subprocess.run([sys.executable, "-c", MEASURED, *paths], capture_output=True, text=True, check=True)
    megabytes, others, *problems = done.stdout.splitlines()
    assert float(megabytes) < LIMIT_MB
    assert others == "1" or "more than 200 levels deep" in problems[-1]


def test_brackets_in_words_are_no_depth(shell: Shell, tmp_path: Path) -> None:
    """What a person wrote may have any number of brackets, quotes and backslashes."""
    said = '\\" [[[{{{ \\\\"[' * 2_000
    path = write_json(tmp_path / "c.json", [chatgpt("c", [(said, "Enjoy it.")])])
    assert (1, 0, 0) == counts(shell("import", str(path), "--json"))
    (page,) = imported(tmp_path).values()
    assert said in page


def lying(path: Path, name: str, text: str, declared: int) -> Path:
    """Write an archive whose list says another size of its file than it has."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
        entry = archive.getinfo(name)
        entry.file_size = declared  # the list at the archive's end is written when it is closed
    return path


@pytest.mark.parametrize("declared", [1, 200, 49_000_000], ids=str)
@pytest.mark.parametrize("name", ["conversations.json", "note.md", "paper.pdf", "inner.zip", "takeout.html"])
def test_an_archive_that_lies_about_sizes_is_told(shell: Shell, tmp_path: Path, name: str, declared: int) -> None:
    """Declared smaller or larger than real, whatever is in it: a sentence, no bug; what came in is whole."""
    texts = {"note.md": "# A note\n" + "Words. " * 300, "paper.pdf": "%PDF-1.4\n" + "x" * 900}
    text = texts.get(name, json.dumps([chatgpt(f"c{number}", TURNS) for number in range(20)]))
    done = shell("import", str(lying(tmp_path / "e.zip", name, text, declared)), "--json")
    assert done.code in (0, 1), done.err
    assert "bug" not in done.err + done.out
    assert "Traceback" not in done.err
    if name == "conversations.json" and done.code == 0:
        for page in imported(tmp_path).values():
            assert "I fly to Lisbon on Friday." in page
            assert "Enjoy it." in page


def test_a_pipe_in_a_folder_or_for_a_file_is_not_waited_for(shell: Shell, tmp_path: Path) -> None:
    """It is passed over in a folder, and refused by name; what lies beside it comes in."""
    write(tmp_path / "vault/plan.md", "The plan.\n")
    os.mkfifo(tmp_path / "vault/pipe.md")
    assert (1, 0, 0) == counts(shell("import", str(tmp_path / "vault"), "--json"))
    refused = shell("import", str(tmp_path / "vault/pipe.md"))
    assert refused.code == 1
    assert "is no file and no folder" in refused.err
    entry = zipfile.ZipInfo("pipe.md")
    entry.external_attr = 0o010644 << 16  # an archive made of one
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
        archive.writestr(entry, "")
        archive.writestr("plan.md", "Another plan.\n")
    assert (1, 0, 1) == counts(shell("import", str(tmp_path / "e.zip"), "--json"))


@pytest.mark.parametrize("size", [255, 10_000, 100_000])
def test_ids_of_any_length_come_in_once(shell: Shell, tmp_path: Path, size: int) -> None:
    """Ids and titles of conversations and messages of 10,000 characters are ids like any other."""
    name = "x" * size
    nodes = {
        f"{name}1": chatgpt_node(f"{name}1", "", "user", "I fly to Lisbon.", 1_700_000_000.0),
        f"{name}2": chatgpt_node(f"{name}2", f"{name}1", "assistant", "Enjoy it.", 1_700_000_001.0),
    }
    record = {"id": name, "title": name, "create_time": 1.7e9, "mapping": nodes, "current_node": f"{name}2"}
    path = write_json(tmp_path / "c.json", [record])
    assert (1, 0, 0) == counts(shell("import", str(path), "--json"))
    assert (0, 1, 0) == counts(shell("import", str(path), "--json"))
    assert 1 == len(imported(tmp_path))


def test_a_conversation_of_many_levels_is_read_whole(shell: Shell, tmp_path: Path) -> None:
    """ChatGPT's tree of 2,000 messages, each below the one before, is a conversation of a thousand exchanges."""
    nodes: dict[str, Any] = {}
    for number in range(2_000):
        role = "assistant" if number % 2 else "user"
        parent = str(number - 1) if number else ""
        nodes[str(number)] = chatgpt_node(str(number), parent, role, f"Words {number}.", 1_700_000_000.0 + number)
    record = {"id": "deep", "title": "Deep", "create_time": 1.7e9, "mapping": nodes, "current_node": "1999"}
    path = write_json(tmp_path / "c.json", [record])
    done = shell("import", str(path), "--json")
    assert (1, 0, 0) == counts(done)
    text = "".join(imported(tmp_path).values())
    assert all(f"Words {number}." in text for number in (0, 1, 1_000, 1_999))
    assert (0, 1, 0) == counts(shell("import", str(path), "--json"))


def test_an_unreadable_file_keeps_no_other_out(shell: Shell, tmp_path: Path) -> None:
    """A damaged file of an archive is named with the reason, and the notes beside it come in."""
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:  # not packed
        archive.writestr("a.md", "The plan is to fly.\n")
        archive.writestr("b.md", "Another plan.\n")
        archive.writestr("c.json", json.dumps([chatgpt("c", TURNS)]))
    raw = (tmp_path / "e.zip").read_bytes()
    (tmp_path / "e.zip").write_bytes(raw.replace(b"to fly.\n", b"to sail\n").replace(b"Lisbon on", b"London on"))
    done = shell("import", str(tmp_path / "e.zip"), "--json")
    assert (1, 0, 1) == counts(done)
    assert ["Bad CRC-32 for file 'a.md'"] == [
        r[r.find("Bad") : -1] for r in (i["reason"] for i in done.json["items"]) if r
    ]
    assert "e.zip/c.json (cannot be read: Bad CRC-32 for file 'c.json')" in done.json["not_read"]
    assert shell("import", str(lying(tmp_path / "l.zip", "c.json", CONVERSATION, 1))).err.count("cannot be read") == 1
