from __future__ import annotations

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.errors import FormatError
from brainiac.formats.prompt import (
    Prompt,
    Response,
    conversation_of,
    error_path,
    is_off_record,
    parse_prompt,
    parse_response,
    prompt_path_of,
    render_error,
    render_response,
    response_path,
)
from tests.support.notes_texts import BIG, ids, times

AT = "2025-09-16T15:30:00Z"
plain = st.text(max_size=40)


def prompt(text: str, path: str = "inbox/q.md") -> Prompt:
    return parse_prompt(path, text.encode(), at=AT)


def test_all_keys_of_a_prompt() -> None:
    """F-PRM-1: every key is read, unknown ones are passed over. Seeds: U3."""
    found = prompt(
        "---\nmodel: m\nfocus: [[A b]]\nworkflow: review\nreply_to: inbox/p.md\nanswer: false\nremember: false\n"
        "private: true\nstatus: draft\nmine: [1]\n---\nHi"
    )
    assert ("m", ("[[A b]]",), "review", "inbox/p.md") == (found.model, found.focus, found.workflow, found.reply_to)
    assert (False, False, True, True) == (found.answer, found.remember, found.private, found.is_draft)
    assert ("Hi", AT, False) == (found.text, found.at, found.is_send)


def test_a_bare_text_has_the_defaults() -> None:
    """F-PRM-1: without front matter a prompt is answered, remembered, not private."""
    found = prompt("Hi\n")
    assert (True, True, False, False, False) == (
        found.answer,
        found.remember,
        found.private,
        found.is_draft,
        found.is_capture,
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [("answer: maybe", "true or false"), ("model: [a]", "a text"), ("focus: {a: b}", "a list of links")],
)
def test_a_key_of_another_type_is_refused(line: str, expected: str) -> None:
    """F-PRM-1: the message names the key, what was expected and what was found."""
    with pytest.raises(FormatError, match=expected) as caught:
        prompt(f"---\n{line}\n---\nHi")
    assert f"`{line.split(':')[0]}`" in caught.value.problem


def test_an_unclosed_fence_is_body_and_broken_yaml_is_refused() -> None:
    """F-FM-1, F-FM-2: a prompt may begin with a rule; a closed block must be YAML."""
    assert "---\nHi: there" == prompt("---\nHi: there\n").text
    with pytest.raises(FormatError, match="no valid YAML"):
        prompt("---\na: [\n---\nHi")


@pytest.mark.parametrize("body", ["Hi\n/send", "Hi\n/send\n\n", "Hi\r\n  /send  \r\n", "/send"])
def test_a_last_line_send_finishes_a_prompt(body: str) -> None:
    """F-PRM-2: `/send` is seen and is not part of the text."""
    found = prompt(body)
    assert (True, "Hi" if "Hi" in body else "") == (found.is_send, found.text)


@pytest.mark.parametrize("body", ["Hi /send", "/send\nHi", "Hi\n/sender"])
def test_send_elsewhere_is_text(body: str) -> None:
    """F-PRM-2: only a line of its own at the end counts."""
    assert (False, body) == (prompt(body).is_send, prompt(body).text)


def test_what_an_editor_changes_by_saving_does_not_change_the_hash() -> None:
    """F-PRM-3: line ends, white space at line ends, BOM, front matter and `/send` are not part of it."""
    same = [
        "a\n\nb",
        "a\r\n\r\nb\r\n",
        "\ufeffa\n\nb\n\n",
        "a  \n \nb\t",
        "a\n\nb\n/send",
        "---\nmodel: x\n---\n\na\n\nb",
        "a\r\rb",
    ]
    expected = {hashlib.sha256(b"a\n\nb").hexdigest()}
    assert expected == {prompt(text).sha256 for text in same}
    assert prompt("a\nb").sha256 not in expected


def test_bytes_that_are_no_utf8_are_refused_with_their_offset() -> None:
    """F-PRM-4: the message names the first offending byte."""
    with pytest.raises(FormatError, match=r"byte 2 \(0xff\)"):
        parse_prompt("inbox/q.md", b"ab\xff", at=AT)


def test_conversations_are_folders() -> None:
    """F-PRM-5: a subfolder is one conversation, a file at the top its own; notes are captures."""
    assert "inbox/q.md" == conversation_of("inbox/q.md")
    assert "inbox/trip/day" == conversation_of("inbox/trip/day/q.md")
    assert prompt("x", "inbox/notes/q.md").is_capture


