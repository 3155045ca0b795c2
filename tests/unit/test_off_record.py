"""What is off the record, or may be meant so, stands in no file but its own: not in tree, state or cache."""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from brainiac_plugins.organization.run import derive_manifests

from brainiac.formats.discretion import Audience
from brainiac.formats.prompt import is_off_record, parse_prompt
from brainiac.llm.gate import Gate
from tests.support.living import Living, living, living_brain, trusted
from tests.support.models import make_brain
from tests.support.pipeline import Scripted, eventually, running
from tests.support.program import run_program
from tests.support.said import say_to

LONG = "filler: " + "lorem ipsum " * 6_000
# what a person may write who wants nothing kept; `{}` is a word that must not be found anywhere afterwards
FORMS = {
    "plain": "---\nremember: false\n---\nI hide {}.\n",
    "quoted key and value": '---\n"remember": "false"\n---\nI hide {}.\n',
    "blank before the colon": "---\nremember : false\n---\nI hide {}.\n",
    "value below": "---\nremember:\n  false\n---\nI hide {}.\n",
    "explicit key": "---\n? remember\n: false\n---\nI hide {}.\n",
    "in braces": "---\n{{remember: false, answer: true}}\n---\nI hide {}.\n",
    "behind a text that says otherwise": "---\nother: |\n  remember: true\nremember: false # please\n---\nI hide {}.\n",
    "quoted value": "---\nremember: 'no'\n---\nI hide {}.\n",
    "n": "---\nremember: n\n---\nI hide {}.\n",
    "zero": "---\nremember: 0\n---\nI hide {}.\n",
    "nothing": "---\nremember:\n---\nI hide {}.\n",
    "null": "---\nremember: ~\n---\nI hide {}.\n",
    "never": "---\nremember: never\n---\nI hide {}.\n",
    "list": "---\nremember: [false]\n---\nI hide {}.\n",
    "mapping": "---\nremember: {{is: {}}}\n---\nI hide {}.\n",
    "escaped key": '---\n"remem\\x62er": false\n---\nI hide {}.\n',
    "escaped letters": '---\n"\\u0072emember": false\n---\nI hide {}.\n',
    "capitals": "---\nREMEMBER: False\n---\nI hide {}.\n",
    "two keys": "---\nremember: true\nRemember: false\n---\nI hide {}.\n",
    "twice": "---\nremember: false\nremember: true\n---\nI hide {}.\n",
    "broken": "---\nremember: false\ntitle: [{}\n---\nI hide {}.\n",
    "broken escape": '---\n"remem\\x62er": false\ntitle: "\\q {}"\n---\nI hide {}.\n',
    "no blank": "---\nremember:false\n---\nI hide {}.\n",
    "equals": "---\nremember = false\n---\nI hide {}.\n",
    "wide": "---\nｒｅｍｅｍｂｅｒ: false\n---\nI hide {}.\n",
    "invisible": "---\nremem\u200bber: false\n---\nI hide {}.\n",
    "wide colon": "---\nremember： false\n---\nI hide {}.\n",
    "long": f"---\n{LONG}\nremember: false\n---\nI hide {{}}.\n",
    "long line after": f"---\nremember: n\n{LONG}\n---\nI hide {{}}.\n",
    "never closed": "---\nremember: false\n\nI hide {}.\n",
    "closed by dots": "---\nremember: false\n...\nI hide {}.\n",
    "below a blank line": "\n---\nremember: false\n---\nI hide {}.\n",
    "indented": "  ---\n  remember: false\n  ---\nI hide {}.\n",
    "mark and carriage returns": "\ufeff---\r\nremember: n\r\n---\r\nI hide {}.\r\n",
    "merged": "---\nx: &x {{remember: n}}\n<<: *x\n---\nI hide {}.\n",
    "tagged": '---\nremember: !!str "false"\n---\nI hide {}.\n',
    "unknown tag": "---\nremember: !never {}\n---\nI hide {}.\n",
    "model quoted": "---\nremember: n\nmodel: [{}]\n---\nI hide {}.\n",
    "workflow": "---\nremember: n\nworkflow: {}\n---\nI hide {}.\n",
    "note": "---\nremember: n\nanswer: false\n---\nI hide {}.\n",
}
ENCODED = {
    "Latin-1": "---\nremember: false\nby: Zoë\n---\nI hide {}.\n".encode("latin-1"),
    "UTF-16": "---\nremember: false\n---\nI hide {}.\n".encode("utf-16"),
    "UTF-16 bare": "---\nremember: n\n---\nI hide {}.\n".encode("utf-16-be"),
    "UTF-16 command": "/off\nI hide {}.\n".encode("utf-16"),
    "UTF-16 command below front matter": "---\nstatus: open\n---\n／off\nI hide {}.\n".encode("utf-16"),
}
# refused as prompts, and off the record all the same
UNREADABLE = {
    "Latin-1",
    "UTF-16 bare",
    "broken",
    "twice",
    "broken escape",
    "no blank",
    "equals",
    "wide colon",
    "unknown tag",
}
UNREADABLE |= {"model quoted", "merged"}
REMEMBERED = (
    "remember: false\n",
    "---\na: remember: false\n",
    "---\nremember: true\n---\nIt is so.\n",
    "---\nremember: 'Yes'\n---\nIt is so.\n",
    "---\nanswer: true\n---\nremember: false\n",
    "---\nRemember: buy milk tomorrow\n",
    "---\nfor: 'remember: false'\n---\nIt is so.\n",
    "It is so.\n\n---\nremember: false\n---\n",
)