def test_names_of_responses_and_errors() -> None:
    """F-RSP-1, F-ERR-1: a response's name follows from its prompt's, and back."""
    assert "a/q.response.md" == response_path("a/q.md")
    assert "a/q.txt.response-2.md" == response_path("a/q.txt", 2)
    assert ("a/q.error.md", "a/q.txt.error.md") == (error_path("a/q.md"), error_path("a/q.txt"))
    for path in ("a/q.md", "a/q.txt", "a/q.response.x.md"):
        for output in (response_path(path), response_path(path, 3), error_path(path)):
            assert path == prompt_path_of(output)[0]
    assert ("q.txt", "q.txt.md") == prompt_path_of("q.txt.response.md")
    assert () == prompt_path_of("a/q.md")


responses = st.builds(
    Response,
    path=st.just("inbox/q.response.md"),
    text=plain,
    in_reply_to=plain,
    prompt_id=ids,
    prompt_sha256=st.binary().map(lambda data: hashlib.sha256(data).hexdigest()),
    created_at=times,
    model=plain,
    memories=st.lists(plain, max_size=3).map(tuple),
    tokens=st.integers(0, 10**9),
    cost_usd=st.floats(0, 10, allow_subnormal=False),
    took_ms=st.integers(0, 10**9),
    remember=st.booleans(),
    private=st.booleans(),
)


@given(responses)
def test_a_response_reads_back(response: Response) -> None:
    """F-RSP-2, F-RSP-4: parse(render(x)) == x for any texts and marks."""
    assert response == parse_response(response.path, render_response(response).encode())


def test_a_response_saved_by_hand_needs_no_front_matter() -> None:
    """F-RSP-3: all keys but the text are empty then; a BOM and the last line end are not text."""
    assert Response("r", "Hello") == parse_response("r", "\ufeffHello\r\n".encode())


@pytest.mark.parametrize("text", ["\r", "\n", "a\r", "\r\nb\r\n", ""])
def test_line_ends_within_a_response_are_text(text: str) -> None:
    """F-RSP-2: only the file's own line end is dropped, and only once."""
    assert text == parse_response("r", render_response(Response("r", text)).encode()).text


def test_an_error_file_says_what_why_and_what_to_do() -> None:
    """F-ERR-1: the three sentences stand there, and front matter names the prompt."""
    text = render_error("inbox/q.md", "Not sent.", "The key is missing.", "Set it.", AT)
    assert all(part in text for part in ("Not sent.", "The key is missing.", "Set it."))
    assert "q.md" == parse_response("inbox/q.error.md", text.encode()).in_reply_to


@given(st.binary(max_size=80), st.sampled_from([b"", b"---\n"]))
def test_any_bytes_are_read_or_refused(raw: bytes, before: bytes) -> None:
    """F-ALL-3: no bytes raise anything but FormatError."""
    for parse in (lambda path, data: parse_prompt(path, data, at=AT), parse_response):
        parsed = None
        with contextlib.suppress(FormatError):
            parsed = parse("inbox/q.md", before + raw + b"\n---\n")
        assert parsed is None or "inbox/q.md" == parsed.path


@pytest.mark.slow
def test_ten_megabytes_are_read() -> None:
    """A prompt of 10 MB keeps its text."""
    assert BIG == prompt(BIG).text
    assert BIG == parse_response("r", render_response(Response("r", BIG)).encode()).text


def test_capitals_in_a_key_do_not_count() -> None:
    """F-PRM-1: `Private: true` keeps a prompt here as `private: true` does, and so on for every key."""
    meta = "Private: true\nREMEMBER: false\nModel: a/b\nFocus: '[[Mara]]'\nStatus: Draft\nAnswer: false\nWorkflow: w"
    raw = f"---\n{meta}\n---\nHello\n".encode()
    found = parse_prompt("inbox/q.md", raw, at=AT)
    assert (True, False, "a/b", ("[[Mara]]",)) == (found.private, found.remember, found.model, found.focus)
    assert (True, False, "w") == (found.is_draft, found.answer, found.workflow)
    assert is_off_record(raw)
    assert is_off_record(b"---\nRemember: !!bool no\n---\nHello\n")
    with pytest.raises(FormatError, match="`private` in the front matter must be true or false"):
        parse_prompt("inbox/q.md", b"---\nPRIVATE: [1]\n---\nHello\n", at=AT)