def words_of(number: int) -> str:
    """Return a word that no hash or id holds by chance."""
    return f"quillwort{number:02d}zanzibar"


def forms() -> Iterator[tuple[str, str, bytes]]:
    """Yield the name, the word and the file of each form."""
    texts = {name: form.replace("{{", "\1").replace("}}", "\2").encode() for name, form in FORMS.items()} | ENCODED
    for number, (name, form) in enumerate(texts.items()):
        word = words_of(number)
        wide = "utf-16-be" if name == "UTF-16 bare" else "utf-16-le" if name.startswith("UTF-16") else "utf-8"
        said = form.replace("{}".encode(wide), word.encode(wide))
        yield name, word, said.replace(b"\1", b"{").replace(b"\2", b"}")


def readings(content: bytes) -> Iterator[bytes]:
    """Yield what a file's bytes may be read as: as they are, without zero bytes, unpacked, from base64."""
    yield content
    yield content.replace(b"\0", b"")
    for wbits in (15, 31, -15):
        try:
            yield zlib.decompress(content, wbits)
        except zlib.error:
            continue
    for run in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", content):
        whole = run.rstrip(b"=")
        yield base64.b64decode(whole[: len(whole) // 4 * 4])


def found(words: dict[str, str], *folders: Path, but: str = "") -> list[str]:
    """Return each form with the files that hold its word, in their bytes or their name."""
    hits = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not (but and re.search(but, str(path))):
                texts = [os.fsencode(path.name).lower(), *(text.lower() for text in readings(path.read_bytes()))]
                hits += [f"{n}: {path}" for n, word in words.items() if any(word.encode() in text for text in texts)]
    return hits


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, _, file in forms()])
def test_whatever_is_unclear_is_off_the_record(name: str, file: bytes) -> None:
    """F-PRM-6: decided like `private`, on bytes, however long, broken or encoded they are."""
    assert is_off_record(file)
    if name not in UNREADABLE:
        assert not parse_prompt("inbox/q.md", file, at="").remember


@pytest.mark.parametrize("text", REMEMBERED)
def test_what_only_speaks_of_remembering_is_remembered(text: str) -> None:
    """The word in a text, in a value or in a sentence below a rule asks for nothing."""
    assert not is_off_record(text.encode())
    assert not is_off_record(b"")
    assert not is_off_record(None)


def own(number: int) -> str:
    return f"form{number:02d}"


@pytest.mark.slow
def test_no_form_of_it_is_kept_through_answers_refusals_edits_and_kills(tmp_path: Path, machine: Path) -> None:
    """Answered or refused, edited, answered by hand, killed at once and later, deleted: no file but its own has it."""
    root = living_brain(tmp_path / "brain")
    words = {name: word for name, word, _ in forms()}

    def drop_all(one: Living, ending: bytes = b"") -> None:
        for number, (_, _, file) in enumerate(forms()):
            one.drop(f"talk/{own(number)}.md", file + ending)

    def is_settled() -> bool:
        outputs = (root / "inbox/talk").glob("form*.[re]*.md")
        return len({path.name[:6] for path in outputs}) >= len(words) - 1  # a note is not answered

    with living(root) as one:
        drop_all(one)
        one.answer("open.md")
        one.kill()
    with living(root) as one:
        eventually(is_settled, "answers", 60)
        one.kill()
    assert [] == found(words, root / "memory", root / "logs/journal/blobs")
    with living(root) as one:
        drop_all(one, b"And more.\n")
        for number in range(0, len(words), 3):  # what a person saves beside it is off the record like its prompt
            (root / f"inbox/talk/{own(number)}.response.md").write_text(f"By hand: {words_of(number)}.\n")
        one.answer("open2.md")
        eventually(is_settled, "answers to the revisions", 60)
        one.kill()
    with living(root) as one:
        one.answer("open3.md")
        for path in (root / "inbox/talk").glob("form*.md"):
            if not path.name.endswith((".response.md", ".error.md")):
                path.unlink()
        one.answer("open4.md")
        assert 0 == one.terminate()
    with living(root) as one:
        one.answer("open5.md")
        # what a write displaced is kept for ten seconds, in case it was a save
        eventually(lambda: not list((root / "inbox").rglob(".brainiac-*")), "displaced texts are checked", 40)
        assert 0 == one.terminate()
    assert [] == found(words, tmp_path, machine, but=r"/inbox/talk/form\d\d\.(response(-\d+)?|error)\.md$")


@pytest.mark.slow
@pytest.mark.parametrize("has_daemon", [False, True])
@pytest.mark.parametrize("option", ["--off-record", "--private"])
def test_ask_names_the_file_of_what_is_discreet_by_an_id(
    tmp_path: Path, machine: Path, option: str, has_daemon: bool
) -> None:
    """No word of it in a name, and off the record none in the journal, the state, the index or a blob either."""
    root = living_brain(tmp_path / "brain")
    words = {"said": "quillwortzanzibar", "also": "kieloffaacli"}

    def ask(*arguments: str) -> None:
        run_program("--brain", str(root), "ask", *arguments).check_returncode()

    if has_daemon:
        with living(root) as one:
            ask(option, "quillwortzanzibar and kieloffaacli live", "there")
            assert 0 == one.terminate()
    else:
        ask(option, "quillwortzanzibar and kieloffaacli live", "there")
    asked = [path for path in (root / "inbox").iterdir() if path.is_file()]
    assert [2, True] == [len(asked), all("quillwort" not in path.name for path in asked)]
    with living(root) as one:
        one.answer("open.md")
        one.terminate()
    names = [str(path.relative_to(root)).lower() for path in root.rglob("*")]
    assert [] == [name for name in names for word in words.values() if word in name]
    if option == "--off-record":
        stems = "|".join(re.escape(path.name) for path in asked)
        assert [] == found(words, tmp_path, machine, but=rf"/inbox/(?:{stems})$")
    else:
        lines = [path.read_text() for path in (root / "logs/journal").rglob("*.jsonl")]
        assert [] == [word for word in words.values() if any(word in text for text in lines)]


def test_a_fault_at_a_prompt_off_the_record_is_told_without_its_words(tmp_path: Path, machine: Path) -> None:
    """What a plugin, a template or a model says of it may quote it: journal, log and `status` have only that it was."""
    root = tmp_path / "brain"
    plugin = Scripted()

    def fail(prompt: object) -> None:
        raise ValueError(f"cannot deal with {getattr(prompt, 'text', '')}")

    plugin.before_answer = fail
    with running(root, plugin) as one:
        one.drop("inbox/a.md", "---\nremember: false\n---\nquillwortzanzibar\n")
        one.drop("inbox/b.md", "Say kieloffaacli.\n")
        eventually(lambda: 2 <= len(list(one.brain.journal.events(kinds={"plugin-failed"}))), "faults")
        errors = {str(event.data["error"]) for event in one.brain.journal.events(kinds={"plugin-failed"})}
    assert 2 == len(errors)
    assert any("kieloffaacli" in error for error in errors)
    assert any("ValueError" in error and "quillwort" not in error for error in errors)
    assert [] == found({"said": "quillwortzanzibar"}, root / "logs", machine)


def test_a_page_off_the_record_is_in_no_index_page_blob_or_decision(tmp_path: Path, machine: Path) -> None:
    """Its first statement, its title and its place in the manifest are left out, when it begins or becomes so."""
    brain = make_brain(tmp_path / "brain")
    top = brain.root / "memory/long_term/concrete"
    text = "---\nremember: {}\n---\n# {} page\n\n- I hide {}. ^a1\n"
    (top / "a.md").write_text(text.format("'false'", "quillwortzanzibar", "quillwortzanzibar"))
    (top / "b.md").write_text(text.format("true", "Open", "an open thing"))
    brain.observed.adopt()
    derive_manifests(brain, ["memory/long_term/concrete"])
    index = (top / "_index.md").read_text()
    assert [True, False] == ["an open thing" in index, "quillwort" in index]
    (top / "b.md").write_text(text.format("n", "Open", "kieloffaacli"))
    brain.observed.adopt()
    derive_manifests(brain, ["memory/long_term/concrete"])
    assert "b.md" not in (top / "_index.md").read_text()
    brain.close()
    words = {"first": "quillwortzanzibar", "later": "kieloffaacli"}
    assert [] == found(words, brain.root, machine, but=r"/concrete/[ab]\.md$")


MEDDLER = """
from brainiac import hookimpl

@hookimpl
def retrieve(brain, query, limit):
    file = brain.root / "inbox/q.md"
    if not file.read_text().startswith("---"):
        file.write_text("---\\n{}\\n---\\n" + file.read_text())
"""


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["remember: n", "private: true"])
def test_what_is_asked_for_while_the_answer_is_made_counts(tmp_path: Path, machine: Path, asked: str) -> None:
    """Front matter saved in that moment decides: answered anew as it asks for, and nothing is kept as it was before."""
    root = living_brain(tmp_path / "brain")
    trusted(root, "meddler", MEDDLER.format(asked))
    with living(root) as one:
        answer = one.answer("q.md", "I hide quillwortzanzibar.\n")
        one.wait_for_event("exchange-off-record" if "remember" in asked else "exchange-reflected")
        assert 0 == one.terminate()
    assert ("remember: false" if "remember" in asked else "private: true") in answer
    if "remember" in asked:
        assert [] == found({"said": "quillwortzanzibar"}, tmp_path, machine, but=r"/inbox/q(\.response)?\.md$")
    else:
        assert "<!-- private -->" in (root / "memory/short_term.md").read_text()


def test_what_is_remembered_rests_on_no_page_off_the_record(tmp_path: Path) -> None:
    """A remembered answer might repeat it and would be kept; one off the record may tell it."""
    brain = make_brain(tmp_path / "brain")
    page = brain.root / "memory/long_term/concrete/a.md"
    page.write_text("---\nremember: n\n---\n# Shed\n\n- The shed code is quillwortzanzibar. ^a1\n")
    answers = {}
    for name, meta in (("kept.md", ""), ("unkept.md", "---\nremember: false\n---\n")):
        answers[name] = say_to(brain, name, f"{meta}What is the shed code?\n")
    assert {"kept.md": False, "unkept.md": True} == {name: "quillwort" in text for name, text in answers.items()}
    brain.close()


def test_what_is_off_the_record_is_shown_to_no_model_elsewhere(tmp_path: Path) -> None:
    """In a chat that is off the record either: who may see nothing private sees nothing off the record."""
    brain = make_brain(tmp_path / "brain")
    path = "memory/long_term/concrete/a.md"
    (brain.root / path).write_text("---\nremember: false\n---\n# Shed\n\n- The shed code is quillwortzanzibar. ^a1\n")
    hits = brain.recall.search("shed code")
    assert [path] == [hit.path for hit in hits]
    for reader in Audience:
        gate = Gate(brain, reader)
        assert [reader is Audience.NOBODY] * 3 == [
            gate.knows(path),
            bool(gate.hits(hits)),
            gate.read_note(path) is not None,
        ]
    brain.close()


def test_a_broken_page_that_mentions_an_office_is_kept() -> None:
    """Only a command behind its slash asks for anything; it does so in capitals and with the wide slash too."""
    assert not is_off_record(b"---\ntags: [a\n---\nThe office is off the yard.\n")
    assert not is_off_record(b"Never forget: the office.\n")
    assert is_off_record("／OFF\nA word.\n".encode())
    assert is_off_record(b" /Off\nA word.\n")
